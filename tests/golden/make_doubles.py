#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes doubles/: networks of float64 and float16 and what PyTorch, ONNX's reference evaluator and ONNX Runtime compute with them.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_doubles.py
"""

import pathlib
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import golden_json
from evaluators import by_onnx, by_onnx_runtime

OUT = pathlib.Path(__file__).with_name("doubles")


class Pictures(nn.Module):
    """As PyTorch exports .double(): everything is float64, constants too."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
            nn.ConvTranspose2d(6, 4, 2, stride=2), nn.BatchNorm2d(4), nn.ReLU6(), nn.AvgPool2d(2), nn.PReLU(4),
        )  # fmt: skip
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        y = self.body(x)
        return self.head((y * 2 + 0.25).mean((2, 3))), y


def pictures():
    torch.manual_seed(5)
    net = Pictures().double()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
    net.eval()
    x = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, x, str(OUT / "pictures.onnx"), dynamo=False, opset_version=17, input_names=["x"],
                          output_names=["y", "features"])  # fmt: skip
    with torch.no_grad():
        outputs = net(x)
    return "pictures", [x.numpy()], [t.numpy() for t in outputs]


def of_nodes(name, nodes, inputs, outputs, constants=None, opset=17, evaluate=by_onnx):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, name,
        [value(key, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for key, x in inputs.items()],
        [value(key, dtype, shape) for key, (dtype, shape) in outputs.items()],
        [numpy_helper.from_array(array, key) for key, array in (constants or {}).items()],
    )  # fmt: skip
    domains = [helper.make_opsetid("", opset)]
    if evaluate == by_onnx_runtime:
        domains.append(helper.make_opsetid("com.microsoft", 1))
    model = helper.make_model(graph, opset_imports=domains, ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, OUT / f"{name}.onnx")
    return name, list(inputs.values()), evaluate(model, inputs)


def edges():
    """Inputs and constants as outputs, outputs that nodes read on, integers beside floats, two readers of an input."""
    random, node = np.random.default_rng(6), helper.make_node
    value = helper.make_tensor("value", TensorProto.DOUBLE, [1], [0.5])
    nodes = [
        node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["y"]), node("ArgMax", ["y"], ["top"], axis=1),
        node("Shape", ["x"], ["shape"]), node("ConstantOfShape", ["shape"], ["half"], value=value),
        node("Mul", ["x", "half"], ["x2"]), node("Cast", ["n"], ["wide"], to=TensorProto.DOUBLE),
        node("MatMul", ["x2", "w"], ["h2"]), node("Relu", ["y"], ["r"]), node("Sub", ["r", "h2"], ["d"]),
        node("Mul", ["d", "wide"], ["z"]),
    ]  # fmt: skip
    inputs = {"x": random.normal(size=(3, 4)), "n": np.array([2, 3, 4, 5, 6], np.int64)}
    constants = {"w": random.normal(size=(4, 5)), "b": random.normal(size=5)}
    outputs = {"y": (TensorProto.DOUBLE, [3, 5]), "z": (TensorProto.DOUBLE, [3, 5]), "x": (TensorProto.DOUBLE, [3, 4]),
               "top": (TensorProto.INT64, [3, 1]), "b": (TensorProto.DOUBLE, [5]), "h": (TensorProto.DOUBLE, [3, 5])}  # fmt: skip
    return of_nodes("edges", nodes, inputs, outputs, constants)


def inside():
    """Floats whose product alone is wide."""
    random, node = np.random.default_rng(7), helper.make_node
    nodes = [
        node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE), node("Cast", ["w"], ["v"], to=TensorProto.DOUBLE),
        node("Gemm", ["wide", "v"], ["h"]), node("Cast", ["h"], ["y"], to=TensorProto.FLOAT),
    ]  # fmt: skip
    inputs = {"x": random.normal(size=(3, 4)).astype(np.float32)}
    return of_nodes("inside", nodes, inputs, {"y": (TensorProto.FLOAT, [3, 5])},
                    {"w": random.normal(size=(4, 5)).astype(np.float32)})  # fmt: skip


