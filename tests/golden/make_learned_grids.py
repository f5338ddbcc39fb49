#!/usr/bin/env python3
"""Makes training/learned_grids.json: grids that are learned, by PyTorch.

  modules   torch.ao's _LearnableFakeQuantize with gradient scaling, per tensor and per channel: y and the gradients of x, scale and
            zero point
  steps     20 steps of the network of make_trainer.py from the weights of training/qat.onnx, whose grids begin with the first batch:
              lsq    _LearnableFakeQuantize for activations and weights; the factor of gradients is that of the paper, which counts
                     the elements of one sample, where the module counts those of the batch
              lsq+   the same for activations, zero points included, with 4 bits
              pact   clamps with learned ends and the gradients of PACT (Choi et al. 2018); a lower end of 0 stays
              amax   the gradients of learn_amax of NVIDIA's toolkit with one bound for both ends, on symmetric grids per tensor

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_learned_grids.py
"""

import warnings

import numpy as np
import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.quantization._learnable_fake_quantize import _LearnableFakeQuantize

import golden_json
from make_fake_quantize import noise
from make_trainer import DECAY, FOLDER, MOMENTUM, RATE, Quantized, data, initialized, losses_of, plain_names, round_biases

OF_GRIDS = 0.01
SHIFT = 0.35  # so that the grid of the input has a zero point


def module_case(name, x, lo, hi, scale, zero, axis=None):
    channels = -1 if axis is None else x.shape[axis]
    unsigned = lo == 0
    scheme = {(True, True): torch.per_tensor_affine, (True, False): torch.per_tensor_symmetric,
              (False, False): torch.per_channel_symmetric}[axis is None, unsigned]  # fmt: skip
    options = {"dtype": torch.quint8 if unsigned else torch.qint8, "qscheme": scheme} | ({} if axis is None else {"ch_axis": axis})
    observer = tq.MovingAverageMinMaxObserver if axis is None else tq.MovingAveragePerChannelMinMaxObserver
    module = _LearnableFakeQuantize(observer, lo, hi, channel_len=channels, use_grad_scaling=True, **options).enable_param_learning()
    module.scale.data.copy_(torch.as_tensor(scale))
    module.zero_point.data.copy_(torch.as_tensor(zero))
    x = x.clone().requires_grad_()
    dy = noise(31, *x.shape, scale=1.0)
    y = module(x)
    y.backward(dy)
    tensors = {"x": x.detach(), "dy": dy, "y": y.detach(), "dx": x.grad, "scale": torch.as_tensor(scale), "d_scale": module.scale.grad,
               "zero_point": torch.as_tensor(zero), "d_zero_point": module.zero_point.grad}  # fmt: skip
    return {"name": name, "quant_min": lo, "quant_max": hi, "axis": axis, **{k: golden_json.Tensor(v.numpy()) for k, v in tensors.items()}}


def modules():
    x = noise(30, 6, 5, 4, scale=1.0)
    scales = torch.linspace(0.0103, 0.0217, 5)
    return [
        module_case("affine/8", x, 0, 255, 0.0073, 96.3),
        module_case("affine/4", x, 0, 15, 0.117, 6.6),
        module_case("symmetric/8", x, -127, 127, 0.0131, 0.0),
        module_case("symmetric/4", x, -7, 7, 0.19, 0.0),
        module_case("below the smallest scale", x, 0, 255, -0.5, 96.0),
        module_case("channels/8", x, -127, 127, scales, torch.zeros(5), 1),
        module_case("channels/4", x, -7, 7, 15 * scales, torch.zeros(5), 1),
    ]


class Lsq(_LearnableFakeQuantize):
    """The first batch gives the grid, with which it is rounded already."""

    learns_zero = False

    def forward(self, x):
        with torch.no_grad():
            if self.static_enabled[0] == 1:
                self.activation_post_process(x.detach())
                scale, zero = self.activation_post_process.calculate_qparams()
                self.scale.data, self.zero_point.data = scale.float(), zero.float()
                self.enable_param_learning()
                self.zero_point.requires_grad = self.learns_zero
            self.scale.data.clamp_(min=self.eps.item())
        count = x.numel() if self.qscheme == torch.per_channel_symmetric else x[0].numel()
        factor = 1.0 / (count * self.quant_max) ** 0.5
        if self.qscheme == torch.per_channel_symmetric:
            return torch._fake_quantize_learnable_per_channel_affine(
                x, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max, factor)  # fmt: skip
        return torch._fake_quantize_learnable_per_tensor_affine(
            x, self.scale, self.zero_point, self.quant_min, self.quant_max, factor)  # fmt: skip


class LsqPlus(Lsq):
    learns_zero = True


class ClippedGrid(torch.autograd.Function):
    """Gradients of the toolkit's ClipFunction: to x strictly inside, to the ends where x is there or beyond."""

    @staticmethod
    def forward(ctx, x, low, high, on_grid):
        ctx.save_for_backward(x, low, high)
        return on_grid(x, low.item(), high.item())

    @staticmethod
    def backward(ctx, dy):
        x, low, high = ctx.saved_tensors
        of_low = (dy * (x <= low)).double().sum().float().reshape(1)
        of_high = (dy * (x >= high)).double().sum().float().reshape(1)
        return dy * ((x > low) & (x < high)), of_low, of_high, None


