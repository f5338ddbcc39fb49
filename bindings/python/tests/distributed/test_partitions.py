# SPDX-License-Identifier: Apache-2.0
"""What is the same on every engine, in one process: every observer, all forms of partitions, checkpoints, sums, messages."""

import fractions
import os
import pickle
import random
import tempfile
import unittest

import numpy as np
from shared import (DIGITS, IMAGES, IN_TURN, LABELS, ROOT, SAMPLES, SIDE_BY_SIDE, Case, file_of, mobilenet, networks, observer,
                    of_one_process, pairs)

import qtensor as qt
from qtensor import distributed
from qtensor._callbacks import config_of
from qtensor.distributed import chosen, job, merging, work
from qtensor.distributed.sums import OfOutput, exact

RECIPES = ["onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite", "torchvision_fbgemm", "torchvision_qnnpack"]


def partitions():
    """The same samples, divided in many ways; iterators can be read once."""
    return [
        [SAMPLES],
        np.array_split(SAMPLES, 7),
        [SAMPLES[i : i + 1] for i in range(len(SAMPLES))],
        [SAMPLES[:0], SAMPLES[:11], SAMPLES[11:]],
        [list(SAMPLES[:10]), iter(SAMPLES[10:13]), tuple(SAMPLES[13:])],
        [{"image": SAMPLES[:9]}, lambda: (SAMPLES[i : i + 8] for i in range(9, 24, 8))],
        [list(zip(SAMPLES, LABELS))],
        [[(SAMPLES[:15], LABELS[:15])], [{"image": SAMPLES[15:], "label": LABELS[15:24]}]],
        [SAMPLES.astype(np.float64).tolist()],
    ]


class Calibration(Case):
    def same(self, config, dataset, **named):
        return file_of(distributed.calibrate(self.model, config, dataset, **named)) == of_one_process(self.model, config)

    def test_every_observer_gives_the_file_of_one_process(self):
        for kind in SIDE_BY_SIDE + IN_TURN:
            for at, dataset in enumerate(partitions()):
                self.assertTrue(self.same(observer(kind), dataset), f"{kind}, {at}")

    def test_every_kind_and_recipe_is_known(self):
        for kind in SIDE_BY_SIDE + IN_TURN:
            config = job.config_text(config_of(observer(kind)))
            self.assertEqual(bool(chosen.in_turn(config)), kind in IN_TURN)
        self.assertEqual(sorted(chosen.DEFAULTS), sorted(RECIPES))
        for recipe in RECIPES:  # which observers a recipe has, the library itself says
            tensors = self.model.quantize(SAMPLES[:4], recipe, {"plain": True}).report["tensors"]
            used = {tensor["observer"] for tensor in tensors if "weight_of" not in tensor} - {"fixed"}
            self.assertEqual(used, {chosen.DEFAULTS[recipe]}, recipe)
            self.assertTrue(self.same(recipe, np.array_split(SAMPLES, 3)), recipe)

    def test_observers_that_only_some_nodes_have_count_too(self):
        config = {"*": {"observer": "mse"}, "op:Gemm": {"observer": "moving_average"}}
        self.assertTrue(self.same(config, np.array_split(SAMPLES, 5)))
        self.assertEqual(chosen.in_turn(job.config_text(config_of(config))), {"moving_average"})

    def test_side_by_side_what_does_not_merge_exactly_differs(self):
        parts = np.array_split(SAMPLES, 7)
        self.assertTrue(self.same(observer("mse"), parts, in_turn=True))
        self.assertFalse(self.same(observer("moving_average"), parts, in_turn=False))

    def test_any_order_of_completion(self):
        parts, given = np.array_split(SAMPLES, 12), job.Job.of([self.model], "onnx")
        files = [(i, work.calibrate(1, given, i, part)) for i, part in enumerate(parts)]
        again = files + files[3:7]  # computed twice, as where a worker was lost
        for seed in range(5):
            random.Random(seed).shuffle(again)
            with tempfile.TemporaryDirectory() as folder:
                merged = merging.Merging(folder, given.key, len(parts))
                for index, file in again:
                    merged.add(index, file)
                merged.merged(os.path.join(folder, "all.qcal"))
                with open(os.path.join(folder, "all.qcal"), "rb") as file:
                    self.assertEqual(file.read(), of_one_process(self.model, "onnx"))

    def test_more_files_than_are_merged_at_once(self):
        many = np.concatenate([SAMPLES] * 12)[: merging.AT_ONCE + 30]
        want = of_one_process(self.model, observer("mse"), many)
        parts = [many[i : i + 1] for i in range(len(many))]
        self.assertEqual(file_of(distributed.calibrate(self.model, observer("mse"), parts)), want)

    def test_batches_change_the_count_of_calls_alone(self):
        prepared = distributed.calibrate(self.model, observer("mse"), np.array_split(SAMPLES, 7), batch=8)
        want = distributed.calibrate(self.model, observer("mse"), [SAMPLES])
        self.assertEqual(prepared.convert().save_bytes(), want.convert().save_bytes())

    def test_networks(self):
        for name, network in networks().items():
            with self.subTest(name):
                self.as_in_one_process(network, "local")

    def test_the_network_that_is_generated_is_that_of_torchvision(self):
        parameters, normalizations = 3504872, 17056  # of torchvision.models.mobilenet_v2(): weights and scales of its BatchNorm2d
        self.assertEqual(mobilenet.build()[1], parameters - normalizations)

    def test_another_network(self):
        model = qt.Model.load(ROOT / "tests/conformance/networks/mobilenet_v2.onnx")
        shape = tuple(next(iter(model.inputs.values()))[1][1:])
        samples = np.random.default_rng(1).standard_normal((9, *shape)).astype(np.float32)
        for config in "onnx", "fbgemm":
            got = distributed.calibrate(model, config, np.array_split(samples, 4))
            self.assertEqual(file_of(got), of_one_process(model, config, samples))

    def test_a_model_by_path_and_bytes(self):
        path = DIGITS / "digits.onnx"
        for model in path, str(path), path.read_bytes(), self.model.save_bytes():
            self.assertEqual(file_of(distributed.calibrate(model, "onnx", [SAMPLES])), of_one_process(self.model, "onnx"))

    def test_checkpoint(self):
        done = []

        class Counted:
            def __init__(self, rows):
                self.rows = rows

            def __iter__(self):
                done.append(len(self.rows))
                return iter(self.rows)

        with tempfile.TemporaryDirectory() as folder:
            def run(parts, progress=False):
                return distributed.calibrate(self.model, "onnx", parts, checkpoint=folder, progress=progress)

            parts = [Counted(part) for part in np.array_split(SAMPLES, 6)]
            self.refused(qt.CanceledError, "calibrating was canceled after 3 of 6 partitions", run, parts, lambda stage, at, n: at < 3)
            self.assertEqual(len(done), 3)
            self.assertEqual(file_of(run(parts)), of_one_process(self.model, "onnx"))
            self.assertEqual(len(done), 6)
            distributed.calibrate(self.model, "nvidia", parts, checkpoint=folder)  # of another configuration: nothing is done
            self.assertEqual(len(done), 12)
        self.refused(ValueError, "checkpoint is for partitions that do not wait .* because of histogram", distributed.calibrate,
                     self.model, "fbgemm", parts, checkpoint="here")

    def test_progress(self):
        for config in "onnx", "fbgemm":
            said = []
            distributed.calibrate(self.model, config, np.array_split(SAMPLES, 3), progress=lambda *told: said.append(told))
            self.assertEqual(said, [("calibrating", i, 3) for i in (1, 2, 3)])


