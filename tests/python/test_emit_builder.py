"""The builder: what it writes, what it refuses, shape rules against exported programs, sizes with shared payloads."""

import numpy as np
import pytest

import emit_programs
import etude
from etude.emit import (
    BuildError,
    DType,
    EmitError,
    ProgramBuilder,
    TensorSpec,
    WriteReport,
    as_dtype,
    program_bytes,
    read_program,
    schemas,
    spec,
)
from etude.emit.infer import Unknown, infer, promote, promote_pair
from etude.emit.model import (
    BoolList,
    DoubleList,
    Int,
    IntList,
    JumpFalse,
    KernelCall,
    Null,
    OptionalTensorList,
    Tensor,
    TensorList,
)
from etude.emit.require import check_arguments, check_result
from paths import CORPUS


@pytest.fixture
def m():
    return ProgramBuilder().method("forward")


@pytest.fixture
def x(m):
    return m.input("float32", (2, 3))


# -- signatures ---------------------------------------------------------------------------------------------------


def test_every_kernel_has_a_signature():
    kernels = etude.Runtime.get().operator_registry.operator_names
    assert len(kernels) > 300
    assert sorted(set(kernels) - set(schemas.operator_names())) == []


def test_signatures_are_in_order_once_each():
    names = list(schemas._lines())
    assert names == sorted(set(names))
    for name in names:
        assert schemas.operator_schema(name).name == name


def test_exported_programs_follow_the_signatures():
    """Every kernel call of the corpus: known operator, as many arguments as its signature says, of the right kinds."""
    kinds = {"int": {"Int", "Null"}, "bool": {"Bool"}, "float": {"Double"}, "str": {"String"}, "ScalarType": {"Int"}, "Tensor": {"Tensor"}}
    kinds |= {"Scalar": {"Int", "Double", "Bool", "Null"}, "MemoryFormat": {"Int"}}
    lists = {"Tensor": {"TensorList", "OptionalTensorList"}, "int": {"IntList"}, "float": {"DoubleList"}, "bool": {"BoolList"}}
    calls = 0
    for path in CORPUS.glob("*.pte"):
        for method in read_program(path).methods:
            for _, _, instruction in method.instructions():
                if not isinstance(instruction, KernelCall):
                    continue
                schema = schemas.operator_schema(instruction.operator)
                result = bool(schema.returns or schema.outs)
                assert len(instruction.args) == len(schema.arguments) + result, instruction.operator
                for argument, index in zip(schema.arguments, instruction.args):
                    kind = type(method.values[index]).__name__
                    allowed = (lists if argument.is_list else kinds)[argument.type] | ({"Null"} if argument.optional else set())
                    assert kind in allowed, (instruction.operator, argument, kind)
                calls += 1
    assert calls > 1000


def test_shape_rules_agree_with_exported_programs():
    """Results of every call in the corpus whose operator has a rule."""

    def plain(method, index):
        value = method.values[index] if index >= 0 else Null()
        match value:
            case Tensor():
                return TensorSpec(value.dtype, value.sizes, value.dim_order, value.dynamism == 1)
            case Null():
                return None
            case IntList() | TensorList() | OptionalTensorList():
                return [plain(method, k) for k in value.items]
            case DoubleList() | BoolList():
                return value.items
        return value.value

    checked = 0
    for path in CORPUS.glob("*.pte"):
        for method in read_program(path).methods:
            written = {i.args[-1] for _, _, i in method.instructions() if isinstance(i, KernelCall)}
            for _, _, instruction in method.instructions():
                schema = schemas.find(instruction.operator) if isinstance(instruction, KernelCall) else None
                if schema is None or not schema.outs:
                    continue
                operands = [k for i in instruction.args for k in [i, *getattr(method.values[i], "items", [])]]
                if any(isinstance(method.values[k], Int) and k in written for k in operands if isinstance(k, int) and k >= 0):
                    continue  # sizes known only at run time
                arguments = {a.name: plain(method, i) for a, i in zip(schema.arguments, instruction.args)}
                outs = [arguments.pop(a.name) for a in schema.outs]
                check_arguments(instruction.operator, arguments)
                wanted = outs[0] if isinstance(outs[0], list) else outs
                try:
                    found = infer(instruction.operator, arguments)
                except Unknown:
                    continue
                assert [(t.dtype, t.shape) for t in found] == [(t.dtype, t.shape) for t in wanted], (path.stem, instruction.operator)
                assert [t.order() for t in found] == [t.order() for t in wanted], (path.stem, instruction.operator)
                for result, inferred in zip(wanted, found):
                    check_result(instruction.operator, result, inferred)
                checked += 1
    assert checked > 1000


