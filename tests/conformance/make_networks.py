#!/usr/bin/env python3
"""Makes networks/*.onnx and networks.json: small networks of PyTorch in float, and what PyTorch's own eager quantization
(fuse_modules, get_default_qconfig, prepare, convert; torchvision's quantize_model) makes of them, which ours must meet.

Weights and inputs are multiples of 1/8, deviations of batch normalization powers of two: sums in float32 are exact, and
so scales and zero points must be met exactly. Outputs may be one step of PyTorch's last quantizer apart, for it rounds
them and we do not; where we are told to (OUTPUT_GRID), they are equal.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/conformance/make_networks.py
"""

import copy
import io
import pathlib
import unittest.mock
import warnings

import numpy as np
import onnx
import torch
from torch import nn
from torch.ao.quantization import DeQuantStub, QConfig, QuantStub, convert, fuse_modules, get_default_qconfig, prepare, quantize
from torch.ao.quantization import default_observer, default_per_channel_weight_observer
from torch.nn import functional as F
from torchvision.models.quantization import mobilenetv2
from torchvision.models.quantization.utils import _replace_relu, quantize_model

import state_cases
from make_cases import call, case, expected_floats, floats, quantized_run, write

HERE = pathlib.Path(__file__).resolve().parent

warnings.simplefilter("ignore")
INEXACT = 1e-6  # of scales behind many layers, whose sums float32 rounds
Add = torch.ao.nn.quantized.FloatFunctional
MINMAX = QConfig(default_observer, default_per_channel_weight_observer)
OUTPUT_GRID = call("qconfig_set", c="$c", selector="*", settings={"quantize_outputs": 1})
FBGEMM = [call("qconfig_create", "c", name="fbgemm")]


# ------------------------------------------------------------------------------------------------------------ networks


class Quantizable(nn.Module):
    """Layers by name, one after the other, between the stubs."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.names = list(layers)
        self.quant, self.dequant = QuantStub(), DeQuantStub()

    def forward(self, x):
        x = self.quant(x)
        for name in self.names:
            x = getattr(self, name)(x)
        return self.dequant(x)


class Two(nn.Module):
    """Two convolutions of x, what `join` makes of them, and a third."""

    def __init__(self, join):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 3, 1), nn.Conv2d(2, 3, 1)
        self.head = nn.Conv2d(6 if join == "cat" else 3, 2, 1)
        self.join, self.functional = join, Add()
        self.quant, self.dequant = QuantStub(), DeQuantStub()

    def joined(self, a, b):
        if self.join == "cat":
            return self.functional.cat([a, b], 1)
        if self.join.endswith("scalar"):
            return getattr(self.functional, self.join)(a, 0.5)
        return getattr(self.functional, self.join)(a, b)

    def forward(self, x):
        x = self.quant(x)
        return self.dequant(self.head(self.joined(self.a(x), self.b(x))))


class Functional(nn.Module):
    """The same as Two("add_relu") with a ReLU behind a, in functions and operators."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.Conv2d(2, 3, 1), nn.Conv2d(2, 3, 1), nn.Conv2d(3, 2, 1)

    def forward(self, x):
        return self.head(F.relu(F.relu(self.a(x)) + self.b(x)))


class InModules(Two):
    def __init__(self):
        super().__init__("add_relu")
        self.relu = nn.ReLU()

    def joined(self, a, b):
        return self.functional.add_relu(self.relu(a), b)


class Residual(nn.Module):
    """torchvision's block behind a stem and in front of a head."""

    def __init__(self, stride):
        super().__init__()
        self.stem, self.head = nn.Conv2d(2, 4, 1), nn.Conv2d(4, 2, 1)
        self.block = mobilenetv2.QuantizableInvertedResidual(4, 4, stride, 2)
        self.quant, self.dequant = QuantStub(), DeQuantStub()

    def forward(self, x):
        return self.dequant(self.head(self.block(self.stem(self.quant(x)))))

    def fuse_model(self):
        for m in self.modules():
            if type(m) is mobilenetv2.Conv2dNormActivation:
                fuse_modules(m, ["0", "1", "2"], inplace=True)
        self.block.fuse_model()


def mobilenet():
    """torchvision's class with few channels, and with a last convolution as narrow."""
    blocks = [[1, 8, 1, 1], [2, 8, 2, 2]]
    block = mobilenetv2.QuantizableInvertedResidual
    net = mobilenetv2.QuantizableMobileNetV2(5, 0.25, blocks, block=block)
    net.features[-1] = mobilenetv2.Conv2dNormActivation(8, 16, kernel_size=1, activation_layer=nn.ReLU6)
    net.classifier[1] = nn.Linear(16, 5)
    return net


