"""The list of errors that all languages are held to (tests/languages/errors.py), in Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import etude
from paths import CORPUS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "languages"))
from errors import compare_errors

XNN, MODE = "XnnpackBackend", "workspace_sharing_mode"


def name_of(status: int) -> str:
    """As ExecuTorch spells it."""
    name = etude.Status(status).name.title().replace("_", "")
    return {"OutOfMemory": "MemoryAllocationFailed"}.get(name, name)


def test_one_list_of_errors():
    lines: list[str] = []

    def attempt(what: str, action: Callable[[], object]) -> None:
        try:
            action()
            lines.append(f"{what}: ok")
        except etude.EtudeError as error:
            lines.append(f"{what}: {name_of(error.status)} '{error.subject}' {error}")

    model = CORPUS / "x_linear.pte"
    content = Path(model).read_bytes()
    runtime = etude.Runtime.get()
    options = runtime.backend_registry
    program = runtime.load_program(model)

    def load(**settings):
        return program.load_method("forward", **settings)

    options.reset_option(XNN)
    attempt("set", lambda: options.set_option(XNN, {MODE: 1}))
    lines.append(f"get: {options.get_option(XNN, MODE)}")
    attempt("set out of range", lambda: options.set_option(XNN, {MODE: 3}))
    attempt("set of wrong type", lambda: options.set_option(XNN, {MODE: "one"}))
    attempt("set unknown key", lambda: options.set_option(XNN, {"workspace_mode": 1}))
    attempt("set unknown backend", lambda: options.set_option("XnnBackend", {MODE: 1}))
    attempt("set with one unknown", lambda: options.set_option(XNN, {MODE: 2, "none": True}))
    attempt("set long key", lambda: options.set_option(XNN, {"k" * 64: 1}))
    attempt("set empty key", lambda: options.set_option(XNN, {"": 1}))
    attempt("get unknown key", lambda: options.get_option(XNN, "workspace_mode"))
    attempt("reset unknown key", lambda: options.reset_option(XNN, "workspace_mode"))
    attempt("schema of unknown backend", lambda: options["XnnBackend"].options)
    lines.append(f"get: {options.get_option(XNN, MODE)}")
    attempt("reset", lambda: options.reset_option(XNN))
    lines.append(f"get: {options.get_option(XNN, MODE)}")
    attempt("load", lambda: load(backend_options={XNN: {MODE: 0}}))
    attempt("load out of range", lambda: load(backend_options={XNN: {MODE: 3}}))
    attempt("load unused option", lambda: load(backend_options={"NullBackend": {"key": 1}}))
    attempt("load unknown method", lambda: program.load_method("backward"))
    attempt("load within 100 bytes", lambda: load(constant_limit=0, memory_limit=100))
    attempt("describe unknown method", lambda: program.metadata("backward"))
    method = load()
    attempt("execute without inputs", method.execute)
    attempt("too few inputs", lambda: method.execute([]))
    attempt("explain unknown key", lambda: method.explain_option(XNN, "workspace_mode"))
    attempt("reset unknown state", lambda: method.state["cache"])
    attempt("input of wrong type", lambda: method(1))
    attempt("input of wrong dtype", lambda: method(np.zeros((2, 3), np.int64)))
    attempt("no such file", lambda: runtime.load_program(f"{model}.missing"))
    attempt("no such data file", lambda: runtime.load_program(model, data_path=f"{model}.ptd"))
    attempt("copied", lambda: runtime.load_program(content).load_method("forward"))
    attempt("cut short", lambda: runtime.load_program(content[: len(content) // 2]).load_method("forward"))
    attempt("no program", lambda: runtime.load_program(b"not a program"))
    assert compare_errors(lines, "Python", str(model)) == ""
