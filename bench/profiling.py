"""What a profile costs, and whether it is right: `python bench/profiling.py [model.pte]`.

Three measurements in one run, each the median over repetitions in alternation: a program of 1,000 tiny instructions with and
without a profile (the cost for an instruction); instructions added up against the whole; and the profile's operators against
stepping through the method with a clock of our own, which knows nothing of the trace hook.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict

import numpy as np

import etude
from etude._lib import ErrorBlock, ffi, lib
from etude.emit import ProgramBuilder


def tiny(count: int = 1000) -> etude.Method:
    builder = ProgramBuilder()
    method = builder.method("forward")
    x = method.input("float32", (4,))
    for _ in range(count):
        x = method.call("aten::neg.out", x)
    method.output(x)
    return etude.load(builder.to_bytes()).load_method("forward")


def timed(call) -> float:
    begin = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begin


def cost() -> None:
    method, x, count = tiny(), np.ones(4, np.float32), 1000
    method(x)
    off, on = [], []
    for _ in range(300):
        off.append(timed(lambda: method(x)))
        with etude.profile(method):
            on.append(timed(lambda: method(x)))
    a, b = statistics.median(off), statistics.median(on)
    print(f"1,000 instructions: {a / 1e3:.1f} us without, {b / 1e3:.1f} us with a profile: {(b - a) / count:.0f} ns an instruction")


def made_up(method: etude.Method) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    tensors = [i.tensor for i in method.metadata.inputs]
    return [
        (rng.standard_normal(t.sizes()) if t.numpy_dtype().kind == "f" else np.zeros(t.sizes())).astype(t.numpy_dtype()) for t in tensors
    ]


def steps(method: etude.Method, names: list[str], inputs: list[np.ndarray]) -> dict[str, int]:
    """Nanoseconds by operator, from stepping through an execution."""
    error, sums = ErrorBlock(), defaultdict(int)
    values, held = ffi.new("etude_value[]", max(len(inputs), 1)), []
    for i, array in enumerate(inputs):
        sizes = ffi.new("int32_t[]", list(array.shape))
        tensor = ffi.new("etude_tensor *", {"data": ffi.from_buffer(array), "sizes": sizes, "capacity": array.nbytes, "rank": array.ndim})
        tensor.scalar_type = method.metadata.inputs[i].tensor.dtype()
        values[i].tag = lib.ETUDE_VALUE_TENSOR
        getattr(values[i], "as").tensor = tensor
        held += [sizes, tensor]
    error.check(lib.etude_method_set_inputs(method._pointer, values, len(inputs), error.pointer))
    for name in names:
        begin = time.perf_counter_ns()
        status = lib.etude_method_step(method._pointer, error.pointer)
        sums[name] += time.perf_counter_ns() - begin
        error.check(status)
    lib.etude_method_reset(method._pointer)
    return sums


def agreement(path: str, repeat: int = 15) -> None:
    program = etude.load(path)
    name = "forward" if "forward" in program.method_names else next(iter(program))
    method, inputs = program.load_method(name), made_up(program.load_method(name))
    names = [i.name or i.kind for i in program.instructions(name)]
    method.execute(inputs)
    whole, profiled, stepped = [], defaultdict(list), defaultdict(list)
    sums = []
    for _ in range(repeat):
        with etude.profile(method) as p:
            whole.append(timed(lambda: method.execute(inputs)))
        sums.append(p.total)
        for row in p.by_operator():
            profiled[row.name].append(row.total)
        for operator, took in steps(method, names, inputs).items():
            stepped[operator].append(took)
    share = statistics.median(s / w for s, w in zip(sums, whole))
    print(f"{path}: instructions add up to {share:.1%} of the execution")
    for operator in sorted(profiled, key=lambda k: -statistics.median(profiled[k]))[:6]:
        a, b = statistics.median(profiled[operator]), statistics.median(stepped[operator])
        print(f"  {operator:<50} profile {a / 1e6:8.3f} ms, stepping {b / 1e6:8.3f} ms, ratio {a / b:.2f}")


if __name__ == "__main__":
    cost()
    for model in sys.argv[1:] or ["tests/corpus/mobilenetv2.pte", "tests/corpus/llama_tiny.pte"]:
        agreement(model)
