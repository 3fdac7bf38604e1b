"""Where the C library and its headers are, for compiling against them."""

from __future__ import annotations

import fnmatch
import os
import sys

_HERE = os.path.dirname(os.path.realpath(__file__))


def get_include() -> str:
    """The folder for `-I`: it has `etude/etude.h`."""
    return os.path.join(_HERE, "include")


def get_library() -> str:
    """The path of the shared library, for linking and for ctypes. It is the one that this package itself uses."""
    pattern = {"darwin": "libetude.*.dylib", "win32": "*etude*.dll"}.get(sys.platform, "libetude.so.*")
    found = sorted(fnmatch.filter(os.listdir(_HERE), pattern))
    if not found:
        raise FileNotFoundError(f"no {pattern} in {_HERE}: the installation is incomplete; reinstall etude")
    return os.path.join(_HERE, found[0])


def get_pkgconfig() -> str:
    """The folder for `PKG_CONFIG_PATH`: it has `etude.pc`."""
    return os.path.join(_HERE, "pkgconfig")


def cflags() -> str:
    """Compiler flags: `cc $(etude config --cflags) …`."""
    return f"-I{get_include()}"


def libs() -> str:
    """Linker flags. The program finds the library where it is now."""
    return f"{get_library()} -Wl,-rpath,{_HERE}"
