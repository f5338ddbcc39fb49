#!/usr/bin/env python3
"""Makes quant/calibrators.json: ranges, scales and zero points that calibrators choose after batches of data.

  fixed                      torch FixedQParamsObserver
  max, nvidia_*              the formulas of NVIDIA's pytorch-quantization (calib/max.py, calib/histogram.py) in NumPy: the
                             package needs CUDA and a compiler to be installed. Bin edges are those of numpy.linspace and
                             numpy multiples, because the last bits of torch.linspace and torch.arange depend on the CPU
  percentile, entropy        onnxruntime.quantization's HistogramCollector and compute_scale_zp themselves

No search in these cases is decided by the rounding of a sum: the best candidate leads by a margin, or the case is left
out.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_calibrators.py
"""

import contextlib
import io
import pathlib

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import quant_utils
from onnxruntime.quantization.calibrate import HistogramCollector
from torch.ao.quantization.observer import FixedQParamsObserver

import golden_json


def f32(*values):
    return np.array(values, np.float32)


def noise(seed, *shape, scale=1.0, shift=0.0):
    values = np.random.default_rng(seed).normal(size=shape) * scale + shift
    return values.round(3).astype(np.float32)


def heavy(seed, count, scale=1.0):
    return (np.random.default_rng(seed).standard_t(3, size=count) * scale).round(3).astype(np.float32)


SEQUENCES = {
    "normal": [noise(1, 400)],
    "normal_batches": [noise(2 + i, 300) for i in range(3)],
    "growing": [noise(10 + i, 300, scale=1.4**i) for i in range(4)],
    "shrinking": [noise(20 + i, 300, scale=2.0**-i) for i in range(3)],
    "relu": [np.maximum(noise(30 + i, 300, scale=1 + 0.3 * i), 0) for i in range(3)],
    "heavy_tails": [heavy(40, 500), heavy(41, 500)],
    "outlier": [noise(50, 300), f32(6.5), noise(51, 300)],
    "positive": [np.abs(noise(60, 200)) + np.float32(0.5), np.abs(noise(61, 200)) + np.float32(0.25)],
    "negative": [-np.abs(noise(70, 200)) - np.float32(0.5), -np.abs(noise(71, 200))],
    "constant": [np.full(9, 2.5, np.float32), np.full(3, 2.5, np.float32)],
    "zeros_then_range": [np.zeros(50, np.float32), noise(80, 200)],
    "channels": [noise(90 + i, 3, 4, 5, scale=1.2**i) for i in range(2)],
}


# ------------------------------------------------------------------------------------------------------------- torch


def fixed():
    for scale, zero_point, dtype in ((1 / 256, 0, "uint8"), (2 / 256, 128, "uint8"), (0.05, -3, "int8")):
        kind = {"uint8": torch.quint8, "int8": torch.qint8}[dtype]
        observer = FixedQParamsObserver(scale, zero_point, dtype=kind, quant_min=np.iinfo(dtype).min,
                                        quant_max=np.iinfo(dtype).max)  # fmt: skip
        for batch in SEQUENCES["normal_batches"]:
            observer(torch.from_numpy(batch))
        chosen = [tensor.numpy() for tensor in observer.calculate_qparams()]
        attrs = {"dtype": dtype, "scale": scale, "zero_point": zero_point}
        yield "fixed", "normal_batches", attrs, chosen[0], chosen[1].astype(np.int64)


# ------------------------------------------------------------------------------------------------------------ NVIDIA


def nvidia_grid(amax, dtype):
    """tensor_quant: the scale of the toolkit is bound / amax in float32; this is its inverse, the step."""
    amax = np.asarray(amax, np.float32)
    bound = np.float32(np.iinfo(dtype).max)
    vanishing = amax <= np.float32(2.0**-24)
    steps = 1 / (bound / np.where(vanishing, bound, amax)).astype(np.float64)
    return np.where(vanishing, 1.0, steps), np.zeros(amax.shape, np.int64)


def nvidia_max():
    for sequence, axis in (*((name, None) for name in SEQUENCES), ("channels", 0), ("channels", 1), ("channels", 2)):
        for dtype in ("int8", "uint8"):
            batches = SEQUENCES[sequence]
            if dtype == "uint8" and min(batch.min() for batch in batches) < 0:
                continue  # the toolkit refuses this combination
            reduced = tuple(i for i in range(batches[0].ndim) if i != axis)
            amax = np.max([np.abs(batch).max(axis=reduced if axis is not None else None) for batch in batches], axis=0)
            scheme = "per_tensor_symmetric" if axis is None else "per_channel_symmetric"
            attrs = {"dtype": dtype, "scheme": scheme, "numerics": "nvidia"} | ({} if axis is None else {"axis": axis})
            yield "max", sequence, attrs, *nvidia_grid(amax, dtype)


