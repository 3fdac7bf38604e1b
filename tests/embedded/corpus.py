#!/usr/bin/env python3
"""Programs of the corpus as C: each is embedded with just its operators and dtypes, compiled for this machine, and run in an arena of
just the size that its header says; the goldens are those that eager PyTorch made.

    corpus.py [--fast] [--every N] [NAME...]      NAME: a case of tests/corpus; all by default, or one of N
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))

from embedded_kit import NotEmbedded, run_corpus_case  # noqa: E402
from test_corpus import CASES  # noqa: E402


def run(name: str, options: list[str]) -> str:
    """What came of a case: "right", why it can't be embedded, or what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run_corpus_case(name, Path(folder) / "model", *options)
        except NotEmbedded as reason:
            return f"not embedded: {reason}"
        except Exception as error:  # a verdict among others
            return f"WRONG: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "right"


def main() -> int:
    """Run them, say what came of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = args.names or list(CASES)[:: args.every]
    options = ["--fast"] if args.fast else []
    verdicts = {}
    with ThreadPoolExecutor(2) as pool:
        for name, verdict in zip(names, pool.map(lambda name: run(name, options), names), strict=True):
            verdicts[name] = verdict
            print(f"{name}: {verdict}", flush=True)
    wrong = sum(verdict.startswith("WRONG") for verdict in verdicts.values())
    refused = sum(verdict.startswith("not") for verdict in verdicts.values())
    print(f"of {len(names)} of {len(CASES)} cases {refused} can't be embedded")
    print(f"{len(names) - wrong - refused} passed, {wrong} failed")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
