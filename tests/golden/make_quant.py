#!/usr/bin/env python3
"""Makes quant/*.json: golden vectors of quantization by PyTorch and ONNX Runtime.

  quantize.json         float -> integer: torch (multiply by the inverse scale) and ONNX QuantizeLinear (divide)
  observers.json        torch MinMax, MovingAverage and PerChannel observers -> scale and zero point
  histogram.json        torch HistogramObserver -> range, clipped range, scale and zero point
  dynamic.json          quantization by a tensor's own range: torch.quantize_per_tensor_dynamic, ONNX Runtime's
                        DynamicQuantizeLinear; NVIDIA's and TensorFlow Lite's formulas in NumPy
  qlinear.json          ONNX Runtime QLinearConv, QLinearMatMul, QGemm: exact integers, independent of rounding details
  functional.json       torch.ops.quantized mul, mul_relu, add_scalar, mul_scalar and matmul, which FloatFunctional becomes

Every answer of the peer that has a closed form is compared with that form in NumPy before it is written.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_quant.py
"""

import argparse
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper
from torch.ao.quantization import observer as torch_observer

import golden_json

FLOAT_EPSILON = float(np.finfo(np.float32).eps)
TORCH_DTYPES = {"uint8": torch.quint8, "int8": torch.qint8, "int32": torch.qint32}


def f32(*values):
    return np.array(values, np.float32)


def noise(seed, *shape, scale=1.0, shift=0.0):
    values = np.random.default_rng(seed).normal(size=shape) * scale + shift
    return values.round(3).astype(np.float32)


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def node_model(op, feeds, output_dtype, domain="", opset=21, **attrs):
    """A model of one node whose inputs are the arrays of `feeds`, in their order."""
    node = helper.make_node(op, list(feeds), ["y"], domain=domain, **attrs)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    output = helper.make_tensor_value_info("y", output_dtype, None)
    graph = helper.make_graph([node], "case", inputs, [output])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


# ---------------------------------------------------------------------------------------------------------- quantize


def spread(values, axis, rank):
    """Per-channel parameters in a shape that broadcasts."""
    return values if axis is None else values.reshape([-1 if i == axis else 1 for i in range(rank)])


def torch_quantize(x, scale, zero_point, axis, dtype):
    tensor, torch_dtype = torch.from_numpy(x), TORCH_DTYPES[dtype]
    if axis is None:
        quantized = torch.quantize_per_tensor(tensor, float(scale), int(zero_point), torch_dtype)
    else:
        quantized = torch.quantize_per_channel(
            tensor, torch.from_numpy(scale), torch.from_numpy(zero_point), axis, torch_dtype
        )
    limits = np.iinfo(dtype)
    inverse = np.float32(1) / spread(scale, axis, x.ndim)
    rounded = np.rint((x * inverse).astype(np.float64)) + spread(zero_point, axis, x.ndim)
    integers = quantized.int_repr().numpy()
    np.testing.assert_array_equal(integers, np.clip(rounded, limits.min, limits.max))
    return integers, quantized.dequantize().numpy()


def onnx_quantize(x, scale, zero_point, axis, dtype):
    if dtype not in ("uint8", "int8"):
        return None
    feeds = {"x": x, "scale": np.asarray(scale), "zero_point": np.asarray(zero_point).astype(dtype)}
    attrs = {} if axis is None else {"axis": axis}
    model = node_model("QuantizeLinear", feeds, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), **attrs)
    (integers,) = session_of(model).run(None, feeds)
    limits = np.iinfo(dtype)
    rounded = np.rint((x / spread(scale, axis, x.ndim)).astype(np.float64)) + spread(zero_point, axis, x.ndim)
    np.testing.assert_array_equal(integers, np.clip(rounded, limits.min, limits.max))
    return integers


