"""`main.c`: a program that runs every method of an embedded model once and prints what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from etude.embed.model import Model, c_bytes, identifier
from etude.metadata import MethodMeta, ValueInfo

_HEAD = """/* Runs each method of `NAME` once and prints its outputs: a place to start from. */
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

REALSstatic uint8_t arena[UPPER_ARENA_BYTES] __attribute__((aligned(64)));
static NAME self;

"""

#: Digits of a number exactly, as %.9g and %.17g have them: a binary fraction of k places is a whole number times 5^k / 10^k.
_REALS = """/* mantissa * 2^exponent with so many significant digits, in the form of printf's %g. */
static void print_digits(int negative, uint64_t mantissa, int exponent, int precision) {
  uint32_t limbs[LIMBS] = {0}; /* eight digits each, the last ones first */
  char digits[8 * LIMBS + 1], text[40];
  char *to = text;
  int count = 0, point, last;
  for (int bit = 63; bit >= -(exponent < 0 ? -exponent : exponent); --bit) {
    const uint32_t factor = bit >= 0 || exponent > 0 ? 2 : 5;
    uint32_t carry = bit >= 0 ? (uint32_t)(mantissa >> bit & 1) : 0;
    for (int i = 0; i < LIMBS; ++i) {
      carry += limbs[i] * factor;
      limbs[i] = carry % 100000000;
      carry /= 100000000;
    }
  }
  for (int i = 8 * LIMBS - 1; i >= 0; --i) {
    uint32_t rest = limbs[i / 8];
    for (int j = i % 8; j > 0; --j) rest /= 10;
    if (count > 0 || rest % 10 != 0) digits[count++] = (char)('0' + (int)(rest % 10));
  }
  point = count - 1 + (exponent < 0 ? exponent : 0); /* power of ten of the first digit */
  if (count == 0) digits[count++] = '0', point = 0;
  if (count > precision) {
    int up = digits[precision] > '5' || (digits[precision] == '5' && (digits[precision - 1] - '0') % 2 != 0);
    for (int i = precision + 1; i < count; ++i) up |= digits[precision] == '5' && digits[i] != '0';
    for (last = precision - 1; up && last >= 0 && digits[last] == '9'; --last) digits[last] = '0';
    if (up && last >= 0) ++digits[last];
    if (up && last < 0) digits[0] = '1', ++point; /* of nines alone */
    count = precision;
  }
  while (count > 1 && digits[count - 1] == '0') --count;
  if (negative) *to++ = '-';
  const int scientific = point < -4 || point >= precision;
  const int before = scientific ? 0 : point; /* power of ten of the digit in front of the dot */
  for (int i = before < 0 ? before : 0; i < count || i <= before; ++i) {
    *to++ = i < 0 || i >= count ? '0' : digits[i];
    if (i == before && i + 1 < count) *to++ = '.';
  }
  *to = 0;
  board_print(text);
  if (scientific) {
    const int size = point < 0 ? -point : point;
    board_print(point < 0 ? size < 10 ? "e-0" : "e-" : size < 10 ? "e+0" : "e+");
    print_whole(size);
  }
}
"""
#: By dtype: the function, an unsigned integer of its width, bits of the fraction and of the exponent, digits that tell numbers apart.
_FORMATS = {"float32": ("print_float", "float", 32, 23, 8, 9), "float64": ("print_double", "double", 64, 52, 11, 17)}


def _real(dtype: str) -> str:
    """The function that prints a number of a dtype."""
    name, kind, width, fraction, exponent, precision = _FORMATS[dtype]
    most = 2**exponent - 1
    return f"""
