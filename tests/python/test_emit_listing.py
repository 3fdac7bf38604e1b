"""Listings and pictures of programs: everything is shown, and what is drawn is what the plan says."""

import re
from xml.etree import ElementTree

import pytest

import emit_programs
from counting import lines_run
from etude.emit import DType, read_program
from etude.emit.flow import conflict
from etude.emit.listing import find_sharing, list_method, list_program, list_sharing, list_traces
from etude.emit.model import Allocation, Chain, Int, KernelCall, Method, Tensor
from etude.emit.picture import plan_svg, plan_text, spans
from paths import CORPUS, ROOT

PTES = sorted(CORPUS.glob("*.pte"))


def test_every_instruction_is_listed():
    for path in PTES:
        for method in read_program(path).methods:
            lines = [line for line in list_method(method).splitlines() if re.match(r"  +\d+  ", line)]
            wanted = [i for _, _, i in method.instructions()]
            assert len(lines) == len(wanted), path.stem
            for line, instruction in zip(lines, wanted):
                if isinstance(instruction, KernelCall):
                    assert f" {instruction.operator}(" in line


def test_a_listing():
    text = list_method(read_program(CORPUS / "cond.pte").methods[0])
    assert "input 0: in0 f32[2,4] @1:112+32" in text
    assert "aten::sum.IntList_out(self=in0:f32[2,4]@1:112, dim=[], keepdim=False, dtype=None) -> %5:f32[] @1:80+4" in text
    assert "mat1=in0:f32[2,4]@1:112, mat2=%12:f32[4,3]@1:0, beta=1" in text
    assert "self=%0:f32[3,4]@const, dims=[1,0]" in text
    assert "jump to 8 if %9:bool[]@1:144 is false" in text
    assert " 6  move %19:f32[2,3]@1:0 -> out0" in text
    assert " 7  jump to 13" in text
    text = list_method(read_program(CORPUS / "map_loop.pte").methods[0])
    assert "aten::select_copy.int_out(self=in0:f32[5,3]@1:128, dim=0, index=%3(0)) -> %7:f32[3] @1:48+12" in text
    assert "output 0: out0 f32[<=5,<=3]" in text
    text = list_program(read_program(CORPUS / "shared_state.pte"))
    assert "-> s.slots:f32[4,3] @2:0+48 state 's.slots'" in text
    assert "s.slots, 48 B at @2:0: get, put" in text


def test_long_lines_are_wrapped_between_operands():
    method = read_program(CORPUS / "mobilenetv2.pte").methods[0]
    narrow = list_method(method, width=100).splitlines()
    assert max(map(len, narrow)) <= 100
    wide = list_method(method).splitlines()
    assert "".join("".join(narrow).split()) == "".join("".join(wide).split())
    assert any(line.startswith("           ") for line in narrow)


def test_delegates_and_shared_contents_are_listed():
    program = emit_programs.delegate_methods((ROOT / "tests/data/xnnpack/x_linear.pte").read_bytes(), 3).build()
    text = list_program(program)
    assert "delegate 0: XnnpackBackend, payload" in text
    assert "delegate 0 XnnpackBackend(in0:f32" in text
    payload = len(program.methods[0].delegates[0].payload)
    shared = list_sharing(program)
    assert f"1 payload, {payload} B for 3 uses\n  XnnpackBackend, {payload} B: method0:0, method1:0, method2:0" in shared


def test_sharing_is_counted():
    """The decoder's file: 20 constants for both methods, and the cache."""
    program = read_program(CORPUS / "llama_tiny.pte")
    found = find_sharing(program)
    constants = [s for s in found if s.kind == "constant"]
    assert len(constants) == 20
    assert all({u.partition(":")[0] for u in s.users} == {"prefill", "decode"} for s in constants)
    states = {s.name: (s.size, s.place, s.users) for s in found if s.kind == "state"}
    assert states == {
        f"layers.{i // 2}.{'kv'[i % 2]}c": (4096, (2, 4096 * i), ["decode", "prefill"]) for i in range(4)
    }
    assert list_sharing(read_program(CORPUS / "add.pte")) == ""


def test_stack_traces():
    method = read_program(CORPUS / "stack_traces.pte").methods[0]
    text = list_traces(method)
    assert "at export.py:" in text
    assert "return torch.sigmoid(y) + x" in text
    assert text.count("aten::") == sum(1 for _ in method.instructions())
    assert list_traces(read_program(CORPUS / "add.pte").methods[0]) == ""


