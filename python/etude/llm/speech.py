"""`Transcriber`: speech to text, with Whisper's methods `encoder` and `text_decoder`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

import etude
from etude._lib import whole
from etude.errors import EtudeProgramError, EtudeValueError
from etude.llm._decoder import as_floats
from etude.llm._metadata import ModelInfo, read_info
from etude.llm.features import SAMPLE_RATE, log_mel
from etude.llm.tokenizers import Tokenizer, load_tokenizer

Array = np.ndarray[Any, Any]

_STEP = 0.02  # seconds between two timestamps


@dataclass(frozen=True, slots=True)
class Segment:
    """What was said from `start` to `end`, in seconds."""

    start: float
    end: float
    text: str


@dataclass(slots=True)
class Transcript:
    """text: all that was said; token_ids: of all windows; segments: where the model gave times, else empty."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    def __str__(self) -> str:
        return self.text


def _with_times(logits: Array, said: Sequence[int], first: int, end: int) -> Array:
    """Logits without the tokens that would break the order of words and times; words have ids below `end`, times from `first` on.

    A transcript begins with a time within its first second. Times come in pairs, the end of one segment and the beginning of the
    next, and do not go back. One is due where times together are likelier than any word. (Radford et al., 2022, and its program.)
    """
    logits = logits.copy()
    logits[first - 1] = -np.inf  # the token for no times at all
    if not said:
        logits[:first] = logits[first + round(1 / _STEP) + 1 :] = -np.inf
    elif said[-1] >= first:
        is_pair = len(said) < 2 or said[-2] >= first
        if is_pair:
            logits[first:] = -np.inf
        else:
            logits[:end] = logits[first : said[-1]] = -np.inf
    else:
        logits[first : max((t for t in said if t >= first), default=first - 1) + 1] = -np.inf
    words, times = logits[:first], logits[first:]
    most = times.max()
    if np.isfinite(most) and most + np.log(np.exp(times - most).sum()) > words.max():
        logits[:first] = -np.inf
    return logits


