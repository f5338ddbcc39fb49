#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes layouts.json: operators over random shapes, whose rows are short or long, repeat or lie apart.

Elements follow from their places, as element() says, so that a case has no data: of each output there are its shape and the sum
of its elements times weight() of their places, with the sum of the magnitudes of these.

From: ONNX Runtime.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_layouts.py
"""

import json
import pathlib

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 64, 100)
OPSET = 20
TYPES = ("float32", "int32", "int64", "uint8", "int8", "bool")
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
CASES_OF_EACH = 40


def element(place, seed):
    return ((place * 2654435761 + seed * 40503) % 2**32) >> 24


def weight(place):
    return place * 7919 % 101 + 1


def tensor(shape, dtype, seed):
    count = int(np.prod(shape))
    v = element(np.arange(count, dtype=np.uint64), seed).astype(np.int64)
    v = (v - 128) / 16 if dtype == "float32" else v >= 128 if dtype == "bool" else v % 100
    return v.astype(dtype).reshape(shape)


class Maker:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def shape(self, ranks=(1, 2, 3, 4, 5), most=20000):
        rank = self.pick(ranks)
        while True:
            shape = [self.pick(SIZES) for _ in range(rank)]
            if np.prod(shape) <= most:
                return shape

    def part(self, shape):
        """A shape that is broadcast to this one."""
        part = [1 if self.rng.random() < 0.4 else n for n in shape]
        return part[int(self.rng.integers(len(shape))) :] if self.rng.random() < 0.3 else part

    def comparison(self):
        shape, dtype = self.shape(), self.pick(TYPES[:5])
        inputs = [[shape, dtype], [self.part(shape), dtype]]
        return self.pick(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")), inputs[:: self.pick((1, -1))], {}

    def where(self):
        shape, dtype = self.shape(), self.pick(TYPES[:4])
        return "Where", [[self.part(shape), "bool"], [shape, dtype], [self.part(shape), dtype]], {}

    def cast(self):
        to = self.pick(TYPES)
        return "Cast", [[self.shape(), self.pick(TYPES[1:] if to == "uint8" else TYPES)]], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}

    def expand(self):
        shape = self.shape()
        return "Expand", [[self.part(shape), self.pick(TYPES)], shape], {}

    def transpose(self):
        shape = self.shape(ranks=(2, 3, 4, 5))
        return "Transpose", [[shape, self.pick(TYPES)]], {"perm": self.rng.permutation(len(shape)).tolist()}

    def reduction(self):
        shape = self.shape()
        axes = np.flatnonzero(self.rng.random(len(shape)) < 0.5).tolist() or [len(shape) - 1]
        op = self.pick(REDUCTIONS)
        dtype = self.pick(TYPES[:5]) if op in ("ReduceMax", "ReduceMin") else "float32"
        return op, [[shape, dtype], axes], {"keepdims": self.pick((0, 1))}

    def softmax(self):
        shape = self.shape()
        return self.pick(("Softmax", "LogSoftmax")), [[shape, "float32"]], {"axis": int(self.rng.integers(len(shape)))}

    def normalization(self):
        shape = self.shape()
        return "LpNormalization", [[shape, "float32"]], {"axis": int(self.rng.integers(len(shape))), "p": self.pick((1, 2))}

    def extremum(self):
        shape = self.shape()
        attrs = {"axis": int(self.rng.integers(len(shape))), "keepdims": self.pick((0, 1)), "select_last_index": self.pick((0, 1))}
        return self.pick(("ArgMax", "ArgMin")), [[shape, self.pick(("float32", "int32"))]], attrs

    def pool(self):
        axes = self.pick((1, 2, 2, 3))
        size = [int(self.rng.integers(8, {1: 1200, 2: 50, 3: 14}[axes])) for _ in range(axes)]
        kernel = [self.pick((1, 2, 3, 5, 7)) for _ in range(axes)]
        attrs = {"kernel_shape": kernel, "strides": [self.pick((1, 1, 2, 3)) for _ in range(axes)], "pads": [k // 2 for k in kernel] * 2}
        attrs |= {"ceil_mode": self.pick((0, 1)), "dilations": [self.pick((1, 1, 2)) for _ in range(axes)]}
        if any(n + 2 * (k // 2) < d * (k - 1) + 1 for n, k, d in zip(size, kernel, attrs["dilations"])):
            return self.pool()
        return "MaxPool", [[[self.pick((1, 2)), self.pick((1, 2, 3)), *size], "float32"]], attrs

    def convolution(self):
        """By weights that are no constants, half of them of one place."""
        axes, groups = self.pick((1, 2, 2, 2, 3)), self.pick((1, 1, 2, 3))
        size = [int(self.rng.integers(1, {1: 200, 2: 20, 3: 8}[axes])) for _ in range(axes)]
        kernel = [self.pick((1, 2, 3, 5)) for _ in range(axes)] if self.rng.random() < 0.5 else [1] * axes
        attrs = {"group": groups, "strides": [1 if k == 1 else self.pick((1, 1, 2)) for k in kernel], "pads": [k // 2 for k in kernel] * 2}
        if any(n + 2 * (k // 2) < k for n, k in zip(size, kernel)):
            return self.convolution()
        channels, filters = self.pick((1, 2, 3, 8, 17)), groups * self.pick((1, 2, 5, 16, 33))
        inputs = [[[self.pick((1, 2)), groups * channels, *size], "float32"], [[filters, channels, *kernel], "float32"], [[filters], "float32"]]
        return "Conv", inputs[: self.pick((2, 3))], attrs

    def nearest(self):
        """Most of them double what lies side by side."""
        shape, dtype = self.shape(ranks=(1, 2, 3, 4), most=4000), self.pick(("float32", "uint8", "int32"))
        scales = [self.pick((1, 2, 3)) for _ in shape[:-1]] + [self.pick((2, 2, 2, 1, 3, 4))]
        sizes = [n * s for n, s in zip(shape, scales)]
        attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return "Resize", [[shape, dtype], None, None, sizes], attrs

    def padding(self):
        shape = self.shape(most=4000)
        pads = [self.pick((0, 0, 1, 2, 5)) for _ in range(2 * len(shape))]
        return "Pad", [[shape, "float32"], pads], {"mode": self.pick(("constant", "edge"))}

    def tiling(self):
        shape = self.shape(ranks=(1, 2, 3, 4), most=2000)
        return "Tile", [[shape, self.pick(("float32", "int64", "uint8"))], [self.pick((1, 2, 3)) for _ in shape]], {}

    def whole_reduction(self):
        """Of numbers that have no kernels, along axes in front as along the last ones."""
        shape, dtype = self.shape(), self.pick(("int32", "int64", "float64"))
        axes = np.flatnonzero(self.rng.random(len(shape)) < 0.5).tolist() or [0]
        return self.pick(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")), [[shape, dtype], axes], {"keepdims": self.pick((0, 1))}

    def whole_arithmetic(self):
        shape, dtype = self.shape(), self.pick(("int32", "int64", "float64"))
        if self.rng.random() < 0.3:
            attrs = {"exclusive": self.pick((0, 1)), "reverse": self.pick((0, 1))}
            return "CumSum", [[shape, dtype], [int(self.rng.integers(len(shape)))]], attrs
        return self.pick(("Add", "Sub", "Mul")), [[shape, dtype], [self.part(shape), dtype]][:: self.pick((1, -1))], {}


def run(op, inputs, attrs, seed):
    feeds, constants, infos = {}, [], []
    for i, described in enumerate(inputs):
        if described is None:
            continue
        if isinstance(described[0], list):
            feeds[f"x{i}"] = tensor(*described, seed + i)
            infos.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(np.dtype(described[1])), described[0]))
        else:
            constants.append(numpy_helper.from_array(np.array(described, np.int64), f"x{i}"))
    names = ["" if described is None else f"x{i}" for i, described in enumerate(inputs)]
    node = helper.make_node(op, names, ["y"], **attrs)
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def main():
    maker = Maker(0)
    makers = (maker.comparison, maker.where, maker.cast, maker.expand, maker.transpose, maker.reduction, maker.softmax)
    makers += (maker.normalization, maker.extremum, maker.pool, maker.convolution, maker.nearest, maker.padding, maker.tiling)
    makers += (maker.whole_reduction, maker.whole_arithmetic)
    rows = []
    for make in makers:
        for _ in range(CASES_OF_EACH):
            op, inputs, attrs = make()
            seed = len(rows)
            y = run(op, inputs, attrs, seed)
            terms = y.astype(np.float64).ravel() * weight(np.arange(y.size))
            row = {"op": op, "inputs": inputs, "attrs": attrs, "shape": list(y.shape), "sum": float(terms.sum()), "of": float(np.abs(terms).sum())}
            rows.append(json.dumps(row))
    text = ",\n".join(rows)
    pathlib.Path(__file__).with_name("layouts.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
