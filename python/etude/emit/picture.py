"""The memory plan as a picture: buffers over time, as text and as SVG.

Time runs to the right, one column per instruction, with one before the first (inputs are filled) and one after the
last (outputs are read). Memory goes up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate

from . import flow
from .checks import checked
from .errors import EmitError
from .listing import Clips, check_positive, instruction_name, names_of_values, plural, tensor_text
from .model import Method
from .verify import guess_delegate_outputs

_COLOURS = ("#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6", "#fb9a99", "#ffed6f", "#d9c7a8", "#8dd3c7")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_REST = "#"


@dataclass(slots=True)
class Span:
    """A buffer in planned memory while it is needed; `columns` (bit set) are the points of `Flow.occupied`.

    `maker` says what first gives it content. Results of two branches may lie at the same place and both seem to be
    needed after them: only one of them is.
    """

    name: str
    text: str
    maker: str
    memory_id: int
    offset: int
    size: int
    uses: flow.Uses
    columns: int = field(init=False)

    def __post_init__(self) -> None:
        self.columns = flow.all_points(self.uses)

    def runs(self) -> list[tuple[int, int]]:
        """(first, last) column of each unbroken stretch."""
        return flow.runs(self.columns)

    def area(self) -> int:
        """Bytes times columns."""
        return self.size * self.columns.bit_count()


@checked(EmitError)
def spans(method: Method) -> tuple[list[Span], int]:
    """(planned buffers of a method by memory id, time and place; number of columns); state is there all the time."""
    lives = flow.Flow(method, flow.same_place_views(method), guess_delegate_outputs(method))
    occupied = lives.occupied()
    always = (1 << lives.count + 2) - 1
    names = names_of_values(method)
    states = lives.needed_at_start()
    makers = _makers(lives)
    found = []
    for index, tensor in method.tensors():
        if tensor.allocation is None or lives.root(index) != index or not tensor.nbytes:
            continue
        is_state = index in states or tensor.name is not None or tensor.data is not None
        uses = {index: always} if is_state else occupied.get(index, {})
        if uses:
            place = tensor.allocation
            maker = "state" if is_state else makers.get(index, "")
            found.append(Span(names[index], tensor_text(tensor), maker, place.memory_id, place.offset, tensor.nbytes, uses))
    found.sort(key=lambda s: (s.memory_id, s.columns & -s.columns, s.offset))
    return found, lives.count + 2


def _makers(lives: flow.Flow) -> dict[int, str]:
    """What first writes each buffer: the call of a kernel or delegate, or "input"."""
    clips = Clips()
    found = {lives.root(index): "input" for index in lives.method.inputs}
    for point, e in enumerate(lives.effects):
        for value in e.writes:
            root = lives.root(value)
            if root not in found:
                found[root] = instruction_name(lives.method, lives.instructions[point], clips)
    return found


def most_in_use(size: int, here: Sequence[Span]) -> int:
    """Bytes that are needed at the busiest moment, or more: buffers that share a place count twice, but not beyond the memory's size."""
    steps: dict[int, int] = {}
    for span in here:
        for first, last in span.runs():
            steps[first] = steps.get(first, 0) + span.size
            steps[last + 1] = steps.get(last + 1, 0) - span.size
    return min(size, max(accumulate(steps[at] for at in sorted(steps)), default=0))


def _memories(method: Method, found: Sequence[Span]) -> list[tuple[int, int, list[Span]]]:
    """(memory id, bytes, its buffers) of every memory that has buffers."""
    by_id: dict[int, list[Span]] = {}
    for span in found:
        by_id.setdefault(span.memory_id, []).append(span)
    return [(k, method.buffer_sizes[k - 1], here) for k, here in sorted(by_id.items())]


def _headline(memory_id: int, size: int, here: Sequence[Span]) -> str:
    return f"memory {memory_id}: {size} B, at most {most_in_use(size, here)} B in use at once, {plural(len(here), 'buffer')}"


