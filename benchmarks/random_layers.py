#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random convolutions, plain and transposed ones along one to three axes, in search of those that are slow: in float and in
8 bits, one thread, compared with ONNX Runtime in float. Each stands between two pointwise layers, as in a network, and
is numbered, so that one of them can be timed again.

A row has CPU times in milliseconds, ratios to ONNX Runtime's and to our own float, the largest difference of the float
outputs as a part of the largest output, and the signal-to-quantization-noise ratio. Rows are marked where float takes 1.4
times as long as ONNX Runtime, 8 bits longer than float, or float outputs differ by more than 2e-5. A last line counts them.

Run with:
  OMP_NUM_THREADS=1 PYTHONPATH=build/release/python $(benchmarks/peers/make-venv)/bin/python benchmarks/random_layers.py [FIRST [COUNT]]
"""

import argparse
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import qtensor as qt
from peer_lib import milliseconds_of_turns, ort_session, sqnr_db

LONGEST = {1: 4000, 2: 112, 3: 24}  # sides by the number of axes
FEWEST, MOST = 2e5, 4e8  # multiply-adds
SLOW, DIFFERENT = 1.4, 2e-5


class Layer:
    def __init__(self, number):
        self.rng = np.random.default_rng(number)
        self.axes = self.pick((1, 2, 2, 2, 3))
        self.transposed = self.one_in(4)
        self.activation = self.pick(("", "Relu", "Relu", "Sigmoid"))
        self.batch = self.pick((1, 1, 1, 4))
        self.choose_channels()
        self.kernel = [self.pick((1, 2, 3, 3, 3, 5, 7, 9))] * self.axes
        if self.one_in(3):
            self.kernel = [self.pick((1, 2, 3, 5, 7, 9)) for _ in range(self.axes)]
        self.stride, self.dilation = self.pick((1, 1, 1, 2, 2, 3, 4)), self.pick((1, 1, 1, 1, 2, 4))
        longest = LONGEST[self.axes]
        self.space = [int(self.rng.integers(max(4, longest // 6), longest + 1)) for _ in range(self.axes)]
        self.pads = [self.pick((0, self.dilation * (k // 2))) for k in self.kernel]

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def one_in(self, n):
        return int(self.rng.integers(n)) == 0

    def choose_channels(self):
        self.groups = 1
        self.channels = self.pick((1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 48, 64, 96, 128))
        self.filters = self.pick((1, 2, 3, 4, 6, 8, 15, 16, 24, 32, 48, 64, 100, 128))
        if self.one_in(4):  # each channel for itself
            self.groups, self.filters = self.channels, self.channels * self.pick((1, 1, 1, 2))
        elif self.one_in(5):
            self.groups = self.pick((2, 4, 8))
            self.channels, self.filters = (self.groups * self.pick((1, 2, 4, 8, 16)) for _ in range(2))

    def fits(self):
        """Windows are no larger than what they move over, and the work is neither nothing nor too much."""
        if any(x + 2 * p < self.dilation * (k - 1) + 1 for x, p, k in zip(self.space, self.pads, self.kernel)):
            return False
        taps = self.channels // self.groups * np.prod(self.kernel)
        products = self.batch * self.filters * taps * np.prod(self.space)
        return FEWEST <= products / (1 if self.transposed else self.stride**self.axes) <= MOST

    def __str__(self):
        kind = f"{'ConvTranspose' if self.transposed else 'Conv'} {self.channels}->{self.filters}"
        window = f"kernel {self.kernel} stride {self.stride} dilation {self.dilation} pads {self.pads} groups {self.groups}"
        return f"{kind} {window} over {[self.batch, *self.space]} {self.activation}".rstrip()

    def noise(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def input(self):
        return self.noise(self.batch, self.channels, *self.space)

    def model(self):
        ones = [1] * self.axes
        made, read = (self.channels, self.filters) if self.transposed else (self.filters, self.channels)
        constants = {
            "first": self.noise(self.channels, self.channels, *ones) * self.channels**-0.5,
            "weight": self.noise(made, read // self.groups, *self.kernel) * 0.1,
            "bias": self.noise(self.filters),
            "last": self.noise(8, self.filters, *ones) * 0.1,
        }
        window = {"strides": [self.stride] * self.axes, "pads": self.pads * 2, "dilations": [self.dilation] * self.axes}
        op = "ConvTranspose" if self.transposed else "Conv"
        nodes = [
            helper.make_node("Conv", ["x", "first"], ["a"]),
            helper.make_node(op, ["a", "weight", "bias"], ["b"], group=self.groups, **window),
        ]
        if self.activation:
            nodes.append(helper.make_node(self.activation, ["b"], ["c"]))
        nodes.append(helper.make_node("Conv", [nodes[-1].output[0], "last"], ["y"]))
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [self.batch, self.channels, *self.space])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        graph = helper.make_graph(nodes, "layer", [x], [y], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def measure(layer, folder):
    """None where ONNX Runtime refuses the layer; otherwise the row, and what is wrong with it."""
    path, x = f"{folder}/layer.onnx", layer.input()
    onnx.save(layer.model(), path)
    try:
        peer = ort_session(path, 1)
        want = peer.run(None, {"x": x})[0]
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return None
    model = qt.Model.load(path)
    ours, integers = (qt.Session(m, {"threads": 1}) for m in (model, model.quantize([x], attrs={"plain": 1})))
    difference = np.abs(ours(x) - want).max() / max(np.abs(want).max(), 1e-20)
    theirs, in_float, in_8_bits = milliseconds_of_turns([lambda: peer.run(None, {"x": x}), lambda: ours(x), lambda: integers(x)])
    marks = {"float": in_float > SLOW * theirs, "8 bits": in_8_bits > in_float, "differs": difference > DIFFERENT}
    wrong = [mark for mark, is_wrong in marks.items() if is_wrong]
    in_time = f"ort {theirs:.3f} float {in_float:.3f} ({in_float / theirs:.2f})"
    in_time += f" 8 bits {in_8_bits:.3f} ({in_8_bits / in_float:.2f})"
    return f"{in_time} difference {difference:.0e} sqnr {sqnr_db([want], [integers(x)]):.1f} dB", wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("count", nargs="?", type=int, default=200)
    arguments = parser.parse_args()
    counts, layers = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.first, arguments.first + arguments.count):
            layer = Layer(number)
            measured = layer.fits() and measure(layer, folder)
            if not measured:
                continue
            row, wrong = measured
            layers += 1
            for kind in wrong:
                counts[kind] = counts.get(kind, 0) + 1
            print(f"{number:6} {layer}: {row} {' '.join(f'[{kind}]' for kind in wrong)}".rstrip(), flush=True)
    print(f"{layers} layers; marked: {counts or 'none'}")


if __name__ == "__main__":
    main()
