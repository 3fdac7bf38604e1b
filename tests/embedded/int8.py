#!/usr/bin/env python3
"""Integer products on emulated Cortex-M processors: are they right, and how many instructions do they take?

    int8.py        a Cortex-M4 with its DSP extension, and a Cortex-M55 with Helium

tests/c/test_convolution.c, which draws shapes (50 of each arithmetic here), is built for each processor and run; so is int8.c,
which counts instructions beside plain C and compares the results. Networks of tests/data/int8 are embedded and counted as wholes:
in float, in whole numbers by plain C, and by instructions of the processor. Prints tables as docs/embedded.md has them. The package must be
installed.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from etude.embed.boards import BOARDS, Board
from etude.embed.build import make_files, read_model
from etude.embed.library import Choices

ROOT = Path(__file__).resolve().parents[2]
#: Board, what it has, its large memory, and by how much fewer instructions than plain C products shall take at least, in order.
PROCESSORS = [
    ("mps2-an386", "DSP", "0x21000000, LENGTH = 16M", (1.3, 1.3, 1.3, 0.98, 1.2, 1.6, 1.6, 1.25, 2.0)),
    ("mps3-an547", "Helium", "0x60000000, LENGTH = 16M", (8.0, 5.5, 6.0, 2.0, 3.8, 3.2, 3.2, 7.0, 2.0)),
]
#: What they are, and how many times fewer instructions than in float they shall take.
NETWORKS = {
    "int8_cnn": ("CNN, 16 x 16 x 3", {"DSP": 6, "Helium": 10}),
    "int8_ds_cnn": ("depthwise separable CNN, 24 x 20 x 1", {"DSP": 6, "Helium": 10}),
    "int8_mlp": ("MLP, 3 x 128", {"DSP": 6, "Helium": 10}),
}
_SOURCES = ("convolution", "exponentials", "integer", "isa", "quantizer", "simd", "tile", "winograd", "words")
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


def count_network(board: Board, name: str, *, integers: bool, dsp: bool) -> tuple[int, bool]:
    """Instructions of a run, and whether its results are within a step of what PyTorch made."""
    program = ROOT / f"tests/data/int8/{name}.pte"
    arrays = np.load(program.with_suffix(".npz"))
    x, golden = arrays["forward__in0"], arrays["forward__out0"].ravel()
    made = read_model(program, "model", integers=integers)
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        for file, text in (make_files([made], Choices()) | board.files()).items():
            (folder / file).write_text(text)
        numbers = ",".join(map(float.hex, x.ravel().tolist()))
        (folder / "input.h").write_text(f"#include <stdint.h>\n#include <string.h>\nstatic const float input[] = {{{numbers}}};\n")
        flags = ["-O2", "-ffp-contract=off", *([] if dsp else ["-DETUDE_NO_DSP"])]
        sources = ["etude.c", "model.c", "board.c", str(ROOT / "tests/embedded/network.c")]
        run([board.compiler, "@flags.txt", *flags, "-I.", *sources, "-lm", "-o", "image.elf"], folder)
        command = shlex.split(board.commands()[1])
        said = run([command[0], "-icount", "shift=0", *command[1:]], folder)
    bits = [int(number) for number in re.findall(r"^output (\d+)$", said, re.MULTILINE)]
    got = np.array(bits, np.uint32).view(np.float32)
    step = np.min(np.diff(np.unique(golden)))
    right = got.shape == golden.shape and bool(np.abs(got - golden).max() <= 1.01 * step)
    return int(re.search(r"^instructions (\d+)$", said, re.MULTILINE)[1]), right


def count_networks(problems: list[str]) -> None:
    """The table of whole networks."""
    print("| | float | plain C | with | than float | than plain C |\n|---|--:|--:|--:|--:|--:|")
    for name, has, memory, _ in PROCESSORS:
        board = BOARDS[name]._replace(data=memory)
        for network, (what, least) in NETWORKS.items():
            ways = ((False, True), (True, False), (True, True))
            with ThreadPoolExecutor(2) as pool:
                tried = [pool.submit(count_network, board, network, integers=integers, dsp=dsp) for integers, dsp in ways]
                counts, right = zip(*(one.result() for one in tried), strict=True)
            before, plain, best = counts
            processor = board.processor.split(" with")[0]
            print(f"| {processor}, {has}: {what} | {before:,} | {plain:,} | {best:,} | {before / best:.1f} | {plain / best:.1f} |")
            if not all(right) or before / best < least[has]:
                problems.append(f"{name}: {network}: right {right}, {before / best:.2f} times fewer than float, expected {least[has]}")


def main() -> int:
    """Try both processors, print the tables."""
    problems: list[str] = []
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
    print()
    count_networks(problems)
    for problem in problems:
        print("FAILED:", problem)
    print(f"{len(PROCESSORS) * 3 - min(len(PROCESSORS) * 3, len(problems))} passed, {len(problems)} failed")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
