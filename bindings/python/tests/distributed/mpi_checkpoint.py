# SPDX-License-Identifier: Apache-2.0
"""A slow calibration with a checkpoint. Usage: mpi_checkpoint.py FOLDER. Rank 1 says its process, so that it can be killed; rank 0 says
how many partitions were computed, and whether the result is that of one process."""

import os
import sys

import numpy as np
from mpi4py import MPI
from shared import SAMPLES, Slow, digits, file_of, of_one_process

from qtensor import distributed

COMM = MPI.COMM_WORLD
computed = []


class Counted(Slow):
    def __iter__(self):
        computed.append(1)
        return super().__iter__()


if COMM.Get_rank() == 1:
    print("pid", os.getpid(), flush=True)
parts = [Counted(part, 0.1) for part in np.array_split(SAMPLES, 8)]
prepared = distributed.calibrate(digits(), "onnx", parts, engine=COMM, checkpoint=sys.argv[1])
total = COMM.allreduce(len(computed))
if COMM.Get_rank() == 0:
    print("equal" if file_of(prepared) == of_one_process(digits(), "onnx") else "different", f"{total} computed", sep=", ")
