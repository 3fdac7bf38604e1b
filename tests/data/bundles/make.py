"""Make the bundled programs of this folder with the official exporter (torch 2.13, executorch 1.5.1): `python make.py [FOLDER]`.

cases.bpte: two methods; `forward` has a number as input and outputs of four dtypes, `count` a state buffer and a case that expects
nothing. wrong.bpte: one expected element of case 1 is off by 0.5.
"""

import pathlib
import sys

import torch
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
from executorch.exir import to_edge
from torch import nn
from torch.export import export


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 5)

    def forward(self, x, n):
        y = self.conv(x).relu()
        return self.linear(y.mean((2, 3))) + n, y.argmax(1), y.to(torch.bfloat16), y > 0.1


class Count(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total += x
        return self.total * 2


def cases(net, inputs):
    with torch.no_grad():
        return [MethodTestCase(inputs=i, expected_outputs=net(*i)) for i in inputs]


def save(name, program, suites):
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__)
    target = (folder if folder.is_dir() else folder.parent) / name
    target.write_bytes(serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, suites)))


torch.manual_seed(0)
net = Net().eval()
inputs = [(torch.randn(1, 3, 6, 5).to(memory_format=torch.channels_last), 3) for _ in range(3)]
program = to_edge({"forward": export(net, inputs[0]), "count": export(Count(), (torch.ones(3),))}).to_executorch()
a, b = torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 2, 3])
counted = [MethodTestCase(inputs=(x,), expected_outputs=(2 * x,)) for x in (a, b)] + [MethodTestCase(inputs=(a,))]
save("cases.bpte", program, [MethodTestSuite("forward", cases(net, inputs)), MethodTestSuite("count", counted)])
wrong = cases(net, inputs)
wrong[1].expected_outputs[0] = wrong[1].expected_outputs[0] + 0.5 * (torch.arange(5) == 2)
save("wrong.bpte", program, [MethodTestSuite("forward", wrong)])
