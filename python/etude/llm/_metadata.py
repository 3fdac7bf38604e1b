"""What a program of a language model says of itself: its constant methods, with the defaults that the official runner has."""

from __future__ import annotations

from dataclasses import dataclass, field

import etude
from etude.errors import EtudeProgramError

Constant = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The facts that exporters put into constant methods.

    max_seq_len:    most tokens of one call, by the exporter's word; the program's own bound may be one less.
    max_context:    positions that the cache has.
    vocab_size:     rows of the embedding, or None where it is not said.
    bos_id:         token that begins a text, or None.
    eos_ids:        tokens that end one; may be empty: then the tokenizer's counts.
    use_kv_cache:   whether calls continue where the last one ended.
    parallel:       whether several tokens may come in one call.
    constants:      all constant methods with their values, those above included.
    """

    max_seq_len: int
    max_context: int
    vocab_size: int | None = None
    bos_id: int | None = None
    eos_ids: frozenset[int] = frozenset()
    use_kv_cache: bool = True
    parallel: bool = True
    constants: dict[str, tuple[Constant, ...]] = field(default_factory=dict)


def read_constants(program: etude.Program) -> dict[str, tuple[Constant, ...]]:
    """The values of all methods without inputs whose outputs are numbers, bools or strings of the file."""
    found = {}
    for name in sorted(program.method_names):
        meta = program.metadata(name)
        if meta.inputs or not meta.outputs or any(o.tensor is not None for o in meta.outputs):
            continue
        found[name] = tuple(o.value for o in meta.outputs)
    return found


def read_info(program: etude.Program, bound: int) -> ModelInfo:
    """The metadata of a program whose token input holds at most `bound` tokens; that stands in for what is not said."""
    constants = read_constants(program)

    def number(name: str, default: int | None) -> int | None:
        values = constants.get(name)
        if values is None:
            return default
        if len(values) != 1 or not isinstance(values[0], int | float):
            raise EtudeProgramError(f"method '{name}' of the program should give one number, gives {list(values)}")
        return int(values[0])

    length = number("get_max_seq_len", bound) or bound
    eos = constants.get("get_eos_ids") or constants.get("get_eos_id") or ()
    return ModelInfo(
        max_seq_len=length,
        max_context=number("get_max_context_len", length) or length,
        vocab_size=number("get_vocab_size", None),
        bos_id=number("get_bos_id", None),
        eos_ids=frozenset(int(e) for e in eos if isinstance(e, int)),
        use_kv_cache=bool(number("use_kv_cache", 1)),
        parallel=bool(number("enable_dynamic_shape", 1 if bound > 1 else 0)) and bound > 1,
        constants=constants,
    )
