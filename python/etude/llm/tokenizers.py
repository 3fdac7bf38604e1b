"""Tokenizers: the well-kept packages behind one small face.

A tokenizer has `encode(text, bos=None) -> list[int]`, `decode(ids) -> str`, `vocab_size`, `bos_id`, `eos_ids`, and `path`
(of its file, or None). Anything that has these serves; `load_tokenizer` makes one from a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from etude.errors import EtudeFileNotFoundError, EtudeNotImplementedError, EtudeValueError

#: The pattern and the special tokens of Llama 3's tokenizer.model, which is of the tiktoken kind and holds neither.
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3_SPECIALS = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>",
    "<|python_tag|>",
)  # fmt: skip
_SPECIALS = 256


@runtime_checkable
class Tokenizer(Protocol):
    """What the rest of `etude.llm` needs of a tokenizer."""

    path: Path | None
    vocab_size: int
    bos_id: int | None
    eos_ids: frozenset[int]

    def encode(self, text: str, bos: bool | None = None) -> list[int]:
        """Ids of a text; special tokens that are written out in it ("<|eot|>") are taken as such.

        `bos` puts the token for its beginning in front; None = where this tokenizer is used so.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens left out; U+FFFD where bytes make no character (yet)."""
        ...


class _HuggingFace:
    """A tokenizer.json, read by the package `tokenizers`."""

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer as Reader  # noqa: PLC0415
        except ImportError:
            raise _missing(path, "tokenizers") from None
        try:
            self._reader = Reader.from_file(str(path))
        except Exception as error:  # the package raises plain Exception
            raise EtudeValueError(f"{path}: not a tokenizer that the package tokenizers reads: {error}") from error
        self.path: Path | None = path
        self.vocab_size: int = self._reader.get_vocab_size()
        special = {t.content: i for i, t in self._reader.get_added_tokens_decoder().items()}
        named = _config_of(path)
        self.bos_id = _find(special, named.get("bos_token"), ("<s>", "<|begin_of_text|>", "<bos>", "<|bos|>", "<|startoftext|>"))
        eos = _find(special, named.get("eos_token"), ("</s>", "<|end_of_text|>", "<eos>", "<|eos|>", "<|endoftext|>", "<|im_end|>"))
        self.eos_ids = _more_ends(path) | (frozenset() if eos is None else frozenset({eos}))

    def encode(self, text: str, bos: bool | None = None) -> list[int]:
        ids: list[int] = self._reader.encode(text, add_special_tokens=bos is None).ids
        return [self.bos_id, *ids] if bos and self.bos_id is not None else ids

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._reader.decode([i for i in ids if i < self.vocab_size], skip_special_tokens=True))


class _SentencePiece:
    """A tokenizer.model of SentencePiece's kind (Llama 2, Gemma, Mistral, T5)."""

    def __init__(self, path: Path) -> None:
        try:
            import sentencepiece  # noqa: PLC0415
        except ImportError:
            raise _missing(path, "sentencepiece") from None
        try:
            self._reader: Any = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (RuntimeError, OSError) as error:
            raise EtudeValueError(f"{path}: not a SentencePiece model: {error}") from error
        self.path: Path | None = path
        self.vocab_size = int(self._reader.vocab_size())
        self.bos_id = self._reader.bos_id() if self._reader.bos_id() >= 0 else None
        self.eos_ids = frozenset({self._reader.eos_id()}) if self._reader.eos_id() >= 0 else frozenset[int]()

    def encode(self, text: str, bos: bool | None = None) -> list[int]:
        ids: list[int] = self._reader.encode(text)
        return [self.bos_id, *ids] if bos is not False and self.bos_id is not None else ids

    def decode(self, ids: Sequence[int]) -> str:
        known = [i for i in ids if i < self.vocab_size and not self._reader.is_control(i)]
        return str(self._reader.decode(known)) if known else ""


