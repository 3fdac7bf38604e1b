"""Bad input to every public function of etude.emit: an error of the package, which names what is wrong."""

import inspect

import numpy as np
import pytest

import etude.emit
from etude.emit import (
    BuildError,
    DataFile,
    DType,
    EmitError,
    FormatError,
    ModelError,
    PlanError,
    ProgramBuilder,
    data_file_bytes,
    plan_method,
    program_bytes,
    read_data_file,
    read_program,
    spec,
    verify_plan,
    write_data_file,
    write_program,
)
from etude.emit import describe as describe_module
from etude.emit import listing as listing_module
from etude.emit import picture as picture_module
from etude.emit.diff import diff_programs
from etude.emit.extract import extract_constant, extract_delegate, extract_methods, extract_named
from etude.emit.files import write_files
from etude.emit.merge import Source, merge_programs
from etude.emit.model import (
    Allocation,
    Chain,
    CompileSpec,
    Delegate,
    ExternalEntry,
    Int,
    KernelCall,
    TensorLayout,
)
from paths import CORPUS


def foreign():
    return ProgramBuilder().method("other").input("float32", (2, 3))


JUNK = {
    "None": None, "number": 3, "negative": -1, "float": 1.5, "text": "abc", "empty text": "", "bytes": b"abc", "empty list": [],
    "dict": {}, "object": object(), "mixed tuple": (1, "a"), "negative tuple": (-1,), "large tuple": (2**40,), "list of None": [None],
    "bool": True, "array": np.zeros(2), "nan": float("nan"), "large": 2**70, "foreign ref": foreign(),
}  # fmt: skip
"""Values of which most are wrong wherever they are put."""


def loop(m, count):
    with m.loop(count):
        pass


def branch(m, condition):
    with m.if_else(condition):
        pass


def branch_result(m, value):
    with m.if_else(m.variable(True)) as sides:
        sides.result(value)


OUT = ("float32", (2,))