static void {name}({kind} number) {{
  uint{width}_t bits;
  memcpy(&bits, &number, sizeof bits);
  const int negative = (int)(bits >> {width - 1}), exponent = (int)(bits >> {fraction} & {most});
  const uint{width}_t fraction = bits & (((uint{width}_t)1 << {fraction}) - 1);
  if (exponent == {most}) board_print(fraction != 0 ? "nan" : negative ? "-inf" : "inf");
  else print_digits(negative, exponent != 0 ? fraction | (uint{width}_t)1 << {fraction} : fraction, (exponent != 0 ? exponent : 1) - {most // 2 + fraction}, {precision});
}}
"""


def _reals(model: Model) -> str:
    """Functions that print real numbers, for the dtypes that outputs have."""
    outputs = [value for meta in model.methods().values() for value in meta.outputs]
    dtypes = {_printed(value.tensor.dtype_name()) for value in outputs if value.tensor is not None}
    dtypes |= {"float64" for value in outputs if value.kind == "Double"}
    found = [dtype for dtype in _FORMATS if dtype in dtypes]
    if not found:
        return ""
    limbs = "97" if "float64" in found else "15"
    return _REALS.replace("LIMBS", limbs) + "".join(map(_real, found)) + "\n"


def _printed(dtype: str) -> str:
    """The dtype as which elements are printed: complex numbers by their parts."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


_WHOLE = {"uint8", "int8", "int16", "int32", "int64", "bool", "uint16", "uint32", "uint64", "float16", "bfloat16"}


def make_example(model: Model, inputs: Mapping[tuple[str, int], np.ndarray[Any, Any]], *, regions: bool = False) -> str:
    """The text of main.c; inputs that are not given, by method and number, are zeros. It may print the regions of memory, too."""
    name = model.name
    text = _HEAD.replace("REALS", _reals(model)).replace("NAME", name).replace("UPPER", name.upper())
    body = ["int main(void) {", "  etude_error error = ETUDE_ERROR_INIT;", f"  if ({name}_open(&self, arena, sizeof arena, &error) != ETUDE_OK) goto failed;"]
    for method, meta in model.methods().items():
        given, values = _arguments(method, meta, inputs)
        text += given
        call = f"{name}_{identifier(method)}({', '.join(['&self', *values, '&error'])})"
        body.append(f"  if ({call} != ETUDE_OK) goto failed;")
        for i, value in enumerate(meta.outputs):
            body += _print_output(f"{name}_{identifier(method)}_output_{i}", f"{method}, output {i}:", value, name)
    body += _print_regions(model) if regions else []
    body += [
        '  board_print("arena: ");', "  print_whole((int64_t)self.arena.peak);", '  board_print(" of ");',
        "  print_whole((int64_t)sizeof arena);", '  board_print(" bytes\\n");', f"  {name}_close(&self);", "  return 0;", "failed:",
        '  board_print("status ");', "  print_whole((int64_t)error.status);", '  board_print(": ");', "  board_print(error.message);", '  board_print("\\n");', "  return 1;", "}\n",
    ]  # fmt: skip
    return text + "\n".join(body)


_REGIONS = ("structures", "planned", "shared", "unplanned", "loaded", "scratch", "constants", "delegates")


def _print_regions(model: Model) -> list[str]:
    """Lines that print what all methods take together, region by region, and the peak of the arena."""
    count = len(model.program)
    lines = ["  {", "    etude_memory_info info;", "    uint64_t sums[8] = {0}, total = 0;", f"    for (int i = 0; i < {count}; ++i) {{"]
    lines += ["      memset(&info, 0, sizeof info);", "      info.struct_size = sizeof info;", "      etude_method_memory(self.methods[i], &info);"]
    lines += [f"      sums[{i}] += info.{region};" for i, region in enumerate(_REGIONS)]
    lines += ["      total += info.total;", "    }"]
    for i, region in enumerate(_REGIONS):
        lines += [f'    board_print("memory {region}: ");', f"    print_whole((int64_t)sums[{i}]);", '    board_print("\\n");']
    peak = "(int64_t)self.arena.peak"
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
        show = "print_double(" if value.kind == "Double" else "print_whole((int64_t)"
        return [f'  board_print("{title} ");', f"  {show}{getter}(&self));", '  board_print("\\n");']
    whole = tensor.dtype_name() in _WHOLE
    show = "print_whole((int64_t)" if whole else f"{_FORMATS[_printed(tensor.dtype_name())][0]}("
    lines = ["  {", f'    board_print("{title}");']
    if tensor.is_dynamic():
        rank = len(tensor.sizes())
        lines += [f"    int32_t sizes[{max(rank, 1)}];", f"    const void *values = {getter}(&self, sizes);", "    size_t count = 1;"]
        lines.append(f"    for (int d = 0; d < {rank}; ++d) count *= (size_t)sizes[d];")
        values, count = f"((const {_pointer(tensor.dtype_name())} *)values)[i]", "count"
    else:
        lines.append(f"    const {_pointer(tensor.dtype_name())} *values = {getter}(&self);")
        values, count = "values[i]", f"(size_t){getter}_count"
    lines += [
        f"    for (size_t i = 0; i < {count}; ++i) {{", '      board_print(" ");', f"      {show}{values});", "    }", '    board_print("\\n");', "  }",
    ]  # fmt: skip
    return lines


def _pointer(dtype: str) -> str:
    from etude.embed.model import _C_TYPES  # noqa: PLC0415

    return _C_TYPES[dtype]
