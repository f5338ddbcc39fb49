#!/usr/bin/env python3
"""Makes ops/<Op>.json: golden vectors of single operators, in the newest form each has at opset 21,
or later where it came later.

From: ONNX's reference evaluator, cross-checked with ONNX Runtime. Where the two disagree, or one cannot run the case,
the case says which one is right (`only=`) and the reason stands beside it. Operators of the domain com.microsoft are
known to ONNX Runtime alone, and operators of ours are functions of ONNX's own, written here once more. Inputs are seeded by operator and case name.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_ops.py [OP ...]
"""

import argparse
import json
import pathlib
import sys
import zlib

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import cases_experts
import cases_nn
import cases_rnn
import cases_sequence
import cases_tensor
import golden_json
from arrays import CLOSE, EXACT, NOTHING, f32, f64, i64, ramp, scalar, truths

OPSET = 21
IR_VERSION = 10
CASES = {}
# Operators that came after OPSET or changed then, with the opset that their cases are written for; those that have an
# older form, only where ONNX's reference alone judges.
NEWER = {"Attention": 25, "BitCast": 26, "CausalConvWithState": 27, "Celu": 28, "CumProd": 26, "LinearAttention": 27,
         "RMSNormalization": 23, "RotaryEmbedding": 23,
         "SpaceToDepth": 28, "SwiGLU": 28, "Swish": 24, "TensorScatter": 24}
MICROSOFT = {
    "QuickGelu",
    "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulNBits", "QGemm", "QLinearAdd", "QLinearAveragePool",
    "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax",
    "GroupQueryAttention", "Inverse", "MoE", "MultiHeadAttention", "QMoE",
}  # fmt: skip
OPTIMIZERS = {"Adagrad", "Adam", "Momentum"}
# Rows of a are uint8 as DynamicQuantizeLinear has it, columns of b int8 around 0, floats multiplied by the inverse of their scale.
OWN = {"DynamicMatMul": """
<domain: "qtensor", opset_import: ["" : 21]>
{name} (a, b) => (y) {{
  last = Constant<value_ints = [-1]>()
  first = Constant<value_ints = [-2]>()
  nothing = Constant<value_float = 0.0>()
  most = Constant<value_float = 255.0>()
  {b_used}
  least_a = ReduceMin(a, last)
  lo = Min(least_a, nothing)
  most_a = ReduceMax(a, last)
  hi = Max(most_a, nothing)
  range = Sub(hi, lo)
  scale_a = Div(range, most)
  inverse_a = Reciprocal(scale_a)
  below = Mul(lo, inverse_a)
  steps_below = Round(below)
  zero_a = Neg(steps_below)
  steps_a = Mul(a, inverse_a)
  whole_a = Round(steps_a)
  moved_a = Add(whole_a, zero_a)
  inside_a = Clip(moved_a, nothing, most)
  real_a = Sub(inside_a, zero_a)
  size_b = Abs(used_b)
  peak = ReduceMax(size_b, first)
  most_b = Constant<value_float = 127.0>()
  scale_b = Div(peak, most_b)
  inverse_b = Reciprocal(scale_b)
  steps_b = Mul(used_b, inverse_b)
  real_b = Round(steps_b)
  sums = MatMul(real_a, real_b)
  scale = Mul(scale_a, scale_b)
  y = Mul(sums, scale)
}}
""",
       "DynamicQuantizeConv": """
<domain: "qtensor", opset_import: ["" : 21]>
{name} ({inputs}) => (y) {{
  q, scale_x, zero_x = DynamicQuantizeLinear(x)
  sums = ConvInteger {attrs}(q, w, zero_x{zero})
  real = Cast <to = 1> (sums)
  rest = Constant<value_ints = [-1, {ones}]>()
  by_channel = Reshape(scale_w, rest)
  scale = Mul(scale_x, by_channel)
  {result}
}}
"""}


def own_function(case, attrs):
    """Sums of few products of integers are exact in float32, too. Takes what it says out of the attributes."""
    texts = {"name": case.op}
    if case.op == "DynamicMatMul":
        centered = attrs.pop("centered", 0)
        texts["b_used"] = "mean_b = ReduceMean(b, last)\n  used_b = Sub(b, mean_b)" if centered else "used_b = Identity(b)"
    else:
        there = [value is not None for value in case.inputs] + [False, False]
        texts["inputs"] = ", ".join(("x", "w", "scale_w", "zero_w", "bias")[:len(case.inputs)])
        list_of = ", ".join(f"{key} = {json.dumps(value)}" for key, value in attrs.items())
        texts["attrs"] = f"<{list_of}> " if attrs else ""
        texts["ones"] = ", ".join(["1"] * (np.ndim(case.inputs[1]) - 2))
        texts["zero"] = ", zero_w" if there[3] else ""
        texts["result"] = "y = Mul(real, scale)"
        if there[4]:
            texts["result"] = "scaled = Mul(real, scale)\n  moved = Reshape(bias, rest)\n  y = Add(scaled, moved)"
        attrs.clear()
    return onnx.parser.parse_function(OWN[case.op].format(**texts))


class Case:
    """One node: what goes in, and how the expectation is obtained."""

    def __init__(self, op, name, inputs, attrs, outputs, tolerance, only, open_axes):
        self.op, self.name, self.inputs, self.attrs = op, name, inputs, attrs
        self.output_count, self.tolerance, self.only = outputs, tolerance, only
        self.open_axes = open_axes  # lengths are not said, where inference would refuse them

    def opset(self):
        if self.op in OPTIMIZERS or self.op in OWN:
            return OPSET
        is_new = not onnx.defs.has(self.op, OPSET, "")
        return NEWER.get(self.op, OPSET) if is_new or self.only == "reference" else OPSET

    def model(self):
        feeds = {f"x{i}": np.asarray(value) for i, value in enumerate(self.inputs) if value is not None}
        names = ["" if value is None else f"x{i}" for i, value in enumerate(self.inputs)]
        outputs = [f"y{i}" for i in range(self.output_count)]
        attrs = {
            key: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
            for key, value in self.attrs.items()
        }
        domain = "com.microsoft" if self.op in MICROSOFT else "ai.onnx.preview.training" if self.op in OPTIMIZERS else ""
        functions = []
        if self.op in OWN:
            domain, functions = "qtensor", [own_function(self, attrs)]
        node = helper.make_node(self.op, names, outputs, domain=domain, **attrs)
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim if self.open_axes else value.shape
            )
            for name, value in feeds.items()
        ]
        constants = []
        if "accuracy_level" in self.attrs:  # which ONNX Runtime heeds where weights are constants
            constants = [numpy_helper.from_array(feeds.pop(name), name) for name in list(feeds)[1:]]
            inputs = inputs[:1]
        graph = helper.make_graph(
            [node], "case", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs], constants
        )
        opset = self.opset()
        opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=IR_VERSION if opset == OPSET else 11)
        # Type inference fills in the element types of the outputs, which ONNX Runtime wants to know.
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        return inferred, feeds

    def run(self):
        """Outputs, or a SystemExit that says where the two references part."""
        model, feeds = self.model()
        results = {}
        if self.only != "onnxruntime":
            results["reference"] = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
        if self.only != "reference":
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            results["onnxruntime"] = session.run(None, feeds)
        if len(results) == 2:
            for mine, other in zip(results["reference"], results["onnxruntime"]):
                self.check_equal(np.asarray(mine), np.asarray(other))
        outputs = next(iter(results.values()))
        if self.op in OPTIMIZERS:  # the reference computes wider than it says
            outputs = [np.asarray(output).astype(np.asarray(self.inputs[2]).dtype) for output in outputs]
        return [np.asarray(output) for output in outputs]

    def check_equal(self, reference, runtime):
        same = reference.shape == runtime.shape and reference.dtype == runtime.dtype
        if same and reference.dtype.kind == "f":
            same = np.allclose(reference, runtime, rtol=self.tolerance, atol=self.tolerance, equal_nan=True)
        elif same:
            same = np.array_equal(reference, runtime)
        if not same:
            raise ValueError(
                f"reference {reference.dtype} {list(reference.shape)} {reference.ravel()[:24]}\n"
                f"onnxruntime {runtime.dtype} {list(runtime.shape)} {runtime.ravel()[:24]}"
            )

    def to_json(self):
        outputs = self.run()
        too_big = [t.shape for t in [*self.inputs, *outputs] if t is not None and np.size(t) > 200]
        if too_big:
            raise ValueError(f"more than 200 elements: {too_big}")
        record = {"name": self.name, "attrs": self.attrs}
        record["inputs"] = [None if value is None else golden_json.Tensor(value) for value in self.inputs]
        record["outputs"] = [golden_json.Tensor(value) for value in outputs]
        record["tolerance"] = self.tolerance
        if self.only:
            record["source"] = self.only
        return record


def case(op, name, *inputs, outputs=1, tolerance=CLOSE, only=None, open_axes=False, **attrs):
    """Adds a case. Inputs are arrays, None for an absent one, or a tuple: the shape of seeded random float32."""
    rng = np.random.default_rng(zlib.crc32(f"{op}/{name}".encode()))
    # Three decimals keep the files small and the values readable.
    arrays = [rng.normal(size=v).round(3).astype(np.float32) if isinstance(v, tuple) else v for v in inputs]
    if op in MICROSOFT:
        only = "onnxruntime"
    cases = CASES.setdefault(op, [])
    assert name not in {other.name for other in cases}, f"{op}/{name} twice"
    cases.append(Case(op, name, arrays, attrs, outputs, tolerance, only, open_axes))


SPECIAL = f32(np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-38, -3e38, 88.8, -104.0)


def convolution():
    case("Conv", "basic", (1, 2, 5, 5), (3, 2, 3, 3), (3,))
    case("Conv", "no_bias", (2, 2, 4, 5), (3, 2, 3, 3))
    case("Conv", "pointwise", (2, 3, 3, 4), (5, 3, 1, 1), (5,), kernel_shape=[1, 1])
    case("Conv", "strides", (1, 2, 7, 6), (2, 2, 3, 3), (2,), strides=[2, 3], pads=[1, 1, 1, 1])
    case("Conv", "pads_asymmetric", (1, 2, 4, 4), (2, 2, 3, 3), (2,), pads=[0, 1, 2, 3])
    case("Conv", "dilations", (1, 1, 7, 8), (2, 1, 3, 2), (2,), dilations=[2, 3], pads=[2, 0, 2, 1])
    case("Conv", "groups", (1, 4, 4, 4), (6, 2, 3, 3), (6,), group=2, pads=[1, 1, 1, 1])
    case("Conv", "depthwise", (1, 4, 5, 5), (4, 1, 3, 3), (4,), group=4, pads=[1, 1, 1, 1])
    case("Conv", "depthwise_multiplier", (1, 3, 5, 5), (6, 1, 3, 3), (6,), group=3, strides=[2, 2])
    case("Conv", "rectangular_kernel", (1, 2, 4, 6), (2, 2, 1, 5), (2,), pads=[0, 2, 0, 2])
    for auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        name = f"auto_pad_{auto_pad.lower()}"
        case("Conv", name, (1, 2, 5, 6), (2, 2, 2, 3), (2,), auto_pad=auto_pad, strides=[2, 2], kernel_shape=[2, 3])
    case("Conv", "auto_pad_same_upper_unit_stride", (1, 1, 4, 4), (1, 1, 4, 4), auto_pad="SAME_UPPER")
    # ONNX Runtime does not join SAME padding with dilations.
    case(
        "Conv", "auto_pad_same_upper_dilated", (1, 1, 6, 6), (1, 1, 3, 3), auto_pad="SAME_UPPER", dilations=[2, 2],
        only="reference",
    )  # fmt: skip
    case("Conv", "kernel_larger_than_input", (1, 1, 2, 2), (1, 1, 3, 3), (1,), pads=[1, 1, 1, 1])
    case("Conv", "1d", (2, 3, 9), (4, 3, 3), (4,), strides=[2], pads=[1, 0])
    case("Conv", "1d_depthwise_dilated", (1, 3, 9), (3, 1, 3), (3,), group=3, dilations=[2], pads=[2, 2])
    case("Conv", "1d_auto_pad", (1, 2, 7), (2, 2, 4), (2,), auto_pad="SAME_LOWER", strides=[3])
    case("Conv", "empty_batch", (0, 2, 4, 4), (3, 2, 3, 3), (3,))


def transposed_convolution():
    op = "ConvTranspose"
    case(op, "basic", (1, 2, 3, 3), (2, 3, 3, 3), (3,))
    case(op, "no_bias", (2, 2, 3, 2), (2, 3, 2, 2))
    case(op, "pointwise", (1, 3, 3, 4), (3, 4, 1, 1), (4,), kernel_shape=[1, 1])
    case(op, "strides", (1, 2, 3, 2), (2, 2, 3, 3), (2,), strides=[2, 3])
    case(op, "stride_beyond_kernel", (1, 1, 2, 3), (1, 2, 2, 1), (2,), strides=[3, 2])
    case(op, "upsample", (1, 2, 3, 4), (2, 3, 2, 2), (3,), strides=[2, 2])
    case(op, "pads", (1, 2, 4, 4), (2, 2, 3, 3), (2,), strides=[2, 2], pads=[1, 1, 1, 1])
    case(op, "pads_asymmetric", (1, 2, 4, 3), (2, 2, 3, 3), (2,), strides=[2, 2], pads=[0, 1, 2, 0])
    case(op, "dilations", (1, 1, 4, 3), (1, 2, 2, 3), (2,), dilations=[2, 3])
    attrs = {"strides": [3, 2], "output_padding": [2, 1], "pads": [1, 1, 0, 1]}
    case(op, "output_padding", (1, 1, 3, 3), (1, 2, 3, 3), (2,), **attrs)
    # The reference evaluator takes output_shape without SAME for one without pads, and splits groups wrongly.
    runtime = {"only": "onnxruntime"}
    case(op, "output_shape", (1, 1, 3, 3), (1, 2, 3, 3), (2,), strides=[2, 2], output_shape=[5, 6], **runtime)
    case(op, "output_shape_beyond_all", (1, 1, 3, 3), (1, 2, 3, 3), (2,), strides=[3, 2], output_shape=[10, 8])
    case(op, "groups", (1, 4, 3, 3), (4, 3, 3, 2), (6,), group=2, strides=[2, 1], **runtime)
    case(op, "depthwise", (1, 3, 4, 4), (3, 1, 3, 3), (3,), group=3, strides=[2, 2], pads=[1, 1, 1, 1], **runtime)
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        name = f"auto_pad_{auto_pad.lower()}"
        case(op, name, (1, 2, 3, 4), (2, 2, 4, 3), (2,), auto_pad=auto_pad, strides=[3, 2])
        attrs = {"auto_pad": auto_pad, "strides": [3, 2], "output_shape": [8, 7]}
        case(op, f"{name}_output_shape", (1, 1, 3, 4), (1, 2, 4, 3), (2,), **attrs)
    case(op, "auto_pad_valid", (1, 1, 3, 3), (1, 2, 3, 3), (2,), auto_pad="VALID", strides=[2, 2])
    case(op, "1d", (2, 2, 5), (2, 3, 3), (3,), strides=[2], pads=[1, 0])
    case(op, "1d_groups", (1, 4, 5), (4, 2, 4), group=2, strides=[2], dilations=[2], **runtime)
    case(op, "3d", (1, 2, 2, 2, 2), (2, 2, 2, 2, 2), (2,), strides=[1, 2, 2])
    case(op, "double", ramp(1, 2, 3, dtype=np.float64), ramp(2, 2, 2, dtype=np.float64) / 7, only="reference")
    case(op, "empty_batch", (0, 2, 3, 3), (2, 3, 3, 3), (3,), only="onnxruntime")


