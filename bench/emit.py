"""What sharing and planning save: file sizes and planned memory, from programs in the tree. No torch needed.

    python bench/emit.py

Prints the size of a program with 1, 2 and 8 methods over one payload, of a decoder merged from two files beside the
one exported as a whole, and the planned memory of every corpus program through our planner beside the official plan.
Runs where etude is installed with its extra `emit`.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from etude.emit import ProgramBuilder, WriteReport, plan_method, program_bytes, read_program, verify_plan
from etude.emit.flow import same_place_views
from etude.emit.merge import Source, merge_programs
from etude.emit.model import Method, Tensor

TESTS = Path(__file__).resolve().parents[1] / "tests"
PAYLOAD = 1_000_000


def payload_sizes() -> None:
    """N methods over one payload."""
    payload = np.random.default_rng(0).bytes(PAYLOAD)
    print(f"Methods over one payload of {PAYLOAD:,} bytes")
    for count in (1, 2, 8):
        p = ProgramBuilder()
        for i in range(count):
            m = p.method(f"method{i}")
            m.output(*m.delegate("SomeBackend", payload, [m.input("float32", (4,))], [("float32", (4,))]))
        report = WriteReport()
        size = len(p.to_bytes(report=report))
        print(f"  {count}: {size:>9,} bytes, {size / PAYLOAD:.4f} payloads; {report.payloads.saved_bytes:,} saved")


def merged_size() -> None:
    """The two-method decoder, exported as two files and merged."""
    paths = [TESTS / "data/llama" / name for name in ("prefill.pte", "decode.pte")]
    merged = len(program_bytes(merge_programs([Source(p.name, read_program(p)) for p in paths])))
    joint, apart = (TESTS / "corpus/llama_tiny.pte").stat().st_size, sum(p.stat().st_size for p in paths)
    print(f"Decoder: {apart:,} bytes in two files, {merged:,} merged, {joint:,} exported as one: merged / one = {merged / joint:.3f}")


def planned_bytes(method: Method) -> tuple[int, int, float]:
    """(official plan, ours, seconds) with inputs and outputs planned as in the file."""
    tensors = [v for v in (method.values[i] for i in [*method.inputs, *method.outputs]) if isinstance(v, Tensor)]
    planned = all(t.allocation is not None or t.is_constant for t in tensors)
    official, views = sum(method.buffer_sizes), same_place_views(method)
    start = time.perf_counter()
    plan = plan_method(method, views=views, plan_inputs=planned, plan_outputs=planned)
    seconds = time.perf_counter() - start
    plan.apply(method)
    problems = verify_plan(method, views=views, alignment=16)
    if problems:
        raise SystemExit(f"{method.name}: {problems[0]}")
    return official, sum(plan.sizes), seconds


def plans() -> None:
    """Planned memory, ours beside the official one."""
    print("Planned memory in bytes         official       ours  ratio")
    totals, count = np.zeros(2, np.int64), 0
    for path in sorted((TESTS / "corpus").glob("*.pte")):
        found = [planned_bytes(m) for m in read_program(path).methods if m.buffer_sizes]
        count += len(found)
        official, ours = sum(f[0] for f in found), sum(f[1] for f in found)
        totals += (official, ours)
        if path.stem in ("mobilenetv2", "resnet_tiny", "vit_tiny", "llama_tiny", "lenet"):
            seconds = sum(f[2] for f in found)
            print(f"  {path.stem:<28} {official:>10,} {ours:>10,}  {ours / official:.3f}  planned in {seconds:.2f} s")
    print(f"  {f'all, {count} methods':<28} {totals[0]:>10,} {totals[1]:>10,}  {totals[1] / totals[0]:.3f}")


if __name__ == "__main__":
    payload_sizes()
    merged_size()
    plans()
