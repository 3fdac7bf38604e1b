"""Language models: generate, stream and chat, with numpy and a tokenizer's package, and without torch.

    from etude.llm import LLM
    llm = LLM("model.pte", tokenizer="tokenizer.json")
    print(llm.generate("Once upon a time"))

`pip install etude[llm]` brings the packages that read tokenizers and chat templates. See docs/llm.md.
"""

from __future__ import annotations

from etude.llm._metadata import ModelInfo
from etude.llm._sampling import Sampling
from etude.llm.model import LLM, Generation, Snapshot
from etude.llm.speech import Segment, Transcriber, Transcript
from etude.llm.tokenizers import Tokenizer, load_tokenizer

__all__ = ["LLM", "Generation", "ModelInfo", "Sampling", "Segment", "Snapshot", "Tokenizer", "Transcriber", "Transcript",
           "load_tokenizer"]
