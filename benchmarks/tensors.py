#!/usr/bin/env python3
"""Operations on single tensors compared with PyTorch's and ONNX Runtime's, in one process.

Quantize and dequantize (per tensor, per channel along the outer and the inner axis, int4 in blocks), requantize, dynamic linear, and
what a call costs. The engines take turns over many rounds; a figure is the median over the rounds of each round's
median, a ratio the median of the rounds' ratios: above 1, qtensor is the faster one. Every engine is called through its
Python binding (ours by ctypes) and makes a new result at each call, except ONNX Runtime, which writes into a bound one.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/tensors.py --csv tensors.csv [--only linear]
"""

import argparse
import csv
import ctypes
import os
import pathlib
import statistics
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper

import peer_lib
import record
from library import CODES, PER_BLOCK, PER_CHANNEL, PER_TENSOR, Library

warnings.simplefilter("ignore")

class OrtNode:
    """One node (or a chain) with bound inputs and output; without an array for it the output is made anew each time."""

    def __init__(self, nodes, inputs, constants, output=None, opset=21):
        def typed(name, array):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        name = nodes[-1].output[0]
        constants = [onnx.numpy_helper.from_array(v, k) for k, v in constants.items()]
        sources = [typed(k, v) for k, v in inputs.items()]
        target = helper.make_empty_tensor_value_info(name) if output is None else typed(name, output)
        graph = helper.make_graph(nodes, "g", sources, [target], constants)
        domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=domains, ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # As it stands: else a chain of constants, or DequantizeLinear before QuantizeLinear, might be folded away.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        model = onnx.shape_inference.infer_shapes(model).SerializeToString()
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        bound = list(inputs.values()) + ([] if output is None else [output])
        self.values = [onnxruntime.OrtValue.ortvalue_from_numpy(v) for v in bound]
        self.binding = self.session.io_binding()
        for key, value in zip(inputs, self.values):
            self.binding.bind_ortvalue_input(key, value)
        if output is None:
            self.binding.bind_output(name, "cpu")
        else:
            self.binding.bind_ortvalue_output(name, self.values[-1])

    def __call__(self):
        self.session.run_with_iobinding(self.binding)


def node(op, inputs, output, domain="", **attributes):
    return helper.make_node(op, inputs, [output], domain=domain, **attributes)