def settle(net, seed, limit=7):
    """Seeded parameters, see above; limit: of weights, in eighths."""
    g = torch.Generator().manual_seed(seed)

    def eighths(t, low, high):
        t.copy_(torch.randint(low, high + 1, t.shape, generator=g) / 8)

    with torch.no_grad():
        for m in net.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                eighths(m.weight, -limit, limit)
                if m.bias is not None:
                    eighths(m.bias, -4, 4)
            elif isinstance(m, nn.BatchNorm2d):
                m.eps = 2.0**-10
                eighths(m.weight, 4, 12)
                eighths(m.bias, -4, 8)
                eighths(m.running_mean, -4, 4)
                m.running_var.copy_(4.0 ** torch.randint(0, 2, m.running_var.shape, generator=g) - m.eps)
    return net.eval()


def data(seed, *shape, limit=24):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(-limit, limit + 1, shape, generator=g) / 8


def onnx_bytes(net, x, training=torch.onnx.TrainingMode.PRESERVE):
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(net, (x,), file, input_names=["x"], output_names=["y"], opset_version=17, dynamo=False,
                          dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}, do_constant_folding=False, training=training)  # fmt: skip
    return file.getvalue()


def export(name, net, x):
    """The float network. BatchNorm stays a node, as a file has it that was not simplified."""
    path = HERE / "networks" / f"{name}.onnx"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(onnx_bytes(net, x))
    onnx.checker.check_model(str(path), full_check=True)
    return call("qmodel_load", "m", path=str(path.relative_to(HERE.parent.parent)))


# ------------------------------------------------------------------------------------------------------- PyTorch's side


def in_torch(net, samples, backend="fbgemm", fuse=(), qconfig=None):
    torch.backends.quantized.engine = backend
    net = copy.deepcopy(net).eval()
    net.qconfig = qconfig or get_default_qconfig(backend)
    if fuse:
        net = fuse_modules(net, [list(names) for names in fuse])
    net = prepare(net)
    with torch.no_grad():
        for sample in samples:
            net(sample)
    return convert(net)


def grid_of(module):
    """What a converted module rounds its output to."""
    return {"scale": float(np.float32(float(module.scale))), "zero_point": int(module.zero_point), "quantized_dtype": "uint8"}


def node(op, module=None):
    """A node that runs in integers; with the grid of its output if PyTorch's module gives it."""
    grid = {f"output_{key}": value for key, value in grid_of(module).items()} if module is not None else {}
    return {"op": op, "dtype": "int8", **grid}


def is_like(converted, nodes, y, last, tolerance=0.0, rounded=False):
    """The network $q has the input grid of PyTorch's and these nodes and no other, and its result $y is near y; where it
    is rounded as PyTorch's is, $y is y, or as far from it as scales are."""
    inputs = [{"name": "x", "dtype": "float32", **grid_of(converted.quant)}]
    outputs = [{"name": "y", "dtype": "float32", **(grid_of(last) if rounded else {})}]
    report = {"quantized": True, "inputs": inputs, "outputs": outputs, "nodes": nodes, "float_nodes": []}
    within = {"tolerance": float(last.scale) * (1 if not rounded else 0.01)} if tolerance or not rounded else {}
    return [call("qmodel_inspect", "report", m="$q"), {"expect": "$report", "json": report, "tolerance": tolerance},
            expected_floats("y", y, **within)]  # fmt: skip


def same_everywhere():
    """$q answers $y in the other engine, and from files of both formats."""
    equal = {"call": "qtensor_equal", "equals": 1}
    steps = [call("qsession_create", "other", m="$q", attrs={"engine": "reference"}), call("qsession_run", "other_y", s="$other", inputs=["$x"]),
             {**equal, "with": {"a": "$y", "b": "$other_y"}}]  # fmt: skip
    for form in ("qdq", "qoperator"):
        steps += [call("qmodel_save", m="$q", path=f"@{form}.onnx", attrs={"format": form}), call("qmodel_load", form, path=f"@{form}.onnx"),
                  call("qsession_create", f"{form}_session", m=f"${form}"), call("qsession_run", f"{form}_y", s=f"${form}_session", inputs=["$x"]),
                  {**equal, "with": {"a": "$y", "b": f"${form}_y"}}]  # fmt: skip
    return steps


def ran(net, x):
    with torch.no_grad():
        return net(x)


# ----------------------------------------------------------------------------------------------------------- cases, PTQ