def products():
    case("Gemm", "basic", (3, 4), (4, 5), (5,))
    case("Gemm", "no_bias", (3, 4), (4, 5))
    case("Gemm", "trans_a", (4, 3), (4, 5), (3, 5), transA=1)
    case("Gemm", "trans_b", (3, 4), (5, 4), (5,), transB=1)
    case("Gemm", "trans_both", (4, 3), (5, 4), (1, 5), transA=1, transB=1)
    case("Gemm", "alpha_beta", (3, 4), (5, 4), (5,), transB=1, alpha=0.5, beta=-2.0)
    case("Gemm", "alpha_without_bias", (2, 4), (4, 3), alpha=-1.5)
    case("Gemm", "beta_zero", (2, 3), (3, 2), (2, 2), beta=0.0)
    case("Gemm", "bias_scalar", (3, 4), (4, 2), scalar(0.5))
    case("Gemm", "bias_one_element", (3, 4), (4, 2), (1,))
    case("Gemm", "bias_column", (3, 4), (4, 2), (3, 1))
    case("Gemm", "bias_full", (3, 4), (4, 2), (3, 2))
    case("Gemm", "one_row", (1, 16), (10, 16), (10,), transB=1)
    case("Gemm", "no_rows", (0, 4), (4, 3), (3,))

    case("MatMul", "2d", (3, 4), (4, 5))
    case("MatMul", "batched", (2, 3, 4), (2, 4, 2))
    case("MatMul", "batched_4d", (2, 2, 2, 3), (2, 2, 3, 2))
    case("MatMul", "broadcast_right", (2, 3, 4), (4, 5))
    case("MatMul", "broadcast_left", (3, 4), (2, 4, 2))
    case("MatMul", "broadcast_both", (2, 1, 3, 2), (1, 3, 2, 4))
    case("MatMul", "vector_vector", (5,), (5,))
    case("MatMul", "vector_matrix", (4,), (4, 3))
    case("MatMul", "matrix_vector", (3, 4), (4,))
    case("MatMul", "vector_batched", (4,), (2, 4, 3))
    case("MatMul", "batched_vector", (2, 3, 4), (4,))
    case("MatMul", "no_rows", (0, 4), (4, 3))
    case("MatMul", "no_inner_dimension", (2, 0), (0, 3))


def normalization():
    positive = f32(0.5, 2.0, 1.25)
    case("BatchNormalization", "2d", (2, 3, 2, 3), (3,), (3,), (3,), positive)
    case("BatchNormalization", "epsilon", (2, 3, 2, 2), (3,), (3,), (3,), f32(0.0, 1e-4, 1.0), epsilon=0.01)
    case("BatchNormalization", "momentum_has_no_effect", (1, 3, 2, 2), (3,), (3,), (3,), positive, momentum=0.1)
    case("BatchNormalization", "1d", (2, 3, 5), (3,), (3,), (3,), positive)
    case("BatchNormalization", "no_spatial", (4, 3), (3,), (3,), (3,), positive)
    case("BatchNormalization", "empty_batch", (0, 3, 2, 2), (3,), (3,), (3,), positive)
    for name, shape in {"planes": (2, 3, 2, 4), "rows": (5, 3)}.items():
        case("BatchNormalization", f"of_the_batch_{name}", shape, (3,), (3,), (3,), positive, training_mode=1,
             momentum=0.75, outputs=3)  # fmt: skip


    op = "InstanceNormalization"
    case(op, "2d", (2, 3, 3, 4), (3,), (3,))
    case(op, "1d", (2, 3, 5), (3,), (3,))
    case(op, "3d", (1, 2, 2, 3, 2), (2,), (2,))
    case(op, "epsilon", (1, 2, 3, 3), (2,), (2,), epsilon=0.1)
    case(op, "one_pixel", (2, 3, 1, 1), (3,), (3,))
    case(op, "far_from_zero", (1000 + ramp(1, 2, 3, 3) / 8), (2,), (2,), tolerance=1e-3)
    case(op, "double", ramp(1, 2, 5, dtype=np.float64), f64(1, -2), f64(0.5, 3), only="reference")

    op = "LayerNormalization"
    case(op, "last_axis", (2, 3, 4), (4,), (4,))
    case(op, "no_bias", (2, 3, 4), (4,))
    case(op, "all_outputs", (2, 3, 4), (4,), (4,), outputs=3)
    case(op, "axis_1", (2, 3, 4), (3, 4), (3, 4), axis=1, outputs=3)
    case(op, "axis_0", (2, 3, 4), (2, 3, 4), (2, 3, 4), axis=0, outputs=3)
    case(op, "axis_minus_2", (2, 3, 2, 4), (2, 4), (2, 4), axis=-2)
    case(op, "epsilon", (3, 5), (5,), (5,), epsilon=0.1)
    case(op, "scale_broadcasts", (2, 3, 4), (1, 4), (4,), axis=1)
    case(op, "one_element", (3, 1), (1,), (1,))
    case(op, "double", ramp(2, 5, dtype=np.float64), f64(1, -2, 0, 3, 1), f64(0, 1, 2, 3, 4))


def activations():
    unary = {"Relu": EXACT, "Sigmoid": CLOSE, "HardSigmoid": CLOSE, "HardSwish": CLOSE, "Tanh": CLOSE, "Exp": CLOSE}
    unary |= dict.fromkeys(("LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "Gelu", "Erf"), CLOSE)
    for op, tolerance in unary.items():
        case(op, "3d", (2, 3, 4), tolerance=tolerance)
        case(op, "range", np.linspace(-8, 8, 33, dtype=np.float32), tolerance=tolerance)
        # The reference evaluator has no Softsign of a scalar.
        case(op, "scalar", scalar(-0.75), tolerance=tolerance, only="onnxruntime" if op == "Softsign" else None)
        case(op, "empty", (2, 0, 3), tolerance=tolerance)
    case("HardSigmoid", "alpha_beta", (2, 8), alpha=1 / 6, beta=0.4)
    case("LeakyRelu", "alpha", (2, 8), alpha=0.2)
    case("LeakyRelu", "alpha_zero", (2, 8), alpha=0.0)
    case("Relu", "special", SPECIAL, tolerance=EXACT)
    case("LeakyRelu", "special", SPECIAL)
    case("Sigmoid", "special", SPECIAL)
    case("Tanh", "special", SPECIAL)
    case("Exp", "special", SPECIAL)
    for op in ("Elu", "Selu", "Softplus", "Mish", "Gelu", "Erf"):
        # ONNX Runtime has no form for double.
        case(op, "double", np.linspace(-40, 40, 33), only="reference")
        case(op, "nan", f32(np.nan, 0.0, 1.0))
    case("Elu", "alpha", (2, 8), alpha=2.5)
    case("Selu", "alpha_gamma", (2, 8), alpha=2.0, gamma=3.0)
    for op in ("Softplus", "Mish"):
        case(op, "large", f32(-200, -104, -30, 30, 88, 89, 200))
    case("Gelu", "none", (2, 8), approximate="none")
    case("Gelu", "tanh", (2, 8), approximate="tanh")
    case("Gelu", "tanh_range", np.linspace(-8, 8, 33, dtype=np.float32), approximate="tanh")
    case("Erf", "special", SPECIAL)
    case("Relu", "int32", np.array([-3, 0, 5], np.int32), tolerance=EXACT)

    case("Clip", "min_max", (3, 5), scalar(-0.5), scalar(0.75), tolerance=EXACT)
    case("Clip", "min_only", (3, 5), scalar(-0.5), tolerance=EXACT)
    case("Clip", "max_only", (3, 5), None, scalar(0.75), tolerance=EXACT)
    case("Clip", "neither", (3, 5), tolerance=EXACT)
    case("Clip", "relu6", (3, 5), scalar(0), scalar(6), tolerance=EXACT)
    case("Clip", "min_above_max", (7,), scalar(0.5), scalar(-0.5), tolerance=EXACT)
    case("Clip", "scalar", scalar(3), scalar(0), scalar(1), tolerance=EXACT)
    case("Clip", "empty", (0,), scalar(0), scalar(1), tolerance=EXACT)
    case("Clip", "special", SPECIAL, scalar(-1), scalar(1), tolerance=EXACT)
    case("Clip", "int64", i64(-5, 0, 7), scalar(-1, np.int64), scalar(3, np.int64), tolerance=EXACT)

    case("PRelu", "same_shape", (2, 3, 4), (2, 3, 4))
    case("PRelu", "per_channel", (2, 3, 2, 2), (3, 1, 1))
    case("PRelu", "one_element", (2, 3, 4), (1,))
    case("PRelu", "last_axis", (2, 3, 4), (4,))
    case("PRelu", "scalar_slope", (2, 5), scalar(0.25))
    case("PRelu", "scalar", scalar(-2), scalar(0.25))
    case("PRelu", "empty", (0, 3), (3,))

    for op in ("Softmax", "LogSoftmax"):
        case(op, "default_axis", (2, 3, 4))
        case(op, "axis_0", (3, 4), axis=0)
        case(op, "axis_1", (2, 3, 4), axis=1)
        case(op, "axis_minus_2", (2, 3, 4), axis=-2)
        case(op, "1d", (10,))
        # The reference's LogSoftmax takes the logarithm of what has vanished.
        only = "onnxruntime" if op == "LogSoftmax" else None
        case(op, "large_values", f32(1000.0, 1001.0, -1000.0, 999.5).reshape(1, 4), only=only)
        case(op, "minus_infinity", f32(0.0, -np.inf, 1.0).reshape(1, 3))
        case(op, "one_class", (3, 1))
        case(op, "empty_batch", (0, 4))
        case(op, "double", ramp(2, 3, dtype=np.float64) / 7)


def rounding():
    ties = f32(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999, -2.50001, 1e10, np.nan, np.inf, -np.inf)
    for op in ("Floor", "Ceil", "Round", "Abs", "Neg"):
        case(op, "3d", (2, 3, 4), tolerance=EXACT)
        case(op, "ties", ties, tolerance=EXACT)
        case(op, "scalar", scalar(-0.75), tolerance=EXACT)
        case(op, "double", ties.astype(np.float64), tolerance=EXACT)
        case(op, "empty", (0, 3), tolerance=EXACT)
    for op in ("Abs", "Neg"):
        for dtype in (np.int8, np.int32, np.int64):
            lowest = np.iinfo(dtype).min
            case(op, np.dtype(dtype).name, np.array([3, -4, 0, lowest, lowest + 1], dtype), tolerance=EXACT)
    case("Abs", "uint8", np.array([0, 200, 255], np.uint8), tolerance=EXACT)
    for op in ("Sqrt", "Log", "Reciprocal"):
        case(op, "values", f32(1, 4, 9, 0.25, 1e-30, 3e38, 0.0, np.inf, np.nan, 2))
        case(op, "negative", f32(-1, -0.5, -np.inf))
        case(op, "scalar", scalar(2.5))
        case(op, "double", f64(1, 2, 3, 1e300))
        case(op, "empty", (0, 3))


def choosing():
    for op in ("Max", "Min"):
        case(op, "two", (2, 3, 4), (2, 3, 4), tolerance=EXACT)
        case(op, "one", (2, 3), tolerance=EXACT)
        case(op, "three_broadcast", (2, 1, 4), (3, 1), scalar(0.25), tolerance=EXACT)
        case(op, "first_is_smallest", (1,), (2, 3), tolerance=EXACT)
        case(op, "scalars", scalar(1), scalar(2), tolerance=EXACT)
        case(op, "empty", (0, 3), (1, 3), tolerance=EXACT)
        case(op, "special", f32(np.nan, 1, np.inf, -np.inf, 2), f32(1, np.nan, 0, 0, 2), tolerance=EXACT)
        case(op, "double", f64(1, 5, -2), f64(2, 4, -3), f64(0, 0, 9), tolerance=EXACT)
        for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64):
            values = np.array([0, 100, 7], dtype), np.array([3, 50, 7], dtype)
            # ONNX Runtime has no 16-bit forms.
            only = "reference" if np.dtype(dtype).itemsize == 2 else None
            case(op, np.dtype(dtype).name, *values, tolerance=EXACT, only=only)
            if np.dtype(dtype).itemsize == 1:  # which are compared sixteen at once
                many = [np.arange(66).reshape(2, 33) * step for step in (37, 91)]
                case(op, f"{np.dtype(dtype).name}_rows", *(v.astype(np.uint8).view(dtype) for v in many), tolerance=EXACT)

    condition = truths(True, False, True)
    case("Where", "same_shape", condition, f32(1, 2, 3), f32(4, 5, 6), tolerance=EXACT)
    case("Where", "all_broadcast", truths(True, False).reshape(2, 1, 1), (3, 1), (4,), tolerance=EXACT)
    case("Where", "scalars", condition, scalar(1.5), scalar(-1), tolerance=EXACT)
    case("Where", "scalar_condition", scalar(False, np.bool_), (2, 3), (3,), tolerance=EXACT)
    case("Where", "empty", np.zeros((0, 1), np.bool_), (3,), scalar(0), tolerance=EXACT)
    for dtype in (np.float64, np.uint8, np.int8, np.int16, np.int32, np.int64, np.bool_):
        values = np.array([1, 0, 1], dtype), np.array([0, 1, 1], dtype)
        # ONNX Runtime has no form for two of them.
        only = "reference" if dtype in (np.int16, np.bool_) else None
        case("Where", np.dtype(dtype).name, condition, *values, tolerance=EXACT, only=only)

    comparisons = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
    for op in comparisons:
        case(op, "same_shape", f32(1, 2, 3, np.nan, np.inf, 0.0), f32(2, 2, 2, np.nan, np.inf, -0.0), tolerance=EXACT)
        case(op, "broadcast", ramp(2, 1, 3), ramp(2, 1), tolerance=EXACT)
        case(op, "scalars", scalar(1), scalar(1), tolerance=EXACT)
        case(op, "empty", (0, 3), (3,), tolerance=EXACT)
        for dtype in (np.float64, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64):
            values = np.array([1, 2, 3], dtype), np.array([2, 2, 2], dtype)
            case(op, np.dtype(dtype).name, *values, tolerance=EXACT)
    case("Equal", "bool", truths(True, False, True, False), truths(True, True, False, False), tolerance=EXACT)
    for op in ("And", "Or"):
        case(op, "same_shape", truths(True, False, True, False), truths(True, True, False, False), tolerance=EXACT)
        case(op, "broadcast", truths(True, False).reshape(2, 1), truths(True, False, True), tolerance=EXACT)
        case(op, "scalars", scalar(True, np.bool_), scalar(False, np.bool_), tolerance=EXACT)
    case("Not", "values", truths(True, False, True), tolerance=EXACT)
    case("Not", "scalar", scalar(True, np.bool_), tolerance=EXACT)
    case("Not", "empty", np.zeros((0, 2), np.bool_), tolerance=EXACT)


def powers():
    positive = f32(0.5, 1, 2, 3.25, 10)
    case("Pow", "same_shape", positive, f32(2, -1, 0.5, 3, -2.5))
    case("Pow", "broadcast", np.stack([positive, positive + 1]), f32(2, 1, 0, -1, 3))
    case("Pow", "scalar_exponent", (2, 3, 4), scalar(2))
    case("Pow", "cube", (3, 4, 5), scalar(3))
    case("Pow", "scalar_base", scalar(2), (2, 3))
    case("Pow", "empty", (0, 3), scalar(2))
    case("Pow", "special", f32(0, 0, -8, np.inf, np.nan, 1, -2), f32(0, -1, 1 / 3, 0.5, 0, np.nan, 3))
    case("Pow", "double", f64(2, 3, 0.5), f64(0.5, 2, -3))
    case("Pow", "int32", np.array([2, -3, 7, 0], np.int32), np.array([10, 3, 0, 0], np.int32), tolerance=EXACT)
    case("Pow", "int64", i64(2, -3, 10), i64(40, 3, 12), tolerance=EXACT)
    # ONNX Runtime goes through double, NumPy multiplies integers.
    case("Pow", "int64_beyond_double", i64(3, -7), i64(39, 21), tolerance=EXACT, only="reference")
    for dtype in (np.int32, np.int64, np.float64):
        case("Pow", f"float_to_{np.dtype(dtype).name}", positive, np.array([0, 1, -2, 3, 2], dtype))
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        values = np.array([0, 1, 2, 3, 2], dtype)
        case("Pow", f"float_to_{np.dtype(dtype).name}", positive, values, only="reference")
    case("Pow", "int32_to_float", np.array([4, 9, -2], np.int32), f32(0.5, 1.5, 3), tolerance=EXACT)
    case("Pow", "int64_to_int32", i64(4, -9), np.array([2, 3], np.int32), tolerance=EXACT)


def arithmetic():
    numerators, denominators = i64(7, -7, 7, -7, 0, 9), i64(2, 2, -2, -2, 5, 3)
    for op in ("Add", "Sub", "Mul", "Div"):
        case(op, "same_shape", (2, 3, 4), (2, 3, 4))
        case(op, "channel", (2, 3, 2, 2), (3, 1, 1))
        case(op, "last_axis", (2, 3, 4), (4,))
        case(op, "both_broadcast", (3, 1, 4), (2, 1))
        case(op, "left_broadcast", (4,), (2, 3, 4))
        case(op, "scalar_right", (2, 3), scalar(1.5))
        case(op, "scalar_left", scalar(1.5), (2, 3))
        case(op, "scalars", scalar(3.5), scalar(-2))
        case(op, "one_by_one", (1, 1), (3,))
        case(op, "empty", (0, 3), (1, 3))
        case(op, "empty_from_broadcast", (2, 0), (2, 1))
        case(op, "int64", numerators, denominators, tolerance=EXACT)
        case(op, "int64_scalar", ramp(2, 3, dtype=np.int64), scalar(2, np.int64), tolerance=EXACT)
        case(op, "int32", np.array([6, -4], np.int32), np.array([3, 2], np.int32), tolerance=EXACT)
    case("Add", "special", f32(np.inf, np.inf, np.nan, 3e38), f32(1, -np.inf, 0, 3e38))
    case("Mul", "special", f32(np.inf, 0, np.nan, -0.0), f32(-2, np.inf, 0, 3))
    case("Div", "by_zero", f32(1, -1, 0, 0), f32(0, 0, 0, -0.0))


def pooling():
    image = (1, 2, 6, 7)
    # The reference evaluator's MaxPool gives wrong shapes for these two, and cannot pad integers.
    wrong = {("MaxPool", "pads_asymmetric"), ("MaxPool", "auto_pad_same_lower")}
    for op, tolerance in (("MaxPool", EXACT), ("AveragePool", CLOSE)):
        case(op, "basic", image, kernel_shape=[2, 2], tolerance=tolerance)
        case(op, "strides", image, kernel_shape=[2, 3], strides=[2, 2], tolerance=tolerance)
        case(op, "pads", image, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], tolerance=tolerance)
        only = "onnxruntime" if (op, "pads_asymmetric") in wrong else None
        case(op, "pads_asymmetric", image, kernel_shape=[3, 3], pads=[0, 1, 2, 0], tolerance=tolerance, only=only)
        case(op, "ceil_mode", image, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, tolerance=tolerance)
        case(op, "dilations", image, kernel_shape=[2, 3], dilations=[2, 3], tolerance=tolerance)
        case(
            op, "ceil_mode_pads", image, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1,
            tolerance=tolerance,
        )  # fmt: skip
        # A last window that would start in the padding is left out.
        case(
            op, "ceil_mode_window_in_padding", (1, 1, 3, 3), kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1],
            ceil_mode=1, tolerance=tolerance,
        )  # fmt: skip
        for auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            name = f"auto_pad_{auto_pad.lower()}"
            attrs = {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": auto_pad}
            case(op, name, image, tolerance=tolerance, only="onnxruntime" if (op, name) in wrong else None, **attrs)
        case(op, "auto_pad_unit_stride", image, kernel_shape=[2, 2], auto_pad="SAME_UPPER", tolerance=tolerance)
        case(op, "1d", (2, 2, 8), kernel_shape=[3], strides=[2], pads=[1, 1], tolerance=tolerance)
        case(op, "3d", (1, 1, 3, 4, 4), kernel_shape=[2, 2, 2], tolerance=tolerance)
        case(op, "empty_batch", (0, 2, 4, 4), kernel_shape=[2, 2], tolerance=tolerance)
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "tolerance": EXACT}
    case("MaxPool", "negative_values", -ramp(1, 1, 4, 4) - 1, **window)
    case("MaxPool", "uint8", ramp(1, 1, 5, 5, dtype=np.uint8), kernel_shape=[2, 2], strides=[2, 2], tolerance=EXACT)
    case("MaxPool", "int8", ramp(1, 1, 4, 4, dtype=np.int8) - np.int8(18), only="onnxruntime", **window)
    case(
        "MaxPool", "dilations_pads", image, kernel_shape=[3, 3], dilations=[2, 2], pads=[2, 2, 2, 2], strides=[2, 2],
        tolerance=EXACT,
    )  # fmt: skip
    for include in (0, 1):
        pads = {"kernel_shape": [3, 3], "strides": [2, 2], "count_include_pad": include}
        case("AveragePool", f"include_pad_{include}", image, pads=[1, 1, 1, 1], **pads)
        case("AveragePool", f"include_pad_{include}_asymmetric", image, pads=[2, 0, 1, 1], **pads)
        case("AveragePool", f"include_pad_{include}_ceil_mode", image, pads=[1, 1, 1, 1], ceil_mode=1, **pads)
        case("AveragePool", f"include_pad_{include}_same_upper", image, auto_pad="SAME_UPPER", **pads)
        case("AveragePool", f"include_pad_{include}_dilations", image, pads=[1] * 4, dilations=[2, 2], **pads)

    case("GlobalAveragePool", "2d", (2, 3, 4, 5))
    case("GlobalAveragePool", "1d", (2, 3, 7))
    case("GlobalAveragePool", "3d", (1, 2, 2, 3, 4))
    case("GlobalAveragePool", "one_pixel", (2, 3, 1, 1))
    # The reference evaluator divides by the number of samples.
    case("GlobalAveragePool", "empty_batch", (0, 3, 2, 2), only="onnxruntime")


