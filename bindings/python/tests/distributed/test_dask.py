# SPDX-License-Identifier: Apache-2.0
"""Dask: two worker processes give what one process gives, to the byte, also where one of them is killed."""

import os
import signal
import tempfile
import unittest
import warnings

import numpy as np
from shared import IMAGES, LABELS, SAMPLES, Case, KilledOnce, Slow, file_of, missing, networks, observer, of_one_process, pairs

import qtensor as qt
from qtensor import distributed

try:
    import dask
    import dask.array as da
    import dask.bag as db
    from distributed import Client, LocalCluster
except ImportError as error:
    missing(f"Dask ({error})")
try:
    import dask.dataframe as dd
    import pandas as pd
except ImportError:
    dd = None


def process_of(index, outputs):
    return os.getpid()


def kept():
    """The jobs for which a worker has something, and what."""
    from qtensor.distributed import job

    return {key: sorted(things) for key, things in job._kept.items()}


class Dask(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"})  # on a busy machine another one takes long to begin
        cls.cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        cls.client = Client(cls.cluster)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()

    def calibrated(self, dataset, config, **named):
        return file_of(distributed.calibrate(self.model, config, dataset, **named))

    def test_calibration(self):
        for kind in "minmax", "mse", "histogram", "moving_average":
            config = observer(kind)
            want = of_one_process(self.model, config)
            for dataset in [da.from_array(SAMPLES, chunks=(7, 1, 4, 8)), db.from_sequence(list(SAMPLES), npartitions=5),
                            [dask.delayed(SAMPLES[:10]), dask.delayed(SAMPLES[10:])]]:
                self.assertEqual(self.calibrated(dataset, config), want)
            for parts in 2, 5:
                self.assertEqual(self.calibrated(np.array_split(SAMPLES, parts), config, engine=self.client), want)

    def test_networks(self):
        for name, network in networks().items():
            with self.subTest(name), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self.as_in_one_process(network, self.client)
                self.assertFalse([str(one.message) for one in said if "large graph" in str(one.message)])
        model, samples = networks()["mobilenet_v2"].model, networks()["mobilenet_v2"].samples
        got = distributed.calibrate(model, "fbgemm", np.array_split(samples, 4), engine=self.client)
        self.assertEqual(file_of(got), of_one_process(model, "fbgemm", samples))

    def test_networks_where_workers_are_killed(self):
        for name, network in networks().items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                marks = [os.path.join(folder, str(i)) for i in range(3)]
                left = iter(marks)
                self.as_in_one_process(network, self.client, lambda partition: KilledOnce(partition, next(left)))
                self.assertEqual([os.path.exists(mark) for mark in marks], [True] * 3)
        self.client.wait_for_workers(2)

    def test_a_worker_that_is_killed_changes_nothing(self):
        for kind in "mse", "histogram":
            killed = []

            def kill(stage, done, total, killed=killed):
                if done == 2 and not killed:
                    killed.append(next(iter(self.client.run(os.getpid).values())))
                    os.kill(killed[0], signal.SIGKILL)

            parts = [Slow(part, 0.02) for part in np.array_split(SAMPLES, 8)]
            self.assertEqual(self.calibrated(parts, observer(kind), engine=self.client, progress=kill),
                             of_one_process(self.model, observer(kind)))
            self.assertEqual(len(killed), 1)
        self.client.wait_for_workers(2)

    def test_prediction(self):
        got = distributed.predict(self.int8, da.from_array(IMAGES, chunks=(100, 1, 8, 8)))
        self.assertEqual((got.shape, got.dtype, got.chunks[0]), ((540, 10), np.float32, (100,) * 5 + (40,)))
        np.testing.assert_array_equal(got.compute(), self.scores)
        bag = distributed.predict(self.int8, db.from_sequence(list(IMAGES), npartitions=4))
        np.testing.assert_array_equal(np.stack(bag.compute()), self.scores)
        parts = distributed.predict(self.int8, np.array_split(IMAGES, 4), engine="dask")
        np.testing.assert_array_equal(np.concatenate(parts), self.scores)

    def test_evaluation(self):
        found = distributed.evaluate(self.int8, pairs(5), reference=self.model, engine=self.client)
        self.evaluated(found)
        self.assertEqual(found, distributed.evaluate(self.int8, pairs(1), reference=self.model))

    @unittest.skipUnless(dd, "pandas is missing here")
    def test_dataframes(self):
        names = [f"pixel{i}" for i in range(64)]
        frame = pd.DataFrame(dict(zip(names, IMAGES.reshape(540, 64).T)), copy=True)
        frame["digit"], frame["key"] = LABELS, 0  # an attribute of other things in Dask
        columns = {"image": names, "label": "digit"}
        found = distributed.evaluate(self.int8, dd.from_pandas(frame, npartitions=3), reference=self.model, columns=columns)
        self.evaluated(found)
        self.refused(ValueError, 'no "pixels" for the input "image"', distributed.evaluate, self.int8,
                     dd.from_pandas(frame, npartitions=3), columns={"image": "pixels"})

    def test_every_worker_has_a_part_of_few_partitions(self):
        for _ in range(5):
            found = distributed.predict(self.int8, np.array_split(IMAGES, 2), engine=self.client, sink=process_of)
            self.assertEqual(set(found), set(self.client.run(os.getpid).values()))

    def test_models_stay_with_workers(self):
        model = self.model.quantize(SAMPLES[:7], attrs={"plain": True})  # which no other test uses
        for _ in range(3):
            distributed.predict(model, np.array_split(IMAGES, 6), engine=self.client)
        key = distributed.Job.of([model]).key
        found = [things[key] for things in self.client.run(kept).values() if key in things]
        self.assertTrue(found)
        self.assertEqual({tuple(things) for things in found}, {("session 0",)})

    def test_errors_and_cancellation(self):
        bad = np.full((1, 1, 8, 8), np.nan, np.float32)
        self.refused(qt.InvalidError, '^partition 1: calibrate: input "image" has nan', self.calibrated, [SAMPLES, bad], "onnx",
                     engine=self.client)
        parts = [Slow(part, 0.02) for part in np.array_split(SAMPLES, 8)]
        self.refused(qt.CanceledError, "calibrating was canceled after 3 of 8 partitions", self.calibrated, parts, "onnx",
                     engine=self.client, progress=lambda stage, done, total: done < 3)

    def test_without_a_cluster(self):
        with dask.config.set(scheduler="threads"):
            self.client.close()
            try:
                got = self.calibrated(da.from_array(SAMPLES, chunks=(7, 1, 8, 8)), "onnx")
                self.assertEqual(got, of_one_process(self.model, "onnx"))
            finally:
                type(self).client = Client(self.cluster)


if __name__ == "__main__":
    unittest.main()