def quantize_cases(library, shape):
    """name, {engine: call}: both directions for each type and granularity."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, shape).astype(np.float32)
    rows, columns = shape
    for dtype in ("int8", "uint8"):
        for kind, axis, count in (("tensor", None, 1), ("outer", 0, rows), ("inner", 1, columns)):
            scale = rng.uniform(0.01, 0.03, count).astype(np.float32)
            zero = rng.integers(-20, 20, count) + (128 if dtype == "uint8" else 0)
            tensor, scales, zeros = torch.from_numpy(x), torch.from_numpy(scale), torch.from_numpy(zero)
            qtype = torch.qint8 if dtype == "int8" else torch.quint8
            if axis is None:
                by_torch = lambda: torch.quantize_per_tensor(tensor, float(scale[0]), int(zero[0]), qtype)
            else:
                by_torch = lambda: torch.quantize_per_channel(tensor, scales, zeros, axis, qtype)
            tq = by_torch()
            quantizer = library.quantizer(dtype, scale, zero, axis)
            ours = library.tensor(x)
            q = np.zeros(shape, dtype)
            shaped = (lambda v: v.reshape(())) if axis is None else (lambda v: v)
            constants = {"s": shaped(scale), "z": shaped(zero.astype(dtype))}
            axes = {} if axis is None else {"axis": axis}
            oq = OrtNode([node("QuantizeLinear", ["x", "s", "z"], "q", **axes)], {"x": x}, constants, q)
            held = library.made(library.c.qtensor_quantize, ours, quantizer)
            if not np.array_equal(library.array(held, q), tq.int_repr().numpy()):
                raise SystemExit(f"quantize {dtype} {kind}: other integers than PyTorch's")
            yield f"quantize_{dtype}_{kind}", {
                "qtensor": library.call(library.c.qtensor_quantize, ours, quantizer), "torch": by_torch, "ort": oq,
            }  # fmt: skip
            integers = tq.int_repr().numpy()
            od = OrtNode([node("DequantizeLinear", ["q", "s", "z"], "y", **axes)], {"q": integers}, constants, x.copy())
            yield f"dequantize_{dtype}_{kind}", {
                "qtensor": library.call(library.c.qtensor_dequantize, held), "torch": tq.dequantize, "ort": od,
            }  # fmt: skip


def block_cases(library, shape, block=32):
    """int4 in blocks along the last axis; PyTorch has no such type."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, shape).astype(np.float32)
    grid = (shape[0], shape[1] // block)
    scale = rng.uniform(0.3, 0.5, grid).astype(np.float32)
    zero = rng.integers(-3, 3, grid).astype(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.INT4))
    axes = {"axis": 1, "block_size": block}
    quantizer = library.quantizer("int4", scale, zero.astype(np.int64), 1, "onnx", block)
    ours = library.tensor(x)
    held = library.made(library.c.qtensor_quantize, ours, quantizer)
    oq = OrtNode([node("QuantizeLinear", ["x", "s", "z"], "q", **axes)], {"x": x}, {"s": scale, "z": zero})
    yield "quantize_int4_blocks", {"qtensor": library.call(library.c.qtensor_quantize, ours, quantizer), "ort": oq}
    packed = library.array(held, np.zeros((shape[0] * shape[1] // 2,), np.uint8))
    integers = np.stack([packed & 15, packed >> 4], -1).reshape(shape).view(np.int8)
    integers = (integers - 16 * (integers > 7)).astype(zero.dtype)
    od = OrtNode([node("DequantizeLinear", ["q", "s", "z"], "y", **axes)], {}, {"q": integers, "s": scale, "z": zero}, x.copy())
    yield "dequantize_int4_blocks", {"qtensor": library.call(library.c.qtensor_dequantize, held), "ort": od}


def requantize_case(library, shape):
    """One grid to another: no engine has an operation of its own, so two calls (ONNX Runtime: two nodes)."""
    rng = np.random.default_rng(2)
    q = rng.integers(0, 256, shape).astype(np.uint8)
    constants = {"s": np.float32(0.02), "z": np.uint8(128), "t": np.float32(0.03), "y": np.uint8(100)}
    ort = OrtNode(
        [node("DequantizeLinear", ["q", "s", "z"], "x"), node("QuantizeLinear", ["x", "t", "y"], "r")],
        {"q": q}, constants, q.copy(),
    )  # fmt: skip
    tq = torch._make_per_tensor_quantized_tensor(torch.from_numpy(q), 0.02, 128)
    held = library.tensor(q, library.quantizer("uint8", 0.02, 128))
    target = library.quantizer("uint8", 0.03, 100)
    x, r = ctypes.c_void_p(), ctypes.c_void_p()
    c = library.c

    def ours():
        c.qtensor_dequantize(ctypes.byref(x), held)
        c.qtensor_quantize(ctypes.byref(r), x, target)
        c.qtensor_free(x)
        c.qtensor_free(r)

    by_torch = lambda: torch.quantize_per_tensor(tq.dequantize(), 0.03, 100, torch.quint8)
    yield "requantize_uint8", {"qtensor": ours, "torch": by_torch, "ort": ort}


def linear_cases(library):
    """Dynamic linear: float rows, int8 weights per tensor and per channel, float bias."""
    rng = np.random.default_rng(3)
    torch.backends.quantized.engine = "fbgemm"
    for n, k in ((768, 768), (3072, 768), (768, 3072), (1024, 1024)):
        for kind in ("tensor", "channel"):
            module = torch.nn.Sequential(torch.nn.Linear(k, n)).eval()
            dynamic = torch.ao.quantization.default_dynamic_qconfig
            if kind == "channel":
                dynamic = torch.ao.quantization.per_channel_dynamic_qconfig
            peer = torch.ao.quantization.quantize_dynamic(module, {"0": dynamic}, dtype=torch.qint8)[0]
            tw, tb = peer.weight(), peer.bias().detach().numpy()
            w = tw.int_repr().numpy()
            scale = tw.q_per_channel_scales().numpy() if kind == "channel" else np.float64(tw.q_scale())
            ow = np.ascontiguousarray(w.T)
            axis = 0 if kind == "channel" else None
            weight = library.tensor(w, library.quantizer("int8", scale, np.zeros(np.size(scale)), axis))
            bias = library.tensor(tb)
            for m in (1, 4, 32, 128):
                x = rng.standard_normal((m, k)).astype(np.float32)
                rows, y = library.tensor(x), np.zeros((m, n), np.float32)
                tx = torch.from_numpy(x)
                ort = OrtNode(
                    [node("DynamicQuantizeMatMul", ["x", "w", "s", "", "b"], "y", domain="com.microsoft")],
                    {"x": x},
                    {"w": ow, "s": np.asarray(scale, np.float32), "b": tb}, y,
                )  # fmt: skip
                held = library.made(library.c.qop_linear, rows, weight, bias, None)
                error = np.abs(library.array(held, y) - peer(tx).detach().numpy()).max()
                if error > 1e-4:
                    raise SystemExit(f"linear {m}x{k}x{n}: {error} from PyTorch")
                yield f"linear_{kind}_{m}x{k}x{n}", {
                    "qtensor": library.call(library.c.qop_linear, rows, weight, bias, None),
                    "torch": lambda: peer(tx),
                    "ort": ort,
                }  # fmt: skip


def call_cases(library):
    x = np.linspace(-1, 1, 16, dtype=np.float32)
    ours = library.tensor(x)
    inputs = (ctypes.c_void_p * 1)(ours)
    tx = torch.from_numpy(x)
    c = library.c
    run, free, out = c.qop_run, c.qtensor_free, ctypes.c_void_p()
    one = ctypes.c_size_t(1)

    def relu():
        run(ctypes.byref(out), one, b"Relu", inputs, one, None)
        free(out)

    ort = OrtNode([node("Relu", ["x"], "y")], {"x": x}, {}, x.copy())
    yield "call_relu_16", {"qtensor": relu, "torch": lambda: torch.relu(tx), "ort": ort}


def measure(calls, rounds, seconds):
    taken = peer_lib.take_turns({e: lambda c=c: peer_lib.turn(c, seconds) for e, c in calls.items()}, rounds)
    times = {engine: statistics.median(values) for engine, values in taken.items()}
    ratios = {
        engine: statistics.median(peer / own for peer, own in zip(taken[engine], taken["qtensor"]))
        for engine in taken
    }
    return times, ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="build/release/capi/libqtensor.so", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each engine (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.02, help="length of a turn (%(default)s)")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the table to")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    library = Library(arguments.library)
    cpu = record.cpu_name()
    header = ["case", "qtensor_us", "torch_us", "ort_us", "vs_torch", "vs_ort"]
    rows = []
    print(f"{cpu}; 1 thread; torch {torch.__version__}; onnxruntime {onnxruntime.__version__}", flush=True)
    families = (
        ("call", lambda: call_cases(library)),
        ("linear", lambda: linear_cases(library)),
        ("quantize dequantize", lambda: quantize_cases(library, (256, 512))),
        ("quantize dequantize", lambda: block_cases(library, (256, 512))),
        ("requantize", lambda: requantize_case(library, (256, 512))),
    )
    for names, family in families:
        if not any(n.startswith(arguments.only[: len(n)]) for n in names.split()):
            continue
        for name, calls in family():
            if not name.startswith(arguments.only):
                continue
            times, ratios = measure(calls, arguments.rounds, arguments.seconds)
            shown = [f"{times[engine]:.2f}" if engine in times else "" for engine in ("qtensor", "torch", "ort")]
            beside = [f"{ratios[engine]:.2f}" if engine in ratios else "" for engine in ("torch", "ort")]
            rows.append([name, *shown, *beside])
    peer_lib.print_table(header, rows)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*header, "threads", "rounds", "torch", "onnxruntime", "cpu"])
            tail = [1, arguments.rounds, torch.__version__, onnxruntime.__version__, cpu]
            writer.writerows([*row, *tail] for row in rows)


if __name__ == "__main__":
    main()
