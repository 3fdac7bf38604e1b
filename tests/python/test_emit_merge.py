"""Merging, extracting and comparing programs, as functions and from the command line."""

import numpy as np
import pytest

import emit_programs
from etude.cli import main
from etude.emit import BuildError, DType, MergeError, ProgramBuilder, program_bytes, read_program, write_program
from etude.emit.diff import diff_programs
from etude.emit.extract import extract_constant, extract_delegate, extract_methods, extract_named
from etude.emit.merge import MergeReport, Source, merge_programs
from etude.emit.model import Allocation, KernelCall, TensorLayout
from paths import CORPUS, ROOT

LLAMA = ROOT / "tests/data/llama"
XNNPACK = ROOT / "tests/data/xnnpack"


def linear(name="forward", weight=1.0, size=64, **named):
    """A method with one constant, and named data."""
    p = ProgramBuilder()
    m = p.method(name)
    x = m.input("float32", (size,))
    m.output(m.call("aten::mul.out", x, m.constant(np.full(size, weight, np.float32), name="w")))
    for key, data in named.items():
        p.named_data(key, data)
    return p.build()


def counting(buffer="count", shape=(4,), initial=None, name="forward"):
    """A method over a state buffer of the common kind."""
    p = ProgramBuilder()
    shared = p.buffer(buffer, "float32", shape, initial=initial)
    m = p.method(name)
    x = m.input("float32", shape)
    m.copy(m.call("aten::add.out", m.use(shared), x), m.use(shared))
    m.output(m.call("aten::neg.out", m.use(shared)))
    return p.build()


def places(program):
    """Places of named state buffers by (method, name)."""
    return {(m.name, t.name): t.allocation for m in program.methods for _, t in m.tensors() if t.name and t.allocation}


def test_contents_are_shared():
    a, b = linear("a", k=b"x" * 500), linear("b", k=b"x" * 500)
    merged = merge_programs([Source("a.pte", a), Source("b.pte", b)])
    assert [m.name for m in merged.methods] == ["a", "b"]
    content = program_bytes(merged)
    assert content.count(np.full(64, 1.0, np.float32).tobytes()) == 1
    assert content.count(b"x" * 500) == 1
    # Merging leaves its sources alone, and each method as it was.
    assert merged.methods[0] == a.methods[0] == linear("a").methods[0]


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        ([Source("a.pte", linear()), Source("b.pte", linear(weight=2.0))], "method 'forward' of b.pte is already there"),
        ([Source("a.pte", linear()), Source("b.pte", linear())], "method 'forward' of b.pte is already there"),
        (
            [Source("a.pte", linear("a", k=b"1")), Source("b.pte", linear("b", k=b"2"))],
            "named data 'k' has other bytes in b.pte than in a.pte",
        ),
        ([Source("a.pte", linear(), {"nothing": "x"})], "a.pte has no method 'nothing' to rename; it has: forward"),
        ([Source("a.pte", linear(), {"forward": ""})], "renamed to nothing"),
        (
            [Source("a.pte", counting(name="a")), Source("b.pte", counting(name="b", shape=(5,)))],
            "state buffer 'count' looks different in a.pte and in b.pte",
        ),
        (
            [Source("a.pte", counting(name="a")), Source("b.pte", counting(name="b", initial=np.ones(4, np.float32)))],
            "state buffer 'count' starts with other content in a.pte than in b.pte",
        ),
    ],
)
def test_conflicts_are_named(sources, text):
    with pytest.raises(MergeError, match=text):
        merge_programs(sources)


def test_external_data_must_look_the_same():
    def program(name, shape):
        p = ProgramBuilder()
        m = p.method(name)
        m.output(m.call("aten::neg.out", m.external("w", np.zeros(shape, np.float32))))
        return p.build()

    with pytest.raises(MergeError, match="external data 'w' looks different"):
        merge_programs([Source("a.pte", program("a", (2, 3))), Source("b.pte", program("b", (3, 2)))])
    merge_programs([Source("a.pte", program("a", (2, 3))), Source("b.pte", program("b", (2, 3)))])


def test_state_is_shared_by_name_or_kept_apart():
    a, b = counting(name="a"), counting("other", (8,), name="b")
    c = counting(name="c")
    report = MergeReport()
    merged = merge_programs([Source(n, p) for n, p in (("a", a), ("b", b), ("c", c))], report=report)
    found = places(merged)
    assert report.shared_state == ["count"]
    assert found["a", "count"] == found["c", "count"] == Allocation(2, 0)
    assert found["b", "other"] == Allocation(2, 16)
    assert {m.buffer_sizes[1] for m in merged.methods} == {48}
    apart = places(merge_programs([Source("a", a), Source("c", c)], state="separate"))
    assert apart["a", "count"] != apart["c", "count"]


