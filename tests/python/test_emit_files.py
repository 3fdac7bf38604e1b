"""Reading and writing files: round trip of the corpus, facts against the manifest, hostile files."""

import random
import struct

import numpy as np
import pytest

from counting import lines_run
from etude.emit import (
    DType,
    EmitError,
    FormatError,
    ModelError,
    WriteReport,
    data_file_bytes,
    program_bytes,
    read_data_file,
    read_program,
)
from etude.emit.model import Allocation, Chain, Double, DoubleList, Int, KernelCall, Method, Program, Tensor
from etude.emit.tables import Tables
from paths import CORPUS

PTES = sorted(CORPUS.glob("*.pte"))
NAMES = {"BYTE": "uint8", "CHAR": "int8", "SHORT": "int16", "INT": "int32", "LONG": "int64", "HALF": "float16", "FLOAT": "float32"}
NAMES |= {"DOUBLE": "float64", "BOOL": "bool", "BFLOAT16": "bfloat16", "COMPLEXFLOAT": "complex64"}


@pytest.mark.parametrize("path", PTES, ids=lambda p: p.stem)
def test_written_again_is_the_same_program(path):
    program = read_program(path)
    content = program_bytes(program)
    assert read_program(content) == program
    assert len(content) <= path.stat().st_size * 1.02


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.ptd")), ids=lambda p: p.stem)
def test_data_file_written_again_is_the_same(path):
    data = read_data_file(path)
    content = data_file_bytes(data)
    assert read_data_file(content) == data
    assert len(content) == path.stat().st_size


def test_reader_agrees_with_the_manifest(manifest):
    """The manifest was made with the official reader."""
    for name, case in manifest.items():
        program = read_program(CORPUS / f"{name}.pte")
        assert [m.name for m in program.methods] == list(case["methods"])
        for method in program.methods:
            facts = case["methods"][method.name]
            assert [0, *method.buffer_sizes] == facts["memory_arena_bytes"]
            counts: dict[str, int] = {}
            kinds: dict[str, int] = {}
            for _, _, instruction in method.instructions():
                kind = {"Move": "MoveCall", "JumpFalse": "JumpFalseCall", "Free": "FreeCall"}.get(type(instruction).__name__)
                kind = kind or type(instruction).__name__
                kinds[kind] = kinds.get(kind, 0) + 1
                if isinstance(instruction, KernelCall):
                    counts[instruction.operator] = counts.get(instruction.operator, 0) + 1
            assert counts == facts["operators"]
            assert kinds == facts["instructions"]
            for indices, specs in ((method.inputs, facts["inputs"]), (method.outputs, facts["outputs"])):
                assert len(indices) == len(specs)
                for index, spec in zip(indices, specs):
                    value = method.values[index]
                    assert type(value).__name__.lower() == spec["kind"]
                    if isinstance(value, Tensor):
                        assert list(value.sizes) == spec["sizes"]
                        assert list(value.dim_order) == spec["dim_order"]
                        assert value.dtype.name == NAMES.get(spec["dtype"].upper(), spec["dtype"])
                        assert (value.allocation is not None) == spec["memory_planned"]


def test_external_data_holds_the_weights(manifest):
    data = read_data_file(CORPUS / "external_constants.ptd")
    program = read_program(CORPUS / "external_constants.pte")
    wanted = {t.name: t for m in program.methods for _, t in m.tensors() if t.external}
    assert wanted.keys() == data.entries.keys()
    for name, entry in data.entries.items():
        assert entry.layout is not None
        assert entry.layout.sizes == wanted[name].sizes
        assert len(entry.data) == wanted[name].nbytes


def small_program(**fields):
    values = [Tensor(DType.float32, (2,), (0,), allocation=Allocation(1, at)) for at in (0, 16)]
    made = {
        "values": values,
        "inputs": [0],
        "outputs": [1],
        "chains": [Chain([KernelCall("aten::relu.out", [0, 1, 1])])],
        "buffer_sizes": [32],
    } | fields
    return Program([Method("forward", **made)])


def test_every_kind_of_value_survives():
    nan = float("nan")
    program = small_program()
    program.methods[0].values += [Double(nan), Double(-0.0), Double(0.0), DoubleList([nan, -0.0]), Int(-(2**63)), Int(2**63 - 1)]
    again = read_program(program_bytes(program))
    assert again == program
    assert str(again.methods[0].values[3]) == "Double(value=-0.0)"
    assert Double(0.0) != Double(-0.0)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"inputs": [7]}, "inputs name value 7 of 2"),
        ({"chains": []}, "no chain"),
        ({"chains": [Chain([KernelCall("", [])])]}, "without operator name"),
        ({"chains": [Chain([KernelCall("a::b", [9])])]}, "operand is value 9"),
        ({"buffer_sizes": [16]}, "memory id 1, which has 16"),
        ({"buffer_sizes": []}, "memory id 1"),
        ({"name": ""}, "no name"),
    ],
)
def test_writer_refuses_what_no_runtime_could_load(fields, text):
    program = small_program()
    for name, value in fields.items():
        setattr(program.methods[0], name, value)
    with pytest.raises(ModelError, match=text):
        program_bytes(program)


def test_alignment_of_segments_and_constants():
    program = small_program()
    program.methods[0].values += [Tensor(DType.float32, (n,), (0,), data=bytes([n]) * (4 * n)) for n in (1, 3, 5)]
    content = program_bytes(program, segment_alignment=512, constant_alignment=64)
    size, base = struct.unpack_from("<QQ", content, 16)
    assert base % 512 == 0
    assert base >= size
    for n in (1, 3, 5):
        assert content.index(bytes([n]) * (4 * n), base) % 64 == 0
    with pytest.raises(EmitError, match="48 is not a power of two"):
        program_bytes(program, constant_alignment=48)


