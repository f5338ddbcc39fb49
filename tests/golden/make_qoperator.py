#!/usr/bin/env python3
"""Makes quant/qoperator.onnx and quant/qoperator.json: a small network in ONNX Runtime's QOperator format, and what ONNX
Runtime computes with it. And quant/qoperator_edges.json with its files: the same network, with activations in uint8 and
in int8, which takes the integers of x and returns those of y.

The float network has one of every layer that quantize_static turns into an operator on integers, and MaxPool, Reshape and
Relu between them, which it leaves as they are or drops. The results of each input are the integers of every layer beside
the network's own float output.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_qoperator.py
"""

import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import golden_json

SHAPE = (1, 3, 8, 8)
random = np.random.default_rng(7)


def network():
    def weights(*shape):
        return (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    constants = {
        "stem.weight": weights(8, 3, 3, 3), "stem.bias": weights(8),
        "depthwise.weight": weights(8, 1, 3, 3), "depthwise.bias": weights(8),
        "side.weight": weights(4, 8, 1, 1), "fc.weight": weights(5, 12), "fc.bias": weights(5),
        "flat": np.array([0, -1], np.int64),
    }  # fmt: skip
    square = [1, 1, 1, 1]
    nodes = [
        helper.make_node("Conv", ["x", "stem.weight", "stem.bias"], ["stem"], pads=square),
        helper.make_node("Relu", ["stem"], ["relu"]),
        helper.make_node("MaxPool", ["relu"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["pool", "depthwise.weight", "depthwise.bias"], ["depthwise"], group=8, pads=square),
        helper.make_node("LeakyRelu", ["depthwise"], ["leaky"], alpha=0.1),
        helper.make_node("Add", ["leaky", "pool"], ["add"]),
        helper.make_node("Sigmoid", ["add"], ["sigmoid"]),
        helper.make_node("Mul", ["add", "sigmoid"], ["mul"]),
        helper.make_node("Conv", ["mul", "side.weight"], ["side"]),
        helper.make_node("AveragePool", ["side"], ["average"], kernel_shape=[3, 3], pads=square),
        helper.make_node("Concat", ["mul", "average"], ["concat"], axis=1),
        helper.make_node("GlobalAveragePool", ["concat"], ["mean"]),
        helper.make_node("Reshape", ["mean", "flat"], ["features"]),
        helper.make_node("Gemm", ["features", "fc.weight", "fc.bias"], ["y"], transB=1),
    ]
    for node in nodes:
        node.name = node.output[0] + "_node"
    graph = helper.make_graph(
        nodes, "qoperator", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


class Samples(CalibrationDataReader):
    def __init__(self, samples):
        self.left = list(samples)

    def get_next(self):
        return {"x": self.left.pop(0)} if self.left else None


def quantized(model, samples, activation_type=QuantType.QUInt8):
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "float.onnx"), pathlib.Path(folder, "int8.onnx")
        onnx.save(model, source)
        quantize_static(
            source, target, Samples(samples), quant_format=QuantFormat.QOperator, per_channel=True,
            activation_type=activation_type, weight_type=QuantType.QInt8,
        )  # fmt: skip
        return onnx.load(target)


def run(model, x):
    """Results by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feed)))


def with_integers_as_outputs(model, x):
    """Every layer's integers beside y, with the shapes that they have for x."""
    for node in model.graph.node:
        for name in node.output:
            if name.endswith("_quantized"):
                model.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None))
    for name, value in run(model, x).items():
        (output,) = [output for output in model.graph.output if output.name == name]
        output.CopyFrom(helper.make_tensor_value_info(name, output.type.tensor_type.elem_type, value.shape))
    onnx.checker.check_model(model)
    return model


def without_floats(model, kind):
    """The QuantizeLinear of x and the DequantizeLinear of y gone, what lay behind them as input and output."""
    (first,) = [node for node in model.graph.node if "x" in node.input]
    (last,) = [node for node in model.graph.node if "y" in node.output]
    assert (first.op_type, last.op_type) == ("QuantizeLinear", "DequantizeLinear"), (first.op_type, last.op_type)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info(first.output[0], kind, SHAPE))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(last.input[0], kind, [1, 5]))
    for node in (first, last):
        model.graph.node.remove(node)
    onnx.checker.check_model(model)
    return model


def edges(model, samples, folder):
    files = []
    for name, kind in (("uint8", QuantType.QUInt8), ("int8", QuantType.QInt8)):
        file = without_floats(quantized(model, samples, kind), kind.tensor_type)
        onnx.save(file, folder / f"qoperator_edges_{name}.onnx")
        limits = np.iinfo(name)
        inputs = [random.integers(limits.min, limits.max + 1, SHAPE).astype(name) for _ in range(3)]
        cases = [{"x": x, "outputs": run(file, x)} for x in inputs]
        files.append({"file": f"qoperator_edges_{name}.onnx", "outputs": list(cases[0]["outputs"]), "cases": cases})
    return files


def main():
    real = network()
    inputs = [random.normal(size=SHAPE).round(2).astype(np.float32) for _ in range(6)]
    model = with_integers_as_outputs(quantized(real, inputs[:4]), inputs[0])
    cases = [{"x": x, "outputs": run(model, x)} for x in inputs[4:]]
    folder = pathlib.Path(__file__).parent / "quant"
    onnx.save(model, folder / "qoperator.onnx")
    del model.graph.output[1:]
    onnx.save(model, folder / "qoperator_alone.onnx")
    document = {"source": f"onnxruntime {onnxruntime.__version__}", "outputs": list(cases[0]["outputs"]), "cases": cases}
    golden_json.write(folder / "qoperator.json", document)
    document = {"source": f"onnxruntime {onnxruntime.__version__}", "files": edges(real, inputs[:4], folder)}
    golden_json.write(folder / "qoperator_edges.json", document)


if __name__ == "__main__":
    main()
