#!/usr/bin/env python3
"""Programs embedded for microcontrollers, built with their compilers and run in an emulator: a line for each board and program.

    boards.py        the examples' digits on every board; other programs of the corpus on one of them

A program must compute what PyTorch made of it, in an arena of just the size that its header says, and its code must stay within the
budget; the largest functions follow. Prints what `etude memory` says, which the images are held to. The package must be installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "systems"))
from matrix import line

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"

#: Boards, the processor that `etude memory` knows them by, and the most bytes of code for digits, so that it does not grow unnoticed.
BOARDS = {
    "mps2-an386": ("cortex-m4", 28_000),
    "mps2-an505": ("cortex-m33", 27_500),
    "mps3-an547": ("cortex-m55", 27_500),
    "riscv32-virt": ("rv32imac", 39_500),
}
#: What it shall come down to on a Cortex-M4.
TARGET = 30_000
#: Other programs, and the most bytes of code for int8 and 4-bit networks, in whole numbers and delegated.
OTHERS = [
    ("mps2-an386", "corpus/mlp_softmax", None),
    ("mps2-an505", "corpus/lenet", None),
    ("mps2-an386", "corpus/q8_cnn_portable", 24_000),
    ("mps3-an547", "data/int8/int8_cnn", 19_600),
    ("riscv32-virt", "data/int8/int8_mlp", 23_600),
    ("mps2-an386", "corpus/q8_cnn", 81_500),
    ("mps3-an547", "corpus/q4_linear_groupwise", 75_000),
]


def run(*command: str, folder: Path | None = None) -> str:
    """Run a command and return what it printed on both streams; its failure ends the script."""
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def etude(*arguments: str) -> str:
    """Run a command of the package."""
    return run(sys.executable, "-m", "etude", *arguments)


def try_board(board: str, program: Path, image: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Embed a program, build and run it as the command says: the first output, the arena's peak, and its size."""
    with tempfile.TemporaryDirectory() as name:
        np.save(f"{name}/input.npy", image)
        said = etude("embed", str(program), "-o", f"{name}/image", "--board", board, "--input", f"0={name}/input.npy")
        build, emulate = said.split("now: ")[1].splitlines()[1:]
        folder = Path(name) / "image"
        run("sh", "-c", f"{build.strip()} -Wall -Wextra -Werror", folder=folder)
        printed = run("sh", "-c", emulate.strip(), folder=folder)
    output = re.search(r"output 0: (.*)", printed)
    arena = re.search(r"arena: (\d+) of (\d+) bytes", printed)
    if output is None or arena is None:
        sys.exit(f"{board}: {program.name} printed\n{printed}")
    return np.array([float(number) for number in output[1].split()], np.float32), int(arena[1]), int(arena[2])


def memory(program: Path, target: str, top: int = 0) -> dict:
    """What `etude memory` says."""
    return json.loads(etude("memory", str(program), "--target", target, "--json", "--top", str(top)))


def main() -> int:
    """Run all, print a line for each."""
    problems = []
    digits = np.load(DIGITS / "digits.npz")
    runs = 0
    for board, (target, budget) in BOARDS.items():
        program = DIGITS / "digits.pte"
        told = memory(program, target)
        for number in (0, 7):
            got, peak, size = try_board(board, program, digits["images"][number].reshape(1, 1, 8, 8).astype(np.float32))
            runs += 1
            if int(np.argmax(got)) != digits["labels"][number]:
                problems.append(f"{board}: digit {number} read as {np.argmax(got)}, is {digits['labels'][number]}")
            if not peak == size == told["memory"]["peak"]:
                problems.append(f"{board}: peak {peak} of an arena of {size}, etude memory says {told['memory']['peak']}")
        flash = told["flash"]
        print(
            f"{board} ({target}): digits right; code {told['code']} of {budget} (core {flash['core']}, kernels {flash['kernels']}, "
            f"library {flash['library']}), model {flash['model']}, RAM {told['memory']['peak']}"
        )
        ran = "two digits right" if not problems else "WRONG"
        print(line(f"{board} ({target})", "QEMU", ran, "labels of digits", f"code {told['code']:,} B", f"RAM {told['memory']['peak']:,} B"))
        if told["code"] > budget:
            problems.append(f"{board}: {told['code']} bytes of code, beyond the budget of {budget}")
    for board, name, budget in OTHERS:
        program = ROOT / f"tests/{name}.pte"
        arrays = np.load(program.with_suffix(".npz"))
        golden = arrays["forward__rt0" if "forward__rt0" in arrays else "forward__out0"]  # of the official runtime where it differs
        told = memory(program, BOARDS[board][0])
        got, peak, size = try_board(board, program, arrays["forward__in0"])
        runs += 1
        # A tie in rounding may go the other way in whole numbers: a step of the result.
        step = np.min(np.diff(np.unique(golden))) if "int8" in name or name.endswith("_portable") else 0
        right = np.allclose(got, golden.ravel(), rtol=1e-3, atol=1e-5 + step) and peak == size == told["memory"]["peak"]
        print(f"{board}: {name} {'right' if right else 'WRONG'}; code {told['code']}, model {told['flash']['model']}, RAM {peak}")
        if budget is not None and told["code"] > budget:
            problems.append(f"{board}: {name}: {told['code']} bytes of code, beyond the budget of {budget}")
        if not right:
            problems.append(f"{board}: {name}: {got}, peak {peak} of {size}")
    told = memory(DIGITS / "digits.pte", "cortex-m4", 15)
    verdict = "met" if told["code"] <= TARGET else f"missed by {told['code'] - TARGET}"
    print(f"target, code of digits on a Cortex-M4: {TARGET}, {verdict}")
    for row in told["functions"]:
        print(f"{row['bytes']:>8}  {row['part']:<8} {row['name']}")
    for problem in problems:
        print("FAILED:", problem)
    print(f"{runs - min(runs, len(problems))} passed, {len(problems)} failed")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
