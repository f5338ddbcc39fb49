#!/usr/bin/env python3
"""Makes hostile/*.onnx and hostile/hostile.json: small models that ask for what no honest one does, and what must come
of each: a result, or an error of that status at that call.

Results are those of ONNX's definitions: its reference evaluator where that has the memory for them, otherwise windows
in NumPy here, which look at taps on the picture alone. Where a model is refused, there is no result to compare with.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_hostile.py
"""

import itertools
import pathlib

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import golden_json

FOLDER = pathlib.Path(__file__).parent / "hostile"
FAR = 2**31 - 1


class Model:
    def __init__(self, inputs, outputs, opset=21):
        self.inputs, self.outputs, self.opset = inputs, outputs, opset
        self.nodes, self.constants = [], []

    def constant(self, name, array, data_type=None):
        array = np.asarray(array)
        if data_type is None:
            self.constants.append(numpy_helper.from_array(array, name))
        else:
            self.constants.append(helper.make_tensor(name, data_type, array.shape, array.ravel().tolist()))

    def node(self, op, inputs, outputs, **attrs):
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{op}_{len(self.nodes)}", **attrs))

    def on_grid(self, x, y, scale="s", zero="z"):
        self.node("QuantizeLinear", [x, scale, zero], [y + "_q"])
        self.node("DequantizeLinear", [y + "_q", scale, zero], [y])

    def proto(self):
        domains = sorted({node.domain for node in self.nodes} - {""})
        values = [[helper.make_tensor_value_info(name, data_type, shape) for name, data_type, shape in side]
                  for side in (self.inputs, self.outputs)]
        graph = helper.make_graph(self.nodes, "hostile", *values, self.constants)
        return helper.make_model(graph, ir_version=8 if self.opset < 21 else 10,
                                 opset_imports=[helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in domains)])


def floats(name, shape):
    return name, TensorProto.FLOAT, shape


SCALE, ZERO, WEIGHT_SCALE = np.float32(0.05), 120, 0.010013


def on_grid(real):
    return np.clip(np.rint(real / SCALE) + ZERO, 0, 255).astype(np.int64)


def windows(x, kernel, stride, dilation, pads, out):
    """For each output place the indexes (tap, element of x) that lie on x, by axis."""
    axes = []
    for axis in range(2):
        axes.append([[(k, o * stride[axis] - pads[axis] + k * dilation[axis])
                      for k in taps_on(x.shape[axis + 2], kernel[axis], o * stride[axis] - pads[axis], dilation[axis])]
                     for o in range(out[axis])])
    return axes


