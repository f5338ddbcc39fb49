#!/usr/bin/env python3
"""Makes training.json and the networks that it trains, networks/qat_*.onnx: steps of PyTorch's eager quantization-aware
training (fuse_modules_qat, get_default_qat_qconfig, prepare_qat) and of fine-tuning by the formulas of NVIDIA's toolkit.

Weights follow what they are now, as PyTorch's documentation says of its defaults, whose observers lag behind; where
fused_fake_quant is set they lag as PyTorch's do. Biases become the
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


def losses_in_torch(model, data, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x, target = data[step % len(data)]
        loss = loss_of(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def in_torch(model, data, loss_of):
    losses = losses_in_torch(model, data, loss_of)
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


FUSED = call("qconfig_set", c="$c", selector="*", settings={"fused_fake_quant": 1})


def as_converted(model, backend):
    """PyTorch's model in integers. Hooks would go along."""
    torch.backends.quantized.engine = backend
    for module in model.modules():
        module._forward_hooks.clear()
    return tq.convert(model.eval())


def fused_fake_quant():
    """get_default_qat_qconfig as it is, in training and in what conversion makes of it, which has the rule of observers."""
    layers = {"conv": nn.Conv2d(1, 3, 3, bias=False), "bn": nn.BatchNorm2d(3), "relu": nn.ReLU(), "flat": nn.Flatten(), "fc": nn.Linear(12, 3)}
    net = varied(Quantizable(**layers), 3)
    xs = batches(4, 6, 1, 4, 4)
    data = [(x, torch.arange(6) * 2 % 3) for x in xs]
    loaded = export("qat_conv_bn_relu", net, xs[0])
    for backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        model = copy.deepcopy(net).train()
        tq.fuse_modules_qat(model, [["conv", "bn", "relu"]], inplace=True)
        model.qconfig = tq.get_default_qat_qconfig(backend)
        model = round_biases(tq.prepare_qat(model))
        assert isinstance(model.conv.weight_fake_quant, tq.FusedMovingAvgObsFakeQuantize)
        losses = losses_in_torch(model, data, F.cross_entropy)
        state = model.state_dict()
        in_training = model.quant.activation_post_process.scale.item()
        int8 = as_converted(model, backend)
        assert abs(in_training / float(int8.quant.scale) - 1) < 1e-6, "the rules differ for weights, not for uint8"
        grids = [{"name": "x", "quantized_dtype": "uint8", "scale": float(int8.quant.scale), "zero_point": int(int8.quant.zero_point)}]
        outputs = [{"name": "y", "quantized_dtype": "uint8", "scale": float(int8.fc.scale), "zero_point": int(int8.fc.zero_point)}]
        prepare = [call("qconfig_create", "c", name=backend), FUSED, OUTPUT_GRID, call("qmodel_prepare", "p", m="$m", config="$c", mode=1)]
        weights = [step for name, layer in (("conv", int8.conv), ("fc", int8.fc)) for step in
                   (call("qmodel_tensor", name, m="$int8", name=f"{name}.weight"), call("qtensor_dequantize", f"{name}_weight", x=f"${name}"),
                    expected_floats(f"{name}_weight", layer.weight().dequantize(), tolerance=CLOSE))]  # fmt: skip
        case(f"qat/{backend}/fused_fake_quant", ["P05", "P13", "T32"], loaded, *prepare, *given(data), trainer("$p"), *steps_of(losses),
             *parameter(0, state["conv.weight"]), *parameter(3, state["fc.weight"]), call("qtrainer_model", "trained", t="$trainer"),
             call("qmodel_convert", "int8", prepared="$trained"), call("qmodel_inspect", "report", m="$int8"),
             {"expect": "$report", "tolerance": CLOSE, "json": {"inputs": grids, "outputs": outputs}}, *weights,
             call("qsession_create", "s", m="$int8"), call("qsession_run", "r", s="$s", inputs=["$x0"]),
             expected_floats("r", ran(int8, xs[0]), tolerance=float(int8.fc.scale) + CLOSE))  # fmt: skip
        # A checkpoint has the ranges of weights, too: what goes on there takes the same steps.
        half = STEPS // 2
        case(f"qat/{backend}/fused_fake_quant/goes_on", ["P05"], loaded, *prepare, *given(data), trainer("$p"), *steps_of(losses)[:half],
             call("qtrainer_save", t="$trainer", path="@half.safetensors"), trainer("$p"), call("qtrainer_load", t="$trainer", path="@half.safetensors"),
             *steps_of(losses)[half:])  # fmt: skip
        case(f"qat/{backend}/fused_fake_quant/goes_on_in_memory", ["P05"], loaded, *prepare, *given(data), trainer("$p"), *steps_of(losses)[:half],
             call("qtrainer_save_bytes", "half", t="$trainer"), trainer("$p"), call("qtrainer_load_bytes", t="$trainer", data="$half"),
             *steps_of(losses)[half:])  # fmt: skip
    refused = lambda message, **settings: {**call("qconfig_set", c="$c", selector="*", settings={"fused_fake_quant": 1, **settings}),  # noqa: E731
                                           "status": "QTN_EUNSUPPORTED", "message": f"config: {message} needs fused_fake_quant 0"}  # fmt: skip
    case("qat/fused_fake_quant/refused", ["P05"], call("qconfig_create", "c", name="onnx"),
         refused('activation_learning "lsq"', activation_learning="lsq"), refused('weight_learning "lsq"', weight_learning="lsq"),
         refused('weight_scheme "per_block_symmetric"', weight_scheme="per_block_symmetric", block_size=4))  # fmt: skip


