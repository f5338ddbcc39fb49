#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes quant/few_bits_int4.onnx, quant/few_bits_int2.onnx and quant/few_bits.json: networks whose weights are packed,
two or four to a byte, and what ONNX's reference evaluator and ONNX Runtime compute with them, which must be the same.

There is a convolution, a depthwise one, one whose weights two nodes share, a Gemm with transB and a MatMul, with scales
per tensor and per output channel, of sizes that leave a byte part empty and let rows begin inside of bytes. Scales are
powers of two, so that every sum is exact in float32 and nothing depends on its order.

Needs: numpy, ml_dtypes, onnx, onnxruntime.   Run with:  make_few_bits.py
"""

import pathlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import golden_json

OUT = pathlib.Path(__file__).with_name("quant")
TYPES = {"int4": (ml_dtypes.int4, 21), "int2": (ml_dtypes.int2, 25)}


class Network:
    def __init__(self, name):
        self.dtype, self.opset = TYPES[name]
        self.random = np.random.default_rng(len(name) + self.opset)
        self.nodes, self.initializers, self.weights = [], [], {}

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, output, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output + "_node", **attrs))
        return output

    def weight(self, name, shape, axis=None):
        """Every integer of the type is there."""
        info = ml_dtypes.iinfo(self.dtype)
        q = self.random.integers(info.min, info.max + 1, shape)
        q.ravel()[:4] = [info.min, info.max, 0, -1]
        scale = 2.0 ** -self.random.integers(3, 6, () if axis is None else shape[axis])
        self.weights[name] = q
        parameters = [self.constant(name + "_quantized", q.astype(self.dtype)),
                      self.constant(name + "_scale", np.asarray(scale, np.float32)),
                      self.constant(name + "_zero_point", np.zeros(np.shape(scale), self.dtype))]
        return self.node("DequantizeLinear", parameters, name, **({} if axis is None else {"axis": axis}))

    def activation(self, x, scale, zero):
        parameters = [self.constant(x + "_scale", np.float32(scale)), self.constant(x + "_zero_point", np.uint8(zero))]
        self.node("QuantizeLinear", [x, *parameters], x + "_integers")
        return self.node("DequantizeLinear", [x + "_integers", *parameters], x + "_real")

    def bias(self, name, count):
        return self.constant(name, (self.random.integers(-8, 9, count) / 8).astype(np.float32))

    def model(self):
        square = {"pads": [1, 1, 1, 1]}
        x = self.activation("x", 1 / 8, 128)
        a = self.node("Conv", [x, self.weight("w1", (5, 3, 3, 3), 0), self.bias("b1", 5)], "a", **square)
        b = self.node("Conv", [self.activation(a, 1 / 4, 120), self.weight("w2", (5, 1, 3, 3), 0)], "b", group=5, **square)
        shared = self.weight("w3", (5, 5, 1, 1))
        c = self.node("Conv", [self.activation(b, 1 / 8, 130), shared], "c")
        d = self.node("Conv", [self.activation(c, 1 / 4, 117), shared], "d")
        flat = self.node("Flatten", [self.activation(d, 1 / 4, 128)], "flat")
        rows = self.weight("w4", (7, 180), 0)
        e = self.node("Gemm", [self.activation(flat, 1 / 4, 128), rows, self.bias("b4", 7)], "e", transB=1)
        self.node("MatMul", [self.activation(e, 1 / 2, 128), self.weight("w5", (7, 3), 1)], "y")
        graph = helper.make_graph(
            self.nodes, "few_bits", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 6, 6])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])], self.initializers,
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="make_few_bits")
        model.ir_version = 10 if self.opset == 21 else 13
        onnx.checker.check_model(model, full_check=True)
        return model


def case_of(name):
    network = Network(name)
    model = network.model()
    path = OUT / f"few_bits_{name}.onnx"
    path.write_bytes(model.SerializeToString())
    reference = ReferenceEvaluator(model)
    runs = []
    for _ in range(4):
        x = (network.random.integers(-160, 161, (1, 3, 6, 6)) / 16).astype(np.float32)
        runs.append((x, reference.run(None, {"x": x})[0]))
    options = onnxruntime.SessionOptions()
    # Its optimizer makes QLinearConv of a Conv with int2 weights, and then finds no such operator.
    options.add_session_config_entry("session.disable_quant_qdq", "1" if name == "int2" else "0")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for x, y in runs:
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], y)
    assert all(np.unique(y).size > 1 for _, y in runs)
    return {"name": name, "file": path.name, "opset": network.opset,
            "weights": {n: golden_json.Tensor(q.astype(np.int8)) for n, q in network.weights.items()},
            "runs": [{"x": golden_json.Tensor(x), "y": golden_json.Tensor(y)} for x, y in runs]}


if __name__ == "__main__":
    golden_json.write(OUT / "few_bits.json", {"cases": [case_of(name) for name in TYPES]})
