#!/usr/bin/env python3
"""Makes others/*.onnx and others/others.json: models that others quantized, and what ONNX Runtime computes with them.

Small float networks with seeded weights go through the quantizers of ONNX Runtime (static in QDQ and QOperator form,
dynamic) and of PyTorch (fake quantization, and its own quantized modules), over the options that users of these tools
have. Weights of 4 bits in blocks, and what NVIDIA's toolkit exports, are written here in their form. Every network has
fixed inputs, shared by its quantized forms.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_others.py
"""

import json
import logging
import pathlib
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType
from onnxruntime.quantization import quantize_dynamic, quantize_static

import golden_json

FOLDER = pathlib.Path(__file__).parent / "others"
CASES = 3
IR_VERSIONS = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)


class Network:
    """Nodes and seeded constants of a float network with one input."""

    def __init__(self, seed, shape):
        self.random = np.random.default_rng(seed)
        self.shape, self.nodes, self.constants = list(shape), [], {}
        self.last = "x"

    def constant(self, name, value):
        self.constants[name] = np.asarray(value)
        return name

    def weight(self, name, *shape, fan=None):
        """Not centred, so that zero points of asymmetric weights are not all the middle."""
        value = (self.random.normal(size=shape) + 0.15) / np.sqrt(fan or np.prod(shape[1:]))
        return self.constant(name, value.astype(np.float32))

    def node(self, op, name, *inputs, outputs=None, **attributes):
        """Reads the last value where no input is given; leading "" stands for it too."""
        inputs = [self.last if i == "" else i for i in inputs or [""]]
        self.nodes.append(helper.make_node(op, inputs, outputs or [name], name + "_node", **attributes))
        self.last = name
        return name

    def conv(self, name, out, channels, kernel, bias=True, **attributes):
        group = attributes.get("group", 1)
        inputs = ["", self.weight(name + ".weight", out, channels // group, kernel, kernel)]
        if bias:
            inputs.append(self.weight(name + ".bias", out, fan=20))
        if kernel > 1:
            attributes.setdefault("pads", [kernel // 2] * 4)
        return self.node("Conv", name, *inputs, **attributes)

    def gemm(self, name, out, depth, **attributes):
        return self.node("Gemm", name, "", self.weight(name + ".weight", out, depth),
                         self.weight(name + ".bias", out, fan=20), transB=1, **attributes)  # fmt: skip

    def model(self, opset):
        graph = helper.make_graph(
            self.nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSIONS[opset])
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model, full_check=True)
        return model

    def samples(self, count, seed):
        random = np.random.default_rng(seed)
        return [random.normal(size=self.shape).round(2).astype(np.float32) for _ in range(count)]


def plain():
    """Convolutions, both kinds of pools, a classifier."""
    n = Network(1, (1, 3, 12, 12))
    n.conv("stem", 8, 3, 3)
    n.node("Relu", "relu1")
    n.node("MaxPool", "pool", kernel_shape=[2, 2], strides=[2, 2])
    n.conv("middle", 12, 8, 3, bias=False)
    n.node("Relu", "relu2")
    n.node("AveragePool", "average", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    n.conv("last", 10, 12, 1)
    n.node("GlobalAveragePool", "mean")
    n.node("Flatten", "flat")
    n.gemm("fc", 10, 10)
    return n


def residual():
    """A residual sum, a concatenation, a map as the output."""
    n = Network(2, (1, 4, 9, 9))
    a = n.conv("a", 8, 4, 3)
    n.node("Relu", "a.relu")
    n.conv("b", 8, 8, 3)
    n.node("Add", "sum", "", a)
    r = n.node("Relu", "sum.relu")
    n.conv("c", 6, 8, 1)
    n.node("Sigmoid", "gate")
    n.node("Concat", "concat", "", r, axis=1)
    n.conv("d", 5, 14, 3, strides=[2, 2])
    return n


def mobile(hardswish=True):
    """Depthwise convolution, bounded activations, squeeze and excite."""
    n = Network(3, (1, 3, 10, 10))
    n.conv("stem", 8, 3, 3, strides=[2, 2])
    n.node("Clip", "relu6", "", n.constant("zero", np.float32(0)), n.constant("six", np.float32(6)))
    d = n.conv("depthwise", 8, 8, 3, group=8)
    if hardswish:
        n.node("HardSwish", "swish")
    else:
        n.node("HardSigmoid", "swish.gate", alpha=1 / 6, beta=0.5)
        n.node("Mul", "swish", "", d)
    s = n.last
    n.node("GlobalAveragePool", "squeeze")
    n.conv("reduce", 4, 8, 1)
    n.node("Relu", "reduce.relu")
    n.conv("expand", 8, 4, 1)
    n.node("HardSigmoid", "excite", alpha=1 / 6, beta=0.5)
    n.node("Mul", "scaled", "", s)
    n.conv("project", 12, 8, 1)
    n.node("ReduceMean", "mean", axes=[2, 3], keepdims=0)
    n.gemm("fc", 10, 12)
    return n


def mlp():
    n = Network(4, (6, 32))
    n.gemm("first", 24, 32)
    n.node("Relu", "relu")
    n.gemm("second", 20, 24)
    n.node("Tanh", "tanh")
    n.gemm("third", 10, 20)
    return n


def matmuls():
    """Products without Gemm, the biases apart."""
    n = Network(7, (5, 32))
    n.node("MatMul", "first", "", n.weight("first.weight", 32, 32, fan=32))
    n.node("Add", "first.sum", "", n.weight("first.bias", 32, fan=20))
    n.node("Relu", "relu")
    n.node("MatMul", "second", "", n.weight("second.weight", 32, 16, fan=32))
    n.node("Add", "second.sum", "", n.weight("second.bias", 16, fan=20))
    return n


def attention():
    """Two heads, products of activations, Softmax, a residual sum."""
    n = Network(5, (1, 6, 16))
    parts = {}
    for part in "qkv":
        n.last = "x"
        n.node("MatMul", part, "", n.weight(part + ".weight", 16, 16, fan=16))
        n.node("Add", part + ".sum", "", n.weight(part + ".bias", 16, fan=20))
        n.node("Reshape", part + ".heads", "", n.constant(part + ".shape", np.array([1, 6, 2, 8])))
        parts[part] = n.node("Transpose", part + ".t", perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])
    n.node("MatMul", "scores", parts["q"], parts["k"])
    n.node("Mul", "scaled", "", n.constant("factor", np.float32(1 / np.sqrt(8))))
    n.node("Softmax", "softmax", axis=-1)
    n.node("MatMul", "mixed", "", parts["v"])
    n.node("Transpose", "mixed.t", perm=[0, 2, 1, 3])
    n.node("Reshape", "joined", "", n.constant("joined.shape", np.array([1, 6, 16])))
    n.node("MatMul", "out", "", n.weight("out.weight", 16, 16, fan=16))
    n.node("Add", "sum", "", "x")
    return n


def deconv():
    """ConvTranspose and a nearest Resize."""
    n = Network(6, (1, 4, 5, 5))
    n.conv("a", 6, 4, 3)
    n.node("LeakyRelu", "leaky", alpha=0.1)
    n.node("ConvTranspose", "up", "", n.weight("up.weight", 6, 8, 2, 2, fan=12), n.weight("up.bias", 8, fan=20),
           strides=[2, 2])  # fmt: skip
    n.node("Relu", "relu")
    n.node("Resize", "resize", "", "", n.constant("factors", np.array([1, 1, 2, 2], np.float32)), mode="nearest",
           coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    n.nodes[-1].input[1] = ""
    n.conv("last", 3, 8, 3)
    return n


def line():
    """One axis: convolutions, pools, transposed convolutions in groups and of one channel each."""
    n = Network(9, (2, 4, 19))
    n.node("Conv", "a", "", n.weight("a.weight", 8, 4, 5), n.weight("a.bias", 8, fan=20), pads=[2, 1], strides=[2])
    n.node("Relu", "a.relu")
    n.node("MaxPool", "pool", kernel_shape=[3], strides=[2], pads=[1, 0])
    n.node("ConvTranspose", "grouped", "", n.weight("grouped.weight", 8, 3, 4, fan=16),
           n.weight("grouped.bias", 6, fan=20), group=2, strides=[3], pads=[1, 0], output_padding=[2])  # fmt: skip
    n.node("Relu", "grouped.relu")
    n.node("AveragePool", "average", kernel_shape=[2], count_include_pad=1, pads=[1, 0])
    n.node("ConvTranspose", "depthwise", "", n.weight("depthwise.weight", 6, 1, 5, fan=3), group=6, strides=[2],
           dilations=[3], pads=[2, 5])  # fmt: skip
    squeezed = n.last
    n.node("GlobalAveragePool", "mean")
    n.node("Mul", "scaled", "", squeezed)
    n.node("Conv", "last", "", n.weight("last.weight", 5, 6, 1), n.weight("last.bias", 5, fan=20))
    return n


def volume():
    """Three axes."""
    n = Network(10, (1, 3, 5, 7, 6))
    n.node("Conv", "a", "", n.weight("a.weight", 6, 3, 3, 2, 3), n.weight("a.bias", 6, fan=20),
           pads=[1, 0, 1, 1, 1, 1], strides=[1, 2, 1])  # fmt: skip
    n.node("Relu", "a.relu")
    n.node("MaxPool", "pool", kernel_shape=[2, 2, 2], strides=[2, 1, 2])
    n.node("ConvTranspose", "up", "", n.weight("up.weight", 6, 5, 3, 2, 2, fan=30), n.weight("up.bias", 5, fan=20),
           strides=[2, 1, 2], pads=[1, 0, 0, 0, 1, 1], dilations=[1, 2, 1], output_padding=[1, 0, 1])  # fmt: skip
    n.node("Relu", "up.relu")
    # Means of three: those of two and four lie half way between integers too often, which floats round either way.
    n.node("AveragePool", "average", kernel_shape=[3, 1, 1], pads=[1, 0, 0, 1, 0, 0], count_include_pad=1)
    n.node("Conv", "last", "", n.weight("last.weight", 4, 5, 1, 1, 1), n.weight("last.bias", 4, fan=20))
    return n


def shuffle():
    """Elements moved about: Split, Pad, Transpose, Slice, Squeeze."""
    n = Network(8, (1, 4, 8, 8))
    n.conv("a", 8, 4, 1)
    n.node("Relu", "relu")
    n.node("Reshape", "groups", "", n.constant("groups.shape", np.array([1, 2, 4, 8, 8])))
    n.node("Transpose", "swapped", perm=[0, 2, 1, 3, 4])
    n.node("Reshape", "shuffled", "", n.constant("shuffled.shape", np.array([1, 8, 8, 8])))
    n.node("Split", "split", "", n.constant("parts", np.array([3, 5])), outputs=["left", "right"], axis=1)
    n.last = "right"
    n.conv("b", 5, 5, 3)
    n.node("Concat", "concat", "", "left", axis=1)
    n.node("Pad", "pad", "", n.constant("pads", np.array([0, 0, 1, 0, 0, 0, 0, 1])))
    n.conv("c", 6, 8, 3, pads=[0, 0, 0, 0])
    n.node("Slice", "slice", "", n.constant("starts", np.array([1])), n.constant("ends", np.array([5])),
           n.constant("axes", np.array([2])))  # fmt: skip
    n.conv("d", 4, 6, 1)
    return n


NETWORKS = {f.__name__: f for f in (plain, residual, mobile, mlp, matmuls, attention, deconv, line, volume, shuffle)}


def network(name, opset=21):
    n = mobile(opset >= 14) if name == "mobile" else NETWORKS[name]()
    for node in n.nodes:
        if node.op_type == "ReduceMean" and opset >= 18:
            node.attribute.remove(next(a for a in node.attribute if a.name == "axes"))
            node.input.append(n.constant("mean.axes", np.array([2, 3])))
    return n


class Samples(CalibrationDataReader):
    def __init__(self, samples):
        self.left = list(samples)

    def get_next(self):
        return {"x": self.left.pop(0)} if self.left else None


def through_files(model, quantize):
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "float.onnx"), pathlib.Path(folder, "quantized.onnx")
        onnx.save(model, source)
        quantize(source, target)
        return onnx.load(target)


def static(net, opset=17, form="QDQ", activation="QUInt8", weight="QInt8", extra=None, calibrate="MinMax", **options):
    n = network(net, opset)

    def quantize(source, target):
        quantize_static(
            source, target, Samples(n.samples(8, 100)), quant_format=QuantFormat[form], weight_type=QuantType[weight],
            activation_type=QuantType[activation], calibrate_method=CalibrationMethod[calibrate],
            extra_options=extra or {}, **options,
        )  # fmt: skip

    return through_files(n.model(opset), quantize)


def clipped(net, least, most, **options):
    """Activations of fewer bits than their type has, as Brevitas and QONNX write them: Clip between QuantizeLinear and
    DequantizeLinear."""
    model = static(net, **options)
    dtype = np.int8 if options.get("activation") == "QInt8" else np.uint8
    bounds = [numpy_helper.from_array(np.array(v, dtype), n) for n, v in (("least", least), ("most", most))]
    model.graph.initializer.extend(bounds)
    nodes = list(model.graph.node)
    for node in nodes:
        for i, name in enumerate(node.input):
            if name.endswith("_QuantizeLinear_Output"):
                node.input[i] = name + "_clipped"
    del model.graph.node[:]
    for node in nodes:
        model.graph.node.append(node)
        if node.op_type == "QuantizeLinear":
            integers = node.output[0]
            clip = helper.make_node("Clip", [integers, "least", "most"], [integers + "_clipped"], integers + "_clip")
            model.graph.node.append(clip)
    return model


def dynamic(net, opset=17, weight="QInt8", **options):
    def quantize(source, target):
        quantize_dynamic(source, target, weight_type=QuantType[weight], **options)

    return through_files(network(net, opset).model(opset), quantize)


def blocks(net, opset=21, block=16, symmetric=True, operator=False):
    """4-bit weights of products in blocks along K, written as ONNX Runtime's MatMulNBitsQuantizer lays them out:
    DequantizeLinear, or its operator MatMulNBits. The operator's codes are unsigned, its default zero point is 8."""
    model = network(net, opset).model(opset)
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes, initializers = [], []
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in constants:
            nodes.append(node)
            continue
        name = node.input[1]
        w = constants.pop(name)
        k, n = w.shape
        parts = w.reshape(k // block, block, n)
        low, high = np.minimum(parts.min(1), 0), np.maximum(parts.max(1), 0)
        scale = (np.abs(parts).max(1) / 7 if symmetric else (high - low) / 15).astype(np.float32)
        zero = np.full_like(scale, 8) if symmetric else np.rint(-low / scale)
        codes = np.clip(np.rint(parts / scale[:, None]) + zero[:, None], 0, 15).astype(np.uint8)
        zero = zero.astype(np.uint8)

        def add(suffix, array):
            initializers.append(numpy_helper.from_array(array, name + suffix))
            return name + suffix

        if operator:
            packed = codes.transpose(2, 0, 1)
            pairs = packed[:, :, ::2] | packed[:, :, 1::2] << 4
            inputs = [node.input[0], add(".q", pairs), add(".scale", scale.T.copy().ravel())]
            if not symmetric:
                odd = np.pad(zero.T, ((0, 0), (0, zero.shape[0] % 2)))
                inputs.append(add(".zero", (odd[:, ::2] | odd[:, 1::2] << 4).ravel()))
            attributes = {"domain": "com.microsoft", "K": k, "N": n, "bits": 4, "block_size": block}
            nodes.append(helper.make_node("MatMulNBits", inputs, node.output, node.name, **attributes))
            continue
        dtype, shift = (ml_dtypes.int4, 8) if symmetric else (ml_dtypes.uint4, 0)
        q = (codes.astype(np.int8) - shift).reshape(k, n).astype(dtype)
        z = (zero.astype(np.int8) - shift).astype(dtype)
        inputs = [add(".q", q), add(".scale", scale), add(".zero", z)]
        nodes.append(helper.make_node("DequantizeLinear", inputs, [name], name + "_dq", axis=0, block_size=block))
        nodes.append(node)
    initializers.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "blocks", model.graph.input, model.graph.output, initializers)
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSIONS[opset])


def nvidia(net, opset, weights_as="float", axis=0):
    """As NVIDIA's toolkit exports: int8, zero point 0, amax / 127; QuantizeLinear and DequantizeLinear in front of the
    input and the weights of each product (and operands of residual sums); nothing on outputs and biases."""
    n = network(net, opset)
    model = n.model(opset)
    amax = {}
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    results = [o for node in model.graph.node for o in node.output]
    probe.graph.output.extend(helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in results)
    for x in n.samples(8, 100):
        for name, value in {**run(probe, x), "x": x}.items():
            amax[name] = max(amax.get(name, 0), float(np.abs(value).max()))
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes, initializers, made = [], [], set()

    def pair(name, scale, axis=None):
        """The name of `name` behind a pair; made once for each reader, as the toolkit does."""
        unique = f"{name}.{len(made)}"
        made.add(unique)
        zero = np.zeros(np.shape(scale), np.int8)
        initializers.append(numpy_helper.from_array(np.float32(scale), unique + ".scale"))
        initializers.append(numpy_helper.from_array(zero, unique + ".zero"))
        attributes = {} if axis is None else {"axis": axis}
        grid = [unique + ".scale", unique + ".zero"]
        if axis is not None and weights_as == "int8":
            shape = [-1 if i == axis else 1 for i in range(constants[name].ndim)]
            q = np.clip(np.rint(constants[name] / np.float32(scale).reshape(shape)), -128, 127).astype(np.int8)
            initializers.append(numpy_helper.from_array(q, unique + ".q"))
        else:
            inputs = [name, *grid]
            nodes.append(helper.make_node("QuantizeLinear", inputs, [unique + ".q"], unique + "_q", **attributes))
        inputs = [unique + ".q", *grid]
        nodes.append(helper.make_node("DequantizeLinear", inputs, [unique + ".dq"], unique + "_dq", **attributes))
        return unique + ".dq"

    for node in model.graph.node:
        if node.op_type in ("Conv", "Gemm", "ConvTranspose"):
            at = 1 if node.op_type == "ConvTranspose" else 0
            w = constants[node.input[1]]
            largest = np.abs(w).max(axis=tuple(i for i in range(w.ndim) if i != at))
            node.input[0] = pair(node.input[0], amax[node.input[0]] / 127)
            node.input[1] = pair(node.input[1], largest / 127, at)
        elif node.op_type in ("Add", "GlobalAveragePool", "AveragePool"):
            for i, name in enumerate(node.input):
                node.input[i] = pair(name, amax[name] / 127)
        nodes.append(node)
    del model.graph.value_info[:]
    kept = {i for node in nodes for i in node.input}
    initializers.extend(t for t in model.graph.initializer if t.name in kept)
    graph = helper.make_graph(nodes, "nvidia", model.graph.input, model.graph.output, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSIONS[opset])


def torch_network(net):
    import torch
    from torch import nn

    torch.manual_seed(9)
    if net == "torch_cnn":
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
                self.conv2, self.conv3 = nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.Conv2d(16, 6, 1)
                self.relu, self.pool, self.fc = nn.ReLU(), nn.MaxPool2d(2), nn.Linear(6, 10)

            def forward(self, x):
                x = self.pool(self.relu(self.bn1(self.conv1(x))))
                y = self.relu(self.conv2(x) + x)
                z = self.conv3(torch.cat([x, y], 1))
                return self.fc(z.mean((2, 3)))

        return Model().eval(), (1, 3, 12, 12)
    if net == "torch_tokens":  # weights come out as MatMul of a Transpose
        return nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 12)).eval(), (1, 5, 16)
    layers = [nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 16), nn.Sigmoid(), nn.Linear(16, 10)]
    return nn.Sequential(*layers).eval(), (4, 24)


