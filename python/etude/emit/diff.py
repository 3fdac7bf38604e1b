"""What differs between two programs, as text."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter

from .checks import checked
from .errors import EmitError
from .listing import instruction_text, names_of_values, place_text, tensor_text
from .model import KernelCall, Method, Program, Tensor


@checked(EmitError)
def diff_programs(a: Program, b: Program, *, instructions: bool = True) -> list[str]:
    """Lines that tell b from a; empty if the two are equivalent.

    Compared are methods, their inputs, outputs, memory and instructions (operands by what they are, not by number),
    constants and payloads by content, and named data. With instructions=False operators are only counted.
    """
    lines: list[str] = []
    theirs = {m.name: m for m in b.methods}
    ours = {m.name: m for m in a.methods}
    added = [m for m in b.methods if m.name not in ours]
    for name in [n for n in ours if n not in theirs]:
        renamed = next((m for m in added if not _diff_methods(ours[name], m, True)), None)
        if renamed is None:
            lines.append(f"- method {name}")
        else:
            lines.append(f"- method {name}, called {renamed.name} in the other program")
            added.remove(renamed)
    lines += [f"+ method {m.name}" for m in added]
    for name, method in ours.items():
        if name in theirs:
            lines += [f"{name}: {line}" for line in _diff_methods(method, theirs[name], instructions)]
    for key in sorted(a.named_data.keys() | b.named_data.keys()):
        before, after = a.named_data.get(key), b.named_data.get(key)
        if before != after:
            lines += _changed(f"named data {key}", _blob(before), _blob(after))
    return lines


def _changed(what: str, before: str | None, after: str | None) -> list[str]:
    if before == after:
        return []
    return [f"- {what}: {before}"] * (before is not None) + [f"+ {what}: {after}"] * (after is not None)


def _blob(content: bytes | None) -> str | None:
    return None if content is None else f"{len(content)} B, sha256 {hashlib.sha256(content).hexdigest()[:12]}"


def _diff_methods(a: Method, b: Method, instructions: bool) -> list[str]:
    lines: list[str] = []
    for what, before, after in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        for k in range(max(len(before), len(after))):
            old = _value(a, before[k]) if k < len(before) else None
            new = _value(b, after[k]) if k < len(after) else None
            lines += _changed(f"{what} {k}", old, new)
    for k in range(max(len(a.buffer_sizes), len(b.buffer_sizes))):
        lines += _changed(f"memory {k + 1}", _size(a, k), _size(b, k))
    for k in range(max(len(a.delegates), len(b.delegates))):
        lines += _changed(f"delegate {k}", _delegate(a, k), _delegate(b, k))
    lines += _contents(a, b)
    lines += _listing(a, b) if instructions else _operators(a, b)
    return lines


def _size(method: Method, k: int) -> str | None:
    return f"{method.buffer_sizes[k]} B" if k < len(method.buffer_sizes) else None


def _delegate(method: Method, k: int) -> str | None:
    if k >= len(method.delegates):
        return None
    d = method.delegates[k]
    specs = "".join(f", {s.key}={_blob(s.value)}" for s in d.specs)
    return f"{d.backend}, {_blob(d.payload)}{specs}"


def _value(method: Method, index: int) -> str:
    value = method.values[index]
    return f"{tensor_text(value)} {place_text(value)}" if isinstance(value, Tensor) else str(value)


def _contents(a: Method, b: Method) -> list[str]:
    """Constants and initial values that only one side has, by content."""

    def count(method: Method) -> Counter[str]:
        found: Counter[str] = Counter()
        for _, t in method.tensors():
            if t.data is not None:
                kind = "constant" if t.allocation is None else "initial value"
                found[f"{kind}{f' {t.name}' if t.name else ''} {tensor_text(t)}, {_blob(t.data)}"] += 1
        return found

    before, after = count(a), count(b)
    lines = [f"- {text}" + (f" x{n}" if n > 1 else "") for text, n in (before - after).items()]
    return lines + [f"+ {text}" + (f" x{n}" if n > 1 else "") for text, n in (after - before).items()]


def _operators(a: Method, b: Method) -> list[str]:
    def count(method: Method) -> Counter[str]:
        return Counter(i.operator for _, _, i in method.instructions() if isinstance(i, KernelCall))

    before, after = count(a), count(b)
    return [
        f"{'-' if before[name] > after[name] else '+'} {name}: {before[name]} -> {after[name]} calls"
        for name in sorted(before.keys() | after.keys())
        if before[name] != after[name]
    ]


def _listing(a: Method, b: Method) -> list[str]:
    def text(method: Method) -> list[str]:
        # Numbered in order of appearance, so that values that only the other program has do not shift the rest.
        names = names_of_values(method)
        order: dict[int, str] = {}
        for _, _, instruction in method.instructions():
            for index in getattr(instruction, "args", []):
                if names[index].startswith("%"):
                    order.setdefault(index, f"%{len(order)}")
        names.update(order)
        return [instruction_text(method, i, names, places=False) for _, _, i in method.instructions()]

    return [
        f"{line[0]} {line[1:]}"
        for line in difflib.unified_diff(text(a), text(b), lineterm="", n=0)
        if line[:3] not in ("---", "+++") and line[:2] != "@@"
    ]
