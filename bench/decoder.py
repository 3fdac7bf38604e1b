#!/usr/bin/env python3
"""Measure a decoder with caches beside the official runtime and eager PyTorch, on this machine, in one run.

    python bench/decoder_export.py FOLDER              makes the programs (with the official exporter)
    python bench/decoder.py FOLDER                     etude alone
        --official-python PATH                         also executorch.runtime and eager PyTorch, in the interpreter PATH that has them
        --threads 1 2                                  how many threads to measure with

One process for each runtime and program. The processes of a program take turns, call by call, so that whatever else the machine does
meets them alike; a figure is the smallest of many turns. What eager PyTorch computes is float32 for all programs. A token's share of
reading is the bytes of the weights and of the cached keys and values, by what a loop reads that does nothing else, on as many threads.
Prints Markdown, and the largest difference of logits from the official runtime's.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turns import Worker, parse

PROMPT = 128
#: Bytes of one weight of a linear layer.
PROGRAMS = {"float32": 4.0, "float32_x": 4.0, "8da4w": 0.5 + 2 / 32}
TITLES = {"float32": "float32, portable", "float32_x": "float32, XNNPACK", "8da4w": "8da4w, XNNPACK"}


# ---- in the child ---------------------------------------------------------------------------------------------------------------


def prepare_imports(runtime):
    """What a process pays once is not part of loading a program."""
    if runtime == "etude":
        import etude  # noqa: F401
    elif runtime == "eager":
        from executorch.examples.models.llama import model  # noqa: F401
    else:
        import executorch.kernels.quantized  # noqa: F401
        from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401
        from executorch.runtime import Runtime

        Runtime.get()


def load(runtime, folder, name, threads):
    """A function of tokens and the position of the first that gives logits as numpy; and the method, of etude."""
    import numpy as np

    path = folder / f"{name}.pte"
    if runtime == "etude":
        import etude

        method = etude.load(path, threads=threads)["forward"]
        return (lambda tokens, start: method.execute([tokens, np.array([start])])[0]), method
    import torch

    torch.set_num_threads(threads)
    if runtime == "eager":
        from decoder_export import eager_model

        model = eager_model(folder, window_of(folder))

        def call(tokens, start):
            with torch.no_grad():
                return model(torch.from_numpy(tokens), {"input_pos": torch.tensor([start])}).numpy()

        return call, None
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    portable_lib._unsafe_reset_threadpool(threads)
    method = Runtime.get().load_program(str(path)).load_method("forward")
    return (lambda tokens, start: method.execute([torch.from_numpy(tokens), torch.tensor([start])])[0].numpy()), None


def window_of(folder):
    """Positions of the caches of the programs in a folder."""
    return json.loads((folder / "params.json").read_text())["window"]


def profile(method, tokens, start, calls):
    """Milliseconds of one call, by operator."""
    import numpy as np

    import etude

    best = {}
    for _ in range(calls):
        with etude.profile(method) as p:
            method.execute([tokens, np.array([start])])
        for row in p.by_operator():
            best[row.name] = min(best.get(row.name, float("inf")), row.total / 1e6)
    return best


def child(runtime, threads, folder, name):
    """Answers each line of stdin: a clock, a first position, numbers of tokens and of calls, by the seconds of each call."""
    import resource

    import numpy as np

    folder = Path(folder)
    vocabulary = json.loads((folder / "params.json").read_text())["vocab_size"]
    tokens = np.random.default_rng(0).integers(3, vocabulary, (1, PROMPT))
    prepare_imports(runtime)
    start = time.perf_counter()
    call, method = load(runtime, folder, name, threads)
    loaded = time.perf_counter() - start
    logits = [call(tokens, 0)[0].reshape(-1), call(tokens[:, :1], PROMPT)[0].reshape(-1)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"load": loaded, "peak": peak, "logits": [row.tolist() for row in logits]}), flush=True)
    for line in sys.stdin:
        clock, position, length, count = line.split()
        if clock == "profile":
            print(json.dumps(profile(method, tokens[:, : int(length)], int(position), int(count))), flush=True)
            continue
        now = {"wall": time.perf_counter, "cpu": time.process_time}[clock]
        times = []
        for _ in range(int(count)):
            start = now()
            call(tokens[:, : int(length)], int(position))
            times.append(now() - start)
        print(json.dumps(times), flush=True)


# ---- in the parent --------------------------------------------------------------------------------------------------------------


class Runner(Worker):
    """One program in one runtime."""

    def __init__(self, python, runtime, folder, name, threads):
        super().__init__(python, __file__, runtime, threads, folder, name)
        self.times = {}
        if self.facts is None:
            raise SystemExit(f"{runtime} can't run {name}")

    def turn(self, clock, position, length, count):
        self.times.setdefault((position, length), []).extend(self.ask(clock, position, length, count))

    def best(self, position, length):
        return min(self.times[position, length])


READ_SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
typedef long long words __attribute__((vector_size(64)));
enum { MOST = 16, ROUNDS = 24 };
static const size_t all = (size_t)512 << 20;
static words *memory;
static int threads;
static pthread_barrier_t barrier;
static long long sums[MOST];
static double least = 1e9;
static clockid_t the_clock = CLOCK_MONOTONIC;
static double now(void) { struct timespec t; clock_gettime(the_clock, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static void *read_part(void *arg) {
  const size_t id = (size_t)arg, count = all / 64 / threads / 4 * 4;
  const words *p = memory + id * count;
  for (int r = 0; r < ROUNDS; r++) {
    words u = {0}, v = {0}, w = {0}, z = {0};
    pthread_barrier_wait(&barrier);
    const double start = now();
    for (size_t i = 0; i < count; i += 4) { u += p[i]; v += p[i + 1]; w += p[i + 2]; z += p[i + 3]; }
    u += v + w + z;
    sums[id] += u[0];
    pthread_barrier_wait(&barrier);
    if (id == 0 && now() - start < least) least = now() - start;
  }
  return NULL;
}
int main(int argc, char **argv) {
  pthread_t others[MOST];
  threads = argc > 1 ? atoi(argv[1]) : 1;
  if (argc > 2 && argv[2][0] == 'c') the_clock = CLOCK_THREAD_CPUTIME_ID;
  memory = aligned_alloc(64, all);
  for (size_t i = 0; i < all / 8; i++) ((long long *)memory)[i] = (long long)i;
  pthread_barrier_init(&barrier, NULL, threads);
  for (size_t i = 1; i < (size_t)threads; i++) pthread_create(&others[i], NULL, read_part, (void *)i);
  read_part(NULL);
  for (int i = 1; i < threads; i++) pthread_join(others[i], NULL);
  printf("%g %lld\n", all / least, sums[0]);
  return 0;
}
"""


