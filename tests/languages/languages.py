#!/usr/bin/env python3
"""Hold a language's binding to the corpus: the same cases, values and errors for all of them.

    languages.py NAME CORPUS RUNNER [ARGUMENT...]

RUNNER is a program written with the binding, in two uses:

    RUNNER MODEL CALLS OUT [DATA.ptd...]   calls methods of MODEL as CALLS says and writes OUT, in the format of
                                           examples/run_arena.c; each method is loaded once
    RUNNER --errors MODEL                  does what ERRORS says and prints a line for each step

A runner whose programs live in a memory of its own may print "memory BYTES". Outputs are compared with the corpus' goldens (eager
PyTorch). Prints what failed, and "N passed, N failed".
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "c"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "systems"))
from compare_arena import Values, describe_difference, pack_calls, prefix
from matrix import line, megabytes

#: Steps of `--errors` with what each must say: the status that the headers promise, the subject at fault, and the sentence, the
#: same in all languages. MODEL stands for the path, # for a number that depends on the machine.
ERRORS = """\
set: ok
get: 1
set out of range: InvalidArgument 'workspace_sharing_mode' \
backend 'XnnpackBackend', option 'workspace_sharing_mode': 3 is out of range; allowed: 0 (disabled), 1 (per_model), 2 (global)
set of wrong type: InvalidType 'workspace_sharing_mode' backend 'XnnpackBackend', option 'workspace_sharing_mode': expected int, got string
set unknown key: NotFound 'workspace_mode' UNKNOWN_KEY
set unknown backend: NotFound 'XnnBackend' UNKNOWN_BACKEND
set with one unknown: NotFound 'none' backend 'XnnpackBackend' has no option 'none' (it has: KEYS)
set long key: InvalidArgument 'k{63}' the key has 64 bytes, at most 63 are possible: 'k{64}'
set empty key: InvalidArgument '' the key is missing or empty
get unknown key: NotFound 'workspace_mode' UNKNOWN_KEY
reset unknown key: NotFound 'workspace_mode' UNKNOWN_KEY
schema of unknown backend: NotFound 'XnnBackend' UNKNOWN_BACKEND
get: 1
reset: ok
get: 2
load: ok
load out of range: InvalidArgument 'workspace_sharing_mode' method 'forward': \
backend 'XnnpackBackend', option 'workspace_sharing_mode': 3 is out of range; allowed: 0 (disabled), 1 (per_model), 2 (global)
load unused option: NotFound 'key' method 'forward': \
backend 'NullBackend' has no option 'key'; did you mean 'copy'? (it has: copy, keep_payload, execute_count)
load unknown method: NotFound 'backward' there is no method 'backward'; the program has: forward
load within 100 bytes: MemoryAllocationFailed 'forward' method 'forward': needs # bytes of memory, the limit is 100: \
raise memory_limit if the file is trusted (the method needs # bytes in all, and had got #)
describe unknown method: NotFound 'backward' there is no method 'backward'; the program has: forward
execute without inputs: InvalidState '' method 'forward', input 0 has not been set
too few inputs: InvalidArgument '' method 'forward' takes 1 inputs, 0 were given
explain unknown key: NotFound 'workspace_mode' UNKNOWN_KEY
reset unknown state: NotFound 'cache' method 'forward' has no state buffer 'cache'; it has: none
input of wrong type: InvalidType 'forward' method 'forward', input 0: expected Tensor, got Int
input of wrong dtype: InvalidArgument 'forward' method 'forward', input 0: expected float, got long: convert it first
no such file: NotFound '' cannot open file 'MODEL.missing': No such file or directory
no such data file: NotFound '' cannot open file 'MODEL.ptd': No such file or directory
copied: ok
cut short: InvalidProgram '' the file is cut short: it has 1162 bytes, its header says 2324
no program: InvalidArgument '' not a .pte file, but something else: bytes 4 to 7 must be 'ET12'
"""

#: What JavaScript says in its own way: its names of parameters and dtypes, what Node or the browser says of files, and a number
#: is a tensor there.
JAVASCRIPT = """\
load within 100 bytes: MemoryAllocationFailed 'forward' method 'forward': needs # bytes of memory, the limit is 100: \
raise memoryLimit if the file is trusted (the method needs # bytes in all, and had got #)
too few inputs: InvalidArgument '' method 'forward' takes 1 input, 0 were given
input of wrong type: NotSupported '' input 0: expected shape [3, 10], got []
input of wrong dtype: InvalidArgument '' input 0: expected float32, got int64: convert it first
no such file: NotFound '' MODEL.missing can't be read: …
no such data file: NotFound '' MODEL.ptd can't be read: …
"""

#: And Python, which checks names and inputs before the library does, with its own names of dtypes.
PYTHON = """\
set long key: InvalidArgument 'k{64}' backend 'XnnpackBackend': the key 'k{64}' has 64 bytes in UTF-8, at most 63 are possible
set empty key: InvalidArgument '' backend 'XnnpackBackend': the key '' is empty
load unknown method: NotFound 'backward' this program has no method 'backward'; it has: 'forward'
describe unknown method: NotFound 'backward' this program has no method 'backward'; it has: 'forward'
execute without inputs: InvalidArgument 'forward' method 'forward': expected 1 input (float32 [3, 10]), got 0; …
too few inputs: InvalidArgument 'forward' method 'forward': expected 1 input (float32 [3, 10]), got 0; …
input of wrong type: InvalidType 'forward' method 'forward', input 0: expected float32 [3, 10], got 1; …
input of wrong dtype: InvalidType 'forward' method 'forward', input 0: expected float32 [3, 10], got int64 [2, 3]; …
"""

#: What languages say in their own way.
OWN_WORDS = {"JavaScript": JAVASCRIPT, "Python": PYTHON}

SHORT = {
    "UNKNOWN_KEY": "backend 'XnnpackBackend' has no option 'workspace_mode'; did you mean 'workspace_bytes'? (it has: KEYS)",
    "UNKNOWN_BACKEND": "backend 'XnnBackend' is not registered; there are: NullBackend, ContextBinaryBackend, XnnpackBackend",
    "KEYS": "workspace_sharing_mode, weight_cache_enabled, packed_cache_path, save_weight_cache_on_disk, num_threads, workspace_bytes, "
    "packed_weight_bytes",
    "k{63}": "k" * 63,
    "k{64}": "k" * 64,
}


def compare(case: dict[str, Any], arrays: Any, results: bytes) -> str:
    """What is wrong with the outputs of a case's calls; empty if nothing is."""
    values = Values(results)
    for method, number in case["calls"]:
        specs = case["methods"][method]["sets"][number]["outputs"]
        (count,) = values.unpack("I")
        if count != len(specs):
            return f"{method}: {count} outputs, expected {len(specs)}"
        for i, spec in enumerate(specs):
            problem = describe_difference(spec, arrays[f"{prefix(method, number)}out{i}"], values.value(), case["tolerance"])
            if problem:
                return f"{method} set {number} output {i}: {problem}"
    return ""


def run_case(runner: list[str], corpus: Path, case: dict[str, Any], memory: list[int]) -> str:
    """What is wrong with what a runner makes of a case; empty if nothing is. `memory` gets the bytes that it tells."""
    arrays = np.load(corpus / case["files"]["npz"])
    with tempfile.TemporaryDirectory() as folder:
        calls, results = Path(folder) / "calls", Path(folder) / "results"
        calls.write_bytes(pack_calls(case, arrays))
        files = [str(corpus / name) for name in case["files"]["ptd"]]
        command = [*runner, str(corpus / case["files"]["pte"]), str(calls), str(results), *files]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            return done.stderr.strip() or f"status {done.returncode}: {done.stdout.strip()}"
        memory += [int(told.split()[1]) for told in done.stdout.splitlines() if told.startswith("memory ")]
        return compare(case, arrays, results.read_bytes())


def steps(text: str, model: str) -> dict[str, str]:
    """Patterns for the lines of ERRORS, by step; there are several of some."""
    for short, long in SHORT.items():
        text = text.replace(short, long)
    lines = text.replace("MODEL", model).splitlines()
    return {f"{i if line[:3] == 'get' else ''}{line.split(':')[0]}": line for i, line in enumerate(lines)}


def compare_errors(got: list[str], language: str, model: str) -> str:
    """What is wrong with the lines that a runner prints for ERRORS; empty if nothing is."""
    want = {**steps(ERRORS, model), **steps(OWN_WORDS.get(language, ""), model)}
    problems = []
    for g, w in itertools.zip_longest(got, want.values(), fillvalue=""):
        if not re.fullmatch(re.escape(w).replace(re.escape("#"), "[0-9]+").replace("…", ".*"), g):
            problems.append(f"'{g}' instead of '{w}'")
    return "; ".join(problems)


def check_errors(runner: list[str], language: str, model: Path) -> str:
    """What is wrong with a runner's errors; empty if nothing is."""
    done = subprocess.run([*runner, "--errors", str(model)], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return done.stderr.strip() or f"status {done.returncode}"
    return compare_errors(done.stdout.splitlines(), language, str(model))


def main() -> int:
    """Run the cases; 0 if all agree."""
    name, corpus, runner = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    cases = json.loads((corpus / "manifest.json").read_text())["cases"]
    memory: list[int] = []
    problems = {case: run_case(runner, corpus, cases[case], memory) for case in cases}
    problems["errors"] = check_errors(runner, "JavaScript" if name == "Node" else name, corpus / "x_linear.pte")
    for case, problem in problems.items():
        if problem:
            print(f"FAILED {name}, {case}: {problem}")
    failed = sum(bool(problem) for problem in problems.values())
    peak = megabytes(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    ran = f"{len(problems) - failed} cases right, {failed} wrong"
    module = Path(runner[-1]) / "etude.wasm"  # where the runner is Node's, which the package comes after
    program = module if module.exists() else Path(runner[0])
    size = f"{'module' if module.exists() else 'program'} {program.stat().st_size:,} B"
    if module.exists():
        size += f", {len(gzip.compress(module.read_bytes(), 9)):,} gzipped"
    told = f", of which module's memory {max(memory) / 1e6:.1f} MB" if memory else ""
    by = (
        subprocess.run([runner[0], "--version"], check=True, capture_output=True, text=True).stdout.strip()
        if module.exists()
        else "this machine"
    )
    print(line(name, by, ran, "eager PyTorch's outputs", size, f"process {peak}{told}"))
    print(f"{name}: {len(problems) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
