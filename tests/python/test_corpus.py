"""Every call sequence of the corpus against its goldens, with the manifest's tolerance."""

from __future__ import annotations

import json

import numpy as np
import pytest

import etude
from paths import CORPUS

CASES = json.loads((CORPUS / "manifest.json").read_text())["cases"]

#: Cases whose operators this build has not got yet. They are expected to fail for that reason and no other; one that passes must leave.
NOT_YET: dict[str, str] = {}


def prefix(method, index):
    return f"{method}__" + (f"s{index}_" if index else "")


def to_value(array, spec):
    """An input as a caller would have it: 16-bit floats by their dtype, channels-last in channels-last memory."""
    if spec["kind"] == "none":
        return None
    if spec["kind"] != "tensor":
        return array.item()
    if spec["dtype"] in ("float16", "bfloat16"):
        array = array.view(etude.numpy_dtype(spec["dtype"]))
    if spec.get("dim_order") == [0, 2, 3, 1]:
        array = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    return array


def widen(array, spec):
    """A golden (16-bit floats are stored as their bits) or an output as something to compare: 16-bit floats as float32."""
    if spec.get("dtype") == "bfloat16":
        return (np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if spec.get("dtype") == "float16":
        return np.ascontiguousarray(array).view(np.float16).astype(np.float32)
    return np.asarray(array, np.int64 if type(array) is int else None)


def compare(got, want, atol, rtol):
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    exact = want.dtype.kind in "biu" and want.dtype not in (np.int8, np.uint8)
    if exact:
        np.testing.assert_array_equal(got, want)
    elif want.dtype.kind == "c":
        np.testing.assert_allclose(got, want, atol=atol, rtol=rtol, equal_nan=True)
    else:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), atol=atol, rtol=rtol, equal_nan=True)


def marked(name):
    if name not in NOT_YET:
        return name
    return pytest.param(name, marks=pytest.mark.xfail(reason=f"no {NOT_YET[name]}", raises=etude.EtudeOperatorError, strict=True))


@pytest.mark.parametrize("name", [marked(name) for name in CASES])
@pytest.mark.parametrize("verification", list(etude.Verification), ids=lambda level: level.name)
def test_case(name, verification):
    """From a mapped file with all checks, and from memory with the least."""
    case = CASES[name]
    data = np.load(CORPUS / case["files"]["npz"])
    paths = [CORPUS / file for file in (case["files"]["pte"], *case["files"]["ptd"])]
    pte, *ptds = paths if verification == etude.Verification.InternalConsistency else [path.read_bytes() for path in paths]
    program = etude.load(pte, data_path=ptds, verification=verification)
    assert program.method_names == set(case["methods"])
    for method, index in case["calls"]:
        spec = case["methods"][method]["sets"][index]
        p = prefix(method, index)
        inputs = [to_value(data[f"{p}in{i}"], s) for i, s in enumerate(spec["inputs"])]
        outputs = program.load_method(method).execute(inputs)
        assert len(outputs) == len(spec["outputs"])
        for i, (got, s) in enumerate(zip(outputs, spec["outputs"])):
            if s["kind"] == "none":
                assert got is None
                continue
            if s["kind"] == "tensor":
                assert isinstance(got, np.ndarray)
            else:
                assert type(got) is {"int": int, "double": float, "bool": bool}[s["kind"]]
            compare(widen(got, s), widen(data[f"{p}out{i}"], s), **case["tolerance"])


@pytest.mark.parametrize("name", list(CASES))
def test_metadata(name):
    """Metadata equals what the manifest read from the file with the official tools."""
    case = CASES[name]
    program = etude.load(CORPUS / case["files"]["pte"], data_path=[CORPUS / ptd for ptd in case["files"]["ptd"]])
    for method, want in case["methods"].items():
        meta = program.metadata(method)
        assert meta.name() == method
        for infos, specs in ((meta.inputs, want["inputs"]), (meta.outputs, want["outputs"])):
            assert len(infos) == len(specs)
            for info, spec in zip(infos, specs):
                assert info.kind.lower() in (spec["kind"], {"null": "none"}.get(spec["kind"]))
                if spec["kind"] != "tensor":
                    assert info.value == spec.get("value")
                    continue
                assert list(info.tensor.sizes()) == spec["sizes"]
                assert list(info.tensor.dim_order()) == spec["dim_order"]
                assert info.tensor.is_dynamic() == (spec["shape_dynamism"] != "STATIC")
                assert (info.tensor.placement() is not None) == spec["memory_planned"]
        assert set(meta.operators) >= set(want["operators"])
        assert meta.num_instructions() == sum(want["instructions"].values())


def test_no_case_is_unknown():
    assert set(NOT_YET) <= set(CASES)
    assert len(CASES) == 121
