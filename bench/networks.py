#!/usr/bin/env python3
"""Measure networks of real size beside the official runtime and ONNX Runtime, on this machine, in one run.

    python bench/network_export.py FOLDER              makes the networks (with the official exporter)
    python bench/trained_export.py FOLDER              makes trained ones, of packages
    python bench/networks.py FOLDER [NAME ...]         etude alone
        --official-python PATH                         also executorch.runtime and onnxruntime, in the interpreter PATH that has them
        --threads 1 2                                  how many threads to measure with

One process for each runtime, network and number of threads. The processes of a network take turns, execution by execution, so
that whatever else the machine does meets them alike; a figure is the smallest of many turns, and medians are given beside it.
Columns: etude with delegated and with portable programs, official XNNPACK, ONNX Runtime. The share of the peak is of
multiply-adds per second, against a loop of nothing else; bytes per second against a loop that reads. Prints Markdown.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turns import Worker, parse

#: Multiply-adds of one execution, and bytes of packed weights where reading them bounds it.
NETWORKS = {
    "mobilenet_v2": {"mac": 301e6},
    "resnet_50": {"mac": 4.09e9},
    "minilm": {"mac": 1.43e9},
    "mobilenet_v2_int8": {"mac": 301e6},
    "minilm_weights8": {"mac": 1.43e9},
    "minilm_int8": {"mac": 1.43e9},
    "short_decoder_1": {"mac": 38.7e6, "bytes": 4 * 38.7e6},
    "short_decoder_128": {"mac": 128 * 38.7e6},
    "short_decoder_weights8_1": {"mac": 38.7e6, "bytes": 38.7e6},
    "short_decoder_weights8_128": {"mac": 128 * 38.7e6},
    "decoder_128": {"mac": 128 * 116.1e6},
    "decoder_1": {"mac": 116.1e6, "bytes": 116.1e6 * (0.5 + 2 / 32)},
    # trained ones, by bench/trained_export.py
    "torchcrepe": {},
    "silero": {},
    "resemblyzer": {},
    "rapidocr": {},
    "magika": {},
}
#: (title, runtime, ending of the file)
COLUMNS = [
    ("etude", "etude", "_x.pte"),
    ("official", "official", "_x.pte"),
    ("ONNX Runtime", "onnx", ".onnx"),
    ("etude, portable", "etude", ".pte"),
]


# ---- in the child ---------------------------------------------------------------------------------------------------------------


def load(runtime, path, threads, inputs):
    """A function that executes once and gives the first output."""
    if runtime == "etude":
        import etude

        method = etude.load(path, threads=threads)["forward"]
        return lambda: method.execute(inputs)[0]
    if runtime == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feeds = dict(zip((i.name for i in session.get_inputs()), inputs))
        return lambda: session.run(None, feeds)[0]
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    torch.set_num_threads(threads)
    portable_lib._unsafe_reset_threadpool(threads)
    tensors = [torch.from_numpy(x) for x in inputs]
    method = Runtime.get().load_program(path).load_method("forward")
    return lambda: method.execute(tensors)[0].numpy()  # noqa: PLW0108  not the tensor of one execution


def prepare_imports(runtime):
    """What a process pays once is not part of loading a network."""
    if runtime == "etude":
        import etude  # noqa: F401
    elif runtime == "onnx":
        import onnxruntime  # noqa: F401
    else:
        import executorch.extension.pybindings.portable_lib
        import executorch.runtime
        import torch  # noqa: F401

        executorch.runtime.Runtime.get()


def child(runtime, threads, path, data):
    """Answers each line of stdin, a count and a clock, by the seconds that so many executions took, one by one."""
    import resource

    import numpy as np

    archive = np.load(data)
    inputs = [archive[f"x{i}"] for i in range(len(archive.files) - 1)]
    prepare_imports(runtime)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    execute = load(runtime, path, threads, inputs)
    loaded = time.perf_counter() - start
    output = execute()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = float(np.abs(output - archive["y"]).max() / np.abs(archive["y"]).max())
    print(json.dumps({"load": loaded, "rss": peak * 1024, "grown": (peak - before) * 1024, "error": error}), flush=True)
    for line in sys.stdin:
        times = []
        count, clock = line.split()
        now = {"wall": time.perf_counter, "cpu": time.process_time}[clock]
        for _ in range(int(count)):
            start = now()
            execute()
            times.append(now() - start)
        print(json.dumps(times), flush=True)


# ---- in the parent --------------------------------------------------------------------------------------------------------------


class Runner(Worker):
    """One network in one runtime."""

    def __init__(self, python, runtime, path, data, threads):
        super().__init__(python, __file__, runtime, threads, path, data)
        self.times = []

    def turn(self, count, clock):
        self.times += self.ask(count, clock)


PEAK_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
typedef float vec __attribute__((vector_size(LANES * 4)));
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(void) {
  vec s[12], a, b;
  for (int i = 0; i < 12; i++) s[i] = (vec){0} + 1e-9f * i;
  a = (vec){0} + 0.999f;
  b = (vec){0} + 1e-7f;
  double best = 1e9;
  for (int r = 0; r < 40; r++) {
    double t = now();
    for (int k = 0; k < 500000; k++) {
#pragma GCC unroll 12
      for (int i = 0; i < 12; i++) s[i] = s[i] * a + b;
    }
    t = now() - t;
    if (t < best) best = t;
    a += 1e-9f;
  }
  float x = 0;
  for (int i = 0; i < 12; i++) x += s[i][0];
  const size_t n = (size_t)256 << 20;
  long long *p = aligned_alloc(64, n), sum = 0;
  typedef long long words __attribute__((vector_size(64)));
  for (size_t i = 0; i < n / 8; i++) p[i] = (long long)i;
  double least = 1e9;
  for (int r = 0; r < 12; r++) {
    words u = {0}, v = {0}, w = {0}, z = {0};
    double t = now();
    for (size_t i = 0; i < n / 64; i += 4) {
      u += ((words *)p)[i]; v += ((words *)p)[i + 1]; w += ((words *)p)[i + 2]; z += ((words *)p)[i + 3];
    }
    t = now() - t;
    u += v + w + z;
    sum += u[0];
    if (t < least) least = t;
  }
  printf("%g %g %g %lld\n", 12.0 * LANES * 500000 / best, n / least, x, sum);
}
"""


