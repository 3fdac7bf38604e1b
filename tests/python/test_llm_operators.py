"""Operators of language models: vectors of the official kernels, and numpy."""

from __future__ import annotations

import json

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, spec
from paths import ROOT

LLM = ROOT / "tests/llm"
VECTORS = json.loads((LLM / "op-tests.json").read_text())["vectors"]
ARRAYS = np.load(LLM / "op-tests.npz")
CODES = {"float32": 6, "float16": 5, "int8": 1, "bfloat16": 15}
RNG = np.random.default_rng(11)
F = "float32"


def widen(array, dtype):
    if dtype == "bfloat16":
        return (np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if dtype == "float16":
        return np.ascontiguousarray(array).view(np.float16).astype(np.float32)
    return np.asarray(array)


def run(operator, args, outs, threads=1):
    """Outs and arguments of one call, after it. An argument is a number, None, or (array, dtype); all tensors are state of
    the program, so that what the operator writes in place can be read back."""
    builder = ProgramBuilder()
    method = builder.method("forward")

    def value(index, arg):
        if not isinstance(arg, tuple):
            return arg
        array, dtype = arg
        return method.state(f"a{index}", dtype, array.shape)

    refs = [value(i, arg) for i, arg in enumerate(args)]
    named = {"dtype": refs.pop()} if "::embedding" in operator and ".dtype_out" in operator else {}
    made = method.call(operator, *refs, **named, out=[spec(d, s) for d, s in outs] if len(outs) > 1 else spec(*outs[0]))
    method.output(*made if isinstance(made, tuple) else [made])
    loaded = etude.load(builder.to_bytes(), threads=threads).load_method("forward")
    for i, arg in enumerate(args):
        if isinstance(arg, tuple) and arg[0].size:
            loaded.state[f"a{i}"] = arg[0].view(loaded.state[f"a{i}"].dtype).reshape(arg[0].shape)
    results = {f"out{i}": array for i, array in enumerate(loaded.execute([]))}
    results["out"] = results["out0"]
    for i, arg in enumerate(args):
        if isinstance(arg, tuple):
            results[f"a{i}"] = np.array(loaded.state[f"a{i}"])
    return results


def arguments(vector):
    for arg in vector["args"]:
        match arg["kind"]:
            case "tensor":
                yield ARRAYS[arg["key"]].reshape(arg["shape"]), arg["dtype"]
            case "dtype":
                yield CODES[arg["value"]]
            case _:
                yield arg["value"]


#: The official kernel scales after masking, and gives 0 * -inf; the definition gives equal weights (see test_scale_of_zero).
OTHERWISE = {"sdpa_scale_zero"}


@pytest.mark.parametrize("name", sorted(VECTORS.keys() - OTHERWISE))
def test_vector(name):
    vector = VECTORS[name]
    outs = [(r["dtype"], tuple(r["shape"])) for r in vector["results"] if r["of"].startswith("out")]
    got = run(vector["op"], list(arguments(vector)), outs or [("float32", (1,))])
    for result in vector["results"]:
        want = widen(ARRAYS[result["key"]].reshape(result["shape"]), result["dtype"])
        mine = widen(got[result["of"]], result["dtype"])
        assert mine.shape == want.shape
        np.testing.assert_allclose(
            mine.astype(np.float64), want.astype(np.float64), atol=vector["atol"], rtol=vector["rtol"], equal_nan=True
        )


def attention(q, k, v, start, *, mask=None, causal=True, scale=None):
    """The definition in float64; q [B, S, H, D], k and v [B, L, Hkv, D]."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    _, s, h, d = q.shape
    n = k.shape[1] if mask is not None else start + s
    group = h // k.shape[2]
    out = np.empty((*q.shape[:3], v.shape[3]))
    for head in range(h):
        scores = np.einsum("bsd,btd->bst", q[:, :, head], k[:, :n, head // group]) * (scale or 1 / np.sqrt(d))
        if mask is not None:
            scores = scores + mask
        elif causal:
            scores = np.where(np.arange(n) <= start + np.arange(s)[:, None], scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, :, head] = np.einsum("bst,btd->bsd", weights / weights.sum(-1, keepdims=True), v[:, :n, head // group])
    return out


@pytest.mark.parametrize("tokens", [1, 2, 5, 33, 130])
@pytest.mark.parametrize(("heads", "kv_heads", "depth"), [(1, 1, 1), (4, 2, 20), (6, 1, 64), (3, 3, 96)])
@pytest.mark.parametrize("start", [0, 7, 300])
def test_attention_over_many_blocks(tokens, heads, kv_heads, depth, start):
    q = RNG.standard_normal((2, tokens, heads, depth)).astype(np.float32)
    k, v = (RNG.standard_normal((2, 450, kv_heads, depth)).astype(np.float32) for _ in range(2))
    k[:, start + tokens :] = v[:, start + tokens :] = np.nan  # what lies beyond is never read
    args = [(q, "float32"), (k, "float32"), (v, "float32"), start, None, 0.0]
    for causal in (True, False):
        got = run("llama::custom_sdpa.out", [*args, causal, None], [("float32", q.shape)])["out"]
        np.testing.assert_allclose(got, attention(q, k, v, start, causal=causal), atol=3e-6, rtol=1e-5)


def test_scale_of_zero():
    q, k, v = (RNG.standard_normal((1, n, 2, 8)).astype(np.float32) for n in (3, 12, 12))
    got = run("llama::custom_sdpa.out", [(q, F), (k, F), (v, F), 2, None, 0.0, True, 0.0], [(F, q.shape)])["out"]
    want = np.stack([v[0, : 3 + s].mean(0) for s in range(3)])[None]
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_masked_attention_over_many_blocks():
    q = RNG.standard_normal((1, 40, 4, 32)).astype(np.float32)
    k, v = (RNG.standard_normal((1, 300, 2, 32)).astype(np.float32) for _ in range(2))
    mask = np.where(RNG.random((40, 300)) < 0.7, -np.inf, RNG.standard_normal((40, 300))).astype(np.float32)
    mask[3, :200] = -np.inf  # whole blocks without a key
    mask[5, 100:] = -np.inf
    args = [(q, "float32"), (k, "float32"), (v, "float32"), 0, (mask, "float32"), 0.0, False, 0.3]
    got = run("llama::custom_sdpa.out", args, [("float32", q.shape)])["out"]
    np.testing.assert_allclose(got, attention(q, k, v, 0, mask=mask, scale=0.3), atol=3e-6, rtol=1e-5)


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("by_row", [False, True])
def test_gated_delta_rule(heads, by_row):
    b, hkv, t, k, v = 2, 2, 5, 3, 4
    shapes = [(b, heads, t, k), (b, hkv, t, k), (b, hkv, t, v), (b, hkv, t, k)[: 4 if by_row else 3], (b, hkv, t), (b, hkv, k, v)]
    q, key, value, decay, beta, state = arrays = [RNG.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    got = run("llama::gated_delta_rule.out", [(x, "float32") for x in arrays],
              [("float32", (b, heads, t, v)), ("float32", state.shape)])  # fmt: skip
    s = state.astype(np.float64)
    want = np.empty((b, heads, t, v))
    for i in range(t):
        s = s * (decay[:, :, i, :, None] if by_row else decay[:, :, i, None, None])
        delta = beta[:, :, i, None] * (value[:, :, i] - np.einsum("bhk,bhkv->bhv", key[:, :, i], s))
        s = s + key[:, :, i, :, None] * delta[:, :, None, :]
        for head in range(heads):
            want[:, head, i] = np.einsum("bk,bkv->bv", q[:, head, i], s[:, head // (heads // hkv)])
    np.testing.assert_allclose(got["out0"], want, atol=1e-5)
    np.testing.assert_allclose(got["out1"], s, atol=1e-5)


def test_tile_crop_and_fallback():
    image = np.arange(2 * 6 * 9, dtype=np.float32).reshape(2, 6, 9)
    got = run("preprocess::tile_crop.out", [(image, "float32"), 3], [("float32", (6, 2, 3, 3))])["out"]
    np.testing.assert_array_equal(got, image.reshape(2, 2, 3, 3, 3).transpose(1, 3, 0, 2, 4).reshape(6, 2, 3, 3))
    np.testing.assert_array_equal(run("llama::fallback.out", [(image, "float32")], [("float32", image.shape)])["out"], image)


CACHE = (np.zeros((1, 8, 2, 4), np.float32), F)
TOKENS = (np.ones((1, 3, 2, 4), np.float32), F)
SDPA, WITH_INDICES = "llama::custom_sdpa.out", "llama::update_cache_with_indices.out"


def mask(rows):
    return np.zeros((rows, 8), np.float32), F


@pytest.mark.parametrize(
    ("operator", "args", "shape", "message"),
    [
        ("llama::update_cache.out", [TOKENS, CACHE, 6], (1,), "3 tokens from position 6 on do not fit into the cache, which holds 8"),
        ("llama::update_cache.out", [TOKENS, CACHE, -1], (1,), "position -1"),
        ("llama::update_cache.out", [TOKENS, CACHE, 2**62], (1,), "do not fit"),
        (WITH_INDICES, [TOKENS, CACHE, 0, (np.array([[0, 8, 1]]), "int64")], (1,), "index 8 is no position"),
        (WITH_INDICES, [TOKENS, CACHE, 0, (np.array([[0, -1, 1]]), "int64")], (1,), "index -1 is no position"),
        (SDPA, [TOKENS, CACHE, CACHE, 6, None, 0.0, True, None], (1, 3, 2, 4), "3 tokens from position 6 on: the cache holds 8"),
        (SDPA, [TOKENS, CACHE, CACHE, 0, mask(1), 0.0, False, None], (1, 3, 2, 4), r"must be float, row-major, \[3, 8\]"),
        (SDPA, [TOKENS, CACHE, CACHE, 0, mask(3), 0.0, True, None], (1, 3, 2, 4), "is_causal as well"),
        ("llama::fast_hadamard_transform.out", [(np.zeros((2, 6), np.float32), F)], (2, 6), "2\\^k"),
    ],
)  # fmt: skip
def test_refused(operator, args, shape, message):
    with pytest.raises(etude.EtudeError, match=message):
        run(operator, args, [(F, shape)])


@pytest.mark.parametrize(("heads", "kv_heads"), [(8, 8), (10, 5), (22, 11), (32, 8), (9, 3)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_heads_that_a_worker_takes_together(heads, kv_heads, threads):
    """One token over many heads, on any number of workers: by the definition, and to the bit what one worker gives."""
    q = RNG.standard_normal((2, 1, heads, 16)).astype(np.float32)
    k, v = (RNG.standard_normal((2, 300, kv_heads, 16)).astype(np.float32) for _ in range(2))
    args = [(q, F), (k, F), (v, F), 260, None, 0.0, True, None]
    got = run("llama::custom_sdpa.out", args, [(F, q.shape)], threads=threads)["out"]
    np.testing.assert_allclose(got, attention(q, k, v, 260), atol=3e-6, rtol=1e-5)
    np.testing.assert_array_equal(got, run("llama::custom_sdpa.out", args, [(F, q.shape)])["out"])
