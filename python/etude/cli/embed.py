"""`etude embed`: a program as C, with just the library that it needs, so that `cc *.c` is the whole build.

Writes etude.c and etude.h, the core with the program's operators and dtypes; NAME.c and NAME.h, the program as a constant array and
functions with the types of its inputs and outputs; and with --board an example that runs on a machine of QEMU's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from etude.cli._errors import NamedError, about
from etude.cli._inputs import read_arrays
from etude.embed.boards import BOARDS
from etude.embed.build import make_files, read_model, with_exact_arena
from etude.embed.layouts import LAYOUTS, say_how
from etude.embed.library import PARTS, Choices
from etude.embed.marks import find_made, is_made, mark
from etude.embed.measure import Missing
from etude.embed.model import Model, identifier
from etude.embed.names import is_taken
from etude.embed.requirements import parse_needs, read_variation
from etude.emit.files import write_files
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
    if folder.exists() and not folder.is_dir():
        raise NamedError(f"--output {args.output}: is a file, not a folder")
    if args.input and not args.board:
        raise NamedError("--input goes with --board: it is for the example that runs on a board")
    if args.name is not None and len(args.programs) > 1:
        raise NamedError("--name is for one program; several have the names of their files")
    choices = Choices(args.fast, args.texts, parts=frozenset(args.parts))
    models = _models(args)
    more = parse_needs(Path(args.kernels)) if args.kernels else {}
    board = BOARDS[args.board] if args.board else None
    inputs: dict[tuple[str, int], Array] = {}
    if board is not None:
        if args.layout != "plain":
            raise EtudeValueError("the example of a board has a folder of its own: leave out --layout, or --board")
        if len(models) > 1:
            raise EtudeValueError("an example is made for one program: leave out --board, or the other programs")
        inputs = _inputs(args.input, models[0])
    files = make_files(models, choices, more=more, board=board, inputs=inputs)
    files = LAYOUTS[args.layout](models[0].name, files)
    unmeasured = ""
    if board is not None:
        _check_own(folder, files)
        try:
            models = [with_exact_arena(models[0], choices, board, inputs, more)]
            varies = read_variation(models[0].program)
            unmeasured = f": the program has {varies}, so that other runs may take more than the one on the board" if varies else ""
            files = make_files(models, choices, more=more, board=board, inputs=inputs)
        except Missing as error:
            unmeasured = f": {error}"
    _write(folder, files)
    for model in models:
        how = "measured on the board" if model.exact else f"at most{unmeasured}"
        print(f"{folder / model.name}.c: {len(model.data):,} bytes of flash; arena {model.arena:,} bytes, {how}")
    commands = board.commands() if board else ["cc -Os -ffunction-sections -fdata-sections -Wl,--gc-sections *.c -lm"]
    if args.layout != "plain":
        print(say_how(args.layout, models[0].name, str(folder)))
        return 0
    print("\n".join([f"now: cd {folder}", *(f"     {command}" for command in commands)]))
    return 0


def _models(args: argparse.Namespace) -> list[Model]:
    models: list[Model] = []
    for path in args.programs:
        text = args.name if args.name is not None else "model" if len(args.programs) == 1 else Path(path).stem
        name = identifier(text)
        if name.startswith("_"):
            other = "rename the file" if len(args.programs) > 1 else "give another --name"
            raise NamedError(f"{path}: the name {text!r} would be {name!r} in C, where names of programs begin with a letter and are no words of C, C++ or Python: {other}")
        if is_taken(name) or any(name == model.name for model in models):
            raise NamedError(f"{path}: the name {name!r} is taken: {'rename the file' if len(args.programs) > 1 else 'give another --name'}")
        with about(path):
            models.append(read_model(Path(path), name))
        if name != text:
            print(f"{path}: the name {text!r} is {name!r} in C")
    return models


def _inputs(options: list[str], model: Model) -> dict[tuple[str, int], Array]:
    """The arrays of --input, by method and number, checked as those of `etude run`."""
    methods = list(model.program)
    by_method: dict[str, list[str]] = {}
    for option in options:
        place, equals, file = option.partition("=")
        method, colon, number = place.rpartition(":")
        if not equals or not number.isdecimal() or (not colon and len(methods) > 1) or not file.endswith(".npy"):
            raise NamedError(f"--input {option}: expected [METHOD:]N=FILE.npy; methods: {', '.join(methods)}")
        if colon and method not in methods:
            raise NamedError(f"--input {option}: there is no method {method!r}; methods: {', '.join(methods)}")
        by_method.setdefault(method or methods[0], []).append(f"{number}={file}")
    return {(name, i): array for name, items in by_method.items() for i, array in read_arrays(model.program.load_method(name), items).items()}


def _check_own(folder: Path, files: Iterable[str]) -> None:
    """Refuse to replace what is not ours."""
    own = [name for name in files if (folder / name).exists() and not is_made(folder / name)]
    if own:
        raise NamedError(f"{folder}: {', '.join(own)}: would be replaced, and not made by `etude embed`, or changed since: choose another folder, or move {'it' if len(own) == 1 else 'them'}")


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files, and remove those of an earlier run that are not among them, which `cc *.c` would compile, too."""
    _check_own(folder, files)
    left = find_made(folder) - set(files)
    if (folder / "main.c").exists() and not is_made(folder / "main.c"):
        left -= {"board.c", "board.h", "link.ld", "flags.txt"}  # the user's main.c may need them
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    write_files({str(folder / name): mark(name, text).encode() for name, text in files.items()})
    for name in sorted(left):
        (folder / name).unlink()
    if left:
        print(f"removed what an earlier run made: {', '.join(sorted(left))}")