def _when(span: Span, columns: int) -> str:
    """The time of a buffer in words, by instructions."""
    runs = span.runs()
    if runs == [(0, columns - 1)]:
        return "always"

    def name(column: int) -> str:
        return "start" if column == 0 else "end" if column == columns - 1 else str(column - 1)

    return ", ".join(name(a) if a == b else f"{name(a)}-{name(b)}" for a, b in runs)


def _tick(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... that is not below `least`."""
    step = 1
    while step < least:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step


# -- text -----------------------------------------------------------------------------------------------------------


@checked(EmitError)
def plan_text(method: Method, *, width: int = 72, height: int = 16) -> str:
    """The plan in letters, per memory id: a map of at most `height` lines and `width` columns, and a legend.

    Where there are more buffers than letters, those that take the least room share the sign "#".
    """
    check_positive(width=width, height=height)
    found, columns = spans(method)
    parts = []
    for memory_id, size, here in _memories(method, found):
        chosen = sorted(range(len(here)), key=lambda i: -here[i].area())[: len(_LETTERS)]
        letters = dict(zip(sorted(chosen), _LETTERS, strict=False))
        signs = [letters.get(i, _REST) for i in range(len(here))]
        lines = [_headline(memory_id, size, here), *_grid(here, signs, size, columns, width, height)]
        parts.append("\n".join([*lines, *_legend(here, signs, columns)]))
    return "\n\n".join(parts) if parts else "no planned memory"


def _legend(here: Sequence[Span], signs: Sequence[str], columns: int) -> list[str]:
    rows = [("", "name", "type", "offset", "bytes", "time", "made by")]
    rows += [
        (sign, s.name, s.text, str(s.offset), str(s.size), _when(s, columns), s.maker)
        for s, sign in zip(here, signs, strict=True)
        if sign != _REST
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if k in (3, 4) else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append(f"  {'  '.join(cells)}".rstrip())
    rest = [s for s, sign in zip(here, signs, strict=True) if sign == _REST]
    if rest:
        lines.append(f"  {_REST}  {plural(len(rest), 'more buffer')}, of at most {max(s.size for s in rest)} bytes")
    return lines


def _grid(here: Sequence[Span], signs: Sequence[str], size: int, columns: int, width: int, height: int) -> list[str]:
    stretch = max(1, min(8, width // columns))
    across, up = min(width, columns), min(height, max(1, len(here) * 2))
    label = len(str(size))
    cells: list[list[tuple[float, str]]] = [[(0.0, ".")] * across for _ in range(up)]
    for span, sign in zip(here, signs, strict=True):
        times = _times(span, columns, across)
        for row in range(span.offset * up // size, -(-(span.offset + span.size) * up // size)):
            low, high = row * size / up, (row + 1) * size / up
            part = min(high, span.offset + span.size) - max(low, span.offset)
            for cell, time in times.items():
                if part * time > cells[row][cell][0]:
                    cells[row][cell] = part * time, sign
    lines = [
        f"  {row * size // up:{label}} |{''.join(sign * stretch for _, sign in cells[row])}|" for row in reversed(range(up))
    ]
    return [*lines, f"  {'':{label}}  {_axis(columns, across, stretch)}"]


def _times(span: Span, columns: int, across: int) -> dict[int, int]:
    """How many columns of each cell the buffer is needed in; cell c covers columns from c * columns // across on."""
    times: dict[int, int] = {}
    for first, last in span.runs():
        for cell in range(_cell(first, columns, across), _cell(last, columns, across) + 1):
            begin, end = cell * columns // across, (cell + 1) * columns // across
            times[cell] = times.get(cell, 0) + min(last + 1, end) - max(first, begin)
    return times


def _cell(column: int, columns: int, across: int) -> int:
    """The cell that a column belongs to."""
    cell = column * across // columns
    return cell if (cell + 1) * columns // across > column else cell + 1


def _axis(columns: int, across: int, stretch: int) -> str:
    """Numbers of instructions under their columns."""
    count = columns - 2
    step = _tick((len(str(count)) + 1) * columns / (across * stretch))
    line = ""
    for i in range(0, count, step):
        at = _cell(i + 1, columns, across) * stretch
        line = line.ljust(at) + str(i) if len(line) < at or not line else line
    return (line + "  instruction") if line else ""


# -- SVG ------------------------------------------------------------------------------------------------------------


@checked(EmitError)
def plan_svg(*methods: Method, width: int = 1000, height: int = 360) -> str:
    """The plans of methods as an SVG document: one panel of the given size in pixels per method and memory id.

    A memory that holds nothing but state gets a lower panel. Hovering over a buffer shows what it is, where, when
    and what made it.
    """
    check_positive(width=width, height=height)
    left, gap, y = 80, 24, 30
    body: list[str] = []
    for method in methods:
        found, columns = spans(method)
        memories = _memories(method, found)
        what = f"planned memory over {plural(columns - 2, 'instruction')}" if memories else "no planned memory"
        body.append(f'<text x="8" y="{y - 10}" font-size="14">{escape(method.name)}: {what}</text>')
        for memory_id, size, here in memories:
            static = all(s.runs() == [(0, columns - 1)] for s in here)
            tall = min(height, 24 * len(here)) if static else height
            body.append(f'<text x="{left}" y="{y + 10}">{_headline(memory_id, size, here)}</text>')
            body += _panel(size, here, columns, (left, y + 16, width, tall))
            y += tall + 16 + 2 * gap
        y += gap
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 20}" height="{y - 20}" font-family="sans-serif" font-size="11">'
    return "\n".join([head, *body, "</svg>"]) + "\n"


