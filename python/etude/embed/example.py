"""`main.c`: a program that runs every method of an embedded model once and prints what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from etude.embed.model import Model, c_bytes, identifier
from etude.metadata import MethodMeta, ValueInfo

_HEAD = """/* Runs each method of `NAME` once and prints its outputs. Made by `etude embed`: a place to start from. */
#include "NAME.h"

#include <string.h>

#include "board.h"

/* Text without printf, which costs more than the model. */
static void print_whole(int64_t number) {
  char text[24];
  char *at = text + sizeof text - 1;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  *at = 0;
  for (; rest >= 10; rest = (uint32_t)rest == rest ? (uint32_t)rest / 10 : rest / 10) *--at = (char)('0' + (int)(rest % 10));
  *--at = (char)('0' + (int)rest);
  if (number < 0) *--at = '-';
  board_print(at);
}

static void print_real(float number) {
  float size = number < 0 ? -number : number;
  int32_t exponent = 0;
  if (number != number || size > 3e38f) {
    board_print(number != number ? "nan" : number < 0 ? "-inf" : "inf");
    return;
  }
  for (; size >= 1e6f; size /= 10) ++exponent;
  for (; size != 0 && size < 1e-2f; size *= 10) --exponent;
  int32_t millionths = (int32_t)((size - (float)(int32_t)size) * 1e6f + 0.5f), whole = (int32_t)size;
  if (millionths == 1000000) {
    millionths = 0;
    ++whole;
  }
  if (number < 0) board_print("-");
  print_whole(whole);
  char digits[8] = ".000000";
  for (int i = 6; i > 0; --i, millionths /= 10) digits[i] = (char)('0' + millionths % 10);
  board_print(digits);
  if (exponent != 0) {
    board_print("e");
    print_whole(exponent);
  }
}

static uint8_t arena[UPPER_ARENA_BYTES] __attribute__((aligned(64)));
static NAME NAME_state;

