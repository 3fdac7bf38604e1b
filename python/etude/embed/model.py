"""A program as C: the file as an array, and functions with the types of its inputs and outputs."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import NamedTuple

from etude import Program
from etude.errors import EtudeValueError
from etude.metadata import MethodMeta, TensorInfo, ValueInfo

#: C types of elements; those that C has none for come as their bits.
_C_TYPES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "float32": "float",
    "float64": "double", "bool": "bool", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "uint16_t",
    "bfloat16": "uint16_t", "complex64": "float", "complex128": "double",
}  # fmt: skip
_SCALARS = {"Int": ("int64_t", "int_value"), "Double": ("double", "double_value"), "Bool": ("bool", "bool_value")}
XNNPACK = "XnnpackBackend"
_C_WORDS = frozenset(["auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for", "goto", "if", "int", "long", "register", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "catch", "delete", "explicit", "export", "friend", "mutable", "namespace", "new", "operator", "private", "protected", "public", "template", "this", "throw", "typename", "using", "virtual"])  # fmt: skip


def identifier(text: str) -> str:
    """A text as a C identifier."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"_{name}" if not name or name[0].isdigit() or name in _C_WORDS or keyword.iskeyword(name) else name


def c_bytes(data: bytes) -> str:
    """The elements of an initialiser."""
    rows = (",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32))
    return ",\n".join(rows)


class Model(NamedTuple):
    """A program that becomes C."""

    name: str  #: prefix of functions, and the name of the files
    program: Program
    data: bytes
    arena: int  #: bytes of the arena
    exact: bool  #: has the arena been measured, so that a byte less would not do? On another machine it may be too small, then

    def methods(self) -> dict[str, MethodMeta]:
        """The methods; an error where one can't be embedded."""
        found = {name: self.program.metadata(name) for name in self.program}
        for name, meta in found.items():
            others = set(meta.backends) - {XNNPACK}
            if others:
                backends = ", ".join(sorted(others))
                raise EtudeValueError(f"method {name!r} has parts for {backends}, for which there is no code to embed: export it without")
            for kind, values in (("input", meta.inputs), ("output", meta.outputs)):
                for i, value in enumerate(values):
                    _check(f"method {name!r}, {kind} {i}", value)
        return found

    def identifiers(self) -> Iterator[tuple[str, str]]:
        """Every name that the C defines outside of its functions, and what has it."""
        name, upper = self.name, self.name.upper()
        yield from ((one, f"program {name!r}") for one in (name, f"{upper}_H_", f"{upper}_ARENA_BYTES"))
        yield from ((f"{name}_{verb}", f"the function that {verb}s program {name!r}") for verb in ("open", "close"))
        for method, meta in self.methods().items():
            yield self._of(method), f"method {method!r} of program {name!r}"
            for i in range(len(meta.outputs)):
                for end in ("", "_count"):
                    yield f"{self._of(method)}_output_{i}{end}", f"output {i} of method {method!r} of program {name!r}"

    def header(self) -> str:
        """The text of NAME.h."""
        name, upper = self.name, self.name.upper()
        note = "just what loading and running all methods took on the board" if self.exact else "enough on every machine; .peak says what was used"
        parts = [
            f"/* {name}: a program for etude, {len(self.data):,} bytes. */\n#ifndef {upper}_H_\n#define {upper}_H_\n\n"
            '#include "etude.h"\n\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
            f"/* Bytes of memory, aligned to 64, in which everything lives: {note}. */\n"
            f"#define {upper}_ARENA_BYTES {self.arena}u\n\n"
            f"typedef struct {name} {{\n  etude_arena arena; /* .peak: the most that was used */\n  etude_runtime *runtime;\n"
            f"  etude_program *program;\n  etude_method *methods[{len(self.program)}];\n"
            f"  uint8_t failed[{len(self.program)}]; /* did the last call of each method's function fail? Then it has no outputs */\n}} {name};\n\n"
            f"/* Load the program and its methods into `memory`, of at least {upper}_ARENA_BYTES; it stays the caller's. `error` may be NULL\n"
            f"   everywhere. On failure nothing is open. Where `self` is zeroed or nothing is open, methods return ETUDE_INVALID_STATE,\n"
            f"   outputs are NULL or 0, and closing does nothing. So are outputs after a call of their method that failed. */\n"
            f"etude_status {name}_open({name} *self, void *memory, size_t size, etude_error *error);\n"
            f"void {name}_close({name} *self);\n"
        ]
        for method, meta in self.methods().items():
            parts.append(self._declare(method, meta))
        parts.append(f"\n#ifdef __cplusplus\n}}\n#endif\n#endif /* {upper}_H_ */\n")
        return "".join(parts)

    def _declare(self, method: str, meta: MethodMeta) -> str:
        lines = [f"\n/* Method {method!r}."]
        lines += [f"     input {i}: {_describe(value)}" for i, value in enumerate(meta.inputs)]
        lines += [f"     output {i}: {_describe(value)}" for i, value in enumerate(meta.outputs)]
        text = "\n".join(lines) + "\n   Inputs are read while it runs; outputs stay until it runs again. */\n"
        text += f"{self._run_head(method, meta)};\n"
        for i, value in enumerate(meta.outputs):
            if value.tensor is not None and not value.tensor.is_dynamic():
                count = _count(value.tensor)
                text += f"enum {{ {self._of(method)}_output_{i}_count = {count} }};\n"
            text += f"{self._output_head(method, i, value)};\n"
        return text

    def _of(self, method: str) -> str:
        return f"{self.name}_{identifier(method)}"

    def _run_head(self, method: str, meta: MethodMeta) -> str:
        taken = [f"{self.name} *self"]
        for i, value in enumerate(meta.inputs):
            if value.tensor is not None:
                tensor = value.tensor
                taken.append(f"const {_type(tensor)} *input_{i}" if tensor.is_dynamic() else f"const {_type(tensor)} input_{i}[{_count(tensor)}]")
                if tensor.is_dynamic():
                    taken.append(f"const int32_t input_{i}_sizes[{max(len(tensor.sizes()), 1)}]")
            elif value.kind in _SCALARS and value.value is None:
                taken.append(f"{_SCALARS[value.kind][0]} input_{i}")
            elif value.kind == "None":
                taken.append(f"const etude_value *input_{i}")
        return f"etude_status {self._of(method)}({', '.join(taken)}, etude_error *error)"

    def _output_head(self, method: str, index: int, value: ValueInfo) -> str:
        if value.tensor is None:
            kind = _SCALARS[value.kind][0] if value.kind in _SCALARS else "etude_value"
            return f"{kind} {self._of(method)}_output_{index}(const {self.name} *self)"
        sizes = f", int32_t sizes[{max(len(value.tensor.sizes()), 1)}]" if value.tensor.is_dynamic() else ""
        return f"const {_type(value.tensor)} *{self._of(method)}_output_{index}(const {self.name} *self{sizes})"

    def source(self) -> str:
        """The text of NAME.c."""
        name = self.name
        methods = self.methods()
        kinds = {value.kind for meta in methods.values() for value in meta.inputs}
        parts = [
            f'/* See {name}.h. */\n#include "{name}.h"\n\n#include <string.h>\n\n'
            "#if defined(__GNUC__)\n#define ALIGNED __attribute__((aligned(16)))\n#else\n#define ALIGNED /* read in place where it is aligned to 16 */\n#endif\n\n"
            f"/* The program file: it stays in flash, and is read there. */\nstatic const uint8_t program_bytes[{len(self.data)}] ALIGNED = {{\n{c_bytes(self.data)}}};\n\n"
            f"static const char *const method_names[] = {{{', '.join(_c_text(method) for method in methods)}}};\nenum {{ METHODS = {len(methods)} }};\n"
            f"{_REFUSE}{self._open()}"
        ]
        if "Tensor" in kinds:
            parts.append(_SET_TENSOR)
        for number, (method, meta) in enumerate(methods.items()):
            parts.append(self._define(number, method, meta))
        return "".join(parts)

    def _open(self) -> str:
        delegated = any(meta.backends for meta in self.methods().values())
        register = "  if (status == ETUDE_OK) status = etude_register_builtin_backends(self->runtime, error);\n" if delegated else ""
        return _OPEN.replace("REGISTER", register).replace("NAME", self.name)

    def _define(self, number: int, method: str, meta: MethodMeta) -> str:
        lines = [f"\n{self._run_head(method, meta)} {{", f"  etude_method *const method = self != NULL ? self->methods[{number}] : NULL;", f"  etude_status status = method != NULL ? ETUDE_OK : refuse_call(error, ETUDE_INVALID_STATE, \"call {self.name}_open first\");"]
        for i, value in enumerate(meta.inputs):
            lines += [f"  {line}" for line in _set_input(i, value)]
        lines += ["  if (status == ETUDE_OK) status = etude_method_execute(method, error);", f"  if (self != NULL) self->failed[{number}] = status != ETUDE_OK;", "  return status;", "}\n"]
        nothing_there = f"self == NULL || self->methods[{number}] == NULL || self->failed[{number}]"
        for i, value in enumerate(meta.outputs):
            lines.append(f"{self._output_head(method, i, value)} {{")
            if value.tensor is None and value.kind not in _SCALARS:
                lines += ["  etude_value value = {0};", f"  if (!({nothing_there})) (void)etude_method_get_output(self->methods[{number}], {i}, &value, NULL);", "  return value;", "}\n"]
                continue
            lines.append("  etude_value value;")
            nothing = "NULL" if value.tensor else "0"
            lines.append(f"  if ({nothing_there}) return {nothing};")
            lines.append(f"  if (etude_method_get_output(self->methods[{number}], {i}, &value, NULL) != ETUDE_OK) return {nothing};")
            if value.tensor is None:
                lines.append(f"  return value.as.{_SCALARS[value.kind][1]};")
            else:
                if value.tensor.is_dynamic():
                    lines.append("  memcpy(sizes, value.as.tensor->sizes, value.as.tensor->rank * sizeof *sizes);")
                lines.append("  return value.as.tensor->data;")
            lines.append("}\n")
        return "\n".join(lines)


def _check(where: str, value: ValueInfo) -> None:
    if value.tensor is not None:
        if value.tensor.dtype_name() not in _C_TYPES:
            raise EtudeValueError(f"{where}: there is no C type for elements of type {value.tensor.dtype_name()}")
    elif value.kind not in _SCALARS and value.kind not in {"None", "String"}:
        raise EtudeValueError(f"{where}: a value of kind {value.kind} can't be passed from C helpers; call the library's functions instead")


def _type(tensor: TensorInfo) -> str:
    return _C_TYPES[tensor.dtype_name()]


def _count(tensor: TensorInfo) -> int:
    """Elements of the C type."""
    count = 2 if tensor.dtype_name().startswith("complex") else 1
    for size in tensor.sizes():
        count *= size
    return max(count, 1)


def _describe(value: ValueInfo) -> str:
    tensor = value.tensor
    if tensor is None:
        return "a number of any kind, or none (NULL)" if value.kind == "None" else str(value)
    note = " (bits)" if _C_TYPES[tensor.dtype_name()] == "uint16_t" and tensor.dtype_name() != "uint16" else ""
    order = tensor.dim_order()
    return tensor.summary() + note + ("" if order == tuple(range(len(order))) else f", dimensions in memory {list(order)}")


def _c_text(text: str) -> str:
    """A text as a C string."""
    return '"' + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}" for byte in text.encode()) + '"'