def kept():
    """Nothing that needs float32: computed in float64."""
    random, node = np.random.default_rng(8), helper.make_node
    nodes = [node("Add", ["x", "c"], ["a"]), node("Mul", ["a", "x"], ["m"]), node("Sqrt", ["s"], ["q"]),
             node("Div", ["m", "q"], ["y"])]  # fmt: skip
    inputs = {"x": random.normal(size=(3, 4)), "s": random.uniform(1, 2, (3, 4))}
    return of_nodes("kept", nodes, inputs, {"y": (TensorProto.DOUBLE, [3, 4])}, {"c": np.array(1 + 1e-12)})


def halves(cast):
    """A convolutional network of float16: as such, and between casts, as tools that halve a float32 network write it."""
    random, node = np.random.default_rng(9), helper.make_node

    def weights(*shape):
        return (random.normal(size=shape) / 4).astype(np.float16)

    first, last = ("x16", "y16") if cast else ("x", "y")
    nodes = [node("Conv", [first, "w", "b"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]),
             node("Mul", ["r", "half"], ["m"]), node("GlobalAveragePool", ["m"], ["p"]), node("Flatten", ["p"], ["f"]),
             node("MatMul", ["f", "v"], ["h"]), node("Softmax", ["h"], [last])]  # fmt: skip
    if cast:
        nodes = [node("Cast", ["x"], ["x16"], to=TensorProto.FLOAT16), *nodes,
                 node("Cast", ["y16"], ["y"], to=TensorProto.FLOAT)]  # fmt: skip
    dtype, code = (np.float32, TensorProto.FLOAT) if cast else (np.float16, TensorProto.FLOAT16)
    constants = {"w": weights(6, 3, 3, 3), "b": weights(6), "half": np.float16(0.5), "v": weights(6, 4)}
    return of_nodes("halves_inside" if cast else "halves", nodes, {"x": random.normal(size=(2, 3, 6, 6)).astype(dtype)},
                    {"y": (code, [2, 4])}, constants)  # fmt: skip


def grids(dtype):
    """A product on grids of float16 with single scales, as NVIDIA's Model Optimizer writes them; no other constant is float16."""
    random, node = np.random.default_rng(10), helper.make_node
    integers = random.integers(-100, 100, (6, 4)).astype(dtype)
    nodes = [node("QuantizeLinear", ["x", "x_scale", "zero"], ["q"]), node("DequantizeLinear", ["q", "x_scale"], ["a"]),
             node("DequantizeLinear", ["w", "w_scale"], ["v"]), node("MatMul", ["a", "v"], ["y"])]  # fmt: skip
    constants = {"w": integers, "x_scale": np.float16(1 / 32), "w_scale": np.float16(1 / 128), "zero": np.array(0, dtype)}
    return of_nodes(f"grids_{np.dtype(dtype).name}", nodes, {"x": random.normal(size=(3, 6)).astype(np.float16)},
                    {"y": (TensorProto.FLOAT16, [3, 4])}, constants, opset=21)  # fmt: skip


def grids_of_floats():
    """A product on grids of float32, while its numbers are float16, which opset 23 allows; and a last value on a grid."""
    random, node = np.random.default_rng(11), helper.make_node
    half = {"output_dtype": TensorProto.FLOAT16}
    nodes = [node("QuantizeLinear", ["x", "x_scale", "zero"], ["q"]), node("DequantizeLinear", ["q", "x_scale", "zero"], ["a"], **half),
             node("DequantizeLinear", ["w", "w_scale"], ["v"], axis=1, **half), node("MatMul", ["a", "v"], ["m"]),
             node("QuantizeLinear", ["m", "y_scale"], ["y_q"]), node("DequantizeLinear", ["y_q", "y_scale"], ["y"], **half)]  # fmt: skip
    constants = {"w": random.integers(-100, 100, (6, 4)).astype(np.int8), "x_scale": np.float32(1 / 32), "zero": np.uint8(100),
                 "w_scale": np.float32([1 / 128, 1 / 64, 1 / 256, 1 / 512]), "y_scale": np.float32(1 / 16)}  # fmt: skip
    return of_nodes("grids_of_floats", nodes, {"x": random.normal(size=(3, 6)).astype(np.float16)},
                    {"y": (TensorProto.FLOAT16, [3, 4])}, constants, opset=23)  # fmt: skip


