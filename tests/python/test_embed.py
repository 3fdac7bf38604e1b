"""`etude kernels` and `etude embed`: what is written compiles without warnings, and computes what the goldens say."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import etude
from embedded_kit import Embedded, NotEmbedded, embed, run_corpus_case
from etude import dtypes
from etude.embed.library import Choices, make_library
from etude.embed.requirements import Need, parse_needs, read_needs, read_variation
from etude.embed.sources import read_kernels, read_sources
from etude.embed.table import DTYPES, mask_of
from etude.emit import ProgramBuilder
from paths import CORPUS, ROOT

DIGITS = ROOT / "examples/digits/digits.pte"


def run_command(*arguments):
    return subprocess.run([sys.executable, "-m", "etude", *map(str, arguments)], capture_output=True, text=True)


def test_kernels_lists_operators_and_dtypes(tmp_path):
    done = run_command("kernels", DIGITS, CORPUS / "counter.pte", "-o", tmp_path / "kernels.txt")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "kernels.txt").read_text().splitlines()
    assert "aten::max_pool2d_with_indices.out float32: float32 int64" in lines
    needs = parse_needs(tmp_path / "kernels.txt")
    assert needs == read_needs([etude.load(DIGITS), etude.load(CORPUS / "counter.pte")])
    assert set(needs) == {name for path in (DIGITS, CORPUS / "counter.pte") for name in etude.load(path).metadata("forward").operators}


def test_dtypes_of_lists():
    assert {name: dtypes.code_of(name) for name in DTYPES} == DTYPES


def test_dtypes_of_several_operators_are_united():
    assert mask_of([6, 4, 6]) == 1 << 6 | 1 << 4


def test_every_row_of_the_table_names_its_file():
    """A kernel is looked for in the file that the comment above its row names."""
    sources = read_sources()
    for kernel in read_kernels().values():
        text = sources[kernel.file]
        stems = [kernel.function, kernel.function.removeprefix("etude_aten_").removesuffix("_out"), kernel.function.rpartition("_")[0]]
        assert any(stem in text for stem in stems), kernel


def test_all_operators_stand_in_one_file(tmp_path):
    """Names do not clash, whichever operators come together, and every function is found."""
    source, header = make_library({name: Need({6}, {4, 6, 11}) for name in read_kernels()}, Choices())
    (tmp_path / "etude.c").write_text(source, "utf-8")
    (tmp_path / "etude.h").write_text(header, "utf-8")
    flags = ["-std=gnu99", "-O1", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    subprocess.run(["cc", *flags, str(tmp_path / "etude.c")], check=True)


def test_sources_are_those_of_the_tree():
    for path, text in read_sources().items():
        assert (ROOT / path).read_text("utf-8") == text, f"{path}: reinstall the package"


def test_digits_reads_digits(tmp_path):
    model = Embedded(DIGITS, tmp_path / "model")
    digits = np.load(ROOT / "examples/digits/digits.npz")
    right = sum(
        int(np.argmax(model("forward", [image.reshape(1, 1, 8, 8).astype(np.float32)])[0])) == label
        for image, label in zip(digits["images"], digits["labels"], strict=True)
    )
    assert right == 357  # of 360, as examples/digits says
    model.close()


@pytest.mark.parametrize(
    "name",
    [
        "counter_initialized", "dynamic_batch", "dtype_casts", "cond", "scalar_input_symbolic", "channels_last", "shared_state", "q8_cnn",
    ],
)  # fmt: skip
def test_corpus(name, tmp_path):
    run_corpus_case(name, tmp_path / "model")


def test_fast_kernels(tmp_path):
    run_corpus_case("lenet", tmp_path / "model", "--fast")


def test_two_programs_share_a_library(tmp_path):
    done = run_command("embed", CORPUS / "add.pte", CORPUS / "linear.pte", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"etude.c", "etude.h", "add.c", "add.h", "linear.c", "linear.h"}
    main = '#include "add.h"\n#include "linear.h"\nint main(void) { return ADD_ARENA_BYTES + LINEAR_ARENA_BYTES > 0 ? 0 : 1; }\n'
    (tmp_path / "main.c").write_text(main)
    subprocess.run(["cc", *sorted(str(path) for path in tmp_path.glob("*.c")), "-lm", "-o", str(tmp_path / "program")], check=True)
    subprocess.run([str(tmp_path / "program")], check=True)


@pytest.mark.parametrize(
    ("layout", "words"), [("cmake", "target_link_libraries(APP add)"), ("zephyr", "CONFIG_ADD=y"), ("arduino", "add_open")]
)
def test_layouts_of_several_programs_say_how(layout, words, tmp_path):
    done = run_command("embed", ADD, CORPUS / "linear.pte", "-o", tmp_path, "--layout", layout)
    assert done.returncode == 0 and words in done.stdout, done.stderr
    sketches = [path.read_text() for path in tmp_path.rglob("*.ino")]
    assert len(sketches) == (layout == "arduino") and not any("etude_status_name" in text for text in sketches)


def test_headers_are_cplusplus(tmp_path):
    embed(DIGITS, tmp_path)
    (tmp_path / "use.cpp").write_text('#include "model.h"\nint main() { return model_forward_output_0_count == 10 ? 0 : 1; }\n')
    subprocess.run(["c++", "-Wall", "-Wextra", "-Werror", "-c", str(tmp_path / "use.cpp"), "-o", str(tmp_path / "use.o")], check=True)


def test_refusals(tmp_path):
    with pytest.raises(NotEmbedded, match="'forward' has parts for StrangeBackend, for which there is no code to embed"):
        other = (CORPUS / "x_linear.pte").read_bytes().replace(b"XnnpackBackend", b"StrangeBackend")
        (tmp_path / "other.pte").write_bytes(other)
        embed(tmp_path / "other.pte", tmp_path / "out")
    bad = tmp_path / "bad.txt"
    bad.write_text("aten::add.out float32\n")
    done = run_command("embed", DIGITS, "-o", tmp_path / "out", "--kernels", bad)
    assert done.returncode == 2
    assert "bad.txt, line 1: expected OPERATOR DTYPES: DTYPES" in done.stderr
    bad.write_text("aten::add.out float33: float32\n")
    assert "line 1: no dtype is named 'float33'" in run_command("embed", DIGITS, "-o", tmp_path / "out", "--kernels", bad).stderr
    bad.write_text("aten::nothing.out float32: float32\n")
    done = run_command("embed", DIGITS, "-o", tmp_path / "out", "--kernels", bad)
    assert "aten::nothing.out" in done.stderr
    assert not (tmp_path / "out").exists()


ADD = CORPUS / "add.pte"


def build_example(folder):
    """What the example of the board "host" prints, built with warnings as errors."""
    flags = ["-Wall", "-Wextra", "-Werror", "-lm", "-o", "image.elf"]
    subprocess.run(["cc", "@flags.txt", *sorted(path.name for path in folder.glob("*.c")), *flags], cwd=folder, check=True)
    return subprocess.run([folder / "image.elf"], capture_output=True, text=True, check=True).stdout


def test_a_build_that_fails_is_an_error(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cc").write_text("#!/bin/sh\necho 'etude.c:7: note: before it'\necho 'etude.c:7:1: error: no such thing' >&2\nexit 1\n")
    (tools / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    for command in (["embed", ADD, "-o", tmp_path / "out", "--board", "host"], ["memory", ADD, "--target", "host"]):
        done = run_command(*command)
        assert done.returncode == 2
        assert "failed with status 1:\netude.c:7:1: error: no such thing\n" in done.stderr
        assert "note" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_without_tools_the_arena_is_not_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run_command("embed", ADD, "-o", tmp_path / "out", "--board", "mps2-an386")
    assert done.returncode == 0, done.stderr
    assert "at most: arm-none-eabi-gcc is not installed" in done.stdout


@pytest.mark.parametrize(
    ("name", "what"),
    [("add", ""), ("cond_nested", "branches"), ("dynamic_batch", "sizes that may vary"), ("dynamic_nonzero", "sizes that may vary")],
)
def test_programs_that_one_run_cannot_tell_of(name, what):
    assert read_variation(etude.load(CORPUS / f"{name}.pte")) == what


_BRANCHES = """
#include "model.h"
static uint8_t arena[MODEL_ARENA_BYTES] __attribute__((aligned(64)));
static model self;
static float x[3000];
int main(void) {
  const bool yes[1] = {true}, no[1] = {false};
  for (int i = 0; i < 3000; ++i) x[i] = (float)-i;
  if (model_open(&self, arena, sizeof arena, NULL) != ETUDE_OK) return 1;
  if (model_forward(&self, no, x, NULL) != ETUDE_OK || model_forward_output_0(&self)[2999] != 2999) return 2;
  if (model_forward(&self, yes, x, NULL) != ETUDE_OK) return 3;
  for (int i = 0; i < 3000; ++i) if (model_forward_output_0(&self)[i] != (float)(i - 2999)) return 4;
  return 0;
}
"""


def test_the_arena_has_room_for_every_branch(tmp_path):
    """The run with zeros takes the branch without scratch memory; the other one sorts."""
    builder = ProgramBuilder()
    method = builder.method("forward")
    condition, x = method.input("bool", (1,)), method.input("float32", (3000,))
    result, other, end = method.scratch("float32", (3000,)), method.label(), method.label()
    method.jump_if_false(condition, other)
    method.move(method.call("aten::sort.values", x, out=(("float32", (3000,)), ("int64", (3000,))))[0], result)
    method.jump(end)
    method.place(other)
    method.move(method.call("aten::neg.out", x), result)
    method.place(end)
    method.output(result)
    program, folder = tmp_path / "branches.pte", tmp_path / "out"
    program.write_bytes(builder.to_bytes())
    done = run_command("embed", program, "-o", folder, "--board", "host")
    assert done.returncode == 0 and "the program has branches, so that other runs may take more" in done.stdout, done.stderr
    (folder / "main.c").write_text(_BRANCHES)
    build_example(folder)
    told = json.loads(run_command("memory", program, "--target", "host", "--json").stdout)
    assert told["at_most"] >= told["memory"]["peak"] + 3000 * 4
    assert f"MODEL_ARENA_BYTES {told['at_most']}u" in (folder / "model.h").read_text()


@pytest.mark.parametrize(
    "array", [np.zeros((2, 3)), np.zeros((2, 3), np.int32), np.zeros((2, 3), ">f4"), np.zeros((3, 3), np.float32), np.zeros(3, np.float32)],
)  # fmt: skip
def test_inputs_are_checked_as_those_of_run(array, tmp_path):
    np.save(tmp_path / "x.npy", array)
    options = ["--input", f"0={tmp_path / 'x.npy'}"]
    ran, embedded = run_command("run", ADD, *options), run_command("embed", ADD, "-o", tmp_path / "out", "--board", "host", *options)
    said = ran.stderr[ran.stderr.index("method 'forward', input 0: expected float32 [2, 3], got ") :]
    assert embedded.returncode == ran.returncode == 2
    assert embedded.stderr == f"etude embed: {said}"
    assert not (tmp_path / "out").exists()


def test_inputs_that_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    (tmp_path / "program.npy").write_bytes(ADD.read_bytes())
    said = {
        f"5={tmp_path}/x.npy": (2, "input 5: method 'forward' has 2 inputs, counted from 0"),
        f"forwar:0={tmp_path}/x.npy": (2, "there is no method 'forwar'; methods: forward"),
        f"0={tmp_path}/program.npy": (2, "program.npy' is no .npy file of numbers"),
        f"0={tmp_path}/nothing.npy": (3, "nothing.npy: No such file"),
        "0=7": (2, "expected [METHOD:]N=FILE.npy"),
    }
    for option, (status, words) in said.items():
        done = run_command("embed", ADD, "-o", tmp_path / "out", "--board", "host", "--input", option)
        assert done.returncode == status and words in done.stderr, done.stderr
    done = run_command("embed", ADD, "-o", tmp_path / "out", "--input", "0=nothing.npy")
    assert done.returncode == 2 and "--input goes with --board" in done.stderr
    scalar = CORPUS / "scalar_input_symbolic.pte"
    done = run_command("embed", scalar, "-o", tmp_path / "out", "--board", "host", "--input", f"1={tmp_path}/x.npy")
    assert done.returncode == 2 and "arrays are for tensors" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["open"], "the function that opens program 'model' and method 'open'"),
        (["close"], "the function that closes program 'model' and method 'close'"),
        (["a-b", "a_b"], "method 'a-b' of program 'model' and method 'a_b'"),
        (["f", "f_output_0"], "output 0 of method 'f' of program 'model' and method 'f_output_0'"),
    ],
)
def test_methods_that_clash_in_c(names, words, tmp_path):
    merged = tmp_path / "model.pte"
    sources = [ADD, CORPUS / "linear.pte"][: len(names)]
    renames = [part for source, name in zip(sources, names, strict=True) for part in ("--rename", f"{source.name}:forward={name}")]
    assert run_command("merge", *sources, *renames, "-o", merged).returncode == 0
    done = run_command("embed", merged, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert words in done.stderr and "would both be 'model_" in done.stderr and "etude merge MODEL.pte --rename OLD=NEW" in done.stderr
    assert not (tmp_path / "out").exists()


def test_programs_that_clash_in_c(tmp_path):
    for name in ("a", "A", "string"):
        (tmp_path / f"{name}.pte").write_bytes(ADD.read_bytes())
    done = run_command("embed", tmp_path / "a.pte", tmp_path / "A.pte", "-o", tmp_path / "out")
    assert done.returncode == 2 and "program 'a' and program 'A' would both be 'A_H_'" in done.stderr
    done = run_command("embed", tmp_path / "a.pte", tmp_path / "string.pte", "-o", tmp_path / "out")
    assert done.returncode == 2 and "string.pte: the name 'string' is taken: rename the file" in done.stderr
    done = run_command("embed", ADD, "--name", "etude", "-o", tmp_path / "out")
    assert done.returncode == 2 and "the name 'etude' is taken: give another --name" in done.stderr
    for name, became in {"int": "_int", "../x": "___x", "3d": "_3d", "": "_"}.items():
        done = run_command("embed", ADD, "--name", name, "-o", tmp_path / "out")
        assert done.returncode == 2 and f"the name {name!r} would be {became!r} in C" in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
    done = run_command("embed", ADD, "--name", "a-b", "-o", tmp_path / "named")
    assert done.returncode == 0 and "the name 'a-b' is 'a_b' in C" in done.stdout, done.stderr
    done = run_command("embed", ADD, CORPUS / "linear.pte", "--name", "both", "-o", tmp_path / "out")
    assert done.returncode == 2 and "--name is for one program" in done.stderr


@pytest.mark.parametrize("name", ["main.c", "etude.c", "flags.txt"])
def test_files_of_the_user_stay(name, tmp_path):
    (tmp_path / name).write_text("int mine;\n")
    done = run_command("embed", ADD, "-o", tmp_path, "--board", "host")
    assert done.returncode == 2 and f"{name}: would be replaced" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {name}
    assert (tmp_path / name).read_text() == "int mine;\n"


def test_files_of_an_earlier_run(tmp_path):
    """What is as the command made it is replaced or removed; what somebody changed since is not."""
    embed(ADD, tmp_path, "--layout", "zephyr")
    embed(ADD, tmp_path, "--layout", "cmake")
    embed(ADD, tmp_path, "--name", "one")
    (tmp_path / "main.c").write_text('#include "one.h"\nint main(void) { return 0; }\n')
    embed(ADD, tmp_path)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"etude.c", "etude.h", "model.c", "model.h", "main.c"}
    with (tmp_path / "model.c").open("a") as file:
        file.write("/* mine */\n")
    with pytest.raises(NotEmbedded, match=r"model\.c: would be replaced"):
        embed(ADD, tmp_path)
    assert (tmp_path / "model.c").read_text().endswith("/* mine */\n")


_MISUSE = """
#include <stdio.h>
#include "model.h"
#define EXPECT(status, call) \\
  do { \\
    const long is = (long)(call); \\
    if (is != (long)(status)) return printf("%d: %lx\\n", __LINE__, is), 1; \\
  } while (0)
