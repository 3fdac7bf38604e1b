"""`etude run`: execute a method, with given inputs or made-up ones."""

from __future__ import annotations

import argparse
import io
import re
import statistics
import time
import zipfile
from typing import Any

import numpy as np

import etude
from etude.cli._backends import add_options
from etude.cli._common import add_program, bytes_text, open_program, pick_method
from etude.dtypes import describe, is_nameless
from etude.emit.files import check_writable, write_files

Array = np.ndarray[Any, Any]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("run", help="execute a method and show what comes out", description=__doc__)
    add_program(parser)
    add_options(parser)
    parser.add_argument("--method", metavar="NAME", help='which method (default: "forward", or the only one)')
    parser.add_argument(
        "--input", metavar="N=X", action="append", default=[],
        help="input N (from 0): an .npy file, a number, true, false, none, or sizes such as 2x6 or [6], of which it is made up; may be "
        "repeated. Other inputs are made up, at their largest sizes",
    )  # fmt: skip
    parser.add_argument("--inputs", metavar="FILE.npz", help="all inputs, in the order of the file's arrays")
    parser.add_argument("--output", metavar="FILE.npz", help="write the outputs, as out0, out1, ...")
    parser.add_argument("--repeat", metavar="N", type=_count, default=1, help="execute N times and give the median time")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of random numbers (default 0)")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads that kernels may use (default 1)")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Execute, print a summary, write the outputs."""
    path = args.output
    if path is not None:
        path = path if path.endswith(".npz") else f"{path}.npz"
        check_writable(path)
    started = time.perf_counter()
    program = open_program(args, args.threads if args.threads != 1 else None)
    method = program.load_method(pick_method(program, args.method))
    method.set_seed(args.seed)
    loaded = time.perf_counter()
    inputs = _inputs(method, args)
    times = []
    outputs: list[Any] = []
    for _ in range(args.repeat):
        start = time.perf_counter()
        outputs = method.execute(inputs)
        times.append(time.perf_counter() - start)
    for i, value in enumerate(outputs):
        print(f"output {i}: {_summary(value)}")
    runs = f" (median of {len(times)} runs)" if len(times) > 1 else ""
    print(
        f"{method.name}: executed in {statistics.median(times) * 1e3:.3f} ms{runs}, loaded in {(loaded - started) * 1e3:.3f} ms, "
        f"memory {bytes_text(method.memory.peak)}"
    )
    if path is not None:
        file = io.BytesIO()
        np.savez(file, **{f"out{i}": _storable(value) for i, value in enumerate(outputs)})
        write_files({path: file.getvalue()})
        print(f"wrote {path}")
    return 0


def _inputs(method: etude.Method, args: argparse.Namespace) -> list[object]:
    infos = method.metadata.inputs
    given = _given(args)
    for index in given:
        if not 0 <= index < len(infos):
            raise etude.EtudeValueError(f"input {index}: method '{method.name}' has {len(infos)} inputs, counted from 0")
    values: list[object] = []
    for i, info in enumerate(infos):
        if i in given:
            value, note = _as_bits(given[i], info), "given"
            if isinstance(value, _Sizes):
                value, note = _made_up(info, value)
        else:
            value, note = _made_up(info)
        print(f"input {i}: {info} ({note})")
        values.append(value)
    return values


def _given(args: argparse.Namespace) -> dict[int, object]:
    given: dict[int, object] = {}
    if args.inputs:
        given = dict(enumerate(_load(args.inputs, "--inputs", ".npz")))
    for item in args.input:
        index, found, value = item.partition("=")
        if not found or not index.isdecimal():
            raise etude.EtudeValueError(f"--input {item}: expected a number, '=' and a value, such as 0=x.npy")
        given[int(index)] = _load(value, "--input", ".npy")[0] if value.endswith(".npy") else _literal(value)
    return given


def _load(path: str, option: str, wanted: str) -> list[Array]:
    """The arrays of an .npy or .npz file, whichever is wanted, in its order."""
    try:
        content = np.load(path)
        if isinstance(content, np.ndarray):
            arrays, kind = [content], ".npy"
        else:
            with content:
                arrays, kind = [content[name] for name in content.files], ".npz"
    except (ValueError, EOFError, zipfile.BadZipFile):  # numpy's words are about pickle, which is not for users to allow
        raise etude.EtudeValueError(f"{option}: {path!r} is no {wanted} file of numbers, or damaged") from None
    if kind != wanted:
        raise etude.EtudeValueError(f"{option}: {path!r} is a file of kind {kind}, not {wanted}")
    return arrays


class _Sizes(tuple[int, ...]):
    """Sizes that an input is to be made up with."""

    __slots__ = ()


def _literal(text: str) -> object:
    if re.fullmatch(r"\d+(x\d+)+|\[(\d+([x,]\d+)*)?\]", text):
        return _Sizes(int(size) for size in re.findall(r"\d+", text))
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise etude.EtudeValueError(f"--input: {text!r} is no .npy file, number, true, false, none, or sizes such as 2x6")


def _as_bits(value: object, info: etude.ValueInfo) -> object:
    """Files can't say bfloat16: unsigned or raw elements of its width are taken as its bits."""
    tensor = info.tensor
    if tensor is None or not isinstance(value, np.ndarray) or not is_nameless(tensor.dtype()):
        return value
    dtype = tensor.numpy_dtype()
    return value.view(dtype) if value.dtype.kind in "uV" and value.dtype.itemsize == dtype.itemsize else value


