"""Make story.pte and tokenizer.json: a decoder of half a million weights, trained on the stories of stories.py.

    python examples/story/train.py [steps]

Needs torch, executorch and tokenizers, and some minutes on two cores. What it writes is what examples/story ships.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers torch.ops.llama
import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from stories import story
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional

HERE = Path(__file__).parent
VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, WINDOW = 640, 96, 4, 4, 208, 384
END = 0


class Rotation(nn.Module):
    """Positions as rotations of pairs (Su et al., "RoFormer", 2021)."""

    def __init__(self) -> None:
        super().__init__()
        depth = WIDTH // HEADS
        angle = torch.outer(torch.arange(WINDOW).float(), 10000.0 ** (-torch.arange(0, depth, 2).float() / depth))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        cos, sin = cos[None, :, None], sin[None, :, None]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, eps=1e-5), nn.RMSNorm(WIDTH, eps=1e-5)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.gate, self.down = (nn.Linear(*s, bias=False) for s in ((WIDTH, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WIDTH)))
        for name in ("k_cache", "v_cache"):
            self.register_buffer(name, torch.zeros(1, WINDOW, HEADS, WIDTH // HEADS), persistent=False)

    def forward(self, x, rotation, cos, sin, start):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).unbind(2)
        q, k = rotation(q, cos, sin), rotation(k, cos, sin)
        if start is None:
            y = functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True).transpose(1, 2)
        else:
            torch.ops.llama.update_cache(k, self.k_cache, start)
            torch.ops.llama.update_cache(v, self.v_cache, start)
            y = torch.ops.llama.custom_sdpa(q, self.k_cache, self.v_cache, start, None, 0.0, True)
        x = x + self.out(y.reshape(batch, length, WIDTH))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.rotation = nn.RMSNorm(WIDTH, eps=1e-5), Rotation()
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.05)

    def forward(self, tokens: torch.Tensor, position: torch.Tensor | None = None) -> torch.Tensor:
        x, start, length = self.embedding(tokens), None, tokens.shape[1]
        cos, sin = self.rotation.cos[:length], self.rotation.sin[:length]
        if position is not None:
            start = position[0].item()
            torch._check(start >= 0)
            torch._check(start + length <= WINDOW)
            cos, sin = self.rotation.cos.narrow(0, start, length), self.rotation.sin.narrow(0, start, length)
        for layer in self.layers:
            x = layer(x, self.rotation, cos, sin, start)
        if position is not None:
            x = x[:, -1:]
        return functional.linear(self.norm(x), self.embedding.weight)


def make_tokenizer() -> Tokenizer:
    rng = random.Random(1)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator((story(rng) for _ in range(4000)), trainer)
    return tokenizer


def train(model: Decoder, tokenizer: Tokenizer, steps: int) -> None:
    rng = random.Random(2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
    ids: list[int] = []
    for step in range(steps):
        while len(ids) < 16 * 256 + 1:
            ids += [*tokenizer.encode(story(rng)).ids, END]
        batch = torch.tensor(ids[: 16 * 256 + 1])
        ids = ids[16 * 256 :]
        x, y = batch[:-1].view(16, 256), batch[1:].view(16, 256)
        loss = functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(step, round(loss.item(), 3), flush=True)


def export(model: Decoder) -> bytes:
    length = torch.export.Dim("length", min=1, max=WINDOW - 1)
    example = (torch.zeros(1, 5, dtype=torch.long), torch.tensor([0]))
    with torch.no_grad():
        program = torch.export.export(model.eval(), example, dynamic_shapes=({1: length}, None))
    constants = {"get_max_seq_len": WINDOW - 1, "get_max_context_len": WINDOW, "get_vocab_size": VOCABULARY, "use_kv_cache": True,
                 "enable_dynamic_shape": True, "get_eos_ids": [END], "get_bos_id": END}  # fmt: skip
    edge = to_edge(program, constant_methods=constants, compile_config=EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True))
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False))).buffer


def main() -> None:
    torch.manual_seed(3)
    tokenizer = make_tokenizer()
    model = Decoder()
    print(sum(p.numel() for p in model.parameters()), "weights")
    train(model, tokenizer, int(sys.argv[1]) if len(sys.argv) > 1 else 1500)
    tokenizer.save(str(HERE / "tokenizer.json"))
    (HERE / "story.pte").write_bytes(export(model))


if __name__ == "__main__":
    main()
