"""What a method does, instruction by instruction, as the program says it; nothing is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from etude._lib import CData, ErrorBlock, ffi, lib
from etude.metadata import MethodMeta, ValueInfo, new_sized

#: Names of the kinds of instructions, by the code of the C library.
KINDS = {
    lib.ETUDE_KERNEL_CALL: "kernel", lib.ETUDE_DELEGATE_CALL: "delegate", lib.ETUDE_MOVE_CALL: "move",
    lib.ETUDE_JUMP_FALSE: "jump", lib.ETUDE_FREE_CALL: "free",
}  # fmt: skip

_NO_VALUE = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a method, as an argument of an instruction."""

    index: int  #: its number among the values of the method: the same value is the same number everywhere
    info: ValueInfo  #: kind, and what else is known; a parameter or state buffer has its name in `info.tensor.name()`
    items: tuple[Value | None, ...] = ()  #: of a list of ints or tensors

    def __str__(self) -> str:
        name = self.info.tensor.name() if self.info.tensor is not None else ""
        items = f" [{', '.join(str(item) for item in self.items)}]" if self.items else ""
        return f"%{self.index} {self.info}{items}{f' {name!r}' if name else ''}"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a method."""

    index: int
    kind: str  #: "kernel", "delegate", "move", "jump" (where its argument is false) or "free"
    name: str  #: the operator with overload, or the backend; "" for other kinds
    arguments: tuple[Value, ...]  #: kernels: by schema, then the results again; delegates: inputs, then outputs; move: from, to
    target: int | None = None  #: where a jump goes

    def __str__(self) -> str:
        arguments = ", ".join(str(value) for value in self.arguments)
        jump = f" -> {self.target}" if self.target is not None else ""
        return f"{self.index}: {self.name or self.kind}({arguments}){jump}"


class _Values:
    """The values of one method, each read once."""

    def __init__(self, program: CData, method: int, error: ErrorBlock) -> None:
        self._program, self._method, self._error = program, method, error
        self._known: dict[int, Value] = {}
        self._info, self._item = new_sized("etude_value_info"), ffi.new("uint32_t *")

    def __call__(self, index: int) -> Value:
        found = self._known.get(index)
        if found is None:
            error, info, item = self._error, self._info, self._item
            error.check(lib.etude_program_value_info(self._program, self._method, index, info, error.pointer))
            described, items = ValueInfo(info), []
            for i in range(info.item_count):
                error.check(lib.etude_program_list_item(self._program, self._method, index, i, item, error.pointer))
                items.append(int(item[0]))
            found = Value(index, described, tuple(None if i == _NO_VALUE else self(i) for i in items))
            self._known[index] = found
        return found


def read_instructions(program: CData, method: int, meta: MethodMeta) -> list[Instruction]:
    """All instructions of a method of an open program (an etude_program)."""
    count = meta.num_instructions()
    error, rows = ErrorBlock(), ffi.new("etude_instruction_info[]", max(count, 1))
    rows[0].struct_size = ffi.sizeof("etude_instruction_info")
    error.check(lib.etude_program_instructions(program, method, 0, rows, count, error.pointer))
    values = _Values(program, method, error)
    return [_instruction(i, rows[i], values, meta) for i in range(count)]


def _instruction(index: int, row: CData, values: _Values, meta: MethodMeta) -> Instruction:
    places = row.operands if row.arguments == ffi.NULL else row.arguments
    names = {lib.ETUDE_KERNEL_CALL: meta.operators, lib.ETUDE_DELEGATE_CALL: meta.backends}.get(row.kind)
    return Instruction(
        index,
        KINDS.get(row.kind, str(row.kind)),
        names[row.index] if names is not None and row.index < len(names) else "",
        tuple(values(places[i]) for i in range(row.argument_count)),
        row.index if row.kind == lib.ETUDE_JUMP_FALSE else None,
    )
