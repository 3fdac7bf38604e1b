"""`etude diff`: what differs between two programs.

Exit status 0 if they are equivalent, 1 if not, 2 if one is no program, 3 if one can't be read.
"""

from __future__ import annotations

import argparse

from etude.emit.diff import diff_programs
from etude.emit.reader import read_program


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("diff", help="compare two programs", description=__doc__)
    parser.add_argument("first", metavar="A.pte")
    parser.add_argument("second", metavar="B.pte")
    parser.add_argument("--brief", action="store_true", help="count operators instead of listing instructions")


def run(args: argparse.Namespace) -> int:
    """Compare, and print the differences."""
    lines = diff_programs(read_program(args.first), read_program(args.second), instructions=not args.brief)
    if lines:
        print("\n".join([f"--- {args.first}", f"+++ {args.second}", *lines]))
    return 1 if lines else 0
