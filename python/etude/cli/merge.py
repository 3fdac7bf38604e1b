"""`etude merge`: the methods of several programs in one file; equal constants, payloads and named data are stored once."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from etude.cli._common import busy, progress
from etude.cli._errors import about
from etude.cli._targets import check_targets, one_stdin, read_source, words_beside, write_targets
from etude.emit.errors import MergeError
from etude.emit.merge import MergeReport, Source, merge_programs
from etude.emit.reader import read_program
from etude.emit.writer import WriteReport, program_bytes


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("merge", help="put several programs into one file", description=__doc__)
    parser.add_argument("programs", metavar="MODEL.pte", nargs="+", help="the programs; - is stdin")
    parser.add_argument("-o", "--output", metavar="OUT.pte", required=True, help="the file to write; - is stdout")
    parser.add_argument(
        "--rename",
        metavar="[FILE:]OLD=NEW",
        action="append",
        default=[],
        help="give a method another name; FILE is needed where several programs have it; may be repeated",
    )
    parser.add_argument(
        "--separate-state",
        action="store_true",
        help="keep state buffers of the same name apart, instead of sharing them between the programs",
    )


def run(args: argparse.Namespace) -> int:
    """Merge, and print what was shared."""
    one_stdin({"MODEL.pte": args.programs})
    check_targets({"--output": args.output})
    sources, read = [], 0
    for path in progress(args.programs, "reading"):
        with about(path):
            content = read_source(path)
            sources.append(Source(path, read_program(content)))
            read += len(content) if isinstance(content, bytes) else os.path.getsize(content)
    renames = _renames(args.rename, sources)
    sources = [Source(s.label, s.program, rename) for s, rename in zip(sources, renames)]
    merging, writing = MergeReport(), WriteReport()
    with busy("merging"):
        merged = merge_programs(sources, state="separate" if args.separate_state else "by-name", report=merging)
        write_targets({args.output: program_bytes(merged, report=writing)})
    words = words_beside(args.output)
    print(f"{args.output}: {len(merged.methods)} methods from {len(sources)} files, {read} bytes read", file=words)
    print(writing, file=words)
    if merging.equal_methods:
        print(f"equal methods, kept once: {', '.join(merging.equal_methods)}", file=words)
    if merging.shared_state:
        print(f"shared state: {', '.join(merging.shared_state)}", file=words)
    return 0


def _renames(texts: Sequence[str], sources: Sequence[Source]) -> list[dict[str, str]]:
    """New names by old, per program."""
    result: list[dict[str, str]] = [{} for _ in sources]
    for text in texts:
        left, equals, new = text.rpartition("=")
        file, _, old = left.rpartition(":")
        if not equals or not old or not new:
            raise MergeError(f"--rename {text}: write [FILE:]OLD=NEW")
        owners = [
            i
            for i, s in enumerate(sources)
            if any(m.name == old for m in s.program.methods) and (not file or file in (s.label, os.path.basename(s.label)))
        ]
        if len(owners) != 1:
            found = "no program" if not owners else "several programs"
            hint = "" if not owners else f"; write FILE:{old}={new}"
            raise MergeError(f"--rename {text}: {found} named here with a method {old!r}{hint}")
        result[owners[0]][old] = new
    return result