BATCHES = [data(100 + i, 4, 1, 4, 4, limit=12 + 8 * i) for i in range(3)]
X = data(99, 2, 1, 4, 4, limit=28)


def the_seed():
    """M of the practice: Conv2d(1, 1, 1) and ReLU."""
    net = settle(Quantizable(conv=nn.Conv2d(1, 1, 1), relu=nn.ReLU()), 4)
    loaded = export("conv_relu", net, X)
    real = [{"name": "/conv/Conv", "op": "Conv", "dtype": "float32"}]
    case("ptq/float", ["P01", "P02"], loaded, call("qmodel_inspect", "report", m="$m"),
         {"expect": "$report", "json": {"quantized": False, "nodes": real, "parameters": 2, "parameter_bytes": 8}},
         floats("x", X), call("qsession_create", "s", m="$m"), call("qsession_run", "y", s="$s", inputs=["$x"]),
         expected_floats("y", ran(net, X)))  # fmt: skip
    for backend in ("fbgemm", "qnnpack"):
        int8 = in_torch(net, BATCHES, backend, [["conv", "relu"]])
        config = [call("qconfig_create", "c", name=backend)]
        case(f"ptq/{backend}", ["P01", "P02", "P09", "P11"], loaded, *quantized_run(config, BATCHES, X, "y"),
             *is_like(int8, [node("Conv")], ran(int8, X), int8.conv))  # fmt: skip
        # With a QuantStub's and a DeQuantStub's grid: the types on the way are quint8, quint8, float32, as PyTorch's are.
        case(f"ptq/{backend}/output_grid", ["P02", "P09", "P11"], loaded, *quantized_run([*config, OUTPUT_GRID], BATCHES, X, "y"),
             *is_like(int8, [node("Conv", int8.conv)], ran(int8, X), int8.conv, rounded=True), *same_everywhere())  # fmt: skip
    prepared = [*FBGEMM, call("qmodel_prepare", "p", m="$m", config="$c", mode=0)]
    state = {"status": "QTN_ESTATE"}
    case("ptq/prepared_is_float", ["P07"], loaded, *prepared, call("qmodel_inspect", "report", m="$p"),
         {"expect": "$report", "json": {"quantized": False, "nodes": real, "float_nodes": ["/conv/Conv"]}},
         {**call("qsession_create", m="$p"), **state, "message": "qsession_create: the model is prepared, but not converted"},
         {**call("qmodel_save", m="$p", path="@p.onnx"), **state, "message": "qmodel_save: the model is prepared, but not converted"})  # fmt: skip
    x = floats("x", BATCHES[0])
    case("ptq/order", ["P03"], loaded, x,
         {**call("qmodel_calibrate", prepared="$m", inputs=["$x"]), **state, "message": "qmodel_calibrate: the model is not prepared"},
         {**call("qmodel_convert", prepared="$m"), **state, "message": "qmodel_convert: the model is not prepared"}, *prepared,
         {**call("qmodel_convert", prepared="$p"), **state, "message": "convert: the model has not been calibrated"},
         {**call("qmodel_prepare", m="$p", config="$c", mode=0), **state, "message": "qmodel_prepare: the model is prepared already"},
         call("qmodel_calibrate", prepared="$p", inputs=["$x"]), call("qmodel_convert", "q", prepared="$p"),
         {**call("qmodel_calibrate", prepared="$q", inputs=["$x"]), **state, "message": "qmodel_calibrate: the model is not prepared"},
         {**call("qmodel_prepare", m="$q", config="$c", mode=0), "status": "QTN_EUNSUPPORTED",
          "message": 'prepare: the model is quantized already (tensor "x")'})  # fmt: skip
    # Calibration is forward passes: after each of them, the grid that PyTorch has after as many.
    steps = [loaded, *prepared]
    for i, sample in enumerate(BATCHES):
        int8 = in_torch(net, BATCHES[: i + 1], fuse=[["conv", "relu"]])
        steps += [floats(f"s{i}", sample), call("qmodel_calibrate", prepared="$p", inputs=[f"$s{i}"]), call("qmodel_convert", f"q{i}", prepared="$p"),
                  call("qmodel_inspect", f"r{i}", m=f"$q{i}"), {"expect": f"$r{i}", "json": {"inputs": [grid_of(int8.quant)]}}]  # fmt: skip
    case("ptq/calibration_is_forward_passes", ["P08"], *steps)


