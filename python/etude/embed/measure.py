"""What an embedded program takes of a machine: measured by building it for that machine and running it in its emulator.

The program's C is compiled and linked as `etude embed --board` says, in a folder that is deleted; bytes of code come from the symbols of
the image, bytes of memory from the library itself, which the emulated machine asks after each method has run once.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from etude.embed.boards import Board
from etude.errors import EtudeError

_SECTION = re.compile(r"^/\* ---- (c/\w+|the table of kernels)\S* ---- \*/$", re.MULTILINE)
_DEFINED = re.compile(r"^(?:KERNEL\((\w+)\)|[^\s#/][^\n;]*?\b(\w+)\([^;{=]*\{|[^\s#/][^\n;(]*?\b(\w+)(?:\[\w*\])*(?: ALIGNED| __attribute__\(\(\S*\)\))? = )", re.MULTILINE)
_LINE = re.compile(r"^memory (\w+): (\d+)$", re.MULTILINE)
_PARTS = {"c/core": "core", "c/compute": "kernels", "c/kernels": "kernels", "c/backends": "backends", "the table of kernels": "kernels"}
_ERROR = re.compile(r"\berror: |\bld(?:\.\w+)?: (?!warning: )|undefined reference")
_SECONDS = 300


class Use(NamedTuple):
    """Bytes of flash by part, of RAM by region, and of each function or constant."""

    flash: dict[str, int]  #: "model", "core", "kernels", "backends", "library" (of the compiler and of C), "example"
    memory: dict[str, int]  #: "structures", "planned", "scratch", …, "peak" of the arena
    functions: list[tuple[str, str, int]]  #: part, name, bytes; the largest first


class Missing(EtudeError):
    """A compiler or an emulator is not there."""


def measure(files: dict[str, str], board: Board) -> Use:
    """Build the files for a board, run them, and see."""
    build, run = (shlex.split(command) for command in board.commands())
    for tool in (build[0], run[0]):
        if not tool.startswith("./") and shutil.which(tool) is None:
            raise Missing(f"{tool} is not installed: a program is measured by building it for {board.processor} and running it there")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, "utf-8")
        sources = sorted(file for file in files if file.endswith(".c"))
        _run([part for item in build for part in (sources if item == "*.c" else [item])], folder)
        symbols = _run([build[0].replace("gcc", "nm") if "-gcc" in build[0] else "nm", "-S", "--size-sort", "image.elf"], folder)
        said = _run(run, folder)
    memory = {key: int(value) for key, value in _LINE.findall(said)}
    functions = list(_functions(symbols, files))
    flash: Counter[str] = Counter()
    for part, _, size in functions:
        flash[part] += size
    return Use(dict(flash), memory, sorted(functions, key=lambda row: -row[2]))


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise EtudeError(f"{command[0]} did not end within {_SECONDS} seconds") from None
    if done.returncode != 0:
        said = f"{done.stdout}{done.stderr}".rstrip()
        first = next((line for line in said.splitlines() if _ERROR.search(line)), said)
        raise EtudeError(f"{shlex.join(command)} failed with status {done.returncode}:\n{first}")
    return done.stdout + done.stderr  # QEMU writes what semihosting says to stderr


def _functions(symbols: str, files: dict[str, str]) -> list[tuple[str, str, int]]:
    """Each symbol in flash: part, name, bytes. Names that share an address count once."""
    places = _places(files)
    seen = set()
    rows = []
    for line in symbols.splitlines():
        address, size, kind, name = line.split()
        stem = name.partition(".")[0]
        if kind in "bBdD" or address in seen:
            continue
        seen.add(address)
        part = places.get(stem, "kernels" if stem.startswith("etude_") else "library")  # a macro makes some names of loops
        rows.append((part, name, int(size, 16)))
    return rows


def _places(files: dict[str, str]) -> dict[str, str]:
    """The part that each function or table belongs to."""
    places: dict[str, str] = {}
    for file, text in files.items():
        if not file.endswith(".c"):
            continue
        pieces = _SECTION.split(text) if file == "etude.c" else ["", "", text]
        own = {"main.c": "example", "board.c": "example"}.get(file, "model")
        for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
            for names in _DEFINED.findall(body):
                places.setdefault(next(name for name in names if name), _PARTS.get(title, own))
            for operator in re.findall(r"\b(etude_\w+_(?:out|_))\b", body) if file == "etude.c" else ():
                places.setdefault(operator, "kernels")
    return places
