#!/usr/bin/env python3
"""Turn programs of the corpus, their inputs and their golden outputs into one C header for the firmware.

    embed.py OUT.h NAME...       NAME: a case of tests/corpus with tensor inputs; its first call is taken
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
CODES = {"uint8": "BYTE", "int8": "CHAR", "int32": "INT", "int64": "LONG", "float32": "FLOAT", "bool": "BOOL"}


def c_bytes(name: str, data: bytes) -> str:
    """A constant array, aligned as flash would be."""
    rows = (", ".join(str(byte) for byte in data[i : i + 32]) for i in range(0, len(data), 32))
    return f"static const uint8_t {name}[] __attribute__((aligned(16))) = {{\n" + ",\n".join(rows) + "\n};\n"


def c_tensor(name: str, array: np.ndarray[Any, Any]) -> tuple[str, str]:
    """(definitions, initialiser of a firmware_tensor) for one array in row-major order."""
    data = np.ascontiguousarray(array).tobytes()
    sizes = ", ".join(str(size) for size in array.shape) or "1"
    text = c_bytes(f"{name}_data", data) + f"static const int32_t {name}_sizes[] = {{{sizes}}};\n"
    return text, f"{{ETUDE_{CODES[array.dtype.name]}, {array.ndim}, {name}_sizes, {name}_data, {len(data)}u}}"


def c_case(name: str, case: dict[str, Any]) -> tuple[str, str]:
    """(definitions, initialiser of a firmware_case) for one program."""
    method, number = case["calls"][0]
    arrays = np.load(CORPUS / case["files"]["npz"])
    prefix = f"{method}__" if number == 0 else f"{method}__s{number}_"
    text = c_bytes(f"{name}_program", (CORPUS / case["files"]["pte"]).read_bytes())
    lists: dict[str, list[str]] = {"in": [], "out": []}
    official = f"{prefix}rt0" in arrays  # what the official runtime computed, where that differs from eager PyTorch
    for kind, rows in lists.items():
        source = "rt" if kind == "out" and official else kind
        while f"{prefix}{source}{len(rows)}" in arrays:
            part, row = c_tensor(f"{name}_{kind}{len(rows)}", arrays[f"{prefix}{source}{len(rows)}"])
            text += part
            rows.append(row)
        text += f"static const firmware_tensor {name}_{kind}[] = {{{', '.join(rows)}}};\n"
    limits = case["tolerance"]
    return text, (
        f'{{"{name}", "{method}", {name}_program, sizeof {name}_program, {name}_in, {len(lists["in"])}u, '
        f'{name}_out, {len(lists["out"])}u, {limits["atol"]}f, {limits["rtol"]}f}}'
    )


def main() -> None:
    """Write the header."""
    cases = json.loads((CORPUS / "manifest.json").read_text())["cases"]
    texts, rows = zip(*(c_case(name, cases[name]) for name in sys.argv[2:]), strict=True)
    table = "static const firmware_case firmware_cases[] = {\n    " + ",\n    ".join(rows) + "\n};\n"
    Path(sys.argv[1]).write_text("\n".join(texts) + table)


if __name__ == "__main__":
    main()