def fused_by_names():
    """One fusion for whatever follows, as is_qat has it: the normalization that qmodel_fuse has folded is trained within the
    layer, as fuse_modules_qat does it, and folded in what is calibrated."""
    layers = {"conv": nn.Conv2d(1, 3, 3, bias=False), "bn": nn.BatchNorm2d(3), "relu": nn.ReLU(), "flat": nn.Flatten(), "fc": nn.Linear(12, 3)}
    net = varied(Quantizable(**layers), 3)
    xs = batches(4, 6, 1, 4, 4)
    data = [(x, torch.arange(6) * 2 % 3) for x in xs]
    loaded = export("qat_conv_bn_relu", net, xs[0])
    names = ["/conv/Conv", "/bn/BatchNormalization", "/relu/Relu"]
    fuse = call("qmodel_fuse", "fused", m="$m", nodes=names)
    model = prepared(net, "onednn", [["conv", "bn", "relu"]], "fc")
    losses, y = in_torch(model, data, F.cross_entropy)
    state = model.state_dict()
    prepare = [call("qconfig_create", "c", name="onednn"), NARROW, call("qmodel_prepare", "p", m="$fused", config="$c", mode=1)]
    trained = [*steps_of(losses), *parameter(0, state["conv.weight"]), *parameter(1, state["conv.bn.weight"]), *parameter(2, state["conv.bn.bias"]),
               call("qtrainer_buffer", "mean", t="$trainer", index=0), expected_floats("mean", state["conv.bn.running_mean"], tolerance=CLOSE),
               call("qtrainer_buffer", "variance", t="$trainer", index=1), expected_floats("variance", state["conv.bn.running_var"], tolerance=CLOSE)]  # fmt: skip
    buffers = lambda count: {**call("qtrainer_buffer_count", t="$trainer"), "equals": count}  # noqa: E731
    case("qat/fused_by_names", ["P13", "P15"], loaded, fuse, *prepare, *given(data), trainer("$p"), buffers(2), *trained, *to_integers(y))
    # In float as well.
    floating = copy.deepcopy(net).train()
    losses_in_float, _ = in_torch(floating, data, F.cross_entropy)
    case("qat/fused_by_names/in_float", ["P15"], loaded, fuse, *given(data), trainer("$fused"), buffers(2), *steps_of(losses_in_float),
         *parameter(0, floating.conv.weight.detach()), *parameter(1, floating.bn.weight.detach()))  # fmt: skip
    # What somebody made of the folded weights is what counts, and a file has no more than them.
    folded = tq.fuse_modules(copy.deepcopy(net).eval(), [["conv", "bn", "relu"]])
    weight = (folded.conv[0].weight.detach() * 0.5).round(decimals=4)
    case("qat/fused_by_names/other_weights", ["P15"], loaded, fuse, floats("w", weight), call("qmodel_set_tensor", m="$fused", name="conv.weight", t="$w"),
         *prepare, call("qtrainer_create", "trainer", m="$p"), buffers(0), *parameter(0, weight))  # fmt: skip
    case("qat/fused_by_names/of_a_file", ["P15"], loaded, fuse, call("qmodel_save", m="$fused", path="@fused.onnx"),
         call("qmodel_load", "fused", path="@fused.onnx"), *prepare, call("qtrainer_create", "trainer", m="$p"), buffers(0),
         *parameter(0, folded.conv[0].weight.detach()))  # fmt: skip
    # For a network in training mode, as fuse_modules asks the modules: checked, and left to training.
    other = copy.deepcopy(net).train()
    training = onnx_bytes(other, xs[0], torch.onnx.TrainingMode.TRAINING)
    losses, y = in_torch(prepared(other, "onednn", [["conv", "bn", "relu"]], "fc"), data, F.cross_entropy)
    what = "do not become one; what does: Conv or Gemm, then BatchNormalization, Relu or Clip, or both"
    why = 'node "/bn/BatchNormalization": BatchNormalization is in training mode, which trainers take; for all else export the model in evaluation mode'
    chain = ["/bn/BatchNormalization", "/relu/Relu", "/flat/Flatten"]
    case("qat/fused_by_names/while_training", ["P03", "P15"], call("qmodel_load_bytes", "m", data=list(training)), fuse,
         {**call("qmodel_fuse", m="$m", nodes=chain), "status": "QTN_EINVAL",
          "message": f'fuse: "{chain[0]}" (BatchNormalization), "{chain[1]}" (Relu), "{chain[2]}" (Flatten) {what}'}, *prepare,
         {**call("qmodel_prepare", m="$fused", config="$c", mode=0), "status": "QTN_EUNSUPPORTED", "message": f"qmodel_prepare: {why}"},
         {**call("qsession_create", m="$fused"), "status": "QTN_EUNSUPPORTED", "message": f"qsession_create: {why}"},
         *given(data), trainer("$p"), *steps_of(losses), *to_integers(y))  # fmt: skip


