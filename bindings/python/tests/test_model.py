# SPDX-License-Identifier: Apache-2.0
"""From a float model to an int8 one: data in every form, callbacks, sessions, training, threads."""

import contextlib
import copy
import io
import json
import pathlib
import pickle
import tempfile
import threading
import time
import types
import unittest

import numpy as np

import qtensor as qt

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "digits"
IMAGES = np.load(DIGITS / "calibration.npy")[:40]


def digits():
    return qt.Model.load(DIGITS / "digits.onnx")


def scores(model, images=IMAGES):
    return qt.Session(model)(images)


class Quantize(unittest.TestCase):
    def test_every_form_of_data_gives_the_same_model(self):
        model = digits()
        want = scores(model.quantize(IMAGES))
        rows = [IMAGES[i : i + 1] for i in range(len(IMAGES))]
        for data in [rows, iter(rows), ({"image": r} for r in rows), [[r] for r in rows], [qt.as_tensor(r) for r in rows],
                     qt.as_tensor(IMAGES)]:
            np.testing.assert_array_equal(scores(model.quantize(data)), want)
        prepared = model.prepare(qt.Config("onnx"))
        for r in rows:
            prepared.calibrate([r])
        np.testing.assert_array_equal(scores(prepared.convert()), scores(model.quantize(IMAGES, attrs={"plain": True})))
        self.assertFalse(np.array_equal(want, scores(model)))

    def test_configurations(self):
        model = digits()
        by_name = scores(model.quantize(IMAGES, "nvidia"))
        np.testing.assert_array_equal(scores(model.quantize(IMAGES, qt.Config("nvidia"))), by_name)
        some = model.quantize(IMAGES, {"op:Gemm": None, "*": {"observer": "entropy"}})
        self.assertIn("Gemm", json.dumps(some.inspect()["float_nodes"]))
        with self.assertRaisesRegex(qt.UnsupportedError, "nonsense"):
            model.quantize(IMAGES, "nonsense")

    def test_none_leaves_nodes_in_float_and_an_empty_dict_changes_nothing(self):
        model = digits()
        for rules in qt.Config("onnx").set("op:Gemm", None), {"op:Gemm": None}:
            self.assertIn("Gemm", json.dumps(model.quantize(IMAGES, rules).inspect()["float_nodes"]))
        np.testing.assert_array_equal(scores(model.quantize(IMAGES, qt.Config("onnx").set("op:Gemm", {}))), scores(model.quantize(IMAGES)))
        with self.assertRaisesRegex(qt.InvalidError, "tensor:image"):
            qt.Config("onnx").set("tensor:image", None)
        qt.Lib.set_limits({"nodes": 5000})
        qt.Lib.set_limits({})
        self.assertEqual(qt.Lib.limit("nodes"), 5000)
        qt.Lib.set_limits()
        self.assertGreater(qt.Lib.limit("nodes"), 5000)
        trainer = qt.Trainer(model)
        trainer.set_group("*", {})
        trainer.set({})
        for call in lambda: trainer.set_group("*", None), lambda: trainer.set(None):
            with self.assertRaisesRegex(qt.InvalidError, "is NULL"):
                call()

    def test_configurations_of_another_kind(self):
        model = digits()
        for call in [lambda c: model.quantize(IMAGES, c), lambda c: model.quantize_dynamic(c), lambda c: model.prepare(c),
                     lambda c: model.quantize_qat([], c)]:
            for config, message in [(None, "config is of type 'NoneType', not a Config, the name of a recipe"),
                                    (5, "config is of type 'int', not a Config"),
                                    ({"foo": 1}, "config\\['foo'\\] is of type 'int', not a dict of settings")]:
                with self.assertRaisesRegex(TypeError, message):
                    call(config)
        for config in "onnx", qt.Config("onnx"), {"*": {}}:
            self.assertEqual(model.quantize_dynamic(config).save_bytes(), model.quantize_dynamic(qt.Config("onnx")).save_bytes())
            model.prepare(config).calibrate(IMAGES[:1])
        self.assertIn("Gemm", json.dumps(model.quantize_dynamic({"op:Gemm": None}).inspect()["nodes"]))

    def test_no_samples(self):
        model = digits()
        for none in [], IMAGES[:0], iter(()):
            with self.assertRaisesRegex(qt.StateError, "quantize: there are no samples"):
                model.quantize(none)

    def test_answers_and_switches_of_another_kind(self):
        with self.assertRaisesRegex(TypeError, "progress is of type 'int', not a bool or a function"):
            digits().quantize(IMAGES, progress=5)
        with self.assertRaisesRegex(TypeError, "progress is of type 'int', not a function"):
            digits().quantize_qat([], progress=5)
        with self.assertRaisesRegex(qt.InvalidError, "quantize: auto is 7, not 0 or 1"):
            digits().quantize(IMAGES, attrs={"auto": 7})

    def test_indices_out_of_range(self):
        model, trainer = digits(), qt.Trainer(digits())
        session = qt.Session(model)
        names = [model.input_name, model.input_dtype, model.input_shape, model.output_name, model.tensor_name,
                 trainer.parameter_name, trainer.buffer_name]
        for call in [*names, trainer.parameter, trainer.gradient, trainer.buffer, lambda index: session.bind(index, 0),
                     lambda index: session.bind(0, index)]:
            for index in -1, 1 << 70:
                with self.assertRaisesRegex(IndexError, f"{index} is out of range"):
                    call(index)
            with self.assertRaisesRegex(IndexError if call in names else qt.InvalidError, "99"):
                call(99)
            with self.assertRaisesRegex(TypeError, "is of type 'NoneType', not int"):
                call(None)
        self.assertEqual(model.input_name(index=0), "image")

    def test_copies(self):
        model = digits()
        int8 = model.quantize(IMAGES)
        config = qt.Config("fbgemm").set("op:Gemm", {"weight_narrow_range": 1})
        for copied in copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing)):
            other = copied(int8)
            self.assertEqual((other.save_bytes(), other.report), (int8.save_bytes(), int8.report))
            other.close()
            self.assertIsNone(copied(model).report)
            first, second = copied(config), config
            self.assertEqual(model.quantize(IMAGES, first).save_bytes(), model.quantize(IMAGES, second).save_bytes())
            first.close()
            for thing in qt.Session(int8), qt.Trainer(model), qt.Layer("linear", np.ones((3, 4), np.float32), None, "onnx"):
                with self.assertRaisesRegex(TypeError, f"a {type(thing).__name__} cannot be copied or pickled"):
                    copied(thing)
        self.assertTrue(np.isfinite(scores(int8)).all())

    def test_a_dict_without_state(self):
        session = qt.Session(qt.Model.load(DIGITS.parent / "voice" / "voice.onnx"))
        session.bind("memory_next", "memory")
        session.bind("context_next", "context")
        given = {"rate": np.array(16000), "samples": np.random.default_rng(0).standard_normal((1, 512)).astype(np.float32)}
        want = [session(given["samples"], given["rate"], None, None)[0] for _ in range(3)]
        for form in given, {**given, "context": None}, types.MappingProxyType(given):
            session.reset()
            for each in want:
                np.testing.assert_array_equal(session(form)[0], each)
        self.assertNotEqual(want[0], want[1])
        with self.assertRaisesRegex(ValueError, 'inputs has the keys "memories", which name none of "samples", "rate"'):
            session({**given, "memories": None})

    def test_a_dict_without_what_is_not_state(self):
        session = qt.Session(qt.Model.load(DIGITS.parent / "voice" / "voice.onnx"))
        session.bind("memory_next", "memory")
        session.bind("context_next", "context")
        for call in session, session.profile:
            with self.assertRaisesRegex(ValueError, 'inputs is an empty dict, and the model has the inputs "samples", "rate": pass'):
                call({})

    def test_classes_without_their_methods(self):
        class Nothing(qt.Samples):
            def count(self):
                return 1

        class Nobody(qt.Batches):
            def batch(self, epoch, index):
                return []

        with self.assertRaisesRegex(TypeError, r"Nothing is a Samples without the method sample\(\)"):
            digits().quantize(Nothing())
        with self.assertRaisesRegex(TypeError, r"Nobody is a Batches without the method count\(\)"):
            digits().quantize_qat(Nobody())

    def test_an_empty_batch(self):
        trainer = qt.Trainer(digits(), {"lr": 0.01})
        with self.assertRaisesRegex(qt.InvalidError, "trainer: the batch is empty"):
            trainer.step(IMAGES[:0], np.zeros(0, np.int64))
        self.assertGreater(trainer.step(IMAGES, np.zeros(40, np.int64)), 0)

    def test_a_report_prints_and_has_attributes(self):
        report = digits().quantize(IMAGES, attrs={"measured_samples": 4}).report
        self.assertIsInstance(report, dict)
        self.assertEqual(report.samples, 40)
        self.assertIs(report.accuracy, report["accuracy"])
        self.assertIn("trials", dir(report))
        with self.assertRaisesRegex(AttributeError, "the report has no 'speeds'; it has samples, "):
            report.speeds
        text = str(report)
        self.assertEqual(repr(report), text)
        self.assertRegex(text, r"^tried: plain [\d.]+ dB")
        self.assertIn("\naccuracy on 4 held-back samples: SQNR ", text)
        self.assertFalse(text.endswith("\n"))
        self.assertNotIn("speed", text)
        report["speed"] = {"batch": 1, "float_ms": 3, "int8_ms": 1.5}
        self.assertIn("\nspeed: 1.5 ms, in float here 3 ms: 2.0 times as fast (batch 1)", str(report))
        self.assertEqual(qt.Report(json.dumps(report)), report)
        report["warnings"] = ["a < b"]
        self.assertIn("warning: a &lt; b", report._repr_html_())
        del report["nodes"]
        with self.assertRaisesRegex(qt.FormatError, 'report: has no number "nodes.all"'):
            str(report)
        self.assertIn("'samples': 40", repr(report))  # what cannot be put into words is a dict still

    def test_layers(self):
        weight, x = np.float32([[1, -2, 3], [0.5, 0.25, -0.125]]), np.float32([[1, 2, 3]])
        layer = qt.Layer("linear", weight, None, "onnx")
        self.assertIsNone(layer.bias)
        self.assertEqual(layer.kind, "linear")
        self.assertEqual(repr(layer), "Layer('linear', weight=int8[2, 3], bias=False)")
        want = qt.Op.linear(x, layer.weight)
        self.assertTrue(layer.run(x).equal(want))
        self.assertIsInstance(layer(x), np.ndarray)
        np.testing.assert_array_equal(layer(x), want.numpy())
        self.assertIsInstance(layer(qt.as_tensor(x)), qt.Tensor)
        grid = qt.Quantizer("uint8", "per_tensor_affine", 0, [0.05], [128])
        for config in ("fbgemm", qt.Config("fbgemm")):
            to_grid = qt.Layer("linear", weight, np.float32([1, 2]), config, x_quantizer=grid, out_quantizer=grid)
            self.assertIs(to_grid(x).dtype, qt.uint8)
            self.assertEqual(to_grid.bias.numpy().tolist(), [1, 2])
        self.assertTrue(qt.Layer("linear", layer.weight).weight.equal(layer.weight))
        with self.assertRaisesRegex(qt.UnsupportedError, "nonsense"):
            qt.Layer("linear", weight, None, "nonsense")
        with self.assertRaisesRegex(TypeError, "config"):
            qt.Layer("linear", weight, None, 3)
        layer.close()
        with self.assertRaises(qt.StateError):
            layer(x)

    def test_the_report(self):
        model = digits()
        self.assertIsNone(model.report)
        report = model.quantize(IMAGES, attrs={"bias_correction": True, "measured_samples": 4}).report
        self.assertEqual(report["samples"], 40)
        self.assertEqual([trial["name"] for trial in report["trials"]], ["plain", "equalize", "observer percentile", "observer mse", "bias_correction"])
        self.assertEqual(report["accuracy"]["samples"], 4)
        self.assertGreater(report["accuracy"]["sqnr_db"], 30)
        with self.assertWarnsRegex(UserWarning, "one sample calibrated"):
            model.quantize(IMAGES[:1])
        with self.assertWarnsRegex(UserWarning, 'input "image" has whole numbers from 0 to 255'):
            model.quantize(np.rint(IMAGES * 255 / IMAGES.max()))

    def test_progress(self):
        calls = []
        plain = {"plain": True}
        digits().quantize(IMAGES, attrs=plain, progress=lambda *told: calls.append(told))
        self.assertIn(("calibrating", 1, 40), calls)
        with self.assertRaisesRegex(qt.CanceledError, "canceled while calibrating, 3 of 40 done"):
            digits().quantize(IMAGES, attrs=plain, progress=lambda stage, done, total: done < 3)
        with self.assertRaisesRegex(qt.CanceledError, "canceled while trying equalize, 2 of 26 done"):
            digits().quantize(IMAGES, progress=lambda stage, done, total: stage != "trying equalize" or done < 2)
        quiet = io.StringIO()
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        for stream in quiet, terminal:
            with contextlib.redirect_stderr(stream):
                digits().quantize(IMAGES, progress=True)
        self.assertEqual(quiet.getvalue(), "")
        self.assertIn("calibrating", terminal.getvalue())

    def test_what_python_raises_in_a_callback_comes_out_unchanged(self):
        class Mine(Exception):
            pass

        def broken(*_):
            raise mine

        mine = Mine("of a callback")
        for call in (lambda: digits().quantize(IMAGES, progress=broken), lambda: digits().quantize(self.Broken(mine))):
            with self.assertRaises(Mine) as caught:
                call()
            self.assertIs(caught.exception, mine)

    class Broken:
        """Rows that cannot be read."""

        shape, dtype = (3, 1, 8, 8), np.dtype("float32")

        def __init__(self, error):
            self.error = error

        def __iter__(self):
            return iter(())

        def __len__(self):
            return 3

        def __getitem__(self, index):
            raise self.error

    def test_rows_of_models_with_another_batch(self):
        x = np.random.default_rng(0).standard_normal((8, 1, 8, 8), np.float32)
        self.assertEqual(digits().quantize(x).report["samples"], 8)