def make_quantize():
    ties = np.arange(-12, 13, dtype=np.float32) / 2 + np.float32(0.5)
    # Below -2^31 torch's vector code wraps round where the zero point is negative: no such value for int8.
    extremes = f32(1e9, -1e9, 300, -300, 127.5, 128.5, -128.5, -129, 255.5, 254.5, 0, -0.0, 1e-40)
    per_tensor = [
        ("fbgemm_multiplies_by_inverse", f32(0.273939937), 0.00214854861, 0, "uint8"),
        ("ties_to_even_uint8", ties, 1.0, 10, "uint8"),
        ("ties_to_even_int8", ties, 1.0, 0, "int8"),
        # An odd zero point shows whether it is added before or after rounding.
        ("ties_odd_zero_point", ties, 1.0, 3, "uint8"),
        ("ties_half_scale", ties / 2, 0.5, -1, "int8"),
        ("saturation_uint8", np.append(extremes, f32(3e38, -3e38)), 1.0, 7, "uint8"),
        ("saturation_int8", extremes, 1.0, -7, "int8"),
        ("normal_uint8", noise(1, 4, 16), 0.0235294122, 128, "uint8"),
        ("normal_int8", noise(2, 4, 16), 0.0271, -3, "int8"),
        ("normal_int32", noise(3, 3, 8), 1e-3, 0, "int32"),
        ("int32_zero_point", noise(4, 3, 8), 1e-4, 2, "int32"),
        ("symmetric_weight", f32(1.0, -1.0, 0.5, -0.5), 0.007843137718737125, 0, "int8"),
        ("tiny_scale", noise(5, 16) * np.float32(1e-5), 2.5e-7, 100, "uint8"),
        ("large_scale", noise(6, 16, scale=1e6), 12345.678, 5, "int8"),
        ("scalar", np.array(0.7, np.float32), 0.01, 0, "int8"),
        ("empty", np.zeros((0, 3), np.float32), 0.01, 0, "int8"),
    ]
    # Values where x * (1 / scale) and x / scale fall on different sides of a tie.
    rng = np.random.default_rng(7)
    scale = np.float32(0.0211)
    candidates = np.float32((np.arange(100000) % 200 - 100 + 0.5) * float(scale))
    candidates = np.nextafter(candidates, np.float32(np.inf) * rng.choice([-1, 1], 100000).astype(np.float32))
    differ = np.unique(candidates[np.rint(candidates * (np.float32(1) / scale)) != np.rint(candidates / scale)])
    assert differ.size >= 16, differ.size
    per_tensor.append(("inverse_and_division_differ", differ[:48], float(scale), 0, "int8"))

    weights = noise(8, 3, 2, 2, 2)
    per_channel = [
        ("channel_axis_0", weights, f32(0.01, 0.02, 0.005), [0, 0, 0], 0, "int8"),
        ("channel_axis_1", noise(9, 2, 4, 3), f32(0.01, 0.02, 0.03, 0.5), [0, 128, 255, 3], 1, "uint8"),
        ("channel_axis_last", noise(10, 2, 2, 3), f32(1e-1, 1e-2, 1e-3), [-1, 0, 1], 2, "int32"),
        ("channel_axis_last_int8", noise(10, 2, 2, 3), f32(1e-1, 1e-2, 1e-2), [-1, 0, 1], 2, "int8"),
        ("channel_matrix", noise(11, 4, 10), f32(0.02, 0.01, 0.03, 0.007), [0, 0, 0, 0], 0, "int8"),
        ("channel_ties", np.stack([ties, ties]), f32(1.0, 0.5), [1, -2], 0, "int8"),
    ]
    cases = []
    for name, x, scale, zero_point, *rest in per_tensor + per_channel:
        axis, dtype = rest if len(rest) == 2 else (None, *rest)
        scale = np.float32(scale) if axis is None else scale
        points = np.int64(zero_point) if axis is None else np.array(zero_point, np.int64)
        integers, dequantized = torch_quantize(x, scale, points, axis, dtype)
        record = {"name": name, "dtype": dtype, "axis": axis, "scale": golden_json.Tensor(scale)}
        record["zero_point"] = golden_json.Tensor(points)
        record.update(x=x, torch=integers, dequantized=dequantized)
        record["onnx"] = onnx_quantize(x, scale, points, axis, dtype)
        cases.append(record)
    golden = cases[0]
    assert golden["torch"].item() == 128 and golden["onnx"].item() == 127
    return {"source": f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}", "cases": cases}


# --------------------------------------------------------------------------------------------------------- observers

QSCHEMES = {"affine": torch.per_tensor_affine, "symmetric": torch.per_tensor_symmetric}
CHANNEL_QSCHEMES = {
    "affine": torch.per_channel_affine,
    "symmetric": torch.per_channel_symmetric,
    "affine_float_qparams": torch.per_channel_affine_float_qparams,
}


def observe(kind, batches, dtype, scheme, **options):
    """Runs one torch observer over the batches and returns it with what it has computed."""
    qscheme = (CHANNEL_QSCHEMES if "PerChannel" in kind else QSCHEMES)[scheme]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observer = getattr(torch_observer, kind)(dtype=TORCH_DTYPES[dtype], qscheme=qscheme, **options)
        for batch in batches:
            observer(torch.from_numpy(batch))
        scale, zero_point = observer.calculate_qparams()
    return observer, scale.numpy(), zero_point.numpy()


