#!/usr/bin/env python3
"""Run cases of the corpus through examples/run_arena (an arena, no malloc) and compare with their goldens.

    compare_arena.py RUN_ARENA CORPUS [CASE...]

Without names: every case. Every call sequence of a case is run in
order on one loaded program: in one large arena, and in an arena for each method that has exactly the size which the
program is said to need before it is loaded. That must be enough, and at most 1.1 times what is used (or 128 bytes more).
What delegates share lies in memory of the runtime, so that of programs with delegates it must only be enough. Prints one line
a case, with the peak of the large arena, the largest ratio, and, where outputs of the official runtime were recorded, how many are equal to
the bit; ends with "N passed, N failed".
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ARENA_BYTES = str(64 << 20)
MOST_TOLD = 1.1  # times what is used
WRAPPER = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))  # an emulator, in a cross build
TENSOR, STRING, DOUBLE, INT, BOOL, NONE = 1, 2, 3, 4, 5, 0
CODES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "bool": 11, "bfloat16": 15,
}  # fmt: skip
STORED = {code: np.dtype(name) for name, code in CODES.items() if name not in ("float16", "bfloat16")} | {
    5: np.dtype("uint16"),
    15: np.dtype("uint16"),
}


def floats(array: Array, code: int) -> Array:
    """The numbers of an array whose 16-bit floats are stored as bits; float64, any shape."""
    if code == CODES["bfloat16"]:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if code == CODES["float16"]:
        return array.view(np.float16).astype(np.float64)
    return array.astype(np.float64)


def pack_value(spec: dict[str, Any], array: Array, dim_order: list[int], at: int) -> bytes:
    """One value in the format of run_arena.c, at byte `at`. `array` is in logical row-major order."""
    kind = spec["kind"]
    if kind in ("none", "null"):
        return struct.pack("<I", NONE)
    if kind == "int":
        return struct.pack("<Iq", INT, int(array))
    if kind == "bool":
        return struct.pack("<Iq", BOOL, int(array))
    if kind == "double":
        return struct.pack("<Id", DOUBLE, float(array))
    data = np.ascontiguousarray(array.transpose(dim_order)).tobytes()
    head = struct.pack("<III", TENSOR, CODES[spec["dtype"]], array.ndim)
    head += struct.pack(f"<{2 * array.ndim}i", *array.shape, *dim_order) + struct.pack("<I", len(data))
    return head + bytes(-(at + len(head)) % 16) + data


class Values:
    """Reads values of run_arena's output."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def unpack(self, form: str) -> tuple[Any, ...]:
        """The next numbers, by a format of the struct module."""
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def value(self) -> tuple[int, int, Array]:
        """(kind, scalar type or -1, array in logical order) of the next value."""
        (kind,) = self.unpack("I")
        if kind == NONE:
            return kind, -1, np.zeros(0)
        if kind in (INT, BOOL):
            return kind, -1, np.array(self.unpack("q")[0])
        if kind == DOUBLE:
            return kind, -1, np.array(self.unpack("d")[0])
        if kind == STRING:
            (size,) = self.unpack("I")
            return kind, -1, np.array(self.unpack(f"{size}s")[0])
        code, rank = self.unpack("II")
        sizes, order = self.unpack(f"{rank}i"), self.unpack(f"{rank}I")
        (size,) = self.unpack("I")
        self.at += -self.at % 16
        stored = np.frombuffer(self.data, STORED[code], size // STORED[code].itemsize, self.at)
        self.at += size
        inner = stored.reshape([sizes[k] for k in order])
        return kind, code, inner.transpose(np.argsort(order))


def describe_difference(spec: dict[str, Any], want: Array, got: tuple[int, int, Array], limits: dict[str, float]) -> str:
    """What is wrong with one output; empty if nothing is."""
    kind, code, array = got
    kinds = {"tensor": TENSOR, "int": INT, "double": DOUBLE, "bool": BOOL, "none": NONE, "null": NONE, "string": STRING}
    if kind != kinds[spec["kind"]]:
        return f"kind {kind}, expected {spec['kind']}"
    if kind in (NONE, STRING):
        return ""
    if kind == TENSOR and code != CODES[spec["dtype"]]:
        return f"scalar type {code}, expected {spec['dtype']}"
    if array.shape != want.shape:
        return f"shape {array.shape}, expected {want.shape}"
    if kind in (INT, BOOL) or (kind == TENSOR and spec["dtype"] in ("bool", "int16", "int32", "int64")):
        return "" if np.array_equal(array, want) else "integers differ"
    a, b = floats(array, code), floats(want, code)
    same = np.isclose(a, b, rtol=limits["rtol"], atol=limits["atol"], equal_nan=True)
    return "" if same.all() else f"off by {np.nanmax(np.abs(a - b)[~same]):.3g}"


def prefix(method: str, number: int) -> str:
    """Prefix of the arrays of an input set in a case's npz."""
    return f"{method}__" if number == 0 else f"{method}__s{number}_"


def pack_calls(case: dict[str, Any], arrays: Any) -> bytes:
    """The calls of a case in the format of run_arena.c."""
    out = struct.pack("<I", len(case["calls"]))
    for method, number in case["calls"]:
        specs = case["methods"][method]["sets"][number]["inputs"]
        out += struct.pack("<I", len(method)) + method.encode() + struct.pack("<I", len(specs))
        for i, spec in enumerate(specs):
            array = arrays[f"{prefix(method, number)}in{i}"]
            out += pack_value(spec, array, spec.get("dim_order", list(range(array.ndim))), len(out))
    return out


def told_ratio(printed: str) -> float:
    """The largest ratio of what was told of a method to what it used, of its own arena and of its program's.

    A unit of alignment may be lost at the end of each of two blocks, which is much of a method of a few hundred bytes.
    """
    region = r"shared (\d+), .*?loaded (\d+), .*\n.*: told (\d+), used (\d+) bytes"
    return max((int(told) - 128) / (int(used) + int(shared) + int(loaded)) for shared, loaded, told, used in re.findall(region, printed))


def run_case(program: Path, corpus: Path, case: dict[str, Any], arena: str) -> tuple[str, float, str]:
    """(what is wrong, or empty; peak bytes of the arena, or where it is "exact" the ratio of what was told; what is equal)."""
    arrays = np.load(corpus / case["files"]["npz"])
    with tempfile.TemporaryDirectory() as folder:
        calls, results = Path(folder) / "calls", Path(folder) / "results"
        calls.write_bytes(pack_calls(case, arrays))
        files = [str(corpus / name) for name in case["files"]["ptd"]]
        command = [str(program), arena, str(corpus / case["files"]["pte"]), str(calls), str(results), *files]
        done = subprocess.run([*WRAPPER, *command], check=False, capture_output=True, text=True, timeout=120)
        peak = re.search(r"arena: peak (\d+)", done.stdout)
        if done.returncode != 0 or peak is None:
            return (done.stderr.strip() or f"status {done.returncode}: {done.stdout.strip()}"), 0, ""
        values = Values(results.read_bytes())
    wrong, official = [], []
    for method, number in case["calls"]:
        specs = case["methods"][method]["sets"][number]["outputs"]
        (count,) = values.unpack("I")
        if count != len(specs):
            return f"{method}: {count} outputs, expected {len(specs)}", 0, ""
        for i, spec in enumerate(specs):
            want = arrays[f"{prefix(method, number)}out{i}"]
            got = values.value()
            if spec["kind"] == "tensor":
                official.append(np.array_equal(got[2], arrays.get(f"{prefix(method, number)}rt{i}", want)))
            problem = describe_difference(spec, want, got, case["tolerance"])
            if problem:
                wrong.append(f"{method} set {number} output {i}: {problem}")
    equal = f", {sum(official)} of {len(official)} equal to the official runtime's" if any("__rt" in a for a in arrays.files) else ""
    if arena != "exact":
        return "; ".join(wrong), int(peak[1]), equal
    ratio = told_ratio(done.stdout)
    shares = b"XnnpackBackend" in (corpus / case["files"]["pte"]).read_bytes()
    if ratio > MOST_TOLD and not shares:
        wrong.append(f"told {ratio:.2f} times what is used")
    return "; ".join(wrong), ratio, equal


def main() -> int:
    """Run the cases; 0 if all agree."""
    program, corpus, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    cases = json.loads((corpus / "manifest.json").read_text())["cases"]
    names = names or list(cases)
    absent = [name for name in names if not (corpus / cases[name]["files"]["pte"]).exists()]
    if absent and (corpus.parents[1] / "PKG-INFO").exists():
        print("not in the source package, left out:", *absent)
        names = [name for name in names if name not in absent]
    failed = 0
    for name in names:
        problem, peak, equal = run_case(program, corpus, cases[name], ARENA_BYTES)
        wrong, ratio, _ = run_case(program, corpus, cases[name], "exact")
        problem = problem or (f"in an arena of the size told: {wrong}" if wrong else "")
        failed += bool(problem)
        print(f"{name:<24} " + (f"FAILED: {problem}" if problem else f"ok, peak {peak:,} bytes, told {ratio:.3f} times{equal}"))
    print(f"largest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss} KB")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
