#!/usr/bin/env python3
"""Dynamically quantized networks compared with ONNX Runtime's and PyTorch's own, in one process.

The block of a transformer that is mostly products: rows x 768 -> 3072, Relu, -> 768. Each engine runs what its own tool makes of
the same float weights: `qmodel_quantize_dynamic`, `quantize_dynamic` of ONNX Runtime (int8 weights per channel), `quantize_dynamic` of PyTorch
(per channel, FBGEMM). Turns and ratios are those of benchmarks/tensors.py: above 1, qtensor is the faster one.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/dynamic.py --csv dynamic.csv
"""

import argparse
import csv
import ctypes
import logging
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper
from onnxruntime import quantization

import peer_lib
import record
import tensors
from library import Library

IN, HIDDEN = 768, 3072


def float_model(layers):
    """The same network as ONNX: MatMul, Add and Relu."""
    first, second = (layer.weight.detach().numpy().T for layer in (layers[0], layers[2]))
    constants = {"w": first, "b": layers[0].bias.detach().numpy(), "v": second, "c": layers[2].bias.detach().numpy()}
    node = tensors.node
    nodes = [
        node("MatMul", ["x", "w"], "xw"), node("Add", ["xw", "b"], "h"), node("Relu", ["h"], "r"),
        node("MatMul", ["r", "v"], "rv"), node("Add", ["rv", "c"], "y"),
    ]  # fmt: skip
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", IN])
    initializers = [onnx.numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "mlp", [value("x")], [value("y")], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def our_session(library, model):
    data, c = model.SerializeToString(), library.c
    loaded = library.made(c.qmodel_load_bytes, data, ctypes.c_size_t(len(data)))
    config = library.made(c.qconfig_create, b"onnx")
    return library.made(c.qsession_create, library.made(c.qmodel_quantize_dynamic, loaded, config, None), None)


def ort_session(model):
    with tempfile.TemporaryDirectory() as folder:
        source, target = (pathlib.Path(folder, name) for name in ("float.onnx", "dynamic.onnx"))
        onnx.save(model, source)
        logging.disable(logging.WARNING)
        quantization.quantize_dynamic(source, target, per_channel=True, weight_type=quantization.QuantType.QInt8)
        return peer_lib.ort_session(target, 1)


def cases(library):
    torch.backends.quantized.engine = "fbgemm"
    torch.manual_seed(1)
    layers = torch.nn.Sequential(torch.nn.Linear(IN, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, IN)).eval()
    per_channel = torch.ao.quantization.per_channel_dynamic_qconfig
    peer = torch.ao.quantization.quantize_dynamic(layers, {"0": per_channel, "2": per_channel}, dtype=torch.qint8)
    model = float_model(layers)
    ours, ort, c = our_session(library, model), ort_session(model), library.c
    for rows in (1, 32, 128):
        x = np.random.default_rng(rows).standard_normal((rows, IN)).astype(np.float32)
        inputs, output, one = (ctypes.c_void_p * 1)(library.tensor(x)), ctypes.c_void_p(), ctypes.c_size_t(1)
        tx = torch.from_numpy(x)

        def run(inputs=inputs, output=output):
            library.check(c.qsession_run(ctypes.byref(output), one, ours, inputs, one))
            c.qtensor_free(output)

        library.check(c.qsession_run(ctypes.byref(output), one, ours, inputs, one))
        apart = np.abs(library.array(output, x) - ort.run(None, {"x": x})[0]).max()
        if apart > 1e-5:
            raise SystemExit(f"{rows} rows: {apart} from ONNX Runtime")
        yield f"mlp_{rows}x{IN}x{HIDDEN}x{IN}", {
            "qtensor": run, "torch": lambda tx=tx: peer(tx), "ort": lambda x=x: ort.run(None, {"x": x}),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="build/release/capi/libqtensor.so", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each engine (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of a turn (%(default)s)")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the table to")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    library = Library(arguments.library)
    header = ["case", "qtensor_us", "torch_us", "ort_us", "vs_torch", "vs_ort"]
    table = []
    for name, calls in cases(library):
        times, ratios = tensors.measure(calls, arguments.rounds, arguments.seconds)
        beside = [f"{ratios[engine]:.2f}" for engine in ("torch", "ort")]
        table.append([name, *(f"{times[engine]:.1f}" for engine in ("qtensor", "torch", "ort")), *beside])
    peer_lib.print_table(header, table)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*header, "threads", "rounds", "torch", "onnxruntime", "cpu"])
            tail = [1, arguments.rounds, torch.__version__, onnxruntime.__version__, record.cpu_name()]
            writer.writerows([*row, *tail] for row in table)


if __name__ == "__main__":
    main()
