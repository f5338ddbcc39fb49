#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes slices.json: [dim, start, end, step, how many elements Slice leaves of the dimension], up to the ends of int64.

From: Python's slices, whose integers have no end; rows of small dimensions are cross-checked with ONNX Runtime. ONNX
differs where steps are negative: a start in front of the first element is the first element.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_slices.py
"""

import itertools
import pathlib

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

HIGH, LOW = 2**63 - 1, -(2**63)
DIMS = (0, 1, 5, 2**31, 2**58)
PLACES = (LOW, -(2**58), -6, -1, 0, 4, 2**31, 2**58, HIGH)
STEPS = (LOW, -(2**58), -3, -1, 1, 2, 2**58 + 1, HIGH)


def length(dim, start, end, step):
    if step < 0 and start < -dim:
        start = 0
    return len(range(*slice(start, end, step).indices(dim)))


def onnx_slice():
    names = ("starts", "ends", "axes", "steps")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])]
    inputs += [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in names]
    graph = helper.make_graph([helper.make_node("Slice", ["x", *names], ["y"])], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

    def run(dim, start, end, step):
        values = zip(names, (start, end, 0, step))
        return session.run(None, {"x": np.zeros(dim, np.float32), **{name: np.array([v], np.int64) for name, v in values}})[0].size

    return run


def main():
    run, rows = onnx_slice(), []
    for row in itertools.product(DIMS, PLACES, PLACES, STEPS):
        count = length(*row)
        # ONNX Runtime takes the largest end, of negative steps, for none at all; the smallest step it negates, which
        # int64 cannot.
        if 0 < row[0] < 2**31 and row[3] != LOW and not (row[2] == HIGH and row[3] < 0):
            assert run(*row) == count, (row, run(*row), count)
        rows.append([*row, count])
    text = ",\n".join(str(row) for row in rows)
    pathlib.Path(__file__).with_name("slices.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
