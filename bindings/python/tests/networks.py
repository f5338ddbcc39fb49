# SPDX-License-Identifier: Apache-2.0
"""Small networks for tests, in bytes of ONNX: y = x0 @ weight [+ x1], with inputs of any shape."""

import numpy as np

FLOAT = 1


def _varint(n):
    low, rest = n & 127, n >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def field(number, content):
    """One of protobuf: an int, a text, or the bytes of a message."""
    if isinstance(content, int):
        return _varint(number << 3) + _varint(content)
    data = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def value(name, shape):
    """A tensor of floats; -1 is a dimension of any size."""
    dims = b"".join(field(1, field(2, "n") if d < 0 else field(1, d)) for d in shape)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, dims)))


def _node(op, inputs, output):
    names = b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output + "_node")
    return field(1, names + field(4, op))


def onnx(*shapes, weight):
    names = [f"x{i}" for i in range(len(shapes))]
    dims = b"".join(field(1, d) for d in weight.shape)
    constant = dims + field(2, FLOAT) + field(8, "weight") + field(9, weight.tobytes())
    nodes = _node("MatMul", ["x0", "weight"], "product" if len(shapes) > 1 else "y")
    if len(shapes) > 1:
        nodes += _node("Add", ["product", "x1"], "y")
    graph = nodes + field(2, "small") + field(5, constant)
    graph += b"".join(field(11, value(name, shape)) for name, shape in zip(names, shapes))
    graph += field(12, value("y", (*shapes[0][:-1], weight.shape[1])))
    return field(1, 8) + field(8, field(2, 17)) + field(7, graph)


def weight(rows, columns):
    return np.random.default_rng(rows * columns).standard_normal((rows, columns)).astype(np.float32)
