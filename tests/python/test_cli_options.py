"""Backends and options on the command line."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from backend_kit import CONTEXT, DATA, compile_plugin
from test_cli import run

BACKENDS = str(DATA / "backends.pte")


def test_options():
    text = run("options")
    assert "NullBackend\n" in text and f"{CONTEXT}\n" in text
    for words in ("copy inputs to outputs", "'float32', 'bfloat16'", "0 (debug), 1 (info)", "process+load", "now"):
        assert words in text
    text = run("options", CONTEXT)
    assert "NullBackend" not in text and text.splitlines()[0] == CONTEXT and "output_scale_percent" in text
    assert "'Nope' is not registered; there are: NullBackend" in run("options", "Nope", status=2)


def test_options_as_json(plugin):
    report = json.loads(run("options", "--json", "--library", plugin))
    assert set(report) == {"NullBackend", CONTEXT, "XnnpackBackend", "ScaleBackend", "ScaleRawBackend"}
    assert report["ScaleRawBackend"] == {}
    percent = report["ScaleBackend"]["percent"]
    assert (percent["type"], percent["default"], percent["minimum"], percent["maximum"]) == ("int", 100, -1000, 1000)
    assert report[CONTEXT]["precision"]["choices"] == ["float32", "bfloat16"]
    assert report[CONTEXT]["init_count"]["read_only"] is True
    assert list(json.loads(run("options", "NullBackend", "--json"))) == ["NullBackend"]


def outputs(tmp_path, *arguments):
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    run("run", *arguments, "--input", f"0={tmp_path / 'x.npy'}", "--output", tmp_path / "out.npz")
    return float(np.load(tmp_path / "out.npz")["out0"][0, 0])


@pytest.mark.parametrize("threads", [[], ["--threads", "2"]])
def test_run_with_options(tmp_path, plugin, threads):
    scale = [BACKENDS, "--method", "scale", "--library", str(plugin), *threads]
    assert outputs(tmp_path, *scale) == 1
    assert outputs(tmp_path, *scale, "--option", "ScaleBackend.percent=250") == 2.5
    assert outputs(tmp_path, *scale, "--option", "ScaleBackend.percent=0x64", "--option", "ScaleBackend.sign=flip") == -1
    assert outputs(tmp_path, BACKENDS, "--method", "null", "--option", "NullBackend.copy=false") == 0
    assert outputs(tmp_path, BACKENDS, "--method", "null", "--option", "NullBackend.copy=True") == 1
    raw = [BACKENDS, "--method", "raw", "--library", str(plugin), *threads]
    assert outputs(tmp_path, *raw, "--option", "ScaleRawBackend.percent=300") == 3


def test_run_with_process_wide_options(tmp_path):
    golden = np.load(DATA / "prefill_decode.npz")
    np.save(tmp_path / "x.npy", golden["decode_input"])
    arguments = ["--method", "decode", "--input", f"0={tmp_path / 'x.npy'}", "--output", tmp_path / "out.npz"]
    options = ["output_scale_percent=200", "precision=bfloat16", "log_level=warning", "log_label=a = b"]
    given = [word for option in options for word in ("--option", f"{CONTEXT}.{option}")]
    run("run", DATA / "prefill_decode.pte", *arguments, *given)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["out0"], 2 * golden["decode_output_bfloat16"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (f"{CONTEXT}.threads=many", "'many' is not an int; allowed: 1 to 64"),
        (f"{CONTEXT}.threads=65", "65 is out of range; allowed: 1 to 64"),
        (f"{CONTEXT}.clamp=1", "'1' is not true or false"),
        (f"{CONTEXT}.thread=1", "did you mean 'threads'"),
        (f"{CONTEXT}.precision=float16", "'float32', 'bfloat16'"),
        (f"{CONTEXT}.init_count=1", "read-only"),
        (f"{CONTEXT}.log_level=loud", "0 (debug), 1 (info)"),
        ("Nope.k=1", "there are: NullBackend"),
        ("NullBackend.copy=true", "does not use"),
        (CONTEXT, "BACKEND.KEY=VALUE"),
        (f"{CONTEXT}.=1", "BACKEND.KEY=VALUE"),
        (".threads=1", "BACKEND.KEY=VALUE"),
        ("threads=1", "BACKEND.KEY=VALUE"),
    ],
)
def test_options_that_are_wrong(option, words):
    text = run("run", DATA / "prefill_decode.pte", "--method", "decode", "--option", option, status=2)
    assert words in text and text.count("\n") == 1 and text.startswith("etude run: ")


def test_a_process_wide_option_of_a_backend_that_is_not_used():
    text = run("run", BACKENDS, "--method", "null", "--option", f"{CONTEXT}.output_scale_percent=5", status=2)
    assert f"{CONTEXT!r}, which the program does not use" in text


def test_an_option_twice():
    twice = ["--option", "NullBackend.copy=true", "--option", "NullBackend.copy=false"]
    assert "given twice" in run("run", BACKENDS, "--method", "null", *twice, status=2)


def test_check(plugin):
    text = run("check", BACKENDS, status=1)
    assert "null: can run" in text and "missing backend: ScaleBackend (there are: NullBackend" in text
    text = run("check", BACKENDS, "--library", plugin)
    assert text.count("can run, with") == 4
    assert "out of range" in run("check", BACKENDS, "--library", plugin, "--option", "ScaleBackend.percent=5000", status=2)


def test_conformance(plugin):
    text = run("conformance")
    assert "NullBackend: " in text and f"{CONTEXT}: " in text and text.count(" 0 failed") == 3 and "FAILED" not in text
    text = run("conformance", "--library", plugin)
    assert "NullBackend" not in text and text.count(" 0 failed") == 2 and "  ok      percent: its default can be read" in text
    text = run("conformance", "--library", plugin, "NullBackend")
    assert text.splitlines()[0] == "NullBackend" and text.count("0 failed") == 1
    assert "'Nope'" in run("conformance", "Nope", status=2)
    assert "nowhere.so" in run("conformance", "--library", "nowhere.so", status=3)


def test_conformance_of_a_backend_that_is_wrong(tmp_path):
    source = (DATA.parents[1] / "examples/plugin/scale_backend.c").read_text()
    broken = source.replace('"factor, in percent"', '"factor,\\nin percent"')
    assert broken != source
    (tmp_path / "broken.c").write_text(broken)
    library = compile_plugin(tmp_path / "broken.c", tmp_path / "broken.so")
    text = run("conformance", "--library", library, status=1)
    assert "  FAILED  percent: it has one line of help" in text and "ScaleBackend: " in text and ", 1 failed" in text


def test_a_library_by_its_bare_name(plugin):
    os.chdir(plugin.parent)
    assert "ScaleBackend" in run("options", "--library", plugin.name)
