#!/usr/bin/env python3
"""Write tokenizers.json: small tokenizers of the kinds that language models have, and what the package `tokenizers` makes of texts.

    make_tokenizers.py tokenizers.json      needs: pip install tokenizers

Each is trained on a few sentences and gets the steps of a model's own tokenizer.json. js/test/llm.test.mjs holds the package to the result.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace("{1,3}", "")
BOOK = [
    "The quick brown fox jumps over the lazy dog, and they're all happy. WE'LL SEE: it's 1234567 times as good!",
    "for i in range(10):\n    print(f'{i} of {n}')\n\n\n# the end\t\r\nreturn None",
    "Größe, Übermut und Straße; naïve café, señor, façade. Привет, мир! Γειά σου Κόσμε. 日本語のテキスト、中文文本。",
    "A long story of a little snail that went over the hills and far away to find the river where the reeds grow.",
] * 4
TEXTS = [
    "", " ", "  ", "a", " a", "Hello", "Hello, world!", "they'll see that it's GOOD, won't they? I'M SURE'LL",
    "1234567 1,000 3.14 ½ ٣", "for i in range(10):\n\n    print(i)\t# x\r\n", "naïve café — “quotes” … ‘x’",
    "Größe Übermut Straße", "Привет, мир!", "日本語のテキスト中文", "👍🏽 emoji 🇨🇭 and 👩\u200d👩\u200d👧",
    "é combining ﬁ ligature \xa0nbsp\u3000wide\u200bzero", "  leading and trailing  ", "a\n\n\nb \n c", "\t\ttabs",
    "<s>special</s> inside <|eot|> the text<|eot|>", "<unk> ▁ already▁marked", "x" * 40, "the the the  the   the",
    "\x00\x1f\x7f control", "-_*/\\()[]{}^$+?.|",
]  # fmt: skip


def train(name: str, specials: list[str], alphabet: list[str] | None = None, **model: Any) -> Tokenizer:
    """A tokenizer of byte pairs with the steps of a model."""
    tokenizer = Tokenizer(models.BPE(**model))
    step_of(tokenizer, name)
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=specials, initial_alphabet=alphabet or [], show_progress=False)
    tokenizer.train_from_iterator(BOOK, trainer)
    return tokenizer


def step_of(tokenizer: Tokenizer, name: str) -> None:
    """The normalizer, pre-tokenizer and decoder of a model."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if name in ("llama3", "qwen"):
        split = pre_tokenizers.Split(Regex(LLAMA3 if name == "llama3" else QWEN), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
        tokenizer.normalizer = normalizers.NFC() if name == "qwen" else None
        tokenizer.decoder = decoders.ByteLevel()
    elif name == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
    elif name == "smollm":
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        tokenizer.decoder = decoders.ByteLevel()
    elif name == "llama2":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
    elif name == "mistral":
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
    elif name == "gemma":
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])


def make() -> dict[str, Tokenizer]:
    """All of them."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    fallback = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    made = {
        "llama3": train("llama3", ["<s>", "<|eot|>"], letters, ignore_merges=True),
        "qwen": train("qwen", ["<|eot|>"], letters),
        "gpt2": train("gpt2", ["</s>"], letters),
        "smollm": train("smollm", ["<s>", "</s>"], letters),
        "llama2": train("llama2", fallback, byte_fallback=True, unk_token="<unk>", fuse_unk=True),
        "mistral": train("mistral", fallback, byte_fallback=True, unk_token="<unk>", fuse_unk=True),
        "gemma": train("gemma", ["<unk>", "<s>", "</s>"], unk_token="<unk>", fuse_unk=True),
    }
    for name in ("llama3", "llama2"):
        begin = made[name].token_to_id("<s>")
        made[name].post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", begin)])
    made["qwen"].add_tokens([AddedToken("the  the", special=False)])
    return made


def main() -> None:
    """Write the file."""
    cases = []
    for name, tokenizer in make().items():
        rows = []
        for text in TEXTS:
            ids = tokenizer.encode(text).ids
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            cut = [plain[:i] for i in range(1, min(len(plain), 6))]
            rows.append([text, ids, plain, tokenizer.decode(plain), [tokenizer.decode(part) for part in cut]])
        cases.append({"name": name, "tokenizer": json.loads(tokenizer.to_str()), "rows": rows})
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(cases, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
