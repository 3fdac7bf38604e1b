"""`etude extract`: one or more methods as a program, or a delegate's payload, a constant, or named data as a file."""

from __future__ import annotations

import argparse
import io

import numpy as np

from etude.cli._targets import check_targets, read_source, words_beside, write_targets
from etude.emit.errors import MergeError
from etude.emit.extract import extract_constant, extract_delegate, extract_methods, extract_named
from etude.emit.model import Program
from etude.emit.reader import read_program
from etude.emit.writer import program_bytes


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("extract", help="take something out of a program", description=__doc__)
    parser.add_argument("program", metavar="MODEL.pte", help="the program; - is stdin")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write; - is stdout")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--method", metavar="NAME", action="append", help="this method, as a .pte; may be repeated")
    what.add_argument("--payload", metavar="METHOD[:INDEX]", help="the payload of a delegate, as it is")
    what.add_argument("--constant", metavar="METHOD:NAME", help="a constant, by name or number (%%7 in listings), as .npy")
    what.add_argument("--named", metavar="KEY", help="named data, as it is")


def run(args: argparse.Namespace) -> int:
    """Extract, and print what was written."""
    check_targets({"--output": args.output})
    content, text = _content(read_program(read_source(args.program)), args)
    write_targets({args.output: content})
    print(f"{args.output}: {text}, {len(content)} bytes", file=words_beside(args.output))
    return 0


def _content(program: Program, args: argparse.Namespace) -> tuple[bytes, str]:
    """(bytes to write, what they are)."""
    if args.method is not None:
        names = ", ".join(args.method)
        return program_bytes(extract_methods(program, args.method)), f"method {names}"
    if args.named is not None:
        return extract_named(program, args.named), f"named data {args.named}"
    if args.payload is not None:
        method, number = _method_and(program, args.payload, default="0")
        if not number.isdecimal():
            raise MergeError(f"--payload {args.payload}: {number!r} is no number of a delegate")
        delegate = extract_delegate(program, method, int(number))
        return delegate.payload, f"payload for {delegate.backend}"
    method, which = _method_and(program, args.constant, default="")
    if not which:
        raise MergeError(f"--constant {args.constant}: write METHOD:NAME or METHOD:NUMBER; {_constants(program)}")
    number = which.removeprefix("%")  # as in listings
    array = extract_constant(program, method, int(number) if number.isdecimal() else which)
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue(), f"{array.dtype} {list(array.shape)}"


def _constants(program: Program) -> str:
    """The constants that there are, a few of each method."""
    found = []
    for method in program.methods:
        names = [f"{method.name}:{t.name or f'%{i}'}" for i, t in method.tensors() if t.data is not None]
        found += [*names[:6], *(["..."] if len(names) > 6 else [])]
    return f"there are {', '.join(found)}" if found else "there is none"


def _method_and(program: Program, text: str, default: str) -> tuple[str, str]:
    """Method name and what follows the colon; a method's name may have colons of its own."""
    if any(m.name == text for m in program.methods):
        return text, default
    method, colon, rest = text.rpartition(":")
    return (method, rest) if colon else (text, default)
