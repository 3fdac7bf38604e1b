"""`etude run`: execute a method, with given inputs or made-up ones."""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np

import etude
from etude import etdump, intermediates
from etude.cli._backends import add_options
from etude.cli._common import add_limits, add_program, busy, bytes_text, limits, open_program, pick_method, print_json, progress
from etude.cli._errors import NamedError, refuse_together
from etude.cli._inputs import Inputs, add_inputs, read_inputs
from etude.cli._targets import check_targets, one_stdin, with_ending, words_beside, write_targets
from etude.cli._values import storable, summary, to_json
from etude.emit.files import check_writable, write_files

Array = np.ndarray[Any, Any]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("run", help="execute a method and show what comes out", description=__doc__)
    add_program(parser)
    add_options(parser)
    parser.add_argument("--method", metavar="NAME", help='which method (default: "forward", or the only one)')
    add_inputs(parser)
    parser.add_argument(
        "--output", metavar="FILE", help="write the outputs as an .npz file (the ending that a name without one gets) of out0, out1, ...; "
        "- is stdout, and then nothing else is",
    )  # fmt: skip
    parser.add_argument("--repeat", metavar="N", type=_count, default=1, help="execute N times and give the median time")
    parser.add_argument(
        "--profile", metavar="FILE", nargs="?", const="", help="show where the time goes; FILE.json is a trace for Chrome and Perfetto, "
        "FILE.html a page to look at",
    )  # fmt: skip
    parser.add_argument("--etdump", metavar="FILE", help="write an event dump of the executions, for ExecuTorch's Inspector; - is stdout")
    parser.add_argument(
        "--debug-buffer", metavar="FILE", help="with --etdump: execute once more, and write the values of all instructions for it, too",
    )  # fmt: skip
    parser.add_argument("--dump", metavar="FOLDER", help="write every result of every instruction there, as .npy files and a list of them")
    parser.add_argument("--check-finite", action="store_true", help="name the first instruction that makes a NaN or infinity: status 1")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of random numbers (default 0)")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads that kernels may use (default 1)")
    add_limits(parser)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Execute, print a summary, write what was asked for."""
    path = args.output if not args.output else with_ending(args.output, ".npz")
    _check(args, path)
    streams = (path, args.etdump, args.debug_buffer)
    quiet = args.json or "-" in streams
    started = time.perf_counter()
    every = args.dump or args.check_finite or args.etdump  # a result that is computed at load is looked at, too
    with busy("loading"), etude.profile_load() as loading:
        program = open_program(args, args.threads if args.threads != 1 else None)
        opened = time.perf_counter()
        method = program.load_method(pick_method(program, args.method), constant_limit=0 if every else None, **limits(args))
    method.set_seed(args.seed)
    loaded = time.perf_counter()
    args.runtime.backend_registry.set_option(args.process_options)  # again, for keys that act on what is loaded
    inputs = read_inputs(method, args, words=None if args.json else words_beside(*streams))
    if args.dump or args.check_finite:
        return _look_inside(method, inputs, args)
    times: list[float] = []
    outputs: list[Any] = []
    with nullcontext() if args.profile is None and args.etdump is None else etude.profile(method) as profile:
        for _ in progress(range(args.repeat), "executing"):
            start = time.perf_counter()
            outputs = method.execute(inputs.values)
            times.append(time.perf_counter() - start)
    targets: dict[str, bytes] = {}
    if profile is not None and args.etdump:
        results = intermediates.record(method, inputs.values) if args.debug_buffer else []
        targets[args.etdump], values = etdump.dump(profile, results, outputs if args.debug_buffer else [])
        if args.debug_buffer:
            targets[args.debug_buffer] = values
    report: dict[str, Any] = {
        "method": method.name, "runs": len(times), "median_ms": statistics.median(times) * 1e3, "open_ms": (opened - started) * 1e3,
        "load_ms": (loaded - opened) * 1e3, "memory_peak": method.memory.peak,
        "shared_workspace": _shared_workspace(args.runtime, method, program.metadata(method.name).backends),
    }  # fmt: skip
    if path is not None:
        file = io.BytesIO()
        np.savez(file, **{f"out{i}": storable(value) for i, value in enumerate(outputs)})
        targets[path] = file.getvalue()
    write_targets(targets)
    if args.json:
        measured = {} if profile is None or args.profile is None else {"profile": profile.to_dict(), "loading": loading.to_dict()}
        print_json(report | {"inputs": inputs.to_json(), "outputs": [to_json(value) for value in outputs]} | measured)
    elif not quiet:
        _print(report, outputs, path)
    if profile is not None and args.profile is not None:
        _show_profile(profile, loading, args, sys.stderr if args.json else words_beside(*streams))
    return 0


def _shared_workspace(runtime: etude.Runtime, method: etude.Method, backends: Sequence[str]) -> int:
    """Bytes of XnnpackBackend's activations that `method.memory` leaves out, since they are not of one method alone."""
    backend = "XnnpackBackend"
    if backend not in backends or method.explain_option(backend, "workspace_sharing_mode").value == 0:
        return 0
    return cast("int", runtime.backend_registry.get_option(backend, "workspace_bytes"))


