#!/usr/bin/env python3
"""Build the core as for a Cortex-M4 without an operating system, and hold it to its budget.

Prints the bytes of code (.text) and constants (.rodata) of each file and together, and of what stays when a program is
linked that loads and runs methods. Fails where a file does not compile clean, static
RAM is not 0, the code is beyond the budget, or the core needs more from outside than memory and string functions
(plus arithmetic helpers of the compiler itself, which are linked in first and listed).

    size.py [--budget BYTES] [--define NAME ...]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CC = "arm-none-eabi-gcc"
MACHINE = ["-mcpu=cortex-m4", "-mthumb"]
FLAGS = [
    *MACHINE,
    "-Os",
    "-ffreestanding",
    "-std=c99",
    "-pedantic",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-DETUDE_BUILD",
    "-DNDEBUG",
]
# What an application calls that loads a program from memory and runs a method; the rest of the core follows from it.
REACHED = [
    "etude_arena_init",
    "etude_arena_allocator",
    "etude_runtime_create",
    "etude_runtime_add_kernels",
    "etude_data_from_memory",
    "etude_program_load",
    "etude_method_load",
    "etude_method_set_input",
    "etude_method_execute",
    "etude_method_get_output",
]
ALLOWED = re.compile(r"mem(cpy|set|move|cmp|chr)|str(len|cmp|ncmp|chr|rchr|str)")


def run(*command: str) -> str:
    """Run a command and return what it printed; its failure ends the script with its message."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def sections(obj: Path) -> tuple[int, int, int]:
    """Bytes of (code, constants, static RAM) of an object file."""
    sizes = [0, 0, 0]
    for line in run("arm-none-eabi-size", "-A", str(obj)).splitlines():
        row = line.split()
        for i, prefix in enumerate((".text", ".rodata", (".data", ".bss"))):
            if len(row) == 3 and row[0].startswith(prefix):  # type: ignore[arg-type]
                sizes[i] += int(row[1])
    return sizes[0], sizes[1], sizes[2]


def linked(folder: Path, defines: list[str]) -> tuple[int, int]:
    """Bytes of (code, constants) that stay when a program that loads and runs methods is linked."""
    out = folder / "linked.elf"
    sources = [str(path) for path in sorted((ROOT / "c" / "core").glob("*.c"))]
    run(
        CC, *FLAGS, *defines, "-ffunction-sections", "-fdata-sections", f"-I{ROOT / 'include'}", *sources,
        "-nostdlib", "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,etude_method_execute",
        *(f"-Wl,-u,{name}" for name in REACHED), "-o", str(out),
    )  # fmt: skip
    return sections(out)[:2]


def undefined(obj: Path) -> list[str]:
    """Names an object file needs from elsewhere."""
    return sorted(line.split()[-1] for line in run("arm-none-eabi-nm", "-u", str(obj)).splitlines())


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=0, help="most bytes of code (.text); 0 = only print")
    parser.add_argument("--target", type=int, default=0, help="bytes of code to aim at; missing it is printed")
    parser.add_argument("--define", action="append", default=[], metavar="NAME", help="preprocessor macro")
    args = parser.parse_args()
    problems: list[str] = []
    code = constants = ram = 0
    part = {"option": 0, "delegate": 0}
    defines = [f"-D{name}" for name in args.define]
    with tempfile.TemporaryDirectory() as folder:
        objects: list[Path] = []
        print(f"{'file':<16} {'code':>7} {'constants':>10} {'RAM':>5}   ({CC} {' '.join(MACHINE)} -Os)")
        for source in sorted((ROOT / "c" / "core").glob("*.c")):
            obj = Path(folder) / (source.stem + ".o")
            run(CC, *FLAGS, *defines, f"-I{ROOT / 'include'}", "-c", str(source), "-o", str(obj))
            text, rodata, static = sections(obj)
            print(f"{source.name:<16} {text:>7} {rodata:>10} {static:>5}")
            for name in part:
                part[name] += text if source.stem.startswith(name) else 0
            code, constants, ram = code + text, constants + rodata, ram + static
            objects.append(obj)
        print(f"{'total':<16} {code:>7} {constants:>10} {ram:>5}")
        print(f"{'of it, options':<16} {part['option']:>7}")
        print(f"{'of it, delegates':<16} {part['delegate']:>7}")
        print("linked, load and run: {} {}".format(*linked(Path(folder), defines)))
        core, whole = Path(folder) / "core.o", Path(folder) / "whole.o"
        names = [str(obj) for obj in objects]
        run(CC, *MACHINE, "-r", "-nostdlib", "-o", str(core), *names)
        run(CC, *MACHINE, "-r", "-nostdlib", "-o", str(whole), *names, "-lgcc")
        needs, left = undefined(core), undefined(whole)
    helpers = [name for name in needs if name not in left]
    print("needs from outside:", ", ".join(left) or "nothing")
    print("helpers of the compiler:", ", ".join(helpers) or "none")
    if ram != 0:
        problems.append(f"{ram} bytes of static RAM; there must be none")
    if args.target:
        print(f"target {args.target} bytes of code: " + ("met" if code <= args.target else f"missed by {code - args.target}"))
    strangers = [name for name in left if not ALLOWED.fullmatch(name)]
    if strangers:
        problems.append("needs more than memory and string functions: " + ", ".join(strangers))
    if args.budget and code > args.budget:
        problems.append(f"{code} bytes of code, {code - args.budget} beyond the budget of {args.budget}")
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