def halves_alone():
    """Nothing but inputs of float16, so that every node rounds to it; activations and bounds follow what they clip."""
    random, node = np.random.default_rng(12), helper.make_node
    nodes = [node("Add", ["x", "x"], ["a"]), node("Relu", ["a"], ["r"]), node("MatMul", ["r", "v"], ["m"]), node("Clip", ["m", "low", "high"], ["c"]),
             node("Conv", ["image", "w"], ["k"], pads=[1, 1, 1, 1]), node("Relu", ["k"], ["y"])]  # fmt: skip
    inputs = {key: random.normal(size=shape).astype(np.float16)
              for key, shape in {"x": (3, 4), "v": (4, 5), "image": (1, 2, 5, 5), "w": (3, 2, 3, 3)}.items()}  # fmt: skip
    return of_nodes("halves_alone", nodes, inputs, {"c": (TensorProto.FLOAT16, [3, 5]), "y": (TensorProto.FLOAT16, [1, 3, 5, 5])},
                    {"low": np.float16(-0.5), "high": np.float16(1.5)})  # fmt: skip


def halved_weights():
    """Weights that a file has as float32 and casts, as autocast is written: they are quantized as others are."""
    random, node = np.random.default_rng(13), helper.make_node
    nodes = [node("Cast", ["x"], ["x16"], to=TensorProto.FLOAT16), node("Cast", ["w"], ["w16"], to=TensorProto.FLOAT16),
             node("MatMul", ["x16", "w16"], ["m"]), node("Relu", ["m"], ["r"]), node("Cast", ["r"], ["y"], to=TensorProto.FLOAT)]  # fmt: skip
    return of_nodes("halved_weights", nodes, {"x": random.normal(size=(3, 6)).astype(np.float32)}, {"y": (TensorProto.FLOAT, [3, 4])},
                    {"w": (random.normal(size=(6, 4)) / 4).astype(np.float32)})  # fmt: skip


def body(nodes, inputs, outputs, constants=None):
    return helper.make_graph(nodes, "body", inputs, outputs, [numpy_helper.from_array(a, key) for key, a in (constants or {}).items()])


def halves_in_branches():
    """A network of float16 whose branches and loop have constants and results of float16, too."""
    random, node, value = np.random.default_rng(14), helper.make_node, helper.make_tensor_value_info
    half = TensorProto.FLOAT16
    then = body([node("Add", ["h", "k"], ["a"])], [], [value("a", half, [3, 4])], {"k": random.normal(size=4).astype(np.float16)})
    other = body([node("Relu", ["h"], ["b"])], [], [value("b", half, [3, 4])])
    loop = body(
        [node("Identity", ["go"], ["goes"]), node("MatMul", ["before", "u"], ["product"]), node("Tanh", ["product"], ["after"])],
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("before", half, [3, 4])],
        [value("goes", TensorProto.BOOL, []), value("after", half, [3, 4])], {"u": random.normal(size=(4, 4)).astype(np.float16)},
    )  # fmt: skip
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("If", ["which"], ["branch"], then_branch=then, else_branch=other),
             node("Loop", ["times", "always", "branch"], ["y"], body=loop)]  # fmt: skip
    inputs = {"x": random.normal(size=(3, 6)).astype(np.float16), "which": np.array(True), "times": np.array(3)}
    return of_nodes("halves_in_branches", nodes, inputs, {"branch": (half, [3, 4]), "y": (half, [3, 4])},
                    {"w": (random.normal(size=(6, 4)) / 4).astype(np.float16), "always": np.array(True)})  # fmt: skip


