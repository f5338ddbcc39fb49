# SPDX-License-Identifier: Apache-2.0
"""What tests of engines share: the digits and a MobileNetV2, and what one process makes of them with the package alone."""

import functools
import os
import pathlib
import signal
import sys
import time
import unittest

import numpy as np

import qtensor as qt
from qtensor import distributed
from qtensor._callbacks import config_of
from qtensor.distributed.job import scratch

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT / "bindings/python/tests"))
import mobilenet  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
SAMPLES = np.load(DIGITS / "calibration.npy")[:24]
IMAGES, LABELS = np.load(DIGITS / "test_images.npy"), np.load(DIGITS / "test_labels.npy")
SIDE_BY_SIDE = ["minmax", "max", "mse"]
IN_TURN = ["moving_average", "histogram", "percentile", "entropy", "nvidia_percentile", "nvidia_entropy", "nvidia_mse"]
# Open MPI wants to be asked twice before it runs as root, and once where there are fewer cores than processes.
MPI_OPTIONS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


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
    with scratch() as folder:
        path = os.path.join(folder, "calibration.qcal")
        prepared.save_calibration(path)
        return pathlib.Path(path).read_bytes()


def of_one_process(model, config, samples=SAMPLES):
    """What Model.calibrate alone gives, sample by sample."""
    prepared = model.prepare(config_of(config))
    for i in range(len(samples)):
        prepared.calibrate(samples[i : i + 1])
    return file_of(prepared)


def pairs(parts, images=IMAGES, labels=LABELS):
    """Partitions of images with their labels."""
    return [list(zip(x, y)) for x, y in zip(np.array_split(images, parts), np.array_split(labels, parts))]


class Network:
    """A network with its data, and what one process makes of both."""

    def __init__(self, model, samples, images, labels):
        self.model, self.samples, self.images, self.labels = model, samples, images, labels
        self.int8 = model.quantize(samples, attrs={"plain": True})
        self.scores = qt.Session(self.int8)(images)
        self.reference = qt.Session(model)(images)

    def evaluated(self):
        """What NumPy says of the outputs."""
        best, reference = self.scores.argmax(1), self.reference.argmax(1)
        a, b = self.reference.astype(np.float64), self.scores.astype(np.float64)
        return {"samples": len(self.images), "correct": int((best == self.labels).sum()), "top1": float((best == self.labels).mean()),
                "top1_agreement": float((best == reference).mean()), "sqnr_db": 10 * np.log10((a * a).sum() / ((a - b) ** 2).sum())}


@functools.cache
def networks():
    digits_net = Network(digits(), SAMPLES, IMAGES, LABELS)
    images = mobilenet.images(24, 2)
    mobile = Network(qt.Model.load_bytes(mobilenet.build()[0]), mobilenet.images(12, 1), images, np.zeros(24, np.int64))
    mobile.labels = mobile.reference.argmax(1)
    mobile.labels[::3] += 1
    return {"digits": digits_net, "mobilenet_v2": mobile}


class Slow:
    """A partition that takes its time, so that a worker can be killed while it has it."""

    def __init__(self, rows, seconds):
        self.rows, self.seconds = rows, seconds

    def __iter__(self):
        for row in self.rows:
            time.sleep(self.seconds)
            yield row


class KilledOnce:
    """A partition that takes its process with it, the first time."""

    def __init__(self, rows, mark):
        self.rows, self.mark = rows, mark

    def __iter__(self):
        for at, row in enumerate(self.rows):
            if at == 2 and not os.path.exists(self.mark):
                with open(self.mark, "w", encoding="utf-8"):
                    pass
                os.kill(os.getpid(), signal.SIGKILL)
            yield row


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        of_digits = networks()["digits"]
        cls.model, cls.int8, cls.scores = of_digits.model, of_digits.int8, of_digits.scores

    def refused(self, kind, message, call, *arguments, **named):
        with self.assertRaisesRegex(kind, message):
            call(*arguments, **named)

    def evaluated(self, result, network=None):
        """That it says what NumPy says of the outputs."""
        want = (network or networks()["digits"]).evaluated()
        sqnr = want.pop("sqnr_db")
        self.assertEqual({key: result[key] for key in want}, want)
        self.assertAlmostEqual(result["outputs"][0]["sqnr_db"], sqnr, places=9)

    def as_in_one_process(self, network, engine, killing=lambda partition: partition, driver=True):
        """That calibration, prediction and evaluation on an engine give the bytes of one process. `killing` makes of a partition one
        that takes its worker with it; driver: whether this process gets what is predicted."""
        def divided(rows):
            first, *others = np.array_split(rows, 3)
            return [first, killing(list(others[0])), *others[1:]]

        prepared = distributed.calibrate(network.model, "onnx", divided(network.samples), engine=engine)
        self.assertEqual(file_of(prepared), of_one_process(network.model, "onnx", network.samples))
        self.assertEqual(prepared.convert().save_bytes(), network.int8.save_bytes())
        scores = distributed.predict(network.int8, divided(network.images), engine=engine)
        if driver:
            scores = np.concatenate(scores)
            self.assertEqual((scores.dtype, scores.shape, scores.tobytes()), (np.float32, network.scores.shape, network.scores.tobytes()))
        else:
            self.assertIsNone(scores)
        first, second, third = pairs(3, network.images, network.labels)
        found = distributed.evaluate(network.int8, [first, killing(second), third], reference=network.model, engine=engine)
        self.evaluated(found, network)
        self.assertEqual(found, distributed.evaluate(network.int8, pairs(1, network.images, network.labels), reference=network.model))
