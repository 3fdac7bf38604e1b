"""What the tests of backends share: the plugin, compiled here and now, a backend in Python, and programs for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, spec
from paths import ROOT

DATA = ROOT / "tests/data"
CONTEXT = "ContextBinaryBackend"
PLUGIN_SOURCE = ROOT / "examples/plugin/scale_backend.c"


def compile_plugin(source, target):
    """Compile a plugin as an author does: a C compiler, the installed headers, nothing to link with."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None and sys.platform == "win32":
        pytest.skip("needs a C compiler")
    assert compiler, "these tests compile a plugin: install a C compiler, or name one in CC"
    command = [compiler, "-std=c99", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{etude.get_include()}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


class PyScale(etude.Backend):
    """The plugin's ScaleBackend in Python: the same name, so that the same programs run with it."""

    name = "ScaleBackend"
    percent: int = etude.option(100, minimum=-1000, maximum=1000, effect="now", help="factor, in percent")
    sign: str = etude.option("keep", choices=("keep", "flip"), effect="now", help="keep the sign of the factor, or flip it")
    level: int = etude.option(1, choices=("low", "high"), minimum=1, help="of this load")
    traced: bool = etude.option(False, help="write a line for each execution to the log")
    label: str = etude.option("", scope="load", help="anything")
    executions: int = etude.option(0, read_only=True, help="executions so far")
    loaded: int = etude.option(0, getter=lambda self: len(self.handles), help="delegates loaded now")

    def __init__(self):
        self.handles = []
        self.seen = []
        self.lock = threading.Lock()

    def init(self, context, payload):
        handle = {
            "method": context.method_name,
            "payload": bytes(payload),
            "options": dict(context.options),
            "specs": context.compile_specs,
        }
        with self.lock:
            self.handles.append(handle)
            self.seen.append(handle)
        return handle

    def execute(self, context, handle, args):
        x, y = args
        np.multiply(x, np.float32(self.percent) / np.float32(100) * (-1 if self.sign == "flip" else 1), out=y)
        if handle["options"]["traced"]:
            context.log("executed")
        with self.lock:
            self.executions += 1

    def destroy(self, handle):
        with self.lock:
            self.handles.remove(handle)


def one_delegate(backend, payload=b"payload", shape=(2, 3), methods=("forward",), dynamic=False, **options):
    """A program whose methods hand one float32 tensor to one delegate."""
    builder = ProgramBuilder()
    for name in methods:
        method = builder.method(name, **options.pop("method", {}))
        x = method.input("float32", list(shape), dynamic=dynamic)
        method.output(*method.delegate(backend, payload, [x], [spec("float32", list(shape), dynamic=dynamic)], **options))
    return builder.to_bytes()


def run_threads(*works):
    """Run functions at the same time, and raise what any of them raised."""
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
