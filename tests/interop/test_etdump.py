"""Our event dumps in the official Inspector, beside the official runtime's of the same program."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import Inspector
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

import etude
from etude import etdump, intermediates


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Conv2d(4, 4, 3, padding=1)
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(self.second(self.first(x).relu()).sigmoid().mean((2, 3))).cumsum(1)


@pytest.fixture(scope="module", params=[[], [XnnpackPartitioner()]], ids=["portable", "xnnpack"])
def files(request, tmp_path_factory):
    """Dumps of both runtimes: {"etude" and "official": (events, values)}, and the path of the record."""
    folder = tmp_path_factory.mktemp("etdump")
    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(1, 3, 6, 5)
    lowered = to_edge_transform_and_lower(torch.export.export(net, (x,)), partitioner=request.param, generate_etrecord=True)
    program = lowered.to_executorch()
    record = program.get_etrecord()
    record.update_representative_inputs([x])
    record.update_reference_outputs([net(x)])
    record.save(str(folder / "record"))
    paths = {who: (str(folder / f"{who}.etdp"), str(folder / f"{who}.bin")) for who in ("etude", "official")}

    official = Runtime.get().load_program(program.buffer, enable_etdump=True, debug_buffer_size=1_000_000)
    official.load_method("forward").execute([x])
    official.write_etdump_result_to_file(*paths["official"])

    method = etude.load(program.buffer).load_method("forward", constant_limit=0)
    with etude.profile(method) as profile:
        outputs = method.execute([x.numpy()])
    etdump.write(paths["etude"][0], profile, intermediates.record(method, [x.numpy()]), outputs, debug_buffer=paths["etude"][1])
    return paths, str(folder / "record"), net(x).detach(), profile


def inspector(files, who):
    (events, values), record = files[0][who], files[1]
    return Inspector(etdump_path=events, etrecord=record, debug_buffer_path=values)


def test_events_are_those_of_the_official_runtime(files):
    found = {}
    for who in ("etude", "official"):
        (block,) = (b for b in inspector(files, who).event_blocks if b.name == "Execute")
        found[who] = [(e.name, e._instruction_id, e.op_types, e.debug_handles) for e in block.events if not e.is_delegated_op]
        (output,) = block.run_output
        torch.testing.assert_close(output, files[2])
    assert sorted(found["etude"], key=str) == sorted(found["official"], key=str)


def test_times_are_those_of_the_profile(files):
    (block,) = inspector(files, "etude").event_blocks
    for row in files[3].rows:
        names = {"kernel": f"native_call_{row.name.rpartition('::')[2]}", "delegate": "DELEGATE_CALL", "node": f"{row.name} #{row.node}"}
        (event,) = (e for e in block.events if e.name == names[row.kind] and e._instruction_id == row.instruction)
        assert event.perf_data.avg == pytest.approx(row.total / 1e6) and bool(event.is_delegated_op) == (row.kind == "node")


def test_the_inspector_compares_values_with_eager_ones(files):
    gaps = {who: inspector(files, who).calculate_numeric_gap("L1") for who in ("etude", "official")}
    assert list(gaps["etude"]["aot_debug_handle"]) == list(gaps["official"]["aot_debug_handle"])
    assert all(np.max(gap) < 1e-4 for gap in gaps["etude"]["gap"])
