"""Plugins: compiled out of tree with the installed headers, loaded, used, unloaded."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import etude
from backend_kit import DATA, PLUGIN_SOURCE, PyScale, compile_plugin, run_threads

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def runtime():
    return etude.Runtime()


@pytest.fixture
def registry(runtime):
    return runtime.backend_registry


def is_mapped(path):
    if sys.platform == "win32":
        find = ctypes.windll.kernel32.GetModuleHandleW
        find.restype = ctypes.c_void_p
        return find(str(path)) is not None
    with open("/proc/self/maps") as maps:
        return any(line.rstrip().endswith(str(path)) for line in maps)


@pytest.fixture
def own(plugin, tmp_path):
    """A copy of the plugin that no other test has loaded."""
    return shutil.copy(plugin, tmp_path / "own.so")


def test_a_plugin_brings_its_backends(runtime, plugin):
    registry = runtime.backend_registry
    library = registry.load_library(plugin)
    assert isinstance(library, etude.PluginLibrary) and library.path == str(plugin)
    assert library.backends == ("ScaleBackend", "ScaleRawBackend") and "ScaleBackend" in repr(library)
    assert set(library.backends) < set(registry) and registry.is_available("ScaleBackend")
    registry.set_option("ScaleBackend", {"percent": 250, "sign": "flip"})
    program = runtime.load_program(DATA / "backends.pte")
    np.testing.assert_array_equal(program["scale"](X)[0], X * -2.5)
    np.testing.assert_array_equal(program["raw"](X)[0], X)


def test_str_and_path(registry, plugin):
    registry.load_library(str(plugin)).unload()
    registry.load_library(os.fsencode(plugin).decode()).unload()
    assert "ScaleBackend" not in registry


def test_conformance(registry, plugin):
    for name in registry.load_library(plugin).backends:
        checks = registry.check_backend(name)
        assert checks and all(check.passed for check in checks), checks


@pytest.mark.skipif(sys.platform not in ("linux", "win32"), reason="knows not what is loaded")
def test_unloading(runtime, own):
    registry = runtime.backend_registry
    library = registry.load_library(own)
    assert is_mapped(own)
    method = runtime.load_program(DATA / "backends.pte")["scale"]
    with pytest.raises(etude.EtudeStateError, match="'ScaleBackend' is in use by 1"):
        library.unload()
    with pytest.raises(etude.EtudeStateError, match="in use"):
        registry.unregister("ScaleBackend")
    np.testing.assert_array_equal(method(X)[0], X)
    method.close()
    library.unload()
    assert "ScaleBackend" not in registry and not is_mapped(own)
    library.unload()
    assert "(unloaded)" in repr(library)
    for call in (lambda: registry["ScaleBackend"], lambda: registry.get_option("ScaleBackend", "percent")):
        with pytest.raises(KeyError, match="'ScaleBackend' is not registered"):
            call()


@pytest.mark.skipif(sys.platform not in ("linux", "win32"), reason="knows not what is loaded")
def test_unloading_leaves_a_backend_that_took_the_name(runtime, plugin):
    registry = runtime.backend_registry
    library = registry.load_library(plugin)
    registry.unregister("ScaleBackend")
    registry.register(PyScale())
    method = runtime.load_program(DATA / "backends.pte")["scale"]
    library.unload()  # its own backend is not in use
    assert "ScaleBackend" in registry and "ScaleRawBackend" not in registry
    np.testing.assert_array_equal(method(X)[0], X)


def test_a_plugin_lives_as_long_as_it_is_needed(own):
    """Nobody holds the library's object, or the runtime: a loaded method keeps both."""
    runtime = etude.Runtime()
    runtime.backend_registry.load_library(own)
    method = runtime.load_program(DATA / "backends.pte")["scale"]
    options = runtime.backend_registry["ScaleBackend"].options
    del runtime, options
    gc.collect()
    assert is_mapped(own)
    np.testing.assert_array_equal(method(X)[0], X)
    del method
    gc.collect()
    assert not is_mapped(own), "unloaded with the runtime"


def test_a_library_object_outlives_the_runtime(own):
    library = etude.Runtime().backend_registry.load_library(own)
    gc.collect()
    library.unload()
    assert library.backends == ("ScaleBackend", "ScaleRawBackend")


def test_one_plugin_in_two_runtimes(plugin):
    one, two = etude.Runtime(), etude.Runtime()
    libraries = [r.backend_registry.load_library(plugin) for r in (one, two)]
    one.backend_registry.set_option("ScaleBackend", {"percent": 200})
    assert two.backend_registry.get_option("ScaleBackend", "percent") == 100
    libraries[0].unload()
    two.backend_registry.set_option("ScaleBackend", {"percent": 300})
    np.testing.assert_array_equal(two.load_program(DATA / "backends.pte")["scale"](X)[0], X * 3)


def test_names_in_use(registry, plugin, own):
    registry.load_library(plugin)
    for path in (plugin, own):
        with pytest.raises(ValueError, match="'ScaleBackend' is registered already"):
            registry.load_library(path)
    other = etude.Runtime().backend_registry
    other.register(PyScale())
    with pytest.raises(ValueError, match="registered already"):
        other.load_library(plugin)
    assert "ScaleRawBackend" not in other and other.get_option("ScaleBackend", "executions") == 0


def test_what_is_no_plugin(registry, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        registry.load_library(tmp_path / "nowhere.so")
    (tmp_path / "text.so").write_text("no library")
    for path in (tmp_path, tmp_path / "text.so"):
        with pytest.raises(OSError, match=re.escape(str(path))):
            registry.load_library(path)
    (tmp_path / "none.c").write_text("int nothing;\n")
    with pytest.raises(ValueError, match="etude_plugin_entry"):
        registry.load_library(compile_plugin(tmp_path / "none.c", tmp_path / "none.so"))
    with pytest.raises(TypeError):
        registry.load_library(None)
    with pytest.raises(ValueError):
        registry.load_library("a\0b")


def test_another_abi_version(registry, tmp_path):
    source = PLUGIN_SOURCE.read_text()
    changed = source.replace("{sizeof(etude_plugin), ETUDE_ABI_VERSION,", "{sizeof(etude_plugin), ETUDE_ABI_VERSION + 1,")
    assert changed != source
    (tmp_path / "other.c").write_text(changed)
    before = list(registry)
    with pytest.raises(NotImplementedError, match="build it again"):
        registry.load_library(compile_plugin(tmp_path / "other.c", tmp_path / "other.so"))
    assert list(registry) == before


def test_a_loaded_plugin_at_the_end_of_the_process(plugin):
    script = f"""
import etude
library = etude.Runtime.get().backend_registry.load_library({str(plugin)!r})
method = etude.load({str(DATA / "backends.pte")!r})["scale"]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_plugins_come_and_go_on_threads(plugin):
    """Each thread has a runtime of its own with the same plugin."""

    def work():
        for _ in range(20):
            runtime = etude.Runtime()
            library = runtime.backend_registry.load_library(plugin)
            method = runtime.load_program(DATA / "backends.pte")["scale"]
            np.testing.assert_array_equal(method(X)[0], X)
            method.close()
            library.unload()

    run_threads(*[work] * 4)
