"""The command line: `etude COMMAND …`, one module for each command.

A command module has `add_parser(subparsers)`, which adds its parser, and `run(args) -> int`, which gives the exit status. It prints results
to stdout; failures are exceptions, which come out here as one clear line on stderr.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from etude import EtudeError, __version__

_COMMANDS = ("run", "generate", "inspect", "check", "merge", "extract", "diff", "options", "conformance", "config")


def _modules() -> dict[str, ModuleType]:
    """The command modules of this installation, by command."""
    names = {name: f"{__name__}.{name}" for name in _COMMANDS}
    return {name: importlib.import_module(path) for name, path in names.items() if importlib.util.find_spec(path) is not None}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; `arguments` are those of the process by default. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="etude", description="Run and examine ExecuTorch programs (.pte files).")
    parser.add_argument("--version", action="version", version=f"etude {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    modules = _modules()
    for module in modules.values():
        module.add_parser(subparsers)
    args = parser.parse_args(arguments)
    try:
        return int(modules[args.command].run(args))
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; nothing may be flushed to it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (EtudeError, OSError, ValueError) as error:
        # Errors of the system name their file; the others are about the program, or an argument that goes with it.
        program = getattr(args, "program", None)
        file = f"{program}: " if program and program not in str(error) and not isinstance(error, OSError) else ""
        print(f"etude {args.command}: {file}{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
