"""`etude check`: can this build run the program? Lists all that is missing.

Exit status 0 if it can, 1 if not, 2 if the file is no program, 3 if it can't be read.
"""

from __future__ import annotations

import argparse

import etude
from etude.cli._backends import add_options
from etude.cli._common import Limits, add_limits, add_program, bytes_text, limits, open_program, print_json
from etude.cli._errors import in_options


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("check", help="can this build run a program? lists all that is missing", description=__doc__)
    add_program(parser)
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Check each method and say what stands in its way."""
    program = open_program(args)
    found = {name: find_problems(program, name, limits(args)) for name in program}
    peaks = {name: None if problems else program.memory(name).peak for name, problems in found.items()}
    failed = any(found.values())
    if args.json:
        methods = [{"name": n, "can_run": not p, "problems": p, "memory_peak": peaks[n]} for n, p in found.items()]
        print_json({"can_run": not failed, "methods": methods})
        return 1 if failed else 0
    for name, problems in found.items():
        peak = peaks[name]
        if peak is None:
            print("\n".join([f"{name}: can't run", *(f"  {problem}" for problem in problems)]))
        else:
            print(f"{name}: can run, with {bytes_text(peak)} of memory")
    return 1 if failed else 0


def find_problems(program: etude.Program, name: str, bounds: Limits) -> list[str]:
    """What keeps method `name` from running here, one line each; empty when nothing does. The method is loaded, not executed."""
    registry = etude.Runtime.get().backend_registry
    problems = [f"missing operator: {operator}" for operator in program.missing_operators(name)]
    for backend in dict.fromkeys(program.metadata(name).backends):
        if not registry.is_available(backend):
            have = ", ".join(registry.registered_backend_names) or "none"
            problems.append(f"missing backend: {backend} (there are: {have})")
    problems += [f"external data {data}" for data in program.metadata(name).external_data if data.file is None or not data.fits]
    if problems:
        return problems
    try:
        program.load_method(name, fresh=True, **bounds).close()
    except etude.EtudeError as error:
        return in_options(str(error)).splitlines()
    return []
