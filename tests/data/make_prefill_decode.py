#!/usr/bin/env python3
"""Make the program files for the tests of backends, with goldens computed by numpy.

    python tests/data/make_prefill_decode.py            write them beside this script
    python tests/data/make_prefill_decode.py --check    compare only; status 1 where a file is out of date

prefill_decode.pte   methods `prefill` [rows <= 16, 8] -> [rows, 8] and `decode` [1, 8] -> [1, 5], one context binary
named_weights.pte    the same two methods, weights as named data `mlp` of the file
external_weights.pte the same, weights in external_weights.ptd
backends.pte         methods `null`, `scale`, `raw` [2, 3] -> [2, 3], each one delegate of NullBackend, ScaleBackend,
                     ScaleRawBackend; and `chain`: ScaleBackend, NullBackend, ScaleBackend one after the other
prefill_decode.npz, prefill_decode.h: inputs and outputs, for Python and C. Needs etude and flatbuffers installed.
"""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.emit import ProgramBuilder, data_file_bytes, spec

HERE = Path(__file__).resolve().parent
BACKEND = "ContextBinaryBackend"
FEATURES, HIDDEN, LOGITS, MOST_ROWS = 8, 16, 5, 16
LINEAR, RELU, NO_BIAS = 1, 2, 0xFFFFFFFF

Floats = NDArray[np.float32]


