#!/usr/bin/env python3
"""Makes gradients/<Op>.json: gradients of single operators.

From: central differences of ONNX's reference evaluator in float64, cross-checked with torch.autograd in float64 where
PyTorch has the operator as one function. Where the evaluator is wrong or computes in float32, the differences are those
of PyTorch's function (`only="torch"`) and the reason stands beside it. Inputs are seeded by operator and case name,
rounded to float32, and refused where they are near a kink; what the gradient is on one, PyTorch's autograd decides
(`only="autograd"`).

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_gradients.py [OP ...]
"""

import argparse
import pathlib
import sys
import zlib

import numpy as np
import onnx.reference
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

import golden_json

OPSET = 21
NEWER = {"Attention": 25, "RMSNormalization": 23, "Swish": 24}  # operators that opset 21 does not have
STEP = 1e-5
CASES = {}


def wide(value):
    return value.astype(np.float64) if value.dtype == np.float32 else value


class Case:
    def __init__(self, op, name, inputs, constants, outputs, without, torch_function, only, attrs):
        self.op, self.name, self.inputs, self.attrs = op, name, inputs, attrs
        self.output_count, self.without, self.torch_function, self.only = outputs, without, torch_function, only
        self.wanted = [
            i for i, x in enumerate(inputs) if x is not None and x.dtype == np.float32 and i not in constants
        ]

    def evaluator(self):
        if self.only:
            return lambda values: [
                self.torch_function(*[None if x is None else torch.from_numpy(x) for x in values]).detach().numpy()
            ]
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        outputs = [f"y{i}" for i in range(self.output_count)]
        node = helper.make_node(self.op, names, outputs, **self.attrs)
        graph = helper.make_graph(
            [node],
            "case",
            [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(wide(x).dtype), x.shape)
                for n, x in zip(names, self.inputs)
                if x is not None
            ],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWER.get(self.op, OPSET))])
        evaluator = onnx.reference.ReferenceEvaluator(model)
        return lambda values: evaluator.run(None, {n: x for n, x in zip(names, values) if x is not None})

    def differences(self, run, slopes):
        """The gradient of sum(slopes * outputs), one element of one input at a time."""
        values = [None if x is None else wide(x) for x in self.inputs]

        def total():
            return sum(float((dy * y).sum()) for dy, y in zip(slopes, run(values)) if dy is not None)

        gradients = {}
        middle = total()
        for i in self.wanted:
            gradient = np.zeros_like(values[i])
            for at in np.ndindex(values[i].shape):
                value = values[i][at]
                values[i][at] = value + STEP
                above = total()
                values[i][at] = value - STEP
                below = total()
                values[i][at] = value
                gradient[at] = (above - below) / (2 * STEP)
                if abs(above + below - 2 * middle) / STEP > 1e-2 * (1 + abs(gradient[at])):
                    raise ValueError(f"a kink at input {i}, {list(at)}: {value}")
            gradients[i] = gradient
        return gradients

    def autograd(self, slopes):
        values = [None if x is None else torch.from_numpy(wide(x)) for x in self.inputs]
        for i in self.wanted:
            values[i].requires_grad_()
        y = self.torch_function(*values)
        y.backward(torch.from_numpy(slopes[0]).reshape(y.shape))
        return {i: values[i].grad.numpy() for i in self.wanted}

    def check(self, differences, others):
        for i in self.wanted:
            mine, other = differences[i], others[i]
            if not np.allclose(mine, other, rtol=1e-6, atol=1e-7):
                raise ValueError(f"input {i}: differences {mine.ravel()[:12]}\ntorch {other.ravel()[:12]}")

    def to_json(self):
        run = self.evaluator()
        outputs = run([None if x is None else wide(x) for x in self.inputs])
        rng = np.random.default_rng(zlib.crc32(f"{self.op}/{self.name}/dy".encode()))
        given = [
            None if i in self.without or np.asarray(y).dtype.kind != "f" else numbers(rng, np.shape(y))
            for i, y in enumerate(outputs)
        ]
        slopes = [None if dy is None else wide(dy) for dy in given]
        if self.only == "autograd":
            gradients = self.autograd(slopes)
        else:
            gradients = self.differences(run, slopes)
            if self.torch_function:
                self.check(gradients, self.autograd(slopes))
        return {
            "name": self.name,
            "attrs": self.attrs,
            "inputs": [None if x is None else golden_json.Tensor(x) for x in self.inputs],
            "dy": [None if dy is None else golden_json.Tensor(dy) for dy in given],
            "dx": [
                golden_json.Tensor(gradients[i].astype(np.float32)) if i in gradients else None
                for i in range(len(self.inputs))
            ],
        }


def numbers(rng, shape):
    """Three decimals keep the files small."""
    return np.asarray(rng.normal(size=shape).round(3), dtype=np.float32)


