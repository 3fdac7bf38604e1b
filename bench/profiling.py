"""What a profile costs, and whether it is right: `python bench/profiling.py [MODEL.pte …]`.

Needs a C compiler, meson, and `perf`. Builds the library with tracing and with `-Dtrace=false`, each with a small program
(trace_cost.c), and measures in alternation, as processes, medians of ratios:

* nobody watching, against the library that has no tracing: what the hook costs while it is off;
* a profile against nobody watching, for an instruction;
* instructions added up, against the clock round the execution;
* shares of operators in the profile, against those that perf's samples have: a sample counts for the kernel whose frame is in its stack.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from etude.emit import ProgramBuilder

ROOT = Path(__file__).resolve().parents[1]
COUNT = 1000  # instructions of the tiny program
SMALLEST = 0.03  # of the time: operators below it are not compared


def call(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path, tracing: str) -> Path:
    """The measuring program, over a library with tracing ("true") or without."""
    flags = "-fno-omit-frame-pointer -fno-optimize-sibling-calls -g"  # so that perf finds the kernel of a sample
    options = ["--buildtype=release", "-Dtests=false", f"-Dtrace={tracing}", "-Ddefault_library=static", f"-Dc_args={flags}"]
    library = folder / tracing
    call("meson", "setup", library, ROOT, *options)
    call("ninja", "-C", library)
    program = folder / f"trace_cost_{tracing}"
    sources = [ROOT / "bench/trace_cost.c", library / "libetude.a"]
    call("cc", "-O2", "-no-pie", *flags.split(), f"-I{ROOT / 'include'}", *sources, "-lm", "-lpthread", "-o", program)
    return program


def tiny(folder: Path) -> Path:
    builder = ProgramBuilder()
    method = builder.method("forward")
    x = method.input("float32", (4,))
    for _ in range(COUNT):
        x = method.call("aten::neg.out", x)
    method.output(x)
    path = folder / "tiny.pte"
    path.write_bytes(builder.to_bytes())
    return path


def median(program: Path, model: Path, repeat: int, mode: str) -> float:
    times = [float(line) for line in call(program, model, "forward", repeat, mode).split()]
    return statistics.median(times[len(times) // 10 :])


def cost(with_tracing: Path, without: Path, model: Path, repeat: int, rounds: int = 11) -> None:
    off, on = [], []
    for _ in range(rounds):
        unwatched = median(with_tracing, model, repeat, "off")
        off.append(unwatched / median(without, model, repeat, "off") - 1)
        on.append(median(with_tracing, model, repeat, "on") - unwatched)
    low, high = statistics.quantiles(off, n=4)[::2]
    print(f"{model.name}: off against without {statistics.median(off):+.2%} (quartiles {low:+.2%}, {high:+.2%})", end="")
    print(f"; a profile takes {statistics.median(on) / COUNT:.0f} ns an instruction" if model.name == "tiny.pte" else "")


def profiled(program: Path, model: Path, repeat: int) -> tuple[float, Counter[str], dict[str, int]]:
    """Instructions over the whole, nanoseconds by operator, and the addresses of their kernels."""
    ratios, sums, addresses = [], Counter(), {}
    for line in call(program, model, "forward", repeat, "profile").splitlines():
        what, first, second, *name = line.split()
        if what == "whole":
            ratios.append(float(first) / float(second))
        else:
            sums[name[0]] += int(first)
            addresses[name[0]] = int(second, 16)
    return statistics.median(ratios), sums, addresses


def sampled(program: Path, model: Path, repeat: int, addresses: dict[str, int], folder: Path) -> Counter[str]:
    """Samples by operator."""
    symbols = {}
    for line in call("nm", program).splitlines():
        if defined := re.fullmatch(r"([0-9a-f]+) [tT] (\S+)", line):
            symbols[int(defined[1], 16)] = defined[2]
    operators: dict[str, list[str]] = {}
    for operator, address in addresses.items():
        operators.setdefault(symbols[address], []).append(operator)
    data = folder / "perf.data"
    how = ["-q", "-F", 2000, "-e", "cpu-clock:u", "--call-graph", "fp", "-o", data]
    call("perf", "record", *how, program, model, "forward", repeat, "off")
    found: Counter[str] = Counter()
    for sample in call("perf", "script", "-i", data, "-F", "ip,sym", "--no-inline").split("\n\n"):
        frames = [line.split()[1] for line in sample.splitlines() if len(line.split()) > 1]
        if "etude_method_execute" not in frames:
            continue
        hit = next((f for f in frames if f in operators), None)
        if hit is not None:
            found[" or ".join(operators[hit])] += 1
    return found


def agreement(program: Path, model: Path, folder: Path, seconds: float = 2.0) -> None:
    once = median(program, model, 10, "off") / 1e9
    repeat = max(10, int(seconds / once))
    ratio, sums, addresses = profiled(program, model, repeat)
    samples = sampled(program, model, repeat, addresses, folder)
    more = profiled(program, model, repeat)[1]  # before and after
    total, count = sum(sums.values()) + sum(more.values()), sum(samples.values())
    print(f"{model.name}: {repeat} executions of {once * 1e3:.2f} ms, instructions add up to {ratio:.1%} of the execution")
    for name, hits in samples.most_common():
        share = sum(sums[n] + more[n] for n in name.split(" or ")) / total
        if max(share, hits / count) >= SMALLEST:
            print(f"  {name:<52} profile {share:6.1%}, perf {hits / count:6.1%} ({hits} samples), ratio {share / (hits / count):.2f}")


def main() -> None:
    models = [Path(m) for m in sys.argv[1:]] or [ROOT / "tests/corpus/mobilenetv2.pte", ROOT / "tests/llm/l_sdpa.pte"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with_tracing, without = build(folder, "true"), build(folder, "false")
        cost(with_tracing, without, tiny(folder), 400)
        cost(with_tracing, without, ROOT / "tests/corpus/mobilenetv2.pte", 100)
        for model in models:
            agreement(with_tracing, model, folder)


if __name__ == "__main__":
    main()
