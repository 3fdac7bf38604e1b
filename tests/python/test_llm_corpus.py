"""Programs of the official exporters of language models: their call sequences in one loaded program, against goldens of eager
PyTorch and the official runtime; and the runs of the official runner, token by token.

`ETUDE_LLM_CORPUS=folder` runs all cases of a folder made like tests/llm instead of the small selection there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import etude
from etude.llm import LLM
from paths import ROOT
from test_corpus import compare, prefix, to_value, widen

FILES = Path(os.environ.get("ETUDE_LLM_CORPUS", ROOT / "tests/llm"))
CASES = json.loads((FILES / "manifest.json").read_text())["cases"]
RUNNER = json.loads((ROOT / "tests/llm/runner.json").read_text())["runs"]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_case(name, threads, record_property):
    case = CASES[name]
    data = np.load(FILES / case["files"]["npz"])
    program = etude.load(FILES / case["files"]["pte"], data_path=[FILES / f for f in case["files"]["ptd"]], threads=threads)
    outputs, equal = 0, 0
    for method, index in case["calls"]:
        spec = case["methods"][method]["sets"][index]
        p = prefix(method, index)
        inputs = [to_value(data[f"{p}in{i}"], s) for i, s in enumerate(spec["inputs"])]
        for i, (got, s) in enumerate(zip(program.load_method(method).execute(inputs), spec["outputs"])):
            if s["kind"] != "tensor":
                continue
            compare(widen(got, s), widen(data[f"{p}out{i}"], s), **case["tolerance"])
            official = widen(data[f"{p}rt{i}" if f"{p}rt{i}" in data else f"{p}out{i}"], s)
            outputs += 1
            equal += np.array_equal(official, widen(got, s))
            if case["tolerance"]["atol"] >= 0.02 and official.dtype == np.float32 and name != "l_bf16":
                # activations are quantised anew at each layer, so goldens are coarse: the official runtime is the closer truth
                np.testing.assert_allclose(widen(got, s), official, atol=1e-5, rtol=1e-5)
    record_property("bit-equal to the official runtime", f"{equal} of {outputs} outputs")


#: With activations of 8 bits a rounding that falls the other way moves logits by so much: where two tokens are closer than
#: that, processors differ (the recording's had AVX2), and the official runtime with them.
ROUNDING = 0.02


@pytest.mark.parametrize("run", RUNNER)
def test_runs_of_the_official_runner(run):
    model, tokenizer = run.split()
    llm = LLM(ROOT / f"tests/llm/{model}.pte", ROOT / "tests/llm/tokenizers" / tokenizer)
    turns = same = 0
    for turn in RUNNER[run]["by_hand"]:
        if turn.get("reset"):
            llm.reset()
        if not turn.get("ids"):  # refused, or beyond what the official runner can do
            continue
        if not turn.get("num_bos"):
            assert llm.tokenizer.encode(turn["prompt"], bos=False) == turn["prompt_ids"]
        want, logits = turn["ids"], []
        got = llm.generate_ids(turn["prompt_ids"], temperature=0, max_tokens=len(want), fresh=False,
                               logit_bias=lambda seen, row, logits=logits: logits.append(row) or row)  # fmt: skip
        turns += 1
        if got == want:
            assert llm.position == turn["pos_after"]
            same += 1
            continue
        step = next(i for i, (a, b) in enumerate(zip(got, want)) if a != b)
        assert model != "l_runner"
        assert logits[step][got[step]] - logits[step][want[step]] < ROUNDING
    assert turns >= 5 and same >= turns - 2


def test_the_official_runner_can_not_take_long_prompts():
    """A prompt of as many tokens as max_seq_len fails there; here it is read in chunks that the program takes."""
    turn = next(t for t in RUNNER["l_runner bytelevel.json"]["by_hand"] if t.get("failed_call"))
    llm = LLM(ROOT / "tests/llm/l_runner.pte")
    assert len(turn["prompt_ids"]) > llm.info.max_seq_len == 16
    whole = llm.generate_ids(turn["prompt_ids"], temperature=0, max_tokens=4)
    llm.reset()
    for token in turn["prompt_ids"][:-1]:
        llm._decoder.feed([token])
    by_steps = llm._decoder.feed(turn["prompt_ids"][-1:])
    assert whole[0] == int(np.argmax(by_steps))
