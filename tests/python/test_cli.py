"""The command line, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import etude
from paths import CORPUS, DATA, PROGRAMS, ROOT

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


def test_options_stand_anywhere(tmp_path):
    """Between the arguments too, where argparse alone would lose what follows them."""
    folder = ROOT / "tests/llm"
    turns = [["Hello, world", "--temperature", "0"], ["--temperature", "0", "Hello, world"]]
    tokenizer = ["--tokenizer", folder / "tokenizers/bytelevel.json"]
    texts = {run("generate", folder / "l_runner.pte", *tokenizer, *turn, "--max-tokens", "8") for turn in turns}
    assert len(texts) == 1 and texts != {""}
    run("merge", CORPUS / "add.pte", "-o", tmp_path / "both.pte", "--rename", "add.pte:forward=sum", AFFINE)
    assert etude.load(tmp_path / "both.pte").method_names == {"sum", "forward"}
    assert "unrecognized arguments: more" in run("inspect", AFFINE, "--json", "more", status=2)


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
    assert "got 4" in run("run", PROGRAMS / "scalars.pte", "--input", "1=4", status=2)
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
    text = run(*arguments, status=3 if "nowhere" in words else 2)
    assert words in text and text.startswith(f"etude {arguments[0]}: ")
    assert text.count("\n") == 1


@pytest.mark.parametrize("command", [["diff", AFFINE], ["check"], ["inspect", "--plan"], ["inspect"], ["run"], ["merge", "-o", "x.pte"]])
def test_no_such_file_has_a_status_of_its_own(command, tmp_path):
    text = run(*command, tmp_path / "nowhere.pte", status=3)
    assert "nowhere.pte" in text and "No such file or directory" in text and "Errno" not in text
    (tmp_path / "empty.pte").write_bytes(b"")
    assert "empty.pte" in run(*command, tmp_path / "empty.pte", status=2)


def test_the_answer_no(tmp_path):
    assert run("diff", AFFINE, AFFINE) == ""
    assert "+++" in run("diff", AFFINE, PROGRAMS / "scalars.pte", status=1)


def test_sizes_of_made_up_inputs():
    assert "output 0: float32 [4, 3], min" in run("run", PROGRAMS / "length.pte", "--input", "0=2x3")  # x twice
    assert "output 0: float32 [8, 3], min" in run("run", PROGRAMS / "length.pte", "--input", "0=[4,3]")
    assert "input 0: float32 [2, 3] (made up" in run("run", PROGRAMS / "length.pte", "--input", "0=2x3")
    assert "float32 [2, 3], min" in run("run", AFFINE, "--input", "0=2x3")
    assert "dimension 0 is 3, not 2" in run("run", AFFINE, "--input", "0=3x2", status=2)
    assert "no tensor" in run("run", PROGRAMS / "scalars.pte", "--input", "1=2x2", status=2)


def test_where_results_go_is_looked_at_first(tmp_path):
    for place in (tmp_path / "none" / "out.npz", tmp_path / "none" / "out"):
        text = run("run", AFFINE, "--output", place, status=3)
        assert "none" in text and "executed" not in text and "input 0" not in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_narrow_encodings(encoding):
    from etude.emit import ProgramBuilder

    builder = ProgramBuilder()
    method = builder.method("grün→")
    method.output(method.input("float32", [2]))
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for command in ([], *[[name] for name in ("run", "inspect", "check", "merge", "extract", "diff", "options", "conformance", "config")]):
        done = subprocess.run([sys.executable, "-m", "etude", *command, "--help"], capture_output=True, env=environment)
        assert done.returncode == 0 and done.stdout and not done.stderr
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.pte"
        Path(path).write_bytes(builder.to_bytes())
        for options in ([], ["--plan"], ["--instructions"], ["--json"]):
            done = subprocess.run([sys.executable, "-m", "etude", "inspect", *options, path], capture_output=True, env=environment)
            assert done.returncode == 0 and done.stdout and not done.stderr, done.stderr


def test_several_methods():
    assert "get, put" in run("run", CORPUS / "shared_state.pte", status=2)
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
        said = run("run", AFFINE, option, path, status=2)
        assert words in said and "pickle" not in said


@pytest.mark.parametrize("count", ["0", "-1", "x"])
def test_repeat_is_a_count(count):
    assert "whole number from 1" in run("run", AFFINE, f"--repeat={count}", status=2)


def test_limits():
    days = DATA / "one_kernel_for_days.pte"  # one instruction
    assert "limit of work, 1000, is used up" in run("run", days, "--work-limit", 1000, status=2)
    loop = DATA / "endless_heavy_loop.pte"
    assert "the limit of 1 instructions" in run("run", loop, "--instruction-limit", 1, status=2)
    assert "the limit of work" in run("compare", loop, loop, "--work-limit", 1000, status=2)
    assert "bytes of memory, the limit is 1000: raise memory_limit" in run("check", loop, "--memory-limit", 1000, status=1)
    assert "a whole number from 0" in run("run", loop, "--work-limit", "lots", status=2)
    run("run", AFFINE, "--work-limit", 10**6, "--instruction-limit", 10, "--memory-limit", 10**6)
    run("run", AFFINE, "--work-limit", 0, "--instruction-limit", 0, "--memory-limit", 0)