class Models(unittest.TestCase):
    def test_names_and_files(self):
        model = digits()
        self.assertEqual(model.inputs, {"image": (qt.float32, (-1, 1, 8, 8))})
        self.assertEqual(model.outputs, ["scores"])
        self.assertEqual(repr(model), "Model(image: float32[-1, 1, 8, 8] -> scores)")
        self.assertTrue(model.inspect()["nodes"])
        int8 = model.quantize(IMAGES)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "int8.onnx"
            int8.save(path, {"format": "qoperator"})
            np.testing.assert_array_equal(scores(qt.Model.load_bytes(path.read_bytes())), scores(int8))

    def test_weights_by_name(self):
        model = digits()
        self.assertEqual((len(model.tensors), next(iter(model.tensors))), (12, "11.weight"))
        weight = model.tensors["11.weight"].numpy()
        weight[:] = 0  # a copy
        self.assertTrue(model.tensors["11.weight"].numpy().any())
        int8 = model.quantize(IMAGES)
        q = int8.tensors["11.weight"]
        self.assertEqual((q.dtype, q.nbytes, q.quantizer.count), (qt.int8, weight.size, 10))
        self.assertIn("11.weight_quantized", int8.tensors)
        session, before = qt.Session(int8), scores(int8)
        int8.tensors["11.weight"] = qt.Tensor.create(q.dtype, q.shape, q.quantizer)
        self.assertFalse(np.array_equal(scores(int8), before))
        np.testing.assert_array_equal(session(IMAGES), before)
        model.tensors["11.weight"] = weight
        model.tensors["11.bias"] = np.arange(10, dtype=np.float32)
        np.testing.assert_array_equal(scores(model), np.tile(np.arange(10, dtype=np.float32), (len(IMAGES), 1)))
        with self.assertRaisesRegex(KeyError, "nearest are"):
            model.tensors["weight"]
        self.assertNotIn("weight", model.tensors)
        with self.assertRaises(TypeError):
            del model.tensors["11.weight"]

    def test_without_samples(self):
        model = digits()
        self.assertEqual(scores(model.quantize_dynamic(qt.Config("onnx"))).shape, (40, 10))
        self.assertEqual(scores(model.quantize_weights({"dtype": "int4", "block_size": 16})).shape, (40, 10))

    def test_sessions(self):
        session = qt.Session(digits(), {"threads": 1})
        want = session(IMAGES)
        self.assertIsInstance(session(qt.as_tensor(IMAGES)), qt.Tensor)
        np.testing.assert_array_equal(session.run([IMAGES])[0].numpy(), want)
        self.assertTrue(session.profile([IMAGES])["nodes"])
        with self.assertRaisesRegex(qt.ShapeError, "image"):
            session(IMAGES[0])
        with self.assertRaisesRegex(qt.InvalidError, "unknown attribute \"thread\"; valid are"):
            qt.Session(digits(), {"thread": 1})
        with session:
            pass
        with self.assertRaisesRegex(qt.StateError, "Session is closed"):
            session(IMAGES)

    def test_training(self):
        trainer = qt.Trainer(digits(), {"lr": 0.01})
        labels = np.zeros(40, np.int64)
        losses = [trainer.step([IMAGES], [labels]) for _ in range(5)]
        self.assertLess(losses[-1], losses[0])
        name, weight = next(iter(trainer.parameters.items()))
        weight.numpy()[...] = 0
        self.assertEqual(np.abs(trainer.parameters[name].numpy()).max(), 0)
        np.testing.assert_array_equal(trainer.evaluate([IMAGES])[0].numpy(), scores(trainer.model()))
        trainer.set({"lr": 0.001})
        with self.assertRaisesRegex(qt.InvalidError, "label"):
            trainer.step([IMAGES], [labels + 10])

    def test_steps_are_those_of_adamw(self):
        """The formulas of torch.optim.AdamW, in NumPy, and the slope of the loss along its gradient."""
        rate, decay, labels = 0.01, 0.1, np.arange(40) % 10
        trainer = qt.Trainer(digits(), {"optimizer": "adamw", "lr": rate, "weight_decay": decay})
        parameters = trainer.parameters
        index = list(parameters).index("11.weight")
        weight, mean, square = parameters["11.weight"].numpy(), 0, 0
        for step in range(1, 4):
            before = weight.copy()
            loss = trainer.backward([IMAGES], [labels])
            gradient = trainer.gradient(index).numpy().copy()
            trainer.update()
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            moved = rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            np.testing.assert_allclose(weight, before * (1 - rate * decay) - moved, rtol=0, atol=1e-6)
        other = qt.Trainer(trainer.model())
        loss, gradient = other.backward([IMAGES], [labels]), other.gradient(index).numpy().copy()
        other.parameters["11.weight"].numpy()[...] -= 1e-3 * gradient / np.linalg.norm(gradient)
        self.assertAlmostEqual(loss - other.backward([IMAGES], [labels]), 1e-3 * np.linalg.norm(gradient), delta=1e-5)

    def test_quantization_aware_training_in_one_call(self):
        rng = np.random.default_rng(1)
        batches = [(IMAGES[i : i + 20], rng.integers(0, 10, 20)) for i in (0, 20)]
        told = []
        attrs = {"epochs": 2, "lr": 0.001}
        trained = digits().quantize_qat(batches, "onnx", attrs, lambda *now: told.append(now))
        self.assertEqual(scores(trained).shape, (40, 10))
        self.assertEqual([(done, total) for stage, done, total, _ in told if stage == "training"][-1], (4, 4))
        self.assertTrue(all(isinstance(loss, float) for *_, loss in told))
        self.assertIsNotNone(trained.report)
        same = digits().quantize_qat([([x], [y]) for x, y in batches], attrs=attrs)
        np.testing.assert_array_equal(scores(same), scores(trained))
        sooner = digits().quantize_qat(batches, attrs=attrs, progress=lambda stage, *_: "finish" if stage == "training" else None)
        self.assertFalse(np.array_equal(scores(sooner), scores(trained)))
        with self.assertRaises(qt.CanceledError):
            digits().quantize_qat(batches, attrs=attrs, progress=lambda *_: False)
        with self.assertRaises(ZeroDivisionError):
            digits().quantize_qat(batches, attrs=attrs, progress=lambda *_: 1 / 0)
        self.assertTrue(qt.Trainer(qt.Model.load(DIGITS / "untrained.onnx")).buffers)


