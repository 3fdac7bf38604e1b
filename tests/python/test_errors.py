"""Exceptions: every status has a class, and every class is what a Python programmer expects."""

from __future__ import annotations

import pickle
import re

import pytest

import etude
from etude import errors
from etude._lib import lib
from paths import CORPUS, PROGRAMS, ROOT


def statuses():
    """The status codes of the C header, by name."""
    block = re.search(r"enum \{(.*?)\};", (ROOT / "include/etude/base.h").read_text(), re.S)[1]
    return {name: int(value, 16) for name, value in re.findall(r"ETUDE_(\w+) = (0x\w+)", block)}


def test_every_status_has_a_row():
    assert {s.name: int(s) for s in etude.Status} == statuses()
    assert set(errors.CLASSES) == set(etude.Status) - {etude.Status.OK}
    for status, kind in errors.CLASSES.items():
        assert kind is not etude.EtudeError, "no status leaves the kind open"
        error = errors.from_status(int(status), "words", "subject", 7)
        assert type(error) is kind and isinstance(error, etude.EtudeError)
        assert (error.status, error.subject, error.offset, str(error)) == (status, "subject", 7, "words")


def test_unknown_status():
    error = errors.from_status(0x7777, "words")
    assert type(error) is etude.EtudeError and "0x7777" in str(error)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (etude.EtudeValueError, ValueError),
        (etude.EtudeTypeError, TypeError),
        (etude.EtudeKeyError, KeyError),
        (etude.EtudeIndexError, IndexError),
        (etude.EtudeMemoryError, MemoryError),
        (etude.EtudeNotImplementedError, NotImplementedError),
        (etude.EtudeOperatorError, NotImplementedError),
        (etude.EtudeOSError, OSError),
        (etude.EtudeFileNotFoundError, FileNotFoundError),
        (etude.EtudeProgramError, ValueError),
        (etude.EtudeDataError, ValueError),
        (etude.EtudeStateError, RuntimeError),
        (etude.EtudeBackendError, ValueError),
    ],
)
def test_builtins(kind, builtin):
    error = kind("some words")
    assert isinstance(error, builtin)
    assert isinstance(error, RuntimeError), "executorch raises RuntimeError for everything"
    assert str(error) == "some words"
    assert str(pickle.loads(pickle.dumps(error))) == "some words"


def test_numbers_are_executorchs():
    assert lib.ETUDE_OPERATOR_MISSING == 0x14 and lib.ETUDE_INVALID_PROGRAM == 0x23


def test_offset_and_status_of_a_damaged_file():
    data = bytearray((PROGRAMS / "affine.pte").read_bytes())
    data[0:4] = (2**31 - 4).to_bytes(4, "little")  # the root table, far outside
    with pytest.raises(etude.EtudeProgramError) as caught:
        etude.load(bytes(data))
    assert caught.value.status == etude.Status.INVALID_PROGRAM
    assert caught.value.offset is not None


def test_metadata_errors():
    meta = etude.load(PROGRAMS / "values.pte").metadata("forward")
    with pytest.raises(IndexError, match="there are 1"):
        meta.input_tensor_meta(1)
    with pytest.raises(IndexError, match="no tensor but Int"):
        meta.output_tensor_meta(1)
    with pytest.raises(IndexError):
        meta.attribute_tensor_meta(-1)


def test_wrong_things_to_load():
    for value in (5, None, object()):
        with pytest.raises(TypeError, match="path, bytes, bytearray, memoryview or a binary file object"):
            etude.load(value)
    with open(PROGRAMS / "export.py") as text, pytest.raises(TypeError, match="binary mode"):
        etude.load(text)


def test_limits():
    program = etude.load(PROGRAMS / "affine.pte")
    with pytest.raises(MemoryError) as caught:
        program.load_method("forward", memory_limit=64)
    assert "64" in str(caught.value)
    method = program.load_method("forward", instruction_limit=1)
    x = __import__("numpy").zeros((2, 3), "f4")
    with pytest.raises(etude.EtudeError, match="instruction"):
        method(x, x)
    assert program["forward"](x, x)[0].shape == (2, 3)


def test_a_path_is_not_cut_at_a_zero_byte():
    with pytest.raises(etude.EtudeValueError, match="zero byte"):
        etude.load(f"{PROGRAMS / 'affine.pte'}\0.txt")


@pytest.mark.parametrize("name", ["memory_limit", "instruction_limit"])
def test_limits_are_checked_by_name(name):
    program = etude.load(PROGRAMS / "affine.pte")
    wrong = {"1 MB": etude.EtudeTypeError, 1.5: etude.EtudeTypeError, -1: etude.EtudeValueError, 2**64: etude.EtudeValueError}
    for value, kind in wrong.items():
        with pytest.raises(kind, match=name):
            program.load_method("forward", **{name: value})


def test_threads_are_checked_by_name():
    for value, kind in ((2.0, etude.EtudeTypeError), ("2", etude.EtudeTypeError), (0, etude.EtudeValueError)):
        with pytest.raises(kind, match="threads"):
            etude.load(PROGRAMS / "affine.pte", threads=value)


def test_many_external_keys():
    """Keys are sorted once, so that none is compared with all others: this took time with the square of their number."""
    from etude.emit import DataFile, data_file_bytes
    from etude.emit.model import ExternalEntry

    def data(first, count):
        file = DataFile()
        file.entries = {f"k{i * 7919 % 100003:08d}": ExternalEntry(b"abcd", None) for i in range(first, first + count)}
        return data_file_bytes(file)

    program = (CORPUS / "add.pte").read_bytes()
    etude.load(program, data_path=[data(0, 20000), data(20000, 20000)])
    with pytest.raises(etude.EtudeValueError, match=r"files 0 and 2 both have the key 'k\d{8}'"):
        etude.load(program, data_path=[data(0, 3000), data(3000, 3000), data(2999, 1)])