def _set_input(index: int, value: ValueInfo) -> list[str]:
    tensor = value.tensor
    if tensor is None:
        if value.kind == "None":
            fields = f"if (input_{index} != NULL) value = *input_{index};"
        elif value.kind == "String":
            text = str(value.value)
            fields = f"value.tag = ETUDE_VALUE_STRING; value.as.string = {_c_text(text)}; value.count = {len(text.encode())};"
        else:
            given = f"input_{index}" if value.value is None else repr(value.value).lower()
            fields = f"value.tag = ETUDE_VALUE_{value.kind.upper()}; value.as.{_SCALARS[value.kind][1]} = {given};"
        return [
            "if (status == ETUDE_OK) {", "  etude_value value;", "  memset(&value, 0, sizeof value);", f"  {fields}",
            f"  status = etude_method_set_input(method, {index}, &value, error);", "}",
        ]  # fmt: skip
    rank = len(tensor.sizes())
    order = ", ".join(map(str, tensor.dim_order())) or "0"
    lines = ["if (status == ETUDE_OK) {", f"  static const uint8_t order[] = {{{order}}};"]
    if not tensor.is_dynamic():
        lines.append(f"  static const int32_t sizes[] = {{{', '.join(map(str, tensor.sizes())) or '1'}}};")
    sizes = f"input_{index}_sizes" if tensor.is_dynamic() else "sizes"
    lines.append(f"  status = set_tensor(method, {index}, {tensor.dtype()}, {rank}, {sizes}, order, input_{index}, error);")
    return [*lines, "}"]


