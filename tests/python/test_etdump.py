"""Event dumps, read back by the reader of FlatBuffers; tests/interop/test_etdump.py has the official Inspector read them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import etude
from etude import etdump, intermediates
from etude.emit.wire import Wire
from paths import CORPUS

X = np.random.default_rng(0).standard_normal((2, 1, 28, 28), np.float32)


def runs(dump):
    """[[(profile event or None, debug event or None)]] of each execution."""
    assert int.from_bytes(dump[:4], "little") == len(dump) - 4 and dump[8:12] == b"ED00"
    root = Wire(memoryview(dump)[4:]).root()
    return [[(e.table(0, "profile"), e.table(2, "debug")) for e in run.tables(3, "events")] for run in root.tables(1, "runs")]


def test_calls_with_their_times():
    method = etude.load(CORPUS / "lenet.pte").load_method("forward")
    with etude.profile(method) as profile:
        for _ in range(3):
            method(X)
    dump, values = etdump.dump(profile)
    assert values == b"" and len(runs(dump)) == 3
    calls = list(profile.events())
    for number, run in enumerate(runs(dump)):
        slots = ((1, "i"), (2, "i"), (6, "Q"), (7, "Q"))
        told = [(p.string(0, "name"), *(p.scalar(slot, kind, "") for slot, kind in slots)) for p, _ in run]
        wanted = [(r.name, r.instruction, s, s + d) for r, n, s, d in calls if n == number]
        assert told[:-1:2] == [(name.replace("aten::", "native_call_"), 0, i, s, e) for name, i, s, e in wanted]
        assert told[1:-1:2] == [("OPERATOR_CALL", 0, i, s, e) for _, i, s, e in wanted]
        assert told[-1] == ("Method::execute", -1, 0, wanted[0][2], wanted[-1][3])
        assert all(p.scalar(3, "i", "delegate") == -1 and p.string(4, "delegate") is None for p, _ in run)


def test_values_stand_in_the_debug_buffer():
    method = etude.load(CORPUS / "lenet.pte").load_method("forward", constant_limit=0)
    results, outputs = intermediates.record(method, [X]), method(X)
    dump, values = etdump.dump(None, results, outputs)
    (run,) = runs(dump)
    debug = [d for _, d in run]
    assert [d.scalar(1, "i", "i") for d in debug] == [r.instruction for r in results] + [-1]
    for event, array in zip(debug, [r.array for r in results] + outputs):
        entry = event.table(2, "entry")
        tensor = entry.table(1, "tensor")
        offset = tensor.scalar(3, "q", "offset")
        assert entry.scalar(0, "b", "kind") == 5 and offset % 64 == 0 and tensor.scalars(1, "q", "sizes") == list(array.shape)
        assert values[offset : offset + array.nbytes] == array.tobytes()
    assert debug[-1].table(2, "entry").table(7, "output").flag(0, "is") and debug[0].table(2, "entry").table(7, "output") is None


def test_a_profile_without_room_for_all_calls_is_refused():
    method = etude.load(CORPUS / "lenet.pte").load_method("forward")
    with etude.profile(method, events=5) as profile:
        method(X)
    with pytest.raises(etude.EtudeValueError, match=r"no room for \d+ calls"):
        etdump.dump(profile)
    with pytest.raises(etude.EtudeValueError, match="debug_buffer"):
        etdump.write("nowhere/x", None, [], [1])


def test_from_the_command_line(tmp_path):
    events, values = tmp_path / "x.etdp", tmp_path / "x.bin"
    arguments = ["run", CORPUS / "x_mobilenetv2.pte", "--etdump", events, "--debug-buffer", values]
    done = subprocess.run([sys.executable, "-m", "etude", *map(str, arguments)], capture_output=True)
    assert done.returncode == 0, done.stderr
    (run,) = runs(events.read_bytes())
    names = [p.string(0, "name") or p.string(4, "node") for p, _ in run if p is not None]
    assert "DELEGATE_CALL" in names and any(name.startswith("DepthwiseConv2d #") for name in names) and values.stat().st_size > 1000
    arguments = ["run", CORPUS / "lenet.pte", "--debug-buffer", values]
    assert subprocess.run([sys.executable, "-m", "etude", *map(str, arguments)], capture_output=True).returncode == 2
