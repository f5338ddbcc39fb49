#!/usr/bin/env python3
"""What quantization costs: top-1 and SQNR of our int8 networks beside those of ONNX Runtime and PyTorch, on the same
calibration and test data.

  digits   the network of examples/digits and those of models/digits_nets.py; top-1 on the 540 test pictures
  --model  any other float .onnx file with its --data (calibration, and test where there is no --test), such as a detector
           and photographs

Every engine computes its own int8 model: ours natively, ONNX Runtime its own QDQ file, PyTorch the module that FX graph mode
converts. The SQNR is that of all outputs together, against the float model in ONNX Runtime.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/accuracy.py --csv accuracy.csv
"""

import argparse
import csv
import json
import pathlib
import tempfile
import warnings

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime

import peer_lib
import record
from models import digits_nets

DIGITS = digits_nets.DIGITS
FIELDS = ("model", "who", "settings", "samples", "top1", "top1_drop", "sqnr_db", "cpu", "peers")
PER_TENSOR = {"weight_scheme": "per_tensor_symmetric"}
INT4 = {"weight_dtype": "int4", "weight_scheme": "per_block_symmetric", "block_size": 32}
# Settings on top of the recipe "onnx" (None: no --config at all), and options.
OURS = {
    "default": (None, []),
    "--plain": (None, ["--plain"]),
    "--auto": (None, ["--auto"]),
    "--config fbgemm": (None, ["--config", "fbgemm"]),
    "--config qnnpack": (None, ["--config", "qnnpack"]),
    "per tensor": (PER_TENSOR, []),
    "per tensor --equalize": (PER_TENSOR, ["--equalize"]),
    "int4 weights in blocks of 32": (INT4, []),
    "int4 weights in blocks of 32 --equalize --adaround": (INT4, ["--equalize", "--adaround"]),
}
ORT_METHODS = ("MinMax", "Entropy", "Percentile")
PER_CHANNEL_OPSET = 13  # the first that can say it
TORCH_ENGINES = ("fbgemm", "qnnpack")


class Task:
    """A float model with its data. `module`: the same as a PyTorch module, or None."""

    def __init__(self, path, calibration, test, labels=None, module=None):
        self.path, self.calibration, self.test, self.labels, self.module = path, calibration, test, labels, module
        self.want = self.run_ort(path)

    def run_ort(self, path):
        return list(peer_lib.ort_run(path, self.test, 1).values())

    def row(self, who, settings, outputs):
        row = {
            "model": self.path.stem, "who": who, "settings": settings, "samples": len(self.calibration),
            "sqnr_db": f"{peer_lib.sqnr_db(self.want, outputs):.2f}",
        }  # fmt: skip
        if self.labels is not None:
            top1, exact = (float((y[0].argmax(axis=1) == self.labels).mean()) for y in (outputs, self.want))
            row |= {"top1": f"{100 * top1:.2f}", "top1_drop": f"{100 * (exact - top1):.2f}"}
        return row


def ours(arguments, task, settings, options, folder):
    names = ("config.json", "data.npy", "test.npy", "int8.onnx", "out.safetensors")
    config, data, test, int8, out = (folder / name for name in names)
    if settings is not None:
        config.write_text(json.dumps({"recipe": "onnx", "rules": [{"selector": "*", "settings": settings}]}))
        options = ["--config", config, *options]
    np.save(data, task.calibration)
    np.save(test, task.test)
    peer_lib.command(arguments.qtensor, "quantize", task.path, "-o", int8, "--data", data, *options)
    peer_lib.command(arguments.qtensor, "run", int8, "--data", test, "-o", out)
    found = peer_lib.read_safetensors(out)
    return [found[name] for name in peer_lib.ort_output_names(task.path)]


def ort(task, method, per_channel, folder):
    from onnxruntime import quantization
    from onnxruntime.quantization import shape_inference

    source, prepared, int8 = folder / "source.onnx", folder / "prepared.onnx", folder / "ort.onnx"
    model = onnx.load(task.path)
    if model.opset_import[0].version < PER_CHANNEL_OPSET:
        model = onnx.version_converter.convert_version(model, PER_CHANNEL_OPSET)
    onnx.save(model, source)
    shape_inference.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    name = peer_lib.ort_session(task.path, 1).get_inputs()[0].name
    quantization.quantize_static(
        str(prepared), str(int8), peer_lib.Samples(name, task.calibration),
        quant_format=quantization.QuantFormat.QDQ, activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8, per_channel=per_channel,
        calibrate_method=quantization.CalibrationMethod[method],
    )  # fmt: skip
    return task.run_ort(int8)


def torch_fx(task, engine):
    import torch

    import torch_int8

    torch.backends.quantized.engine = engine
    module = torch_int8.quantized(task.module, engine, torch.from_numpy(task.calibration))
    with torch.inference_mode():
        return [module(torch.from_numpy(task.test)).numpy()]


def attempts(arguments, task, folder):
    """Who, with what settings, and a call that gives the outputs."""
    for name, (settings, options) in OURS.items():
        yield "qtensor", name, lambda: ours(arguments, task, settings, options, folder)
    for method in ORT_METHODS:
        for per_channel in (True, False):
            settings = f"{method} per {'channel' if per_channel else 'tensor'}"
            yield "onnxruntime", settings, lambda: ort(task, method, per_channel, folder)
    if task.module is not None:
        for engine in TORCH_ENGINES:
            yield "torch", engine, lambda: torch_fx(task, engine)


def digits_tasks():
    import torch

    data = [np.load(DIGITS / f"{name}.npy") for name in ("calibration", "test_images", "test_labels")]
    yield Task(DIGITS / "digits.onnx", *data)
    for name, make_network in digits_nets.NETWORKS.items():
        path = digits_nets.folder() / f"{name}.onnx"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            digits_nets.make(path.parent)
        module = make_network().eval()
        module.load_state_dict(torch.load(path.with_suffix(".pt")))
        yield Task(path, *data, module=module)


def tasks(arguments):
    if not arguments.model:
        yield from digits_tasks()
        return
    data = np.load(arguments.data)
    yield Task(arguments.model, data, np.load(arguments.test) if arguments.test else data)


def peers():
    import torch

    return f"onnxruntime {onnxruntime.__version__}, torch {torch.__version__}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qtensor", default="build/release/tools/qtensor", help="our command (%(default)s)")
    parser.add_argument("--model", type=pathlib.Path, help="a float .onnx file instead of the digits networks")
    parser.add_argument("--data", type=pathlib.Path, help="its samples, .npy")
    parser.add_argument("--test", type=pathlib.Path, help="samples to measure with, .npy")
    parser.add_argument("--csv", type=pathlib.Path, help="file to add the rows to")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for task in tasks(arguments):
        for who, settings, outputs in attempts(arguments, task, pathlib.Path(tempfile.mkdtemp())):
            try:
                rows.append(task.row(who, settings, outputs()))
            except Exception as error:
                print(f"{task.path.stem}, {who}, {settings}: left out: {error}")
                continue
            print(*rows[-1].values(), flush=True)
    if arguments.csv:
        with arguments.csv.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerows(row | {"cpu": record.cpu_name(), "peers": peers()} for row in rows)


if __name__ == "__main__":
    main()
