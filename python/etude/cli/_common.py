"""What several commands share: opening a program, and words for sizes."""

from __future__ import annotations

import argparse

import etude
from etude.cli._backends import open_runtime, set_options


def add_program(parser: argparse.ArgumentParser) -> None:
    """Arguments that name a program and its data files."""
    parser.add_argument("program", metavar="MODEL.pte", help="the program")
    parser.add_argument("--data", metavar="FILE.ptd", action="append", default=[], help="external data; may be repeated")


def open_program(args: argparse.Namespace, threads: int | None = None) -> etude.Program:
    """The program that `add_program`'s arguments name, with the plugins and options of `add_options`, where the command has these."""
    if "library" not in args:
        return etude.load(args.program, data_path=args.data, threads=threads)
    runtime = open_runtime(args, threads)
    process, load = set_options(runtime, getattr(args, "option", []))
    program = runtime.load_program(args.program, data_path=args.data, backend_options=load)
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


def bytes_text(size: int) -> str:
    """A number of bytes for reading: "1,234 bytes", "5.3 MB"."""
    return f"{size:,} bytes" if size < 1_000_000 else f"{size / 1e6:.1f} MB"
