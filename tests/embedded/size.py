#!/usr/bin/env python3
"""Build the core as for a Cortex-M4 without an operating system, print its size, and hold it to its budget.

Four builds: with the texts of errors, without them (meson option error_text, macro ETUDE_NO_ERROR_TEXT), without the
parts that small machines can do without as well (meson option without), and as `etude embed` has it for a program without
backends and state. For each:
the bytes of every file and what part of them are constants (names, texts), of the whole core, of the core without
options of backends, and of what stays when a program is linked that loads and runs methods.

Fails where a file does not compile clean, static RAM is not 0, a build is beyond its budget, or the core needs more
from outside than memory and string functions (plus arithmetic helpers of the compiler itself, which are linked in
first and listed). A target that is missed is only said.

    size.py [--each]     with it, what each of these parts takes
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CC = "arm-none-eabi-gcc"
MACHINE = ["-mcpu=cortex-m4", "-mthumb"]
FLAGS = [
    *MACHINE,
    "-Os",
    "-ffreestanding",
    "-std=c99",
    "-ffunction-sections",
    "-fdata-sections",
    "-pedantic",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-DETUDE_BUILD",
    "-DNDEBUG",
    "-DETUDE_NO_FOLDING",  # constants are read in place there
    "-DETUDE_NO_TRACE",  # profiles are for the bench
]
PARTS = ["views", "shared_state", "external_data", "work_limit", "metadata", "names"]
NO_TEXTS = ["-DETUDE_NO_ERROR_TEXT"]
SMALL = [*NO_TEXTS, *(f"-DETUDE_NO_{part.upper()}" for part in PARTS)]
EMBEDDED_PARTS = ["backends", "state", "checks"]
EMBEDDED = [*SMALL, *(f"-DETUDE_NO_{part.upper()}" for part in EMBEDDED_PARTS)]
BUILDS = {"with texts": [], "without texts": NO_TEXTS, "small": SMALL, "embedded": EMBEDDED}

WHOLE = "whole core"
NO_OPTIONS = "without options"
LINKED = "linked: load and run"

# Most bytes, so that it does not grow unnoticed, and the bytes that it shall come down to.
BUDGETS = {
    "with texts": {WHOLE: 46_400, NO_OPTIONS: 38_700, LINKED: 34_350},
    "without texts": {WHOLE: 33_000, NO_OPTIONS: 27_900, LINKED: 23_650},
    "small": {WHOLE: 24_576, NO_OPTIONS: 19_950, LINKED: 18_100},
    "embedded": {WHOLE: 14_100, NO_OPTIONS: 13_800, LINKED: 10_950},
}
TARGETS = {WHOLE: 24_576, NO_OPTIONS: 20_480}

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


@dataclass
class Size:
    """Bytes of a piece: all that stands in flash, the constants among it, and static RAM."""

    flash: int = 0
    constants: int = 0
    ram: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.flash + other.flash, self.constants + other.constants, self.ram + other.ram)


@dataclass
class Build:
    """What one build of the core comes to: sizes by name, files first, and what it needs from outside."""

    sizes: dict[str, Size] = field(default_factory=dict)
    helpers: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


def run(*command: str) -> str:
    """Run a command and return what it printed; its failure ends the script with its message."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def size_of(path: Path) -> Size:
    """Size of an object file or an image, by its sections."""
    size = Size()
    for line in run("arm-none-eabi-size", "-A", str(path)).splitlines():
        row = line.split()
        if len(row) != 3 or not row[1].isdigit():
            continue
        if row[0].startswith((".text", ".rodata")):
            size.flash += int(row[1])
        if row[0].startswith(".rodata"):
            size.constants += int(row[1])
        if row[0].startswith((".data", ".bss")):
            size.ram += int(row[1])
    return size


def link(objects: list[str], image: Path) -> None:
    """Link what a program needs that loads and runs methods, without the C library."""
    run(
        CC, *MACHINE, *objects, "-nostdlib", "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all",
        "-Wl,-e,etude_method_execute", *(f"-Wl,-u,{name}" for name in REACHED), "-o", str(image),
    )  # fmt: skip


