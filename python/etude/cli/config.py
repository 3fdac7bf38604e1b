"""`etude config`: flags for compiling C programs against the library of this installation, quoted for the shell.

cc app.c $(etude config --cflags --libs)
eval "cc app.c $(etude config --cflags --libs)"         where the paths have blanks in them
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from etude import config

_ANSWERS = {
    "cflags": (config.cflags, "compiler flags"),
    "libs": (config.libs, "linker flags"),
    "include": (config.get_include, "folder of the headers"),
    "library": (config.get_library, "path of the shared library"),
    "pkgconfig": (config.get_pkgconfig, "folder for PKG_CONFIG_PATH"),
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("config", help="flags for compiling C against etude", description=__doc__)
    for name, (_, words) in _ANSWERS.items():
        parser.add_argument(f"--{name}", action="store_true", help=words)


def run(args: argparse.Namespace) -> int:
    """Print what was asked for, on one line; without arguments everything, with names."""
    asked = [answer() for name, (answer, _) in _ANSWERS.items() if getattr(args, name)]
    if asked:
        print(" ".join(asked))
    else:
        print("\n".join(f"{name}: {_answer(answer)}" for name, (answer, _) in _ANSWERS.items()))
    return 0


def _answer(answer: Callable[[], str]) -> str:
    try:
        return answer()
    except FileNotFoundError as error:
        return f"({error})"
