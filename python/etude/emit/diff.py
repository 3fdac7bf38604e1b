"""What differs between two programs, as text, in time and memory near to linear in the files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from .checks import checked
from .errors import EmitError
from .lines import differences
from .listing import Clips, instruction_text, names_of_values, place_text, tensor_text
from .model import Delegate, KernelCall, Method, Program, Tensor


@checked(EmitError)
def diff_programs(a: Program, b: Program, *, instructions: bool = True) -> list[str]:
    """Lines that tell b from a; empty if the two are equivalent.

    Compared are methods, their inputs, outputs, memory and instructions (operands by what they are, not by number),
    constants and payloads by content, and named data. With instructions=False operators are only counted.
    """
    context = _Context()
    lines: list[str] = []
    theirs = {m.name: m for m in b.methods}
    ours = {m.name: m for m in a.methods}
    added: dict[str, list[Method]] = {}  # by all that is compared
    for method in [m for m in b.methods if m.name not in ours]:
        added.setdefault(context.fingerprint(method), []).append(method)
    for method in [m for m in ours.values() if m.name not in theirs]:
        same = added.get(context.fingerprint(method), [])
        renamed = f", called {context.clips[same.pop(0).name]} in the other program" if same else ""
        lines.append(f"- method {context.clips[method.name]}{renamed}")
    left = {m.name for group in added.values() for m in group}
    lines += [f"+ method {context.clips[m.name]}" for m in b.methods if m.name in left]
    for name, method in ours.items():
        if name in theirs:
            lines += [f"{context.clips[name]}: {line}" for line in context.diff(method, theirs[name], instructions)]
    for key in sorted(a.named_data.keys() | b.named_data.keys()):
        before, after = a.named_data.get(key), b.named_data.get(key)
        if before != after:
            lines += _changed(f"named data {context.clips[key]}", context.blob(before), context.blob(after))
    return lines


def _changed(what: str, before: str | None, after: str | None) -> list[str]:
    if before == after:
        return []
    return [f"- {what}: {before}"] * (before is not None) + [f"+ {what}: {after}"] * (after is not None)


class _Context:
    """Texts of what is compared; contents and long texts, which many places may refer to, are looked at once."""

    def __init__(self) -> None:
        self.clips = Clips()
        self.blobs: dict[bytes, str] = {}

    def blob(self, content: bytes | None) -> str | None:
        if content is None:
            return None
        if content not in self.blobs:
            self.blobs[content] = f"{len(content)} B, sha256 {hashlib.sha256(content).hexdigest()[:12]}"
        return self.blobs[content]

    def fingerprint(self, method: Method) -> str:
        """The same for two methods without differences."""
        found = hashlib.sha256()
        for part in (*self.parts(method), Counter(self.contents(method)).items(), self.listing(method)):
            lines = sorted(map(str, part)) if not isinstance(part, list) else part
            found.update(repr(len(lines)).encode())
            for line in lines:
                found.update(line.encode("utf-8", "surrogatepass") + b"\0")
        return found.hexdigest()

    def parts(self, method: Method) -> tuple[list[str], list[str], list[str], list[str]]:
        """Inputs, outputs, memories, delegates."""
        values = _Values(method, self.clips)
        return (
            [values[i] for i in method.inputs],
            [values[i] for i in method.outputs],
            [f"{size} B" for size in method.buffer_sizes],
            [self.delegate(d) for d in method.delegates],
        )

    def delegate(self, delegate: Delegate) -> str:
        specs = "".join(f", {self.clips[s.key]}={self.blob(s.value)}" for s in delegate.specs)
        return f"{self.clips[delegate.backend]}, {self.blob(delegate.payload)}{specs}"

    def contents(self, method: Method) -> Iterator[str]:
        """Constants and initial values."""
        for _, t in method.tensors():
            if t.data is not None:
                kind = "constant" if t.allocation is None else "initial value"
                yield f"{kind}{f' {self.clips[t.name]}' if t.name else ''} {tensor_text(t)}, {self.blob(t.data)}"

    def listing(self, method: Method) -> list[str]:
        """Instructions, with values numbered in order of appearance, so that what only the other program has does not shift the rest."""
        names = names_of_values(method, self.clips)
        order: dict[int, str] = {}
        for _, _, instruction in method.instructions():
            for index in getattr(instruction, "args", []):
                if names[index].startswith("%"):
                    order.setdefault(index, f"%{len(order)}")
        names.update(order)
        return [instruction_text(method, i, names, places=False) for _, _, i in method.instructions()]

    def diff(self, a: Method, b: Method, instructions: bool) -> list[str]:
        lines: list[str] = []
        for what, before, after in zip(("input", "output", "memory", "delegate"), self.parts(a), self.parts(b), strict=True):
            first = 1 if what == "memory" else 0
            for k in range(max(len(before), len(after))):
                old, new = (side[k] if k < len(side) else None for side in (before, after))
                lines += _changed(f"{what} {k + first}", old, new)
        ours, theirs = Counter(self.contents(a)), Counter(self.contents(b))
        lines += [f"- {text}" + (f" x{n}" if n > 1 else "") for text, n in (ours - theirs).items()]
        lines += [f"+ {text}" + (f" x{n}" if n > 1 else "") for text, n in (theirs - ours).items()]
        return lines + (differences(self.listing(a), self.listing(b)) if instructions else _operators(a, b, self.clips))


class _Values(dict[int, str]):
    """Texts of inputs and outputs."""

    def __init__(self, method: Method, clips: Clips) -> None:
        super().__init__()
        self.method, self.clips = method, clips

    def __missing__(self, index: int) -> str:
        value = self.method.values[index]
        text = f"{tensor_text(value)} {place_text(value, self.clips)}" if isinstance(value, Tensor) else self.clips[str(value)]
        self[index] = text
        return text


def _operators(a: Method, b: Method, clips: Clips) -> list[str]:
    def count(method: Method) -> Counter[str]:
        return Counter(i.operator for _, _, i in method.instructions() if isinstance(i, KernelCall))

    before, after = count(a), count(b)
    return [
        f"{'-' if before[name] > after[name] else '+'} {clips[name]}: {before[name]} -> {after[name]} calls"
        for name in sorted(before.keys() | after.keys())
        if before[name] != after[name]
    ]
