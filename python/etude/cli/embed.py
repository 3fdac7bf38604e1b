"""`etude embed`: a program as C, with just the library that it needs, so that `cc *.c` is the whole build.

Writes etude.c and etude.h, the core with the program's operators and dtypes; NAME.c and NAME.h, the program as a constant array and
functions with the types of its inputs and outputs; and with --board an example that runs on a machine of QEMU's.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from etude.cli._errors import NamedError, about
from etude.embed.boards import BOARDS
from etude.embed.build import make_files, read_model, with_exact_arena
from etude.embed.layouts import LAYOUTS
from etude.embed.library import PARTS, Choices
from etude.embed.model import Model, identifier
from etude.embed.requirements import parse_needs
from etude.errors import EtudeValueError

Array = np.ndarray[Any, Any]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("embed", help="write a program and the library that it needs as C files", description=__doc__)
    parser.add_argument("programs", metavar="MODEL.pte", nargs="+", help="the programs; more than one share the library")
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="where to write; made if it is not there")
    parser.add_argument("--name", help='prefix of functions and files of a single program (default "model"; of several, the files\' names)')
    parser.add_argument("--board", choices=BOARDS, help="write an example with what a board needs, too: " + ", ".join(BOARDS))
    parser.add_argument("--layout", choices=LAYOUTS, default="plain", help="the folder as a build system wants it: " + ", ".join(LAYOUTS))
    parser.add_argument("--input", metavar="[METHOD:]N=FILE.npy", action="append", default=[], help="input N of the example; others are zeros")
    parser.add_argument("--kernels", metavar="FILE", help="operators to have besides, as `etude kernels` lists them")
    parser.add_argument("--fast", action="store_true", help="fast kernels, which are several times larger, rather than small ones")
    parser.add_argument("--texts", action="store_true", help="error messages and names, not only statuses")
    parser.add_argument("--with", dest="parts", choices=PARTS, action="append", default=[], help="a part of the core to have though the program does without (docs/embedded.md); may be repeated")


def run(args: argparse.Namespace) -> int:
    """Write the files and say what to do with them."""
    if args.output == "-":
        raise NamedError("--output -: expected a folder, which stdout is not")
    folder = Path(args.output)
    choices = Choices(args.fast, args.texts, parts=frozenset(args.parts))
    models = _models(args)
    board = BOARDS[args.board] if args.board else None
    inputs: dict[tuple[str, int], Array] = {}
    if board is not None:
        if args.layout != "plain":
            raise EtudeValueError("the example of a board has a folder of its own: leave out --layout, or --board")
        if len(models) > 1:
            raise EtudeValueError("an example is made for one program: leave out --board, or the other programs")
        inputs = _inputs(args.input, models[0])
        models = [with_exact_arena(models[0], choices, board, inputs)]
    more = parse_needs(Path(args.kernels)) if args.kernels else {}
    files = make_files(models, choices, more=more, board=board, inputs=inputs)
    files = LAYOUTS[args.layout](models[0].name, files)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for model in models:
        how = "measured on the board" if model.exact else "at most"
        print(f"{folder / model.name}.c: {len(model.data):,} bytes of flash; arena {model.arena:,} bytes, {how}")
    commands = board.commands() if board else ["cc -Os -ffunction-sections -fdata-sections -Wl,--gc-sections *.c -lm"]
    if args.layout != "plain":
        return 0
    print("\n".join([f"now: cd {folder}", *(f"     {command}" for command in commands)]))
    return 0


def _models(args: argparse.Namespace) -> list[Model]:
    models: list[Model] = []
    for path in args.programs:
        name = identifier(args.name or ("model" if len(args.programs) == 1 else Path(path).stem))
        if name in {"etude", "main", "board"} or any(name == model.name for model in models):
            raise EtudeValueError(f"the name {name!r} is taken: give another file name, or --name")
        with about(path):
            models.append(read_model(Path(path), name))
    return models


def _inputs(options: list[str], model: Model) -> dict[tuple[str, int], Array]:
    """The arrays of --input, by method and number."""
    found = {}
    methods = list(model.program)
    for option in options:
        place, equals, file = option.partition("=")
        method, colon, number = place.rpartition(":")
        if not equals or not number.isdecimal() or (not colon and len(methods) > 1):
            raise EtudeValueError(f"--input {option}: expected [METHOD:]N=FILE.npy; methods: {', '.join(methods)}")
        found[method or methods[0], int(number)] = np.load(file, allow_pickle=False)
    return found
