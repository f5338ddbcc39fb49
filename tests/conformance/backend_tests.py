#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All of ONNX's own backend tests whose data the package onnx has, through the Python package, on the native engine.

Prints which share of each kind passes. A test is counted unless a string, a sequence or an optional goes into the model or comes
out of it. One that fails must stand in backend_failing.json with the reason, and what stands there must fail, so that the list
stays true. Exits with 1 where this does not hold, with 77 where the package onnx is missing.

Run with:  PYTHONPATH=build/dev/python $(benchmarks/peers/make-venv)/bin/python tests/conformance/backend_tests.py [KIND...]
"""
import collections
import glob
import json
import os
import pathlib
import signal
import sys
import warnings

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.loader import DATA_DIR, load_model_tests
    from onnx.backend.test.runner import Runner

    import qtensor as qt
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

warnings.simplefilter("ignore")
FAILING = pathlib.Path(__file__).with_name("backend_failing.json")
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")
SECONDS = 60
BFLOAT16_RTOL = 2**-6  # by which ONNX's own runner compares bfloat16


def cases(kind):
    if kind != "light":
        return sorted(load_model_tests(kind=kind), key=lambda case: case.name)
    real = [case for case in load_model_tests(kind="real") if f"/{kind}/" in case.url]
    return sorted(real, key=lambda case: case.name)


def parts(case):
    """The model, and pairs of inputs and outputs."""
    if case.model is not None:
        return case.model, case.data_sets
    if case.model_dir is not None:
        folders = sorted(glob.glob(os.path.join(case.model_dir, "test_data_set*")))
        return onnx.load(os.path.join(case.model_dir, "model.onnx")), [(stored(f, "input"), stored(f, "output")) for f in folders]
    path = os.path.join(DATA_DIR, "light", os.path.basename(case.url))
    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(x) for x in model.graph.input if x.name not in constants]
    outputs = [onnx.load_tensor(path.replace(".onnx", f"_output_{i}.pb")) for i in range(len(model.graph.output))]
    return model, [(inputs, outputs)]


def stored(folder, what):
    return [onnx.load_tensor(os.path.join(folder, f"{what}_{i}.pb")) for i in range(len(glob.glob(os.path.join(folder, f"{what}_*.pb"))))]


def out_of_scope(model):
    for value in [*model.graph.input, *model.graph.output]:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            return kind.removesuffix("_type")
        if value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return "string"
    return None


def array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def plain(x):
    """Types that NumPy cannot compare as float32, which holds all of their values."""
    return x if x.dtype.kind in "biufc" else x.astype(np.float32)


def compare(got, want, case):
    if got.shape != want.shape:
        raise ValueError(f"shape {got.shape}, not {want.shape}")
    if got.dtype != want.dtype:
        raise ValueError(f"{got.dtype}, not {want.dtype}")
    rtol = max(case.rtol, BFLOAT16_RTOL) if want.dtype.name == "bfloat16" else case.rtol
    np.testing.assert_allclose(plain(got), plain(want), rtol=rtol, atol=case.atol)


def run(case):
    """Why it fails; "pass" where it does not, "out: ..." where it is not counted."""
    model, data_sets = parts(case)
    reason = out_of_scope(model)
    if reason:
        return f"out: {reason}"
    session = qt.Session(qt.Model.load_bytes(model.SerializeToString()))
    for inputs, outputs in data_sets:
        got = session.run([array(x) for x in inputs])
        if len(got) != len(outputs):
            return f"{len(got)} outputs, not {len(outputs)}"
        for y, want in zip(got, outputs):
            compare(y.numpy(), array(want), case)
    return "pass"


def outcomes(todo):
    """Pairs of each case and what run() says of it, in processes of their own, which may end as they like."""
    todo = list(todo)
    while todo:
        reader, writer = os.pipe()
        process = os.fork()
        if not process:
            for case in todo:
                signal.alarm(SECONDS)
                try:
                    text = run(case)
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"
                os.write(writer, (" ".join(text.split())[:300] + "\n").encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            for line in pipe:
                yield todo.pop(0), line.rstrip("\n")
        status = os.waitpid(process, 0)[1]
        if todo:
            yield todo.pop(0), f"ends by signal {status}"


def main():
    known = json.loads(FAILING.read_text())
    kinds = sys.argv[1:] or KINDS
    wrong, seen = 0, set()
    for kind in kinds:
        counts = collections.Counter()
        for case, text in outcomes(cases(kind)):
            seen.add(case.name)
            counts[text.split(":")[0] if text.startswith("out") else "pass" if text == "pass" else "fail"] += 1
            fails = text != "pass" and not text.startswith("out")
            if fails == (case.name in known):
                continue
            wrong += 1
            print(f"{case.name} " + (f"FAILED  {text}" if fails else "is in backend_failing.json, but does not fail"), flush=True)
        counted = counts["pass"] + counts["fail"]
        print(f"{kind}: {counts['pass']} of {counted} pass ({100 * counts['pass'] / counted:.1f} %); not counted: {counts['out']}", flush=True)
    if set(kinds) == set(KINDS):
        for name in sorted(set(known) - seen):
            wrong += 1
            print(f"{name} is in backend_failing.json, and no test")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
