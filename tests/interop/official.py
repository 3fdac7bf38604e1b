"""Run a folder made by generate.py in the official runtime, and compare.

    python official.py [FOLDER [NAME...]]

Runs where torch and executorch are installed; etude need not be, if FOLDER is given. Without it, the folder is made
in a temporary place from the corpus in the tree. Each case runs in a child process, since the
official runtime may abort. Exit status 1 if a case that must run does not, or any output differs: from what is
expected, or, where etude has the operators and backends, from what etude computed. Corpus programs with which the
official runtime is known to have trouble must give it the same trouble when they are written again.
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


def wanted(folder: Path, name: str, case: dict[str, Any]) -> list[list[np.ndarray | None]]:
    """Outputs that must come, of every call: those in the folder, or of another program in this runtime."""
    if case.get("outputs_of"):
        return run(folder, case["outputs_of"], case)
    data = np.load(folder / f"{name}.npz")
    return [[expected(data, f"c{c}_out{k}", s) for k, s in enumerate(call["outputs"])] for c, call in enumerate(case["calls"])]


def check(folder: Path, name: str, case: dict[str, Any]) -> list[str]:
    """Problems of one case."""
    ours = np.load(folder / f"{name}.etude.npz") if (folder / f"{name}.etude.npz").exists() else None
    problems = []
    everything = zip(case["calls"], run(folder, name, case), wanted(folder, name, case), strict=True)
    for c, (call, got, want) in enumerate(everything):
        if len(got) != len(want):
            problems.append(f"call {c}: {len(got)} outputs instead of {len(want)}")
            continue
        for k, (value, good) in enumerate(zip(got, want, strict=True)):
            where, key = f"call {c} ({call['method']}), output {k}", f"c{c}_out{k}"
            wrong = difference(value, good, case["rtol"], case["atol"])
            if wrong:
                problems.append(f"{where}: {wrong}")
            if ours is not None:
                # cases of tolerance 0 are there for one runtime against itself; two may sum in another order
                wrong = difference(value, ours.get(key), max(2 * case["rtol"], 1e-5), max(2 * case["atol"], 1e-6))
                if wrong:
                    problems.append(f"{where}: etude and the official runtime differ: {wrong}")
    return problems


def etude_alone(folder: Path, name: str, case: dict[str, Any]) -> list[str]:
    """Problems of etude's own outputs; for cases with which the official runtime has trouble."""
    path = folder / f"{name}.etude.npz"
    if not path.exists():
        return []
    ours, problems = np.load(path), []
    for c, outputs in enumerate(wanted(folder, name, case)):
        for k, want in enumerate(outputs):
            key = f"c{c}_out{k}"
            wrong = difference(ours.get(key), want, case["rtol"], case["atol"])
            if wrong:
                problems.append(f"etude, call {c}, output {k}: {wrong}")
    return problems


def notices_changes(folder: Path, cases: dict[str, Any], name: str) -> bool:
    """Whether a good case fails once one of the expected outputs, or of etude's, is changed a little."""
    noticed = []
    for source in (f"{name}.npz", f"{name}.etude.npz"):
        path, kept = folder / source, (folder / source).read_bytes()
        arrays = dict(np.load(path))
        key = next(k for k in arrays if "_out" in k and arrays[k].dtype == np.float32 and arrays[k].size)
        arrays[key] = arrays[key] + np.float32(0.01)
        np.savez(path, **arrays)
        noticed.append(bool(in_child(folder, name, cases[name])))
        path.write_bytes(kept)
    return all(noticed)


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
        subprocess.run([sys.executable, here.parents[1] / "bench/emit.py"], check=True)
        subprocess.run([sys.executable, here / "generate.py", name, here.parent / "corpus"], check=True)
        return check_folder(Path(name), [])


def check_folder(folder: Path, chosen: list[str]) -> int:
    """Check the chosen cases of a folder, or all; the exit status."""
    cases = json.loads((folder / "cases.json").read_text())
    names = chosen or list(cases)
    torch.set_num_threads(1)
    import executorch.runtime  # noqa: F401  once, before forking

    problems = {name: in_child(folder, name, cases[name]) for name in names}
    failed = {name: problem for name, problem in problems.items() if problem and cases[name]["official"]}
    for name in names:
        original = "corpus-" + name.removeprefix("again-")
        if name not in failed and problems[name] != problems.get(original, problems[name]):
            failed[name] = f"otherwise than {original}: {problems[name] or 'it runs'}\n{problems[original] or 'it runs'}"
        if "etude_error" in cases[name]:
            failed[name] = f"etude: {cases[name]['etude_error']}"
        elif problems[name] and name not in failed:
            alone = etude_alone(folder, name, cases[name])
            if alone:
                failed[name] = "\n".join(alone)
    if not chosen and not notices_changes(folder, cases, next(n for n in names if not problems[n])):
        failed["self-check"] = "a changed output was not noticed"
    for name, problem in failed.items():
        print(f"FAILED {name}\n  " + problem.replace("\n", "\n  "))
    summarise(folder, cases, names, failed, [n for n in names if problems[n] and n not in failed])
    return 1 if failed or not names else 0


def summarise(folder: Path, cases: dict[str, Any], names: list[str], failed: dict[str, str], excused: list[str]) -> None:
    """What was compared with what."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.split("-")[0], []).append(name)
    for group, members in groups.items():
        good = [n for n in members if n not in failed and n not in excused]
        print(f"{group}: {len(good)} of {len(members)} programs run in the official runtime and agree, {calls(cases, good)}")
    troubled = ", ".join(n.removeprefix("corpus-") for n in excused if n.startswith("corpus-"))
    print(f"known trouble of the official runtime, the same before and after writing; etude is right: {troubled or 'none'}")
    both = [n for n in names if (folder / f"{n}.etude.npz").exists() and n not in failed and n not in excused]
    corpus = [n for n in both if n.startswith("corpus-")]
    print(f"etude and the official runtime agree: {len(both)} programs, {calls(cases, both)}; {len(corpus)} of the corpus")
    lacking = {n: cases[n]["etude_lacks"] for n in names if "etude_lacks" in cases[n]}
    for name, what in lacking.items():
        print(f"etude does not run {name}, for want of {', '.join(what)}")
    print(f"interop: {len(names) - len(failed)} passed, {len(failed)} failed")


def calls(cases: dict[str, Any], names: list[str]) -> str:
    """The number of calls of these cases, in words."""
    return f"{sum(len(cases[n]['calls']) for n in names)} calls"


if __name__ == "__main__":
    sys.exit(main())
