#!/usr/bin/env python3
"""Makes quant/choices.json: scales and zero points that ONNX Runtime's tool and PyTorch's observer choose for ranges, in the
corners of their rules: fewer bits, narrow ends, ranges of integers that are given, ranges that vanish or lie on one side.
Those of TensorFlow Lite are the arithmetic of ChooseQuantizationParams in its quantization_util.h, in NumPy.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_choices.py
"""

import json
import pathlib

import numpy as np
import torch
from onnx import TensorProto
from onnxruntime.quantization.quant_utils import compute_scale_zp, get_qmin_qmax_for_qType

RANGES = [(-1.0, 1.0), (-0.3, 2.5), (0.25, 4.0), (-7.5, -0.5), (0.0, 0.0), (-1e-3, 3e-3), (-200.0, 1000.0), (-6.1, 0.0)]
ONNX_TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "uint16": TensorProto.UINT16, "int16": TensorProto.INT16}
EPS = 2.0**-23


def row(numerics, dtype, symmetric, options, low, high, scale, zero):
    return {"numerics": numerics, "dtype": dtype, "symmetric": symmetric, "options": options, "min": float(np.float32(low)),
            "max": float(np.float32(high)), "scale": float(np.float32(scale)), "zero": int(zero)}


def of_onnx_runtime():
    for dtype, code in ONNX_TYPES.items():
        signed = dtype.startswith("int")
        for symmetric in (False, True):
            for reduce in (False, True):
                if reduce and symmetric != signed:
                    continue  # rules of its tool that qquantizer_choose does not have, as its page says
                low_int, high_int = get_qmin_qmax_for_qType(code, reduce_range=reduce, symmetric=symmetric)
                for low, high in RANGES:
                    zero, scale = compute_scale_zp(np.float32(low), np.float32(high), low_int, high_int, symmetric)
                    options = {"reduce_range": reduce, "narrow_range": symmetric and signed and not reduce}
                    if low == high:
                        continue  # the zero point of a range that vanishes is 0 there, whatever the type
                    yield row("onnx", dtype, symmetric, options, low, high, scale, zero)


def of_torch():
    for dtype, code, ends in (("uint8", torch.quint8, [None, (0, 15), (0, 127), (0, 3)]),
                              ("int8", torch.qint8, [None, (-8, 7), (-127, 127), (-64, 63)])):
        for symmetric in (False, True):
            scheme = torch.per_tensor_symmetric if symmetric else torch.per_tensor_affine
            for given in ends:
                for low, high in RANGES:
                    more = {} if given is None else {"quant_min": given[0], "quant_max": given[1]}
                    observer = torch.ao.quantization.MinMaxObserver(dtype=code, qscheme=scheme, eps=EPS, **more)
                    observer(torch.tensor([low, high], dtype=torch.float32))
                    scale, zero = observer.calculate_qparams()
                    yield row("fbgemm", dtype, symmetric, more, low, high, scale.item(), zero.item())


def of_tflite():
    ties = [(-1.5, 253.5), (-2.5, 252.5), (-253.5, 1.5), (-127.5, 127.5)]
    for low, high in [(float(np.float32(a)), float(np.float32(b))) for a, b in RANGES + ties]:
        low_real, high_real = np.float64(min(low, 0)), np.float64(max(high, 0))
        if low_real == high_real:
            yield row("tflite", "int8", False, {}, low, high, 1, 0)
            yield row("tflite", "int8", True, {}, low, high, 1, 0)
            continue
        scale = (high_real - low_real) / 255
        of_low, of_high = -128 - low_real / scale, 127 - high_real / scale
        chosen = of_low if 128 + abs(low_real / scale) < 127 + abs(high_real / scale) else of_high
        away = np.copysign(np.floor(abs(chosen) + 0.5), chosen)
        yield row("tflite", "int8", False, {}, low, high, scale, int(np.clip(away, -128, 127)))
        yield row("tflite", "int8", True, {}, low, high, np.float32(max(-low_real, high_real)) / np.float32(127), 0)


def of_fused():
    """FusedMovingAvgObsFakeQuantize, whose first tensor is its range."""
    for low_int, high_int in ((0, 255), (0, 127), (-128, 127), (-8, 7)):
        for symmetric in (False, True):
            for low, high in RANGES + [(-1e-7, 2e-6), (-3e-6, 1e-9), (1e-6, 2e-6), (-1e-39, 1e-39), (-1.5, 253.5)]:
                low_seen, high_seen = torch.tensor([float("inf")]), torch.tensor([float("-inf")])
                scale, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
                torch.fused_moving_avg_obs_fake_quant(torch.tensor([low, high]), torch.tensor([1]), torch.tensor([1]),
                                                      low_seen, high_seen, scale, zero, 1.0, low_int, high_int, 0, False,
                                                      symmetric)
                yield row("fused", "int8", symmetric, {"quant_min": low_int, "quant_max": high_int}, low, high,
                          scale.item(), zero.item())


def main():
    rows = [*of_onnx_runtime(), *of_torch(), *of_tflite(), *of_fused()]
    text = ",\n".join(json.dumps(r) for r in rows)
    (pathlib.Path(__file__).parent / "quant/choices.json").write_text(f"[\n{text}\n]\n")
    print(len(rows))


if __name__ == "__main__":
    main()
