#!/usr/bin/env python3
"""Measure etude beside the official runtime, on this machine, in one run.

    python bench/compare.py                                    etude alone
    python bench/compare.py --official-python PATH             and executorch.runtime, in the interpreter PATH that has it

Each figure is a median. Cold start is a whole process, from its start to its end, that loads add.pte and executes it once; the peak of
resident memory is that process's. The other figures come from one process for each runtime and program, with inputs made beforehand and one
thread; processes of the two runtimes take turns. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "tests/corpus"
NETWORKS = ["mobilenetv2", "resnet_tiny", "vit_tiny", "llama_tiny"]
OFFICIAL = "official"


# ---- in the child ---------------------------------------------------------------------------------------------------------------


def load_function(runtime):
    """path -> program, for either runtime."""
    if runtime == OFFICIAL:
        import torch
        from executorch.runtime import Runtime

        torch.set_num_threads(1)
        return Runtime.get().load_program
    import etude

    return etude.Runtime.get().load_program


def to_inputs(runtime, arrays):
    if runtime == OFFICIAL:
        import torch

        return [torch.from_numpy(a) for a in arrays]
    return arrays


def arrays_of(name, method):
    import numpy as np

    data = np.load(CORPUS / f"{name}.npz")
    return [data[k] for k in sorted((k for k in data.files if k.startswith(f"{method}__in")), key=lambda k: int(k.rpartition("in")[2]))]


def child_cold(runtime):
    import resource

    inputs = to_inputs(runtime, arrays_of("add", "forward"))
    output = load_function(runtime)(str(CORPUS / "add.pte")).load_method("forward").execute(inputs)
    assert tuple(output[0].shape) == (2, 3)
    return {"rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def child_overhead(runtime):
    inputs = to_inputs(runtime, arrays_of("add", "forward"))
    execute = load_function(runtime)(str(CORPUS / "add.pte")).load_method("forward").execute
    times = []
    for _ in range(50):
        start = time.perf_counter()
        for _ in range(2000):
            execute(inputs)
        times.append((time.perf_counter() - start) / 2000)
    return {"seconds": statistics.median(times)}


def child_network(runtime, name, method):
    load = load_function(runtime)
    path = str(CORPUS / f"{name}.pte")
    loads = []
    for _ in range(11):
        start = time.perf_counter()
        program = load(path)
        loaded = program.load_method(method)
        loads.append(time.perf_counter() - start)
    inputs = to_inputs(runtime, arrays_of(name, method))
    for _ in range(3):
        loaded.execute(inputs)
    times = []
    began = time.perf_counter()
    while len(times) < 15 or (time.perf_counter() - began < 1.5 and len(times) < 500):
        start = time.perf_counter()
        loaded.execute(inputs)
        times.append(time.perf_counter() - start)
    return {"seconds": statistics.median(times), "load": statistics.median(loads[1:])}


# ---- in the parent --------------------------------------------------------------------------------------------------------------


class Runner:
    """Starts children and collects what they print."""

    def __init__(self, official_python):
        self.pythons = {"etude": sys.executable}
        if official_python:
            self.pythons[OFFICIAL] = official_python

    def run(self, runtime, task, *arguments):
        command = [self.pythons[runtime], __file__, "--child", runtime, task, *arguments]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        wall = time.perf_counter() - start
        if done.returncode != 0:
            return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}"}
        return {**json.loads(done.stdout.splitlines()[-1]), "wall": wall}

    def medians(self, rounds, task, *arguments):
        """{runtime: {figure: median}} over `rounds` children of each runtime, in turns."""
        found = {runtime: [] for runtime in self.pythons}
        for _ in range(rounds):
            for runtime, results in found.items():
                results.append(self.run(runtime, task, *arguments))
        answers = {}
        for runtime, results in found.items():
            failed = [r["error"] for r in results if "error" in r]
            answers[runtime] = {"error": failed[0]} if failed else {k: statistics.median(r[k] for r in results) for k in results[0]}
        return answers


UNITS = {"ms": 1e3, "µs": 1e6, "MB": 1e-6}


def row(title, answers, figure, unit):
    def cell(runtime):
        answer = answers.get(runtime)
        if answer is None:
            return "–"
        return answer.get("error") or f"{answer[figure] * UNITS[unit]:,.{2 if unit == 'ms' else 1}f} {unit}"

    ours, theirs = (answers.get(r, {}).get(figure) for r in ("etude", OFFICIAL))
    ratio = f"{theirs / ours:,.1f} x" if ours and theirs else "–"
    print(f"| {title} | {cell('etude')} | {cell(OFFICIAL)} | {ratio} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official-python", metavar="PATH", help="an interpreter with executorch installed")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each figure (default 3)")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        runtime, task, *arguments = args.child
        print(json.dumps({"cold": child_cold, "overhead": child_overhead, "network": child_network}[task](runtime, *arguments)))
        return
    runner = Runner(args.official_python)
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}; medians of {args.rounds} processes, one thread\n"
    )
    print("| | etude | executorch.runtime | ratio |\n|---|--:|--:|--:|")
    cold = runner.medians(args.rounds, "cold")
    row("cold start to first result (`add.pte`)", cold, "wall", "ms")
    row("peak resident memory of that process", cold, "rss", "MB")
    row("execute `add.pte` from Python", runner.medians(args.rounds, "overhead"), "seconds", "µs")
    for name in NETWORKS:
        methods = json.loads((CORPUS / "manifest.json").read_text())["cases"][name]["methods"]
        for method in (m for m, spec in methods.items() if not spec["constant_method"]):
            answers = runner.medians(args.rounds, "network", name, method)
            title = f"`{name}`" + (f" {method}" if len(methods) > 1 else "")
            row(f"load {title}", answers, "load", "ms")
            row(f"execute {title}", answers, "seconds", "ms")


if __name__ == "__main__":
    main()
