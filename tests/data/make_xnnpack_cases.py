#!/usr/bin/env python3
"""Write xnnpack_cases.h: inputs and results of programs of the corpus that are lowered to XNNPACK, for tests in C.

    python tests/data/make_xnnpack_cases.py

Results are those of the official runtime where they were recorded apart from eager PyTorch's, which they equal elsewhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
CORPUS = HERE.parent / "corpus"
NAMES = ["x_dynamic_batch", "x_two_methods_same", "x_external_weights", "x_conv1d", "q8_linear", "q8_cnn", "q4_linear_groupwise"]
MOST_CALLS = 2  # of each method, of different shapes where there are


def tensor(name: str, array: np.ndarray[Any, Any]) -> tuple[str, str]:
    """(definition, initialiser of an xnnpack_tensor) of one array of floats."""
    numbers = ", ".join(f"{x!r}f" if "." in repr(x) or "e" in repr(x) else f"{x!r}.0f" for x in array.astype(float).ravel().tolist())
    sizes = ", ".join(map(str, array.shape))
    return f"static const float {name}[{array.size}] = {{{numbers}}};\n", f"{{{array.ndim}, {{{sizes}}}, {name}, {array.size}}}"


def main() -> None:
    """Write the header."""
    cases = json.loads((CORPUS / "manifest.json").read_text())["cases"]
    definitions, rows = [], []
    for name in NAMES:
        case, arrays = cases[name], np.load(CORPUS / f"{name}.npz")
        taken: dict[str, int] = {}
        for method, number in case["calls"]:
            if taken.setdefault(method, 0) == MOST_CALLS:
                continue
            taken[method] += 1
            prefix = f"{method}__" if number == 0 else f"{method}__s{number}_"
            kind = "rt0" if f"{prefix}rt0" in arrays else "out0"
            parts = {"in": "in0", "out": kind}
            made = [tensor(f"{name}_{method}{number}_{part}", arrays[prefix + source]) for part, source in parts.items()]
            definitions += [definition for definition, _ in made]
            rows.append(f'{{"{name}", "{method}", {made[0][1]}, {made[1][1]}}}')
    head = '''/* Made by make_xnnpack_cases.py. */
#include <stdint.h>

typedef struct xnnpack_tensor {
  uint8_t rank;
  int32_t sizes[4];
  const float *data;
  uint32_t count;
} xnnpack_tensor;

/* One execution; those of a program, and of a method, follow each other. */
typedef struct xnnpack_call {
  const char *program;
  const char *method;
  xnnpack_tensor input, output;
} xnnpack_call;

'''  # fmt: skip
    table = "static const xnnpack_call xnnpack_calls[] = {\n    " + ",\n    ".join(rows) + ",\n};\n"
    (HERE / "xnnpack_cases.h").write_text(head + "".join(definitions) + table)


if __name__ == "__main__":
    main()
