#!/usr/bin/env python3
"""A client and a plugin that were compiled against other headers than the library meet it, and work.

    run.py SANITIZERS LIBRARY_FOLDER COMPILER...

Three times: with the headers of the last release (previous/), with headers whose structs that can grow end *earlier*
than now (each without its last member), and with headers where they end *later* (each with members more). The last two
are made here from the present headers. An emulator for a cross build is taken from MESON_EXE_WRAPPER.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from layout import HEADERS, ROOT, members, without_comments

HERE = Path(__file__).resolve().parent
#: Structs that begin with their size, but keep it: they end with room for what is to come, or with a text.
FIXED = {"etude_error", "etude_hooks", "etude_data_loader"}
#: What can't end earlier: the last member is one that was always there.
COMPLETE = {"etude_plugin", "etude_option_explanation", "etude_instruction_info", "etude_event"}
STRUCT = re.compile(r"(typedef struct|struct) (etude_\w+) \{\n(  uint32_t struct_size;.*?)\}( etude_\w+)?;", re.S)


def variant(folder: Path, later: bool) -> int:
    """Write headers whose structs end later or earlier to FOLDER/etude; returns how many are changed."""
    (folder / "etude").mkdir(parents=True)
    changed = 0

    def edit(match: re.Match[str]) -> str:
        nonlocal changed
        keyword, name, body, alias = match.groups()
        if name in FIXED or (not later and name in COMPLETE):
            return match[0]
        changed += 1
        if later:
            body += "  void *abi_more[3];\n"
        else:
            last = members(body)[-1]
            statements = body.split(";")
            drop = next(i for i, part in reversed(list(enumerate(statements))) if re.search(rf"\b{last}\b", part))
            body = ";".join([*statements[:drop], statements[-1]])
        return f"{keyword} {name} {{\n{body}}}{alias or ''};"

    for path in (HEADERS / "etude").glob("*.h"):
        (folder / "etude" / path.name).write_text(STRUCT.sub(edit, without_comments(path.read_text())))
    return changed


def run(name: str, headers: Path, library: Path, compiler: list[str], folder: Path) -> bool:
    """Compile client and plugin with these headers, and run them with the library."""
    compile_ = [*compiler, "-std=c99", "-Wall", "-Werror", "-g", f"-I{headers}"]
    client, plugin = folder / f"client_{name}", folder / f"plugin_{name}.so"
    subprocess.run([*compile_, "-shared", "-fPIC", str(HERE / "plugin.c"), "-o", str(plugin)], check=True)
    search = [f"-L{library}", f"-Wl,-rpath,{library}", "-letude"]
    subprocess.run([*compile_, str(HERE / "client.c"), "-o", str(client), *search], check=True)
    command = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), str(client), str(plugin), str(ROOT / "tests/data")]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"{name}: {(done.stdout + done.stderr).strip()}")
    return done.returncode == 0 and done.stdout == "fine\n"


def main() -> int:
    """All three."""
    sanitizers = [name for name in re.findall(r"\w+", sys.argv[1]) if name != "none"]  # of the library: the client needs them too
    library, compiler = Path(sys.argv[2]), [*sys.argv[3:], *(f"-fsanitize={name}" for name in sanitizers)]
    folder = Path(tempfile.mkdtemp())
    try:
        counts = [variant(folder / name, name == "later") for name in ("earlier", "later")]
        print(f"{counts[0]} structs end earlier, {counts[1]} later")
        headers = {"previous": HERE / "previous", "earlier": folder / "earlier", "later": folder / "later"}
        passed = [run(name, path, library, compiler, folder) for name, path in headers.items()]
    finally:
        shutil.rmtree(folder)
    return 0 if all(passed) and counts[0] >= 9 and counts[1] >= 13 else 1


if __name__ == "__main__":
    sys.exit(main())
