"""`etude compare`: run two programs on the same inputs, or one against stored results, and show where they part.

Exit status 0 if all is within the tolerance, 1 if not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import etude
from etude import etrecord, intermediates
from etude.cli._backends import add_options
from etude.cli._common import add_limits, add_program, limits, open_program, pick_method, print_json
from etude.cli._errors import NamedError, about, tolerance
from etude.cli._inputs import Inputs, add_inputs, load_arrays, read_inputs
from etude.cli._targets import one_stdin, read_source
from etude.cli._values import from_bits, numbered

Array = np.ndarray[Any, Any]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("compare", help="run two programs on the same inputs and show where they part", description=__doc__)
    add_program(parser)
    parser.add_argument(
        "other", metavar="OTHER", help="another program (.pte), or outputs: an .npz of out0, out1, ... (and in0, in1, ...), "
        "or of METHOD__out0, ...",
    )  # fmt: skip
    parser.add_argument("--other-data", metavar="FILE.ptd", action="append", default=[], help="external data of the other program")
    add_options(parser)
    parser.add_argument("--method", metavar="NAME", help='which method (default: "forward", or the only one)')
    add_inputs(parser)
    parser.add_argument(
        "--rtol", metavar="R", type=tolerance, default=1e-4, help="largest difference, of the largest magnitude (default 1e-4)",
    )  # fmt: skip
    parser.add_argument("--etrecord", metavar="FILE", help="the ETRecord of the program: results are matched by operators of the model,")
    parser.add_argument("--other-etrecord", metavar="FILE", help="with that of the other program, such as a quantised or delegated one")
    parser.add_argument("--all", action="store_true", help="list every pair of results, not only those that part")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Execute both, print what differs."""
    if (args.etrecord is None) != (args.other_etrecord is None):
        raise etude.EtudeValueError("results are matched by ETRecords of both programs: give --etrecord and --other-etrecord, or neither")
    one_stdin({"MODEL.pte": [args.program], "OTHER": [args.other], "--inputs": [args.inputs]})
    program = open_program(args)
    name = pick_method(program, args.method)
    if Path(args.other).suffix == ".npz":
        return _against_file(program.load_method(name, **limits(args)), args)
    method = program.load_method(name, constant_limit=0, **limits(args))  # all results are compared
    with about(args.other):
        other_program = etude.load(read_source(args.other), data_path=args.other_data)
        other = other_program.load_method(name, constant_limit=0, **limits(args))
    given = read_inputs(method, args, words=None if args.json else sys.stdout)
    inputs = given.values
    _check_takes(other, inputs, method, args)
    records = None
    if args.etrecord is not None:
        records = etrecord.read(args.etrecord, method.name), etrecord.read(args.other_etrecord, method.name)
    first = intermediates.record(method, inputs)
    results = program.load_method(name, fresh=True, **limits(args)).execute(inputs)  # outputs are those of a run
    with about(args.other):
        second = intermediates.record(other, inputs)
        other_results = other_program.load_method(name, fresh=True, **limits(args)).execute(inputs)
    pairs = intermediates.compare(first, second, records)
    outputs = _outputs(results, other_results, args)
    apart = list(intermediates.parted(pairs, args.rtol))
    bad = [i for i, (_, relative) in enumerate(outputs) if relative > args.rtol]
    if args.json:
        listed = pairs if args.all else apart
        print_json({
            "pairs": len(pairs), "apart": [_row(d) for d in listed],
            "inputs": given.to_json(), "outputs": [{"absolute": a, "relative": r} for a, r in outputs], "equal": not bad and not apart,
        })  # fmt: skip
    else:
        print(f"{len(pairs)} results belong together; {len(apart)} are more than {args.rtol:g} of their largest element apart")
        for difference in pairs if args.all else apart[:20]:
            print(f"  {difference}")
        if apart:
            print(f"they part at instruction {apart[0].a.instruction} ({apart[0].a.name}): what goes in there is still the same")
        for i, (absolute, relative) in enumerate(outputs):
            print(f"output {i}: {absolute:.3g} apart, {relative:.3g} of the largest{' <-- differs' if i in bad else ''}")
    return 1 if bad or apart else 0