def reduction():
    tolerances = {"ReduceMean": CLOSE, "ReduceSum": CLOSE, "ReduceProd": CLOSE, "ReduceMax": EXACT, "ReduceMin": EXACT}
    for op, tolerance in tolerances.items():
        case(op, "axis_1", (2, 3, 4), i64(1), tolerance=tolerance)
        case(op, "axis_1_squeezed", (2, 3, 4), i64(1), keepdims=0, tolerance=tolerance)
        case(op, "spatial", (2, 3, 2, 4), i64(2, 3), tolerance=tolerance)
        case(op, "spatial_squeezed", (2, 3, 2, 4), i64(2, 3), keepdims=0, tolerance=tolerance)
        case(op, "negative_axes", (2, 3, 4), i64(-1, -3), keepdims=0, tolerance=tolerance)
        case(op, "all_by_absent_axes", (2, 3, 4), tolerance=tolerance)
        case(op, "all_by_absent_axes_squeezed", (2, 3, 4), keepdims=0, tolerance=tolerance)
        case(op, "all_by_empty_axes", (2, 3, 4), NOTHING, tolerance=tolerance)
        case(op, "noop_with_empty_axes", (2, 3, 4), NOTHING, noop_with_empty_axes=1, tolerance=tolerance)
        case(op, "noop_with_absent_axes", (2, 3, 4), noop_with_empty_axes=1, tolerance=tolerance)
        case(op, "noop_does_not_matter_with_axes", (2, 3), i64(0), noop_with_empty_axes=1, tolerance=tolerance)
        case(op, "scalar", scalar(2.5), tolerance=tolerance)
        case(op, "empty_result", (0, 3), i64(1), tolerance=tolerance)
    for op in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"):
        case(op, "double", ramp(2, 3, dtype=np.float64) - 2.5, i64(1), tolerance=EXACT)
        case(op, "int32", ramp(2, 3, dtype=np.int32) - 2, i64(1), tolerance=EXACT)
        case(op, "int64", ramp(2, 3, dtype=np.int64) + 2, i64(0), keepdims=0, tolerance=EXACT)
        rows = (ramp(4, 40, dtype=np.int64) * 13 + 5) % 11 % 3 + 1
        case(op, "rows_of_40", rows, i64(1), tolerance=EXACT)
        case(op, "rows_of_40_floats", rows.astype(np.float32) - 1.5, i64(1), tolerance=tolerances[op])
        case(op, "columns_of_20", rows.reshape(2, 20, 4).astype(np.float64) - 1.5, i64(1), tolerance=tolerances[op])
        # ONNX Runtime's extrema skip NaN.
        only = "reference" if op in ("ReduceMax", "ReduceMin") else None
        case(op, "nan", f32(1, np.nan, 3, np.inf).reshape(2, 2), i64(1), only=only)
        case(op, "nothing", (2, 0, 3), i64(1), tolerance=EXACT)
    for op in ("ReduceMax", "ReduceMin"):
        case(op, "uint8", ramp(2, 3, dtype=np.uint8), i64(1), tolerance=EXACT)
        case(op, "int8", ramp(2, 3, dtype=np.int8) - np.int8(3), i64(0), tolerance=EXACT)
        case(op, "bool", truths(True, False, False, False).reshape(2, 2), i64(1), tolerance=EXACT)

    repeated = f32(1, 3, 3, 0, 2, 2, 2, 2, -1, -1, 5, -1).reshape(3, 4)
    for op in ("ArgMax", "ArgMin"):
        case(op, "default_axis", (3, 4), tolerance=EXACT)
        case(op, "axis_1", (2, 3, 4), axis=1, tolerance=EXACT)
        case(op, "negative_axis_squeezed", (2, 3, 4), axis=-1, keepdims=0, tolerance=EXACT)
        for last in (0, 1):
            case(op, f"repeated_select_last_{last}", repeated, axis=1, select_last_index=last, tolerance=EXACT)
        case(op, "vector_squeezed", (5,), keepdims=0, tolerance=EXACT)
        case(op, "infinities", f32(-np.inf, np.inf, np.inf, -np.inf), tolerance=EXACT)
        case(op, "nan", f32(1, np.nan, 3, np.nan, -1), tolerance=EXACT)
        # ONNX Runtime skips all NaN but the first.
        attrs = {"select_last_index": 1, "tolerance": EXACT, "only": "reference"}
        case(op, "nan_select_last", f32(1, np.nan, 3, np.nan, -1), **attrs)
        for dtype in (np.float64, np.uint8, np.int8, np.int32):
            case(op, np.dtype(dtype).name, np.array([[1, 9, 3], [7, 7, 2]], dtype), axis=1, tolerance=EXACT)
        case(op, "int64", i64(1, 9, 9, 3), tolerance=EXACT)
        case(op, "empty_result", (0, 3), axis=1, tolerance=EXACT)

    values = (2, 3, 4)
    for name, attrs in {
        "plain": {}, "exclusive": {"exclusive": 1}, "reverse": {"reverse": 1}, "both": {"exclusive": 1, "reverse": 1},
    }.items():  # fmt: skip
        case("CumSum", f"{name}_axis_0", values, scalar(0, np.int64), **attrs)
        case("CumSum", f"{name}_axis_1", values, scalar(1, np.int32), **attrs)
        case("CumSum", f"{name}_last_axis", values, scalar(-1, np.int64), **attrs)
    for dtype in (np.float64, np.int32, np.int64):
        case("CumSum", np.dtype(dtype).name, ramp(2, 3, dtype=dtype), scalar(1, np.int64), tolerance=EXACT)
    case("CumSum", "empty", (0, 3), scalar(1, np.int64))


def joining():
    case("Concat", "axis_0", (2, 3), (1, 3), axis=0, tolerance=EXACT)
    case("Concat", "axis_1", (2, 3, 2), (2, 1, 2), (2, 2, 2), axis=1, tolerance=EXACT)
    case("Concat", "negative_axis", (2, 3), (2, 2), axis=-1, tolerance=EXACT)
    case("Concat", "one_input", (2, 3), axis=1, tolerance=EXACT)
    case("Concat", "vectors", (2,), (3,), axis=0, tolerance=EXACT)
    case("Concat", "with_empty", (2, 0), (2, 3), axis=1, tolerance=EXACT)
    case("Concat", "all_empty", (2, 0), (2, 0), axis=0, tolerance=EXACT)
    # The reference evaluator asks NumPy, which takes no such axes.
    other = {"only": "onnxruntime", "tolerance": EXACT, "open_axes": True}
    case("Concat", "empty_of_other_axes", (1, 2, 0), (3, 2, 4), (3, 2, 1), axis=2, **other)
    case("Concat", "empty_of_other_axes_last", i64(1, 2, 3, 4).reshape(2, 2), np.zeros((0, 5), np.int64), axis=0, **other)
    case("Concat", "empty_of_other_axes_between", (2, 3), (5, 0), (2, 1), axis=-1, **other)
    case("Concat", "all_empty_of_other_axes", (0, 1, 4), (0, 2, 3), axis=1, **other)
    case("Concat", "int64", i64(1, -2), i64(3), axis=0, tolerance=EXACT)

    case("Split", "equal", (6, 2), axis=0, num_outputs=3, outputs=3, tolerance=EXACT)
    case("Split", "default_axis", (4,), num_outputs=2, outputs=2, tolerance=EXACT)
    case("Split", "uneven_last_chunk", (2, 7), axis=1, num_outputs=3, outputs=3, tolerance=EXACT)
    case("Split", "sizes", (2, 6), i64(1, 2, 3), axis=1, outputs=3, tolerance=EXACT)
    case("Split", "negative_axis", (2, 3, 4), i64(1, 3), axis=-1, outputs=2, tolerance=EXACT)
    case("Split", "zero_size", (2, 3), i64(0, 3), axis=1, outputs=2, tolerance=EXACT)
    case("Split", "one_output", (2, 3), i64(3), axis=1, outputs=1, tolerance=EXACT)
    case("Split", "empty", (0, 2), i64(0, 0), axis=0, outputs=2, tolerance=EXACT)
    case("Split", "int64", ramp(6, dtype=np.int64), i64(2, 4), outputs=2, tolerance=EXACT)


