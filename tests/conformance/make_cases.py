#!/usr/bin/env python3
"""Makes torch.json: conformance cases whose expectations PyTorch computes, or NumPy by the formulas of NVIDIA's toolkit.

Run it on a CPU with VNNI: on others PyTorch's FBGEMM adds pairs of products in 16 bits, which overflow.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/conformance/make_cases.py
"""

import json
import pathlib
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import torch
from torch.ao.quantization import FixedQParamsObserver, HistogramObserver, MinMaxObserver, QConfig, get_default_qconfig
from torch.ao.quantization import default_per_channel_weight_observer, default_weight_observer

warnings.simplefilter("ignore")
TYPES = {"int8": torch.qint8, "uint8": torch.quint8, "int32": torch.qint32}
CASES = []


def numbers(t):
    """Shortest decimals of float32, integers as they are."""
    array = (t.numpy() if isinstance(t, torch.Tensor) else np.asarray(t)).ravel()
    if array.dtype.kind == "f":
        return [float(str(v)) for v in array.astype(np.float32)]
    return [int(v) for v in array]


def case(name, rows, *steps):
    CASES.append({"name": name, "rows": rows, "steps": list(steps)})


def call(function, out=None, **arguments):
    step = {"call": function, "with": arguments}
    if out:
        step["out"] = out
    return step


def floats(name, t):
    return call("qtensor_create", name, dtype="float32", shape=list(t.shape), data=numbers(t))


def grid(name, dtype, scale, zero):
    return call("qquantizer_create", name, dtype=dtype, scheme="per_tensor_affine", axis=0, scales=[scale], zero_points=[zero])


def channels(name, dtype, scales, zeros, axis):
    return call("qquantizer_create", name, dtype=dtype, scheme="per_channel_affine", axis=axis,
                scales=[float(s) for s in scales], zero_points=[int(z) for z in zeros])  # fmt: skip


def text(t):
    return str(t).replace("torch.", "")


def expected(name, t, **more):
    """Everything about a quantized tensor of PyTorch."""
    if t.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        quantizer = {"scheme": 0, "scales": [t.q_scale()], "zero_points": [t.q_zero_point()]}
    else:
        quantizer = {"scheme": 2, "axis": t.q_per_channel_axis(), "scales": t.q_per_channel_scales().tolist(),
                     "zero_points": t.q_per_channel_zero_points().tolist()}  # fmt: skip
    dtype = {v: k for k, v in TYPES.items()}[t.dtype]
    return {"expect": f"${name}", "dtype": dtype, "shape": list(t.shape), "data": numbers(t.int_repr()), "quantizer": quantizer, **more}


def expected_floats(name, t, **more):
    return {"expect": f"${name}", "dtype": "float32", "shape": list(t.shape), "data": numbers(t), **more}


# The seeds' own example.
X = torch.tensor([0.1231, -1.9974, 0.2806, 0.6392, -0.2118, 0.6879, -0.1315, -0.4067, 0.5414, -0.4595, -1.7321, -0.5273]).view(2, 2, 3)


def quantize_and_text():
    q = torch.quantize_per_tensor(X, 1e-4, 2, torch.qint32)
    case("seed/per_tensor", ["T01", "T03"], floats("x", X), grid("g", "int32", 1e-4, 2),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), expected("q", q, text=text(q)))  # fmt: skip
    scales, zeros = torch.tensor([1e-1, 1e-2, 1e-3], dtype=torch.float64), torch.tensor([-1, 0, 1])
    q = torch.quantize_per_channel(X, scales, zeros, 2, torch.qint32)
    case("seed/per_channel", ["T02", "T04"], floats("x", X), channels("g", "int32", scales, zeros, 2),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), expected("q", q, text=text(q)))  # fmt: skip
    rng = torch.Generator().manual_seed(1)
    for dtype in TYPES:
        for shape in ((7,), (3, 5), (2, 3, 4), (1, 2, 2, 3)):
            x = (torch.randn(shape, generator=rng) * 3).round(decimals=3)
            zero = 3 if dtype != "uint8" else 120
            q = torch.quantize_per_tensor(x, 0.05, zero, TYPES[dtype])
            case(f"per_tensor/{dtype}/{'x'.join(map(str, shape))}", ["T01", "T03", "T07", "T08"], floats("x", x),
                 grid("g", dtype, 0.05, zero), call("qtensor_quantize", "q", x="$x", quantizer="$g"),
                 expected("q", q, text=text(q)), call("qtensor_dequantize", "y", x="$q"),
                 expected_floats("y", q.dequantize()))  # fmt: skip
            axis = len(shape) - 1
            count = shape[axis]
            scales = (torch.rand(count, generator=rng, dtype=torch.float64) * 0.1 + 0.01).round(decimals=4)
            zeros = torch.randint(0, 20, (count,), generator=rng)
            q = torch.quantize_per_channel(x, scales, zeros, axis, TYPES[dtype])
            case(f"per_channel/{dtype}/{'x'.join(map(str, shape))}", ["T02", "T04", "T07", "T08"], floats("x", x),
                 channels("g", dtype, scales, zeros, axis - len(shape)), call("qtensor_quantize", "q", x="$x", quantizer="$g"),
                 expected("q", q, text=text(q)), call("qtensor_dequantize", "y", x="$q"),
                 # Per channel PyTorch multiplies by the double scale: one unit in the last place of values up to 8.
                 expected_floats("y", q.dequantize(), tolerance=5e-7))  # fmt: skip
    x = torch.tensor([-1.0, 0, 1, 20])
    q = torch.quantize_per_tensor(x, 0.1, 10, torch.qint8)
    case("seed/saturates", ["D01"], floats("x", x), grid("g", "int8", 0.1, 10),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), expected("q", q, text=text(q)),
         call("qtensor_dequantize", "y", x="$q"), expected_floats("y", q.dequantize()))  # fmt: skip
    x = torch.tensor([0.273939937])
    q = torch.quantize_per_tensor(x, 0.00214854861, 0, torch.quint8)
    case("reciprocal_not_division", ["T01"], floats("x", x), grid("g", "uint8", 0.00214854861, 0),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), expected("q", q))  # fmt: skip
    for name, t in {"ints": torch.arange(6).view(2, 3), "long_line": torch.arange(40) * 1.5, "wide": torch.tensor([1e-5, 1.0, 1e5]),
                    "whole": torch.tensor([1.0, 2, 30]), "nan": torch.tensor([float("nan"), 1.5, float("inf")]),
                    "summary": torch.arange(2000.0).view(2, 1000), "scalar": torch.tensor(2.5)}.items():  # fmt: skip
        dtype = {torch.int64: "int64", torch.float32: "float32"}[t.dtype]
        data = [("nan" if v != v else "inf" if v == float("inf") else v) for v in numbers(t)]
        case(f"text/{name}", ["T03"], call("qtensor_create", "x", dtype=dtype, shape=list(t.shape), data=data),
             {"expect": "$x", "text": text(t)})  # fmt: skip
    empty = torch._empty_affine_quantized((0, 1), scale=1.0, zero_point=2, dtype=torch.quint8)
    case("text/empty", ["T03", "T24"], grid("g", "uint8", 1.0, 2),
         call("qtensor_create", "x", dtype="uint8", shape=[0, 1], quantizer="$g"), {"expect": "$x", "text": text(empty)})  # fmt: skip


BYTES = [66, 95, 39, 25, 1, 71, 94, 43, 13, 48]