def _made_up(info: etude.ValueInfo, sizes: _Sizes | None = None) -> tuple[object, str]:
    """A value that suits an input, of certain sizes or the largest, and a word about it."""
    if info.tensor is None:
        if sizes is not None:
            raise etude.EtudeValueError(f"--input: sizes {list(sizes)} were given for an input that is no tensor, but {info}")
        note = "from the file" if info.value is not None else "none; if the program computes with it, give a number with --input"
        return info.value, note
    dtype, shape = info.tensor.numpy_dtype(), info.tensor.sizes() if sizes is None else sizes
    if dtype.kind == "b":
        return np.ones(shape, dtype), "made up: true"
    if dtype.kind in "iu" or (is_nameless(info.tensor.dtype()) and dtype.itemsize == 1):
        return np.zeros(shape, dtype), "made up: zeros"
    normal = np.random.default_rng(0).standard_normal(shape, np.float32)
    if dtype.metadata:  # the bits of bfloat16 are the upper half of a float32
        return (normal.view(np.uint32) >> 16).astype(np.uint16).view(dtype), "made up: standard normal"
    return np.asarray(normal).astype(dtype), "made up: standard normal"


def _summary(value: object) -> str:
    if isinstance(value, list):
        return f"list of {len(value)}: [{', '.join(_summary(item) for item in value)}]"
    if not isinstance(value, np.ndarray):
        return repr(value)
    head = f"{describe(value.dtype)} {list(value.shape)}"
    if value.size == 0 or value.dtype.metadata:
        return head
    numbers = value.astype(np.float32) if value.dtype.kind == "V" else value
    with np.printoptions(precision=4, threshold=12, edgeitems=4, linewidth=110, suppress=True):
        shown = np.array2string(numbers.reshape(-1))
    if numbers.dtype.kind == "b":
        return f"{head}, {int(numbers.sum())} true\n  {shown}"
    return f"{head}, min {numbers.min():.5g}, max {numbers.max():.5g}, mean {numbers.mean():.5g}\n  {shown}"


def _storable(value: object) -> Any:
    """As an array that an .npz file can hold: types that numpy has no name for as unsigned integers."""
    if isinstance(value, np.ndarray) and (value.dtype.kind == "V" or value.dtype.metadata):
        return np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
    if value is None:
        return np.zeros(0)
    return np.asarray(value)
