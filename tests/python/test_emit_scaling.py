"""`diff` and `merge` of files that are made to keep them busy: work and memory grow as the files do.

Work is counted in lines of etude.emit that run, memory in bytes that are allocated, for 1, 2 and 4 times the size; no clock is asked.
What C does at one go, such as sorting and big integers, shows in the bytes.
"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

import etude.emit.model as M
from counting import bytes_taken, lines_run
from etude.emit.diff import diff_programs
from etude.emit.dtypes import DType
from etude.emit.flow import Flow, bits, is_dense, same_place_views
from etude.emit.lines import differences
from etude.emit.merge import MergeError, Source, merge_programs, state_memories
from etude.emit.reader import read_program
from etude.emit.verify import guess_delegate_outputs
from etude.emit.writer import program_bytes
from paths import CORPUS

ADD, VIEW, CAT = "aten::add.out", "executorch_prim::et_view.default", "aten::cat.out"


def tensor(offset=None, name=None, data=None, size=4, dynamic=False):
    place = None if offset is None else M.Allocation(1, offset)
    return M.Tensor(DType.float32, (size,), (0,), M.Dynamism(1 if dynamic else 0), place, data, name)


def method(values, instructions, outputs=(), inputs=(), name="forward"):
    ends = [v.allocation.offset + v.nbytes for v in values if isinstance(v, M.Tensor) and v.allocation is not None]
    sizes = [max(ends)] if ends else []
    return M.Method(name, list(values), list(inputs), list(outputs), [M.Chain(list(instructions))], buffer_sizes=sizes)


def add(a, b, one):
    return M.KernelCall(ADD, [a, a, one, b, b])


def chain(n, name="forward"):
    return method([tensor(16 * i) for i in range(n + 1)] + [M.Int(1)], [add(i, i + 1, n + 1) for i in range(n)], [n], [0], name)


def all_results(n):
    found = chain(n)
    found.outputs = list(range(n))
    return found


def named_states(n):
    return method([tensor(16 * i, f"s{i}") for i in range(n)] + [M.Int(1)], [add(i, i, n) for i in range(n)], [0])


def one_instruction(n):
    return method([tensor(0), tensor(16), M.Int(1)], [add(0, 1, 2)] * n, [1], [0])


def only_inputs(n):
    return method([tensor() for _ in range(n)], [], range(n), range(n))


def one_long_list(n):
    return method([tensor(0), tensor(16), M.TensorList([0] * n), M.Int(0)], [M.KernelCall(CAT, [2, 3, 1, 1])] * n, [1], [0])


def one_long_list_of_results(n):
    values = [tensor(16 * i) for i in range(n)] + [M.TensorList(list(range(n))), M.Int(0), M.Int(1)]
    return method(values, [M.KernelCall("aten::unbind_copy.int_out", [0, n + 1, n, n])] * n, range(n), [0])


def outputs_of_one_list(n):
    return method([tensor(0), M.IntList([2] * n), M.Int(1)], [], [1] * n, [0])


def long_names(n):
    """An operator and a tensor whose names take as much of the file as the instructions do, and are taken by each of them."""
    values = [tensor(0, "t" * 16 * n), tensor(16), M.String("s" * 16 * n)]
    return method(values, [M.KernelCall("my::" + "o" * 16 * n, [2, 0, 1, 1])] * n, [0] * n)


def unknown_operators(n):
    found = chain(n)
    for i, call in enumerate(found.chains[0].instructions):
        call.operator = f"my::op{i}.out"
    return found


def one_constant(n):
    return method([tensor(0)] + [tensor(data=bytes(4 * n), size=n) for _ in range(n)], [add(i + 1, 0, 0) for i in range(n)], [0])


def delegates(n):
    found = method([tensor(0), tensor(16)], [M.DelegateCall(i, [0, 1]) for i in range(n)], [1], [0])
    found.delegates = [M.Delegate("NullBackend", b"p%d" % i) for i in range(n)]
    return found


def view_of_view(n):
    values = [tensor(0, dynamic=True) for _ in range(n + 1)] + [M.IntList([n + 2]), M.Int(4)]
    return method(values, [M.KernelCall(VIEW, [i, n + 1, i + 1]) for i in range(n)], [n], [0])


def views_of_several(n):
    """Each view shows one thing and then another, so that all of them have to be followed."""
    half = n // 2
    values = [tensor(0, dynamic=True) for _ in range(half + 2)] + [M.IntList([half + 3]), M.Int(4)]
    calls = [M.KernelCall(VIEW, [source, half + 2, 2 + i]) for source in (0, 1) for i in range(half)]
    return method(values, calls, [half + 1], [0, 1])


def one_place(n):
    """Tensors at one place, half of which are written and half are only read, as the exporter leaves views."""
    half = n // 2
    values = [tensor(0) for _ in range(n)] + [tensor(16), M.Int(1)]
    return method(values, [add(n, i, n + 1) for i in range(half)] + [add(half + i, n, n + 1) for i in range(half)], [n], [n])


def jumps(n):
    found = chain(n)
    found.values.append(M.Bool(False))
    found.chains[0].instructions = [
        step for i, call in enumerate(found.chains[0].instructions) for step in (M.JumpFalse(n + 2, (37 * i) % n), call)
    ]
    return found


def moves(n):
    found = chain(n)
    found.chains[0].instructions += [M.Move(i, n) for i in range(n)]
    return found


def in_another_order(n):
    found = chain(n)
    random.Random(n).shuffle(found.chains[0].instructions)
    return found


def few_kinds_of_lines(n):
    draw = random.Random(n)
    return method([tensor(0), tensor(16), tensor(32), M.Int(1)], [add(draw.randrange(3), draw.randrange(3), 3) for _ in range(n)], [1], [0])


def nested_anchors(n):
    """Lines of which in each piece but one comes once: pieces within pieces."""
    found = chain(n)
    calls = found.chains[0].instructions
    found.chains[0].instructions = [calls[min(i, n - i) % n] for i in range(n)]
    return found


def many_methods(n):
    return [chain(1, f"m{i}") for i in range(n // 8)]


def methods_with_states(n):
    found = [named_states(8) for _ in range(n // 8)]
    for i, one in enumerate(found):
        one.name = f"m{i}"
        for k, value in enumerate(one.values[:8]):
            value.name, value.allocation = f"s{i}_{k}", M.Allocation(1, 16 * (8 * i + k))
        one.buffer_sizes = [128 * (n // 8)]
    return found


KINDS = [
    chain, all_results, named_states, one_instruction, only_inputs, one_long_list, one_long_list_of_results, outputs_of_one_list,
    long_names, unknown_operators, one_constant, delegates, view_of_view, views_of_several, one_place, jumps, moves, in_another_order,
    few_kinds_of_lines, nested_anchors, many_methods, methods_with_states,
]  # fmt: skip


def program(kind, n):
    made = kind(n)
    return M.Program(made if isinstance(made, list) else [made])


def merged(a, b):
    return merge_programs([Source("a", a), Source("b", b, {m.name: f"other_{m.name}" for m in b.methods})])


def renamed(found):
    for one in found.methods:
        one.name += "_renamed"
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_work_and_memory_grow_as_the_files_do(kind):
    costs = []
    size = 192 if kind in (moves, jumps, views_of_several) else 48  # what is small is followed along each path
    for n in (size, 2 * size, 4 * size):
        file = program_bytes(program(kind, n))
        a, b, c = read_program(file), program(kind, n - 8), renamed(read_program(file))
        works = [("diff", diff_programs, a, b), ("diff of renamed methods", diff_programs, a, c), ("merge", merged, a, b)]
        costs.append((len(file), [(what, lines_run(lambda f=f, x=x, y=y: f(x, y)), bytes_taken(lambda f=f, x=x, y=y: f(x, y)))
                                  for what, f, x, y in works]))  # fmt: skip
        assert len(program_bytes(merged(a, b))) < 3 * len(file) + 1000
    for (small, before), (large, after) in pairwise(costs):
        assert large < 2 * small
        for (what, lines, peak), (_, more_lines, more_peak) in zip(before, after):
            assert more_lines < 2.4 * lines + 1000, (what, costs)
            assert more_peak < 2.4 * peak + 20_000, (what, costs)


def test_long_texts_differ_by_their_digest():
    """They are shown by their beginnings: two that differ at the end only are told apart all the same."""
    a, b = (read_program(program_bytes(program(long_names, 64))) for _ in range(2))
    assert diff_programs(a, b) == []
    b.methods[0].chains[0].instructions[3].operator += "x"
    removed, added = diff_programs(a, b)
    assert removed.startswith("forward: - my::ooo") and added.startswith("forward: + my::ooo") and "1029 characters" in added
    lists = [program(one_long_list, 100) for _ in range(2)]
    lists[1].methods[0].values[2].items[77] = 1
    found = diff_programs(*lists)
    assert len(found) == 200 and max(map(len, found)) < 300 and "100 items" in found[0]


def test_the_fewest_lines_where_they_are_few():
    """Small lists by the longest common subsequence; the script turns one side into the other, whatever the lines are."""
    draw = random.Random(0)
    for _ in range(2000):
        a, b = ([f"{draw.randrange(4)}" for _ in range(draw.randrange(12))] for _ in range(2))
        script = differences(a, b)
        longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i, x in enumerate(a):
            for k, y in enumerate(b):
                longest[i + 1][k + 1] = longest[i][k] + 1 if x == y else max(longest[i][k + 1], longest[i + 1][k])
        assert len(script) == len(a) + len(b) - 2 * longest[-1][-1]
    for lines in (3, 30, 300, 3000):
        a = [f"{draw.randrange(lines)}" for _ in range(1000)]
        b = [line for line in a if draw.random() < 0.9] + [f"{draw.randrange(lines)}" for _ in range(100)]
        script = differences(a, b)
        kept_a, kept_b = (list(side) for side in (a, b))
        for line in script:
            (kept_a if line[0] == "-" else kept_b).remove(line[2:])
        assert sorted(kept_a) == sorted(kept_b)


def test_an_edit_in_a_large_method():
    """What is left, right and between of what changed is no difference, though most lines come again and again."""
    a, b = program(few_kinds_of_lines, 3000), program(few_kinds_of_lines, 3000)
    b.methods[0].chains[0].instructions.insert(1500, M.KernelCall("aten::mul.out", [0, 1, 2, 2]))
    assert [line[:30] for line in diff_programs(a, b)] == ["forward: + aten::mul.out(self="]
    a, b = program(chain, 3000), program(chain, 3000)
    for at in (100, 1000, 2900):
        b.methods[0].chains[0].instructions[at].operator = "aten::sub.out"
    assert len(diff_programs(a, b)) == 6


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.pte")), ids=lambda path: path.stem)
def test_state_is_found_as_before(path):
    """The quick ways give what the sets for every point, and the search through all ranges, give."""
    found = read_program(path)
    for one in found.methods:
        assert not is_dense(one)
        lives = Flow(one, same_place_views(one), guess_delegate_outputs(one))
        inputs = {lives.root(i) for i in one.inputs}
        thorough = {buffer for value in bits(lives.live[0]) for buffer in lives.buffers(value, 0)} - inputs
        assert lives.needed_at_start() == {b for b in thorough if isinstance(one.values[b], M.Tensor) and not one.values[b].is_constant}
    expected = {k for m in found.methods for k, size in enumerate(m.buffer_sizes, 1) if size}
    for one in found.methods:
        places = [(i, t.allocation.memory_id, t.allocation.offset, t.allocation.offset + t.nbytes, t.name)
                  for i, t in one.tensors() if t.allocation is not None]  # fmt: skip
        named = [p for p in places if p[4] is not None and p[0] not in one.inputs]
        expected -= {m for _, m, s, e, _ in places if not any(m == n[1] and n[2] <= s and e <= n[3] for n in named)}
        expected -= {k for k, size in enumerate(one.buffer_sizes, 1) if size and k not in {p[1] for p in places}}
    assert state_memories(found) == expected


def test_dense_methods_keep_their_memories_apart():
    """Where following would take too long, all memory counts as state: the merged program is right, if larger."""
    dense = program(one_long_list, 200)
    assert is_dense(dense.methods[0])
    found = merged(dense, program(chain, 10))
    assert [m.buffer_sizes[0] == 0 for m in found.methods] == [True, False]


def test_no_more_memories_than_there_can_be():
    found = program(chain, 4)
    one = found.methods[0]
    one.buffer_sizes += [16] * 1030
    one.values[0].name = "s"
    with pytest.raises(MergeError, match="1024"):
        merged(found, program(chain, 3))


def test_checking_a_program():
    costs = [lines_run(lambda n=n: M.check_program(program(chain, n))) for n in (500, 1000, 2000)]
    for before, after in pairwise(costs):
        assert after < 2.1 * before
