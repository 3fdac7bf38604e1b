"""The memory plan as a picture: buffers over time, as text and as SVG.

Time runs to the right, one column per instruction, with one before the first (inputs are filled) and one after the
last (outputs are read). Memory goes up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html import escape

from . import flow
from .listing import names_of_values, tensor_text
from .model import Method
from .verify import guess_delegate_outputs

_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#ff9da7")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(slots=True)
class Span:
    """A buffer in planned memory while it is needed; `columns` (bit set) are the points of `Flow.occupied`.

    Results of two branches may lie at the same place and both seem to be needed after them: only one of them is.
    """

    name: str
    text: str
    memory_id: int
    offset: int
    size: int
    uses: flow.Uses
    columns: int = field(init=False)

    def __post_init__(self) -> None:
        self.columns = flow.all_points(self.uses)

    def runs(self) -> list[tuple[int, int]]:
        """(first, last) column of each unbroken stretch."""
        result: list[tuple[int, int]] = []
        for column in flow.bits(self.columns):
            if result and result[-1][1] == column - 1:
                result[-1] = result[-1][0], column
            else:
                result.append((column, column))
        return result


def spans(method: Method) -> tuple[list[Span], int]:
    """(planned buffers of a method, number of columns); state is there all the time."""
    lives = flow.Flow(method, flow.same_place_views(method), guess_delegate_outputs(method))
    occupied = lives.occupied()
    always = (1 << lives.count + 2) - 1
    names = names_of_values(method)
    states = lives.needed_at_start()
    found = []
    for index, tensor in method.tensors():
        if tensor.allocation is None or lives.root(index) != index or not tensor.nbytes:
            continue
        is_state = index in states or tensor.name is not None or tensor.data is not None
        uses = {index: always} if is_state else occupied.get(index, {})
        if uses:
            place = tensor.allocation
            found.append(Span(names[index], tensor_text(tensor), place.memory_id, place.offset, tensor.nbytes, uses))
    return found, lives.count + 2


def plan_text(method: Method, *, width: int = 72, height: int = 16) -> str:
    """The plan in letters, per memory id: each a map of at most `height` lines and `width` columns, and a legend.

    A cell shows the buffer that fills most of it; a dot is memory that is free.
    """
    found, columns = spans(method)
    parts = []
    for memory_id, size in enumerate(method.buffer_sizes, 1):
        here = sorted((s for s in found if s.memory_id == memory_id), key=lambda s: (s.offset, flow.bits(s.columns)[0]))
        if not here:
            continue
        use: Counter[int] = Counter()
        for s in here:
            use.update(dict.fromkeys(flow.bits(s.columns), s.size))
        most = max(use.values())
        lines = [f"memory {memory_id}: {size} B, at most {most} B in use, {len(here)} buffers, {columns - 2} instructions"]
        lines += _grid(here, size, columns, width, height)
        lines += [
            f"  {_LETTERS[i % len(_LETTERS)]} {s.name}:{s.text} {s.offset}+{s.size} B, {_when(s, columns)}"
            for i, s in enumerate(here)
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _when(span: Span, columns: int) -> str:
    """The time of a buffer in words."""
    runs = span.runs()
    if runs == [(0, columns - 1)]:
        return "always"

    def name(column: int) -> str:
        return "start" if column == 0 else "end" if column == columns - 1 else str(column - 1)

    return ", ".join(name(a) if a == b else f"{name(a)}-{name(b)}" for a, b in runs)


def _grid(here: list[Span], size: int, columns: int, width: int, height: int) -> list[str]:
    across, up = min(width, columns), min(height, max(1, len(here) * 2))
    label = len(str(size))
    lines = []
    for row in reversed(range(up)):
        low, high = row * size / up, (row + 1) * size / up
        cells = []
        for cell in range(across):
            first, last = cell * columns // across, max(cell * columns // across + 1, (cell + 1) * columns // across)
            best, filled = ".", 0.0
            for i, s in enumerate(here):
                part = max(0.0, min(high, s.offset + s.size) - max(low, s.offset))
                time = (s.columns >> first & (1 << last - first) - 1).bit_count()
                if part * time > filled:
                    best, filled = _LETTERS[i % len(_LETTERS)], part * time
            cells.append(best)
        lines.append(f"  {int(low):{label}} |{''.join(cells)}|")
    return lines


def plan_svg(method: Method, *, width: int = 1000, height: int = 360) -> str:
    """The plan as an SVG document, one panel of the given size in pixels per memory id.

    Hovering over a buffer shows what it is, where, and when.
    """
    found, columns = spans(method)
    used = [(k, size) for k, size in enumerate(method.buffer_sizes, 1) if size and any(s.memory_id == k for s in found)]
    left, top = 90, 30
    total = top + len(used) * (height + 50)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 20}" height="{total}" '
        'font-family="sans-serif" font-size="11">',
        f'<text x="8" y="18" font-size="13">{escape(method.name)}: planned memory over {columns - 2} instructions</text>',
    ]
    for panel, (memory_id, size) in enumerate(used):
        y = top + panel * (height + 50)
        out += _panel(memory_id, size, [s for s in found if s.memory_id == memory_id], columns, (left, y, width, height))
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _panel(memory_id: int, size: int, here: list[Span], columns: int, box: tuple[int, int, int, int]) -> list[str]:
    x, y, width, height = box
    step = width / columns
    out = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="#f4f4f4" stroke="#999"/>',
        f'<text x="8" y="{y + 12}">memory {memory_id}</text>',
        f'<text x="8" y="{y + 26}">{size} B</text>',
        f'<text x="{x}" y="{y + height + 14}">start</text>',
        f'<text x="{x + width}" y="{y + height + 14}" text-anchor="end">end</text>',
    ]
    every = max(1, (columns - 2) // 20)
    for i in range(0, columns - 2, every):
        out.append(f'<text x="{x + (i + 1.5) * step:.1f}" y="{y + height + 14}" text-anchor="middle" fill="#666">{i}</text>')
    for k, s in enumerate(here):
        bottom, tall = y + height - s.offset / size * height, max(0.5, s.size / size * height)
        title = escape(f"{s.name}: {s.text}, {s.size} B at {s.offset}, {_when(s, columns)}")
        for first, last in s.runs():
            out.append(
                f'<rect x="{x + first * step:.2f}" y="{bottom - tall:.2f}" width="{(last - first + 1) * step:.2f}" '
                f'height="{tall:.2f}" fill="{_COLOURS[k % len(_COLOURS)]}" stroke="#fff" stroke-width="0.5">'
                f"<title>{title}</title></rect>"
            )
            if tall >= 12 and (last - first + 1) * step >= 7 * len(s.name):
                out.append(f'<text x="{x + first * step + 3:.1f}" y="{bottom - tall + 11:.1f}" fill="#fff">{escape(s.name)}</text>')
    return out


