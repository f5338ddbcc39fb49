#!/usr/bin/env python3
"""Makes quant/recipes.json: scales, zero points and weights that the defaults of other systems give a small network.

  fbgemm, x86, qnnpack, onednn   PyTorch's get_default_qconfig: its observers see the activations, its weight observers the
                                 weights, which torch.quantize_per_* rounds
  onnx, onnx_int4, onnx_int16    ONNX Runtime's quantize_static with QInt8, QInt4 weights, with symmetric QInt16 activations
  nvidia                         QuantDescriptor's defaults in NumPy: 8 bits, symmetric, narrow; max calibration; weights by axis 0
  tflite                         TensorFlow Lite's GetAsymmetricQuantizationParams and SymmetricPerChannelQuantization in NumPy

As in make_ptq.py, every activation is exact in float32, so everything must be met exactly. "decibels" is what these grids cost the
result of the network, in NumPy and in PyTorch's float64: the signal of y over its error, over all samples.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_recipes.py
"""

import pathlib
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch.ao.quantization import get_default_qconfig

import golden_json

warnings.simplefilter("ignore")
ACTIVATIONS = ("x", "relu1.out", "conv2.out")  # what is read as integers
random = np.random.default_rng(30)


def fractions(denominator, *shape, limit):
    return (random.integers(-limit, limit + 1, size=shape) / denominator).astype(np.float32)


CONSTANTS = {
    "conv1.weight": fractions(8, 6, 3, 3, 3, limit=5), "conv1.bias": fractions(8, 6, limit=9),
    "conv2.weight": fractions(16, 4, 6, 1, 1, limit=13), "conv2.bias": fractions(8, 4, limit=7),
    "fc.weight": fractions(16, 3, 100, limit=11), "fc.bias": fractions(8, 3, limit=9),
}  # fmt: skip
SAMPLES = [fractions(4, 1, 3, 5, 5, limit=limit) for limit in (7, 9, 8)]
NODES = [
    helper.make_node("Conv", ["x", "conv1.weight", "conv1.bias"], ["conv1.out"], "conv1", pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["conv1.out"], ["relu1.out"], "relu1"),
    helper.make_node("Conv", ["relu1.out", "conv2.weight", "conv2.bias"], ["conv2.out"], "conv2"),
    helper.make_node("Flatten", ["conv2.out"], ["flat.out"], "flatten"),
    helper.make_node("Gemm", ["flat.out", "fc.weight", "fc.bias"], ["y"], "fc", transB=1),
]
WEIGHTS = [name for name in CONSTANTS if name.endswith("weight")]


def model():
    graph = helper.make_graph(
        NODES, "recipes", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 5, 5])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(value, name) for name, value in CONSTANTS.items()])  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made


def activations_of_samples():
    """What every sample makes of the activations, in order."""
    made = model()
    for name in ACTIVATIONS[1:]:
        made.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return [dict(zip(ACTIVATIONS, [x, *session.run(ACTIVATIONS[1:], {"x": x})])) for x in SAMPLES]


def grid(scale, zero_point):
    return {"scale": np.atleast_1d(scale), "zero_point": np.atleast_1d(np.asarray(zero_point, np.int64))}


def from_torch(backend, seen):
    config = get_default_qconfig(backend)
    activations, weights = {}, {}
    for name in ACTIVATIONS:
        observer = config.activation()
        for sample in seen:
            observer(torch.from_numpy(sample[name]))
        activations[name] = grid(*(t.numpy() for t in observer.calculate_qparams()))
    for name in WEIGHTS:
        weight = torch.from_numpy(CONSTANTS[name])
        observer = config.weight()
        observer(weight)
        scale, zero = observer.calculate_qparams()
        if scale.numel() == 1:
            q = torch.quantize_per_tensor(weight, scale.item(), int(zero), torch.qint8)
        else:
            q = torch.quantize_per_channel(weight, scale, zero, 0, torch.qint8)
        weights[name] = {**grid(scale.numpy(), zero.numpy()), "q": q.int_repr().numpy()}
    return {"recipe": backend, "settings": {}, "activations": activations, "weights": weights}


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = list(SAMPLES)

    def get_next(self):
        return {"x": self.left.pop(0)} if self.left else None


def from_onnxruntime(settings, **options):
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "float.onnx"), pathlib.Path(folder, "int8.onnx")
        onnx.save(model(), source)
        quantize_static(source, target, Samples(), quant_format=QuantFormat.QDQ, per_channel=True, **options)
        graph = onnx.load(target).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    activations, weights = {}, {}
    for node in graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] in ACTIVATIONS:
            activations[node.input[0]] = grid(*(arrays[name] for name in node.input[1:3]))
        name = node.input[0].removesuffix("_quantized")
        if node.op_type == "DequantizeLinear" and name in WEIGHTS:
            q, scale, zero = (arrays[name] for name in node.input[:3])
            weights[name] = {**grid(scale, zero.astype(np.int64)), "q": q.astype(np.int8)}
    assert set(activations) == set(ACTIVATIONS) and set(weights) == set(WEIGHTS)
    return {"recipe": "onnx", "settings": settings, "activations": activations, "weights": weights}


def rows(weight):
    return weight.reshape(weight.shape[0], -1)


def by_row(values, weight):
    return values.reshape(-1, *[1] * (weight.ndim - 1))