def tensor_methods():
    q = torch._make_per_tensor_quantized_tensor(torch.tensor(BYTES, dtype=torch.uint8), 1e-4, 2)
    made = (grid("g", "uint8", 1e-4, 2), call("qtensor_create", "q", dtype="uint8", shape=[10], data=BYTES, quantizer="$g"))
    case("seed/from_integers", ["T06", "T25"], *made, expected("q", q, text=text(q)))
    case("seed/dequantize", ["T08"], *made, call("qtensor_dequantize", "y", x="$q"), expected_floats("y", q.dequantize()))
    case("seed/select", ["T09"], *made, call("qtensor_select", "v", t="$q", axis=0, index=2), expected("v", q[2], text=text(q[2])))
    case("seed/slice", ["T09"], *made, call("qtensor_slice", "v", t="$q", axis=0, start=2, stop=-1, step=3), expected("v", q[2:-1:3]))
    changed = q.clone()
    changed[0] = 3.5
    case("seed/assign", ["T10", "T19"], *made, call("qtensor_select", "v", t="$q", axis=0, index=0), floats("s", torch.tensor(3.5)),
         {"call": "qtensor_item", "with": {"t": "$v"}, "equals": q[0].item()},
         call("qtensor_copy", dst="$v", src="$s"), expected("q", changed),
         {"call": "qtensor_item", "with": {"t": "$v"}, "equals": changed[0].item()})  # fmt: skip
    rows = torch.quantize_per_tensor(X.view(4, 3), 0.1, 3, torch.qint8)
    changed = rows.clone()
    changed[1] = -0.5
    case("assign/row", ["T10"], floats("x", X.view(4, 3)), grid("g", "int8", 0.1, 3), call("qtensor_quantize", "q", x="$x", quantizer="$g"),
         call("qtensor_select", "v", t="$q", axis=0, index=1), floats("s", torch.tensor(-0.5)),
         call("qtensor_copy", dst="$v", src="$s"), expected("q", changed))  # fmt: skip
    a = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
    b = torch.quantize_per_tensor(X * 2, 1.0, -1, torch.qint8)
    copied = b.clone()
    copied.copy_(a)
    case("seed/copy", ["T11"], floats("x", X), floats("y", X * 2), grid("g", "int8", 0.1, 0), grid("h", "int8", 1.0, -1),
         call("qtensor_quantize", "a", x="$x", quantizer="$g"), call("qtensor_quantize", "b", x="$y", quantizer="$h"),
         call("qtensor_copy", dst="$b", src="$a"), expected("b", copied, text=text(copied)))  # fmt: skip
    taken = torch.quantize_per_tensor(X * 0, 1.0, -1, torch.qint8)
    taken.copy_(X * 2)
    case("copy/float_to_quantized", ["T11"], floats("z", X * 0), floats("y", X * 2), grid("h", "int8", 1.0, -1),
         call("qtensor_quantize", "b", x="$z", quantizer="$h"), call("qtensor_copy", dst="$b", src="$y"), expected("b", taken))  # fmt: skip
    scales, zeros = torch.tensor([0.1, 0.02, 0.003], dtype=torch.float64), torch.tensor([-1, 0, 1])
    q = torch.quantize_per_channel(X, scales, zeros, 2, torch.qint8)
    # PyTorch has no views of these: its integers, permuted, and the axis where the channels went.
    turned = torch._make_per_channel_quantized_tensor(q.int_repr().permute(2, 0, 1).contiguous(), scales, zeros, 0)
    case("permute/per_channel", ["T12"], floats("x", X), channels("g", "int8", scales, zeros, 2),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), call("qtensor_permute", "p", t="$q", axes=[2, 0, 1]),
         expected("p", turned), {"call": "qtensor_strides", "with": {"t": "$p"}, "equals": [1, 6, 3]},
         call("qtensor_contiguous", "c", t="$p"), expected("c", turned),
         {"call": "qtensor_strides", "with": {"t": "$c"}, "equals": [4, 2, 1]})  # fmt: skip
    q = torch.quantize_per_tensor(X.view(4, 3), 0.1, 3, torch.qint8)
    case("permute/per_tensor", ["T12"], floats("x", X.view(4, 3)), grid("g", "int8", 0.1, 3),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), call("qtensor_permute", "p", t="$q", axes=[1, 0]),
         expected("p", q.transpose(0, 1)), call("qtensor_contiguous", "c", t="$p"), expected("c", q.permute([1, 0]).contiguous()))  # fmt: skip


def unpacked(q):
    """The integers of a tensor, whatever it is stored as."""
    bits = {torch.quint8: 8, torch.quint4x2: 4, torch.quint2x4: 2}[q.dtype]
    stored = q.int_repr().numpy().ravel()
    return np.stack([stored >> shift & (2**bits - 1) for shift in range(0, 8, bits)], 1).ravel()[: q.numel()]


