"""Thousands of damaged programs, at both verification levels: every one is refused or runs; none crashes, hangs or takes all memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutants import mutate
from paths import CORPUS, PROGRAMS, ROOT

#: Files of every group, small enough that a mutant takes a millisecond.
LARGEST = 24_000
CASES = json.loads((CORPUS / "manifest.json").read_text())["cases"]
FILES = sorted(str(CORPUS / c["files"]["pte"]) for c in CASES.values() if (CORPUS / c["files"]["pte"]).stat().st_size <= LARGEST)
FILES += sorted(map(str, PROGRAMS.glob("*.pte")))

#: Mutants of each file; ETUDE_TEST_MUTANTS raises it for a long run.
COUNT = int(os.environ.get("ETUDE_TEST_MUTANTS", "60"))
BATCHES = 8


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutants(batch, tmp_path):
    files = FILES[batch::BATCHES]
    progress = tmp_path / "progress"
    command = [sys.executable, str(ROOT / "tests/python/mutants.py"), "0", str(COUNT), str(progress), *files]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 + COUNT * len(files))
    except subprocess.TimeoutExpired:
        pytest.fail(f"hangs: {progress.read_text()}")
    assert done.returncode == 0, f"status {done.returncode} at {progress.read_text()}{done.stderr[-4000:]}"
    counts = dict(item.split("=") for item in done.stdout.split())
    print(counts)
    assert sum(map(int, counts.values())) == 2 * COUNT * len(files)
    assert int(counts["refused"]) > 0 and int(counts["ran"]) > 0, "the mutants are too harsh, or too mild, to tell anything"


def test_there_are_thousands():
    assert 2 * COUNT * len(FILES) >= 4000 or COUNT < 40
    data = Path(FILES[0]).read_bytes()
    assert mutate(data, 7) == mutate(data, 7) != data
