#!/usr/bin/env python3
"""Checks that int8 networks give the same bits however they are run, and writes a csv.

Every network of compare-ort.py is run on five samples with every instruction set that this CPU has, on one and two
threads, one by one and as one batch of five. A row says how many of those runs there were and how many different
outputs came out of them: 1 is right, anything else ends the script with exit code 1.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/identical.py --csv identical.csv [MODEL ...]
"""

import argparse
import csv
import hashlib
import itertools
import pathlib
import sys
import tempfile

import numpy as np

import peer_lib

ISAS = ("amx", "avx512vnni", "avx512", "avxvnni", "avx2", "i8mm", "dotprod", "neon", "scalar")
HEADER = ["model", "instruction_sets", "runs", "different_outputs"]


def digest(arguments, model, data, folder, isa, threads, batch):
    out = folder / "out.safetensors"
    options = ("--data", data, "-o", out, "--isa", isa, "--threads", threads, "--batch", batch)
    peer_lib.command(arguments.qtensor, "run", model, *options)
    return hashlib.sha256(out.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peer_lib.add_common_arguments(parser)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        data = folder / "samples.npy"
        np.save(data, np.load(peer_lib.samples_path(arguments))[:5])
        for model in peer_lib.model_paths(arguments):
            quantized = peer_lib.our_quantized(arguments, model)
            digests, isas = [], set()
            for isa, threads, batch in itertools.product(ISAS, (1, 2), (1, 5)):
                try:
                    digests.append(digest(arguments, quantized, data, folder, isa, threads, batch))
                    isas.add(isa)
                except RuntimeError as error:
                    print(error, file=sys.stderr)  # more than this CPU has
            rows.append([model.stem, " ".join(i for i in ISAS if i in isas), len(digests), len(set(digests))])
    peer_lib.print_table(HEADER, rows)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    sys.exit(any(row[-1] != 1 for row in rows))


if __name__ == "__main__":
    main()
