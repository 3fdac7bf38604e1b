"""Operators of language models: what the official kernels made (tests/llm), and closed forms."""

from __future__ import annotations

import json

import numpy as np
import torch
from vectors import FLOATS, ROOT, vectors

LLM = ROOT / "tests/llm"
RECORDED = json.loads((LLM / "op-tests.json").read_text())["vectors"]
ARRAYS = np.load(LLM / "op-tests.npz")
#: The official kernel scales after masking, and gives 0 * -inf; the definition gives equal weights.
OTHERWISE = {"sdpa_scale_zero"}


def recorded(entry):
    """A tensor of the recorded vectors."""
    array = np.ascontiguousarray(ARRAYS[entry["key"]].reshape(entry["shape"]))
    dtype = getattr(torch, entry["dtype"])
    if dtype in (torch.float16, torch.bfloat16):
        return torch.from_numpy(array.view(np.int16)).reshape(entry["shape"]).view(dtype)
    return torch.from_numpy(array)


def replay(call, name):
    for key, vector in sorted(RECORDED.items()):
        if vector["op"] != name or key in OTHERWISE:
            continue
        args = [recorded(a) if a["kind"] == "tensor" else a["value"] for a in vector["args"]]
        results = {r["of"]: recorded(r) for r in vector["results"]}
        changed = {call.schema.inputs[int(of[1:])].name: after for of, after in results.items() if of[0] == "a"}
        outs = [t for of, t in sorted(results.items()) if of.startswith("out")]
        call(*args, want=outs or [torch.zeros(0)], undefined=not outs, changed=changed, rtol=vector["rtol"], atol=vector["atol"])


@vectors(
    "llama::custom_sdpa.out", "llama::custom_quantized_sdpa.out", "llama::sdpa_with_kv_cache.out", "llama::fast_hadamard_transform.out"
)
def attention(call, draw, name):
    replay(call, name)


@vectors("llama::update_cache.out", "llama::update_cache_with_indices.out")
def update(call, draw, name):
    replay(call, name)
    cache, tokens = draw.tensor((1, 8, 2, 4)), draw.tensor((1, 3, 2, 4))
    for start in (6, -1, 2**62):
        index = [torch.zeros((1, 3), dtype=torch.int64)] if "indices" in name else []
        if not index:
            call(tokens, cache, start, want=[torch.zeros(1)], refuses=True)
    if "indices" in name:
        for bad in (8, -1):
            call(tokens, cache, 0, torch.tensor([[0, bad, 1]]), want=[torch.zeros(1)], refuses=True)


@vectors("llama::gated_delta_rule.out", "llama::channelwise_gated_delta_rule.out")
def delta_rule(call, draw, name):
    """The state S [K, V] of each head: S = decay S, then S += key (beta (value - key S)); out = query S."""
    for heads, kv_heads, tokens in ((2, 2, 5), (4, 2, 1), (3, 1, 4)):
        b, k, v = 2, 3, 4
        q = draw.tensor((b, heads, tokens, k), torch.float32, -1, 1)
        key, value = (
            draw.tensor((b, kv_heads, tokens, k), torch.float32, -1, 1),
            draw.tensor((b, kv_heads, tokens, v), torch.float32, -1, 1),
        )
        by_row = "channelwise" in name
        decay = draw.tensor((b, kv_heads, tokens, k) if by_row else (b, kv_heads, tokens), torch.float32, 0, 1)
        beta, state = draw.tensor((b, kv_heads, tokens), torch.float32, 0, 1), draw.tensor((b, kv_heads, k, v), torch.float32, -1, 1)
        s, out = state.double(), torch.empty((b, heads, tokens, v), dtype=torch.float64)
        for t in range(tokens):
            s = s * (decay[:, :, t, :, None] if by_row else decay[:, :, t, None, None]).double()
            seen = torch.einsum("bhk,bhkv->bhv", key[:, :, t].double(), s)
            step = beta[:, :, t, None].double() * (value[:, :, t].double() - seen)
            s = s + key[:, :, t, :, None].double() * step[:, :, None, :]
            for head in range(heads):
                out[:, head, t] = torch.einsum("bk,bkv->bv", q[:, head, t].double(), s[:, head // (heads // kv_heads)])
        call(q, key, value, decay, beta, state, want=[out.float(), s.float()], atol=1e-5)
    call(q, key[:, :, :, :2].contiguous(), value, decay, beta, state, want=[out.float(), s.float()], refuses=True)


@vectors("llama::fallback.out")
def fallback(call, draw, name):
    """A copy."""
    for dtype in FLOATS:
        for shape in ((), (3,), (2, 3), (0, 2)):
            x = draw.tensor(shape, dtype)
            call(x, want=[x])


@vectors("preprocess::tile_crop.out")
def tile_crop(call, draw, name):
    for c, rows, columns, size in ((2, 2, 3, 3), (3, 1, 1, 4), (1, 4, 1, 2)):
        image = draw.tensor((c, rows * size, columns * size))
        tiles = image.reshape(c, rows, size, columns, size).permute(1, 3, 0, 2, 4).reshape(-1, c, size, size)
        call(image, size, want=[tiles.contiguous()])
    call(image, 0, want=[tiles.contiguous()], refuses=True)
    call(image, -2, want=[tiles.contiguous()], refuses=True)
