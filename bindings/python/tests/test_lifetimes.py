# SPDX-License-Identifier: Apache-2.0
"""Memory stays flat, whatever is made, thrown away, or fails."""

import gc
import pathlib
import types
import unittest

import numpy as np

import qtensor as qt

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "digits"


def resident():
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Flat(unittest.TestCase):
    def flat(self, count, call):
        for _ in range(count // 10):
            call()
        before = resident()
        for _ in range(count):
            call()
        grown = resident() - before
        self.assertLess(grown, 1 << 20, f"{grown} bytes after {count} calls")

    def test_tensors(self):
        a = np.ones((4, 4), np.float32)
        q = qt.Quantizer.per_tensor("int8", 0.1, 0)

        def call():
            t = qt.as_tensor(a)
            t[1:].quantize(q).int_repr().numpy()
            t.quantizer, t.shape, memoryview(t), t.__dlpack__()

        self.flat(100_000, call)

    def test_failing_calls(self):
        a = np.ones((4, 4), np.float32)

        def call():
            for bad in (lambda: qt.as_tensor(a).reshape([5]), lambda: qt.Op.relu("x"), lambda: qt.Model.load("nowhere"),
                        lambda: qt.Observer("minmax", {"bins": object()}), lambda: qt.Tensor.create("int8", [1, "x"])):
                try:
                    bad()
                except (ValueError, TypeError, OSError):
                    pass

        self.flat(10_000, call)

    def test_arrays_of_other_libraries(self):
        a = np.ones((4, 4), np.float32)
        both = types.SimpleNamespace(__dlpack__=a.__dlpack__, __dlpack_device__=a.__dlpack_device__)
        bad = types.SimpleNamespace(__dlpack__=a[::-1].__dlpack__, __dlpack_device__=a.__dlpack_device__)

        def call():
            for given in both, [[1, 2.5], [3, 4]], a[::-1], a.astype(">f4"):
                qt.Op.relu(given)
            for given in bad, {"x": a}, [[1], [2, 3]], np.ones(2, np.uint32):
                try:
                    qt.Op.relu(given)
                except TypeError:
                    pass

        self.flat(5_000, call)

    def test_runs(self):
        session = qt.Session(qt.Model.load(DIGITS / "digits.onnx"))
        image = np.load(DIGITS / "calibration.npy")[:1]

        def call():
            for inputs in image, {"image": image}, [image], {"image": image.astype(float)}, qt.as_tensor(image):
                session(inputs)
            for bad in {"images": image}, {"image": image[0]}, image.astype(complex):
                try:
                    session(bad)
                except (ValueError, TypeError):
                    pass

        self.flat(2_000, call)

    def test_data_in_every_form(self):
        model = qt.Model.load(DIGITS / "digits.onnx")
        images = np.load(DIGITS / "calibration.npy")[:4]

        def call():
            qt.Session(model.quantize((image, 3) for image in images))(images.astype(float))
            for bad in [(images, images)], (image[0] for image in images):
                try:
                    model.quantize(bad)
                except ValueError:
                    pass

        self.flat(100, call)

    def test_models_and_callbacks(self):
        model = qt.Model.load(DIGITS / "digits.onnx")
        images = np.load(DIGITS / "calibration.npy")[:4]

        def call():
            qt.Session(model.quantize(images, progress=lambda *_: None))(images)
            try:
                model.quantize(images, progress=lambda *_: 1 / 0)
            except ZeroDivisionError:
                pass

        self.flat(100, call)


if __name__ == "__main__":
    unittest.main()