def shaping():
    cube = ramp(2, 3, 4)
    for axis in (0, 1, 2, 3, -1, -3):
        case("Flatten", f"axis_{axis}".replace("-", "minus_"), cube, axis=axis, tolerance=EXACT)
    case("Flatten", "default_axis", cube, tolerance=EXACT)
    case("Flatten", "vector", (3,), axis=0, tolerance=EXACT)
    case("Flatten", "scalar", scalar(1.5), axis=0, tolerance=EXACT)
    # The reference evaluator cannot infer a dimension of an empty tensor.
    case("Flatten", "empty", (0, 3, 2), tolerance=EXACT, only="onnxruntime")

    case("Reshape", "plain", cube, i64(4, 6), tolerance=EXACT)
    case("Reshape", "inferred", cube, i64(2, -1), tolerance=EXACT)
    case("Reshape", "zero_copies", cube, i64(0, -1), tolerance=EXACT)
    case("Reshape", "zero_in_the_middle", cube, i64(4, 0, 2), tolerance=EXACT)
    case("Reshape", "to_vector", cube, i64(-1), tolerance=EXACT)
    case("Reshape", "to_scalar", f32(7).reshape(1, 1), NOTHING, tolerance=EXACT)
    case("Reshape", "from_scalar", scalar(7), i64(1, 1), tolerance=EXACT)
    case("Reshape", "empty", (0, 4), i64(2, 0, 3), allowzero=1, tolerance=EXACT)
    case("Reshape", "empty_zero_copies", (0, 4), i64(0, 2, 2), tolerance=EXACT)
    case("Reshape", "allowzero_inferred", cube, i64(-1, 8), allowzero=1, tolerance=EXACT)
    case("Reshape", "int64", ramp(6, dtype=np.int64), i64(3, 2), tolerance=EXACT)

    case("Transpose", "reverse", cube, tolerance=EXACT)
    case("Transpose", "reverse_2d", ramp(3, 4), tolerance=EXACT)
    case("Transpose", "perm", cube, perm=[1, 0, 2], tolerance=EXACT)
    case("Transpose", "nchw_to_nhwc", ramp(2, 3, 2, 4), perm=[0, 2, 3, 1], tolerance=EXACT)
    case("Transpose", "nhwc_to_nchw", ramp(2, 3, 2, 4), perm=[0, 3, 1, 2], tolerance=EXACT)
    case("Transpose", "channel_shuffle", ramp(1, 2, 3, 2, 2), perm=[0, 2, 1, 3, 4], tolerance=EXACT)
    case("Transpose", "identity", cube, perm=[0, 1, 2], tolerance=EXACT)
    case("Transpose", "vector", (3,), tolerance=EXACT)
    case("Transpose", "scalar", scalar(2), tolerance=EXACT)
    case("Transpose", "empty", (2, 0, 3), perm=[2, 0, 1], tolerance=EXACT)
    case("Transpose", "int64", ramp(2, 3, dtype=np.int64), tolerance=EXACT)

    case("Squeeze", "all", ramp(1, 3, 1, 2), tolerance=EXACT)
    case("Squeeze", "axes", ramp(1, 3, 1, 2), i64(2), tolerance=EXACT)
    case("Squeeze", "negative_axes", ramp(1, 3, 1), i64(-1, 0), tolerance=EXACT)
    case("Squeeze", "to_scalar", f32(5), tolerance=EXACT)
    case("Squeeze", "to_scalar_int64", i64(5), i64(0), tolerance=EXACT)
    case("Squeeze", "nothing_to_do", ramp(2, 3), tolerance=EXACT)
    case("Unsqueeze", "front", ramp(2, 3), i64(0), tolerance=EXACT)
    case("Unsqueeze", "several", ramp(2, 3), i64(0, 3), tolerance=EXACT)
    case("Unsqueeze", "unsorted", ramp(2, 3), i64(3, 1), tolerance=EXACT)
    case("Unsqueeze", "negative", ramp(2, 3), i64(-1, -3), tolerance=EXACT)
    case("Unsqueeze", "scalar", scalar(4, np.int64), i64(0), tolerance=EXACT)
    case("Unsqueeze", "empty", (0,), i64(1), tolerance=EXACT)

    case("Expand", "axes_of_one", ramp(3, 1), i64(3, 4), tolerance=EXACT)
    case("Expand", "leading_axes", ramp(3, 1), i64(2, 1, 4), tolerance=EXACT)
    case("Expand", "shape_of_ones", ramp(2, 3), i64(1, 1), tolerance=EXACT)
    case("Expand", "fewer_axes", ramp(2, 3), i64(3), tolerance=EXACT)
    case("Expand", "scalar", scalar(2.5), i64(2, 2), tolerance=EXACT)
    case("Expand", "to_nothing", ramp(2, 1), i64(2, 0), tolerance=EXACT)
    case("Expand", "no_axes", scalar(2.5), NOTHING, tolerance=EXACT)
    case("Expand", "bool", truths(True, False).reshape(2, 1), i64(2, 3), tolerance=EXACT)
    case("Tile", "matrix", ramp(2, 3), i64(2, 2), tolerance=EXACT)
    case("Tile", "one_axis", ramp(1, 2, 2, 2), i64(1, 1, 3, 1), tolerance=EXACT)
    case("Tile", "once", ramp(2, 3), i64(1, 1), tolerance=EXACT)
    case("Tile", "zero_times", ramp(2, 3), i64(0, 2), tolerance=EXACT)
    case("Tile", "scalar", scalar(3), NOTHING, tolerance=EXACT)
    for op in ("Expand", "Tile"):
        for dtype in (np.float64, np.uint8, np.int8, np.int32, np.int64):
            case(op, np.dtype(dtype).name, ramp(3, 1, dtype=dtype), i64(1, 2), tolerance=EXACT)

    for mode in ("DCR", "CRD"):
        case("DepthToSpace", mode.lower(), ramp(2, 8, 2, 3), blocksize=2, mode=mode, tolerance=EXACT)
        case("DepthToSpace", f"{mode.lower()}_3", ramp(1, 9, 1, 2), blocksize=3, mode=mode, tolerance=EXACT)
    case("DepthToSpace", "default_mode", ramp(1, 4, 2, 3), blocksize=2, tolerance=EXACT)
    case("DepthToSpace", "blocksize_1", ramp(1, 3, 2, 2), blocksize=1, tolerance=EXACT)
    case("DepthToSpace", "double", ramp(1, 4, 1, 2, dtype=np.float64), blocksize=2, tolerance=EXACT)
    # ONNX Runtime has no form for int64.
    case("DepthToSpace", "int64", ramp(1, 4, 1, 2, dtype=np.int64), blocksize=2, tolerance=EXACT, only="reference")
    case("SpaceToDepth", "2", ramp(2, 2, 4, 6), blocksize=2, tolerance=EXACT)
    case("SpaceToDepth", "3", ramp(1, 2, 3, 6), blocksize=3, tolerance=EXACT)
    case("SpaceToDepth", "blocksize_1", ramp(1, 3, 2, 2), blocksize=1, tolerance=EXACT)
    case("SpaceToDepth", "double", ramp(1, 1, 2, 4, dtype=np.float64), blocksize=2, tolerance=EXACT)
    # The mode came with opset 28.
    case("SpaceToDepth", "crd", ramp(2, 2, 4, 6), blocksize=2, mode="CRD", tolerance=EXACT, only="reference")
    case("SpaceToDepth", "uint8", ramp(1, 1, 2, 4, dtype=np.uint8), blocksize=2, tolerance=EXACT)

    for name, attrs in {
        "all": {}, "start": {"start": 1}, "end": {"end": 2}, "both": {"start": 1, "end": 2}, "negative_start":
        {"start": -1}, "negative_end": {"end": -1}, "out_of_range": {"start": -9, "end": 9}, "empty_range":
        {"start": 2, "end": 1},
    }.items():  # fmt: skip
        case("Shape", name, cube, tolerance=EXACT, **attrs)
    case("Shape", "scalar", scalar(1), tolerance=EXACT)
    case("Shape", "empty", (0, 4), tolerance=EXACT)


def indexing():
    board = ramp(4, 5)
    case("Slice", "basic", board, i64(1, 0), i64(3, 4), tolerance=EXACT)
    case("Slice", "axes", board, i64(1), i64(3), i64(1), tolerance=EXACT)
    case("Slice", "negative_axes", board, i64(1), i64(3), i64(-1), tolerance=EXACT)
    case("Slice", "steps", board, i64(0, 1), i64(4, 5), i64(0, 1), i64(2, 2), tolerance=EXACT)
    case("Slice", "negative_step", board, i64(4), i64(0), i64(1), i64(-1), tolerance=EXACT)
    case("Slice", "reverse_all", board, i64(-1), i64(np.iinfo(np.int64).min), i64(1), i64(-1), tolerance=EXACT)
    case("Slice", "negative_step_2", board, i64(-1), i64(-6), i64(1), i64(-2), tolerance=EXACT)
    case("Slice", "negative_indices", board, i64(-3), i64(-1), i64(1), tolerance=EXACT)
    case("Slice", "end_out_of_range", board, i64(1), i64(1000), i64(0), tolerance=EXACT)
    case("Slice", "end_int64_max", board, i64(1), i64(np.iinfo(np.int64).max), i64(0), tolerance=EXACT)
    case("Slice", "start_out_of_range", board, i64(1000), i64(2000), i64(0), tolerance=EXACT)
    case("Slice", "start_below_range", board, i64(-1000), i64(2), i64(0), tolerance=EXACT)
    case("Slice", "empty", board, i64(2), i64(2), i64(0), tolerance=EXACT)
    case("Slice", "axes_unsorted", ramp(2, 3, 4), i64(1, 0), i64(4, 1), i64(2, 0), tolerance=EXACT)
    bounds = [np.array(value, np.int32) for value in ([1], [3], [1])]
    case("Slice", "int32_bounds", board, *bounds, tolerance=EXACT)
    case("Slice", "int64", ramp(5, dtype=np.int64), i64(1), i64(-1), tolerance=EXACT)

    case("Gather", "rows", board, i64(0, 2), tolerance=EXACT)
    case("Gather", "columns", board, i64(4, 0, 0), axis=1, tolerance=EXACT)
    case("Gather", "negative_axis", board, i64(1), axis=-1, tolerance=EXACT)
    case("Gather", "negative_indices", board, i64(-1, -4, 1), tolerance=EXACT)
    case("Gather", "indices_2d", ramp(3, 2), i64(0, 1, 1, 2).reshape(2, 2), tolerance=EXACT)
    case("Gather", "indices_2d_axis_1", ramp(2, 3, 2), i64(0, 2, 1, 1).reshape(2, 2), axis=1, tolerance=EXACT)
    case("Gather", "scalar_index", board, scalar(2, np.int64), axis=1, tolerance=EXACT)
    case("Gather", "scalar_result", i64(2, 3, 5), scalar(-1, np.int64), tolerance=EXACT)
    case("Gather", "int64", i64(1, 3, 224, 224), i64(2, 3), tolerance=EXACT)
    case("Gather", "int32_indices", board, np.array([3, 1], np.int32), tolerance=EXACT)
    case("Gather", "no_indices", board, NOTHING, tolerance=EXACT)
    case("Gather", "windows", ramp(2, 6), i64(0, 1, 2, 3, 2, 3, 4, 5).reshape(2, 4), axis=1, tolerance=EXACT)
    case("Gather", "whole_axis", ramp(2, 3, 2), i64(0, 1, 2), axis=1, tolerance=EXACT)
    case("Gather", "only_one", ramp(3, 2, 1), i64(0), axis=2, tolerance=EXACT)
    case("Gather", "runs_of_int64", ramp(2, 4, dtype=np.int64), i64(1, 2, 0, 1), axis=1, tolerance=EXACT)
    case("Gather", "nothing_before", (0, 4), i64(1, 3, 1), axis=1, tolerance=EXACT)
    case("Gather", "nothing_behind", (4, 0), i64(1, 3, 1), tolerance=EXACT)

    case("Pad", "constant", ramp(2, 3), i64(1, 2, 0, 1), scalar(9.5), tolerance=EXACT)
    case("Pad", "constant_default_value", ramp(2, 3), i64(0, 1, 1, 0), tolerance=EXACT)
    case("Pad", "spatial", ramp(1, 2, 2, 2), i64(0, 0, 1, 1, 0, 0, 1, 2), tolerance=EXACT)
    case("Pad", "axes", ramp(2, 2, 3), i64(1, 0, 2, 1), scalar(-1), i64(2, 0), tolerance=EXACT)
    case("Pad", "negative_axes", ramp(2, 2, 3), i64(1, 2), None, i64(-1), tolerance=EXACT)
    case("Pad", "reflect", ramp(3, 4), i64(2, 1, 1, 3), mode="reflect", tolerance=EXACT)
    case("Pad", "edge", ramp(3, 4), i64(2, 1, 0, 3), mode="edge", tolerance=EXACT)
    case("Pad", "edge_axes", ramp(2, 3), i64(2, 1), None, i64(1), mode="edge", tolerance=EXACT)
    # The reference evaluator hands pads to numpy.pad, which takes no negative ones.
    case("Pad", "negative", ramp(4, 5), i64(-1, 0, 0, -2), scalar(7), tolerance=EXACT, only="onnxruntime")
    case("Pad", "negative_and_positive", ramp(3, 4), i64(1, -1, -1, 2), scalar(7), tolerance=EXACT, only="onnxruntime")
    case("Pad", "nothing", ramp(2, 2), i64(0, 0, 0, 0), tolerance=EXACT)
    case("Pad", "empty", (0, 2), i64(1, 0, 1, 1), scalar(3), tolerance=EXACT)
    case("Pad", "int64", i64(1, 2), i64(1, 1), scalar(-3, np.int64), tolerance=EXACT)


def casting():
    floats = f32(0.0, -0.0, 0.5, -0.5, 0.999, 1.5, -1.5, 2.5, 100.25, 254.99)
    for name, dtype in {"int64": np.int64, "int32": np.int32, "bool": np.bool_, "double": np.float64}.items():
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        case("Cast", f"float_to_{name}", floats, to=to, tolerance=EXACT)
    case("Cast", "float_to_uint8", np.abs(floats), to=TensorProto.UINT8, tolerance=EXACT)
    case("Cast", "float_to_int8", f32(-128, -1.9, 0.9, 127.5), to=TensorProto.INT8, tolerance=EXACT)
    halves = f32(0.1, 1.0, 65504.0, 65519.9, 65520.0, -1e9, 6e-8, 2e-8, 2049.0, 2051.0, np.inf, np.nan)
    case("Cast", "float_to_float16", halves, to=TensorProto.FLOAT16, tolerance=EXACT)
    with np.errstate(over="ignore"):
        halves = halves.astype(np.float16)
    case("Cast", "float16_to_float", halves, to=TensorProto.FLOAT, tolerance=EXACT)
    case("Cast", "float_to_bool_special", f32(np.nan, np.inf, 1e-38, 0), to=TensorProto.BOOL, tolerance=EXACT)
    integers = i64(0, 1, -1, 255, 16777217, -(2**40))
    for name, to in {"float": TensorProto.FLOAT, "bool": TensorProto.BOOL, "int32": TensorProto.INT32}.items():
        values = integers[:5] if name == "int32" else integers
        case("Cast", f"int64_to_{name}", values, to=to, tolerance=EXACT)
    case("Cast", "int64_to_uint8", integers[[0, 1, 3]], to=TensorProto.UINT8, tolerance=EXACT)
    case("Cast", "int32_to_float", np.array([-7, 16777217], np.int32), to=TensorProto.FLOAT, tolerance=EXACT)
    case("Cast", "int32_to_int64", np.array([-7, 2**31 - 1], np.int32), to=TensorProto.INT64, tolerance=EXACT)
    case("Cast", "uint8_to_float", np.array([0, 255], np.uint8), to=TensorProto.FLOAT, tolerance=EXACT)
    case("Cast", "int8_to_float", np.array([-128, 127], np.int8), to=TensorProto.FLOAT, tolerance=EXACT)
    case("Cast", "bool_to_float", np.array([True, False]), to=TensorProto.FLOAT, tolerance=EXACT)
    case("Cast", "bool_to_int64", np.array([True, False]), to=TensorProto.INT64, tolerance=EXACT)
    case("Cast", "same_type", (2, 2), to=TensorProto.FLOAT, tolerance=EXACT)
    case("Cast", "scalar", scalar(3.7), to=TensorProto.INT64, tolerance=EXACT)
    case("Cast", "empty", (0, 2), to=TensorProto.INT32, tolerance=EXACT)