"""

_WHOLE = {"uint8", "int8", "int16", "int32", "int64", "bool", "uint16", "uint32", "uint64", "float16", "bfloat16"}


def make_example(model: Model, inputs: Mapping[tuple[str, int], np.ndarray[Any, Any]], *, regions: bool = False) -> str:
    """The text of main.c; inputs that are not given, by method and number, are zeros. It may print the regions of memory, too."""
    name = model.name
    text = _HEAD.replace("NAME", name).replace("UPPER", name.upper())
    body = ["int main(void) {", "  etude_error error = ETUDE_ERROR_INIT;", f"  if ({name}_open(&{name}_state, arena, sizeof arena, &error) != ETUDE_OK) goto failed;"]
    for method, meta in model.methods().items():
        given, values = _arguments(method, meta, inputs)
        text += given
        call = f"{name}_{identifier(method)}({', '.join([f'&{name}_state', *values, '&error'])})"
        body.append(f"  if ({call} != ETUDE_OK) goto failed;")
        for i, value in enumerate(meta.outputs):
            body += _print_output(f"{name}_{identifier(method)}_output_{i}", f"{method}, output {i}:", value, name)
    body += _print_regions(model) if regions else []
    body += [
        '  board_print("arena: ");', f"  print_whole((int64_t){name}_state.arena.peak);", '  board_print(" of ");',
        "  print_whole((int64_t)sizeof arena);", '  board_print(" bytes\\n");', f"  {name}_close(&{name}_state);", "  return 0;", "failed:",
        '  board_print(etude_status_name(error.status));', '  board_print(": ");', "  board_print(error.message);", '  board_print("\\n");', "  return 1;", "}\n",
    ]  # fmt: skip
    return text + "\n".join(body)


_REGIONS = ("structures", "planned", "shared", "unplanned", "loaded", "scratch", "constants", "delegates")


def _print_regions(model: Model) -> list[str]:
    """Lines that print what all methods take together, region by region, and the peak of the arena."""
    name, count = model.name, len(model.program)
    lines = ["  {", "    etude_memory_info info;", "    uint64_t sums[8] = {0}, total = 0;", f"    for (int i = 0; i < {count}; ++i) {{"]
    lines += ["      memset(&info, 0, sizeof info);", "      info.struct_size = sizeof info;", f"      etude_method_memory({name}_state.methods[i], &info);"]
    lines += [f"      sums[{i}] += info.{region};" for i, region in enumerate(_REGIONS)]
    lines += ["      total += info.total;", "    }"]
    for i, region in enumerate(_REGIONS):
        lines += [f'    board_print("memory {region}: ");', f"    print_whole((int64_t)sums[{i}]);", '    board_print("\\n");']
    peak = f"(int64_t){name}_state.arena.peak"
    lines += ['    board_print("memory runtime: ");', f"    print_whole({peak} - (int64_t)total);", '    board_print("\\n");']
    lines += ['    board_print("memory peak: ");', f"    print_whole({peak});", '    board_print("\\n");', "  }"]
    return lines


def _arguments(method: str, meta: MethodMeta, inputs: Mapping[tuple[str, int], np.ndarray[Any, Any]]) -> tuple[str, list[str]]:
    """Definitions of arrays, and the arguments of the call."""
    text, values = "", []
    for i, value in enumerate(meta.inputs):
        tensor = value.tensor
        if tensor is None:
            if value.kind in {"Int", "Double", "Bool"} and value.value is None:
                values.append("0")
            elif value.kind == "None":
                values.append("NULL")
            continue
        array = f"{identifier(method)}_input_{i}"
        data = inputs.get((method, i))
        sizes = tensor.sizes() if data is None else data.shape
        raw = b"" if data is None else np.ascontiguousarray(data.transpose(tensor.dim_order()) if data.ndim else data).tobytes()
        shape = f"_Alignas(16) static const uint8_t {array}[{max(tensor.nbytes(), 1)}]"
        text += f"{shape.replace('_Alignas(16) static', 'static')} __attribute__((aligned(16))) = {{\n{c_bytes(raw) or '0'}}};\n"
        values.append(f"(const void *){array}")
        if tensor.is_dynamic():
            text += f"static const int32_t {array}_sizes[] = {{{', '.join(map(str, sizes)) or '1'}}};\n"
            values.append(f"{array}_sizes")
    return text + "\n" if text else "", values


def _print_output(getter: str, title: str, value: ValueInfo, name: str) -> list[str]:
    tensor = value.tensor
    if tensor is None and value.kind not in {"Int", "Double", "Bool"}:
        return []
    if tensor is None:
        show = "print_real((float)" if value.kind == "Double" else "print_whole((int64_t)"
        return [f'  board_print("{title} ");', f"  {show}{getter}(&{name}_state));", '  board_print("\\n");']
    whole = tensor.dtype_name() in _WHOLE
    show = "print_whole((int64_t)" if whole else "print_real((float)"
    lines = ["  {", f'    board_print("{title}");']
    if tensor.is_dynamic():
        rank = len(tensor.sizes())
        lines += [f"    int32_t sizes[{max(rank, 1)}];", f"    const void *values = {getter}(&{name}_state, sizes);", "    size_t count = 1;"]
        lines.append(f"    for (int d = 0; d < {rank}; ++d) count *= (size_t)sizes[d];")
        values, count = f"((const {_pointer(tensor.dtype_name())} *)values)[i]", "count"
    else:
        lines.append(f"    const {_pointer(tensor.dtype_name())} *values = {getter}(&{name}_state);")
        values, count = "values[i]", f"(size_t){getter}_count"
    lines += [
        f"    for (size_t i = 0; i < {count}; ++i) {{", '      board_print(" ");', f"      {show}{values});", "    }", '    board_print("\\n");', "  }",
    ]  # fmt: skip
    return lines


def _pointer(dtype: str) -> str:
    from etude.embed.model import _C_TYPES  # noqa: PLC0415

    return _C_TYPES[dtype]
