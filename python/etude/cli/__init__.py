"""The command line: `etude COMMAND …`, one module for each command.

A command module has `add_parser(subparsers)`, which adds its parser, and `run(args) -> int`, which gives the exit status. It prints results
to stdout; failures are exceptions, which come out here as one clear line on stderr.

Exit statuses: 0 done, or the answer is yes; 1 the answer is no (`check`: it can't run; `verify`, `compare`, `diff`: they differ;
`conformance`: checks failed); 2 a wrong command line, or a failure; 3 a file that can't be read or written, such as one that is not
there; 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import importlib.util
import io
import os
import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from etude import EtudeError, __version__
from etude.cli._errors import NamedError, in_options

NO, FAILED, NO_FILE, INTERRUPTED, NO_READER = 1, 2, 3, 130, 141

_EXIT_STATUSES = (
    "exit status: 0 done, or yes; 1 no (check, verify, compare, diff, conformance); 2 failed; 3 a file can't be read or written"
)
_COMMANDS = (
    "run", "generate", "inspect", "check", "verify", "compare", "merge", "extract", "diff", "kernels", "embed", "memory", "options",
    "conformance", "config",
)  # fmt: skip


class _CommandParser(argparse.ArgumentParser):
    """Takes options anywhere: `generate MODEL --tokenizer FILE "text"`, where argparse alone would let the text go missing."""

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As the base class, which this calls again for options and for what stands between them."""
        if self._mixing:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            found, rest = self.parse_known_intermixed_args(self._apart(args or []), namespace)
        finally:
            self._mixing = False
        if rest:  # said here, it comes with the usage of this command
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def _apart(self, args: Sequence[str]) -> list[str]:
        """An option whose value may be left out, such as --profile, does not take a program that follows for its value."""
        optional = {name for action in self._actions if action.nargs == "?" for name in action.option_strings}
        following = [*args[1:], ""]
        return [
            f"{arg}=" if arg in optional and (after == "-" or after.endswith((".pte", ".bpte"))) else arg
            for arg, after in zip(args, following)
        ]


def _modules() -> dict[str, ModuleType]:
    """The command modules of this installation, by command."""
    names = {name: f"{__name__}.{name}" for name in _COMMANDS}
    return {name: importlib.import_module(path) for name, path in names.items() if importlib.util.find_spec(path) is not None}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; `arguments` are those of the process by default. Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):  # names in a program may hold what the terminal's encoding lacks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    description = "Run and examine ExecuTorch programs (.pte files)."
    parser = argparse.ArgumentParser(prog="etude", description=description, epilog=_EXIT_STATUSES)
    parser.add_argument("--version", action="version", version=f"etude {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_CommandParser)
    modules = _modules()
    for module in modules.values():
        module.add_parser(subparsers)
    args = parser.parse_args(arguments)
    if args.command is None:
        parser.print_help()
        return 0
    try:
        status = int(modules[args.command].run(args))
        sys.stdout.flush()
        return status
    except MemoryError as error:
        print(f"etude {args.command}: out of memory{f': {in_options(str(error))}' if str(error) else ''}", file=sys.stderr)
        return FAILED
    except (EtudeError, OSError, ValueError) as error:
        if _has_no_reader(error):  # such as `head`, which has seen enough; nothing may be flushed to it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return NO_READER
        # Errors of the system name their file; the others are about the program, or an argument that goes with it.
        program = getattr(args, "program", None)
        file = f"{program}: " if program and program not in str(error) and not isinstance(error, OSError | NamedError) else ""
        print(f"etude {args.command}: {file}{_words(error, getattr(args, 'data', []))}", file=sys.stderr)
        return NO_FILE if isinstance(error, OSError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _has_no_reader(error: Exception) -> bool:
    """Is it that nobody reads what is printed? Windows has no number for a broken pipe."""
    if sys.platform == "win32" and type(error) is OSError:
        return error.errno == errno.EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError)


def _words(error: Exception, data: Sequence[str]) -> str:
    """The text of an error; of one of the system without its number. `data` are the files of --data, by number."""
    if isinstance(error, OSError) and not isinstance(error, EtudeError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    text = str(error)
    if not isinstance(error, NamedError):
        text = re.sub(r"\bexternal data file (\d+)", lambda m: data[int(m[1])] if int(m[1]) < len(data) else m[0], text)
    return in_options(text)