class Transcriber:
    """A speech recogniser of Whisper's shape in a `.pte` file.

        listener = Transcriber("whisper.pte", tokenizer="tokenizer.json")
        print(listener.transcribe(sound).text)      # float32, mono, 16 kHz

    `encoder(features) -> states` and `text_decoder(ids [1, 1], states, position [1]) -> logits`, as optimum exports them. One
    thread uses a Transcriber at a time.
    """

    def __init__(
        self,
        model: etude.Program | str | PathLike[str] | bytes,
        tokenizer: Tokenizer | str | PathLike[str] | None = None,
        **load_options: Any,
    ) -> None:
        """Load the model; `load_options` go to `etude.load`. Without a tokenizer there are only ids (`transcribe_ids`)."""
        self._program = model if isinstance(model, etude.Program) else etude.load(model, **load_options)
        missing = [n for n in ("encoder", "text_decoder") if n not in self._program.method_names]
        if missing:
            raise EtudeProgramError(f"the program is no speech recogniser of Whisper's shape: it has no method '{missing[0]}'")
        self._encoder = self._program.load_method("encoder")
        self._decoder = self._program.load_method("text_decoder")
        features = self._encoder.metadata.inputs[0].tensor
        if features is None or len(features.sizes()) != 3 or len(self._decoder.metadata.inputs) != 3:
            raise EtudeProgramError("'encoder' should take features [1, bands, frames], and 'text_decoder' ids, states and a position")
        self.bands, self.frames = features.sizes()[1:]
        self._features = features
        self.info: ModelInfo = read_info(self._program, 1)
        self.tokenizer = load_tokenizer(tokenizer) if isinstance(tokenizer, str | PathLike) else tokenizer

    @property
    def seconds(self) -> float:
        """The length of sound that is listened to at once (30 for Whisper)."""
        return self.frames * 160 / SAMPLE_RATE

    def transcribe(
        self, sound: Array, *, language: str | None = None, translate: bool = False, timestamps: bool = False, max_tokens: int | None = None
    ) -> Transcript:
        """What is said in `sound`: float samples from -1 to 1, one channel, 16 kHz, of any length.

        language: a code such as "en", for models that know several (None: the model begins without). timestamps: also when,
        if the model knows. Sound longer than `seconds` is listened to piece by piece.
        """
        if self.tokenizer is None:
            raise EtudeValueError('text needs a tokenizer: Transcriber(model, tokenizer="tokenizer.json"); ids do without: transcribe_ids')
        prompt = self._prompt(language, translate, timestamps)
        first_time = self._first_time()
        result = Transcript()
        piece = int(self.seconds * SAMPLE_RATE)
        for begin in range(0, max(1, len(sound)), piece):
            features = log_mel(sound[begin : begin + piece], self.bands, self.frames)
            ids = list(self._decode(features, prompt, max_tokens, first_time if timestamps else None))
            result.token_ids += ids
            self._read(ids, first_time, begin / SAMPLE_RATE, result)
        result.text = result.text.strip()
        return result

    def transcribe_ids(self, features: Array, *, prompt: Sequence[int] = (), max_tokens: int | None = None) -> list[int]:
        """Tokens for features [1, bands, frames] (`etude.llm.features.log_mel` makes them), greedily, up to the end token,
        which is the last. `prompt` follows the token that begins a transcript.
        """
        return list(self._decode(np.asarray(features), list(prompt), max_tokens, None))

    def _decode(self, features: Array, prompt: list[int], max_tokens: int | None, first_time: int | None) -> Iterator[int]:
        start = self.info.constants.get("decoder_start_token_id", (self.info.bos_id,))[0]
        if not isinstance(start, int):
            raise EtudeProgramError("the program does not say with which token a transcript begins (decoder_start_token_id)")
        ends = self.info.eos_ids or (self.tokenizer.eos_ids if self.tokenizer is not None else frozenset())
        states = self._encoder.execute([features.astype(self._features.numpy_dtype(), copy=False)])[0]
        window = self.info.max_context
        tokens = [start, *prompt]
        most = window if max_tokens is None else min(window, len(tokens) - 1 + whole("max_tokens", max_tokens, 1, 2**63 - 1))
        position = 0
        while position < most:
            ids = np.array([[tokens[position]]], np.int64)
            logits = as_floats(self._decoder.execute([ids, states, np.array([position], np.int64)])[0]).reshape(-1)
            position += 1
            if position < len(tokens):
                continue  # still reading the prompt
            if first_time is not None and first_time < len(logits):
                logits = _with_times(logits, tokens[1 + len(prompt) :], first_time, min(ends, default=first_time))
            token = int(np.argmax(logits))
            tokens.append(token)
            yield token
            if token in ends:
                return

    def _special(self, text: str) -> int | None:
        assert self.tokenizer is not None
        ids = self.tokenizer.encode(text, bos=False)
        return ids[0] if len(ids) == 1 else None

    def _first_time(self) -> int | None:
        """The token for 0 seconds. Tokenizers may not name it; it follows the one for no times at all."""
        time, silent = self._special("<|0.00|>"), self._special("<|notimestamps|>")
        return silent + 1 if time is None and silent is not None else time

    def _prompt(self, language: str | None, translate: bool, timestamps: bool) -> list[int]:
        wanted = [] if language is None else [f"<|{language}|>", "<|translate|>" if translate else "<|transcribe|>"]
        prompt = []
        for name in wanted:
            token = self._special(name)
            if token is None:
                raise EtudeValueError(f"language {language!r}: the tokenizer of this model has no {name}")
            prompt.append(token)
        silent = None if timestamps else self._special("<|notimestamps|>")
        return prompt if silent is None else [*prompt, silent]

    def _read(self, ids: Sequence[int], first_time: int | None, offset: float, result: Transcript) -> None:
        """Add the words of a window to the transcript, and its segments: words between two times."""
        assert self.tokenizer is not None
        words: list[int] = []
        begun: float | None = None
        for token in ids:
            if first_time is None or token < first_time:
                words.append(token)
                continue
            time = offset + (token - first_time) * _STEP
            text = self.tokenizer.decode(words)
            result.text += text
            if begun is not None and words:
                result.segments.append(Segment(round(begun, 2), round(time, 2), text.strip()))
            begun = time
            words = []
        result.text += self.tokenizer.decode(words)