_REFUSE = """
static etude_status refuse_call(etude_error *error, etude_status status, const char *why) {
  if (error != NULL) {
    error->status = status;
    error->offset = UINT64_MAX;
    error->subject[0] = 0;
    memcpy(error->message, why, strlen(why) + 1);
  }
  return status;
}
"""

_OPEN = """
void NAME_close(NAME *self) {
  if (self == NULL) return;
  for (uint32_t i = METHODS; i-- > 0;) etude_method_free(self->methods[i]);
  etude_program_free(self->program);
  etude_runtime_free(self->runtime);
  self->program = NULL;
  self->runtime = NULL;
  for (uint32_t i = 0; i < METHODS; ++i) self->methods[i] = NULL;
}

etude_status NAME_open(NAME *self, void *memory, size_t size, etude_error *error) {
  const etude_data_loader loader = etude_data_from_memory(program_bytes, sizeof program_bytes);
  etude_allocator allocator;
  etude_status status;
  uint32_t count;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  if (self == NULL) return refuse_call(error, ETUDE_INVALID_ARGUMENT, "self is NULL");
  memset(self, 0, sizeof *self);
  if (memory == NULL) return refuse_call(error, ETUDE_INVALID_ARGUMENT, "memory is NULL");
  etude_arena_init(&self->arena, memory, size);
  allocator = etude_arena_allocator(&self->arena);
  status = etude_runtime_create(&allocator, NULL, &self->runtime, error);
  if (status == ETUDE_OK) status = etude_runtime_add_kernels(self->runtime, kernels, count, error);
REGISTER  if (status == ETUDE_OK) status = etude_program_load(self->runtime, &loader, NULL, &self->program, error);
  for (uint32_t i = 0; i < METHODS && status == ETUDE_OK; ++i) {
    status = etude_method_load(self->program, method_names[i], NULL, &self->methods[i], error);
  }
  if (status != ETUDE_OK) NAME_close(self);
  return status;
}
"""