def formula_qparams(minimum, maximum, dtype, scheme, options):
    """What torch documents: scale and zero point of an observed range, in float32."""
    low, high = options.get("quant_min"), options.get("quant_max")
    custom = low is not None
    if not custom:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if options["reduce_range"]:
        low, high = low // 2, high // 2
    if scheme == "affine_float_qparams":
        scale = (maximum - minimum) / np.float32(high - low)
        scale = np.where(scale > options["eps"], scale, np.float32(1))
        return scale, -minimum / scale
    below, above = np.minimum(minimum, 0), np.maximum(maximum, 0)
    if scheme == "symmetric":
        scale = np.maximum(np.maximum(-below, above) / np.float32((high - low) / 2), np.float32(options["eps"]))
        zero_point = 0 if dtype == "int8" else (low + high) // 2 if custom else 128
        return scale, np.full(scale.shape, zero_point)
    scale = np.maximum((above - below) / np.float32(high - low), np.float32(options["eps"]))
    return scale, np.clip(low - np.rint(below / scale).astype(np.int64), low, high)


def check_formula(minimum, maximum, scale, zero_point, dtype, scheme, options):
    if np.isinf(minimum).any():  # nothing observed
        minimum = maximum = None
    if minimum is None or minimum.size == 0:
        assert (scale, zero_point) == (1, 0)
        return
    scales, points = formula_qparams(minimum, maximum, dtype, scheme, options)
    np.testing.assert_array_equal(scale, np.reshape(scales, scale.shape))
    np.testing.assert_array_equal(zero_point, np.reshape(points, zero_point.shape))


def observer_case(name, sequence, batches, kind, dtype, scheme, **options):
    observer, scale, zero_point = observe(kind, batches, dtype, scheme, **options)
    record = {"name": name, "observer": kind, "sequence": sequence, "dtype": dtype, "scheme": scheme}
    record["options"] = options
    minimum, maximum = observer.min_val.numpy(), observer.max_val.numpy()
    check_formula(minimum, maximum, scale, zero_point, dtype, scheme, options)
    record.update(min=minimum, max=maximum, scale=scale, zero_point=zero_point)
    return record


def make_observers():
    sequences = {
        "documented": [f32(1, 2, 2, 3, 4, 5, 6), f32(4, 5, 5, 6, 7, 8)],
        "documented_average": [f32(0, 2, 2, 3, 4, 5, 6), f32(2, 5, 5, 6, 7, 10)],
        "normal": [noise(20 + i, 4, 8) for i in range(3)],
        "growing": [noise(30 + i, 16, scale=2.0**i) for i in range(4)],
        "shrinking": [noise(40 + i, 16, scale=2.0**-i) for i in range(4)],
        "positive": [np.abs(noise(50 + i, 12)) + np.float32(0.5) for i in range(2)],
        "negative": [-np.abs(noise(60 + i, 12)) - np.float32(0.5) for i in range(2)],
        "zeros": [np.zeros(4, np.float32)],
        "constant": [np.full((2, 2), 3.25, np.float32)],
        "tiny": [noise(70, 8) * np.float32(1e-7)],
        "with_empty": [f32(-1, 2), np.zeros(0, np.float32), f32(3)],
        "scalar": [np.array(-0.5, np.float32), np.array(1.5, np.float32)],
        "nothing": [],
    }
    cases = []
    for sequence, batches in sequences.items():
        for dtype in ("uint8", "int8"):
            for scheme in QSCHEMES:
                for reduce_range in (False, True):
                    if reduce_range and scheme == "symmetric" and dtype == "uint8":
                        continue  # torch refuses this combination
                    name = f"minmax/{sequence}/{dtype}/{scheme}" + ("/reduced" if reduce_range else "")
                    options = {"reduce_range": reduce_range, "eps": FLOAT_EPSILON}
                    cases.append(observer_case(name, sequence, batches, "MinMaxObserver", dtype, scheme, **options))
    for sequence in ("normal", "tiny", "positive"):
        for dtype, low, high, scheme in (
            ("int8", -127, 127, "symmetric"),
            ("int8", -128, 127, "affine"),
            ("uint8", 0, 127, "affine"),
            ("uint8", 0, 255, "symmetric"),
        ):
            options = {"reduce_range": False, "eps": 2.0**-12, "quant_min": low, "quant_max": high}
            name = f"minmax/{sequence}/{dtype}/{scheme}/{low}..{high}"
            batches = sequences[sequence]
            cases.append(observer_case(name, sequence, batches, "MinMaxObserver", dtype, scheme, **options))
    options = {"reduce_range": True, "eps": FLOAT_EPSILON, "quant_min": 0, "quant_max": 255}
    name = "minmax/normal/uint8/affine/0..255/reduced"
    cases.append(observer_case(name, "normal", sequences["normal"], "MinMaxObserver", "uint8", "affine", **options))

    for sequence in ("documented_average", "normal", "growing", "shrinking", "with_empty", "nothing"):
        for constant in (0.01, 0.5, 1.0):
            for dtype, scheme, reduce_range in (("uint8", "affine", True), ("int8", "symmetric", False)):
                options = {"averaging_constant": constant, "reduce_range": reduce_range, "eps": FLOAT_EPSILON}
                name = f"average/{sequence}/{constant}/{dtype}/{scheme}"
                cases.append(
                    observer_case(
                        name, sequence, sequences[sequence], "MovingAverageMinMaxObserver", dtype, scheme, **options
                    )
                )

    documented = f32(1, 2, 2, 2.5, 3, 4, 4.5, 6, -4, -3, 5, 5, 6, 3, 7, 8).reshape(2, 2, 2, 2)
    sequences["channels_documented"] = [documented]
    sequences["channels_weight"] = [noise(80, 4, 3, 2, 2) * f32(1, 0.1, 3, 1e-9).reshape(4, 1, 1, 1)]
    sequences["channels_batches"] = [noise(90 + i, 2, 3, 2, scale=1.5**i, shift=0.3) for i in range(3)]
    for sequence, axes in {"channels_documented": range(4), "channels_weight": [0], "channels_batches": [1]}.items():
        for axis in axes:
            for dtype, scheme, reduce_range in (
                ("int8", "symmetric", False),
                ("int8", "symmetric", True),
                ("int8", "affine", False),
                ("int8", "affine", True),
                ("uint8", "affine", False),
                ("uint8", "affine", True),
                ("uint8", "symmetric", False),
                ("uint8", "affine_float_qparams", False),
            ):
                options = {"ch_axis": axis, "reduce_range": reduce_range, "eps": FLOAT_EPSILON}
                suffix = f"{sequence}/axis{axis}/{dtype}/{scheme}" + ("/reduced" if reduce_range else "")
                batches = sequences[sequence]
                kind = "PerChannelMinMaxObserver"
                cases.append(observer_case(f"channel/{suffix}", sequence, batches, kind, dtype, scheme, **options))
                if sequence == "channels_batches" and scheme != "affine_float_qparams":
                    kind = "MovingAveragePerChannelMinMaxObserver"
                    options["averaging_constant"] = 0.25
                    name = f"channel_average/{suffix}"
                    cases.append(observer_case(name, sequence, batches, kind, dtype, scheme, **options))
    return {"source": f"torch {torch.__version__}", "sequences": sequences, "cases": cases}


