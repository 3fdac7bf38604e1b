"""What differs between two lists of lines, in time near to linear, whatever the lines are.

Patience sorting: lines that both sides have exactly once are matched where they stand in the same order, and so divide the rest into
pieces, which are treated likewise. Small pieces are compared by their longest common subsequence; of others, which are made of lines that
come again and again, all but their common beginning and end counts as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

_TABLE = 4096  # cells of a table for a longest common subsequence: at most 64 for a line
_LEVELS = 8  # of pieces within pieces


def differences(a: Sequence[str], b: Sequence[str]) -> list[str]:
    """Lines that only one side has, in order: "- line" of `a`, then "+ line" of `b` that stand in its place."""
    numbers: dict[str, int] = {}
    ours = [numbers.setdefault(line, len(numbers)) for line in a]
    theirs = [numbers.setdefault(line, len(numbers)) for line in b]
    in_a, in_b = bytearray(len(a)), bytearray(len(b))  # 1: has a partner
    pieces = [(0, len(a), 0, len(b), 0)]
    while pieces:
        start, end, other, other_end, level = pieces.pop()
        pairs, rest = _ends(ours, theirs, start, end, other, other_end)
        start, end, other, other_end = rest
        if start < end and other < other_end:
            if (end - start) * (other_end - other) <= _TABLE:
                pairs += _common(ours[start:end], theirs[other:other_end], start, other)
            elif level < _LEVELS:
                anchors = _anchors(ours, theirs, *rest)
                pairs += anchors
                corners = [(start - 1, other - 1), *anchors, (end, other_end)] if anchors else []
                pieces += [(i + 1, k, j + 1, m, level + 1) for (i, j), (k, m) in pairwise(corners)]
        for i, j in pairs:
            in_a[i] = in_b[j] = 1
    return list(_script(a, b, in_a, in_b))


def _ends(a: list[int], b: list[int], i: int, k: int, j: int, m: int) -> tuple[list[tuple[int, int]], tuple[int, int, int, int]]:
    """Pairs of the common beginning and end of a[i:k] and b[j:m], and what is left between."""
    pairs = []
    while i < k and j < m and a[i] == b[j]:
        pairs.append((i, j))
        i, j = i + 1, j + 1
    while i < k and j < m and a[k - 1] == b[m - 1]:
        k, m = k - 1, m - 1
        pairs.append((k, m))
    return pairs, (i, k, j, m)


def _anchors(a: list[int], b: list[int], i: int, k: int, j: int, m: int) -> list[tuple[int, int]]:
    """Places of lines that a[i:k] and b[j:m] have once each: as many as stand in the same order in both."""
    once = Counter(b[j:m])
    places = {line: at for at, line in enumerate(b[j:m], j) if once[line] == 1}
    twice = Counter(a[i:k])
    candidates = [(at, places[line]) for at, line in enumerate(a[i:k], i) if twice[line] == 1 and line in places]
    ends: list[int] = []  # of rising sequences by length, the least last place in b
    last: list[int] = []  # and which candidate that is
    before: list[int] = []  # per candidate, the one before it in its sequence
    for number, (_, place) in enumerate(candidates):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length:length + 1], last[length:length + 1] = [place], [number]
    found = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(candidates[number])
        number = before[number]
    return found[::-1]


def _common(a: list[int], b: list[int], at: int, other: int) -> list[tuple[int, int]]:
    """Pairs of a longest common subsequence; `at` and `other` are where the lists begin."""
    table = [[0] * (len(b) + 1)]
    for x in reversed(a):
        below, row = table[-1], [0] * (len(b) + 1)
        for k in range(len(b) - 1, -1, -1):
            row[k] = below[k + 1] + 1 if x == b[k] else max(below[k], row[k + 1])
        table.append(row)
    table.reverse()  # table[i][k] is for a[i:] and b[k:]
    pairs = []
    i = k = 0
    while i < len(a) and k < len(b):
        if a[i] == b[k]:
            pairs.append((at + i, other + k))
            i, k = i + 1, k + 1
        elif table[i + 1][k] >= table[i][k + 1]:
            i += 1
        else:
            k += 1
    return pairs


def _script(a: Sequence[str], b: Sequence[str], in_a: bytearray, in_b: bytearray) -> Iterator[str]:
    j = 0
    for i, line in enumerate(a):
        if not in_a[i]:
            yield f"- {line}"
            continue
        while not in_b[j]:
            yield f"+ {b[j]}"
            j += 1
        j += 1
    yield from (f"+ {line}" for line in b[j:])
