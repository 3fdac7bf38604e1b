"""A loaded method: give it inputs, get outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from etude import _arguments, _kept, _results, _torch
from etude._inputs import make_slot
from etude._lib import CData, ErrorBlock, Handle, Uncopied, ffi, lib, whole
from etude.errors import EtudeError, EtudeStateError, EtudeTypeError, EtudeValueError
from etude.metadata import MemoryReport, MethodMeta, TensorInfo, new_sized, value_infos
from etude.options import Explanation, OptionTable, effective_options, explain_option
from etude.state import Buffers, State
from etude.tracing import Trace, Watch

if TYPE_CHECKING:
    from types import TracebackType

Array = np.ndarray[Any, Any]

_call = lib.etude_call

#: Numbers of executions: tokens of who is in a method, by which `cancel` says which execution it means.
_numbers = itertools.count(1)


class Method(Uncopied):
    """A function of a program, with memory of its own. `Program.load_method` makes one.

    One thread at a time: a second one that enters while the first executes gets an EtudeStateError, never wrong numbers. For a method per
    thread use `program.load_method(name, fresh=True)`; constants are shared, so that this is cheap. The GIL is released while executing.
    """

    def __init__(
        self, program: Handle, index: int, name: str, handle: Handle, signals: CData, option_keys: Mapping[str, Sequence[str]]
    ) -> None:
        """For `Program.load_method`: takes over `handle`, an etude_method, watched by `signals`. `option_keys` are those set at load."""
        self._handle: Handle | None = handle
        self._program = program
        self._signals = signals
        self._program_closed = False  # by it the method was closed
        self._index_in_program = index
        self._name = name
        self._option_keys = option_keys
        self._pointer: Any = handle.pointer
        self._error = ErrorBlock()
        #: a token of the call that is in the method, under 0; of an execution, its number. No lock: a KeyboardInterrupt between
        #: `acquire` and `try` would leave it locked for ever, whereas a token tells whose it is. Setting and deleting an entry of a
        #: dict is one step.
        self._users: dict[int, object] = {}
        self._infos_in = value_infos(lib.etude_program_input_info, program, index, lib.etude_method_input_count(self._pointer))
        self._infos_out = value_infos(lib.etude_program_output_info, program, index, lib.etude_method_output_count(self._pointer))
        self._input_count = len(self._infos_in)
        self._output_count = len(self._infos_out)
        self._values = ffi.new("etude_value[]", max(self._input_count, 1))
        self._slots = [make_slot(i, name, info, self._values[i]) for i, info in enumerate(self._infos_in)]
        self._in_place = [slot for slot in self._slots if slot.in_place]
        self._results = ffi.new("etude_result[]", max(self._output_count, 1))
        self._changed = ffi.new("bool *", True)
        self._tensors: list[Array | None] = []  # outputs in place, where they are tensors
        self._readers: list[_results.Reader] = []
        self._makers: list[Callable[[Any], Any]] = []  # of torch tensors, when first asked for
        self._unplanned = [_takes_memory(info.tensor) for info in self._infos_out]
        self._bound: dict[int, Array] = {}  # outputs that C writes to an array of the caller's
        #: the arguments of the one C call of an execution, behind its number
        self._crossing: tuple[Any, ...] = (
            signals, self._pointer, self._values, self._input_count, self._results, self._output_count, self._changed, self._error.pointer,
        )  # fmt: skip
        self._state: Buffers | None = None  # when first asked for
        self._watch: object = None
        handle.keep(self._slots)

    @property
    def name(self) -> str:
        """The method's name."""
        return self._name

    @property
    def metadata(self) -> MethodMeta:
        """Inputs, outputs and needs."""
        with self._held():
            return MethodMeta(self._program, self._index_in_program)

    def execute(  # noqa: PLR0912  the one hot path: no calls but those that do the work
        self,
        inputs: object = (),
        *,
        out: Sequence[Any] | None = None,
        copy: bool = True,
        strict: bool = False,
        outputs: str | None = None,
    ) -> list[Any]:
        """Run the method and return its outputs as a list.

        inputs: a sequence with one entry for each input; a single array (or tensor, or number) counts as the only input. Tensors are
            numpy arrays, torch tensors, or anything with `__dlpack__` or the buffer protocol, of exactly the method's dtype and of a
            shape within its bounds; their strides don't matter, the logical values are copied. Others are int, float, bool, str, None.
            Containers were flattened at export, and their leaves are passed in order.
        out: arrays or torch tensors to write the outputs to, one for each (None = a new one). They are also what is returned. Outputs
            without planned memory are computed right in them where the layout fits.
        copy: False returns views of the method's memory, which the next execution overwrites; arrays are read only.
        strict: True refuses arrays that would have to be rearranged, instead of copying them.
        outputs: "numpy" returns numpy arrays, "torch" torch tensors; None: tensors if one of the inputs is a torch tensor, else arrays.

        Returns arrays or tensors that own their memory (a channels-last output keeps its strides), int, float, bool, str, None, and lists.
        Raises EtudeTypeError or EtudeValueError, naming the input, what was expected and what came, before anything runs;
        EtudeStateError when another thread is in this method, or it is closed; otherwise what the C library reports. A failed call does
        no harm to the next, except that state buffers may have been written.
        """
        if type(inputs) is not list and type(inputs) is not tuple:
            inputs = _arguments.as_list(inputs)
        if len(inputs) != self._input_count:
            raise self._count_error(inputs)
        torch = _torch.any_tensor(inputs) if outputs is None else _torch.chosen(outputs)
        users, mine = self._users, next(_numbers)
        try:
            if users.setdefault(0, mine) is not mine:
                raise self._busy()
            if self._pointer is None:
                raise self._closed()
            for slot, x in zip(self._slots, inputs):
                slot.set(x, strict)
            if out is not None or self._bound:
                targets = self._targets(out)
            status = _call(mine, *self._crossing)
            if status != 0:
                raise self._error.exception(status)
            if self._changed[0]:
                self._renew_readers()
            if out is not None:
                return self._write(out, targets, torch)
            if torch:
                return self._as_tensors(copy)
            if not copy:
                return self._views()
            return [read() for read in self._readers]
        finally:
            if 0 in users and users[0] is mine:
                try:
                    for large in self._in_place:
                        large.release()
                finally:
                    del users[0]

    def check_inputs(self, inputs: object = (), *, strict: bool = False) -> None:
        """Raise what `execute` would raise for these inputs, and execute nothing."""
        inputs = inputs if isinstance(inputs, (list, tuple)) else _arguments.as_list(inputs)
        if len(inputs) != self._input_count:
            raise self._count_error(inputs)
        with self.exclusive():
            try:
                for slot, x in zip(self._slots, inputs):
                    slot.set(x, strict)
            finally:
                for large in self._in_place:
                    large.release()

    def __call__(
        self,
        *inputs: object,
        out: Sequence[Any] | None = None,
        copy: bool = True,
        strict: bool = False,
        outputs: str | None = None,
    ) -> list[Any]:
        """`method(x, y)` is `method.execute([x, y])`."""
        return self.execute(inputs, out=out, copy=copy, strict=strict, outputs=outputs)

    def cancel(self) -> None:
        """End the execution that is going on, within an instruction too, with an EtudeCancelledError. Where there is none, nothing happens.

        For any thread, or a signal handler. One that comes too late, when the execution is just over, does not touch the next; nor does
        one that comes when less than a millisecond of work is left, which may be done by then. Afterwards the method works as before, but
        for what was written to state buffers by then. Ctrl-C needs none of this: it ends what the main thread executes with a
        KeyboardInterrupt; so does whatever a signal handler raises.
        """
        number = self._users.get(0)
        if isinstance(number, int):
            self._signals.cancelled = number

    @property
    def state(self) -> State:
        """The named state buffers: a mapping from names to arrays."""
        with self._held() as pointer:
            if self._state is None:
                self._state = Buffers(pointer)
            return State(pointer, self, self._state)

    def set_seed(self, seed: int) -> None:
        """Start the method's random numbers (rand, dropout, …) anew from `seed`, 0 to 2**64 - 1.

        A method that was just loaded has seed 0, and every execution goes on where the one before ended.
        """
        value = whole("seed", seed, 0, 2**64 - 1)
        with self.exclusive():
            lib.etude_method_set_seed(self._pointer, value)

    @property
    def memory(self) -> MemoryReport:
        """What the method takes of memory now, and what it took at most."""
        with self.exclusive():
            info = new_sized("etude_memory_info")
            lib.etude_method_memory(self._pointer, info)
            return MemoryReport.from_info(info)

    def explain_option(self, backend: str, key: str) -> Explanation:
        """What an option is set to for this method, layer by layer, and which layer wins. Its repr shows it. Any thread.

        The process-wide value is that of the moment the method was loaded, or, for a key that takes effect at once, the present one.
        A read-only key has one layer, "backend", with its present value. EtudeKeyError for an unknown backend or key.
        """
        with self._held() as pointer:
            return explain_option(pointer, self._program.parent, backend, key)

    def options(self, backend: str) -> OptionTable:
        """The options of a backend by key, each with the value that counts for this method, and where that comes from. Any thread.

        Read-only keys are the backend's, not the method's. Of a backend without schema only the keys that were set at load are known.
        """
        with self._held() as pointer:
            return effective_options(pointer, self._program.parent, backend, dict.fromkeys(self._option_keys.get(backend, ())))

    @contextmanager
    def trace(self, function: Trace) -> Iterator[None]:
        """`with method.trace(function):` calls `function(event)` before and after each instruction; see `etude.Event`.

            >>> with method.trace(lambda event: event.moment == "after" and print(event)):
            ...     method(x)

        An instruction that does the work of those behind it is told of alone, and what is computed once is not:
        `load_method(name, constant_limit=0)` has each for itself. An exception in the function ends the execution, as one in a backend
        does. It runs on the thread that executes, and must not use the method. EtudeStateError where the method is traced already, or
        executing.
        """
        if not callable(function):
            raise EtudeTypeError(f"trace takes a function, not {type(function).__name__}")
        watch = Watch(function, self._program.root)
        with self.watched(lib.etude_py_trace, watch.handle, watch):
            yield

    @contextmanager
    def watched(self, hook: CData, handle: CData, keeper: object, *, only_after: bool = False) -> Iterator[None]:
        """A C hook round each instruction, or after it; `keeper` is kept alive meanwhile. For `trace` and `etude.profile`."""
        with self.exclusive():
            if self._watch is not None:
                raise EtudeStateError(f"method '{self._name}' is traced already")
            self._watch = keeper
            (lib.etude_method_set_trace_after if only_after else lib.etude_method_set_trace)(self._pointer, hook, handle)
        try:
            yield
        finally:
            with self._alone():
                self._watch = None
                if self._pointer is not None:
                    lib.etude_method_set_trace(self._pointer, ffi.NULL, ffi.NULL)

    @contextmanager
    def _held(self) -> Iterator[Any]:
        """The C method, which can't be freed meanwhile; it may be executing."""
        handle = self._handle
        if handle is None:
            raise self._closed()
        handle.retain()
        try:
            yield handle.pointer
        finally:
            handle.release()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads out of the method; EtudeStateError where one is in, or the method is closed."""
        with self._alone():
            if self._pointer is None:
                raise self._closed()
            yield

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out of the method, which may be closed."""
        users, mine = self._users, object()
        try:
            if users.setdefault(0, mine) is not mine:
                raise self._busy()
            yield
        finally:
            if 0 in users and users[0] is mine:
                del users[0]

    def close(self) -> None:
        """Free the method's memory. Arrays it returned stay good. Closing twice is fine."""
        if self._handle is None:
            return
        with self._alone():
            handle, self._handle, self._pointer, self._crossing = self._handle, None, None, ()
            _kept.hold(self._program.root, self._bound)
            self._readers, self._tensors, self._bound = [], [], {}
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
        results = [self._results[i] for i in range(self._output_count)]
        self._tensors = [_results.tensor_view(r) if r.tag == lib.ETUDE_VALUE_TENSOR else None for r in results]
        self._readers = [_results.make_reader(self._pointer, i, r, self._tensors[i], self._error) for i, r in enumerate(results)]
        self._makers = []
        self._changed[0] = False

    def _views(self, writeable: bool = False) -> list[Any]:
        """The outputs in place; each view keeps the C method alive, as the cached ones must not."""
        return [
            read() if tensor is None else _results.tensor_view(self._results[i], self._handle, writeable=writeable)
            for i, (tensor, read) in enumerate(zip(self._tensors, self._readers))
        ]

    def _as_tensors(self, copy: bool) -> list[Any]:
        """The outputs as torch tensors over copies, or over the method's memory; torch knows no read-only tensors."""
        values = [read() for read in self._readers] if copy else self._views(writeable=True)
        if not self._makers:
            self._makers = [
                _torch.from_value if view is None else _torch.maker(self._results[i].scalar_type) for i, view in enumerate(self._tensors)
            ]
        return [make(value) for make, value in zip(self._makers, values)]

    def _targets(self, out: Sequence[Any] | None) -> list[Array | None]:
        """`out` as arrays, checked; where it can, C writes right into them."""
        if out is None:
            out = [None] * self._output_count
        elif not isinstance(out, Sequence) or len(out) != self._output_count:
            is_one = isinstance(out, np.ndarray) or _torch.is_tensor(out)
            given = len(out) if isinstance(out, (list, tuple)) else "one array" if is_one else type(out).__name__
            raise EtudeValueError(f"method '{self._name}', out: expected a list of {self._output_count} arrays, got {given}")
        targets: list[Array | None] = []
        for i, item in enumerate(out):
            array = _results.target(item)
            info = self._infos_out[i].tensor
            if array is not None and info is not None:
                _results.check_out(array, i, self._name, info)
            targets.append(array)
        for i, array in enumerate(targets):
            if self._unplanned[i]:
                self._bind_one(i, array)
        return targets

    def _bind_one(self, index: int, array: Array | None) -> None:
        """Give output `index`, which has no planned memory, the memory of `array`, or its own again."""
        bound = self._bound.get(index)
        if bound is array:
            return
        if bound is not None:
            self._error.check(lib.etude_method_set_output(self._pointer, index, ffi.NULL, 0, self._error.pointer))
            _kept.hold(self._program.root, self._bound.pop(index))
        if array is not None and array.size and array.flags.c_contiguous and array.flags.aligned and array.dtype.kind != "V":
            memory = ffi.from_buffer("char[]", array, require_writable=True)
            try:
                if lib.etude_method_set_output(self._pointer, index, memory, array.nbytes, self._error.pointer) == 0:
                    self._bound[index] = array  # otherwise (an output that is an input, say) it is copied after the call
            except BaseException:  # KeyboardInterrupt: C must not keep memory of which this object knows nothing
                lib.etude_method_set_output(self._pointer, index, ffi.NULL, 0, self._error.pointer)
                self._bound.pop(index, None)
                raise

    def _write(self, out: Sequence[Any], targets: list[Array | None], torch: bool) -> list[Any]:
        """Copy results to the caller's arrays, but for those that stand there already."""
        found: list[Any] = []
        for i, (array, tensor) in enumerate(zip(targets, self._tensors)):
            if array is None or tensor is None:
                value = self._readers[i]()
                found.append(_torch.from_value(value) if torch else value)
                continue
            if i not in self._bound:
                if tensor.shape != array.shape:
                    raise EtudeValueError(
                        f"method '{self._name}', out[{i}]: the result has shape {list(tensor.shape)}, the array {list(array.shape)}"
                    )
                array[...] = tensor
            found.append(out[i])
        return found

    def _closed(self) -> EtudeStateError:
        if self._program_closed:
            return EtudeStateError(
                f"method '{self._name}' is closed, since its program was closed, which closes all that load_method('{self._name}') gave: "
                f"load_method('{self._name}', fresh=True) gives one that stays"
            )
        return EtudeStateError(f"method '{self._name}' is closed; load it again")

    def close_with_program(self) -> None:
        """For `Program.close`: the same as `close`, and errors say why."""
        self._program_closed = self._handle is not None
        self.close()

    def _busy(self) -> EtudeStateError:
        return EtudeStateError(
            f"method '{self._name}' is in use by another thread, or by a call of this one that is not over; "
            f"give each its own with load_method('{self._name}', fresh=True)"
        )

    def _count_error(self, inputs: Sequence[object]) -> EtudeError:
        signature = ", ".join(str(info) for info in self._infos_in)
        first = inputs[0] if inputs else None
        kind: type[EtudeError] = EtudeValueError
        if len(inputs) == 1 and isinstance(first, Mapping):
            kind = EtudeTypeError
            got, hint = "a dict", "inputs have no names in a program: pass their values, in the order of the arguments at export"
        elif len(inputs) == 1 and isinstance(first, (list, tuple)):
            got = f"one, a {type(first).__name__} of {len(first)}"
            hint = "write method(x, y), or method.execute([x, y])"
        else:
            got = str(len(inputs))
            hint = "execute takes a list or tuple as the list of inputs"
            if self._input_count == 1 and inputs and _arguments.is_numbers(inputs):
                hint += "; if it is the one input, make it an array first, with numpy.asarray(x, dtype=...)"
        plural = "input" if self._input_count == 1 else "inputs"
        error = kind(f"method '{self._name}': expected {self._input_count} {plural} ({signature}), got {got}; {hint}")
        error.subject = self._name
        return error


def _takes_memory(tensor: TensorInfo | None) -> bool:
    """May the caller give such an output its memory, a C-contiguous array of its one shape?"""
    if tensor is None or tensor.is_memory_planned() or tensor.is_dynamic():
        return False
    order = tensor.dim_order()
    return order == tuple(range(len(order)))
