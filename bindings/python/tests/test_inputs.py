# SPDX-License-Identifier: Apache-2.0
"""What sessions, prepared models and trainers take: one array, lists, dicts by name, of types that can be converted."""

import gc
import unittest

import numpy as np
from given import IMAGES, LABELS, WEIGHT, Case, WithArray, WithDLPack, digits, main, rows, scores, small, torch

import qtensor as qt

if torch:
    from torch.utils import data as torch_data


class Sessions(Case):
    def test_element_types(self):
        session = qt.Session(digits())
        whole = np.round(IMAGES * 15)
        want = session(whole.astype(np.float32))
        for dtype in np.float64, np.float16, np.uint8, np.int8, np.uint16, np.int32, np.int64, ">f4":
            np.testing.assert_array_equal(session(whole.astype(dtype)), want)
        np.testing.assert_array_equal(session(IMAGES > 0), session((IMAGES > 0).astype(np.float32)))
        doubles = IMAGES.astype(np.float64) * np.pi
        np.testing.assert_array_equal(session(doubles), session(doubles.astype(np.float32)))
        np.testing.assert_array_equal(session(qt.as_tensor(doubles)).numpy(), session(doubles.astype(np.float32)))
        holds = 'input "image" takes float32, which holds all integers from -16777216 to 16777216, not int64 from 16777217'
        self.refused(qt.DTypeError, holds, session, np.full((1, 1, 8, 8), 16777217))
        self.refused(qt.DTypeError, 'session: input "image" is float32, not int64', session, qt.as_tensor(whole.astype(np.int64)))
        self.refused(TypeError, 'input "image" has elements of type complex64', session, IMAGES.astype(np.complex64))

    def test_one_input(self):
        session = qt.Session(digits())
        want = session(IMAGES)
        for call in [lambda: session(WithDLPack(IMAGES)), lambda: session(image=IMAGES), lambda: session({"image": IMAGES}),
                     lambda: session(IMAGES.tolist()), lambda: session([IMAGES]),
                     lambda: session([WithDLPack(IMAGES)]), lambda: session.run(IMAGES)[0],
                     lambda: session.run({"image": IMAGES})[0], lambda: session.run([IMAGES.tolist()])[0],
                     lambda: session.run(iter([IMAGES.astype(float)]))[0],
                     lambda: session.run(WithArray(IMAGES))[0]]:
            np.testing.assert_array_equal(np.asarray(call()), want)
        self.assertIsInstance(session(image=qt.as_tensor(IMAGES)), qt.Tensor)
        for inputs in IMAGES, {"image": IMAGES}, [IMAGES.tolist()]:
            self.assertEqual(session.profile(inputs)["engine"], "native")
        self.assertEqual((session.inputs, session.outputs), ({"image": (qt.float32, (-1, 1, 8, 8))}, ["scores"]))

    def test_two_inputs(self):
        session, x, y = qt.Session(small((-1, 3), (-1, 4))), rows(6, 3), rows(6, 4)
        want = x @ WEIGHT + y
        for got in [session(x, y), session(x1=y, x0=x), session({"x1": y.astype(float), "x0": x}),
                    session({"x0": x}, x1=y), session([x, y]), session.run({"x1": y, "x0": x})[0], session(x.tolist(), y)]:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        for call, kind, message in [
            (lambda: session(x0=x), ValueError, 'a dict with the keys "x0", and the model has the inputs "x0", "x1": pass'),
            (lambda: session({"x0": x, "y": y}), ValueError, 'the keys "x0", "y", and the model has the inputs "x0", "x1": pass'),
            (lambda: session(x0=x, x1=y, x2=y), ValueError, 'inputs has the keys "x2", which name none of "x0", "x1"'),
            (lambda: session(x, x1=y), TypeError, r"inputs are given in order and by name \(x1\)"),
            (lambda: session(x), qt.InvalidError, "input_count is 1, the model has 2 inputs"),
            (lambda: session.run([x, {"x1": y}]), TypeError, 'input "x1" is a dict with the keys "x1"'),
            (lambda: session.run(3), TypeError, "inputs is of type 'int', not an array, a list of them, or a dict by name"),
            (lambda: session("x", y), TypeError, "input \"x0\" is of type 'str'"),
        ]:
            self.refused(kind, message, call)

    def test_outputs_are_arrays_of_their_own(self):
        session = qt.Session(small((-1, 3), (-1, 4)))
        x, y = rows(6, 3), rows(6, 4)
        first = session(x, y)
        want = first.copy()
        second = session({"x1": y, "x0": x})
        self.assertIs(type(first), np.ndarray)
        self.assertTrue(first.flags.writeable and first.flags.c_contiguous)
        self.assertFalse(np.shares_memory(first, second))
        second[...] = 0
        session.close()
        del session, second
        gc.collect()
        np.testing.assert_array_equal(first, want)
        with self.assertRaisesRegex(TypeError, "cannot create 'qtensor._core.Memory' instances"):
            type(memoryview(first.base).obj)()

    def test_calibration(self):
        want = scores(digits().quantize(IMAGES, attrs={"plain": True}))
        for form in [lambda x: x, lambda x: x.astype(float), lambda x: {"image": x}, lambda x: [x.tolist()],
                     lambda x: (WithDLPack(x),)]:
            prepared = digits().prepare(qt.Config("onnx"))
            for i in range(40):
                prepared.calibrate(form(IMAGES[i : i + 1]))
            np.testing.assert_array_equal(scores(prepared.convert()), want)
        self.refused(ValueError, 'the model has one input, "image"', prepared.calibrate, {"x": IMAGES})


