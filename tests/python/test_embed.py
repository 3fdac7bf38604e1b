"""`etude kernels` and `etude embed`: what is written compiles without warnings, and computes what the goldens say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import etude
from embedded_kit import Embedded, NotEmbedded, embed, run_corpus_case
from etude import dtypes
from etude.embed.library import Choices, make_library
from etude.embed.requirements import Need, parse_needs, read_needs
from etude.embed.sources import read_kernels, read_sources
from etude.embed.table import DTYPES, mask_of
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
    (tmp_path / "etude.c").write_text(source)
    (tmp_path / "etude.h").write_text(header)
    flags = ["-std=gnu99", "-O1", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    subprocess.run(["cc", *flags, str(tmp_path / "etude.c")], check=True)


def test_sources_are_those_of_the_tree():
    for path, text in read_sources().items():
        assert (ROOT / path).read_text() == text, f"{path}: reinstall the package"


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