def float_qparams():
    """Weights of embeddings: per channel, with zero points that are floats."""
    rng = torch.Generator().manual_seed(21)
    x = (torch.randn(6, 4, generator=rng) * 2 + 3).round(decimals=3)
    kinds = {"uint8": torch.quint8, "uint4": torch.quint4x2, "uint2": torch.quint2x4}
    name = {"uint8": torch.quint8}
    for dtype, kind in kinds.items():
        for axis in (0, 1):
            low, high = x.amin(1 - axis), x.amax(1 - axis)
            scales = (high - low) / {"uint8": 255, "uint4": 15, "uint2": 3}[dtype] * 0.9  # the largest saturate
            zeros = -low / scales
            q = torch.quantize_per_channel(x, scales, zeros, axis, kind)
            made = [floats("x", x), call("qquantizer_create", "g", dtype=dtype, scheme="per_channel_affine_float_qparams", axis=axis - 2 * axis,
                                         scales=numbers(scales), attrs={"float_zero_points": numbers(zeros)}),
                    call("qtensor_quantize", "q", x="$x", quantizer="$g")]  # fmt: skip
            integers = {"expect": "$q", "dtype": dtype, "shape": list(x.shape), "data": unpacked(q).tolist()}
            if dtype in name:
                integers["text"] = text(q)
            back = [call("qtensor_dequantize", "y", x="$q"), expected_floats("y", q.dequantize(), tolerance=1e-6)]
            file = [call("qtensor_save", t="$q", path="@q.safetensors"), call("qtensor_load", "again", path="@q.safetensors"),
                    {**call("qtensor_equal", a="$again", b="$q"), "equals": 1}, call("qtensor_load_rows", "rows", path="@q.safetensors", start=1, stop=4),
                    call("qtensor_dequantize", "r", x="$rows"), expected_floats("r", q.dequantize()[1:4], tolerance=1e-6)]  # fmt: skip
            views = [call("qtensor_slice", "part", t="$q", axis=axis, start=1, stop=3, step=1), call("qtensor_dequantize", "p", x="$part"),
                     expected_floats("p", q.dequantize().narrow(axis, 1, 2), tolerance=1e-6), call("qtensor_permute", "t", t="$q", axes=[1, 0]),
                     call("qtensor_dequantize", "u", x="$t"), expected_floats("u", q.dequantize().T, tolerance=1e-6)]  # fmt: skip
            case(f"float_qparams/{dtype}/axis{axis}", ["T27"], *made, integers, *back, *file, *views,
                 {**call("qquantizer_scheme", q="$g"), "equals": 6}, {**call("qquantizer_zero_points", q="$g"), "equals": [0] * len(scales)},
                 {**call("qquantizer_float_zero_points", q="$g"), "equals": numbers(zeros)})  # fmt: skip
    # torch.ao.nn.quantized.Embedding: what its observer chooses, its integers, and what it looks up.
    embedding = torch.nn.Embedding(6, 4, _weight=x)
    embedding.qconfig = torch.ao.quantization.float_qparams_weight_only_qconfig
    indices = torch.tensor([[5, 0, 3], [3, 1, 1]])
    int8 = torch.ao.nn.quantized.Embedding.from_float(embedding)
    weight = int8.weight()
    chosen = [floats("x", x), call("qobserver_create", "o", kind="minmax", attrs={"dtype": "uint8", "scheme": "per_channel_affine_float_qparams", "axis": 0}),
              call("qobserver_observe", o="$o", x="$x"), call("qobserver_save", "saved", o="$o"), call("qobserver_quantizer", "g", o="$o"),
              {**call("qquantizer_scales", q="$g"), "equals": weight.q_per_channel_scales().tolist()},
              {**call("qquantizer_float_zero_points", q="$g"), "equals": weight.q_per_channel_zero_points().tolist()},
              call("qtensor_quantize", "w", x="$x", quantizer="$g"), {"expect": "$w", "data": numbers(weight.int_repr())},
              call("qtensor_create", "i", dtype="int64", shape=[2, 3], data=numbers(indices))]  # fmt: skip
    case("float_qparams/embedding", ["T27"], *chosen, call("qop_run", ["y"], op="Gather", inputs=["$w", "$i"], output_count=1),
         expected_floats("y", int8(indices), tolerance=1e-6))  # fmt: skip
    ranges = call("qquantizer_choose", "chosen", dtype="uint8", scheme="per_channel_affine_float_qparams", axis=0, mins=numbers(x.amin(1)), maxs=numbers(x.amax(1)))
    case("float_qparams/choose", ["T27"], ranges, {**call("qquantizer_scales", q="$chosen"), "equals": weight.q_per_channel_scales().tolist()},
         {**call("qquantizer_float_zero_points", q="$chosen"), "equals": weight.q_per_channel_zero_points().tolist()},
         {**call("qquantizer_float_zero_points", q="$chosen"), "equals": weight.q_per_channel_zero_points().tolist()})  # fmt: skip
    # No integer product knows such weights: they count as their dequantized values.
    a = torch.randn(3, 4, generator=rng).round(decimals=3)
    case("float_qparams/operators", ["T27"], *chosen, floats("a", a), grid("ga", "uint8", 0.02, 128), call("qtensor_quantize", "qa", x="$a", quantizer="$ga"),
         call("qop_linear", "y", x="$a", weight="$w"), expected_floats("y", a @ weight.dequantize().T, tolerance=1e-5),
         call("qop_linear", "z", x="$qa", weight="$w"),
         expected_floats("z", torch.quantize_per_tensor(a, 0.02, 128, torch.quint8).dequantize() @ weight.dequantize().T, tolerance=1e-4))  # fmt: skip
    float_grid = dict(dtype="uint8", scheme="per_channel_affine_float_qparams", axis=0, scales=[0.5, 1.0])
    fails = lambda step, status, message: {**step, "status": status, "message": message}  # noqa: E731
    zeros = {"float_zero_points": [0.5, 1.5]}
    case("float_qparams/refused", ["T27"],
         fails(call("qquantizer_create", **float_grid), "QTN_EINVAL",
               "qquantizer_create: zero points of the scheme per_channel_affine_float_qparams are the attribute float_zero_points"),
         fails(call("qquantizer_create", **{**float_grid, "scheme": "per_channel_affine"}, attrs=zeros), "QTN_EINVAL",
               "qquantizer_create: zero points of the scheme per_channel_affine are integers, not float_zero_points"),
         fails(call("qquantizer_create", **float_grid, attrs={"float_zero_points": [0.5]}), "QTN_EINVAL", "quantizer: 2 scales but 1 float zero points"),
         fails(call("qquantizer_create", **float_grid, attrs={**zeros, "numerics": "onnx"}), "QTN_EUNSUPPORTED",
               "quantizer: float zero points are of numerics fbgemm and qnnpack, not of onnx"),
         fails(call("qquantizer_create", **float_grid, attrs={**zeros, "block_size": 2}), "QTN_EINVAL", "quantizer: block size 2 for a scheme without blocks"),
         fails(call("qobserver_create", kind="minmax", attrs={"scheme": "per_channel_affine_float_qparams", "block_size": 2}), "QTN_EINVAL",
               "quantizer: block size 2 for a scheme without blocks"),
         fails(call("qquantizer_create", **{**float_grid, "dtype": "int8"}, attrs=zeros), "QTN_EUNSUPPORTED",
               "quantizer: float zero points are for uint8, uint4 and uint2, not for int8"),
         call("qquantizer_create", "g", **float_grid, attrs=zeros), floats("x", torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"),
         fails(call("qtensor_select", t="$q", axis=0, index=0), "QTN_EUNSUPPORTED",
               "quantizer: per_tensor_affine has no float zero points; a slice along axis 0 keeps them"),
         fails(call("qop_fake_quantize", x="$x", quantizer="$g"), "QTN_EUNSUPPORTED", "fake_quantize: the quantizer has float zero points, not integers"))  # fmt: skip


def tiny_floats():
    """Types of floats of 8 and 4 bits as ml_dtypes rounds: quantized, stored and converted."""
    x = np.array([[0.1, -0.75, 2.0, 0.0], [1.26, 900.0, -1e9, 0.01]], np.float32)
    types = {"float8_e4m3fn": (ml_dtypes.float8_e4m3fn, 17), "float8_e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 18),
             "float8_e5m2": (ml_dtypes.float8_e5m2, 19), "float8_e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 20),
             "float4_e2m1": (ml_dtypes.float4_e2m1fn, 23)}  # fmt: skip
    for name, (dtype, code) in types.items():
        most = float(ml_dtypes.finfo(dtype).max)
        steps = x / np.float32(0.25)
        codes = np.clip(steps, -most, most).astype(dtype)
        cast = np.clip(x, -most, most).astype(dtype)
        case(f"tiny_floats/{name}", ["T27"], floats("x", torch.from_numpy(x)),
             call("qquantizer_create", "g", dtype=name, scheme="per_tensor_symmetric", axis=0, scales=[0.25]),
             call("qtensor_quantize", "q", x="$x", quantizer="$g"),
             {"expect": "$q", "dtype": name, "shape": [2, 4], "data": numbers(codes.view(np.uint8))},
             {**call("qtensor_nbytes", t="$q"), "equals": 4 if code == 23 else 8},
             call("qtensor_dequantize", "y", x="$q"), expected_floats("y", codes.astype(np.float32) * np.float32(0.25)),
             call("qtensor_save", t="$q", path="@q.safetensors"), call("qtensor_load", "again", path="@q.safetensors"),
             {**call("qtensor_equal", a="$again", b="$q"), "equals": 1},
             call("qtensor_slice", "part", t="$q", axis=1, start=1, stop=4, step=2), call("qtensor_dequantize", "p", x="$part"),
             expected_floats("p", (codes.astype(np.float32) * np.float32(0.25))[:, 1::2]),
             call("qop_run", ["c"], op="Cast", inputs=["$x"], output_count=1, attrs={"to": code}),
             {"expect": "$c", "dtype": name, "data": numbers(cast.view(np.uint8))},
             call("qop_run", ["b"], op="Cast", inputs=["$c"], output_count=1, attrs={"to": 1}),
             expected_floats("b", cast.astype(np.float32)))  # fmt: skip
    powers = onnx.numpy_helper.to_float8e8m0(x)
    case("tiny_floats/float8_e8m0", ["T27"], floats("x", torch.from_numpy(x)),
         call("qop_run", ["c"], op="Cast", inputs=["$x"], output_count=1, attrs={"to": 24}),
         {"expect": "$c", "dtype": "float8_e8m0", "data": numbers(powers.view(np.uint8))},
         call("qop_run", ["b"], op="Cast", inputs=["$c"], output_count=1, attrs={"to": 1}), expected_floats("b", powers.astype(np.float32)),
         {**call("qquantizer_create", dtype="float8_e8m0", scheme="per_tensor_symmetric", axis=0, scales=[0.25]), "status": "QTN_EDTYPE",
          "message": "qquantizer_create: float8_e8m0 holds no quantized values"})  # fmt: skip


def operators():
    rng = torch.Generator().manual_seed(2)
    x = (torch.randn(2, 3, 4, 4, generator=rng)).round(decimals=3)
    y = (torch.randn(2, 3, 4, 4, generator=rng)).round(decimals=3)
    qx, qy = torch.quantize_per_tensor(x, 0.03125, 100, torch.quint8), torch.quantize_per_tensor(y, 0.0625, 128, torch.quint8)
    two = (floats("x", x), floats("y", y), grid("g", "uint8", 0.03125, 100), grid("h", "uint8", 0.0625, 128),
           call("qtensor_quantize", "a", x="$x", quantizer="$g"), call("qtensor_quantize", "b", x="$y", quantizer="$h"))  # fmt: skip
    case("torch/relu", ["T30"], *two, call("qop_relu", "r", x="$a"), expected("r", torch.relu(qx)))
    out = grid("o", "uint8", 0.125, 60)
    # Scales are powers of two, so that sums have no rounding before the last.
    added = torch.ops.quantized.add(qx, qy, 0.125, 60)
    case("torch/add", ["T30"], *two, out, call("qop_add", "r", a="$a", b="$b", out_quantizer="$o"), expected("r", added))
    joined = torch.ops.quantized.cat([qx, qy], 1, 0.125, 60)
    case("torch/cat", ["T30"], *two, out, call("qop_cat", "r", inputs=["$a", "$b"], axis=1, out_quantizer="$o"), expected("r", joined))
    pooled = torch.nn.functional.max_pool2d(qx, 2, 2)
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    case("torch/max_pool2d", ["T30"], *two, call("qop_max_pool2d", "r", x="$a", attrs=window), expected("r", pooled))
    averaged = torch.nn.functional.avg_pool2d(qx, 2, 2)
    case("torch/avg_pool2d", ["T30"], *two, call("qop_avg_pool2d", "r", x="$a", out_quantizer="$g", attrs=window), expected("r", averaged))
    w = (torch.randn(5, 3, 3, 3, generator=rng) * 0.3).round(decimals=3)
    bias = (torch.randn(5, generator=rng)).round(decimals=3)
    qw = torch.quantize_per_tensor(w, 0.0078125, 0, torch.qint8)
    packed = torch.ops.quantized.conv2d_prepack(qw, bias, [1, 1], [1, 1], [1, 1], 1)
    convolved = torch.ops.quantized.conv2d(qx, packed, 0.125, 60)
    case("torch/conv2d", ["T30"], *two, floats("w", w), floats("bias", bias), grid("k", "int8", 0.0078125, 0), out,
         call("qtensor_quantize", "q", x="$w", quantizer="$k"),
         call("qop_conv2d", "r", x="$a", weight="$q", bias="$bias", out_quantizer="$o", attrs={"pads": [1, 1, 1, 1]}), expected("r", convolved))  # fmt: skip
    xl, wl = (torch.randn(4, 6, generator=rng)).round(decimals=3), (torch.randn(5, 6, generator=rng)).round(decimals=3)
    qxl, qwl = torch.quantize_per_tensor(xl, 0.03125, 100, torch.quint8), torch.quantize_per_tensor(wl, 0.015625, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(qwl, bias)
    case("torch/linear", ["T30"], floats("x", xl), floats("w", wl), floats("bias", bias), grid("g", "uint8", 0.03125, 100),
         grid("k", "int8", 0.015625, 0), out, call("qtensor_quantize", "a", x="$x", quantizer="$g"),
         call("qtensor_quantize", "q", x="$w", quantizer="$k"),
         call("qop_linear", "r", x="$a", weight="$q", bias="$bias", out_quantizer="$o"),
         expected("r", torch.ops.quantized.linear(qxl, packed, 0.125, 60)))  # fmt: skip


def quantized(x, q):
    """Steps that give the tensor `q` of PyTorch, made of `x`, under the name "a"."""
    return (floats("x", x), grid("g", "uint8", q.q_scale(), q.q_zero_point()), call("qtensor_quantize", "a", x="$x", quantizer="$g"))


def symmetric(name, t):
    """Weights, whose scheme PyTorch's tensors do not say, but its observers do."""
    step = expected(name, t)
    step["quantizer"]["scheme"] += 1
    return step


def layers():
    """torch.ao.nn.quantized: weights that its observers quantize, outputs to the bit."""
    rng = torch.Generator().manual_seed(31)
    nnq = torch.ao.nn.quantized
    cases = [("linear", nnq.Linear, (7, 6), (4, 6), {}, {}), ("linear", nnq.Linear, (7, 6), (2, 3, 6), {}, {})]
    for n in (1, 2, 3):
        sizes, kernel = (5,) * n, (3,) * n
        attrs = {"strides": [2] * n, "pads": [1] * 2 * n}
        cases.append((f"conv{n}d", (nnq.Conv1d, nnq.Conv2d, nnq.Conv3d)[n - 1], (6, 3, *kernel), (2, 3, *sizes), {}, {}))
        cases.append((f"conv{n}d", (nnq.Conv1d, nnq.Conv2d, nnq.Conv3d)[n - 1], (6, 2, *kernel), (1, 4, *sizes),
                      {**attrs, "group": 2}, {"stride": 2, "padding": 1, "groups": 2}))  # fmt: skip
    torch.backends.quantized.engine = "fbgemm"
    for number, (kind, module, shape, x_shape, attrs, options) in enumerate(cases):
        for recipe, observer in (("qnnpack", default_weight_observer), ("fbgemm", default_per_channel_weight_observer)):
            x = torch.randn(x_shape, generator=rng).round(decimals=3)
            # Scales are powers of two, and biases multiples of what products are, so that sums have no rounding before the last.
            w, bias = torch.randn(shape, generator=rng).round(decimals=3), (torch.randn(shape[0], generator=rng) * 1024).round() / 1024
            rows = w.view(1, -1) if recipe == "qnnpack" else w.view(shape[0], -1)
            for i in range(len(rows)):
                largest = 127.5 / 2 ** (5 + i % 3)
                rows[i].clamp_(-largest, largest)[i % rows.shape[1]] = largest
            qx = torch.quantize_per_tensor(x, 0.03125, 100, torch.quint8)
            observed = observer()
            observed(w)
            scales, zeros = observed.calculate_qparams()
            qw = (torch.quantize_per_tensor(w, float(scales), 0, torch.qint8) if recipe == "qnnpack"
                  else torch.quantize_per_channel(w, scales.double(), zeros, 0, torch.qint8))  # fmt: skip
            if kind == "linear":
                layer = module(shape[1], shape[0])
            else:
                layer = module(x_shape[1], shape[0], 3, **options)
            layer.set_weight_bias(qw, bias)
            layer.scale, layer.zero_point = 0.25, 60
            made = (floats("w", w), floats("bias", bias), grid("o", "uint8", 0.25, 60), call("qconfig_create", "c", name=recipe))
            create = {"kind": kind, "weight": "$w", "bias": "$bias", "config": "$c", "out_quantizer": "$o", "attrs": attrs}
            case(f"layer/{kind}/{number}/{recipe}", ["T31"], *quantized(x, qx), *made, call("qlayer_create", "l", **create),
                 call("qlayer_weight", "q", layer="$l"), symmetric("q", qw), call("qlayer_bias", "b", layer="$l"),
                 expected_floats("b", bias), call("qlayer_run", "r", layer="$l", x="$a"), expected("r", layer(qx)),
                 call("qlayer_run", "again", layer="$l", x="$a"), expected("again", layer(qx)),
                 # A float x is brought onto the grid of the layer.
                 call("qlayer_create", "f", **create, x_quantizer="$g"), call("qlayer_run", "s", layer="$f", x="$x"),
                 expected("s", layer(qx)))  # fmt: skip
            if kind == "linear":
                dynamic_layer = torch.ao.nn.quantized.dynamic.Linear(shape[1], shape[0])
                dynamic_layer.set_weight_bias(qw, bias)
                if recipe == "fbgemm":
                    case(f"layer/dynamic/{number}", ["T31", "D02"], floats("x", x), *made,
                         call("qlayer_create", "l", kind=kind, weight="$w", bias="$bias", config="$c"),
                         call("qlayer_run", "r", layer="$l", x="$x"), expected_floats("r", dynamic_layer(x), tolerance=5e-6))  # fmt: skip


def embeddings():
    """Rows of uint8. Scales are powers of two, so that PyTorch's q * scale - zero_point * scale is exact."""
    rng = torch.Generator().manual_seed(32)
    scales = torch.tensor([2.0**-i for i in range(3, 9)])
    zeros = torch.tensor([128.0, 0.0, 7.0, 255.0, 128.0, 100.0])
    w = torch.randn(6, 8, generator=rng)
    qw = torch.quantize_per_channel(w, scales, zeros, 0, torch.quint8)
    weight = (call("qquantizer_create", "g", dtype="uint8", scheme="per_channel_affine", axis=0, scales=scales.tolist(),
                   zero_points=[int(z) for z in zeros]),
              call("qtensor_create", "w", dtype="uint8", shape=[6, 8], data=numbers(qw.int_repr()), quantizer="$g"))  # fmt: skip
    indices = torch.tensor([[0, 5, 5], [3, 1, 2]])
    given = call("qtensor_create", "x", dtype="int64", shape=[2, 3], data=indices.ravel().tolist())
    narrow = call("qtensor_create", "n", dtype="int32", shape=[2, 3], data=indices.ravel().tolist())
    for kind, module in (("embedding", torch.ao.nn.quantized.Embedding), ("embedding_bag", torch.ao.nn.quantized.EmbeddingBag)):
        layer = module(6, 8)
        layer.set_weight(qw)
        y = layer(indices)
        case(f"layer/{kind}", ["T31"], *weight, given, narrow, call("qlayer_create", "l", kind=kind, weight="$w"),
             call("qlayer_run", "r", layer="$l", x="$x"), expected_floats("r", y),
             call("qlayer_run", "s", layer="$l", x="$n"), expected_floats("s", y))  # fmt: skip
    mean = torch.nn.functional.embedding_bag(indices, qw.dequantize(), mode="mean")
    case("layer/embedding_bag/mean", ["T31"], *weight, given, call("qlayer_create", "l", kind="embedding_bag", weight="$w", attrs={"mode": "mean"}),
         call("qlayer_run", "r", layer="$l", x="$x"), expected_floats("r", mean, tolerance=1e-6))  # fmt: skip
    # From floats: the rows that PyTorch's observer of weights gives, dequantized.
    observed = default_per_channel_weight_observer()
    observed(w)
    scales, zeros = observed.calculate_qparams()
    qw = torch.quantize_per_channel(w, scales.double(), zeros, 0, torch.qint8)
    case("layer/embedding/floats", ["T31"], floats("w", w), given, call("qconfig_create", "c", name="fbgemm"),
         call("qlayer_create", "l", kind="embedding", weight="$w", config="$c"), call("qlayer_weight", "q", layer="$l"),
         symmetric("q", qw), call("qlayer_run", "r", layer="$l", x="$x"),
         expected_floats("r", qw.dequantize()[indices], tolerance=5e-7))  # fmt: skip


def dynamic():
    rng = torch.Generator().manual_seed(3)
    for engine, numerics in (("fbgemm", "fbgemm"), ("qnnpack", "qnnpack")):
        torch.backends.quantized.engine = engine
        for name, shape, scheme in (("2d", (4, 6), "tensor"), ("3d", (2, 3, 6), "tensor"), ("channel", (4, 6), "channel")):
            if engine == "qnnpack" and scheme == "channel":
                continue  # PyTorch's QNNPACK has no dynamic linear per channel
            x = (torch.randn(shape, generator=rng)).round(decimals=3)
            w = (torch.randn(5, 6, generator=rng)).round(decimals=3)
            bias = (torch.randn(5, generator=rng)).round(decimals=3)
            if scheme == "tensor":
                qw = torch.quantize_per_tensor(w, 0.02, 0, torch.qint8)
                scheme_arguments = dict(scheme="per_tensor_affine", axis=0, scales=[0.02], zero_points=[0])
            else:
                scales = torch.tensor([0.02, 0.015, 0.03, 0.011, 0.025], dtype=torch.float64)
                qw = torch.quantize_per_channel(w, scales, torch.zeros(5, dtype=torch.int64), 0, torch.qint8)
                scheme_arguments = dict(scheme="per_channel_affine", axis=0, scales=scales.tolist(), zero_points=[0] * 5)
            y = torch.ops.quantized.linear_dynamic(x, torch.ops.quantized.linear_prepack(qw, bias), reduce_range=True)
            # PyTorch may multiply by the scales in another order: some units in the last place.
            case(f"torch/linear_dynamic/{engine}/{name}", ["D02", "D05"], floats("x", x), floats("w", w), floats("bias", bias),
                 call("qquantizer_create", "k", dtype="int8", attrs={"numerics": numerics}, **scheme_arguments),
                 call("qtensor_quantize", "q", x="$w", quantizer="$k"),
                 call("qop_linear", "r", x="$x", weight="$q", bias="$bias"), expected_floats("r", y, tolerance=2e-6))  # fmt: skip
            if scheme == "tensor" and name == "2d" and engine == "fbgemm":
                real = torch.nn.functional.linear(x, qw.dequantize(), bias)
                span = float(max(x.max(), 0) - min(x.min(), 0)) / 127
                bound = float((span / 2 * qw.dequantize().abs().sum(1)).max()) + 1e-6
                assert float((y - real).abs().max()) > 1e-3  # what rounds no activation is not within the tolerance of y
                case("dynamic_beside_float", ["D06"], floats("x", x), floats("w", w), floats("bias", bias),
                     call("qquantizer_create", "k", dtype="int8", attrs={"numerics": numerics}, **scheme_arguments),
                     call("qtensor_quantize", "q", x="$w", quantizer="$k"),
                     call("qop_linear", "r", x="$x", weight="$q", bias="$bias"), expected_floats("r", real, tolerance=bound),
                     expected_floats("r", y, tolerance=2e-6))  # fmt: skip
    # The K * zx * zw term: integers worked out in NumPy, every float an exact sum of powers of two.
    x, w = np.array([[10, 200, 3], [0, 255, 128]]), np.array([[-5, 100, 7], [127, -128, 0]])
    zx, zw = 128, 9
    acc = (x - zx) @ (w - zw).T
    case("weight_zero_point", ["D04", "D07"], grid("g", "uint8", 0.5, zx), grid("k", "int8", 0.25, zw),
         call("qtensor_create", "a", dtype="uint8", shape=[2, 3], data=x.ravel().tolist(), quantizer="$g"),
         call("qtensor_create", "w", dtype="int8", shape=[2, 3], data=w.ravel().tolist(), quantizer="$k"),
         call("qop_linear", "r", x="$a", weight="$w"),
         {"expect": "$r", "dtype": "float32", "shape": [2, 2], "data": (acc * 0.125).ravel().tolist()})  # fmt: skip
    x = (torch.randn(3, 7, generator=rng)).round(decimals=3)
    for reduce in (False, True):
        torch.backends.quantized.engine = "fbgemm" if reduce else "qnnpack"  # which has no reduce_range
        q = torch.quantize_per_tensor_dynamic(x, torch.quint8, reduce)
        weight = torch.eye(7)
        numerics = "fbgemm" if reduce else "qnnpack"
        y = q.dequantize()
        case(f"own_range/{numerics}", ["D03"], floats("x", x), floats("w", weight),
             call("qquantizer_create", "k", dtype="int8", scheme="per_tensor_affine", axis=0, scales=[1.0], zero_points=[0], attrs={"numerics": numerics}),
             call("qtensor_quantize", "q", x="$w", quantizer="$k"), call("qop_linear", "r", x="$x", weight="$q"), expected_floats("r", y))  # fmt: skip

    inputs = {"normal": x, "tiny": x * 1e-6, "far": x * 1e5, "zeros": torch.zeros(3),
              "constant": torch.full((2, 2), -0.75), "tie": torch.tensor([-227.0, 3.0, 227.0])}  # fmt: skip
    for engine in ("fbgemm", "qnnpack"):
        torch.backends.quantized.engine = engine
        for name, values in inputs.items():
            steps = [floats("x", values)]
            for dtype in ("uint8", "int8"):
                for reduce in (False, True):
                    q = torch.quantize_per_tensor_dynamic(values, TYPES[dtype], reduce)
                    attrs = {"numerics": engine, "reduce_range": int(reduce)}
                    end = f"{dtype}{int(reduce)}"
                    steps += [call("qquantizer_choose_dynamic", f"g{end}", dtype=dtype, x="$x", attrs=attrs),
                              call("qtensor_quantize", f"q{end}", x="$x", quantizer=f"$g{end}"), expected(f"q{end}", q)]  # fmt: skip
            case(f"choose_dynamic/{engine}/{name}", ["D03"], *steps)
    # Views have the range of what they show; without attributes PyTorch's 8 bits.
    half = torch.quantize_per_tensor_dynamic(x[:, ::2], torch.quint8, False)
    case("choose_dynamic/view", ["D03"], floats("x", x), call("qtensor_slice", "v", t="$x", axis=1, start=0, stop=7, step=2),
         call("qquantizer_choose_dynamic", "g", dtype="uint8", x="$v"), call("qtensor_quantize", "q", x="$v", quantizer="$g"), expected("q", half),
         {**call("qquantizer_numerics", q="$g"), "equals": "fbgemm"}, {**call("qquantizer_quant_max", q="$g"), "equals": 255})  # fmt: skip


def network(**heads):
    """x [batch, features] and for each head the product of x with its weight [outputs, features]."""
    features = next(iter(heads.values())).shape[1]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gemm", ["x", f"{name}.weight"], [f"{name}.out"], name, transB=1) for name in heads], "heads",
        [value("x", onnx.TensorProto.FLOAT, ["n", features])],
        [value(f"{name}.out", onnx.TensorProto.FLOAT, ["n", len(weight)]) for name, weight in heads.items()],
        [onnx.numpy_helper.from_array(weight, f"{name}.weight") for name, weight in heads.items()])  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return call("qmodel_load_bytes", "m", data=list(model.SerializeToString()))


def dynamic_network():
    """A Linear layer under torch.ao.quantization.quantize_dynamic, whose result a file gives back to the bit."""
    rng = torch.Generator().manual_seed(11)
    layer = torch.nn.Linear(9, 4, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(4, 9, generator=rng).round(decimals=3))
    x = torch.randn(5, 9, generator=rng).round(decimals=3)
    x[:, 0] = 3  # a range that is not centered
    for engine in ("fbgemm", "x86", "qnnpack"):
        torch.backends.quantized.engine = engine
        net = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(layer), {torch.nn.Linear}, dtype=torch.qint8)
        steps = [network(head=layer.weight.detach().numpy()), call("qconfig_create", "c", name=engine),
                 call("qconfig_set", c="$c", selector="*", settings={"weight_scheme": "per_tensor_symmetric"}),
                 call("qmodel_quantize_dynamic", "q", m="$m", config="$c"), call("qmodel_save", m="$q", path="@own.onnx"),
                 call("qmodel_load", "again", path="@own.onnx"), call("qsession_create", "s", m="$q"), call("qsession_create", "t", m="$again")]  # fmt: skip
        for name, values in {"x": x, "tiny": x * 1e-6, "zeros": x * 0}.items():
            y = net(values)
            steps += [floats(name, values), call("qsession_run", f"{name}_s", s="$s", inputs=[f"${name}"]),
                      call("qsession_run", f"{name}_t", s="$t", inputs=[f"${name}"]),
                      # PyTorch may multiply by the scales in another order.
                      expected_floats(f"{name}_s", y, tolerance=5e-7 * float(y.abs().max())),
                      {**call("qtensor_equal", a=f"${name}_s", b=f"${name}_t"), "equals": 1}]  # fmt: skip
        case(f"quantize_dynamic/{engine}", ["D02", "D05"], *steps)


