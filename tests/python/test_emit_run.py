"""Written files in etude itself: outputs must be those worked out with numpy, or the goldens of the corpus."""

import numpy as np
import pytest

import emit_programs
import etude
from etude.emit import data_file_bytes, program_bytes, read_data_file, read_program, verify_plan
from etude.emit.merge import Source, merge_programs
from paths import CORPUS, ROOT
from test_corpus import CASES, compare, marked, prefix, to_value, widen

LLAMA = ROOT / "tests/data/llama"


def close(got, want, rtol, atol):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if want.dtype.kind in "biu":
        assert np.array_equal(got, want)
    else:
        assert np.allclose(got.astype(np.float64), want.astype(np.float64), rtol, atol, equal_nan=True)


def run(pte, ptds, calls, rtol, atol):
    """Execute the calls in order on one loaded program and compare."""
    program = etude.load(pte, data_path=ptds)
    for call in calls:
        outputs = program.load_method(call.method).execute(call.inputs)
        assert len(outputs) == len(call.outputs)
        for got, want in zip(outputs, call.outputs):
            close(got, want, rtol, atol)


def run_case(case, tmp_path):
    ptds = []
    for name, content in case.ptds.items():
        (tmp_path / name).write_bytes(content)
        ptds.append(tmp_path / name)
    run(case.pte(), ptds, case.calls, case.rtol, case.atol)


@pytest.mark.parametrize("name", list(emit_programs.CASES))
def test_built_programs(name, tmp_path):
    run_case(emit_programs.make(name), tmp_path)


def test_planned_execution_equals_unplanned():
    """Random networks: numpy gives every value memory of its own, the plan does not."""
    shared = 0
    for seed in range(120):
        case = emit_programs.random_network(seed)
        method = case.builder.build().methods[0]
        shared += sum(t.nbytes for _, t in method.tensors() if t.allocation) > sum(method.buffer_sizes)
        run_case(case, None)
    assert shared > 80  # the plans do share memory


def corpus_calls(name, rename=None):
    """The calls of a corpus case with plain tensors, as calls with numpy arrays."""
    case, data = CASES[name], np.load(CORPUS / f"{name}.npz")
    for method, i in case["calls"]:
        sets = case["methods"][method]["sets"][i]
        inputs = [data[f"{prefix(method, i)}in{k}"] for k in range(len(sets["inputs"]))]
        outputs = [data[f"{prefix(method, i)}out{k}"] for k in range(len(sets["outputs"]))]
        yield emit_programs.Call((rename or {}).get(method, method), inputs, outputs)


def check_goldens(name, pte, ptds):
    """All calls of a corpus case, on another file of that program."""
    case, data = CASES[name], np.load(CORPUS / f"{name}.npz")
    program = etude.load(pte, data_path=ptds)
    for method, i in case["calls"]:
        spec = case["methods"][method]["sets"][i]
        inputs = [to_value(data[f"{prefix(method, i)}in{k}"], s) for k, s in enumerate(spec["inputs"])]
        outputs = program.load_method(method).execute(inputs)
        for k, (got, s) in enumerate(zip(outputs, spec["outputs"], strict=True)):
            if s["kind"] == "none":
                assert got is None
            else:
                compare(widen(got, s), widen(data[f"{prefix(method, i)}out{k}"], s), **case["tolerance"])


@pytest.mark.parametrize("name", [marked(name) for name in CASES])
def test_corpus_written_again(name):
    ptds = [data_file_bytes(read_data_file(CORPUS / file)) for file in CASES[name]["files"]["ptd"]]
    check_goldens(name, program_bytes(read_program(CORPUS / f"{name}.pte")), ptds)


@pytest.mark.parametrize("name", [marked(name) for name in CASES])
def test_corpus_planned_again(name):
    """By our planner instead of the exporter's."""
    program = read_program(CORPUS / f"{name}.pte")
    for method in program.methods:
        emit_programs.plan_again(method)
        assert verify_plan(method) == []
    check_goldens(name, program_bytes(program), [CORPUS / file for file in CASES[name]["files"]["ptd"]])


def test_prefill_and_decode_exported_apart_and_merged():
    """At most 1.05 times the file exported together, the goldens of both methods, state handed over."""
    merged = program_bytes(merge_programs([Source(n, read_program(LLAMA / n)) for n in ("prefill.pte", "decode.pte")]))
    joint = (CORPUS / "llama_tiny.pte").stat().st_size
    print(f"\nmerged {len(merged)} bytes, exported together {joint}: {len(merged) / joint:.3f}")
    assert len(merged) <= 1.05 * joint
    run(merged, [], corpus_calls("llama_tiny"), 1e-4, 1e-5)


def test_states_of_merged_programs_stay_apart():
    """Stateful programs merged, and called in turn."""
    names = ["counter", "counter_initialized", "kv_cache", "shared_state", "lenet"]
    sources, rounds = [], []
    for name in names:
        program = read_program(CORPUS / f"{name}.pte")
        rename = {m.name: f"{name}.{m.name}" for m in program.methods}
        sources.append(Source(name, program, rename))
        rounds.append(list(corpus_calls(name, rename)))
    calls = [r[k] for k in range(max(map(len, rounds))) for r in rounds if k < len(r)]
    run(program_bytes(merge_programs(sources)), [], calls, 1e-4, 1e-5)