def case(op, name, *inputs, constants=(), outputs=1, without=(), torch=None, only=None, **attrs):
    """Adds a case. Inputs are arrays, None for an absent one, or a tuple: the shape of seeded random float32. All that
    are float32 and not among `constants` have a gradient; outputs `without` have none."""
    rng = np.random.default_rng(zlib.crc32(f"{op}/{name}".encode()))
    arrays = [numbers(rng, x) if isinstance(x, tuple) else x for x in inputs]
    cases = CASES.setdefault(op, [])
    assert name not in {other.name for other in cases}, f"{op}/{name} twice"
    cases.append(Case(op, name, arrays, constants, outputs, without, torch, only, attrs))


def f32(*values):
    return np.array(values, np.float32)


def i64(*values):
    return np.array(values, np.int64)


def bools(*shape):
    return np.random.default_rng(int(np.prod(shape))).integers(0, 2, shape).astype(bool)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def ramp(low, high, *shape):
    """Evenly spread in no order, so that no two are near each other or near a round number."""
    count = int(np.prod(shape))
    values = np.random.default_rng(count).permutation(np.linspace(low, high, count) + 0.0113)
    return values.round(4).astype(np.float32).reshape(shape)


def convolutions():
    case("Conv", "plain", (2, 3, 5, 6), (4, 3, 3, 3), (4,), torch=F.conv2d)
    case("Conv", "pointwise", (2, 5, 3, 4), (3, 5, 1, 1), (3,), torch=F.conv2d)
    case("Conv", "pointwise_groups", (2, 4, 3, 3), (6, 2, 1, 1), group=2,
         torch=lambda x, w: F.conv2d(x, w, groups=2))  # fmt: skip
    case("Conv", "strides_pads", (1, 2, 6, 7), (3, 2, 3, 2), (3,), strides=[2, 3], pads=[1, 1, 1, 1],
         torch=lambda x, w, b: F.conv2d(x, w, b, stride=(2, 3), padding=1))  # fmt: skip
    case("Conv", "uneven_pads", (1, 2, 4, 5), (2, 2, 3, 3), pads=[2, 0, 1, 3])
    case("Conv", "dilations_groups", (2, 4, 7, 6), (2, 2, 3, 2), group=2, dilations=[2, 3], pads=[1, 2, 1, 2],
         torch=lambda x, w: F.conv2d(x, w, groups=2, dilation=(2, 3), padding=(1, 2)))  # fmt: skip
    case("Conv", "same_upper", (1, 2, 5, 6), (2, 2, 2, 4), auto_pad="SAME_UPPER", strides=[2, 2])
    case("Conv", "same_lower", (1, 2, 5, 6), (2, 2, 2, 4), auto_pad="SAME_LOWER")
    case("Conv", "line", (2, 3, 9), (4, 3, 4), (4,), strides=[2], pads=[2, 1])
    case("Conv", "volume", (1, 2, 3, 4, 3), (2, 2, 2, 3, 2), (2,), pads=[1, 1, 0, 0, 1, 1], strides=[1, 2, 1])
    case("Conv", "depthwise", (2, 3, 6, 7), (3, 1, 3, 3), (3,), group=3, pads=[1, 1, 1, 1],
         torch=lambda x, w, b: F.conv2d(x, w, b, groups=3, padding=1))  # fmt: skip
    case("Conv", "depthwise_stride", (2, 3, 7, 6), (3, 1, 3, 3), group=3, pads=[1, 1, 1, 1], strides=[2, 2],
         torch=lambda x, w: F.conv2d(x, w, groups=3, padding=1, stride=2))  # fmt: skip
    case("Conv", "depthwise_multiplier", (1, 2, 6, 5), (4, 1, 5, 3), group=2, pads=[2, 0, 2, 1], strides=[1, 2])
    case("Conv", "depthwise_dilated", (1, 2, 8, 7), (2, 1, 3, 2), group=2, pads=[2, 3, 0, 1], dilations=[2, 3],
         strides=[3, 2])  # fmt: skip
    case("ConvTranspose", "plain", (2, 3, 4, 3), (3, 2, 3, 3), (2,), torch=F.conv_transpose2d)
    case("ConvTranspose", "pointwise", (2, 3, 4, 3), (3, 2, 1, 1), torch=F.conv_transpose2d)
    # The evaluator adds a group's result to an array of another shape.
    case("ConvTranspose", "strides_groups", (1, 4, 3, 4), (4, 2, 3, 2), (4,), strides=[2, 3], pads=[1, 0, 1, 0],
         output_padding=[1, 2], group=2,
         torch=lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 3), (1, 0), (1, 2), 2), only="torch")  # fmt: skip
    case("ConvTranspose", "dilations", (1, 2, 3, 3), (2, 1, 2, 3), dilations=[3, 2], pads=[0, 1, 1, 0])
    case("ConvTranspose", "line", (2, 2, 5), (2, 3, 4), (3,), strides=[3])
    case("ConvTranspose", "pointwise_shifted", (2, 2, 5), (2, 3, 1), (3,), dilations=[3], pads=[1, 1],
         output_padding=[2],
         torch=lambda x, w, b: F.conv_transpose1d(x, w, b, 1, 1, 2, dilation=3), only="torch")  # fmt: skip


