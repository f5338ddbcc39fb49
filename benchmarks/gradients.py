#!/usr/bin/env python3
"""Operators forward and backward compared with PyTorch, in one process and on one thread: what they add to a training step.

Each is a step of SGD on a network of a 1x1 convolution, the operator several times, and the mean of squares, less that of the network
without the operator; of cross-entropy, a step on logits of a 1x1 convolution, less the same with the mean of squares. Engines take turns;
times are medians of the thread's CPU time, the ratio is above 1 where qtensor is faster.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/gradients.py --csv gradients.csv
"""

import argparse
import ctypes
import statistics
import time

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from library import Library
import record

RATE = 1e-6


def conv(channels, groups=1, stride=1):
    def layer(rng):
        weight = (rng.normal(size=(channels, channels // groups, 3, 3)) / np.sqrt(9 * channels / groups)).astype(np.float32)
        attrs = {"pads": [1, 1, 1, 1], "strides": [stride, stride], "group": groups}
        return "Conv", [weight], attrs, lambda x, w: F.conv2d(x, w, None, stride, 1, 1, groups)

    return layer


def norm(length):
    def layer(rng):
        parameters = [np.ones(length, np.float32), np.zeros(length, np.float32)]
        return "LayerNormalization", parameters, {"axis": -1}, lambda x, w, b: F.layer_norm(x, (length,), w, b)

    return layer


def plain(op, function, **attrs):
    return lambda rng: (op, [], attrs, function)


# name: layer, shape of x, how often
LAYERS = {
    "HardSwish": (plain("HardSwish", F.hardswish), (8, 64, 28, 28), 4),
    "Gelu": (plain("Gelu", F.gelu), (8, 64, 28, 28), 4),
    "Gelu tanh": (plain("Gelu", lambda x: F.gelu(x, approximate="tanh"), approximate="tanh"), (8, 64, 28, 28), 4),
    "Sigmoid": (plain("Sigmoid", torch.sigmoid), (8, 64, 28, 28), 4),
    "Relu": (plain("Relu", torch.relu), (8, 64, 28, 28), 4),
    "MaxPool 2x2": (plain("MaxPool", lambda x: F.max_pool2d(x, 2), kernel_shape=[2, 2], strides=[2, 2]), (8, 64, 64, 64), 2),
    "MaxPool 3x3/2": (
        plain("MaxPool", lambda x: F.max_pool2d(x, 3, 2, 1), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), (8, 64, 56, 56), 2
    ),
    "LayerNormalization 64": (norm(64), (8, 64, 49, 64), 4),
    "LayerNormalization 768": (norm(768), (4, 8, 32, 768), 4),
    "Conv 3x3, 16 of 32x32": (conv(16), (64, 16, 32, 32), 2),
    "Conv 3x3, 32 of 16x16": (conv(32), (64, 32, 16, 16), 2),
    "Conv 3x3, 64 of 8x8": (conv(64), (64, 64, 8, 8), 2),
    "Conv 3x3, 128 of 4x4": (conv(128), (64, 128, 4, 4), 2),
    "Conv 3x3, depthwise": (conv(96, 96), (8, 96, 28, 28), 2),
}  # fmt: skip
LOSSES = {"cross-entropy, 1000 classes": (512, 1000), "cross-entropy, 32000 classes": (32, 32000)}


def chain(layer, shape, times, rng):
    """The network as ONNX and as a function of PyTorch with its parameters."""
    channels = shape[1]
    first = (rng.normal(size=(channels, 1, 1, 1)) + 1).astype(np.float32)
    constants, nodes, calls = [first], [helper.make_node("Conv", ["x", "w0"], ["v0"], group=channels)], []
    for i in range(times):
        op, weights, attrs, function = layer(rng)
        names = [f"w{len(constants) + k}" for k in range(len(weights))]
        nodes.append(helper.make_node(op, [f"v{i}", *names], [f"v{i + 1}"], **attrs))
        calls.append((function, range(len(constants), len(constants) + len(weights))))
        constants += weights
    value = lambda name, dims: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
    graph = helper.make_graph(
        nodes, "chain", [value("x", shape)], [value(f"v{times}", None)], [numpy_helper.from_array(w, f"w{k}") for k, w in enumerate(constants)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    parameters = [torch.tensor(w, requires_grad=True) for w in constants]

    def run(x):
        y = F.conv2d(x, parameters[0], groups=channels)
        for function, at in calls:
            y = function(y, *[parameters[k] for k in at])
        return y

    return model.SerializeToString(), run, parameters


def our_step(library, model, x, target, loss):
    c = library.c
    attrs = library.attrs(loss=loss)
    library.check(c.qattrs_set_float(attrs, b"lr", ctypes.c_double(RATE)))
    library.check(c.qattrs_set_int(attrs, b"threads", ctypes.c_int64(1)))
    trainer = library.made(c.qtrainer_create, library.made(c.qmodel_load_bytes, model, ctypes.c_size_t(len(model))), attrs)
    inputs, targets = ((ctypes.c_void_p * 1)(library.tensor(a)) for a in (x, target))
    value, one = ctypes.c_double(), ctypes.c_size_t(1)

    def step():
        library.check(c.qtrainer_step(ctypes.byref(value), trainer, inputs, one, targets, one))
        return value.value

    return step


def torch_step(run, parameters, x, target, loss):
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    x, target = torch.tensor(x), torch.tensor(target)

    def step():
        optimizer.zero_grad()
        value = loss(run(x), target)
        value.backward()
        optimizer.step()
        return value.item()

    return step


def steps_of(library, layer, shape, times, loss="mse"):
    rng = np.random.default_rng(7)
    model, run, parameters = chain(layer, shape, times, rng)
    x = rng.normal(size=shape).astype(np.float32)
    with torch.no_grad():
        y = run(torch.tensor(x)).shape
    target = np.zeros(y, np.float32) if loss == "mse" else rng.integers(0, y[1], (y[0], *y[2:]))
    theirs = torch_step(run, parameters, x, target, F.mse_loss if loss == "mse" else F.cross_entropy)
    return our_step(library, model, x, target, loss), theirs


def measure(name, library, rounds):
    if name in LOSSES:
        shape, times = (*LOSSES[name], 1, 1), 1
        pairs = [steps_of(library, None, shape, 0, loss) for loss in ("cross_entropy", "mse")]
    else:
        layer, shape, times = LAYERS[name]
        pairs = [steps_of(library, layer, shape, n) for n in (times, 0)]
    steps = [step for pair in pairs for step in pair]
    spent = [[] for _ in steps]
    for i in range(rounds + 2):
        for step, times_of in zip(steps, spent):
            start = time.thread_time()
            loss = step()
            if i > 1:
                times_of.append(1e3 * (time.thread_time() - start))
            elif not np.isfinite(loss):
                raise ValueError(f"{name}: the loss is {loss}")
    ours, theirs = ((statistics.median(spent[k]) - statistics.median(spent[k + 2])) / times for k in (0, 1))
    row = {"operator": name, "x": "x".join(map(str, shape)), "qtensor_ms": round(ours, 3), "torch_ms": round(theirs, 3)}
    return row | {"ratio": round(theirs / ours, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/release/capi/libqtensor.so", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=21, help="turns of each engine (%(default)s)")
    parser.add_argument("--csv")
    parser.add_argument("names", nargs="*", default=[*LAYERS, *LOSSES])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    library = Library(arguments.library)
    rows = []
    for name in arguments.names:
        rows.append(measure(name, library, arguments.rounds) | {"rounds": arguments.rounds, "torch": torch.__version__, "cpu": record.cpu_name()})
        print(rows[-1], flush=True)
    if arguments.csv:
        record.write_csv(arguments.csv, rows)


if __name__ == "__main__":
    main()