def resizing():
    small, wide = (1, 2, 3, 4), (1, 1, 6, 8)
    # Scales that are exact in binary: no result hangs on the rounding of a coordinate.
    twice, uneven, down = f32(1, 1, 2, 2), f32(1, 1, 1.5, 2.5), f32(1, 1, 0.5, 0.625)
    transforms = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    for transform in transforms:
        # Where scale * length is no integer, align_corners is read in two ways: left out.
        up = f32(1, 1, 2, 2.5) if transform == "align_corners" else uneven
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            attrs = {"mode": "nearest", "coordinate_transformation_mode": transform, "nearest_mode": rounding}
            case("Resize", f"nearest_{transform}_{rounding}_up", small, None, up, tolerance=EXACT, **attrs)
            case("Resize", f"nearest_{transform}_{rounding}_down", wide, None, down, tolerance=EXACT, **attrs)
    case("Resize", "nearest_defaults", small, None, twice, tolerance=EXACT)
    case("Resize", "nearest_sizes", small, None, None, i64(1, 2, 7, 5), mode="nearest", tolerance=EXACT)
    case(
        "Resize", "nearest_asymmetric_floor_twice", small, None, twice, mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor", tolerance=EXACT,
    )  # fmt: skip
    case("Resize", "nearest_identity", small, None, f32(1, 1, 1, 1), mode="nearest", tolerance=EXACT)
    for transform in transforms:
        up = f32(1, 1, 2, 2.5) if transform == "align_corners" else uneven
        attrs = {"mode": "linear", "coordinate_transformation_mode": transform}
        case("Resize", f"linear_{transform}_twice", small, None, twice, **attrs)
        case("Resize", f"linear_{transform}_uneven", small, None, up, **attrs)
        case("Resize", f"linear_{transform}_down", wide, None, down, **attrs)
        case("Resize", f"linear_{transform}_sizes", small, None, None, i64(1, 2, 5, 9), **attrs)
        case("Resize", f"linear_{transform}_to_one_row", wide, None, None, i64(1, 1, 1, 4), **attrs)
    case("Resize", "linear_axes", small, None, f32(2, 2), mode="linear", axes=[2, 3])
    case("Resize", "linear_sizes_axes", small, None, None, i64(6, 6), mode="linear", axes=[2, 3])
    case("Resize", "nearest_axes_swapped", small, None, f32(2, 3), mode="nearest", axes=[3, 2], tolerance=EXACT)
    for policy in ("not_larger", "not_smaller"):
        attrs = {"mode": "nearest", "keep_aspect_ratio_policy": policy, "axes": [2, 3]}
        case("Resize", f"nearest_{policy}", small, None, None, i64(6, 6), tolerance=EXACT, **attrs)


def sources():
    case("Identity", "float", (2, 3), tolerance=EXACT)
    case("Identity", "special", SPECIAL, tolerance=EXACT)
    case("Identity", "scalar", scalar(1.5), tolerance=EXACT)
    case("Identity", "empty", (0, 3), tolerance=EXACT)
    case("Identity", "int64", i64(-1, 2), tolerance=EXACT)
    case("Dropout", "default", (2, 3), tolerance=EXACT)
    case("Dropout", "ratio", (2, 3), scalar(0.9), tolerance=EXACT)
    case("Dropout", "training_mode_false", (2, 3), scalar(0.9), scalar(False, np.bool_), tolerance=EXACT)
    case("Dropout", "training_mode_false_no_ratio", (2, 3), None, scalar(False, np.bool_), tolerance=EXACT)
    case("Dropout", "scalar", scalar(2), tolerance=EXACT)
    case("Constant", "value", tolerance=EXACT, value=ramp(2, 3))
    case("Constant", "value_scalar", tolerance=EXACT, value=scalar(1.5))
    case("Constant", "value_empty", tolerance=EXACT, value=NOTHING)
    case("Constant", "value_tensor_int64", tolerance=EXACT, value=i64(1, -1))
    case("Constant", "value_tensor_bool", tolerance=EXACT, value=np.array([True, False]))
    case("Constant", "value_float", tolerance=EXACT, value_float=0.1)
    case("Constant", "value_floats", tolerance=EXACT, value_floats=[0.5, -1.25])
    case("Constant", "value_int", tolerance=EXACT, value_int=-7)
    case("Constant", "value_ints", tolerance=EXACT, value_ints=[3, 1, 4])
    case("ConstantOfShape", "default", i64(2, 3), tolerance=EXACT)
    case("ConstantOfShape", "float", i64(3), tolerance=EXACT, value=f32(1.5))
    case("ConstantOfShape", "int64", i64(2, 1), tolerance=EXACT, value=i64(-1))
    case("ConstantOfShape", "bool", i64(2), tolerance=EXACT, value=np.array([True]))
    case("ConstantOfShape", "scalar", NOTHING, tolerance=EXACT, value=f32(4))
    case("ConstantOfShape", "empty", i64(0, 2), tolerance=EXACT, value=f32(4))


def u8(*values):
    return np.array(values, np.uint8)


def i8(*values):
    return np.array(values, np.int8)


def away_from_ties(name, make):
    """The first of the seeded operands that make(rng) gives whose result, in double, lies nowhere near a tie. It gives
    (operands, result / y_scale). ONNX Runtime's kernels add zero points and order products in ways of their own, which
    shows at ties only; docs/numerics.md has them. There the answer is the same for any sound order."""
    for seed in range(1000):
        operands, exact = make(np.random.default_rng([zlib.crc32(name.encode()), seed]))
        if np.abs(np.abs(exact - np.floor(exact)) - 0.5).min() > 2e-3:
            return operands
    raise SystemExit(f"{name}: no seed without ties")


