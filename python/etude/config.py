"""Where the C library and its headers are, for compiling against them."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def get_include() -> str:
    """The folder for `-I`: it has `etude/etude.h`."""
    return str(_HERE / "include")


def get_library() -> str:
    """The path of the shared library, for linking and for ctypes. It is the one that this package itself uses."""
    pattern = {"darwin": "libetude.*.dylib", "win32": "*etude*.dll"}.get(sys.platform, "libetude.so.*")
    found = sorted(_HERE.glob(pattern))
    if not found:
        raise FileNotFoundError(f"no {pattern} in {_HERE}: the installation is incomplete; reinstall etude")
    return str(found[0])


def get_pkgconfig() -> str:
    """The folder for `PKG_CONFIG_PATH`: it has `etude.pc`."""
    return str(_HERE / "pkgconfig")


def cflags() -> str:
    """Compiler flags: `cc $(etude config --cflags) …`."""
    return f"-I{get_include()}"


def libs() -> str:
    """Linker flags. The program finds the library where it is now."""
    library = get_library()
    return f"{library} -Wl,-rpath,{Path(library).parent}"