def test_promotion():
    f16, bf16, f32, u8, i8, i64 = DType.float16, DType.bfloat16, DType.float32, DType.uint8, DType.int8, DType.int64
    for a, b, want in [
        (f16, bf16, f32), (u8, i8, DType.int16), (i64, f16, f16), (DType.bool, u8, u8), (i64, DType.int32, i64),
        (DType.complex64, DType.float64, DType.complex128), (u8, DType.int16, DType.int16),
    ]:  # fmt: skip
        assert promote_pair(a, b) == promote_pair(b, a) == want
    with pytest.raises(BuildError, match="uint32 and int32 have no common type"):
        promote_pair(DType.uint32, DType.int32)
    # A scalar or a tensor without dimensions counts only if it is of a higher kind.
    assert promote([TensorSpec(f16, (2,)), TensorSpec(f32, ()), 2.5]) == f16
    assert promote([TensorSpec(i64, (2,)), 2.5]) == f32


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("aten::ad.out", "aten::add.out"),
        ("add", "aten::add.out"),
        ("aten::add.Tensor", "aten::add.out"),
        ("aten::convolutoin.out", "aten::convolution.out"),
        ("quantized_decomposed::quantise_per_tensor.out", "quantized_decomposed::quantize_per_tensor.out"),
    ],
)
def test_unknown_operators_get_a_suggestion(m, x, name, near):
    with pytest.raises(BuildError, match="unknown operator") as caught:
        m.call(name, x)
    assert near in str(caught.value)


# -- arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m, x: m.call("aten::add.out", x), "'other' is missing"),
        (lambda m, x: m.call("aten::add.out", x, 2.0), r"'other' must be a tensor, not 2.0; method.constant\(\) makes one"),
        (lambda m, x: m.call("aten::add.out", x, x, beta=1), "no argument 'beta'"),
        (lambda m, x: m.call("aten::add.out", x, x, other=x), "'other' is given twice"),
        (lambda m, x: m.call("aten::add.out", x, x, 1), "takes 2 positional arguments, not 3"),
        (lambda m, x: m.call("aten::relu.out", x, out=3), "neither a Ref, nor a spec"),
        (lambda m, x: m.call("aten::mm.out", x, x), r"aten::mm.out: matrix product of shapes \[2, 3\] and \[2, 3\]"),
        (lambda m, x: m.call("aten::sum.IntList_out", x, 1.5), r"'dim'\[0\] must be int, not 1.5"),
        (lambda m, x: m.call("aten::sum.IntList_out", x, [1.5]), r"'dim'\[0\] must be int, not 1.5"),
        (lambda m, x: m.call("aten::sum.IntList_out", x, [1], "yes"), "'keepdim' must be bool, not 'yes'"),
        (lambda m, x: m.call("aten::sum.IntList_out", x, [5]), "dim 5 is out of range for 2 dimensions"),
        (lambda m, x: m.call("aten::sum.IntList_out", x, [1], dtype="float31"), "'float31' is not an element type"),
        (lambda m, x: m.call("aten::cat.out", x), "'tensors' must be a list of Tensor"),
        (lambda m, x: m.call("aten::cat.out", [x, None]), r"'tensors'\[1\] must be a tensor"),
        (lambda m, x: m.call("aten::view_copy.out", x, [4]), r"cannot be viewed as \[4\]"),
        (lambda m, x: m.call("aten::full.out", [2], 0), r"say what comes out with out=\(dtype, shape\)"),
        (lambda m, x: m.call("aten::mm.out", x, np.ones((3, 4))), "mat2 is float64, but self is float32; numpy's default is float64"),
        (lambda m, x: m.call("aten::embedding.out", x, x), "indices must be int32 or int64, not float32"),
        (lambda m, x: m.call("aten::where.self_out", x, x, x), "condition must be bool, not float32"),
        (lambda m, x: m.call("aten::relu.out", x, out=("float32", (3, 3))), r"the result has shape \[2, 3\], but out \[3, 3\]"),
        (lambda m, x: m.call("aten::copy_", x, None), "'src' must be Tensor, not None"),
        (lambda m, x: m.call("executorch_prim::add.Scalar", 1, "a"), "'b' must be Scalar, not 'a'"),
        (lambda m, x: m.call("aten::add.out", x, x, alpha=2**70), "does not fit in 64 bits"),
        (lambda m, x: m.call("my::op", x, custom=True, scale=2), "takes its arguments by position, not scale="),
        (lambda m, x: m.call("aten::relu.out", x, out=m.constant(np.zeros((2, 3), np.float32))), "is a constant and cannot be written"),
        (lambda m, x: m.call("aten::relu.out", ProgramBuilder().method("other").input("float32", (2, 3))), "belongs to another method"),
        (lambda m, x: m.input("float32", (2, -1)), "sizes"),
        (lambda m, x: m.input("float32", (2, 3), dim_order=(0, 0)), "no permutation"),
        (lambda m, x: m.input("float33", (2,)), "not an element type"),
        (lambda m, x: m.constant(object()), "cannot make a constant of object"),
        (lambda m, x: m.constant(np.zeros(2), "bfloat16"), "give bfloat16 data as uint16 bits"),
        (lambda m, x: m.state("s"), "needs dtype and shape"),
        (lambda m, x: m.move(x, m.variable(1)), "different kinds"),
        (lambda m, x: m.move(x, m.input("float32", (2, 3))), "is an input or a literal"),
        (lambda m, x: m.jump_if_false(x, m.label()), "neither a bool nor a tensor of bool"),
        (lambda m, x: m.collect(x, x, m.variable(0)), "must be dynamic"),
        (lambda m, x: m.output(3), "output: refs must be Ref, not 3"),
        (lambda m, x: m.delegate("", b"", [x], []), "needs the name of its backend"),
        (lambda m, x: m.view(m.input("float32", (4,), dynamic=True), (2, 2)), "use dynamic_view"),
    ],
)
def test_wrong_arguments_are_named_and_a_right_call_still_works(m, x, call, text):
    with pytest.raises(EmitError, match=text):
        call(m, x)
    m.output(m.call("aten::relu.out", x))
    assert [i.operator for _, _, i in read_program(m.program.to_bytes()).methods[0].instructions()] == ["aten::relu.out"]


