"""Write the folder that official.py checks: programs, inputs, and outputs that must come.

    python generate.py FOLDER CORPUS

Runs where etude is installed (with its extra `emit`). Writes programs made with the builder (expected outputs worked
out with numpy), corpus programs read and written again, planned again, merged, and as they are (expected: their
goldens); programs with delegates written again (expected: what the official runtime makes of the original); and
beside each case what etude itself computes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import emit_programs
import etude
from etude.emit import data_file_bytes, program_bytes, read_data_file, read_program
from etude.emit.merge import Source, merge_programs
from etude.emit.model import Tensor

DATA = Path(__file__).resolve().parents[1] / "data"


class Folder:
    """The cases so far: NAME.pte, its .ptd files, NAME.npz with arrays, and cases.json."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cases: dict[str, dict[str, Any]] = {}
        path.mkdir(parents=True, exist_ok=True)

    def add(
        self, name: str, pte: bytes, ptds: dict[str, bytes], calls: list[emit_programs.Call], rtol: float, atol: float, **facts: Any
    ) -> None:
        """One case; `calls` in order on one loaded program."""
        (self.path / f"{name}.pte").write_bytes(pte)
        files = []
        for i, content in enumerate(ptds.values()):
            files.append(f"{name}{f'.{i}' if i else ''}.ptd")
            (self.path / files[-1]).write_bytes(content)
        arrays: dict[str, np.ndarray] = {}
        described = []
        program = read_program(pte)
        for c, call in enumerate(calls):
            values = [program.method(call.method).values[i] for i in program.method(call.method).inputs]
            inputs = [_store(arrays, f"c{c}_in{k}", v, to) for k, (v, to) in enumerate(zip(call.inputs, values, strict=True))]
            outputs = [_store(arrays, f"c{c}_out{k}", v) for k, v in enumerate(call.outputs)]
            described.append({"method": call.method, "inputs": inputs, "outputs": outputs})
        np.savez(self.path / f"{name}.npz", **arrays)
        self.cases[name] = {"ptds": files, "calls": described, "rtol": rtol, "atol": atol, **facts}

    def finish(self) -> None:
        (self.path / "cases.json").write_text(json.dumps(self.cases, indent=1))


def _store(arrays: dict[str, np.ndarray], key: str, value: Any, to: Any = None) -> dict[str, Any]:
    """Keep a value and describe it: tensor with dtype and the dim order of the input it is for, or a scalar."""
    if isinstance(value, Stored):
        arrays[key] = value.array
        return value.described
    if value is None:
        return {"kind": "none"}
    if isinstance(value, bool | int | float):
        return {"kind": type(value).__name__, "value": value}
    array = np.asarray(value)
    arrays[key] = array
    return {"kind": "tensor", "dtype": array.dtype.name, "dim_order": list(to.dim_order) if isinstance(to, Tensor) else None}


class Stored:
    """An array of the corpus with its description there."""

    def __init__(self, array: np.ndarray, spec: dict[str, Any]) -> None:
        self.array = array
        kind = {"int": "int", "double": "float", "bool": "bool", "none": "none"}.get(spec["kind"], "tensor")
        self.described: dict[str, Any] = {"kind": kind}
        if kind == "tensor":
            self.described.update(dtype=spec["dtype"], dim_order=spec.get("dim_order"))
        elif kind != "none":
            self.described["value"] = array.item()


def corpus_calls(corpus: Path, name: str, case: dict[str, Any]) -> list[emit_programs.Call]:
    """The calls of a corpus case with their goldens."""
    data = np.load(corpus / f"{name}.npz")
    calls = []
    for method, i in case["calls"]:
        prefix = f"{method}__" + (f"s{i}_" if i else "")
        sets = case["methods"][method]["sets"][i]
        inputs = [Stored(data[f"{prefix}in{k}"], s) for k, s in enumerate(sets["inputs"])]
        outputs = [Stored(data[f"{prefix}out{k}"], s) for k, s in enumerate(sets["outputs"])]
        calls.append(emit_programs.Call(method, list(inputs), list(outputs)))
    return calls


def add_corpus(folder: Folder, corpus: Path, cases: dict[str, Any]) -> None:
    """Every corpus program as it is, written again by us, and with memory planned by us."""
    for name, case in cases.items():
        ptds = {p: (corpus / p).read_bytes() for p in case["files"]["ptd"]}
        again = {p: data_file_bytes(read_data_file(content)) for p, content in ptds.items()}
        pte = (corpus / f"{name}.pte").read_bytes()
        program = read_program(pte)
        written = program_bytes(program)
        if read_program(written) != program:
            raise SystemExit(f"{name}: written and read again, it is another program")
        facts = {
            "quantized": any(o.startswith("quantized_decomposed") for m in case["methods"].values() for o in m["operators"]),
            "official": case["official_runtime"]["ran"] and case["official_runtime"]["within_tolerance"],
        }
        calls, tolerance = corpus_calls(corpus, name, case), case["tolerance"]
        versions = [("corpus-", pte, ptds), ("again-", written, again)]
        if facts["official"] and len(program.methods) == 1 and program.methods[0].buffer_sizes:
            emit_programs.plan_again(program.methods[0])
            versions.append(("planned-", program_bytes(program), ptds))
        for prefix, content, files in versions:
            folder.add(prefix + name, content, files, calls, tolerance["rtol"], tolerance["atol"], **facts)


