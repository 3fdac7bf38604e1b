"""`etude kernels`: the operators that programs need, and the dtypes of each, as the build option `kernel_list` takes them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import etude
from etude.embed.requirements import read_needs, write_needs


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("kernels", help="list the operators and dtypes that programs need", description=__doc__)
    parser.add_argument("programs", metavar="MODEL.pte", nargs="+", help="the programs")
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="where to write the list; - is stdout, the default")


def run(args: argparse.Namespace) -> int:
    """Write the list."""
    text = write_needs(read_needs(etude.load(path) for path in args.programs))
    if args.output == "-":
        sys.stdout.write(text)
    else:
        Path(args.output).write_text(text)
    return 0
