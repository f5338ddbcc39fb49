#!/usr/bin/env python3
"""Makes quant/shapes.json: what NumPy makes of shapes and strides: broadcasting, row-major strides, and which views can be
read under another shape without a copy; slices as Python has them; how many windows PyTorch's pools and convolutions have.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_shapes.py
"""

import json
import pathlib

import numpy as np
import torch

rng = np.random.default_rng(7)


def some_shape(rank, dims=(1, 1, 2, 3, 4)):
    return [int(d) for d in rng.choice(dims, rank)]


def elements(array):
    return [s // array.itemsize for s in array.strides]


def broadcasts():
    for _ in range(150):
        rank = int(rng.integers(0, 9))
        whole = some_shape(rank)
        a, b = ([d if rng.random() < 0.6 else 1 for d in whole] for _ in range(2))
        a, b = a[int(rng.integers(0, rank + 1)) if rng.random() < 0.5 else 0:], b
        if rng.random() < 0.15 and b:
            b[int(rng.integers(len(b)))] = 7
        if rng.random() < 0.5:
            a, b = b, a
        try:
            out = [int(d) for d in np.broadcast_shapes(tuple(a), tuple(b))]
        except ValueError:
            out = None
        case = {"a": a, "b": b, "out": out}
        if out is not None:
            case["strides"] = elements(np.broadcast_to(np.empty(a, np.int8), out))
        yield case


def reshapes():
    """A view of random order and steps, and whether NumPy reads it under another shape without a copy."""
    for _ in range(400):
        rank = int(rng.integers(1, 7))
        base = np.empty(some_shape(rank, (1, 2, 3, 4)), np.int8)
        if rng.random() < 0.5:
            axes = rng.permutation(rank) if rng.random() < 0.5 else [*range(1, rank), 0]
            base = base.transpose(axes)
        if rng.random() < 0.4:
            base = base[tuple(slice(None, None, int(rng.integers(1, 3))) for _ in range(rank))]
        primes = [p for d in base.shape for p in {1: [1], 2: [2], 3: [3], 4: [2, 2]}[d]]
        if rng.random() < 0.3:
            rng.shuffle(primes)
        target, at = [], 0
        while at < len(primes):
            step = int(rng.integers(1, 4))
            target.append(int(np.prod(primes[at:at + step])))
            at += step
            if rng.random() < 0.15:
                target.append(1)
        if len(target) > 8:
            continue
        view = base.view()
        try:
            view.shape = target
            out = elements(view)
        except AttributeError:
            out = None
        yield {"shape": list(base.shape), "strides": elements(base), "target": target, "out": out}


def slices():
    for size in (0, 1, 4, 5):
        for start in (-7, -5, -4, -1, 0, 1, 3, 5, 9):
            for stop in (-7, -4, -2, 0, 2, 4, 5, 9):
                for step in (1, 2, 5):
                    yield {"size": size, "range": [start, stop, step], "out": [*range(size)[start:stop:step]]}


def windows():
    for size in (1, 2, 5, 6, 7, 11):
        for kernel in (1, 2, 3, 4):
            for stride in (1, 2, 3, 5):
                for pad in range(kernel // 2 + 1):
                    for dilation in (1, 2):
                        if dilation * (kernel - 1) + 1 > size + 2 * pad:
                            continue
                        x = torch.zeros(1, 1, size)
                        pooled = [torch.nn.functional.max_pool1d(x, kernel, stride, pad, dilation, ceil_mode=ceil).shape[2]
                                  for ceil in (False, True)]
                        yield {"size": size, "kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation,
                               "pool": pooled, "conv": torch.nn.functional.conv1d(x, torch.zeros(1, 1, kernel), None, stride, pad, dilation).shape[2]}


def main():
    parts = {"broadcast": broadcasts(), "reshape": reshapes(), "slice": slices(), "window": windows(),
             "contiguous": ({"shape": s, "strides": elements(np.empty(s, np.int8))} for s in (some_shape(r, (1, 2, 3, 5)) for r in range(9)))}
    text = ",\n".join(f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]" for name, cases in parts.items())
    (pathlib.Path(__file__).parent / "quant/shapes.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()
