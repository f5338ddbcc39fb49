#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes recurrent/NAME.onnx and recurrent/recurrent.json: recurrent layers with int8 weights, and long sequences.

"quantized": layers whose weights W and R are int8 with a DequantizeLinear behind them; results are ONNX Runtime's, which
computes in float. "microsoft": ONNX Runtime's DynamicQuantizeLSTM, and its LSTM on the weights that the integers stand
for. "long": float networks over 1000 steps, whose outputs at some of them are PyTorch's, in double.

Run with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_recurrent.py
"""
import io
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from golden_json import write
from onnx import TensorProto, helper, numpy_helper

OUT = pathlib.Path(__file__).with_name("recurrent")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, FEATURES, HIDDEN = 5, 2, 11, 13
LONG_STEPS, LONG_FEATURES, LONG_HIDDEN = 1000, 6, 24


def eighths(rng, *shape):
    return (rng.integers(-16, 17, shape) / 8).astype(np.float32)


def quantized_layer(rng, op, directions, given, attrs):
    """A model; `given` says which of sequence_lens, initial_h, initial_c and P there are."""
    width = GATES[op] * HIDDEN
    constants, nodes, names = {}, [], ["x"]
    for name, depth in (("w", FEATURES), ("r", HIDDEN)):
        constants[f"{name}_q"] = rng.integers(-127, 128, (directions, width, depth)).astype(np.int8)
        constants[f"{name}_scale"] = rng.uniform(0.001, 0.004, width).astype(np.float32)
        constants[f"{name}_zero"] = np.zeros(width, np.int8)
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_scale", f"{name}_zero"], [name], axis=1))
        names.append(name)
    constants["b"] = eighths(rng, directions, 2 * width) / 4
    names.append("b")
    inputs = {"x": eighths(rng, STEPS, BATCH, FEATURES)}
    shapes = {"h": (directions, BATCH, HIDDEN), "c": (directions, BATCH, HIDDEN)}
    if "lengths" in given:
        inputs["lengths"] = np.array([3, 5], np.int32)
    names.append("lengths" if "lengths" in given else "")
    for name in ("h", "c")[: len(shapes) if op == "LSTM" else 1]:
        if name in given:
            inputs[name] = eighths(rng, *shapes[name]) / 2
        names.append(name if name in given else "")
    if "p" in given:
        constants["p"] = eighths(rng, directions, 3 * HIDDEN) / 2
        names.append("p")
    while not names[-1]:
        names.pop()
    outputs = ["y", "y_h", "y_c"][: 3 if op == "LSTM" else 2]
    nodes.append(helper.make_node(op, names, outputs, name="layer", hidden_size=HIDDEN, **attrs))
    graph = helper.make_graph(
        nodes, "recurrent",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * (4 if n == "y" else 3)) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in constants.items()])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), inputs


def variants(op):
    both = {"direction": "bidirectional"}
    yield "forward", 1, [], {}
    yield "both", 2, ["h", "c"], both
    yield "lengths", 1, ["lengths", "h", "c"], {"direction": "reverse"}
    yield "clip", 2, ["lengths"], {**both, "clip": 0.5}
    if op == "LSTM":
        yield "peepholes", 2, ["h", "c", "p"], both
        yield "coupled", 1, [], {"input_forget": 1}
    if op == "GRU":
        yield "linear", 2, ["h"], {**both, "linear_before_reset": 1}


def quantized():
    rng = np.random.default_rng(7)
    for op in GATES:
        for name, directions, given, attrs in variants(op):
            model, inputs = quantized_layer(rng, op, directions, given, attrs)
            onnx.checker.check_model(model)
            name = f"{op.lower()}_{name}"
            onnx.save(model, OUT / f"{name}.onnx")
            yield {"name": name, "inputs": list(inputs.values()), "outputs": run(model, inputs)}


def run(model, inputs):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)


def model_of(op, domain, inputs, constants, outputs, **attrs):
    names = ["x", "w", "r", "b", "", "h", "c", "p" if "p" in constants else ""]
    names += [f"{name}_{part}" for name in ("w", "r") for part in ("scale", "zero")] if domain else []
    while not names[-1]:
        names.pop()
    graph = helper.make_graph(
        [helper.make_node(op, names, outputs, name="layer", domain=domain, hidden_size=HIDDEN, **attrs)], "recurrent",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * (4 if n == "y" else 3)) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in constants.items()])  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def microsoft():
    rng = np.random.default_rng(8)
    for name, directions, dtype, by_row, zero in (("tensor", 1, "int8", False, 0), ("rows_both", 2, "int8", True, 0),
                                                  ("tensor_both", 2, "uint8", False, 128), ("uneven", 2, "uint8", False, 60)):  # fmt: skip
        rows = 4 * HIDDEN
        attrs = {"direction": "bidirectional" if directions == 2 else "forward"}
        state = (directions, BATCH, HIDDEN)
        inputs = {"x": eighths(rng, STEPS, BATCH, FEATURES), "h": eighths(rng, *state) / 2, "c": eighths(rng, *state) / 2}
        real, codes = {"b": eighths(rng, directions, 2 * rows) / 4}, {}
        if directions == 2:
            real["p"] = eighths(rng, directions, 3 * HIDDEN) / 2
        codes.update(real)
        for weight, depth in (("w", FEATURES), ("r", HIDDEN)):
            q = (rng.integers(-100, 101, (directions, depth, rows)) + (zero if dtype == "int8" else 128)).astype(dtype)
            scale = rng.uniform(0.001, 0.004, (directions, rows) if by_row else (directions,)).astype(np.float32)
            zeros = np.full(scale.shape, zero, dtype)
            codes |= {weight: q, f"{weight}_scale": scale, f"{weight}_zero": zeros}
            wide = (scale if by_row else scale[:, None]).reshape(directions, 1, -1)
            real[weight] = ((q.astype(np.float32) - zero) * wide).transpose(0, 2, 1).copy()
        outputs = ["y", "y_h", "y_c"]
        model = model_of("DynamicQuantizeLSTM", "com.microsoft", inputs, codes, outputs, **attrs)
        onnx.save(model, OUT / f"dynamic_{name}.onnx")
        yield {"name": f"dynamic_{name}", "inputs": list(inputs.values()), "outputs": run(model, inputs),
               "in_floats": run(model_of("LSTM", "", inputs, real, outputs, **attrs), inputs)}  # fmt: skip


def sequence():
    """Noise that a test can make, too: the upper bits of a product modulo 2^32, from -1 to 1."""
    i = np.arange(LONG_STEPS * LONG_FEATURES, dtype=np.uint64)
    noise = (i * np.uint64(2654435761) % np.uint64(2**32)) >> np.uint64(20)
    return (noise.astype(np.float64) / 2048 - 1).reshape(LONG_STEPS, 1, LONG_FEATURES)


def long():
    x = torch.from_numpy(sequence())
    for op in GATES:
        torch.manual_seed(3)
        net = getattr(torch.nn, op)(LONG_FEATURES, LONG_HIDDEN, bidirectional=op == "GRU")
        name = f"{op.lower()}_long"
        file = io.BytesIO()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(net, (x.float(),), file, input_names=["x"], output_names=["y"], opset_version=17, dynamo=False)
            (OUT / f"{name}.onnx").write_bytes(file.getvalue())
            y = net.double()(x)[0].numpy()
        yield {"name": name, "every": 50, "outputs": [y[49::50].astype(np.float32)]}


def main():
    OUT.mkdir(exist_ok=True)
    write(OUT / "recurrent.json", {"quantized": list(quantized()), "microsoft": list(microsoft()), "long": list(long())})


if __name__ == "__main__":
    main()