def test_equal_contents_are_stored_once():
    program = small_program()
    blob = np.arange(1000, dtype=np.float32).tobytes()
    program.methods[0].values += [Tensor(DType.float32, s, tuple(range(len(s))), data=bytes(blob)) for s in ((1000,), (10, 100))]
    program.named_data = {"a": b"x" * 700, "b": b"x" * 700}
    report = WriteReport()
    content = program_bytes(program, report=report)
    assert content.count(blob) == 1
    assert content.count(b"x" * 700) == 1
    assert (report.constants.uses, report.constants.stored, report.constants.saved_bytes) == (2, 1, 4000)
    assert report.named_data.saved_bytes == 700
    assert "4000 saved" in str(report)
    assert read_program(content) == program


def test_missing_flatbuffers_is_said_clearly(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "flatbuffers", None)
    with pytest.raises(EmitError, match=r"pip install etude\[emit\]"):
        program_bytes(small_program())
    assert read_program(CORPUS / "add.pte").methods  # reading needs it not


# -- older and odd files ------------------------------------------------------------------------------------------


def hand_made(header: bytes | None, constants: list[bytes]) -> bytes:
    """A program with constants inside the FlatBuffer, as files before version 0.2 have them."""
    t = Tables()
    tensor = t.table(("Int8", 6), None, t.scalars("i", [2]), t.scalars("B", [0]), None, ("Uint32", 1))
    value = t.table(("Uint8", 5), ("ref", tensor))
    chain = t.table(None, None, t.refs([]))
    empty = t.scalars("i", [])
    plan = t.table(
        t.string("forward"), None, t.refs([value]), empty, t.scalars("i", [0]), t.refs([chain]), None, t.refs([]), t.scalars("q", [0])
    )
    buffers = [t.table(("ref", t.packed(c, 1, 16))) for c in constants]
    root = t.table(None, t.refs([plan]), t.refs(buffers))
    return t.finish(root, b"ET12", lambda size, _: b"" if header is None else header + struct.pack("<QQ", size, 0)).ljust(64, b"\0")


@pytest.mark.parametrize("header", [None, b"eh00" + struct.pack("<I", 24)], ids=["no header", "short header"])
def test_constants_inside_the_flatbuffer(header):
    program = read_program(hand_made(header, [b"", b"12345678" + bytes(8)]))
    assert program.methods[0].values[0].data == b"12345678"
    with pytest.raises(FormatError, match="needs 8 bytes of constant buffer 1"):
        read_program(hand_made(header, [b"", b"1234"]))


# -- hostile files ------------------------------------------------------------------------------------------------

SMALL = ["add", "cond", "constant_methods", "counter_initialized", "shared_state", "nested_containers", "map_loop", "stack_traces"]


@pytest.mark.parametrize("name", SMALL)
def test_truncated_files(name):
    content = (CORPUS / f"{name}.pte").read_bytes()
    for length in range(0, len(content), 7):
        with pytest.raises(FormatError):
            read_program(content[:length])


def test_what_is_no_program():
    for content, text in [
        (b"", "0 bytes are too few"),
        (b"\0" * 100, "not a .pte file"),
        (b"\0\0\0\0ET99" + bytes(100), "version b'ET99'"),
        ((CORPUS / "external_constants.ptd").read_bytes(), "identifier b'FT01'"),
    ]:
        with pytest.raises(FormatError, match=text) as caught:
            read_program(content)
        assert caught.value.offset is not None
    with pytest.raises(FormatError, match=r"not a \.ptd file"):
        read_data_file(CORPUS / "add.pte")
    with pytest.raises(FileNotFoundError):
        read_program("no-such-file.pte")


@pytest.mark.parametrize("name", [*SMALL, "external_constants"])
def test_mutants_give_a_program_or_a_format_error(name):
    """Nothing but FormatError, with an offset, and no end."""
    content = (CORPUS / f"{name}.pte").read_bytes()
    rng = random.Random(name)
    refused = 0
    for _ in range(600):
        mutant = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(mutant))
            mutant[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            program_bytes(read_program(bytes(mutant)))
        except FormatError as error:
            assert error.offset is not None
            refused += 1
    assert refused > 30


def test_data_file_mutants():
    content = (CORPUS / "external_constants.ptd").read_bytes()
    rng = random.Random(0)
    for _ in range(2000):
        mutant = bytearray(content)
        mutant[rng.randrange(400)] = rng.randrange(256)
        try:
            read_data_file(bytes(mutant))
        except FormatError as error:
            assert error.offset is not None


def test_references_to_one_table_from_everywhere_are_refused():
    """A small file in which each of many methods lists the same many values."""
    t = Tables()
    value = t.table(("Uint8", 2), ("ref", t.table(("Int64", 3))))
    values = t.refs([value] * 4000)
    chain = t.table(None, None, t.refs([]))
    empty = t.scalars("i", [])
    sizes, chains = t.scalars("q", [0]), t.refs([chain])
    plan = t.table(t.string("m"), None, values, empty, empty, chains, None, t.refs([]), sizes)
    root = t.table(None, t.refs([plan] * 4000), t.refs([]))
    content = t.finish(root, b"ET12", lambda *_: b"")

    def read():
        with pytest.raises(FormatError, match="same bytes far too often"):
            read_program(content)

    assert lines_run(read) < 40 * len(content)  # there are 16 million references
