#!/usr/bin/env python3
"""Trains the small networks whose accuracy after quantization is compared, on the digits of examples/digits.

  mobile    inverted residuals with depthwise convolutions and ReLU6, as in MobileNetV2
  residual  basic blocks, as in ResNet
  spread    `plain` convolutions and depthwise ones; then the channels between layers are scaled by factors from 1 to
            1000, which the next layer takes back: the same function, hard on scales per tensor
  dead      depthwise separable convolutions with ReLU, as in MobileNetV1, and a Softmax; trained with every fourth channel
            dead, as channels become that strong weight decay pushes to 0: folded weights of 1e-20 to 1e-10, biases that count

Makes <network>.onnx and <network>.pt (the module, eval mode, BatchNorm in place) in a folder outside the repository, and
untrained.onnx, `mobile` with its first random weights, to be trained: BatchNormalization is not folded.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/models/digits_nets.py [--out DIR]
"""

import argparse
import pathlib
import sys

import numpy as np
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "examples" / "digits")]

import make_digits  # noqa: E402
import peer_lib  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
SPREAD = 1000


def conv(inputs, outputs, size=3, stride=1, groups=1, activation=nn.ReLU):
    layers = [
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class Sum(nn.Module):
    """x + y, as a module for torch's eager quantization too."""

    def __init__(self):
        super().__init__()
        self.add = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x, y):
        return self.add.add(x, y)


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride=1, expand=4):
        super().__init__()
        hidden = inputs * expand
        self.body = nn.Sequential(
            conv(inputs, hidden, 1, activation=nn.ReLU6),
            conv(hidden, hidden, 3, stride, groups=hidden, activation=nn.ReLU6),
            conv(hidden, outputs, 1, activation=None),
        )
        self.sum = Sum() if stride == 1 and inputs == outputs else None

    def forward(self, x):
        return self.sum(x, self.body(x)) if self.sum else self.body(x)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.body = nn.Sequential(conv(inputs, outputs, 3, stride), conv(outputs, outputs, activation=None))
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else conv(inputs, outputs, 1, stride, activation=None)
        self.sum, self.relu = Sum(), nn.ReLU()

    def forward(self, x):
        return self.relu(self.sum(self.shortcut(x), self.body(x)))


def head(channels):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]


def mobile():
    blocks = [InvertedResidual(16, 16), InvertedResidual(16, 24, 2), InvertedResidual(24, 24), InvertedResidual(24, 32)]
    return nn.Sequential(conv(1, 16, activation=nn.ReLU6), *blocks, conv(32, 64, 1, activation=nn.ReLU6), *head(64))


def residual():
    return nn.Sequential(conv(1, 16), Block(16, 16), Block(16, 32, 2), Block(32, 32), *head(32))


def spread():
    layers = [conv(1, 24), conv(24, 32), conv(32, 32, groups=32), conv(32, 48, 1), conv(48, 48, 3, 2)]
    return nn.Sequential(*layers, *head(48))


def dead():
    def separable(inputs, outputs, stride=1):
        return [conv(inputs, inputs, 3, stride, groups=inputs), conv(inputs, outputs, 1)]

    layers = [conv(1, 16), *separable(16, 32), *separable(32, 48, 2), *separable(48, 48), *separable(48, 64, 2)]
    return nn.Sequential(*layers, *head(64), nn.Softmax(-1))


NETWORKS = {"mobile": mobile, "residual": residual, "spread": spread, "dead": dead}


def kill_channels(network):
    """Gives a quarter of the channels scales of 1e-20 to 1e-10, which training does not change."""
    generator = torch.Generator().manual_seed(make_digits.SEED)
    for norm in network.modules():
        if not isinstance(norm, nn.BatchNorm2d):
            continue
        is_dead = torch.rand(norm.num_features, generator=generator) < 0.25
        scales = 10 ** (-20 + 10 * torch.rand(norm.num_features, generator=generator))
        with torch.no_grad():
            norm.weight[is_dead] = scales[is_dead]
        norm.weight.register_hook(lambda gradient, alive=~is_dead: gradient * alive)


def spread_channels(network):
    """Scales what each BatchNorm makes by factors from 1 to SPREAD; the convolution after it divides by them."""
    generator = torch.Generator().manual_seed(make_digits.SEED)
    layers = [block for block in network if isinstance(block, nn.Sequential)]
    for block, following in zip(layers, layers[1:]):
        norm, reader = block[1], following[0]
        factors = SPREAD ** torch.rand(norm.num_features, generator=generator) / SPREAD**0.5
        with torch.no_grad():
            norm.weight *= factors
            norm.bias *= factors
            if reader.groups == 1:
                reader.weight /= factors[None, :, None, None]
            else:
                reader.weight /= factors[:, None, None, None]


def folder():
    return peer_lib.cache_folder() / "digits"


def make_untrained(path):
    torch.manual_seed(make_digits.SEED)
    make_digits.export(mobile().eval(), path, fold=False)


def make(out):
    make_untrained(out / "untrained.onnx")
    images, labels = (torch.from_numpy(np.load(DIGITS / f"train_{what}.npy")) for what in ("images", "labels"))
    for name, make_network in NETWORKS.items():
        torch.manual_seed(make_digits.SEED)
        network = make_network()
        if name == "dead":
            kill_channels(network)
        make_digits.train(network, images, labels)
        if name == "spread":
            spread_channels(network)
        torch.save(network.state_dict(), out / f"{name}.pt")
        make_digits.export(network, out / f"{name}.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=folder(), help="folder (%(default)s)")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out.mkdir(parents=True, exist_ok=True)
    make(out)


if __name__ == "__main__":
    main()
