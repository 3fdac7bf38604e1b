#!/usr/bin/env python3
"""Export the small programs of the trial list (test_trial_a.py and others) with the official exporter.

    python export.py [OUTDIR]          needs torch and executorch

The expected values stand in the tests: they are closed forms, or what PyTorch gives.
"""

import sys
from pathlib import Path

import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from torch.export import Dim, export


class Affine(torch.nn.Module):
    def forward(self, x, z):
        return x * 2 + z


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2


class Twice(torch.nn.Module):
    def forward(self, x):
        return x + x


class Length(torch.nn.Module):
    def forward(self, x):
        return torch.cat([x, x + 1], 0), x.sum(1)


class Scalars(torch.nn.Module):
    def forward(self, x, k: int, f: float, b: bool):
        return x * f + k if b else x


class Values(torch.nn.Module):
    def forward(self, x):
        return x + 1, 7, True, 2.5, None


class Nested(torch.nn.Module):
    def forward(self, items):
        return {"sum": items[0] + items[1][0], "product": items[0] * items[1][1]}


class Bucketize(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.tensor([0.0, 1.0, 2.0]))

    def forward(self, x):
        return torch.bucketize(x, self.edges)


class Product(torch.nn.Module):
    """The model of README.md: enough work to be seen by a second thread."""

    def forward(self, a, b):
        for _ in range(8):
            a = torch.tanh(a @ b)
        return a


def plain(module, inputs, dynamic=None, backend=None, keep=()):
    config = EdgeCompileConfig(_check_ir_validity=False, preserve_ops=list(keep)) if keep else EdgeCompileConfig()
    program = to_edge(export(module.eval(), inputs, dynamic_shapes=dynamic), compile_config=config)
    return program.to_executorch(backend or ExecutorchBackendConfig())


def unplanned():
    return ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False))


def programs():
    ones = torch.ones
    yield "affine", plain(Affine(), (ones(2, 3), ones(2, 3)))
    yield "affine_unplanned", plain(Affine(), (ones(2, 3), ones(2, 3)), backend=unplanned())
    yield "image", plain(Double(), (ones(1, 3, 2, 2),))
    yield "image_channels_last", plain(Double(), (ones(2, 3, 4, 5).to(memory_format=torch.channels_last),))
    yield "image_channels_last_unplanned", plain(Double(), (ones(2, 3, 4, 5).to(memory_format=torch.channels_last),), backend=unplanned())
    yield "image_large", plain(Double(), (ones(1, 3, 128, 128),))
    yield "bfloat16", plain(Twice(), (ones(2, 3, dtype=torch.bfloat16),))
    yield "float16", plain(Twice(), (ones(2, 3, dtype=torch.float16),))
    yield "row", plain(Twice(), (ones(1, 3),))
    yield "matrix", plain(Double(), (ones(3, 4),))
    yield "scalar", plain(Double(), (torch.tensor(1.5),))
    yield "int64", plain(Twice(), (ones(4, dtype=torch.int64),))
    yield "bool", plain(_Not(), (torch.tensor([True, False]),))
    yield "length", plain(Length(), (ones(4, 3),), dynamic=({0: Dim("n", min=1, max=8)},))
    yield "length_unplanned", plain(Length(), (ones(4, 3),), dynamic=({0: Dim("n", min=1, max=8)},), backend=unplanned())
    yield "scalars", plain(Scalars(), (ones(2), 3, 0.5, True))
    yield "values", plain(Values(), (ones(2),))
    yield "nested", plain(Nested(), ([ones(2), (ones(2), ones(2))],))
    yield "bucketize", plain(Bucketize(), (ones(2, 2),), keep=[torch.ops.aten.bucketize.Tensor])
    yield "product", plain(Product(), (ones(96, 96), ones(96, 96)))


class _Not(torch.nn.Module):
    def forward(self, x):
        return torch.logical_not(x)


def main():
    out = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    for name, program in programs():
        data = program.buffer
        (out / f"{name}.pte").write_bytes(data)
        print(f"{name}.pte: {len(data)} bytes")


if __name__ == "__main__":
    main()
