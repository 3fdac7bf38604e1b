"""`etude inspect`: what is in a program: methods, inputs, outputs, operators, delegates, segments, memory."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import etude
from etude.cli._backends import add_libraries
from etude.cli._common import add_program, bytes_text, open_program, print_json, source_of
from etude.cli._errors import refuse_together
from etude.cli._sizes import sizes, sizes_text
from etude.cli._targets import check_targets, write_targets
from etude.emit.describe import describe_instructions, describe_plan, describe_sharing, describe_traces
from etude.emit.extract import method_named
from etude.emit.listing import list_method, list_sharing, list_traces, plural
from etude.emit.model import Method, Program
from etude.emit.picture import plan_svg, plan_text
from etude.emit.reader import read_program


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser(
        "inspect",
        help="show what is in a program",
        description="Show what is in a program: a summary, or with the options below those parts of it in detail.",
    )
    add_program(parser)
    add_libraries(parser)
    parser.add_argument("--instructions", action="store_true", help="every instruction with its operands and their places")
    parser.add_argument("--plan", action="store_true", help="the memory plan: buffers over time, as a picture in text")
    parser.add_argument("--svg", metavar="FILE", help="write that picture to an SVG file; - is stdout, and then nothing else is")
    parser.add_argument("--shared", action="store_true", help="contents that are used several times, state that methods share")
    parser.add_argument("--traces", action="store_true", help="the stack traces of instructions, if the program has them")
    parser.add_argument("--sizes", action="store_true", help="what takes the space, in the file and in memory, largest first")
    parser.add_argument("--method", metavar="NAME", action="append", help="only this method; may be repeated")
    parser.add_argument("--json", action="store_true", help="as JSON: the summary, and the parts that are asked for")


def run(args: argparse.Namespace) -> int:
    """Describe the program."""
    others = ("instructions", "plan", "shared", "traces", "sizes", "json")
    refuse_together({"--svg -": args.svg == "-"}, {f"--{name}": getattr(args, name) for name in others}, "both write to stdout")
    check_targets({"--svg": args.svg})
    details = args.instructions or args.plan or args.shared or args.traces or args.svg
    program = read_program(source_of(args)) if details else None
    methods = [] if program is None else _chosen(program, args.method)
    if args.svg:
        write_targets({args.svg: plan_svg(*methods).encode()})
        if args.svg == "-":
            return 0
    if args.sizes and not args.json:
        print(sizes_text(open_program(args), read_program(source_of(args))))
        if program is None:
            return 0
        print()
    if args.json:
        print_json(_report(args, program))
    elif program is None:
        print("\n".join(_lines(describe(open_program(args), args, args.method), _line_width())))
    else:
        print("\n\n".join(part for part in _parts(args, program, methods) if part))
    return 0


def _chosen(program: Program, names: list[str] | None) -> list[Method]:
    return program.methods if names is None else [method_named(program, name) for name in dict.fromkeys(names)]


def _line_width() -> int | None:
    """Columns of the terminal; None if lines need no wrapping, since a file or another program reads them."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


# -- details --------------------------------------------------------------------------------------------------------


def _parts(args: argparse.Namespace, program: Program, methods: list[Method]) -> list[str]:
    """The texts that were asked for, one after the other."""
    width, parts = _line_width(), []
    for method in methods:
        if args.instructions:
            parts.append(list_method(method, traces=args.traces, width=width))
            if args.traces and not list_traces(method):
                parts.append(f"method {method.name}: no stack traces")
        if args.plan:
            columns = 72 if width is None else max(20, width - 16)
            parts.append(f"method {method.name}, {_instructions(method)}\n{plan_text(method, width=columns)}")
        if args.traces and not args.instructions:
            parts.append(f"method {method.name}\n{list_traces(method) or 'no stack traces'}")
    if args.shared:
        parts.append(f"shared\n{textwrap.indent(list_sharing(program, width=width) or 'nothing', '  ')}")
    if args.svg:
        parts.append(f"{args.svg}: memory plan of {', '.join(m.name for m in methods)}")
    return parts


def _instructions(method: Method) -> str:
    return plural(sum(len(chain.instructions) for chain in method.chains), "instruction")


# -- JSON -----------------------------------------------------------------------------------------------------------


def _report(args: argparse.Namespace, program: Program | None) -> dict[str, Any]:
    report = describe(open_program(args), args, args.method)
    if args.sizes:
        report["sizes"] = sizes(open_program(args), read_program(source_of(args)))
    if program is None:
        return report
    for entry in report["methods"]:
        method = program.method(entry["name"])
        if args.instructions:
            entry["instructions"] = describe_instructions(method, traces=args.traces)
        elif args.traces:
            entry["traces"] = describe_traces(method)
        if args.plan:
            entry["plan"] = describe_plan(method)
    if args.shared:
        report["shared"] = describe_sharing(program)
    if args.svg:
        report["svg"] = args.svg
    return report


