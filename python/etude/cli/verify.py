"""`etude verify`: run the test cases of a bundled program, and compare with the outputs they expect.

Exit status 0 if all are as expected, 1 if not, 2 if a case could not be executed or nothing is expected, 3 if the file can't be read.
"""

from __future__ import annotations

import argparse

from etude import bundles
from etude.cli._backends import add_options
from etude.cli._common import add_program, busy, open_program, print_json, source_of
from etude.cli._errors import tolerance


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("verify", help="run the test cases of a bundled program (.bpte)", description=__doc__)
    add_program(parser)
    add_options(parser)
    parser.add_argument("--method", metavar="NAME", help="only the cases of this method")
    parser.add_argument(
        "--rtol", metavar="R", type=tolerance, default=bundles.RTOL, help=f"of the expected element (default {bundles.RTOL:g})",
    )  # fmt: skip
    parser.add_argument("--atol", metavar="A", type=tolerance, default=bundles.ATOL, help=f"added to that (default {bundles.ATOL:g})")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads that kernels may use (default 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def run(args: argparse.Namespace) -> int:
    """Run the cases, print what came of them."""
    bundle = bundles.read(source_of(args))
    program = open_program(args, args.threads if args.threads != 1 else None, bundle.program)
    with busy("running test cases"):
        report = bundles.verify(bundle, program, method=args.method, rtol=args.rtol, atol=args.atol)
    if args.json:
        print_json(report.to_dict())
    else:
        print(report)
    return 2 if report.failed else 0 if report.equal else 1