def rows_on_own_grids():
    """A product whose input has a grid for each row, or one for all: DynamicQuantizeLinear of every row alone, or of the tensor, by
    NumPy in float32."""
    rng = np.random.default_rng(12)
    weight = rng.normal(size=(4, 9)).astype(np.float32)
    x = rng.normal(size=(5, 9)).astype(np.float32)
    x[:, 0] = 3
    x[1] *= np.float32(1000)
    x[2] = 0
    one = np.float32(255)
    weight_scale = np.abs(weight).max(axis=1) / np.float32(127)
    w = np.rint(weight / weight_scale[:, None]).astype(np.int64)

    def on_grids(axis):
        low, high = np.minimum(x.min(axis=axis, keepdims=True), 0), np.maximum(x.max(axis=axis, keepdims=True), 0)
        scale = (high - low) / one
        scale[scale == 0] = 1
        zero = np.rint(-low / scale)
        q = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64)
        return torch.from_numpy(((q - zero.astype(np.int64)) @ w.T).astype(np.float32) * (scale * weight_scale))

    by_row, by_tensor = on_grids(1), on_grids(None)
    steps = [network(head=weight), call("qconfig_create", "c", name="onnx"),
             call("qmodel_quantize_dynamic", "q", m="$m", config="$c", attrs={"granularity": "row"}),
             call("qmodel_quantize_dynamic", "default", m="$m", config="$c"), floats("x", torch.from_numpy(x)),
             call("qmodel_quantize_dynamic", "whole", m="$m", config="$c", attrs={"granularity": "tensor"}),
             call("qconfig_set", c="$c", selector="op:Gemm", settings={"mode": "dynamic"}), call("qmodel_prepare", "p", m="$m", config="$c", mode=0),
             call("qmodel_calibrate", prepared="$p", inputs=["$x"]), call("qmodel_convert", "by_mode", prepared="$p")]  # fmt: skip
    for name, y in {"q": by_row, "default": by_row, "by_mode": by_row, "whole": by_tensor}.items():
        steps += [call("qsession_create", f"{name}_s", m=f"${name}"), call("qsession_run", f"{name}_y", s=f"${name}_s", inputs=["$x"]),
                  expected_floats(f"{name}_y", y, tolerance=0)]  # fmt: skip
    case("quantize_dynamic/rows", ["D02"], *steps)