def make_histogram():
    rng = np.random.default_rng(100)

    def heavy(count, scale):
        return (rng.standard_t(3, size=count) * scale).round(3).astype(np.float32)

    def relu(count, scale):
        return np.maximum(rng.normal(size=count) * scale, 0).round(3).astype(np.float32)

    sequences = {
        "documented": [f32(2, 3, 4, 5), f32(5, 6, 7, 8)],
        "ones_zeros": [np.ones(4, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32), f32(2, 3, 4, 5)],
        "normal": [noise(101, 400)],
        "normal_twice": [noise(102, 300), noise(103, 300)],
        "same_range": [f32(-1, 0.2, 0.3, 1), f32(1, -1, 0, 0, 0.7), f32(0.5, -0.5)],
        "growing": [noise(104 + i, 200, scale=1.5**i) for i in range(4)],
        "growing_up": [noise(110 + i, 150, scale=1.0, shift=float(i)) for i in range(4)],
        "growing_down": [noise(115 + i, 150, scale=1.0, shift=-2.0 * i) for i in range(3)],
        "shrinking": [noise(120 + i, 200, scale=2.0**-i) for i in range(3)],
        "relu": [relu(300, 1.0), relu(300, 2.0), relu(300, 1.2)],
        "heavy_tails": [heavy(400, 1.0), heavy(400, 1.0)],
        "outlier": [noise(130, 300), f32(40.0), noise(131, 300)],
        "negative": [-np.abs(noise(132, 200)) - np.float32(0.5), -np.abs(noise(133, 200))],
        "constant": [np.full(6, 2.5, np.float32)],
        "constant_then_range": [np.full(6, 2.5, np.float32), noise(134, 100)],
        "zeros": [np.zeros(8, np.float32)],
        "with_infinity": [np.append(noise(135, 50), f32(np.inf, -np.inf)), noise(136, 50)],
        "with_empty": [np.zeros(0, np.float32), noise(137, 60)],
        "nothing": [],
    }
    cases = []
    for sequence, batches in sequences.items():
        for bins in (3, 8, 64, 2048) if sequence in ("documented", "growing", "relu") else (8, 2048):
            for dtype, scheme, reduce_range in (
                ("uint8", "affine", True),
                ("uint8", "affine", False),
                ("int8", "symmetric", False),
            ):
                options = {"bins": bins, "reduce_range": reduce_range, "eps": FLOAT_EPSILON}
                observer, scale, zero_point = observe("HistogramObserver", batches, dtype, scheme, **options)
                name = f"{sequence}/{bins}/{dtype}/{scheme}" + ("/reduced" if reduce_range else "")
                record = {"name": name, "sequence": sequence, "dtype": dtype, "scheme": scheme, "options": options}
                record.update(min=observer.min_val.numpy(), max=observer.max_val.numpy())
                if batches:
                    low, high = observer._non_linear_param_search()
                    record.update(clipped_min=low.numpy(), clipped_max=high.numpy())
                    check_formula(low.numpy(), high.numpy(), scale, zero_point, dtype, scheme, options)
                if bins <= 64:
                    record["histogram"] = observer.histogram.numpy()
                record.update(scale=scale, zero_point=zero_point)
                cases.append(record)
    return {"source": f"torch {torch.__version__}", "sequences": sequences, "cases": cases}


