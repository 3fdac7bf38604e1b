"""`etude inspect`: what is in a program: methods, inputs, outputs, operators, delegates, segments, memory."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from typing import Any

import etude
from etude.cli._common import add_program, bytes_text, open_program


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("inspect", help="show what is in a program", description=__doc__)
    add_program(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Describe the program."""
    report = describe(open_program(args), args.program)
    print(json.dumps(report, indent=2) if args.json else "\n".join(_lines(report)))
    return 0


def describe(program: etude.Program, path: str) -> dict[str, Any]:
    """All that the program says of itself, as plain values. Sizes are in bytes."""
    return {
        "file": path,
        "file_size": os.path.getsize(path),
        "methods": [_method(program.metadata(name)) for name in program],
        "segments": [segment._asdict() for segment in program.segments],
        "missing_operators": program.missing_operators(),
    }


def _method(meta: etude.MethodMeta) -> dict[str, Any]:
    return {
        "name": meta.name(),
        "inputs": [_value(info) for info in meta.inputs],
        "outputs": [_value(info) for info in meta.outputs],
        "instructions": meta.num_instructions(),
        "operators": meta.operators,
        "delegates": dict(Counter(meta.backends)),
        "planned_buffers": meta.buffer_sizes,
        "memory": meta.memory._asdict(),
        "parameters": sum(not tensor.is_state() for tensor in meta.attributes),
        "state": [{"name": tensor.name(), **_tensor(tensor)} for tensor in meta.attributes if tensor.is_state()],
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


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [f"{report['file']}: {bytes_text(report['file_size'])}, {len(report['methods'])} methods"]
    for method in report["methods"]:
        lines += ["", f"method {method['name']}: {method['instructions']} instructions"]
        lines += _rows("input", method["inputs"]) + _rows("output", method["outputs"])
        for state in method["state"]:
            lines.append(f"  state {state['name']}: {_text(state)}")
        lines.append(f"  operators ({len(method['operators'])}): {', '.join(method['operators']) or 'none'}")
        if method["delegates"]:
            lines.append("  delegates: " + ", ".join(f"{name} x{count}" for name, count in method["delegates"].items()))
        regions = [f"{name} {bytes_text(size)}" for name, size in method["memory"].items() if size and name != "total"]
        lines.append(f"  memory: {bytes_text(method['memory']['total'])} ({', '.join(regions)})")
        if method["planned_buffers"]:
            lines.append(f"  planned buffers: {', '.join(bytes_text(size) for size in method['planned_buffers'])}")
    if report["segments"]:
        lines += ["", "segments"]
        lines += [f"  {i}: {s['kind']}, {bytes_text(s['size'])} at {s['offset']:,}" for i, s in enumerate(report["segments"])]
    if report["missing_operators"]:
        lines += ["", "operators that this build has not got", *(f"  {name}" for name in report["missing_operators"])]
    return lines


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
