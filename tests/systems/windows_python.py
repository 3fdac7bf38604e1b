#!/usr/bin/env python3
"""A CPython for Windows (x86-64), of the same minor version as the one that runs this, with a wheel of etude and what its tests need.

    windows_python.py FOLDER WHEEL      then wine FOLDER/python.exe in a prefix of wine_prefix.py

Nothing but the package index is asked. `panda3d` brings python3N.dll and the compiled modules of the standard library, for programs made
with it; the modules in Python are the same on every system, so those of this Python serve. `python.exe` and `python3.dll`, by which
extensions for the stable interface find the version that there is, are made by `zig cc`. The wheel and what it requires are installed by
pip, which refuses wheels that do not suit.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ZIG = [sys.executable, "-m", "ziglang"]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
LIBRARY = f"python{sys.version_info.major}{sys.version_info.minor}"
FOR_WINDOWS = ["--platform", "win_amd64", "--python-version", VERSION, "--implementation", "cp", "--only-binary=:all:"]
#: What the tests need, and colorama, which pytest does on Windows alone: pip looks at the system that it runs on.
REQUIRED = ["pytest", "colorama", "flatbuffers"]
#: Folders of the standard library that no program needs.
LEFT_OUT = ("site-packages", "lib-dynload", "test", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "config-*", "__pycache__")
MAIN = """
#include <wchar.h>
__declspec(dllimport) int Py_Main(int count, wchar_t **arguments);
int wmain(int count, wchar_t **arguments) { return Py_Main(count, arguments); }
"""
ENTRY = "int DllMainCRTStartup(void *module, unsigned reason, void *reserved) { (void)module, (void)reason, (void)reserved; return 1; }\n"


def run(*command: str) -> None:
    """Run a command; its failure ends the script with its message."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def stable_names() -> list[str]:
    """The names of the stable interface, as CPython's own test of it has them, of those that are there on Windows."""
    tested = Path(sysconfig.get_path("stdlib")) / "test/test_stable_abi_ctypes.py"
    if not tested.exists():
        sys.exit(f"{tested} is not there: install the tests of Python's standard library (Debian: libpython{VERSION}-testsuite)")
    names = re.findall(r'^    "(\w+)",$', tested.read_text(), re.M)
    assert len(names) > 700, "the list of the stable interface has another form"
    return names


def make_programs(target: Path, folder: Path) -> None:
    """`python.exe` and `python3.dll`."""
    compiler = [*ZIG, "cc", "-target", "x86_64-windows-gnu", "-Os", "-Wl,-s"]
    (folder / "main.c").write_text(MAIN)
    (folder / "main.def").write_text(f"LIBRARY {LIBRARY}.dll\nEXPORTS\n  Py_Main\n")
    run(*ZIG, "dlltool", "-m", "i386:x86-64", "-d", str(folder / "main.def"), "-l", str(folder / "libpython.a"))
    run(*compiler, "-municode", str(folder / "main.c"), str(folder / "libpython.a"), "-o", str(target / "python.exe"))
    (folder / "entry.c").write_text(ENTRY)
    forwards = "".join(f"  {name} = {LIBRARY}.{name}\n" for name in stable_names())
    (folder / "python3.def").write_text(f"LIBRARY python3.dll\nEXPORTS\n{forwards}")
    run(*compiler, "-shared", "-nostdlib", str(folder / "entry.c"), str(folder / "python3.def"), "-o", str(folder / "python3.dll"))
    shutil.copy(folder / "python3.dll", target)  # and not the import library, which is made beside it


def main() -> int:
    """Make it."""
    target, wheel = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pip = [sys.executable, "-m", "pip"]
        run(*pip, "download", "-q", "--no-deps", *FOR_WINDOWS, "-d", str(folder), "panda3d")
        with zipfile.ZipFile(next(folder.glob("panda3d-*.whl"))) as archive:
            for name in archive.namelist():
                if name.startswith("deploy_libs/") and not Path(name).name.startswith("api-ms-"):
                    (target / Path(name).name).write_bytes(archive.read(name))
        shutil.copytree(sysconfig.get_path("stdlib"), target / "Lib", ignore=shutil.ignore_patterns(*LEFT_OUT))
        make_programs(target, folder)
        packages = target / "Lib/site-packages"
        run(*pip, "install", "-q", *FOR_WINDOWS, "--target", str(packages), "--no-compile", str(wheel), *REQUIRED)
    print(f"{LIBRARY}.dll, {', '.join(sorted(path.name.removesuffix('.dist-info') for path in packages.glob('*.dist-info')))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
