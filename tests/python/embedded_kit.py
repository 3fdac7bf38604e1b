"""Programs that `etude embed` made, compiled for this machine and called through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np

import etude
from etude.embed.model import identifier
from paths import CORPUS
from test_corpus import CASES, compare, prefix, to_value, widen

_SCALARS = {"Int": ctypes.c_int64, "Double": ctypes.c_double, "Bool": ctypes.c_bool}
_WARNINGS = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]


class NotEmbedded(Exception):
    """The command refuses the program."""


def embed(program: Path, folder: Path, *options: str) -> None:
    """Run the command."""
    command = [sys.executable, "-m", "etude", "embed", str(program), "-o", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in {0, 2} and "Traceback" not in done.stderr, done.stderr
    if done.returncode != 0:
        raise NotEmbedded(done.stderr.strip())


def compile_shared(folder: Path, *flags: str) -> Path:
    """The folder's files as a shared library."""
    library = folder / "model.so"
    sources = [str(path) for path in folder.glob("*.c")]
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *_WARNINGS, *flags, *sources, "-lm", "-o", str(library)], check=True)
    return library


class _Value(ctypes.Structure):
    """An etude_value that is a number."""

    class _As(ctypes.Union):
        _fields_ = (("Int", ctypes.c_int64), ("Double", ctypes.c_double), ("Bool", ctypes.c_bool))

    _fields_ = (("tag", ctypes.c_int32), ("count", ctypes.c_uint32), ("as_", _As))

    @classmethod
    def of(cls, number: float) -> _Value:
        kind = "Bool" if isinstance(number, bool) else "Int" if isinstance(number, int) else "Double"
        value = cls({"Double": 3, "Int": 4, "Bool": 5}[kind])
        setattr(value.as_, kind, number)
        return value


class Embedded:
    """The model of a folder, open in an arena of just the size that its header says."""

    def __init__(self, program: Path, folder: Path, *options: str) -> None:
        embed(program, folder, *options)
        self._library = ctypes.CDLL(str(compile_shared(folder)))
        self._program = etude.load(program)
        self._state = ctypes.create_string_buffer(4096)
        text = (folder / "model.h").read_text()
        size = int(text.split("#define MODEL_ARENA_BYTES ")[1].split("u")[0])
        self._memory = ctypes.create_string_buffer(size + 64)
        at = ctypes.c_void_p(-(-ctypes.addressof(self._memory) // 64) * 64)
        self._check(self._library.model_open(self._state, at, ctypes.c_size_t(size), None))

    def _check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(f"status {status:#x}")

    def close(self) -> None:
        """Take everything back; the arena is empty then."""
        self._library.model_close(self._state)

    def __call__(self, method: str, inputs: list[object]) -> list[object]:
        """Run a method; tensors are numpy arrays."""
        meta = self._program.metadata(method)
        function = f"model_{identifier(method)}"
        taken: list[object] = [self._state]
        kept = []
        for value, info in zip(inputs, meta.inputs, strict=True):
            if info.tensor is None:
                if info.kind in _SCALARS and info.value is None:
                    taken.append(_SCALARS[info.kind](value))
                elif info.kind == "None":
                    taken.append(None if value is None else ctypes.byref(_Value.of(value)))
                continue
            array = np.asarray(value)
            dense = np.ascontiguousarray(array.transpose(info.tensor.dim_order()) if array.ndim else array)
            room = ctypes.create_string_buffer(dense.nbytes + 16)
            start = -(-ctypes.addressof(room) // 16) * 16
            ctypes.memmove(start, dense.ctypes.data, dense.nbytes)
            kept.append(room)
            taken.append(ctypes.c_void_p(start))
            if info.tensor.is_dynamic():
                taken.append((ctypes.c_int32 * max(array.ndim, 1))(*array.shape))
        self._check(getattr(self._library, function)(*taken, None))
        return [self._output(f"{function}_output_{i}", info) for i, info in enumerate(meta.outputs)]

    def _output(self, name: str, info: etude.metadata.ValueInfo) -> object:
        get = getattr(self._library, name)
        if info.tensor is None:
            get.restype = _SCALARS.get(info.kind, _Value)
            return get(self._state)
        get.restype = ctypes.c_void_p
        tensor = info.tensor
        sizes = (ctypes.c_int32 * max(len(tensor.sizes()), 1))(*tensor.sizes())
        at = get(self._state, sizes) if tensor.is_dynamic() else get(self._state)
        shape = tuple(sizes)[: len(tensor.sizes())]
        order = tensor.dim_order()
        dtype = tensor.numpy_dtype()
        count = int(np.prod(shape))
        raw = ctypes.string_at(at, count * dtype.itemsize) if count else b""
        dense = np.frombuffer(raw, dtype).reshape([shape[d] for d in order])
        return dense.transpose(np.argsort(order)) if shape else dense


def run_corpus_case(name: str, folder: Path, *options: str) -> None:
    """Embed a program of the corpus, make its calls and compare with the goldens; the arena must be empty afterwards."""
    case = CASES[name]
    if case["files"]["ptd"]:
        raise NotEmbedded("its data stands in a file of its own")
    data = np.load(CORPUS / case["files"]["npz"])
    model = Embedded(CORPUS / case["files"]["pte"], folder, *options)
    for method, index in case["calls"]:
        spec = case["methods"][method]["sets"][index]
        start = prefix(method, index)
        inputs = [to_value(data[f"{start}in{i}"], one) for i, one in enumerate(spec["inputs"])]
        outputs = model(method, inputs)
        for i, (got, one) in enumerate(zip(outputs, spec["outputs"], strict=True)):
            if one["kind"] == "tensor":
                atol, rtol = (max(case["tolerance"][name], least) for name, least in (("atol", 1e-5), ("rtol", 1e-4)))
                compare(widen(got, one), widen(data[f"{start}out{i}"], one), atol, rtol)
            elif one["kind"] != "none":
                assert got == data[f"{start}out{i}"].item()
    model.close()
