"""Compare the kernel table with the official registry and with what the exporter may leave in a program.

    python operators.py            print what has no kernel; status 1 if one of these is not in LEFT_OUT, or docs/operators.md is old
    python operators.py --write    write the generated parts of docs/operators.md

Runs where torch and executorch are installed. Three sets are looked at, the likeliest to be met first: the operators that
the official runtime has registered (portable and quantised), the exporter's core ATen set, and every other operator of PyTorch
that the exporter neither decomposes nor refuses, by their out variants.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/operators.md"

#: Operators without a kernel, and why; the likeliest to be missed first. A pattern matches the whole name of the out variant.
LEFT_OUT = [
    (r"aten::allclose\.(out|Tensor)", "in the official lists, but not in the official runtime's registry"),
    (r"aten::(_linalg_(eigh|svd)|linalg_(eig|matrix_exp|pinv|ldl_\w+|householder_product|lu)|geqrf|ormqr|lu_unpack)\..*",
     "decompositions of matrices: no exported program was seen with one"),
    (r"aten::(cholesky|cholesky_inverse|_cholesky_solve_helper|triangular_solve)\..*", "old names of linalg operators"),
    (r"aten::\w*_backward\w*\.(out|grad_input)",
     "gradients beyond those of the official registry and of the core ATen set: for training"),
    (r"aten::special_.*", "special functions that no network in the corpora of exported models has"),
    (r"aten::(igamma|igammac|polygamma|_standard_gamma|binomial|poisson)\..*", "the same, and random numbers that stand on them"),
    (r"aten::_foreach_.*", "lists of tensors at once, for optimisers"),
    (r"aten::_fused_.*|aten::_amp_.*|aten::_masked_scale\.out", "steps of an optimiser, or of training on a GPU"),
    (r"aten::.*generator_(dtype_)?out|aten::.*\.generator_out|aten::randint_like\.(Tensor_out|generator_out)",
     "with a generator object, which a program can't hold: the seed is the method's"),
    (r"aten::.*(sparse|nested|to_dense|_spdiags|segment_reduce).*", "sparse and nested tensors, which the format does not have"),
    (r"aten::(cudnn|_cudnn|miopen|mkldnn|_slow_conv2d_forward|_convolution|convolution_overrideable|_native_multi_head|_transformer_encoder|"
     r"_batch_norm_no_update|_scaled_mm|_addmm_activation|_add_relu|_thnn)\w*\..*",
     "another way to an operator that is there, for one kind of processor"),
    (r"aten::quantize_per_tensor\..*", "quantised tensors of PyTorch's own kind; quantized_decomposed is there"),
    (r"aten::(addmm|bmm|mm|baddbmm)\.dtype_out", "PyTorch has them on GPUs alone"),
    (r"aten::(_pack_padded_sequence|_histogramdd_\w+|histogram|unique_dim|unique_dim_consecutive|_unique|fractional_max_pool\dd|frexp|_trilinear|"
     r"_upsample_lanczos2d_aa)\..*", "rare: in none of the models looked at"),
    (r"aten::(_test_\w+|_foobar|_pin_memory|_resize_output|resize|lift|_efficientzerotensor|_index_put_impl|new_empty_strided|geometric)\..*",
     "PyTorch's own machinery"),
]  # fmt: skip


def kernels() -> dict[str, list[str]]:
    """The rows of the kernel table by file."""
    rows = {}
    for path in sorted((ROOT / "c/kernels").rglob("*.inc")):
        rows[path.stem] = re.findall(r'^ETUDE_OPERATOR(?:_TRAITS)?\("([^"]+)"', path.read_text(), re.M)
    return {family: names for family, names in rows.items() if names}


def registry() -> set[str]:
    """What the official runtime has registered."""
    import executorch
    from executorch.extension.pybindings import portable_lib

    for root in executorch.__path__:
        library = Path(root, "lib", "libexecutorch_kernels_quantized.so")
        if library.exists():
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    return set(portable_lib._get_operator_names())


def out_variant(operator: Any) -> str | None:
    """The name of the out variant that the exporter puts for an operator; None where there is none."""
    from executorch.exir.operator.convert import to_out_variant

    try:
        schema = to_out_variant(operator)[0]._schema
    except Exception:  # of several kinds: views, in-place operators, those with scalar results
        return None
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


def aten() -> tuple[set[str], set[str]]:
    """Out variants of the core ATen set, and of what else the exporter leaves as it is."""
    import executorch.exir  # noqa: F401  out variants of its own
    from torch._decomp import core_aten_decompositions

    decomposed, core, rest = set(core_aten_decompositions()), set(), set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            operator = getattr(packet, overload)
            if torch.Tag.core in operator.tags:
                core.add(out_variant(operator))
            elif operator not in decomposed and stays(operator):
                rest.add(out_variant(operator))
    return core - {None}, rest - {None}  # type: ignore[return-value]


def stays(operator: Any) -> bool:
    text = str(operator._schema)
    if operator._schema.is_mutable or "Dimname" in text or "(a" in text.partition("->")[2]:
        return False
    try:
        return not operator.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    except RuntimeError:
        return False


def place(name: str) -> int:
    """How far down in LEFT_OUT a name is; -1 where it is not."""
    return next((i for i, (pattern, _) in enumerate(LEFT_OUT) if re.fullmatch(pattern, name)), -1)


def grouped(names: set[str]) -> list[tuple[str, list[str]]]:
    """Missing operators by reason, the likeliest first; those without a reason before all."""
    groups: dict[int, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(place(name), []).append(name)
    return [("NO REASON IS GIVEN" if i < 0 else LEFT_OUT[i][1], groups[i]) for i in sorted(groups)]


def with_overloads(names: list[str]) -> str:
    overloads: dict[str, list[str]] = {}
    for name in names:
        base, _, overload = name.partition(".")
        overloads.setdefault(base, []).append(overload)
    return ", ".join(f"`{base.removeprefix('aten::')}`" + (f" ({len(o)})" if len(o) > 1 else "") for base, o in sorted(overloads.items()))


def table(rows: dict[str, list[str]]) -> str:
    lines = [f"{sum(map(len, rows.values()))} rows. A number in parentheses counts overloads; names without a prefix are `aten::`.", ""]
    lines += ["| file | operators |", "|---|---|"]
    lines += [f"| `{family}` | {with_overloads(names)} |" for family, names in rows.items()]
    return "\n".join(lines)


def left_out(missing: set[str]) -> str:
    lines = ["| left out | why |", "|---|---|"]
    lines += [f"| {with_overloads(names)} | {reason} |" for reason, names in grouped(missing)]
    return "\n".join(lines)


def main() -> int:
    rows = kernels()
    have = {name for names in rows.values() for name in names}
    core, rest = aten()
    official = registry()
    failed = False
    for title, wanted in (
        ("operators of the official registry", official),
        ("operators of the core ATen set", core),
        ("other operators that the exporter leaves as they are", rest - core),
    ):
        missing = wanted - have
        print(f"{title}: {len(wanted)}, of which {len(missing)} have no kernel")
        for reason, names in grouped(missing):
            print(f"  {reason}: {' '.join(names)}")
        failed = failed or any(place(name) < 0 for name in missing)
    text = PAGE.read_text(encoding="utf-8")
    parts = {"table": table(rows), "left out": left_out((official | core | rest) - have)}
    page = text
    for name, part in parts.items():
        pattern = rf"(<!-- {name}: made by tests/interop/operators.py -->\n).*?(\n<!-- end -->)"
        page, count = re.subn(pattern, lambda m, part=part: m[1] + part + m[2], page, flags=re.S)
        assert count == 1, f"docs/operators.md has no place for: {name}"
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif page != text:
        print("docs/operators.md is old: python tests/interop/operators.py --write")
        failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
