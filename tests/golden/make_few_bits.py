#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes quant/few_bits_int4.onnx, quant/few_bits_int2.onnx and quant/few_bits.json: networks whose weights are packed,
two or four to a byte, and what ONNX's reference evaluator and ONNX Runtime compute with them, which must be the same.

There is a convolution, a depthwise one, one whose weights two nodes share, a Gemm with transB and a MatMul, with scales
per tensor and per output channel, of sizes that leave a byte part empty and let rows begin inside of bytes. Scales are
powers of two, so that every sum is exact in float32 and nothing depends on its order.

Also quant/signed_blocks_*.onnx and quant/signed_blocks.json: weights of which some have scales below zero or 0, as ONNX
Runtime's quantizer of blocks gives them, and what ONNX Runtime and the formula of DequantizeLinear make of them.

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


K, N, BLOCK = 72, 24, 16  # of which the last block is short
BLOCKS = -(-K // BLOCK)
MICROSOFT = "com.microsoft"


def packed(codes, bits):
    """Codes along the last axis in bytes, the first one in the lowest bits."""
    per_byte = 8 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % per_byte)])
    parts = codes.reshape(*codes.shape[:-1], -1, per_byte).astype(np.uint8)
    return np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype=np.uint8), axis=-1)


def signed_scales(random, shape):
    return (random.choice([-1, 1], shape) * 2.0 ** -random.integers(3, 6, shape)).astype(np.float32)


def blocks_model(nodes, inputs, constants, columns, opset=21):
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", columns])]
    graph = helper.make_graph(nodes, "signed_blocks", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset < 25 else 13, producer_name="make_few_bits")


def product_input():
    return [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", K])]


def nbits(random, bits, zeros):
    """MatMulNBits, whose codes are unsigned; scales may also be 0."""
    q = random.integers(0, 2**bits, (N, BLOCKS * BLOCK))
    scale = signed_scales(random, (N, BLOCKS))
    scale[::5, 1] = 0
    zero = random.integers(0, 2**bits, (N, BLOCKS)) if zeros else np.full((N, BLOCKS), 2 ** (bits - 1))
    constants = {"w": packed(q, bits).reshape(N, BLOCKS, -1), "scale": scale.ravel()}
    if zeros:
        constants["zero"] = packed(zero, bits).ravel()
    node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], name="product", domain=MICROSOFT, K=K, N=N, bits=bits, block_size=BLOCK)
    reals = (q - zero.repeat(BLOCK, 1)) * scale.repeat(BLOCK, 1)
    return blocks_model([node], product_input(), constants, N), bits, lambda x: x @ reals[:, :K].T


def dequantized(random, dtype, axis, opset=21):
    """DequantizeLinear of a matrix in front of a product."""
    info = ml_dtypes.iinfo(dtype)
    q = random.integers(info.min, info.max + 1, (K, N) if axis == 0 else (N, K))
    shape = (BLOCKS, N) if axis == 0 else (N, BLOCKS)
    scale, zero = signed_scales(random, shape), random.integers(info.min, info.max + 1, shape)
    constants = {"w": q.astype(dtype), "scale": scale, "zero": zero.astype(dtype)}
    nodes = [helper.make_node("DequantizeLinear", [*constants], ["real"], name="dequantize", axis=axis, block_size=BLOCK),
             helper.make_node("Gemm", ["x", "real"], ["y"], name="product", transB=axis)]
    each = lambda blocks: blocks.repeat(BLOCK, axis).take(range(K), axis)
    reals = (q - each(zero)) * each(scale)
    return blocks_model(nodes, product_input(), constants, N, opset), info.bits, lambda x: x @ (reals if axis == 0 else reals.T)


