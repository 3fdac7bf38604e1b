"""Watching a method run: what a trace function is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from etude._callback import guarded, lost
from etude._lent import LentValues
from etude._lib import CData, ffi, lib, text
from etude.enums import Status
from etude.errors import EtudeStateError
from etude.instructions import KINDS

#: Called before and after each instruction. An exception ends the execution.
Trace = Callable[["Event"], object]


class Event:
    """Something that happens while a method executes. Its `arguments` are good until the trace function returns.

    moment:      "before" or "after"; also after an instruction that failed.
    instruction: the number of the instruction, as in `Program.instructions`.
    kind, name:  as there: "kernel" and its operator, "delegate" and its backend, ….
    node:        None, or, for a part of what a backend runs, its number; `name` is the node's then.
    status:      after: how it went.
    time:        nanoseconds of a clock that never goes back.
    duration:    after: nanoseconds that it took, without the trace function's own.
    """

    __slots__ = ("_event", "_lent", "_root", "duration", "instruction", "kind", "moment", "name", "node", "status", "time")

    def __init__(self, event: CData, root: int) -> None:
        """Copy what `event` (an etude_event) says; `root` is that of the runtime."""
        self._event: CData = event
        self._root = root
        self._lent: LentValues | None = None
        self.moment = "after" if event.moment == lib.ETUDE_EVENT_AFTER else "before"
        self.instruction: int = event.instruction
        self.kind = KINDS.get(event.kind, str(event.kind))
        self.name = "" if event.name == ffi.NULL else text(event.name)
        self.node: int | None = event.node if event.depth > 0 else None
        self.status = Status(event.status)
        self.time: int = event.time
        self.duration: int = event.duration

    @property
    def arguments(self) -> list[Any]:
        """The arguments as they are now: read-only arrays in place, int, float, bool, str, None, and lists.

        After an instruction, its results are there. A tensor that has no memory yet is None. To keep an array is an error: copy it.
        """
        if self._event is None:
            raise EtudeStateError("the arguments of an event are only good during the call that it was given to")
        if self._lent is None:
            values = ffi.cast("etude_value *const *", self._event.arguments)
            self._lent = LentValues(self._root, values, self._event.argument_count, ffi.new("etude_result *"), None)
        return self._lent.args

    def __repr__(self) -> str:
        node = f", node {self.node}" if self.node is not None else ""
        after = f", {self.status.name}, {self.duration} ns" if self.moment == "after" else ""
        return f"<etude.Event {self.moment} instruction {self.instruction}{node}: {self.name or self.kind}{after}>"


class Watch:
    """A trace function, as C calls it."""

    def __init__(self, function: Trace, root: int) -> None:
        self.function, self.root = function, root
        self.handle = ffi.new_handle(self)

    def tell(self, pointer: CData) -> None:
        """Call the function."""
        event = Event(pointer, self.root)
        try:
            self.function(event)
        finally:
            event._event = None
            if event._lent is not None:
                event._lent.end()
        if event._lent is not None:
            event._lent.check_returned()


@ffi.def_extern(name="etude_py_trace", error=lib.ETUDE_INTERNAL, onerror=lost)
def _trace(handle: CData, event: CData, error: CData) -> int:
    return guarded("the trace function", error, ffi.from_handle(handle).tell, event)
