#!/usr/bin/env python3
"""Let a small language model tell a story, without torch.

    python examples/story/story.py [how the story begins]

The model has half a million weights, was trained by train.py on stories of stories.py, and runs in a few megabytes.
"""

from __future__ import annotations

import sys
import textwrap
import time
from pathlib import Path

from etude.llm import LLM

HERE = Path(__file__).parent


def main() -> None:
    """Tell one story; another one each time."""
    began = time.perf_counter()
    llm = LLM(HERE / "story.pte", tokenizer=HERE / "tokenizer.json")
    beginning = " ".join(sys.argv[1:]) or "Once upon a time there was a"
    text = beginning + llm.generate(beginning, temperature=0.8, top_p=0.95)
    print(textwrap.fill(text, 78))
    print(f"\n{len(llm.last.token_ids)} tokens at {llm.last.tokens_per_second:,.0f} a second; {time.perf_counter() - began:.2f} s in all.")


if __name__ == "__main__":
    main()