# ----------------------------------------------------------------------------------------------------------- dynamic


def choose_qparams(minimum, maximum, low, high):
    """ATen's ChooseQuantizationParams without preserve_sparsity, as documented in its source: the scale is a double."""
    minimum, maximum = min(np.float32(minimum), np.float32(0)), max(np.float32(maximum), np.float32(0))
    smallest = np.float32(6.1e-5)
    scale = (float(maximum) - float(minimum)) / (high - low)
    with np.errstate(divide="ignore", over="ignore"):
        if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
            scale = 0.1
    if scale < smallest:
        original, scale = np.float32(scale), float(smallest)
        if minimum == 0:
            maximum = smallest * np.float32(high - low)
        elif maximum == 0:
            minimum = -smallest * np.float32(high - low)
        else:
            amplifier = smallest / original
            minimum, maximum = minimum * amplifier, maximum * amplifier
    from_min, from_max = low - float(minimum) / scale, high - float(maximum) / scale
    error_min, error_max = abs(low) - abs(float(minimum) / scale), abs(high) - abs(float(maximum) / scale)
    zero_point = from_min if error_min < error_max else from_max
    return scale, int(np.clip(np.rint(zero_point), low, high))


def ends(dtype, reduce_range):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return (low // 2, high // 2) if reduce_range else (low, high)


def range_of(x):
    return (min(np.float32(0), x.min()), max(np.float32(0), x.max())) if x.size else (np.float32(0), np.float32(0))


def from_torch(x, dtype, reduce_range, engine):
    if not x.size:  # of which linear_dynamic has the range [0, 0]; this function refuses it
        return *choose_qparams(*range_of(x), *ends(dtype, reduce_range and engine == "fbgemm")), x.astype(dtype)
    torch.backends.quantized.engine = engine
    result = torch.quantize_per_tensor_dynamic(torch.from_numpy(x), TORCH_DTYPES[dtype], reduce_range)
    torch.backends.quantized.engine = "fbgemm"
    limits = ends(dtype, reduce_range and engine == "fbgemm")
    assert choose_qparams(*range_of(x), *limits) == (result.q_scale(), result.q_zero_point())
    return result.q_scale(), result.q_zero_point(), result.int_repr().numpy()


def from_onnx(x, dtype, reduce_range):
    """DynamicQuantizeLinear's formula, in its words over the integers of dtype; ONNX Runtime where that has it."""
    low, high = ends(dtype, reduce_range)
    minimum, maximum = range_of(x)
    scale = (maximum - minimum) / np.float32(high - low)
    tiny = 0 < scale < np.finfo(np.float32).tiny  # for which ONNX Runtime keeps the scale, and we have 1
    if scale < np.finfo(np.float32).tiny:
        scale, zero_point = np.float32(1), low
    else:
        # The grid of int8 is that of uint8, further down.
        zero_point = low + int(np.rint(np.clip(np.float32(0) - minimum / scale, np.float32(0), np.float32(high - low))))
    limits = ends(dtype, False)
    q = np.clip(np.rint(x / scale).astype(np.float64) + zero_point, *limits).astype(dtype)
    if dtype == "uint8" and not reduce_range and x.size and not tiny:
        node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "y_scale", "y_zero_point"])
        outputs = zip(node.output, ("UINT8", "FLOAT", "UINT8"), (x.shape, [], []))
        graph = helper.make_graph([node], "case", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
                                  [helper.make_tensor_value_info(n, onnx.TensorProto.DataType.Value(t), s) for n, t, s in outputs])  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        peer_q, peer_scale, peer_zero = session_of(model).run(None, {"x": x})
        assert (peer_scale, peer_zero) == (scale, zero_point), (peer_scale, scale, peer_zero, zero_point)
        np.testing.assert_array_equal(peer_q, q)
    return float(scale), zero_point, q


def from_nvidia(x, dtype):
    """TensorQuantizer without an amax: max calibration of the tensor itself; the step is the double reciprocal."""
    bound, amax = np.float32(np.iinfo(dtype).max), np.float32(np.abs(x).max() if x.size else 0)
    low = -bound if dtype == "int8" else np.float32(0)
    if amax <= 2.0**-24:
        return 1.0, 0, np.zeros(x.shape, dtype)
    factor = bound / amax
    return float(1 / np.float64(factor)), 0, np.clip(np.rint(x * factor), low, bound).astype(dtype)