def products():
    case("Gemm", "plain", (3, 4), (4, 5), torch=torch.matmul)
    case("Gemm", "all", (4, 3), (5, 4), (5,), transA=1, transB=1, alpha=0.5, beta=1.5,
         torch=lambda a, b, c: 0.5 * a.T @ b.T + 1.5 * c)  # fmt: skip
    case("Gemm", "trans_a", (4, 3), (4, 5), (3, 1), transA=1, torch=lambda a, b, c: a.T @ b + c)
    case("Gemm", "trans_b", (3, 4), (5, 4), scalar(0.5), transB=1, torch=lambda a, b, c: a @ b.T + c)
    case("MatMul", "matrices", (3, 4), (4, 5), torch=torch.matmul)
    case("MatMul", "batch", (2, 3, 3, 4), (2, 3, 4, 2), torch=torch.matmul)
    case("MatMul", "batch_by_matrix", (2, 3, 4), (4, 2), torch=torch.matmul)
    case("MatMul", "matrix_by_batch", (3, 4), (2, 4, 2), torch=torch.matmul)
    case("MatMul", "broadcast", (2, 1, 3, 4), (3, 4, 2), torch=torch.matmul)
    case("MatMul", "vectors", (4,), (4,), torch=torch.matmul)
    case("MatMul", "row", (4,), (2, 4, 3), torch=torch.matmul)
    case("MatMul", "column", (2, 3, 4), (4,), torch=torch.matmul)


def pools():
    planes = ramp(-2, 2, 2, 3, 5, 6)
    case("MaxPool", "plain", planes, kernel_shape=[2, 3], torch=lambda x: F.max_pool2d(x, (2, 3), 1))
    case("MaxPool", "strides_pads", planes, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
         torch=lambda x: F.max_pool2d(x, 3, 2, 1))  # fmt: skip
    case("MaxPool", "dilations_ceil", planes, kernel_shape=[2, 2], strides=[2, 2], dilations=[2, 1], ceil_mode=1,
         torch=lambda x: F.max_pool2d(x, 2, 2, 0, (2, 1), ceil_mode=True))  # fmt: skip
    case("MaxPool", "same", planes, kernel_shape=[2, 2], auto_pad="SAME_UPPER")
    case("MaxPool", "line", ramp(-1, 1, 1, 2, 9), kernel_shape=[3], strides=[2], torch=lambda x: F.max_pool1d(x, 3, 2))
    # The evaluator fails where a window reaches so far into the padding.
    case("MaxPool", "wide", ramp(-1, 1, 1, 1, 2, 40), kernel_shape=[2, 33], pads=[0, 16, 0, 16],
         torch=lambda x: F.max_pool2d(x, (2, 33), 1, (0, 16)), only="torch")  # fmt: skip
    case("MaxPool", "row_of_two", ramp(-1, 1, 1, 2, 2, 75), kernel_shape=[2, 3], strides=[1, 2],
         torch=lambda x: F.max_pool2d(x, (2, 3), (1, 2)))  # fmt: skip
    case("MaxPool", "volume", ramp(-1, 1, 1, 1, 3, 4, 3), kernel_shape=[2, 2, 2],
         torch=lambda x: F.max_pool3d(x, 2, 1))  # fmt: skip
    case("AveragePool", "plain", (2, 3, 5, 6), kernel_shape=[2, 3], torch=lambda x: F.avg_pool2d(x, (2, 3), 1))
    case("AveragePool", "strides_pads", (1, 2, 5, 6), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
         torch=lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False))  # fmt: skip
    case("AveragePool", "include_pad", (1, 2, 5, 6), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
         count_include_pad=1, torch=lambda x: F.avg_pool2d(x, 3, 2, 1))  # fmt: skip
    case("AveragePool", "dilations", (1, 1, 6, 7), kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 0, 0, 1])
    case("AveragePool", "line", (1, 2, 8), kernel_shape=[3], strides=[2], torch=lambda x: F.avg_pool1d(x, 3, 2))
    case("GlobalAveragePool", "plane", (2, 3, 4, 5), torch=lambda x: x.mean((2, 3)))
    case("GlobalAveragePool", "line", (2, 3, 7), torch=lambda x: x.mean(2))