class Pact(tq.FakeQuantizeBase):
    """By onednn's rule from range to grid. Its integers are from 0 to 255."""

    def __init__(self, **_):
        super().__init__()
        self.alpha, self.beta = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

    def calculate_qparams(self):
        return None

    @staticmethod
    def on_grid(x, low, high):
        scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(255))
        zero = int(np.clip(-np.rint(np.float32(low) / scale), 0, 255))
        return torch.fake_quantize_per_tensor_affine(x.detach().clamp(low, high), float(scale), zero, 0, 255)

    def forward(self, x):
        if self.alpha.item() == 0:
            self.alpha.data[0], self.beta.data[0] = x.max().clamp(min=0), x.min().clamp(max=0)
        low = self.beta if self.beta.item() < 0 else self.beta.detach()
        self.scale = (self.alpha - self.beta).detach() / 255
        return ClippedGrid.apply(x, low, self.alpha, self.on_grid)


class Amax(tq.FakeQuantizeBase):
    """tensor_quant of 8 bits over a learned amax."""

    def __init__(self, **_):
        super().__init__()
        self.amax = nn.Parameter(torch.zeros(1))

    def calculate_qparams(self):
        return None

    @staticmethod
    def on_grid(x, low, high):
        scale = np.float32(127) / np.float32(high)
        return torch.clamp(torch.round(x.detach().clamp(low, high) * scale), -127, 127) / scale

    def forward(self, x):
        if self.amax.item() == 0:
            self.amax.data[0] = x.detach().abs().max()
        self.scale = self.amax.detach() / 127
        return ClippedGrid.apply(x, -self.amax, self.amax, self.on_grid)


def prepared(activation, weight, of_input=None):
    """Inputs of a model have 8 bits."""
    model = initialized(Quantized)
    tq.fuse_modules_qat(model.train(), [[f"conv{i}", f"bn{i}", f"relu{i}"] for i in (1, 2, 3)], inplace=True)
    model.qconfig = tq.QConfig(activation=activation, weight=weight)
    model.fc.qconfig = tq.QConfig(activation=nn.Identity, weight=weight)
    model.quant.qconfig = tq.QConfig(activation=of_input or activation, weight=weight)
    return round_biases(tq.prepare_qat(model))


def lsq_of(kind, bits):
    return lambda **_: kind(tq.MinMaxObserver, 0, 2**bits - 1, dtype=torch.quint8, qscheme=torch.per_tensor_affine)


def lsq_of_weights(bits):
    end = 2 ** (bits - 1) - 1
    return lambda **_: Lsq(tq.PerChannelMinMaxObserver, -end, end, dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0)


def parameters_of(model):
    """By the names that the library gives them."""
    tensors = {"quant": "x", "conv1": "r1", "conv2": "r2", "conv3": "r3"}
    state = {}
    for key, value in model.named_parameters():
        module, *path, part = key.split(".")
        if part not in ("scale", "zero_point", "alpha", "beta", "amax") or not value.requires_grad:
            continue
        if path[-1] == "weight_fake_quant":
            state[f"{module}.weight.{part}"] = value.detach() if value.numel() > 1 else value.detach()[0]
        else:
            state[f"{tensors[module]}.{part}"] = value.detach()[0]
    return state


def optimizer_of(model):
    """Scales are small numbers, and so are the weights of the last layer: their grids take smaller steps."""
    kinds = {kind: [] for kind in ("grids", "decayed", "others")}
    for name, value in model.named_parameters():
        kinds["grids" if name.endswith((".scale", "weight_fake_quant.amax")) else "decayed" if value.dim() > 1 else "others"].append(value)
    return torch.optim.SGD([
        {"params": kinds["grids"], "weight_decay": 0.0, "lr": RATE * OF_GRIDS}, {"params": kinds["decayed"], "weight_decay": DECAY},
        {"params": kinds["others"], "weight_decay": 0.0}], lr=RATE, momentum=MOMENTUM)  # fmt: skip


def steps(name, model):
    x, labels = data()
    x = (x - np.float32(SHIFT)).astype(np.float32)
    losses = losses_of(model, lambda step: (x[step % len(x)], labels[step % len(x)]), 20, optimizer=optimizer_of(model))
    model.eval()
    with torch.no_grad():
        outputs = model(torch.tensor(x[0])).numpy()
    state = plain_names(model) | parameters_of(model)
    return {"name": name, "lr": RATE, "of_grids": OF_GRIDS, "momentum": MOMENTUM, "weight_decay": DECAY, "x": golden_json.Tensor(x),
            "labels": golden_json.Tensor(labels), "losses": golden_json.Tensor(np.array(losses)), "outputs": golden_json.Tensor(outputs),
            "state": {key: golden_json.Tensor(value.numpy()) for key, value in state.items()}}  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    content = {"modules": modules(), "steps": [
        steps("lsq", prepared(lsq_of(Lsq, 8), lsq_of_weights(8))),
        steps("lsq+", prepared(lsq_of(LsqPlus, 4), lsq_of_weights(4), lsq_of(LsqPlus, 8))),
        steps("pact", prepared(Pact, lsq_of_weights(8))),
        steps("amax", prepared(Amax, Amax)),
    ]}  # fmt: skip
    (FOLDER / "learned_grids.json").write_text(golden_json.dump(content) + "\n")


if __name__ == "__main__":
    main()
