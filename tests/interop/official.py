"""Run a folder made by generate.py in the official runtime, and compare.

    python official.py [FOLDER [NAME...]]

Runs where torch and executorch are installed; etude need not be, if FOLDER is given. Without it, the folder is made
in a temporary place from the corpus in the tree. Each case runs in a child process, since the
official runtime may abort. Exit status 1 if a case that must run does not, or any output differs: from what is
expected, or, for corpus programs that both runtimes can run, from what etude computed.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch


def load_quantized_kernels() -> None:
    import executorch

    for root in executorch.__path__:
        library = Path(root, "lib", "libexecutorch_kernels_quantized.so")
        if library.exists():
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def to_value(data: Any, key: str, spec: dict[str, Any]) -> Any:
    """What the official runtime is given."""
    if spec["kind"] != "tensor":
        return spec.get("value")
    array = data[key]
    if spec["dtype"] in ("float16", "bfloat16"):
        tensor = torch.from_numpy(array.view(np.int16).copy()).view(getattr(torch, spec["dtype"]))
    else:
        tensor = torch.from_numpy(array)
    if spec.get("dim_order") == [0, 2, 3, 1]:
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    return tensor


def to_array(value: Any) -> np.ndarray | None:
    if isinstance(value, torch.Tensor):
        wide = value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
        return wide.contiguous().numpy().copy()
    return None if value is None else np.asarray(value)


def expected(data: Any, key: str, spec: dict[str, Any]) -> np.ndarray | None:
    if spec["kind"] == "none":
        return None
    if spec["kind"] != "tensor":
        return np.asarray(spec["value"])
    array = data[key]
    if spec["dtype"] == "float16":
        return array.view(np.float16).astype(np.float32)
    if spec["dtype"] == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def difference(got: np.ndarray | None, want: np.ndarray | None, rtol: float, atol: float) -> str | None:
    """None if they agree, else what is wrong. int8 and uint8 count as measured values, other integers as exact."""
    if got is None or want is None:
        return None if got is want else f"{got!r} instead of {want!r}"
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if want.dtype.kind in "biu" and want.dtype.name not in ("int8", "uint8"):
        return None if np.array_equal(got, want) else "integers differ"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    if np.allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol, equal_nan=True):
        return None
    with np.errstate(invalid="ignore"):
        return f"differs by up to {np.nanmax(np.abs(got.astype(wide) - want.astype(wide))):.3g}"


def run(folder: Path, name: str, case: dict[str, Any]) -> list[list[np.ndarray | None]]:
    """Outputs of every call."""
    from executorch.runtime import Runtime

    if case.get("quantized"):
        load_quantized_kernels()
    data = np.load(folder / f"{name}.npz")
    extra = {"data_path": str(folder / case["ptds"][0])} if case["ptds"] else {}
    program = Runtime.get().load_program(str(folder / f"{name}.pte"), **extra)
    results = []
    for c, call in enumerate(case["calls"]):
        values = [to_value(data, f"c{c}_in{k}", s) for k, s in enumerate(call["inputs"])]
        results.append([to_array(v) for v in program.load_method(call["method"]).execute(values)])
    return results


def check(folder: Path, name: str, case: dict[str, Any]) -> list[str]:
    """Problems of one case."""
    data = np.load(folder / f"{name}.npz")
    ours_path = folder / f"{name}.etude.npz"
    ours = np.load(ours_path) if ours_path.exists() and name.startswith("corpus-") else None
    problems = []
    for c, (call, got) in enumerate(zip(case["calls"], run(folder, name, case), strict=True)):
        if len(got) != len(call["outputs"]):
            problems.append(f"call {c}: {len(got)} outputs instead of {len(call['outputs'])}")
            continue
        for k, (value, spec) in enumerate(zip(got, call["outputs"], strict=True)):
            where, key = f"call {c} ({call['method']}), output {k}", f"c{c}_out{k}"
            wrong = difference(value, expected(data, key, spec), case["rtol"], case["atol"])
            if wrong:
                problems.append(f"{where}: {wrong}")
            if ours is not None and value is not None:
                wrong = difference(value, np.asarray(ours[key]), 2 * case["rtol"], 2 * case["atol"])
                if wrong:
                    problems.append(f"{where}: etude and the official runtime differ: {wrong}")
    return problems


def in_child(folder: Path, name: str, case: dict[str, Any]) -> str:
    """The problems of a case as text, empty if none; a crash is one."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        try:
            text = "\n".join(check(folder, name, case))
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1].name
            text = f"{type(error).__name__} in {last}: {error}"
        os.write(write_end, text[:4000].encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    return f"killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else text


def main() -> int:
    if len(sys.argv) > 1:
        return check_folder(Path(sys.argv[1]), sys.argv[2:])
    here = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([sys.executable, here / "generate.py", name, here.parent / "corpus"], check=True)
        return check_folder(Path(name), [])


def check_folder(folder: Path, chosen: list[str]) -> int:
    """Check the chosen cases of a folder, or all; the exit status."""
    cases = json.loads((folder / "cases.json").read_text())
    names = chosen or list(cases)
    torch.set_num_threads(1)
    import executorch.runtime  # noqa: F401  once, before forking

    failed, excused, compared = [], [], 0
    for name in names:
        case = cases[name]
        problem = in_child(folder, name, case)
        both = name.startswith("corpus-") and (folder / f"{name}.etude.npz").exists()
        compared += both and (not problem or "etude" in problem)
        if problem and case.get("official", True):
            failed.append(name)
            print(f"FAILED {name}\n  " + problem.replace("\n", "\n  "), flush=True)
        elif problem:
            excused.append(name)
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.split("-")[0], []).append(name)
    for group, members in groups.items():
        good = len([n for n in members if n not in failed and n not in excused])
        print(f"{group}: {good} of {len(members)} run in the official runtime and agree")
    print(f"not counted, since the official runtime is known to fail or differ: {', '.join(excused) or 'none'}")
    missing = [n for n in names if n.startswith("corpus-") and "etude_error" in cases[n]]
    print(f"compared with etude's own outputs: {compared} corpus programs; etude does not run: {', '.join(missing) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