def unary():
    spread = ramp(-4, 4, 3, 5)
    positive = ramp(0.2, 4, 3, 5)
    functions = {
        "Relu": (spread, torch.relu), "Abs": (spread, torch.abs), "Neg": (spread, torch.neg),
        "Exp": (spread, torch.exp), "Log": (positive, torch.log), "Sqrt": (positive, torch.sqrt),
        "Reciprocal": (positive, torch.reciprocal), "Sigmoid": (spread, torch.sigmoid),
        "Tanh": (spread, torch.tanh), "Softplus": (spread, F.softplus), "Mish": (spread, F.mish),
        "HardSwish": (spread, F.hardswish),
    }  # fmt: skip
    for op, (x, function) in functions.items():
        case(op, "spread", x, torch=function)
        case(op, "large", x * np.float32(1.7 if op == "Exp" else 3), torch=function)
    # The evaluator's erf is one of float32, that of its Gelu too.
    case("Erf", "spread", spread, torch=torch.erf, only="torch")
    case("Erf", "large", spread * np.float32(3), torch=torch.erf, only="torch")
    case("Gelu", "exact", spread, torch=F.gelu, only="torch")
    case("LeakyRelu", "default", spread, torch=F.leaky_relu)
    case("LeakyRelu", "alpha", spread, alpha=-0.5, torch=lambda x: F.leaky_relu(x, -0.5))
    case("Elu", "default", spread, torch=F.elu)
    case("Elu", "alpha", spread, alpha=1.5, torch=lambda x: F.elu(x, 1.5))
    case("Selu", "default", spread, torch=F.selu)
    case("Selu", "alpha_gamma", spread, alpha=0.5, gamma=2.0)
    case("Softsign", "spread", spread, torch=F.softsign)
    case("Softsign", "large", spread * np.float32(3), torch=F.softsign)
    case("HardSigmoid", "default", spread)
    case("HardSigmoid", "alpha_beta", spread, alpha=0.3, beta=0.4)
    case("Gelu", "tanh", spread, approximate="tanh", torch=lambda x: F.gelu(x, approximate="tanh"))
    both = scalar(-1), scalar(2)
    case("Clip", "both", spread, *both, constants=(1, 2), torch=lambda x, lo, hi: x.clamp(lo, hi))
    case("Clip", "below", spread, scalar(0.5), constants=(1,), torch=lambda x, lo: x.clamp(lo))
    case("Clip", "above", spread, None, scalar(1), constants=(2,), torch=lambda x, _, hi: x.clamp(max=hi))
    case("Clip", "open", spread)


def trigonometry():
    spread, inside = ramp(-4, 4, 3, 5), ramp(-0.9, 0.9, 3, 5)
    functions = {
        "Sin": (spread, torch.sin), "Cos": (spread, torch.cos), "Tan": (inside, torch.tan), "Asin": (inside, torch.asin),
        "Acos": (inside, torch.acos), "Atan": (spread, torch.atan), "Sinh": (spread, torch.sinh),
        "Cosh": (spread, torch.cosh), "Asinh": (spread, torch.asinh), "Acosh": (ramp(1.1, 5, 3, 5), torch.acosh),
        "Atanh": (inside, torch.atanh), "Swish": (spread, F.silu),
    }  # fmt: skip
    for op, (x, function) in functions.items():
        case(op, "spread", x, torch=function)
        case(op, "shifted", x * np.float32(0.7) + np.float32(0.33), torch=function)
    case("Swish", "alpha", spread, alpha=-1.5, torch=lambda x: x * torch.sigmoid(-1.5 * x))
    case("Celu", "default", spread, torch=F.celu, only="torch")  # the evaluator computes in float32
    case("Celu", "alpha", spread, alpha=2.5, torch=lambda x: F.celu(x, 2.5), only="torch")
    case("ThresholdedRelu", "default", spread, torch=lambda x: F.threshold(x, 1, 0))
    case("ThresholdedRelu", "alpha", spread, alpha=-0.5, torch=lambda x: F.threshold(x, -0.5, 0))
    for op in ("Sum", "Mean"):
        case(op, "one", (2, 3))
        case(op, "two", (2, 3), (3,))
        case(op, "three", (2, 1, 4), (3, 1), scalar(0.3), only="torch",
             torch=lambda a, b, c, op=op: (a + b + c) / (3 if op == "Mean" else 1))  # fmt: skip


