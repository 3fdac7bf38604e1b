"""Where the time goes, and what the values are."""

from __future__ import annotations

import io
import itertools
import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import etude
from etude import intermediates
from etude.emit import ProgramBuilder
from etude.profiling import flops_of
from paths import CORPUS, PROGRAMS

RNG = np.random.default_rng(5)


def deep_program(layers=60, width=16, spoil=None, value=None):
    """relu(x w + b) again and again; `spoil` names a layer whose weight gets one wrong element."""
    rng = np.random.default_rng(9)
    builder = ProgramBuilder()
    method = builder.method("forward")
    x = method.input("float32", (2, width))
    for layer in range(layers):
        weight = (rng.standard_normal((width, width)) / np.sqrt(width) / 4).astype(np.float32)
        bias = rng.uniform(0.5, 0.7, width).astype(np.float32)
        if layer == spoil:
            weight[3, 5] = weight[3, 5] + 0.5 if value is None else value
        x = method.call("aten::relu.out", method.call("aten::addmm.out", method.constant(bias), x, method.constant(weight)))
    method.output(x)
    return builder.to_bytes()


def deep_network(*args, **options):
    return etude.load(deep_program(*args, **options)).load_method("forward")


@pytest.fixture
def lenet():
    case = np.load(CORPUS / "lenet.npz")
    return etude.load(CORPUS / "lenet.pte").load_method("forward", constant_limit=0), case["forward__in0"]


def test_every_instruction_is_counted(lenet):
    method, x = lenet
    want = method(x)[0]
    with etude.profile(method) as p:
        for _ in range(3):
            np.testing.assert_array_equal(method(x)[0], want)
    known = etude.load(CORPUS / "lenet.pte").instructions("forward")
    assert p.runs == 3
    assert [(r.instruction, r.name, r.calls) for r in p.rows] == [(i.index, i.name, 3) for i in known]
    assert all(0 < r.least <= r.mean <= r.most for r in p.rows)
    assert p.total == sum(r.total for r in p.rows) <= p.seconds * 1e9
    assert sum(r.total for r in p.by_operator()) == p.total
    events = list(p.events())
    assert len(events) == 3 * len(known) and [run for _, run, _, _ in events] == sorted(run for _, run, _, _ in events)
    assert all(later[2] >= earlier[2] + earlier[3] for earlier, later in itertools.pairwise(events))
    method(x)
    assert p.runs == 3  # it is over


def test_flops_and_bytes(lenet):
    method, x = lenet
    with etude.profile(method) as p:
        method(x)
    rows = {r.name: r for r in p.by_operator()}
    program = etude.load(CORPUS / "lenet.pte").instructions("forward")
    for i in program:
        if i.name == "aten::convolution.out":
            x_, w, out = (i.arguments[k].info.tensor.sizes() for k in (0, 1, -1))
            assert flops_of(i) == 2 * np.prod(out) * np.prod(w[1:]) and x_[1] == w[1]
        elif i.name == "aten::addmm.out":
            m, k = i.arguments[1].info.tensor.sizes()
            assert flops_of(i) == 2 * m * k * i.arguments[2].info.tensor.sizes()[1]
        elif i.name == "aten::relu.out":
            assert flops_of(i) is None
    relu = next(r for r in p.rows if r.name == "aten::relu.out")
    tensor = program[relu.instruction].arguments[0].info.tensor
    assert relu.bytes == 2 * tensor.nbytes()
    assert rows["aten::convolution.out"].gflops > 0