def test_private_state_gets_a_memory_of_its_own():
    """Methods of other programs may be laid over the same memory id."""
    counter = read_program(CORPUS / "counter.pte")
    merged = merge_programs([Source("a", counter, {"forward": "one"}), Source("b", counter, {"forward": "two"}), Source("c", linear())])
    used = [{t.allocation.memory_id for _, t in m.tensors() if t.allocation} for m in merged.methods]
    assert used[0].isdisjoint(used[1])
    assert (used[0] | used[1]).isdisjoint(used[2])


def test_merged_is_no_larger_than_exported_together(tmp_path, capsys):
    out = tmp_path / "both.pte"
    assert main(["merge", str(LLAMA / "prefill.pte"), str(LLAMA / "decode.pte"), "-o", str(out)]) == 0
    assert out.stat().st_size <= 1.05 * (CORPUS / "llama_tiny.pte").stat().st_size
    text = capsys.readouterr().out
    assert "equal methods, kept once: get_vocab_size, get_max_seq_len, use_kv_cache" in text
    assert "shared state: layers.0.kc, layers.0.vc, layers.1.kc, layers.1.vc" in text
    assert "constants: 48 used, 20 stored" in text
    merged, joint = read_program(out), read_program(CORPUS / "llama_tiny.pte")
    assert {m.name for m in merged.methods} == {m.name for m in joint.methods}
    # The exporter's state plan: the same four buffers at the same places in both methods.
    assert places(merged) == places(joint)
    assert len(places(merged)) == 8


def test_extracted_and_merged_again_is_the_same():
    joint = read_program(CORPUS / "llama_tiny.pte")
    parts = [Source(m.name, extract_methods(joint, [m.name])) for m in joint.methods]
    merged = merge_programs(parts)
    assert diff_programs(joint, merged) == []
    assert merged.methods == joint.methods


# -- extract ------------------------------------------------------------------------------------------------------


def test_extract_drops_what_only_others_use():
    def add(p, name, key):
        m = p.method(name)
        x = m.input("float32", (4,))
        payload = b"looks up " + key.encode()
        m.output(*m.delegate("Npu", payload, [x], [("float32", (4,))], named_data={key: key.encode() * 50}))

    p = ProgramBuilder()
    add(p, "a", "weights-a")
    add(p, "b", "weights-b")
    p.named_data("known-to-the-backend", b"123")
    program = p.build()
    part = extract_methods(program, ["a"])
    assert list(part.named_data) == ["weights-a", "known-to-the-backend"]
    assert len(program_bytes(part)) < len(program_bytes(program))
    with pytest.raises(MergeError, match="no method 'z'; there are: a, b"):
        extract_methods(program, ["z"])
    assert extract_delegate(program, "b", 0).payload == b"looks up weights-b"
    with pytest.raises(MergeError, match="method 'b' has 1 delegates, so none of number 1"):
        extract_delegate(program, "b", 1)
    assert extract_named(program, "weights-b") == b"weights-b" * 50
    with pytest.raises(MergeError, match="no named data 'x'; there is: weights-a"):
        extract_named(program, "x")


def test_extract_constants_in_their_logical_shape():
    c = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    bits = np.array([0x3F80, 0x4000], np.uint16)
    p = ProgramBuilder()
    m = p.method("forward")
    m.constant(c, dim_order=(0, 2, 3, 1), name="weight")
    m.constant(bits, "bfloat16")
    m.state("cache", initial=np.array([5, 6], np.int64))
    m.output(m.call("aten::neg.out", m.input("float32", ())))
    program = read_program(p.to_bytes())
    assert np.array_equal(extract_constant(program, "forward", "weight"), c)
    assert np.array_equal(extract_constant(program, "forward", 1), bits)
    assert np.array_equal(extract_constant(program, "forward", "cache"), [5, 6])
    with pytest.raises(MergeError, match="no constant 'bias' in the program; it has: weight, %1, cache"):
        extract_constant(program, "forward", "bias")
    with pytest.raises(MergeError, match=r"its bytes are in a \.ptd file"):
        extract_constant(emit_programs.make("external").builder.build(), "forward", "fc.weight")


def test_extract_from_the_command_line(tmp_path, capsys):
    model, out = str(CORPUS / "two_methods.pte"), tmp_path / "out"
    assert main(["extract", model, "--method", "encode", "-o", str(out)]) == 0
    assert [m.name for m in read_program(out).methods] == ["encode"]
    constant = read_program(model).method("encode").tensors()
    index = next(i for i, t in constant if t.data is not None)
    assert main(["extract", model, "--constant", f"encode:{index}", "-o", str(out)]) == 0
    assert np.array_equal(np.load(out), extract_constant(read_program(model), "encode", index))
    lowered = str(XNNPACK / "x_linear.pte")
    assert main(["extract", lowered, "--payload", "forward:0", "-o", str(out)]) == 0
    assert out.read_bytes() == read_program(lowered).methods[0].delegates[0].payload
    assert main(["extract", lowered, "--payload", "forward", "-o", str(out)]) == 0
    key = next(iter(read_program(lowered).named_data))
    assert main(["extract", lowered, "--named", key, "-o", str(out)]) == 0
    assert out.read_bytes() == read_program(lowered).named_data[key]
    capsys.readouterr()
    before = out.read_bytes()
    for arguments, text in [
        (["--method", "none"], "no method 'none'"),
        (["--constant", "encode"], "write METHOD:NAME"),
        (["--constant", "encode:zzz"], "no constant 'zzz'"),
        (["--payload", "encode:0"], "has 0 delegates"),
        (["--payload", "encode:first"], "'first' is no number"),
        (["--named", "k"], "no named data 'k'; there is: none"),
    ]:
        assert main(["extract", model, *arguments, "-o", str(out)]) == 2
        assert text in capsys.readouterr().err
        assert out.read_bytes() == before