def describe(program: etude.Program, args: argparse.Namespace, methods: list[str] | None = None) -> dict[str, Any]:
    """All that the program says of itself, or of some of its methods, as plain values. Sizes are in bytes."""
    source = source_of(args)
    names = list(program) if methods is None else list(dict.fromkeys(methods))
    return {
        "file": args.program,
        "file_size": len(source) if isinstance(source, bytes) else os.path.getsize(source),
        "methods": [_method(program.metadata(name), args.data) for name in names],
        "segments": [segment._asdict() for segment in program.segments],
        "missing_operators": program.missing_operators(),
    }


def _method(meta: etude.MethodMeta, data: Sequence[str]) -> dict[str, Any]:
    return {
        "name": meta.name(),
        "inputs": [_value(info) for info in meta.inputs],
        "outputs": [_value(info) for info in meta.outputs],
        "num_instructions": meta.num_instructions(),
        "operators": meta.operators,
        "delegates": dict(Counter(meta.backends)),
        "planned_buffers": meta.buffer_sizes,
        "memory": meta.memory._asdict(),
        "parameters": sum(not tensor.is_state() for tensor in meta.attributes),
        "state": [{"name": tensor.name(), **_tensor(tensor)} for tensor in meta.attributes if tensor.is_state()],
        "external_data": [
            {"key": need.key, **_tensor(need.tensor), "file": None if need.file is None else data[need.file], "fits": need.fits}
            for need in meta.external_data
        ],
    }


def _value(info: etude.ValueInfo) -> dict[str, Any]:
    if info.tensor is not None:
        return {"kind": info.kind, **_tensor(info.tensor)}
    return {"kind": info.kind} if info.value is None else {"kind": info.kind, "value": info.value}


def _tensor(tensor: etude.TensorInfo) -> dict[str, Any]:
    return {
        "dtype": tensor.dtype_name(),
        "sizes": list(tensor.sizes()),
        "dynamic": tensor.is_dynamic(),
        "dim_order": list(tensor.dim_order()),
        "planned": tensor.is_memory_planned(),
        "nbytes": tensor.nbytes(),
    }


# -- summary --------------------------------------------------------------------------------------------------------


def _lines(report: dict[str, Any], width: int | None) -> list[str]:
    lines = [f"{report['file']}: {bytes_text(report['file_size'])}, {plural(len(report['methods']), 'method')}"]
    for method in report["methods"]:
        lines += ["", f"method {method['name']}: {plural(method['num_instructions'], 'instruction')}"]
        lines += _rows("input", method["inputs"]) + _rows("output", method["outputs"])
        for state in method["state"]:
            lines.append(f"  state {state['name']}: {_text(state)}")
        for need in method["external_data"]:
            found = "missing: give the file that has it (--data)"
            if need["file"] is not None:
                found = f"in {need['file']}" + ("" if need["fits"] else ", but with another dtype, shape or size")
            lines.append(f"  external data {need['key']}: {need['dtype']} {need['sizes']}, {found}")
        if method["operators"]:
            text = f"  {plural(len(method['operators']), 'operator')}: {', '.join(method['operators'])}"
            lines += textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False) if width else [text]
        if method["delegates"]:
            lines.append("  delegates: " + ", ".join(f"{name} x{count}" for name, count in method["delegates"].items()))
        lines.append(f"  memory: {_memory_text(method['memory'])}")
        planned = [(k, size) for k, size in enumerate(method["planned_buffers"], 1) if size]
        if planned:
            shown = (bytes_text(size) + (f" (memory {k})" if planned[-1][0] > 1 else "") for k, size in planned)
            lines.append(f"  planned buffers: {', '.join(shown)}")
    segments = [(i, s) for i, s in enumerate(report["segments"]) if s["size"]]
    if segments:
        lines += ["", "segments"]
        lines += [f"  {i}: {s['kind']}, {bytes_text(s['size'])} at {s['offset']:,}" for i, s in segments]
    if report["missing_operators"]:
        lines += ["", "operators that this build has not got", *(f"  {name}" for name in report["missing_operators"])]
    return lines


def _memory_text(memory: dict[str, int]) -> str:
    regions = [f"{name} {bytes_text(size)}" for name, size in memory.items() if size and name not in ("total", "peak")]
    return f"{bytes_text(memory['total'])} ({', '.join(regions)}), {bytes_text(memory['peak'])} of an arena"


def _rows(what: str, values: list[dict[str, Any]]) -> list[str]:
    return [f"  {what} {i}: {_text(value)}" for i, value in enumerate(values)]


def _text(value: dict[str, Any]) -> str:
    if "dtype" not in value:
        return f"{value['kind']} {value['value']!r}" if "value" in value else str(value["kind"])
    notes = ["up to" if value["dynamic"] else "", str(value["sizes"])]
    if value["dim_order"] != sorted(value["dim_order"]):
        notes.append(f"dim order {value['dim_order']}")
    if not value["planned"]:
        notes.append("not planned")
    return f"{value['dtype']} {' '.join(note for note in notes if note)}, {bytes_text(value['nbytes'])}"
