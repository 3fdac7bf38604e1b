"""`etude generate`: let a language model continue a text, or answer a question."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

from etude.cli._backends import add_options
from etude.cli._common import add_program, open_program
from etude.cli._errors import NamedError
from etude.cli._targets import one_stdin

if TYPE_CHECKING:
    from etude.llm import LLM
    from etude.llm._decoder import Progress


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("generate", help="let a language model continue a text", description=__doc__)
    add_program(parser)
    add_options(parser)
    parser.add_argument("prompt", nargs="?", help="the text to continue, or with --chat the question; - or nothing reads it from stdin")
    parser.add_argument("--tokenizer", metavar="FILE", required=True, help="tokenizer.json or tokenizer.model, or the folder it is in")
    parser.add_argument("--max-tokens", metavar="N", type=int, help="most tokens to write (default: to the end of the window)")
    parser.add_argument("--temperature", metavar="T", type=float, default=0.8, help="0 takes the likeliest token (default 0.8)")
    parser.add_argument("--top-k", metavar="K", type=int, default=0, help="only the K likeliest tokens")
    parser.add_argument("--top-p", metavar="P", type=float, default=1.0, help="only the likeliest tokens of that probability together")
    parser.add_argument("--min-p", metavar="P", type=float, default=0.0, help="only tokens with that share of the likeliest one's")
    parser.add_argument("--repetition-penalty", metavar="R", type=float, default=1.0, help="above 1 discourages tokens that occurred")
    parser.add_argument("--stop", metavar="TEXT", action="append", default=[], help="end before this text; may be repeated")
    parser.add_argument("--seed", metavar="N", type=int, help="makes the text repeatable")
    parser.add_argument("--chat", action="store_true", help="write the prompt by the model's chat template; without one, talk until Ctrl-D")
    parser.add_argument("--system", metavar="TEXT", help="with --chat: what the model is told first")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end, nothing before")
    parser.add_argument("--threads", metavar="N", type=int, default=0, help="threads that kernels may use (default, or 0: all cores)")


def run(args: argparse.Namespace) -> int:
    """Stream the text; speeds go to stderr where that is a terminal."""
    from etude.llm import LLM  # noqa: PLC0415  numpy's random generators need not be there for other commands

    if args.system is not None and not args.chat:
        raise NamedError("--system goes with --chat: other prompts are written as they are given")
    one_stdin({"MODEL.pte": [args.program], "the prompt": [args.prompt or "-"]})
    llm = LLM(open_program(args, args.threads or _cores()), args.tokenizer)
    if args.chat and args.prompt is None and sys.stdin.isatty():
        return _talk(llm, args)
    prompt = sys.stdin.read() if args.prompt in (None, "-") else args.prompt
    if args.chat:
        return _answer(llm, args, llm.chat_prompt(_messages(args, [{"role": "user", "content": prompt}])), bos=False)
    return _answer(llm, args, prompt, bos=None)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _messages(args: argparse.Namespace, turns: list[dict[str, str]]) -> list[dict[str, str]]:
    return ([{"role": "system", "content": args.system}] if args.system else []) + turns


def _talk(llm: LLM, args: argparse.Namespace) -> int:
    turns: list[dict[str, str]] = []
    while True:
        try:
            question = input("> ")
        except (EOFError, KeyboardInterrupt) as end:
            print()
            return 0 if isinstance(end, EOFError) else 130
        turns.append({"role": "user", "content": question})
        _answer(llm, args, llm.chat_prompt(_messages(args, turns)), bos=False)
        turns.append({"role": "assistant", "content": llm.last.text})


def _answer(llm: LLM, args: argparse.Namespace, prompt: str, *, bos: bool | None) -> int:
    """Write what follows a prompt. Ctrl-C ends it after the word at hand, and what there is counts."""
    pieces = llm.stream(
        prompt, max_tokens=args.max_tokens, temperature=args.temperature, top_k=args.top_k, top_p=args.top_p, min_p=args.min_p,
        repetition_penalty=args.repetition_penalty, stop=args.stop, seed=args.seed, bos=bos, progress=_progress(),
    )  # fmt: skip
    interrupted = False
    try:
        for piece in pieces:
            if not args.json:
                print(piece, end="", flush=True)
    except KeyboardInterrupt:
        interrupted = True
    done = llm.last
    if args.json:
        print(json.dumps({
            "text": done.text, "token_ids": done.token_ids, "prompt_tokens": done.prompt_tokens, "finish_reason": done.finish_reason,
            "prompt_tokens_per_second": round(done.prompt_tokens_per_second, 1), "tokens_per_second": round(done.tokens_per_second, 1),
        }))  # fmt: skip
    else:
        print()
    if sys.stderr.isatty():
        print(f"[{done}]", file=sys.stderr)
    return 130 if interrupted else 0


def _progress() -> Progress | None:
    """Says how much of a long prompt has been read; only on a terminal."""
    if not sys.stderr.isatty():
        return None

    shown = ""

    def show(done: int, total: int) -> None:
        nonlocal shown
        blank = "\r" + " " * len(shown) + "\r" if shown else ""
        shown = f"reading {done} of {total} tokens" if done < total else ""
        print(blank + shown, end="", file=sys.stderr, flush=True)

    return show