def training_mode():
    """train() for QAT, eval() for all else, whatever the recipe. A network in evaluation mode is trained all the same: where
    prepare_qat demands model.train(), the trainer decides."""
    first, last = {"conv": nn.Conv2d(1, 3, 3, bias=False)}, {"relu": nn.ReLU(), "flat": nn.Flatten(), "fc": nn.Linear(12, 3)}
    with_norm, with_dropout = varied(Quantizable(**first, bn=nn.BatchNorm2d(3), **last), 3), varied(Quantizable(**first, drop=nn.Dropout(0.5), **last), 3)
    x, labels = batches(4, 6, 1, 4, 4)[0], torch.tensor([0, 2, 1, 0, 2, 1])
    loss = F.cross_entropy(copy.deepcopy(with_norm).train()(x), labels).item()
    # What drops is random, and so is a loss.
    in_training = lambda net: onnx_bytes(copy.deepcopy(net).train(), x, torch.onnx.TrainingMode.TRAINING)  # noqa: E731
    with_norm_bytes, dropout_bytes = in_training(with_norm), in_training(with_dropout)
    ends = "is in training mode, which trainers take; for all else export the model in evaluation mode"
    for mode, model, why, step in (("normalization", with_norm_bytes, f'node "/bn/BatchNormalization": BatchNormalization {ends}', loss),
                                   ("dropout", dropout_bytes, f'node "/drop/Dropout": Dropout {ends}', None)):  # fmt: skip
        refused = lambda step: {**step, "status": "QTN_EUNSUPPORTED", "message": f"{step['call']}: {why}"}  # noqa: B023, E731
        target = call("qtensor_create", "t", dtype="int64", shape=[6], data=labels.tolist())
        trained = lambda step: [{**call("qtrainer_step", t="$trainer", inputs=["$x"], targets=["$t"]), "equals": step, "tolerance": CLOSE}] if step else []  # noqa: E731
        held = [call("qmodel_load_bytes", "m", data=list(model)), floats("x", x), target]
        for recipe in ("onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite", "torchvision_fbgemm", "torchvision_qnnpack"):
            config = call("qconfig_create", "c", name=recipe)
            case(f"training_mode/{mode}/{recipe}", ["P03"], *held, config,
                 refused(call("qmodel_prepare", m="$m", config="$c", mode=0)),
                 refused(call("qmodel_quantize", m="$m", config="$c", samples=["$x"])),
                 call("qmodel_prepare", "p", m="$m", config="$c", mode=1), call("qmodel_calibrate", prepared="$p", inputs=["$x"]),
                 call("qtrainer_create", "trainer", m="$p", attrs={"fake_quant": 0}), *trained(step), call("qtrainer_set", t="$trainer", attrs={"fake_quant": 1}),
                 call("qtrainer_model", "trained", t="$trainer"), call("qmodel_convert", "int8", prepared="$trained"),
                 call("qsession_create", "s", m="$int8"), call("qsession_run", "y", s="$s", inputs=["$x"]),
                 call("qtrainer_evaluate", "e", t="$trainer", inputs=["$x"]), {**call("qtensor_equal", a="$y", b="$e"), "equals": 1})  # fmt: skip
        case(f"training_mode/{mode}/all_else", ["P03"], *held, call("qconfig_create", "c", name="onnx"), refused(call("qsession_create", m="$m")),
             refused(call("qmodel_quantize_dynamic", m="$m", config="$c")), refused(call("qmodel_quantize_weights", m="$m")))  # fmt: skip


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
    """get_default_qat_qconfig as it is, version 1 with fused_fake_quant, and version 0, by the formulas of its observers: at a
    rate of 0 its weights do not lag. Losses show the grids of steps, the input's grid is that of the last. With seven bits
    only the first tensor sets the range: PyTorch clips there, and we where integers end, in training as afterwards."""
    for backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        rng = np.random.default_rng(18)
        weight = rng.uniform(-0.8, 0.9, (3, 6)).round(4).astype(np.float32)
        weight[2] = np.abs(weight[2])  # of one sign: the fused module has an affine grid there
        xs = [torch.from_numpy(rng.uniform(-limit / 3, limit, (5, 6)).round(4).astype(np.float32)) for limit in (1, 2, 1.5)]
        data = [(x, torch.from_numpy(rng.uniform(-1, 1, (5, 3)).round(4).astype(np.float32))) for x in xs]
        qconfig = tq.get_default_qat_qconfig(backend)
        activation, of_weight = qconfig.activation(), qconfig.weight()
        losses = [F.mse_loss(activation(x) @ of_weight(torch.from_numpy(weight)).T, target).item() for x, target in data]
        scale, zero = activation.calculate_qparams()
        seen = {"name": "x", "scale": float(scale), "zero_point": int(zero), "quantized_dtype": "uint8"}
        case(f"qat/qconfig/{backend}/version_1", ["P05"], network(fc=weight), call("qconfig_create", "c", name=backend), FUSED,
             call("qmodel_prepare", "p", m="$m", config="$c", mode=1), *given(data),
             call("qtrainer_create", "trainer", m="$p", attrs={"loss": "mse", "lr": 0.0}), *steps_of(losses, count=3, tolerance=1e-6),
             call("qtrainer_model", "trained", t="$trainer"), call("qmodel_convert", "int8", prepared="$trained"),
             call("qmodel_inspect", "report", m="$int8"), {"expect": "$report", "json": {"inputs": [seen]}, "tolerance": 1e-6})  # fmt: skip
    # PyTorch's qconfig for XNNPACK; and activations that are symmetric, whose scales differ between training and conversion.
    xs = [torch.from_numpy(rng.uniform(-limit, limit / 3, (5, 6)).round(4).astype(np.float32)) for limit in (1, 2, 1.5)]
    data = [(x, torch.from_numpy(rng.uniform(-1, 1, (5, 3)).round(4).astype(np.float32))) for x in xs]
    xnnpack = tq.qconfig.default_symmetric_qnnpack_qat_qconfig
    symmetric = xnnpack.activation.with_args(qscheme=torch.per_tensor_symmetric)
    for name, make, scheme in (("xnnpack", xnnpack.activation, "per_tensor_affine"), ("symmetric", symmetric, "per_tensor_symmetric")):
        activation, of_weight = make(), xnnpack.weight()
        losses = [F.mse_loss(activation(x) @ of_weight(torch.from_numpy(weight)).T, target).item() for x, target in data]
        scale, zero = activation.calculate_qparams()
        assert name == "xnnpack" or abs(activation.scale.item() / float(scale) - 1) > 1e-3
        seen = {"name": "x", "scale": float(scale), "zero_point": int(zero), "quantized_dtype": "int8"}
        settings = {"fused_fake_quant": 1, "activation_dtype": "int8", "activation_scheme": scheme, "eps": 2.0**-12, "weight_narrow_range": 1}
        case(f"qat/qconfig/{name}", ["P05"], network(fc=weight), call("qconfig_create", "c", name="qnnpack"),
             call("qconfig_set", c="$c", selector="*", settings=settings), call("qmodel_prepare", "p", m="$m", config="$c", mode=1), *given(data),
             call("qtrainer_create", "trainer", m="$p", attrs={"loss": "mse", "lr": 0.0}), *steps_of(losses, count=3, tolerance=1e-6),
             call("qtrainer_model", "trained", t="$trainer"), call("qmodel_convert", "int8", prepared="$trained"),
             call("qmodel_inspect", "report", m="$int8"), {"expect": "$report", "json": {"inputs": [seen]}, "tolerance": 1e-6})  # fmt: skip
    # What was calibrated goes on as the moving average that it would have been, of seven bits as of eight.
    for backend in ("fbgemm", "onednn"):
        observer = tq.MovingAverageMinMaxObserver(reduce_range=backend == "fbgemm")
        for x in xs[:2]:
            observer(x)
        scale = float(observer.calculate_qparams()[0])
        loss = F.mse_loss(xs[1] @ torch.from_numpy(weight).T, data[1][1]).item()
        seen = {"name": "x", "scale": scale, "quantized_dtype": "uint8"}
        case(f"qat/observers_go_on/{backend}", ["P05", "P13"], network(fc=weight), call("qconfig_create", "c", name=backend),
             call("qconfig_set", c="$c", selector="*", settings={"observer": "minmax"}), call("qmodel_prepare", "p", m="$m", config="$c", mode=1), *given(data),
             call("qmodel_calibrate", prepared="$p", inputs=["$x0"]),
             call("qtrainer_create", "trainer", m="$p", attrs={"loss": "mse", "lr": 0.0, "observers": 1, "fake_quant": 0}),
             {**call("qtrainer_step", t="$trainer", inputs=["$x1"], targets=["$t1"]), "equals": loss, "tolerance": CLOSE},
             call("qtrainer_set", t="$trainer", attrs={"fake_quant": 1}), call("qtrainer_model", "trained", t="$trainer"), call("qmodel_convert", "int8", prepared="$trained"),
             call("qmodel_inspect", "report", m="$int8"), {"expect": "$report", "json": {"inputs": [seen]}, "tolerance": scale / 100})  # fmt: skip
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
    fused_fake_quant()
    fused_by_names()
    training_mode()
    functions()
    qconfigs()
    fine_tuning()
    learned_amax()
    write("training.json")


if __name__ == "__main__":
    main()
