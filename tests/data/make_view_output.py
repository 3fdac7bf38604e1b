#!/usr/bin/env python3
"""Write view_output.pte: outputs y = x as 3 rows, by a view operator, and z = y + 1. x is up to (2, 3); nothing is planned.

Needs etude and flatbuffers installed.
"""

from __future__ import annotations

from pathlib import Path

from etude.emit import ProgramBuilder

builder = ProgramBuilder()
method = builder.method("forward", plan_inputs=False, plan_outputs=False)
x = method.input("float32", [2, 3], dynamic=True)
y = method.dynamic_view(x, [3, -1], [3, 2])
method.output(y, method.call("aten::add.Scalar_out", y, 1))
builder.write(Path(__file__).resolve().parent / "view_output.pte")