@pytest.mark.parametrize("path", PTES, ids=lambda p: p.stem)
def test_pictures_show_each_byte_once(path):
    """At no time do two buffers of the picture lie over each other, and all is within the plan.

    Except for results of branches: they are drawn as needed after both, though one of them only is.
    """
    for method in read_program(path).methods:
        found, columns = spans(method)
        for i, a in enumerate(found):
            assert a.offset + a.size <= method.buffer_sizes[a.memory_id - 1]
            assert a.columns >> columns == 0
            for b in found[:i]:
                if len(a.uses) > 1 and len(b.uses) > 1:
                    continue
                apart = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
                assert a.memory_id != b.memory_id or apart or not conflict(a.uses, b.uses), (a.name, b.name)
        text, svg = plan_text(method), plan_svg(method)
        rest = sum(map(int, re.findall(r"#  (\d+) more buffer", text)))
        assert len(re.findall(r"^  [A-Za-z0-9]  ", text, re.M)) == len(found) - rest
        root = ElementTree.fromstring(svg)
        titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
        assert len(titles) == sum(len(s.runs()) for s in found)


def test_the_picture_in_words():
    text = plan_text(read_program(CORPUS / "lenet.pte").methods[0])
    assert text.splitlines()[0] == "memory 1: 85632 B, at most 75264 B in use at once, 16 buffers"
    assert re.search(r"A  in0 +f32\[2,1,28,28\] +48000 +6272  start-0 +input\n", text)
    assert re.search(r"B  %19 +f32\[2,6,28,28\] +0 +37632  0-1 +aten::convolution.out\n", text)
    rows = [line for line in text.splitlines() if line.endswith("|")]
    assert len(rows) == 16
    assert {len(row) for row in rows} == {len(rows[0])}
    assert "always" in plan_text(read_program(CORPUS / "counter_initialized.pte").methods[0])
    assert plan_text(read_program(CORPUS / "constant_methods.pte").method("get_vocab_size")) == "no planned memory"


@pytest.mark.parametrize("path", PTES, ids=lambda p: p.stem)
def test_letters_stand_where_the_legend_says(path):
    """Every sign of the map is a buffer that is needed in that time, in those bytes."""
    for method in read_program(path).methods:
        for part in plan_text(method, width=40, height=8).split("\n\n"):
            if not part.startswith("memory"):
                continue
            size = int(re.search(r"memory \d+: (\d+) B", part)[1])
            legend = dict(re.findall(r"^  ([A-Za-z0-9])  (\S+)", part, re.M))
            found = {s.name: s for s in spans(method)[0] if f"memory {s.memory_id}:" in part}
            count = spans(method)[1]
            rows = [re.match(r" +(\d+) \|(.*)\|$", line) for line in part.splitlines()]
            rows = [(int(m[1]), m[2]) for m in rows if m]
            for k, (low, cells) in enumerate(rows):
                high = rows[k - 1][0] + 1 if k else size
                for c, sign in enumerate(cells):
                    if sign not in legend:
                        continue
                    span, first = found[legend[sign]], c * count // len(cells)
                    assert span.offset < high and span.offset + span.size > low
                    ends = max(first + 1, (c + 1) * count // len(cells))
                    assert any(first <= column < ends for a, b in span.runs() for column in range(a, b + 1))


def test_large_plans_are_drawn_in_few_steps():
    """5,000 instructions, half of them with results that are needed for a long time."""
    method = Method("forward", [Tensor(DType.float32, (4,), (0,))], [0], buffer_sizes=[])
    calls = []

    def call(operator, *args):
        at = len(method.values)
        method.values.append(Tensor(DType.float32, (4,), (0,), allocation=Allocation(1, 16 * at)))
        calls.append(KernelCall(operator, [*args, at, at]))
        return at

    one = len(method.values)
    method.values.append(Int(1))
    kept = [call("aten::relu.out", 0) for _ in range(2500)]
    total = 0
    for value in kept:
        total = call("aten::add.out", total, value, one)
    method.outputs, method.chains = [total], [Chain(calls)]
    method.buffer_sizes = [16 * len(method.values)]
    pictures = []
    for draw in (plan_text, plan_svg):
        assert lines_run(lambda draw=draw: pictures.append(draw(method))) < 1000 * 5000
    assert all("5000 buffers" in picture for picture in pictures)


def test_names_are_escaped_in_svg():
    program = emit_programs.make("counters").builder.build()
    method = program.methods[0]
    for _, tensor in method.tensors():
        if tensor.name:
            tensor.name = "<b>&"
    assert "&lt;b&gt;&amp;" in plan_svg(method)
    ElementTree.fromstring(plan_svg(method))