def zeroed(random, dtype, blocks):
    """The same with scales that are 0, in blocks or one for each row."""
    info = ml_dtypes.iinfo(dtype)
    low, high = max(info.min, -1024), min(info.max, 1024)  # sums stay exact
    q, shape = random.integers(low, high + 1, (N, K)), (N, BLOCKS) if blocks else N
    scale, zero = 2.0 ** -random.integers(3, 6, shape), random.integers(low, high + 1, shape)
    scale.ravel()[::3] = 0
    constants = {"w": q.astype(dtype), "scale": scale.astype(np.float32), "zero": zero.astype(dtype)}
    form = {"axis": 1, "block_size": BLOCK} if blocks else {"axis": 0}
    nodes = [helper.make_node("DequantizeLinear", [*constants], ["real"], name="dequantize", **form),
             helper.make_node("Gemm", ["x", "real"], ["y"], name="product", transB=1)]
    each = lambda s: s.repeat(BLOCK, 1)[:, :K] if blocks else s[:, None]
    reals = (q - each(zero)) * each(scale)
    return blocks_model(nodes, product_input(), constants, N), info.bits, lambda x: x @ reals.T


def gathered(random, bits, zeros=False):
    """GatherBlockQuantized of rows; with zero points, one row has scales of 0, as that of padding has."""
    q = random.integers(0, 2**bits, (9, 2 * BLOCK))
    scale, zero = signed_scales(random, (9, 2)), np.full((9, 2), 2 ** (bits - 1))
    constants = {"w": packed(q, bits), "scale": scale}
    inputs = ["w", "x", "scale"]
    if zeros:
        scale[3] = 0
        zero = random.integers(0, 2**bits, (9, 2))
        constants["zero"] = packed(zero, bits)
        inputs.append("zero")
    node = helper.make_node("GatherBlockQuantized", inputs, ["y"], name="rows", domain=MICROSOFT, bits=bits,
                            gather_axis=0, quantize_axis=1, block_size=BLOCK)
    reals = (q - zero.repeat(BLOCK, 1)) * scale.repeat(BLOCK, 1)
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT64, ["rows"])]
    return blocks_model([node], inputs, constants, 2 * BLOCK), bits, lambda x: reals[x]


SIGNED = {
    **{f"nbits_{bits}{'_zeros' if zeros else ''}": (nbits, bits, zeros) for bits in (2, 4, 8) for zeros in (False, True)},
    **{f"{dtype.__name__}_axis_{axis}": (dequantized, dtype, axis)
       for dtype in (ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8) for axis in (0, 1)},
    "int2_axis_0": (dequantized, ml_dtypes.int2, 0, 25),
    **{f"gather_{bits}{'_zeros' if zeros else ''}": (gathered, bits, zeros) for bits in (4, 8) for zeros in (False, True)},
    **{f"zeroed_{dtype.__name__}_{'blocks' if blocks else 'rows'}": (zeroed, dtype, blocks)
       for dtype in (ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8, np.int16, np.uint16) for blocks in (False, True)},
}  # fmt: skip


def signed_case(name):
    make, *arguments = SIGNED[name]
    random = np.random.default_rng(len(name) + sum(map(ord, name)))
    model, bits, formula = make(random, *arguments)
    path = OUT / f"signed_blocks_{name}.onnx"
    path.write_bytes(model.SerializeToString())
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # floats stay floats
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    runs = []
    for rows in (1, 9):
        x = random.integers(0, 9, rows) if make is gathered else (random.integers(-16, 17, (rows, K)) / 16).astype(np.float32)
        y = session.run(None, {"x": x})[0]
        np.testing.assert_array_equal(y, formula(x).astype(np.float32))
        runs.append({"x": golden_json.Tensor(x), "y": golden_json.Tensor(y)})
    return {"name": name, "file": path.name, "bits": bits, "runs": runs}


if __name__ == "__main__":
    golden_json.write(OUT / "few_bits.json", {"cases": [case_of(name) for name in TYPES]})
    golden_json.write(OUT / "signed_blocks.json", {"cases": [signed_case(name) for name in SIGNED]})
