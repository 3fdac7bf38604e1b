"""What the tests share: the corpus, the small programs, and a guard that the installed package is tested, not the tree."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import etude
from paths import CORPUS, PROGRAMS, ROOT


def pytest_report_header(config):
    return f"etude {etude.__version__} from {Path(etude.__file__).parent}"


def pytest_configure(config):
    # in the background of a shell, SIGINT is ignored, and so it is by all children: tests of Ctrl-C need it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if Path(etude.__file__).parent == (ROOT / "python/etude"):
        raise pytest.UsageError("the tests run against an installed etude: pip install . first")


@pytest.fixture(scope="session")
def manifest():
    return json.loads((CORPUS / "manifest.json").read_text())["cases"]


@pytest.fixture
def affine():
    """A fresh method y = 2 x + z over two float32 (2, 3)."""
    return etude.load(PROGRAMS / "affine.pte").load_method("forward", fresh=True)


@pytest.fixture
def x():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def z():
    return np.ones((2, 3), np.float32)


@pytest.fixture(scope="session")
def plugin(tmp_path_factory):
    """The path of the example plugin, compiled against the installed headers; without a compiler what ETUDE_TEST_PLUGIN names."""
    from backend_kit import PLUGIN_SOURCE, compile_plugin

    if "ETUDE_TEST_PLUGIN" in os.environ:
        return Path(os.environ["ETUDE_TEST_PLUGIN"])
    return compile_plugin(PLUGIN_SOURCE, tmp_path_factory.mktemp("plugin") / "scale_backend.so")
