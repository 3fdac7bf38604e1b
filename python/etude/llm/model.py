"""`LLM`: a language model that continues text and chats."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import etude
from etude._lib import whole
from etude.errors import EtudeProgramError, EtudeStateError, EtudeTypeError, EtudeValueError
from etude.llm._chat import Message, find_template, render
from etude.llm._decoder import Decoder, Progress
from etude.llm._metadata import ModelInfo, read_info
from etude.llm._sampling import LogitBias, Sampling, choose
from etude.llm._text import TextStream
from etude.llm.images import Eyes
from etude.llm.tokenizers import Tokenizer, load_tokenizer

Array = np.ndarray[Any, Any]
#: Text, token ids, or (for models that see) a list of texts and images.
Prompt = str | Sequence[int] | Sequence[str | Array]
Source = etude.Program | str | PathLike[str] | bytes


@dataclass(slots=True)
class Generation:
    """What a generation did.

    text:           the text, without the prompt.
    token_ids:      its tokens; a token that ended it is the last of them.
    prompt_tokens:  tokens of the prompt; `reused` of them were in the cache already.
    finish_reason:  "stop" (end token or stop string), "length" (max_tokens), "window" (the model's window is full),
                    or "interrupted".
    """

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    prompt_tokens: int = 0
    reused: int = 0
    finish_reason: str = "interrupted"
    prompt_seconds: float = 0.0
    token_seconds: float = 0.0

    @property
    def prompt_tokens_per_second(self) -> float:
        """Tokens of the prompt that were read in a second."""
        return (self.prompt_tokens - self.reused) / self.prompt_seconds if self.prompt_seconds > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens that came in a second, after the first."""
        return (len(self.token_ids) - 1) / self.token_seconds if self.token_seconds > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"{self.prompt_tokens} tokens read at {self.prompt_tokens_per_second:.1f} a second, {len(self.token_ids)} written at "
            f"{self.tokens_per_second:.1f} a second ({self.finish_reason})"
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A conversation at one moment: give it to `LLM.restore`. It holds copies of all caches."""

    tokens: tuple[int, ...]
    position: int
    state: Mapping[str, Array]


def _ids(tokens: object) -> list[int]:
    """Token ids of a prompt, checked."""
    array = np.asarray(tokens)
    if array.size > 0 and array.dtype.kind not in "iu":
        raise EtudeTypeError(f"prompt must be a text, or a list of token ids, which are ints, or of texts and images, not {tokens!r:.60}")
    return [int(i) for i in array.reshape(-1)]


def _texts(stop: object) -> tuple[str, ...]:
    """The option `stop`, checked."""
    if isinstance(stop, str):
        stop = (stop,)
    if not isinstance(stop, Sequence | Set) or isinstance(stop, bytes | bytearray) or not all(isinstance(s, str) for s in stop):
        raise EtudeTypeError(f"stop must be a text or a list of texts, not {stop!r}")
    if "" in stop:
        raise EtudeValueError("stop: an empty text would end everything at once")
    return tuple(stop)


def _no_reader(program: etude.Program) -> EtudeProgramError:
    """What to do with a program that has no method by which prompts are read."""
    names = program.method_names
    if {"encoder", "text_decoder"} <= names:
        return EtudeProgramError("the program recognises speech, it continues no text: etude.llm.Transcriber runs it")
    methods = [name for name in sorted(names) if program.metadata(name).inputs]
    return EtudeProgramError(
        f"the program has neither a method 'forward' nor 'prefill' (it has: {', '.join(methods) or 'none with inputs'}): "
        "name its methods with LLM.from_methods"
    )


class LLM:
    """A decoder-only language model in a `.pte` file, with its tokenizer.

        llm = LLM("model.pte", tokenizer="tokenizer.json")
        print(llm.generate("Once upon a time", max_tokens=50))
        for piece in llm.stream("Once upon a time"): print(piece, end="", flush=True)

    Programs of the llama and optimum exporters are understood as they are: methods `forward`, or `prefill` and `decode`, and
    metadata in constant methods. `last` is the Generation of the latest call, `info` the metadata.

    One thread uses an LLM at a time. Two LLMs, also of one file, are independent: each loads methods and caches of its own.
    """

    def __init__(
        self,
        model: Source,
        tokenizer: Tokenizer | str | PathLike[str] | None = None,
        *,
        prefill: str | None = None,
        decode: str | None = None,
        **load_options: Any,
    ) -> None:
        """Load a model. Without a tokenizer prompts are token ids, and results too.

        `model` is a file, its bytes, or a Program (whose methods and caches the LLM then uses); `load_options` go to
        `etude.load` (data_path, backend_options, …). `prefill` and `decode` name methods: see `from_methods`.
        """
        self._program = model if isinstance(model, etude.Program) else etude.load(model, **load_options)
        names = self._program.method_names
        sees = {"token_embedding", "text_decoder"} <= names
        reader = prefill or ("text_decoder" if sees else next((n for n in ("forward", "prefill") if n in names), None))
        if reader is None:
            raise _no_reader(self._program)
        stepper = decode or ("decode" if "decode" in names and reader != "decode" else None)
        reading = self._program.load_method(reader)
        stepping = None if stepper is None else self._program.load_method(stepper)
        bound = Decoder(reading, stepping).prefill.bound
        self.info: ModelInfo = read_info(self._program, bound)
        self._decoder = Decoder(reading, stepping, use_cache=self.info.use_kv_cache)
        self._eyes = Eyes(self._program, self.info) if self._decoder.prefill.embeds is not None else None
        self.tokenizer = load_tokenizer(tokenizer) if isinstance(tokenizer, str | PathLike) else tokenizer
        if self.tokenizer is not None and not all(hasattr(self.tokenizer, name) for name in ("encode", "decode")):
            raise EtudeTypeError(f"tokenizer must be a path or a tokenizer of etude.llm.load_tokenizer, not {type(tokenizer).__name__}")
        self.last = Generation()
        self._can_rewind = self._can_go_back()
        self._endless = self.info.max_seq_len < self.info.max_context and not self._can_rewind  # a sliding window
        self._tokens: list[int] = []  # what the cache holds
        self._busy = False

    @classmethod
    def from_methods(
        cls,
        model: Source,
        prefill: str,
        decode: str | None = None,
        *,
        tokenizer: Tokenizer | str | PathLike[str] | None = None,
        **options: Any,
    ) -> LLM:
        """An LLM whose methods have other names: `prefill` reads prompts, `decode` (by default the same) single tokens."""
        return cls(model, tokenizer, prefill=prefill, decode=decode or prefill, **options)

    # -- generating --------------------------------------------------------------------------------------------------

    def generate(self, prompt: Prompt, **options: Any) -> str:
        """The text that follows a prompt. All of `stream`'s options."""
        for _ in self.stream(prompt, **options):
            pass
        return self.last.text

    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        stop: str | Sequence[str] = (),
        seed: int | None = None,
        logit_bias: LogitBias | None = None,
        fresh: bool = True,
        bos: bool | None = None,
        progress: Progress | None = None,
    ) -> Iterator[str]:
        """The text that follows a prompt, in pieces of whole characters as they come.

        max_tokens: most tokens; None = to the end of the window. Sampling is described at `etude.llm.Sampling`; `seed` makes
        it repeatable. Generation ends at an end token or at one of the texts in `stop`, which do not belong to the result.
        fresh: the prompt begins a text (tokens that the cache holds from a prompt with the same beginning are not read
        again); False continues at the present position, as the official runner does.
        bos: put the token for the beginning of a text in front; None = where the tokenizer is used so.
        progress(done, total): called while a long prompt is read.
        """
        stops = _texts(stop)
        tokenizer = self._need_tokenizer()
        ids = self._encode(prompt, bos)
        text = TextStream(tokenizer.decode, stops, context=[i for i in ids[-4:] if i >= 0])
        sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty, logit_bias)
        tokens = self._tokens_after(ids, max_tokens, sampling, seed, fresh, progress)
        return self._pieces(text, tokens)

    def _pieces(self, text: TextStream, tokens: Iterator[int]) -> Iterator[str]:
        done = Generation()
        ends = self._ends()
        try:
            for token in tokens:
                done = self.last
                if token in ends:
                    continue
                piece = text.push(token)
                done.text += piece
                if piece:
                    yield piece
                if text.stopped:
                    done.finish_reason = "stop"
                    break
            piece = text.finish()
            done.text += piece
            if text.stopped:
                done.finish_reason = "stop"
            if piece:
                yield piece
        finally:
            tokens.close()  # type: ignore[attr-defined]  # a generator

    def generate_ids(self, prompt: Prompt, **options: Any) -> list[int]:
        """The tokens that follow a prompt: for those who bring their own tokenizer. Options as for `stream`, but `stop`."""
        return list(self.stream_ids(prompt, **options))

    def stream_ids(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        seed: int | None = None,
        fresh: bool = True,
        bos: bool | None = None,
        progress: Progress | None = None,
        **sampling: Any,
    ) -> Iterator[int]:
        """The same as they come; an end token is the last."""
        return self._tokens_after(self._encode(prompt, bos), max_tokens, Sampling(**sampling), seed, fresh, progress)

    def _tokens_after(
        self, ids: list[int], max_tokens: int | None, sampling: Sampling, seed: int | None, fresh: bool, progress: Progress | None
    ) -> Iterator[int]:
        if max_tokens is not None and whole("max_tokens", max_tokens, -(2**63), 2**63 - 1) < 1:
            raise EtudeValueError(f"max_tokens must be at least 1, not {max_tokens}")
        if seed is not None and whole("seed", seed, -(2**63), 2**128) < 0:
            raise EtudeValueError(f"seed must be at least 0, not {seed}")
        self._check_ids(ids)
        return self._run(ids, max_tokens, sampling, np.random.default_rng(seed), fresh, progress)

    def _run(
        self,
        ids: list[int],
        max_tokens: int | None,
        sampling: Sampling,
        random: np.random.Generator,
        fresh: bool,
        progress: Progress | None,
    ) -> Iterator[int]:
        if self._busy:
            raise EtudeStateError("this LLM is generating already: finish or close that first, or make another LLM for each thread")
        self._busy = True
        try:
            reused = self._rewind(ids) if fresh else 0
            room = self._room()
            if len(ids) - reused >= room + (0 if self._decoder.use_cache else 1):
                raise EtudeValueError(
                    f"the prompt has {len(ids)} tokens, and the model's window holds {self.info.max_context}"
                    + (f", of which {self._decoder.position} are taken" if self._decoder.position else "")
                    + ": nothing could be written. Shorten the prompt"
                )
            self.last = done = Generation(prompt_tokens=len(ids), reused=reused)
            began = time.perf_counter()
            logits = self._feed(ids[reused:], progress)
            done.prompt_seconds = time.perf_counter() - began
            yield from self._continue(logits, done, max_tokens, sampling, random)
        finally:
            self._busy = False

    def _continue(
        self, logits: Array, done: Generation, max_tokens: int | None, sampling: Sampling, random: np.random.Generator
    ) -> Iterator[int]:
        ends = self._ends()
        while True:
            token = choose(logits, self._tokens + done.token_ids[-1:], sampling, random)
            done.token_ids.append(token)
            if token in ends:
                done.finish_reason = "stop"
            elif max_tokens is not None and len(done.token_ids) >= max_tokens:
                done.finish_reason = "length"
            elif self._room() < 1:
                done.finish_reason = "window"
            yield token
            if done.finish_reason != "interrupted":
                return
            began = time.perf_counter()
            logits = self._feed([token], None)
            done.token_seconds += time.perf_counter() - began

    # -- chatting ----------------------------------------------------------------------------------------------------

    def chat(self, messages: str | Sequence[Message], **options: Any) -> str:
        """The model's answer to a conversation: a text, or messages {"role": "user", "content": …}. Options of `stream`.

        The conversation is written by the chat template of the tokenizer's own files. Append the answer as {"role":
        "assistant"} and the next question, and call again: what the cache holds is not read twice.
        """
        for _ in self.stream_chat(messages, **options):
            pass
        return self.last.text

    def stream_chat(self, messages: str | Sequence[Message], **options: Any) -> Iterator[str]:
        """The same in pieces as they come."""
        return self.stream(self.chat_prompt(messages), bos=False, **options)

    def chat_prompt(self, messages: str | Sequence[Message], **variables: Any) -> str:
        """The text that the chat template makes of a conversation, up to where the answer begins."""
        path = self._need_tokenizer().path
        template, specials = find_template(path) if path is not None else (None, {})
        if template is None:
            raise EtudeValueError(
                f"there is no chat template beside {path}: put the model's tokenizer_config.json or chat_template.jinja there, or "
                "write the prompt yourself and call generate"
            )
        turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return render(template, turns, specials, **variables)

    # -- where the conversation is -----------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Tokens that the cache holds."""
        return self._decoder.position

    @property
    def tokens(self) -> list[int]:
        """These tokens."""
        return list(self._tokens)

    def reset(self) -> None:
        """Begin anew: position 0, and caches as they were at load."""
        self._idle()
        self._decoder.move_to(0)
        self._tokens.clear()
        for method in self._methods():
            method.state.reset()

    def truncate(self, position: int) -> None:
        """Forget everything from `position` on. EtudeStateError where the caches can't go back (sliding windows)."""
        self._idle()
        position = whole("position", position, 0, 2**63 - 1)
        if position < self.position and not self._can_rewind:
            raise EtudeStateError(
                "the caches of this model overwrite old positions (a sliding window, or a recurrent state), so it can't go back "
                f"from position {self.position} to {position}: use snapshot() and restore(), or reset()"
            )
        self._decoder.move_to(position)
        del self._tokens[position:]

    def snapshot(self) -> Snapshot:
        """The conversation as it is now, caches copied."""
        self._idle()
        return Snapshot(tuple(self._tokens), self.position, self._states())

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot of this model. Any number of times."""
        self._idle()
        if not isinstance(snapshot, Snapshot):
            raise EtudeTypeError(f"restore takes what snapshot() gave, not {type(snapshot).__name__}")
        if set(snapshot.state) != {f"{m.name}/{name}" for m in self._methods() for name in m.state.names}:
            raise EtudeValueError("the snapshot is of another model: its caches have other names")
        for method in self._methods():
            for name in method.state.names:
                method.state[name] = snapshot.state[f"{method.name}/{name}"]
        self._decoder.position = snapshot.position
        self._decoder.restore_history(snapshot.tokens)
        self._tokens = list(snapshot.tokens)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _methods(self) -> list[etude.Method]:
        both = [self._decoder.prefill.method, self._decoder.decode.method]
        return both[:1] if both[0] is both[1] else both

    def _feed(self, ids: Sequence[int], progress: Progress | None) -> Array:
        before = self._decoder.position
        try:
            return self._decoder.feed(ids if self._eyes is None else self._eyes.embed(ids), progress)
        finally:
            self._tokens += list(ids[: self._decoder.position - before])

    def _rewind(self, ids: Sequence[int]) -> int:
        """Go to where a new prompt differs from what the cache holds; how many of its tokens need not be read."""
        same = 0
        while same < min(len(ids) - 1, len(self._tokens)) and ids[same] == self._tokens[same]:
            same += 1
        if not self._decoder.use_cache or (same < self.position and not self._can_rewind):
            same = 0
        if same == 0:
            self._decoder.move_to(0)
            self._tokens.clear()
            if not self._can_rewind:  # a recurrent state counts from what it was at load
                for method in self._methods():
                    method.state.reset()
        else:
            self._decoder.move_to(same)
            del self._tokens[same:]
        return same

    def _can_go_back(self) -> bool:
        """Are all states caches by position, in which nothing that lies behind the present position counts?

        Such a cache has the window as its second or third size. Ring buffers of sliding windows, with their table of
        positions, and recurrent states have not.
        """
        shapes = [m.state.shape(name) for m in self._methods() for name in m.state.names]
        return all(self.info.max_context in shape[1:3] and len(shape) > 2 for shape in shapes)

    def _states(self) -> dict[str, Array]:
        return {f"{m.name}/{name}": m.state[name] for m in self._methods() for name in m.state.names}

    def _room(self) -> int:
        if not self._decoder.use_cache:
            return self._decoder.prefill.bound - self.position
        return self.info.max_context - (0 if self._endless else self.position)

    def _ends(self) -> frozenset[int]:
        return self.info.eos_ids or (self.tokenizer.eos_ids if self.tokenizer is not None else frozenset())

    def _need_tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise EtudeValueError('text needs a tokenizer: LLM(model, tokenizer="tokenizer.json"); ids do without: generate_ids')
        return self.tokenizer

    def _encode(self, prompt: Prompt, bos: bool | None) -> list[int]:
        if isinstance(prompt, str):
            ids = self._need_tokenizer().encode(prompt, bos=bos)
        elif isinstance(prompt, bytes | bytearray | Mapping) or not isinstance(prompt, Iterable) or getattr(prompt, "ndim", 1) == 0:
            raise EtudeTypeError(f"prompt must be a text, or a list of token ids, or of texts and images, not {prompt!r:.60}")
        elif any(isinstance(part, str | np.ndarray) for part in prompt) and not isinstance(prompt, np.ndarray):
            ids = self._encode_parts(prompt, bos)
        else:
            ids = _ids(prompt)
            if bos:
                first = self.info.bos_id if self.tokenizer is None else self.tokenizer.bos_id
                ids = ids if first is None else [first, *ids]
        if not ids:
            raise EtudeValueError("the prompt is empty: give at least one token")
        return ids

    def _encode_parts(self, parts: Sequence[Any], bos: bool | None) -> list[int]:
        """Ids of texts and images in turn; what an image is seen as, has ids of its own, below 0."""
        ids: list[int] = []
        for i, part in enumerate(parts):
            if isinstance(part, str):
                ids += self._need_tokenizer().encode(part, bos=bos if i == 0 else False)
            elif isinstance(part, np.ndarray) and part.ndim > 1:
                if self._eyes is None:
                    raise EtudeValueError("the prompt has an image, and this model reads text only")
                ids += self._eyes.look(part)
            else:
                ids += _ids(part)
        return ids

    def _check_ids(self, ids: Sequence[int]) -> None:
        limit = self._decoder.vocab_size
        for i, token in enumerate(ids):
            if not 0 <= token < limit and not (token < 0 and self._eyes is not None and self._eyes.knows(token)):
                raise EtudeValueError(
                    f"token {i} of the prompt is {token}, and the model knows {limit} tokens, counted from 0: "
                    "does the tokenizer belong to it?"
                )

    def _idle(self) -> None:
        if self._busy:
            raise EtudeStateError("this LLM is generating: finish or close that first")

    def __repr__(self) -> str:
        name = "" if self.tokenizer is None or self.tokenizer.path is None else f", tokenizer={Path(self.tokenizer.path).name!r}"
        return f"<etude.llm.LLM: {self._decoder.vocab_size} tokens, window {self.info.max_context}, at position {self.position}{name}>"
