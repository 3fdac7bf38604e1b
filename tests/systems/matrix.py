#!/usr/bin/env python3
"""What ran on each target and in each language: a line for each in CI, and a table of them at its end.

    matrix.py target BUILD NAME HOW      from a Meson build folder whose tests have run; HOW says what ran them
    matrix.py python NAME HOW LOG PYTHON...  from what pytest printed, and the command of a Python that has etude and numpy
    matrix.py table LOG...               every such line in these logs, as a table

Other tests print lines of their own, by `line`. The peak of memory is that of the largest process of those that ran programs of the corpus
(getrusage), with the emulator where there is one; the arena is what MobileNetV2 takes of memory that the caller gives (compare_arena.py).
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

MARK = "matrix: "
COLUMNS = ("target or language", "run by", "checks", "against", "size", "peak memory")
CORPUS = Path(__file__).resolve().parent.parent / "corpus"
PEAK = """
import ctypes, sys, numpy, etude
case = numpy.load(sys.argv[1] + ".npz")
etude.load(sys.argv[1] + ".pte")(case["forward__in0"])
if sys.platform == "win32":
    class Counters(ctypes.Structure): # PROCESS_MEMORY_COUNTERS
        _fields_ = [("size", ctypes.c_uint32), ("faults", ctypes.c_uint32), ("peak", ctypes.c_size_t), ("others", ctypes.c_size_t * 7)]
    found = Counters(ctypes.sizeof(Counters))
    ctypes.windll.psapi.GetProcessMemoryInfo(ctypes.c_void_p(-1), ctypes.byref(found), found.size)
    print(found.peak // 1024)
    print(etude.get_library().removeprefix("Z:").replace(chr(92), "/")) # as wine calls the files of this machine
else:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    print(etude.get_library())
"""


def line(*cells: str) -> str:
    """The line of a target or language: a cell for each of COLUMNS."""
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} cells, not {len(COLUMNS)}: {cells}")
    return MARK + " | ".join(cells)


def megabytes(kilobytes: int) -> str:
    """As getrusage counts on Linux."""
    return f"{kilobytes / 1024:.0f} MB"


def loaded_bytes(library: Path) -> int:
    """What of a library takes memory, without symbols and what is for debuggers; of systems that don't use ELF its file."""
    data = library.read_bytes()
    if data[:4] != b"\x7fELF":
        return len(data)
    wide = data[4] == 2
    (offset,) = struct.unpack_from("<Q" if wide else "<I", data, 32 if wide else 28)
    size, count = struct.unpack_from("<HH", data, 54 if wide else 42)
    segments = [struct.unpack_from("<IIQQQQQ" if wide else "<IIIIII", data, offset + i * size) for i in range(count)]
    return sum(segment[6 if wide else 5] for segment in segments if segment[0] == 1)


def of_target(build: Path, name: str, how: str) -> str:
    """The line of a target, by the log of its tests."""
    passed, failed, goldens, arena, peak = 0, 0, [], "", ""
    log = build / "meson-logs" / "testlog.json"
    tests = [json.loads(text) for text in log.read_text().splitlines()] if log.exists() else []
    for test in tests:
        printed = test.get("stdout", "")
        counts = re.findall(r"^(\d+) passed, (\d+) failed", printed, re.M)
        passed += sum(int(count[0]) for count in counts)
        failed += sum(int(count[1]) for count in counts)
        short = re.split(r":| - ", test["name"])[-1].strip()
        if short == "operators":
            goldens.append("vectors of PyTorch")
        if short == "arena_corpus":
            goldens.append("eager PyTorch's outputs")
            arena = next(iter(re.findall(r"^mobilenetv2 .* peak ([\d,]+) bytes", printed, re.M)), "")
            peak = next(iter(re.findall(r"^largest process: (\d+) KB", printed, re.M)), "")
        if short == "generate":
            goldens.append("tokens of the official runner")
    library = next(iter(sorted([*build.glob("libetude.so.?"), *build.glob("libetude*.dll"), *build.glob("libetude.*.dylib")])))
    memory = [f"arena {arena} B" if arena else "", f"process {megabytes(int(peak))}" if peak else ""]
    ran = f"{len(tests)} tests, {passed:,} checks right, {failed} wrong" if tests else "-"
    return line(name, how, ran, ", ".join(goldens) or "-", f"library {loaded_bytes(library):,} B", ", ".join(filter(None, memory)) or "-")


def of_python(name: str, how: str, log: Path, python: list[str]) -> str:
    """The line of the package in a Python, by the log of its tests."""
    passed, failed = (re.findall(rf"(\d+) {what}", log.read_text()) for what in ("passed", "failed"))
    ran = f"{int(passed[-1]):,} tests right, {failed[-1] if failed else 0} wrong"
    command = [*python, "-c", PEAK, str(CORPUS / "mobilenetv2")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    peak, library = said.splitlines()
    goldens = "eager PyTorch's outputs, the official runtime's"
    return line(name, how, ran, goldens, f"library {loaded_bytes(Path(library)):,} B", f"process with numpy {megabytes(int(peak))}")


def table(logs: list[Path]) -> str:
    """Every line in the logs, its columns below each other."""
    printed = [text for log in logs for text in log.read_text(errors="replace").splitlines()]
    rows = [list(COLUMNS), *(text[len(MARK) :].split(" | ") for text in printed if text.startswith(MARK))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def main() -> int:
    """Print a line or the table."""
    what, *arguments = sys.argv[1:]
    if what == "target":
        print(of_target(Path(arguments[0]), arguments[1], arguments[2]))
    elif what == "python":
        print(of_python(arguments[0], arguments[1], Path(arguments[2]), arguments[3:]))
    else:
        print(table([Path(name) for name in arguments]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