def add_built(folder: Folder, randoms: int) -> None:
    """Programs made with the builder."""
    made = [emit_programs.make(name) for name in emit_programs.CASES]
    made += [emit_programs.random_network(seed) for seed in range(randoms)]
    for c in made:
        folder.add(f"built-{c.name}", c.pte(), c.ptds, c.calls, c.rtol, c.atol, official=True)


def add_delegates(folder: Folder, corpus: Path) -> None:
    """N methods over one payload of a real backend; and lowered programs written again."""
    data = np.load(DATA / "xnnpack" / "x_linear.npz")
    for count in (1, 2, 8):
        pte = emit_programs.delegate_methods((DATA / "xnnpack" / "x_linear.pte").read_bytes(), count).to_bytes()
        payload = read_program(pte).methods[0].delegates[0].payload
        print(f"{count} methods over one payload of {len(payload)} bytes: {len(pte)} bytes")
        ours = [emit_programs.Call(f"method{i}", [data["forward__in0"]], [data["forward__out0"]]) for i in range(count)]
        folder.add(f"built-delegate{count}", pte, {}, ours, 1e-3, 1e-4, official=True)
    rng = np.random.default_rng(3)
    for path in sorted((corpus / "delegates").glob("*.pte")):
        program = read_program(path)
        inputs = {m.name: [m.values[i] for i in m.inputs] for m in program.methods}
        calls = [emit_programs.Call(n, [rng.standard_normal(t.sizes, np.float32) for t in ts], []) for n, ts in inputs.items()]
        folder.add(f"lowered-{path.stem}", path.read_bytes(), {}, calls, 0, 0, official=True, outputs_of=f"lowered-{path.stem}")
        again = program_bytes(program)
        folder.add(f"again-{path.stem}", again, {}, calls, 0, 0, official=True, outputs_of=f"lowered-{path.stem}")


def add_merged(folder: Folder, corpus: Path, cases: dict[str, Any]) -> None:
    """Programs merged from several, with the goldens of each part."""
    parts = [Source(n, read_program(DATA / "llama" / n)) for n in ("prefill.pte", "decode.pte")]
    merged = program_bytes(merge_programs(parts))
    joint = (corpus / "llama_tiny.pte").stat().st_size
    print(f"prefill and decode merged: {len(merged)} bytes, exported together {joint}: {len(merged) / joint:.3f}")
    calls = corpus_calls(corpus, "llama_tiny", cases["llama_tiny"])
    folder.add("merged-llama_tiny", merged, {}, calls, 1e-4, 1e-5, official=True)

    names = ["counter", "counter_initialized", "lenet", "kv_cache", "two_methods"]
    sources, calls = [], []
    rounds = []
    for name in names:
        program = read_program(corpus / f"{name}.pte")
        rename = {m.name: f"{name}_{m.name}" for m in program.methods}
        sources.append(Source(name, program, rename))
        rounds.append([emit_programs.Call(rename[c.method], c.inputs, c.outputs) for c in corpus_calls(corpus, name, cases[name])])
    # In turn, so that each runs between two calls of the others.
    for k in range(max(map(len, rounds))):
        calls += [r[k] for r in rounds if k < len(r)]
    folder.add("merged-states", program_bytes(merge_programs(sources)), {}, calls, 1e-4, 1e-5, official=True)


def run_etude(folder: Folder) -> None:
    """What etude computes, as NAME.etude.npz; operators and backends that it lacks are noted, and so are failures."""
    registry = etude.Runtime.get().backend_registry
    for name, case in folder.cases.items():
        program = etude.load(folder.path / f"{name}.pte", data_path=[folder.path / p for p in case["ptds"]])
        backends = dict.fromkeys(b for method in program for b in program.metadata(method).backends)
        lacking = [*program.missing_operators(), *(b for b in backends if not registry.is_available(b))]
        if lacking:
            case["etude_lacks"] = lacking
            continue
        try:
            np.savez(folder.path / f"{name}.etude.npz", **_outputs(folder, name, case, program))
        except etude.EtudeError as error:
            case["etude_error"] = f"{type(error).__name__}: {error}"


def _outputs(folder: Folder, name: str, case: dict[str, Any], program: etude.Program) -> dict[str, np.ndarray]:
    """Outputs of all calls, bfloat16 as float32."""
    data, arrays = np.load(folder.path / f"{name}.npz"), {}
    for c, call in enumerate(case["calls"]):
        values = [_value(data, f"c{c}_in{k}", s) for k, s in enumerate(call["inputs"])]
        for k, out in enumerate(program.load_method(call["method"]).execute(values)):
            if out is not None:
                array = np.asarray(out)
                arrays[f"c{c}_out{k}"] = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    return arrays


def _value(data: Any, key: str, spec: dict[str, Any]) -> Any:
    if spec["kind"] != "tensor":
        return spec.get("value")
    array = data[key]
    if spec["dtype"] == "bfloat16":
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)
    return array.view(np.float16) if spec["dtype"] == "float16" else array


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--random", type=int, default=40, help="random networks (default 40)")
    args = parser.parse_args()
    cases = json.loads((args.corpus / "manifest.json").read_text())["cases"]
    cases = {n: c for n, c in cases.items() if (args.corpus / f"{n}.pte").exists()}
    shutil.rmtree(args.folder, ignore_errors=True)
    folder = Folder(args.folder)
    add_built(folder, args.random)
    add_delegates(folder, args.corpus)
    add_merged(folder, args.corpus, cases)
    add_corpus(folder, args.corpus, cases)
    run_etude(folder)
    folder.finish()
    print(f"{len(folder.cases)} cases in {os.fspath(args.folder)}")


if __name__ == "__main__":
    main()