def embedding_tables():
    """Rows of a table that weights-only and dynamic quantization make int8, each with its own scale: NumPy in float32."""
    rng = np.random.default_rng(13)
    table = rng.normal(size=(130, 9)).astype(np.float32)
    table[7] = 0
    table[8] *= np.float32(1000)
    scale = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    q = np.rint(table / np.where(scale == 0, np.float32(1), scale))
    ids = np.array([[0, 7, 129], [-1, 8, 64]], np.int64)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("Gather", ["table", "ids"], ["y"], "lookup")], "table",
                                   [value("ids", onnx.TensorProto.INT64, ["n", 3])], [value("y", onnx.TensorProto.FLOAT, ["n", 3, 9])],
                                   [onnx.numpy_helper.from_array(table, "table")])  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    steps = [call("qmodel_load_bytes", "m", data=list(model.SerializeToString())), call("qconfig_create", "c", name="onnx"),
             call("qmodel_quantize_dynamic", "dynamic", m="$m", config="$c"), call("qmodel_quantize_weights", "weights", m="$m"),
             call("qtensor_create", "ids", dtype="int64", shape=[2, 3], data=ids.ravel().tolist()),
             call("qconfig_set", c="$c", selector="*", settings={"mode": "weights_only"}), call("qmodel_prepare", "p", m="$m", config="$c", mode=0),
             call("qmodel_calibrate", prepared="$p", inputs=["$ids"]), call("qmodel_convert", "by_mode", prepared="$p")]  # fmt: skip
    for name in ("dynamic", "weights", "by_mode"):
        steps += [call("qsession_create", f"{name}_s", m=f"${name}"), call("qsession_run", f"{name}_y", s=f"${name}_s", inputs=["$ids"]),
                  expected_floats(f"{name}_y", torch.from_numpy((q * scale)[ids]), tolerance=0)]  # fmt: skip
    case("quantize_dynamic/embeddings", ["D02"], *steps)