def grids_in_bodies():
    """Weights of few bits whose scales of float16 are in a branch of a branch and in a loop, or around these."""
    random, node, value = np.random.default_rng(16), helper.make_node, helper.make_tensor_value_info
    half, own = TensorProto.FLOAT16, {"domain": "com.microsoft"}

    def scales(*shape):
        return (random.uniform(0.5, 1, shape) / 64).astype(np.float16)

    inner = body(
        [node("MatMulNBits", ["x", "w", "w_scales"], ["product"], K=32, N=32, bits=4, block_size=16, **own),
         node("GatherBlockQuantized", ["table", "row", "t_scales"], ["found"], bits=4, block_size=16, quantize_axis=1, **own),
         node("Add", ["product", "found"], ["sum"])], [], [value("sum", half, [3, 32])],
        {"w": random.integers(0, 256, (32, 2, 8)).astype(np.uint8), "t_scales": scales(7, 2)},
    )  # fmt: skip
    then = body([node("If", ["which"], ["a"], then_branch=inner, else_branch=body([node("Neg", ["x"], ["n"])], [], [value("n", half, [3, 32])]))],
                [], [value("a", half, [3, 32])])  # fmt: skip
    other = body([node("Relu", ["x"], ["b"])], [], [value("b", half, [3, 32])])
    loop = body(
        [node("Identity", ["go"], ["goes"]), node("DequantizeLinear", ["u", "u_scales"], ["v"], axis=1),
         node("DequantizeLinear", ["k", "k_scale"], ["l"]), node("MatMul", ["before", "v"], ["m"]), node("Add", ["m", "l"], ["after"])],
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("before", half, [3, 32])],
        [value("goes", TensorProto.BOOL, []), value("after", half, [3, 32])],
        {"u": random.integers(-20, 21, (32, 32)).astype(np.int8), "k": random.integers(-99, 100, 32).astype(np.int8), "k_scale": scales(1)[0]},
    )  # fmt: skip
    nodes = [node("If", ["which"], ["branch"], then_branch=then, else_branch=other), node("Loop", ["times", "always", "branch"], ["y"], body=loop)]
    inputs = {"x": random.normal(size=(3, 32)).astype(np.float16), "which": np.array(True), "times": np.array(2)}
    constants = {"w_scales": scales(64), "table": random.integers(0, 256, (7, 16)).astype(np.uint8), "row": np.array(4), "u_scales": scales(32),
                 "always": np.array(True)}  # fmt: skip
    return of_nodes("grids_in_bodies", nodes, inputs, {"branch": (half, [3, 32]), "y": (half, [3, 32])}, constants, 21, by_onnx_runtime)


def bounds_of_halves():
    """Bounds and the number that pads, which were attributes, and of float32 whatever the network is of."""
    node = helper.make_node
    nodes = [node("Clip", ["x"], ["c"], min=-0.75, max=1.1), node("Pad", ["c"], ["y"], pads=[0, 1, 0, 1], value=0.3)]
    inputs = {"x": np.random.default_rng(15).normal(size=(3, 4)).astype(np.float16)}
    return of_nodes("bounds_of_halves", nodes, inputs, {"y": (TensorProto.FLOAT16, [3, 6])}, opset=10)


def main():
    OUT.mkdir(exist_ok=True)
    cases = []
    for make in (pictures, edges, inside, kept, lambda: halves(False), lambda: halves(True), lambda: grids(np.int8),
                 lambda: grids(ml_dtypes.float8_e4m3fn), grids_of_floats, halves_alone, halved_weights, halves_in_branches, bounds_of_halves, grids_in_bodies):  # fmt: skip
        name, inputs, outputs = make()
        cases.append({"name": name, "inputs": [np.asarray(x) for x in inputs], "outputs": [np.asarray(y) for y in outputs]})
    source = f"torch {torch.__version__}, onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"
    golden_json.write(OUT / "doubles.json", {"source": source, "cases": cases})


if __name__ == "__main__":
    main()
