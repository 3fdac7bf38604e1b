"""Where the test files are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/corpus"
DATA = ROOT / "tests/data"
#: The programs that programs/export.py made.
PROGRAMS = ROOT / "tests/python/programs"
