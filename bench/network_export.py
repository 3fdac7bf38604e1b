#!/usr/bin/env python3
"""Export the networks that bench/networks.py measures, with random weights, by the official exporter.

    python bench/network_export.py FOLDER [NAME ...]

Writes NAME.pte (portable operators), NAME_x.pte (delegated to XNNPACK), NAME.onnx where ONNX has the arithmetic, and NAME.npz (inputs
x0, x1, …; y: what eager PyTorch computes). Needs torch, executorch, and for some networks torchao, onnx and onnxscript.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import export

# ---- networks -------------------------------------------------------------------------------------------------------------------


def convolution(ins, outs, kernel, stride, groups=1, act=nn.ReLU6):
    layers = [nn.Conv2d(ins, outs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outs)]
    return nn.Sequential(*layers, *([act()] if act else []))


class InvertedResidual(nn.Module):
    def __init__(self, ins, outs, stride, expansion):
        super().__init__()
        hidden = ins * expansion
        layers = [] if expansion == 1 else [convolution(ins, hidden, 1, 1)]
        layers += [convolution(hidden, hidden, 3, stride, hidden), convolution(hidden, outs, 1, 1, act=None)]
        self.body, self.residual = nn.Sequential(*layers), stride == 1 and ins == outs

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


def mobilenet_v2():
    layers, ins = [convolution(3, 32, 3, 2)], 32
    for expansion, outs, count, stride in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:
        for k in range(count):
            layers.append(InvertedResidual(ins, outs, stride if k == 0 else 1, expansion))
            ins = outs
    return nn.Sequential(*layers, convolution(320, 1280, 1, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class Bottleneck(nn.Module):
    def __init__(self, ins, width, stride):
        super().__init__()
        outs = width * 4
        self.body = nn.Sequential(
            convolution(ins, width, 1, 1, act=nn.ReLU),
            convolution(width, width, 3, stride, act=nn.ReLU),
            convolution(width, outs, 1, 1, act=None),
        )
        self.down = convolution(ins, outs, 1, stride, act=None) if stride != 1 or ins != outs else None

    def forward(self, x):
        return torch.relu(self.body(x) + (x if self.down is None else self.down(x)))


def resnet_50():
    layers, ins = [convolution(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for k in range(count):
            layers.append(Bottleneck(ins, width, stride if k == 0 else 1))
            ins = width * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Encoder(nn.Module):
    """The shape of all-MiniLM-L6, with a smaller vocabulary."""

    def __init__(self, width=384, heads=6, layers=6, length=128, vocabulary=8000):
        super().__init__()
        self.embedding, self.heads = nn.Embedding(vocabulary, width), heads
        self.position = nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "norm2": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(layers)
        )

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        batch, length, width = x.shape
        for layer in self.layers:
            heads = layer["qkv"](layer["norm1"](x)).view(batch, length, 3, self.heads, width // self.heads)
            q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v)
            x = x + layer["out"](mixed.transpose(1, 2).reshape(batch, length, width))
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x))))
        return x.mean(1)


class Decoder(nn.Module):
    """Layers of a Llama of 113 M weights without its embedding and cache: what the products cost."""

    def __init__(self, width=1024, heads=16, hidden=2816, layers=9):
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.RMSNorm(width),
                    "q": nn.Linear(width, width, bias=False),
                    "k": nn.Linear(width, width, bias=False),
                    "v": nn.Linear(width, width, bias=False),
                    "out": nn.Linear(width, width, bias=False),
                    "norm2": nn.RMSNorm(width),
                    "gate": nn.Linear(width, hidden, bias=False),
                    "up": nn.Linear(width, hidden, bias=False),
                    "down": nn.Linear(hidden, width, bias=False),
                }
            )
            for _ in range(layers)
        )

    def forward(self, x):
        batch, length, width = x.shape
        for layer in self.layers:
            n = layer["norm1"](x)
            q, k, v = (layer[i](n).view(batch, length, self.heads, width // self.heads).transpose(1, 2) for i in "qkv")
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
            x = x + layer["out"](mixed.transpose(1, 2).reshape(batch, length, width))
            n = layer["norm2"](x)
            x = x + layer["down"](F.silu(layer["gate"](n)) * layer["up"](n))
        return x


# ---- exporting ------------------------------------------------------------------------------------------------------------------


def quantize_static(module, inputs):
    """int8 weights, one scale for each channel, and int8 activations, calibrated on a few inputs like the first."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(export(module, inputs, strict=True).module(), quantizer)
    for _ in range(3):
        prepared(*(torch.randn_like(x) if x.is_floating_point() else x for x in inputs))
    return convert_pt2e(prepared)


