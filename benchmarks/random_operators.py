#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random calls of operators in float, each a network of one node, in search of those that are slow or wrong: one thread,
compared with ONNX Runtime. Calls are numbered, so that one of them can be timed again.

A row has CPU times in milliseconds and their ratio. Rows are marked where ours takes 1.4 times as long and 20 µs longer, and
where outputs differ: integers at all, floats by more than 2e-5 of the largest. At the end stands a line for each operator: how
many calls are slow, the geometric mean of the ratios of calls of 30 µs and more, and the largest ratio of slow ones.

Run with:
  OMP_NUM_THREADS=1 PYTHONPATH=build/release/python $(benchmarks/peers/make-venv)/bin/python benchmarks/random_operators.py [FIRST [COUNT]] [--only OP ...]
"""

import argparse
import statistics
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import qtensor as qt
from peer_lib import milliseconds_of_turns, ort_session

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 24, 31, 32, 49, 56, 64, 77, 96, 100, 128, 196, 197, 256, 384, 512, 768)
TOTALS = (3e3, 3e4, 3e5, 1e6)  # elements, more or less
SLOW, DIFFERENT, LATE, SHORT = 1.4, 2e-5, 0.02, 0.03
NEWEST = {"RMSNormalization": 23, "GroupNormalization": 21}
ELEMENTWISE = "Abs Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Mish Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus Softsign Tanh".split()
BINARY = "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mul PRelu Sub".split()
REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()


class Call:
    """What a kind makes: arrays of `constants` are in the file, by their places; those of `inputs` take the others in turn."""

    def __init__(self, number):
        self.rng = np.random.default_rng(number)
        self.inputs, self.constants, self.outputs, self.attrs = [], {}, 1, {}
        self.op = None
        self.pick(KINDS)(self)

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def one_in(self, n):
        return int(self.rng.integers(n)) == 0

    def noise(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def shape(self, *ranks):
        rank, total = self.pick(ranks), self.pick(TOTALS)
        while True:
            shape = [self.pick(SIZES) for _ in range(rank)]
            if rank == 1 or total / 4 < np.prod(shape) < total * 2:
                return shape

    def part(self, shape):
        """A shape that is broadcast to this one."""
        part = [1 if self.rng.random() < 0.4 else n for n in shape]
        return part[int(self.rng.integers(len(shape))) :] if self.one_in(3) else part

    def axis(self, shape):
        return int(self.rng.integers(len(shape)))

    def elementwise(self):
        self.op, self.inputs = self.pick(ELEMENTWISE), [self.noise(*self.shape(2, 3, 4))]

    def binary(self):
        self.op, shape = self.pick(BINARY), self.shape(2, 3, 4, 5)
        self.inputs = [self.noise(*shape), self.noise(*self.part(shape))]

    def where(self):
        self.op, shape = "Where", self.shape(2, 3, 4, 5)
        self.inputs = [self.noise(*self.part(shape)) > 0, self.noise(*shape), self.noise(*self.part(shape))]

    def cast(self):
        self.op, types = "Cast", ("float32", "int32", "int64", "uint8", "int8", "bool")
        self.inputs = [self.rng.integers(0, 100, self.shape(3)).astype(self.pick(types))]
        self.attrs = {"to": helper.np_dtype_to_tensor_dtype(np.dtype(self.pick(types)))}

    def reduction(self):
        self.op, shape = self.pick(REDUCTIONS), self.shape(2, 3, 4, 5)
        axes = np.flatnonzero(self.rng.random(len(shape)) < 0.5)
        self.inputs, self.constants = [self.noise(*shape)], {1: axes if len(axes) else np.array([-1])}
        self.attrs = {"keepdims": self.pick((0, 1))}

    def along_axis(self):
        self.op, shape = self.pick(("ArgMax", "ArgMin", "LogSoftmax", "LpNormalization", "Softmax")), self.shape(2, 3, 4)
        self.inputs, self.attrs = [self.noise(*shape)], {"axis": self.axis(shape)}

    def up_to_axis(self):
        self.op, shape = self.pick(("CumSum", "TopK")), self.shape(2, 3)
        axis = self.axis(shape)
        self.inputs = [self.noise(*shape)]
        self.constants = {1: np.array(axis) if self.op == "CumSum" else np.array([1 + int(self.rng.integers(shape[axis]))])}
        if self.op == "TopK":
            self.outputs, self.attrs = 2, {"axis": axis}

    def normalization(self):
        self.op, shape = self.pick(("LayerNormalization", "RMSNormalization")), self.shape(2, 3, 4)
        axis = len(shape) - 1 if self.one_in(2) else self.axis(shape)
        self.inputs, self.constants, self.attrs = [self.noise(*shape)], {1: self.noise(*shape[axis:])}, {"axis": axis}

    def normalization_of_channels(self):
        self.op, shape = self.pick(("BatchNormalization", "GroupNormalization", "InstanceNormalization")), self.shape(3, 4, 4, 5)
        channels = shape[1]
        self.inputs, self.constants = [self.noise(*shape)], {1: self.noise(channels), 2: self.noise(channels)}
        if self.op == "BatchNormalization":
            self.constants |= {3: self.noise(channels), 4: np.abs(self.noise(channels)) + np.float32(0.1)}
        elif self.op == "GroupNormalization":
            self.attrs = {"num_groups": self.pick([n for n in range(1, channels + 1) if channels % n == 0])}

    def image(self, longest):
        axes = self.pick((1, 2, 2, 3))
        return [self.pick((1, 1, 2)), self.pick((1, 3, 8, 16, 32, 64, 100)), *self.rng.integers(6, longest[axes], axes)]

    def global_pool(self):
        self.op, self.inputs = self.pick(("GlobalAveragePool", "GlobalMaxPool")), [self.noise(*self.shape(3, 4, 5))]

    def pool(self):
        self.op, shape = self.pick(("AveragePool", "MaxPool")), self.image({1: 3000, 2: 100, 3: 28})
        kernel = [self.pick((1, 2, 3, 3, 5))] * (len(shape) - 2)
        self.inputs, self.attrs = [self.noise(*shape)], {"kernel_shape": kernel, "strides": [self.pick((1, 2, 2, 3))] * len(kernel)}
        self.attrs["pads"] = [self.pick((0, k // 2)) for k in kernel] * 2

    def resize(self):
        self.op, shape = "Resize", self.image({1: 2000, 2: 64, 3: 16})
        factors = [self.pick((0.3, 0.5, 1.3, 2, 2, 4)) for _ in shape[2:]]
        self.inputs, self.constants = [self.noise(*shape)], {3: np.array(shape[:2] + [max(1, int(n * f)) for n, f in zip(shape[2:], factors)])}
        self.attrs = {"mode": self.pick(("nearest", "linear", "linear"))}
        self.attrs["coordinate_transformation_mode"] = self.pick(("align_corners", "asymmetric", "half_pixel"))

    def movement(self):
        self.op, shape = self.pick(("Concat", "Expand", "Gather", "Pad", "Slice", "Transpose")), self.shape(2, 3, 4, 5)
        axis, x = self.axis(shape), self.noise(*shape)
        self.inputs = [x]
        if self.op == "Concat":
            self.inputs, self.attrs = [x, x], {"axis": axis}
        elif self.op == "Expand":
            self.inputs, self.constants = [self.noise(*self.part(shape))], {1: np.array(shape)}
        elif self.op == "Gather":
            self.constants, self.attrs = {1: self.rng.integers(0, shape[axis], self.pick((1, 5, shape[axis])))}, {"axis": axis}
        elif self.op == "Pad":
            pads = [int(self.rng.integers(0, min(4, n))) for n in shape * 2]
            self.constants, self.attrs = {1: np.array(pads)}, {"mode": self.pick(("constant", "edge", "reflect"))}
        elif self.op == "Slice":
            self.constants = dict(enumerate(np.array([[shape[axis] // 4], [shape[axis]], [axis], [self.pick((1, 1, 2, 3))]]), 1))
        else:
            self.attrs = {"perm": self.rng.permutation(len(shape)).tolist()}

    def product(self):
        sizes = (1, 1, 2, 3, 7, 16, 49, 64, 100, 128, 197, 256, 512)
        m, k, n = (self.pick(sizes) for _ in range(3))
        batch = self.pick(([], [1], [8], [12], [2, 8], [64])) if m * k * n < 1e6 else []
        self.op, self.inputs, right = "MatMul", [self.noise(*batch, m, k)], self.noise(*self.pick((batch, [])), k, n)
        if self.one_in(2):
            self.constants = {1: right}
        else:
            self.inputs.append(right)

    def model(self):
        names, infos, constants, inputs = [], [], [], list(self.inputs)
        for i in range(max([len(self.inputs) + len(self.constants), *(place + 1 for place in self.constants)])):
            names.append(f"x{i}" if i in self.constants or inputs else "")
            if i in self.constants:
                constants.append(numpy_helper.from_array(self.constants[i], names[i]))
            elif inputs:
                x = inputs.pop(0)
                infos.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, **self.attrs)
        graph = helper.make_graph([node], "call", infos, [helper.make_empty_tensor_value_info(y) for y in outputs], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST.get(self.op, 20))], ir_version=10)

    def __str__(self):
        return f"{self.op} {' '.join(str(list(x.shape)) for x in self.inputs)} {self.attrs or ''}".rstrip()


KINDS = [Call.elementwise, Call.binary, Call.binary, Call.where, Call.cast, Call.reduction, Call.reduction, Call.along_axis]
KINDS += [Call.up_to_axis, Call.normalization, Call.normalization_of_channels, Call.global_pool, Call.pool, Call.resize]
KINDS += [Call.movement, Call.movement, Call.product, Call.product]


def differs(got, want):
    if got.shape != want.shape:
        return True
    if want.dtype.kind != "f":
        return bool((got != want).any())
    unlike = ~((got == want) | (np.isnan(got) & np.isnan(want)))
    largest = np.abs(np.where(np.isfinite(want), want, 0)).max(initial=1e-20)
    return bool((np.abs(got[unlike] - want[unlike]) > DIFFERENT * largest).any()) if unlike.any() else False


def measure(call, folder):
    """None where ONNX Runtime refuses the call; otherwise two times, and what is wrong."""
    path = f"{folder}/call.onnx"
    onnx.save(call.model(), path)
    try:
        peer = ort_session(path, 1)
        feeds = dict(zip((i.name for i in peer.get_inputs()), call.inputs))
        want = peer.run(None, feeds)
    except Exception:  # noqa: BLE001 - whatever it is, there is nothing to compare with
        return None
    session = qt.Session(qt.Model.load(path), {"threads": 1})
    got = session(*call.inputs)
    got = list(got) if call.outputs > 1 else [got]
    theirs, ours = milliseconds_of_turns([lambda: peer.run(None, feeds), lambda: session(*call.inputs)])
    wrong = ["differs"] if any(differs(np.asarray(a), np.asarray(b)) for a, b in zip(got, want)) else []
    return theirs, ours, wrong + (["slow"] if ours > SLOW * theirs and ours - theirs > LATE else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--only", nargs="+", metavar="OP")
    arguments = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.first, arguments.first + arguments.count):
            call = Call(number)
            if arguments.only and call.op not in arguments.only:
                continue
            measured = measure(call, folder)
            if not measured:
                continue
            theirs, ours, wrong = measured
            rows.setdefault(call.op, []).append((ours, ours / theirs, "slow" in wrong))
            marks = " ".join(f"[{mark}]" for mark in wrong)
            print(f"{number:6} {call}: ort {theirs:.3f} ours {ours:.3f} ({ours / theirs:.2f}) {marks}".rstrip(), flush=True)
    for op, calls in sorted(rows.items()):
        slow, long = [ratio for _, ratio, is_slow in calls if is_slow], [ratio for ours, ratio, _ in calls if ours > SHORT]
        mean = f"{statistics.geometric_mean(long):.2f}" if long else "-"
        print(f"{op:24} {len(calls):5} calls, {len(slow):4} slow, mean {mean}, largest {max(slow, default=0):.1f}")


if __name__ == "__main__":
    main()
