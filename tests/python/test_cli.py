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
    assert "bytes of memory, the limit is 1000: raise --memory-limit" in run("check", loop, "--memory-limit", 1000, status=1)
    assert "a whole number from 0" in run("run", loop, "--work-limit", "lots", status=2)
    run("run", AFFINE, "--work-limit", 10**6, "--instruction-limit", 10, "--memory-limit", 10**6)
    run("run", AFFINE, "--work-limit", 0, "--instruction-limit", 0, "--memory-limit", 0)


@pytest.mark.parametrize("value", ["nan", "-1", "inf", "x"])
@pytest.mark.parametrize("command", [["compare", AFFINE, AFFINE, "--rtol"], ["verify", AFFINE, "--rtol"], ["verify", AFFINE, "--atol"]])
def test_tolerances_are_finite_and_not_negative(command, value):
    text = run(*command[:-1], f"{command[-1]}={value}", status=2)
    assert f"{command[-1]}: expected a finite number from 0, not '{value}'" in text


@pytest.mark.parametrize("inside", [["--dump", "d"], ["--check-finite"]])
@pytest.mark.parametrize("whole", [["--output", "o.npz"], ["--profile", "p.html"], ["--profile"], ["--repeat", "3"], ["--etdump", "e"]])
def test_run_refuses_what_it_would_not_do(inside, whole, tmp_path):
    """Both options are named, and nothing is written."""
    options = [tmp_path / word if not word.startswith("-") and word != "3" else word for word in (*inside, *whole)]
    assert f"{inside[0]} and {whole[0]} don't go together" in run("run", AFFINE, *options, status=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--output", "-", "--json"], "--output - and --json"),
        (["--etdump", "-", "--json"], "--etdump - and --json"),
        (["--etdump", "-", "--output", "-"], "--output and --etdump"),
        (["--debug-buffer", "b"], "--debug-buffer goes with --etdump"),
        (["--profile", "p.txt"], "--profile p.txt: expected a name that ends in .json"),
        (["--dump", "-"], "--dump -: expected a folder"),
        (["--output", ""], "--output: expected the name of a file"),
        (["--etdump", ""], "--etdump: expected the name of a file"),
    ],
)
def test_run_refuses_outputs_that_collide(options, words):
    text = run("run", AFFINE, *options, status=2)
    assert words in text and text.count("\n") == 1


def test_outputs_go_exactly_where_they_should(tmp_path):
    for name, written in (("a", "a.npz"), ("b.npz", "b.npz"), ("c.out", "c.out")):
        run("run", AFFINE, "--output", tmp_path / name)
        assert np.load(tmp_path / written)["out0"].shape == (2, 3)
    assert "Is a directory" in run("run", AFFINE, "--output", tmp_path, status=3)
    assert "Is a directory" in run("run", AFFINE, "--output", f"{tmp_path}/new/", status=3)
    assert not tmp_path.with_name(f"{tmp_path.name}.npz").exists() and len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_devices_are_written_to():
    assert "wrote /dev/null" in run("run", AFFINE, "--output", "/dev/null")
    assert "/dev/full: No space left on device" in run("run", AFFINE, "--output", "/dev/full", status=3)
    assert "/dev/full: No space left on device" in run("extract", AFFINE, "--method", "forward", "-o", "/dev/full", status=3)


def test_the_file_at_fault_is_named(tmp_path):
    text = tmp_path / "README.md"
    text.write_text("a text, not a program")
    for command in (["compare"], ["diff"], ["merge", "-o", tmp_path / "x"], ["kernels"], ["embed", "-o", tmp_path / "x"]):
        assert run(*command, AFFINE, text, status=2).startswith(f"etude {command[0]}: {text}: not a .pte file")
    assert f"{text}: not a .ptd file" in run("run", AFFINE, "--data", text, status=2)
    said = run("compare", CORPUS / "add.pte", CORPUS / "linear.pte", status=2)
    assert f"{CORPUS / 'add.pte'} 2 (float32 [2, 3], float32 [2, 3]), {CORPUS / 'linear.pte'} 1 (float32 [3, 10])" in said
    said = run("compare", CORPUS / "linear.pte", CORPUS / "lenet.pte", status=2)
    assert f"input 0 of {CORPUS / 'linear.pte'} is float32 [3, 10], of {CORPUS / 'lenet.pte'} float32" in said
    assert "(--data FILE.ptd)" in run("run", CORPUS / "external_constants.pte", status=2)
    assert "a plain .pte without test cases: use `etude run`" in run("verify", AFFINE, status=2)