def make_weights() -> dict[str, Floats]:
    """The weights of the network: linear layers [out, in] and biases [out]."""
    rng = np.random.default_rng(20240607)
    shapes = {"w1": (HIDDEN, FEATURES), "b1": (HIDDEN,), "w2": (FEATURES, HIDDEN), "b2": (FEATURES,), "w3": (LOGITS, FEATURES)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def context_binary(weights: dict[str, Floats], *, inside: bool = True) -> bytes:
    """The payload: graphs `prefill` (3 layers) and `decode` (one more); without weights if they are not `inside`."""
    at = dict(zip(weights, np.cumsum([0, *(w.size for w in weights.values())])[:-1].tolist(), strict=True))
    layers = [
        (LINEAR, FEATURES, HIDDEN, at["w1"], at["b1"]),
        (RELU, HIDDEN, HIDDEN, 0, NO_BIAS),
        (LINEAR, HIDDEN, FEATURES, at["w2"], at["b2"]),
        (LINEAR, FEATURES, LOGITS, at["w3"], NO_BIAS),
    ]
    graphs = [(b"prefill", 0, 3), (b"decode", 0, 4)]
    data = weight_bytes(weights) if inside else b""
    graphs_at, layers_at = 32, 32 + 40 * len(graphs)
    weights_at = -(-(layers_at + 20 * len(layers)) // 16) * 16
    body = b"".join(struct.pack("<32sII", *graph) for graph in graphs)
    body += b"".join(struct.pack("<5I", *layer) for layer in layers)
    head = struct.pack(
        "<8s6I", b"ETUDECB1", graphs_at, len(graphs), layers_at, len(layers), weights_at, len(data) // 4
    )
    return (head + body).ljust(weights_at, b"\0") + data


def weight_bytes(weights: dict[str, Floats]) -> bytes:
    """All weights one after the other, little-endian."""
    return b"".join(w.astype("<f4").tobytes() for w in weights.values())


def to_bfloat16(values: Floats) -> Floats:
    """Rounded to 8 significant bits, ties to even."""
    bits: NDArray[Any] = values.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


def compute(weights: dict[str, Floats], x: Floats, *, decode: bool) -> Floats:
    """What the graphs compute, in float64, rounded once at the end."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    y = np.maximum(x.astype(np.float64) @ w["w1"].T + w["b1"], 0) @ w["w2"].T + w["b2"]
    return (y @ w["w3"].T if decode else y).astype(np.float32)


def add_methods(builder: ProgramBuilder, payload: bytes, **options: object) -> None:
    """`prefill` with a dynamic number of rows, and `decode`."""
    for name, rows, out in (("prefill", MOST_ROWS, FEATURES), ("decode", 1, LOGITS)):
        method = builder.method(name)
        dynamic = name == "prefill"
        x = method.input("float32", [rows, FEATURES], dynamic=dynamic)
        y = method.delegate(BACKEND, payload, [x], [spec("float32", [rows, out], dynamic=dynamic)], **options)  # type: ignore[arg-type]
        method.output(*y)


def add_chain(builder: ProgramBuilder, name: str, backends: list[str]) -> None:
    """A method that hands one tensor through delegates of the backends."""
    method = builder.method(name)
    value = method.input("float32", [2, 3])
    for number, backend in enumerate(backends):
        (value,) = method.delegate(backend, b"payload %d" % number, [value], [spec("float32", [2, 3])])
    method.output(value)


def c_array(name: str, values: Floats) -> str:
    """A constant array of C."""
    rows = [", ".join(f"{v!r}f" for v in row) for row in values.reshape(-1, values.shape[-1]).tolist()]
    body = ",\n    ".join(rows)
    return f"static const float {name}[{values.size}] = {{\n    {body}}};\n"


def npz_bytes(arrays: dict[str, Floats]) -> bytes:
    """As np.savez, but the same bytes each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return out.getvalue()


def make_files() -> dict[str, bytes]:
    """Name and content of all files."""
    weights = make_weights()
    rounded = {name: to_bfloat16(value) for name, value in weights.items()}
    rng = np.random.default_rng(7)
    prefill = rng.standard_normal((5, FEATURES)).astype(np.float32)
    decode = rng.standard_normal((1, FEATURES)).astype(np.float32)
    arrays = {
        "prefill_input": prefill,
        "prefill_output": compute(weights, prefill, decode=False),
        "prefill_output_bfloat16": compute(rounded, prefill, decode=False),
        "decode_input": decode,
        "decode_output": compute(weights, decode, decode=True),
        "decode_output_bfloat16": compute(rounded, decode, decode=True),
    }
    shared, named, external, others = ProgramBuilder(), ProgramBuilder(), ProgramBuilder(), ProgramBuilder()
    add_methods(shared, context_binary(weights))
    bare = context_binary(weights, inside=False)
    add_methods(named, bare, specs={"weights": b"mlp"}, named_data={"mlp": weight_bytes(weights)})
    add_methods(external, bare, specs={"weights": b"mlp"})
    external.external_data("external_weights.ptd", "mlp", weight_bytes(weights))
    for name, backends in {
        "null": ["NullBackend"],
        "scale": ["ScaleBackend"],
        "raw": ["ScaleRawBackend"],
        "chain": ["ScaleBackend", "NullBackend", "ScaleBackend"],
    }.items():
        add_chain(others, name, backends)
    header = "/* Made by make_prefill_decode.py: what the graphs compute, by numpy. */\n"
    header += f"enum {{ PREFILL_DECODE_WEIGHT_BYTES = {len(weight_bytes(weights))} }};\n"
    header += "".join(c_array(name, values) for name, values in arrays.items())
    return {
        "prefill_decode.pte": shared.to_bytes(),
        "named_weights.pte": named.to_bytes(),
        "external_weights.pte": external.to_bytes(),
        "external_weights.ptd": data_file_bytes(external.data_files()["external_weights.ptd"]),
        "backends.pte": others.to_bytes(),
        "prefill_decode.npz": npz_bytes(arrays),
        "prefill_decode.h": header.encode(),
    }


def main() -> int:
    """Write or compare."""
    stale = []
    for name, content in make_files().items():
        path = HERE / name
        if "--check" not in sys.argv:
            path.write_bytes(content)
            print(f"{name}: {len(content)} bytes")
        elif not path.exists() or path.read_bytes() != content:
            stale.append(name)
    print(*(f"{name} is out of date" for name in stale), sep="\n", end="\n" if stale else "")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