class _Tiktoken:
    """A tokenizer.model of tiktoken's kind (Llama 3): lines of base64 and a rank."""

    def __init__(self, path: Path, pattern: str, specials: Mapping[str, int] | None) -> None:
        try:
            import tiktoken  # noqa: PLC0415
            from tiktoken.load import load_tiktoken_bpe  # noqa: PLC0415
        except ImportError:
            raise _missing(path, "tiktoken") from None
        try:
            ranks = load_tiktoken_bpe(str(path))
        except (ValueError, TypeError) as error:
            raise EtudeValueError(f"{path}: not a file of tiktoken's kind: {error}") from error
        if specials is None:
            names = [*_LLAMA3_SPECIALS]
            names += [f"<|reserved_special_token_{i + 2}|>" for i in range(_SPECIALS - len(names))]
            specials = {name: len(ranks) + i for i, name in enumerate(names)}
        self._reader = tiktoken.Encoding(path.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=dict(specials))
        self._special = frozenset(specials.values())
        self.path: Path | None = path
        self.vocab_size = len(ranks) + len(specials)
        self.bos_id = specials.get("<|begin_of_text|>")
        self.eos_ids = frozenset(specials[n] for n in ("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>") if n in specials)

    def encode(self, text: str, bos: bool | None = None) -> list[int]:
        ids = self._reader.encode(text, allowed_special="all")
        return [self.bos_id, *ids] if bos is not False and self.bos_id is not None else ids

    def decode(self, ids: Sequence[int]) -> str:
        return self._reader.decode([i for i in ids if i < self.vocab_size and i not in self._special])


def load_tokenizer(
    path: str | PathLike[str], *, pattern: str = LLAMA3_PATTERN, specials: Mapping[str, int] | None = None
) -> Tokenizer:
    """The tokenizer in a file, or in a folder that holds one; its kind is seen from its contents.

    tokenizer.json needs the package `tokenizers`, tokenizer.model `sentencepiece` or `tiktoken` (`pip install etude[llm]`
    brings all). `pattern` and `specials` are for files of tiktoken's kind, which hold neither: Llama 3's unless given.
    Raises EtudeFileNotFoundError, EtudeValueError for a file that is none, EtudeNotImplementedError where a package is missing.
    """
    place = Path(path)
    if place.is_dir():
        names = [place / name for name in ("tokenizer.json", "tokenizer.model") if (place / name).is_file()]
        if not names:
            raise EtudeFileNotFoundError(f"{place}: there is no tokenizer.json and no tokenizer.model in this folder")
        place = names[0]
    if not place.is_file():
        raise EtudeFileNotFoundError(f"{place}: there is no such tokenizer file")
    with place.open("rb") as file:
        head = file.read(256)
    if head.lstrip()[:1] == b"{":
        return _HuggingFace(place)
    line = head.split(b"\n")[0].split()
    if len(line) == 2 and line[1].isdigit():  # base64 and a rank
        return _Tiktoken(place, pattern, specials)
    if head[:1] == b"\n":  # a protobuf that begins with field 1
        return _SentencePiece(place)
    raise EtudeValueError(
        f"{place}: neither a tokenizer.json, nor a SentencePiece model, nor a file of tiktoken's kind. Files of llama2.c "
        "(tokenizer.bin) were made from a SentencePiece model: give that one"
    )


def _config_of(path: Path) -> dict[str, Any]:
    config = path.parent / "tokenizer_config.json"
    if not config.is_file():
        return {}
    read = json.loads(config.read_text("utf-8"))
    return {k: v if isinstance(v, str) else v.get("content") for k, v in read.items() if k.endswith("_token") and v is not None}


def _more_ends(path: Path) -> frozenset[int]:
    """End tokens of a generation_config.json beside the tokenizer, such as the one that ends a turn."""
    config = path.parent / "generation_config.json"
    ids = json.loads(config.read_text("utf-8")).get("eos_token_id") if config.is_file() else None
    return frozenset(ids) if isinstance(ids, list) else frozenset() if ids is None else frozenset({int(ids)})


def _find(special: Mapping[str, int], named: str | None, guesses: Sequence[str]) -> int | None:
    names = ([named] if named is not None else []) + list(guesses)
    return next((special[name] for name in names if name in special), None)


def _missing(path: Path, package: str) -> EtudeNotImplementedError:
    return EtudeNotImplementedError(f"{path}: the package {package} reads this file: pip install etude[llm]")