def test_table_and_files(lenet, tmp_path):
    method, x = lenet
    with etude.profile(method) as p:
        method(x)
    text = p.table()
    assert "aten::convolution.out" in text and "GFLOP/s" in text
    shares = [float(m) for m in re.findall(r"([\d.]+)%", text)]
    assert sum(shares) == pytest.approx(100, abs=0.06 * len(shares))
    assert p.table("instruction", limit=2).endswith(f"… {len(p.rows) - 2} more")
    assert "<td>aten::convolution.out</td>" in p._repr_html_()
    p.save(tmp_path / "p.json")
    trace = json.loads((tmp_path / "p.json").read_text())
    complete = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(complete) == len(p.rows) and all(e["dur"] > 0 for e in complete)
    assert trace["otherData"] == json.loads(json.dumps(p.to_dict()))
    p.save(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert "@DATA@" not in page and "http" not in page.replace("http-equiv", "")
    with pytest.raises(etude.EtudeValueError, match=r"ends in \.json"):
        p.save(tmp_path / "p.txt")
    with pytest.raises(etude.EtudeValueError, match="by must be"):
        p.table("time")


def test_room_for_events_and_one_at_a_time(lenet):
    method, x = lenet
    with etude.profile(method, events=3) as p:
        with pytest.raises(etude.EtudeStateError, match="traced already"), etude.profile(method):
            pass
        method(x)
    assert len(list(p.events())) == 3 and all(r.calls == 1 for r in p.rows)
    assert "of 0 executions" not in repr(p)


def test_values_are_those_of_numpy():
    method = deep_network(3)
    x = RNG.standard_normal((2, 16)).astype(np.float32)
    results = intermediates.record(method, [x])
    rng = np.random.default_rng(9)
    want = []
    for _ in range(3):
        w = (rng.standard_normal((16, 16)) / np.sqrt(16) / 4).astype(np.float32)
        b = rng.uniform(0.5, 0.7, 16).astype(np.float32)
        want.append(x @ w + b)
        x = np.maximum(want[-1], 0)
        want.append(x)
    assert [r.name for r in results] == ["aten::addmm.out", "aten::relu.out"] * 3
    for got, right in zip(results, want):
        np.testing.assert_allclose(got.array, right, rtol=1e-5, atol=1e-6)
        assert got.summary.max == pytest.approx(right.max(), rel=1e-5)
    only = intermediates.record(method, [x], instructions=[2], summaries=True)
    assert [r.instruction for r in only] == [2] and only[0].array is None
    assert len({r.key for r in results}) == len(results)


@pytest.mark.parametrize("layer", [0, 29, 59])
def test_a_planted_error_is_located(layer):
    x = RNG.standard_normal((2, 16)).astype(np.float32)
    right, wrong = (intermediates.record(deep_network(spoil=s), [x]) for s in (None, layer))
    differences = intermediates.compare(right, wrong)
    assert len(differences) == 120
    first = next(intermediates.parted(differences, 1e-5))
    assert (first.a.instruction, first.a.name) == (2 * layer, "aten::addmm.out")
    assert all(d.absolute == 0 for d in differences[: 2 * layer])


def test_what_is_no_method_and_no_instruction():
    program = etude.load(deep_program(layers=1))
    with pytest.raises(etude.EtudeTypeError, match=r"profile takes a method, such as .*, not Program$"), etude.profile(program):
        pass
    method = program["forward"]
    with pytest.raises(etude.EtudeTypeError, match=r"record takes a method, such as .*, not Program$"):
        intermediates.record(program, [])
    with pytest.raises(etude.EtudeTypeError, match="trace takes a function, not int"), method.trace(5):
        pass
    for number in (len(program.instructions("forward")), -1):
        with pytest.raises(etude.EtudeIndexError, match=f"'forward' has no instruction {number}; it has"):
            intermediates.record(method, [np.zeros((2, 16), np.float32)], instructions=[number])


def test_the_first_nan_is_located():
    x = np.ones((2, 16), np.float32)
    assert intermediates.first_not_finite(intermediates.record(deep_network(), [x])) is None
    found = intermediates.first_not_finite(intermediates.record(deep_network(spoil=31, value=np.nan), [x], summaries=True))
    assert (found.instruction, found.name, found.summary.nans) == (62, "aten::addmm.out", 2)


def test_summaries_and_distances():
    s = intermediates.summarise(np.array([1, np.nan, -3, np.inf], np.float32))
    assert (s.min, s.max, s.mean, s.nans, s.infs) == (-3, 1, -1, 1, 1)
    bits = np.array([0x3F80, 0x4000], np.uint16)
    assert intermediates.summarise(bits.view(np.dtype(np.uint16, metadata={"etude": "bfloat16"}))).max == 2
    assert intermediates.summarise(bits).max == 0x4000
    assert intermediates.distance(np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf])) == (0, 0)
    assert intermediates.distance(np.array([2.0, 4.0]), np.array([2.0, 5.0])) == (1, 0.25)
    assert intermediates.distance(np.array([1.0]), np.array([np.nan])) == (np.inf, np.inf)


