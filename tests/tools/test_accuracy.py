# SPDX-License-Identifier: Apache-2.0
"""What makes up for lost accuracy, on the network of docs/walkthrough.md."""

import json
import math
import os
import re
import unittest

from support import CALIBRATION, IMAGES, LABELS, MODEL, CommandTest, npy, read_npy

MOBILE = os.path.join(os.path.dirname(MODEL), "mobile.onnx")
OBSERVERS = ["observer percentile", "observer mse"]  # tried where the configuration names none


class Accuracy(CommandTest):
    def quantized(self, *options):
        out = self.path("out.onnx")
        text = self.succeed("quantize", MOBILE, "-o", out, "--data", CALIBRATION, *options)
        compared = self.succeed_json("compare", MOBILE, out, "--data", IMAGES, "--labels", LABELS)
        if "--config" not in options:
            self.assertGreaterEqual(compared["top1_b"], compared["top1_a"] - 0.01, options)
        return compared["outputs"][0]["sqnr_db"], text

    def test_each_step_helps(self):
        coarse = ("--config", self.coarse())
        default, text = self.quantized(*coarse)
        plain, of_plain = self.quantized(*coarse, "--plain")
        chosen, of_auto = self.quantized(*coarse, "--auto")
        self.assertGreater(default, plain + 0.5)
        self.assertGreaterEqual(chosen, default + 0.5)
        self.assertRegex(text, r"tried: plain [\d.]+ dB \(kept\), .*gptq [\d.]+ dB \((from [\d.]+ dB, )?kept\)")
        self.assertNotIn("tried", of_plain)
        self.assertRegex(of_auto, r"observers [\d.]+ dB")

    def test_what_is_told(self):
        out = self.path("out.onnx")
        told = self.succeed_json("quantize", MOBILE, "-o", out, "--data", CALIBRATION)
        self.assertEqual(list(told), ["output", "bytes", "input_bytes", "samples", "accuracy", "trials", "nodes", "speed", "warnings", "next"])
        self.assertEqual(told["bytes"], os.path.getsize(out))
        self.assertEqual(told["input_bytes"], os.path.getsize(MOBILE))
        self.assertEqual(told["accuracy"]["samples"], min(32, (told["samples"] + 2) // 3))
        self.assertEqual([trial["name"] for trial in told["trials"]], ["plain", "equalize", *OBSERVERS, "bias_correction"])
        self.assertEqual(told["warnings"], [])
        compared = self.succeed_json("compare", MOBILE, out, "--data", CALIBRATION)
        self.assertLess(abs(told["accuracy"]["sqnr_db"] - compared["outputs"][0]["sqnr_db"]), 3)
        _, text = self.quantized()
        self.assertRegex(text, r"nodes: \d+ of \d+ in int8")
        self.assertRegex(text, r"speed: .* ms, in float here .* ms: [\d.]+ times as fast")

    def test_far_from_float(self):
        settings = {"weight_bits": 2, "activation_bits": 2}
        config = self.path("two.json", json.dumps({"recipe": "onnx", "rules": [{"selector": "*", "settings": settings}]}).encode())
        arguments = ("quantize", MOBILE, "-o", self.path("out.onnx"), "--data", CALIBRATION, "--config", config)
        done = self.execute(*arguments)
        self.assertEqual(done.returncode, 0)
        self.assertIn("qtensor: warning: the quantized model is far from the float one", done.stderr)
        self.assertRegex(done.stdout, r"next: try auto, or target_sqnr \d+")
        self.assertRegex(self.execute(*arguments, "--auto").stdout, r"next: try target_sqnr \d+, .* or quantization-aware training")

    def test_suspicious_data(self):
        values, shape, _ = read_npy(CALIBRATION)
        whole = [float(round(255 * value)) for value in values]
        size = len(whole) // shape[0]
        for array, count, words in ((whole, shape[0], "whole numbers from 0 to 255"), ([0.5] * 4 * size, 4, "is 0.5 everywhere"),
                                    (whole[:size], 1, "one sample")):
            data = self.path("data.npy", npy(array, (count, *shape[1:])))
            done = self.execute("quantize", MOBILE, "-o", self.path("out.onnx"), "--data", data)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(words, done.stderr)

    def test_what_a_configuration_says_is_done(self):
        """Equalization that is asked for is no candidate, nor is one that is refused."""
        for option, tried in (("--equalize", ["plain", *OBSERVERS, "bias_correction"]),
                              ("--no-equalize", ["plain", *OBSERVERS, "bias_correction"]),
                              ("--no-bias-correction", ["plain", "equalize", *OBSERVERS]),
                              ("--observer=minmax", ["plain", "equalize", "bias_correction"])):
            told = self.succeed_json("quantize", MOBILE, "-o", self.path("out.onnx"), "--data", CALIBRATION, option)
            self.assertEqual([trial["name"] for trial in told["trials"]], tried)
        equalized, _ = self.quantized("--plain", "--equalize")
        self.assertNotEqual(equalized, self.quantized("--plain")[0])
        self.refuse("quantize", MOBILE, "-o", self.path("no.onnx"), "--data", CALIBRATION, "--plain", "--auto",
                    code=2, says="--plain excludes --auto")

    def test_learned_rounding_of_int4(self):
        config = self.path("int4.json")
        settings = {"weight_dtype": "int4", "weight_scheme": "per_block_symmetric", "block_size": 32}
        with open(config, "w") as file:
            json.dump({"recipe": "onnx", "rules": [{"selector": "*", "settings": settings}]}, file)
        nearest, _ = self.quantized("--config", config, "--plain")
        learned, _ = self.quantized("--config", config, "--adaround")
        self.assertGreater(learned, nearest + 3)

    def test_target(self):
        before, _ = self.quantized()
        after, text = self.quantized("--target-sqnr", str(before + 2))
        left = [line for line in text.splitlines() if "left in float" in line]
        self.assertTrue(0 < len(left) < 10, text)
        self.assertGreater(after, before + 1)

    def coarse(self):
        """Settings under which predictions change: 4-bit weights, and one value of ten cut off."""
        settings = {"weight_dtype": "int4", "observer": "percentile", "percentile": 90.0}
        config = {"recipe": "onnx", "rules": [{"selector": "*", "settings": settings}]}
        return self.path("coarse.json", json.dumps(config).encode())

    def agreement(self, *options):
        """On the samples of calibration, with what was printed."""
        out = self.path("out.onnx")
        text = self.succeed("quantize", MOBILE, "-o", out, "--data", CALIBRATION, "--config", self.coarse(), "--no-bias-correction", *options)
        return self.succeed_json("compare", MOBILE, out, "--data", CALIBRATION)["top1_agreement"], text

    def nodes_in_integers(self, text):
        return int(re.search(r"^nodes: (\d+) of 19 in int8$", text, re.MULTILINE)[1])

    def test_target_of_predictions(self):
        before, _ = self.agreement()
        self.assertLess(before, 0.9)
        after, text = self.agreement("--target-top1", "0.98")
        self.assertGreaterEqual(after, 0.98)
        self.assertIn(f"target_top1 0.98: reached, {after:g}", text)
        self.assertIn("left in float", text)
        in_integers = self.nodes_in_integers(text)
        both, text = self.agreement("--target-top1", "0.98", "--target-sqnr", "20")
        self.assertGreaterEqual(both, 0.98)
        self.assertRegex(text, r"target_sqnr 20: reached, \d+")
        self.assertLess(self.nodes_in_integers(text), in_integers)

    def test_fallback_to_16_bits(self):
        before, _ = self.quantized()
        after, text = self.quantized("--target-sqnr", str(before + 2.5), "--fallback", "int16")
        self.assertIn("activations of 16 bits", text)
        self.assertNotIn("left in float", text)
        self.assertGreater(after, before)
        # int8 weights lose what they lose.
        _, text = self.quantized("--target-sqnr", "90", "--fallback", "int16")
        self.assertRegex(text, r"target_sqnr 90: NOT reached, \d+")
        options = ("quantize", MOBILE, "-o", self.path("no.onnx"), "--data", CALIBRATION)
        self.refuse(*options, "--fallback", "int16", code=2, says="--fallback needs --target-sqnr or --target-top1")
        self.refuse(*options, "--target-top1", "2", code=2, says="--target-top1: 2 is not a number above 0 and up to 1")

    def test_sensitivity(self):
        layers = self.succeed_json("sensitivity", MOBILE, "--data", CALIBRATION)["layers"]
        self.assertEqual(
            list(layers[0]),
            ["node", "op", "alone_sqnr_db", "alone_cosine", "accumulated_sqnr_db", "accumulated_cosine"],
        )
        # Noises of layers that are quantized alone add up to about that of all together.
        whole, _ = self.quantized()
        together = -10 * math.log10(sum(10 ** (-layer["alone_sqnr_db"] / 10) for layer in layers))
        self.assertLess(abs(together - whole), 3)
        text = self.succeed("sensitivity", MOBILE, "--data", CALIBRATION).splitlines()
        self.assertEqual(len(text), 1 + len(layers))
        shown = [float(line.split()[0]) for line in text[1:]]
        self.assertEqual(shown, sorted(shown))

    def test_what_measures_needs_data(self):
        self.succeed("calibrate", MOBILE, "-o", self.path("all.qcal"), "--data", CALIBRATION)
        options = ("quantize", MOBILE, "-o", self.path("out.onnx"), "--calibration", self.path("all.qcal"))
        self.succeed(*options)
        self.refuse(*options, "--auto", code=2, says=["needs --data"])
        self.refuse("quantize", MOBILE, "-o", self.path("no.onnx"), "--data", CALIBRATION, "--smooth", "2",
                    code=2, says="--smooth: 2 is not a number from 0 to 1")
        self.assertFalse(os.path.exists(self.path("no.onnx")))


if __name__ == "__main__":
    unittest.main()
