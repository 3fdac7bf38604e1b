"""A loaded method: give it inputs, get outputs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from etude import _arguments, _results
from etude._inputs import make_slot
from etude._lib import ErrorBlock, Handle, ffi, lib
from etude.errors import EtudeStateError, EtudeValueError
from etude.metadata import MemoryReport, MethodMeta, new_sized, value_infos
from etude.state import State

if TYPE_CHECKING:
    from types import TracebackType

Array = np.ndarray[Any, Any]

_call = lib.etude_call


class Method:
    """A function of a program, with memory of its own. `Program.load_method` makes one.

    One thread at a time: a second one that enters while the first executes gets an EtudeStateError, never wrong numbers. For a method per
    thread use `program.load_method(name, fresh=True)`; constants are shared, so that this is cheap. The GIL is released while executing.
    """

    def __init__(self, program: Handle, index: int, name: str, handle: Handle) -> None:
        """For `Program.load_method`: takes over `handle`, an etude_method."""
        self._handle: Handle | None = handle
        self._program = program
        self._index_in_program = index
        self._name = name
        self._pointer: Any = handle.pointer
        self._error = ErrorBlock()
        self._lock = threading.Lock()
        self._infos_in = value_infos(lib.etude_program_input_info, program, index, lib.etude_method_input_count(self._pointer))
        self._infos_out = value_infos(lib.etude_program_output_info, program, index, lib.etude_method_output_count(self._pointer))
        self._input_count = len(self._infos_in)
        self._output_count = len(self._infos_out)
        self._values = ffi.new("etude_value[]", max(self._input_count, 1))
        self._slots = [make_slot(i, name, info, self._values[i]) for i, info in enumerate(self._infos_in)]
        self._in_place = [slot for slot in self._slots if slot.in_place]
        self._results = ffi.new("etude_result[]", max(self._output_count, 1))
        self._changed = ffi.new("bool *", True)
        self._readers: list[_results.Reader] = []
        self._bound: dict[int, Array] = {}  # outputs that C writes to an array of the caller's
        handle.keep(self._slots)

    @property
    def name(self) -> str:
        """The method's name."""
        return self._name

    @property
    def metadata(self) -> MethodMeta:
        """Inputs, outputs and needs."""
        self._check_open()
        return MethodMeta(self._program, self._index_in_program)

    def execute(
        self,
        inputs: object = (),
        *,
        out: Sequence[Array | None] | None = None,
        copy: bool = True,
        strict: bool = False,
    ) -> list[Any]:
        """Run the method and return its outputs as a list.

        inputs: a sequence with one entry for each input; a single array (or tensor, or number) counts as the only input. Tensors are
            numpy arrays, torch tensors, or anything with `__dlpack__` or the buffer protocol, of exactly the method's dtype and of a
            shape within its bounds; their strides don't matter, the logical values are copied. Others are int, float, bool, str, None.
            Containers were flattened at export, and their leaves are passed in order.
        out: arrays to write the outputs to, one for each (None = a new one). They are also what is returned. Outputs without planned
            memory are computed right in them where the layout fits.
        copy: False returns read-only views of the method's memory, which the next execution overwrites.
        strict: True refuses arrays that would have to be rearranged, instead of copying them.

        Returns numpy arrays that own their memory (a channels-last output keeps its strides), int, float, bool, str, None, and lists.
        Raises EtudeTypeError or EtudeValueError, naming the input, what was expected and what came, before anything runs;
        EtudeStateError when another thread is in this method, or it is closed; otherwise what the C library reports. A failed call does
        no harm to the next, except that state buffers may have been written.
        """
        if type(inputs) is not list and type(inputs) is not tuple:
            inputs = _arguments.as_list(inputs)
        if len(inputs) != self._input_count:
            raise self._count_error(len(inputs))
        if not self._lock.acquire(False):
            raise self._busy()
        try:
            if self._pointer is None:
                raise self._closed()
            for slot, x in zip(self._slots, inputs):
                slot.set(x, strict)
            if out is not None or self._bound:
                self._bind(out)
            error = self._error
            status = _call(self._pointer, self._values, self._input_count, self._results, self._output_count, self._changed, error.pointer)
            for large in self._in_place:
                large.release()
            if status != 0:
                raise error.exception(status)
            if self._changed[0]:
                self._renew_readers()
            if out is not None:
                return self._write(out)
            if not copy:
                return self._views()
            return [read() for read in self._readers]
        finally:
            self._lock.release()

    def __call__(self, *inputs: object, out: Sequence[Array | None] | None = None, copy: bool = True, strict: bool = False) -> list[Any]:
        """`method(x, y)` is `method.execute([x, y])`."""
        return self.execute(inputs, out=out, copy=copy, strict=strict)

    @property
    def state(self) -> State:
        """The named state buffers: a mapping from names to arrays."""
        self._check_open()
        return State(self._pointer, self)

    @property
    def memory(self) -> MemoryReport:
        """What the method takes of memory now, and what it took at most."""
        with self.exclusive():
            info = new_sized("etude_memory_info")
            lib.etude_method_memory(self._pointer, info)
            return MemoryReport.from_info(info)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads out of the method; EtudeStateError where one is in, or the method is closed."""
        if not self._lock.acquire(False):
            raise self._busy()
        try:
            self._check_open()
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        """Free the method's memory. Arrays it returned stay good. Closing twice is fine."""
        if self._handle is None:
            return
        if not self._lock.acquire(False):
            raise self._busy()
        try:
            handle, self._handle, self._pointer = self._handle, None, None
            self._readers = []
            self._bound = {}
        finally:
            self._lock.release()
        if handle is not None:
            handle.release()

    def __enter__(self) -> Method:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            self._handle = None
            handle.release()

    def __repr__(self) -> str:
        inputs = ", ".join(str(info) for info in self._infos_in)
        outputs = ", ".join(str(info) for info in self._infos_out)
        closed = " (closed)" if self._handle is None else ""
        return f"<etude.Method '{self._name}' ({inputs}) -> ({outputs}){closed}>"

    def _renew_readers(self) -> None:
        """Results moved or changed their shape: make the functions that copy them out anew."""
        self._readers = [_results.make_reader(self._pointer, i, self._results[i], self._error) for i in range(self._output_count)]
        self._changed[0] = False

    def _views(self) -> list[Any]:
        assert self._handle is not None
        found = []
        for i, read in enumerate(self._readers):
            result = self._results[i]
            found.append(_results.tensor_view(result, self._handle) if result.tag == lib.ETUDE_VALUE_TENSOR else read())
        return found

    def _bind(self, out: Sequence[Array | None] | None) -> None:
        """Check `out`, and let C write right into those of its arrays where it can."""
        if out is not None:
            if isinstance(out, np.ndarray) or len(out) != self._output_count:
                given = "one array" if isinstance(out, np.ndarray) else len(out)
                raise EtudeValueError(f"method '{self._name}', out: expected a list of {self._output_count} arrays, got {given}")
            for i, (array, info) in enumerate(zip(out, self._infos_out)):
                tensor = info.tensor
                if array is not None and tensor is not None:
                    shape = None if tensor.is_dynamic() else tensor.sizes()
                    _results.check_out(array, i, self._name, str(tensor), tensor.dtype(), shape)
        wanted = {i: array for i, array in enumerate(out or ()) if array is not None and self._can_bind(i, array)}
        for i in [i for i, array in self._bound.items() if wanted.get(i) is not array]:
            self._error.check(lib.etude_method_set_output(self._pointer, i, ffi.NULL, 0, self._error.pointer))
            del self._bound[i]
        for i, array in wanted.items():
            if i not in self._bound:
                memory = ffi.from_buffer("char[]", array, require_writable=True)
                if lib.etude_method_set_output(self._pointer, i, memory, array.nbytes, self._error.pointer) == 0:
                    self._bound[i] = array  # otherwise (an output that is an input, say) it is copied after the call

    def _can_bind(self, index: int, array: Array) -> bool:
        tensor = self._infos_out[index].tensor
        if tensor is None or tensor.is_memory_planned() or tensor.is_dynamic():
            return False
        default = tensor.dim_order() == tuple(range(array.ndim))
        return bool(default and array.size and array.flags.c_contiguous and array.flags.aligned and array.dtype.kind != "V")

    def _write(self, out: Sequence[Array | None]) -> list[Any]:
        """Copy results to the caller's arrays, but for those that stand there already."""
        found: list[Any] = []
        for i, (array, read) in enumerate(zip(out, self._readers)):
            result = self._results[i]
            if array is None or result.tag != lib.ETUDE_VALUE_TENSOR:
                found.append(read())
                continue
            if i not in self._bound:
                view = _results.tensor_view(result)
                if view.shape != array.shape:
                    raise EtudeValueError(
                        f"method '{self._name}', out[{i}]: the result has shape {list(view.shape)}, the array {list(array.shape)}"
                    )
                array[...] = view
            found.append(array)
        return found

    def _check_open(self) -> None:
        if self._pointer is None:
            raise self._closed()

    def _closed(self) -> EtudeStateError:
        return EtudeStateError(f"method '{self._name}' is closed; load it again")

    def _busy(self) -> EtudeStateError:
        return EtudeStateError(
            f"method '{self._name}' is in use by another thread; give each thread its own with load_method('{self._name}', fresh=True)"
        )

    def _count_error(self, given: int) -> EtudeValueError:
        signature = ", ".join(str(info) for info in self._infos_in)
        error = EtudeValueError(
            f"method '{self._name}': {given} inputs given, {self._input_count} expected ({signature}); "
            f"a list or tuple is taken as the list of inputs"
        )
        error.subject = self._name
        return error