def binary():
    functions = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div}
    for op, function in functions.items():
        case(op, "same", (2, 3, 4), ramp(0.5, 2, 2, 3, 4), torch=function)
        case(op, "channel", (2, 3, 4, 5), ramp(0.5, 2, 3, 1, 1), torch=function)
        case(op, "row", (2, 3, 4), ramp(0.5, 2, 4), torch=function)
        case(op, "scalar", (2, 3), scalar(0.7), torch=function)
        case(op, "both", (2, 1, 4, 1), ramp(0.5, 2, 3, 1, 5), torch=function)
        case(op, "wide", (2, 70), ramp(0.5, 2, 70), torch=function)
    case("PRelu", "scalar", ramp(-2, 2, 2, 3, 4), scalar(0.3))
    case("PRelu", "channel", ramp(-2, 2, 2, 3, 4), (3, 1), torch=lambda x, w: F.prelu(x, w.reshape(3)))
    base = ramp(0.5, 3, 2, 3, 4)
    case("Pow", "square", (2, 3), scalar(2), constants=(1,), torch=torch.pow)
    case("Pow", "half", base, scalar(0.5), constants=(1,), torch=torch.pow)
    case("Pow", "broadcast", ramp(0.5, 3, 3, 1), f32(2, -1, 0, 1.5), constants=(1,), torch=torch.pow)
    case("Pow", "integer", (2, 3), i64(3), torch=torch.pow)
    case("Max", "two", ramp(-1, 1, 2, 3), ramp(-1.03, 0.9, 3), torch=torch.maximum)
    case("Max", "three", ramp(-1, 1, 2, 3), ramp(-1.03, 0.9, 3), scalar(0.3))
    case("Min", "two", ramp(-1, 1, 2, 3), ramp(-1.03, 0.9, 3), torch=torch.minimum)
    case("Min", "three", ramp(-1, 1, 2, 3), ramp(-1.03, 0.9, 2, 1), scalar(0.3))


def kinks():
    kink = {"only": "autograd"}
    zeros = f32(-1, 0, 1)
    case("Relu", "at_zero", zeros, torch=torch.relu, **kink)
    case("Abs", "at_zero", zeros, torch=torch.abs, **kink)
    case("LeakyRelu", "at_zero", zeros, torch=F.leaky_relu, **kink)
    case("PRelu", "at_zero", zeros, f32(0.3), torch=F.prelu, **kink)
    case("Elu", "at_zero", zeros, torch=F.elu, **kink)
    case("Selu", "at_zero", zeros, torch=F.selu, **kink)
    case("Softsign", "at_zero", zeros, torch=F.softsign, **kink)
    for op, function in (("ReduceMax", torch.amax), ("ReduceMin", torch.amin)):
        case(op, "equal", f32(1, 2, 2, 1, 1, 0).reshape(2, 3), i64(1), torch=lambda x, _, f=function: f(x, 1, True), **kink)
    case("HardSwish", "at_bounds", f32(-3, 0, 3), torch=F.hardswish, **kink)
    case("Clip", "at_bounds", f32(-1, 0, 3, 6, 7), scalar(0), scalar(6), constants=(1, 2),
         torch=lambda x, *_: F.relu6(x), **kink)  # fmt: skip
    for op, function in (("Max", torch.maximum), ("Min", torch.minimum)):
        case(op, "equal", f32(1, 2, 3), f32(1, 4, 2), torch=function, **kink)
    case("MaxPool", "equal", f32(2, 2, 1, 3, 3, 3).reshape(1, 1, 6), kernel_shape=[2],
         torch=lambda x: F.max_pool1d(x, 2, 1), **kink)  # fmt: skip


def attention():
    op, attend = "Attention", F.scaled_dot_product_attention
    heads = ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3))
    flat = ((2, 3, 8), (2, 4, 4), (2, 4, 6))

    def masked(q, k, v, mask):
        return attend(q, k, v, attn_mask=mask)

    def attend_flat(q, k, v, mask=None, is_causal=False):
        def split(x, heads):
            return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)

        y = attend(split(q, 4), split(k, 2), split(v, 2), attn_mask=mask, is_causal=is_causal, enable_gqa=True)
        return y.transpose(1, 2).reshape(*q.shape[:2], -1)

    case(op, "heads", *heads, torch=attend)
    case(op, "scale", *heads, torch=lambda q, k, v: attend(q, k, v, scale=0.3), scale=0.3)
    case(op, "causal", *heads, torch=lambda q, k, v: attend(q, k, v, is_causal=True), is_causal=1)
    case(op, "mask", *heads, (3, 5), torch=masked)
    case(op, "mask_of_heads", *heads, (2, 1, 5), torch=masked)
    case(op, "mask_of_batches", *((2, *h[1:]) for h in heads), (2, 1, 3, 5), torch=masked)
    seen = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    case(op, "truths", *heads, seen, torch=masked)
    nothing = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    case(op, "a_query_without_keys", *heads, nothing)
    case(op, "flat", *flat, torch=attend_flat, q_num_heads=4, kv_num_heads=2)
    case(op, "flat_causal", *flat, torch=lambda *x: attend_flat(*x, is_causal=True), q_num_heads=4, kv_num_heads=2, is_causal=1)
    case(op, "flat_mask", *flat, (2, 1, 1, 4), torch=attend_flat, q_num_heads=4, kv_num_heads=2)
    case(op, "shared_heads", (1, 4, 2, 4), (1, 2, 3, 4), (1, 2, 3, 4), torch=lambda q, k, v: attend(q, k, v, enable_gqa=True))
    past = ((1, 2, 2, 4), (1, 2, 2, 3))
    case(op, "past", *heads, None, *past, outputs=3, without=(1, 2),
         torch=lambda q, k, v, _, pk, pv: attend(q, torch.cat((pk, k), 2), torch.cat((pv, v), 2)))  # fmt: skip
    case(op, "past_shown", *heads, None, *past, outputs=3, is_causal=1)
    case(op, "softcap", *heads, (3, 5), softcap=0.5)
    case(op, "lengths", *((2, *h[1:]) for h in heads), None, None, None, np.array([2, 5]), is_causal=1)
    case(op, "windows", *heads, left_window_size=1, right_window_size=1)


