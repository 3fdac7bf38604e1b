#!/usr/bin/env python3
"""Let a small language model tell a story, without torch.

    python examples/story/story.py [how the story begins]

The model has half a million weights, was trained by train.py on stories of stories.py, and runs in a few megabytes.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import time
from pathlib import Path

from etude.llm import LLM

HERE = Path(__file__).parent
BEGINNING = "Once upon a time there was a"


def main() -> None:
    """Tell one story; another one each time."""
    parser = argparse.ArgumentParser(description="Let a small language model tell a story; another one each time.")
    parser.add_argument("beginning", nargs="*", help=f"how the story begins (default: {BEGINNING})")
    beginning = " ".join(parser.parse_args().beginning) or BEGINNING
    began = time.perf_counter()
    llm = LLM(HERE / "story.pte", tokenizer=HERE / "tokenizer.json")
    text = beginning + llm.generate(beginning, temperature=0.8, top_p=0.95)
    print(textwrap.fill(text, 78))
    print(f"\n{len(llm.last.token_ids)} tokens at {llm.last.tokens_per_second:,.0f} a second; {time.perf_counter() - began:.2f} s in all.")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has heard enough; what is left must go nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
