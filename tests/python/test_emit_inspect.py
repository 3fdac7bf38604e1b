"""`etude inspect` with details: what is asked for is shown, as text and as JSON, and agrees with the file."""

import json
import re
from xml.etree import ElementTree

import pytest

from etude.cli import main
from etude.emit import read_program
from etude.emit.model import KernelCall, Tensor
from paths import CORPUS

PTES = sorted(CORPUS.glob("*.pte"))


def inspect(capsys, *arguments, status=0):
    assert main(["inspect", *map(str, arguments)]) == status
    out = capsys.readouterr()
    return out.out if status == 0 else out.err


def test_the_summary_is_short(capsys):
    text = inspect(capsys, CORPUS / "mobilenetv2.pte")
    assert len(text.splitlines()) < 15
    assert "1 method\n" in text and "153 instructions" in text
    assert "unused" not in inspect(capsys, CORPUS / "add.pte")


def test_parts_that_are_asked_for(capsys):
    model = CORPUS / "shared_state.pte"
    text = inspect(capsys, model, "--instructions")
    assert "aten::index_put.out(self=s.slots:f32[4,3]@2:0, indices=[in1], values=%3:f32[3]@1:64, accumulate=False)" in text
    assert text.startswith("method get\n") and "\n\nmethod put\n" in text and "memory 2: 48 B, at most" not in text
    text = inspect(capsys, model, "--plan", "--method", "put")
    assert text.startswith("method put, 3 instructions\nmemory 1: 80 B, ") and "method get" not in text
    assert "A  s.slots  f32[4,3]       0     48  always  state" in text
    text = inspect(capsys, model, "--shared")
    assert text == "shared\n  state, 48 B for 2 uses\n    s.slots, 48 B at @2:0: get, put\n"
    assert inspect(capsys, CORPUS / "add.pte", "--shared") == "shared\n  nothing\n"


def test_traces(capsys):
    text = inspect(capsys, CORPUS / "stack_traces.pte", "--traces")
    assert "2  aten::sigmoid.out -> %10\n" in text and "at export.py:596 in forward: return torch.sigmoid(y) + x" in text
    text = inspect(capsys, CORPUS / "stack_traces.pte", "--traces", "--instructions")
    assert text.count("return torch.sigmoid(y) + x") == 2 and "-> %10:f32[2,4] @1:32+32\n" in text
    assert "no stack traces" in inspect(capsys, CORPUS / "add.pte", "--traces")
    assert "no stack traces" in inspect(capsys, CORPUS / "add.pte", "--traces", "--instructions")


def test_svg_has_a_panel_for_each_memory(capsys, tmp_path):
    target = tmp_path / "plan.svg"
    assert inspect(capsys, CORPUS / "shared_state.pte", "--svg", target) == f"{target}: memory plan of get, put\n"
    root = ElementTree.parse(target).getroot()
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in texts if t.startswith("memory")] == [
        "memory 1: 96 B, at most 76 B in use at once, 5 buffers",
        "memory 2: 48 B, at most 48 B in use at once, 1 buffer",
        "memory 1: 80 B, at most 68 B in use at once, 4 buffers",
        "memory 2: 48 B, at most 48 B in use at once, 1 buffer",
    ]
    height = float(root.get("height"))
    boxes = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    assert all(float(r.get("y")) >= 0 and float(r.get("y")) + float(r.get("height")) <= height + 0.01 for r in boxes)
    inspect(capsys, CORPUS / "constant_methods.pte", "--svg", target)
    assert "no planned memory" in target.read_text()


@pytest.mark.parametrize("path", PTES, ids=lambda p: p.stem)
def test_json_agrees_with_the_file(path, capsys):
    report = json.loads(inspect(capsys, path, "--instructions", "--plan", "--shared", "--traces", "--json"), parse_constant=pytest.fail)
    program = read_program(path)
    assert [m["name"] for m in report["methods"]] == [m.name for m in program.methods]
    for entry, method in zip(report["methods"], program.methods):
        instructions = [i for _, _, i in method.instructions()]
        assert entry["num_instructions"] == len(entry["instructions"]) == len(instructions)
        for shown, instruction in zip(entry["instructions"], instructions):
            if not isinstance(instruction, KernelCall):
                continue
            assert shown["operator"] == instruction.operator
            operands = [*shown["arguments"], *shown["results"]]
            assert {o["number"] for o in operands} == set(instruction.args) - hidden_lists(method, shown, instruction)
            for o in operands:
                check_operand(o, method.values[o["number"]])
        assert [m["size"] for m in entry["plan"]] == method.buffer_sizes == entry["planned_buffers"]
        for memory in entry["plan"]:
            assert memory["most_in_use"] <= memory["size"]
            for buffer in memory["buffers"]:
                assert buffer["offset"] + buffer["nbytes"] <= memory["size"]
                assert all(-1 <= a <= b <= len(instructions) for a, b in buffer["times"])


def hidden_lists(method, shown, instruction):
    """The value that stands for all results together is not shown besides them."""
    last = instruction.args[-1:]
    return {k for k in last if k not in {o["number"] for o in [*shown["arguments"], *shown["results"]]}}


def check_operand(shown, value):
    if isinstance(value, Tensor):
        assert shown["sizes"] == list(value.sizes) and shown["dtype"] == value.dtype.name
        if value.allocation is None:
            assert "offset" not in shown
        else:
            assert (shown["memory_id"], shown["offset"]) == (value.allocation.memory_id, value.allocation.offset)


def test_json_holds_only_what_is_asked_for(capsys):
    model = CORPUS / "stack_traces.pte"
    assert not {"instructions", "plan", "traces"} & set(json.loads(inspect(capsys, model, "--json"))["methods"][0])
    report = json.loads(inspect(capsys, model, "--json", "--traces"))
    traces = report["methods"][0]["traces"]
    assert [t["index"] for t in traces] == [0, 1, 2, 3]
    assert traces[2]["trace"] == [
        {"file": "export.py", "line": 596, "function": "forward", "code": "return torch.sigmoid(y) + x"}
    ]
    assert "shared" not in report
    report = json.loads(inspect(capsys, CORPUS / "shared_state.pte", "--json", "--shared", "--method", "get"))
    assert [m["name"] for m in report["methods"]] == ["get"]
    shared = {"kind": "state", "name": "s.slots", "nbytes": 48, "users": ["get", "put"], "memory_id": 2, "offset": 0}
    assert report["shared"] == [shared]


@pytest.mark.parametrize("option", ["--instructions", "--plan", "--shared", "--traces", "--json"])
def test_bad_input_is_named(option, capsys, tmp_path):
    bad = tmp_path / "bad.pte"
    bad.write_bytes(b"nonsense" * 20)
    assert re.match(r"etude inspect: .*not a \.pte file", inspect(capsys, bad, option, status=2))
    assert "missing.pte" in inspect(capsys, tmp_path / "missing.pte", option, status=3)
    assert "'nope'" in inspect(capsys, CORPUS / "add.pte", option, "--method", "nope", status=2)
