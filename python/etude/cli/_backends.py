"""What commands share that deal with backends: plugins, and options as `Backend.key=value`."""

from __future__ import annotations

import argparse
import errno
import importlib
import re
import runpy
import traceback
from pathlib import Path

import etude
from etude.cli._errors import NamedError

Value = bool | int | str
_WORDS = {"true": True, "false": False}


def add_libraries(parser: argparse.ArgumentParser) -> None:
    """The arguments that bring in backends and kernels which this build has not got."""
    parser.add_argument("--library", metavar="FILE.so", action="append", default=[], help="load a plugin; may be repeated")
    parser.add_argument(
        "--import", metavar="MODULE", dest="modules", action="append", default=[],
        help="import a Python module, by name or as a file, that registers kernels or backends; may be repeated",
    )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """The arguments that load plugins and set options."""
    add_libraries(parser)
    parser.add_argument(
        "--option", metavar="BACKEND.KEY=VALUE", action="append", default=[],
        help="set an option of a backend; may be repeated. `etude options` lists them",
    )  # fmt: skip


def open_runtime(args: argparse.Namespace, threads: int | None = None) -> etude.Runtime:
    """The runtime, with the plugins of `--library` and what the modules of `--import` register."""
    runtime = etude.Runtime.get() if threads is None else etude.Runtime(threads=threads)
    if args.modules and threads is not None:  # that is where `etude.kernel` and `Runtime.get` lead
        etude.Runtime._shared = runtime
    for module in args.modules:
        _import(module)
    for path in args.library:
        runtime.backend_registry.load_library(path)
    return runtime


def _import(module: str) -> None:
    """Import a module, by name or as a file. FileNotFoundError where there is none, NamedError where it raises."""
    try:
        if not module.endswith(".py"):
            importlib.import_module(module)
        elif Path(module).is_file():
            runpy.run_path(module)
        else:
            raise FileNotFoundError(errno.ENOENT, "no such file", f"--import {module}")
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise FileNotFoundError(errno.ENOENT, "no such module", f"--import {module}") from None
        if isinstance(error, FileNotFoundError) and error.filename == f"--import {module}":
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = (str(error).splitlines() or [""])[0]
        raise NamedError(f"--import {module}: {type(error).__name__}: {text} ({place.filename}, line {place.lineno})") from error


def set_options(runtime: etude.Runtime, texts: list[str]) -> tuple[dict[str, dict[str, Value]], dict[str, dict[str, Value]]]:
    """Set the options of `--option` that are only settable process-wide. Returns these, and the others, to be given at load."""
    process: dict[str, dict[str, Value]] = {}
    load: dict[str, dict[str, Value]] = {}
    for text in texts:
        backend, key, value = parse_option(runtime.backend_registry, text)
        option = runtime.backend_registry[backend].options.get(key)
        wanted = process if option is not None and option.scopes == ("process",) else load
        keys = wanted.setdefault(backend, {})
        if key in keys:
            raise etude.EtudeValueError(f"--option {text}: {backend}.{key} is given twice")
        keys[key] = value
    runtime.backend_registry.set_option(process)
    return process, load


def parse_option(registry: etude.BackendRegistry, text: str) -> tuple[str, str, Value]:
    """Backend, key and value of `Backend.key=value`. The value is of the type that the backend's schema says."""
    left, equals, value = text.partition("=")
    backend = next((name for name in registry if left.startswith(f"{name}.")), left.partition(".")[0])
    key = left[len(backend) + 1 :]
    if not (equals and backend and key):
        raise etude.EtudeValueError(f"--option {text}: expected BACKEND.KEY=VALUE, such as NullBackend.copy=false")
    options = registry[backend].options
    if len(options) == 0:
        return backend, key, _guess(value)
    option = options[key]
    try:
        return backend, key, _typed(value, option)
    except ValueError as error:
        raise etude.EtudeValueError(f"--option {text}: {error}; allowed: {option.allowed}") from None


def _typed(value: str, option: etude.Option) -> Value:
    if option.type == "bool":
        if value.lower() not in _WORDS:
            raise ValueError(f"{value!r} is not true or false")
        return _WORDS[value.lower()]
    if option.type == "string":
        return value
    if value in option.choices and option.minimum is not None:
        return option.minimum + option.choices.index(value)
    try:
        return int(value, 0)
    except ValueError:
        raise ValueError(f"{value!r} is not an int") from None


def _guess(value: str) -> Value:
    """For a backend without schema: what it looks like."""
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    return int(value) if re.fullmatch(r"[+-]?\d+", value) else value
