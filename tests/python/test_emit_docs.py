"""The examples of docs/emit.md run, in order, as written."""

import re
from textwrap import indent

import numpy as np

from etude.cli import main
from etude.emit import read_program
from etude.emit.listing import list_method
from etude.emit.picture import plan_text
from paths import CORPUS, ROOT


def test_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/emit.md").read_text(), re.S)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/emit.md", "exec"), names)
    assert {p.name for p in tmp_path.iterdir()} == {"linear.pte", "counter.pte", "npu.pte", "flow.pte"}
    text = capsys.readouterr().out
    assert "[[3. 4. 5. 6.]" in text
    assert "'aten::sum.IntList_out'" in text
    assert "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False" in text
    assert "[12, 14, 16]" in text
    assert "delegate payloads: 2 used, 1 stored, 18 bytes (18 saved)" in text
    assert str(names["svg"]).startswith("<svg")

    import etude

    forward = etude.load("flow.pte").load_method("forward")
    for x in (np.array([1, -1, 2, 0], np.float32), np.array([-1, -2, 0, 1], np.float32)):
        y = np.maximum(x, 0) if x.sum() > 0 else -x
        assert np.array_equal(forward(x)[0], 4 * y)


def test_the_plan_in_the_document():
    """The picture and the listing shown are those of the corpus."""
    text = (ROOT / "docs/emit.md").read_text()
    method = read_program(CORPUS / "two_methods.pte").method("classify")
    assert indent(plan_text(method, height=5), "    ") in text
    assert "    4  " + list_method(read_program(CORPUS / "cond.pte").methods[0]).splitlines()[8][6:] in text


def test_commands_in_the_document(tmp_path, monkeypatch, capsys):
    """Every command line shown is one that the parser knows, and does what it says."""
    monkeypatch.chdir(tmp_path)
    for name in ("prefill", "decode"):
        (tmp_path / f"{name}.pte").write_bytes((ROOT / f"tests/data/llama/{name}.pte").read_bytes())
    (tmp_path / "lowered.pte").write_bytes((ROOT / "tests/data/xnnpack/x_linear.pte").read_bytes())
    text = (ROOT / "docs/emit.md").read_text()
    assert main(["merge", "prefill.pte", "decode.pte", "-o", "both.pte"]) == 0
    program = read_program("both.pte")
    constant = next(t.name or str(i) for i, t in program.method("prefill").tensors() if t.data is not None)
    key = next(iter(read_program("lowered.pte").named_data))
    commands = re.findall(r"^    etude (\w+) (.+?)(?:  +.*)?$", text, re.M)
    assert {command for command, _ in commands} == {"inspect", "merge", "extract", "diff"}
    for command, arguments in commands:
        words = re.sub(r"\[.*\]", "", arguments).replace("emb.weight", constant).replace("KEY", key).split()
        if "--payload" in words or "--named" in words:
            words = [w.replace("both.pte", "lowered.pte").replace("prefill:0", "forward:0") for w in words]
        if command == "diff":
            words = ["prefill.pte", "decode.pte"]
        assert main([command, *words]) == (1 if command == "diff" else 0), (words, capsys.readouterr().err)
        assert capsys.readouterr().out
