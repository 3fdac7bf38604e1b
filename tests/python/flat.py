"""Encodes programs slot by slot, as pte-format describes them: for files that no exporter of today writes.

A table is a dict from slot to one of: ("u8"|"i8"|"u32"|"i32"|"u64"|"i64"|"f64"|"bool", number), ("str", text), ("table", dict),
("tables", list of dicts), ("bytes"|"i32s"|"i64s"|"f64s", values). A union is two slots.
"""

import struct

import flatbuffers

_SCALARS = {
    "u8": "Uint8", "i8": "Int8", "u32": "Uint32", "i32": "Int32", "u64": "Uint64", "i64": "Int64", "f64": "Float64", "bool": "Bool",
}  # fmt: skip


def _vector(b, width, alignment, values, prepend):
    b.StartVector(width, len(values), alignment)
    for value in reversed(values):
        prepend(value)
    return b.EndVector()


def _child(b, kind, value):
    if kind == "str":
        return b.CreateString(value)
    if kind == "table":
        return _table(b, value)
    if kind == "tables":
        return _vector(b, 4, 4, [_table(b, item) for item in value], b.PrependUOffsetTRelative)
    if kind == "bytes":
        b.StartVector(1, len(value), 16)
        b.head -= len(value)
        b.Bytes[b.head : b.head + len(value)] = bytes(value)
        return b.EndVector()
    width, prepend = {"i32s": (4, b.PrependInt32), "i64s": (8, b.PrependInt64), "f64s": (8, b.PrependFloat64)}[kind]
    return _vector(b, width, width, value, prepend)


def _table(b, slots):
    children = {slot: _child(b, kind, value) for slot, (kind, value) in slots.items() if kind not in _SCALARS}
    b.StartObject(max(slots, default=-1) + 1)
    for slot, (kind, value) in slots.items():
        if slot in children:
            b.PrependUOffsetTRelativeSlot(slot, children[slot], 0)
        else:
            getattr(b, f"Prepend{_SCALARS[kind]}Slot")(slot, value, None)
    return b.EndObject()


def encode(root, header=None, segments=b""):
    """A file: the root table, then the segments. `header(program size, segment base, segment bytes)` gives what follows "eh00" and the
    length in an extended header; without it there is none."""
    b = flatbuffers.Builder(1024)
    b.ForceDefaults(True)
    b.Finish(_table(b, root), file_identifier=b"ET12")
    body = bytes(b.Output())
    if header is None:
        return body + segments
    size = len(body) + 32  # the padded header is spliced in behind the identifier
    base = -(-size // 128) * 128
    fields = header(size, base, len(segments))
    head = b"eh00" + struct.pack("<I", len(fields) + 8) + fields
    start = struct.pack("<I", struct.unpack_from("<I", body)[0] + 32) + body[4:8] + head.ljust(32, b"\0")
    return (start + body[8:]).ljust(base, b"\0") + segments


# ---- the tables that the tests need ----


def value(tag, table):
    """An EValue: 1 Null, 2 Int, 3 Bool, 4 Double, 5 Tensor, 6 String, 7 IntList, 8 DoubleList, 9 BoolList, 10 TensorList, 11 optional."""
    return {0: ("u8", tag), 1: ("table", table)}


def tensor(sizes, buffer=0, place=None, dtype=6):
    """A Tensor; `place` = (memory id, offset) in planned memory."""
    slots = {0: ("i8", dtype), 2: ("i32s", sizes), 3: ("bytes", range(len(sizes))), 5: ("u32", buffer)}
    if place is not None:
        slots[6] = ("table", {0: ("u32", place[0]), 1: ("u32", place[1])})
    return value(5, slots)


def instruction(tag, table):
    """1 KernelCall, 2 DelegateCall, 3 MoveCall, 4 JumpFalseCall, 5 FreeCall."""
    return {0: ("u8", tag), 1: ("table", table)}


def call(op, *args):
    """A KernelCall."""
    return instruction(1, {0: ("i32", op), 1: ("i32s", args)})


def plan(values, inputs, outputs, chains, operators=(), sizes=(0,), name="forward"):
    """An ExecutionPlan; each chain is a list of instructions, each operator (name, overload)."""
    return {
        0: ("str", name),
        2: ("tables", values),
        3: ("i32s", inputs),
        4: ("i32s", outputs),
        5: ("tables", [{2: ("tables", chain)} for chain in chains]),
        6: ("tables", [{0: ("str", a), 1: ("str", b)} for a, b in operators]),
        7: ("tables", []),
        8: ("i64s", sizes),
    }
