#!/usr/bin/env python3
"""Write kinds.pte: pictures in several layouts, and scalars of every kind, for the test of the page.

    make_kinds.py kinds.pte      needs: pip install etude[emit]

Every method gives what it gets.
"""

import sys

from etude.emit import ProgramBuilder

program = ProgramBuilder()
for name, dtype, shape in [
    ("forward", "float32", (1, 4, 6, 3)),
    ("bytes", "uint8", (1, 3, 4, 6)),
    ("both", "float32", (1, 3, 5, 3)),
    ("half", "float16", (1, 2)),
    ("complex", "complex64", (2,)),
]:
    method = program.method(name)
    method.output(method.call("aten::clone.out", method.input(dtype, shape)))
method = program.method("scalars")
for scalar in ["text", 7, 0.5, True, None]:
    method.output(method.input_scalar(scalar))
program.write(sys.argv[1])
