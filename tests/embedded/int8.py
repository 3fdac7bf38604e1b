#!/usr/bin/env python3
"""Integer products on emulated Cortex-M processors: are they right, and how many instructions do they take?

    int8.py        a Cortex-M4 with its DSP extension, and a Cortex-M55 with Helium

tests/c/test_convolution.c, which draws shapes (50 of each arithmetic here), is built for each processor and run; so is int8.c,
which counts instructions beside plain C and compares the results. Prints a table as docs/embedded.md has it. The package must be installed.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from etude.embed.boards import BOARDS, Board

ROOT = Path(__file__).resolve().parents[2]
#: Board, what it has, its large memory, and by how much fewer instructions than plain C products shall take at least, in order.
PROCESSORS = [
    ("mps2-an386", "DSP", "0x21000000, LENGTH = 16M", (1.25, 1.2, 1.3, 0.95, 1.2, 1.4, 1.4, 1.25, 2.0)),
    ("mps3-an547", "Helium", "0x60000000, LENGTH = 16M", (6.0, 3.5, 4.5, 1.5, 2.4, 2, 2, 6.0, 2.0)),
]
_SOURCES = ("convolution", "integer", "isa", "quantizer", "simd", "tile_cortex_m", "tile_plain", "tiles", "winograd", "words", "exponentials")
#: What the compiler's C library does not have, and what its start-up code would do.
_MISSING = """#include <malloc.h>
#include <stdio.h>
#undef main
int test_main(void);
void initialise_monitor_handles(void);
int main(void) {
  initialise_monitor_handles();
  const int status = test_main();
  fflush(stdout);
  return status;
}
int posix_memalign(void **out, size_t alignment, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size) { return (*out = memalign(alignment, size)) == NULL; }
"""
_COUNT = re.compile(r"^count: (.*): (\d+) products, plain (\d+), best (\d+), (\w+)$", re.MULTILINE)


def run(command: list[str], folder: Path) -> str:
    """Run a command and return what it printed on both streams; its failure ends the script."""
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def build_and_run(board: Board, test: Path, *emulator: str) -> str:
    """Compile a file with c/compute and the C library of the compiler, whose text and memory the emulator gives, and run it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in board.files().items():
            (folder / file).write_text(text)
        (folder / "missing.c").write_text(_MISSING)
        loops = [str(path) for path in sorted((ROOT / "c/compute").glob("*.c")) if path.stem.startswith(_SOURCES)]
        sources = ["missing.c", *loops, str(test)]
        includes = [f"-I{ROOT / path}" for path in ("include", "c", "tests/c")]
        library = ["-lm", "-Wl,--start-group", "-lc", "-lrdimon", "-lgcc", "-Wl,--end-group", "-Wl,--defsym=end=image_bss_end"]
        flags = ["-Wall", "-Wextra", "-Werror", "-Wno-format", "-O2", "-fno-math-errno", "-ffp-contract=off"]
        flags += ["-DETUDE_BUILD", "-Dmain=test_main", "-DROUNDS=50"]
        run([board.compiler, "@flags.txt", "-c", "board.c"], folder)
        run([board.compiler, "@flags.txt", *flags, *includes, "board.o", *sources, *library, "-o", "image.elf"], folder)
        command = shlex.split(board.commands()[1])
        return run([command[0], *emulator, *command[1:]], folder)


def main() -> int:
    """Try both processors, print the table."""
    problems = []
    print("| | products | plain C | with | fewer |\n|---|--:|--:|--:|--:|")
    for name, has, memory, least in PROCESSORS:
        board = BOARDS[name]._replace(data=memory)
        said = build_and_run(board, ROOT / "tests/c/test_convolution.c")
        if "passed" not in said or " 0 failed" not in said:
            problems.append(f"{name}: drawn shapes:\n{said}")
        counted = _COUNT.findall(build_and_run(board, ROOT / "tests/embedded/int8.c", "-icount", "shift=0"))
        if len(counted) != len(least):
            problems.append(f"{name}: {len(counted)} counts, expected {len(least)}")
        for (what, products, plain, best, verdict), factor in zip(counted, least, strict=False):
            fewer = int(plain) / int(best)
            processor = board.processor.split(" with")[0]
            print(f"| {processor}, {has}: {what} | {int(products):,} | {int(plain):,} | {int(best):,} | {fewer:.1f} |")
            if verdict != "same" or fewer < factor:
                problems.append(f"{name}: {what}: {verdict} results, {fewer:.2f} times fewer instructions, expected {factor}")
    for problem in problems:
        print("FAILED:", problem)
    print(f"{len(PROCESSORS) * 2 - min(len(PROCESSORS) * 2, len(problems))} passed, {len(problems)} failed")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
