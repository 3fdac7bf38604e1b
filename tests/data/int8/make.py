#!/usr/bin/env python3
"""int8 networks as a quantiser leaves them, with two inputs and what eager PyTorch makes of them, quantised as they are.

    make.py FOLDER        FOLDER: this one. Needs torch, torchao and executorch.

`int8_cnn`, `int8_ds_cnn` (depthwise convolutions, a sum) and `int8_mlp` are quantised throughout, `int8_mix` in part (functions, products,
concatenation, dilation).
"""

from __future__ import annotations

import sys
from pathlib import Path

import executorch.kernels.quantized  # noqa: F401  out variants of quantize and dequantize
import numpy as np
import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from executorch.exir import EdgeCompileConfig, to_edge
from torch import nn
from torch.nn import functional
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class DepthwiseSeparable(nn.Module):
    """As in keyword spotting."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, 2, 1)
        self.depthwise = nn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.pointwise = nn.Conv2d(16, 24, 1)
        self.second_depthwise = nn.Conv2d(24, 24, 3, 2, 1, groups=24)
        self.second_pointwise = nn.Conv2d(24, 24, 1)
        self.residual = nn.Conv2d(24, 24, 3, 1, 1)
        self.last = nn.Linear(24, 10)

    def forward(self, x):
        for layer in (self.first, self.depthwise, self.pointwise, self.second_depthwise, self.second_pointwise):
            x = functional.relu(layer(x))
        x = functional.relu(x + self.residual(x))
        return self.last(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Convolutional(nn.Module):
    """Convolutions, pooling, linear layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 12, 3, 1, 1)
        self.third, self.last = nn.Linear(12 * 16, 32), nn.Linear(32, 5)

    def forward(self, x):
        for layer in (self.first, self.second):
            x = functional.max_pool2d(functional.relu(layer(x)), 2)
        return self.last(functional.relu(self.third(x.flatten(1))))


class Perceptron(nn.Module):
    """Linear layers, with one scale for each weight."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(128, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 6))

    def forward(self, x):
        return self.layers(x)


class Mixed(nn.Module):
    """What a quantiser does in part."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 8, 3, 2, 1), nn.Conv2d(8, 8, (3, 1), 1, (2, 0), dilation=(2, 1))
        self.gate, self.last = nn.Linear(8, 8), nn.Conv2d(16, 6, 1)

    def forward(self, x):
        x = functional.hardtanh(self.first(x), 0, 6)
        gate = torch.sigmoid(self.gate(x.mean((2, 3)))).unsqueeze(-1).unsqueeze(-1)
        x = torch.cat([x, functional.relu6(self.second(x)) * gate], 1)
        return functional.avg_pool2d(functional.hardswish(self.last(x)), 2)


NETWORKS = {
    "int8_ds_cnn": (DepthwiseSeparable, (1, 1, 24, 20)),
    "int8_cnn": (Convolutional, (1, 3, 16, 16)),
    "int8_mlp": (Perceptron, (3, 128)),
    "int8_mix": (Mixed, (1, 2, 14, 10)),
}


def main() -> None:
    """Write them all."""
    for name, (network, shape) in NETWORKS.items():
        torch.manual_seed(0)
        samples = [torch.randn(shape) for _ in range(8)]
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=name != "int8_mlp"))
        prepared = prepare_pt2e(torch.export.export(network().eval(), (samples[0],), strict=True).module(), quantizer)
        for sample in samples:
            prepared(sample)
        quantized = convert_pt2e(prepared)
        with torch.no_grad():
            outputs = [quantized(sample) for sample in samples[:2]]
        exported = torch.export.export(quantized, (samples[0],), strict=True)
        edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        target = Path(sys.argv[1]) / f"{name}.pte"
        target.write_bytes(edge.to_executorch().buffer)
        arrays = {}
        for prefix, sample, output in zip(("forward__", "forward__s1_"), samples, outputs, strict=False):
            arrays |= {f"{prefix}in0": sample.numpy(), f"{prefix}out0": output.numpy()}
        np.savez_compressed(target.with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    main()
