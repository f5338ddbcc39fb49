#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that the library writes, in ONNX Runtime: models of tests/golden/others as QDQ and as QOperator, checked by
onnx.checker and run beside the library. Usage: export.py LIBRARY FOLDER. Exit code 77 (skipped) where numpy, onnx or
onnxruntime is not installed.
"""

import collections
import ctypes
import json
import pathlib
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError:
    sys.exit(77)

FLOAT32 = 1
LIBRARY = ctypes.CDLL(str(pathlib.Path(sys.argv[1]).resolve()))
FOLDER = pathlib.Path(sys.argv[2])
LIBRARY.qerror_message.restype = ctypes.c_char_p
LIBRARY.qtensor_data.restype = ctypes.c_void_p
OPSETS = {"qdq": (13, 17, 21, 25), "qoperator": (13, 21, 25)}


class Refused(Exception):
    pass


def call(function, *arguments):
    if getattr(LIBRARY, function)(*arguments) != 0:
        raise Refused(LIBRARY.qerror_message().decode())


def made(function, *arguments):
    handle = ctypes.c_void_p()
    call(function, ctypes.byref(handle), *arguments)
    return handle


def save(model, path, form, opset):
    attrs = made("qattrs_create")
    call("qattrs_set_string", attrs, b"format", form.encode())
    call("qattrs_set_int", attrs, b"opset", ctypes.c_int64(opset))
    try:
        call("qmodel_save", model, str(path).encode(), attrs)
    finally:
        LIBRARY.qattrs_free(attrs)


def run(model, x, shape):
    session = made("qsession_create", model, None)
    dims = (ctypes.c_int64 * x.ndim)(*x.shape)
    data = x.tobytes()
    tensor = made("qtensor_create", FLOAT32, dims, ctypes.c_size_t(x.ndim), None, data, ctypes.c_size_t(len(data)))
    inputs, outputs = (ctypes.c_void_p * 1)(tensor), (ctypes.c_void_p * 1)()
    call("qsession_run", outputs, ctypes.c_size_t(1), session, inputs, ctypes.c_size_t(1))
    data = ctypes.cast(LIBRARY.qtensor_data(ctypes.c_void_p(outputs[0])), ctypes.POINTER(ctypes.c_float))
    y = numpy.ctypeslib.as_array(data, (int(numpy.prod(shape)),)).copy()
    for handle in (tensor, ctypes.c_void_p(outputs[0])):
        LIBRARY.qtensor_free(handle)
    LIBRARY.qsession_free(session)
    return y.reshape(shape)


def onnx_runtime(path, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def tensor(j):
    return numpy.array(j["data"], numpy.float32).reshape(j["shape"])


def count_apart(got, want, step):
    """As tests/unit/runtime/others_test.cpp counts."""
    return int((numpy.abs(got.astype(float) - want) > step + 3e-7 * (numpy.abs(want) + step)).sum())


def main():
    file = json.loads((FOLDER / "others.json").read_text())
    exceptions = json.loads((FOLDER / "exceptions.json").read_text())["apart"]
    counts, failures = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        for entry in file["models"]:
            model = made("qmodel_load", str(FOLDER / f"{entry['name']}.onnx").encode())
            inputs = [tensor(x) for x in file["inputs"][entry["network"]]]
            shape = entry["outputs"][0]["shape"]
            wanted = [run(model, x, shape) for x in inputs]
            for form, opsets in OPSETS.items():
                for opset in opsets:
                    what = f"{entry['name']} as {form}, opset {opset}"
                    try:
                        save(model, path, form, opset)
                    except Refused as e:
                        counts["refused: " + str(e).split("): ")[-1]] += 1
                        continue
                    try:
                        onnx.checker.check_model(str(path), full_check=True)
                        got = [onnx_runtime(path, x) for x in inputs]
                    except Exception as e:
                        failures.append(f"{what}: {e}")
                        continue
                    counts[form] += 1
                    operators = [node.op_type for node in onnx.load(path).graph.node]
                    counts["operators on integers"] += sum(o.startswith("QLinear") or o == "QGemm" for o in operators)
                    apart = sum(count_apart(g, w, entry["step"]) for g, w in zip(got, wanted))
                    if apart != exceptions.get(entry["name"], {"elements": 0})["elements"]:
                        failures.append(f"{what}: {apart} elements are apart")
            LIBRARY.qmodel_free(model)
    print(*(f"{count} {what}" for what, count in sorted(counts.items())), *failures, sep="\n")
    return 1 if failures or not counts["qoperator"] else 0


if __name__ == "__main__":
    sys.exit(main())
