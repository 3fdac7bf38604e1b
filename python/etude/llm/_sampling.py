"""From logits to the next token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from etude._lib import whole
from etude.errors import EtudeTypeError, EtudeValueError

Array = np.ndarray[Any, Any]

#: Gets the token ids so far and the logits (float32, one for each token of the vocabulary; a copy, that may be changed and
#: returned), gives the logits to sample from.
LogitBias = Mapping[int, float] | Callable[[list[int], Array], Array]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    temperature:        0 takes the likeliest token (the first of equals); logits are divided by it otherwise.
    top_k:              only the k likeliest tokens; 0 = all.
    top_p:              only the likeliest tokens that together have this probability; the one that reaches it belongs to them.
    min_p:              only tokens with at least this share of the likeliest one's probability.
    repetition_penalty: logits of tokens that occurred are divided by it where positive, multiplied where negative
                        (Keskar et al., "CTRL", 2019); 1 = none.
    logit_bias:         added to logits, by token id; -inf forbids a token. Or a function, for constrained decoding.
    """

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: LogitBias | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            value = getattr(self, name)
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
                raise EtudeTypeError(f"{name} must be a number, not {value!r}")
        whole("top_k", self.top_k, -(2**63), 2**63 - 1)
        checks = [
            ("temperature", self.temperature >= 0, "at least 0"),
            ("top_k", self.top_k >= 0, "at least 0 (0 = all tokens)"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("min_p", 0 <= self.min_p <= 1, "from 0 to 1"),
            ("repetition_penalty", self.repetition_penalty > 0, "above 0"),
        ]
        for name, holds, wanted in checks:
            if not holds:
                raise EtudeValueError(f"{name} must be {wanted}, not {getattr(self, name)!r}")
        if self.logit_bias is not None and not callable(self.logit_bias) and not isinstance(self.logit_bias, Mapping):
            got = type(self.logit_bias).__name__
            raise EtudeTypeError(f"logit_bias must be a dict from token ids to numbers, or a function, not {got}")


def choose(logits: Array, seen: list[int], sampling: Sampling, random: np.random.Generator) -> int:
    """The next token. `logits` is one row, float32, and is not changed; `seen` are the tokens so far."""
    if not np.isfinite(logits).any() or np.isnan(logits).any():
        bad = int(np.isnan(logits).sum())
        raise EtudeValueError(
            f"the model gives no usable logits: {bad} of {logits.size} are NaN. Its weights or its cache are damaged, "
            "or half precision is too little for it"
        )
    scores = _biased(_penalised(logits, seen, sampling.repetition_penalty), seen, sampling.logit_bias)
    best = int(np.argmax(scores))
    if scores[best] == -np.inf:
        raise EtudeValueError("logit_bias forbids every token")
    if sampling.temperature == 0:
        return best
    scores = (scores - scores[best]) / sampling.temperature
    keep = _kept(scores, sampling)
    weights = np.exp(scores[keep])
    cumulative = np.cumsum(weights)
    place = int(np.searchsorted(cumulative, random.random() * cumulative[-1], side="right"))
    return int(keep[min(place, keep.size - 1)])


def _penalised(logits: Array, seen: Iterable[int], penalty: float) -> Array:
    scores: Array = logits.astype(np.float64)
    if penalty != 1:
        ids = np.fromiter({i for i in seen if 0 <= i < scores.size}, np.int64)
        scores[ids] = np.where(scores[ids] > 0, scores[ids] / penalty, scores[ids] * penalty)
    return scores


def _biased(scores: Array, seen: list[int], bias: LogitBias | None) -> Array:
    if bias is None:
        return scores
    if callable(bias):
        changed = np.asarray(bias(list(seen), scores.astype(np.float32)), np.float64)
        if changed.shape != scores.shape:
            raise EtudeValueError(f"logit_bias returned an array of shape {changed.shape}, not {scores.shape}")
        return changed
    for token, value in bias.items():
        if not 0 <= whole("logit_bias: a token", token, -(2**63), 2**63 - 1) < scores.size:
            raise EtudeValueError(f"logit_bias: {token} is no token; the model has {scores.size}, counted from 0")
        if not isinstance(value, int | float | np.number):
            raise EtudeTypeError(f"logit_bias: what is added to token {token} must be a number, not {value!r}")
        scores[token] += value
    return scores


def _kept(scores: Array, sampling: Sampling) -> Array:
    """Ids of the candidates, likeliest first. `scores` have 0 as their largest."""
    order: Array = np.argsort(-scores, kind="stable")
    order = order[: sampling.top_k] if sampling.top_k else order
    weights = np.exp(scores[order])
    count = order.size
    if sampling.min_p > 0:
        count = max(1, int(np.count_nonzero(weights >= sampling.min_p)))
    if sampling.top_p < 1:
        cumulative = np.cumsum(weights[:count])
        count = int(np.searchsorted(cumulative, sampling.top_p * cumulative[-1], side="left")) + 1
    return order[: min(count, order.size)]
