"""What the core does with files of 1x, 2x and 4x the size grows as their bytes do: counted in blocks of its code, not by a clock."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from itertools import pairwise

import pytest

from etude.emit import data_file_bytes
from etude.emit import model as m
from etude.emit.dtypes import DType
from etude.emit.writer import program_bytes
from paths import ROOT

FLOAT = next(d for d in DType if d.name == "float32")
COMPILER = shlex.split(os.environ.get("CC", "cc"))

#: How much more may be done for twice the file, if not little for each byte of it; and the most blocks of code for a byte.
GROWTH, LITTLE, MOST = 2.5, 250, 1000


def _tensor(place=None, name=None, data=None, sizes=(4,), external=False, order=(0,), dynamism=m.Dynamism.static):
    memory = None if place is None else m.Allocation(1, place)
    return m.Tensor(FLOAT, sizes, order, dynamism, memory, data, name, external)


def _add(a, b, alpha, out):
    return m.KernelCall("aten::add.out", [a, b, alpha, out, out])


def _method(values, instructions, inputs, outputs, bytes_planned=64, **more):
    made = m.Method("forward", values=values, inputs=inputs, outputs=outputs, buffer_sizes=[bytes_planned], **more)
    made.chains[0].instructions = instructions
    return made


def chain(n):
    """Sums one after the other, each at a place of its own."""
    values = [*(_tensor(16 * i) for i in range(n + 1)), m.Int(1)]
    return _method(values, [_add(i, i, n + 1, i + 1) for i in range(n)], [0], [n], 16 * n + 16)


def same_place(n):
    """All results at two places, in turns."""
    return _method([*(_tensor(16 * (i % 2)) for i in range(n + 1)), m.Int(1)], [_add(i, i, n + 1, i + 1) for i in range(n)], [0], [n])


def states(n):
    """Named buffers that are written."""
    return _method([*(_tensor(16 * i, f"s{i}") for i in range(n)), m.Int(1)], [_add(i, i, n, i) for i in range(n)], [], [0], 16 * n + 16)


def inputs(n):
    """Planned inputs, and as many results beside them."""
    values = [*(_tensor(16 * i) for i in range(2 * n)), m.Int(1)]
    return _method(values, [_add(i, i, 2 * n, n + i) for i in range(n)], list(range(n)), list(range(n, 2 * n)), 32 * n)


def reused_inputs(n):
    """Results over the inputs."""
    values = [*(_tensor(16 * (i % n)) for i in range(2 * n)), m.Int(1)]
    return _method(values, [_add(i, i, 2 * n, n + i) for i in range(n)], list(range(n)), [2 * n - 1], 16 * n)


def unplanned(n):
    """Results without memory in the plan, all of them outputs."""
    values = [*(_tensor() for _ in range(n + 1)), m.Int(1)]
    return _method(values, [_add(i, i, n + 1, i + 1) for i in range(n)], [0], list(range(1, n + 1)))


def unplanned_inputs(n):
    """Inputs that are outputs."""
    return _method([_tensor() for _ in range(n)], [], list(range(n)), list(range(n)))


def constants(n):
    """Constants of their own, each added to what was there."""
    values = [_tensor(0), *(_tensor(data=i.to_bytes(16, "little")) for i in range(1, n)), m.Int(1)]
    return _method(values, [_add(0, i, n, 0) for i in range(1, n)], [0], [0])


def folded(n):
    """Sums of constants."""
    values = [_tensor(data=b"\1" * 16), *(_tensor(16 * i) for i in range(n)), m.Int(1)]
    return _method(values, [_add(0, i, n + 1, i + 1) for i in range(n)], [], [n], 16 * n)


def lists(n):
    """One long list that every instruction takes."""
    values = [_tensor(0), _tensor(16), m.TensorList([0] * n), m.Int(0)]
    return _method(values, [m.KernelCall("aten::cat.out", [2, 3, 1, 1]) for _ in range(n)], [0], [1])


def views(n):
    """Channels-last results, and row-major views of them that no instruction makes."""
    # each view is compared with all tensors, as long as that is within the steps that the file's bytes allow
    image, flat = {"sizes": (1, 2, 1, 2), "order": (0, 2, 3, 1)}, {"sizes": (4,)}
    values = [_tensor(0, **image)]
    instructions = []
    for i in range(n):
        values += [_tensor(32 * i + 32, **image), _tensor(32 * i + 32, **flat), _tensor(32 * i + 48, **flat)]
        instructions += [_add(0, 0, 3 * n + 1, 3 * i + 1), _add(3 * i + 2, 3 * i + 2, 3 * n + 1, 3 * i + 3)]
    return _method([*values, m.Int(1)], instructions, [0], [3 * n], 32 * n + 64)


def jumps(n):
    """Conditions everywhere."""
    values = [m.Bool(True), _tensor(0), _tensor(16), m.Int(1)]
    return _method(values, [x for i in range(n) for x in (m.JumpFalse(0, 2 * i + 2), _add(1, 1, 3, 2))], [1], [2])


def operators(n):
    """Operators that nobody has."""
    made = chain(n)
    for i, call in enumerate(made.chains[0].instructions):
        call.operator = f"my::op{i}.out"
    return made


def delegates(n):
    """Delegates with a payload each."""
    made = _method([_tensor(0), _tensor(16)], [m.DelegateCall(i, [0, 1]) for i in range(n)], [0], [1])
    made.delegates = [m.Delegate("NullBackend", b"%d" % i) for i in range(n)]
    return made


def methods(n):
    """Small methods."""
    made = [chain(1) for _ in range(n // 8)]
    for i, method in enumerate(made):
        method.name = f"m{i}"
    return made


def sharing_methods(n):
    """Methods that share named buffers."""
    made = [states(n // 4) for _ in range(4)]
    for i, method in enumerate(made):
        method.name = f"m{i}"
    return made


def buffers(n):
    """Planned buffers, a tensor in each."""
    values = [*(m.Tensor(FLOAT, (4,), (0,), m.Dynamism.static, m.Allocation(i + 1, 0)) for i in range(n)), m.Int(1)]
    made = _method(values, [_add(i, i, n, i + 1) for i in range(n - 1)], [0], [n - 1])
    made.buffer_sizes = [16] * n
    return made


def external(n):
    """Tensors of data files, half of them missing."""
    values = [_tensor(0), *(_tensor(name=f"k{i:06d}", external=True) for i in range(n)), m.Int(1)]
    return _method(values, [_add(0, i + 1, n + 1, 0) for i in range(n)], [0], [0])


KINDS = (
    chain, same_place, states, inputs, reused_inputs, unplanned, unplanned_inputs, constants, folded, lists, views, jumps, operators,
    delegates, methods, sharing_methods, buffers, external,
)  # fmt: skip


@pytest.fixture(scope="session")
def counter(tmp_path_factory):
    """The core, compiled so that it counts."""
    if shutil.which(COMPILER[0]) is None:
        pytest.fail(f"no C compiler {COMPILER[0]!r}")
    program = tmp_path_factory.mktemp("growth") / "count"
    sources = [str(path) for path in sorted((ROOT / "c" / "core").glob("*.c"))]
    flags = ["-std=gnu11", "-O1", "-DETUDE_STATIC", "-fno-builtin", "-fsanitize-coverage=trace-pc", f"-I{ROOT / 'include'}"]
    subprocess.run([*COMPILER, *flags, *sources, str(ROOT / "tests" / "growth" / "count.c"), "-o", str(program)], check=True)
    return program


def _count(counter, folder, kind, n):
    made = kind(n)
    program = m.Program(methods=made if isinstance(made, list) else [made])
    paths = [folder / f"{kind.__name__}{n}.pte"]
    paths[0].write_bytes(program_bytes(program))
    if kind is external:
        for half in range(2):
            data = m.DataFile()
            for i in range(half, n, 4):
                data.entries[f"k{i:06d}"] = m.ExternalEntry(b"\0" * 16, m.TensorLayout(FLOAT, (4,), (0,)))
            paths.append(folder / f"{kind.__name__}{n}_{half}.ptd")
            paths[-1].write_bytes(data_file_bytes(data))
    done = subprocess.run([counter, *paths], check=True, capture_output=True, text=True)
    size = sum(path.stat().st_size for path in paths)
    return size, {phase: int(count) for phase, count in (line.split() for line in done.stdout.splitlines())}, done.stderr


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_work_grows_with_the_file(kind, counter, tmp_path):
    runs = [_count(counter, tmp_path, kind, n) for n in (400, 800, 1600)]
    report = "\n".join(f"{size:>9} bytes: {counts} {message[:200]}" for size, counts, message in runs)
    print(f"{kind.__name__}\n{report}")
    for (size, counts, _), (twice, more, _) in pairwise(runs):
        assert counts.keys() == more.keys(), report
        for phase, count in counts.items():
            assert more[phase] <= max(GROWTH * count * (twice / size) / 2, (MOST if kind is views else LITTLE) * twice), (phase, report)
            assert more[phase] <= MOST * twice, (phase, report)