def from_tflite(x, dtype):
    """AsymmetricQuantizeFloats: GetAsymmetricQuantizationParams of the tensor's range, ties away from zero."""
    low, high = ends(dtype, False)
    minimum, maximum = (float(v) for v in range_of(x))
    scale = (maximum - minimum) / (high - low)
    if np.float32(scale) == 0:
        return 1.0, 0, np.zeros(x.shape, dtype)
    below, above = abs(low) + abs(minimum / scale), abs(high) + abs(maximum / scale)
    zero = np.clip(low - minimum / scale if below < above else high - maximum / scale, low, high)
    zero_point = int(np.copysign(np.floor(abs(zero) + 0.5), zero))
    steps = (x / np.float32(scale)).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps) + zero_point
    return float(np.float32(scale)), zero_point, np.clip(rounded, low, high).astype(dtype)


def make_dynamic():
    inputs = {
        "normal": noise(200, 4, 8),
        "positive": np.abs(noise(201, 10)) + np.float32(1),
        "negative": -np.abs(noise(202, 10)) - np.float32(1),
        "mostly_positive": noise(203, 16, shift=2.0),
        "mostly_negative": noise(204, 16, shift=-2.0),
        "zeros": np.zeros(5, np.float32),
        "one_value": f32(0.75),
        "below_smallest_scale": noise(205, 8) * np.float32(1e-4),
        "far_below_smallest_scale": noise(206, 8) * np.float32(1e-9),
        "just_above_smallest_scale": noise(207, 8) * np.float32(0.02),
        "large": noise(208, 8, scale=1e6),
        "smallest_normal": f32(1.1754944e-38, -1.1754944e-38),
        "quarters": f32(-1.0, -0.25, 0.25, 1.5, 2.0),
        # Here the zero point of a scale in float32 is another one.
        "tie": f32(-227.0, 3.0, 227.0),
        "denormal": f32(1.457e-42, -1.96e-42),
        "empty": np.zeros((0, 3), np.float32),
    }
    cases = []
    for name, x in inputs.items():
        for dtype in ("uint8", "int8"):
            for reduce_range in (False, True):
                results = {
                    "fbgemm": from_torch(x, dtype, reduce_range, "fbgemm"),
                    "qnnpack": from_torch(x, dtype, reduce_range, "qnnpack"),
                    "onnx": from_onnx(x, dtype, reduce_range),
                    "tflite": from_tflite(x, dtype),
                }
                if dtype == "int8" or (x >= 0).all():
                    results["nvidia"] = from_nvidia(x, dtype)
                for numerics, (scale, zero_point, q) in results.items():
                    record = {"name": f"{name}/{numerics}/{dtype}" + ("/reduced" if reduce_range else "")}
                    record.update(numerics=numerics, dtype=dtype, reduce_range=reduce_range, x=x)
                    record.update(scale=scale, zero_point=zero_point, q=q)
                    cases.append(record)
    return {"source": f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, numpy {np.__version__}", "cases": cases}


# ----------------------------------------------------------------------------------------------------------- qlinear


def exact_accumulators(op, x, w, bias, attrs):
    """Integer sums, by torch in float64 (exact here: every sum is far below 2^53)."""
    x, w = torch.from_numpy(x.astype(np.float64)), torch.from_numpy(w.astype(np.float64))
    if op == "QLinearConv":
        pads = attrs.get("pads", [0] * 2 * (x.ndim - 2))
        half = len(pads) // 2
        pairs = [value for axis in reversed(range(half)) for value in (pads[axis], pads[axis + half])]
        bias = None if bias is None else torch.from_numpy(bias.astype(np.float64))
        conv = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d}[half]
        strides, dilations = attrs.get("strides", [1] * half), attrs.get("dilations", [1] * half)
        result = conv(torch.nn.functional.pad(x, pairs), w, bias, strides, 0, dilations, attrs.get("group", 1))
        return result.numpy()
    x = x.T if attrs.get("transA") else x
    w = w.T if attrs.get("transB") else w
    return (x @ w).numpy() + (0 if bias is None else bias)