#: (function, argument): call with (program, method, input, junk); what it makes is built and written afterwards.
CALLS = {
    "ProgramBuilder alignment": lambda p, m, x, j: ProgramBuilder(alignment=j),
    "method name": lambda p, m, x, j: p.method(j).output(p.methods[j].input("float32", (2,))),
    "method plan_inputs": lambda p, m, x, j: p.method("a", plan_inputs=j).output(p.methods["a"].input_scalar(1)),
    "constant_method name": lambda p, m, x, j: p.constant_method(j, 1),
    "constant_method value": lambda p, m, x, j: p.constant_method("v", j),
    "buffer name": lambda p, m, x, j: p.buffer(j, "float32", (2,)),
    "buffer dtype": lambda p, m, x, j: p.buffer("b", j, (2,)),
    "buffer shape": lambda p, m, x, j: p.buffer("b", "float32", j),
    "buffer initial": lambda p, m, x, j: p.buffer("b", initial=j),
    "buffer dim_order": lambda p, m, x, j: p.buffer("b", "float32", (2, 3), dim_order=j),
    "named_data key": lambda p, m, x, j: p.named_data(j, b""),
    "named_data data": lambda p, m, x, j: p.named_data("k", j),
    "external_data file": lambda p, m, x, j: p.external_data(j, "k", b""),
    "external_data key": lambda p, m, x, j: p.external_data("f", j, b""),
    "external_data data": lambda p, m, x, j: p.external_data("f", "k", j),
    "external_data layout": lambda p, m, x, j: p.external_data("f", "k", b"", j),
    "write path": lambda p, m, x, j: (m.output(x), p.write(j)) if not isinstance(j, str | bytes) else None,
    "to_bytes report": lambda p, m, x, j: (m.output(x), p.to_bytes(report=j)),
    "add value": lambda p, m, x, j: m.add(j),
    "input dtype": lambda p, m, x, j: m.input(j, (2,)),
    "input shape": lambda p, m, x, j: m.input("float32", j),
    "input dim_order": lambda p, m, x, j: m.input("float32", (2, 3), dim_order=j),
    "input dynamic": lambda p, m, x, j: m.input("float32", (2, 3), dynamic=j),
    "input memory_id": lambda p, m, x, j: m.input("float32", (2, 3), memory_id=j),
    "input_scalar value": lambda p, m, x, j: m.input_scalar(j),
    "constant array": lambda p, m, x, j: m.constant(j),
    "constant dtype": lambda p, m, x, j: m.constant(np.zeros(2, np.float32), j),
    "constant name": lambda p, m, x, j: m.constant(np.zeros(2), name=j),
    "constant dim_order": lambda p, m, x, j: m.constant(np.zeros((2, 3)), dim_order=j),
    "external key": lambda p, m, x, j: m.external(j, np.zeros(2)),
    "external array": lambda p, m, x, j: m.external("k", j),
    "external file": lambda p, m, x, j: m.external("k", np.zeros(2), file=j),
    "state name": lambda p, m, x, j: m.state(j, "float32", (2,)),
    "state shape": lambda p, m, x, j: m.state("s", "float32", j),
    "state initial": lambda p, m, x, j: m.state("s", initial=j),
    "use buffer": lambda p, m, x, j: m.use(j),
    "variable value": lambda p, m, x, j: m.variable(j),
    "scratch shape": lambda p, m, x, j: m.scratch("float32", j),
    "spec dtype": lambda p, m, x, j: spec(j, (2,)),
    "spec shape": lambda p, m, x, j: spec("float32", j),
    "view x": lambda p, m, x, j: m.view(j, (6,)),
    "view shape": lambda p, m, x, j: m.view(x, j),
    "dynamic_view x": lambda p, m, x, j: m.dynamic_view(j, (6,), (6,)),
    "dynamic_view shape": lambda p, m, x, j: m.dynamic_view(x, j, (6,)),
    "dynamic_view bounds": lambda p, m, x, j: m.dynamic_view(x, (6,), j),
    "look x": lambda p, m, x, j: m.look(j),
    "output refs": lambda p, m, x, j: m.output(j),
    "call operator": lambda p, m, x, j: m.call(j, x),
    "call custom operator": lambda p, m, x, j: m.call(j, x, custom=True, out=OUT),
    "call tensor": lambda p, m, x, j: m.call("aten::add.out", x, j),
    "call scalar": lambda p, m, x, j: m.call("aten::add.Scalar_out", x, j),
    "call int": lambda p, m, x, j: m.call("aten::_softmax.out", x, j, False),
    "call bool": lambda p, m, x, j: m.call("aten::_softmax.out", x, 0, j),
    "call ints": lambda p, m, x, j: m.call("aten::permute_copy.out", x, j),
    "call dtype": lambda p, m, x, j: m.call("aten::cumsum.out", x, 0, dtype=j),
    "call tensors": lambda p, m, x, j: m.call("aten::cat.out", j),
    "call out": lambda p, m, x, j: m.call("aten::relu.out", x, out=j),
    "call outs": lambda p, m, x, j: m.call("aten::topk.values", x, 1, out=j),
    "call custom argument": lambda p, m, x, j: m.call("my::op.out", j, custom=True, out=OUT),
    "call custom out": lambda p, m, x, j: m.call("my::op.out", x, custom=True, out=j),
    "delegate backend": lambda p, m, x, j: m.delegate(j, b"1", [x], [OUT]),
    "delegate payload": lambda p, m, x, j: m.delegate("B", j, [x], [OUT]),
    "delegate inputs": lambda p, m, x, j: m.delegate("B", b"1", j, [OUT]),
    "delegate outputs": lambda p, m, x, j: m.delegate("B", b"1", [x], j),
    "delegate specs": lambda p, m, x, j: m.delegate("B", b"1", [x], [OUT], specs=j),
    "delegate spec": lambda p, m, x, j: m.delegate("B", b"1", [x], [OUT], specs={"k": j}),
    "delegate named_data": lambda p, m, x, j: m.delegate("B", b"1", [x], [OUT], named_data=j),
    "delegate inline": lambda p, m, x, j: m.delegate("B", b"1", [x], [OUT], inline=j),
    "place label": lambda p, m, x, j: m.place(j),
    "jump_if_false condition": lambda p, m, x, j: m.jump_if_false(j, m.label()),
    "jump_if_false label": lambda p, m, x, j: m.jump_if_false(m.variable(True), j),
    "jump label": lambda p, m, x, j: m.jump(j),
    "move source": lambda p, m, x, j: m.move(j, x),
    "move target": lambda p, m, x, j: m.move(x, j),
    "copy source": lambda p, m, x, j: m.copy(j, x),
    "copy target": lambda p, m, x, j: m.copy(x, j),
    "if_else condition": lambda p, m, x, j: branch(m, j),
    "result refs": lambda p, m, x, j: branch_result(m, j),
    "loop count": lambda p, m, x, j: loop(m, j),
    "collect target": lambda p, m, x, j: m.collect(j, x, m.variable(0)),
    "collect row": lambda p, m, x, j: m.collect(m.scratch("float32", (4, 2, 3), dynamic=True), j, m.variable(0)),
    "collect index": lambda p, m, x, j: m.collect(m.scratch("float32", (4, 2, 3), dynamic=True), x, j),
}