def _panel(size: int, here: Sequence[Span], columns: int, box: tuple[int, int, int, int]) -> list[str]:
    x, y, width, height = box
    out = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="#f4f4f4" stroke="#999"/>']
    out += _axes(size, columns, box)
    step = width / columns
    for k, s in enumerate(here):
        bottom, tall = y + height - s.offset / size * height, max(1.0, s.size / size * height)
        maker = f", made by {s.maker}" if s.maker not in ("state", "") else ""
        title = escape(f"{s.name}: {s.text}, {s.size} B at {s.offset}, {_when(s, columns)}{maker}")
        for first, last in s.runs():
            wide = (last - first + 1) * step
            # Where there is no room for one, an outline would hide what it surrounds.
            line = ' stroke="#777" stroke-width="0.5"' if tall >= 3 and wide >= 3 else ""
            out.append(
                f'<rect x="{x + first * step:.2f}" y="{bottom - tall:.2f}" width="{wide:.2f}" '
                f'height="{tall:.2f}" fill="{_COLOURS[k % len(_COLOURS)]}"{line}><title>{title}</title></rect>'
            )
            if tall >= 12 and wide >= 7 * len(s.name) + 4:
                out.append(
                    f'<text x="{x + first * step + 3:.1f}" y="{bottom - tall + 11:.1f}" fill="#222">{escape(s.name)}</text>'
                )
    return out


def _axes(size: int, columns: int, box: tuple[int, int, int, int]) -> list[str]:
    """Instructions below, bytes on the left."""
    x, y, width, height = box
    step, base = width / columns, y + height + 14
    out = [f'<text x="{x}" y="{base}">start</text>', f'<text x="{x + width}" y="{base}" text-anchor="end">end</text>']
    every = _tick(45 / step)
    for i in range(0, columns - 2, every):
        at = x + (i + 1.5) * step
        if x + 40 <= at <= x + width - 36:
            out.append(f'<text x="{at:.1f}" y="{base}" text-anchor="middle" fill="#666">{i}</text>')
    for value in range(0, size + 1, _tick(size * 30 / height)):
        at = y + height - value / size * height
        out.append(f'<text x="{x - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#666">{value:,}</text>')
        out.append(f'<line x1="{x - 4}" y1="{at:.1f}" x2="{x}" y2="{at:.1f}" stroke="#999"/>')
    return out
