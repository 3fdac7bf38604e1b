#!/usr/bin/env python3
"""Run examples/llm/generate over recorded runs of the official runner, and over first calls of the programs in a folder.

    compare_generate.py GENERATE FOLDER [--without-texts | --runs]

FOLDER is tests/llm. The runs of `l_runner` must come token by token, at temperature 0; for every other program with a method
`forward` of tokens, the first token after the prompt of its first call must be the likeliest of the golden logits. A prompt that
the window does not hold, and ids that the model does not know, must be refused. `--runs`: the recorded runs alone, which are what
the examples of other languages know. Ends with "N passed, N failed".
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

WRAPPER = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))  # an emulator, in a cross build


def generate(program: str, model: Path, turns: str, *options: str) -> tuple[list[list[int]], str]:
    """Ids of each turn, and what was said on stderr."""
    command = [*WRAPPER, program, *options, str(model)]
    done = subprocess.run(command, input=turns, check=False, capture_output=True, text=True, timeout=120)
    return [[int(token) for token in line.split()] for line in done.stdout.splitlines()], done.stderr.strip()


def runs_of_the_runner(program: str, folder: Path) -> dict[str, str]:
    """What is wrong with each conversation; empty if nothing is."""
    conversations: list[list[dict[str, Any]]] = [[]]
    for turn in json.loads((folder / "runner.json").read_text())["runs"]["l_runner bytelevel.json"]["by_hand"]:
        if turn.get("reset"):
            conversations.append([])
        if turn.get("ids"):  # the others were refused, or are beyond what the official runner can do
            conversations[-1].append(turn)
    found = {}
    for turns in filter(None, conversations):
        prompts = "".join(" ".join(map(str, turn["prompt_ids"])) + "\n" for turn in turns)
        # one number of tokens for all turns: the last one may have been shorter
        got, wrong = generate(program, folder / "l_runner.pte", prompts, "-n", str(len(turns[0]["ids"])))
        same = len(got) == len(turns) and all(ids[: len(turn["ids"])] == turn["ids"] for ids, turn in zip(got, turns))
        found[f"run {len(found)}"] = "" if same else wrong or f"{got}, expected {[turn['ids'] for turn in turns]}"
    return found


def first_tokens(program: str, folder: Path) -> dict[str, str]:
    """The same of the first token that each program gives."""
    found = {}
    for name, case in json.loads((folder / "manifest.json").read_text())["cases"].items():
        method, number = case["calls"][0]
        shapes = case["methods"][method]["sets"][number]["inputs"]
        data = np.load(folder / case["files"]["npz"])
        prefix = f"{method}__" if number == 0 else f"{method}__s{number}_"
        tokens, logits = data[f"{prefix}in0"], data.get(f"{prefix}rt0", data[f"{prefix}out0"])
        drives = method == "forward" and len(shapes) <= 2 and case["files"]["ptd"] == [] and name != "o_bert"
        if not drives or tokens.dtype.kind != "i":
            continue
        if logits.dtype == np.uint16:
            logits = (logits.astype(np.uint32) << 16).view(np.float32)
        want = [[int(np.argmax(logits.reshape(-1, logits.shape[-1])[-1]))]]
        got, wrong = generate(program, folder / case["files"]["pte"], " ".join(map(str, tokens.reshape(-1))), "-n", "1")
        found[name] = "" if got == want else wrong or f"{got}, expected {want}"
    return found


def refusals(program: str, folder: Path, texts: bool) -> dict[str, str]:
    """The same of prompts that must be refused; a build without texts says the kind of error alone."""
    wanted = {"too long": ("7 " * 65, "longer than"), "unknown": ("5 312", "312"), "negative": ("-1", "-1"), "no number": ("a", "numbers")}
    found = {}
    for name, (turn, message) in wanted.items():
        got, wrong = generate(program, folder / "l_runner.pte", turn)
        refused = message in wrong or (not texts and "InvalidArgument" in wrong)
        found[name] = "" if refused and not got else f"{got}, {wrong!r}"
    return found


def main() -> int:
    """Run everything; 0 if all agrees."""
    program, folder, texts = sys.argv[1], Path(sys.argv[2]), "--without-texts" not in sys.argv
    runs_alone = "--runs" in sys.argv
    found = runs_of_the_runner(program, folder)
    if not runs_alone:
        found |= {**first_tokens(program, folder), **refusals(program, folder, texts)}
    for name, wrong in found.items():
        print(f"{name:<20} {'FAILED: ' + wrong if wrong else 'ok'}")
    failed = sum(bool(wrong) for wrong in found.values())
    print(f"{len(found) - failed} passed, {failed} failed")
    return 1 if failed or len(found) < (2 if runs_alone else 12) else 0


if __name__ == "__main__":
    sys.exit(main())
