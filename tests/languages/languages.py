#!/usr/bin/env python3
"""Hold a language's binding to the corpus: the same cases, values and errors for all of them.

    languages.py NAME CORPUS RUNNER [ARGUMENT...]

RUNNER is a program written with the binding, in two uses:

    RUNNER MODEL CALLS OUT [DATA.ptd...]   calls methods of MODEL as CALLS says and writes OUT, in the format of
                                           examples/run_arena.c; each method is loaded once
    RUNNER --errors MODEL                  does what errors.py says and prints a line for each step

A runner whose programs live in a memory of its own may print "memory BYTES". Outputs are compared with the corpus' goldens (eager
PyTorch). Prints what failed, and "N passed, N failed".
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "c"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "systems"))
from compare_arena import Values, describe_difference, pack_calls, prefix
from errors import compare_errors
from matrix import line, megabytes


def compare(case: dict[str, Any], arrays: Any, results: bytes) -> str:
    """What is wrong with the outputs of a case's calls; empty if nothing is."""
    values = Values(results)
    for method, number in case["calls"]:
        specs = case["methods"][method]["sets"][number]["outputs"]
        (count,) = values.unpack("I")
        if count != len(specs):
            return f"{method}: {count} outputs, expected {len(specs)}"
        for i, spec in enumerate(specs):
            problem = describe_difference(spec, arrays[f"{prefix(method, number)}out{i}"], values.value(), case["tolerance"])
            if problem:
                return f"{method} set {number} output {i}: {problem}"
    return ""


def run_case(runner: list[str], corpus: Path, case: dict[str, Any], memory: list[int]) -> str:
    """What is wrong with what a runner makes of a case; empty if nothing is. `memory` gets the bytes that it tells."""
    arrays = np.load(corpus / case["files"]["npz"])
    with tempfile.TemporaryDirectory() as folder:
        calls, results = Path(folder) / "calls", Path(folder) / "results"
        calls.write_bytes(pack_calls(case, arrays))
        files = [str(corpus / name) for name in case["files"]["ptd"]]
        command = [*runner, str(corpus / case["files"]["pte"]), str(calls), str(results), *files]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            return done.stderr.strip() or f"status {done.returncode}: {done.stdout.strip()}"
        memory += [int(told.split()[1]) for told in done.stdout.splitlines() if told.startswith("memory ")]
        return compare(case, arrays, results.read_bytes())


def check_errors(runner: list[str], language: str, model: Path) -> str:
    """What is wrong with a runner's errors; empty if nothing is."""
    done = subprocess.run([*runner, "--errors", str(model)], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return done.stderr.strip() or f"status {done.returncode}"
    return compare_errors(done.stdout.splitlines(), language, str(model))


def main() -> int:
    """Run the cases; 0 if all agree."""
    name, corpus, runner = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    cases = json.loads((corpus / "manifest.json").read_text())["cases"]
    memory: list[int] = []
    problems = {case: run_case(runner, corpus, cases[case], memory) for case in cases}
    problems["errors"] = check_errors(runner, "JavaScript" if name == "Node" else name, corpus / "x_linear.pte")
    for case, problem in problems.items():
        if problem:
            print(f"FAILED {name}, {case}: {problem}")
    failed = sum(bool(problem) for problem in problems.values())
    peak = megabytes(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    ran = f"{len(problems) - failed} cases right, {failed} wrong"
    module = Path(runner[-1]) / "etude.wasm"  # where the runner is Node's, which the package comes after
    program = module if module.exists() else Path(runner[0])
    size = f"{'module' if module.exists() else 'program'} {program.stat().st_size:,} B"
    if module.exists():
        size += f", {len(gzip.compress(module.read_bytes(), 9)):,} gzipped"
    told = f", of which module's memory {max(memory) / 1e6:.1f} MB" if memory else ""
    by = (
        subprocess.run([runner[0], "--version"], check=True, capture_output=True, text=True).stdout.strip()
        if module.exists()
        else "this machine"
    )
    print(line(name, by, ran, "eager PyTorch's outputs", size, f"process {peak}{told}"))
    print(f"{name}: {len(problems) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