class Reading:
    """How many bytes a second a loop reads that does nothing else, on so many threads."""

    def __init__(self, folder):
        source, self.program = Path(folder, "read.c"), Path(folder, "read")
        source.write_text(READ_SOURCE)
        subprocess.run(["cc", "-O3", "-march=native", str(source), "-o", str(self.program), "-pthread"], check=True)
        self.best = {}

    def measure(self, threads, clock):
        done = subprocess.run([str(self.program), str(threads), clock], capture_output=True, text=True, check=True)
        found = float(done.stdout.split()[0])
        self.best[threads] = max(found, self.best.get(threads, 0.0))


def bytes_of_token(params, name, position):
    """What a token at a position has to read: weights of linear layers, and keys and values of it and all before it."""
    depth = params["dim"] // params["n_heads"]
    kv = depth * params["n_kv_heads"]
    layer = 2 * params["dim"] ** 2 + 2 * params["dim"] * kv + 3 * params["dim"] * params["hidden_dim"]
    weights = params["n_layers"] * layer + params["dim"] * params["vocab_size"]
    return weights * PROGRAMS[name] + 2 * 4 * kv * params["n_layers"] * (position + 1)


def difference(workers, title, other):
    """Of logits, relative to the largest."""
    pairs = zip(workers[title].facts["logits"], workers[other].facts["logits"])
    return max(max(abs(a - b) for a, b in zip(x, y)) / max(map(abs, y)) for x, y in pairs)