def chains():
    """Layers whose activation goes on to the next as integers."""
    x = data(7, 3, 6)
    samples = [data(8 + i, 5, 6, limit=16 + 8 * i) for i in range(2)]
    net = settle(Quantizable(fc1=nn.Linear(6, 5), relu1=nn.ReLU(), fc2=nn.Linear(5, 4), relu2=nn.ReLU(), fc3=nn.Linear(4, 3)), 11)
    loaded = export("linears", net, x)
    for backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        int8 = in_torch(net, samples, backend, [["fc1", "relu1"], ["fc2", "relu2"]])
        nodes = [node("Gemm", int8.fc1), node("Gemm", int8.fc2), node("Gemm")]
        run = quantized_run([call("qconfig_create", "c", name=backend)], samples, x, "y")
        case(f"ptq/linear_with_activation/{backend}", ["P09", "P12", "P14", "P28"], loaded, *run,
             *is_like(int8, nodes, ran(int8, x), int8.fc3))  # fmt: skip
        forced = call("qconfig_set", c="$c", selector="tensor:y", settings={"quantize": 1})
        run = quantized_run([call("qconfig_create", "c", name=backend), forced], samples, x, "y")
        case(f"ptq/linear_with_activation/{backend}/output_grid", ["P02", "P09", "P11", "P12"], loaded, *run,
             *is_like(int8, [*nodes[:2], node("Gemm", int8.fc3)], ran(int8, x), int8.fc3, rounded=True), *same_everywhere())  # fmt: skip
    # One byte for each weight: PyTorch's integers and scales, seen through x = 1 in one place and 0 in all others.
    eye = torch.eye(6)
    net = settle(Quantizable(fc=nn.Linear(6, 3, bias=False)), 12)
    loaded = export("linear", net, eye)
    given = call("qconfig_set", c="$c", selector="tensor:x", settings={"observer": "fixed", "scale": 1 / 128, "zero_point": 0})
    for backend in ("fbgemm", "qnnpack"):
        weight = in_torch(net, [eye], backend).fc.weight()
        assert weight.dtype == torch.qint8 and weight.element_size() == 1
        config = [call("qconfig_create", "c", name=backend), given]
        # The file has a Transpose before the MatMul, which preparing does.
        per_channel = weight.qscheme() == torch.per_channel_affine
        scales = weight.q_per_channel_scales().tolist() if per_channel else [weight.q_scale()]
        grid = {"scheme": 3, "axis": 1} if per_channel else {"scheme": 1}
        one_byte = {"dtype": "int8", "shape": [6, 3], "data": weight.int_repr().T.ravel().tolist(),
                    "quantizer": {**grid, "scales": scales, "zero_points": [0] * len(scales)}}  # fmt: skip
        seen = [call("qmodel_tensor", "float_weight", m="$m", name="fc.weight"), expected_floats("float_weight", net.fc.weight.detach()),
                call("qmodel_tensor", "prepared_weight", m="$p", name="fc.weight"), expected_floats("prepared_weight", net.fc.weight.detach().T),
                call("qmodel_tensor", "weight", m="$q", name="fc.weight"), {"expect": "$weight", **one_byte},
                {**call("qtensor_nbytes", t="$weight"), "equals": 18}, {**call("qtensor_nbytes", t="$float_weight"), "equals": 72},
                call("qmodel_save", m="$q", path="@one_byte.onnx"), call("qmodel_load", "again", path="@one_byte.onnx"),
                call("qmodel_tensor", "read", m="$again", name="fc.weight"), {**call("qtensor_equal", a="$read", b="$weight"), "equals": 1}]  # fmt: skip
        case(f"ptq/weights_of_one_byte/{backend}", ["P01", "P10"], loaded, call("qmodel_inspect", "float", m="$m"),
             {"expect": "$float", "json": {"parameters": 18, "parameter_bytes": 72}}, *quantized_run(config, [eye], eye, "y"),
             call("qmodel_inspect", "report", m="$q"), {"expect": "$report", "json": {"parameters": 18, "parameter_bytes": 18}},
             expected_floats("y", weight.dequantize().T), *seen)  # fmt: skip


def fused_by_hand(names, out="fused", m="m"):
    return call("qmodel_fuse", out, m=f"${m}", nodes=names)


def no_chain(names, message, m="m"):
    return {**call("qmodel_fuse", m=f"${m}", nodes=names), "status": "QTN_EINVAL", "message": message}