def test_merge_from_the_command_line(tmp_path, capsys):
    a, b, out = tmp_path / "a.pte", tmp_path / "b.pte", tmp_path / "c.pte"
    write_program(linear(), a)
    write_program(linear(weight=2.0), b)
    command = ["merge", str(a), str(b), "-o", str(out)]
    for arguments, text in [
        ([], "method 'forward' of"),
        (["--rename", "forward=first"], "several programs named here with a method 'forward'; write FILE:forward=first"),
        (["--rename", "other=first"], "no program named here with a method 'other'"),
        (["--rename", "forward"], "write [FILE:]OLD=NEW"),
        (["--rename", "zzz.pte:forward=first"], "no program named here"),
    ]:
        assert main([*command, *arguments]) == 2
        assert text in capsys.readouterr().err
        assert not out.exists()
    assert main([*command, "--rename", "a.pte:forward=first", "--rename", f"{b}:forward=second"]) == 0
    assert [m.name for m in read_program(out).methods] == ["first", "second"]
    # The output may be one of the inputs.
    assert main(["merge", str(out), str(a), "-o", str(a)]) == 0
    assert [m.name for m in read_program(a).methods] == ["first", "second", "forward"]
    bad = tmp_path / "bad.pte"
    bad.write_bytes(b"nonsense")
    assert main(["merge", str(a), str(bad), "-o", str(out)]) == 2
    assert "not a .pte file" in capsys.readouterr().err
    assert main(["merge", str(a), str(tmp_path / "missing.pte"), "-o", str(out)]) == 3
    assert "missing.pte" in capsys.readouterr().err


# -- diff ---------------------------------------------------------------------------------------------------------


def test_equivalent_programs_do_not_differ():
    for path in sorted(CORPUS.glob("*.pte"))[::5]:
        program = read_program(path)
        assert diff_programs(program, read_program(program_bytes(program))) == []


def test_differences_are_named():
    a, b = linear(k=b"1", old=b"2"), linear(weight=2.0, k=b"22")
    b.methods[0].chains[0].instructions[0].operator = "aten::add.out"
    b.methods[0].buffer_sizes.append(100)
    b.methods.append(linear("second").methods[0])
    lines = diff_programs(a, b)
    text = "\n".join(lines)
    assert "+ method second" in lines
    assert "forward: + memory 2: 100 B" in lines
    assert any(line.startswith("forward: - constant w f32[64], 256 B, sha256") for line in lines)
    assert "forward: - aten::mul.out(" in text
    assert "forward: + aten::add.out(" in text
    assert "- named data k: 1 B" in text
    assert "+ named data k: 2 B" in text
    assert "- named data old: 1 B" in text
    brief = diff_programs(a, b, instructions=False)
    assert "forward: + aten::add.out: 0 -> 1 calls" in brief
    assert "forward: - aten::mul.out: 1 -> 0 calls" in brief


def test_diff_does_not_depend_on_numbering():
    a, b = linear(), linear()
    method = b.methods[0]
    method.values.insert(0, method.values.pop())
    count = len(method.values)
    shift = {i: (i + 1) % count for i in range(count)}
    method.inputs, method.outputs = [shift[i] for i in method.inputs], [shift[i] for i in method.outputs]
    call = method.chains[0].instructions[0]
    assert isinstance(call, KernelCall)
    call.args = [shift[i] for i in call.args]
    assert diff_programs(a, b) == []


def test_diff_from_the_command_line(tmp_path, capsys):
    add = str(CORPUS / "add.pte")
    assert main(["diff", add, add]) == 0
    assert capsys.readouterr().out == ""
    assert main(["diff", add, str(CORPUS / "linear.pte")]) == 1
    assert "aten::add.out" in capsys.readouterr().out
    assert main(["diff", add, str(CORPUS / "linear.pte"), "--brief"]) == 1
    assert main(["diff", add, str(tmp_path / "none.pte")]) == 3
    (tmp_path / "bad.pte").write_bytes(b"nonsense")
    assert main(["diff", add, str(tmp_path / "bad.pte")]) == 2
    assert "none.pte" in capsys.readouterr().err


def test_layouts_are_compared():
    assert TensorLayout(DType.int8, (1,), (0,)) != TensorLayout(DType.int8, (2,), (0,))
    with pytest.raises(BuildError, match="with other content"):
        p = ProgramBuilder()
        p.external_data("f.ptd", "k", b"1")
        p.external_data("f.ptd", "k", b"2")
