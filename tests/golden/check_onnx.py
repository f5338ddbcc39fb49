#!/usr/bin/env python3
"""Checks that ONNX files written by qtensor are files that others read.

For each file: onnx.checker with shape inference, loading in ONNX Runtime, one run on seeded inputs, and the operators that
are left after ONNX Runtime's own optimization (QLinearConv where it understood a quantized convolution).

Needs: onnx, onnxruntime, numpy.   Run with:  check_onnx.py [--like FLOAT.onnx] FILE.onnx ...
"""

import argparse
import collections
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def make_inputs(session, seed=0):
    """Uniform in [-1, 1); symbolic dimensions are 1."""
    generator = np.random.default_rng(seed)
    feeds = {}
    for item in session.get_inputs():
        shape = [dim if isinstance(dim, int) else 1 for dim in item.shape]
        feeds[item.name] = generator.uniform(-1, 1, shape).astype(DTYPES[item.type])
    return feeds


def open_session(path, optimized_path=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if optimized_path:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = optimized_path
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def op_counts(path):
    return dict(sorted(collections.Counter(node.op_type for node in onnx.load(path).graph.node).items()))


def sqnr(reference, other):
    noise = np.sum((reference.astype(np.float64) - other) ** 2)
    return np.inf if noise == 0 else 10 * np.log10(np.sum(reference.astype(np.float64) ** 2) / noise)


def check(path, like):
    onnx.checker.check_model(path, full_check=True)
    with tempfile.TemporaryDirectory() as folder:
        optimized = os.path.join(folder, "optimized.onnx")
        session = open_session(path, optimized)
        feeds = make_inputs(session)
        outputs = session.run(None, feeds)
        print(f"{path}: checked, runs in ONNX Runtime {onnxruntime.__version__}")
        print(f"  written   {op_counts(path)}")
        print(f"  optimized {op_counts(optimized)}")
    if like:
        reference = open_session(like)
        names = [item.name for item in reference.get_outputs()]
        if names != [item.name for item in session.get_outputs()]:
            raise SystemExit(f"{path}: outputs are not named as in {like}: {names}")
        for name, expected, got in zip(names, reference.run(None, feeds), outputs):
            print(f"  {name}: SQNR {sqnr(expected, got):.1f} dB, largest difference {np.abs(expected - got).max():g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--like", help="compare the outputs with those of this model")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    for path in arguments.files:
        check(path, arguments.like)
    return 0


if __name__ == "__main__":
    sys.exit(main())
