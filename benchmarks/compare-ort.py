#!/usr/bin/env python3
"""Compares the answers of qtensor with those of ONNX Runtime on the same files, and writes a csv.

For every output of every float model: runs it with our command and with ONNX Runtime; takes our int8 QDQ file (made with
`qtensor quantize` if it is not there) and runs it with our native engine, our reference engine and ONNX Runtime.

Columns:
  float_max_rel         max |ours - ORT| / max |ORT|, both float
  sqnr_db, top1         our int8 (native) against ORT float: signal to quantization noise, share of same top-1
  ref_max_abs, ref_differing
                        native against reference engine: largest difference, and share of values that are not equal
  ort_max_abs, ort_sqnr_db, ort_equal
                        native against ORT on the same QDQ file: largest difference, SQNR, share of equal values
  ort_int8_sqnr_db      ORT on our QDQ file against ORT's float: what the file itself costs
  ort_own_sqnr_db       ORT on the QDQ file of its own tool against ORT's float: what the peer's quantization costs

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/compare-ort.py --csv compare.csv [MODEL ...]
"""

import argparse
import csv
import json
import pathlib
import sys
import tempfile

import numpy as np

import peer_lib

HEADER = [
    "model", "output", "float_max_rel", "sqnr_db", "top1", "ref_max_abs", "ref_differing", "ort_max_abs",
    "ort_sqnr_db", "ort_equal", "ort_int8_sqnr_db",
    "ort_own_sqnr_db",
]  # fmt: skip


def max_abs(a, b):
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())


def our_run(arguments, path, data, engine, folder):
    out = folder / f"{path.stem}-{engine}.safetensors"
    options = ("--data", data, "-o", out, "--threads", arguments.threads, "--engine", engine)
    peer_lib.command(arguments.qtensor, "run", path, *options)
    return peer_lib.read_safetensors(out)


def compare(arguments, model, data, samples, folder):
    """One row for each output; what our command cannot do stays empty and is said on standard error."""
    wants = peer_lib.ort_run(model, samples, arguments.threads)
    rows = {name: dict.fromkeys(HEADER) | {"model": model.stem, "output": name} for name in wants}
    try:
        owns = peer_lib.ort_run(peer_lib.ort_quantized(arguments, model), samples, arguments.threads)
        for name, row in rows.items():
            row["ort_own_sqnr_db"] = f"{peer_lib.sqnr_db(wants[name], owns[name]):.2f}"
    except Exception as error:  # its tool writes files for some models that its runtime refuses
        print(f"{model.stem}: ONNX Runtime's own int8 file: {str(error).splitlines()[0]}", file=sys.stderr)
    try:
        floats = our_run(arguments, model, data, "native", folder)
        for name, row in rows.items():
            row["float_max_rel"] = f"{max_abs(floats[name], wants[name]) / np.abs(wants[name]).max():.2e}"
    except RuntimeError as error:
        print(f"{model.stem}: float: {error}", file=sys.stderr)
    try:
        quantized = peer_lib.our_quantized(arguments, model)
        peers = peer_lib.ort_run(quantized, samples, arguments.threads)
        natives = our_run(arguments, quantized, data, "native", folder)
        references = our_run(arguments, quantized, data, "reference", folder)
        for name, row in rows.items():
            want, peer, native, reference = wants[name], peers[name], natives[name], references[name]
            row["ort_int8_sqnr_db"] = f"{peer_lib.sqnr_db(want, peer):.2f}"
            row["sqnr_db"] = f"{peer_lib.sqnr_db(want, native):.2f}"
            row["top1"] = f"{(want.argmax(axis=1) == native.argmax(axis=1)).mean():.4f}" if want.ndim == 2 else None
            row["ort_max_abs"] = f"{max_abs(native, peer):.3g}"
            row["ort_sqnr_db"] = f"{peer_lib.sqnr_db(peer, native):.2f}"
            row["ort_equal"] = f"{(native == peer).mean():.4f}"
            row["ref_max_abs"] = f"{max_abs(native, reference):.3g}"
            row["ref_differing"] = f"{(native != reference).mean():.4f}"
    except RuntimeError as error:
        print(f"{model.stem}: int8: {error}", file=sys.stderr)
    return [list(row.values()) for row in rows.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peer_lib.add_common_arguments(parser)
    parser.add_argument("--outputs", type=pathlib.Path, help="folder that keeps our outputs as .safetensors (a temporary one)")
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
            rows.extend(compare(arguments, model, data, samples, folder))
    peer_lib.print_table(HEADER, rows)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])


if __name__ == "__main__":
    main()