def softmax():
    for op, function in (("Softmax", torch.softmax), ("LogSoftmax", torch.log_softmax)):
        case(op, "last", (3, 5), torch=lambda x, f=function: f(x, -1))
        case(op, "middle", (2, 4, 3), axis=1, torch=lambda x, f=function: f(x, 1))


def reshaping():
    case("Reshape", "plain", (2, 6), i64(3, -1))
    case("Reshape", "copied", (2, 3, 2), i64(0, 6))
    case("Flatten", "default", (2, 3, 2))
    case("Flatten", "axis", (2, 3, 2), axis=2)
    case("Squeeze", "axes", (2, 1, 3, 1), i64(1))
    case("Squeeze", "all", (2, 1, 3, 1))
    case("Unsqueeze", "axes", (2, 3), i64(0, 3))
    case("Unsqueeze", "last", (2, 3), i64(-1))
    case("Identity", "plain", (2, 3))
    case("Identity", "scalar", scalar(0.5))
    case("Dropout", "inference", (2, 3))
    case("Dropout", "mask", (2, 3), scalar(0.3), constants=(1,), outputs=2)


def moving():
    case("Transpose", "default", (2, 3, 4))
    case("Transpose", "perm", (2, 3, 4, 2), perm=[0, 2, 3, 1])
    case("Concat", "first", (2, 3), (1, 3), axis=0)
    case("Concat", "middle", (2, 1, 2), (2, 3, 2), (2, 2, 2), axis=1)
    case("Split", "halves", (2, 4, 3), outputs=2, num_outputs=2, axis=1)
    case("Split", "lengths", (2, 6), i64(1, 3, 2), outputs=3, without=(1,), axis=-1)
    case("Slice", "range", (4, 5), i64(1, 0), i64(3, 4))
    case("Slice", "steps", (4, 5, 2), i64(3, 4), i64(-9, 0), i64(0, 1), i64(-2, -1))
    case("DepthToSpace", "dcr", (1, 8, 2, 3), blocksize=2)
    case("DepthToSpace", "crd", (2, 4, 2, 2), blocksize=2, mode="CRD", torch=lambda x: F.pixel_shuffle(x, 2))
    case("SpaceToDepth", "two", (2, 2, 4, 2), blocksize=2)
    case("SpaceToDepth", "three", (1, 1, 3, 6), blocksize=3)
    case("Tile", "rows", (2, 3), i64(2, 1))
    case("Tile", "both", (1, 2, 3), i64(2, 3, 2), torch=lambda x, _: x.repeat(2, 3, 2))
    case("Where", "same", bools(2, 3, 4), (2, 3, 4), (2, 3, 4), torch=torch.where)
    case("Where", "broadcast", bools(3, 1), (2, 3, 4), (4,), torch=torch.where)
    case("Where", "scalar", bools(2, 5), (2, 5), scalar(0.3), torch=torch.where)
    case("CumSum", "plain", (2, 3, 4), scalar(1, np.int64), torch=lambda x, _: x.cumsum(1))
    case("CumSum", "exclusive", (2, 5), scalar(-1, np.int64), exclusive=1)
    case("CumSum", "reverse", (4, 3), scalar(0, np.int64), reverse=1)
    case("CumSum", "both", (4, 3), scalar(0, np.int64), exclusive=1, reverse=1)
    case("Expand", "rank", (3, 1), i64(2, 3, 4))
    case("Expand", "nothing", (2, 3), i64(1, 1))
    case("Gather", "rows", (4, 3), i64(2, 0, 2, -1))
    case("Gather", "table", (5, 2), i64(1, 4, 4, 0, 1, 1).reshape(2, 3))
    case("Gather", "axis", (2, 4, 3), i64(3, 1, 1), axis=1)
    case("Gather", "scalar", (2, 3, 2), scalar(1, np.int64), axis=2)
    case("Pad", "constant", (2, 3), i64(1, 2, 0, 1), scalar(9.5), constants=(2,))
    case("Pad", "axes", (2, 2, 3), i64(1, 0, 2, 1), None, i64(2, 0))
    case("Pad", "reflect", (3, 4), i64(2, 1, 1, 3), mode="reflect")
    case("Pad", "edge", (1, 2, 3, 4), i64(0, 0, 2, 1, 0, 0, 0, 3), mode="edge")


