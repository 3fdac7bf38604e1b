"""Inputs from the command line: given, or made up; for the commands that execute a method."""

from __future__ import annotations

import argparse
import io
import re
import sys
import zipfile
from typing import Any, NamedTuple, TextIO

import numpy as np

import etude
from etude.cli._errors import NamedError
from etude.cli._values import from_bits, numbered
from etude.dtypes import describe, is_nameless

Array = np.ndarray[Any, Any]


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """The arguments that give inputs."""
    parser.add_argument(
        "--input", metavar="N=X", action="append", default=[],
        help="input N (from 0): an .npy file, a number, true, false, none, or sizes such as 2x6 or [6], of which it is made up; may be "
        "repeated. Other inputs are made up, at their largest sizes",
    )  # fmt: skip
    parser.add_argument(
        "--inputs", metavar="FILE.npz", help="all inputs: arrays in0, in1, ... (or METHOD__in0, ...), "
        "or where none has such a name all of the file in its order; - is stdin",
    )  # fmt: skip


class Inputs(NamedTuple):
    """The inputs for a method in order, and where each comes from: "given", "made up: zeros", ..."""

    values: list[object]
    sources: list[str]

    def to_json(self) -> list[dict[str, Any]]:
        """What each is, as plain values."""
        return [_looks(value) | {"source": source} for value, source in zip(self.values, self.sources)]


def _looks(value: object) -> dict[str, Any]:
    return {"dtype": describe(value.dtype), "shape": list(value.shape)} if isinstance(value, np.ndarray) else {"value": value}


def read_inputs(method: etude.Method, args: argparse.Namespace, *, words: TextIO | None = None) -> Inputs:
    """The inputs for a method, in order. Says to `words`, if any, what each is and where it comes from; to stderr of those alone
    that are made up.
    """
    infos = method.metadata.inputs
    given = _given(args, method)
    for index in given:
        if not 0 <= index < len(infos):
            raise etude.EtudeValueError(f"input {index}: method '{method.name}' has {len(infos)} inputs, counted from 0")
    values: list[object] = []
    sources: list[str] = []
    for i, info in enumerate(infos):
        if i in given:
            value, note = from_bits(given[i], info), "given"
            if isinstance(value, _Sizes):
                _check_sizes(i, info, value)
                value, note = _made_up(info, value)
        else:
            value, note = _made_up(info)
        if words is not None and (words is not sys.stderr or "made up" in note):
            looks = f"{describe(value.dtype)} {list(value.shape)}" if isinstance(value, np.ndarray) and "made up" in note else info
            print(f"input {i}: {looks} ({note})", file=words)
        values.append(value)
        sources.append(note)
    return Inputs(values, sources)


def read_arrays(method: etude.Method, items: list[str]) -> dict[int, Array]:
    """The tensors among the inputs for a method that `items`, N=FILE.npy each, give. What `execute` would refuse is refused."""
    inputs = read_inputs(method, argparse.Namespace(inputs=None, input=items))
    infos = method.metadata.inputs
    given = {i: value for i, value in enumerate(inputs.values) if inputs.sources[i] == "given"}
    for i in given:
        if infos[i].tensor is None:
            raise NamedError(f"--input {i}: input {i} of method '{method.name}' is {infos[i]}, and arrays are for tensors")
    zeros = {"Int": 0, "Double": 0.0, "Bool": False}
    method.check_inputs([zeros.get(info.kind) if value is None else value for value, info in zip(inputs.values, infos)])
    return {i: np.asarray(value) for i, value in given.items()}


def _given(args: argparse.Namespace, method: etude.Method) -> dict[int, object]:
    given: dict[int, object] = {}
    if args.inputs is not None:
        arrays = load_arrays(args.inputs, "--inputs", ".npz")
        named = any(re.fullmatch(r"(.*__)?(in|out|rt)\d+", name) for name in arrays)
        given = dict(numbered(arrays, "in", method.name) if named else enumerate(arrays.values()))
    for item in args.input:
        index, found, value = item.partition("=")
        if not found or not index.isdecimal():
            raise etude.EtudeValueError(f"--input {item}: expected a number, '=' and a value, such as 0=x.npy")
        given[int(index)] = load_arrays(value, "--input", ".npy")[""] if value.endswith(".npy") else _literal(value)
    missing = [str(i) for i in range(len(method.metadata.inputs)) if i not in given] if args.inputs is not None else []
    if missing:
        raise NamedError(
            f"--inputs {args.inputs}: method '{method.name}' has {len(method.metadata.inputs)} inputs, and the file is to have all: missing"
            f" is {', '.join(missing)} (arrays in the file: {', '.join(arrays) or 'none'}); add it, or give it with --input {missing[0]}=X"
        )
    return given


def load_arrays(path: str, option: str, wanted: str) -> dict[str, Array]:
    """The arrays of an .npy or .npz file, whichever is wanted, by name in its order."""
    try:
        content = np.load(io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path)
        if isinstance(content, np.ndarray):
            arrays, kind = {"": content}, ".npy"
        else:
            with content:
                arrays, kind = {name: content[name] for name in content.files}, ".npz"
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


def _check_sizes(index: int, info: etude.ValueInfo, sizes: _Sizes) -> None:
    """Refuse sizes that the method would, before memory is taken for them."""
    if info.tensor is None:
        return
    bounds, dynamic = info.tensor.sizes(), info.tensor.is_dynamic()
    wrong = "" if len(sizes) == len(bounds) else f"{len(sizes)} dimensions, not {len(bounds)}"
    for dim, (size, bound) in enumerate(zip(sizes, bounds) if not wrong else ()):
        if size > bound or (size != bound and not dynamic):
            wrong = f"dimension {dim} is {size}, {f'and {bound} is the most' if dynamic else f'not {bound}'}"
            break
    if wrong:
        raise NamedError(f"--input {index}={'x'.join(map(str, sizes))}: input {index} is {info}: {wrong}")


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