def nvidia_histogram(batches, bins):
    """HistogramCalibrator.collect: bins over [0, max] of the first batch, more of their width as the range grows."""
    counts = edges = None
    for batch in batches:
        x = np.abs(batch).ravel()
        top = x.max()
        if counts is None:
            edges = np.linspace(np.float32(0), top, bins + 1, dtype=np.float32)
            counts = np.zeros(bins, np.int64)
        elif top > edges[-1]:
            width = edges[1] - edges[0]
            counts = np.append(counts, np.zeros(int(np.ceil(top / width)) - counts.size, np.int64))
            edges = np.arange(int(np.ceil(float(top + width) / float(width))), dtype=np.float32) * width
        # torch.histc
        places = (x * np.float32(counts.size) / edges[-1]).astype(np.int64)[x <= edges[-1]]
        counts += np.bincount(np.minimum(places, counts.size - 1), minlength=counts.size)
        check = torch.histc(torch.from_numpy(x), counts.size, min=0, max=float(edges[-1])).numpy()
        assert (check == np.bincount(np.minimum(places, counts.size - 1), minlength=counts.size)).all()
    return counts, edges


def leads(losses, best):
    """Whether the best candidate wins by more than any order of summing could change; exact ties are left alone."""
    others = [loss for loss in losses if np.isfinite(loss) and loss != losses[best]]
    return not others or min(others) - losses[best] > 1e-6 * min(others)


def percentile_amax(counts, edges, percentile):
    return edges[np.searchsorted(np.cumsum(counts / counts.sum()), percentile / 100)]


def entropy_amax(counts, edges, levels, start=128):
    bins = counts.copy()
    bins[0] = bins[1]
    losses = []
    for count in range(start, bins.size + 1):
        space = np.linspace(0, count, num=levels + 1)
        level = np.digitize(range(count), space) - 1
        level[bins[:count] == 0] = -1
        reference = bins[:count].astype(np.float64)
        filled = reference > 0
        if not filled.any():
            losses.append(np.inf)  # the toolkit's NaN, which its argmin takes for the least, is not followed
            continue
        means = np.bincount(level[filled], reference[filled]) / np.maximum(np.bincount(level[filled]), 1)
        density = np.where(filled, means[level], 0)
        reference[-1] += bins[count:].sum()
        p, q = reference / reference.sum(), density / density.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            losses.append(np.where(p > 0, p * np.log(p / q), 0).sum())
    last = len(losses) - 1 - int(np.argmin(losses[::-1]))
    assert leads(losses, last)
    return edges[last + start]


def mse_amax(counts, edges, bound, start=128):
    centres = (edges[1:] + edges[:-1]) / np.float32(2)
    losses = []
    for i in range(start, centres.size):
        scale = np.float32(bound) / centres[i]
        quantized = np.clip(np.rint(centres * scale), -bound, bound).astype(np.float32) / scale
        losses.append(((quantized - centres) ** 2 * counts.astype(np.float32)).astype(np.float64).mean())
    best = int(np.argmin(losses))
    assert leads(losses, best)
    return centres[start + best]


def nvidia_searches():
    for sequence, batches in SEQUENCES.items():
        if not batches[0].any():
            continue  # the toolkit divides by a width of zero
        for dtype in ("int8", "uint8"):
            if dtype == "uint8" and min(batch.min() for batch in batches) < 0:
                continue
            bound = np.iinfo(dtype).max
            attrs = {"dtype": dtype, "scheme": "per_tensor_symmetric", "numerics": "nvidia"}
            for bins in (2048, 300):
                counts, edges = nvidia_histogram(batches, bins)
                for percentile in (99.99, 99.0, 50.0, 100.0):
                    amax = percentile_amax(counts, edges, percentile)
                    options = attrs | {"bins": bins, "percentile": percentile}
                    yield "nvidia_percentile", sequence, options, *nvidia_grid(amax, dtype)
                amax = entropy_amax(counts, edges, bound + 1)
                yield "nvidia_entropy", sequence, attrs | {"bins": bins}, *nvidia_grid(amax, dtype)
                amax = mse_amax(counts, edges, bound)
                yield "nvidia_mse", sequence, attrs | {"bins": bins}, *nvidia_grid(amax, dtype)


