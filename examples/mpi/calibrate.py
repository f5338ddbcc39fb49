# SPDX-License-Identifier: Apache-2.0
"""Calibrates in several processes with mpi4py, each with its part of the samples, and evaluates what comes of that:

    mpirun -np 4 python3 calibrate.py net.onnx calibration.npy int8.onnx test.npy labels.npy

The file is the same for any number of processes, to the byte."""

import sys

from mpi4py import MPI

import qtensor as qt
from qtensor import distributed
from qtensor.distributed import data

network, samples, output, images, labels = sys.argv[1:]
world = MPI.COMM_WORLD

model = qt.Model.load(network)
prepared = distributed.calibrate(model, "onnx", data.npy(samples, rows=25), engine=world)  # in every rank the same
int8 = prepared.convert()
found = distributed.evaluate(int8, data.npy(images, labels, rows=60), reference=model, engine=world)
if world.Get_rank() == 0:
    int8.save(output)
    print(f"{world.Get_size()} processes: top-1 {100 * found['top1']:.2f} % of {found['samples']}, "
          f"SQNR {found['outputs'][0]['sqnr_db']:.1f} dB")
