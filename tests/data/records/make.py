"""Make three exports of one network with the official exporter (torch 2.13, executorch 1.5.1), each with its ETRecord: `python make.py`.

portable, delegated (to XNNPACK), quantised (pt2e, portable operators); x.npy is an input. Of a record only what etude reads is kept.
"""

import pathlib
import tempfile
import zipfile

import executorch.kernels.quantized  # noqa: F401  out variants of quantize and dequantize
import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from executorch.exir import to_edge_transform_and_lower
from torch import nn
from torch.export import export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.linear = nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(self.second(self.first(x).relu()).sigmoid().mean((2, 3))).cumsum(1)


def save(name, program, partitioner=()):
    made = to_edge_transform_and_lower(program, partitioner=list(partitioner), generate_etrecord=True).to_executorch()
    (here / f"{name}.pte").write_bytes(made.buffer)
    with tempfile.TemporaryDirectory() as folder:
        whole = f"{folder}/record"
        made.get_etrecord().save(whole)
        with zipfile.ZipFile(whole) as old, zipfile.ZipFile(here / f"{name}.etrecord", "w", zipfile.ZIP_DEFLATED) as new:
            for part in ("ETRECORD_V0", "edge_dialect_exported_program/forward", "debug_handle_map", "delegate_map"):
                new.writestr(part, old.read(part))


here = pathlib.Path(__file__).parent
torch.manual_seed(0)
net, x = Net().eval(), torch.randn(1, 3, 6, 5)
np.save(here / "x.npy", x.numpy())
save("portable", export(net, (x,)))
save("delegated", export(net, (x,)), [XnnpackPartitioner()])
prepared = prepare_pt2e(export(net, (x,)).module(), XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(x)
save("quantised", export(convert_pt2e(prepared), (x,)))