def measure(folder, name, threads, pythons, seconds, clock, reading):
    """Workers by runtime, after their turns; they still run."""
    window = window_of(folder)
    places = sorted({1, 256, PROMPT, window // 4, window // 2, 3 * window // 4, window - 1})
    places = [p for p in places if p < window]
    workers = {title: Runner(python, title, folder, name, threads) for title, python in pythons.items()}
    rounds, start = 0, time.perf_counter()
    while rounds < 4 or time.perf_counter() - start < seconds:
        for worker in workers.values():
            worker.turn(clock, 0, PROMPT, 1)
        for position in places:
            for worker in workers.values():
                worker.turn(clock, position, 1, 3 if position == PROMPT else 1)
        if rounds % 8 == 0:
            reading.measure(threads, clock)
        rounds += 1
    return workers, places


def print_speed(name, workers, places, threads, params, reading):
    """One row for each runtime, and one of ratios."""
    print(f"### {TITLES[name]}, {threads} thread{'s' if threads > 1 else ''}, reading {reading.best[threads] / 1e9:.1f} GB/s\n")
    heads = [f"token at {p}, ms" for p in places]
    heads = [f"prefill of {PROMPT}, ms", "tokens/s", "decode, tokens/s", "of reading", "load, ms", "peak memory, MB", *heads]
    print("| runtime |", " | ".join(heads), "|\n|---|" + "--:|" * len(heads))
    for title, worker in workers.items():
        prefill, decode = worker.best(0, PROMPT), worker.best(PROMPT, 1)
        share = bytes_of_token(params, name, PROMPT) / decode / reading.best[threads]
        cells = [f"{prefill * 1e3:.1f} ({statistics.median(worker.times[0, PROMPT]) * 1e3:.1f})", f"{PROMPT / prefill:.0f}"]
        cells += [f"{1 / decode:.1f}", "–" if title == "eager" else f"{share:.0%}"]
        cells += [f"{worker.facts['load'] * 1e3:.0f}", f"{worker.facts['peak'] / 1e6:.0f}"]
        cells += [f"{worker.best(p, 1) * 1e3:.2f}" for p in places]
        print(f"| {title} |", " | ".join(cells), "|")
    print()
    for other in workers.keys() - {"etude"}:
        ours, theirs = workers["etude"], workers[other]
        prefill, decode = (theirs.best(*key) / ours.best(*key) for key in ((0, PROMPT), (PROMPT, 1)))
        far = f", logits {difference(workers, 'etude', other):.1e} apart" if other == "official" or name != "8da4w" else ""
        print(f"{TITLES[name]}, {threads} thread(s): prefill {prefill:.2f} times as fast as {other}, decode {decode:.2f} times{far}")


def print_profile(worker, places):
    """Where a token's time goes at the beginning and at the end of the window."""
    sums = [worker.ask("profile", position, 1, 12) for position in (places[0], places[-1])]
    names = sorted(sums[1], key=lambda n: -sums[1][n])[:6]
    for position, by_name in zip((places[0], places[-1]), sums):
        rest = sum(t for n, t in by_name.items() if "sdpa" not in n)
        print(f"at {position}: {rest:.2f} ms without attention; " + ", ".join(f"{n} {by_name[n]:.2f}" for n in names if n in by_name))
    print(flush=True)


def main():
    names = f"programs, of: {', '.join(PROGRAMS)}"
    args = parse(__doc__, child, "torch and executorch", seconds=15, names=names)
    if args is None:
        return
    pythons = {"etude": sys.executable}
    if args.official_python:
        pythons |= {"official": args.official_python, "eager": args.official_python}
    params = json.loads((args.folder / "params.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        reading = Reading(folder)
        for threads in args.threads:
            for name in args.names or PROGRAMS:
                workers, places = measure(args.folder, name, threads, pythons, args.seconds, args.clock, reading)
                print_speed(name, workers, places, threads, params, reading)
                print_profile(workers["etude"], places)
                for worker in workers.values():
                    worker.close()


if __name__ == "__main__":
    main()
