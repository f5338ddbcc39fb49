# SPDX-License-Identifier: Apache-2.0
"""`train`: float from scratch, quantization-aware, stopped and gone on; and what it refuses."""

import json
import os
import signal
import subprocess
import time
import unittest

from support import COMMAND, DIGITS, IMAGES, LABELS, MODEL, CommandTest, npy, onnx, read_npy
from test_report import BROWSER, Page, browse

UNTRAINED = os.path.join(DIGITS, "untrained.onnx")
MOBILE = os.path.join(DIGITS, "mobile.onnx")
TRAIN_IMAGES = os.path.join(DIGITS, "train_images.npy")
TRAIN_LABELS = os.path.join(DIGITS, "train_labels.npy")
DATA = ("--data", TRAIN_IMAGES, "--labels", TRAIN_LABELS)
VALIDATION = ("--validation", IMAGES, "--validation-labels", LABELS)
LOG_KEYS = ["epoch", "step", "lr", "loss", "top1", "validation_loss", "validation_top1", "seconds"]
SECTIONS = ("totals", "accuracy", "loss", "rate", "epochs", "settings", "reproduce")


class TrainTest(CommandTest):
    def top1(self, model):
        """On pictures that were not trained on."""
        return self.succeed_json("compare", model, model, "--data", IMAGES, "--labels", LABELS)["top1_b"]

    def bytes_of(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def log(self, name="log.jsonl"):
        with open(self.path(name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class Float(TrainTest):
    def test_learns(self):
        self.assertLess(self.top1(UNTRAINED), 0.2)
        text = self.succeed("train", UNTRAINED, "-o", "out.onnx", *DATA, *VALIDATION, "--epochs", "4", "--log", "log.jsonl")
        top1 = self.top1("out.onnx")
        self.assertGreater(top1, 0.9)
        log = self.log()
        self.assertEqual([list(line) for line in log], [LOG_KEYS] * 4)
        self.assertEqual([(line["epoch"], line["step"]) for line in log], [(i, 39 * i) for i in range(1, 5)])
        self.assertLess(log[-1]["loss"], log[0]["loss"] / 4)
        self.assertLess(log[-1]["validation_loss"], log[0]["validation_loss"] / 2)
        self.assertEqual([line["lr"] for line in log], sorted((line["lr"] for line in log), reverse=True))
        self.assertAlmostEqual(log[-1]["lr"], 3e-5, delta=1e-6)
        # What is written is the best epoch, as another engine counts it.
        self.assertEqual(top1, max(line["validation_top1"] for line in log))
        self.assertIn(f"trained {100 * top1:.2f} %", text)

    def test_optimizers_and_schedules(self):
        for options in (("--optimizer", "sgd"), ("--optimizer", "sgd", "--momentum", "0", "--schedule", "constant"),
                        ("--optimizer", "adam", "--weight-decay", "0.0001", "--warmup", "10")):
            self.succeed("train", UNTRAINED, "-o", "out.onnx", *DATA, "--epochs", "3", "--log", "log.jsonl", *options)
            self.assertGreater(self.log()[-1]["top1"], 0.8, options)
        warm = self.log()
        self.assertTrue(all(line["validation_top1"] is None for line in warm))

    def test_same_seed_same_bytes(self):
        for name, seed in (("a.onnx", "0"), ("b.onnx", "0"), ("c.onnx", "1")):
            self.succeed("train", UNTRAINED, "-o", name, *DATA, "--epochs", "1", "--seed", seed)
        self.assertEqual(self.bytes_of("a.onnx"), self.bytes_of("b.onnx"))
        self.assertNotEqual(self.bytes_of("a.onnx"), self.bytes_of("c.onnx"))

    def test_says_what_it_judges_on(self):
        text = self.succeed("train", UNTRAINED, "-o", "out.onnx", *DATA, "--epochs", "1")
        self.assertIn("1257 samples, which it was trained on", text)

    def test_validation_in_several_files(self):
        values, shape, _ = read_npy(IMAGES)
        for i, (begin, end) in enumerate(((0, 200), (200, 540))):
            part = values[begin * 64:end * 64]
            self.path(f"v-{i}.npy", npy(part, (end - begin, *shape[1:])))
        said = []
        for files in ([IMAGES], ["v-0.npy", "v-1.npy"], ["v-*.npy"]):
            self.succeed("train", UNTRAINED, "-o", "out.onnx", *DATA, "--epochs", "1", "--validation", *files,
                         "--validation-labels", LABELS, "--log", "log.jsonl")
            said.append([line["validation_loss"] for line in self.log()])
        self.assertEqual(said[1:], said[:1] * 2)


class Quantized(TrainTest):
    def check(self, *options):
        text = self.succeed("train", MODEL, "-o", "out.onnx", *DATA, "--qat", "--epochs", "2", *options)
        nodes = self.succeed_json("inspect", self.path("out.onnx"))["nodes"]
        self.assertEqual({node["dtype"] for node in nodes}, {"int8"})
        for word in ("calibrated", "converted"):
            self.assertRegex(text, rf"{word} \d+\.\d\d %")
        return text

    def test_int8_is_as_good_as_float(self):
        self.check()
        self.assertGreater(self.top1("out.onnx"), self.top1(MODEL) - 0.01)

    def test_converted_is_what_was_measured(self):
        text = self.check(*VALIDATION)
        self.assertIn(f"converted {100 * self.top1('out.onnx'):.2f} %", text)

    def test_four_bits(self):
        config = self.path("int4.json", b'{"recipe": "onnx", "rules": [{"selector": "*", "settings": {"weight_bits": 4, '
                           b'"activation_bits": 4}}]}')
        bits = ("--weight-bits", "4", "--activation-bits", "4")
        self.succeed("quantize", MOBILE, "-o", "after.onnx", "--data", TRAIN_IMAGES, "--config", config, "--plain")
        self.succeed("train", MOBILE, "-o", "out.onnx", *DATA, "--qat", "--epochs", "3", *bits)
        self.assertGreater(self.top1("out.onnx"), self.top1("after.onnx") + 0.02)
        # The settings reach the grids, whose steps are 17 times as large.
        self.succeed("quantize", MOBILE, "-o", "bytes.onnx", "--data", TRAIN_IMAGES, "--config", "onnx")
        scales = [self.succeed_json("inspect", name)["nodes"][0]["output_scale"] for name in ("out.onnx", "bytes.onnx")]
        self.assertAlmostEqual(scales[0] / scales[1], 17, delta=3)
        # Weights are stored two to a byte; the rest of the file are scales, biases and names.
        few, whole = (self.succeed_json("inspect", name) for name in ("out.onnx", "bytes.onnx"))
        self.assertEqual({node.get("weight_dtype") for node in few["nodes"]}, {None, "int4"})
        self.assertEqual({node.get("weight_dtype") for node in whole["nodes"]}, {None, "int8"})
        self.assertIn(" int4 ", self.succeed("inspect", "out.onnx"))
        self.assertLess(few["parameter_bytes"], 0.65 * whole["parameter_bytes"])
        self.assertLess(os.path.getsize(self.path("out.onnx")), 0.9 * os.path.getsize(self.path("bytes.onnx")))


class Stopped(TrainTest):
    """Ctrl-C after two epochs, then --resume: the bytes of a training that was not stopped."""

    def check(self, model, *options):
        def arguments(name):
            return ["train", model, "-o", name + ".onnx", *DATA, *VALIDATION, "--epochs", "5", "--checkpoint",
                    name + ".safetensors", "--log", name + ".jsonl", *options]

        self.succeed(*arguments("whole"))
        process = subprocess.Popen([COMMAND, *arguments("parts")], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and process.poll() is None:
            if os.path.exists(self.path("parts.jsonl")) and len(self.log("parts.jsonl")) >= 2:
                process.send_signal(signal.SIGINT)
                break
            time.sleep(0.01)
        text, errors = process.communicate(timeout=200)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertRegex(text, r"\Astopped by Ctrl-C in epoch [2-5] of 5\nparts\.onnx: ")
        self.assertGreater(self.top1("parts.onnx"), 0.5)  # the best model so far
        self.succeed(*arguments("parts"), "--resume")
        for end in (".onnx", ".safetensors", ".best.safetensors"):
            self.assertEqual(self.bytes_of("parts" + end), self.bytes_of("whole" + end), end)
        self.assertEqual(self.log("parts.jsonl")[-1]["validation_loss"], self.log("whole.jsonl")[-1]["validation_loss"])
        # Nothing is left to do, and the model is the same again; the report has all epochs, from the log.
        with open(self.path("parts.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"epoch":5,"step":')
        self.succeed(*arguments("parts"), "--resume", "--report", "parts.html")
        self.assertEqual(self.bytes_of("parts.onnx"), self.bytes_of("whole.onnx"))
        shown = json.loads(Page(self.bytes_of("parts.html").decode()).data)["epochs"]
        seconds = [epoch.pop("seconds") for epoch in shown]
        wanted = self.log("whole.jsonl")
        self.assertTrue(all(wanted[i].pop("seconds") and seconds[i] for i in range(5)))
        self.assertEqual(shown, wanted)

    def test_float(self):
        self.check(UNTRAINED)

    def test_quantized(self):
        self.check(MODEL, "--qat")


class Report(TrainTest):
    def report(self, *options):
        self.succeed("train", *options, *DATA, *VALIDATION, "-o", "out.onnx", "--epochs", "2", "--report", "report.html")
        text = self.bytes_of("report.html").decode()
        page = Page(text)
        self.assertEqual((tuple(page.sections), page.loads, page.open), (SECTIONS, [], []))
        return json.loads(page.data)

    def test_data(self):
        data = self.report(MODEL, "--qat")
        self.assertEqual([list(epoch) for epoch in data["epochs"]], [LOG_KEYS] * 2)
        self.assertEqual(data["files"]["after"]["bytes"], os.path.getsize(self.path("out.onnx")))
        self.assertEqual(data["accuracies"]["after"], self.top1("out.onnx"))
        self.assertEqual(data["accuracies"]["before"], self.top1(MODEL))
        self.assertEqual(data["best"]["top1"], max(epoch["validation_top1"] for epoch in data["epochs"]))

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_in_a_browser(self):
        self.report(UNTRAINED)
        shown = browse(self.path("report.html"), self.folder)
        self.assertIn("untrained, trained", shown)
        self.assertEqual(shown.count("<polyline"), 5)  # top-1 and loss of two kinds of data, and the rate
        self.assertEqual(shown.count('r="6"'), 1)


class Refused(TrainTest):
    def refuse_train(self, *options, model=UNTRAINED, data=TRAIN_IMAGES, labels=TRAIN_LABELS, out="out.onnx", **how):
        self.refuse("train", model, "-o", out, "--data", data, "--labels", labels, *options, **how)

    def labels(self, first):
        values, shape, descr = read_npy(TRAIN_LABELS)
        return self.path("labels.npy", npy([first] + values[1:], shape, descr))

    def test_data(self):
        self.refuse_train(labels=LABELS, says=["540 labels", "1257 samples"])
        self.refuse_train(labels=self.labels(10), says=["label 10 of sample 0", "10"])
        self.refuse_train(labels=self.labels(-1), says="label -1 of sample 0")
        self.refuse_train(labels="no-labels.npy", says="no-labels.npy")
        self.refuse_train(data="no-data.npy", says="no-data.npy")
        self.refuse_train("--validation", IMAGES, "--validation-labels", TRAIN_LABELS, says=["1257 labels", "540 samples"])
        self.refuse_train("--batch", "5000", says=["5000", "1257"])
        self.refuse_train(data=self.path("wide.npy", npy([0.0] * 1257 * 9, (1257, 1, 3, 3))), says="x1x3x3")

    def test_models(self):
        self.refuse_train(model="no-model.onnx", says="no-model.onnx")
        self.succeed("quantize", MODEL, "-o", "int8.onnx", "--data", IMAGES, "--samples", "20")
        self.refuse_train(model="int8.onnx", says="quantized")
        self.refuse_train("--qat", model="int8.onnx", says="quantized")
        nothing = self.path("nothing.onnx", onnx([("Flatten", ["x"], ["y"])], {"x": ["n", 1, 8, 8]}, {"y": ["n", 64]}))
        self.refuse_train(model=nothing, says="nothing to train")
        picture = self.path("picture.onnx", onnx([("Relu", ["x"], ["y"])], {"x": ["n", 1, 8, 8]}, {"y": ["n", 1, 8, 8]}))
        self.refuse_train(model=picture)

    def test_files(self):
        missing = os.path.join("no-such-folder", "file")
        self.refuse_train(out=missing, says=missing)
        for option in ("--report", "--log"):
            self.refuse_train(option, missing, says=missing)
            self.refuse_train(option, "out.onnx", code=2, says="out.onnx")
        self.refuse_train("--checkpoint", missing + ".safetensors", says=missing)
        self.refuse_train("--checkpoint", "state.bin", code=2, says=["state.bin", ".safetensors"])
        self.refuse_train("--checkpoint", "none.safetensors", "--resume", says="none.safetensors")
        self.path("bad.safetensors", b"\0" * 40)
        self.refuse_train("--checkpoint", "bad.safetensors", "--resume", says="bad.safetensors")

    def test_options(self):
        for option in (("--config", "onnx"), ("--weight-bits", "4"), ("--activation-bits", "4")):
            self.refuse_train(*option, code=2, says=[option[0], "--qat"])
        self.refuse_train("--qat", "--weight-bits", "1", code=2, says=["1", "2 to 8"])
        self.refuse_train("--qat", "--config", "no-recipe", code=2, says="no-recipe")
        self.refuse_train("--resume", code=2, says="--checkpoint")
        for option, value in (("--seed", str(2**64)), ("--seed", str(2**63)), ("--seed", ""), ("--lr", "inf"), ("--lr", "0"),
                              ("--weight-decay", "inf")):
            self.refuse_train(option, value, code=2, says=[option, value])
        self.refuse_train("--optimizer", "sgd", "--momentum", "1", code=2, says="--momentum")
        self.refuse_train("--validation", IMAGES, code=2, says="--validation-labels")
        self.refuse_train("--validation-labels", LABELS, code=2, says="--validation")
        self.refuse_train("--momentum", "0.9", code=2, says="--momentum")
        self.refuse_train("--epochs", "1", "--warmup", "39", says=["39", "warmup"])
        for option in ("--epochs", "--batch", "--lr", "--warmup"):
            self.refuse_train(option, "0", code=2, says=option)
        self.refuse_train("--lr", "nan", code=2, says="nan")
        self.refuse_train("--optimizer", "lion", code=2, says="lion")

    def test_other_checkpoint(self):
        self.succeed("train", UNTRAINED, "-o", "out.onnx", *DATA, "--epochs", "1", "--checkpoint", "one.safetensors")
        os.remove(self.path("out.onnx"))
        resumed = ("--checkpoint", "one.safetensors", "--resume")
        self.refuse_train(*resumed, "--epochs", "2", "--batch", "64", says=["one.safetensors", "step 39", "--batch"])
        self.refuse_train(*resumed, "--epochs", "2", "--optimizer", "sgd", says="one")
        self.refuse_train(*resumed, "--epochs", "2", model=MODEL, says="one")

    def test_divergence(self):
        self.refuse_train("--optimizer", "sgd", "--lr", "1e30", says=["not finite", "step"])


if __name__ == "__main__":
    unittest.main()