def integers(rng, shape, dtype):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def grid(rng, dtype, low=0.01, high=0.05):
    """Scale and zero point."""
    limits = np.iinfo(dtype)
    zero = rng.integers(limits.min // 2 + limits.max // 4, limits.max // 2 + limits.max // 4)
    return np.float32(round(rng.uniform(low, high), 4)), np.array(zero, dtype)


def real(q, scale, zero):
    return (q.astype(np.float64) - np.float64(zero)) * np.float64(scale)


def linear_quantization():
    ties = f32(-1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 63.0, 1e9, -1e9)
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    exact = {"tolerance": EXACT}
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        name = np.dtype(dtype).name
        case("QuantizeLinear", f"{name}_ties", ties, scalar(0.5), scalar(3, dtype), **exact)
        case("QuantizeLinear", f"{name}_per_axis", x, f32(0.1, 0.02, 0.7), np.array([1, 0, 7], dtype), **exact)
        q = np.array([[0, 1, 2], [100, 120, np.iinfo(dtype).max]], dtype)
        case("DequantizeLinear", name, q, scalar(0.3), scalar(7, dtype), **exact)
        case("DequantizeLinear", f"{name}_per_axis", q, f32(0.1, 0.2, 0.7), np.array([0, 3, 9], dtype), **exact)
        case("DequantizeLinear", f"{name}_zero_scale", q, scalar(0), scalar(7, dtype), **exact)
        case("DequantizeLinear", f"{name}_zero_scales", q, f32(0.1, 0, 0.7), np.array([5, 3, 9], dtype), **exact)
        case("DequantizeLinear", f"{name}_negative_scales", q, f32(0, 0.2, -0.7), np.array([5, 3, 9], dtype), **exact)
    # The reference evaluator casts infinity to an integer first, which NumPy leaves undefined.
    case("QuantizeLinear", "infinity", f32(np.inf, -np.inf), scalar(0.5), scalar(1, np.int8), only="onnxruntime", **exact)
    case("QuantizeLinear", "no_zero_point", ties, scalar(0.5), **exact)
    case("QuantizeLinear", "output_dtype", ties, scalar(0.5), output_dtype=TensorProto.INT16, **exact)
    case("QuantizeLinear", "one_element_list", x, f32(0.07), u8(128), **exact)
    case("QuantizeLinear", "axis_0", x, f32(0.1, 0.02), u8(128, 3), axis=0, **exact)
    case("QuantizeLinear", "negative_axis", x, f32(0.1, 0.02, 0.5, 1), i8(0, 3, -5, 1), axis=-1, **exact)
    # Division is not multiplication by the inverse: the first gives 127 here, the second 128.
    case("QuantizeLinear", "division", f32(0.273939937), scalar(0.00214854861), scalar(0, np.uint8), **exact)
    case("QuantizeLinear", "scalar", scalar(1.3), scalar(0.5), scalar(1, np.int8), **exact)
    case("QuantizeLinear", "empty", (0, 3), scalar(0.5), scalar(1, np.int8), **exact)
    blocks, zeros = ramp(2, 2, 4) / 16 + f32(0.01), np.arange(16, dtype=np.uint8).reshape(2, 2, 4)
    case("QuantizeLinear", "blocks", x, blocks, zeros, axis=1, block_size=2, **exact)
    case("QuantizeLinear", "blocks_no_zero_point", x, blocks, axis=1, block_size=2, **exact)
    last = f32(0.1, 0.2, 0.3, 0.4, 0.5, 0.6).reshape(2, 3, 1)
    case("QuantizeLinear", "blocks_of_the_whole_axis", x, last, last.astype(np.int8), axis=-1, block_size=4, **exact)
    q = ramp(2, 3, 4, dtype=np.uint8)
    case("DequantizeLinear", "blocks", q, blocks, zeros, axis=1, block_size=2, **exact)
    signed = blocks * np.resize(f32(0, 1, -1), blocks.shape)
    for dtype, given in ((np.uint8, signed), (np.int16, abs(signed)), (np.int16, signed)):
        name = f"blocks_{np.dtype(dtype).name}_{'negative' if (given < 0).any() else 'zero'}_scales"
        case("DequantizeLinear", name, q.astype(dtype), given, zeros.astype(dtype), axis=1, block_size=2, **exact)
    case("DequantizeLinear", "blocks_no_zero_point", q.astype(np.int8), blocks, axis=1, block_size=2, **exact)
    case("DequantizeLinear", "no_zero_point", q, scalar(0.3), **exact)
    case("DequantizeLinear", "one_element_list", q, f32(0.3), u8(9), **exact)
    case("DequantizeLinear", "axis_0", q, f32(0.1, 0.02), u8(128, 3), axis=0, **exact)
    wide = np.array([0, -5, 2**24 + 1, 2**31 - 1, -(2**31)], np.int32)
    case("DequantizeLinear", "int32", wide, scalar(0.25), **exact)
    case("DequantizeLinear", "int32_zero_point", wide, scalar(0.25), scalar(0, np.int32), **exact)
    case("DequantizeLinear", "int32_zero_scales", wide.reshape(1, 5), f32(0.1, 0, 0.3, 0, 0.5), axis=1, **exact)
    case("DequantizeLinear", "int32_per_axis", wide.reshape(1, 5), f32(0.1, 0.2, 0.3, 0.4, 0.5), axis=1, **exact)
    case("DequantizeLinear", "scalar", scalar(7, np.int8), scalar(0.5), scalar(1, np.int8), **exact)
    case("DequantizeLinear", "empty", np.zeros((0, 3), np.uint8), scalar(0.5), **exact)

    case("DynamicQuantizeLinear", "both_signs", f32(0, 2, -3, -2.5, 1.34, 0.5), outputs=3, **exact)
    case("DynamicQuantizeLinear", "positive", f32(1, 2.1, 1.3, 2.5, 3.34, 4), outputs=3, **exact)
    case("DynamicQuantizeLinear", "negative", f32(-1, -2.1, -1.3, -2.5, -3.34, -4), outputs=3, **exact)
    case("DynamicQuantizeLinear", "random", (3, 4, 5), outputs=3, **exact)
    # ONNX's formula gives zeros the scale 0; the reference evaluator takes 1 / 255, ONNX Runtime 1.
    case("DynamicQuantizeLinear", "zeros", f32(0, 0, 0), outputs=3, only="onnxruntime", **exact)


def integer_products():
    def operands(name, x_shape, w_shape, dtype, w_dtype, w_zeros):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        x, w = integers(rng, x_shape, dtype), integers(rng, w_shape, w_dtype)
        return x, w, np.array(rng.integers(1, 100), dtype), integers(rng, w_zeros, w_dtype)

    def conv(name, x_shape, w_shape, dtype=np.uint8, w_dtype=np.int8, w_zeros=(), only=None, **attrs):
        x, w, zero, w_zero = operands(name, x_shape, w_shape, dtype, w_dtype, w_zeros)
        case("ConvInteger", name, x, w, zero, w_zero, tolerance=EXACT, only=only, **attrs)

    square = [1, 1, 1, 1]
    conv("basic", (1, 2, 4, 4), (3, 2, 3, 3))
    conv("uint8_weight", (1, 2, 4, 4), (3, 2, 3, 3), w_dtype=np.uint8)
    conv("int8", (1, 2, 4, 4), (3, 2, 3, 3), dtype=np.int8, pads=square)
    # ONNX Runtime wants one zero point for all filters.
    conv("zero_point_by_filter", (1, 2, 4, 4), (3, 2, 3, 3), w_zeros=(3,), only="reference")
    conv("one_element_zero_points", (1, 2, 4, 4), (3, 2, 3, 3), w_zeros=(1,))
    conv("pads", (1, 2, 4, 4), (3, 2, 3, 3), pads=square)
    conv("strides_dilations", (1, 2, 7, 6), (2, 2, 2, 2), strides=[2, 1], dilations=[2, 3])
    conv("groups", (1, 4, 4, 4), (4, 2, 3, 3), group=2, pads=square)
    conv("depthwise", (1, 3, 4, 4), (3, 1, 3, 3), group=3)
    conv("1d", (2, 3, 7), (2, 3, 3))

    def dynamic(name, x_shape, w_shape, w_dtype=np.int8, scales=(), zeros=None, bias=False, **attrs):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        x, w = rng.normal(size=x_shape).round(3).astype(np.float32), integers(rng, w_shape, w_dtype)
        scale = (rng.random(scales) / 50 + 0.01).astype(np.float32)
        rest = [integers(rng, zeros, w_dtype)] if zeros is not None else [None] if bias else []
        rest += [rng.normal(size=w_shape[0]).round(3).astype(np.float32)] if bias else []
        # ONNX Runtime wants one zero point for all filters.
        only = "reference" if zeros else None
        case("DynamicQuantizeConv", name, x, w, scale, *rest, tolerance=1e-6, only=only, **attrs)

    dynamic("basic", (1, 2, 4, 4), (3, 2, 3, 3))
    dynamic("by_channel", (1, 2, 4, 4), (3, 2, 3, 3), scales=(3,), bias=True, pads=square)
    dynamic("zero_point", (1, 2, 4, 4), (3, 2, 3, 3), zeros=(), bias=True, pads=square)
    dynamic("uint8_weight", (1, 2, 4, 4), (3, 2, 3, 3), w_dtype=np.uint8, zeros=(), pads=[0, 1, 2, 0])
    dynamic("zero_point_by_filter", (1, 2, 4, 4), (3, 2, 3, 3), w_dtype=np.uint8, zeros=(3,))
    dynamic("strides_dilations", (1, 2, 7, 6), (2, 2, 2, 2), strides=[2, 1], dilations=[2, 3], bias=True)
    dynamic("groups", (1, 4, 4, 4), (4, 2, 3, 3), scales=(4,), group=2, pads=square)
    dynamic("depthwise", (1, 3, 5, 4), (3, 1, 3, 3), scales=(3,), bias=True, group=3, pads=square)
    dynamic("same", (1, 2, 5, 4), (3, 2, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2])
    dynamic("1d", (2, 3, 7), (2, 3, 3), bias=True, pads=[1, 1])
    dynamic("3d", (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), scales=(2,), pads=[1, 0, 0, 0, 1, 0])
    x, w, zero, _ = operands("zeros", (1, 2, 4, 4), (3, 2, 3, 3), np.uint8, np.int8, ())
    case("ConvInteger", "no_zero_points", x, w, tolerance=EXACT)
    case("ConvInteger", "no_weight_zero_point", x, w, zero, tolerance=EXACT)
    case("ConvInteger", "no_x_zero_point", x, w, None, scalar(5, np.int8), tolerance=EXACT)

    def matmul(name, a_shape, b_shape, dtype=np.uint8, b_dtype=np.int8, b_zeros=()):
        a, b, zero, b_zero = operands(name, a_shape, b_shape, dtype, b_dtype, b_zeros)
        case("MatMulInteger", name, a, b, zero, b_zero, tolerance=EXACT)

    matmul("2d", (3, 8), (8, 5))
    matmul("uint8_weight", (3, 8), (8, 5), b_dtype=np.uint8)
    matmul("int8", (3, 8), (8, 5), dtype=np.int8)
    matmul("one_element_zero_points", (3, 8), (8, 5), b_zeros=(1,))
    matmul("zero_point_by_column", (3, 8), (8, 5), b_zeros=(5,))
    matmul("batched", (2, 3, 4), (2, 4, 5))
    matmul("broadcast_left", (3, 4), (2, 4, 5))
    matmul("broadcast_right", (2, 3, 4), (4, 5), b_zeros=(5,))
    a, b, zero, _ = operands("zeros", (3, 8), (8, 5), np.uint8, np.int8, ())
    case("MatMulInteger", "no_zero_points", a, b, tolerance=EXACT)
    case("MatMulInteger", "no_b_zero_point", a, b, zero, tolerance=EXACT)


def requantized_products():
    def scaled(exact, y_scale=None):
        """About one output in ten saturates."""
        return np.float32(round(float(np.quantile(np.abs(exact), 0.8)) / 100, 4)) if y_scale is None else y_scale

    def conv(name, x_shape, w_shape, dtype=np.uint8, w_dtype=np.int8, channels=None, bias=True, lists=False, **attrs):
        def make(rng):
            x, w = integers(rng, x_shape, dtype), integers(rng, w_shape, w_dtype)
            (sx, zx), (_, zy) = grid(rng, dtype), grid(rng, dtype)
            sw = rng.uniform(0.001, 0.01, channels or 1).round(5).astype(np.float32)
            zw = np.full(channels or 1, 0 if channels else 3, w_dtype)
            b = rng.integers(-9000, 9000, w_shape[0]).astype(np.int32) if bias else None
            by_channel = (slice(None),) + (None,) * (len(w_shape) - 1)
            # The sums by ConvInteger's definition, through the reference evaluator's float Conv in double.
            node = helper.make_node("Conv", ["x", "w"], ["y"], **attrs)
            kinds = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in "xwy"]
            model = helper.make_model(
                helper.make_graph([node], "sums", kinds[:2], kinds[2:]),
                opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
            )  # fmt: skip
            feeds = {"x": x.astype(np.float64) - zx, "w": w.astype(np.float64) - zw[by_channel]}
            sums = onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0]
            sums = sums + (b.reshape([1, -1] + [1] * (len(x_shape) - 2)) if bias else 0)
            exact = sums * np.float64(sx) * sw.astype(np.float64).reshape([1, -1] + [1] * (len(x_shape) - 2))
            sy = scaled(exact)
            shape = lambda v: np.array(v).reshape(1) if lists else np.array(v)  # noqa: E731
            sw, zw = (sw, zw) if channels else (shape(sw[0]), shape(zw[0]))
            operands = [x, shape(sx), shape(zx), w, sw, zw, shape(sy), shape(zy)] + ([b] if bias else [])
            return operands, exact / np.float64(sy)

        # The reference evaluator gives a convolution along one axis two.
        only = "onnxruntime" if len(x_shape) == 3 else None
        case("QLinearConv", name, *away_from_ties(f"QLinearConv/{name}", make), tolerance=EXACT, only=only, **attrs)

    square = [1, 1, 1, 1]
    conv("per_tensor", (1, 2, 4, 4), (3, 2, 3, 3))
    conv("per_channel", (1, 2, 4, 4), (3, 2, 3, 3), channels=3, pads=square)
    conv("no_bias", (1, 2, 4, 4), (3, 2, 3, 3), channels=3, bias=False, pads=square)
    conv("one_element_lists", (1, 2, 4, 4), (3, 2, 3, 3), lists=True)
    conv("uint8_weight", (1, 2, 4, 4), (3, 2, 3, 3), w_dtype=np.uint8)
    conv("int8", (1, 2, 4, 4), (3, 2, 3, 3), dtype=np.int8, channels=3, pads=square)
    conv("depthwise", (1, 3, 4, 4), (3, 1, 3, 3), channels=3, group=3, pads=square)
    conv("strides_groups", (1, 4, 5, 5), (4, 2, 3, 3), channels=4, group=2, strides=[2, 2], pads=square)
    conv("1d", (1, 3, 7), (2, 3, 3), channels=2)

    def product(rng, a_shape, b_shape, dtype, b_dtype, columns):
        a, b = integers(rng, a_shape, dtype), integers(rng, b_shape, b_dtype)
        (sa, za), (_, zy) = grid(rng, dtype), grid(rng, dtype)
        sb = rng.uniform(0.001, 0.01, columns or 1).round(5).astype(np.float32)
        zb = integers(rng, columns or 1, b_dtype) // 8
        return a, sa, za, b, sb, zb, zy

    def matmul(name, a_shape, b_shape, dtype=np.uint8, b_dtype=np.int8, columns=None):
        def make(rng):
            a, sa, za, b, sb, zb, zy = product(rng, a_shape, b_shape, dtype, b_dtype, columns)
            exact = real(a, sa, za) @ real(b, sb, zb)
            sy = scaled(exact)
            sb, zb = (sb, zb) if columns else (sb[0], zb[0])
            return [a, sa, za, b, sb, zb, sy, zy], exact / np.float64(sy)

        case("QLinearMatMul", name, *away_from_ties(f"QLinearMatMul/{name}", make), tolerance=EXACT)

    matmul("2d", (3, 8), (8, 5))
    matmul("by_column", (3, 8), (8, 5), columns=5)
    matmul("int8", (3, 8), (8, 5), dtype=np.int8)
    matmul("uint8_weight", (3, 8), (8, 5), b_dtype=np.uint8)
    matmul("batched", (2, 3, 4), (2, 4, 5))

    def gemm(name, a_shape, b_shape, dtype=np.uint8, columns=None, c=None, quantized=True, alpha=1.0, **attrs):
        def make(rng):
            a, sa, za, b, sb, zb, zy = product(rng, a_shape, b_shape, dtype, np.int8, columns)
            bias = rng.integers(-9000, 9000, c).astype(np.int32) if c is not None else None
            left, right = real(a, 1, za), real(b.T if attrs.get("transB") else b, 1, zb)
            sums = (left.T if attrs.get("transA") else left) @ right + (0 if bias is None else bias)
            exact = sums * np.float64(sa) * sb.astype(np.float64) * alpha
            sy = scaled(exact)
            sb, zb = (sb, zb) if columns else (sb[0], zb[0])
            tail = [sy, zy] if quantized else []
            return [a, sa, za, b, sb, zb, bias] + tail, exact / np.float64(sy)

        # float32 results: the float product of multiplier and sum is exact to its last bit in any order but one.
        tolerance = EXACT if quantized else 1e-6
        if alpha != 1.0:
            attrs["alpha"] = alpha
        case("QGemm", name, *away_from_ties(f"QGemm/{name}", make), tolerance=tolerance, **attrs)

    gemm("basic", (3, 8), (8, 5), c=(5,))
    gemm("by_column", (3, 8), (8, 5), c=(5,), columns=5)
    gemm("trans_b", (3, 8), (5, 8), c=(5,), columns=5, transB=1)
    gemm("trans_a", (8, 3), (8, 5), c=(1, 5), transA=1)
    gemm("alpha", (3, 8), (8, 5), c=(5,), alpha=0.5)
    gemm("no_c", (3, 8), (8, 5))
    gemm("int8", (3, 8), (8, 5), dtype=np.int8, c=(5,))
    gemm("float_result", (3, 8), (8, 5), c=(5,), quantized=False)

    def to_float(name, a_shape, b_shape, columns=None, bias=None):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        a, sa, za, b, sb, zb, _ = product(rng, a_shape, b_shape, np.uint8, np.int8, columns)
        sb, zb = (sb, zb) if columns else (sb[0], zb[0])
        tail = [rng.normal(size=bias).round(3).astype(np.float32)] if bias else []
        case("MatMulIntegerToFloat", name, a, b, sa, sb, za, zb, *tail, tolerance=1e-6)
        x = rng.normal(size=a_shape).round(3).astype(np.float32)
        case("DynamicQuantizeMatMul", name, x, b, sb, zb, *tail, tolerance=1e-6)

    to_float("2d", (3, 8), (8, 5))
    to_float("by_column", (3, 8), (8, 5), columns=5)
    to_float("bias", (3, 8), (8, 5), columns=5, bias=5)
    to_float("rows_of_rows", (2, 3, 4), (4, 5), bias=5)
    # As ONNX Runtime's own optimizer leaves an Add behind such a product.
    to_float("bias_of_two_axes", (3, 8), (8, 5), columns=5, bias=(1, 5))
    to_float("bias_of_three_axes", (3, 8), (8, 5), bias=(1, 1, 5))
    to_float("bias_of_one_column", (3, 8), (8, 1), bias=(1, 1, 1))
    rng = np.random.default_rng(1)
    a, b = integers(rng, (2, 6), np.uint8), integers(rng, (6, 3), np.uint8)
    case("MatMulIntegerToFloat", "no_zero_points", a, b, scalar(0.1), scalar(0.2), tolerance=1e-6)
    case("DynamicQuantizeMatMul", "no_zero_point", (2, 6), b, scalar(0.2), tolerance=1e-6)

    for centered in (0, 1):
        kind = "centered" if centered else "plain"
        for name, a, b in (
            ("2d", (3, 8), (8, 5)), ("stacks", (2, 1, 3, 4), (3, 4, 2)), ("a_row", (1, 30), (30, 2)), ("a_column", (5, 7), (7, 1)),
        ):  # fmt: skip
            if not (centered and name == "a_column"):  # whose mean leaves nothing
                case("DynamicMatMul", f"{kind}_{name}", a, b, tolerance=1e-6, centered=centered)
    rng = np.random.default_rng(2)
    shares = rng.random((3, 9)).astype(np.float32).round(3)
    case("DynamicMatMul", "shares", shares, (9, 4), tolerance=1e-6)
    case("DynamicMatMul", "below_zero", -shares, (9, 4), tolerance=1e-6)

    def nbits(name, k, n, block, zeros=False, bias=False, bits=4, groups=False, real_zeros=False, level=0, signs=False):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        blocks = -(-k // block)
        a = rng.normal(size=(3, k)).round(3).astype(np.float32)
        b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        scales = rng.uniform(0.01, 0.1, n * blocks).round(4).astype(np.float32)
        if signs:  # as MatMulNBitsQuantizer of ONNX Runtime has them, whose largest number in a block is -8
            scales *= np.where(np.arange(n * blocks) % 3 == 1, 0, 1 - 2 * (np.arange(n * blocks) % 2)).astype(np.float32)
        inputs = [a, b, scales, rng.integers(0, 256, n * -(-blocks * bits // 8)).astype(np.uint8) if zeros else None]
        if real_zeros:
            inputs[3] = rng.uniform(0, 15, n * blocks).round(2).astype(np.float32)
        if groups:
            inputs += [rng.permutation(np.arange(k) // block).astype(np.int32)]
        inputs += [None, rng.normal(size=n).round(3).astype(np.float32)] if bias else []
        attributes = {"accuracy_level": level} if level else {}
        case("MatMulNBits", name, *inputs, tolerance=CLOSE, K=k, N=n, bits=bits, block_size=block, **attributes)

    nbits("symmetric", 32, 5, 16)
    for bits in (2, 8):
        nbits(f"of_{bits}_bits", 48, 4 if bits == 2 else 3, 16, bits=bits)
        nbits(f"of_{bits}_bits_zeros", 40, 4 if bits == 2 else 3, 16, zeros=True, bits=bits)
        nbits(f"scales_below_zero_of_{bits}_bits", 48, 4, 16, bits=bits, signs=True)
    nbits("scales_below_zero", 40, 4, 16, signs=True)
    nbits("scales_below_zero_and_zeros", 48, 4, 16, zeros=True, bias=True, signs=True)
    nbits("groups", 32, 5, 16, groups=True)  # with zero points, ONNX Runtime takes that of the first block for all
    nbits("real_zeros", 32, 5, 16, real_zeros=True)
    nbits("zero_points", 48, 4, 16, zeros=True)
    nbits("short_last_block", 40, 3, 16, zeros=True, bias=True)
    for bits in (4, 8):
        nbits(f"level_4_of_{bits}_bits", 64, 20 // bits, 32, bits=bits, level=4)
        nbits(f"level_4_of_{bits}_bits_zeros", 40, 4, 16, zeros=True, bias=True, bits=bits, level=4)
    nbits("level_4_block_of_16", 48, 5, 16, level=4)


def quantized_arithmetic():
    functions = {"QLinearAdd": np.add, "QLinearMul": np.multiply}

    def binary(op, name, a_shape, b_shape, dtype=np.uint8, absent=False):
        def make(rng):
            a, b = integers(rng, a_shape, dtype), integers(rng, b_shape, dtype)
            (sa, za), (sb, zb), (sy, zy) = grid(rng, dtype), grid(rng, dtype), grid(rng, dtype)
            exact = functions[op](real(a, sa, za), real(b, sb, zb)) / np.float64(sy)
            return [a, sa, za, b, sb, zb, sy] + ([] if absent else [zy]), exact

        case(op, name, *away_from_ties(f"{op}/{name}", make), tolerance=EXACT)

    for op in functions:
        binary(op, "same_shape", (2, 3, 4), (2, 3, 4))
        binary(op, "int8", (2, 3, 4), (2, 3, 4), dtype=np.int8)
        binary(op, "scalar", (2, 3), ())
        binary(op, "broadcast", (2, 3, 4), (3, 1))
        binary(op, "broadcast_both", (3, 1), (1, 4))
        binary(op, "no_zero_point", (2, 3), (2, 3), absent=True)

    def unary(op, name, shape, function, dtype=np.uint8, y_grid=None, **attrs):
        def make(rng):
            x = integers(rng, shape, dtype)
            (sx, zx), (sy, zy) = grid(rng, dtype), y_grid or grid(rng, dtype)
            return [x, sx, zx, sy, zy], function(real(x, sx, zx)) / np.float64(sy)

        case(op, name, *away_from_ties(f"{op}/{name}", make), tolerance=EXACT, **attrs)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def leaky(alpha):
        return lambda x: np.where(x < 0, np.float64(np.float32(alpha)) * x, x)

    unary("QLinearSigmoid", "uint8", (2, 3, 8), sigmoid, y_grid=(np.float32(1 / 256), scalar(0, np.uint8)))
    unary(
        "QLinearSigmoid", "int8", (2, 3, 8), sigmoid, dtype=np.int8,
        y_grid=(np.float32(1 / 256), scalar(-128, np.int8)),
    )  # fmt: skip
    unary("QLinearLeakyRelu", "uint8", (2, 3, 8), leaky(0.01))
    x = np.arange(0, 256, 17, dtype=np.uint8)
    case("QLinearSigmoid", "no_x_zero_point", x, scalar(0.01), None, scalar(1 / 256), scalar(3, np.uint8), tolerance=EXACT)
    unary("QLinearLeakyRelu", "int8", (2, 3, 8), leaky(0.1), dtype=np.int8, alpha=0.1)

    def softmax(axes):
        def function(x):
            e = np.exp(x - x.max(axes, keepdims=True))
            return e / e.sum(axes, keepdims=True)

        return function

    probabilities, signed = (np.float32(1 / 256), scalar(0, np.uint8)), (np.float32(1 / 256), scalar(-128, np.int8))
    unary("QLinearSoftmax", "uint8", (2, 3, 8), softmax(2), y_grid=probabilities, opset=13)
    unary("QLinearSoftmax", "int8", (2, 3, 8), softmax(2), dtype=np.int8, y_grid=signed, opset=13, axis=-1)
    unary("QLinearSoftmax", "inner_axis", (2, 3, 8), softmax(1), y_grid=probabilities, opset=13, axis=1)
    unary("QLinearSoftmax", "several_axes", (2, 3, 4), softmax((1, 2)), y_grid=probabilities, opset=11, axis=1)

    def mean(x):
        return x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)

    unary("QLinearGlobalAveragePool", "uint8", (2, 3, 4, 5), mean)
    unary("QLinearGlobalAveragePool", "int8", (2, 3, 4, 5), mean, dtype=np.int8)
    unary("QLinearGlobalAveragePool", "1d", (2, 3, 7), mean)

    def windows(**attrs):
        """AveragePool in double, by the reference evaluator."""
        node = helper.make_node("AveragePool", ["x"], ["y"], **attrs)
        kinds = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in "xy"]
        graph = helper.make_graph([node], "means", kinds[:1], kinds[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        return lambda x: onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]

    pools = {
        "basic": {"kernel_shape": [2, 2]},
        "strides": {"kernel_shape": [2, 3], "strides": [2, 2]},
        "pads": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        "count_include_pad": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        "auto_pad": {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"},
    }
    for name, attrs in pools.items():
        unary("QLinearAveragePool", name, (1, 2, 5, 6), windows(**attrs), **attrs)
    attrs = {"kernel_shape": [2, 2]}
    unary("QLinearAveragePool", "int8", (1, 2, 5, 6), windows(**attrs), dtype=np.int8, **attrs)

    def concat(name, shapes, axis, dtype=np.uint8, same=False):
        def make(rng):
            y = grid(rng, dtype)
            operands, parts = [*y], []
            for shape in shapes:
                x, (s, z) = integers(rng, shape, dtype), y if same else grid(rng, dtype)
                operands += [x, s, z]
                parts.append(real(x, s, z) / np.float64(y[0]))
            return operands, np.concatenate(parts, axis)

        case("QLinearConcat", name, *away_from_ties(f"QLinearConcat/{name}", make), tolerance=EXACT, axis=axis)

    concat("two_grids", [(2, 3), (2, 4)], 1)
    concat("one_grid", [(2, 3), (1, 3)], 0, same=True)
    concat("three", [(1, 2, 3), (1, 1, 3), (1, 2, 3)], -2)
    concat("int8", [(2, 3), (2, 4)], 1, dtype=np.int8)

EVERY_INTEGER = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64)


def trigonometry():
    anywhere, inside = np.linspace(-6, 6, 25), np.linspace(-1, 1, 17)
    spans = dict.fromkeys(("Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Sign", "Swish"), anywhere)
    spans |= {"Asin": inside, "Acos": inside, "Atanh": inside * 0.99, "Acosh": np.linspace(1, 9, 17)}
    spans |= {"ThresholdedRelu": anywhere, "Celu": anywhere, "Shrink": anywhere}
    for op, span in spans.items():
        # ONNX Runtime has some of them for float32 alone, and the newest not at all.
        case(op, "range", span.astype(np.float32), only="reference" if op == "Swish" else None)
        case(op, "double", span, only="reference")
        case(op, "half", span.astype(np.float16), tolerance=2e-3, only="reference")
        case(op, "scalar", scalar(1), only="reference")
        case(op, "empty", (2, 0, 3), only="reference")
    for op in ("Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Asin", "Atanh", "Celu"):
        case(op, "special", f32(np.nan, np.inf, 1.0), only="reference")
    case("Sign", "special", SPECIAL, tolerance=EXACT, only="reference")  # ONNX Runtime has no NaN here
    case("ThresholdedRelu", "alpha", (2, 8), alpha=-0.25)
    case("ThresholdedRelu", "infinite", f32(np.inf, -np.inf, 1), tolerance=EXACT)
    case("Celu", "alpha", (2, 8), alpha=2.5)
    case("Celu", "negative_alpha", (2, 8), alpha=-0.5)
    case("Swish", "alpha", (2, 8), alpha=-1.5, only="reference")
    case("Shrink", "bias", (2, 8), bias=0.5, lambd=0.75)
    for dtype in EVERY_INTEGER:
        name, values = np.dtype(dtype).name, np.array([0, 1, 2, 100], dtype)
        case("Sign", name, values - dtype(1) if name[0] == "i" else values, tolerance=EXACT)
        case("Shrink", name, values, lambd=1.5, bias=1.0, tolerance=EXACT)


def bits():
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        for dtype in EVERY_INTEGER:
            case(op, np.dtype(dtype).name, np.array([0, 5, 127], dtype), np.array([[3], [64]], dtype), tolerance=EXACT)
        case(op, "negative", i64(-1, -8), i64(5, 12), tolerance=EXACT)
        case(op, "scalars", scalar(6, np.int32), scalar(3, np.int32), tolerance=EXACT)
        case(op, "empty", np.zeros((0, 2), np.uint8), np.zeros(2, np.uint8), tolerance=EXACT)
    for dtype in EVERY_INTEGER:
        case("BitwiseNot", np.dtype(dtype).name, np.array([0, 5, 127], dtype), tolerance=EXACT)
    for direction in ("LEFT", "RIGHT"):
        for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
            values = np.array([1, 200, 7], dtype), np.array([1, 3, 0], dtype)
            only = "reference" if dtype == np.uint16 else None  # ONNX Runtime has no form
            attrs = {"direction": direction, "tolerance": EXACT, "only": only}
            case("BitShift", f"{direction.lower()}_{np.dtype(dtype).name}", *values, **attrs)
        case("BitShift", f"{direction.lower()}_broadcast", np.array([[1], [16]], np.uint8), np.array([1, 2], np.uint8),
             direction=direction, tolerance=EXACT)  # fmt: skip
    case("Xor", "same_shape", truths(True, False, True, False), truths(True, True, False, False), tolerance=EXACT)
    case("Xor", "broadcast", truths(True, False).reshape(2, 1), truths(True, False, True), tolerance=EXACT)
    case("BitCast", "float", SPECIAL, to=TensorProto.INT32, tolerance=EXACT, only="reference")
    case("BitCast", "int16", np.array([1, -2], np.int16), to=TensorProto.UINT16, tolerance=EXACT, only="reference")
    case("BitCast", "double", f64(1.5, -0.0), to=TensorProto.INT64, tolerance=EXACT, only="reference")


def remainders():
    dividends, divisors = f32(7, -7, 7, -7, 5.5, -0.5), f32(3, 3, -3, -3, 2.5, 2)
    case("Mod", "fmod", dividends, divisors, fmod=1)
    case("Mod", "fmod_double", dividends.astype(np.float64), divisors.astype(np.float64), fmod=1)
    case("Mod", "fmod_special", f32(np.nan, np.inf, 1, 1, -0.0), f32(1, 1, np.inf, 0, 3), fmod=1)
    for dtype in EVERY_INTEGER:
        values = np.array([7, 9, 100, 0], dtype), np.array([3, 10, 7, 5], dtype)
        case("Mod", np.dtype(dtype).name, *values, tolerance=EXACT)
        case("Mod", f"{np.dtype(dtype).name}_fmod", *values, fmod=1, tolerance=EXACT)
    case("Mod", "signs", i64(7, -7, 7, -7), i64(3, 3, -3, -3), tolerance=EXACT)
    case("Mod", "signs_fmod", i64(7, -7, 7, -7), i64(3, 3, -3, -3), fmod=1, tolerance=EXACT)
    # ONNX Runtime dies of it.
    case("Mod", "lowest", i64(np.iinfo(np.int64).min), i64(-1), tolerance=EXACT, only="reference")
    case("Mod", "broadcast", np.array([[7], [-7]], np.int32), np.array([2, 3], np.int32), tolerance=EXACT)
    case("Mod", "empty", np.zeros((0, 2), np.int32), np.ones(2, np.int32), tolerance=EXACT)
    # The rule for floats that opset 28 writes down; the reference of NumPy is older.
    case("Mod", "floats", dividends, divisors, only="reference")


def variadic():
    for op in ("Sum", "Mean"):
        case(op, "one", (2, 3))
        case(op, "two", (2, 3), (2, 3))
        # The reference's Mean adds in place; ONNX Runtime has it for float32 alone.
        case(op, "three_broadcast", (2, 1, 4), (3, 1), scalar(0.25), only="onnxruntime")
        case(op, "scalars", scalar(1), scalar(2))
        case(op, "empty", (0, 3), (1, 3))
        case(op, "double", f64(1, 5, -2), f64(2, 4, -3), f64(0, 0, 9), only="reference")
        case(op, "half", f64(1, 5, -2).astype(np.float16), f64(2, 4, -3).astype(np.float16), tolerance=1e-3)


def hardmax():
    for name, attrs in {"last": {}, "first": {"axis": 0}, "middle": {"axis": -2}}.items():
        case("Hardmax", name, (2, 3, 4), tolerance=EXACT, **attrs)
    case("Hardmax", "ties", f32(1, 3, 3, 0), tolerance=EXACT)
    case("Hardmax", "minus_infinity", f32(-np.inf, -np.inf).reshape(1, 2), tolerance=EXACT)
    case("Hardmax", "empty_batch", (0, 4), tolerance=EXACT, only="onnxruntime")
    case("Hardmax", "double", f64(0, 2, 1), tolerance=EXACT, only="reference")


def norms():
    for op in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"):
        # ONNX Runtime has no logarithm where nothing is reduced; the reference follows the text.
        def x(*shape):
            return np.abs(ramp(*shape) * np.float32(0.37) - 3) + np.float32(0.1)

        for name, axes in {"last": [2], "both_ends": [0, 2], "negative": [-2]}.items():
            case(op, name, x(2, 3, 4), i64(*axes))
            case(op, f"{name}_squeezed", x(2, 3, 4), i64(*axes), keepdims=0)
        case(op, "all_by_absent_axes", x(2, 3))
        case(op, "all_by_empty_axes", x(2, 3), NOTHING, keepdims=0)
        # The reference's ReduceLogSumExp wants an array.
        case(op, "scalar", scalar(2.5), only="onnxruntime")
        case(op, "empty_result", (0, 3), i64(1))
        case(op, "double", x(2, 3).astype(np.float64), i64(1))
        case(op, "nan", f32(1, np.nan, 3, np.inf).reshape(2, 2), i64(1))
    for op in ("ReduceL1", "ReduceSumSquare"):
        case(op, "signs", (2, 3, 4), i64(1))
        for dtype in (np.int32, np.int64):
            # NumPy's sums of int32 are int64.
            case(op, np.dtype(dtype).name, np.array([[1, -2, 3], [-4, 5, 0]], dtype), i64(1), tolerance=EXACT,
                 only="onnxruntime")  # fmt: skip
        case(op, "uint64", np.array([[1, 2, 3], [4, 5, 0]], np.uint64), i64(1), only="reference")
    case("ReduceLogSumExp", "large", f32(1000, 1001, -1000, 3).reshape(2, 2), i64(1), only="onnxruntime")
    case("ReduceLogSumExp", "minus_infinity", f32(-np.inf, 1).reshape(1, 2), i64(1))


def cumulative_products():
    for name, attrs in {
        "plain": {}, "exclusive": {"exclusive": 1}, "reverse": {"reverse": 1}, "both": {"exclusive": 1, "reverse": 1},
    }.items():  # fmt: skip
        for axis in (0, -1):
            case("CumProd", f"{name}_{axis}", (2, 3, 2), scalar(axis, np.int64), only="reference", **attrs)
    for dtype in (np.float64, np.int32, np.int64, np.uint32, np.uint64):
        case("CumProd", np.dtype(dtype).name, ramp(2, 3, dtype=dtype), scalar(1, np.int64), only="reference")


def determinants():
    case("Inverse", "one", (3, 3), tolerance=1e-4)
    case("Inverse", "batch", (2, 2, 4, 4), tolerance=1e-3)
    case("Inverse", "zero_pivot", f32(0, 2, 3, 0).reshape(2, 2))
    case("Inverse", "single", f32(4, -0.5).reshape(2, 1, 1))
    case("Inverse", "double", f64(2, 1, 1, 3).reshape(2, 2))
    case("Inverse", "empty", np.zeros((0, 2, 2), np.float32))
    case("Det", "one", (3, 3))
    case("Det", "batch", (2, 2, 4, 4), tolerance=1e-4)
    case("Det", "singular", f32(1, 2, 2, 4).reshape(2, 2))
    case("Det", "zero_pivot", f32(0, 2, 3, 0).reshape(2, 2))
    case("Det", "double", f64(2, 1, 1, 3).reshape(2, 2), only="reference")
    case("Det", "size_0", np.zeros((2, 0, 0), np.float32), only="reference")
    case("Det", "empty", np.zeros((0, 2, 2), np.float32), only="reference")


def contractions():
    def einsum(name, equation, *inputs, **attrs):
        case("Einsum", name, *inputs, equation=equation, **attrs)

    einsum("matmul", "ij,jk->ik", (2, 3), (3, 4))
    einsum("batch", "bhid,bhjd->bhij", (2, 2, 3, 4), (2, 2, 2, 4))
    einsum("implicit", "bij, bjk", (2, 2, 3), (2, 3, 2))
    einsum("implicit_order", "ba", (2, 3), only="reference")
    einsum("transpose", "ij->ji", (2, 3))
    einsum("sum", "ij->i", (2, 3))
    einsum("all", "ij->", (2, 3))
    einsum("trace", "ii->", (3, 3), only="reference")
    einsum("diagonal", "ii->i", (3, 3))
    einsum("inner", "i,i", (5,), (5,))
    einsum("outer", "i,j->ij", (3,), (2,))
    einsum("three", "ij,jk,kl->il", (2, 3), (3, 2), (2, 4))
    einsum("three_apart", "ab,cd,ac->bd", (2, 3), (4, 2), (2, 4))
    einsum("ellipsis", "...ij,...jk->...ik", (2, 1, 2, 3), (1, 3, 3, 2))
    einsum("ellipsis_implicit", "...ij,jk", (2, 2, 3), (3, 2), only="reference")
    einsum("upper_case", "aB,Bc->ac", (2, 3), (3, 2))
    einsum("summed_alone", "ij,k->i", (2, 3), (4,))
    einsum("scalar", ",ij->ij", scalar(2), (2, 2), only="reference")
    einsum("hadamard", "ij,ij->ij", (2, 3), (2, 3))
    einsum("nothing_summed", "ij,jk->ik", (2, 0), (0, 3), only="reference")
    einsum("double", "ij,jk->ik", f64(1, 2, 3, 4).reshape(2, 2), f64(1, 0, 0.5, 1).reshape(2, 2))
    for dtype in (np.int32, np.int64):
        einsum(np.dtype(dtype).name, "ij,jk->ik", ramp(2, 3, dtype=dtype), ramp(3, 2, dtype=dtype), tolerance=EXACT)
    for dtype in (np.uint8, np.int16, np.uint64):
        values = ramp(2, 3, dtype=dtype), ramp(3, 2, dtype=dtype)
        einsum(np.dtype(dtype).name, "ij,jk->ik", *values, tolerance=EXACT, only="reference")


def best():
    x = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]], np.float32)
    for largest in (0, 1):
        case("TopK", f"last_{largest}", x, i64(3), outputs=2, tolerance=EXACT, largest=largest)
        case("TopK", f"first_{largest}", x, i64(1), outputs=2, tolerance=EXACT, largest=largest, axis=0)
        case("TopK", f"ties_{largest}", f32(1, 1, 1, 2, 2), i64(4), outputs=2, tolerance=EXACT, largest=largest)
        case("TopK", f"infinities_{largest}", f32(0, -np.inf, np.inf), i64(3), outputs=2, tolerance=EXACT, largest=largest)
        case("TopK", f"nan_{largest}", f32(1, np.nan, 3), i64(2), outputs=2, tolerance=EXACT, largest=largest,
             only="reference")  # fmt: skip
        zeros = f32(0.0, -0.0, -1, -np.inf, 1e-45, -1e-45)
        case("TopK", f"zeros_{largest}", zeros, i64(6), outputs=2, tolerance=EXACT, largest=largest)
        wide = np.array([0, 1 << 63, (1 << 63) - 1, (1 << 64) - 1], np.uint64)
        # Longer than a block, of which most hold nothing better than what was found before; with ties beyond it.
        long = ((np.arange(198) * 37 + 11) % 101 // 5).astype(np.float32).reshape(2, 99)
        case("TopK", f"long_{largest}", long, i64(7), outputs=2, tolerance=EXACT, largest=largest)
        with_nan = np.where(np.arange(99) == 70, np.float32(np.nan), long)
        case("TopK", f"long_nan_{largest}", with_nan, i64(3), outputs=2, tolerance=EXACT, largest=largest, only="reference")
        case("TopK", f"uint64_{largest}", wide, i64(4), outputs=2, tolerance=EXACT, largest=largest, only="reference")
    case("TopK", "all", x, i64(5), outputs=2, tolerance=EXACT)
    case("TopK", "middle", (2, 4, 3), i64(2), outputs=2, tolerance=EXACT, axis=1)
    case("TopK", "none", x, i64(0), outputs=2, tolerance=EXACT)
    case("TopK", "empty_batch", (0, 4), i64(2), outputs=2, tolerance=EXACT)
    for dtype in (np.float64, np.int32, np.int64, *EVERY_INTEGER):
        if f"of_{np.dtype(dtype).name}" not in {c.name for c in CASES["TopK"]}:
            case("TopK", f"of_{np.dtype(dtype).name}", x.astype(dtype), i64(2), outputs=2, tolerance=EXACT, only="reference")


def losses():
    target = np.array([0, 2, 1, 1], np.int64)
    weights = f32(0.5, 2, 1)
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        for reduction in ("none", "sum", "mean"):
            case(op, reduction, (4, 3), target, reduction=reduction)
            case(op, f"{reduction}_weights", (4, 3), target, weights, reduction=reduction)
            case(op, f"{reduction}_ignored", (4, 3), target, weights, reduction=reduction, ignore_index=1)
            places = np.array([[[0, 2], [1, 1]]], np.int64)
            case(op, f"{reduction}_places", (1, 3, 2, 2), places, weights, reduction=reduction, ignore_index=2)
        # The reference counts what it ignores.
        case(op, "ignored_beyond", (4, 3), np.array([0, -1, 1, 1], np.int64), ignore_index=-1, only="onnxruntime")
        case(op, "int32", (4, 3), target.astype(np.int32))
        case(op, "double", ramp(4, 3, dtype=np.float64) / 7, target)
    case("SoftmaxCrossEntropyLoss", "log_prob", (4, 3), target, outputs=2)
    case("SoftmaxCrossEntropyLoss", "log_prob_places", (1, 3, 2), np.array([[0, 2]], np.int64), outputs=2)
    case("SwiGLU", "plain", (2, 3), (2, 3), only="reference")
    case("SwiGLU", "alpha", (2, 3), (2, 3), alpha=1.7, only="reference")
    case("SwiGLU", "double", f64(1, -2), f64(3, 0.5), only="reference")


def signals():
    def dft(name, x, length=None, axis=None, **attrs):
        inputs = [x, None if length is None else scalar(length, np.int64), None if axis is None else scalar(axis, np.int64)]
        while inputs[-1] is None:
            inputs.pop()
        case("DFT", name, *inputs, only="reference", **attrs)

    for n in (1, 2, 3, 5, 8, 12):
        dft(f"real_{n}", (2, n, 1))
        dft(f"complex_{n}", (2, n, 2))
        dft(f"inverse_{n}", (2, n, 2), inverse=1)
        dft(f"onesided_{n}", (2, n, 1), onesided=1)
    dft("axis_0", (6, 2, 1), axis=0)
    dft("axis_minus_3", (4, 2, 2), axis=-3, inverse=1)
    dft("longer", (2, 5, 1), 9)
    dft("shorter", (2, 7, 2), 4)
    dft("to_real", (2, 4, 2), onesided=1, inverse=1)
    dft("to_real_odd", (2, 4, 2), 7, onesided=1, inverse=1)
    dft("to_real_longer", (1, 3, 2), 10, onesided=1, inverse=1)
    dft("double", np.linspace(0, 1, 6).reshape(1, 6, 1))
    dft("empty_batch", np.zeros((0, 4, 1), np.float32))

    window = np.hanning(6).astype(np.float32)
    step, length = scalar(3, np.int64), scalar(6, np.int64)
    case("STFT", "window", (2, 14, 1), step, window, only="reference")
    case("STFT", "length", (1, 14, 1), step, None, length, only="reference")
    case("STFT", "both", (1, 14, 1), step, window, length, onesided=0, only="reference")
    case("STFT", "complex", (1, 9, 2), scalar(2, np.int64), window[:4], onesided=0, only="reference")
    case("STFT", "whole", (1, 7, 1), step, only="reference")
    case("STFT", "list", (3, 14), step, window, only="onnxruntime")

    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        # The reference has Blackman's sign of half a period wrong no more; ONNX Runtime counts like this library.
        for n in (2, 7, 10):
            case(op, f"periodic_{n}", scalar(n, np.int64))
            case(op, f"symmetric_{n}", scalar(n, np.int32), periodic=0)
        case(op, "one", scalar(1, np.int64))
        case(op, "empty", scalar(0, np.int64), only="reference")
        case(op, "double", scalar(5, np.int64), output_datatype=TensorProto.DOUBLE)

    def mel(name, *values, **attrs):
        kinds = (np.int64, np.int64, np.int64, np.float32, np.float32)
        case("MelWeightMatrix", name, *(scalar(v, k) for v, k in zip(values, kinds)), **attrs)

    mel("wide", 8, 16, 8192, 0, 4096)
    mel("narrow", 5, 30, 16000, 125, 7600)
    mel("double", 4, 16, 8000, 20, 3000, output_datatype=TensorProto.DOUBLE)


def generators():
    def arange(name, dtype, *values, **attrs):
        case("Range", name, *(scalar(v, dtype) for v in values), **attrs)

    arange("up", np.int64, 2, 9, 3, tolerance=EXACT)
    arange("down", np.int32, 10, 4, -2, tolerance=EXACT)
    arange("nothing", np.int64, 5, 5, 1, tolerance=EXACT)
    arange("away", np.int64, 5, 9, -1, tolerance=EXACT)
    arange("int16", np.int16, -3, 3, 2, tolerance=EXACT)
    arange("extremes", np.int64, np.iinfo(np.int64).min, np.iinfo(np.int64).max, (1 << 62) + 1, tolerance=EXACT,
           only="reference")  # fmt: skip
    arange("float", np.float32, 0.5, 2, 0.25)
    arange("float_down", np.float32, 1, -1, -0.3)
    arange("double", np.float64, 0, 1, 0.1)
    case("EyeLike", "square", (3, 3), tolerance=EXACT)
    case("EyeLike", "wide", (2, 4), k=1, tolerance=EXACT)
    case("EyeLike", "tall", (4, 2), k=-2, tolerance=EXACT)
    case("EyeLike", "outside", (2, 3), k=7, tolerance=EXACT)
    case("EyeLike", "empty", (0, 3), tolerance=EXACT)
    case("EyeLike", "of_int", np.zeros((2, 2), np.int32), tolerance=EXACT)
    for to in (TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64):
        case("EyeLike", f"to_{to}", (2, 2), dtype=to, tolerance=EXACT)
    for shape in ((), (2, 3), (0, 4)):
        case("Size", f"rank_{len(shape)}_{sum(shape)}", np.zeros(shape, np.float32), tolerance=EXACT)
    case("Size", "of_bool", truths(True, False), tolerance=EXACT)
    for dtype in (np.float64, np.bool_, *EVERY_INTEGER):
        x = f32(0, 1, 2.7, 100)
        case("CastLike", f"to_{np.dtype(dtype).name}", x, np.zeros(2, dtype), tolerance=EXACT, only="reference")
        case("CastLike", f"from_{np.dtype(dtype).name}", x.astype(dtype), f32(0), tolerance=EXACT, only="reference")
    # What is drawn is no golden vector; what can only come out one way is.
    case("RandomUniform", "one_value", shape=[2, 3], low=1.5, high=1.5, tolerance=EXACT)
    case("RandomUniformLike", "one_value", (2, 3), low=1.5, high=1.5, tolerance=EXACT)
    case("RandomUniformLike", "of_int", np.zeros(3, np.int64), low=-2.0, high=-2.0, dtype=1, tolerance=EXACT)
    case("RandomNormal", "one_value", shape=[3], mean=0.25, scale=0.0, dtype=11, tolerance=EXACT, only="reference")
    case("RandomNormalLike", "one_value", (2, 3), mean=0.25, scale=0.0, tolerance=EXACT, only="reference")
    # ONNX Runtime draws the other way round.
    case("Bernoulli", "certain", f32(0, 1, 1, 0), tolerance=EXACT, only="reference")
    case("Bernoulli", "to_bool", f64(0, 1, 1, 0), dtype=TensorProto.BOOL, tolerance=EXACT, only="reference")
    sure = np.where(np.eye(3, 4) == 1, 0, -np.inf).astype(np.float32)
    # ONNX Runtime takes logarithms of 0 for numbers; the reference is NumPy's, of probabilities.
    for op in ("IsNaN", "IsInf"):
        case(op, "special", SPECIAL, tolerance=EXACT)
        case(op, "double", f64(np.nan, -np.inf, 1), tolerance=EXACT)
        case(op, "half", f32(np.nan, np.inf, 1).astype(np.float16), tolerance=EXACT)
        case(op, "empty", (0, 2), tolerance=EXACT)
    case("IsInf", "positive", SPECIAL, detect_negative=0, tolerance=EXACT)
    case("IsInf", "negative", SPECIAL, detect_positive=0, tolerance=EXACT)
    case("Multinomial", "certain", np.where(sure == 0, np.float32(50), np.float32(-50)), sample_size=3, tolerance=EXACT,
         only="onnxruntime")  # fmt: skip


def types():
    """Types that ONNX Runtime has no forms for, of operators whose other cases are above."""
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "Pow"):
        for dtype in (np.uint32, np.uint64):
            values = np.array([7, 9, 100, 3], dtype), np.array([3, 9, 7, 1], dtype)
            if op != "Pow":
                case(op, np.dtype(dtype).name, *values, tolerance=EXACT, only="reference")
            else:
                case(op, f"float_to_{np.dtype(dtype).name}", f32(0.5, 2, 1.5, 3), values[1], only="reference")
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        name, a, b = np.dtype(dtype).name, ramp(2, 3, dtype=dtype), ramp(3, 4, dtype=dtype)
        case("MatMul", name, a, b, tolerance=EXACT, only="reference")
        case("MatMul", f"{name}_batches", ramp(2, 1, 2, 3, dtype=dtype), ramp(2, 3, 2, dtype=dtype), tolerance=EXACT,
             only="reference")  # fmt: skip
        case("Gemm", name, a, b, ramp(4, dtype=dtype), tolerance=EXACT, only="reference")
        case("Gemm", f"{name}_transposed", a.T.copy(), b.T.copy(), transA=1, transB=1, tolerance=EXACT, only="reference")
        case("PRelu", name, np.array([3, 0, 9], dtype) - (dtype(4) if name[0] == "i" else dtype(0)), np.array([2], dtype),
             tolerance=EXACT, only="reference")  # fmt: skip
    case("MatMul", "negative", i64(-1, 2, -3, 4).reshape(2, 2), i64(5, -6, 7, 8).reshape(2, 2), tolerance=EXACT)
    case("MatMul", "double", ramp(2, 3, dtype=np.float64) / 7, ramp(3, 2, dtype=np.float64) / 3)
    case("Gemm", "double", ramp(2, 3, dtype=np.float64), ramp(3, 2, dtype=np.float64), f64(0.5, 1), alpha=0.5, beta=2.0)
    case("PRelu", "double", f64(-1, 2, -3), f64(0.25), only="reference")
    case("ReduceMean", "double", ramp(2, 3, dtype=np.float64) / 7, i64(1))
    for dtype in (np.int32, np.int64):
        case("ReduceMean", np.dtype(dtype).name, np.array([[1, 2, 6], [-4, -5, 0]], dtype), i64(1), tolerance=EXACT,
             only="onnxruntime" if dtype == np.int32 else "reference")  # fmt: skip
    wide = np.linspace(-8, 8, 17)
    for op in ("Exp", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "LeakyRelu", "Softsign"):
        case(op, "double", wide, only="reference")

    def half(*shape):
        return (ramp(*shape) % 7 - 3).astype(np.float16) / np.float16(4)

    rough = {"tolerance": 2e-3, "only": "reference"}
    for op in ("Relu", "Sigmoid", "Exp", "Abs", "Neg", "Erf", "Gelu", "Softmax", "ReduceSum", "ReduceMax", "ArgMax"):
        case(op, "half", half(2, 5), **rough)
    for op in ("Add", "Mul", "Max", "Equal", "Pow"):
        case(op, "half", half(2, 5), half(5), **rough)
    case("Where", "half", truths(True, False), half(2, 2), half(2), **rough)
    case("Clip", "half", half(2, 5), scalar(-0.5, np.float16), scalar(0.25, np.float16), **rough)
    case("Conv", "half", half(1, 2, 4, 4), half(3, 2, 3, 3), half(3), **rough)
    case("MatMul", "half", half(2, 3), half(3, 4), **rough)
    case("Gemm", "half", half(2, 3), half(3, 4), half(4), **rough)
    case("LayerNormalization", "half", half(2, 5), half(5), half(5), **rough)
    case("Pad", "half", half(2, 3), i64(0, 1, 1, 0), scalar(0.5, np.float16), **rough)
    case("Transpose", "half", half(2, 3), **rough)


GROUPS = (
    linear_quantization, integer_products, requantized_products, quantized_arithmetic, convolution, transposed_convolution,
    products, normalization, activations, rounding, choosing, powers, arithmetic, pooling, reduction, joining, shaping,
    indexing, casting, resizing, sources, *cases_tensor.groups(case), *cases_nn.groups(case), *cases_rnn.groups(case),
    *cases_sequence.groups(case), *cases_experts.groups(case),
)  # fmt: skip
GROUPS += (
    trigonometry, bits, remainders, variadic, hardmax, norms, cumulative_products, determinants, contractions, best, losses,
    signals, generators, types,
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "ops")
    parser.add_argument("ops", nargs="*", metavar="OP", help="only these operators")
    arguments = parser.parse_args()
    for group in GROUPS:
        group()
    unknown = set(arguments.ops) - set(CASES)
    if unknown:
        parser.error(f"unknown operator {', '.join(sorted(unknown))}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    failures = 0
    for op in arguments.ops or sorted(CASES):
        records = []
        for item in CASES[op]:
            try:
                with np.errstate(all="ignore"):
                    records.append(item.to_json())
            except Exception as error:  # noqa: BLE001 - every disagreement is to be seen, not only the first
                failures += 1
                print(f"{op}/{item.name}: {error}", file=sys.stderr)
        golden_json.write(arguments.out / f"{op}.json", {"op": op, "opset": NEWER.get(op, OPSET), "cases": records})
    print(f"{sum(len(cases) for cases in CASES.values())} cases of {len(CASES)} operators, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
