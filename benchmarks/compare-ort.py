#!/usr/bin/env python3
"""Compares the answers of qtensor with those of ONNX Runtime on the same files, and writes a csv.

For every float model: runs it with our command and with ONNX Runtime; takes our int8 QDQ file (made with
`qtensor quantize` if it is not there) and runs it with our native engine, our reference engine and ONNX Runtime.

Columns:
  float_max_rel         max |ours - ORT| / max |ORT|, both float
  sqnr_db, top1         our int8 (native) against ORT float: signal to quantization noise, share of same top-1
  ref_max_abs, ref_max_lsb, ref_differing
                        native against reference engine: largest difference, in units and in steps of the scale,
                        and share of values that are not equal
  ort_max_abs, ort_sqnr_db, ort_equal
                        native against ORT on the same QDQ file: largest difference, SQNR, share of equal values
  ort_int8_sqnr_db      ORT on our QDQ file against ORT's float: what the file itself costs
  ort_own_sqnr_db       ORT on the QDQ file of its own tool against ORT's float: what the peer's quantization costs

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/compare-ort.py --csv compare.csv [MODEL ...]
"""

import argparse
import csv
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import peer_lib

HEADER = [
    "model", "float_max_rel", "sqnr_db", "top1", "ref_max_abs", "ref_max_lsb", "ref_differing", "ort_max_abs",
    "ort_sqnr_db", "ort_equal", "ort_int8_sqnr_db",
    "ort_own_sqnr_db",
]  # fmt: skip


def sqnr_db(want, got):
    want, got = want.astype(np.float64), got.astype(np.float64)
    noise = np.square(want - got).sum()
    return np.inf if noise == 0 else 10 * np.log10(np.square(want).sum() / noise)


def max_abs(a, b):
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())


def output_scale(path):
    """The scale of the DequantizeLinear that makes the first output, or None where the last node is in float."""
    graph = onnx.load(str(path)).graph
    producers = {name: node for node in graph.node for name in node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    name = graph.output[0].name
    while name in producers and producers[name].op_type in ("Identity", "Flatten", "Reshape", "Squeeze", "Transpose"):
        name = producers[name].input[0]
    node = producers.get(name)
    if node is None or node.op_type != "DequantizeLinear" or node.input[1] not in constants:
        return None
    scale = numpy_helper.to_array(constants[node.input[1]])
    return float(scale) if scale.size == 1 else None


def our_run(arguments, path, data, engine, folder):
    out = folder / f"{path.stem}-{engine}.npy"
    options = ("--data", data, "-o", out, "--threads", arguments.threads, "--engine", engine)
    peer_lib.command(arguments.qtensor, "run", path, *options)
    return np.load(out)


def compare(arguments, model, data, samples, folder):
    """One row; what our command cannot do stays empty and is said on standard error."""
    row = dict.fromkeys(HEADER)
    row["model"] = model.stem
    want = peer_lib.ort_run(model, samples, arguments.threads)
    own = peer_lib.ort_run(peer_lib.ort_quantized(arguments, model), samples, arguments.threads)
    row["ort_own_sqnr_db"] = f"{sqnr_db(want, own):.2f}"
    try:
        got = our_run(arguments, model, data, "native", folder)
        row["float_max_rel"] = f"{max_abs(got, want) / np.abs(want).max():.2e}"
    except RuntimeError as error:
        print(f"{model.stem}: float: {error}", file=sys.stderr)
    try:
        quantized = peer_lib.our_quantized(arguments, model)
        peer = peer_lib.ort_run(quantized, samples, arguments.threads)
        row["ort_int8_sqnr_db"] = f"{sqnr_db(want, peer):.2f}"
        native = our_run(arguments, quantized, data, "native", folder)
        row["sqnr_db"] = f"{sqnr_db(want, native):.2f}"
        row["top1"] = f"{(want.argmax(axis=1) == native.argmax(axis=1)).mean():.4f}" if want.ndim == 2 else None
        row["ort_max_abs"] = f"{max_abs(native, peer):.3g}"
        row["ort_sqnr_db"] = f"{sqnr_db(peer, native):.2f}"
        row["ort_equal"] = f"{(native == peer).mean():.4f}"
        reference = our_run(arguments, quantized, data, "reference", folder)
        row["ref_max_abs"] = f"{max_abs(native, reference):.3g}"
        row["ref_differing"] = f"{(native != reference).mean():.4f}"
        scale = output_scale(quantized)
        row["ref_max_lsb"] = f"{max_abs(native, reference) / scale:.1f}" if scale else None
    except RuntimeError as error:
        print(f"{model.stem}: int8: {error}", file=sys.stderr)
    return list(row.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peer_lib.add_common_arguments(parser)
    parser.add_argument("--outputs", type=pathlib.Path, help="folder that keeps our outputs as .npy (a temporary one)")
    parser.add_argument("--samples", type=int, help="how many of the inputs (all)")
    arguments = parser.parse_args()

    samples = np.load(peer_lib.samples_path(arguments))[: arguments.samples]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.outputs or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = pathlib.Path(temporary) / "samples.npy"
        np.save(data, samples)
        for model in peer_lib.model_paths(arguments):
            rows.append(compare(arguments, model, data, samples, folder))
    peer_lib.print_table(HEADER, rows)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])


if __name__ == "__main__":
    main()
