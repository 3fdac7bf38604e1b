"""Programs exported on the spot, for tests that have torch and the official exporter."""

from __future__ import annotations

import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass


def export_methods(methods, planned_outputs=True):
    """The bytes of a program; `methods`: {name: (module, example inputs) or with dynamic shapes as a third}."""
    exported = {name: torch.export.export(m.eval(), i, dynamic_shapes=d[0] if d else None) for name, (m, i, *d) in methods.items()}
    planning = MemoryPlanningPass(alloc_graph_output=planned_outputs)
    config = ExecutorchBackendConfig(memory_planning_pass=planning, emit_mutable_buffer_names=True)
    return bytes(to_edge(exported).to_executorch(config).buffer)


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@pytest.fixture
def exported():
    """`exported(module or function, *example inputs)`: the bytes of a program with that as its only method."""

    def export(body, *inputs, **options):
        return export_methods({"forward": (body if isinstance(body, torch.nn.Module) else Function(body), inputs)}, **options)

    return export


@pytest.fixture(scope="session")
def add_and_more():
    """A program with two methods: x + y, and x + y + 1."""
    inputs = (torch.ones(2, 2), torch.ones(2, 2))
    return export_methods({"forward": (Function(torch.add), inputs), "forward2": (Function(lambda x, y: x + y + 1), inputs)})