def test_defaults_are_filled_in_signature_order(m, x):
    m.output(m.call("aten::addmm.out", m.constant(np.zeros(4, np.float32)), x, m.constant(np.zeros((3, 4), np.float32)), alpha=0.5))
    method = m.program.build().methods[0]
    call = method.chains[0].instructions[0]
    # self, mat1, mat2, beta, alpha, out, and the result again
    assert [type(method.values[i]).__name__ for i in call.args] == ["Tensor", "Tensor", "Tensor", "Int", "Double", "Tensor", "Tensor"]
    assert method.values[call.args[3]].value == 1
    assert method.values[call.args[4]].value == 0.5
    assert call.args[5] == call.args[6]


def test_several_outs_end_with_their_list(m, x):
    values, indices = m.call("aten::topk.values", x, 2)
    m.output(values, indices)
    method = m.program.build().methods[0]
    args = method.chains[0].instructions[0].args
    assert method.values[args[-1]] == TensorList([values.index, indices.index])
    assert args[-3:-1] == [values.index, indices.index]
    assert method.values[indices.index].dtype == DType.int64


def test_custom_operators(m, x):
    y = m.call("my_ops::scale.out", x, 2.5, [1, 2], [0.5], None, "mode", out=spec("float32", (2, 3)), custom=True)
    a, b = m.call("my_ops::pair", y, custom=True, out=[("float32", (2,)), ("int64", ())])
    assert m.call("my_ops::note", y, custom=True) is None
    m.output(a, b)
    method = read_program(m.program.to_bytes()).methods[0]
    calls = [i for _, _, i in method.instructions()]
    assert [c.operator for c in calls] == ["my_ops::scale.out", "my_ops::pair", "my_ops::note"]
    assert calls[0].args[-1] == calls[0].args[-2] == y.index
    assert method.values[calls[1].args[-1]] == TensorList([a.index, b.index])


def test_literals_are_stored_once_and_variables_are_not(m, x):
    for _ in range(3):
        x = m.call("aten::add.out", x, x, alpha=7)
    counter = m.variable(7)
    m.call("executorch_prim::add.Scalar", counter, 7)
    m.output(x)
    assert [v for v in m.program.build().methods[0].values if v == Int(7)] == [Int(7)] * 2


def test_element_types():
    assert as_dtype("torch.float16") == as_dtype(np.float16) == as_dtype(5) == as_dtype("half") == DType.float16
    assert as_dtype(">i4") == DType.int32
    for wrong in ("float1", 77, None, "S3"):
        with pytest.raises(EmitError):
            as_dtype(wrong)


def test_constants_keep_their_values_in_any_layout(m, x):
    array = np.arange(24, dtype=">i4").reshape(1, 2, 3, 4)[:, :, ::-1]
    m.constant(array, dim_order=(0, 2, 3, 1))
    m.constant(np.array([1.5, -2.0]), "float16")
    m.output(x)
    values = read_program(m.program.to_bytes()).methods[0].values
    stored = np.frombuffer(values[1].data, "<i4").reshape(1, 3, 4, 2)
    assert np.array_equal(stored.transpose(0, 3, 1, 2), array)
    assert np.array_equal(np.frombuffer(values[2].data, np.float16), [1.5, -2.0])