def machine_peak(compiler="cc"):
    """(multiply-adds of floats, bytes read from memory) per second of one thread, measured; or None without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "peak.c"), Path(folder, "peak")
        source.write_text(PEAK_SOURCE)
        best = (0.0, 0.0)
        for lanes in (16, 8, 4):
            flags = ["-O3", "-march=native", "-ffp-contract=fast", f"-DLANES={lanes}", "-mprefer-vector-width=512"]
            if platform.machine() not in ("x86_64", "AMD64"):
                flags.pop()
            if subprocess.run([compiler, *flags, str(source), "-o", str(program)], capture_output=True).returncode != 0:
                continue
            found = subprocess.run([str(program)], capture_output=True, text=True).stdout.split()
            best = tuple(max(a, float(b)) for a, b in zip(best, found))
        return best if best[0] else None


def measure(folder, name, threads, pythons, seconds, clock):
    """{title: worker} after all have had their turns."""
    workers = {}
    for title, runtime, ending in COLUMNS:
        path = folder / f"{name}{ending}"
        if runtime in pythons and path.exists():
            worker = Runner(pythons[runtime], runtime, path, folder / f"{name}.npz", threads)
            if worker.facts is None:
                print(f"{title} can't run {path.name}", file=sys.stderr)
            else:
                workers[title] = worker
    for worker in workers.values():
        worker.turn(2, clock)
        worker.times.clear()
    rounds, start = 0, time.perf_counter()
    while rounds < 10 or time.perf_counter() - start < seconds:
        for worker in workers.values():
            worker.turn(2, clock)
        rounds += 1
    for worker in workers.values():
        worker.close()
    return workers


def print_networks(folder, names, threads, pythons, seconds, clock):
    peak = machine_peak()
    if peak:
        print(f"One thread: {peak[0] / 1e9:.1f} G multiply-adds of floats per second, {peak[1] / 1e9:.1f} GB/s read.\n")
    ratios = {}
    titles = [title for title, runtime, _ in COLUMNS if runtime in pythons]
    for count in threads:
        print(f"### {count} thread{'s' if count > 1 else ''}: smallest time (median) in ms\n")
        print("| network | " + " | ".join(titles) + " | of the peak | load, ms | peak memory, MB |\n|---|" + "--:|" * (len(titles) + 3))
        for name in names:
            workers = measure(folder, name, count, pythons, seconds, clock)
            cells, loads, memory = [], [], []
            for title in titles:
                worker = workers.get(title)
                if worker is None:
                    cells.append("–")
                    continue
                best, middle = min(worker.times), statistics.median(worker.times)
                cells.append(f"{best * 1e3:.2f} ({middle * 1e3:.2f})")
                loads.append(f"{worker.facts['load'] * 1e3:.0f}")
                memory.append(f"{worker.facts['rss'] / 1e6:.0f}")
                if title != "etude" and "etude" in workers:
                    ours = min(workers["etude" if title != "etude, portable" else title].times)
                    ratios.setdefault((title, count), {})[name] = ours / best
            if "etude, portable" in workers and "official" in workers:
                ratios.setdefault(("official, by portable programs", count), {})[name] = min(workers["etude, portable"].times) / min(
                    workers["official"].times
                )
            share = "–"
            if peak and "etude" in workers and "mac" in NETWORKS[name]:
                best = min(workers["etude"].times)
                share = f"{NETWORKS[name]['mac'] / best / peak[0] / count:.0%}"
                if "bytes" in NETWORKS[name]:
                    share += f", {NETWORKS[name]['bytes'] / best / peak[1]:.0%} of reading"
            print(f"| {name} | " + " | ".join(cells) + f" | {share} | {' / '.join(loads)} | {' / '.join(memory)} |", flush=True)
        print()
    for (title, count), found in ratios.items():
        if title == "etude, portable":
            continue
        mean = math.exp(statistics.fmean(math.log(r) for r in found.values()))
        each = ", ".join(f"{name} {r:.2f}" for name, r in found.items())
        print(f"Time of etude / {title}, {count} thread{'s' if count > 1 else ''}: geometric mean {mean:.2f} ({each})")


def main():
    args = parse(__doc__, child, "executorch and onnxruntime", seconds=6)
    if args is None:
        return
    pythons = {"etude": sys.executable}
    if args.official_python:
        pythons |= {"official": args.official_python, "onnx": args.official_python}
    names = args.names or [name for name in NETWORKS if (args.folder / f"{name}.npz").exists()]
    print_networks(args.folder, names, args.threads, pythons, args.seconds, args.clock)


if __name__ == "__main__":
    main()