def quantized_run(config, samples, x, outputs, name="c"):
    """A network prepared by $c, or another name (made by the steps `config`), calibrated on samples, converted, run on x."""
    steps = [*config, call("qmodel_prepare", "p", m="$m", config=f"${name}", mode=0)]
    for i, sample in enumerate(samples):
        steps += [floats(f"s{i}", sample), call("qmodel_calibrate", prepared="$p", inputs=[f"$s{i}"])]
    return [*steps, call("qmodel_convert", "q", prepared="$p"), floats("x", x), call("qsession_create", "n", m="$q"),
            call("qsession_run", outputs, s="$n", inputs=["$x"], **({} if isinstance(outputs, str) else {"output_count": len(outputs)}))]  # fmt: skip


def product(x, scale, zero, low, high, q_weight, weight_scales):
    """float(sum (q - zero) * w) * (scale * weight scale), where q is the same by division and by the inverse."""
    scale = np.float32(scale)
    q = np.clip(np.rint(x / scale) + zero, low, high)
    assert (q == np.clip(np.rint(x * (np.float32(1) / scale)) + zero, low, high)).all()
    sums = (q.astype(np.int64) - zero) @ q_weight.astype(np.int64).T
    return sums.astype(np.float32) * (scale * np.asarray(weight_scales, np.float32))


def eighths(rng, *shape, limit):
    return (rng.integers(-limit, limit + 1, size=shape) / 8).astype(np.float32)


def of_torch(qconfig, weight, samples, x):
    """What a Linear under this qconfig computes, its result in float."""
    activation, observer = qconfig.activation(), qconfig.weight()
    for sample in samples:
        activation(torch.from_numpy(sample))
    observer(torch.from_numpy(weight))
    (scale, zero), (scales, _) = activation.calculate_qparams(), observer.calculate_qparams()
    t = torch.from_numpy(weight)
    if scales.numel() == 1:
        q = torch.quantize_per_tensor(t, scales.item(), 0, torch.qint8)
    else:
        q = torch.quantize_per_channel(t, scales, torch.zeros(len(scales), dtype=torch.int64), 0, torch.qint8)
    signed = activation.dtype == torch.qint8
    return product(x, scale.item(), int(zero), -128 if signed else 0, 127 if signed else 255, q.int_repr().numpy(), scales.numpy())


def qconfigs():
    rng = np.random.default_rng(7)
    weight, other = eighths(rng, 3, 6, limit=9), eighths(rng, 2, 6, limit=9)
    samples, x = [eighths(rng, 4, 6, limit=limit) for limit in (11, 17)], eighths(rng, 2, 6, limit=17)
    for backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        y = of_torch(get_default_qconfig(backend), weight, samples, x)
        case(f"qconfig/{backend}", ["P04", "P05"], network(fc=weight),
             *quantized_run([call("qconfig_create", "c", name=backend)], samples, x, "y"), expected_floats("y", y))  # fmt: skip
    chosen = {
        "symmetric_minmax": (MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric),
                             {"observer": "minmax", "reduce_range": 0, "activation_dtype": "int8", "activation_scheme": "per_tensor_symmetric"}),
        "affine_minmax": (MinMaxObserver.with_args(dtype=torch.quint8, reduce_range=True), {"observer": "minmax"}),
        "symmetric_histogram": (HistogramObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric),
                                {"reduce_range": 0, "activation_dtype": "int8", "activation_scheme": "per_tensor_symmetric"}),
    }  # fmt: skip
    for name, (observer, settings) in chosen.items():
        y = of_torch(QConfig(observer, get_default_qconfig("fbgemm").weight), weight, samples, x)
        config = [call("qconfig_create", "c", name="fbgemm"), call("qconfig_set", c="$c", selector="*", settings=settings)]
        case(f"qconfig/{name}", ["P04"], network(fc=weight), *quantized_run(config, samples, x, "y"), expected_floats("y", y))
    # model.conv1.qconfig = None; model.linear1.qconfig = custom; the same after a file. Every x is on the custom grid.
    fixed = FixedQParamsObserver.with_args(scale=0.125, zero_point=128, dtype=torch.quint8, quant_min=0, quant_max=255)
    y = of_torch(QConfig(fixed, get_default_qconfig("qnnpack").weight), other, samples, x)
    settings = {"observer": "fixed", "scale": 0.125, "zero_point": 128, "reduce_range": 0, "weight_scheme": "per_tensor_symmetric"}
    config = [call("qconfig_create", "c", name="fbgemm"), call("qconfig_set", c="$c", selector="node:first", settings=None),
              call("qconfig_set", c="$c", selector="node:second", settings=settings)]  # fmt: skip
    reload = [*config, call("qconfig_save", c="$c", path="@c.json"), call("qconfig_load", "d", path="@c.json")]
    for name, steps, made in (("per_module", config, "c"), ("per_module_from_a_file", reload, "d")):
        run = quantized_run(steps, samples, x, ["a", "b"], made)
        case(f"qconfig/{name}", ["P20"], network(first=weight, second=other), *run,
             expected_floats("a", (x @ weight.T).astype(np.float32)), expected_floats("b", y))  # fmt: skip


