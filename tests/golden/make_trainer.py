#!/usr/bin/env python3
"""Makes training/{float,qat,frozen,alone,curve}.json and the networks they train, training/*.onnx: steps of PyTorch from the same weights.

20 of them, except for the curve:

  float    convolutions with batch normalization (one depthwise), a residual addition, pools, a linear layer: SGD with
           momentum and weight decay
  qat      torch.ao's eager mode: fuse_modules_qat and prepare_qat with FakeQuantize, activations by
             MovingAverageMinMaxObserver, weights per channel by what they are now (averaging_constant 1); added to that,
           biases become the multiples of scale of input times scale of weights that they are in integers
  frozen   the same; after 10 steps observers are off and batch normalizations frozen
  alone    the same for normalizations without a convolution: one at the input and one behind an addition (BNReLU2d)
  curve    the network of `qat` for ten classes, 200 steps on the pictures of examples/digits, in float and with
           grids: the losses

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_trainer.py
"""

import pathlib
import warnings

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import nn
from torch.ao import quantization as tq

import golden_json

FOLDER = pathlib.Path(__file__).parent / "training"
DIGITS = pathlib.Path(__file__).parents[2] / "examples" / "digits"
STEPS, BATCHES, BATCH, CLASSES, CURVE = 20, 4, 8, 5, 200
RATE, MOMENTUM, DECAY = 0.02, 0.9, 1e-3


class Float(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=True), nn.BatchNorm2d(8)
        self.conv3 = nn.Conv2d(8, 8, 1)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        y = nn.functional.relu6(self.bn2(self.conv2(x)))
        y = torch.relu(self.conv3(y) + x)
        return self.fc(y.mean((2, 3)))

    def nodes(self):
        node = helper.make_node
        return [
            node("Conv", ["x", "conv1.weight"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
            batch_norm("bn1", "c1", "b1"),
            node("Relu", ["b1"], ["r1"], "relu1"),
            node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", ["p1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", pads=[1, 1, 1, 1], group=8),
            batch_norm("bn2", "c2", "b2"),
            node("Clip", ["b2", "zero", "six"], ["r2"], "relu2"),
            node("Conv", ["r2", "conv3.weight", "conv3.bias"], ["c3"], "conv3"),
            node("Add", ["c3", "p1"], ["a3"], "add3"),
            node("Relu", ["a3"], ["r3"], "relu3"),
            node("GlobalAveragePool", ["r3"], ["g"], "pool"),
            node("Flatten", ["g"], ["f"], "flatten"),
            node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], "fc", transB=1),
        ]


class Quantized(nn.Module):
    """What both libraries round alike: inputs, results of Conv-BN-Relu, and weights."""

    def __init__(self, classes=CLASSES):
        super().__init__()
        self.quant = tq.QuantStub()
        self.conv1, self.bn1, self.relu1 = nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        self.conv2, self.bn2, self.relu2 = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=True), nn.BatchNorm2d(8), nn.ReLU()
        self.conv3, self.bn3, self.relu3 = nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        self.fc = nn.Linear(128, classes)

    def forward(self, x):
        x = self.relu1(self.bn1(self.conv1(self.quant(x))))
        x = self.relu2(self.bn2(self.conv2(x)))
        x = self.relu3(self.bn3(self.conv3(x)))
        return self.fc(torch.flatten(x, 1))

    def nodes(self):
        node = helper.make_node
        return [
            node("Conv", ["x", "conv1.weight"], ["c1"], "conv1", pads=[1, 1, 1, 1], strides=[2, 2]),
            batch_norm("bn1", "c1", "b1"),
            node("Relu", ["b1"], ["r1"], "relu1"),
            node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", pads=[1, 1, 1, 1], group=8),
            batch_norm("bn2", "c2", "b2"),
            node("Relu", ["b2"], ["r2"], "relu2"),
            node("Conv", ["r2", "conv3.weight"], ["c3"], "conv3"),
            batch_norm("bn3", "c3", "b3"),
            node("Relu", ["b3"], ["r3"], "relu3"),
            node("Flatten", ["r3"], ["f"], "flatten"),
            node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], "fc", transB=1),
        ]


