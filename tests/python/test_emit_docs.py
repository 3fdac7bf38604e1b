"""The examples of docs/emit.md run, in order, as written."""

import re

import numpy as np

from paths import ROOT


def test_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/emit.md").read_text(), re.S)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/emit.md", "exec"), names)
    assert {p.name for p in tmp_path.iterdir()} == {"linear.pte", "npu.pte", "flow.pte"}
    text = capsys.readouterr().out
    assert "[[3. 4. 5. 6.]" in text
    assert "delegate payloads: 2 used, 1 stored, 18 bytes (18 saved)" in text
    assert str(names["svg"]).startswith("<svg")

    import etude

    forward = etude.load("flow.pte").load_method("forward")
    for x in (np.array([1, -1, 2, 0], np.float32), np.array([-1, -2, 0, 1], np.float32)):
        y = np.maximum(x, 0) if x.sum() > 0 else -x
        assert np.array_equal(forward(x)[0], 4 * y)
