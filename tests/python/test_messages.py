"""What is said to those who pass the wrong thing, and programs that come wrapped."""

from __future__ import annotations

import numpy as np
import pytest

import etude
from etude.emit import read_program
from paths import CORPUS, DATA, PROGRAMS

BUNDLED = DATA / "bundled.pte"


@pytest.fixture
def affine():
    return etude.load(PROGRAMS / "affine.pte")["forward"]  # x * 2 + z, both float32 [2, 3]


@pytest.mark.parametrize("door", [lambda path: path, lambda path: path.read_bytes(), lambda path: bytearray(path.read_bytes())])
def test_the_program_of_a_bundle_runs(door):
    golden = np.load(DATA / "bundled.npz")
    inputs = [golden[key] for key in golden if key.startswith("s0_in")]
    for verification in etude.Verification:
        (got,) = etude.Runtime.get().load_program(door(BUNDLED), verification=verification)["forward"].execute(inputs)
        np.testing.assert_allclose(got, golden["s0_out0"], rtol=1e-6)


def test_the_program_of_a_bundle_is_read():
    assert [method.name for method in read_program(BUNDLED).methods] == ["forward"]
    assert [method.name for method in read_program(BUNDLED.read_bytes()).methods] == ["forward"]


def test_damaged_bundles():
    whole = BUNDLED.read_bytes()
    for size in range(0, 1300, 3):  # the test cases stand behind the program
        with pytest.raises(etude.EtudeProgramError):
            etude.load(whole[:size])
    refused = 0
    for at in range(80):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            data = bytearray(whole)
            data[at] = value
            try:
                etude.load(bytes(data))
            except etude.EtudeError:
                refused += 1
            try:
                read_program(data)
            except ValueError:
                refused += 1
    assert refused > 200


def test_a_bundle_for_data():
    with pytest.raises(etude.EtudeDataError, match=r"not a \.ptd file"):
        etude.load(CORPUS / "add.pte", data_path=BUNDLED)


def test_a_result_beyond_the_bound():
    program = etude.load(DATA / "masked_select_broadcast.pte")
    golden = np.load(DATA / "masked_select_broadcast.npz")
    inputs = [golden[key] for key in golden if key.startswith("s0_in")]
    (size,) = golden["s0_out0"].shape
    with pytest.raises(etude.EtudeProgramError, match=rf"the result has sizes \[{size}\], and the program was exported for at most \[48\]"):
        program["forward"].execute(inputs)


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        ([[[1.0, 2, 3], [4, 5, 6]], np.ones((2, 3), np.float32)], TypeError, r"numpy\.asarray\(x, dtype=numpy\.float32\)"),
        ([(1, 2, 3), np.ones((2, 3), np.float32)], TypeError, r"numpy\.asarray\(x, dtype=numpy\.float32\)"),
        ([{"x": 1}, np.ones((2, 3), np.float32)], TypeError, "flattened"),
        ({"x": 1, "z": 2}, TypeError, "expected 2 inputs .*, got a dict; inputs have no names in a program"),
        ([[1, 2]], ValueError, r"expected 2 inputs .*, got one, a list of 2; write method\(x, y\), or method\.execute\(\[x, y\]\)"),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], ValueError, "expected 2 inputs .*, got 3"),
        ([], ValueError, r"expected 2 inputs \(float32 \[2, 3\], float32 \[2, 3\]\), got 0"),
    ],
)
def test_containers(affine, inputs, kind, words):
    with pytest.raises(kind, match=words) as raised:
        affine.execute(inputs)
    assert isinstance(raised.value, etude.EtudeError) and raised.value.subject == "forward"


def test_all_inputs_as_one_argument(affine):
    x = np.ones((2, 3), np.float32)
    with pytest.raises(etude.EtudeValueError, match=r"write method\(x, y\)"):
        affine([x, x])
    with pytest.raises(etude.EtudeTypeError, match="a dict"):
        affine({"x": x, "z": x})


def test_a_list_for_the_only_input():
    method = etude.load(PROGRAMS / "bfloat16.pte")["forward"]
    with pytest.raises(etude.EtudeValueError, match=r"expected 1 input .*, got 2; .*if it is the one input.*numpy\.asarray"):
        method.execute([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(etude.EtudeTypeError, match=r"numpy\.asarray\(x, dtype=ml_dtypes\.bfloat16\)"):
        method.execute([[[1, 2, 3], [4, 5, 6]]])


def test_what_infos_are_called(affine):
    info = affine.metadata.input_tensor_meta(0)
    assert str(info) == repr(info) == "TensorInfo(sizes=[2, 3], dtype=Float, is_memory_planned=True, nbytes=24)"
    assert info.summary() == "float32 [2, 3]"
    value = affine.metadata.inputs[0]
    assert repr(value) == f"ValueInfo(kind='Tensor', tensor={info!r})" and repr(value.tensor) == repr(info)
    number = etude.load(PROGRAMS / "values.pte").metadata("forward").outputs[1]
    assert repr(number).startswith("ValueInfo(kind='Int'") and number.tensor is None


def test_a_method_says_that_its_program_was_closed():
    program = etude.load(PROGRAMS / "affine.pte")
    shared, own, closed = program["forward"], program.load_method("forward", fresh=True), program.load_method("forward", fresh=True)
    closed.close()
    program.close()
    x = np.ones((2, 3), np.float32)
    with pytest.raises(etude.EtudeStateError, match=r"'forward' is closed, since its program was closed.*fresh=True"):
        shared(x, x)
    with pytest.raises(etude.EtudeStateError, match="'forward' is closed; load it again"):
        closed(x, x)
    assert own(x, x)[0].shape == (2, 3)


def test_a_plan_needs_no_more_than_there_is():
    from etude.emit.describe import describe_plan

    for path in [*CORPUS.glob("*.pte"), *DATA.glob("*.pte")]:
        for method in read_program(path).methods:
            for memory in describe_plan(method):
                assert memory["most_in_use"] <= memory["size"]


def test_inputs_can_be_checked_without_executing():
    method = etude.load(PROGRAMS / "affine.pte")["forward"]
    x = np.ones((2, 3), np.float32)
    method.check_inputs([x, x])
    for wrong, words in (([x], "expected 2 inputs"), ([x, x[:, :2]], "input 1"), ([x.astype(float), x], "input 0"), (x, "expected 2")):
        with pytest.raises(etude.EtudeError, match=words) as checked:
            method.check_inputs(wrong)
        with pytest.raises(type(checked.value)) as executed:
            method.execute(wrong)
        assert str(checked.value) == str(executed.value)
    assert method(2 * x, x)[0].tolist() == etude.load(PROGRAMS / "affine.pte")(2 * x, x)[0].tolist()
    method.close()
    with pytest.raises(etude.EtudeStateError, match="closed"):
        method.check_inputs([x, x])