def nvidia_step(amax, bound):
    return (1 / (np.float32(bound) / np.asarray(amax, np.float32)).astype(np.float64)).tolist()


def quant_descriptors():
    rng = np.random.default_rng(8)
    weight, x = eighths(rng, 3, 6, limit=9), eighths(rng, 4, 6, limit=17)

    def observed(name, rows, amax, bound, kind="max", t=x, **attrs):
        attrs = {"dtype": "int8", "scheme": "per_tensor_symmetric", "numerics": "nvidia", **attrs}
        case(f"quant_descriptor/{name}", rows, call("qobserver_create", "o", kind=kind, attrs=attrs), floats("x", t),
             call("qobserver_observe", o="$o", x="$x"), call("qobserver_quantizer", "g", o="$o"),
             {"call": "qquantizer_scales", "with": {"q": "$g"}, "equals": np.atleast_1d(nvidia_step(amax, bound)).tolist(), "tolerance": 0.0},
             {"call": "qquantizer_quant_max", "with": {"q": "$g"}, "equals": bound})  # fmt: skip

    by_row = np.abs(weight).max(axis=1)
    observed("8bit_per_tensor", ["N07"], np.abs(x).max(), 127)
    observed("linear_weight_per_row", ["N07", "N10"], by_row, 127, t=weight, scheme="per_channel_symmetric", axis=0)
    observed("conv_transpose_weight_axis_1", ["N07"], np.abs(weight).max(axis=0), 127, t=weight, scheme="per_channel_symmetric", axis=1)
    observed("unsigned", ["N07"], np.abs(x).max(), 255, t=np.abs(x), dtype="uint8")
    observed("num_bits_4", ["N07"], np.abs(x).max(), 7, dtype="int4")
    observed("num_bits_16", ["N07"], np.abs(x).max(), 32767, dtype="int16")
    # calib_method "histogram": 2048 bins over [0, 100), of which the 90th percentile reaches the lower edge that NumPy finds.
    ramp = np.arange(100, dtype=np.float32)
    counts, edges = np.histogram(ramp, bins=2048, range=(0, 99))
    amax = edges.astype(np.float32)[np.searchsorted(np.cumsum(counts / counts.sum()), 0.9)]
    observed("calib_method_histogram", ["N07"], amax, 127, kind="nvidia_percentile", t=ramp, percentile=90.0)

    # The predefined descriptors, by name; axis is the one that is kept.
    picture = eighths(rng, 2, 3, 2, 2, limit=15)
    kept = lambda t, axis: np.abs(t).max(axis=tuple(a for a in range(t.ndim) if a != axis))  # noqa: E731
    named = {"QUANT_DESC_8BIT_PER_TENSOR": None, "QUANT_DESC_8BIT_LINEAR_WEIGHT_PER_ROW": 0}
    named |= {f"QUANT_DESC_8BIT_CONV{d}D_WEIGHT_PER_CHANNEL": 0 for d in (1, 2, 3)}
    named |= {f"QUANT_DESC_8BIT_CONVTRANSPOSE{d}D_WEIGHT_PER_CHANNEL": 1 for d in (1, 2, 3)}
    by_name = lambda name, **attrs: call("qobserver_create", "o", kind="max", attrs={"descriptor": name, **attrs})  # noqa: E731
    for name, axis in named.items():
        amax = np.abs(picture).max() if axis is None else kept(picture, axis)
        steps = [floats("x", picture), by_name(name), call("qobserver_observe", o="$o", x="$x"), call("qobserver_quantizer", "g", o="$o"),
                 {**call("qquantizer_dtype", q="$g"), "equals": "int8"}, {**call("qquantizer_numerics", q="$g"), "equals": "nvidia"},
                 {**call("qquantizer_quant_min", q="$g"), "equals": -127},
                 {**call("qquantizer_scales", q="$g"), "equals": np.atleast_1d(nvidia_step(amax, 127)).tolist(), "tolerance": 0.0},
                 {**call("qquantizer_axis", q="$g"), "equals": axis or 0}]  # fmt: skip
        case(f"quant_descriptor/{name}", ["N07"], *steps)
    unsigned = "QUANT_DESC_UNSIGNED_8BIT_PER_TENSOR"
    read = lambda bound: [call("qobserver_observe", o="$o", x="$x"), call("qobserver_quantizer", "g", o="$o"),  # noqa: E731
                          {**call("qquantizer_scales", q="$g"), "equals": [float(nvidia_step(np.abs(picture).max(), bound))], "tolerance": 0.0}]  # fmt: skip
    case(f"quant_descriptor/{unsigned}", ["N07"], floats("x", np.abs(picture)), by_name(unsigned), *read(255),
         {**call("qquantizer_dtype", q="$g"), "equals": "uint8"})  # fmt: skip
    case("quant_descriptor/what_is_given_counts", ["N07"], floats("x", picture), by_name("QUANT_DESC_8BIT_LINEAR_WEIGHT_PER_ROW", scheme="per_tensor_symmetric", dtype="int4"),
         *read(7))  # fmt: skip
    names = " ".join(["QUANT_DESC_8BIT_PER_TENSOR", unsigned, *(f"QUANT_DESC_8BIT_CONV{d}D_WEIGHT_PER_CHANNEL" for d in (1, 2, 3)),
                      "QUANT_DESC_8BIT_LINEAR_WEIGHT_PER_ROW", *(f"QUANT_DESC_8BIT_CONVTRANSPOSE{d}D_WEIGHT_PER_CHANNEL" for d in (1, 2, 3))])  # fmt: skip
    config = call("qconfig_create", "c", name="nvidia")
    fails = lambda step, message, status="QTN_EINVAL": {**{k: v for k, v in step.items() if k != "out"}, "status": status, "message": message}  # noqa: E731
    of_config = lambda **settings: call("qconfig_set", c="$c", selector="*", settings=settings)  # noqa: E731
    case("quant_descriptor/refused", ["N07"], fails(by_name("QUANT_DESC"), f'observer: descriptor "QUANT_DESC" is unknown; known are {names}'), config,
         fails(of_config(quant_desc_input="QUANT_DESC"), f'config: descriptor "QUANT_DESC" is unknown; known are {names}'),
         fails(of_config(quant_desc_input="QUANT_DESC_8BIT_CONV2D_WEIGHT_PER_CHANNEL"),
               'config: quant_desc_input "QUANT_DESC_8BIT_CONV2D_WEIGHT_PER_CHANNEL" is per channel, and activations have one grid', "QTN_EUNSUPPORTED"),
         fails(of_config(quant_desc_weight=unsigned), f'config: quant_desc_weight "{unsigned}" is unsigned, and weights are signed', "QTN_EUNSUPPORTED"),
         fails(of_config(scale_amax=0.0), "observer: scale_amax 0 is not a positive float32"),
         fails(call("qobserver_create", "o", kind="max", attrs={"scale_amax": 2.0}), 'observer: scale_amax is of numerics "nvidia", here they are "fbgemm"'))  # fmt: skip

    # scale_amax: amax = amax * scale_amax, each time that it is used; what an observer keeps is not scaled.
    factor = np.float32(0.8)
    scaled = lambda amax, bound=127: np.atleast_1d(nvidia_step(np.float32(amax) * factor, bound))  # noqa: E731
    observe = [by_name("QUANT_DESC_8BIT_LINEAR_WEIGHT_PER_ROW", scale_amax=0.8), floats("x", weight), call("qobserver_observe", o="$o", x="$x")]
    wanted = {"equals": scaled(by_row).tolist(), "tolerance": 0.0}
    integers = np.clip(np.rint(weight * (np.float32(127) / (by_row * factor)).reshape(-1, 1)), -127, 127)
    assert (np.abs(integers) == 127).sum() >= 3
    case("quant_descriptor/scale_amax", ["N07"], *observe, call("qobserver_quantizer", "g", o="$o"), {**call("qquantizer_scales", q="$g"), **wanted},
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), {"expect": "$q", "data": integers.astype(int).ravel().tolist()},
         call("qobserver_observe", o="$o", x="$x"), call("qobserver_quantizer", "h", o="$o"), {**call("qquantizer_scales", q="$h"), **wanted},
         call("qquantizer_choose", "i", dtype="int8", scheme="per_tensor_symmetric", axis=0, mins=[-1.5], maxs=[2.5], attrs={"numerics": "nvidia", "scale_amax": 0.8}),
         {**call("qquantizer_scales", q="$i"), "equals": scaled(2.5).tolist(), "tolerance": 0.0})  # fmt: skip
    rows = weight * np.float32([[1], [0.5], [0.25]])
    for name, settings, of_x, of_weight in (
        ("input", {"scale_amax": 0.8, "quant_desc_input": "QUANT_DESC_8BIT_PER_TENSOR"}, factor, 1),
        ("weight", {"weight_scale_amax": 0.8, "quant_desc_weight": "QUANT_DESC_8BIT_LINEAR_WEIGHT_PER_ROW"}, 1, factor),
        ("weight_per_tensor", {"weight_scale_amax": 0.8, "quant_desc_weight": "QUANT_DESC_8BIT_PER_TENSOR"}, 1, factor),
    ):  # fmt: skip
        amax_x, amax_w = np.float32(np.abs(x).max() * np.float32(of_x)), np.float32(of_weight) * (np.abs(rows).max(keepdims=True)[0] if "tensor" in name else np.abs(rows).max(1))
        q_weight = np.clip(np.rint(rows * (np.float32(127) / amax_w).reshape(-1, 1)), -127, 127)
        y = product(x, nvidia_step(amax_x, 127), 0, -128, 127, q_weight, np.resize(nvidia_step(amax_w, 127), len(rows)))
        case(f"quant_descriptor/scale_amax/of_{name}", ["N07"], network(fc=rows), *quantized_run([config, of_config(**settings)], [x], x, "y"), expected_floats("y", y))

    # TensorQuantizer(QuantDescriptor(num_bits=4, fake_quant=False, axis=(0), unsigned=True)) of the guide.
    torch.manual_seed(12345)
    t = torch.rand(10, 9, 8, 7).numpy()
    amax = t.reshape(10, -1).max(axis=1)
    scale = (np.float32(15) / amax).reshape(10, 1, 1, 1)
    q = np.clip(np.rint(t * scale), 0, 15).astype(np.int64)
    assert q.reshape(10, -1).sum(axis=1).tolist() == [3694, 3666, 3727, 3725, 3698, 3983, 3767, 3710, 3733, 3863]
    grid_of = {"dtype": "uint4", "scheme": "per_channel_symmetric", "axis": 0}
    dynamic = [call("qobserver_create", "o", kind="max", attrs={**grid_of, "numerics": "nvidia"}),
               call("qobserver_observe", o="$o", x="$t"), call("qobserver_quantizer", "g", o="$o")]  # fmt: skip
    given = [call("qquantizer_choose", "h", **grid_of, mins=[0.0] * 10, maxs=[float(a) for a in amax], attrs={"numerics": "nvidia"})]
    case("tensor_quantizer", ["N08", "N09"], floats("t", t), *dynamic, call("qtensor_quantize", "q", x="$t", quantizer="$g"),
         {"expect": "$q", "dtype": "uint4", "shape": [10, 9, 8, 7], "data": q.ravel().tolist()},
         *given, call("qtensor_quantize", "r", x="$t", quantizer="$h"), {"call": "qtensor_equal", "with": {"a": "$q", "b": "$r"}, "equals": 1})  # fmt: skip
    # A given amax saturates what lies beyond.
    clipped = np.clip(np.rint(x * (np.float32(127) / np.float32(1.5))), -127, 127).astype(np.int64)
    case("tensor_quantizer/given_amax", ["N09"], floats("x", x),
         call("qquantizer_choose", "g", dtype="int8", scheme="per_tensor_symmetric", axis=0, mins=[-1.5], maxs=[1.5], attrs={"numerics": "nvidia"}),
         call("qtensor_quantize", "q", x="$x", quantizer="$g"), {"expect": "$q", "dtype": "int8", "data": clipped.ravel().tolist()})  # fmt: skip

    # QuantLinear: input per tensor, weight per row, 8 bits each; with a given amax for the input; of 4 bits.
    for name, amax, bound, settings in (
        ("defaults", np.abs(x).max(), 127, {}),
        ("given_amax", np.float32(3), 127, {"observer": "fixed", "min": -3.0, "max": 3.0}),
        ("weight_of_4_bits", np.abs(x).max(), 7, {"weight_dtype": "int4"}),
    ):  # fmt: skip
        q_weight = np.rint(weight * (np.float32(bound) / by_row).reshape(-1, 1))
        y = product(np.clip(x, -amax, amax), nvidia_step(amax, 127), 0, -128, 127, q_weight, nvidia_step(by_row, bound))
        config = [call("qconfig_create", "c", name="nvidia"), call("qconfig_set", c="$c", selector="*", settings=settings)]
        run = quantized_run(config, [x], np.clip(x, -amax, amax), "y")
        case(f"quant_linear/{name}", ["N10"], network(fc=weight), *run, expected_floats("y", y))


