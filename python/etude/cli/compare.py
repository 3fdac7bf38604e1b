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
from etude.cli._inputs import add_inputs, read_inputs

Array = np.ndarray[Any, Any]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("compare", help="run two programs on the same inputs and show where they part", description=__doc__)
    add_program(parser)
    parser.add_argument("other", metavar="OTHER", help="another program (.pte), or outputs: an .npz of out0, out1, ... (and in0, in1, ...)")
    parser.add_argument("--other-data", metavar="FILE.ptd", action="append", default=[], help="external data of the other program")
    add_options(parser)
    parser.add_argument("--method", metavar="NAME", help='which method (default: "forward", or the only one)')
    add_inputs(parser)
    parser.add_argument("--rtol", metavar="R", type=float, default=1e-4, help="largest difference, of the largest magnitude (default 1e-4)")
    parser.add_argument("--etrecord", metavar="FILE", help="the ETRecord of the program: results are matched by operators of the model,")
    parser.add_argument("--other-etrecord", metavar="FILE", help="with that of the other program, such as a quantised or delegated one")
    parser.add_argument("--all", action="store_true", help="list every pair of results, not only those that part")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Execute both, print what differs."""
    if (args.etrecord is None) != (args.other_etrecord is None):
        raise etude.EtudeValueError("results are matched by ETRecords of both programs: give --etrecord and --other-etrecord, or neither")
    if args.program == args.other == "-":
        raise etude.EtudeValueError("only one of the programs can be stdin")
    program = open_program(args)
    method = program.load_method(pick_method(program, args.method), constant_limit=0, **limits(args))  # all results are compared
    if Path(args.other).suffix == ".npz":
        return _against_file(method, args)
    second = sys.stdin.buffer.read() if args.other == "-" else args.other
    other = etude.load(second, data_path=args.other_data).load_method(method.name, constant_limit=0, **limits(args))
    inputs = read_inputs(method, args, quiet=args.json)
    records = None
    if args.etrecord is not None:
        records = etrecord.read(args.etrecord, method.name), etrecord.read(args.other_etrecord, method.name)
    pairs = intermediates.compare(intermediates.record(method, inputs), intermediates.record(other, inputs), records)
    outputs = _outputs(method.execute(inputs), other.execute(inputs))
    apart = list(intermediates.parted(pairs, args.rtol))
    bad = [i for i, (_, relative) in enumerate(outputs) if relative > args.rtol]
    if args.json:
        listed = pairs if args.all else apart
        print_json({
            "pairs": len(pairs), "apart": [_row(d) for d in listed],
            "outputs": [{"absolute": a, "relative": r} for a, r in outputs], "equal": not bad and not apart,
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


def _outputs(a: list[Any], b: list[Any]) -> list[tuple[float, float]]:
    if len(a) != len(b):
        raise etude.EtudeValueError(f"one gives {len(a)} outputs, the other {len(b)}: they can't be compared")
    return [_distance(i, np.asarray(x), np.asarray(y)) for i, (x, y) in enumerate(zip(a, b))]


def _distance(index: int, a: Array, b: Array) -> tuple[float, float]:
    if a.shape != b.shape:
        raise etude.EtudeValueError(f"output {index} is {list(a.shape)} here and {list(b.shape)} there: they can't be compared")
    return intermediates.distance(a, b)


def _against_file(method: etude.Method, args: argparse.Namespace) -> int:
    with np.load(args.other) as file:
        arrays = {name: file[name] for name in file.files}
    given = [arrays[f"in{i}"] for i in range(len(method.metadata.inputs)) if f"in{i}" in arrays]
    complete = len(given) == len(method.metadata.inputs) and given
    outputs = method.execute(given if complete else read_inputs(method, args, quiet=args.json))
    wanted = [arrays[f"out{i}"] for i in range(len(outputs)) if f"out{i}" in arrays]
    if not wanted:
        raise etude.EtudeValueError(f"{args.other} has no arrays out0, out1, ... to compare with; it has: {', '.join(arrays) or 'none'}")
    found = _outputs(outputs[: len(wanted)], wanted)
    bad = [i for i, (_, relative) in enumerate(found) if relative > args.rtol]
    if args.json:
        print_json({"outputs": [{"absolute": a, "relative": r} for a, r in found], "equal": not bad})
    else:
        for i, (absolute, relative) in enumerate(found):
            print(f"output {i}: {absolute:.3g} apart, {relative:.3g} of the largest{' <-- differs' if i in bad else ''}")
    return 1 if bad else 0