# -- programs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda p: p.build(), "a program needs a method"),
        (lambda p: (p.method("a"), p.build()), "method 'a' has no output"),
        (lambda p: (p.method("a"), p.method("a")), "already a method 'a'"),
        (lambda p: p.method(""), "needs a name"),
        (lambda p: (p.constant_method("a", 1), p.constant_method("a", 2)), "already a method 'a'"),
        (lambda p: p.constant_method("a", {}), "dict is no value"),
        (lambda p: (p.named_data("k", b"1"), p.named_data("k", b"2")), "'k' is already there with other bytes"),
        (lambda p: (p.buffer("b", "int8", (1,)), p.buffer("b", "int8", (1,))), "already a shared buffer 'b'"),
        (lambda p: p.method("a").use(ProgramBuilder().buffer("b", "int8", (1,))), "belongs to another program"),
        (lambda p: p.buffer("b", "int8", (3,), initial=np.zeros(2, np.int8)), r"shape \[2\], not \[3\]"),
    ],
)
def test_wrong_programs(build, text):
    with pytest.raises(BuildError, match=text):
        build(ProgramBuilder())


def test_labels(m, x):
    label = m.label()
    flag = m.call("aten::gt.Scalar_out", m.call("aten::sum.IntList_out", x, None), 0)
    m.jump_if_false(flag, label)
    m.copy(m.call("aten::neg.out", x), x)
    m.output(x)
    with pytest.raises(BuildError, match="instruction 2 jumps to a label that was never placed"):
        m.program.build()
    m.place(label)
    with pytest.raises(BuildError, match="placed twice"):
        m.place(label)
    jumps = [i for _, _, i in m.program.build().methods[0].instructions() if isinstance(i, JumpFalse)]
    assert [j.target for j in jumps] == [5]


def test_branches_need_the_same_results_on_both_sides(m, x):
    flag = m.call("aten::gt.Scalar_out", m.call("aten::sum.IntList_out", x, None), 0)
    with pytest.raises(BuildError, match="needs a second side"), m.if_else(flag) as branch:
        branch.result(x)
    with pytest.raises(BuildError, match="1 and 0 results"), m.if_else(flag) as branch:
        branch.result(x)
        branch.otherwise()


def test_shared_buffers_lie_at_the_same_place_and_private_state_apart():
    program = emit_programs.make("shared_states").builder.build()
    places = {}
    for method in program.methods:
        for _, tensor in method.tensors():
            if tensor.name is not None:
                places.setdefault(tensor.name, set()).add((tensor.allocation.memory_id, tensor.allocation.offset))
    assert places == {"rows": {(2, 0)}, "count": {(2, 48)}}
    private = emit_programs.make("private_states").builder.build()
    ids = [{t.allocation.memory_id for _, t in m.tensors() if t.name} for m in private.methods]
    assert ids == [{3}, {4}]


def test_many_methods_over_one_payload_are_one_payload_large():
    payload = np.random.default_rng(0).bytes(100_000)
    sizes = {}
    for count in (1, 2, 8):
        p = ProgramBuilder()
        for i in range(count):
            m = p.method(f"method{i}")
            x = m.input("float32", (4,))
            m.output(*m.delegate("SomeBackend", bytes(payload), [x], [("float32", (4,))], named_data={"weights": payload[:5000]}))
        report = WriteReport()
        content = p.to_bytes(report=report)
        sizes[count] = len(content)
        assert content.count(payload) == 1
        assert report.payloads.saved_bytes == (count - 1) * len(payload)
        assert all(d.payload == payload for method in read_program(content).methods for d in method.delegates)
    print(f"\nfile size with 1, 2, 8 methods over a payload of {len(payload)} bytes: {sizes[1]}, {sizes[2]}, {sizes[8]}")
    assert sizes[8] - sizes[1] < 0.05 * len(payload)


def test_delegate_call_carries_everything(m, x):
    y, z = m.delegate(
        "Npu", b"blob", [x], [("float32", (2, 3)), spec("int64", (2,), dynamic=True)], specs={"level": b"3"}, named_data={"w": b"123"}
    )
    m.output(z, y)
    program = read_program(m.program.to_bytes())
    entry = program.methods[0].delegates[0]
    assert (entry.backend, entry.payload, entry.inline) == ("Npu", b"blob", False)
    assert [(s.key, s.value) for s in entry.specs] == [("level", b"3")]
    assert program.named_data == {"w": b"123"}
    assert program.methods[0].values[z.index].dynamism == 1


def test_writing_the_files(tmp_path):
    case = emit_programs.make("external")
    report = case.builder.write(tmp_path / "model.pte")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.pte", "weights.ptd"]
    assert report.file_bytes == (tmp_path / "model.pte").stat().st_size
    assert read_program(tmp_path / "model.pte") == case.builder.build()


def test_building_twice_gives_the_same_bytes():
    for name in emit_programs.CASES:
        builder = emit_programs.make(name).builder
        assert builder.to_bytes() == builder.to_bytes() == program_bytes(read_program(builder.to_bytes()))
