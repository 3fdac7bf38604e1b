"""The command line, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import etude
from paths import CORPUS, PROGRAMS

AFFINE = str(PROGRAMS / "affine.pte")


def run(*arguments, status=0):
    done = subprocess.run([sys.executable, "-m", "etude", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if status == 0 else done.stdout + done.stderr


def test_entry_point():
    from importlib.metadata import entry_points

    (entry,) = [e for e in entry_points(group="console_scripts") if e.name == "etude"]
    assert entry.load() is __import__("etude.cli", fromlist=["main"]).main


def test_version():
    assert run("--version").strip() == f"etude {etude.__version__}"


def test_run_made_up():
    text = run("run", AFFINE)
    assert "input 0: float32 [2, 3] (made up: standard normal)" in text
    assert "output 0: float32 [2, 3], min" in text
    assert "executed in" in text and "ms" in text


def test_run_given(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.savez(tmp_path / "both.npz", x=np.arange(6, dtype=np.float32).reshape(2, 3), z=np.ones((2, 3), np.float32))
    out = tmp_path / "out.npz"
    text = run("run", AFFINE, "--inputs", tmp_path / "both.npz", "--output", out, "--repeat", 3)
    assert "given" in text and "made up" not in text and "median of 3 runs" in text
    assert np.load(out)["out0"].tolist() == [[1, 3, 5], [7, 9, 11]]
    text = run("run", AFFINE, "--input", f"0={tmp_path / 'x.npy'}")
    assert "input 0: float32 [2, 3] (given)" in text and "input 1: float32 [2, 3] (made up" in text


def test_run_scalars_and_bfloat16(tmp_path):
    assert "[3.5 3.5]" in run("run", PROGRAMS / "scalars.pte", "--input", f"0={save(tmp_path, np.ones(2, np.float32))}")
    assert "got 4" in run("run", PROGRAMS / "scalars.pte", "--input", "1=4", status=1)
    out = tmp_path / "out.npz"
    bits = (np.arange(6, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(2, 3)
    run("run", PROGRAMS / "bfloat16.pte", "--input", f"0={save(tmp_path, bits)}", "--output", out)
    stored = np.load(out)["out0"]
    assert stored.dtype == np.uint16
    assert (stored.astype(np.uint32) << 16).view(np.float32).tolist() == [[0, 2, 4], [6, 8, 10]]
    text = run("run", PROGRAMS / "values.pte")
    for line in ("output 1: 7", "output 2: True", "output 3: 2.5", "output 4: None"):
        assert line in text


def save(folder, array):
    np.save(folder / "array.npy", array)
    return folder / "array.npy"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere.pte"], "nowhere.pte"),
        (["run", AFFINE, "--method", "nope"], "'forward'"),
        (["run", AFFINE, "--input", "7=1"], "2 inputs"),
        (["run", AFFINE, "--input", "x"], "0=x.npy"),
        (["run", AFFINE, "--input", "0=abc"], "abc"),
        (["run", AFFINE, "--input", "0=nowhere.npy"], "nowhere.npy"),
        (["inspect", __file__], "not a .pte"),
        (["check", __file__], "not a .pte"),
    ],
)
def test_failures_are_one_line(arguments, words):
    text = run(*arguments, status=1)
    assert words in text and text.startswith(f"etude {arguments[0]}: ")
    assert text.count("\n") == 1


def test_several_methods():
    assert "get, put" in run("run", CORPUS / "shared_state.pte", status=1)
    assert "output 0" in run("run", CORPUS / "two_methods.pte", "--method", "encode")


def test_inspect():
    text = run("inspect", CORPUS / "external_constants.pte", "--data", CORPUS / "external_constants.ptd")
    for words in ("method forward", "input 0: float32 [2, 8]", "operators", "aten::", "memory", "planned buffers"):
        assert words in text


@pytest.mark.parametrize("name", ["add", "counter_initialized", "channels_last", "mobilenetv2", "scalar_inputs", "dynamic_batch"])
def test_inspect_json(name, manifest):
    report = json.loads(run("inspect", CORPUS / f"{name}.pte", "--json"))
    case = manifest[name]
    assert report["file_size"] == (CORPUS / f"{name}.pte").stat().st_size
    assert {m["name"] for m in report["methods"]} == set(case["methods"])
    for method in report["methods"]:
        want = case["methods"][method["name"]]
        assert [i.get("sizes") for i in method["inputs"]] == [i.get("sizes") for i in want["inputs"]]
        assert set(want["operators"]) <= set(method["operators"])
        assert method["planned_buffers"] == want["memory_arena_bytes"][1:]
        assert method["memory"]["total"] > 0
    states = [s["name"] for m in report["methods"] for s in m["state"]]
    assert states == (["state"] if name == "counter_initialized" else [])


def test_check():
    assert run("check", AFFINE).startswith("forward: can run, with ")
    text = run("check", CORPUS / "external_constants.pte", status=1)
    assert "can't run" in text and ".ptd" in text
    assert "can run" in run("check", CORPUS / "external_constants.pte", "--data", CORPUS / "external_constants.ptd")


def test_config():
    assert run("config", "--cflags").strip() == f"-I{etude.get_include()}"
    assert etude.get_library() in run("config", "--libs")
    assert run("config", "--include").strip() == etude.get_include()
    assert "pkgconfig" in run("config")


def test_files_of_inputs_that_are_none(tmp_path):
    text, array, arrays = tmp_path / "text.npy", tmp_path / "x.npy", tmp_path / "x.npz"
    text.write_text("hello")
    np.save(array, np.zeros(3))
    np.savez(arrays, x=np.zeros(3))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    for option, path, words in (
        ("--input", f"0={text}", f"'{text}' is no .npy file of numbers"),
        ("--input", f"0={tmp_path / 'objects.npy'}", "is no .npy file of numbers"),
        ("--inputs", text, f"'{text}' is no .npz file of numbers"),
        ("--inputs", array, "is a file of kind .npy, not .npz"),
    ):
        said = run("run", AFFINE, option, path, status=1)
        assert words in said and "pickle" not in said


@pytest.mark.parametrize("count", ["0", "-1", "x"])
def test_repeat_is_a_count(count):
    assert "whole number from 1" in run("run", AFFINE, f"--repeat={count}", status=2)