class Threads(unittest.TestCase):
    def test_eight_threads_get_the_bits_of_one(self):
        session = qt.Session(digits().quantize(IMAGES))
        want = session(IMAGES)
        wrong = []

        def work():
            for _ in range(20):
                if not np.array_equal(session(IMAGES), want):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_others_run_while_the_library_works(self):
        session = qt.Session(digits(), {"threads": 1, "engine": "reference"})
        many = np.concatenate([IMAGES] * 50)
        done = threading.Event()
        started = threading.Event()

        def work():
            started.set()
            session(many)
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        steps = 0
        while not done.is_set():
            time.sleep(0)
            steps += 1
        thread.join()
        self.assertGreater(steps, 100)

    def test_closing_while_others_run_ends_in_an_exception_or_nothing(self):
        for _ in range(20):
            session = qt.Session(digits())
            ends = []

            def work():
                try:
                    while True:
                        session(IMAGES)
                except qt.StateError as error:
                    ends.append(str(error))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads:
                t.start()
            time.sleep(0.002)
            session.close()
            for t in threads:
                t.join()
            self.assertEqual(ends, ["Session is closed"] * 4)

    def test_threads_that_train_one_trainer_are_told(self):
        trainer = qt.Trainer(digits(), {"lr": 0.001})
        labels = np.arange(8) % 10
        steps, refused = [], []

        def work():
            for _ in range(40):
                try:
                    steps.append(trainer.step([IMAGES[:8]], [labels]))
                    trainer.parameter(0).item
                except qt.StateError as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertGreater(len(steps), 0)
        self.assertTrue(all("another call" in text for text in refused), refused)
        self.assertTrue(np.isfinite(steps).all())


if __name__ == "__main__":
    unittest.main()
