# SPDX-License-Identifier: Apache-2.0
"""Spark in local mode, whose Python workers are processes of their own: what one process gives, to the byte, also where a worker is
killed."""

import os
import shutil
import sys
import tempfile
import unittest

import numpy as np
from shared import IMAGES, LABELS, SAMPLES, Case, KilledOnce, Slow, file_of, missing, networks, observer, of_one_process, pairs

import qtensor as qt
from qtensor import distributed

try:
    import pyarrow  # noqa: F401
    from pyspark.sql import SparkSession
except ImportError as error:
    missing(f"Spark ({error})")
if not shutil.which("java"):
    missing("Java, on which Spark runs,")


class Spark(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        modules = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])
        os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", PYTHONPATH=modules)
        cls.spark = (SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
                     .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100").config("spark.ui.showConsoleProgress", "false").getOrCreate())
        cls.spark.sparkContext.setLogLevel("OFF")

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def frame(self, images, labels, parts):
        rows = [(image.reshape(-1).tolist(), int(label)) for image, label in zip(images, labels)]
        return self.spark.createDataFrame(rows, "image array<float>, label int").coalesce(parts)

    def calibrated(self, dataset, config, **named):
        return file_of(distributed.calibrate(self.model, config, dataset, **named))

    def test_calibration(self):
        frame = self.frame(SAMPLES, LABELS, 2)
        for kind in "mse", "histogram":
            want, said = of_one_process(self.model, observer(kind)), []
            rdd = self.spark.sparkContext.parallelize(list(SAMPLES), 4)
            self.assertEqual(self.calibrated(rdd, observer(kind), progress=lambda *told, said=said: said.append(told)), want)
            self.assertEqual(said[-1], ("calibrating", 4, 4))
            self.assertEqual(self.calibrated(np.array_split(SAMPLES, 3), observer(kind), engine=self.spark), want)
            self.assertEqual(self.calibrated(frame, observer(kind)), want)

    def test_networks(self):
        for name, network in networks().items():
            with self.subTest(name):
                self.as_in_one_process(network, self.spark)

    def test_networks_where_workers_are_killed(self):
        for name, network in networks().items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                marks = [os.path.join(folder, str(i)) for i in range(3)]
                left = iter(marks)
                self.as_in_one_process(network, self.spark, lambda partition: KilledOnce(partition, next(left)))
                self.assertEqual([os.path.exists(mark) for mark in marks], [True] * 3)

    def test_prediction(self):
        rdd = self.spark.sparkContext.parallelize(list(IMAGES), 4)
        np.testing.assert_array_equal(np.stack(distributed.predict(self.int8, rdd).collect()), self.scores)
        frame = self.frame(IMAGES, LABELS, 2)
        got = distributed.predict(self.int8, frame)
        self.assertEqual(got.columns, ["image", "label", "scores"])
        rows = got.collect()
        np.testing.assert_array_equal(np.array([row.scores for row in rows], np.float32), self.scores)
        self.assertEqual([row.label for row in rows], LABELS.tolist())
        parts = distributed.predict(self.int8, np.array_split(IMAGES, 3), engine=self.spark)
        np.testing.assert_array_equal(np.concatenate(parts), self.scores)

    def test_a_udf(self):
        from qtensor.distributed.spark import udf

        rows = self.frame(IMAGES, LABELS, 2).select(udf(self.int8)("image").alias("scores")).collect()
        np.testing.assert_array_equal(np.array([row.scores for row in rows], np.float32), self.scores)

    def test_evaluation(self):
        want = distributed.evaluate(self.int8, pairs(1), reference=self.model)
        for dataset in self.frame(IMAGES, LABELS, 3), self.spark.sparkContext.parallelize(list(zip(IMAGES, LABELS)), 5):
            found = distributed.evaluate(self.int8, dataset, reference=self.model)
            self.evaluated(found)
            self.assertEqual(found, want)

    def test_errors_and_cancellation(self):
        bad = [SAMPLES, np.full((1, 1, 8, 8), np.nan, np.float32)]
        self.refused(qt.InvalidError, '^partition 1: calibrate: input "image" has nan', self.calibrated, bad, "onnx", engine=self.spark)
        parts = [Slow(part, 0.05) for part in np.array_split(SAMPLES, 8)]
        self.refused(qt.CanceledError, "calibrating was canceled after", self.calibrated, parts, "onnx", engine=self.spark,
                     progress=lambda stage, done, total: done < 2)


if __name__ == "__main__":
    unittest.main()
