# SPDX-License-Identifier: Apache-2.0
"""What tests of engines share: the digits, and what one process makes of them with the package alone."""

import os
import pathlib
import sys
import tempfile
import time
import unittest

import numpy as np

import qtensor as qt
from qtensor._callbacks import config_of

ROOT = pathlib.Path(__file__).resolve().parents[4]
DIGITS = ROOT / "examples" / "digits"
SAMPLES = np.load(DIGITS / "calibration.npy")[:24]
IMAGES, LABELS = np.load(DIGITS / "test_images.npy"), np.load(DIGITS / "test_labels.npy")
SIDE_BY_SIDE = ["minmax", "max", "mse"]
IN_TURN = ["moving_average", "histogram", "percentile", "entropy", "nvidia_percentile", "nvidia_entropy", "nvidia_mse"]


def missing(package):
    """Ends a test with the code that says that it was skipped."""
    print(f"skipped: {package} is missing here (tests/distributed/make-venv)")
    sys.exit(77)


def digits():
    return qt.Model.load(DIGITS / "digits.onnx")


def observer(kind):
    return {"*": {"observer": kind}}


def file_of(prepared):
    """The bytes of its calibration file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calibration.qcal")
        prepared.save_calibration(path)
        return pathlib.Path(path).read_bytes()


def of_one_process(model, config, samples=SAMPLES):
    """What Model.calibrate alone gives, sample by sample."""
    prepared = model.prepare(config_of(config))
    for i in range(len(samples)):
        prepared.calibrate(samples[i : i + 1])
    return file_of(prepared)


def pairs(parts):
    """Partitions of images with their labels."""
    return [list(zip(x, y)) for x, y in zip(np.array_split(IMAGES, parts), np.array_split(LABELS, parts))]


class Slow:
    """A partition that takes its time, so that a worker can be killed while it has it."""

    def __init__(self, rows, seconds):
        self.rows, self.seconds = rows, seconds

    def __iter__(self):
        for row in self.rows:
            time.sleep(self.seconds)
            yield row


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = digits()
        cls.int8 = cls.model.quantize(SAMPLES, attrs={"plain": True})
        cls.scores = qt.Session(cls.int8)(IMAGES)
        reference = qt.Session(cls.model)(IMAGES)
        cls.correct = int((cls.scores.argmax(1) == LABELS).sum())
        cls.agreement = float((cls.scores.argmax(1) == reference.argmax(1)).mean())
        a, b = reference.astype(np.float64), cls.scores.astype(np.float64)
        cls.sqnr = 10 * np.log10((a * a).sum() / ((a - b) ** 2).sum())

    def refused(self, kind, message, call, *arguments, **named):
        with self.assertRaisesRegex(kind, message):
            call(*arguments, **named)

    def evaluated(self, result):
        """That it says what NumPy says of the outputs."""
        self.assertEqual((result["samples"], result["correct"]), (len(IMAGES), self.correct))
        self.assertEqual(result["top1"], self.correct / len(IMAGES))
        self.assertEqual(result["top1_agreement"], self.agreement)
        self.assertAlmostEqual(result["outputs"][0]["sqnr_db"], self.sqnr, places=9)
