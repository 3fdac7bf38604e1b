#!/usr/bin/env python3
"""Write the programs of this folder: views of tensors that are not row-major. Needs torch and executorch.

    make_views.py [NAME...]

The exporter makes an alias of a reshape, over the bytes of a channels-last tensor, and writes no instruction for it.
NAME.npz holds calls and what eager PyTorch computes: s0_in0, s0_out0, s1_in0, …
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, ExecutorchBackendConfig, to_edge
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F
from torch.utils import _pytree as pytree

HERE = Path(__file__).parent
BATCH = Dim("batch", min=1, max=6)
UNPLANNED = {"memory_planning_pass": MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)}
KEPT = {"passes": [InitializedMutableBufferPass(["kept"])], "emit_mutable_buffer_names": True}


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def last(*sizes: int) -> torch.Tensor:
    """A random tensor in channels-last order."""
    return torch.randn(*sizes).to(memory_format=torch.channels_last)


class Case:
    """A module, its calls, and how it is exported."""

    def __init__(
        self,
        module: nn.Module | Callable[..., Any],
        *calls: tuple[torch.Tensor, ...],
        dynamic: bool = False,
        config: dict[str, Any] | None = None,
        lower: Callable[[EdgeProgramManager], EdgeProgramManager] = lambda program: program,
    ) -> None:
        self.module = module if isinstance(module, nn.Module) else Function(module)
        self.calls = calls
        self.dynamic_shapes = (tuple({0: BATCH} for _ in calls[0]),) if dynamic else None
        self.config = config or {}
        self.lower = lower


class Families(nn.Module):
    """An operator of each family after a view: elementwise, products, reductions, softmax, norms, data movement, …"""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.conv = nn.Conv1d(4, 3, 2)
        self.norm = nn.LayerNorm(6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = x.relu().flatten(2)  # (2, 4, 6)
        index = torch.tensor([2, 0, 3])
        return (
            v * 2 + 1, v > 0.5, torch.where(v > 0.5, v, -v), v.to(torch.int32), torch.clamp(v, 0.1, 0.9),
            self.linear(v), v @ v.transpose(1, 2), torch.addmm(torch.ones(4, 4), v[0], v[1].t()),
            v.sum(-1), v.mean((0, 2)), v.amax(1), v.argmax(2), v.var(2), v.cumsum(1), v.max(1)[0],
            v.softmax(-1), v.log_softmax(1), self.norm(v), F.batch_norm(v, torch.zeros(4), torch.ones(4)),
            v.transpose(1, 2).contiguous(), torch.cat((v, v), 2), v[:, 1:3], v.flip(1), F.pad(v, (1, 2)), v.repeat(1, 2, 1),
            torch.stack((v, v)), v.unsqueeze(0) + 1, v.squeeze() + 1, v.expand(2, 4, 6) + 1,
            v.index_select(1, index), v[:, index], v.gather(2, torch.zeros(2, 4, 3, dtype=torch.int64) + 5),
            v.topk(2)[0], v.sort(1)[0], self.conv(v), F.avg_pool2d(v, 2), F.max_pool2d(v, 2),
            F.interpolate(v[:, :, :, None], scale_factor=2.0), torch.cdist(v, v), v.masked_fill(v > 1, 0.0), v.clone(),
        )  # fmt: skip


class Parameter(nn.Module):
    """A view of a channels-last parameter."""

    def __init__(self, twin: bool = False) -> None:
        super().__init__()
        self.w = nn.Parameter(last(2, 3, 4, 5))
        self.twin = nn.Parameter(self.w.detach().permute(0, 2, 3, 1).reshape(2, 3, 4, 5)) if twin else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.twin is not None:  # equal bytes, but a parameter of its own
            return self.w + self.twin + x
        return self.w.reshape(2, 3, 20) + x


class State(nn.Module):
    """A view of a channels-last buffer, before or after it changes."""

    def __init__(self, after: bool) -> None:
        super().__init__()
        self.register_buffer("kept", last(2, 3, 4, 5))
        self.after = after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.after:
            self.kept.add_(x)
            return self.kept.flatten(2) * 2
        result = self.kept.flatten(2) + x.flatten(2)
        self.kept.add_(1.0)
        return result


class Branches(nn.Module):
    """Views inside of branches, or before them."""

    def __init__(self, inside: bool) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, which: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if self.inside:
            return torch.cond(which, lambda x: x.relu().flatten(2) + 1, lambda x: x.neg().flatten(2) * 2, (x,))
        return torch.cond(which, lambda v: v + 1, lambda v: v * 2, (x.relu().flatten(2),))


class Loop(nn.Module):
    """A view in each turn of a loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def turn(row: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return (x * row).flatten(2) + row

        return torch._higher_order_ops.map(turn, torch.tensor([1.0, 2.0, 3.0]), x)


class SineBackend(BackendDetails):
    """Computes sines."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        return PreprocessResult(processed_bytes=b"sine")


class SinePartitioner(Partitioner):
    """Gives sines to SineBackend."""

    def partition(self, exported_program: Any) -> PartitionResult:
        spec = DelegationSpec("SineBackend", [])
        tags = {}
        for number, node in enumerate(exported_program.graph.nodes):
            if node.op == "call_function" and "sin" in str(node.target):
                tags[f"tag{number}"] = spec
                node.meta["delegation_tag"] = f"tag{number}"
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)


def two_views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.relu()
    return y.flatten(2) * 2, y.view(2, 3, 2, 2, 5) + 1, y + 1


def reused(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Memory is used for one after the other."""
    total = torch.zeros(2, 3, 20)
    for k in range(4):
        x = x.relu() + k
        total = total + x.flatten(2)
    return total, x


def tokens(x: torch.Tensor) -> torch.Tensor:
    """What vision transformers do."""
    v = x.flatten(2).transpose(1, 2)
    return (v @ v.transpose(1, 2)).softmax(-1) @ v


def chain(x: torch.Tensor) -> torch.Tensor:
    return x.relu().flatten(2).view(2, 3, 4, 5).view(2, 3, 2, 2, 5) * 2


CASES: dict[str, Callable[[], Case]] = {
    "given": lambda: Case(
        lambda x: x.reshape(1, 8, 4) + 1, (torch.arange(32.0).view(1, 8, 2, 2).to(memory_format=torch.channels_last),)
    ),
    "families": lambda: Case(Families(), (last(2, 4, 2, 3),)),
    "input": lambda: Case(lambda x: x.flatten(2) * 2, (last(2, 3, 4, 5),), (last(2, 3, 4, 5),)),
    "unplanned": lambda: Case(lambda x: x.flatten(2) * 2, (last(2, 3, 4, 5),), (last(2, 3, 4, 5),), config=UNPLANNED),
    "chain": lambda: Case(chain, (last(2, 3, 4, 5),)),
    "two_views": lambda: Case(two_views, (last(2, 3, 4, 5),)),
    "reused": lambda: Case(reused, (last(2, 3, 4, 5),)),
    "tokens": lambda: Case(tokens, (last(2, 3, 4, 5),), dynamic=False),
    "dynamic": lambda: Case(
        lambda x: (x.relu().flatten(2) * 2, x.flatten(2) + 1), (last(2, 3, 4, 5),), (last(6, 3, 4, 5),),
        (last(1, 3, 4, 5),), dynamic=True,
    ),
    "dynamic_tokens": lambda: Case(tokens, (last(2, 3, 4, 5),), (last(5, 3, 4, 5),), dynamic=True),
    "dynamic_unplanned": lambda: Case(
        lambda x: x.flatten(2) * 2, (last(2, 3, 4, 5),), (last(6, 3, 4, 5),), (last(1, 3, 4, 5),), dynamic=True,
        config=UNPLANNED,
    ),
    "output": lambda: Case(
        lambda x: (x.relu().flatten(2), x.neg().flatten(2) + 1), (last(2, 3, 4, 5),)
    ),
    "parameter": lambda: Case(Parameter(), (torch.randn(2, 3, 20),)),
    "equal_parameters": lambda: Case(Parameter(twin=True), (last(2, 3, 4, 5),)),
    "state_before": lambda: Case(
        State(False), *((last(2, 3, 4, 5),) for _ in range(3)), config=KEPT
    ),
    "state_after": lambda: Case(
        State(True), *((last(2, 3, 4, 5),) for _ in range(3)), config=KEPT
    ),
    "branch_inside": lambda: Case(Branches(True), *((torch.tensor(b), last(2, 3, 4, 5)) for b in (True, False, True))),
    "branch_before": lambda: Case(Branches(False), *((torch.tensor(b), last(2, 3, 4, 5)) for b in (True, False, True))),
    "loop": lambda: Case(Loop(), (last(2, 3, 4, 5),)),
    "delegate": lambda: Case(
        lambda x: (torch.sin(x.relu().flatten(2)) + 1, torch.sin(x.neg()) + x),
        (last(2, 3, 4, 5),), lower=lambda program: program.to_backend(SinePartitioner()),
    ),
    "integers": lambda: Case(
        lambda x: (x.abs().flatten(2) + 1, x.to(torch.uint8).flatten(2) + 1, (x > 2).flatten(2).logical_not()),
        (torch.arange(120).view(2, 3, 4, 5).to(memory_format=torch.channels_last),),
    ),
}  # fmt: skip


def make(name: str) -> None:
    """Write NAME.pte and NAME.npz."""
    torch.manual_seed(0)
    case = CASES[name]()
    module = case.module.eval()
    with torch.no_grad():
        program = export(copy.deepcopy(module), case.calls[0], dynamic_shapes=case.dynamic_shapes, strict=False)
        edge = case.lower(to_edge(program, compile_config=EdgeCompileConfig(_check_ir_validity=False)))
        executable = edge.to_executorch(ExecutorchBackendConfig(**case.config))
    with (HERE / f"{name}.pte").open("wb") as file:
        executable.write_to_file(file)
    arrays = {}
    for number, call in enumerate(case.calls):
        with torch.no_grad():
            results = pytree.tree_leaves(module(*copy.deepcopy(call)))
        for kind, tensors in (("in", call), ("out", results)):
            arrays |= {f"s{number}_{kind}{i}": tensor.detach().numpy() for i, tensor in enumerate(tensors)}
    np.savez(HERE / f"{name}.npz", **arrays)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or CASES:
        make(wanted)
        print(wanted, (HERE / f"{wanted}.pte").stat().st_size, "bytes")
