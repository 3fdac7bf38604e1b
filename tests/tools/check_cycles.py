#!/usr/bin/env python3
"""Files of the library call each other in one direction only: no circle, however long, in these rooms (c/ROOM).

    check_cycles.py BUILD_FOLDER ROOM...

Reads with nm what each object file of the library defines and what it needs. Prints the calls of every circle; the exit status is 1 if
there is one.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

Graph = dict[str, set[str]]


def read(paths: list[str]) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The file that defines each symbol, and the symbols that each file needs."""
    done = subprocess.run(["nm", "-A", "-g", "-f", "posix", *paths], check=True, capture_output=True, text=True)
    defined: dict[str, str] = {}
    needed: dict[str, set[str]] = defaultdict(set)
    for line in done.stdout.splitlines():
        where, _, rest = line.partition(": ")
        file = "/".join(Path(where).parts[-3::2]).removesuffix(".o")  # c/core/libetude_core.a.p/arena.c.o
        symbol, kind = rest.split()[:2]
        if kind == "U":
            needed[file].add(symbol)
        else:
            defined[symbol] = file
    return defined, needed


def circles(graph: Graph) -> list[set[str]]:
    """Groups of files that reach each other (Tarjan's strongly connected components of more than one)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(file: str) -> None:
        number[file] = lowest[file] = len(number)
        stack.append(file)
        for other in graph.get(file, ()):
            if other not in number:
                visit(other)
                lowest[file] = min(lowest[file], lowest[other])
            elif other in stack:
                lowest[file] = min(lowest[file], number[other])
        if lowest[file] == number[file]:
            group = set(stack[stack.index(file) :])
            del stack[stack.index(file) :]
            if len(group) > 1:
                found.append(group)

    for file in sorted(graph):
        if file not in number:
            visit(file)
    return found


def main() -> int:
    """Check the files given."""
    defined, needed = read([str(path) for room in sys.argv[2:] for path in Path(sys.argv[1]).glob(f"c/{room}/*.p/*.o")])
    graph: Graph = {file: {defined[s] for s in symbols if s in defined} - {file} for file, symbols in needed.items()}
    wrong = circles(graph)
    for group in wrong:
        print("a circle:", ", ".join(sorted(group)))
        for file in sorted(group):
            for symbol in sorted(needed[file]):
                if defined.get(symbol, file) in group - {file}:
                    print(f"  {file} needs {symbol} of {defined[symbol]}")
    print(f"{len(graph)} files, {len(wrong)} circles")
    return 1 if wrong or len(graph) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