class Prediction(Case):
    def test_lists_of_partitions(self):
        for parts in 1, 5, 540:
            for batch in 1, 7, 1000:
                got = distributed.predict(self.int8, np.array_split(IMAGES, parts), batch=batch)
                np.testing.assert_array_equal(np.concatenate(got), self.scores)
        got = distributed.predict(self.int8, [list(IMAGES[:5]), IMAGES[5:5], [(x, y) for x, y in zip(IMAGES[5:9], LABELS[5:9])]])
        np.testing.assert_array_equal(np.concatenate(got), self.scores[:9])
        self.assertEqual(got[1].shape, (0, 10))

    def test_items_keep_their_form(self):
        given = job.Job.of([self.int8])
        got = list(work.predict(4, given, [IMAGES[0], IMAGES[1:3], IMAGES[3:3], IMAGES[3:9], (IMAGES[9], 4)]))
        self.assertEqual([outputs[0].shape for outputs in got], [(10,), (2, 10), (0, 10), (6, 10), (10,)])
        np.testing.assert_array_equal(np.concatenate([outputs[0].reshape(-1, 10) for outputs in got]), self.scores[:10])

    def test_sinks(self):
        with tempfile.TemporaryDirectory() as folder:
            def saved(index, outputs):
                np.save(f"{folder}/{index}.npy", outputs[0])
                return f"{folder}/{index}.npy"

            paths = distributed.predict(self.int8, np.array_split(IMAGES, 3), sink=saved)
            np.testing.assert_array_equal(np.concatenate([np.load(path) for path in paths]), self.scores)

    def test_a_session_for_a_process(self):
        given = job.Job.of([self.int8])
        self.assertIs(job.session(given), job.session(pickle.loads(pickle.dumps(given))))
        self.assertEqual(given.key, job.Job.of([self.int8.save_bytes()]).key)
        self.assertNotEqual(given.key, job.Job.of([self.model]).key)
        for seed in range(job.KEPT_JOBS + 3):
            job.session(job.Job.of([self.int8], attrs={"threads": seed + 1}))
        self.assertEqual(len(job._kept), job.KEPT_JOBS)


