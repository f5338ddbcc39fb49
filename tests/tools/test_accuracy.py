# SPDX-License-Identifier: Apache-2.0
"""What makes up for lost accuracy, on the network of docs/walkthrough.md."""

import json
import math
import os
import unittest

from support import CALIBRATION, IMAGES, LABELS, MODEL, CommandTest

MOBILE = os.path.join(os.path.dirname(MODEL), "mobile.onnx")


class Accuracy(CommandTest):
    def quantized(self, *options):
        out = self.path("out.onnx")
        text = self.succeed("quantize", MOBILE, "-o", out, "--data", CALIBRATION, *options)
        compared = self.succeed_json("compare", MOBILE, out, "--data", IMAGES, "--labels", LABELS)
        self.assertGreaterEqual(compared["top1_b"], compared["top1_a"] - 0.01, options)
        return compared["outputs"][0]["sqnr_db"], text

    def test_each_step_helps(self):
        default, _ = self.quantized()
        plain, _ = self.quantized("--config", "onnx")
        corrected, _ = self.quantized("--bias-correction")
        chosen, text = self.quantized("--auto")
        self.assertGreater(default, plain)
        self.assertGreater(corrected, default + 0.5)
        self.assertGreater(chosen, default + 1)
        self.assertRegex(text, r"image: \w+ \(minmax [\d.]+ dB, histogram [\d.]+ dB, mse [\d.]+ dB, percentile [\d.]+ dB")
        self.assertIn("bias_corrected", text)

    def test_equalize_is_the_default_without_config(self):
        same = {self.quantized(*options)[0] for options in ([], ["--equalize"], ["--config", "onnx", "--equalize"])}
        self.assertEqual(len(same), 1)
        other = {self.quantized(*options)[0] for options in (["--no-equalize"], ["--config", "onnx"])}
        self.assertEqual(len(other), 1)
        self.assertNotEqual(same, other)

    def test_learned_rounding_of_int4(self):
        config = self.path("int4.json")
        settings = {"weight_dtype": "int4", "weight_scheme": "per_block_symmetric", "block_size": 32}
        with open(config, "w") as file:
            json.dump({"recipe": "onnx", "rules": [{"selector": "*", "settings": settings}]}, file)
        nearest, _ = self.quantized("--config", config)
        learned, _ = self.quantized("--config", config, "--adaround")
        self.assertGreater(learned, nearest + 3)

    def test_target(self):
        before, _ = self.quantized()
        after, text = self.quantized("--target-sqnr", str(before + 2))
        left = [line for line in text.splitlines() if "left in float" in line]
        self.assertTrue(0 < len(left) < 10, text)
        self.assertGreater(after, before + 1)

    def coarse(self):
        """Settings under which predictions change: 4-bit weights, and one value of twenty cut off."""
        settings = {"weight_dtype": "int4", "observer": "percentile", "percentile": 95.0}
        config = {"recipe": "onnx", "rules": [{"selector": "*", "settings": settings}]}
        return self.path("coarse.json", json.dumps(config).encode())

    def agreement(self, *options):
        """On the samples of calibration, with what was printed."""
        out = self.path("out.onnx")
        text = self.succeed("quantize", MOBILE, "-o", out, "--data", CALIBRATION, "--config", self.coarse(), *options)
        return self.succeed_json("compare", MOBILE, out, "--data", CALIBRATION)["top1_agreement"], text

    def test_target_of_predictions(self):
        before, _ = self.agreement()
        self.assertLess(before, 0.9)
        after, text = self.agreement("--target-top1", "0.98")
        self.assertGreaterEqual(after, 0.98)
        self.assertIn(f"target_top1 0.98: reached, {after:g}", text)
        left = [line for line in text.splitlines() if "left in float" in line]
        both, text = self.agreement("--target-top1", "0.98", "--target-sqnr", "20")
        self.assertGreaterEqual(both, 0.98)
        self.assertRegex(text, r"target_sqnr 20: reached, \d+")
        self.assertGreater(len([line for line in text.splitlines() if "left in float" in line]), len(left))
        self.assertTrue(left)

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
        self.refuse(*options, "--target-top1", "2", says="target_top1 2 is outside (0, 1]")

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
                    says=["smooth 2 is outside [0, 1]"])
        self.assertFalse(os.path.exists(self.path("no.onnx")))


if __name__ == "__main__":
    unittest.main()