def torch_export(net, opset, mapping="x86", converted=False):
    """FX graph mode: calibrated, then exported with fake quantization, or converted to torch's own quantized modules,
    which are exported."""
    import torch
    from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver
    from torch.ao.quantization import PlaceholderObserver, QConfig, QConfigMapping, get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx, prepare_qat_fx

    model, shape = torch_network(net)
    samples = [torch.from_numpy(x) for x in Network(0, shape).samples(8, 100)]
    if converted:
        prepared = prepare_fx(model, get_default_qconfig_mapping(mapping), (samples[0],))
    else:
        per_channel = mapping != "qnnpack"
        observer = MovingAveragePerChannelMinMaxObserver if per_channel else MovingAverageMinMaxObserver
        scheme = torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric
        weight = FakeQuantize.with_args(
            observer=observer, quant_min=-128, quant_max=127, dtype=torch.qint8, qscheme=scheme
        )
        activation = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
        if mapping == "weights":
            activation = PlaceholderObserver.with_args(dtype=torch.float)
        config = QConfigMapping().set_global(QConfig(activation=activation, weight=weight))
        prepared = prepare_qat_fx(model.train(), config, (samples[0],)).eval()
    with torch.no_grad():
        for x in samples:
            prepared(x)
        if converted:
            prepared = convert_fx(prepared)
        else:
            prepared.apply(torch.ao.quantization.disable_observer)
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "model.onnx"))
            torch.onnx.export(prepared, (samples[0],), path, opset_version=opset, input_names=["x"], output_names=["y"],
                              dynamo=False, do_constant_folding=False)  # fmt: skip
            return onnx.load(path)


