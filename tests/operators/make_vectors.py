"""Write or compare the test vectors of kernels: calls with arguments, and what PyTorch makes of them.

    python make_vectors.py [OPERATOR...]            write vectors/*.vec: of all operators, or of these ("aten::add.out")
    python make_vectors.py --compare [OPERATOR...]  compare what is there with what this PyTorch makes; status 1 if not equal

Runs where torch is installed (CPU). The C program check_vectors runs the files against the kernels, and fails for a row
of the kernel table that has none.

To cover a new operator: put its signature into c/kernels/schemas.txt, and its name to a maker in makers/ (one file for each
of c/kernels/*.inc). Many operators only need a name more in a list. A maker of its own reads

    @vectors("aten::foo.out")
    def foo(call, draw, name):
        for dtype in REALS:
            call(draw.tensor((2, 3), dtype), 1)              # arguments in schema order; results are PyTorch's
        call(draw.edges(torch.float32), -1)                  # nan, inf, extremes
        call(draw.tensor((0, 3)), 5, refuses=True)           # PyTorch must refuse, and the kernel too

and `call` takes more (vectors.py): want= for operators that PyTorch has not, dtypes=, order=, bounds=, tolerances. Then run
this script with the operator's name, and check_vectors with FOLDER and its name.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch
from goldens import differences
from vectors import MAKERS, Draw, Recorder, file_bytes, file_name, kernel_names, overload, parse, schemas

HERE = Path(__file__).resolve().parent


def signature_differs(name: str, text: str) -> str | None:
    """Where PyTorch knows the operator and has another signature."""
    if not name.startswith("aten::"):
        return None
    ours, theirs = parse(text), parse(str(overload(name)._schema).replace("SymInt", "int"))
    a = [(p.name, p.type, p.is_list, p.optional, p.keyword_only, p.is_written) for p in ours.parameters]
    b = [(p.name, p.type, p.is_list, p.optional, p.keyword_only, p.is_written) for p in theirs.parameters]
    return None if a == b else theirs.text


def make(operator: str) -> tuple[bytes, Recorder]:
    schema = schemas()[operator]
    recorder = Recorder(schema)
    MAKERS[operator](recorder, Draw(operator), operator)
    assert recorder.cases, f"{operator}: no call that PyTorch takes: {sorted(set(recorder.skipped))}"
    return file_bytes(recorder.cases), recorder


def main() -> int:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for path in sorted((HERE / "makers").glob("*.py")):
        importlib.import_module(f"makers.{path.stem}")
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    compare = "--compare" in sys.argv
    kernels = kernel_names()
    problems = 0
    known = schemas()
    for name in sorted(set(MAKERS) - set(kernels)):
        print(f"{name}: has a maker and no kernel")
    for name in wanted or kernels:
        if name not in MAKERS:
            print(f"{name}: no maker")
            problems += 1
            continue
        if (other := signature_differs(name, known[name].text)) is not None:
            print(f"{name}: signature is {known[name].text}\n   PyTorch's is {other}")
            problems += 1
        try:
            data, recorder = make(name)
        except Exception as error:
            if "--debug" in sys.argv:
                raise
            print(f"{name}: {type(error).__name__}: {error}")
            problems += 1
            continue
        path = HERE / "vectors" / file_name(name)
        if compare:
            found = differences(path.read_bytes(), data) if path.exists() else ["there is no file"]
            if found:
                print(f"{name}: the file differs from what PyTorch {torch.__version__} makes: {', '.join(found[:5])}")
                problems += 1
        else:
            path.write_bytes(data)
        if "--verbose" in sys.argv:
            print(f"{name}: {len(recorder.cases)} cases, {len(data)} bytes; skipped {sorted(set(recorder.skipped))}")
    print(f"{len(wanted or kernels)} operators, {problems} problems")
    return problems != 0


if __name__ == "__main__":
    sys.exit(main())
