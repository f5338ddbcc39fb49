# SPDX-License-Identifier: Apache-2.0
"""Operators that programs register. The networks, and what they compute, are those of tests/golden/make_custom.py."""

import gc
import pathlib
import threading
import unittest
import weakref

import numpy as np

import qtensor as qt

CUSTOM = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "custom"
DOMAIN = "com.example"


def like_first(inputs, attrs):
    return [inputs[0][:2]]


def swish(inputs, attrs):
    return inputs[0] / (1 + np.exp(-np.float32(attrs["alpha"]) * inputs[0]))


def infer_halves(inputs, attrs):
    rows, columns = inputs[0].shape
    return [("float32", (rows, columns // 2))] * 2


def halves(inputs, attrs):
    low, high = np.split(inputs[0], 2, axis=1)
    return [low * np.float32(attrs["factors"][0]) + inputs[1], high * np.float32(attrs["factors"][1]) + inputs[1]]


class Operators(unittest.TestCase):
    def register(self, name, infer, run, **options):
        qt.register_op(DOMAIN, name, infer, run, **options)
        self.addCleanup(qt.unregister_op, DOMAIN, name, options.get("since_version", 1))

    def layers(self):
        self.register("Swish", like_first, swish)
        self.register("Halves", infer_halves, halves)
        return qt.Model.load(CUSTOM / "layers.onnx"), np.load(CUSTOM / "layers_x.npy"), np.load(CUSTOM / "layers_y.npy")

    def test_both_engines(self):
        model, x, want = self.layers()
        for engine in "native", "reference":
            np.testing.assert_allclose(qt.Session(model, {"engine": engine})(x), want, atol=2e-5)

    def test_files_and_quantization(self):
        model, x, want = self.layers()
        again = qt.Model.load_bytes(model.save_bytes())
        np.testing.assert_array_equal(qt.Session(again)(x), qt.Session(model)(x))
        int8 = model.quantize(x)
        self.assertEqual({node["op"]: node["dtype"] for node in int8.inspect()["nodes"]}[f"{DOMAIN}::Swish"], "float32")
        self.assertLess(np.abs(qt.Session(int8)(x) - want).max(), 0.05 * np.abs(want).max())

    def test_a_quantized_run(self):
        seen = []

        def in_integers(inputs, attrs, quantizers):
            seen.append(inputs[0].dtype)
            real = qt.as_tensor(swish([inputs[0].dequantize().numpy()], attrs))
            return real.quantize(quantizers[0])

        self.register("Swish", like_first, swish, run_quantized=in_integers)
        model, x = qt.Model.load(CUSTOM / "swish.onnx"), np.load(CUSTOM / "swish_x.npy")
        want = np.load(CUSTOM / "swish_y.npy")
        np.testing.assert_allclose(qt.Session(model)(x), want, atol=2e-5)
        int8 = model.quantize(x)
        seen.clear()
        y = qt.Session(int8)(x)
        self.assertEqual(seen, [qt.uint8])
        np.testing.assert_array_equal(y, qt.Session(int8, {"engine": "reference"})(x))
        self.assertLess(np.abs(y - want).max(), 0.05 * np.abs(want).max())

    def test_shapes_that_follow_from_values(self):
        def infer(inputs, attrs):
            count = inputs[1].value
            return None if count is None else [(inputs[0].dtype, (int(count[0]), inputs[0].shape[1]))]

        self.register("Take", infer, lambda inputs, attrs: inputs[0][: int(inputs[1][0])])
        session = qt.Session(qt.Model.load(CUSTOM / "shapes.onnx"))
        y = session(np.load(CUSTOM / "shapes_x.npy"), np.array([2]))
        np.testing.assert_array_equal(y, np.load(CUSTOM / "shapes_y.npy"))

    def test_what_functions_raise(self):
        def run(inputs, attrs):
            raise KeyError("no such thing")

        self.register("Broken", like_first, run)
        x = np.ones(2, np.float32)
        with self.assertRaisesRegex(qt.InvalidError, "com.example::Broken: KeyError: 'no such thing'"):
            qt.Op.run(f"{DOMAIN}::Broken", [x])
        self.register("Wide", like_first, lambda inputs, attrs: np.ones(3, np.float32))
        with self.assertRaisesRegex(qt.ShapeError, "com.example::Wide: result 0 is 3, not 2 as infer said"):
            qt.Op.run(f"{DOMAIN}::Wide", [x])
        self.register("Many", like_first, lambda inputs, attrs: [x, x])
        with self.assertRaisesRegex(qt.ShapeError, "com.example::Many: result 0 is 2x2, not 2 as infer said"):
            qt.Op.run(f"{DOMAIN}::Many", [x])
        self.register("Minus", lambda inputs, attrs: [("float32", (-1,))], swish)
        with self.assertRaisesRegex(qt.ShapeError, r"com.example::Minus: .*-1"):
            qt.Op.run(f"{DOMAIN}::Minus", [x])
        self.register("Stop", like_first, lambda inputs, attrs: (_ for _ in ()).throw(KeyboardInterrupt))
        with self.assertRaisesRegex(qt.CanceledError, "KeyboardInterrupt"):
            qt.Op.run(f"{DOMAIN}::Stop", [x])

    def test_attributes(self):
        seen = {}
        self.register("Look", like_first, lambda inputs, attrs: seen.update(attrs) or inputs[0])
        attrs = {"i": 3, "f": 0.5, "s": "text", "is": [1, 2], "fs": [0.5, 1.5]}
        qt.Op.run(f"{DOMAIN}::Look", [np.ones(1, np.float32)], attrs)
        self.assertEqual(seen, {**attrs, "is": (1, 2), "fs": (0.5, 1.5)})

    def test_an_operator_lives_as_long_as_what_holds_it(self):
        def run(inputs, attrs):
            return swish(inputs, attrs)

        last = weakref.ref(run)
        qt.register_op(DOMAIN, "Swish", like_first, run)
        session = qt.Session(qt.Model.load(CUSTOM / "swish.onnx"))
        qt.unregister_op(DOMAIN, "Swish")
        del run
        x = np.load(CUSTOM / "swish_x.npy")
        np.testing.assert_allclose(session(x), np.load(CUSTOM / "swish_y.npy"), atol=2e-5)
        self.assertIsNotNone(last())
        with self.assertRaises(qt.UnsupportedError):
            qt.Model.load(CUSTOM / "swish.onnx")
        del session
        gc.collect()
        self.assertIsNone(last())

    def test_threads(self):
        self.register("Swish", like_first, swish)
        session = qt.Session(qt.Model.load(CUSTOM / "swish.onnx"))
        x, want, wrong = np.load(CUSTOM / "swish_x.npy"), np.load(CUSTOM / "swish_y.npy"), []

        def work():
            for _ in range(50):
                if not np.allclose(session(x), want, atol=2e-5):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_what_cannot_be_registered(self):
        with self.assertRaisesRegex(qt.InvalidError, "Relu is an operator that the library has"):
            qt.register_op("", "Relu", like_first, swish)
        self.register("Swish", like_first, swish)
        with self.assertRaisesRegex(qt.InvalidError, "registered already since version 1"):
            qt.register_op(DOMAIN, "Swish", like_first, swish)
        for what, functions in ("infer", (None, swish)), ("run", (like_first, 3)):
            with self.assertRaisesRegex(TypeError, f"{what} is of type '(NoneType|int)', not a function"):
                qt.register_op(DOMAIN, "Nothing", *functions)


if __name__ == "__main__":
    unittest.main()