@pytest.mark.parametrize(
    ("content", "words", "status"),
    [
        (None, "no such file", 3),
        ("x = 1\nx / 0\n", "ZeroDivisionError: division by zero", 2),
        ("x = (", "SyntaxError", 2),
        ("import sys\nsys.exit(5)\n", "SystemExit: 5", 2),
        ("open('nowhere.txt')", "FileNotFoundError", 2),
    ],
)
def test_modules_that_cannot_be_imported(content, words, status, tmp_path):
    module = tmp_path / "plugin.py"
    if content is not None:
        module.write_text(content)
    text = run("run", AFFINE, "--import", module, status=status)
    assert f"--import {module}: " in text and words in text and text.count("\n") == 1
    assert run("options", "--import", "no_such_module", status=3) == "etude options: --import no_such_module: no such module\n"


def test_sizes_are_looked_at_before_memory_is_taken():
    text = run("run", AFFINE, "--input", "0=99999999x99999999", status=2)
    assert "input 0 is float32 [2, 3]: dimension 0 is 99999999, not 2" in text and text.count("\n") == 1
    assert "1 dimensions, not 2" in run("run", AFFINE, "--input", "0=[6]", status=2)
    assert "is the most" in run("run", PROGRAMS / "length.pte", "--input", "0=99999999x3", status=2)


def piped(*arguments, given=b"", status=0):
    done = subprocess.run([sys.executable, "-m", "etude", *map(str, arguments)], input=given, capture_output=True)
    assert done.returncode == status and b"Traceback" not in done.stderr, done.stderr
    return done.stdout if status == 0 else done.stderr.decode()


def test_a_dash_is_stdin_and_stdout(tmp_path):
    add, linear = CORPUS / "add.pte", CORPUS / "linear.pte"
    content = add.read_bytes()
    assert piped("inspect", add, "--svg", "-").startswith(b"<svg")
    assert "--svg - and --plan" in run("inspect", add, "--svg", "-", "--plan", status=2)
    merged = piped("merge", "-", linear, "--rename", f"{linear}:forward=line", "-o", "-", given=content)
    assert etude.load(merged).method_names == {"forward", "line"}
    line = piped("extract", "-", "--method", "line", "-o", "-", given=merged)
    assert etude.load(line).method_names == {"line"}
    assert piped("diff", "-", add, given=content) == b""
    assert b"aten::add.out" in piped("kernels", "-", given=content)
    assert piped("run", add, "--etdump", "-")[8:12] == b"ED00"
    made = subprocess.run([sys.executable, "-m", "etude", "run", add, "--output", "-", "--input", "0=2x3"], capture_output=True, check=True)
    assert made.stderr.decode().splitlines() == [f"input {i}: float32 [2, 3] (made up: standard normal)" for i in range(2)]
    for command in (["diff", "-", "-"], ["merge", "-", "-", "-o", "-"], ["compare", "-", "-"], ["run", "-", "--inputs", "-"]):
        assert "only one of the inputs can be stdin" in piped(*command, given=content, status=2)
    assert not Path("-").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_read(tmp_path):
    pipe = tmp_path / "model.pte"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-m", "etude", "run", pipe], stdout=subprocess.PIPE, text=True) as command:
        pipe.write_bytes(Path(AFFINE).read_bytes())
        assert "output 0: float32 [2, 3], min" in command.communicate()[0]
    assert command.returncode == 0


def test_a_system_prompt_is_for_chats():
    command = ["generate", ROOT / "tests/llm/l_runner.pte", "--tokenizer", "tokenizer.json", "Hello"]
    assert "--system goes with --chat" in run(*command, "--system", "be terse", status=2)


