# SPDX-License-Identifier: Apache-2.0
"""Data to calibrate with, as programs have it: arrays, lists, pairs with labels, generators, Datasets and DataLoaders."""

import unittest
from unittest import mock

import numpy as np
from given import IMAGES, LABELS, Case, WithArray, WithDLPack, digits, main, rows, scores, small, torch

import qtensor as qt

if torch:
    from torch.utils import data as torch_data
    from torch.utils.data import DataLoader


PLAIN = {"plain": True}  # so that what is tried does not depend on how samples are batched


class Quantize(Case):
    def setUp(self):
        self.model = digits()
        self.want = scores(self.model.quantize(IMAGES, attrs=PLAIN))

    def same(self, data):
        got = self.model.quantize(data, attrs=PLAIN)
        np.testing.assert_array_equal(scores(got), self.want)
        self.assertEqual(got.report["samples"], 40)

    def test_arrays(self):
        for data in [IMAGES.astype(np.float64), WithArray(IMAGES), WithDLPack(IMAGES), memoryview(IMAGES), IMAGES.tolist(),
                     {"image": IMAGES}, {"image": IMAGES.tolist(), "label": 3}, np.asfortranarray(IMAGES)]:
            self.same(data)
        whole = np.round(IMAGES * 15)
        want = scores(self.model.quantize(whole.astype(np.float32)))
        for dtype in np.uint8, np.int16, np.int64, np.float16:
            np.testing.assert_array_equal(scores(self.model.quantize(whole.astype(dtype))), want)

    def test_samples_with_and_without_the_axis_of_the_batch(self):
        for data in [list(IMAGES), [image.tolist() for image in IMAGES], [{"image": image, "label": 3} for image in IMAGES],
                     [IMAGES[:20], IMAGES[20:]], (IMAGES,), [[image] for image in IMAGES]]:
            self.same(data)

    def test_pairs_of_an_input_and_its_label(self):
        pairs = [(image, int(label)) for image, label in zip(IMAGES, LABELS)]
        for data in [pairs, [list(pair) for pair in pairs], iter(pairs), [(x.tolist(), y) for x, y in pairs],
                     [([x], y) for x, y in pairs], [({"image": x}, y) for x, y in pairs], [(x, "a name") for x in IMAGES],
                     [(x, None) for x in IMAGES], [(IMAGES[i : i + 8], LABELS[i : i + 8]) for i in range(0, 40, 8)]]:
            self.same(data)

    def test_pairs_that_may_be_something_else(self):
        both = 'sample 0 is a tuple of numpy.ndarray .* and the model has one input, "image", float32 .*, which both fit'
        self.refused(ValueError, both, self.model.quantize, [(IMAGES[:1], IMAGES[1:2])])
        self.refused(ValueError, both, self.model.quantize, [(IMAGES[0], IMAGES[1])])
        neither = "sample 0 is a tuple of numpy.ndarray .* and int, .* which the first does not fit"
        self.refused(ValueError, neither, self.model.quantize, [(IMAGES[:1].reshape(1, 8, 8, 1), 3)])
        self.refused(qt.InvalidError, "sample 0 has 3 tensors, but the model 1 inputs", self.model.quantize, [(IMAGES,) * 3])
        model, pair = small((-1, 3)), ([0.5, 1.5, -2.5], [1, 0, 0])
        self.assertEqual(model.quantize([pair] * 2).report["samples"], 2)
        self.refused(ValueError, "which both fit", model.quantize, [([0.5, 1.5, -2.5], [1.0, 0.0, 0.0])])
        self.assertEqual(model.quantize([[[0.5, 1.5, -2.5], [1.0, 0.0, 0.0]]]).report["samples"], 2)
        masks = np.zeros((4, 1, 8, 8), np.int64)  # another type, so it is a label
        self.assertEqual(self.model.quantize([(IMAGES[:4], masks)]).report["samples"], 4)

    def test_a_row_of_labels_is_no_sample_though_it_has_its_length(self):
        model, x = small((-1, 3)), rows(3, 3)
        want = qt.Session(model.quantize(x, attrs=PLAIN))(x)
        np.testing.assert_array_equal(qt.Session(model.quantize([(x, np.arange(3))], attrs=PLAIN))(x), want)
        np.testing.assert_array_equal(qt.Session(model.quantize([(x, np.arange(3, dtype=np.float32))], attrs=PLAIN))(x), want)

    def test_models_with_two_inputs(self):
        model, x, y = small((-1, 3), (-1, 4)), rows(6, 3), rows(6, 4)
        want = qt.Session(model.quantize([(x[i : i + 1], y[i : i + 1]) for i in range(6)], attrs=PLAIN))(x, y)
        both = list(zip(x, y))
        for data in [{"x1": y, "x0": x}, both, [((a, b), 3) for a, b in both], [{"x0": a, "x1": b} for a, b in both],
                     ((x[i : i + 2], y[i : i + 2]) for i in range(0, 6, 2)),
                     [[(x[:3], y[:3]), LABELS[:3]], [(x[3:], y[3:]), None]]]:
            got = model.quantize(data, attrs=PLAIN)
            np.testing.assert_array_equal(qt.Session(got)(x, y), want)
            self.assertEqual(got.report["samples"], 6)
        lists = [[a.tolist(), b.tolist()] for a, b in both]
        np.testing.assert_array_equal(qt.Session(model.quantize(lists))(x, y), want)
        other = {"x0": x, "x1": y[:5]}
        self.refused(ValueError, 'data has 6 rows for the input "x0", and 5 for "x1"', model.quantize, other)
        wanted = 'keys "x0", and the model has the inputs "x0", "x1": pass {"x0": ..., "x1": ...}'
        self.refused(ValueError, wanted, model.quantize, [{"x0": x}])
        self.refused(qt.InvalidError, "sample 0 has 1 tensors, but the model 2 inputs", model.quantize, x)

    def test_a_batch_that_the_model_fixes(self):
        x = rows(24, 3)
        for batch in 1, 4:
            model = small((batch, 3))
            session = qt.Session(model.quantize(x, attrs=PLAIN))
            want = session(x[:batch])
            one_by_one = [[*x], iter(x)] if batch == 1 else []
            for data in [[x], [(x[:8], LABELS[:8]), (x[8:], LABELS[8:24])], iter([x[:16], x[16:]]), *one_by_one]:
                stages = []
                got = model.quantize(data, progress=lambda stage, done, total: stages.append(total), attrs=PLAIN)
                np.testing.assert_array_equal(qt.Session(got)(x[:batch]), want)
                self.assertEqual((got.report["samples"], set(stages)), (24, {24 // batch}))
        two = small((2, 3), (2, 4))
        self.assertEqual(two.quantize([(x, rows(24, 4)), (x[:2], rows(2, 4))]).report["samples"], 26)
        self.refused(ValueError, "sample 0 has inputs of 3 and 12 batches", two.quantize, [(x, rows(6, 4))])
        uneven = r"data has 24 rows, no multiple of the batch of 5 .*: pass data\[:20\]"
        self.refused(ValueError, uneven, small((5, 3)).quantize, x)
        self.refused(ValueError, "data has 3 rows, no multiple of the batch of 5 that the model fixes$", small((5, 3)).quantize, x[:3])
        self.refused(TypeError, 'sample 1, input "x1" is of type .float., not a Tensor', two.quantize, [(x, rows(24, 4)), (x, 0.5)])
        uneven = "sample 1 has 3 rows, no multiple of the batch of 4 .* drop_last"
        self.refused(ValueError, uneven, small((4, 3)).quantize, [x[:4], x[:3]])

    def test_what_gives_samples_in_turn_is_asked_once(self):
        asked = []

        class Dataset:
            def __len__(self):
                return 40

            def __getitem__(self, index):  # beyond the end, too
                asked.append(index)
                return IMAGES[index % 40], 3

        self.same(Dataset())
        self.assertEqual(asked, list(range(40)))
        attrs = {"bias_correction": 1, "target_top1": 0.5}
        want = scores(self.model.quantize(IMAGES, attrs=attrs))
        del asked[:]
        np.testing.assert_array_equal(scores(self.model.quantize(Dataset(), attrs=attrs)), want)
        self.assertEqual(asked, list(range(40)))

        def refilled():
            image = np.empty_like(IMAGES[:1])
            for i in range(40):
                image[...] = IMAGES[i]
                yield image

        self.same(refilled())

    def test_what_is_kept_is_bounded(self):
        def forever():
            while True:
                yield IMAGES

        with mock.patch("qtensor._samples.KEPT_BYTES", 1 << 20):
            too_much = r"data is a generator, whose samples are kept, and \d+ of them take \d+ bytes, more than 1048576"
            self.refused(ValueError, too_much, self.model.quantize, forever())
            self.same([*IMAGES])  # a list has them anyway
        with mock.patch("qtensor._batches.KEPT_BYTES", 1 << 20):
            self.refused(ValueError, r"batches is a generator, whose batches are kept, and \d+ of them take",
                         self.model.quantize_qat, ((x, LABELS) for x in forever()))

    def test_samples_that_are_asked_by_index(self):
        class Mine(qt.Samples):
            def __init__(self, form, batch):
                super().__init__()
                self.form, self.batch = form, batch

            def count(self):
                return 40 // self.batch

            def sample(self, index):
                return self.form(IMAGES[index * self.batch : (index + 1) * self.batch])

        for form in [lambda x: x, lambda x: [x], lambda x: [x.astype(float)], lambda x: {"image": WithDLPack(x), "label": 3}]:
            self.same(Mine(form, 1))
            self.same(Mine(form, 4))
        self.refused(TypeError, "input \"image\" is of type 'str'", self.model.quantize, Mine(lambda x: ["x"], 1))
        self.refused(TypeError, "sample 0 is of type 'int', not an array", self.model.quantize, Mine(lambda x: 3, 1))
        self.refused(ZeroDivisionError, "", self.model.quantize, Mine(lambda x: 1 / 0, 1))

    def test_data_that_is_none(self):
        for data, kind, message in [
            (3, TypeError, "data is of type 'int', not an array, an iterable of samples, a Dataset"),
            ("abc", TypeError, "data is of type 'str'"),
            (["x"], TypeError, "sample 0 is of type 'str', not a Tensor"), ([None], TypeError, "sample 0 has None"),
            ([{"picture": 1}], ValueError, 'sample 0 is a dict with the keys "picture", and the model has one input, "image"'),
            ({"picture": IMAGES}, ValueError, 'data is a dict with the keys "picture"'),
            (np.float32(1), ValueError, 'data for the input "image" is a scalar'),
            (IMAGES.astype(complex), TypeError, "elements of type complex128"),
            ([IMAGES[:1].astype(np.int64) + (1 << 25)], qt.DTypeError, 'sample 0, input "image" takes float32, which holds'),
            ([qt.as_tensor(IMAGES[:1].astype(np.int32))], qt.DTypeError, 'calibrate: input "image" is float32, not int32'),
            ([IMAGES[:1, :, :7]], qt.ShapeError, 'input "image" takes'), ([], qt.StateError, "there are no samples"),
        ]:
            self.refused(kind, message, self.model.quantize, data)


@unittest.skipUnless(torch, "there is no torch")
class Torch(Case):
    def setUp(self):
        self.images, self.labels = torch.from_numpy(IMAGES.copy()), torch.from_numpy(LABELS.copy())

    def test_calibration(self):
        model = digits()
        want = scores(model.quantize(IMAGES, attrs=PLAIN))
        both, alone = torch_data.TensorDataset(self.images, self.labels), torch_data.TensorDataset(self.images)

        class Stream(torch_data.IterableDataset):
            def __iter__(self):
                return iter(both)

        named = [{"image": image, "label": 3} for image in self.images]
        columns = self.images.permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2)
        for data in [self.images, self.images.double(), columns, both, alone, Stream(), torch_data.Subset(both, range(40)),
                     DataLoader(both, batch_size=8), DataLoader(both, batch_size=32), DataLoader(alone),
                     DataLoader(Stream(), batch_size=16), DataLoader(named, batch_size=7)]:
            got = model.quantize(data, attrs=PLAIN)
            np.testing.assert_array_equal(scores(got), want)
            self.assertEqual(got.report["samples"], 40)

    def test_loaders_for_a_fixed_batch(self):
        x = rows(64, 3)
        both = torch_data.TensorDataset(torch.from_numpy(x), torch.zeros(64, dtype=torch.int64))
        for batch in 1, 8:
            model = small((batch, 3))
            want = qt.Session(model.quantize(x, attrs=PLAIN))(x[:batch])
            got = model.quantize(DataLoader(both, batch_size=32))
            np.testing.assert_array_equal(qt.Session(got)(x[:batch]), want)
            self.assertEqual(got.report["samples"], 64)
        uneven = "sample 0 has 60 rows, no multiple of the batch of 8"
        self.refused(ValueError, uneven, model.quantize, DataLoader(both, batch_size=60))

    def test_an_order_of_its_own_is_taken_once(self):
        loader = DataLoader(torch_data.TensorDataset(self.images, self.labels), batch_size=8, shuffle=True)
        report = digits().quantize(loader, attrs={"target_top1": 0.5, "bias_correction": 1}).report
        self.assertEqual(report["samples"], 40)
        self.assertGreaterEqual(report["targets"]["target_top1"]["reached"], 0.9)


if __name__ == "__main__":
    main()