def _check(args: argparse.Namespace, path: str | None) -> None:
    """Does all that is asked for go together, and could it be written?"""
    if args.debug_buffer and not args.etdump:
        raise NamedError("--debug-buffer goes with --etdump")
    inside = {"--dump": args.dump is not None, "--check-finite": args.check_finite}
    whole = {
        "--output": path is not None, "--profile": args.profile is not None, "--etdump": args.etdump is not None,
        "--repeat": args.repeat > 1,
    }  # fmt: skip
    refuse_together(inside, whole, "the one executes once, to look at every instruction; run again for the other")
    written = {"--output": path, "--etdump": args.etdump, "--debug-buffer": args.debug_buffer}
    streams = {f"{option} -": file == "-" for option, file in written.items()}
    refuse_together(streams, {"--json": args.json}, "both write to stdout")
    if args.dump == "-":
        raise NamedError("--dump -: expected a folder, which stdout is not")
    if args.profile and not args.profile.endswith((".json", ".html")):
        raise NamedError(f"--profile {args.profile}: expected a name that ends in .json (a trace) or .html (a page)")
    one_stdin({"MODEL.pte": [args.program], "--inputs": [args.inputs]})
    check_targets(written)
    if args.profile:
        check_writable(args.profile)


def _print(report: dict[str, Any], outputs: list[Any], path: str | None) -> None:
    for i, value in enumerate(outputs):
        print(f"output {i}: {summary(value)}")
    shared = f", and a shared workspace of {bytes_text(report['shared_workspace'])}" if report["shared_workspace"] else ""
    runs = f" (median of {report['runs']} runs)" if report["runs"] > 1 else ""
    print(
        f"{report['method']}: executed in {report['median_ms']:.3f} ms{runs}, loaded in {report['open_ms'] + report['load_ms']:.3f} ms "
        f"(program {report['open_ms']:.3f}, method {report['load_ms']:.3f}), memory {bytes_text(report['memory_peak'])}{shared}"
    )
    if path is not None:
        print(f"wrote {path}")


def _show_profile(profile: etude.Profile, loading: etude.LoadProfile, args: argparse.Namespace, to: TextIO) -> None:
    """The tables; `to` is stderr where stdout is for programs to read."""
    if not args.json:
        print(f"\n{loading}\n\n{profile.table()}", file=to)
        if not args.profile:
            print(f"\n{profile.table('instruction', limit=40)}", file=to)
    if args.profile:
        profile.save(args.profile)
        print(f"wrote {args.profile}", file=to)


def _look_inside(method: etude.Method, inputs: Inputs, args: argparse.Namespace) -> int:
    """Execute once; write the results of all instructions, or say which is the first that is not finite."""
    results = intermediates.record(method, inputs.values, summaries=args.dump is None)
    if args.dump is not None:
        folder = Path(args.dump)
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{result.key}.npy  {result.name or 'move'}  {result.summary}" for result in results]
        files: dict[str | PathLike[str], bytes | bytearray | memoryview] = {
            str(folder / f"{result.key}.npy"): _npy(result.array) for result in results
        }
        write_files(files | {str(folder / "results.txt"): "".join(f"{line}\n" for line in lines).encode()})
        if not args.json:
            print(f"wrote {len(results)} results to {folder}: see results.txt there")
    first = intermediates.first_not_finite(results) if args.check_finite else None
    if args.json:
        rows = [_result(r) | ({"file": f"{r.key}.npy"} if args.dump is not None else {}) for r in results]
        found = None if first is None else _result(first)
        print_json({"method": method.name, "inputs": inputs.to_json(), "results": rows, "first_not_finite": found})
        return 0 if first is None else 1
    if first is not None:
        place = f"instruction {first.instruction} ({first.name})"
        print(f"{place} is the first that makes what is not finite: value %{first.value}, {first.summary}")
        return 1
    if args.check_finite:
        print(f"all {len(results)} results are finite")
    return 0


def _result(result: intermediates.Result) -> dict[str, Any]:
    numbered = {"instruction": result.instruction, "name": result.name or "move", "value": result.value, "run": result.run}
    return numbered | asdict(result.summary)


def _npy(array: Array | None) -> bytes:
    file = io.BytesIO()
    np.save(file, storable(array))
    return file.getvalue()