def test_run_as_json(tmp_path):
    golden = np.load(CORPUS / "add.npz")
    report = json.loads(run("run", CORPUS / "add.pte", "--json", "--input", f"0={save(tmp_path, golden['forward__in0'])}"))
    assert [i["source"] for i in report["inputs"]] == ["given", "made up: standard normal"]
    report = json.loads(run("run", CORPUS / "add.pte", "--json", "--inputs", CORPUS / "add.npz"))
    assert report["inputs"] == [{"dtype": "float32", "shape": [2, 3], "source": "given"}] * 2
    want, (got,) = golden["forward__out0"], report["outputs"]
    assert (got["dtype"], got["shape"], got["nan"], got["inf"]) == ("float32", [2, 3], 0, 0)
    assert np.array_equal(np.array(got["values"], np.float32), want) and got["max"] == want.max() and got["min"] == want.min()
    x = np.array([[np.nan, 1, 2], [3, np.inf, 5]], np.float32)
    np.savez(tmp_path / "x.npz", x=x, y=np.zeros_like(x))
    (got,) = json.loads(run("run", CORPUS / "add.pte", "--json", "--inputs", tmp_path / "x.npz"))["outputs"]
    assert (got["nan"], got["inf"], got["min"], got["max"], got["mean"]) == (1, 1, 1, 5, 2.75)
    assert got["values"] == [["nan", 1, 2], [3, "inf", 5]]
    (got,) = json.loads(run("run", CORPUS / "lenet.pte", "--json", "--inputs", CORPUS / "lenet.npz"))["outputs"]
    assert ("values" in got) == (np.prod(got["shape"]) <= 64)
    assert json.loads(run("run", PROGRAMS / "values.pte", "--json"))["outputs"][1:] == [{"value": v} for v in (7, True, 2.5, None)]


def test_the_program_after_an_option_without_value():
    assert "aten::add.out" in run("run", "--profile", CORPUS / "add.pte")
    assert run().count("\n    ") >= 15 and "compare" in run()
    assert "usage: etude run" in run("run", AFFINE, AFFINE, status=2)


def test_inputs_and_goldens_by_their_names(tmp_path):
    add, golden = CORPUS / "add.pte", np.load(CORPUS / "add.npz")
    run("run", add, "--inputs", CORPUS / "add.npz", "--output", tmp_path / "out.npz")
    assert np.array_equal(np.load(tmp_path / "out.npz")["out0"], golden["forward__out0"])
    for name in ("add", "dtype_bf16", "dtype_fp16"):  # the latter's are stored as bits
        assert "output 0: 0 apart" in run("compare", CORPUS / f"{name}.pte", CORPUS / f"{name}.npz")
    run("run", PROGRAMS / "values.pte", "--output", tmp_path / "values.npz")  # numbers and None among them
    run("compare", PROGRAMS / "values.pte", tmp_path / "values.npz")
    run("compare", CORPUS / "nested_containers.pte", CORPUS / "nested_containers.npz")
    np.savez(tmp_path / "wrong.npz", **{name: golden[name] + (name == "forward__out0") for name in golden.files})
    assert "<-- differs" in run("compare", add, tmp_path / "wrong.npz", status=1)
    np.savez(tmp_path / "few.npz", in0=golden["forward__in0"], out0=golden["forward__out0"])
    assert "missing is 1 (arrays in the file: in0, out0)" in run("run", add, "--inputs", tmp_path / "few.npz", status=2)
    assert "1 of the 2 inputs" in run("compare", add, tmp_path / "few.npz", status=2)
    given = save(tmp_path, golden["forward__in1"])
    assert "made up" not in run("run", add, "--inputs", tmp_path / "few.npz", "--input", f"1={given}")


@pytest.mark.parametrize(
    ("options", "extra"), [(["run", AFFINE, "--etdump", "-"], "etdump"), (["extract", AFFINE, "--method", "forward", "-o", "-"], "emit")]
)
def test_the_extra_that_writing_needs_is_named(options, extra):
    code = "import sys; sys.modules['flatbuffers'] = None; from etude.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True)
    words = [line for line in done.stderr.splitlines() if "made up" not in line]
    assert done.returncode == 2 and len(words) == 1 and f"pip install etude[{extra}]" in words[0]
