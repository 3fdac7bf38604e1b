"""`etude options`: the options of backends: value, default, range, where they may be set, when a change takes effect, and help."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from etude.cli._backends import add_libraries, open_runtime


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("options", help="list the options of backends", description=__doc__)
    parser.add_argument("backend", metavar="BACKEND", nargs="?", help="of this backend only")
    parser.add_argument("--json", action="store_true", help="as JSON: {backend: {key: {...}}}")
    add_libraries(parser)


def run(args: argparse.Namespace) -> int:
    """Print a table, or one for each backend."""
    registry = open_runtime(args).backend_registry
    names = [registry[args.backend].name] if args.backend else list(registry)
    if args.json:
        print(json.dumps({name: {key: asdict(option) for key, option in registry[name].options.items()} for name in names}, indent=2))
        return 0
    for name in names:
        lines = repr(registry[name].options).splitlines()
        print("\n".join([name, *(f"  {line}" for line in lines), ""]), end="" if name == names[-1] else "\n")
    return 0
