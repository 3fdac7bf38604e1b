"""Runs one operator: a program of a single call is built, loaded and executed."""

from __future__ import annotations

import numpy as np

import etude
from etude.emit import ProgramBuilder, spec


def run(operator, *args, out, dim_order=None, custom=False, **kwargs):
    """The result of `operator` as an array. Arrays among the arguments become inputs of the program.

    `out` is (dtype, shape), or a list of these for several outs; `dim_order` is the one of the first out.
    """
    builder = ProgramBuilder()
    method = builder.method("forward")
    arrays = []

    def value(x):
        if isinstance(x, list) and any(isinstance(i, np.ndarray) for i in x):
            return [value(i) for i in x]
        if not isinstance(x, np.ndarray):
            return x
        arrays.append(x)
        return method.input(x.dtype, x.shape, dim_order=order_of(x))

    bound = [value(x) for x in args]
    named = {key: value(x) for key, x in kwargs.items()}
    outs = out if isinstance(out, list) else [out]
    specs = [spec(dtype, shape, dim_order=dim_order if i == 0 else None) for i, (dtype, shape) in enumerate(outs)]
    made = method.call(operator, *bound, out=specs if isinstance(out, list) else specs[0], custom=custom, **named)
    method.output(*made if isinstance(made, tuple) else [made])
    results = etude.load(builder.to_bytes()).load_method("forward").execute(arrays)
    return results if isinstance(out, list) else results[0]


def order_of(array):
    """The dim order of an array whose elements leave no gaps."""
    return sorted(range(array.ndim), key=lambda d: (-array.strides[d], d))


def channels_last(array):
    """The same array with its second dimension innermost in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
