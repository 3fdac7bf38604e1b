"""`etude conformance`: do the options of backends behave as their schemas say? For authors of backends; exit status 1 where not."""

from __future__ import annotations

import argparse

import etude
from etude.cli._backends import add_libraries, open_runtime


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("conformance", help="check that a backend's options keep to its schema", description=__doc__)
    parser.add_argument(
        "backends", metavar="BACKEND", nargs="*", help="default: those of the libraries and modules; without any, all that are registered"
    )
    add_libraries(parser)


def run(args: argparse.Namespace) -> int:
    """Print every check."""
    own = set(etude.Runtime.get().backend_registry)
    registry = open_runtime(args).backend_registry
    failed = 0
    for name in args.backends or [name for name in registry if name not in own] or registry:
        checks = registry.check_backend(name)
        wrong = sum(not check.passed for check in checks)
        failed += wrong
        print(name)
        print("\n".join(f"  {'ok    ' if check.passed else 'FAILED'}  {check.what}" for check in checks))
        print(f"{name}: {len(checks)} checks, {wrong} failed")
    return 1 if failed else 0