def from_nvidia(seen):
    def step(amax):
        return 1 / (np.float32(127) / amax).astype(np.float64)

    activations, weights = {}, {}
    for name in ACTIVATIONS:
        activations[name] = grid(step(np.float32(max(np.abs(sample[name]).max() for sample in seen))), 0)
    for name in WEIGHTS:
        weight = CONSTANTS[name]
        amax = np.abs(rows(weight)).max(axis=1)
        q = np.clip(np.rint(weight * by_row(np.float32(127) / amax, weight)), -127, 127).astype(np.int8)
        weights[name] = {**grid(step(amax), np.zeros(amax.size)), "q": q}
    return {"recipe": "nvidia", "settings": {}, "activations": activations, "weights": weights}


def from_tflite(seen):
    def half_away(x):
        return np.copysign(np.floor(np.abs(x) + 0.5), x)

    activations, weights = {}, {}
    for name in ACTIVATIONS:
        low = min(0.0, *(float(sample[name].min()) for sample in seen))
        high = max(0.0, *(float(sample[name].max()) for sample in seen))
        scale = (high - low) / 255
        from_low, from_high = -128 - low / scale, 127 - high / scale
        zero = from_low if 128 + abs(low / scale) < 127 + abs(high / scale) else from_high
        activations[name] = grid(np.float32(scale), int(half_away(np.clip(zero, -128, 127))))
    for name in WEIGHTS:
        weight = CONSTANTS[name]
        scale = (np.abs(rows(weight)).max(axis=1) / np.float32(127)).astype(np.float32)
        by_inverse = half_away(weight * by_row(np.float32(1) / scale, weight))
        q = half_away((weight / by_row(scale, weight)).astype(np.float64))
        assert (by_inverse == q).all()
        weights[name] = {**grid(scale, np.zeros(scale.size)), "q": np.clip(q, -127, 127).astype(np.int8)}
    return {"recipe": "tflite", "settings": {}, "activations": activations, "weights": weights}


def rounded(x, grid, low, high):
    """What QuantizeLinear and DequantizeLinear make of it."""
    scale, zero = np.float32(grid["scale"][0]), int(grid["zero_point"][0])
    steps = np.clip(np.rint(x.astype(np.float32) / scale) + zero, low, high) - zero
    return steps.astype(np.float64) * np.float64(scale)


def result(x, grids=None, low=0, high=0):
    """Of the network in float, or on grids, with biases in units of its products: what runs in integers rounds those in float, too."""

    def on_grid(name, value):
        return rounded(value, grids["activations"][name], low, high) if grids else value

    def constants(layer, of):
        weight, bias = CONSTANTS[f"{layer}.weight"].astype(np.float64), CONSTANTS[f"{layer}.bias"].astype(np.float64)
        if grids:
            made = grids["weights"][f"{layer}.weight"]
            scale = made["scale"].astype(np.float64)
            weight = made["q"].astype(np.float64) * by_row(scale, weight)
            unit = scale * np.float64(np.float32(grids["activations"][of]["scale"][0]))
            bias = np.rint(bias / unit) * unit
        return torch.from_numpy(weight), torch.from_numpy(bias)

    def conv(layer, of, value, padding):
        return torch.nn.functional.conv2d(torch.from_numpy(value), *constants(layer, of), padding=padding).numpy()

    hidden = on_grid("relu1.out", np.maximum(conv("conv1", "x", on_grid("x", x.astype(np.float64)), 1), 0))
    hidden = on_grid("conv2.out", conv("conv2", "relu1.out", hidden, 0))
    weight, bias = constants("fc", "conv2.out")
    return hidden.reshape(1, -1) @ weight.numpy().T + bias.numpy()


def decibels(case):
    bits = 16 if case["settings"].get("activation_dtype") == "int16" else 8
    signed = bits == 16 or case["recipe"] in ("nvidia", "tflite")
    low = -(2 ** (bits - 1)) if signed else 0
    limits = low, low + 2**bits - 1
    real = np.concatenate([result(x) for x in SAMPLES])
    got = np.concatenate([result(x, case, *limits) for x in SAMPLES])
    return round(float(10 * np.log10((real**2).sum() / ((got - real) ** 2).sum())), 3)


def main():
    seen = activations_of_samples()
    eight = {"activation_type": QuantType.QUInt8}
    wide = {"activation_dtype": "int16", "activation_scheme": "per_tensor_symmetric"}
    cases = [from_torch(backend, seen) for backend in ("fbgemm", "x86", "qnnpack", "onednn")]
    cases += [
        from_onnxruntime({}, weight_type=QuantType.QInt8, **eight),
        # Its int4 grid is not a narrow one.
        from_onnxruntime({"weight_dtype": "int4", "weight_narrow_range": 0}, weight_type=QuantType.QInt4, **eight),
        from_onnxruntime(wide, weight_type=QuantType.QInt8, activation_type=QuantType.QInt16,
                         extra_options={"ActivationSymmetric": True}),
        from_nvidia(seen),
        from_tflite(seen),
    ]  # fmt: skip
    for case in cases:
        case["decibels"] = decibels(case)
    nodes = []
    for node in NODES:
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        nodes.append({"op": node.op_type, "name": node.name, "inputs": list(node.input), "outputs": list(node.output), "attrs": attrs})
    golden_json.write(pathlib.Path(__file__).parent / "quant" / "recipes.json", {
        "source": f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, numpy {np.__version__}",
        "input": "x", "output": "y", "nodes": nodes, "constants": CONSTANTS, "samples": SAMPLES, "cases": cases,
    })  # fmt: skip
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