class Training(Case):
    def losses(self, inputs, targets):
        trainer = qt.Trainer(digits(), {"lr": 0.01})
        found = [trainer.step(inputs, targets) for _ in range(3)]
        trainer.backward(inputs, targets)
        return found, np.asarray(trainer.evaluate(inputs)[0]).tolist()

    def test_steps(self):
        want = self.losses([IMAGES], [LABELS])
        for inputs, targets in [(IMAGES, LABELS), (IMAGES.astype(float), LABELS.tolist()),
                                ({"image": IMAGES}, {"scores": LABELS}), ([IMAGES.tolist()], [LABELS.astype(np.uint8)]),
                                (WithDLPack(IMAGES), WithArray(LABELS.astype(np.int16)))]:
            self.assertEqual(self.losses(inputs, targets), want)
        one_hot = np.eye(10, dtype=np.float32)[LABELS]
        self.assertEqual(self.losses(IMAGES, one_hot.astype(float)), self.losses([IMAGES], [one_hot]))
        trainer = qt.Trainer(digits())
        codes = qt.as_tensor(LABELS, "int8")
        self.refused(qt.DTypeError, "the target is int8, not labels", trainer.step, IMAGES, codes)
        self.refused(ValueError, 'with the keys "y", and the model has one output, "scores"', trainer.step, IMAGES, {"y": LABELS})

    def trained(self, batches, **attrs):
        return digits().quantize_qat(batches, attrs={"epochs": 2, "lr": 0.001, **attrs})

    def test_batches(self):
        pairs = [(IMAGES[i : i + 10], LABELS[i : i + 10]) for i in range(0, 40, 10)]
        want = scores(self.trained(pairs))

        class Loader:
            begun = 0

            def __len__(self):
                return 4

            def __iter__(self):
                self.begun += 1
                return iter(pairs)

        loader = Loader()
        for batches in [iter(pairs), (list(pair) for pair in pairs), loader,
                        [({"image": x.astype(float)}, y.tolist()) for x, y in pairs]]:
            got = self.trained(batches)
            np.testing.assert_array_equal(scores(got), want)
            self.assertEqual(got.report["samples"], 40)
        self.assertEqual(loader.begun, 3)  # to calibrate, and for each epoch
        self.assertEqual(self.trained(pairs, calibration_batches=2).report["samples"], 20)
        for batches, kind, message in [
            ({"x": 1}, TypeError, "batches is of type 'dict', not a list of pairs"), (3, TypeError, "batches is of type 'int'"),
            ([IMAGES], TypeError, "batch 0 is a numpy.ndarray, not a pair of inputs and targets"),
            ([(IMAGES, LABELS, 3)], TypeError, "batch 0 is a tuple of 3, not a pair"), ([], qt.InvalidError, "there are no batches"),
            ([([IMAGES, IMAGES], LABELS)], qt.InvalidError, "batch 0 has 2 tensors, but the model 1 targets"),
            ([({"x": IMAGES}, LABELS)], ValueError, 'inputs of batch 0 is a dict with the keys "x"'),
        ]:
            self.refused(kind, message, self.trained, batches)
        class Mine(qt.Batches):
            def count(self):
                return 4

            def batch(self, epoch, index):
                x, y = pairs[index]
                return [WithArray(x.astype(float)), y.astype(np.int16)]

        got = self.trained(Mine())
        np.testing.assert_array_equal(scores(got), want)
        self.assertEqual(got.report["samples"], 40)
        loader.__class__.__len__ = lambda self: 5
        self.refused(ValueError, "batches is a __main__.Loader of 5, but epoch 0 has only 4", self.trained, loader)


@unittest.skipUnless(torch, "there is no torch")
class Torch(Case):
    def setUp(self):
        self.images, self.labels = torch.from_numpy(IMAGES.copy()), torch.from_numpy(LABELS.copy())

    def test_sessions_and_trainers(self):
        session = qt.Session(digits())
        want = session(IMAGES)
        for x in self.images, self.images.double(), {"image": self.images}:
            np.testing.assert_array_equal(session(x), want)
        np.testing.assert_array_equal(session(self.images.bfloat16()), session(self.images.bfloat16().float()))
        trainer, other = qt.Trainer(digits(), {"lr": 0.01}), qt.Trainer(digits(), {"lr": 0.01})
        self.assertEqual(trainer.step(self.images, self.labels), other.step([IMAGES], [LABELS]))
        loader = torch_data.DataLoader(torch_data.TensorDataset(self.images, self.labels), batch_size=10)
        attrs = {"epochs": 2, "lr": 0.001}
        pairs = [(IMAGES[i : i + 10], LABELS[i : i + 10]) for i in range(0, 40, 10)]
        got, want = digits().quantize_qat(loader, attrs=attrs), digits().quantize_qat(pairs, attrs=attrs)
        np.testing.assert_array_equal(scores(got), scores(want))
        shuffled = torch_data.DataLoader(torch_data.TensorDataset(self.images, self.labels), batch_size=10, shuffle=True)
        self.assertEqual(digits().quantize_qat(shuffled, attrs=attrs).report["samples"], 40)


if __name__ == "__main__":
    main()
