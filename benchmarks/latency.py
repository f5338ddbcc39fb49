#!/usr/bin/env python3
"""Times qtensor and ONNX Runtime side by side, float and int8, and writes a csv with the ratios.

Four engines per model: qtensor and ONNX Runtime on the float file, qtensor on our int8 file (made with
`qtensor quantize` if it is not there), ONNX Runtime on the int8 file that its own tool makes from the same float file
(quantize_static: QDQ, uint8 activations, int8 weights per channel). They take turns over several rounds, so a slow
moment of the machine hits all of them; a figure is the median over the rounds of each round's median, a ratio the
median of the rounds' ratios. int8_vs_ort and fp32_vs_ort above 1 mean that qtensor is the faster one.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/latency.py --csv latency.csv [MODEL ...]
"""

import argparse
import csv
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import onnxruntime

import peer_lib

ENGINES = ("qtensor_fp32", "ort_fp32", "qtensor_int8", "ort_int8")
RATIOS = (
    ("int8_vs_ort", "ort_int8", "qtensor_int8"),
    ("fp32_vs_ort", "ort_fp32", "qtensor_fp32"),
    ("int8_vs_own_fp32", "qtensor_fp32", "qtensor_int8"),
    ("ort_int8_vs_ort_fp32", "ort_fp32", "ort_int8"),
)


class OrtTimer:
    """Runs batch 1 for a while and gives the median time of a run in milliseconds."""

    def __init__(self, path, arguments):
        self.session = peer_lib.ort_session(path, arguments.threads)
        name = self.session.get_inputs()[0].name
        self.feeds = {name: np.load(peer_lib.samples_path(arguments))[:1]}
        self.seconds = arguments.seconds

    def __call__(self):
        self.session.run(None, self.feeds)
        times = []
        end = time.perf_counter() + self.seconds
        while len(times) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            self.session.run(None, self.feeds)
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e3


class OurTimer:
    def __init__(self, path, arguments):
        self.qtensor = arguments.qtensor
        self.options = (path, "--threads", arguments.threads, "--batch", 1, "--seconds", arguments.seconds, "--json")

    def __call__(self):
        return json.loads(peer_lib.command(self.qtensor, "bench", *self.options))["median_ms"]


def make_timers(arguments, model):
    makers = {
        "qtensor_fp32": lambda: OurTimer(model, arguments),
        "ort_fp32": lambda: OrtTimer(model, arguments),
        "qtensor_int8": lambda: OurTimer(peer_lib.our_quantized(arguments, model), arguments),
        "ort_int8": lambda: OrtTimer(peer_lib.ort_quantized(arguments, model), arguments),
    }
    timers = {}
    for engine in arguments.engines:
        try:
            timers[engine] = makers[engine]()
        except RuntimeError as error:
            print(f"{model.stem}: {engine}: {error}", file=sys.stderr)
    return timers


def measure(arguments, model):
    """Median times by engine, and median ratios."""
    timers = make_timers(arguments, model)
    rounds = {engine: [] for engine in timers}
    for turn in range(arguments.rounds):
        # Every other round goes backwards: no engine always runs after the same neighbour.
        for engine in sorted(timers, key=ENGINES.index, reverse=turn % 2 == 1):
            try:
                rounds[engine].append(timers[engine]())
            except RuntimeError as error:
                print(f"{model.stem}: {engine}: {error}", file=sys.stderr)
                del timers[engine], rounds[engine]
    times = {engine: statistics.median(values) for engine, values in rounds.items()}
    ratios = {
        name: statistics.median(a / b for a, b in zip(rounds[above], rounds[below]))
        for name, above, below in RATIOS
        if above in rounds and below in rounds
    }
    return times, ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peer_lib.add_common_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn (%(default)s)")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    arguments = parser.parse_args()

    cpu = peer_lib.cpu_name()
    header = ["model", *(f"{engine}_ms" for engine in ENGINES), *(name for name, _, _ in RATIOS)]
    rows = []
    print(f"{cpu}; {arguments.threads} thread(s); onnxruntime {onnxruntime.__version__}", flush=True)
    for model in peer_lib.model_paths(arguments):
        times, ratios = measure(arguments, model)
        row = [f"{times[engine]:.3f}" if engine in times else None for engine in ENGINES]
        row += [f"{ratios[name]:.2f}" if name in ratios else None for name, _, _ in RATIOS]
        rows.append([model.stem, *row])
        print(f"{model.stem}: {' '.join(f'{engine} {value:.3f} ms' for engine, value in times.items())}", flush=True)
    peer_lib.print_table(header, rows)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*header, "threads", "rounds", "onnxruntime", "cpu"])
            tail = [arguments.threads, arguments.rounds, onnxruntime.__version__, cpu]
            writer.writerows([*row, *tail] for row in rows)


if __name__ == "__main__":
    main()
