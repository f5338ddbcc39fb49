#!/usr/bin/env python3
"""Time of single float operators compared with ONNX Runtime's, one thread each: what networks spend outside of products.

Each row is a model of one node, or of a formula that engines may run as one. The engines take turns, and a figure is the
median of their CPU times in microseconds; `ratio` is ours divided by ONNX Runtime's.

Run again with:
  OMP_NUM_THREADS=1 PYTHONPATH=build/release/python $(benchmarks/peers/make-venv)/bin/python benchmarks/operators.py [PATTERN]
"""

import fnmatch
import statistics
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import qtensor as qt

ROUNDS, WARM_UP = 41, 5
SEQUENCE, IMAGE = (1, 128, 768), (1, 64, 56, 56)
RANDOM = np.random.default_rng(1)


def constant(name, values):
    return onnx.numpy_helper.from_array(np.asarray(values), name)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def node(op, *inputs, **attributes):
    return [(op, inputs, attributes)], {}, SEQUENCE


def with_constant(op, *shape, of=SEQUENCE, **attributes):
    return [(op, ("x", "c"), attributes)], {"c": np.abs(floats(*shape)) + 0.5}, of


def formula(nodes, of=SEQUENCE, **constants):
    return nodes, {name: np.asarray(value) for name, value in constants.items()}, of


NORMALIZATION = [
    ("ReduceMean", ("x",), {"axes": [-1]}),
    ("Sub", ("x", "n0"), {}),
    ("Pow", ("n1", "two"), {}),
    ("ReduceMean", ("n2",), {"axes": [-1]}),
    ("Add", ("n3", "epsilon"), {}),
    ("Sqrt", ("n4",), {}),
    ("Div", ("n1", "n5"), {}),
    ("Mul", ("n6", "scale"), {}),
    ("Add", ("n7", "shift"), {}),
]
GELU = [
    ("Div", ("x", "root"), {}),
    ("Erf", ("n0",), {}),
    ("Add", ("n1", "one"), {}),
    ("Mul", ("x", "n2"), {}),
    ("Mul", ("n3", "half"), {}),
]
NUMBERS = {k: np.float32(v) for k, v in (("root", 2**0.5), ("one", 1), ("half", 0.5), ("two", 2), ("epsilon", 1e-5))}

CASES = {
    **{op: node(op, "x") for op in ("Erf", "Exp", "HardSigmoid", "HardSwish", "Relu", "Sigmoid", "Sqrt", "Tanh")},
    "Gelu of 5 nodes": formula(GELU, **{k: NUMBERS[k] for k in ("root", "one", "half")}),
    "SiLU of 2 nodes": formula([("Sigmoid", ("x",), {}), ("Mul", ("x", "n0"), {})]),
    **{f"{op}, same shape": with_constant(op, *SEQUENCE) for op in ("Add", "Mul", "Div")},
    **{f"{op}, a number": with_constant(op) for op in ("Add", "Mul", "Div")},
    "Add, [C]": with_constant("Add", 768),
    "Mul, [N,C,1,1]": with_constant("Mul", 1, 64, 1, 1, of=IMAGE),
    "Mul, [N,1,1,C]": with_constant("Mul", 1, 1, 1, 64, of=(1, 56, 56, 64)),
    "Softmax, rows of 128": formula([("Softmax", ("x",), {})], of=(12, 128, 128)),
    "Softmax, rows of 49": formula([("Softmax", ("x",), {})], of=(192, 49, 49)),
    "Softmax, axis 1": formula([("Softmax", ("x",), {"axis": 1})], of=(1, 21, 64, 64)),
    "LayerNormalization": formula([("LayerNormalization", ("x", "scale", "shift"), {})], scale=floats(768), shift=floats(768)),
    "LayerNormalization of 9 nodes": formula(NORMALIZATION, scale=floats(768), shift=floats(768), **{k: NUMBERS[k] for k in ("two", "epsilon")}),
    "InstanceNormalization": formula([("InstanceNormalization", ("x", "scale", "shift"), {})], of=IMAGE, scale=floats(64), shift=floats(64)),
    "GlobalAveragePool": formula([("GlobalAveragePool", ("x",), {})], of=IMAGE),
    "ReduceMean, last axis": formula([("ReduceMean", ("x",), {"axes": [-1]})]),
    "ReduceMean, axis 1": formula([("ReduceMean", ("x",), {"axes": [1]})]),
    "Transpose, heads": formula([("Transpose", ("x",), {"perm": [0, 2, 1, 3]})], of=(1, 128, 12, 64)),
    "Transpose, matrices": formula([("Transpose", ("x",), {"perm": [0, 1, 3, 2]})], of=(1, 12, 128, 64)),
    "Pad": formula([("Pad", ("x", "pads"), {})], of=(1, 56, 56, 96), pads=np.array([0, 3, 3, 0, 0, 4, 4, 0], np.int64)),
}  # fmt: skip


def model_of(nodes, constants, shape):
    made = [
        helper.make_node(op, list(inputs), [f"n{i}" if i + 1 < len(nodes) else "y"], **attributes)
        for i, (op, inputs, attributes) in enumerate(nodes)
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(made, "operator", [x], [y], [constant(name, value) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


def measure(runs):
    times = [[] for _ in runs]
    for round_number in range(WARM_UP + ROUNDS):
        for run, taken in zip(runs, times):
            before = time.process_time()
            run()
            if round_number >= WARM_UP:
                taken.append(time.process_time() - before)
    return [1e6 * statistics.median(taken) for taken in times]


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else "*"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    print("operator", "ours", "onnxruntime", "ratio", sep=",")
    for name, (nodes, constants, shape) in CASES.items():
        if not fnmatch.fnmatch(name, pattern):
            continue
        model, x = model_of(nodes, constants, shape), np.abs(floats(*shape))
        ours = qt.Session(qt.Model.load_bytes(model), {"threads": 1})
        theirs = onnxruntime.InferenceSession(model, options)
        mine, peer = measure([lambda: ours(x), lambda: theirs.run(None, {"x": x})])
        print(f'"{name}"', f"{mine:.0f}", f"{peer:.0f}", f"{mine / peer:.2f}", sep=",", flush=True)


if __name__ == "__main__":
    main()