def test_delegates_results_are_recorded_and_inputs_are_not():
    method = etude.load(PROGRAMS.parent.parent / "data/prefill_decode.pte").load_method("decode")
    inputs = [np.zeros(i.tensor.sizes(), i.tensor.numpy_dtype()) for i in method.metadata.inputs]
    results = intermediates.record(method, inputs)
    assert [r.name for r in results] == ["ContextBinaryBackend"] * len(method.metadata.outputs)


# ---- from the command line -------------------------------------------------------------------------------------------


def command(*arguments, stdin=b""):
    done = subprocess.run([sys.executable, "-m", "etude", *map(str, arguments)], input=stdin, capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


LENET = CORPUS / "lenet.pte"


def test_run_profile(tmp_path):
    status, out, _ = command("run", LENET, "--profile", "--repeat", 3)
    assert status == 0 and "aten::convolution.out" in out and "3 executions" in out and "\n12 aten::addmm.out" in out
    status, out, _ = command("run", LENET, "--profile", tmp_path / "t.json", "--json")
    report = json.loads(out)
    assert len(report["profile"]["rows"]) == 7  # norms and clamps are done by the convolutions before them
    assert status == 0 and json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    status, _, _ = command("run", LENET, "--profile", tmp_path / "t.html")
    assert status == 0 and "<canvas" in (tmp_path / "t.html").read_text()
    assert command("run", LENET, "--profile", tmp_path / "t.doc")[0] == 2


def test_run_dump_and_check_finite(tmp_path):
    status, _, _ = command("run", LENET, "--dump", tmp_path / "d", "--check-finite")
    lines = (tmp_path / "d/results.txt").read_text().splitlines()
    assert status == 0 and len(lines) == 19
    outputs = etude.load(LENET).load_method("forward", constant_limit=0).execute([standard_normal((2, 1, 28, 28))])
    np.testing.assert_array_equal(np.load(tmp_path / "d" / lines[-1].split()[0]), outputs[0])
    np.save(tmp_path / "x.npy", np.full((2, 1, 28, 28), np.inf, np.float32))
    status, out, _ = command("run", LENET, "--check-finite", "--input", f"0={tmp_path / 'x.npy'}")
    assert status == 1 and "instruction 0 (aten::convolution.out) is the first" in out


def standard_normal(shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def test_compare(tmp_path):
    right, wrong = tmp_path / "a.pte", tmp_path / "b.pte"
    right.write_bytes(deep_program())
    wrong.write_bytes(deep_program(spoil=17))
    status, out, _ = command("compare", right, wrong, "--rtol", 1e-5)
    assert status == 1 and "they part at instruction 34 (aten::addmm.out)" in out
    assert command("compare", right, right)[0] == 0
    status, out, _ = command("compare", right, wrong, "--json")
    assert json.loads(out)["apart"][0]["instruction"] == 34
    method = etude.load(right).load_method("forward")
    x = standard_normal((2, 16))
    y = method(x)[0]
    np.savez(tmp_path / "golden.npz", in0=x, out0=y)
    assert command("compare", right, tmp_path / "golden.npz")[0] == 0
    np.savez(tmp_path / "golden.npz", in0=x, out0=y + 1)
    status, out, _ = command("compare", right, tmp_path / "golden.npz")
    assert status == 1 and "differs" in out
    np.savez(tmp_path / "golden.npz", y=y)
    assert command("compare", right, tmp_path / "golden.npz")[0] == 2


RECORDS = CORPUS.parent / "data/records"


def with_records(other, *more):
    files = [RECORDS / "portable.pte", RECORDS / f"{other}.pte", "--etrecord", RECORDS / "portable.etrecord"]
    given = ["--other-etrecord", RECORDS / f"{other}.etrecord", "--input", f"0={RECORDS / 'x.npy'}"]
    status, out, err = command("compare", *files, *given, *more)
    return status, json.loads(out) if "--json" in more else out, err


def test_portable_and_delegated_are_matched_by_debug_handles():
    status, report, _ = with_records("delegated", "--json", "--all")
    # the first delegate ends in the sigmoid, the second is the linear layer; mean and cumsum are instructions in both
    assert status == 0 and [(r["label"], r["name"], r["other_name"]) for r in report["apart"]] == [
        ("sigmoid", "aten::sigmoid.out", "XnnpackBackend"), ("mean", "aten::mean.out", "aten::mean.out"),
        ("linear: linear", "aten::addmm.out", "XnnpackBackend"), ("cumsum", "aten::cumsum.out", "aten::cumsum.out"),
    ]  # fmt: skip
    assert report["equal"] and all(r["relative"] < 1e-5 for r in report["apart"])


def test_float_and_quantised_are_matched_by_what_their_operators_are_in_the_model():
    status, report, _ = with_records("quantised", "--json", "--all", "--rtol", 0.01)
    found = {r["label"]: r for r in report["apart"]}
    assert status == 0 and {"first: conv2d", "sigmoid", "mean", "cumsum"} <= set(found)
    assert all(0 < r["relative"] < 0.01 for r in found.values())  # int8 is that close
    assert found["mean"]["instruction"] != found["mean"]["other_instruction"]
    assert with_records("quantised")[0] == 1  # but no closer


def test_records_are_needed_of_both_and_must_be_some(tmp_path):
    files = [RECORDS / "portable.pte", RECORDS / "delegated.pte"]
    assert command("compare", *files, "--etrecord", RECORDS / "portable.etrecord")[0] == 2
    (tmp_path / "bad").write_bytes(b"PK")
    status, _, err = command("compare", *files, "--etrecord", tmp_path / "bad", "--other-etrecord", tmp_path / "bad")
    assert status == 2 and "no ETRecord" in err


def test_compare_takes_either_program_from_stdin():
    content = LENET.read_bytes()
    for order in (("-", LENET), (LENET, "-")):
        status, out, _ = command("compare", *order, "--json", stdin=content)
        assert status == 0 and json.loads(out)["equal"] is True
    assert command("compare", "-", "-")[0] == 2


def test_sizes_and_pipes(tmp_path):
    status, out, _ = command("inspect", LENET, "--sizes")
    assert status == 0 and "constants: 16, 57,960 bytes" in out and "48,000  float32 [40, 300]" in out
    status, out, _ = command("inspect", LENET, "--sizes", "--json")
    found = json.loads(out)["sizes"]
    assert [r["bytes"] for r in found["constants"]] == sorted((r["bytes"] for r in found["constants"]), reverse=True)
    done = subprocess.run([sys.executable, "-m", "etude", "run", "-", "--output", "-"], input=LENET.read_bytes(), capture_output=True)
    x = standard_normal((2, 1, 28, 28))
    want = etude.load(LENET).load_method("forward")(x)[0]
    np.testing.assert_array_equal(np.load(io.BytesIO(done.stdout))["out0"], want)


# ---- inside delegates ------------------------------------------------------------------------------------------------


def test_nodes_of_xnnpack_are_listed_inside_their_delegate():
    case = np.load(CORPUS / "x_mobilenetv2.npz")
    method = etude.load(CORPUS / "x_mobilenetv2.pte").load_method("forward")
    x = case["forward__in0"]
    nodes = []
    with method.trace(lambda e: e.node is not None and e.moment == "after" and nodes.append((e.name, np.array(e.arguments[-1])))):
        want = method(x)[0]
    with etude.profile(method) as p:
        for _ in range(2):
            np.testing.assert_array_equal(method(x)[0], want)
    delegates, inner = ([r for r in p.rows if r.kind == kind] for kind in ("delegate", "node"))
    assert {r.name for r in delegates} == {"XnnpackBackend"} and {r.instruction for r in inner} == {r.instruction for r in delegates}
    assert {"Conv2d", "DepthwiseConv2d", "FullyConnected"} <= {r.name for r in inner} == {name for name, _ in nodes}
    assert all(r.node is not None and r.calls == 2 for r in inner)
    assert sum(r.total for r in inner) <= sum(r.total for r in delegates)
    assert "nodes of delegates" in p.table()
    np.testing.assert_array_equal(nodes[-1][1].reshape(want.shape), want)  # the last node makes the output

    def stop(event):
        if event.node is not None and event.name == "FullyConnected":
            raise KeyError("enough")

    with pytest.raises(etude.EtudeError, match="enough"), method.trace(stop):
        method(x)
    np.testing.assert_array_equal(method(x)[0], want)


def test_operations_of_nodes():
    method = etude.load(CORPUS / "x_mobilenetv2.pte").load_method("forward")
    shapes = []

    def look(event):
        if event.node is not None and event.moment == "after":
            shapes.append((event.name, [a.shape for a in event.arguments]))

    x = np.zeros(method.metadata.inputs[0].tensor.sizes(), np.float32)
    with method.trace(look):
        method(x)
    with etude.profile(method) as p:
        method(x)
    nodes = [r for r in p.rows if r.node is not None]
    assert [n.name for n in nodes] == [name for name, _ in shapes]
    for node, (name, sizes) in zip(nodes, shapes):
        if name == "Conv2d":  # filter [out, height, width, in]
            assert node.flops == 2 * np.prod(sizes[-1]) * np.prod(sizes[1][1:])
        elif name == "DepthwiseConv2d":  # filter [1, height, width, channels]
            assert node.flops == 2 * np.prod(sizes[-1]) * np.prod(sizes[1][1:3])
        elif name == "FullyConnected":
            assert node.flops == 2 * np.prod(sizes[-1]) * sizes[1][1]
        else:
            assert node.flops is None
        assert node.bytes == sum(4 * np.prod(s) for s in sizes)
    delegates = [r for r in p.rows if r.kind == "delegate"]
    assert sum(d.flops for d in delegates) == sum(n.flops or 0 for n in nodes) and all(d.gflops > 0 for d in delegates)


# ---- loading ---------------------------------------------------------------------------------------------------------


def test_loading_is_split_into_its_parts():
    begun = time.perf_counter_ns()
    with etude.profile_load() as p:
        method = etude.load(CORPUS / "x_mobilenetv2.pte").load_method("forward")
    whole = time.perf_counter_ns() - begun
    names = [row.name for row in p.rows]
    assert names[:4] == ["opening files", "reading the program", "verifying", "building"]
    assert [n for n in names if n.startswith("initialising")] == [f"initialising XnnpackBackend (delegate {i})" for i in range(2)]
    parts = {row.name: row for row in p.rows}
    assert parts["packing weights"].within and parts["reading segments"].within
    initialising = sum(row.total for name, row in parts.items() if name.startswith("initialising"))
    assert 0 < parts["packing weights"].total <= initialising < p.total <= whole
    nodes = []
    with method.trace(lambda e: e.node is not None and e.moment == "after" and nodes.append(e.name)):
        method(np.zeros(method.metadata.inputs[0].tensor.sizes(), np.float32))
    weighted = sum(n in ("Conv2d", "DepthwiseConv2d", "FullyConnected") for n in nodes)
    assert parts["packing weights"].calls == weighted > 20  # once for each node with weights
    assert "initialising XnnpackBackend" in str(p) and "<td>verifying</td>" in p._repr_html_()
    assert p.to_dict()["total_ns"] == p.total == sum(row.total for row in p.rows if not row.within)


def test_loading_of_others_is_not_measured():
    with etude.profile_load() as p:
        pass
    etude.load(CORPUS / "lenet.pte").load_method("forward")
    assert p.rows == [] and p.total == 0
    with etude.profile_load() as outer:
        etude.load(CORPUS / "lenet.pte").load_method("forward")
    assert "computing constants" in str(outer) and not any("initialising" in row.name for row in outer.rows)


def test_run_tells_of_loading():
    status, out, _ = command("run", CORPUS / "x_mobilenetv2.pte", "--profile", "--json")
    rows = json.loads(out)["loading"]["rows"]
    assert status == 0 and {"verifying", "packing weights"} <= {row["name"] for row in rows}


# ---- JSON, and stdin for a file --------------------------------------------------------------------------------------


def test_every_command_that_reads_a_program_speaks_json_and_takes_stdin():
    content = LENET.read_bytes()
    status, out, _ = command("run", "-", "--json", stdin=content)
    assert status == 0 and json.loads(out)["method"] == "forward"
    status, out, _ = command("check", "-", "--json", stdin=content)
    assert status == 0 and json.loads(out)["can_run"] is True and json.loads(out)["methods"][0]["memory_peak"] > 0
    status, out, _ = command("inspect", "-", "--json", "--sizes", "--instructions", stdin=content)
    found = json.loads(out)
    assert status == 0 and found["file_size"] == len(content) and len(found["methods"][0]["instructions"]) == 13
    assert command("inspect", "-", "--plan", "--sizes", stdin=content)[0] == 0


def test_check_says_what_is_missing_in_json():
    status, out, _ = command("check", CORPUS.parent / "data/prefill_decode.pte", "--json", "--method", "decode")
    assert status == 2  # no such option
    status, out, _ = command("check", CORPUS.parent / "data/backends.pte", "--json")
    report = json.loads(out)
    assert status == 1 and not report["can_run"]
    problems = [p for method in report["methods"] for p in method["problems"]]
    assert problems and all(method["memory_peak"] is None for method in report["methods"] if method["problems"])


def test_run_looks_inside_in_json(tmp_path):
    status, out, _ = command("run", LENET, "--dump", tmp_path / "d", "--check-finite", "--json")
    report = json.loads(out)
    assert status == 0 and len(report["results"]) == 19 and report["first_not_finite"] is None
    assert np.load(tmp_path / "d" / report["results"][-1]["file"]).shape == tuple(report["results"][-1]["shape"])
    np.save(tmp_path / "x.npy", np.full((2, 1, 28, 28), np.inf, np.float32))
    status, out, _ = command("run", LENET, "--check-finite", "--json", "--input", f"0={tmp_path / 'x.npy'}")
    first = json.loads(out)["first_not_finite"]
    assert status == 1 and (first["instruction"], first["name"]) == (0, "aten::convolution.out")


def test_sizes_list_payloads():
    status, out, _ = command("inspect", CORPUS / "x_mobilenetv2.pte", "--sizes", "--json")
    sizes = json.loads(out)["sizes"]
    assert status == 0 and sizes["payloads"][0]["backend"] == "XnnpackBackend" and sizes["payloads"][0]["bytes"] > 0
    assert {"delegate", "named"} <= {s["kind"] for s in sizes["segments"]}