class Alone(nn.Module):
    """Normalizations that no convolution takes up."""

    def __init__(self):
        super().__init__()
        self.quant, self.add = tq.QuantStub(), nn.quantized.FloatFunctional()
        self.bn0, self.relu0 = nn.BatchNorm2d(1), nn.ReLU()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(1, 8, 1, stride=2)
        self.bn3, self.relu3 = nn.BatchNorm2d(8), nn.ReLU()
        self.fc = nn.Linear(128, CLASSES)

    def forward(self, x):
        x = self.relu0(self.bn0(self.quant(x)))
        x = self.add.add(self.conv1(x), self.conv2(x))
        return self.fc(torch.flatten(self.relu3(self.bn3(x)), 1))

    def nodes(self):
        node = helper.make_node
        return [
            batch_norm("bn0", "x", "b0"),
            node("Relu", ["b0"], ["r0"], "relu0"),
            node("Conv", ["r0", "conv1.weight", "conv1.bias"], ["c1"], "conv1", pads=[1, 1, 1, 1], strides=[2, 2]),
            node("Conv", ["r0", "conv2.weight", "conv2.bias"], ["c2"], "conv2", strides=[2, 2]),
            node("Add", ["c1", "c2"], ["a"], "add"),
            batch_norm("bn3", "a", "b3"),
            node("Relu", ["b3"], ["r3"], "relu3"),
            node("Flatten", ["r3"], ["f"], "flatten"),
            node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], "fc", transB=1),
        ]


