"""External data: which keys a program needs, of what looks, which are found where; all that is missing is told at once."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import etude
from etude.cli import main
from etude.emit import ProgramBuilder, data_file_bytes


def _program():
    """y = x * a + b + c, where a and b are in one data file and c is in another."""
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (2, 3))
    a, b, c = (np.full((2, 3), value, np.float32) for value in (2, 3, 4))
    y = m.call("aten::mul.out", x, m.external("scale", a, file="first"))
    y = m.call("aten::add.out", y, m.external("shift.one", b, file="first"))
    m.output(m.call("aten::add.out", y, m.external("shift.two", c, file="second")))
    files = {name.removesuffix(".ptd"): data_file_bytes(data) for name, data in p.data_files().items()}
    return p.to_bytes(), files["first"], files["second"]


def _needs(program):
    return [(need.key, need.tensor.summary(), need.file, need.fits) for need in program.metadata("forward").external_data]


def test_metadata_tells_every_key():
    model, first, second = _program()
    x = np.ones((2, 3), np.float32)
    looks = "float32 [2, 3]"
    assert _needs(etude.load(model)) == [(key, looks, None, False) for key in ("scale", "shift.one", "shift.two")]
    assert _needs(etude.load(model, data_path=second)) == [
        ("scale", looks, None, False), ("shift.one", looks, None, False), ("shift.two", looks, 0, True),
    ]  # fmt: skip
    both = etude.load(model, data_path=[second, first])
    assert _needs(both) == [("scale", looks, 1, True), ("shift.one", looks, 1, True), ("shift.two", looks, 0, True)]
    assert np.array_equal(both.load_method("forward")(x)[0], np.full((2, 3), 9, np.float32))


def test_loading_tells_all_that_is_missing():
    model, first, second = _program()
    for data, missing, kind in (
        ([], ["scale", "shift.one", "shift.two"], etude.EtudeStateError),
        ([first], ["shift.two"], etude.EtudeKeyError),
        ([second], ["scale", "shift.one"], etude.EtudeKeyError),
    ):
        with pytest.raises(kind) as failure:
            etude.load(model, data_path=data).load_method("forward")
        message = failure.value.args[0]
        assert re.findall(r"\n  (\S+): float \[2, 3\]", message) == missing
        assert "data_path=" in message
        assert failure.value.subject == missing[0]


def test_data_of_other_looks():
    model, _, second = _program()
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (2,))
    y = m.call("aten::mul.out", x, m.external("scale", np.ones(2, np.float32)))
    m.output(m.call("aten::mul.out", y, m.external("shift.one", np.ones(2, np.float32))))
    [other] = [data_file_bytes(data) for data in p.data_files().values()]
    program = etude.load(model, data_path=[second, other])
    assert [need[2:] for need in _needs(program)] == [(1, False), (1, False), (0, True)]
    assert "another dtype" in str(program.metadata("forward").external_data[0])
    with pytest.raises(etude.EtudeDataError, match="'scale' has another dtype"):
        program.load_method("forward")


def _run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    return status, capsys.readouterr().out


def test_commands(tmp_path, capsys):
    model, first, second = _program()
    paths = [tmp_path / name for name in ("model.pte", "first.ptd", "second.ptd")]
    for path, data in zip(paths, (model, first, second), strict=True):
        path.write_bytes(data)
    status, text = _run(capsys, "check", paths[0], "--data", paths[1])
    assert status == 1
    assert "shift.two: float32 [2, 3]" in text and "data_path=" in text and "scale" not in text
    status, text = _run(capsys, "check", paths[0])
    assert status == 1 and all(key in text for key in ("scale", "shift.one", "shift.two"))
    assert _run(capsys, "check", paths[0], "--data", paths[1], "--data", paths[2])[0] == 0
    status, text = _run(capsys, "inspect", paths[0], "--data", paths[1])
    assert f"external data scale: float32 [2, 3], in {paths[1]}" in text
    assert "external data shift.two: float32 [2, 3], missing" in text and "--data" in text
    report = json.loads(_run(capsys, "inspect", paths[0], "--data", paths[1], "--json")[1])
    needs = report["methods"][0]["external_data"]
    assert [(need["key"], need["dtype"], need["sizes"], need["file"], need["fits"]) for need in needs] == [
        ("scale", "float32", [2, 3], str(paths[1]), True),
        ("shift.one", "float32", [2, 3], str(paths[1]), True),
        ("shift.two", "float32", [2, 3], None, False),
    ]


def test_a_program_without_external_data():
    p = ProgramBuilder()
    m = p.method("forward")
    m.output(m.call("aten::neg.out", m.input("float32", (2,))))
    assert etude.load(p.to_bytes()).metadata("forward").external_data == []
