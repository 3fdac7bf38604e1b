#!/usr/bin/env python3
"""How much two threads (or more) help: each program on one thread and on several, in turns; the least time of each counts.

    threads.py [--threads N] [--rounds N] PROGRAM.pte ...

Inputs are ones. The results must be the same to the bit, or the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import etude


def measure(path: str, threads: int, rounds: int) -> bool:
    """Print a line; True if the results agree."""
    methods = [etude.load(path, threads=n).load_method("forward") for n in (1, threads)]
    shapes = [info.tensor for info in methods[0].metadata.inputs]
    inputs = [np.ones(shape.sizes(), np.int64 if "Long" in str(shape) else np.float32) for shape in shapes]
    results = [method.execute(inputs) for method in methods]
    best = [float("inf")] * 2
    for _ in range(rounds):
        for i, method in enumerate(methods):
            start = time.perf_counter()
            method.execute(inputs)
            best[i] = min(best[i], time.perf_counter() - start)
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*results))
    name, (one, many) = Path(path).name, best
    print(
        f"{name:<28} 1 thread {one * 1e3:8.2f} ms, {threads} threads {many * 1e3:8.2f} ms, x{one / many:.2f}, "
        f"{'equal' if same else 'DIFFERENT'}"
    )
    return same


def main() -> int:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM.pte")
    args = parser.parse_args()
    return 0 if all(measure(path, args.threads, args.rounds) for path in args.programs) else 1


if __name__ == "__main__":
    sys.exit(main())
