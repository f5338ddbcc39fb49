# SPDX-License-Identifier: Apache-2.0
"""What every rank of test_mpi.py runs: each compares what it gets with what one process gives."""

import sys
import unittest

import numpy as np
from mpi4py import MPI
from shared import IMAGES, SAMPLES, Case, file_of, networks, observer, of_one_process, pairs

import qtensor as qt
from qtensor import distributed

COMM = MPI.COMM_WORLD
RANK = COMM.Get_rank()


class Ranks(Case):
    def test_calibration(self):
        for kind in "minmax", "mse", "histogram", "moving_average":
            want = of_one_process(self.model, observer(kind))
            for parts in 1, 2, 3, 7:
                got = distributed.calibrate(self.model, observer(kind), np.array_split(SAMPLES, parts), engine=COMM)
                self.assertEqual(file_of(got), want)

    def test_networks(self):
        for network in networks().values():
            self.as_in_one_process(network, COMM, driver=RANK == 0)

    def test_prediction(self):
        got = distributed.predict(self.int8, np.array_split(IMAGES, 5), engine=COMM)
        if RANK:
            self.assertIsNone(got)
        else:
            np.testing.assert_array_equal(np.concatenate(got), self.scores)

    def test_evaluation(self):
        found = distributed.evaluate(self.int8, pairs(5), reference=self.model, engine=COMM)
        self.evaluated(found)
        self.assertEqual(found, distributed.evaluate(self.int8, pairs(1), reference=self.model))

    def test_every_rank_raises_what_one_raises(self):
        for kind in "mse", "histogram":
            for bad in range(3):
                parts = [SAMPLES] * 3
                parts[bad] = np.full((1, 1, 8, 8), np.nan, np.float32)
                self.refused(qt.InvalidError, f'^partition {bad}: calibrate: input "image" has nan', distributed.calibrate, self.model,
                             observer(kind), parts, engine=COMM)
        self.refused(qt.CanceledError, "was canceled after 2 of 9" if RANK == 0 else "rank 0 has ended the work", distributed.calibrate,
                     self.model, "onnx", np.array_split(SAMPLES, 9), engine=COMM, progress=lambda stage, done, total: done < 2)
        self.test_evaluation()  # nothing of that is left


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    sys.stdout.flush()
    if not result.wasSuccessful():
        COMM.Abort(1)
