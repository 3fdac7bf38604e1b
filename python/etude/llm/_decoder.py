"""Drives the methods of a program that turn tokens, or their embeddings, into logits, and knows where in its window it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import etude
from etude.errors import EtudeProgramError, EtudeValueError

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], object]

_INTEGERS = ("int64", "int32")


def _is_tensor(info: etude.ValueInfo, ranks: tuple[int, ...], dtypes: tuple[str, ...] | None = None) -> bool:
    tensor = info.tensor
    return tensor is not None and len(tensor.sizes()) in ranks and (dtypes is None or tensor.dtype_name() in dtypes)


def as_floats(array: Array) -> Array:
    """Logits as float32; bfloat16 may come as its bits."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(array, np.float32)


class TokenMethod:
    """One method of the form (tokens or embeddings [, position or positions]) -> logits.

    bound:      most tokens of one call.
    is_dynamic: whether fewer will do.
    embeds:     the width of embeddings, or None where it takes tokens.
    position:   "none", "start" (the position of the first token) or "each" (the positions of all).
    """

    def __init__(self, method: etude.Method) -> None:
        """Look at the inputs; EtudeProgramError says which is not understood."""
        self.method = method
        inputs, outputs = method.metadata.inputs, method.metadata.outputs
        first = inputs[0] if inputs else None
        if first is not None and _is_tensor(first, (1, 2), _INTEGERS):
            self.embeds = None
        elif first is not None and _is_tensor(first, (3,)):
            self.embeds = first.tensor.sizes()[2] if first.tensor else None
        else:
            raise self._odd(0, first, "tokens, int64 [1, length], or embeddings, float [1, length, width]")
        assert first.tensor is not None
        self._first = first.tensor
        sizes = self._first.sizes()
        self.bound = sizes[-1] if self.embeds is None else sizes[1]
        self.is_dynamic = self._first.is_dynamic()
        self.position = "none"
        for i, info in enumerate(inputs[1:], 1):
            if i > 1 or not _is_tensor(info, (0, 1), _INTEGERS):
                raise self._odd(i, info, "positions, int64 [1] or [length], or nothing")
            assert info.tensor is not None
            self._place = info.tensor
            self.position = "each" if self._place.sizes() and self._place.sizes()[0] > 1 else "start"
        if not outputs or not _is_tensor(outputs[0], (1, 2, 3)):
            raise EtudeProgramError(f"method '{method.name}' gives no logits: its outputs are {[str(o) for o in outputs]}")
        assert outputs[0].tensor is not None
        self.vocab_size: int = outputs[0].tensor.sizes()[-1]

    def _odd(self, index: int, info: etude.ValueInfo | None, wanted: str) -> EtudeProgramError:
        got = "not there" if info is None else str(info)
        return EtudeProgramError(
            f"method '{self.method.name}' is no decoder of a language model that etude.llm can drive: its input {index} is {got}, "
            f"and {wanted} would be understood. Other methods can be named with LLM.from_methods, or the method called directly"
        )

    def __call__(self, chunk: Array, start: int) -> Array:
        """Logits of the last token of a chunk (ids, or rows of embeddings), float32 [vocabulary]. `start` is its position."""
        length = len(chunk)
        shape = (1,) * (len(self._first.sizes()) - (1 if self.embeds is None else 2)) + chunk.shape
        inputs = [np.ascontiguousarray(chunk).astype(self._first.numpy_dtype(), copy=False).reshape(shape)]
        if self.position != "none":
            places = np.arange(start, start + length) if self.position == "each" else np.array([start])
            inputs.append(places.astype(self._place.numpy_dtype()).reshape((-1,) if self._place.sizes() else ()))
        logits = as_floats(self.method.execute(inputs)[0])
        return np.asarray(logits.reshape(-1, logits.shape[-1])[-1])


class Decoder:
    """A conversation's place in a program: tokens go in at the present position, logits of the next one come out.

    position:  tokens that the cache holds.
    """

    def __init__(self, prefill: etude.Method, decode: etude.Method | None = None, *, use_cache: bool = True) -> None:
        """`prefill` reads prompts, `decode` single tokens; without it, the first does both."""
        self.prefill = TokenMethod(prefill)
        self.decode = self.prefill if decode is None else TokenMethod(decode)
        if self.decode.vocab_size != self.prefill.vocab_size:
            raise EtudeProgramError(
                f"methods '{prefill.name}' and '{self.decode.method.name}' give logits for {self.prefill.vocab_size} and "
                f"{self.decode.vocab_size} tokens: they are not of one model"
            )
        self.use_cache = use_cache and self.prefill.position != "none"
        self.position = 0
        self._history: list[Any] = []  # without a cache: everything so far goes in again

    @property
    def vocab_size(self) -> int:
        """Tokens that logits are for."""
        return self.prefill.vocab_size

    def feed(self, tokens: Sequence[int] | Array, progress: Progress | None = None) -> Array:
        """Read tokens (or rows of embeddings), in chunks that the program can take; logits of the last one.

        After a failure the position is that of the last chunk that was read.
        """
        rows = np.asarray(tokens)
        if len(rows) == 0:
            raise EtudeValueError("there are no tokens to read")
        if not self.use_cache:
            return self._feed_all(rows)
        return self._feed_chunks(rows, progress)

    def _feed_chunks(self, rows: Array, progress: Progress | None) -> Array:
        total, done = len(rows), 0
        logits: Array | None = None
        while done < total:
            left = total - done
            method = self.decode if left == 1 or (left < self.prefill.bound and not self.prefill.is_dynamic) else self.prefill
            length = min(left, method.bound)
            logits = method(rows[done : done + length], self.position)
            done += length
            self.position += length
            if progress is not None:
                progress(done, total)
        assert logits is not None
        return logits

    def _feed_all(self, rows: Array) -> Array:
        history = [*self._history, *rows]
        bound = self.prefill.bound
        if len(history) > bound:
            raise EtudeValueError(f"{len(history)} tokens: this model has no cache and reads {bound} at most, prompt and answer together")
        logits = self.prefill(np.asarray(history), 0)
        self._history = history
        self.position = len(history)
        return logits

    def move_to(self, position: int) -> None:
        """Continue at an earlier position: what was read beyond it no longer counts."""
        if not 0 <= position <= self.position:
            raise EtudeValueError(f"position {position} is not among the {self.position} that were read")
        self.position = position
        del self._history[position:]

    def restore_history(self, tokens: Sequence[int]) -> None:
        """Without a cache: the tokens that are read again at each call."""
        self._history = [] if self.use_cache else list(tokens)
