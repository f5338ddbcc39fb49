#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes imported/: small networks that files may say otherwise than exporters do, and what ONNX Runtime computes with them, or ONNX's reference
evaluator where ONNX Runtime has no such kernel. Outputs have no type in these files: it follows from the nodes.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_imported.py
"""

import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import golden_json
from evaluators import by_onnx, by_onnx_runtime

OUT = pathlib.Path(__file__).with_name("imported")
MICROSOFT = "com.microsoft"
random = np.random.default_rng(21)
cases = []


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attributes)


def case(name, nodes, inputs, outputs, constants, opset=21, evaluate=by_onnx_runtime):
    kinds = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in inputs.items()]
    graph = helper.make_graph(nodes, name, kinds, [onnx.ValueInfoProto(name=n) for n in outputs.split()],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])  # fmt: skip
    domains = [helper.make_opsetid(domain, 1 if domain else opset) for domain in sorted({"", *(n.domain for n in nodes)})]
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    onnx.save(model, OUT / f"{name}.onnx")
    cases.append({"name": name, "inputs": list(inputs.values()), "outputs": [np.asarray(y) for y in evaluate(model, inputs)]})


def integers(dtype, *shape, low=0, high=100):
    return random.integers(low, high, shape).astype(dtype)


def floats(*shape):
    return random.normal(size=shape).round(2).astype(np.float32)


def biases_of_columns():
    """QGemm whose columns have scales of their own, and C of every shape that ONNX broadcasts."""
    x = integers(np.int8, 4, 3, low=-9, high=9)
    constants = {"xs": np.float32(0.02), "xz": np.int8(0), "w": integers(np.int8, 3, 4, low=-9, high=9), "ws": np.float32([0.01, 0.02, 0.03, 0.04]),
                 "wz": np.zeros(4, np.int8)}  # fmt: skip
    for name, shape in {"matrix": (4, 4), "columns": (4,), "row": (1, 4), "rows": (4, 1), "one": (1,), "one_by_one": (1, 1), "scalar": ()}.items():
        c = integers(np.int32, *shape, low=-900, high=900)
        case(f"qgemm_{name}", [node("QGemm", "x xs xz w ws wz c", "y", MICROSOFT)], {"x": x}, "y", {**constants, "c": c})


def inserted_integers():
    """Integers that nodes put between those of a grid: 0, which is no zero there, and a number that is no real one."""
    x = floats(1, 2, 4, 4)
    crop = {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    moves = {"trilu": (node("Trilu", "q", "m", upper=0), {}),
             "center_crop_pad": (node("CenterCropPad", "q size", "m", axes=[2, 3]), {"size": np.array([6, 6])}),
             "crop": (node("Resize", "q roi scales", "m", **crop),
                      {"roi": np.float32([0, 0, -0.5, -0.5, 1, 1, 1.5, 1.5]), "scales": np.ones(4, np.float32)})}  # fmt: skip
    for zero in (np.int8(0), np.int8(5), np.uint8(100)):
        for name, (move, constants) in moves.items():
            nodes = [node("QuantizeLinear", "x s z", "q"), move, node("DequantizeLinear", "m s z", "y")]
            case(f"{name}_{zero.dtype}_{zero}", nodes, {"x": x}, "y", {"s": np.float32(0.02), "z": zero, **constants}, evaluate=by_onnx)


def crop_of_reals():
    """What stands outside of an image on a grid is a real number, in a file of integers too."""
    crop = node("Resize", "d roi scales", "m", mode="nearest", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.7)
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"), crop, node("QuantizeLinear", "m s z", "o"),
             node("DequantizeLinear", "o s z", "y")]  # fmt: skip
    constants = {"roi": np.float32([0, 0, -0.5, -0.5, 1, 1, 1.5, 1.5]), "scales": np.ones(4, np.float32)}
    case("crop_of_reals", nodes, {"x": floats(1, 2, 4, 4)}, "y", {"s": np.float32(0.02), "z": np.int8(5), **constants}, evaluate=by_onnx)


def several_integers():
    """Operators that choose among integers of several operands."""
    k = integers(np.int8, 1, 2, 4, 4)
    chosen = {"max": (node("Max", "q k", "m"), {"k": k}), "min": (node("Min", "q k", "m"), {"k": k}), "max_of_itself": (node("Max", "q q", "m"), {}),
              "scatter_nd": (node("ScatterND", "q at k", "m"), {"at": np.array([[0, 1]]), "k": k[:, 0]}),
              "scatter_elements": (node("ScatterElements", "q at k", "m", axis=1), {"at": np.ones((1, 1, 4, 4), np.int64), "k": k[:, :1]})}  # fmt: skip
    for name, (choose, constants) in chosen.items():
        nodes = [node("QuantizeLinear", "x s z", "q"), choose, node("DequantizeLinear", "m s z", "y")]
        case(f"integers_{name}", nodes, {"x": floats(1, 2, 4, 4)}, "y", {"s": np.float32(0.02), "z": np.int8(3), **constants})


def named_types():
    """Types that no Cast names: what they round and what they hold is not what float32 does."""
    x = np.float32([[1e6, 0.1, -70000, 3.14159]])
    like = [node("CastLike", "x h", "c"), node("Cast", "c", "y", to=TensorProto.FLOAT)]
    half = numpy_helper.from_array(np.float16([1]), "half")
    case("like_initializer", like, {"x": x}, "y", {"h": np.float16([1])})
    case("like_constant", [node("Constant", "", "h", value=half), *like], {"x": x}, "y", {})
    case("like_constant_of_shape", [node("ConstantOfShape", "n", "h", value=half), *like], {"x": x}, "y", {"n": np.array([1])})
    case("eye", [node("EyeLike", "e", "i", dtype=TensorProto.DOUBLE), node("Mul", "i d", "w"), node("Cast", "w", "f", to=TensorProto.FLOAT),
                 node("MatMul", "x f", "y")], {"x": np.ones((1, 4), np.float32)}, "y", {"e": np.zeros((4, 4), np.float32), "d": np.array([0.1])})  # fmt: skip
    case("less_of_doubles", [node("Less", "a b", "l"), node("Where", "l x z", "y")], {"x": x}, "y",
         {"a": np.array([1.0]), "b": np.array([1.0000000001]), "z": np.float32([0])})  # fmt: skip
    case("double_as_integer", [node("Cast", "d", "i", to=TensorProto.INT64), node("Add", "n i", "y")], {"n": np.array([1])}, "y",
         {"d": np.array([16777217.0])})  # fmt: skip
    case("double_beyond_floats", [node("Mul", "a b", "c"), node("Cast", "c", "f", to=TensorProto.FLOAT), node("Mul", "x f", "y")], {"x": x}, "y",
         {"a": np.array([1e300]), "b": np.array([1e-300])})  # fmt: skip
    then, other = (
        helper.make_graph([node("CastLike", "x h", f"{n}c"), node("Cast", f"{n}c", n, to=TensorProto.FLOAT)], n, [],
                          [helper.make_tensor_value_info(n, TensorProto.FLOAT, None)]) for n in ("then", "other"))  # fmt: skip
    case("like_in_branches", [node("If", "which", "y", then_branch=then, else_branch=other)], {"x": x, "which": np.array(True)}, "y",
         {"h": np.float16([1])})  # fmt: skip


def types_of_results():
    """Types that follow from zero points and scales, and from nothing at all."""
    x, q = floats(2, 4), integers(np.uint8, 4, 3, high=9)
    grid = {"s": np.float32(0.02), "z": np.int8(4)}
    case("made_integers", [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")], {"x": x}, "y q", grid)
    case("made_uint8", [node("QuantizeLinear", "x s", "q"), node("DequantizeLinear", "q s", "y")], {"x": x}, "y q", {"s": grid["s"]})
    case("made_reals", [node("DequantizeLinear", "q s", "y"), node("Neg", "y", "n")], {"q": q}, "y n", {"s": grid["s"]})
    case("made_dynamically", [node("DynamicQuantizeLinear", "x", "q s z")], {"x": x}, "q s z", {})
    constants = {"s": np.float32(0.02), "z": np.uint8(3), "w": integers(np.int8, 3, 4, low=-9, high=9), "t": np.float32(0.03), "wz": np.int8(0)}
    case("made_products", [node("QGemm", "q s z w t wz", "g", MICROSOFT), node("QLinearMatMul", "q s z w t wz t z", "m"),
                           node("MatMulInteger", "q w z wz", "i"), node("MatMulIntegerToFloat", "q w s t z wz", "f", MICROSOFT),
                           node("QLinearConcat", "t z q s z q s z", "c", MICROSOFT, axis=0)], {"q": q}, "g m i f c", constants)  # fmt: skip
    case("made_signed", [node("QLinearMatMul", "q s z w t wz t wz", "m")], {"q": q}, "m", constants, evaluate=by_onnx)
    branches = [helper.make_graph([node("DequantizeLinear", f"q {scale} z", scale + "y")], scale, [], [onnx.ValueInfoProto(name=scale + "y")])
                for scale in "st"]  # fmt: skip
    case("made_in_branches", [node("If", "which", "y", then_branch=branches[0], else_branch=branches[1])], {"q": q, "which": np.array(False)}, "y",
         {n: constants[n] for n in "szt"})  # fmt: skip


def oldest_resize():
    """Of opset 10: ONNX's own test of it, axes that grow beside axes that shrink, and scales that are computed."""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    case("resize_10_of_onnx", [node("Resize", "x scales", "y", mode="nearest")], {"x": x}, "y", {"scales": np.float32([1, 1, 0.6, 0.6])}, opset=10)
    assert cases[-1]["outputs"][0].tolist() == [[[[1, 3]]]]  # test_resize_downsample_scales_nearest
    for name, scales in {"shrinks": [1, 1, 0.7, 0.8], "grows": [1, 1, 1.5, 1.5], "grows_and_shrinks": [1, 1, 2, 0.6], "stays": [1, 1, 1, 1]}.items():
        case(f"resize_10_{name}", [node("Resize", "x scales", "y", mode="nearest")], {"x": floats(1, 1, 6, 7)}, "y", {"scales": np.float32(scales)}, opset=10)
    computed = [node("Shape", "x", "n"), node("Cast", "n", "f", to=TensorProto.FLOAT), node("Div", "size f", "scales"),
                node("Resize", "x scales", "y", mode="nearest")]  # fmt: skip
    case("resize_10_computed", computed, {"x": floats(1, 1, 6, 8)}, "y", {"size": np.float32([1, 1, 9, 5])}, opset=10)
    integer = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"), node("Resize", "d scales", "r", mode="nearest"),
               node("QuantizeLinear", "r s z", "o"), node("DequantizeLinear", "o s z", "y")]  # fmt: skip
    case("resize_10_quantized", integer, {"x": floats(1, 1, 6, 7)}, "y",
         {"s": np.float32(0.02), "z": np.int8(3), "scales": np.float32([1, 1, 0.6, 2])}, opset=10)  # fmt: skip


def main():
    OUT.mkdir(exist_ok=True)
    for make in (biases_of_columns, inserted_integers, crop_of_reals, several_integers, named_types, types_of_results, oldest_resize):
        make()
    golden_json.write(OUT / "imported.json", {"source": f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}", "cases": cases})


if __name__ == "__main__":
    main()