def undefined(path: Path) -> list[str]:
    """Names an object file needs from elsewhere."""
    return sorted(line.split()[-1] for line in run("arm-none-eabi-nm", "-u", str(path)).splitlines())


def build(folder: Path, defines: list[str]) -> Build:
    """Compile the core with these macros, and measure."""
    result = Build()
    objects: list[str] = []
    whole, no_options = Size(), Size()
    for source in sorted((ROOT / "c" / "core").glob("*.c")):
        target = folder / (source.stem + ".o")
        run(CC, *FLAGS, *defines, f"-I{ROOT / 'include'}", "-c", str(source), "-o", str(target))
        size = size_of(target)
        result.sizes[source.name] = size
        whole += size
        if not source.stem.startswith("option"):
            no_options += size
        objects.append(str(target))
    image, core, closed = folder / "image.elf", folder / "core.o", folder / "closed.o"
    link(objects, image)
    result.sizes |= {WHOLE: whole, NO_OPTIONS: no_options, LINKED: size_of(image)}
    run(CC, *MACHINE, "-r", "-nostdlib", "-o", str(core), *objects)
    run(CC, *MACHINE, "-r", "-nostdlib", "-o", str(closed), *objects, "-lgcc")
    result.needs = undefined(closed)
    result.helpers = [name for name in undefined(core) if name not in result.needs]
    return result


def show(builds: dict[str, Build]) -> None:
    """Print the table, and how far the targets are."""
    print(f"bytes in flash, and the constants among them ({CC} {' '.join(MACHINE)} -Os)")
    print(f"{'':<22}" + "".join(f"{name:>20}" for name in builds))
    for name in next(iter(builds.values())).sizes:
        row = [made.sizes[name] for made in builds.values()]
        print(f"{name:<22}" + "".join(f"{size.flash:>13} {size.constants:>6}" for size in row))
    for name, target in TARGETS.items():
        least = builds["small"].sizes[name].flash
        verdict = "met" if least <= target else f"missed by {least - target}"
        print(f"target, {name}: {target}, {verdict} at {least} in the small build")


def show_each() -> None:
    """Print what the core and a linked image have less without each part."""
    sizes = {}
    for part in ["", *PARTS, *EMBEDDED_PARTS]:
        with tempfile.TemporaryDirectory() as folder:
            made = build(Path(folder), NO_TEXTS + ([f"-DETUDE_NO_{part.upper()}"] if part else []))
        sizes[part] = [made.sizes[name].flash for name in (WHOLE, LINKED)]
    print("| part | core | linked: load and run |\n|---|--:|--:|")
    for part in [*PARTS, *EMBEDDED_PARTS]:
        print(f"| {part} | {sizes[''][0] - sizes[part][0]:,} | {sizes[''][1] - sizes[part][1]:,} |")


def problems_of(name: str, made: Build) -> list[str]:
    """What is wrong with a build."""
    problems = []
    if made.sizes[WHOLE].ram != 0:
        problems.append(f"{name}: {made.sizes[WHOLE].ram} bytes of static RAM; there must be none")
    strangers = [symbol for symbol in made.needs if not ALLOWED.fullmatch(symbol)]
    if strangers:
        problems.append(f"{name}: needs more than memory and string functions: " + ", ".join(strangers))
    for piece, budget in BUDGETS[name].items():
        if made.sizes[piece].flash > budget:
            problems.append(f"{name}, {piece}: {made.sizes[piece].flash} bytes, beyond the budget of {budget}")
    return problems


def main() -> int:
    """Measure, print, judge."""
    builds: dict[str, Build] = {}
    for name, defines in BUILDS.items():
        with tempfile.TemporaryDirectory() as folder:
            builds[name] = build(Path(folder), defines)
    show(builds)
    if "--each" in sys.argv[1:]:
        show_each()
    for name, made in builds.items():
        print(f"{name}: static RAM {made.sizes[WHOLE].ram}; needs from outside: {', '.join(made.needs) or 'nothing'};",
              f"helpers of the compiler: {', '.join(made.helpers) or 'none'}")  # fmt: skip
    problems = [problem for name, made in builds.items() for problem in problems_of(name, made)]
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
