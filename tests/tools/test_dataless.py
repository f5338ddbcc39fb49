# SPDX-License-Identifier: Apache-2.0
"""`qtensor quantize` without samples."""

import array
import os
import unittest

from support import CALIBRATION, IMAGES, LABELS, MODEL, CommandTest, onnx

OUT = "out.onnx"


class Dataless(CommandTest):
    def quantize(self, *options):
        """The file's size as part of the float model's, and how near its outputs are."""
        out = self.path(OUT)
        said = self.succeed("quantize", MODEL, "-o", out, *options)
        self.assertEqual("without samples" in said, "--data" not in options, said)
        result = self.succeed_json("compare", MODEL, out, "--data", IMAGES, "--labels", LABELS)
        return os.path.getsize(out) / os.path.getsize(MODEL), result["outputs"][0]["sqnr_db"], result["top1_b"]

    def test_dynamic(self):
        _, sqnr, top1 = self.quantize("--dynamic")
        self.assertGreater(sqnr, 45)
        self.assertGreaterEqual(top1, 528 / 540)
        size, sqnr, top1 = self.quantize("--dynamic", "--dynamic-conv", "--config", "fbgemm")
        self.assertLess(size, 0.33)  # with the formula of PyTorch's grids for each of six inputs, 1.8 kB
        self.assertGreater(sqnr, 33)
        self.assertGreaterEqual(top1, 527 / 540)

    def test_rows_and_tensors(self):
        """Rows are the default, also where nothing is said of samples; a grid for the whole input is another file."""
        files = {}
        for name, options in {"default": ["--dynamic"], "row": ["--dynamic", "--granularity", "row"], "silent": [],
                              "tensor": ["--dynamic", "--granularity", "tensor"]}.items():
            said = self.succeed("quantize", MODEL, "-o", self.path(OUT), *options)
            self.assertEqual("product quantizes its input at every run" in said, name == "silent", said)
            self.assertEqual("stay in float, which --data changes" in said, name == "silent", said)
            with open(self.path(OUT), "rb") as file:
                files[name] = file.read()
        self.assertEqual(files["default"], files["row"])
        self.assertEqual(files["default"], files["silent"])
        self.assertNotEqual(files["default"], files["tensor"])
        self.assertIn(b"IsInf", files["row"])  # of the formula
        self.assertNotIn(b"IsInf", files["tensor"])

    def test_nothing_that_samples_would_not_need(self):
        conv = self.path("conv.onnx", onnx([("Conv", ["x", "w"], ["y"])], {"x": [1, 1, 3, 3], "w": [1, 1, 3, 3]}, {"y": [1, 1, 1, 1]}))
        self.refuse("quantize", conv, "-o", self.path(OUT), says=["--data"])
        self.refuse("quantize", MODEL, "-o", self.path(OUT), "--plain", code=2, says=["--data"])

    def test_weights_only(self):
        for options, largest, least_sqnr in ((["int8"], 0.28, 35), (["int8", "--block", "32"], 0.31, 35),
                                             (["int4"], 0.16, 12), (["int4", "--block", "32"], 0.19, 12)):
            size, sqnr, top1 = self.quantize("--weights-only", *options)
            self.assertLess(size, largest, options)
            self.assertGreater(sqnr, least_sqnr, options)
            self.assertGreaterEqual(top1, 520 / 540, options)

    def test_samples_recover_coarse_weights(self):
        """GPTQ is tried, the report is there, and what nothing is tried for has the weights of no samples."""
        blocks = ["--weights-only", "int4", "--block", "32"]
        _, without, _ = self.quantize(*blocks)
        size, recovered, _ = self.quantize(*blocks, "--data", CALIBRATION)
        self.assertGreater(recovered, without + 2)
        self.assertLess(size, 0.2)
        told = self.succeed_json("quantize", MODEL, "-o", self.path(OUT), *blocks, "--data", CALIBRATION)
        self.assertIn("gptq", [trial["name"] for trial in told["trials"]])
        _, plain, _ = self.quantize(*blocks, "--data", CALIBRATION, "--plain")
        self.assertAlmostEqual(plain, without, delta=0.05)

    def test_both_engines_agree(self):
        """On integers to the bit; sums of floats are rounded in the order of each engine."""
        for options in (["--dynamic", "--dynamic-conv"], ["--weights-only", "int4", "--block", "16"]):
            out = self.path(OUT)
            self.succeed("quantize", MODEL, "-o", out, *options)
            for engine in ("native", "reference"):
                self.succeed("run", out, "--data", IMAGES, "-o", self.path(engine + ".npy"), "--engine", engine)
            outputs = []
            for engine in ("native", "reference"):
                with open(self.path(engine + ".npy"), "rb") as file:
                    outputs.append(file.read())
            if "--dynamic" in options:
                self.assertEqual(*outputs)
                continue
            native, reference = (array.array("f", content[128:]) for content in outputs)
            self.assertEqual(outputs[0][:128], outputs[1][:128])
            most = max(abs(v) for v in reference)
            self.assertLess(max(abs(a - b) for a, b in zip(native, reference, strict=True)), 1e-6 * most)

    def test_nothing_to_quantize(self):
        relu = self.path("relu.onnx", onnx([("Relu", ["x"], ["y"])], {"x": [1, 2]}, {"y": [1, 2]}))
        for options in (["--dynamic"], ["--weights-only", "int8"]):
            self.succeed("quantize", relu, "-o", self.path(OUT), *options)

    def test_quantized_models(self):
        for options in (["--dynamic"], ["--weights-only", "int8"], ["--data", CALIBRATION, "--samples", "2"]):
            out = self.path("quantized.onnx")
            self.succeed("quantize", MODEL, "-o", out, *options)
            for again in (["--dynamic"], ["--weights-only", "int4"]):
                self.refuse("quantize", out, "-o", OUT, *again, says="quantized already")

    def test_wrong_command_lines(self):
        for options in (["--dynamic", "--data", CALIBRATION], ["--dynamic", "--weights-only", "int8"],
                        ["--dynamic", "--samples", "3"], ["--granularity", "row"], ["--dynamic", "--granularity", "column"], ["--dynamic", "--auto"], ["--dynamic-conv", "--data", CALIBRATION],
                        ["--weights-only", "int2"], ["--weights-only", "int8", "--calibration", "x.qcal"],
                        ["--weights-only", "int4", "--data", CALIBRATION, "--auto"], ["--weights-only", "int8", "--samples", "3"],
                        ["--weights-only", "int8", "--config", "onnx"], ["--weights-only", "int8", "--block", "0"],
                        ["--dynamic", "--block", "32"]):
            self.refuse("quantize", MODEL, "-o", OUT, *options, code=2)


if __name__ == "__main__":
    unittest.main()
