#!/usr/bin/env python3
"""Calibrating and converting compared with ONNX Runtime's quantize_static: time, CPU time and memory of whole processes.

usage: benchmarks/calibration.py [--samples 128] [--rounds 3] [--csv FILE]

All read the same random images from one .npy file and take turns, a process for each figure: our `quantize`, which also says how near the result
comes and measures its speed; our `calibrate` alone; and quantize_static. Ratios are of wall time, median of
the rounds. At the end our command calibrates with 32 and with 2,048 samples, for the memory that it takes.
"""

import argparse
import csv
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import record
from peer_lib import cache_folder, print_table, take_turns

# Their method, and our observer of the same meaning.
METHODS = {"MinMax": "minmax", "Entropy": "entropy", "Percentile": "percentile"}
COLUMNS = ["who", "method", "samples", "seconds", "cpu_seconds", "peak_mb", "ratio", "rounds", "onnxruntime", "cpu"]
MEMORY_SAMPLES = (32, 2048)


class Rows:
    """Calibration data of quantize_static: rows of a file that is not read whole."""

    def __init__(self, path, count, name):
        samples = np.load(path, mmap_mode="r")
        self.feeds = ({name: np.array(samples[i : i + 1])} for i in range(count))

    def get_next(self):
        return next(self.feeds, None)


def quantize_static(method, model, data, count, output):
    """What the peer's process does."""
    import onnx
    from onnxruntime import quantization

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    name = onnx.load(model).graph.input[0].name
    quantization.quantize_static(
        model,
        output,
        Rows(data, count, name),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
        calibrate_method=quantization.CalibrationMethod[method],
    )


def peak_kilobytes(pid):
    """Of what runs now; the peak that wait4 gives is also that of the process which started it."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def measured(*command):
    """Wall seconds, CPU seconds and peak megabytes of a process."""
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        peak = max(peak, peak_kilobytes(process.pid))
        time.sleep(0.01)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(process.args)}: exit code {process.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, peak / 1024


def make_samples(folder, count):
    path = folder / f"{count}.npy"
    samples = np.lib.format.open_memmap(path, "w+", np.float32, (count, 3, 224, 224))
    generator = np.random.default_rng(1)
    for i in range(count):
        samples[i] = generator.standard_normal(samples.shape[1:], np.float32)
    return path


def medians(runs):
    return [statistics.median(column) for column in zip(*runs)]


def compared(arguments, folder):
    """A row for each engine and method."""
    data = make_samples(folder, arguments.samples)
    for method in arguments.methods:
        observer = METHODS[method]
        ours = (arguments.qtensor, "quantize", arguments.model, "-o", folder / "ours.onnx", "--data", data, "--observer", observer, "--plain")
        theirs = (sys.executable, __file__, "--peer", method, "--model", arguments.model, "--data", data,
                  "--samples", arguments.samples, "--output", folder / "theirs.onnx")  # fmt: skip
        alone = (arguments.qtensor, "calibrate", arguments.model, "-o", folder / "ours.qcal", "--data", data, "--observer", observer)
        commands = {"qtensor": ours, "qtensor calibrate": alone, "onnxruntime": theirs}
        taken = take_turns({who: lambda words=words: measured(*words) for who, words in commands.items()}, arguments.rounds)
        for who in ("qtensor", "qtensor calibrate"):
            ratios = [theirs[0] / ours[0] for ours, theirs in zip(taken[who], taken["onnxruntime"])]
            yield [who, observer, arguments.samples, *medians(taken[who]), statistics.median(ratios)]
        yield ["onnxruntime", method, arguments.samples, *medians(taken["onnxruntime"]), None]


def memory(arguments, folder):
    for count in MEMORY_SAMPLES:
        data = make_samples(folder, count)
        for observer in (METHODS[method] for method in arguments.methods):
            figures = measured(arguments.qtensor, "calibrate", arguments.model, "-o", folder / "ours.qcal", "--data", data,
                               "--observer", observer)  # fmt: skip
            yield ["qtensor calibrate", observer, count, *figures, None]
        data.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qtensor", default="build/release/tools/qtensor", help="our command (%(default)s)")
    parser.add_argument("--model", default=cache_folder() / "models/mobilenet_v2.onnx", help="%(default)s")
    parser.add_argument("--samples", type=int, default=128, help="images (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (%(default)s)")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the table to")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="of ONNX Runtime (all)")
    for hidden in ("--peer", "--data", "--output"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return quantize_static(arguments.peer, arguments.model, arguments.data, arguments.samples, arguments.output)

    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        rows = [*compared(arguments, pathlib.Path(folder)), *memory(arguments, pathlib.Path(folder))]
    for row in rows:
        row[3:] = [None if value is None else f"{value:.2f}" for value in row[3:6]] + [row[6] and f"{row[6]:.2f}"]
    print_table(COLUMNS[:7], rows)
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows([*row, arguments.rounds, onnxruntime.__version__, record.cpu_name()] for row in rows)


if __name__ == "__main__":
    main()
