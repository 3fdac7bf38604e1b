"""What several commands share: opening a program, and words for sizes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import etude
from etude.cli._backends import open_runtime, set_options


def add_program(parser: argparse.ArgumentParser) -> None:
    """Arguments that name a program and its data files."""
    parser.add_argument("program", metavar="MODEL.pte", help="the program; - is stdin")
    parser.add_argument("--data", metavar="FILE.ptd", action="append", default=[], help="external data; may be repeated")


def open_program(args: argparse.Namespace, threads: int | None = None) -> etude.Program:
    """The program that `add_program`'s arguments name, with the plugins and options of `add_options`, where the command has these."""
    source = sys.stdin.buffer.read() if args.program == "-" else args.program
    if "library" not in args:
        return etude.load(source, data_path=args.data, threads=threads)
    runtime = open_runtime(args, threads)
    process, load = set_options(runtime, getattr(args, "option", []))
    program = runtime.load_program(source, data_path=args.data, backend_options=load)
    used = {name for method in program for name in program.metadata(method).backends}
    for backend in process:
        if backend not in used:  # as the runtime says it of options that are given at load
            raise etude.EtudeValueError(f"options were given for backend {backend!r}, which the program does not use: leave them out")
    return program


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


def bytes_text(size: int) -> str:
    """A number of bytes for reading: "1,234 bytes", "5.3 MB"."""
    return f"{size:,} bytes" if size < 1_000_000 else f"{size / 1e6:.1f} MB"
