"""`etude kernels`: the operators that programs need, and the dtypes of each, as the build option `kernel_list` takes them."""

from __future__ import annotations

import argparse

import etude
from etude.cli._errors import about
from etude.cli._targets import check_targets, one_stdin, read_source, write_targets
from etude.embed.requirements import read_needs, write_needs


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("kernels", help="list the operators and dtypes that programs need", description=__doc__)
    parser.add_argument("programs", metavar="MODEL.pte", nargs="+", help="the programs; - is stdin")
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="where to write the list; - is stdout, the default")


def run(args: argparse.Namespace) -> int:
    """Write the list."""
    one_stdin({"MODEL.pte": args.programs})
    check_targets({"--output": args.output})
    programs = []
    for path in args.programs:
        with about(path):
            programs.append(etude.load(read_source(path)))
    write_targets({args.output: write_needs(read_needs(programs)).encode()})
    return 0