def taps_on(size, kernel, start, dilation):
    first = max(0, -(start // dilation))
    end = min(kernel, -((start - size) // dilation))
    return range(first, max(first, end))


def quantized_window(kind, x_shape, kernel, attrs, weight=None, groups=1):
    """A pool or convolution between grids: the model, its input, and its output from sums over taps on the picture."""
    stride, dilation = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    pads = attrs.get("pads", [0, 0, 0, 0])
    out = [(x_shape[i + 2] + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
           for i in range(2)]
    channels = weight.shape[0] if weight is not None else x_shape[1]
    model = Model([floats("x", x_shape)], [floats("y", [x_shape[0], channels, *out])])
    model.constant("s", SCALE)
    model.constant("z", np.uint8(ZERO))
    model.on_grid("x", "d")
    if weight is None:
        model.node(kind, ["d"], ["c"], kernel_shape=kernel, **attrs)
    else:
        model.constant("w", weight)
        model.constant("ws", np.float32(WEIGHT_SCALE))
        model.constant("wz", np.int8(0))
        model.node("DequantizeLinear", ["w", "ws", "wz"], ["wd"])
        model.node("Conv", ["d", "wd"], ["c"], group=groups, **attrs)
    model.on_grid("c", "y")

    x = (np.random.default_rng(1).integers(0, 256, x_shape) - ZERO).astype(np.float32) * SCALE
    q = on_grid(x) - ZERO
    y = np.zeros([x_shape[0], channels, *out], np.int64)
    rows, columns = windows(x, kernel, stride, dilation, pads, out)
    for n, c, i, j in itertools.product(*map(range, y.shape)):
        taps = list(itertools.product(rows[i], columns[j]))
        if weight is not None:
            per = x_shape[1] // groups
            first = c // (channels // groups) * per
            acc = sum(int(weight[c, k, ky, kx]) * int(q[n, first + k, iy, ix])
                      for (ky, iy), (kx, ix) in taps for k in range(per))
            scaled = acc * WEIGHT_SCALE
            assert abs(scaled % 1 - 0.5) > 1e-4, "nearly a tie, which may be rounded either way"
            y[n, c, i, j] = np.clip(np.rint(scaled) + ZERO, 0, 255)
        elif kind == "MaxPool":  # of no taps: the least number, which the grid ends at
            y[n, c, i, j] = max((int(q[n, c, iy, ix]) + ZERO for (_, iy), (_, ix) in taps), default=0)
        else:
            count = len(taps)
            if attrs.get("count_include_pad"):
                count = kernel[0] * kernel[1]
            mean = sum(int(q[n, c, iy, ix]) for (_, iy), (_, ix) in taps) / max(1, count)
            assert abs(mean % 1 - 0.5) > 1e-4, "nearly a tie, which may be rounded either way"
            y[n, c, i, j] = np.clip(np.rint(mean) + ZERO, 0, 255)
    return model, x, ((y - ZERO).astype(np.float32) * SCALE).astype(np.float32)


def weights(*shape):
    return np.random.default_rng(2).integers(-127, 128, shape).astype(np.int8)


CASES = []


def result(name, model, x, y=None):
    """A Model, or a ModelProto, that both engines run; without y: as ONNX's reference evaluator does."""
    proto = model if isinstance(model, onnx.ModelProto) else model.proto()
    if y is None:
        y = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    onnx.save(proto, FOLDER / f"{name}.onnx")
    CASES.append({"name": name, "status": "QTN_OK", "x": x, "y": y})


def error(name, model, status, at="load", x=None):
    """`model`: a Model, or a ModelProto."""
    onnx.save(model if isinstance(model, onnx.ModelProto) else model.proto(), FOLDER / f"{name}.onnx")
    case = {"name": name, "status": status, "at": at}
    if x is not None:
        case["x"] = x
    CASES.append(case)


def no_taps():
    for kind in ("MaxPool", "AveragePool"):
        attrs = {"dilations": [1, 8], "pads": [0, 4, 0, 4]}
        result(f"{kind.lower()}_no_taps", *quantized_window(kind, [1, 70, 1, 3], [1, 2], attrs))


def far_windows():
    pads = [536903649, 1073676258, 536903649, 1073676258]
    result("pool_wraps", *quantized_window("MaxPool", [1, 1, 9, 9], [1073807299 - 2, 2147352517 - 2], {"pads": pads}))
    attrs = {"strides": [8, 62], "dilations": [3, FAR - 5], "count_include_pad": 1,
             "pads": [456055985, FAR - 8, 456055986, FAR - 7]}
    result("averagepool_far", *quantized_window("AveragePool", [1, 1, 8, 8], [304037297, 3], attrs))
    far = {"dilations": [FAR, FAR - 2], "strides": [8, 1], "pads": [FAR, FAR, FAR, FAR - 5]}
    result("conv_far", *quantized_window("Conv", [1, 3, 8, 8], [3, 3], far, weights(16, 3, 3, 3)))
    result("depthwise_far", *quantized_window("Conv", [1, 16, 8, 8], [3, 3], far, weights(16, 1, 3, 3), 16))
    attrs = {"strides": [3, 32], "dilations": [1048574, 4], "pads": [120035, 17, 928557, 18]}
    result("depthwise_dilated", *quantized_window("Conv", [1, 33, 1, 8], [2, 3], attrs, weights(33, 1, 2, 3), 33))
    attrs = {"strides": [2, 1203143341], "dilations": [2, 1843546982], "pads": [0, 1, 5, 2]}
    result("conv_strided", *quantized_window("Conv", [2, 3, 8, 2], [1, 1], attrs, weights(3, 3, 1, 1)))


def packed_views():
    x = np.arange(6, dtype=np.float32)
    for op, inputs, outputs in (("Slice", ["b", "e"], ["t"]), ("Split", ["n"], ["u", "t"])):
        model = Model([floats("x", [6])], [floats("y", [3])])
        model.constant("s", np.float32(1))
        model.constant("z", np.array(0), TensorProto.UINT4)
        model.constant("b", np.array([1], np.int64))
        model.constant("e", np.array([4], np.int64))
        model.constant("n", np.array([3, 3], np.int64))
        model.node("QuantizeLinear", ["x", "s", "z"], ["q"])
        model.node(op, ["q", *inputs], outputs)
        model.node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)
        model.constants = [c for c in model.constants if c.name in {"s", "z", *inputs}]
        result(f"uint4_{op.lower()}", model, x)


def empty_tensors():
    """Nothing, beside dimensions that tables of places are made for."""
    many = 1 << 40
    cases = {"tile": ([0, 1], "Tile", np.array([1, many], np.int64), {}),
             "pad": ([0, 1], "Pad", np.array([0, 0, 0, many], np.int64), {}),
             "maxpool": ([0, 1, 1 << 30], "MaxPool", None, {"kernel_shape": [1 << 29], "pads": [2**29 - 1] * 2})}
    for name, (shape, op, argument, attrs) in cases.items():
        model = Model([floats("x", [1])], [floats("y", [len(shape)])])
        model.constant("e", np.zeros(shape, np.float32))
        if argument is not None:
            model.constant("r", argument)
        model.node(op, ["e", "r"][:1 if argument is None else 2], ["t"], **attrs)
        model.node("Shape", ["t"], ["h"])
        model.node("Cast", ["h"], ["f"], to=TensorProto.FLOAT)
        model.node("Add", ["x", "f"], ["y"])
        out = {"tile": [0, many], "pad": [0, 1 + many], "maxpool": [0, 1, (1 << 30) + 2 * (2**29 - 1) - (1 << 29) + 1]}
        result(f"{name}_of_nothing", model, np.zeros(1, np.float32), np.array(out[name], np.float32))
    model = Model([floats("x", [2, 3, 0, 4])], [floats("y", [2, 3, 0, 4])])
    model.constant("s", SCALE)
    model.constant("z", np.uint8(ZERO))
    model.on_grid("x", "y")
    result("picture_of_nothing", model, np.zeros([2, 3, 0, 4], np.float32))


def large_bias():
    """A bias at the end of int32: the sum with it is exact, and the grid ends there."""
    model = Model([floats("x", [1, 4])], [floats("y", [1, 3])])
    model.constant("s", SCALE)
    model.constant("z", np.uint8(0))
    model.constant("w", np.full([3, 4], 100, np.int8))
    model.constant("ws", np.float32(0.01))
    model.constant("wz", np.int8(0))
    model.constant("b", np.array([2**31 - 1, -2**31, 7], np.int32))
    model.constant("bs", np.float32(SCALE * np.float32(0.01)))
    model.constant("bz", np.int32(0))
    model.on_grid("x", "d")
    model.node("DequantizeLinear", ["w", "ws", "wz"], ["wd"])
    model.node("DequantizeLinear", ["b", "bs", "bz"], ["bd"])
    model.node("Gemm", ["d", "wd", "bd"], ["g"], transB=1)
    model.on_grid("g", "y")
    result("bias_at_its_limit", model, np.full([1, 4], 255 * SCALE, np.float32))


def bombs():
    x = np.zeros(1, np.float32)

    def zeros(count, **attrs):
        model = Model([floats("x", [1])], [floats("y", [1])])
        model.constant("n", np.array(count, np.int64))
        model.constant("b", np.zeros(len(count), np.int64))
        model.constant("e", np.ones(len(count), np.int64))
        return model

    model = zeros([1 << 24])
    for i in range(40):
        model.node("ConstantOfShape", ["n"], [f"c{i}"])
    model.node("Max", [f"c{i}" for i in range(40)], ["t"])
    model.node("Add", ["x", "t"], ["u"])
    model.node("Slice", ["u", "b", "e"], ["y"])
    error("many_zeros", model, "QTN_ENOMEM", "run", x)

    model = zeros([1 << 33])
    model.constant("one", np.float32(1))
    model.node("ConstantOfShape", ["n"], ["q"], value=helper.make_tensor("", TensorProto.INT8, [1], [1]))
    model.node("DequantizeLinear", ["q", "one"], ["d"])
    model.node("Slice", ["d", "b", "e"], ["t"])
    model.node("Add", ["x", "t"], ["y"])
    error("dequantized_zeros", model, "QTN_EUNSUPPORTED")

    model = zeros([4096, 4096])
    model.node("ConstantOfShape", ["n"], ["c"])
    model.node("MatMul", ["c", "c"], ["m"])
    model.node("Slice", ["m", "b", "e"], ["t"])
    model.node("Add", ["x", "t"], ["y"])
    error("large_product", model, "QTN_EUNSUPPORTED")

    model = Model([floats("x", [1 << 40] * 3)], [floats("y", None)])
    model.node("Relu", ["x"], ["y"])
    error("large_input", model, "QTN_ESHAPE")
    # Twenty tensors of 2^59 bytes at a time: the sum of their sizes is more than a number of 63 bits.
    model = Model([floats("x", [1 << 57])], [floats("y", [1 << 57])])
    for i in range(20):
        model.node("Neg", ["x"], [f"n{i}"])
    model.node("Max", [f"n{i}" for i in range(20)], ["y"])
    error("large_arena", model, "QTN_ENOMEM", "session")


def generators():
    """Tensors of many elements from a few numbers, of which the result is one."""
    x = np.zeros(1, np.float32)

    def first_of(name, op, constants, status, at, **attrs):
        model = Model([floats("x", [1])], [floats("y", None)])
        for i, constant in enumerate(constants):
            model.constant(f"c{i}", constant)
        model.constant("b", np.zeros(1, np.int64))
        model.constant("e", np.ones(1, np.int64))
        model.node(op, [f"c{i}" for i in range(len(constants))], ["g"], **attrs)
        model.node("Slice", ["g", "b", "e"], ["s"])
        model.node("Cast", ["s"], ["t"], to=TensorProto.FLOAT)
        model.node("Add", ["x", "t"], ["y"])
        error(name, model, status, at, x)

    def scalars(*values):
        return [np.array(v, np.int64) for v in values]

    first_of("range_of_2_to_40", "Range", scalars(0, 1 << 40, 1), "QTN_EUNSUPPORTED", "load")
    first_of("range_of_2_to_63", "Range", scalars(-(1 << 63), (1 << 63) - 1, 1), "QTN_ESHAPE", "load")
    first_of("range_in_no_steps", "Range", scalars(0, 1, 0), "QTN_EFORMAT", "load")
    first_of("window_of_2_to_40", "HannWindow", scalars(1 << 40), "QTN_EUNSUPPORTED", "load")
    first_of("draws_of_2_to_40", "RandomNormal", [], "QTN_EUNSUPPORTED", "load", shape=[1 << 40])
    first_of("mel_bins_of_2_to_40", "MelWeightMatrix",
             [*scalars(1 << 33, 16, 8000), np.float32(0), np.float32(4000)], "QTN_EUNSUPPORTED", "load")  # fmt: skip

    wide = np.ones(1 << 10, np.float32)
    names = "abcd"
    equation = ",".join(names) + "->" + names
    first_of("outer_product_of_2_to_40", "Einsum", [wide] * 4, "QTN_ENOMEM", "run", equation=equation)
    # Whichever two come first, what they make together has 2^30 elements: each letter meets every other.
    model = Model([floats("x", [1])], [floats("y", None)])
    model.constant("n", np.full(2, 1 << 10, np.int64))
    model.node("ConstantOfShape", ["n"], ["c"], value=helper.make_tensor("", TensorProto.FLOAT, [1], [1]))
    model.node("Einsum", ["c"] * 6 + ["x"], ["y"], equation="ab,ac,ad,bc,bd,cd,e->e")
    error("long_way_to_a_sum", model, "QTN_ENOMEM", "run", x)


def long_ways():
    """Operators of constants whose results are small, and whose way there is long."""
    x = np.zeros(1, np.float32)

    def zeros(model, name, *shape, data_type=TensorProto.FLOAT):
        model.constant(f"{name}_shape", np.array(shape, np.int64))
        model.node("ConstantOfShape", [f"{name}_shape"], [name], value=helper.make_tensor("", data_type, [1], [0]))

    for name, words in (("words_far_apart", 1 << 20), ("words_apart", 1 << 16)):
        model = Model([floats("x", [1])], [floats("y", None)])
        zeros(model, "words", words, data_type=TensorProto.INT32)
        model.node("TfIdfVectorizer", ["words"], ["t"], mode="TF", min_gram_length=1, max_gram_length=2,
                   max_skip_count=words, ngram_counts=[0, 1], ngram_indexes=[0, 0], pool_int64s=[0, 0, 0])
        model.node("Add", ["x", "t"], ["y"])
        error(name, model, "QTN_EUNSUPPORTED", "load", x)
    # Queries of no features, so that neither these nor the keys take memory.
    model = Model([floats("x", [1])], [floats("y", None)], opset=23)
    for name, places, features in (("q", 1 << 17, 0), ("k", 1 << 20, 0), ("v", 1 << 20, 1)):
        zeros(model, name, 1, 1, places, features)
    model.node("Attention", ["q", "k", "v"], ["t"], scale=1.0)
    model.node("Add", ["x", "t"], ["y"])
    error("attention_of_no_features", model, "QTN_EUNSUPPORTED", "load", x)


def groups():
    for groups in (0, 1 << 40):
        model = Model([floats("x", [1, 2, "h", "w"])], [floats("y", None)])
        model.constant("s", SCALE)
        model.constant("z", np.uint8(ZERO))
        model.constant("w", np.full([2, 2, 1, 1], 200, np.uint8))
        model.constant("wz", np.uint8(0))
        model.on_grid("x", "d")
        model.node("DequantizeLinear", ["w", "s", "wz"], ["wd"])
        model.node("Conv", ["d", "wd"], ["y"], group=groups)
        error("no_groups" if groups == 0 else "many_groups", model, "QTN_EINVAL" if groups == 0 else "QTN_ESHAPE", "run",
              np.zeros([1, 2, 2, 2], np.float32))

    model = Model([floats("x", [1, 2, "h", 2])], [floats("y", None)])
    model.constant("p", np.array([0, 0, 1 << 62, 0, 0, 0, 0, 0], np.int64))
    model.constant("w", np.ones([1, 2, 1, 1], np.float32))
    model.node("Pad", ["x", "p"], ["q"])
    model.node("Conv", ["q", "w"], ["y"], pads=[2**63 - 1, 0, 0, 0])
    error("pads_overflow", model, "QTN_ESHAPE", "run", np.zeros([1, 2, 2, 2], np.float32))


def bias_of_floats():
    """ONNX has a bias of int32."""
    model = Model([("x", TensorProto.UINT8, [1, 2, 4, 4])], [("y", TensorProto.UINT8, None)])
    model.constant("s", SCALE)
    model.constant("z", np.uint8(ZERO))
    model.constant("w", weights(3, 2, 3, 3))
    model.constant("wz", np.int8(0))
    model.constant("b", np.ones(3, np.float32))
    model.node("QLinearConv", ["x", "s", "z", "w", "s", "wz", "s", "z", "b"], ["y"])
    error("bias_of_floats", model, "QTN_EDTYPE")


def rows_on_their_grids():
    """Weights and zero points that MatMulInteger does not take, where a product is recognized before types are known."""
    for name, weight, zero, status in (
        ("zero_points_of_nothing", np.ones([32, 48], np.int8), np.zeros(0, np.int8), "QTN_ESHAPE"),
        ("zero_points_of_floats", np.ones([32, 48], np.int8), np.full(48, np.nan, np.float32), "QTN_EDTYPE"),
        ("integers_that_are_floats", np.full([32, 48], np.nan, np.float32), None, "QTN_EDTYPE"),
    ):
        model = Model([floats("x", ["n", 32])], [floats("y", None)])
        model.constant("w", weight)
        model.constant("scales", np.ones(48, np.float32))
        model.constant("sums", np.full(48, 32, np.int32))
        operands = ["q", "w"]
        if zero is not None:
            model.constant("wz", zero)
            operands += ["", "wz"]
        model.node("DynamicQuantizeLinear_row", ["x"], ["q", "s", "z"], domain="qtensor")
        model.node("MatMulInteger", operands, ["products"])
        model.node("Cast", ["z"], ["zeros"], to=TensorProto.INT32)
        model.node("Mul", ["zeros", "sums"], ["moved"])
        model.node("Sub", ["products", "moved"], ["centered"])
        model.node("Cast", ["centered"], ["real"], to=TensorProto.FLOAT)
        model.node("Mul", ["s", "scales"], ["steps"])
        model.node("Mul", ["real", "steps"], ["y"])
        error(name, model, status)


def absent_operands():
    """Operands that are left out between others, as few operators may lack them."""
    body = Model([("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), floats("a", [2]), floats("b", [2])],
                 [("again", TensorProto.BOOL, []), floats("c", [2]), floats("d", [2])])
    body.node("Identity", ["go"], ["again"])
    body.node("Identity", ["a"], ["c"])
    body.node("Add", ["a", "b"], ["d"])
    model = Model([floats("x", [2])], [floats("y", [2])])
    model.constant("n", np.int64(3))
    model.node("Loop", ["n", "", "", "x"], ["last", "y"], body=body.proto().graph)
    error("loop_without_a_state", model, "QTN_EFORMAT")

    model = Model([("x", TensorProto.UINT8, [2])], [("y", TensorProto.UINT8, [2])])
    model.constant("s", SCALE)
    model.constant("z", np.uint8(ZERO))
    model.node("QLinearAdd", ["x", "s", "z", "", "s", "z", "s", "z"], ["y"], domain="com.microsoft")
    error("sum_of_one", model, "QTN_EFORMAT")


def unusual_types():
    """Weights of eight bits that are floats, where ONNX has none; and integers that are quantized once more."""
    model = Model([floats("x", [2, 4])], [floats("y", [2, 3])])
    weight = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
    model.constant("w", weight, TensorProto.FLOAT8E4M3FN)
    model.node("MatMul", ["x", "w"], ["y"])
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    result("weights_of_float8", model, x, x @ numpy_helper.to_array(model.constants[0]).astype(np.float32))

    model = Model([floats("x", [2, 4])], [floats("y", [2, 3])])
    for name, value in (("s", np.float32(0.25)), ("z", np.uint8(ZERO)), ("w_s", np.float32(0.5)), ("w_z", np.int8(0))):
        model.constant(name, value)
    model.constant("w_q", np.arange(12, dtype=np.int8).reshape(4, 3))
    model.constant("b", [1, -2, 0.5], TensorProto.FLOAT8E4M3FN)
    model.on_grid("x", "a")
    model.node("DequantizeLinear", ["w_q", "w_s", "w_z"], ["w"])
    model.node("Gemm", ["a", "w", "b"], ["y"])
    result("bias_of_float8", model, x, (x @ (np.arange(12).reshape(4, 3) / 2) + [1, -2, 0.5]).astype(np.float32))

    model = Model([floats("x", [2, 4])], [floats("y", [2, 4])])
    model.constant("s", SCALE)
    model.constant("z", np.uint8(ZERO))
    model.on_grid("x", "a")
    model.on_grid("a_q", "b")
    model.node("Add", ["a", "b"], ["y"])
    error("quantized_twice", model, "QTN_EFORMAT")


def grid_on_halves():
    """A grid of float32 for numbers that are not."""
    model = Model([floats("x", [2])], [floats("y", [2])], opset=23)
    model.constant("s", SCALE)
    model.constant("z", np.uint8(ZERO))
    model.node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16)
    model.on_grid("h", "y")
    x = np.float32([0.31, -2])
    result("grid_on_halves", model, x, ReferenceEvaluator(model.proto()).run(None, {"x": x})[0])


def outputs_beyond_states():
    """Steps of an optimizer that say more outputs than there are tensors and states."""
    for op, states in (("Adagrad", 1), ("Momentum", 1), ("Adam", 2)):
        model = Model([floats("x", [2]), floats("g", [2]), floats("h", [2])], [floats("y", None)])
        model.constant("r", np.float32(0.1))
        model.constant("t", np.int64(1))
        settings = dict(alpha=0.9, beta=0.9, mode="standard", norm_coefficient=0.1) if op == "Momentum" else {}
        model.node(op, ["r", "t", "x", "g", *["h"] * states], ["y", "more", *["h_new", "k_new"][:states]],
                   domain="ai.onnx.preview.training", **settings)
        error("outputs_beyond_states_of_" + op.lower(), model, "QTN_EFORMAT")


def masks_of_float8():
    """Numbers that no kernel reads, beside those that it does: the first of two keys is all that is seen."""
    x = np.arange(2 * 4, dtype=np.float32).reshape(1, 1, 2, 4) / 4
    models = []
    for data_type in (TensorProto.FLOAT, TensorProto.FLOAT8E4M3FN):
        model = Model([floats("x", [1, 1, 2, 4])], [floats("y", None)], opset=23)
        model.constant("mask", np.array([[0, -448], [0, -448]], np.float32), data_type)
        model.node("Attention", ["x", "x", "x", "mask"], ["y"])
        models.append(model)
    result("mask_of_float8", models[1], x, ReferenceEvaluator(models[0].proto()).run(None, {"x": x})[0])


def dropout_in_training():
    """A mode that is known when it has been computed."""
    model = Model([floats("x", [2])], [floats("y", [2])])
    model.constant("ratio", np.float32(0.5))
    model.constant("zero", np.float32(0))
    model.node("ReduceMax", ["x"], ["most"], keepdims=0)
    model.node("Greater", ["most", "zero"], ["trains"])
    model.node("Dropout", ["x", "ratio", "trains"], ["y"])
    error("dropout_in_training", model, "QTN_EUNSUPPORTED", at="run", x=np.ones(2, np.float32))


def unusual_axes():
    """Axes from behind, where ONNX counts from the front, one that no tensor has, and one that is too long."""
    model = Model([floats("x", [2, "h", 4])], [floats("y", None)])
    model.node("Relu", ["x"], ["r"])
    model.node("Transpose", ["r"], ["y"], perm=[0, -1, 1])
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    result("transposed_from_behind", model, x, x.transpose(0, 2, 1))

    body = Model([("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), floats("a", [3, FAR * 2**31])],
                 [("again", TensorProto.BOOL, []), floats("b", None)])
    body.node("Identity", ["go"], ["again"])
    body.node("Neg", ["a"], ["b"])
    model = Model([floats("x", [3, 2])], [floats("y", None)])
    model.constant("n", np.int64(3))
    model.node("Loop", ["n", "", "x"], ["y"], body=body.proto().graph)
    error("state_of_2_to_62", model, "QTN_ESHAPE")

    grown = onnx.load(FOLDER.parent / "composed" / "grown_0_0.onnx")
    next(n for n in grown.graph.node if n.op_type == "ConcatFromSequence").attribute[0].i = -(2**63)
    error("sequence_along_an_axis_of_2_to_63", grown, "QTN_EUNSUPPORTED")

    model = Model([floats("x", [1])], [floats("y", None)])
    model.constant("axis", np.int64(2**63 - 1))
    model.node("CumSum", ["x", "axis"], ["y"])
    error("sum_along_no_axis", model, "QTN_EFORMAT")


def layers():
    """What equalization takes for a pair of layers: a bias of one number for 64 channels."""
    model = Model([floats("x", ["n", 64])], [floats("y", ["n", 4])])
    model.constant("g", np.linspace(1, 2, 64, dtype=np.float32))
    model.constant("b", np.ones(1, np.float32))
    model.constant("w", np.linspace(-1, 1, 256, dtype=np.float32).reshape(64, 4))
    model.node("LayerNormalization", ["x", "g", "b"], ["l"])
    model.node("MatMul", ["l", "w"], ["y"])
    onnx.save(model.proto(), FOLDER / "short_bias.onnx")
    model = Model([floats("x", ["n", 4, "h", 6])], [floats("y", None)])
    model.constant("w", np.ones([4, 3, 3, 3], np.float32))
    model.node("Relu", ["x"], ["r"])
    model.node("Conv", ["r", "w"], ["y"], group=0)
    onnx.save(model.proto(), FOLDER / "layer_without_groups.onnx")


def external_data():
    """One file that is there, and one that the test makes: as large as it says, and empty on the disk."""
    for name, location, count, tensors in (("external", "make_sure.bin", 16, 1), ("sparse", "sparse.bin", 1 << 26, 8)):
        model = Model([floats("x", [1])], [floats("y", None)])
        for i in range(tensors):
            tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[count],
                                 data_location=TensorProto.EXTERNAL)
            tensor.external_data.add(key="location", value=location)
            model.constants.append(tensor)
        model.node("Max", ["x"] + [f"w{i}" for i in range(tensors)], ["y"])
        (FOLDER / f"{name}.onnx").write_bytes(model.proto().SerializeToString())
    (FOLDER / "make_sure.bin").write_bytes(bytes(64))


def control():
    """Loops that do not end, in one and in two, and what they stack; functions that call themselves, or each other twice;
    graphs in graphs."""
    x = np.zeros(1, np.float32)
    head = '<ir_version: 9, opset_import: ["" : 18, "own" : 1]>\n'

    def parsed(text):
        return onnx.parser.parse_model(head + text)

    forever = parsed("""g (float[1] x) => (float[1] y) {
      n = Constant <value_int = 1152921504606846976> ()
      yes = Constant <value = bool {1}> ()
      y = Loop (n, yes, x) <
        body = step (int64 i, bool b, float[1] s) => (bool a, float[1] t) { a = Identity (b) t = Neg (s) }>
    }""")
    error("loop_forever", forever, "QTN_ENOMEM", "run", x)
    nested = parsed("""g (float[1] x) => (float[1] y) {
      n = Constant <value_int = 100000> ()
      yes = Constant <value = bool {1}> ()
      y = Loop (n, yes, x) <
        body = outer (int64 i, bool b, float[1] s) => (bool a, float[1] t) {
          a = Identity (b)
          t = Loop (n, yes, s) <
            body = inner (int64 j, bool d, float[1] u) => (bool c, float[1] v) { c = Identity (d) v = Neg (u) }>
        }>
    }""")
    error("loop_in_loop", nested, "QTN_ENOMEM", "run", x)
    growing = parsed("""g (float[1] x) => (float[N] y) {
      n = Constant <value_int = 100> ()
      yes = Constant <value = bool {1}> ()
      y = Loop (n, yes, x) <
        body = step (int64 i, bool b, float[N] s) => (bool a, float[M] t) { a = Identity (b) t = Concat <axis = 0> (s, s) }>
    }""")
    error("loop_growing", growing, "QTN_ENOMEM", "run", x)
    circle = """g (float[1] x) => (float[1] y) { y = own.f (x) }
    <domain: "own", opset_import: ["" : 18, "own" : 1]> f (a) => (b) { b = own.%s (a) }
    <domain: "own", opset_import: ["" : 18, "own" : 1]> g (a) => (b) { b = own.f (a) }"""
    error("function_of_itself", parsed(circle % "f"), "QTN_EFORMAT")
    error("functions_in_a_circle", parsed(circle % "g"), "QTN_EFORMAT")
    doubling = "g (float[1] x) => (float[1] y) { y = own.f0 (x) }\n"
    for i in range(40):
        doubling += f"""<domain: "own", opset_import: ["" : 18, "own" : 1]>
          f{i} (a) => (c) {{ b = own.f{i + 1} (a) c = own.f{i + 1} (b) }}\n"""
    doubling += '<domain: "own", opset_import: ["" : 18]> f40 (a) => (b) { b = Neg (a) }'
    error("functions_that_double", parsed(doubling), "QTN_EUNSUPPORTED")
    # By hand: protobuf's own library neither writes nor reads this.
    leaf = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    rest = leaf.SerializeToString()
    outputs = message(12, leaf.output[0].SerializeToString())
    for _ in range(60):
        branch = message(1, b"then_branch") + message(6, rest), message(1, b"else_branch") + message(6, leaf.SerializeToString())
        node = message(1, b"p") + message(2, b"y") + message(4, b"If") + message(5, branch[0]) + message(5, branch[1])
        rest = message(1, node) + outputs
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]), helper.make_tensor_value_info("p", TensorProto.BOOL, [])]
    graph = rest + b"".join(message(11, i.SerializeToString()) for i in inputs)
    (FOLDER / "graphs_in_graphs.onnx").write_bytes(b"\x08\x08" + message(7, graph) + message(8, b"\x10\x12"))
    CASES.append({"name": "graphs_in_graphs", "status": "QTN_EUNSUPPORTED", "at": "load"})


def composed():
    """Sequences that branches and loops make and do not name, names that stand for two constants, and large constants
    that functions, loops and branches repeat."""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    head = '<ir_version: 9, opset_import: ["" : 17, "own" : 1]>\n'

    def case(name, text, x=x):
        result(name, onnx.parser.parse_model(head + text), x)

    def nameless(name, text):
        """`text`: with an output called nobody, which the file leaves without a name."""
        model = onnx.parser.parse_model(head + text)
        y = ReferenceEvaluator(model).run(None, {"x": x})[0]
        for node in model.graph.node:
            node.output[:] = ["" if output == "nobody" else output for output in node.output]
        result(name, model, x, y)

    # Output b of both branches is of another shape than those before it, which what makes items of it asks for.
    branch = """() => (seq(float) s, float[4, 1, 1] a, float[3, 2] b, float[2] d, float[1] e) {
      s = SplitToSequence <axis = 0, keepdims = 0> (x)
      a = ConstantOfShape <value = float[1] {1}> (shape)
      b = %s (x)
      d = ReduceSum <keepdims = 0> (x, zero)
      e = ReduceSum <keepdims = 1> (d)
    }"""
    case("shapes_behind_a_sequence", """g (float[3, 2] x) => (float[4, 2] y)
    <int64[3] shape = {4, 1, 1}, int64[1] zero = {0}> {
      m = ReduceMax <keepdims = 0> (x)
      o = Constant <value = float {1}> ()
      c = Greater (m, o)
      s, a, b, d, e = If (c) <then_branch = t %s, else_branch = e %s>
      parts = SplitToSequence <axis = 0, keepdims = 0> (b)
      more = SequenceInsert (parts, d)
      y = ConcatFromSequence <axis = 0, new_axis = 1> (more)
    }""" % (branch % "Neg", branch % "Abs"))
    # A branch makes a value of the name that a constant around it is computed from.
    for name, inner in (("itself", "a = Identity (p)"), ("another", "a = Constant <value = int64 {1}> ()")):
        case(f"constant_of_{name}", """g (float[3, 2] x) => (float[2] y) <int64 a = {0}, int64 b = {0}> {
          p = Add (a, b)
          m = ReduceMax <keepdims = 0> (x)
          o = Constant <value = float {1}> ()
          c = Greater (m, o)
          s = SplitToSequence <axis = 0, keepdims = 0> (x)
          y = If (c) <
            then_branch = t () => (float[2] z) { %s q = Identity (p) z0 = SequenceAt (s, q) z1 = SequenceAt (s, a) z = Sub (z0, z1) },
            else_branch = e () => (float[2] w) { w = SequenceAt (s, p) }>
        }""" % inner)
    nameless("branches_with_a_sequence_that_nobody_reads", """g (float[3, 2] x) => (float[3, 2] y) <float most = {-1}> {
      m = ReduceMax <keepdims = 0> (x)
      c = Greater (m, most)
      nobody, o = If (c) <
        then_branch = t () => (seq(float) u, float[3, 2] a) { u = SplitToSequence <axis = 0, keepdims = 0> (x) a = Neg (x) },
        else_branch = e () => (seq(float) v, float[3, 2] b) { v = SplitToSequence <axis = 0, keepdims = 0> (x) b = Abs (x) }>
      y = Clip (o, "", most)
    }""")
    for name, first, position in (("items", "SequenceEmpty ()", ""), ("a_sequence", "SequenceConstruct (x)", ", zero")):
        nameless(f"loop_with_{name}_that_nobody_reads", """g (float[3, 2] x) => (float[3, 2] y)
        <float most = {-1}, bool yes = {1}, int64 zero = {0}> {
          m = ReduceMax <keepdims = 0> (x)
          n = Cast <to = 7> (m)
          first = %s
          nobody, o = Loop (n, yes, first, x) <body = step (int64 i, bool b, seq(float) s, float[3, 2] v)
              => (bool a, seq(float) t, float[3, 2] w) { a = Identity (b) t = SequenceInsert (s, v%s) w = Neg (v) }>
          y = Clip (o, "", most)
        }""" % (first, position))
    # 64 numbers each of a function, a branch in it, a loop, a loop in that, and a branch in it. Each is read once.
    numbers = "{%s}" % ", ".join(map(str, range(1, 65)))
    case("constants_that_are_repeated", """g (float[64] x) => (float[64] y)
    <bool yes = {1}, int64 zero = {0}, int64 two = {2}, int64 three = {3}, float least = {0}> {
      m = ReduceMax <keepdims = 0> (x)
      c = Greater (m, least)
      f0 = own.f (x, c)
      f1 = own.f (f0, c)
      f2 = own.f (f1, c)
      s = SequenceConstruct (f2)
      t = Loop (three, yes, s) <body = outer (int64 i, bool b, seq(float) s0) => (bool a, seq(float) s3) <float[64] k = NUMBERS> {
        a = Identity (b)
        q = SequenceAt (s0, zero)
        r = Sub (q, k)
        s1 = SequenceInsert (s0, r)
        s2 = SequenceErase (s1, zero)
        s3 = Loop (two, yes, s2) <body = inner (int64 j, bool d, seq(float) t0) => (bool e, seq(float) t2) <float[64] l = NUMBERS> {
          e = Identity (d)
          u = SequenceAt (t0, zero)
          v = If (c) <then_branch = g1 () => (float[64] o) <float[64] n = NUMBERS> { n0 = Mul (n, l) o = Sub (u, n0) },
                      else_branch = g2 () => (float[64] o1) { o1 = Neg (u) }>
          t1 = SequenceInsert (t0, v)
          t2 = SequenceErase (t1, zero)
        }>
      }>
      y = SequenceAt (t, zero)
    }
    <domain: "own", opset_import: ["" : 17]> f (a, c) => (b) {
      w = Constant <value = float[64] NUMBERS> ()
      t = Add (a, w)
      b = If (c) <then_branch = h1 () => (float[64] o) <float[64] n = NUMBERS> { o = Add (t, n) },
                  else_branch = h2 () => (float[64] o1) { o1 = Neg (t) }>
    }""".replace("NUMBERS", numbers), np.linspace(-1, 1, 64, dtype=np.float32))


def message(field, content):
    """A field of a protobuf message that is bytes."""
    head, length = bytearray([field << 3 | 2]), len(content)
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes(head) + bytes([length]) + content


def main():
    FOLDER.mkdir(exist_ok=True)
    for make in (no_taps, far_windows, packed_views, empty_tensors, large_bias, bombs, generators, long_ways, groups, bias_of_floats,
                 rows_on_their_grids, absent_operands, unusual_types, grid_on_halves, masks_of_float8, outputs_beyond_states, dropout_in_training, unusual_axes,
                 layers, external_data, control, composed):
        make()
    (FOLDER / "hostile.json").write_text(golden_json.dump({"cases": CASES}) + "\n")


main()
