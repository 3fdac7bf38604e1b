#!/usr/bin/env python3
"""Make the cffi declarations, their Python types, and the declarations of Rust, from the public headers.

    python python/cffi/cdef_from_headers.py            rewrite python/cffi/etude.cdef, python/etude/_etude.pyi, and etude-sys
    python python/cffi/cdef_from_headers.py --check    compare only; status 1 where a file is out of date

The headers hold declarations, include guards, `extern "C"` blocks and one block of export macros, and nothing else, so this needs no C
preprocessor: comments go, conditional blocks go except for include guards, integer macros stay.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = [
    "base", "hooks", "memory", "tensor", "options", "backend", "kernel", "runtime", "program", "method", "trace", "profile",
    "builtin", "host",
]  # fmt: skip
CDEF = ROOT / "python/cffi/etude.cdef"
CALL_CDEF = ROOT / "python/cffi/call.cdef"
STUB = ROOT / "python/etude/_etude.pyi"
RUST = ROOT / "bindings/rust/etude-sys/generate.py"

#: Macros that stand for a number: name -> value. Others (initialisers, guards) have no meaning to cffi.
_NUMBER = re.compile(r"#define\s+(\w+)\s+(\d+|0x[0-9a-fA-F]+)$")


def declarations(header: str) -> str:
    """The declarations of one header's text, one to a line where they are functions."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    kept: list[str] = []
    hidden = 0  # depth of conditional blocks, of which only the include guard (depth 1) is open
    for line in text.split("\n"):
        word = line.strip()
        if re.match(r"#\s*if", word):
            hidden += 1
        elif re.match(r"#\s*endif", word):
            hidden -= 1
        elif hidden == 1 and word.startswith("#"):
            number = _NUMBER.match(word)
            if number:
                kept.append(f"#define {number[1]} {number[2]}")
        elif hidden == 1 and word:
            kept.append(line.rstrip())
    body = "\n".join(kept).replace("ETUDE_API ", "")
    # a function declaration spread over lines becomes one line
    return re.sub(r"\betude_\w+\([^;{}]*\);", lambda m: re.sub(r"\s+", " ", m[0]).replace("( ", "("), body)


def make_cdef() -> str:
    """The text of `etude.cdef`."""
    left = {path.stem for path in (ROOT / "include/etude").glob("*.h")} - {*HEADERS, "etude", "plugin"}
    if left:
        raise SystemExit(f"cdef_from_headers.py: HEADERS lacks {', '.join(sorted(left))}")
    parts = ["/* Made from include/etude by cdef_from_headers.py; do not edit. */"]
    for name in HEADERS:
        parts.append(f"/* {name}.h */\n" + declarations((ROOT / f"include/etude/{name}.h").read_text()))
    return "\n".join(parts) + "\n"


_FUNCTION = re.compile(r"^((?:const )?\w+ \**(?:const \*)?)(etude_\w+)\((.*)\);$", re.M)
_ENUMERATOR = re.compile(r"^\s*(ETUDE_\w+) =", re.M)
_INTEGERS = {"etude_status", "int32_t", "uint32_t", "uint64_t", "int64_t", "int8_t", "uint8_t", "uint16_t", "size_t", "int"}


def _python_type(c_type: str, argument: bool) -> str:
    c_type = c_type.strip()
    if c_type.endswith("*"):
        return "bytes | CData" if argument and c_type == "const char *" else "CData"
    if c_type == "void":
        return "None"
    if c_type in _INTEGERS:
        return "int"
    return {"bool": "bool", "double": "float"}.get(c_type, "CData")


def _signature(result: str, name: str, arguments: str) -> str:
    types: list[str] = []
    depth, start = 0, 0
    for position, letter in enumerate(arguments + ","):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            types.append(arguments[start:position].strip())
            start = position + 1
    parameters = []
    for argument in types:
        if argument == "void":
            continue
        if argument == "...":
            parameters.append("*rest: CData")
            continue
        if "(*" in argument:
            kind, label = "CData", re.search(r"\(\*\s*(\w+)\)", argument)[1]  # type: ignore[index]
        else:
            c_type, label = re.match(r"(.*?)(\w+)$", argument).groups()  # type: ignore[union-attr]
            kind = _python_type(c_type, True)
        parameters.append(f"{label.replace('self', 'self_')}: {kind}")
    joined = "".join(", " + p for p in parameters)
    slash = ", /" if parameters and not parameters[-1].startswith("*") else ""
    return f"    def {name}(self{joined}{slash}) -> {_python_type(result, False)}: ..."


def make_stub(cdef: str) -> str:
    """The text of `_etude.pyi`: every constant and function of the extension module, typed."""
    lines = [
        "# Made from include/etude by cdef_from_headers.py; do not edit.",
        "from collections.abc import Callable",
        "from typing import Any, TypeAlias, TypeVar",
        "",
        "CData: TypeAlias = Any",
        '_Function = TypeVar("_Function", bound=Callable[..., Any])',
        "",
        "class _FFI:",
        "    NULL: CData",
        "    def new(self, cdecl: str, init: object = ...) -> CData: ...",
        "    def cast(self, cdecl: str, source: object) -> CData: ...",
        "    def string(self, cdata: CData, maxlen: int = ...) -> bytes: ...",
        "    def buffer(self, cdata: CData, size: int = ...) -> Any: ...",
        "    def from_buffer(self, cdecl: str, buffer: object, require_writable: bool = ...) -> CData: ...",
        "    def sizeof(self, cdecl: str | CData) -> int: ...",
        "    def offsetof(self, cdecl: str, field: str) -> int: ...",
        "    def addressof(self, cdata: CData, *fields: str | int) -> CData: ...",
        "    def callback(self, cdecl: str, function: Callable[..., object] = ...) -> CData: ...",
        "    def def_extern(self, name: str = ..., error: object = ..., onerror: Callable[..., object] | None = ...)"
        " -> Callable[[_Function], _Function]: ...",
        "    def new_handle(self, value: object) -> CData: ...",
        "    def from_handle(self, handle: CData) -> Any: ...",
        "    def gc(self, cdata: CData, destructor: Callable[[CData], object] | None, size: int = ...) -> CData: ...",
        "    def memmove(self, dest: object, src: object, n: int) -> None: ...",
        "",
        "class _Lib:",
    ]
    constants = re.findall(r"^#define (\w+) ", cdef, re.M) + [
        name for block in re.findall(r"enum \{.*?\}", cdef, re.S) for name in re.findall(r"(ETUDE_\w+) =", block)
    ]
    lines += [f"    {name}: int" for name in constants]
    lines += [_signature(*match) for match in _FUNCTION.findall(cdef + CALL_CDEF.read_text())]
    lines += ["", "ffi: _FFI", "lib: _Lib", ""]
    return "\n".join(lines)


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    cdef = make_cdef()
    status = 0
    for path, text in ((CDEF, cdef), (STUB, make_stub(cdef))):
        if path.exists() and path.read_text() == text:
            continue
        if check:
            print(f"{path.relative_to(ROOT)} does not fit the headers: run python/cffi/cdef_from_headers.py", file=sys.stderr)
            status = 1
        else:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    if RUST.exists():  # made from the declarations; the source package has no bindings
        status |= subprocess.run([sys.executable, RUST, *(["--check"] if check else [])], check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
