"""Corners of the format that today's exporter does not write: old headers, inline constants, all kinds of values and instructions."""

import struct

import numpy as np
import pytest

import etude
import flat
from etude.emit import DType, ProgramBuilder
from flat import call, encode, instruction, plan, tensor, value

ADD = [("aten::add", "out")]
X = np.arange(6, dtype=np.float32).reshape(2, 3)
WEIGHT = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def sum_plan(chains=None, values=()):
    """x + constant 1 -> out: values 0 x, 1 the constant, 2 alpha, 3 out, then `values`."""
    table = [tensor([2, 3], 0, (1, 0)), tensor([2, 3], 1), value(2, {0: ("i64", 1)}), tensor([2, 3], 0, (1, 32)), *values]
    return plan(table, [0], [3], chains or [[call(0, 0, 1, 2, 3, 3)]], ADD, (0, 64))


def placeholder():
    return {1: ("i64s", [0])}


def run_sum(data):
    for level in etude.Verification:
        (got,) = etude.load(data, verification=level)(X)
        np.testing.assert_array_equal(got, X + WEIGHT)


@pytest.mark.parametrize("shift", [0, 1, 3, 4, 8])
def test_inline_constants_at_any_address(shift):
    """Files from before constant segments; a program in memory need not be aligned."""
    root = {1: ("tables", [sum_plan()]), 2: ("tables", [{0: ("bytes", b"")}, {0: ("bytes", WEIGHT.tobytes())}])}
    data = encode(root)
    memory = np.zeros(len(data) + 64, np.uint8)
    start = -memory.ctypes.data % 16 + shift
    memory[start : start + len(data)] = np.frombuffer(data, np.uint8)
    run_sum(memory[start : start + len(data)])


def test_an_inline_constant_that_is_too_short():
    root = {1: ("tables", [sum_plan()]), 2: ("tables", [{0: ("bytes", b"")}, {0: ("bytes", WEIGHT.tobytes()[:-4])}])}
    with pytest.raises(etude.EtudeProgramError, match=r"value 1 .*constant .*too short"):
        etude.load(encode(root)).load_method("forward")


@pytest.mark.parametrize("length", [24, 28, 32, 4096])
def test_headers_of_every_length(length):
    """Shorter than 32 bytes there is no size of the segment data; longer ones have fields that are not known yet."""

    def header(size, base, data):
        return struct.pack("<QQQ", size, base, data)[: 16 if length < 32 else 24]

    segments = bytes(16) + WEIGHT.tobytes()
    root = {
        1: ("tables", [sum_plan()]),
        4: ("tables", [{0: ("u64", 0), 1: ("u64", len(segments))}]),
        5: ("table", {0: ("u32", 0), 1: ("i64s", [0, 16])}),
    }
    data = bytearray(encode(root, header, segments))
    struct.pack_into("<I", data, 12, length)
    run_sum(bytes(data))
    with pytest.raises(etude.EtudeProgramError, match=r"cut short|beyond the file"):
        etude.load(bytes(data[:-8]), verification=etude.Verification.Minimal).load_method("forward")


@pytest.mark.parametrize("length", [0, 20, 23])
def test_headers_too_short(length):
    data = bytearray(encode({1: ("tables", [sum_plan()])}, lambda *s: struct.pack("<QQQ", *s)))
    struct.pack_into("<I", data, 12, length)
    with pytest.raises(etude.EtudeProgramError, match="header is damaged: impossible length"):
        etude.load(bytes(data))


def test_every_kind_of_value_comes_out():
    """Outputs that no instruction computes are what the file says."""
    one = tensor([2, 3], 1)
    table = [
        value(1, {}), value(2, {0: ("i64", -(2**40))}), value(3, {0: ("bool", True)}), value(4, {0: ("f64", 2.5)}), one,
        value(6, {0: ("str", "prefill")}), value(7, {0: ("i64s", [1, 1])}), value(8, {0: ("f64s", [0.5, -1.0])}),
        value(9, {0: ("bytes", [1, 0])}), value(10, {0: ("i32s", [4, 4])}), value(11, {0: ("i32s", [-1, 4])}),
    ]  # fmt: skip
    root = {
        1: ("tables", [plan(table, [], list(range(11)), [[]])]),
        2: ("tables", [{0: ("bytes", b"")}, {0: ("bytes", WEIGHT.tobytes())}]),
    }
    none, whole, truth, real, array, word, ints, reals, truths, arrays, optional = etude.load(encode(root))()
    assert (none, whole, truth, real, word) == (None, -(2**40), True, 2.5, "prefill")
    assert (ints, reals, truths) == ([-(2**40)] * 2, [0.5, -1.0], [True, False])
    assert truth is True and truths == [True, False] and all(type(t) is bool for t in truths)
    np.testing.assert_array_equal(array, WEIGHT)
    assert [a.tolist() for a in arrays] == [WEIGHT.tolist()] * 2
    assert optional[0] is None and optional[1].tolist() == WEIGHT.tolist()


