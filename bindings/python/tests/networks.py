# SPDX-License-Identifier: Apache-2.0
"""Small networks for tests, in bytes of ONNX: y = x0 @ weight [+ x1], with inputs of any shape."""

import numpy as np

FLOAT = 1


def _varint(n):
    low, rest = n & 127, n >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name, shape):
    dims = b"".join(_field(1, _field(2, "n") if d < 0 else _field(1, d)) for d in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, FLOAT) + _field(2, dims)))


def _node(op, inputs, output):
    names = b"".join(_field(1, i) for i in inputs) + _field(2, output) + _field(3, output + "_node")
    return _field(1, names + _field(4, op))


def onnx(*shapes, weight):
    """-1 is a dimension of any size."""
    names = [f"x{i}" for i in range(len(shapes))]
    dims = b"".join(_field(1, d) for d in weight.shape)
    constant = dims + _field(2, FLOAT) + _field(8, "weight") + _field(9, weight.tobytes())
    nodes = _node("MatMul", ["x0", "weight"], "product" if len(shapes) > 1 else "y")
    if len(shapes) > 1:
        nodes += _node("Add", ["product", "x1"], "y")
    graph = nodes + _field(2, "small") + _field(5, constant)
    graph += b"".join(_field(11, _value(name, shape)) for name, shape in zip(names, shapes))
    graph += _field(12, _value("y", (*shapes[0][:-1], weight.shape[1])))
    return _field(1, 8) + _field(8, _field(2, 17)) + _field(7, graph)


def weight(rows, columns):
    return np.random.default_rng(rows * columns).standard_normal((rows, columns)).astype(np.float32)