def fusion():
    """fuse_modules: Conv and Relu, Conv and BN, all three, Linear and Relu; the same by names and by itself."""
    net = settle(Quantizable(conv1=nn.Conv2d(1, 2, 1), relu1=nn.ReLU(), conv2=nn.Conv2d(2, 3, 3, padding=1, bias=False), bn2=nn.BatchNorm2d(3),
                             conv3=nn.Conv2d(3, 2, 1), bn3=nn.BatchNorm2d(2), relu3=nn.ReLU(), pool=nn.MaxPool2d(2), flat=nn.Flatten(),
                             fc4=nn.Linear(8, 4), relu4=nn.ReLU(), fc5=nn.Linear(4, 2)), 21, limit=4)  # fmt: skip
    loaded = export("fusions", net, X)
    lists = [["conv1", "relu1"], ["conv2", "bn2"], ["conv3", "bn3", "relu3"], ["fc4", "relu4"]]
    int8 = in_torch(net, BATCHES, fuse=lists)
    nodes = [node("Conv", int8.conv1), node("Conv", int8.conv2), node("Conv", int8.conv3), {"op": "MaxPool"}, {"op": "Flatten"},
             node("Gemm", int8.fc4), node("Gemm")]  # fmt: skip
    ops = {"conv": "Conv", "relu": "Relu", "bn": "BatchNormalization", "fc": "Gemm"}
    file_names = [[f"/{name}/{ops[name[:-1]]}" for name in names] for names in lists]
    like = is_like(int8, nodes, ran(int8, X), int8.fc5)
    case("fusion/by_itself", ["P14"], loaded, *quantized_run(FBGEMM, BATCHES, X, "y"), *like)
    steps, last = [loaded], "m"
    for names in file_names:
        last = names[-1].strip("/").split("/")[0]
        steps.append(fused_by_hand(names, last, steps[-1]["out"]))
    rename = [{**step, "with": {**step["with"], "m": f"${last}"}} if step["call"] == "qmodel_prepare" else step
              for step in quantized_run(FBGEMM, BATCHES, X, "y")]  # fmt: skip
    case("fusion/by_names", ["P06", "P14"], *steps, *rename, *like)
    # A copy, in which one node is there where there were two; the model itself has both, and the rest of the copy is as it was.
    case("fusion/of_a_copy", ["P06"], loaded, fused_by_hand(file_names[0]), no_chain(file_names[0], 'fuse: there is no node "/relu1/Relu"', "fused"),
         fused_by_hand(file_names[0], "again"), fused_by_hand(file_names[2], "more", "fused"),
         no_chain(file_names[2], 'fuse: there is no node "/bn3/BatchNormalization"', "more"), floats("x", X),
         call("qsession_create", "s", m="$m"), call("qsession_create", "t", m="$more"), call("qmodel_save", m="$more", path="@more.onnx"),
         call("qmodel_load", "loaded", path="@more.onnx"), call("qsession_create", "u", m="$loaded"),
         no_chain(["/conv3/Conv", "/bn3/BatchNormalization"], 'fuse: there is no node "/bn3/BatchNormalization"', "loaded"),
         call("qsession_run", "a", s="$s", inputs=["$x"]), call("qsession_run", "b", s="$t", inputs=["$x"]), call("qsession_run", "d", s="$u", inputs=["$x"]),
         expected_floats("a", ran(net, X)), {"call": "qtensor_equal", "with": {"a": "$a", "b": "$b"}, "equals": 1},
         {"call": "qtensor_equal", "with": {"a": "$a", "b": "$d"}, "equals": 1})  # fmt: skip
    conv1, relu1 = file_names[0]
    (conv2, bn2), (conv3, bn3, relu3), (fc4, _) = file_names[1:]
    what = "do not become one; what does: Conv or Gemm, then BatchNormalization, Relu or Clip, or both"
    case("fusion/refused", ["P06", "P14"], loaded,
         no_chain([conv1], "fuse: a chain has at least 2 nodes, not 1"),
         no_chain([conv1, "relu9"], 'fuse: there is no node "relu9"'),
         no_chain([relu1, conv1], f'fuse: "{conv1}" does not read "{relu1}"'),
         no_chain([conv1, relu3], f'fuse: "{relu3}" does not read "{conv1}"'),
         no_chain([relu1, conv2], f'fuse: "{relu1}" (Relu), "{conv2}" (Conv) {what}'),
         no_chain([bn2, conv3], f'fuse: "{bn2}" (BatchNormalization), "{conv3}" (Conv) {what}'),
         no_chain([conv2, bn2, conv3], f'fuse: "{conv2}" (Conv), "{bn2}" (BatchNormalization), "{conv3}" (Conv) {what}'),
         {**call("qmodel_fuse", m="$m", nodes=[fc4, None]), "status": "QTN_EINVAL", "message": "qmodel_fuse: nodes[1] is NULL"},
         *FBGEMM, call("qmodel_prepare", "p", m="$m", config="$c", mode=0),
         {**no_chain([conv1, relu1], "qmodel_fuse: the model is prepared, but not converted", "p"), "status": "QTN_ESTATE"})  # fmt: skip


