"""What several commands share: opening a program, and words for sizes."""

from __future__ import annotations

import argparse
import json
import math
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict

import etude
from etude.cli._backends import open_runtime, set_options
from etude.cli._targets import read_source


def add_program(parser: argparse.ArgumentParser) -> None:
    """Arguments that name a program and its data files."""
    parser.add_argument("program", metavar="MODEL.pte", help="the program; - is stdin")
    parser.add_argument("--data", metavar="FILE.ptd", action="append", default=[], help="external data; may be repeated")


def source_of(args: argparse.Namespace) -> str | bytes:
    """What `add_program`'s arguments name: a path, or the content of stdin, which is read once."""
    if "source" not in args:
        args.source = read_source(str(args.program))
    source: str | bytes = args.source
    return source


def open_program(args: argparse.Namespace, threads: int | None = None, content: bytes | None = None) -> etude.Program:
    """The program that `add_program`'s arguments name, with the plugins and options of `add_options`, where the command has these.

    `content` is its bytes, where they are known already.
    """
    source = source_of(args) if content is None else content
    if "library" not in args:
        return etude.load(source, data_path=args.data, threads=threads)
    runtime = open_runtime(args, threads)
    process, load = set_options(runtime, getattr(args, "option", []))
    args.runtime, args.process_options = runtime, process
    program = runtime.load_program(source, data_path=args.data, backend_options=load)
    used = {name for method in program for name in program.metadata(method).backends}
    for backend in process:
        if backend not in used:  # as the runtime says it of options that are given at load
            raise etude.EtudeValueError(f"options were given for backend {backend!r}, which the program does not use: leave them out")
    return program


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Arguments that bound what a method may take, for files that nobody vouches for."""
    group = parser.add_argument_group("limits, for files that nobody vouches for (0: the default)")
    group.add_argument("--work-limit", metavar="N", type=_limit, default=0, help="most work of an execution, in bytes of tensors that "
                       "instructions take and steps of inner loops (default 2^41, tens of minutes)")  # fmt: skip
    group.add_argument("--instruction-limit", metavar="N", type=_limit, default=0, help="most instructions of one (default 10,000,000)")
    group.add_argument("--memory-limit", metavar="BYTES", type=_limit, default=0, help="most memory, delegates' too "
                       "(default: 1 GiB without theirs)")  # fmt: skip


class Limits(TypedDict):
    """Those of `Program.load_method`."""

    work_limit: int
    instruction_limit: int
    memory_limit: int


def limits(args: argparse.Namespace) -> Limits:
    """What `add_limits`'s arguments say."""
    return {"work_limit": args.work_limit, "instruction_limit": args.instruction_limit, "memory_limit": args.memory_limit}


def _limit(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**64:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, not {text!r}")
    return int(text)


def pick_method(program: etude.Program, name: str | None) -> str:
    """`name`, or the method that goes without saying."""
    if name is not None:
        return name
    names = list(program)
    if "forward" in names or len(names) == 1:
        return "forward" if "forward" in names else names[0]
    raise etude.EtudeValueError(f"which method? give --method; this program has: {', '.join(names) or 'none'}")


def progress(items: Sequence[Any], what: str) -> Iterator[Any]:
    """The items, with a line on stderr that says how far it is: only on a terminal, and only where it takes more than a second."""
    shown = False
    begun = time.monotonic()
    for i, item in enumerate(items):
        if sys.stderr.isatty() and time.monotonic() - begun > 1:
            print(f"\r{what}: {i} of {len(items)}", end="", file=sys.stderr, flush=True)
            shown = True
        yield item
    if shown:
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A line on stderr that says for how long something has been going on: only on a terminal, and only after a second."""
    if not sys.stderr.isatty():
        yield
        return
    done, begun = threading.Event(), time.monotonic()

    def tell() -> None:
        while not done.wait(1):
            print(f"\r{what}: {time.monotonic() - begun:.0f} s", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if time.monotonic() - begun > 1:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    """A value as JSON on stdout. JSON has no NaN and no infinities: they are the words "nan", "inf" and "-inf"."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def bytes_text(size: int) -> str:
    """A number of bytes for reading: "1,234 bytes", "5.3 MB"."""
    return f"{size:,} bytes" if size < 1_000_000 else f"{size / 1e6:.1f} MB"
