#!/usr/bin/env python3
"""Makes training.json and the networks that it trains, networks/qat_*.onnx: steps of PyTorch's eager quantization-aware
training (fuse_modules_qat, get_default_qat_qconfig, prepare_qat) and of fine-tuning by the formulas of NVIDIA's toolkit.

Weights follow what they are now, as PyTorch's documentation says of its defaults, whose observers lag behind. Biases become the
multiples of scale of input times scale of weights that they are in integers, where PyTorch trains with floats.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/conformance/make_training.py
"""

import copy

import numpy as np
import torch
from torch import nn
from torch.ao import quantization as tq
from torch.nn import functional as F

from make_cases import call, case, expected_floats, floats, network, numbers, write
from make_networks import OUTPUT_GRID, Quantizable, Two, export, onnx_bytes, ran

RATE, MOMENTUM, STEPS = 0.03, 0.9, 4
CLOSE = 1e-4  # of losses and parameters
ROUNDED = 1e-4  # of outputs
NARROW = call("qconfig_set", c="$c", selector="*", settings={"weight_narrow_range": 1})


def varied(net, seed):
    """Parameters without ties between two integers."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in net.named_parameters():
            low = 0.5 if name.startswith("bn") and name.endswith("weight") else -0.7
            value.copy_((torch.rand(value.shape, generator=g) * (1.3 - low if low > 0 else 1.4) + low).round(decimals=4))
    return net.eval()


def batches(seed, *shape):
    g = torch.Generator().manual_seed(seed)
    return [(torch.rand(shape, generator=g) * 2.2 - 0.9).round(decimals=4) for _ in range(2)]


def qat_qconfig(backend):
    """The defaults of a backend; weights in a narrow range, for their largest is half way between two integers else."""
    default = tq.get_default_qat_qconfig(backend)
    scheme = default.weight().qscheme
    observer = tq.MovingAverageMinMaxObserver if scheme == torch.per_tensor_symmetric else tq.MovingAveragePerChannelMinMaxObserver
    weight = tq.FakeQuantize.with_args(observer=observer, averaging_constant=1.0, quant_min=-127, quant_max=127, dtype=torch.qint8, qscheme=scheme)
    return tq.QConfig(activation=default.activation, weight=weight)


def disable_activation_observer(module):
    if isinstance(module, tq.FakeQuantize) and module.qscheme == torch.per_tensor_affine:
        module.disable_observer()


def round_biases(model):
    """Values carry the grid they are on to the layer that reads them. A bias before a normalization is none of its layer's."""

    def carry(module, inputs, y):
        y.grid = module if isinstance(module, tq.FakeQuantize) else inputs[0].grid

    def rounded(layer, inputs, y):
        unit = inputs[0].grid.scale * layer.weight_fake_quant.scale
        more = ((layer.bias / unit).round() * unit - layer.bias).detach()
        return y + more.reshape(-1, *[1] * (y.dim() - 2))

    for module in model.modules():
        if isinstance(module, (tq.FakeQuantize, nn.Flatten)):
            module.register_forward_hook(carry)
        elif hasattr(module, "weight_fake_quant") and not hasattr(module, "bn"):
            module.register_forward_hook(rounded, prepend=True)
    return model


def prepared(net, backend, fuse, last=None):
    """The result of the last layer is not rounded, as in the library unless it is told to."""
    model = copy.deepcopy(net).train()
    if fuse:
        tq.fuse_modules_qat(model, fuse, inplace=True)
    model.qconfig = qat_qconfig(backend)
    if last:
        getattr(model, last).qconfig = tq.QConfig(activation=nn.Identity, weight=model.qconfig.weight)
    return round_biases(tq.prepare_qat(model))


