"""What an installation holds: one shared library, headers, flags that work, types, and declarations that fit the headers."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

import etude
from paths import CORPUS, PROGRAMS, ROOT

PROGRAM = r"""
#include <etude/etude.h>
#include <etude/host.h>
#include <stdio.h>

int main(int argc, char **argv) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_runtime *runtime;
  etude_program *program;
  etude_data_loader file;
  if (argc != 2 || etude_host_runtime_create(1, &runtime, &error) != ETUDE_OK ||
      etude_data_from_file(argv[1], ETUDE_FILE_MAP, &file, &error) != ETUDE_OK ||
      etude_program_load(runtime, &file, NULL, &program, &error) != ETUDE_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("%s %s\n", etude_version(), etude_program_method_name(program, 0));
  etude_program_free(program);
  etude_host_runtime_free(runtime);
  return 0;
}
"""

compiler = os.environ.get("CC") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(compiler is None, reason="needs a C compiler")


def build_and_run(tmp_path, flags):
    (tmp_path / "main.c").write_text(PROGRAM)
    binary = tmp_path / "main"
    subprocess.run([compiler, "-std=c99", "-Wall", "-Werror", str(tmp_path / "main.c"), *flags, "-o", str(binary)], check=True)
    done = subprocess.run([str(binary), str(PROGRAMS / "affine.pte")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{etude.__version__} forward\n"


@needs_compiler
def test_compile_against_the_package(tmp_path):
    answer = subprocess.run([sys.executable, "-m", "etude", "config", "--cflags", "--libs"], capture_output=True, text=True, check=True)
    build_and_run(tmp_path, answer.stdout.split())


@needs_compiler
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
def test_pkg_config_is_relocatable(tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(Path(etude.__file__).parent, moved, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "PKG_CONFIG_PATH": str(moved / "pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "etude"], env=env, capture_output=True, text=True, check=True).stdout
    assert str(moved) in flags and str(Path(etude.__file__).parent) not in flags
    if sys.platform == "linux":  # cgo refuses flags that it does not know: a path that ends in a number, say
        assert all(re.fullmatch(r"-[IL][^-].*|-l[^-].*|-Wl,-rpath,[^,@-][^,]*", flag) for flag in flags.split()), flags
    version = subprocess.run(["pkg-config", "--modversion", "etude"], env=env, capture_output=True, text=True, check=True).stdout
    assert version.strip() == etude.__version__
    build_and_run(tmp_path, flags.split())


@needs_compiler
@pytest.mark.parametrize("folder", ["with blanks", "with, comma", "it's $quoted"])
def test_flags_for_odd_folders(tmp_path, folder):
    """What `etude config` prints for an installation there, as a shell takes it."""
    moved = tmp_path / folder / "etude"
    shutil.copytree(Path(etude.__file__).parent, moved, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(moved.parent), *sys.path[1:]])}
    command = [sys.executable, "-m", "etude", "config", "--cflags", "--libs"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=tmp_path)
    build_and_run(tmp_path, shlex.split(done.stdout))


@pytest.mark.skipif(shutil.which("objdump") is None or sys.platform != "linux", reason="needs objdump")
def test_systems_that_are_old_enough():
    """Symbols newer than those of glibc 2.34 would keep the wheel from systems of 2021."""
    for file in (etude.get_library(), etude._etude.__file__):
        text = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", text)}
        assert versions and max(versions) <= (2, 34)


def test_one_library_for_all():
    """ctypes, C programs and the extension get the same copy."""
    path = etude.get_library()
    library = ctypes.CDLL(path)
    library.etude_version.restype = ctypes.c_char_p
    assert library.etude_version().decode() == etude.__version__
    if sys.platform == "linux":  # wine has the files of /proc too
        mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libetude" in line}
        assert mapped == {os.path.realpath(path)}


def test_headers_are_the_projects():
    installed = {f.name: f.read_bytes() for f in (Path(etude.get_include()) / "etude").glob("*.h")}
    assert installed == {f.name: f.read_bytes() for f in (ROOT / "include/etude").glob("*.h")}


def test_version_and_dependencies():
    meta = distribution("etude")
    assert meta.version == etude.__version__
    needed = {line.split(";")[0].split(">")[0].strip() for line in meta.requires if "extra ==" not in line}
    assert needed == {"numpy", "cffi"}


def test_typed_and_public_names():
    package = Path(etude.__file__).parent
    assert (package / "py.typed").exists() and (package / "_etude.pyi").exists()
    for name in etude.__all__:
        assert getattr(etude, name) is not None
    stable = not sysconfig.get_config_var("Py_GIL_DISABLED")  # free-threaded Python has no stable interface
    assert (".abi3." in Path(etude._etude.__file__).name) is stable or sys.platform == "win32"


def test_declarations_fit_the_headers():
    script = ROOT / "python/cffi/cdef_from_headers.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_module_is_installed():
    tree = {str(f.relative_to(ROOT / "python")) for f in (ROOT / "python/etude").rglob("*.py")}
    package = Path(etude.__file__).parent
    installed = {str(f.relative_to(package.parent)) for f in package.rglob("*.py")}
    assert installed == tree


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a clone")
def test_source_package_is_small(tmp_path):
    """What the sdist is made of: the commit without what .gitattributes leaves out, and with enough to build and try it."""
    archive = tmp_path / "source.tar.gz"
    subprocess.run(["git", "archive", "--format=tar.gz", "-o", str(archive), "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(archive) as files:
        names = set(files.getnames())
    print(f"source package: {archive.stat().st_size:,} bytes, {len(names)} files")
    assert archive.stat().st_size < 4_500_000
    assert {"meson.build", "python/meson.build", "tests/python/test_packaging.py", "tests/corpus/add.pte"} <= names
    assert not any(name.startswith(("tests/llm/", "tests/operators/vectors/")) for name in names)


def test_import_time():
    """Importing etude costs little more than importing numpy, which it needs. Medians of interleaved runs."""

    def seconds(module):
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    both = [(seconds("numpy"), seconds("etude")) for _ in range(7)]
    numpy, ours = (statistics.median(column) for column in zip(*both))
    print(f"import numpy {numpy * 1e3:.0f} ms, import etude {ours * 1e3:.0f} ms")
    assert ours < numpy * 1.5 + 0.02


def test_the_executorch_way():
    """A user of executorch.runtime changes the import line and nothing else."""
    from etude import BackendRegistry, Method, MethodMeta, OperatorRegistry, Program, Runtime, TensorInfo, Verification

    runtime = Runtime.get()
    assert runtime is Runtime.get()
    path = CORPUS / "add.pte"
    with open(path, "rb") as file:
        sources = [str(path), path, path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes()), file]
        for data in sources:
            for verification in (Verification.Minimal, Verification.InternalConsistency):
                if data is file:
                    file.seek(0)
                program = runtime.load_program(data, verification=verification)
                assert isinstance(program, Program) and program.method_names == {"forward"}
                method = program.load_method("forward")
                assert isinstance(method, Method) and method is program.load_method("forward")
                x = np.arange(6, dtype=np.float32).reshape(2, 3)
                outputs = method.execute([x, x])
                assert type(outputs) is list and (outputs[0] == 2 * x).all()
    meta = program.metadata("forward")
    assert isinstance(meta, MethodMeta) and repr(method.metadata) == repr(meta)
    assert (meta.name(), meta.num_inputs(), meta.num_outputs(), meta.num_attributes()) == ("forward", 2, 1, 0)
    info = meta.input_tensor_meta(0)
    assert isinstance(info, TensorInfo)
    assert (info.sizes(), info.dtype(), info.is_memory_planned(), info.nbytes()) == ((2, 3), 6, True, 24)
    assert repr(info) == "TensorInfo(sizes=[2, 3], dtype=Float, is_memory_planned=True, nbytes=24)"
    assert isinstance(runtime.backend_registry, BackendRegistry) and isinstance(runtime.operator_registry, OperatorRegistry)
    assert runtime.backend_registry.is_available("NoSuchBackend") is False
    assert isinstance(runtime.backend_registry.registered_backend_names, list)
    assert "aten::add.out" in runtime.operator_registry.operator_names
    with pytest.raises(NotImplementedError):
        runtime.load_program(path, enable_etdump=True)


def test_bytes_may_change_or_go():
    data = bytearray((CORPUS / "add.pte").read_bytes())
    program = etude.load(data)
    data[:] = b"\0" * len(data)
    x = np.ones((2, 3), np.float32)
    assert (program(x, x)[0] == 2).all()
    program = etude.load(bytes((CORPUS / "add.pte").read_bytes()))
    noise = [bytes(1000 + i) for i in range(1000)]
    assert (program(x, x)[0] == 2).all()
    del noise


def test_external_data_in_every_form():
    data = np.load(CORPUS / "external_constants.npz")
    ptd = CORPUS / "external_constants.ptd"
    for source in (ptd, str(ptd), [ptd], ptd.read_bytes(), (ptd.read_bytes(),)):
        (y,) = etude.load(CORPUS / "external_constants.pte", data_path=source)(data["forward__in0"])
        np.testing.assert_allclose(y, data["forward__out0"], rtol=1e-4, atol=1e-5)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        etude.load(CORPUS / "external_constants.pte", data_path="nowhere.ptd")
    with pytest.raises(etude.EtudeError, match=r"\.ptd"):
        etude.load(CORPUS / "external_constants.pte")["forward"]
    with pytest.raises(etude.EtudeError):
        etude.load(CORPUS / "external_constants.pte", data_path=CORPUS / "add.pte")


def test_reprs():
    program = etude.load(PROGRAMS / "length.pte")
    assert "'forward'" in repr(program) and "length.pte" in repr(program)
    assert repr(program.forward) == ("<etude.Method 'forward' (float32 up to [8, 3]) -> (float32 up to [16, 3], float32 up to [8])>")
    assert "is_dynamic=True" in repr(program.metadata("forward"))
    assert "operators" in repr(etude.Runtime.get()) and "BackendRegistry" in repr(etude.Runtime.get().backend_registry)
    assert "forward" in dir(program) and list(program) == ["forward"] and len(program) == 1 and "forward" in program