_SET_TENSOR = """
static etude_status set_tensor(etude_method *method, uint32_t index, int8_t type, uint8_t rank, const int32_t *sizes,
                               const uint8_t *order, const void *data, etude_error *error) {
  int32_t own_sizes[ETUDE_MAX_RANK];
  uint8_t own_order[ETUDE_MAX_RANK];
  etude_tensor tensor;
  etude_value value;
  if (sizes == NULL) return refuse_call(error, ETUDE_INVALID_ARGUMENT, "the sizes of an input are NULL");
  memset(&tensor, 0, sizeof tensor);
  memset(&value, 0, sizeof value);
  memcpy(own_sizes, sizes, rank * sizeof *sizes);
  memcpy(own_order, order, rank);
  tensor.data = (void *)(uintptr_t)data;
  tensor.sizes = own_sizes;
  tensor.dim_order = own_order;
  tensor.rank = rank;
  tensor.scalar_type = type;
  tensor.flags = ETUDE_TENSOR_READONLY;
  tensor.capacity = etude_tensor_nbytes(&tensor);
  if (data == NULL && tensor.capacity != 0) return refuse_call(error, ETUDE_INVALID_ARGUMENT, "an input is NULL");
  value.tag = ETUDE_VALUE_TENSOR;
  value.as.tensor = &tensor;
  return etude_method_set_input(method, index, &value, error);
}
"""