def fake_quantization():
    """Forward and backward: PyTorch's by autograd, that of NVIDIA's toolkit by its formulas."""

    def both(name, x, make, y, dy, dx):
        case(f"fake_quantize/{name}", ["N06"], floats("x", x), floats("dy", dy), make,
             call("qop_fake_quantize", "y", x="$x", quantizer="$g"), expected_floats("y", y),
             call("qop_fake_quantize_backward", "dx", dy="$dy", x="$x", quantizer="$g"), expected_floats("dx", dx))  # fmt: skip

    rng = torch.Generator().manual_seed(11)
    narrowed = {"quant_min": 0, "quant_max": 127}
    for name, dtype, attrs, lo, hi in (
        ("int8", "int8", {}, -128, 127),
        ("uint8", "uint8", {}, 0, 255),
        ("reduced", "uint8", narrowed, 0, 127),
        ("int4", "int4", {}, -8, 7),
        ("uint2", "uint2", {}, 0, 3),
        ("int16", "int16", {}, -32768, 32767),
    ):  # fmt: skip
        # Ties, both ends of the grid, and values far outside.
        far = torch.tensor([(lo - 3) * 0.25, (lo - 2.5) * 0.25, (hi - 2.5) * 0.25, (hi - 1.5) * 0.25, 1e9, -3e38, 0.125, 0.375])
        x = torch.cat([(torch.randn(16, generator=rng) * 0.2 * (hi - lo)).round(decimals=2), far]).requires_grad_()
        dy = torch.randn(24, generator=rng).round(decimals=2)
        zero = lo + 2
        y = torch.fake_quantize_per_tensor_affine(x, 0.25, zero, lo, hi)
        y.backward(dy)
        make = call("qquantizer_create", "g", dtype=dtype, scheme="per_tensor_affine", axis=0, scales=[0.25], zero_points=[zero], attrs=attrs)
        both(f"per_tensor/{name}", x.detach(), make, y.detach(), dy, x.grad)
    for axis in range(3):
        x = (torch.randn(3, 4, 5, generator=rng) * 4).round(decimals=2).requires_grad_()
        dy = torch.randn(3, 4, 5, generator=rng).round(decimals=2)
        scales = torch.tensor([0.031, 0.0125, 0.0503, 0.021, 0.047])[: x.shape[axis]]
        zeros = torch.tensor([0, 12, -90, 3, 7], dtype=torch.int32)[: x.shape[axis]]
        y = torch.fake_quantize_per_channel_affine(x, scales, zeros, axis, -128, 127)
        y.backward(dy)
        both(f"per_channel/{axis}", x.detach(), channels("g", "int8", scales, zeros, axis), y.detach(), dy, x.grad)

    torch.manual_seed(12345)
    guide = torch.rand(10).numpy()
    spread = eighths(np.random.default_rng(12), 4, 6, limit=17)
    for name, x, amax in (("guide", guide, guide.max()), ("given_amax", spread, np.float32(1.5)), ("odd_amax", spread, np.float32(1.1))):
        x = np.concatenate([x.ravel(), [amax, -amax, np.nextafter(amax, np.float32(9)) * np.float32(1.0001)]]).astype(np.float32)
        scale = np.float32(127) / amax
        y = np.clip(np.rint(x * scale), -127, 127) / scale
        dy = np.arange(1, x.size + 1, dtype=np.float32)
        dx = np.where(np.abs(x) <= amax, dy, np.float32(0))
        make = call("qquantizer_choose", "g", dtype="int8", scheme="per_tensor_symmetric", axis=0, mins=[-float(amax)], maxs=[float(amax)],
                    attrs={"numerics": "nvidia"})  # fmt: skip
        both(f"nvidia/{name}", torch.from_numpy(x), make, y, torch.from_numpy(dy), dx)


def write(name):
    lines = []
    for c in CASES:
        steps = ",\n  ".join(json.dumps(s) for s in c["steps"])
        lines.append(f'{{"name": {json.dumps(c["name"])}, "rows": {json.dumps(c["rows"])}, "steps": [\n  {steps}]}}')
    pathlib.Path(__file__).with_name(name).write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(CASES), "cases")


def main():
    quantize_and_text()
    tensor_methods()
    float_qparams()
    tiny_floats()
    operators()
    layers()
    embeddings()
    dynamic()
    dynamic_network()
    rows_on_own_grids()
    embedding_tables()
    qconfigs()
    quant_descriptors()
    fake_quantization()
    write("torch.json")


if __name__ == "__main__":
    main()