def small():
    """A program with one method, not yet built."""
    p = ProgramBuilder()
    m = p.method("forward")
    return p, m, m.input("float32", (2, 3))


def attempt(call, *arguments):
    """The error, if any; anything but an error of the package or of the system fails the test."""
    try:
        call(*arguments)
    except (EmitError, OSError) as error:
        assert str(error)
        return error
    return None


@pytest.mark.parametrize("name", CALLS)
def test_builder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = 0
    for junk in JUNK.values():
        p, m, x = small()
        if attempt(CALLS[name], p, m, x, junk) is not None:
            refused += 1
            p, m, x = small()
        # What was accepted gives a sound file.
        m.output(m.call("aten::relu.out", x))
        content = p.to_bytes()
        assert program_bytes(read_program(content)) == content
    assert refused >= (1 if "constant" in name and "name" not in name else 5)


PROGRAM = read_program(CORPUS / "two_methods.pte")
METHOD = PROGRAM.methods[0]

FUNCTIONS = {
    "read_program source": read_program,
    "read_data_file source": read_data_file,
    "program_bytes program": program_bytes,
    "program_bytes segment_alignment": lambda j: program_bytes(PROGRAM, segment_alignment=j),
    "program_bytes constant_alignment": lambda j: program_bytes(PROGRAM, constant_alignment=j),
    "program_bytes report": lambda j: program_bytes(PROGRAM, report=j),
    "data_file_bytes data": data_file_bytes,
    "data_file_bytes alignment": lambda j: data_file_bytes(DataFile(), alignment=j),
    "write_program program": lambda j: write_program(j, "x.pte"),
    "write_program path": lambda j: write_program(PROGRAM, j) if not isinstance(j, str | bytes) else EmitError(),
    "write_data_file data": lambda j: write_data_file(j, "x.ptd"),
    "write_files contents": write_files,
    "plan_method method": plan_method,
    "plan_method states": lambda j: plan_method(METHOD, states=j),
    "plan_method views": lambda j: plan_method(METHOD, views=j),
    "plan_method memory": lambda j: plan_method(METHOD, memory=j),
    "plan_method fixed": lambda j: plan_method(METHOD, fixed=j),
    "plan_method sizes": lambda j: plan_method(METHOD, sizes=j),
    "plan_method alignment": lambda j: plan_method(METHOD, alignment=j),
    "verify_plan method": verify_plan,
    "verify_plan views": lambda j: verify_plan(METHOD, views=j),
    "extract_methods program": lambda j: extract_methods(j, ["a"]),
    "extract_methods names": lambda j: extract_methods(PROGRAM, j),
    "extract_constant method": lambda j: extract_constant(PROGRAM, j, 0),
    "extract_constant which": lambda j: extract_constant(PROGRAM, "encode", j),
    "extract_delegate index": lambda j: extract_delegate(PROGRAM, "encode", j),
    "extract_named key": lambda j: extract_named(PROGRAM, j),
    "merge_programs sources": merge_programs,
    "merge_programs source": lambda j: merge_programs([j]),
    "Source label": lambda j: merge_programs([Source(j, PROGRAM)]),
    "Source program": lambda j: merge_programs([Source("a", j)]),
    "Source rename": lambda j: merge_programs([Source("a", PROGRAM, j)]),
    "merge_programs state": lambda j: merge_programs([Source("a", PROGRAM)], state=j),
    "diff_programs a": lambda j: diff_programs(j, PROGRAM),
    "diff_programs b": lambda j: diff_programs(PROGRAM, j),
    "list_method method": listing_module.list_method,
    "list_method width": lambda j: listing_module.list_method(METHOD, width=j),
    "list_program program": listing_module.list_program,
    "list_sharing program": listing_module.list_sharing,
    "list_traces method": listing_module.list_traces,
    "plan_text method": picture_module.plan_text,
    "plan_text width": lambda j: picture_module.plan_text(METHOD, width=j),
    "plan_text height": lambda j: picture_module.plan_text(METHOD, height=j),
    "plan_svg methods": picture_module.plan_svg,
    "plan_svg width": lambda j: picture_module.plan_svg(METHOD, width=j),
    "describe_instructions method": describe_module.describe_instructions,
    "describe_plan method": describe_module.describe_plan,
    "describe_sharing program": describe_module.describe_sharing,
    "describe_traces method": describe_module.describe_traces,
    "operator_schema name": etude.emit.operator_schema,
    "operator_names containing": etude.emit.operator_names,
    "as_dtype value": etude.emit.as_dtype,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    accepted = [key for key, junk in JUNK.items() if attempt(FUNCTIONS[name], junk) is None]
    argument = name.split()[1]
    harmless = {"None", "number", "text", "bytes", "dict", "bool", "empty text", "empty list", "large"}
    assert set(accepted) <= harmless, accepted
    assert len(accepted) < 4
    if argument in ("program", "method", "methods", "a", "b", "data", "sources", "source"):
        assert accepted == []
    assert not any(tmp_path.iterdir()) or "write_program" in name or "write_files" in name


def test_every_public_function_is_here():
    """What is exported is tried above, or checked by the reader and the model."""
    tried = " ".join([*CALLS, *FUNCTIONS])
    for name in etude.emit.__all__:
        thing = getattr(etude.emit, name)
        if inspect.isfunction(thing):
            assert f"{name} " in tried, name
    for kind in (ProgramBuilder, etude.emit.MethodBuilder):
        for name, thing in vars(kind).items():
            arguments = len(inspect.signature(thing).parameters) if inspect.isfunction(thing) else 0
            if arguments > 1 and not name.startswith("_") and name not in ("finish", "literal"):
                assert f"{name} " in tried, name


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda p, m, x: m.input("float32", "abc"), BuildError, "input: shape must be list of int, not 'abc'"),
        (lambda p, m, x: m.input("floot32", (2,)), EmitError, "'floot32' is not an element type; did you mean float32"),
        (lambda p, m, x: p.method(7), BuildError, "method: name must be str, not 7"),
        (lambda p, m, x: p.named_data("k", 3), BuildError, "named_data: data must be bytes, not 3"),
        (lambda p, m, x: m.delegate("B", 3, [x], []), BuildError, "delegate: payload must be bytes, not 3"),
        (lambda p, m, x: m.delegate("B", b"", [x], [], specs={"k": "3"}), BuildError, "specs must be dict of str to bytes or None"),
        (lambda p, m, x: m.delegate("B", b"", [np.zeros(2)], []), BuildError, "inputs must be list of Ref, not"),
        (lambda p, m, x: m.use("rows"), BuildError, "use: buffer must be SharedBuffer, not 'rows'"),
        (lambda p, m, x: m.call("aten::_softmax.out", x, 2, False), BuildError, "dim 2 is out of range for 2 dimensions"),
        (lambda p, m, x: m.call("aten::topk.values", x, 1, out=3), BuildError, "aten::topk.values: out=3 is no list"),
        (lambda p, m, x: m.dynamic_view(x, [6], [-6]), BuildError, "size 6 is not possible within bound -6"),
        (lambda p, m, x: m.dynamic_view(x, [6], [6, 1]), BuildError, "1 sizes and 2 bounds"),
        (lambda p, m, x: m.dynamic_view(x, [-1, -1], [2, 3]), BuildError, "only one of the sizes"),
        (lambda p, m, x: loop(m, -1), BuildError, "count -1 is negative"),
        (lambda p, m, x: loop(m, x), BuildError, "loop: count must be an int"),
        (lambda p, m, x: m.input("float32", (2,), memory_id=10**9), BuildError, "memory id 1000000000; possible are 1 to 1024"),
        (lambda p, m, x: plan_method(METHOD, memory={METHOD.inputs[0]: 10**9}), PlanError, "memory id 1000000000; possible are 1 to 1024"),
        (lambda p, m, x: plan_method(METHOD, states=[999]), PlanError, "states: value 999 is no tensor of method"),
        (lambda p, m, x: extract_methods(PROGRAM, []), EmitError, "no method is named"),
        (lambda p, m, x: merge_programs([]), EmitError, "no program to merge"),
        (lambda p, m, x: ProgramBuilder(alignment=24), EmitError, "alignment 24"),
        (lambda p, m, x: picture_module.plan_text(METHOD, width=0), EmitError, "width 0"),
    ],
)
def test_the_thing_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call(*small())


