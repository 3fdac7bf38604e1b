"""Event dumps in ExecuTorch's format (ETDump), for its own tools: `executorch.devtools.Inspector` reads them.

    >>> with etude.profile(method) as p:
    ...     method(x)
    >>> etdump.write("run.etdp", p)
    >>> Inspector(etdump_path="run.etdp", etrecord="model.etrecord")           # where executorch is installed

Writing needs the package `flatbuffers` (pip install etude[etdump]). A dump is a FlatBuffer with its size in front, identifier ED00,
version 0; times are nanoseconds. Instructions that are computed once are in no execution: load with `constant_limit=0` to
see them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from etude import dtypes
from etude.emit.files import write_files
from etude.emit.tables import Tables, round_up
from etude.errors import EtudeValueError
from etude.intermediates import Result
from etude.profiling import Profile, ProfileRow

_ALIGNMENT = 64  # of values in the debug buffer
_FRAMEWORK = {"kernel": "OPERATOR_CALL", "delegate": "DELEGATE_CALL", "move": "MOVE_CALL", "jump": "JF_CALL", "free": "FREE_CALL"}
_NO_CHAIN, _NONE = -1, -1
_INT, _BOOL, _DOUBLE, _TENSOR = 1, 2, 4, 5  # kinds of values, in the schema's order

#: What the Inspector can read back: uint8, int8, int16, int32, int64, float16, float32, float64, bool, uint16.
_READABLE = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 11, 27})


def dump(profile: Profile | None, results: Sequence[Result] = (), outputs: Sequence[Any] = ()) -> tuple[bytes, bytes]:
    """An event dump, and the debug buffer that goes with it (empty without values).

    profile: executions, call by call. EtudeValueError where it had no room for all of them.
    results: values of one execution, as `intermediates.record` gives them; of several executions only the last is written then,
        since the values are of one. Types that the Inspector has no name for, such as bfloat16, are left out.
    outputs: what that execution returned.
    """
    if profile is not None and profile.events_missed:
        raise EtudeValueError(f"the profile had no room for {profile.events_missed} calls: give etude.profile more events")
    writer = _Writer()
    runs = _runs(profile)
    if results or outputs:
        runs = [_with_values(writer, runs[-1] if runs else [], results, outputs)]
    return writer.finish(runs), bytes(writer.buffer)


def write(
    path: str | os.PathLike[str],
    profile: Profile | None,
    results: Sequence[Result] = (),
    outputs: Sequence[Any] = (),
    *,
    debug_buffer: str | os.PathLike[str] | None = None,
) -> None:
    """Write what `dump` gives to files; `debug_buffer` is needed where there are values."""
    if debug_buffer is None and (results or outputs):
        raise EtudeValueError("values go into a file of their own: give debug_buffer")
    events, values = dump(profile, results, outputs)
    files: dict[str | os.PathLike[str], bytes | bytearray | memoryview] = {path: events}
    if debug_buffer is not None:
        files[debug_buffer] = values
    write_files(files)


#: Writes an event, and returns where it is.
_Event = Callable[["_Writer"], int]


def _timed(start: int, end: int, name: str | None, *, chain: int = 0, instruction: int = 0, node: str | None = None) -> _Event:
    return lambda writer: writer.profile_event(name, chain, instruction, node, start, end)


def _runs(profile: Profile | None) -> list[list[_Event]]:
    """The events of each execution in the order in which they ended, inner ones first."""
    calls: dict[int, list[tuple[ProfileRow, int, int]]] = {}
    for row, run, start, duration in profile.events() if profile is not None else ():
        calls.setdefault(run, []).append((row, start, start + duration))
    runs = []
    for made in calls.values():
        events = [event for row, start, end in made for event in _call(row, start, end)]
        begin, end = min(call[1] for call in made), max(call[2] for call in made)
        runs.append([*events, _timed(begin, end, "Method::execute", chain=_NO_CHAIN)])
    return runs


def _call(row: ProfileRow, start: int, end: int) -> list[_Event]:
    instruction = row.instruction or 0
    if row.node is not None:
        return [_timed(start, end, None, instruction=instruction, node=f"{row.name} #{row.node}")]
    outer = _timed(start, end, _FRAMEWORK[row.kind], instruction=instruction)
    if row.kind != "kernel":
        return [outer]
    return [_timed(start, end, f"native_call_{row.name.rpartition('::')[2]}", instruction=instruction), outer]


def _with_values(writer: _Writer, events: list[_Event], results: Sequence[Result], outputs: Sequence[Any]) -> list[_Event]:
    """An execution with what its instructions gave, and what it returned."""
    made = [_value_event(r.instruction, value, False) for r in results if (value := writer.keep(r.array)) is not None]
    returned = [_value_event(_NONE, value, True) for output in outputs if (value := writer.keep(output)) is not None]
    return [*made, *events, *returned]


def _value_event(instruction: int, value: _Value, is_output: bool) -> _Event:
    return lambda writer: writer.debug_event(instruction, value, is_output)


class _Value:
    """A value for the dump: a number, or a tensor in the debug buffer."""

    def __init__(self, number: int | float | None, array: np.ndarray[Any, Any] | None, code: int, offset: int) -> None:
        self.number, self.array, self.code, self.offset = number, array, code, offset


class _Writer:
    """Events as tables, and the debug buffer."""

    def __init__(self) -> None:
        self.tables, self.buffer = Tables("etdump"), bytearray()
        self.tables.builder.ForceDefaults(True)  # readers take -1 for a number that is left out

    def keep(self, value: Any) -> _Value | None:
        """Put a value into the debug buffer; None for what the Inspector can't read."""
        if isinstance(value, bool | int | float):
            return _Value(value, None, 0, 0)
        if not isinstance(value, np.ndarray) or value.dtype.metadata or value.dtype.kind not in "biuf":
            return None
        code = dtypes.code(value.dtype)
        if code not in _READABLE:
            return None
        offset = round_up(len(self.buffer), _ALIGNMENT)
        self.buffer += bytes(offset - len(self.buffer)) + np.ascontiguousarray(value).tobytes()
        return _Value(None, value, code, offset)

    def profile_event(self, name: str | None, chain: int, instruction: int, node: str | None, start: int, end: int) -> int:
        t = self.tables
        metadata = t.scalars("B", []) if node is not None else None
        event = t.table(
            t.string(name), ("Int32", chain), ("Int32", instruction), ("Int32", _NONE), t.string(node), metadata,
            ("Uint64", start), ("Uint64", end),
        )  # fmt: skip
        return t.table(("ref", event))

    def debug_event(self, instruction: int, value: _Value, is_output: bool) -> int:
        t = self.tables
        entry = self._entry(value, ("ref", t.table(("Bool", True))) if is_output else None)
        event = t.table(("Uint64", 0), ("Int32", instruction), ("ref", entry), ("Int32", _NONE), None, t.string(""))
        return t.table(None, None, ("ref", event))

    def _entry(self, value: _Value, output: tuple[str, int] | None) -> int:
        t, number, array = self.tables, value.number, value.array
        if array is not None:
            strides = [s // array.itemsize for s in np.empty(array.shape, array.dtype).strides]  # as they stand in the buffer
            tensor = t.table(("Int8", value.code), t.scalars("q", array.shape), t.scalars("q", strides), ("Int64", value.offset))
            return t.table(("Int8", _TENSOR), ("ref", tensor), None, None, None, None, None, output)
        if isinstance(number, bool):
            return t.table(("Int8", _BOOL), None, None, None, None, None, ("ref", t.table(("Bool", number))), output)
        if isinstance(number, int):
            return t.table(("Int8", _INT), None, None, ("ref", t.table(("Int64", number))), None, None, None, output)
        return t.table(("Int8", _DOUBLE), None, None, None, None, ("ref", t.table(("Float64", number or 0.0))), None, output)

    def finish(self, runs: Sequence[Sequence[_Event]]) -> bytes:
        """The dump, with a block of events for each execution."""
        t, blocks = self.tables, []
        for events in runs:
            listed = t.refs([event(self) for event in events])
            blocks.append(t.table(t.string("Execute"), ("Int32", _NONE), None, listed))
        root = t.table(("Uint32", 0), t.refs(blocks))
        t.builder.FinishSizePrefixed(root, file_identifier=b"ED00")
        return bytes(t.builder.Output())