static model m;
static uint8_t arena[MODEL_ARENA_BYTES] __attribute__((aligned(64)));
int main(void) {
  static const float x[64];
  const int32_t good[2] = {2, 6}, large[2] = {1 << 30, 1 << 30}, negative[2] = {-1, 6};
  int32_t sizes[2];
  etude_error error = ETUDE_ERROR_INIT;
  (void)good, (void)large, (void)negative, (void)sizes;
  model_close(&m);
  EXPECT(ETUDE_INVALID_STATE, model_forward(&m, INPUTS, &error));
  EXPECT(ETUDE_INVALID_STATE, error.status);
  EXPECT(0, model_forward_output_0(&m OUTPUT));
  EXPECT(ETUDE_INVALID_ARGUMENT, model_open(&m, NULL, sizeof arena, &error));
  EXPECT(ETUDE_INVALID_ARGUMENT, error.status);
  EXPECT(ETUDE_INVALID_ARGUMENT, model_open(NULL, arena, sizeof arena, NULL));
  EXPECT(ETUDE_INVALID_STATE, model_forward(&m, INPUTS, NULL));
  for (size_t size = 0; size < 1000; size += 100) {
    EXPECT(ETUDE_OUT_OF_MEMORY, model_open(&m, arena, size, &error));
    EXPECT(ETUDE_INVALID_STATE, model_forward(&m, INPUTS, &error));
  }
  EXPECT(ETUDE_OK, model_open(&m, arena, sizeof arena, &error));
  MORE
  EXPECT(ETUDE_OK, model_forward(&m, INPUTS, &error));
  EXPECT(1, model_forward_output_0(&m OUTPUT) != NULL);
  MORE
  EXPECT(0, model_forward_output_0(&m OUTPUT));
  EXPECT(ETUDE_OK, model_forward(&m, INPUTS, &error));
  EXPECT(1, model_forward_output_0(&m OUTPUT) != NULL);
  model_close(&m);
  model_close(&m);
  model_close(NULL);
  EXPECT(ETUDE_INVALID_STATE, model_forward(&m, INPUTS, &error));
  EXPECT(0, model_forward_output_0(&m OUTPUT));
  return 0;
}
"""


@pytest.mark.parametrize("name", ["add", "dynamic_batch"])
def test_functions_that_are_called_out_of_order(name, tmp_path):
    embed(CORPUS / f"{name}.pte", tmp_path)
    inputs, output, wrong = ("x, x", "", ["NULL, x", "x, NULL"]) if name == "add" else ("x, good", ", sizes", ["NULL, good", "x, NULL"])
    more = "".join(f"EXPECT(ETUDE_INVALID_ARGUMENT, model_forward(&m, {one}, &error));" for one in wrong)
    more += "".join(f"EXPECT(1, model_forward(&m, x, {sizes}, &error) != ETUDE_OK);" for sizes in ("large", "negative") if name != "add")
    (tmp_path / "main.c").write_text(_MISUSE.replace("INPUTS", inputs).replace(" OUTPUT", output).replace("MORE", more))
    flags = ["-std=gnu99", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-lm"]
    subprocess.run(["cc", *sorted(path.name for path in tmp_path.glob("*.c")), *flags, "-o", "program"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_printed_as_printf_does(dtype, tmp_path):
    """Digits that tell every number from its neighbours, in the form of %g."""
    least, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    common = [0.1, -1.8445e-4, 123456789, 9.9999999e-6, 0.99999999, 1e9, 1 / 3, 5e-5, 2**-30, 1e22, 17, -1e16, 99999999.5]
    values = np.array([*common, most, least, np.inf, -0.0, np.nan], dtype)
    program = tmp_path / "program.pte"
    builder = ProgramBuilder()
    method = builder.method("forward")
    method.output(method.call("aten::neg.out", method.input(np.dtype(dtype).name, values.shape)))
    program.write_bytes(builder.to_bytes())
    np.save(tmp_path / "x.npy", -values)
    embed(program, tmp_path / "out", "--board", "host", "--input", f"0={tmp_path / 'x.npy'}")
    digits = 9 if dtype is np.float32 else 17
    assert build_example(tmp_path / "out").splitlines()[0] == "forward, output 0: " + " ".join(f"{value:.{digits}g}" for value in values)


def test_programs_that_cannot_be_embedded_say_why(tmp_path):
    (tmp_path / "odd.pte").write_bytes(ADD.read_bytes().replace(b"aten::add", b"aten::odd"))
    (tmp_path / "file").write_text("")
    said = {
        CORPUS / "external_constants.pte": "external data, in a .ptd file, which can't be embedded: export the program again",
        CORPUS / "x_external_weights.pte": "external data, in a .ptd file, which can't be embedded: export the program again",
        tmp_path / "odd.pte": "aten::odd.out; a program that has operators of its own can't be embedded: ",
    }
    for program, words in said.items():
        for command in (["embed", program, "-o", tmp_path / "out"], ["memory", program]):
            done = run_command(*command)
            assert done.returncode == 2 and f"{program}: " in done.stderr and words in done.stderr, done.stderr
    done = run_command("embed", ADD, "-o", tmp_path / "file")
    assert done.returncode == 2 and "is a file, not a folder" in done.stderr
    done = run_command("run", ADD, "--memory-limit", 10)
    assert done.stderr.count("'forward'") == 1 and "raise --memory-limit" in done.stderr, done.stderr


def test_memory_says_the_same_twice():
    command = ["memory", ADD, "--target", "host", "--top", 3]
    text, told = run_command(*command), run_command(*command, "--json")
    report = json.loads(told.stdout)
    rows = dict(line.split() for line in text.stdout.split("flash\n")[1].split("RAM\n")[0].splitlines())
    assert {part: int(size.replace(",", "")) for part, size in rows.items()} == report["flash"] | {"code": report["code"]}
    assert report["flash"]["model"] > ADD.stat().st_size
    assert len(report["functions"]) == 3
    assert run_command("memory", ADD, "--top", "-1").returncode == 2
