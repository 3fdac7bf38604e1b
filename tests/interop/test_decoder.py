"""A small decoder, exported on the spot by the official llama exporter as bench/decoder_export.py does: etude beside the official
runtime and eager PyTorch, call by call over a cache."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from etude.llm import LLM

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import decoder
import decoder_export

PROMPT, STEPS = 100, 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("decoder")
    decoder_export.make(path, small=True, names=("float32", "8da4w"))
    return path


@pytest.fixture(scope="module")
def tokens(folder):
    return np.random.default_rng(0).integers(3, json.loads((folder / "params.json").read_text())["vocab_size"], (1, PROMPT))


def converse(runtime, folder, name, tokens, threads=1):
    """Logits of a prompt, of single tokens after it, and of another prompt over the old cache."""
    decoder.prepare_imports(runtime)
    call, _ = decoder.load(runtime, folder, name, threads)
    calls = [(tokens, 0), *((tokens[:, i : i + 1], PROMPT + i) for i in range(STEPS)), (tokens[:, PROMPT // 2 :], 0)]
    return np.stack([np.array(call(t, start)).reshape(-1) for t, start in calls])


def rms(x):
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


def test_float32(folder, tokens):
    ours = converse("etude", folder, "float32", tokens)
    eager = converse("eager", folder, "float32", tokens)
    assert 0.5 < rms(eager) < 2
    np.testing.assert_allclose(ours, eager, atol=1e-5)
    np.testing.assert_allclose(ours, converse("official", folder, "float32", tokens), atol=1e-5)
    np.testing.assert_array_equal(ours, converse("etude", folder, "float32", tokens, threads=2))
    llm = LLM(folder / "float32.pte")
    steps = eager[: STEPS + 1].argmax(1)  # of given tokens, which a logit_bias forces
    given = iter(tokens[0, :STEPS])
    seen = []

    def bias(_, logits):
        seen.append(int(logits.argmax()))
        return np.where(np.arange(len(logits)) == next(given), 0, -np.inf)

    assert llm.generate_ids(tokens[0], max_tokens=STEPS, logit_bias=bias, fresh=False) == list(tokens[0, :STEPS])
    assert seen == list(steps[:STEPS])


def test_8da4w(folder, tokens):
    """Roundings that fall the other way are far less than what quantising costs."""
    ours = converse("etude", folder, "8da4w", tokens)
    official = converse("official", folder, "8da4w", tokens)
    floats = converse("eager", folder, "8da4w", tokens)
    assert 0.05 < rms(official - floats) < 0.5
    assert rms(ours - official) < 0.2 * rms(official - floats)
    np.testing.assert_array_equal(ours, converse("etude", folder, "8da4w", tokens, threads=2))


def test_the_measurement(folder):
    """bench/decoder.py, which makes docs/performance.md's table of a decoder, on this small one."""
    command = [decoder.__file__, folder, "float32", "--official-python", sys.executable, "--threads", "1", "--seconds", "0"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("| ")][1:] == ["etude", "official", "eager"]
    assert "times as fast as official" in done.stdout and "ms without attention" in done.stdout