def _row(difference: intermediates.Difference) -> dict[str, Any]:
    return {
        "instruction": difference.a.instruction, "other_instruction": difference.b.instruction, "name": difference.a.name,
        "other_name": difference.b.name, "label": difference.label, "absolute": difference.absolute, "relative": difference.relative,
    }  # fmt: skip


def _check_takes(other: etude.Method, inputs: list[object], method: etude.Method, args: argparse.Namespace) -> None:
    """Does the other program take the inputs that the first is given?"""
    ours, theirs = method.metadata.inputs, other.metadata.inputs
    if len(ours) != len(theirs):
        told = ", ".join(map(str, ours)), ", ".join(map(str, theirs))
        raise NamedError(
            f"the programs take different inputs: {args.program} {len(ours)} ({told[0]}), {args.other} {len(theirs)} ({told[1]})"
        )
    for i, (a, b, value) in enumerate(zip(ours, theirs, inputs)):
        fits = (a.tensor is None) == (b.tensor is None)
        if fits and b.tensor is not None and isinstance(value, np.ndarray):
            bounds, dynamic = b.tensor.sizes(), b.tensor.is_dynamic()
            near = len(value.shape) == len(bounds) and all(s <= n if dynamic else s == n for s, n in zip(value.shape, bounds))
            fits = near and a.tensor is not None and a.tensor.dtype() == b.tensor.dtype()
        if not fits:
            hint = "; give one that both take with --input" if a.tensor is not None and b.tensor is not None else ""
            raise NamedError(f"the programs take different inputs: input {i} of {args.program} is {a}, of {args.other} {b}{hint}")


def _outputs(a: list[Any], b: list[Any], args: argparse.Namespace) -> list[tuple[float, float]]:
    if len(a) != len(b):
        raise NamedError(f"{args.program} gives {len(a)} outputs, {args.other} {len(b)}: they can't be compared")
    found = []
    for i, (x, y) in enumerate((_array(x), _array(y)) for x, y in zip(a, b)):
        if x.shape != y.shape:
            shapes = f"{list(x.shape)} in {args.program} and {list(y.shape)} in {args.other}"
            raise NamedError(f"output {i} is {shapes}: they can't be compared")
        found.append(intermediates.distance(x, y))
    return found


def _array(value: object) -> Array:
    return np.zeros(0) if value is None else np.asarray(value)


def _against_file(method: etude.Method, args: argparse.Namespace) -> int:
    arrays = load_arrays(args.other, "OTHER", ".npz")
    stored = numbered(arrays, "in", method.name)
    infos = method.metadata.inputs
    complete = infos and all(i in stored for i in range(len(infos)))
    if stored and not complete and not args.input and not args.inputs:
        raise NamedError(f"{args.other} has {len(stored)} of the {len(infos)} inputs of method '{method.name}': add the others, or none")
    if complete:
        given = Inputs([from_bits(stored[i], info) for i, info in enumerate(infos)], ["given"] * len(infos))
    else:
        given = read_inputs(method, args, words=None if args.json else sys.stdout)
    outputs = method.execute(given.values)
    expected = numbered(arrays, "out", method.name)
    places = sorted(expected)
    if not places:
        raise NamedError(f"{args.other} has no arrays out0, out1, ... to compare with; it has: {', '.join(arrays) or 'none'}")
    if places[-1] >= len(outputs):
        raise NamedError(f"{args.program} gives {len(outputs)} outputs, but {args.other} has out{places[-1]}: they can't be compared")
    wanted = [from_bits(expected[i], method.metadata.outputs[i]) for i in places]
    found = _outputs([outputs[i] for i in places], wanted, args)
    bad = [i for i, (_, relative) in enumerate(found) if relative > args.rtol]
    if args.json:
        print_json({"inputs": given.to_json(), "outputs": [{"absolute": a, "relative": r} for a, r in found], "equal": not bad})
    else:
        for i, (absolute, relative) in enumerate(found):
            print(f"output {i}: {absolute:.3g} apart, {relative:.3g} of the largest{' <-- differs' if i in bad else ''}")
    return 1 if bad else 0