def quantize_dynamic(module):
    """4-bit weights with a scale for each 32, activations of 8 bits that are quantised when they are multiplied."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    from torchao.utils import unwrap_tensor_subclass

    quantize_(module, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)))
    unwrap_tensor_subclass(module)


class Int8Linear(nn.Module):
    """The weights of a linear layer as int8, with a scale for each output; activations stay floats."""

    def __init__(self, linear):
        super().__init__()
        scales = linear.weight.detach().abs().amax(1) / 127
        self.register_buffer("weight", (linear.weight.detach() / scales[:, None]).round().to(torch.int8))
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", torch.zeros(len(scales), dtype=torch.int64))
        self.bias = linear.bias

    def forward(self, x):
        dequantize = torch.ops.quantized_decomposed.dequantize_per_channel
        return F.linear(x, dequantize(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8), self.bias)


def quantize_weights(module):
    """int8 weights of linear layers alone."""
    from torch.ao.quantization.fx import _decomposed  # noqa: F401  (defines the operators)

    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            quantize_weights(child)
    return module


def image():
    return (torch.randn(1, 3, 224, 224),)


def write(folder, name, module, inputs, partitioners, portable=True, onnx=True):
    """`partitioners` None: with portable operators alone."""
    import executorch.kernels.quantized  # noqa: F401  (registers operators that portable int8 programs name)
    from executorch.exir import to_edge, to_edge_transform_and_lower

    module = module.eval() if isinstance(module, nn.Module) and not isinstance(module, torch.fx.GraphModule) else module
    with torch.no_grad():
        y = module(*inputs)
    y = y[0] if isinstance(y, tuple) else y
    np.savez(folder / f"{name}.npz", y=y.numpy(), **{f"x{i}": x.numpy() for i, x in enumerate(inputs)})
    program = export(module, inputs, strict=True)
    if portable:
        (folder / f"{name}.pte").write_bytes(to_edge(program).to_executorch().buffer)
    if partitioners is not None:
        delegated = to_edge_transform_and_lower(program, partitioner=partitioners).to_executorch()
        (folder / f"{name}_x.pte").write_bytes(delegated.buffer)
    if onnx:
        torch.onnx.export(module, inputs, str(folder / f"{name}.onnx"), dynamo=True, external_data=False)
    print(name, flush=True)


def main():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackDynamicallyQuantizedPartitioner, XnnpackPartitioner

    folder, names = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    floats = [XnnpackPartitioner()]
    dynamic = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]

    def decoder(length):
        torch.manual_seed(0)
        module = Decoder().eval()
        quantize_dynamic(module)
        write(folder, f"decoder_{length}", module, (torch.randn(1, length, 1024),), dynamic, portable=False, onnx=False)

    def short_decoder(name, length, quantize):
        write(folder, name, quantize(Decoder(layers=3).eval()), (torch.randn(1, length, 1024),), None, onnx=False)

    networks = {
        "mobilenet_v2": lambda: write(folder, "mobilenet_v2", mobilenet_v2(), image(), floats),
        "resnet_50": lambda: write(folder, "resnet_50", resnet_50(), image(), floats),
        "minilm": lambda: write(folder, "minilm", Encoder(), (torch.randint(0, 8000, (1, 128)),), floats),
        "mobilenet_v2_int8": lambda: write(
            folder, "mobilenet_v2_int8", quantize_static(mobilenet_v2().eval(), image()), image(), floats, onnx=False
        ),
        "minilm_weights8": lambda: write(
            folder, "minilm_weights8", quantize_weights(Encoder().eval()), (torch.randint(0, 8000, (1, 128)),), None, onnx=False
        ),
        "minilm_int8": lambda: write(
            folder,
            "minilm_int8",
            quantize_static(Encoder().eval(), (torch.randint(0, 8000, (1, 128)),)),
            (torch.randint(0, 8000, (1, 128)),),
            floats,
            onnx=False,
        ),
        "short_decoder_1": lambda: short_decoder("short_decoder_1", 1, lambda module: module),
        "short_decoder_128": lambda: short_decoder("short_decoder_128", 128, lambda module: module),
        "short_decoder_weights8_1": lambda: short_decoder("short_decoder_weights8_1", 1, quantize_weights),
        "short_decoder_weights8_128": lambda: short_decoder("short_decoder_weights8_128", 128, quantize_weights),
        "decoder_128": lambda: decoder(128),
        "decoder_1": lambda: decoder(1),
    }
    for name in names or networks:
        torch.manual_seed(0)
        networks[name]()


if __name__ == "__main__":
    main()
