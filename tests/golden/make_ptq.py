#!/usr/bin/env python3
"""Makes quant/ptq.json and quant/ptq_concat.json: scales, zero points and integers that ONNX Runtime's quantize_static gives
two small networks, and what these then answer: their outputs are on a grid as well.

One is a residual block with pooling and a classifier, the other joins what it has pooled with what it has computed from it, of
a wider range. Weights and inputs are multiples of powers of two, so that every activation is exact in float32 in whatever
order it is summed, and calibrated ranges must agree to the bit. One output channel of `conv3` is all zeros, and the classifier
has a bias too large for int32 in units of its input and weight scales.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_ptq.py
"""

import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import golden_json

SAMPLES = 3
random = np.random.default_rng(20)


def eighths(*shape, limit=4):
    return (random.integers(-limit, limit + 1, size=shape) / 8).astype(np.float32)


def network():
    constants = {
        "conv1.weight": eighths(8, 3, 3, 3), "conv1.bias": eighths(8),
        "conv2.weight": eighths(8, 8, 3, 3, limit=2), "conv2.bias": eighths(8),
        "conv3.weight": eighths(8, 1, 3, 3), "conv3.bias": eighths(8),
        "conv4.weight": eighths(4, 8, 1, 1),
        "fc.weight": eighths(5, 36), "fc.bias": eighths(5),
    }
    constants["conv3.weight"][5] = 0
    constants["fc.weight"][2] = np.float32(2.0**-20)
    constants["fc.bias"][2] = 1000
    nodes = [
        helper.make_node("Conv", ["x", "conv1.weight", "conv1.bias"], ["conv1.out"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv1.out"], ["relu1.out"], "relu1"),
        helper.make_node("MaxPool", ["relu1.out"], ["pool.out"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["pool.out", "conv2.weight", "conv2.bias"], ["conv2.out"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv2.out"], ["relu2.out"], "relu2"),
        helper.make_node("Conv", ["relu2.out", "conv3.weight", "conv3.bias"], ["conv3.out"], "conv3", pads=[1, 1, 1, 1], group=8),
        helper.make_node("Add", ["conv3.out", "pool.out"], ["add.out"], "add"),
        helper.make_node("Conv", ["add.out", "conv4.weight"], ["conv4.out"], "conv4", strides=[2, 2]),
        helper.make_node("Flatten", ["conv4.out"], ["flat.out"], "flatten"),
        helper.make_node("Gemm", ["flat.out", "fc.weight", "fc.bias"], ["y"], "fc", transB=1),
    ]
    return model_of("residual", nodes, constants, [1, 5]), constants


def joining_network():
    constants = {
        "conv1.weight": eighths(4, 3, 3, 3, limit=1), "conv1.bias": eighths(4),
        "conv2.weight": eighths(6, 4, 3, 3), "conv2.bias": eighths(6),
        "conv3.weight": eighths(5, 10, 1, 1),
    }
    nodes = [
        helper.make_node("Conv", ["x", "conv1.weight", "conv1.bias"], ["conv1.out"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv1.out"], ["relu1.out"], "relu1"),
        helper.make_node("MaxPool", ["relu1.out"], ["pool.out"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["relu1.out", "conv2.weight", "conv2.bias"], ["conv2.out"], "conv2", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Concat", ["pool.out", "conv2.out"], ["joined.out"], "join", axis=1),
        helper.make_node("Conv", ["joined.out", "conv3.weight"], ["y"], "conv3"),
    ]
    return model_of("joining", nodes, constants, [1, 5, 6, 6]), constants


def model_of(name, nodes, constants, output):
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, output)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


class Samples(CalibrationDataReader):
    def __init__(self, samples):
        self.left = list(samples)

    def get_next(self):
        return {"x": self.left.pop(0)} if self.left else None


def quantized(model, samples):
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "float.onnx"), pathlib.Path(folder, "int8.onnx")
        onnx.save(model, source)
        quantize_static(source, target, Samples(samples), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        return onnx.load(target)


def make(file, model, constants):
    samples = [(random.integers(-8, 9, size=(1, 3, 12, 12)) / 4).astype(np.float32) for _ in range(SAMPLES)]
    integer_model = quantized(model, samples)
    session = onnxruntime.InferenceSession(integer_model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = [session.run(["y"], {"x": sample})[0] for sample in samples]
    result = integer_model.graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in result.initializer}
    activations, integers = {}, {}
    for node in result.node:
        if node.op_type == "QuantizeLinear":
            scale, zero = (arrays[name] for name in node.input[1:3])
            activations[node.input[0]] = {"scale": scale, "zero_point": zero}
        if node.op_type == "DequantizeLinear" and node.input[0] in arrays:
            name = node.input[0].removesuffix("_quantized")
            integers[name] = {"scale": arrays[node.input[1]], "q": arrays[node.input[0]]}
    assert set(integers) == set(constants), (set(integers), set(constants))

    nodes = []
    for node in model.graph.node:
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        nodes.append({"op": node.op_type, "name": node.name, "inputs": list(node.input), "outputs": list(node.output), "attrs": attrs})
    golden_json.write(pathlib.Path(__file__).parent / "quant" / f"{file}.json", {
        "source": f"onnxruntime {onnxruntime.__version__}", "input": "x", "output": "y", "nodes": nodes,
        "constants": constants, "samples": samples, "activations": activations, "integers": integers, "outputs": outputs,
    })


def main():
    make("ptq", *network())
    make("ptq_concat", *joining_network())


if __name__ == "__main__":
    main()
