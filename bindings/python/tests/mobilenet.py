# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 as torchvision builds and exports it, with its normalizations folded into the convolutions, in bytes of
ONNX; weights are random, so that nothing is downloaded, and of a size that keeps activations in range.

    mobilenet.py FOLDER     writes mobilenet_v2.onnx, calibration.npy, images.npy and labels.npy
"""

import pathlib
import sys

import numpy as np
from networks import FLOAT, field, value

SIDE = 64  # of images: a twelfth of the pixels that the network is made for
BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
"""Expansion, channels, number of blocks, stride of the first: table 2 of arXiv:1801.04381."""
CLASSES = 1000


def _attribute(name, ints):
    return field(5, field(1, name) + b"".join(field(8, i) for i in ints) + field(20, 7))


class Writer:
    def __init__(self):
        self.random = np.random.default_rng(0)
        self.nodes, self.constants, self.parameters = b"", b"", 0

    def constant(self, name, array):
        dims = b"".join(field(1, d) for d in array.shape)
        self.constants += field(5, dims + field(2, FLOAT) + field(8, name) + field(9, array.astype("<f4").tobytes()))
        return name

    def weight(self, name, shape, gain):
        self.parameters += int(np.prod(shape))
        fan_in = int(np.prod(shape[1:]))
        return self.constant(name, self.random.standard_normal(shape) * (gain / fan_in) ** 0.5)

    def node(self, op, inputs, attributes=b""):
        output = f"{op.lower()}{len(self.nodes)}"
        names = b"".join(field(1, i) for i in inputs) + field(2, output)
        self.nodes += field(1, names + field(3, f"{output}_node") + field(4, op) + attributes)
        return output

    def conv(self, x, channels, outputs, size=1, stride=1, groups=1, clip=True):
        shape, pad = (outputs, channels // groups, size, size), (size - 1) // 2
        weight = self.weight(f"weight{len(self.nodes)}", shape, 2 if clip else 0.5)
        bias = self.constant(f"bias{len(self.nodes)}", self.random.standard_normal(outputs) * 0.02)
        self.parameters += outputs
        attributes = (_attribute("dilations", [1, 1]) + field(5, field(1, "group") + field(3, groups) + field(20, 2)) +
                      _attribute("kernel_shape", [size] * 2) + _attribute("pads", [pad] * 4) + _attribute("strides", [stride] * 2))
        y = self.node("Conv", [x, weight, bias], attributes)
        return self.node("Clip", [y, "zero", "six"]) if clip else y


def build(side=SIDE):
    """The bytes of the network, and how many parameters it has."""
    w = Writer()
    w.constant("zero", np.float32(0)), w.constant("six", np.float32(6))
    x, channels = w.conv("input", 3, 32, 3, 2), 32
    for expansion, outputs, count, first in BLOCKS:
        for stride in [first] + [1] * (count - 1):
            before, hidden = x, channels * expansion
            if expansion > 1:
                x = w.conv(x, channels, hidden)
            x = w.conv(x, hidden, hidden, 3, stride, hidden)
            x = w.conv(x, hidden, outputs, clip=False)
            if stride == 1 and channels == outputs:
                x = w.node("Add", [before, x])
            channels = outputs
    x = w.conv(x, channels, 1280)
    x = w.node("Flatten", [w.node("GlobalAveragePool", [x])])
    weight = w.weight("classifier.weight", (CLASSES, 1280), 1)
    bias = w.constant("classifier.bias", w.random.standard_normal(CLASSES) * 0.01)
    w.parameters += CLASSES
    names = b"".join(field(1, name) for name in (x, weight, bias)) + field(2, "output")
    transposed = field(5, field(1, "transB") + field(3, 1) + field(20, 2))
    w.nodes += field(1, names + field(3, "classifier") + field(4, "Gemm") + transposed)
    graph = w.nodes + field(2, "mobilenet_v2") + w.constants + field(11, value("input", (-1, 3, side, side)))
    graph += field(12, value("output", (-1, CLASSES)))
    return field(1, 8) + field(8, field(2, 17)) + field(7, graph), w.parameters


def images(count, seed, side=SIDE):
    """Noise at several scales, different in each image, as photographs have it."""
    random = np.random.default_rng(seed)
    found = np.zeros((count, 3, side, side), np.float32)
    cells = 2
    while cells <= side:
        noise = random.standard_normal((count, 3, cells, cells)).astype(np.float32) * 2 / cells**0.5
        found += noise.repeat(side // cells, 2).repeat(side // cells, 3)
        cells *= 4
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "mobilenet_v2.onnx").write_bytes(build()[0])
    np.save(folder / "calibration.npy", images(12, 1))
    np.save(folder / "images.npy", images(24, 2))
    np.save(folder / "labels.npy", np.full(24, 521))  # the class that the network finds in several of them


if __name__ == "__main__":
    main()