def in_torch(model, data, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x, target = data[step % len(data)]
        loss = loss_of(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval().apply(disable_activation_observer)
    return losses, ran(model, data[0][0])


def steps_of(losses, inputs="x", targets="t", count=2, tolerance=CLOSE):
    """The same steps here."""
    return [{**call("qtrainer_step", t="$trainer", inputs=[f"${inputs}{i % count}"], targets=[f"${targets}{i % count}"]),
             "equals": loss, "tolerance": tolerance} for i, loss in enumerate(losses)]  # fmt: skip


def given(data):
    steps = []
    for i, (x, target) in enumerate(data):
        steps.append(floats(f"x{i}", x))
        steps.append(floats(f"t{i}", target) if target.is_floating_point() else
                     call("qtensor_create", f"t{i}", dtype="int64", shape=list(target.shape), data=numbers(target)))  # fmt: skip
    return steps


def grids(backend, *more):
    return [call("qconfig_create", "c", name=backend), NARROW, *more, call("qmodel_prepare", "p", m="$m", config="$c", mode=1)]


def fake_grid_of(fake):
    return {"scale": fake.scale.item(), "zero_point": fake.zero_point.item(), "quantized_dtype": "uint8"}


def trainer(model, **attrs):
    return call("qtrainer_create", "trainer", m=model, attrs={"lr": RATE, "momentum": MOMENTUM, **attrs})


def to_integers(y, tolerance=ROUNDED):
    """What is trained answers $y0; so does the model in integers that it becomes."""
    return [call("qtrainer_evaluate", "e", t="$trainer", inputs=["$x0"]), expected_floats("e", y, tolerance=tolerance),
            call("qtrainer_model", "trained", t="$trainer"), call("qmodel_convert", "int8", prepared="$trained"),
            call("qsession_create", "s", m="$int8"), call("qsession_run", "r", s="$s", inputs=["$x0"]),
            expected_floats("r", y, tolerance=tolerance)]  # fmt: skip


def one_call(data, epochs, y, tolerance=ROUNDED, **attrs):
    """From the float model to integers that answer y, which leaves the model as it was."""
    inputs, targets = ([f"${name}{i}" for i in range(len(data))] for name in "xt")
    return [call("qmodel_quantize_qat", "int8", m="$m", config="$c", inputs=inputs, targets=targets, attrs={"optimizer": "sgd", "epochs": epochs, **attrs}),
            call("qsession_create", "s", m="$int8"), call("qsession_run", "r", s="$s", inputs=["$x0"]), expected_floats("r", y, tolerance=tolerance)]  # fmt: skip


def untouched(y):
    return [call("qsession_create", "before", m="$m"), call("qsession_run", "b", s="$before", inputs=["$x0"]), expected_floats("b", y, tolerance=1e-5)]


def parameter(index, value):
    return [call("qtrainer_parameter", f"parameter{index}", t="$trainer", index=index), expected_floats(f"parameter{index}", value, tolerance=CLOSE)]


# ------------------------------------------------------------------------------------------------------ PyTorch's side


def one_flow():
    """fuse_modules_qat, prepare_qat, training, eval, convert; quantize_qat does the same with a function that trains."""
    layers = {"conv": nn.Conv2d(1, 3, 3, bias=False), "bn": nn.BatchNorm2d(3), "relu": nn.ReLU(), "flat": nn.Flatten(), "fc": nn.Linear(12, 3)}
    net = varied(Quantizable(**layers), 3)
    xs = batches(4, 6, 1, 4, 4)
    data = [(x, torch.arange(6) * 2 % 3) for x in xs]
    loaded = export("qat_conv_bn_relu", net, xs[0])
    in_float = ran(net, xs[0])
    for backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        model = prepared(net, backend, [["conv", "bn", "relu"]], "fc")
        losses, y = in_torch(model, data, F.cross_entropy)
        state = model.state_dict()
        case(f"qat/{backend}/conv_bn_relu", ["T32", "P13", "P15", "P16"], loaded, *grids(backend), *given(data), trainer("$p"),
             *steps_of(losses), *parameter(0, state["conv.weight"]), *parameter(3, state["fc.weight"]), *to_integers(y), *untouched(in_float))  # fmt: skip
        # Without calibration before: grids follow what is seen, as PyTorch's observers do.
        case(f"qat/{backend}/one_call", ["P13", "P15", "P16", "P18"], loaded, call("qconfig_create", "c", name=backend), NARROW, *given(data),
             *one_call(data, STEPS // len(data), y, lr=RATE, momentum=MOMENTUM, schedule="constant", calibration_batches=0, freeze_bn=0), *untouched(in_float))  # fmt: skip
        # As PyTorch has it without being told otherwise: the loss sees the last layer's result on its grid.
        model = prepared(net, backend, [["conv", "bn", "relu"]])
        losses, y = in_torch(model, data, F.cross_entropy)
        state = model.state_dict()
        case(f"qat/{backend}/output_grid", ["P02", "P13", "P15", "P16"], loaded, *grids(backend, OUTPUT_GRID), *given(data), trainer("$p"),
             *steps_of(losses), *parameter(0, state["conv.weight"]), *parameter(3, state["fc.weight"]), *to_integers(y),
             call("qmodel_inspect", "report", m="$int8"),
             {"expect": "$report", "tolerance": CLOSE, "json": {"outputs": [{"name": "y", "dtype": "float32", **fake_grid_of(model.fc.activation_post_process)}]}})  # fmt: skip
        if backend == "onednn":  # model.train() may come before the export, or not
            other = copy.deepcopy(net).train()
            training = onnx_bytes(other, xs[0], torch.onnx.TrainingMode.TRAINING)  # a forward pass, which moves its statistics
            losses, y = in_torch(prepared(other, backend, [["conv", "bn", "relu"]], "fc"), data, F.cross_entropy)
            case("qat/exported_while_training", ["P03"], call("qmodel_load_bytes", "m", data=list(training)), *grids(backend), *given(data), trainer("$p"),
                 *steps_of(losses), *to_integers(y))  # fmt: skip
    refused = {"status": "QTN_ESTATE"}
    case("qat/order", ["P03"], loaded, call("qconfig_create", "c", name="fbgemm"),
         call("qmodel_prepare", "ptq", m="$m", config="$c", mode=0), call("qmodel_prepare", "p", m="$m", config="$c", mode=1),
         {**call("qtrainer_create", m="$ptq"), **refused, "message": "trainer: the model is prepared with QTN_PTQ, not with QTN_QAT"},
         {**call("qmodel_convert", prepared="$p"), **refused, "message": "convert: the model has not been trained"},
         {**call("qsession_create", m="$p"), **refused, "message": "qsession_create: the model is prepared, but not converted"},
         call("qtrainer_create", "trainer", m="$p"),
         {**call("qtrainer_update", t="$trainer"), **refused, "message": "trainer: there was no backward since the last update"},
         call("qtrainer_model", "trained", t="$trainer"),
         {**call("qmodel_convert", prepared="$trained"), **refused, "message": 'convert: training brought no data to tensor "x"'})  # fmt: skip


def functions():
    """Results of FloatFunctional are rounded in training, too."""
    for name in ("add", "mul"):
        net = varied(Two(name), 8)
        xs = batches(9, 4, 2, 3, 3)
        data = [(x, target) for x, target in zip(xs, batches(10, 4, 2, 3, 3))]
        loaded = export(f"qat_{name}", net, xs[0])
        model = prepared(net, "onednn", [], "head")
        losses, y = in_torch(model, data, F.mse_loss)
        case(f"qat/float_functional/{name}", ["P21"], loaded, *grids("onednn"), *given(data), trainer("$p", loss="mse"), *steps_of(losses),
             *to_integers(y))  # fmt: skip


def qconfigs():
    """get_default_qat_qconfig as it is (its version 0, by the formulas of its observers; version 1 has others in C++): at a
    rate of 0 its weights do not lag. Losses show the grids of steps, the input's grid is that of the last. With seven bits
    only the first tensor sets the range: PyTorch clips there, and we where integers end, in training as afterwards."""
    for backend, limits in (("fbgemm", (2, 1, 1.5)), ("x86", (2, 1, 1.5)), ("qnnpack", (1, 2, 1.5)), ("onednn", (1, 2, 1.5))):
        rng = np.random.default_rng(17)
        weight = rng.uniform(-0.8, 0.9, (3, 6)).round(4).astype(np.float32)
        weight[:, 0] = 0.9, 0.85, 0.95  # half way between two integers, but beyond the last one
        xs = [torch.from_numpy(rng.uniform(-limit / 3, limit, (5, 6)).round(4).astype(np.float32)) for limit in limits]
        data = [(x, torch.from_numpy(rng.uniform(-1, 1, (5, 3)).round(4).astype(np.float32))) for x in xs]
        qconfig = tq.get_default_qat_qconfig(backend, version=0)
        activation, of_weight = qconfig.activation(), qconfig.weight()
        losses = [F.mse_loss(activation(x) @ of_weight(torch.from_numpy(weight)).T, target).item() for x, target in data]
        scale, zero = activation.calculate_qparams()
        assert activation.activation_post_process.quant_max == (127 if backend in ("fbgemm", "x86") else 255)
        seen = {"name": "x", "scale": float(scale), "zero_point": int(zero), "quantized_dtype": "uint8"}
        case(f"qat/qconfig/{backend}", ["P05"], network(fc=weight), call("qconfig_create", "c", name=backend),
             call("qmodel_prepare", "p", m="$m", config="$c", mode=1), *given(data),
             call("qtrainer_create", "trainer", m="$p", attrs={"loss": "mse", "lr": 0.0}), *steps_of(losses, count=3, tolerance=1e-5),
             call("qtrainer_model", "trained", t="$trainer"), call("qmodel_convert", "int8", prepared="$trained"),
             call("qmodel_inspect", "report", m="$int8"), {"expect": "$report", "json": {"inputs": [seen]}, "tolerance": 1e-6})  # fmt: skip


# ------------------------------------------------------------------------------------------------------- NVIDIA's side


class Amax(torch.autograd.Function):
    """fake_tensor_quant of 8 bits: gradients pass where |x| <= amax."""

    @staticmethod
    def forward(ctx, x, amax):
        ctx.save_for_backward(x.abs() <= amax)
        scale = 127 / amax
        return torch.clamp(torch.round(x * scale), -127, 127) / scale

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0], None


def fine_tuning():
    """QuantLinear by its defaults, fine-tuned as its guide says: 1 % of the rate of training (0.5), cosine annealing down to
    1 % of that, and the amax of activations stays as it was calibrated."""
    original, total = 0.5, 6
    rate = original / 100
    rng = np.random.default_rng(23)
    weight = torch.tensor(rng.uniform(-0.9, 0.9, (3, 6)).round(4).astype(np.float32), requires_grad=True)
    before = weight.detach().clone()
    xs, targets = batches(24, 5, 6), batches(25, 5, 3)
    data = list(zip(xs, targets))
    amax = xs[0].abs().max()
    optimizer = torch.optim.SGD([weight], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total, eta_min=rate / 100)
    losses = []
    for step in range(total):
        optimizer.zero_grad()
        x, target = data[step % 2]
        loss = F.mse_loss(Amax.apply(x, amax) @ Amax.apply(weight, weight.detach().abs().amax(1, keepdim=True)).T, target)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    with torch.no_grad():
        y = Amax.apply(xs[0], amax) @ Amax.apply(weight, weight.abs().amax(1, keepdim=True)).T
    step = float(np.float32(amax.item()) / np.float32(127))
    seen = {"name": "x", "scale": step, "zero_point": 0, "quantized_dtype": "int8"}
    case("nvidia/fine_tuning", ["N10", "N14", "N15", "N16"], network(fc=before.numpy()), call("qconfig_create", "c", name="nvidia"),
         call("qconfig_set", c="$c", selector="*", settings={"observer": "max"}),
         call("qmodel_prepare", "p", m="$m", config="$c", mode=1), *given(data), call("qmodel_calibrate", prepared="$p", inputs=["$x0"]),
         call("qtrainer_create", "trainer", m="$p", attrs={"loss": "mse", "lr": rate, "schedule": "cosine", "total_steps": total, "min_lr": rate / 100}),
         *steps_of(losses), *parameter(0, weight.detach()), *to_integers(y, tolerance=1e-4),
         call("qmodel_inspect", "report", m="$int8"), {"expect": "$report", "json": {"inputs": [seen]}, "tolerance": 1e-8},
         call("qmodel_save", m="$int8", path="@tuned.onnx"), call("qmodel_load", "pairs", path="@tuned.onnx"),
         call("qsession_create", "s2", m="$pairs"), call("qsession_run", "r2", s="$s2", inputs=["$x0"]),
         {**call("qtensor_equal", a="$r", b="$r2"), "equals": 1})  # fmt: skip
    case("nvidia/fine_tuning/one_call", ["N14", "N15", "N16"], network(fc=before.numpy()), call("qconfig_create", "c", name="nvidia"),
         call("qconfig_set", c="$c", selector="*", settings={"observer": "max"}), *given(data),
         *one_call(data, total // 2, y, tolerance=1e-4, loss="mse", momentum=0.0, lr=rate, calibration_batches=1),
         call("qmodel_inspect", "report", m="$int8"), {"expect": "$report", "json": {"inputs": [seen]}, "tolerance": 1e-8},
         call("qmodel_save", m="$int8", path="@tuned.onnx"), call("qmodel_load", "pairs", path="@tuned.onnx"),
         call("qsession_create", "s2", m="$pairs"), call("qsession_run", "r2", s="$s2", inputs=["$x0"]),
         {**call("qtensor_equal", a="$r", b="$r2"), "equals": 1})  # fmt: skip


class Learned(torch.autograd.Function):
    """learn_amax: Clip, then tensor_quant over the largest of its bounds. Both are one here, as a symmetric grid has them."""

    @staticmethod
    def forward(ctx, x, amax):
        ctx.save_for_backward(x, amax)
        return Amax.apply(x.clamp(-amax.item(), amax.item()), amax)

    @staticmethod
    def backward(ctx, dy):
        x, amax = ctx.saved_tensors
        return dy * (x.abs() < amax), (dy * (x >= amax)).sum() - (dy * (x <= -amax)).sum()


def learned_amax():
    """Begins with what calibration has found; after two steps it is frozen, and the weights go on."""
    rate = 0.2
    rng = np.random.default_rng(29)
    weight = torch.tensor(rng.uniform(-0.9, 0.9, (3, 6)).round(4).astype(np.float32), requires_grad=True)
    before = weight.detach().clone()
    data = list(zip(batches(30, 5, 6), batches(31, 5, 3)))
    amax = data[0][0].abs().max().clone().requires_grad_()
    losses, seen = [], []
    for step in range(4):
        weight.grad = amax.grad = None
        x, target = data[step % 2]
        loss = F.mse_loss(Learned.apply(x, amax) @ Amax.apply(weight, weight.detach().abs().amax(1, keepdim=True)).T, target)
        loss.backward()
        with torch.no_grad():
            weight -= rate * weight.grad
            if step < 2:
                amax -= rate * amax.grad
        losses.append(loss.item())
        seen.append(amax.detach().clone())
    assert seen[0] != seen[1]
    with torch.no_grad():
        y = Learned.apply(data[0][0], amax) @ Amax.apply(weight, weight.abs().amax(1, keepdim=True)).T
    steps = steps_of(losses)
    learned = lambda value: [call("qtrainer_parameter", "amax", t="$trainer", index=1), expected_floats("amax", value, tolerance=CLOSE)]  # noqa: E731
    case("nvidia/learn_amax", ["N06", "N15"], network(fc=before.numpy()), call("qconfig_create", "c", name="nvidia"),
         call("qconfig_set", c="$c", selector="*", settings={"observer": "max", "activation_learning": "amax"}),
         call("qmodel_prepare", "p", m="$m", config="$c", mode=1), *given(data), call("qmodel_calibrate", prepared="$p", inputs=["$x0"]),
         call("qtrainer_create", "trainer", m="$p", attrs={"loss": "mse", "lr": rate}),
         {**call("qtrainer_parameter_count", t="$trainer"), "equals": 2},
         {**call("qtrainer_parameter_name", t="$trainer", index=1), "equals": "x.amax"},
         *steps[:1], *learned(seen[0]), *steps[1:2], *learned(seen[1]),
         call("qtrainer_set_group", t="$trainer", selector="tensor:x", settings={"frozen": 1}), *steps[2:], *learned(seen[1]),
         *parameter(0, weight.detach()), *to_integers(y, tolerance=1e-4))  # fmt: skip


def main():
    torch.manual_seed(0)
    one_flow()
    functions()
    qconfigs()
    fine_tuning()
    learned_amax()
    write("training.json")


if __name__ == "__main__":
    main()