def one_flow():
    """QM3 of the practice, after training: fuse_model, then quantize(model, run_fn, [epochs])."""
    net = settle(Quantizable(conv=nn.Conv2d(1, 1, 1), bn=nn.BatchNorm2d(1), relu=nn.ReLU()), 31)
    loaded = export("conv_bn_relu", net, X)
    samples = [data(40 + i, 4, 1, 4, 4, limit=10 + 2 * i) for i in range(10)]
    conv, bn, relu = "/conv/Conv", "/bn/BatchNormalization", "/relu/Relu"
    held = [floats(f"s{i}", sample) for i, sample in enumerate(samples)]
    session = [floats("x", X), call("qsession_create", "n", m="$q"), call("qsession_run", "y", s="$n", inputs=["$x"])]
    training = onnx_bytes(copy.deepcopy(net).train(), X, torch.onnx.TrainingMode.TRAINING)
    why = 'node "/bn/BatchNormalization": BatchNormalization is in training mode, which trainers take; for all else export the model in evaluation mode'
    refused = lambda step: {**step, "status": "QTN_EUNSUPPORTED", "message": f"{step['call']}: {why}"}
    case("ptq/exported_while_training", ["P03"], call("qmodel_load_bytes", "m", data=list(training)), *FBGEMM,
         refused(call("qmodel_prepare", m="$m", config="$c", mode=0)), refused(call("qsession_create", m="$m")))  # fmt: skip
    for backend in ("fbgemm", "qnnpack"):
        torch.backends.quantized.engine = backend
        model = copy.deepcopy(net)
        model.qconfig = get_default_qconfig(backend)
        fused = fuse_modules(model, ["conv", "bn", "relu"])
        int8 = quantize(fused, lambda m, count: [m(sample) for sample in samples[:count]], [len(samples)])
        for names in ([conv, bn, relu], [bn, relu]):
            kind = "conv_bn_relu" if len(names) == 3 else "bn_relu"
            run = call("qmodel_quantize", "q", m="$fused", config="$c", samples=[f"${step['out']}" for step in held])
            case(f"one_flow/{backend}/{kind}", ["P15", "P16", "P17"], loaded, fused_by_hand(names), no_chain([conv, relu], f'fuse: there is no node "{relu}"', "fused"),
                 call("qconfig_create", "c", name=backend), *held, run, *session, *is_like(int8, [node("Conv")], ran(int8, X), int8.conv))  # fmt: skip


def functions():
    """Operators whose results are rounded, in modules and in functions."""
    x = data(51, 2, 2, 3, 3, limit=12)
    samples = [data(52 + i, 2, 2, 3, 3, limit=16 + 8 * i) for i in range(2)]
    made = {"add": "Add", "add_relu": "Add", "mul": "Mul", "cat": "Concat", "add_scalar": "Add", "mul_scalar": "Mul"}
    config = [*FBGEMM, call("qconfig_set", c="$c", selector="*", settings={"observer": "minmax"})]
    for name, op in made.items():
        net = settle(Two(name), 60)
        if name == "cat":  # of one range: PyTorch would round what has another a second time, where we have one grid for all
            with torch.no_grad():
                net.b.weight.copy_(net.a.weight.flip(0))
                net.b.bias.copy_(net.a.bias.flip(0))
        loaded = export(name, net, x)
        int8 = in_torch(net, samples, qconfig=MINMAX)
        # The grid of a scalar's result is computed in PyTorch, observed here.
        joined = node(op) if name.endswith("scalar") else node(op, int8.functional)
        sides = [node("Conv", side) for side in (int8.a, int8.b)]
        nodes = [sides[0], joined, node("Conv")] if name.endswith("scalar") else [*sides, joined, node("Conv")]
        case(f"float_functional/{name}", ["P21"], loaded, *quantized_run(config, samples, x, "y"), *is_like(int8, nodes, ran(int8, x), int8.head))
    modules = settle(InModules(), 61)
    functional = Functional().eval()
    functional.load_state_dict({key: value for key, value in modules.state_dict().items()}, strict=False)
    assert torch.equal(ran(functional, x), ran(modules, x))
    loaded = export("functional", functional, x)
    int8 = in_torch(modules, samples, fuse=[["a", "relu"]], qconfig=MINMAX)
    nodes = [node("Conv", int8.a), node("Conv", int8.b), node("Add", int8.functional), node("Conv")]
    case("functional_relu_and_add", ["P19"], loaded, *quantized_run(config, samples, x, "y"), *is_like(int8, nodes, ran(int8, x), int8.head))