def shape_of(net):
    return torch_network(net)[1] if net.startswith("torch") else tuple(network(net).shape)


def run(model, x, optimized=True):
    """Results by name."""
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: x})))


def step_of(model, outputs):
    """The step of the grid that the output lies on; of an output in float, that of eight bits over its range."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    (last,) = [n for n in model.graph.node if model.graph.output[0].name in n.output]
    if last.op_type == "DequantizeLinear":
        scale = last.input[1]
        while scale not in constants:  # behind Cast
            (scale,) = [n.input[0] for n in model.graph.node if scale in n.output]
        return float(constants[scale].ravel()[0])
    return float((max(y.max() for y in outputs) - min(y.min() for y in outputs)) / 255)


PC = {"per_channel": True}
SYMMETRIC = {"extra": {"ActivationSymmetric": True}}
MODELS = {
    # QDQ from ONNX Runtime.
    "plain_u8s8": (static, "plain", {"opset": 13}),
    "plain_u8s8_channels": (static, "plain", {"opset": 21, **PC}),
    "plain_s8s8": (static, "plain", {"activation": "QInt8", "opset": 15}),
    "plain_s8s8_channels": (static, "plain", {"activation": "QInt8", **PC}),
    "plain_s8s8_symmetric": (static, "plain", {"activation": "QInt8", "opset": 18, **SYMMETRIC, **PC}),
    "plain_u8u8": (static, "plain", {"weight": "QUInt8", "opset": 14}),
    "plain_u8u8_channels": (static, "plain", {"weight": "QUInt8", "opset": 19, **PC}),
    "plain_u8u8_symmetric": (static, "plain", {"weight": "QUInt8", "extra": {"WeightSymmetric": True}, "opset": 16}),
    "plain_s8_asymmetric": (static, "plain", {"extra": {"WeightSymmetric": False}}),
    "plain_reduce_range": (static, "plain", {"reduce_range": True, "opset": 20, **PC}),
    "plain_u16s8": (static, "plain", {"activation": "QUInt16", "opset": 21, **PC}),
    "plain_s16s8": (static, "plain", {"activation": "QInt16", "opset": 21, **SYMMETRIC}),
    "plain_u16s8_contrib": (static, "plain", {"activation": "QUInt16", "opset": 17}),
    "plain_u8s4": (static, "plain", {"weight": "QInt4", "opset": 21, **PC}),
    "plain_pairs_on_weights": (static, "plain", {"extra": {"AddQDQPairToWeight": True}, **PC}),
    "plain_float_bias": (static, "plain", {"extra": {"QuantizeBias": False}, **PC}),
    "residual_u8s8": (static, "residual", {"opset": 13}),
    "residual_s8s8_channels": (static, "residual", {"activation": "QInt8", "opset": 21, **PC}),
    "residual_excluded": (static, "residual", {"nodes_to_exclude": ["b_node"], **PC}),
    "residual_only_conv": (static, "residual", {"op_types_to_quantize": ["Conv"], **PC}),
    "residual_own_pairs": (static, "residual", {"extra": {"DedicatedQDQPair": True}, **PC}),
    "residual_percentile": (static, "residual", {"calibrate": "Percentile", **PC}),
    "residual_entropy": (static, "residual", {"calibrate": "Entropy", "activation": "QInt8", "opset": 19}),
    "residual_u8u8": (static, "residual", {"weight": "QUInt8", "opset": 18}),
    "residual_clipped": (clipped, "residual", {"least": 0, "most": 63, "opset": 13, **PC}),
    "mobile_clipped_s8": (clipped, "mobile", {"least": -64, "most": 63, "activation": "QInt8", "opset": 21, **PC}),
    "mobile_u8s8": (static, "mobile", {"opset": 13}),
    "mobile_u8s8_channels": (static, "mobile", {"opset": 14, **PC}),
    "mobile_s8s8_symmetric": (static, "mobile", {"activation": "QInt8", "opset": 21, **SYMMETRIC, **PC}),
    "mobile_u8u8": (static, "mobile", {"weight": "QUInt8", "opset": 20}),
    "mobile_kept_activations": (static, "mobile", {"extra": {"QDQKeepRemovableActivations": True}, **PC}),
    "mlp_u8s8": (static, "mlp", {"opset": 13}),
    "mlp_s8s4": (static, "mlp", {"activation": "QInt8", "weight": "QInt4", "opset": 21, **PC}),
    "mlp_u8u4": (static, "mlp", {"weight": "QUInt4", "opset": 21}),
    "mlp_u16s4": (static, "mlp", {"activation": "QUInt16", "weight": "QInt4", "opset": 21}),
    "attention_u8s8": (static, "attention", {"opset": 13}),
    "attention_s8s8_channels": (static, "attention", {"activation": "QInt8", "opset": 21, **PC}),
    "attention_constant_b": (static, "attention", {"extra": {"MatMulConstBOnly": True}}),
    "matmuls_u8s8_channels": (static, "matmuls", {"opset": 17, **PC}),
    "deconv_u8s8": (static, "deconv", {"opset": 13}),
    "deconv_s8s8_channels": (static, "deconv", {"activation": "QInt8", "opset": 21, **PC}),
    "line_u8s8": (static, "line", {"opset": 19}),
    "line_s8s8": (static, "line", {"activation": "QInt8", "opset": 21}),
    "volume_u8s8": (static, "volume", {"opset": 19}),
    "volume_s8s8_channels": (static, "volume", {"activation": "QInt8", "opset": 21, **PC}),
    "shuffle_u8s8": (static, "shuffle", {"opset": 13}),
    "shuffle_s8s8_channels": (static, "shuffle", {"activation": "QInt8", "opset": 21, **PC}),
    # QOperator from ONNX Runtime.
    "plain_operators_u8s8": (static, "plain", {"form": "QOperator", "opset": 13}),
    "plain_operators_u8s8_channels": (static, "plain", {"form": "QOperator", "opset": 17, **PC}),
    "plain_operators_s8s8": (static, "plain", {"form": "QOperator", "activation": "QInt8", "opset": 21}),
    "plain_operators_u8u8": (static, "plain", {"form": "QOperator", "weight": "QUInt8"}),
    "residual_operators_u8s8": (static, "residual", {"form": "QOperator", **PC}),
    "residual_operators_s8s8": (static, "residual", {"form": "QOperator", "activation": "QInt8", "opset": 19, **PC}),
    "residual_operators_excluded": (static, "residual", {"form": "QOperator", "nodes_to_exclude": ["b_node"]}),
    "mobile_operators_u8s8": (static, "mobile", {"form": "QOperator", "opset": 15, **PC}),
    "mlp_operators_u8s8": (static, "mlp", {"form": "QOperator", "reduce_range": True}),
    "attention_operators_u8s8": (static, "attention", {"form": "QOperator"}),
    "deconv_operators_u8s8": (static, "deconv", {"form": "QOperator"}),
    "line_operators_u8s8": (static, "line", {"form": "QOperator", "opset": 18}),
    "shuffle_operators_u8s8": (static, "shuffle", {"form": "QOperator", "opset": 18}),
    # Dynamic: activations on grids of their own range, at every run.
    "matmuls_dynamic": (dynamic, "matmuls", {}),
    "matmuls_dynamic_channels": (dynamic, "matmuls", {"opset": 21, **PC}),
    "attention_dynamic_u8": (dynamic, "attention", {"weight": "QUInt8", "opset": 13}),
    "plain_dynamic_u8": (dynamic, "plain", {"weight": "QUInt8"}),
    # 4-bit weights in blocks.
    "matmuls_blocks_s4": (blocks, "matmuls", {}),
    "matmuls_blocks_u4": (blocks, "matmuls", {"block": 8, "symmetric": False}),
    "matmuls_nbits": (blocks, "matmuls", {"operator": True}),
    "matmuls_nbits_asymmetric": (blocks, "matmuls", {"operator": True, "block": 32, "symmetric": False}),
    # As NVIDIA's toolkit exports.
    "plain_nvidia": (nvidia, "plain", {"opset": 13}),
    "residual_nvidia": (nvidia, "residual", {"opset": 17}),
    "mobile_nvidia_int8": (nvidia, "mobile", {"opset": 19, "weights_as": "int8"}),
    "mlp_nvidia": (nvidia, "mlp", {"opset": 13}),
    "deconv_nvidia": (nvidia, "deconv", {"opset": 17}),
    "line_nvidia": (nvidia, "line", {"opset": 17}),
    # From PyTorch.
    "torch_cnn_fake": (torch_export, "torch_cnn", {"opset": 13}),
    "torch_cnn_fake_weights": (torch_export, "torch_cnn", {"opset": 17, "mapping": "weights"}),
    "torch_cnn_fake_qnnpack": (torch_export, "torch_cnn", {"opset": 16, "mapping": "qnnpack"}),
    "torch_mlp_fake": (torch_export, "torch_mlp", {"opset": 15}),
    "torch_tokens_fake": (torch_export, "torch_tokens", {"opset": 17}),
    "torch_tokens_x86": (torch_export, "torch_tokens", {"opset": 17, "converted": True}),
    "torch_cnn_x86": (torch_export, "torch_cnn", {"opset": 17, "converted": True}),
    "torch_cnn_qnnpack": (torch_export, "torch_cnn", {"opset": 17, "mapping": "qnnpack", "converted": True}),
    "torch_mlp_x86": (torch_export, "torch_mlp", {"opset": 13, "converted": True}),
}  # fmt: skip


# PyTorch writes scales as lists of one number, from which ONNX Runtime's optimizer makes a QLinearAdd that it refuses.
UNOPTIMIZED = {"torch_cnn_fake_qnnpack", "torch_cnn_fake"}


def stripped(model):
    """Without what only makes the file larger."""
    del model.graph.value_info[:], model.metadata_props[:]
    model.doc_string = model.graph.doc_string = ""
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    return model


def main():
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.onnx"):
        old.unlink()
    networks = dict.fromkeys(net for _, net, _ in MODELS.values())
    inputs = {net: Network(0, shape_of(net)).samples(CASES, 200) for net in networks}
    models = []
    for name, (tool, net, options) in MODELS.items():
        print(name)
        model = stripped(tool(net, **options))
        onnx.checker.check_model(model)
        outputs = [next(iter(run(model, x, name not in UNOPTIMIZED).values())) for x in inputs[net]]
        onnx.save(model, FOLDER / f"{name}.onnx")
        made = {"name": name, "network": net, "tool": tool.__name__, "options": json.dumps(options)}
        models.append({**made, "step": step_of(model, outputs), "outputs": outputs})
    import torch

    source = f"onnxruntime {onnxruntime.__version__}, torch {torch.__version__}"
    golden_json.write(FOLDER / "others.json", {"source": source, "inputs": inputs, "models": models})


if __name__ == "__main__":
    main()
