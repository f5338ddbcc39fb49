#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks with operators that programs register, and what they compute: the operators' formulas in NumPy, everything
else by ONNX's reference evaluator."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

FOLDER = Path(__file__).parent / "custom"
DOMAIN = "com.example"


class Swish(OpRun):
    """x * sigmoid(alpha * x)"""

    op_domain = DOMAIN

    def _run(self, x, alpha=None):
        return ((x / (1 + np.exp(-np.float32(alpha) * x))).astype(np.float32),)


class Halves(OpRun):
    """The first and the second half of each row, times the attribute "factors"; plus a row where one is given."""

    op_domain = DOMAIN

    def _run(self, x, row=None, factors=None):
        low, high = np.split(x, 2, axis=1)
        row = np.float32(0) if row is None else row
        return ((low * factors[0] + row).astype(np.float32), (high * factors[1] + row).astype(np.float32))


class Scale(OpRun):
    """Each element times the attribute "factor"."""

    op_domain = DOMAIN

    def _run(self, x, factor=None):
        return ((x * np.float32(factor)).astype(np.float32),)


class Take(OpRun):
    """The first rows, as many as an input says."""

    op_domain = DOMAIN

    def _run(self, x, count):
        return (x[: int(count[0])],)


def save(name, nodes, inputs, outputs, weights, x):
    rng = np.random.default_rng(7)
    constants = [
        numpy_helper.from_array(rng.normal(0, 0.5, shape).astype(np.float32), weight) for weight, shape in weights.items()
    ]
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.save(model, FOLDER / f"{name}.onnx")
    evaluator = ReferenceEvaluator(model, new_ops=[Swish, Halves, Scale, Take])
    for output, value in zip(graph.output, evaluator.run(None, x), strict=True):
        np.save(FOLDER / f"{name}_{output.name}.npy", value)
    np.save(FOLDER / f"{name}_x.npy", x["x"])


def main():
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)

    def floats(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    layers = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"], "first"),
        helper.make_node("Swish", ["hidden"], ["swished"], "swish", domain=DOMAIN, alpha=1.5),
        helper.make_node("Gemm", ["swished", "w2"], ["wide"], "second"),
        helper.make_node("Halves", ["wide", "row"], ["low", "high"], "halves", domain=DOMAIN, factors=[2.0, -0.5]),
        helper.make_node("Add", ["low", "high"], ["y"], "sum"),
    ]
    save(
        "layers",
        layers,
        [floats("x", "N", 8)],
        [floats("y", "N", 6)],
        {"w1": (8, 16), "b1": (16,), "w2": (16, 12), "row": (6,)},
        {"x": rng.normal(0, 1, (64, 8)).astype(np.float32)},
    )
    save(
        "swish",
        [
            helper.make_node("Gemm", ["x", "w1"], ["hidden"], "first"),
            helper.make_node("Swish", ["hidden"], ["swished"], "swish", domain=DOMAIN, alpha=1.5),
            helper.make_node("Gemm", ["swished", "w2"], ["y"], "second"),
        ],
        [floats("x", "N", 8)],
        [floats("y", "N", 4)],
        {"w1": (8, 16), "w2": (16, 4)},
        {"x": rng.normal(0, 1, (64, 8)).astype(np.float32)},
    )
    save(
        "scaled",
        [
            helper.make_node("Scale", ["x"], ["scaled"], "scale", domain=DOMAIN, factor=3.0),
            helper.make_node("Neg", ["scaled"], ["y"], "neg"),
        ],
        [floats("x", "N", 3)],
        [floats("y", "N", 3)],
        {},
        {"x": np.array([[1, 2, 3], [-4, 5, 0.5]], np.float32)},
    )
    save(
        "shapes",
        [
            helper.make_node("Take", ["x", "count"], ["taken"], "take", domain=DOMAIN),
            helper.make_node("Neg", ["taken"], ["y"], "neg"),
        ],
        [floats("x", "N", 3), helper.make_tensor_value_info("count", TensorProto.INT64, [1])],
        [floats("y", "M", 3)],
        {},
        {"x": rng.normal(0, 1, (5, 3)).astype(np.float32), "count": np.array([2], np.int64)},
    )


if __name__ == "__main__":
    main()