def altered(change):
    """A good program with one thing changed."""
    p, m, x = small()
    m.output(*m.delegate("B", b"12", [m.call("aten::relu.out", x)], [("float32", (2,))], specs={"k": b"1"}))
    program = p.build()
    change(program, program.methods[0])
    return program


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, m: setattr(p, "methods", None), "Program.methods must be list of Method, not None"),
        (lambda p, m: setattr(p, "version", "1"), "Program.version must be int, not '1'"),
        (lambda p, m: p.named_data.update(k="text"), "Program.named_data must be dict of str to bytes"),
        (lambda p, m: setattr(m, "name", 3), "Method.name must be str, not 3"),
        (lambda p, m: setattr(m, "inputs", [None]), "Method.inputs must be list of int"),
        (lambda p, m: m.values.append("x"), "Method.values must be list of"),
        (lambda p, m: m.values.append(Int(1.5)), r"method 'forward', value \d+: Int.value must be int, not 1.5"),
        (lambda p, m: setattr(m.values[0], "name", 3), "method 'forward', value 0: Tensor.name must be str or None, not 3"),
        (lambda p, m: setattr(m.values[0], "data", bytearray(24)), "value 0: Tensor.data must be bytes or None"),
        (lambda p, m: setattr(m.values[0], "dtype", "float32"), "value 0: Tensor.dtype must be DType, not 'float32'"),
        (lambda p, m: setattr(m.values[0], "allocation", Allocation(1, 1.5)), "value 0: Allocation.offset must be int"),
        (lambda p, m: m.chains[0].instructions.append("x"), "Chain.instructions must be list of"),
        (lambda p, m: m.chains.append(Chain([KernelCall(3, [])])), "KernelCall.operator must be str, not 3"),
        (lambda p, m: m.delegates.append(Delegate("B", "12")), "method 'forward', delegate 1: Delegate.payload must be bytes"),
        (lambda p, m: m.delegates[0].specs.append(CompileSpec("k", 3)), "delegate 0: CompileSpec.value must be bytes, not 3"),
    ],
)
def test_fields_of_the_model_are_named(change, words):
    with pytest.raises(ModelError, match=words):
        program_bytes(altered(change))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("x", "DataFile.entries must be dict of str to ExternalEntry"),
        (ExternalEntry("x"), "entry 'w': ExternalEntry.data must be bytes, not 'x'"),
        (ExternalEntry(b"", TensorLayout(DType.int8, (1,), (0,))), "entry 'w': 0 bytes of data for a tensor of 1 bytes"),
        (ExternalEntry(b"", TensorLayout(DType.int8, (-1,), (0,))), r"entry 'w': tensor has sizes \[-1\]"),
        (ExternalEntry(b"", TensorLayout("int8", (1,), (0,))), "entry 'w': TensorLayout.dtype must be DType"),
    ],
)
def test_entries_of_data_files_are_named(entry, words):
    with pytest.raises(ModelError, match=words):
        data_file_bytes(DataFile({"w": entry}))


def test_errors_of_the_format_name_the_file(tmp_path):
    bad = tmp_path / "bad.pte"
    bad.write_bytes(b"nonsense" * 20)
    for read in (read_program, read_data_file):
        with pytest.raises(FormatError, match=r"bad\.pte: not a \.pt[ed] file.*\(at byte 4\)") as caught:
            read(bad)
        assert caught.value.offset == 4
        with pytest.raises(FormatError, match=r"^not a \.pt[ed] file"):
            read(bad.read_bytes())