def integer_case(name, op, x_shape, w_shape, channels, dtype="uint8", w_dtype="int8", bias=True, w_zero=0, **attrs):
    """One integer node. The seed is the first for which no output lies near a tie: the answer then is the same for any
    sound order of the float operations."""
    channel_axis = 0 if op == "QLinearConv" else None
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = rng.integers(low, high + 1, x_shape).astype(dtype)
        w = rng.integers(np.iinfo(w_dtype).min, np.iinfo(w_dtype).max + 1, w_shape).astype(w_dtype)
        x_zero, y_zero = rng.integers(low + 40, high - 40, 2)
        x_scale = np.float32(round(rng.uniform(0.01, 0.05), 4))
        count = channels or 1
        w_scale = rng.uniform(0.001, 0.01, count).round(5).astype(np.float32)
        b = rng.integers(-20000, 20000, w_shape[0] if channel_axis == 0 else count).astype(np.int32) if bias else None
        sums = exact_accumulators(op, x.astype(np.int64) - x_zero, w.astype(np.int64) - w_zero, b, attrs)
        per_output = w_scale.reshape([-1] + [1] * (len(x_shape) - 2)) if channel_axis == 0 else w_scale
        real = sums * (np.float64(x_scale) * per_output.astype(np.float64))
        # About one output in twenty saturates.
        y_scale = np.float32(round(float(np.quantile(np.abs(real), 0.9)) / 110, 4))
        exact = real / np.float64(y_scale)
        if np.abs(np.abs(exact - np.floor(exact)) - 0.5).min() > 1e-3:
            break
    else:
        raise SystemExit(f"{name}: no seed without ties")

    scale_of_w = w_scale if channels else w_scale[0]
    zero_of_w = np.full(channels, w_zero, w_dtype) if channels else np.array(w_zero, w_dtype)
    feeds = {"x": x, "x_scale": np.array(x_scale), "x_zero_point": np.array(x_zero, dtype)}
    feeds.update(w=w, w_scale=np.array(scale_of_w), w_zero_point=zero_of_w)
    tail = {"y_scale": np.array(y_scale), "y_zero_point": np.array(y_zero, dtype)}
    if op == "QGemm":
        feeds.update({"bias": b} if bias else {})
        order = [*feeds] + ([] if bias else [""]) + [*tail]
        feeds.update(tail)
        model = node_model(op, feeds, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), "com.microsoft", **attrs)
        model.graph.node[0].input[:] = order
    else:
        feeds.update(tail)
        feeds.update({"bias": b} if bias else {})
        model = node_model(op, feeds, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), **attrs)
    (y,) = session_of(model).run(None, feeds)
    limits = np.iinfo(dtype)
    np.testing.assert_array_equal(y, np.clip(np.rint(exact) + y_zero, limits.min, limits.max), err_msg=name)
    record = {"name": name, "op": op, "attrs": attrs, **feeds, "accumulator": sums.astype(np.int32), "y": y}
    return record


def make_qlinear():
    conv, square = "QLinearConv", [1, 1, 1, 1]
    cases = [
        integer_case("conv_per_tensor", conv, (1, 3, 5, 5), (4, 3, 3, 3), None),
        integer_case("conv_per_channel", conv, (1, 3, 5, 5), (4, 3, 3, 3), 4),
        integer_case("conv_no_bias", conv, (2, 2, 4, 4), (3, 2, 3, 3), 3, bias=False),
        # Padding counts as the zero point of x, not as the integer 0.
        integer_case("conv_pads", conv, (1, 2, 5, 5), (3, 2, 3, 3), 3, pads=square),
        integer_case("conv_pads_asymmetric", conv, (1, 2, 5, 4), (3, 2, 3, 3), 3, pads=[0, 1, 2, 0]),
        integer_case("conv_strides", conv, (1, 3, 7, 7), (4, 3, 3, 3), 4, pads=square, strides=[2, 2]),
        integer_case("conv_dilations", conv, (1, 2, 7, 7), (3, 2, 3, 3), 3, dilations=[2, 2], pads=[2, 2, 2, 2]),
        integer_case("conv_pointwise", conv, (1, 16, 3, 3), (8, 16, 1, 1), 8),
        integer_case("conv_pointwise_strided", conv, (1, 5, 4, 4), (3, 5, 1, 1), 3, strides=[2, 2]),
        integer_case("conv_groups", conv, (1, 6, 4, 4), (4, 3, 3, 3), 4, group=2, pads=square),
        integer_case("conv_depthwise", conv, (1, 8, 5, 5), (8, 1, 3, 3), 8, group=8, pads=square),
        integer_case("conv_depthwise_even", conv, (1, 5, 6, 6), (5, 1, 3, 3), 5, group=5, strides=[2] * 2, pads=square),
        integer_case("conv_depthwise_5x5", conv, (1, 3, 6, 6), (3, 1, 5, 5), 3, group=3, pads=[2, 2, 2, 2]),
        integer_case("conv_depthwise_multiplier", conv, (1, 3, 5, 5), (6, 1, 3, 3), 6, group=3),
        integer_case("conv_1d", conv, (1, 4, 9), (3, 4, 3), 3, pads=[1, 1], strides=[2]),
        integer_case("conv_long_sums", conv, (1, 64, 3, 3), (2, 64, 3, 3), 2),
        integer_case("conv_int8", conv, (1, 3, 5, 5), (4, 3, 3, 3), 4, dtype="int8", pads=square),
        integer_case("conv_int8_depthwise", conv, (1, 4, 5, 5), (4, 1, 3, 3), 4, dtype="int8", group=4, pads=square),
        integer_case("conv_uint8_weight", conv, (1, 3, 5, 5), (4, 3, 3, 3), None, w_dtype="uint8", w_zero=117),
        integer_case("matmul", "QLinearMatMul", (3, 20), (20, 7), None, bias=False),
        integer_case("matmul_per_column", "QLinearMatMul", (4, 33), (33, 5), 5, bias=False),
        integer_case("matmul_int8", "QLinearMatMul", (2, 16), (16, 9), 9, dtype="int8", bias=False),
        integer_case("gemm", "QGemm", (3, 20), (20, 7), None),
        integer_case("gemm_trans_b", "QGemm", (2, 64), (10, 64), 10, transB=1),
        integer_case("gemm_one_row", "QGemm", (1, 130), (11, 130), 11, transB=1),
        integer_case("gemm_no_bias", "QGemm", (4, 9), (9, 4), 4, bias=False),
        integer_case("gemm_int8", "QGemm", (3, 12), (6, 12), 6, dtype="int8", transB=1),
    ]
    return {"source": f"onnxruntime {onnxruntime.__version__}", "cases": cases}