# ------------------------------------------------------------------------------------------------------ ONNX Runtime


GRIDS = {
    "affine": {"dtype": "uint8", "scheme": "per_tensor_affine", "numerics": "onnx"},
    "symmetric": {"dtype": "int8", "scheme": "per_tensor_symmetric", "numerics": "onnx", "narrow_range": 1},
}


def onnx_grid(low, high, grid):
    symmetric = grid == "symmetric"
    limits = np.array([-127, 127], np.int8) if symmetric else np.array([0, 255], np.uint8)
    zero_point, scale = quant_utils.compute_scale_zp(low, high, *limits, symmetric=symmetric)
    return np.float32(scale), np.int64(zero_point)


def onnx_range(batches, method, bins, symmetric=True, percentile=99.999):
    collector = HistogramCollector(method, symmetric, bins, 128, percentile, "same")
    with contextlib.redirect_stdout(io.StringIO()):
        for batch in batches:
            collector.collect({"x": batch})
        low, high = collector.compute_collection_result()["x"][:2]
    return low, high, collector.histogram_dict["x"]


def smooth(values):
    zeros = np.count_nonzero(values == 0)
    return np.where(values == 0, 1e-4, values - 1e-4 * zeros / (values.size - zeros))


def is_decided(low, high, histogram):
    """Whether the search has a clear winner, not one that the rounding of ONNX Runtime's float32 sums picks."""
    counts, edges, least, most = histogram[:4]
    zero, losses, ranges = counts.size // 2, [], []
    for half in range(64, zero + 1):
        begin, end = zero - half, min(zero + half + 1, counts.size)
        inside = counts[begin:end]
        p = inside.astype(np.float64)
        p[0] += counts[:begin].sum()
        p[-1] += counts[end:].sum()
        merged, q = inside.size // 128, np.zeros(inside.size)
        for level in range(128):
            run = slice(level * merged, (level + 1) * merged)
            total = inside[run].sum() + (inside[128 * merged :].sum() if level == 127 else 0)
            if np.count_nonzero(p[run]):
                q[run] = total // np.count_nonzero(p[run])
        ranges.append((max(edges[begin], least), min(edges[end], most)))
        if not q.any():
            losses.append(np.inf)
            continue
        p, q = smooth(p), smooth(q)
        losses.append((p / p.sum() * np.log(p / p.sum() / (q / q.sum()))).sum())
    best = int(np.argmin(losses))
    if not leads(losses, best):
        return False
    assert ranges[best] == (low, high)
    return True


def onnx_searches():
    for sequence, batches in SEQUENCES.items():
        for bins in (2048, 100):
            for percentile in (99.999, 99.0, 60.0, 100.0):
                for absolute in (1, 0):
                    low, high, _ = onnx_range(batches, "percentile", bins, bool(absolute), percentile)
                    for grid, attrs in GRIDS.items():
                        options = attrs | {"bins": bins, "percentile": percentile, "absolute": absolute}
                        yield "percentile", sequence, options, *onnx_grid(low, high, grid)
        for bins in (128, 150, 512):
            low, high, histogram = onnx_range(batches, "entropy", bins)
            if not is_decided(low, high, histogram):
                print(f"left out: entropy of {sequence} in {bins} bins")
                continue
            for grid, attrs in GRIDS.items():
                yield "entropy", sequence, attrs | {"bins": bins}, *onnx_grid(low, high, grid)


def main():
    cases = [
        {"name": f"{kind}/{sequence}/{i}", "observer": kind, "sequence": sequence, "attrs": attrs,
         "scale": np.atleast_1d(scale), "zero_point": np.atleast_1d(zero_point)}
        for source in (fixed, nvidia_max, nvidia_searches, onnx_searches)
        for i, (kind, sequence, attrs, scale, zero_point) in enumerate(source())
    ]  # fmt: skip
    document = {"source": f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, numpy {np.__version__}"}
    document.update(sequences=SEQUENCES, cases=cases)
    golden_json.write(pathlib.Path(__file__).parent / "quant" / "calibrators.json", document)
    print(f"calibrators: {len(cases)} cases")


if __name__ == "__main__":
    main()
