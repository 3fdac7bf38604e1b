"""`etude diff`: what differs between two programs.

Exit status 0 if they are equivalent, 1 if not, 2 if one is no program, 3 if one can't be read.
"""

from __future__ import annotations

import argparse

from etude.cli._errors import about
from etude.cli._targets import one_stdin, read_source
from etude.emit.diff import diff_programs
from etude.emit.reader import read_program


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("diff", help="compare two programs", description=__doc__)
    parser.add_argument("first", metavar="A.pte", help="a program; - is stdin")
    parser.add_argument("second", metavar="B.pte", help="another one")
    parser.add_argument("--brief", action="store_true", help="count operators instead of listing instructions")


def run(args: argparse.Namespace) -> int:
    """Compare, and print the differences."""
    one_stdin({"A.pte": [args.first], "B.pte": [args.second]})
    programs = []
    for path in (args.first, args.second):
        with about(path):
            programs.append(read_program(read_source(path)))
    lines = diff_programs(*programs, instructions=not args.brief)
    if lines:
        print("\n".join([f"--- {args.first}", f"+++ {args.second}", *lines]))
    return 1 if lines else 0
