#!/usr/bin/env python3
"""A step of quantization-aware training (forward, backward, SGD) compared with PyTorch's eager mode, in one process.

  resnet8       the CIFAR network of MLPerf Tiny, 32x32, batch 64
  mobilenet_v2  torchvision's, 224x224, batch 4

PyTorch: fuse_modules_qat and prepare_qat with the default configuration of fbgemm. Ours: the same float network as ONNX, prepared with
"fbgemm". Engines take turns; times are medians, ratios those of turns, above 1 where qtensor is faster. Peak memory is of a process for
each, which makes ten steps.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/training.py --csv training.csv
"""

import argparse
import io
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
import torchvision
from torch import nn
from torch.ao import quantization as tq

from library import Library
from training_step import DECAY, MOMENTUM, RATE, our_step
import record


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1, self.bn1, self.relu1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters)
        self.shortcut = nn.Conv2d(channels, filters, 1, stride) if stride > 1 else nn.Identity()
        self.add = nn.quantized.FloatFunctional()

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.add.add_relu(y, self.shortcut(x))

    def fuse_model(self):
        tq.fuse_modules_qat(self, [["conv1", "bn1", "relu1"], ["conv2", "bn2"]], inplace=True)


class ResNet8(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(64, 10)

    def forward(self, x):
        y = self.blocks(self.relu(self.bn(self.conv(self.quant(x)))))
        return self.dequant(self.fc(torch.flatten(self.pool(y), 1)))

    def fuse_model(self, is_qat=True):
        tq.fuse_modules_qat(self, ["conv", "bn", "relu"], inplace=True)
        for block in self.blocks:
            block.fuse_model()


NETS = {
    "resnet8": (ResNet8, (64, 3, 32, 32), 10),
    "mobilenet_v2": (lambda: torchvision.models.quantization.mobilenet_v2(quantize=False, weights=None), (4, 3, 224, 224), 1000),
}


def batch_of(name):
    _, shape, classes = NETS[name]
    rng = np.random.default_rng(3)
    return rng.normal(size=shape).astype(np.float32), rng.integers(0, classes, shape[0])


def float_net(name):
    torch.manual_seed(1)
    return NETS[name][0]()


def torch_step(name, qat=True):
    model = float_net(name).train()
    if qat:
        model.fuse_model(is_qat=True)
        model.qconfig = tq.get_default_qat_qconfig("fbgemm")
        tq.prepare_qat(model, inplace=True)
    x, labels = (torch.tensor(a) for a in batch_of(name))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def onnx_bytes(name):
    """With batch normalizations as they are."""
    file = io.BytesIO()
    x, _ = batch_of(name)
    torch.onnx.export(
        float_net(name).eval(), torch.tensor(x), file, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"],
        training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, dynamic_axes={"x": {0: "N"}, "y": {0: "N"}},
    )  # fmt: skip
    return file.getvalue()


def compare(name, threads, arguments):
    torch.set_num_threads(threads)
    library = Library(arguments.library)
    steps = {
        "qtensor": our_step(library, onnx_bytes(name), *batch_of(name), threads),
        "qtensor float": our_step(library, onnx_bytes(name), *batch_of(name), threads, qat=False),
        "torch": torch_step(name),
        "torch float": torch_step(name, qat=False),
    }
    times = {key: [] for key in steps}
    for step in steps.values():
        for _ in range(3):
            step()
    for _ in range(arguments.rounds):
        for key, step in steps.items():
            start = time.perf_counter()
            step()
            times[key].append(1e3 * (time.perf_counter() - start))
    ratio = lambda other, ours: statistics.median(a / b for a, b in zip(times[other], times[ours]))
    row = {"net": name, "threads": threads}
    row |= {f"{key}_ms".replace(" ", "_"): round(statistics.median(values), 1) for key, values in times.items()}
    return row | {"ratio": round(ratio("torch", "qtensor"), 2), "ratio_float": round(ratio("torch float", "qtensor float"), 2)}


def peak_memory(name, who, arguments):
    """MB of a process that makes ten steps with one thread. Ours has NumPy in it besides, PyTorch's PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, file) for file in ("model.onnx", "x.npy", "labels.npy")]
        files[0].write_bytes(onnx_bytes(name))
        for file, array in zip(files[1:], batch_of(name)):
            np.save(file, array)
        ours = f"import training_step; training_step.main({arguments.library!r}, {[str(f) for f in files]!r})"
        theirs = f"import training; step = training.torch_step({name!r}); [step() for _ in range(10)]"
        peak = "print([int(line.split()[1]) >> 10 for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
        code = f"{ours if who == 'qtensor' else theirs}\n{peak}"
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(pathlib.Path(__file__).parent)}
        out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True, env=environment)
        return int(out.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/release/capi/libqtensor.so", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each engine (%(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--csv")
    parser.add_argument("names", nargs="*", default=list(NETS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in arguments.names:
        for threads in arguments.threads:
            row = compare(name, threads, arguments)
            if threads == 1:
                row |= {f"{who}_peak_mb": peak_memory(name, who, arguments) for who in ("qtensor", "torch")}
            rows.append(row | {"rounds": arguments.rounds, "torch": torch.__version__, "cpu": record.cpu_name()})
            print(rows[-1], flush=True)
    if arguments.csv:
        record.write_csv(arguments.csv, rows)


if __name__ == "__main__":
    main()