def blocks():
    """torchvision's inverted residual: with the sum and without, ReLU6 in place of which _replace_relu puts ReLU."""
    x = data(71, 1, 2, 5, 5, limit=48)
    samples = [data(72 + i, 2, 2, 5, 5, limit=64) for i in range(2)]
    for stride, name in ((1, "inverted_residual"), (2, "inverted_residual_stride")):
        net = settle(Residual(stride), 73)
        loaded = export(name, net, x)
        replaced = copy.deepcopy(net)
        _replace_relu(replaced)
        assert not torch.equal(ran(net, x), ran(replaced, x)), "no value reaches 6"
        torch.backends.quantized.engine = "fbgemm"
        fused = copy.deepcopy(replaced).eval()
        fused.qconfig = MINMAX
        fused.fuse_model()
        fused = prepare(fused)
        for sample in samples:
            ran(fused, sample)
        int8 = convert(fused)
        body = int8.block.conv
        nodes = [node("Conv", m) for m in (int8.stem, body[0][0], body[1][0], body[2])]
        nodes += [node("Add", int8.block.skip_add)] if stride == 1 else []
        settings = {"observer": "minmax", "replace_relu6": 1}
        config = [*FBGEMM, call("qconfig_set", c="$c", selector="*", settings=settings)]
        case(f"block/{name}", ["P22", "P24"], loaded, *quantized_run(config, samples, x, "y"),
             *is_like(int8, [*nodes, node("Conv")], ran(int8, x), int8.head, tolerance=INEXACT))  # fmt: skip


def mobile_config(int8, scheme):
    """The settings of quantize_model; and PyTorch's pool keeps the grid of what it reads, where ours has one of its own."""
    last = int8.features[4][0]
    return [*FBGEMM,
            call("qconfig_set", c="$c", selector="*", settings={"observer": "minmax", "weight_scheme": scheme, "replace_relu6": 1}),
            call("qconfig_set", c="$c", selector="tensor:/GlobalAveragePool_output_0",
                 settings={"observer": "fixed", "scale": last.scale, "zero_point": last.zero_point})]  # fmt: skip


def whole_networks():
    """torchvision's MobileNetV2, small, through its quantize_model."""
    net = settle(mobilenet(), 81, limit=4)
    sample, x = data(82, 1, 3, 16, 16, limit=8), data(83, 2, 3, 16, 16, limit=8)
    loaded = export("mobilenet_v2", net, sample)
    for backend, scheme in (("fbgemm", "per_channel_symmetric"), ("qnnpack", "per_tensor_symmetric")):
        int8 = copy.deepcopy(net)
        _replace_relu(int8)
        with unittest.mock.patch("torch.rand", return_value=sample):
            quantize_model(int8, backend)
        f = int8.features
        nodes = [node("Conv", m) for m in (f[0][0], f[1].conv[0][0], f[1].conv[1])] + [node("Add", f[1].skip_add)]
        for i in (2, 3):
            nodes += [node("Conv", m) for m in (f[i].conv[0][0], f[i].conv[1][0], f[i].conv[2])]
        nodes += [node("Add", f[3].skip_add), node("Conv", f[4][0]), node("GlobalAveragePool", f[4][0]), {"op": "Flatten"}, node("Gemm")]
        rows = ["P23", "P24", "P26"] + (["P25"] if backend == "qnnpack" else [])
        case(f"mobilenet_v2/{backend}", rows, loaded, *quantized_run(mobile_config(int8, scheme), [sample], x, "y"),
             *is_like(int8, nodes, ran(int8, x), int8.classifier[1], tolerance=INEXACT))  # fmt: skip


