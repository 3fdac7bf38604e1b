"""Tables of kernels: the one of all portable operators, read, and one of those that programs need, written.

The build runs this file by itself (`kernel_list` in meson.options), so it needs nothing but Python:

    table.py ROOT KERNELS.txt OUTPUT.inc
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

_ROW = re.compile(r'^ETUDE_OPERATOR(?:_TRAITS)?\("([^"]+)",\s*(\w+)(?:,\s*(\w+))?\)', re.MULTILINE)
_SECTION = re.compile(r"^/\* (\w+\.c) \*/$", re.MULTILINE)

#: Names of element types in lists of kernels, and the codes of the file format.
DTYPES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex32": 8, "complex64": 9,
    "complex128": 10, "bool": 11, "bfloat16": 15, "bits16": 22, "uint16": 27, "uint32": 28, "uint64": 29,
}  # fmt: skip

#: Traits of kernels that prepare constant arguments, and the function that does.
_PREPARED = {
    "etude_convolution_traits": "ETUDE_CONVOLUTION_PREPARE",
    "etude_product_addmm": "etude_addmm_prepare",
    "etude_product_linear": "etude_linear_prepare",
    "etude_product_mm": "etude_mm_prepare",
}


class Kernel(NamedTuple):
    """A row of the table of portable kernels."""

    operator: str  #: "aten::add.out"
    function: str  #: "etude_aten_add_out"
    file: str  #: "c/kernels/elementwise_binary.c"
    traits: str  #: the name of its etude_kernel_traits, or "" where the row has none of its own
    linear: bool  #: cheap enough to be run when a method is loaded


class Listed(NamedTuple):
    """A line of a list of kernels: an operator, and the codes of dtypes of the first tensor and of all tensors."""

    operator: str
    first: frozenset[int]
    all: frozenset[int]


def read_table(sources: Mapping[str, str]) -> dict[str, Kernel]:
    """The portable kernels by operator, as c/kernels/kernels.inc and the tables that it includes have them; `sources` by path."""
    rows: dict[str, Kernel] = {}
    linear = False
    for line in sources["c/kernels/kernels.inc"].splitlines():
        if line.startswith("#define ETUDE_ROW_TRAITS"):
            linear = "&linear" in line
        included = re.match(r'#include "(.+)"', line)
        if included is None:
            continue
        path = f"c/kernels/{included[1]}"
        table, folder = sources[path], path.rpartition("/")[0]
        marks = [(mark.start(), f"{folder}/{mark[1]}") for mark in _SECTION.finditer(table)]
        for row in _ROW.finditer(table):
            file = next(name for start, name in reversed(marks) if start < row.start())
            rows[row[1]] = Kernel(row[1], row[2], file, row[3] or "", linear)
    return rows


def parse_list(text: str) -> list[Listed]:
    """The lines of a list; ValueError says which line is wrong, and how."""
    listed = []
    for number, line in enumerate(text.splitlines(), 1):
        name, _, rest = line.partition("#")[0].strip().partition(" ")
        if not name:
            continue
        first, colon, every = rest.partition(":")
        unknown = [dtype for dtype in (*first.split(), *every.split()) if dtype not in DTYPES]
        if not colon or unknown:
            raise ValueError(f"line {number}: " + (f"no dtype is named {unknown[0]!r}" if colon else "expected OPERATOR DTYPES: DTYPES"))
        listed.append(Listed(name, frozenset(DTYPES[dtype] for dtype in first.split()), frozenset(DTYPES[dtype] for dtype in every.split())))
    return listed


def mask_of(codes: Iterable[int]) -> int:
    """A bit for each dtype, as ETUDE_DTYPE_BIT."""
    return sum(1 << code for code in set(codes))


#: Files whose kernels meet no dtypes but those of their tensors. Others compute in these, too.
_ONLY_TENSORS = {
    f"c/kernels/{stem}.c"
    for stem in ("convolution", "copy", "elementwise_binary", "elementwise_select", "elementwise_unary", "matmul", "pooling", "shape", "softmax")
}
_COMPUTED = mask_of(DTYPES[name] for name in ("float32", "float64", "int64", "bool"))


def computed_mask(kernel: Kernel) -> int:
    """The dtypes that a kernel computes in besides those of its tensors."""
    return 0 if kernel.file in _ONLY_TENSORS else _COMPUTED


def write_table(kernels: Iterable[Kernel], masks: Mapping[str, int]) -> str:
    """C of a table of kernels that each take just the dtypes of their mask, so that a program which needs others is refused."""
    traits, rows = [], []
    for kernel in kernels:
        own = kernel.traits
        if own and own not in _PREPARED and not own.startswith(("etude_linear_", "etude_asked", "etude_of_")):
            rows.append(f'    {{"{kernel.operator}", {kernel.function}, &{own}}},\n')
            continue
        linear = own.startswith("etude_linear_") if own else kernel.linear
        flags = "ETUDE_KERNEL_LINEAR" if linear else "ETUDE_KERNEL_ANY_ORDER" if own == "etude_convolution_traits" else "0"
        asked = "etude_kernel_ask" if own.startswith("etude_asked") or own in _PREPARED else "NULL"
        prepare = f"TABLE_PREPARE({_PREPARED[own]})" if own in _PREPARED else "NULL"
        traits.append(f"    {{(uint32_t)sizeof(etude_kernel_traits), {flags}, UINT32_C(0x{masks[kernel.operator]:x}), 0, {asked}, {prepare}}},\n")
        rows.append(f'    {{"{kernel.operator}", {kernel.function}, &table_traits[{len(traits) - 1}]}},\n')
    return (
        "#ifdef ETUDE_NO_FOLDING\n#define TABLE_PREPARE(function) NULL\n#else\n"
        "#define TABLE_PREPARE(function) (ETUDE_SMALL ? NULL : function)\n#endif\n"
        f"static const etude_kernel_traits table_traits[] = {{\n{''.join(traits)}}};\n\n"
        f"static const etude_kernel portable_kernels[] = {{\n{''.join(rows)}}};\n"
    )


def main() -> None:
    """Write what c/kernels/kernels.c includes; print the dtypes that are needed at all, as a mask."""
    root, path, target = map(Path, sys.argv[1:])
    texts = {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in (root / "c/kernels").rglob("*.inc")}
    try:
        listed = parse_list(path.read_text("utf-8"))
    except ValueError as error:
        sys.exit(f"{path}, {error}")
    table = read_table(texts)
    missing = [one.operator for one in listed if one.operator not in table]
    if missing:
        sys.exit(f"{path}: no portable kernel for {', '.join(missing)}")
    kernels = [table[one.operator] for one in listed]
    declared = "".join(f"KERNEL({name});\n" for name in dict.fromkeys(kernel.function for kernel in kernels))
    declared += "".join(f"extern const etude_kernel_traits {name};\n" for name in dict.fromkeys(k.traits for k in kernels if k.traits))
    target.write_text(f"{declared}\n{write_table(kernels, {one.operator: mask_of(one.all) for one in listed})}", "utf-8")
    mask = mask_of(code for one in listed for code in one.all)
    for kernel in kernels:
        mask |= computed_mask(kernel)
    print(hex(mask))


if __name__ == "__main__":
    main()