def reductions():
    for op in ("ReduceSum", "ReduceMean"):
        case(op, "all", (2, 3, 4))
        case(op, "axes", (2, 3, 4), i64(0, 2))
        case(op, "dropped", (2, 3, 4), i64(-2), keepdims=0)
        case(op, "none", (2, 3), noop_with_empty_axes=1)
    spread = ramp(-2, 2, 2, 3, 4)
    for op, function in (("ReduceMax", torch.amax), ("ReduceMin", torch.amin)):
        case(op, "all", spread, torch=function)
        case(op, "axes", spread, i64(0, 2), torch=lambda x, _, f=function: f(x, (0, 2), True))
        case(op, "dropped", spread, i64(-2), keepdims=0, torch=lambda x, _, f=function: f(x, 1))
    apart = ramp(-2, 2.1, 2, 3, 4)
    norms = {
        "ReduceL1": lambda x, *axes, **keep: x.abs().sum(*axes, **keep),
        "ReduceL2": lambda x, *axes, **keep: x.square().sum(*axes, **keep).sqrt(),
        "ReduceSumSquare": lambda x, *axes, **keep: x.square().sum(*axes, **keep),
        "ReduceLogSum": lambda x, *axes, **keep: x.sum(*axes, **keep).log(),
        "ReduceLogSumExp": lambda x, *axes, **keep: x.exp().sum(*axes, **keep).log(),
    }
    for op, function in norms.items():
        x = np.abs(apart) + np.float32(0.1) if op == "ReduceLogSum" else apart
        case(op, "axes", x, i64(0, 2), torch=lambda x, _, f=function: f(x, (0, 2), keepdim=True))
        case(op, "dropped", x, i64(-2), keepdims=0, torch=lambda x, _, f=function: f(x, 1))
    case("ReduceProd", "all", ramp(-2, 2, 2, 3), torch=torch.prod)
    case("ReduceProd", "axes", spread, i64(0, 2))
    case("ReduceProd", "dropped", spread, i64(-1), keepdims=0, torch=lambda x, _: x.prod(2))
    case("ReduceProd", "zeros", f32(1, 0, 2, 0, 3, 0, 2, 3, 4).reshape(3, 3), i64(1), torch=lambda x, _: x.prod(1, True))


def resizing():
    x = (1, 2, 3, 4)
    scales = f32(1, 1, 2, 2)
    given = {"constants": (2,)}
    case("Resize", "nearest", x, None, scales, mode="nearest", coordinate_transformation_mode="asymmetric",
         nearest_mode="floor", torch=lambda x, *_: F.interpolate(x, scale_factor=2), **given)  # fmt: skip
    case("Resize", "nearest_down", x, None, None, i64(1, 2, 2, 3), mode="nearest")
    case("Resize", "linear", x, None, scales, mode="linear",
         torch=lambda x, *_: F.interpolate(x, scale_factor=2, mode="bilinear"), **given)  # fmt: skip
    case("Resize", "linear_corners", x, None, None, i64(1, 2, 5, 7), mode="linear",
         coordinate_transformation_mode="align_corners",
         torch=lambda x, *_: F.interpolate(x, (5, 7), mode="bilinear", align_corners=True))  # fmt: skip
    case("Resize", "linear_down", x, None, None, i64(1, 2, 2, 3), mode="linear")
    case("Resize", "linear_one_axis", x, None, f32(1, 1, 1, 1.5), mode="linear", **given)
    case("Resize", "linear_three_axes", (1, 2, 3, 2), None, f32(1, 2, 0.7, 1.5), mode="linear", **given)
    case("Resize", "linear_identity", x, None, f32(1, 1, 1, 1), mode="linear", **given)