def test_every_kind_of_instruction_and_several_chains():
    """Free, move and jump in two chains: what the first computes, the second uses; a jump counts from its chain's start."""
    values = [tensor([2, 3], 0, (1, 64)), value(3, {0: ("bool", False)})]
    first = [
        call(0, 0, 1, 2, 4, 4),  # 4 = x + w
        instruction(4, {0: ("i32", 5), 1: ("i32", 3)}),  # always jumps over the next
        call(0, 4, 4, 2, 4, 4),
        instruction(5, {0: ("i32", 4)}),
    ]
    second = [
        instruction(4, {0: ("i32", 5), 1: ("i32", 2)}),
        call(0, 4, 4, 2, 4, 4),
        instruction(3, {0: ("i32", 4), 1: ("i32", 3)}),  # the output = 4
    ]
    whole = sum_plan([first, second], values)
    whole[8] = ("i64s", (0, 96))
    root = {1: ("tables", [whole]), 2: ("tables", [{0: ("bytes", b"")}, {0: ("bytes", WEIGHT.tobytes())}])}
    run_sum(encode(root))


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (instruction(4, {0: ("i32", 0), 1: ("i32", -1)}), "index -1"),
        (instruction(4, {0: ("i32", 0), 1: ("i32", 3)}), "index 3"),
        (instruction(3, {0: ("i32", 99), 1: ("i32", 3)}), "index 99"),
        (instruction(2, {0: ("i32", 0), 1: ("i32s", [0])}), "index 0"),
        (instruction(9, {}), "unknown kind"),
        (call(1, 0, 1, 2, 3, 3), "index 1"),
        (call(0, 0, 1, 2, 3, 4), "index 4"),
    ],
)
def test_instructions_that_lead_nowhere(bad, text):
    """Refused before anything runs, at either level; a jump to the end is legal."""
    data = encode({1: ("tables", [sum_plan([[bad, call(0, 0, 1, 2, 3, 3)]])]), 2: ("tables", [{}, {0: ("bytes", WEIGHT.tobytes())}])})
    with pytest.raises(etude.EtudeProgramError, match=text):
        etude.load(data)
    program = etude.load(data, verification=etude.Verification.Minimal)
    with pytest.raises(etude.EtudeProgramError, match=text):
        program.load_method("forward")


def test_constants_from_several_data_files(tmp_path):
    builder = ProgramBuilder()
    method = builder.method("forward")
    x = method.input(DType.float32, (2, 3))
    a = method.external("a", WEIGHT, file="a.ptd")
    b = method.external("b", WEIGHT * 10, file="b.ptd")
    method.output(method.call("aten::add.out", method.call("aten::add.out", x, a), b))
    builder.write(tmp_path / "model.pte")
    both = [tmp_path / "a.ptd", tmp_path / "b.ptd"]
    for files in (both, both[::-1]):
        (got,) = etude.load(tmp_path / "model.pte", data_path=files)(X)
        np.testing.assert_array_equal(got, X + WEIGHT * 11)
    with pytest.raises(etude.EtudeKeyError, match=r"\n  b: float \[2, 3\]"):
        etude.load(tmp_path / "model.pte", data_path=both[0]).load_method("forward")
    with pytest.raises(etude.EtudeStateError, match=r"\.ptd"):
        etude.load(tmp_path / "model.pte").load_method("forward")
    with pytest.raises(etude.EtudeValueError, match="both have the key 'a'"):
        etude.load(tmp_path / "model.pte", data_path=[both[0], both[0]])


def test_the_encoder_knows_its_kinds():
    with pytest.raises(KeyError):
        flat.encode({0: ("i16s", [1])})
