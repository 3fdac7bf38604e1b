"""Listings and pictures of programs: everything is shown, and what is drawn is what the plan says."""

import re
from xml.etree import ElementTree

import pytest

import emit_programs
from etude.emit import read_program
from etude.emit.flow import conflict
from etude.emit.listing import list_method, list_program, list_sharing, list_traces
from etude.emit.model import KernelCall
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
    assert "aten::sum.IntList_out(self=in0:f32[2,4], dim=[], keepdim=False, dtype=None) -> %5:f32[] @1:80+4" in text
    assert "jump to 8 if %9:bool[] is false" in text
    assert " 6  move %19:f32[2,3] -> out0" in text
    assert " 7  jump to 13" in text
    text = list_method(read_program(CORPUS / "map_loop.pte").methods[0])
    assert "aten::select_copy.int_out(self=in0:f32[5,3], dim=0, index=%3(0)) -> %7:f32[3] @1:48+12" in text
    assert "output 0: out0 f32[<=5,<=3]" in text
    text = list_program(read_program(CORPUS / "shared_state.pte"))
    assert "-> s.slots:f32[4,3] @2:0+48 state 's.slots'" in text
    assert "state s.slots of 48 B at @2:0: get, put" in text


def test_delegates_and_shared_contents_are_listed():
    program = emit_programs.delegate_methods((ROOT / "tests/data/xnnpack/x_linear.pte").read_bytes(), 3).build()
    text = list_program(program)
    assert "delegate 0: XnnpackBackend, payload" in text
    assert "delegate 0 XnnpackBackend(in0:f32" in text
    payload = len(program.methods[0].delegates[0].payload)
    assert f"XnnpackBackend payload of {payload} B: method0:delegate 0, method1:delegate 0, method2:delegate 0" in list_sharing(program)


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
        assert text.count(" B, ") >= len(found)
        root = ElementTree.fromstring(svg)
        titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
        assert len(titles) == sum(len(s.runs()) for s in found)


def test_the_picture_in_words():
    text = plan_text(read_program(CORPUS / "lenet.pte").methods[0])
    assert text.splitlines()[0] == "memory 1: 85632 B, at most 75264 B in use, 16 buffers, 13 instructions"
    assert re.search(r"I in0:f32\[2,1,28,28\] 48000\+6272 B, start-0", text)
    rows = [line for line in text.splitlines() if line.endswith("|")]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert "always" in plan_text(read_program(CORPUS / "counter_initialized.pte").methods[0])


def test_names_are_escaped_in_svg():
    program = emit_programs.make("counters").builder.build()
    method = program.methods[0]
    for _, tensor in method.tensors():
        if tensor.name:
            tensor.name = "<b>&"
    assert "&lt;b&gt;&amp;" in plan_svg(method)
    ElementTree.fromstring(plan_svg(method))
