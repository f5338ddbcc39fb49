# SPDX-License-Identifier: Apache-2.0
"""One call in which rank 1 is killed the first time. Rank 0 says whether the result is that of one process.

usage: mpi_killed.py calibrate|predict|evaluate NETWORK FOLDER"""

import os
import sys

import numpy as np
from mpi4py import MPI
from shared import KilledOnce, file_of, networks, of_one_process, pairs

from qtensor import distributed

COMM = MPI.COMM_WORLD
PARTS = 4
what, name, folder = sys.argv[1:]
network = networks()[name]


def divided(parts):
    """The last one is that of rank 1 where there are two."""
    return [*parts[:-1], KilledOnce(list(parts[-1]), os.path.join(folder, "killed"))]


def calibrated():
    prepared = distributed.calibrate(network.model, "onnx", divided(np.array_split(network.samples, PARTS)), engine=COMM,
                                     checkpoint=os.path.join(folder, "checkpoint"))
    return file_of(prepared) == of_one_process(network.model, "onnx", network.samples)


def predicted():
    found = distributed.predict(network.int8, divided(np.array_split(network.images, PARTS)), engine=COMM)
    return COMM.Get_rank() > 0 or np.concatenate(found).tobytes() == network.scores.tobytes()


def evaluated():
    parts = pairs(PARTS, network.images, network.labels)
    found = distributed.evaluate(network.int8, divided(parts), reference=network.model, engine=COMM)
    return found == distributed.evaluate(network.int8, parts, reference=network.model)


equal = {"calibrate": calibrated, "predict": predicted, "evaluate": evaluated}[what]()
if COMM.allreduce(equal, MPI.LAND) and COMM.Get_rank() == 0:
    print("equal")
