"""Where the C library and its headers are, for compiling against them."""

from __future__ import annotations

import fnmatch
import os
import shlex
import sys

from etude import _etude

_HERE = os.path.dirname(os.path.realpath(__file__))
_EXTENSION = os.path.dirname(os.path.realpath(_etude.__file__))
#: In an editable installation the headers stay in the source tree, and the library in the folder that it is built in.
_EDITABLE = _EXTENSION != _HERE


def get_include() -> str:
    """The folder for `-I`: it has `etude/etude.h`."""
    return os.path.join(os.path.dirname(os.path.dirname(_HERE)) if _EDITABLE else _HERE, "include")


def get_library() -> str:
    """The path of the shared library, for linking and for ctypes. It is the one that this package itself uses."""
    folder = os.path.dirname(_EXTENSION) if _EDITABLE else _HERE
    pattern = {"darwin": "libetude.*.dylib", "win32": "*etude*.dll"}.get(sys.platform, "libetude.so.*")
    found = sorted(name for name in fnmatch.filter(os.listdir(folder), pattern) if os.path.isfile(os.path.join(folder, name)))
    if not found:
        raise FileNotFoundError(f"no {pattern} in {folder}: the installation is incomplete; reinstall etude")
    return os.path.join(folder, found[0])


def get_pkgconfig() -> str:
    """The folder for `PKG_CONFIG_PATH`: it has `etude.pc`. FileNotFoundError in an editable installation, which has none."""
    if _EDITABLE:
        raise FileNotFoundError("an editable installation has no pkg-config file; use `etude config --cflags --libs`")
    return os.path.join(_HERE, "pkgconfig")


def cflags() -> str:
    """Compiler flags: `cc $(etude config --cflags) …`. A path with blanks is quoted for the shell, which has to `eval` it then."""
    return shlex.quote(f"-I{get_include()}")


def libs() -> str:
    """Linker flags, quoted like those. The program finds the library where it is now."""
    library = get_library()
    folder = os.path.dirname(library)
    rpath = f"-Xlinker -rpath -Xlinker {shlex.quote(folder)}" if "," in folder else shlex.quote(f"-Wl,-rpath,{folder}")
    return f"{shlex.quote(library)} {rpath}"