class Evaluation(Case):
    def test_what_numpy_says(self):
        self.evaluated(distributed.evaluate(self.int8, pairs(1), reference=self.model))

    def test_the_same_bits_for_any_partitions(self):
        want = distributed.evaluate(self.int8, pairs(1), reference=self.model)
        for parts in 2, 9, 540:
            for batch in 1, 32:
                self.assertEqual(distributed.evaluate(self.int8, pairs(parts)[::-1], reference=self.model, batch=batch), want)
        batches = [[{"image": IMAGES[i : i + 50], "digit": LABELS[i : i + 50]}] for i in range(0, 540, 50)]
        self.assertEqual(distributed.evaluate(self.int8, batches, reference=self.model, label="digit"), want)

    def test_without_labels_or_reference(self):
        found = distributed.evaluate(self.int8, [IMAGES], reference=self.model, label=None)
        self.assertEqual(set(found), {"samples", "outputs", "top1_agreement"})
        found = distributed.evaluate(self.int8, pairs(3))
        correct = networks()["digits"].evaluated()["correct"]
        self.assertEqual(found, {"samples": 540, "correct": correct, "top1": correct / 540})
        self.refused(ValueError, "nothing to compare", distributed.evaluate, self.int8, [IMAGES], label=None)
        same = distributed.evaluate(self.model, pairs(3), reference=self.model)
        self.assertEqual(same["outputs"], [{"name": "scores", "sqnr_db": 999.0, "cosine": 1.0, "max_abs": 0.0}])

    def test_sums_are_exact(self):
        numbers = [1e16, 1.0, -1e16, 2.0**-1074, 3e-300, 0.1, -0.0]
        total = sum(fractions.Fraction(number) for number in numbers)
        self.assertEqual(fractions.Fraction(sum(exact(number) for number in numbers), 2**1074), total)

    def test_values_that_are_not_finite(self):
        for row in [np.nan, 1.0], [np.inf, 1.0], [1e200, 1.0]:
            sums = OfOutput()
            sums.add(np.asarray(row), np.zeros(2))
            self.assertEqual(sums.result("y"), {"name": "y", "sqnr_db": None, "cosine": None, "max_abs": None})


class Messages(Case):
    def test_data(self):
        calibrate, predict, evaluate = distributed.calibrate, distributed.predict, distributed.evaluate
        bad = np.full((1, 1, 8, 8), np.nan, np.float32)
        for config in "onnx", "fbgemm":
            self.refused(qt.InvalidError, r'^partition 1: calibrate: input "image" has nan at index 0 of sample', calibrate, self.model,
                         config, [SAMPLES, bad])
        self.refused(ValueError, r'^partition 0: item 0, input "image" has shape \[540, 1, 4, 8\], and the model takes', predict,
                     self.int8, [IMAGES[:, :, :4]])
        self.refused(ValueError, "^partition 0: a partition is of type 'int', not an array", predict, self.int8, [5])
        self.refused(ValueError, "^partition 0: item 0 is a numpy.ndarray, not a pair", evaluate, self.int8, [IMAGES])
        self.refused(ValueError, r'^partition 0: item 0 is a dict without labels under "label"', evaluate, self.int8, [{"image": IMAGES}])
        self.refused(ValueError, r"^partition 0: item 0 has labels of int64 \[539\], not 540 class", evaluate, self.int8,
                     [[(IMAGES, LABELS[1:])]])
        self.refused(ValueError, "^partition 0: it is empty", predict, self.int8, [[]])
        self.refused(TypeError, "^a dataset is of type 'int'", predict, self.int8, 5)
        self.refused(ValueError, "^the dataset has no partitions", calibrate, self.model, "onnx", [])
        self.refused(ValueError, "batch is 0", predict, self.int8, [IMAGES], batch=0)

    def test_engines(self):
        self.refused(ValueError, "engine is 'int', not a Client of Dask", distributed.predict, self.int8, [IMAGES], engine=3)
        self.refused(ValueError, "engine is 'ray', not", distributed.predict, self.int8, [IMAGES], engine="ray")

    def test_errors_travel(self):
        error = pickle.loads(pickle.dumps(work.Failed(qt.InvalidError("partition 3: ...")))).error
        self.assertIsInstance(error, qt.InvalidError)
        self.assertEqual(str(error), "partition 3: ...")


if __name__ == "__main__":
    unittest.main()
