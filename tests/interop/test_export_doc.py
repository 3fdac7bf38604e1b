"""The page docs/export.md is one script: all of it runs, in its order, and its commands print what stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/export.md"


def pattern(text):
    """What a command printed, with other numbers, whose signs move the blanks before them."""
    words = re.split(r"\s*-?\d[\d.,]*(?:e[-+]\d+)?", re.sub(r"\s+", " ", text))
    return r"\s*-?\d[\d.,]*(?:e[-+]\d+)?".join(re.escape(word).replace(r"\ ", r"\s+") for word in words)


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = None
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks].count("python") >= 9
    for language, text in blocks:
        if language == "python":
            exec(compile(text, str(PAGE), "exec"), names)
        elif language == "sh":
            printed = ""
            for line in text.splitlines():
                command, *arguments = line.split()
                assert command == "etude"
                done = subprocess.run([sys.executable, "-m", "etude", *arguments], capture_output=True, text=True)
                assert (done.returncode, done.stderr) == (0, ""), line
                printed += done.stdout
        else:
            assert printed is not None and re.fullmatch(pattern(text.strip()), printed.strip()), printed
            printed = None