def batch_norm(name, x, y):
    inputs = [x] + [f"{name}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
    return helper.make_node("BatchNormalization", inputs, [y], name, momentum=0.9)


def save(model, name):
    constants = {key: value.numpy() for key, value in model.state_dict().items() if "num_batches" not in key}
    constants |= {"zero": np.float32(0), "six": np.float32(6)} if name == "float" else {}
    graph = helper.make_graph(
        model.nodes(), name, [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", len(constants["fc.bias"])])],
        [numpy_helper.from_array(np.ascontiguousarray(value), key) for key, value in constants.items()])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(proto)
    onnx.save(proto, FOLDER / f"{name}.onnx")


def initialized(kind):
    torch.manual_seed(6 if kind is Alone else 5)  # no value half way between two integers
    model = kind()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "bn" in name and name.endswith("weight"):
                value.uniform_(0.5, 1.5)
            elif "bn" in name:
                value.uniform_(-0.5, 0.5)
    return model


def optimizer_of(model):
    """Decay for weights of layers alone, as the library has it."""
    decayed = [value for value in model.parameters() if value.dim() > 1]
    others = [value for value in model.parameters() if value.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=RATE, momentum=MOMENTUM)


def data():
    rng = np.random.default_rng(11)
    x = rng.uniform(0, 1, (BATCHES, BATCH, 1, 8, 8)).round(5).astype(np.float32)
    labels = rng.integers(0, CLASSES, (BATCHES, BATCH))
    return x, labels


def disable_activation_observer(module):
    """Those of weights go on: their grids are always over what the weights are now."""
    if isinstance(module, tq.FakeQuantize) and module.qscheme == torch.per_tensor_affine:
        module.disable_observer()


def losses_of(model, batches, steps, before_step=lambda step: None, optimizer=None):
    optimizer = optimizer or optimizer_of(model)
    losses = []
    model.train()
    for step in range(steps):
        before_step(step)
        optimizer.zero_grad()
        x, labels = batches(step)
        loss = nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(model, before_step=lambda step: None):
    x, labels = data()
    losses = losses_of(model, lambda step: (x[step % BATCHES], labels[step % BATCHES]), STEPS, before_step)
    model.eval().apply(disable_activation_observer)
    with torch.no_grad():
        return losses, model(torch.tensor(x[0])).numpy()


def write(name, losses, outputs, state):
    x, labels = data()
    content = {
        "lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY, "x": golden_json.Tensor(x), "labels": golden_json.Tensor(labels),
        "losses": golden_json.Tensor(np.array(losses)), "outputs": golden_json.Tensor(outputs),
        "state": {key: golden_json.Tensor(value.numpy()) for key, value in state.items()},
    }
    (FOLDER / f"{name}.json").write_text(golden_json.dump(content) + "\n")


def plain_names(model):
    """Names before modules were fused."""
    state = {}
    for key, value in model.state_dict().items():
        parts = key.split(".")
        if "num_batches" in key or parts[-1] not in ("weight", "bias", "running_mean", "running_var") or "fake_quant" in key:
            continue
        number = parts[0].removeprefix("conv")
        state[f"bn{number}.{parts[-1]}" if "bn" in parts[1:] else f"{parts[0]}.{parts[-1]}"] = value
    return state


def prepared(model):
    activation = tq.FakeQuantize.with_args(observer=tq.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8)
    weight = tq.FakeQuantize.with_args(
        observer=tq.MovingAveragePerChannelMinMaxObserver, averaging_constant=1.0, quant_min=-127, quant_max=127,
        dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
    model.qconfig = tq.QConfig(activation=activation, weight=weight)
    model.fc.qconfig = tq.QConfig(activation=nn.Identity, weight=weight)
    return tq.prepare_qat(model)


def quantized(kind=Quantized):
    model = initialized(kind)
    tq.fuse_modules_qat(model.train(), [[f"conv{i}", f"bn{i}", f"relu{i}"] for i in (1, 2, 3)], inplace=True)
    return round_biases(prepared(model))


def alone():
    model = initialized(Alone)
    tq.fuse_modules_qat(model.train(), [["bn0", "relu0"], ["bn3", "relu3"]], inplace=True)
    model = prepared(model)
    for fused in (model.bn0, model.bn3):  # a Sequential, which runs its FakeQuantize itself: with the hook its observer would average twice a step
        assert list(fused._modules)[-1] == "activation_post_process"
        fused._forward_hooks.clear()
    for layer, grid in ((model.conv1, model.bn0), (model.conv2, model.bn0), (model.fc, model.bn3)):
        units = lambda layer, x, y, grid=grid: y + in_units(layer.bias, grid.activation_post_process, layer).reshape(1, -1, *[1] * (y.dim() - 2))
        layer.register_forward_hook(units, prepend=True)  # before the result is rounded

    def rounded(bn, grid, y):  # as the convolution of one weight a channel that it becomes
        gain = bn.weight * torch.rsqrt(bn.running_var + bn.eps)
        shift, unit = bn.bias - bn.running_mean * gain, grid.scale * gain.abs() / 127
        return y if bn.training else y + ((shift / unit).round() * unit - shift).detach().reshape(1, -1, 1, 1)

    for fused, grid in ((model.bn0, model.quant), (model.bn3, model.add)):
        fused[0].register_forward_hook(lambda bn, x, y, grid=grid.activation_post_process: rounded(bn, grid, y))
    return model


def in_units(bias, grid, layer):
    """What rounding adds to a bias; gradients do not see it."""
    unit = grid.scale * layer.weight_fake_quant.scale
    return ((bias / unit).round() * unit - bias).detach()


def round_biases(model):
    """Those of convolutions once their normalization is frozen: it has the statistics of the batch before."""
    grids = [model.quant.activation_post_process] + [getattr(model, f"conv{i}").activation_post_process for i in (1, 2, 3)]

    def rounding(layer, grid):
        forward = layer._forward

        def rounded(x):
            y, bn = forward(x), layer.bn
            if bn.training:
                return y
            bias = 0 if layer.bias is None else layer.bias
            folded = bn.bias + (bias - bn.running_mean) * bn.weight * torch.rsqrt(bn.running_var + bn.eps)
            return y + in_units(folded, grid, layer).reshape(1, -1, 1, 1)

        layer._forward = rounded

    for i in (1, 2, 3):
        rounding(getattr(model, f"conv{i}"), grids[i - 1])
    model.fc.register_forward_hook(lambda layer, x, y: y + in_units(layer.bias, grids[3], layer))
    return model


def freeze_at_half(model):
    def before(step):
        if step == STEPS // 2:
            model.apply(disable_activation_observer)
            model.apply(torch.ao.nn.intrinsic.qat.freeze_bn_stats)
    return before


def curve():
    """Batches of 64 neighbours, over and over."""
    x, labels = (np.load(DIGITS / f"train_{part}.npy") for part in ("images", "labels"))
    rows = lambda step: np.arange(64 * step, 64 * (step + 1)) % len(x)
    kind = lambda: Quantized(10)
    save(initialized(kind), "curve")
    losses = lambda model: golden_json.Tensor(np.array(losses_of(model, lambda step: (x[rows(step)], labels[rows(step)]), CURVE)))
    content = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY}
    content |= {"float": losses(initialized(kind)), "qat": losses(quantized(kind))}
    (FOLDER / "curve.json").write_text(golden_json.dump(content) + "\n")


def main():
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    model = initialized(Float)
    save(model, "float")
    losses, outputs = train(model)
    write("float", losses, outputs, {k: v for k, v in model.state_dict().items() if "num_batches" not in k})
    save(initialized(Quantized), "qat")
    for name in ("qat", "frozen"):
        model = quantized()
        losses, outputs = train(model, freeze_at_half(model) if name == "frozen" else lambda step: None)
        write(name, losses, outputs, plain_names(model))
    save(initialized(Alone), "alone")
    model = alone()
    losses, outputs = train(model)
    write("alone", losses, outputs, plain_names(model))
    curve()


if __name__ == "__main__":
    main()
