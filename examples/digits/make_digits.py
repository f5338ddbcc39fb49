#!/usr/bin/env python3
"""Trains a small convolutional network on scikit-learn's handwritten digits and writes it with its data.

Makes, beside this script or in --out:
  digits.onnx         float network, opset 17, input "image" float32 [batch, 1, 8, 8], output "scores" [batch, 10]
  train_images.npy    float32 [1257, 1, 8, 8], pixels 0..1: the first 70 % of the data, in its own order
  train_labels.npy    int64 [1257]
  test_images.npy     float32 [540, 1, 8, 8]: the last 30 %, never seen in training
  test_labels.npy     int64 [540]
  calibration.npy     float32 [200, 1, 8, 8], taken evenly from the training part

From: sklearn.datasets.load_digits() and nothing else. Seeds and one thread fix the result on one machine and version of
torch; another version may give slightly different weights.

Run again with:  $(benchmarks/peers/make-venv)/bin/python examples/digits/make_digits.py
"""

import argparse
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime
import sklearn.datasets
import torch
from torch import nn

SEED = 0
EPOCHS = 60
BATCH = 64
LEARNING_RATE = 3e-3
TEST_PART = 0.3
CALIBRATION_SAMPLES = 200
OPSET = 17


class Residual(nn.Module):
    """relu(x + body(x))"""

    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return torch.relu(x + self.body(x))


def conv(inputs, outputs, size, groups=1):
    return [nn.Conv2d(inputs, outputs, size, padding=size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]


def make_network():
    """Conv, depthwise Conv, Add, MaxPool, GlobalAveragePool and Gemm, in 61 482 parameters."""
    return nn.Sequential(
        *conv(1, 32, 3),
        nn.ReLU(),
        *conv(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        Residual(*conv(64, 64, 3, groups=64), nn.ReLU(), *conv(64, 64, 1)),
        Residual(*conv(64, 64, 3)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def shift(images, generator):
    """Moves each picture by up to one pixel in each direction, with zeros coming in."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    offsets = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()
    return torch.stack([padded[i, :, y : y + 8, x : x + 8] for i, (y, x) in enumerate(offsets)])


def train(network, images, labels, epochs=EPOCHS, learning_rate=LEARNING_RATE):
    generator = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=1e-2)
    steps = epochs * (len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    network.train()
    for epoch in range(epochs):
        order = torch.randperm(len(images), generator=generator)[: len(images) // BATCH * BATCH]
        for batch in order.split(BATCH):
            loss = loss_of(network(shift(images[batch], generator)), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
    network.eval()


def export(network, path, fold=True):
    """`fold`: BatchNormalization becomes part of the convolutions, as it should where nothing is trained any more."""
    mode = torch.onnx.TrainingMode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (torch.zeros(1, 1, 8, 8),),
            path,
            input_names=["image"],
            output_names=["scores"],
            dynamic_axes={"image": {0: "batch"}, "scores": {0: "batch"}},
            opset_version=OPSET,
            training=mode.EVAL if fold else mode.PRESERVE,
            dynamo=False,
        )
    onnx.checker.check_model(str(path), full_check=True)


def accuracy(path, images, labels):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"image": images})
    return float((scores.argmax(axis=1) == labels).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="folder (%(default)s)")
    out = parser.parse_args().out

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    digits = sklearn.datasets.load_digits()
    images = (digits.images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = digits.target.astype(np.int64)
    split = int(len(images) * (1 - TEST_PART))
    train_images, test_images = images[:split], images[split:]
    train_labels, test_labels = labels[:split], labels[split:]
    calibration = train_images[np.linspace(0, split - 1, CALIBRATION_SAMPLES).astype(int)]

    network = make_network()
    train(network, torch.from_numpy(train_images), torch.from_numpy(train_labels))

    out.mkdir(parents=True, exist_ok=True)
    export(network, out / "digits.onnx")
    np.save(out / "train_images.npy", train_images)
    np.save(out / "train_labels.npy", train_labels)
    np.save(out / "test_images.npy", test_images)
    np.save(out / "test_labels.npy", test_labels)
    np.save(out / "calibration.npy", calibration)

    parameters = sum(parameter.numel() for parameter in network.parameters())
    top1 = accuracy(out / "digits.onnx", test_images, test_labels)
    print(f"{parameters} parameters, top-1 on the {len(test_images)} test images (ONNX Runtime): {top1:.4f}")


if __name__ == "__main__":
    main()
