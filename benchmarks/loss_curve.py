#!/usr/bin/env python3
"""200 steps of the same training by qtensor and by PyTorch with one thread and with two: how far the losses part.

ResNet-8 (training.py) from the same weights on the same batches: 64 of the digits (examples/digits), enlarged to 3x32x32; SGD with
momentum. In float, and quantization-aware on the same grids: those of the configuration `onnx`, which in PyTorch are moving averages over 0..255
and weights per channel over what they are now (its default, get_default_qat_qconfig, has weights whose ranges lag behind, and seven
bits). Values are to be rounded at the same places, for which PyTorch's network has a QuantStub behind its pool and no observer behind its
last layer, and layers have no biases, which ours rounds. Rounding to a grid makes of a difference in a float's last bit one of a whole
step, which training then enlarges: so PyTorch parts from itself where it adds in another order. At a low rate there is less to enlarge.

`single` is the largest difference of a step's loss in % of PyTorch's with one thread, `mean20` the same of means over 20 steps,
`of_first` the largest in % of the first loss, `bias` the mean difference in % with its sign.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/loss_curve.py --csv loss-curve.csv
"""

import argparse
import ctypes
import pathlib
import warnings

import numpy as np
import torch
from torch import nn
from torch.ao import quantization as tq

import training
from library import Library
import record

STEPS, BATCH, MOMENTUM = 200, 64, 0.9
RATES = (0.01, 0.001)
GRIDS = tq.QConfig(
    activation=tq.FakeQuantize.with_args(observer=tq.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8),
    weight=tq.FakeQuantize.with_args(
        observer=tq.MovingAveragePerChannelMinMaxObserver, averaging_constant=1.0, dtype=torch.qint8, quant_min=-127, quant_max=127,
        qscheme=torch.per_channel_symmetric))  # fmt: skip
DIGITS = pathlib.Path(__file__).parent.parent / "examples" / "digits"


class CurveNet(training.ResNet8):
    def __init__(self):
        super().__init__()
        self.pooled, self.fc = tq.QuantStub(), nn.Linear(64, 10, bias=False)
        for block in self.blocks[1:]:
            block.shortcut = nn.Conv2d(block.shortcut.in_channels, block.shortcut.out_channels, 1, 2, bias=False)

    def forward(self, x):
        y = self.blocks(self.relu(self.bn(self.conv(self.quant(x)))))
        return self.fc(self.pooled(torch.flatten(self.pool(y), 1)))


training.NETS["curve"] = (CurveNet, (BATCH, 3, 32, 32), 10)


def batches():
    images, labels = (np.load(DIGITS / f"train_{name}.npy") for name in ("images", "labels"))
    large = np.repeat(np.repeat(np.repeat(images.reshape(-1, 1, 8, 8).astype(np.float32), 4, 2), 4, 3), 3, 1)
    order = np.random.default_rng(5).permuted(np.tile(np.arange(len(large)), (STEPS * BATCH // len(large) + 1, 1)), axis=1).ravel()
    for i in range(STEPS):
        chosen = order[i * BATCH : (i + 1) * BATCH]
        yield np.ascontiguousarray(large[chosen]), labels[chosen].astype(np.int64)


def torch_curve(qat, rate, threads):
    torch.set_num_threads(threads)
    model = training.float_net("curve").train()
    if qat:
        model.fuse_model(is_qat=True)
        model.qconfig = GRIDS
        tq.prepare_qat(model, inplace=True)
        model.fc.activation_post_process = nn.Identity()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)
    losses = []
    for x, labels in batches():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def our_curve(library, qat, rate):
    c, model = library.c, training.onnx_bytes("curve")
    source = library.made(c.qmodel_load_bytes, model, ctypes.c_size_t(len(model)))
    if qat:
        source = library.made(c.qmodel_prepare, source, library.made(c.qconfig_create, b"onnx"), 1)
    attrs = library.attrs()
    for key, value in ((b"lr", rate), (b"momentum", MOMENTUM)):
        library.check(c.qattrs_set_float(attrs, key, ctypes.c_double(value)))
    trainer = library.made(c.qtrainer_create, source, attrs)
    losses, loss, one = [], ctypes.c_double(), ctypes.c_size_t(1)
    for pair in batches():
        tensors = [library.tensor(a) for a in pair]
        inputs, targets = ((ctypes.c_void_p * 1)(t) for t in tensors)
        library.check(c.qtrainer_step(ctypes.byref(loss), trainer, inputs, one, targets, one))
        losses.append(loss.value)
        for t in tensors:
            c.qtensor_free(t)
    return np.array(losses)


def means(losses):
    return np.convolve(losses, np.full(20, 1 / 20), "valid")


def row(qat, rate, who, losses, judge):
    percent = lambda values: round(100 * float(values), 4)
    difference = losses - judge
    return {
        "training": "onnx" if qat else "float", "rate": rate, "who": who,
        "first": round(float(losses[0]), 4), "last20": round(float(means(losses)[-1]), 4),
        "single": percent(np.max(np.abs(difference) / judge)), "mean20": percent(np.max(np.abs(means(losses) / means(judge) - 1))),
        "of_first": percent(np.max(np.abs(difference)) / judge[0]), "bias": percent(np.mean(difference / judge)),
        "torch": torch.__version__, "cpu": record.cpu_name(),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/release/capi/libqtensor.so", help="(%(default)s)")
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--csv")
    parser.add_argument("--curves", help="an .npz of all losses")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    library = Library(arguments.library)
    rows, curves = [], {}
    for qat in (False, True):
        for rate in arguments.rates:
            judge = torch_curve(qat, rate, 1)
            others = {"qtensor": our_curve(library, qat, rate), "torch, 2 threads": torch_curve(qat, rate, 2)}
            for who, losses in others.items():
                rows.append(row(qat, rate, who, losses, judge))
                print(rows[-1], flush=True)
            curves |= {f"{qat}/{rate}/{who}": losses for who, losses in (others | {"torch": judge}).items()}
    if arguments.curves:
        np.savez(arguments.curves, **curves)
    if arguments.csv:
        record.write_csv(arguments.csv, rows)


if __name__ == "__main__":
    main()