def torchvision_recipes():
    """quantize_model as a recipe: nothing else is set, pools keep the grid of what they read, and the network ends on one."""
    net = settle(mobilenet(), 81, limit=4)
    sample, x = data(82, 1, 3, 16, 16, limit=8), data(83, 2, 3, 16, 16, limit=8)
    loaded = export("mobilenet_v2", net, sample)
    assert "qnnpack" in torch.backends.quantized.supported_engines
    for backend in ("fbgemm", "qnnpack"):
        int8 = copy.deepcopy(net)
        _replace_relu(int8)
        with unittest.mock.patch("torch.rand", return_value=sample):
            quantize_model(int8, backend)
        assert torch.backends.quantized.engine == backend
        f = int8.features
        nodes = [node("Conv", m) for m in (f[0][0], f[1].conv[0][0], f[1].conv[1])] + [node("Add", f[1].skip_add)]
        for i in (2, 3):
            nodes += [node("Conv", m) for m in (f[i].conv[0][0], f[i].conv[1][0], f[i].conv[2])]
        nodes += [node("Add", f[3].skip_add), node("Conv", f[4][0]), node("GlobalAveragePool", f[4][0]), node("Flatten", f[4][0]), node("Gemm", int8.classifier[1])]
        rows = ["P23", "P24", "P26"] + (["P25"] if backend == "qnnpack" else [])
        recipe = [call("qconfig_create", "c", name=f"torchvision_{backend}")]
        run = quantized_run(recipe, [sample], x, "y")
        outputs = {"name": "y", "dtype": "float32", **grid_of(int8.classifier[1])}
        report = {"quantized": True, "inputs": [{"name": "x", "dtype": "float32", **grid_of(int8.quant)}], "outputs": [outputs], "nodes": nodes, "float_nodes": []}
        # Scales behind many layers are off by a unit in the last place, and so are results: none by a step of its grid.
        case(f"mobilenet_v2/torchvision_{backend}", rows, loaded, *run, call("qmodel_inspect", "report", m="$q"),
             {"expect": "$report", "json": report, "tolerance": INEXACT}, expected_floats("y", ran(int8, x), tolerance=float(int8.classifier[1].scale) / 100),
             *same_everywhere())  # fmt: skip
    # Means over windows, at borders and over the whole picture.
    layers = {"conv": nn.Conv2d(1, 3, 3, padding=1), "relu": nn.ReLU(), "average": nn.AvgPool2d(2, stride=1), "again": nn.Conv2d(3, 2, 3),
              "all": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten(), "fc": nn.Linear(2, 3)}  # fmt: skip
    net = settle(Quantizable(**layers), 84, limit=4)
    samples, x = [data(85, 4, 1, 8, 8, limit=16)], data(86, 3, 1, 8, 8, limit=20)
    loaded = export("pools", net, x)
    for backend, weights in (("fbgemm", default_per_channel_weight_observer), ("qnnpack", torch.ao.quantization.default_weight_observer)):
        int8 = in_torch(net, samples, backend, [["conv", "relu"]], QConfig(default_observer, weights))
        nodes = [node("Conv", int8.conv), node("AveragePool", int8.conv), node("Conv", int8.again), node("GlobalAveragePool", int8.again),
                 node("Flatten", int8.again), node("Gemm", int8.fc)]  # fmt: skip
        case(f"pools/torchvision_{backend}", ["P26"], loaded, *quantized_run([call("qconfig_create", "c", name=f"torchvision_{backend}")], samples, x, "y"),
             *is_like(int8, nodes, ran(int8, x), int8.fc, rounded=True, tolerance=INEXACT), *same_everywhere())  # fmt: skip
    refused = {**call("qconfig_create", name="torchvision_xnnpack"), "status": "QTN_EUNSUPPORTED",
               "message": 'config: recipe "torchvision_xnnpack" is not offered; offered are onnx fbgemm x86 qnnpack onednn nvidia tflite torchvision_fbgemm torchvision_qnnpack'}  # fmt: skip
    case("torchvision_unknown_backend", ["P26"], refused)


def practice():
    """From the float network to files that are run: settings from a file, four batches, both formats."""
    net = settle(mobilenet(), 81, limit=4)
    samples, x = [data(90 + i, 2, 3, 16, 16, limit=8) for i in range(4)], data(94, 2, 3, 16, 16, limit=8)
    loaded = export("mobilenet_v2", net, samples[0])
    fused = copy.deepcopy(net)
    _replace_relu(fused)
    fused.eval().fuse_model()
    int8 = in_torch(fused, samples, qconfig=MINMAX)
    config = [*mobile_config(int8, "per_channel_symmetric"), call("qconfig_save", c="$c", path="@c.json"), call("qconfig_load", "d", path="@c.json")]
    steps = [loaded, *quantized_run(config, samples, x, "y", "d"), expected_floats("y", ran(int8, x), tolerance=float(int8.classifier[1].scale))]
    steps += same_everywhere()
    case("practice/mobilenet_v2", ["P27"], *steps)


def main():
    the_seed()
    chains()
    fusion()
    one_flow()
    functions()
    blocks()
    whole_networks()
    torchvision_recipes()
    practice()
    state_cases.cases()
    write("networks.json")


if __name__ == "__main__":
    main()
