"""One list of errors for all languages."""

from __future__ import annotations

import itertools
import re

#: Steps of `--errors` with what each must say: the status that the headers promise, the subject at fault, and the sentence, the
#: same in all languages. MODEL stands for the path, # for a number that depends on the machine, … for what the system says.
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
no such file: NotFound '' cannot open file 'MODEL.missing': …
no such data file: NotFound '' cannot open file 'MODEL.ptd': …
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
