"""A profile as one page of HTML that needs nothing else: a bar for each call over time, the memory plan under it."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etude.profiling import Profile

_PAGE = Path(__file__).with_name("flame.html")


def page(profile: Profile) -> str:
    """The page. Everything that comes from the program is data in it, never markup."""
    events: list[list[Any]] = [[row.name, start, took, int(row.node is not None), f"instruction {row.instruction}: {row.shapes}"]
                               for row, _, start, took in profile.events()]  # fmt: skip
    rows = profile.by_operator()
    data = {
        "events": events,
        "span": max((e[1] + e[2] for e in events), default=1),
        "nodes": any(e[3] for e in events),
        "operators": [{"name": r.name, "calls": r.calls, "total": r.total} for r in rows + profile.by_operator(nodes=True)],
        "total": max(profile.total, 1),
        "memory": _memory(profile),
        "instructions": max(len(profile._instructions), 1),
    }
    title = f"Profile of method {profile.method}"
    summary = f"{profile.runs} executions, {profile.total / max(profile.runs, 1) / 1e6:.3f} ms each."
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _PAGE.read_text("utf-8").replace("@TITLE@", escape(title)).replace("@SUMMARY@", escape(summary)).replace("@DATA@", text)


def _memory(profile: Profile) -> list[dict[str, Any]]:
    """Planned tensors by memory: first and last instruction, offset, bytes, number, text."""
    lives: dict[int, list[Any]] = {}
    for instruction in profile._instructions:
        for value in instruction.arguments:
            for one in (value, *value.items):
                tensor = one.info.tensor if one is not None else None
                if one is None or tensor is None or tensor.placement() is None:
                    continue
                life = lives.setdefault(one.index, [instruction.index, instruction.index, tensor])
                life[1] = instruction.index
    memories: dict[int, dict[str, Any]] = {}
    for index, (first, last, tensor) in lives.items():
        number, offset = tensor.placement()
        memory = memories.setdefault(number, {"id": number + 1, "size": 0, "buffers": []})
        memory["size"] = max(memory["size"], offset + tensor.nbytes())
        text = f"%{index} {tensor.dtype_name()} {list(tensor.sizes())}"
        memory["buffers"].append([first, last, offset, max(tensor.nbytes(), 1), index, text])
    return [memories[n] for n in sorted(memories)]