def integers(random, dtype, shape):
    """A tensor of any integers on any grid."""
    info = np.iinfo(dtype)
    scale, zero = np.float32(random.uniform(0.002, 0.1)), int(random.integers(info.min, info.max + 1))
    q = random.integers(info.min, info.max + 1, shape).astype(dtype)
    return {"q": q, "scale": float(scale), "zero_point": zero}


def in_torch(t):
    return torch._make_per_tensor_quantized_tensor(torch.from_numpy(t["q"]), t["scale"], t["zero_point"])


def answer(y):
    return {"q": y.int_repr().numpy(), "scale": y.q_scale(), "zero_point": y.q_zero_point()}


def make_functional():
    random = np.random.default_rng(77)
    cases = []
    for dtype in ("uint8", "int8"):
        info = np.iinfo(dtype)
        for shapes in [((257,), (257,)), ((3, 1, 30), (4, 1)), ((2, 5, 7, 6), (1, 5, 1, 1))]:
            a, b = (integers(random, dtype, shape) for shape in shapes)
            for spread_of in (0.2, 2):
                scale = np.float32(a["scale"] * b["scale"] * 100 * spread_of)
                grid = {"scale": float(scale), "zero_point": int(random.integers(info.min, info.max + 1))}
                wide = [{**t, "q": np.broadcast_to(t["q"], np.broadcast_shapes(*shapes)).copy()} for t in (a, b)]
                for op in ("mul", "mul_relu"):
                    x, y = wide  # PyTorch's do not broadcast
                    made = getattr(torch.ops.quantized, op)(in_torch(x), in_torch(y), grid["scale"], grid["zero_point"])
                    cases.append({"op": op, "a": a, "b": b, "y": answer(made)})
        for scalar in (0.5, -2.0, 3.0, -0.37, 1e-3, -40.0, 0.03125):
            a = integers(random, dtype, (300,))
            cases.append({"op": "mul_scalar", "a": a, "scalar": scalar, "y": answer(torch.ops.quantized.mul_scalar(in_torch(a), scalar))})
            # PyTorch rounds the number to a multiple of the scale first: that is what is added here.
            whole = float(np.float32(np.rint(np.float32(scalar) / np.float32(a["scale"])) * a["scale"]))
            cases.append({"op": "add_scalar", "a": a, "scalar": whole, "y": answer(torch.ops.quantized.add_scalar(in_torch(a), scalar))})
        for shapes in [((3, 17, 40), (3, 40, 9)), ((2, 2, 5, 8), (2, 2, 8, 1))]:
            if dtype != "uint8":
                continue  # which is what PyTorch takes
            a, b = (integers(random, dtype, shape) for shape in shapes)
            scale = float(np.float32(a["scale"] * b["scale"] * 40 * 100))
            made = torch.ops.quantized.matmul(in_torch(a), in_torch(b), scale, int(random.integers(0, 256)))
            cases.append({"op": "matmul", "a": a, "b": b, "y": answer(made)})
    return {"source": f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}", "cases": cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "quant")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    torch.backends.quantized.engine = "fbgemm"
    out.mkdir(parents=True, exist_ok=True)
    makers = {
        "quantize": make_quantize,
        "observers": make_observers,
        "histogram": make_histogram,
        "dynamic": make_dynamic,
        "qlinear": make_qlinear,
        "functional": make_functional,
    }
    for name, make in makers.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document = make()
        golden_json.write(out / f"{name}.json", document)
        print(f"{name}: {len(document['cases'])} cases", flush=True)


if __name__ == "__main__":
    main()
