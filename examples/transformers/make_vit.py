#!/usr/bin/env python3
"""Trains a small vision transformer on the digits of examples/digits, and writes vit.onnx: opset 17, input "image" float32
[batch, 1, 8, 8], output "scores" [batch, 10]. Training, export by TorchScript and the data are those of make_digits.py.

As vision transformers are built: patches by a convolution (here they overlap, because the images are small), a token for the class, learned
positions, LayerNorm, one layer for queries, keys and values, Gelu.

Run again with:  $(benchmarks/peers/make-venv)/bin/python examples/transformers/make_vit.py      (a minute)
"""

import argparse
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent / "digits"
sys.path.append(str(DIGITS))

import make_digits  # noqa: E402

WIDTH, HEADS, LAYERS = 64, 4, 2
PATCHES = 16
EPOCHS, LEARNING_RATE = 90, 1e-3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        return self.o(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
        self.hidden = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.hidden(x)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 4, 2, padding=1)
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.randn(1, 1 + PATCHES, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="folder (%(default)s)")
    out = parser.parse_args().out
    torch.manual_seed(make_digits.SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    data = {name: np.load(DIGITS / f"{name}.npy") for name in ("train_images", "train_labels", "test_images", "test_labels")}
    network = Vit()
    make_digits.train(network, torch.from_numpy(data["train_images"]), torch.from_numpy(data["train_labels"]), EPOCHS, LEARNING_RATE)
    out.mkdir(parents=True, exist_ok=True)
    make_digits.export(network, out / "vit.onnx")
    parameters = sum(parameter.numel() for parameter in network.parameters())
    top1 = make_digits.accuracy(out / "vit.onnx", data["test_images"], data["test_labels"])
    print(f"{parameters} parameters, top-1 on the {len(data['test_labels'])} test images (ONNX Runtime): {top1:.4f}")


if __name__ == "__main__":
    main()
