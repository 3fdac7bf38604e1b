"""`etude memory`: flash and RAM that a program, with its delegates, takes on a microcontroller.

It is built as `etude embed` writes it, in a folder that is deleted, and run once in an emulator: its compiler and QEMU must be there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import etude
from etude.embed.boards import BOARDS
from etude.embed.build import make_files, read_model
from etude.embed.library import Choices
from etude.embed.measure import measure
from etude.embed.requirements import read_variation

#: Processors by name, and the board that stands for each.
TARGETS = {"cortex-m4": "mps2-an386", "cortex-m33": "mps2-an505", "cortex-m55": "mps3-an547", "rv32imac": "riscv32-virt", "host": "host"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("memory", help="flash and RAM that a program takes on a microcontroller", description=__doc__)
    parser.add_argument("program", metavar="MODEL.pte", help="the program")
    parser.add_argument("--target", choices=TARGETS, default="cortex-m4", help="the processor (default cortex-m4): " + ", ".join(TARGETS))
    parser.add_argument("--fast", action="store_true", help="with fast kernels, as of `etude embed`")
    parser.add_argument("--texts", action="store_true", help="with error messages")
    parser.add_argument("--top", metavar="N", type=_count, default=0, help="list the N largest functions and tables, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Build, run, and print."""
    etude.load(args.program).close()  # errors about the program come before those about tools
    board = BOARDS[TARGETS[args.target]]
    choices = Choices(args.fast, args.texts)
    model = read_model(Path(args.program), "model")
    use = measure(make_files([model], choices, board=board, regions=True), board)
    parts = {part: use.flash.get(part, 0) for part in ("core", "kernels", "backends", "library") if part != "backends" or part in use.flash}
    flash = {"model": use.flash["model"], **parts}  # without the example, which is there to measure
    functions = [row for row in use.functions if row[0] in flash][: args.top]
    code = sum(parts.values())
    varies = read_variation(model.program)
    at_most = max(model.arena, use.memory["peak"]) if varies else None  # where one run can't tell
    if args.json:
        rows = [{"part": part, "name": name, "bytes": size} for part, name, size in functions]
        print(json.dumps({"target": args.target, "flash": flash, "code": code, "memory": use.memory, "at_most": at_most, "functions": rows}))
        return 0
    print(f"{args.program} on {board.processor}")
    print("flash\n" + "\n".join(f"  {part:<12}{size:>10,}" for part, size in flash.items()) + f"\n  {'code':<12}{code:>10,}")
    print("RAM\n" + "\n".join(f"  {region:<12}{size:>10,}" for region, size in use.memory.items() if size or region == "peak"))
    if varies:
        print(f"  {'at most':<12}{at_most:>10,}  the program has {varies}; the figures above are of one run, with zeros, and others may take more")
    for part, name, size in functions:
        print(f"{size:>10,}  {part:<10}{name}")
    return 0