def normalizations():
    def batch(x, scale, shift, mean, variance):
        return F.batch_norm(x, mean, variance, scale, shift, eps=1e-3)

    rest = (3,), (3,), (3,), ramp(0.3, 2, 3)
    case("BatchNormalization", "planes", (2, 3, 4, 3), *rest, constants=(3, 4), epsilon=1e-3, torch=batch)
    case("BatchNormalization", "rows", (5, 3), *rest, constants=(3, 4), epsilon=1e-3, torch=batch)
    def instance(x, scale, shift):
        return F.instance_norm(x, weight=scale, bias=shift)

    case("InstanceNormalization", "planes", (2, 3, 4, 3), (3,), (3,), torch=instance)
    case("InstanceNormalization", "lines", (3, 2, 7), (2,), (2,), epsilon=0.01)
    case("LayerNormalization", "last", (2, 3, 5), (5,), (5,),
         torch=lambda x, s, b: F.layer_norm(x, (5,), s, b))  # fmt: skip
    case("LayerNormalization", "axis", (2, 3, 4), (3, 4), axis=1, epsilon=0.01,
         torch=lambda x, s: F.layer_norm(x, (3, 4), s, eps=0.01))  # fmt: skip
    case("LayerNormalization", "scale_of_rows", (4, 5), (4, 1), (1,))
    case("RMSNormalization", "last", (2, 3, 5), (5,), torch=lambda x, s: F.rms_norm(x, (5,), s, eps=1e-5))
    case("RMSNormalization", "axis", (2, 3, 4), (3, 4), axis=1, epsilon=0.01,
         torch=lambda x, s: F.rms_norm(x, (3, 4), s, eps=0.01))  # fmt: skip
    case("RMSNormalization", "scale_of_rows", (4, 5), (4, 1))


TORCH_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}  # the places of PyTorch's gates among ONNX's


def torch_recurrent(op, lengths):
    """Both directions of PyTorch's module, for sequences of these lengths; ONNX's evaluator has neither."""
    def run(x, w, r, b, _):
        hidden = r.shape[2]
        module = getattr(torch.nn, op)(x.shape[2], hidden, bidirectional=True, dtype=torch.float64)

        def reordered(matrix):
            return torch.cat([matrix[gate * hidden : (gate + 1) * hidden] for gate in TORCH_GATES[op]])

        weights = {}
        for direction, suffix in enumerate(("_l0", "_l0_reverse")):
            of_x, of_state = b[direction].chunk(2)
            weights |= {f"weight_ih{suffix}": reordered(w[direction]), f"weight_hh{suffix}": reordered(r[direction])}
            weights |= {f"bias_ih{suffix}": reordered(of_x), f"bias_hh{suffix}": reordered(of_state)}
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
        made, _ = torch.func.functional_call(module, weights, (packed,))
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(made, total_length=x.shape[0])
        return y.unflatten(2, (2, hidden)).transpose(1, 2)  # [steps, directions, batch, hidden]

    return run


def recurrent():
    sizes = {"LSTM": 4, "GRU": 3, "RNN": 1}
    rows, features, hidden = 3, 2, 3
    for op, gates in sizes.items():
        def operands(directions=1, steps=4, state=(), lengths=None, bias=True):
            width = gates * hidden
            x = (steps, rows, features), (directions, width, features), (directions, width, hidden)
            states = ((directions, rows, hidden),) * ((2 if op == "LSTM" else 1) if state else 0)
            return (*x, (directions, 2 * width) if bias else None, lengths, *states)[: None if bias or state else 3]

        outputs = 3 if op == "LSTM" else 2
        case(op, "last_state", *operands(), outputs=outputs, without=(0,), hidden_size=hidden)
        case(op, "all_states", *operands(), hidden_size=hidden)
        case(op, "from_states", *operands(state=True), outputs=outputs, hidden_size=hidden)
        case(op, "no_bias", *operands(bias=False), hidden_size=hidden)
        case(op, "one_step", *operands(steps=1, state=True), outputs=outputs, hidden_size=hidden)
        lengths = np.array([4, 2, 3], np.int32)
        attrs = {"linear_before_reset": 1} if op == "GRU" else {}
        case(op, "both_directions", *operands(2, lengths=lengths), hidden_size=hidden, direction="bidirectional",
             torch=torch_recurrent(op, lengths), only="torch", **attrs)  # fmt: skip
    gru = (4, 3, 2), (1, 9, 2), (1, 9, 3), (1, 18), None, (1, 3, 3)
    case("GRU", "linear_before_reset", *gru, outputs=2, hidden_size=3, linear_before_reset=1)


GROUPS = [attention, convolutions, products, pools, unary, trigonometry, binary, kinks, softmax, reshaping, moving, reductions, resizing,
          normalizations, recurrent]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "gradients")
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
                records.append(item.to_json())
            except Exception as error:  # noqa: BLE001 - every disagreement is to be seen, not only the first
                failures += 1
                print(f"{op}/{item.name}: {error}", file=sys.stderr)
        golden_json.write(arguments.out / f"{op}.json", {"op": op, "opset": OPSET, "cases": records})
    print(f"{sum(len(cases) for cases in CASES.values())} cases of {len(CASES)} operators, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
