# SPDX-License-Identifier: Apache-2.0
"""Bad input: one line that says what is wrong, the right exit code, and nothing half-written."""

import json
import os
import random
import subprocess
import unittest

from support import CALIBRATION, COMMAND, IMAGES, LABELS, MODEL, CommandTest, npy, onnx, opset_import, safetensors


class Models(CommandTest):
    def each_command(self, model):
        yield ["quantize", model, "-o", "out.onnx", "--data", CALIBRATION]
        yield ["run", model, "-o", "out.npy", "--data", IMAGES]
        yield ["compare", MODEL, model, "--data", IMAGES]
        yield ["bench", model]
        yield ["inspect", model]

    def check_broken(self, model, says=()):
        for arguments in self.each_command(model):
            self.refuse(*arguments, says=says)

    def test_missing_file(self):
        self.check_broken("no-such-file.onnx", "no-such-file.onnx")

    def test_directory(self):
        os.mkdir(self.path("folder.onnx"))
        self.check_broken("folder.onnx", "folder.onnx")

    def test_empty_file(self):
        self.check_broken(self.path("empty.onnx", b""))

    def test_truncated(self):
        with open(MODEL, "rb") as file:
            whole = file.read()
        self.check_broken(self.path("cut.onnx", whole[:len(whole) // 2]))
        chooser = random.Random(1)
        for _ in range(40):
            self.refuse("inspect", self.path("cut.onnx", whole[:chooser.randrange(len(whole) - 200)]))

    def test_random_bytes(self):
        chooser = random.Random(2)
        for size in (1, 7, 64, 1000, 100000):
            self.check_broken(self.path("random.onnx", chooser.randbytes(size)))

    def test_damaged_anywhere_never_crashes(self):
        with open(MODEL, "rb") as file:
            whole = file.read()
        chooser = random.Random(3)
        for _ in range(60):
            damaged = bytearray(whole)
            for _ in range(4):
                damaged[chooser.choice((chooser.randrange(200), chooser.randrange(len(whole))))] = chooser.randrange(256)
            done = self.execute("inspect", self.path("damaged.onnx", bytes(damaged)), "--json")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            if done.returncode == 1:
                self.assertRegex(done.stderr, r"\Aqtensor: [^\n]+\n\Z")

    def test_unknown_operator_names_it(self):
        model = onnx([("Frobnicate", ["x"], ["y"])], {"x": ["n", 2]}, {"y": ["n", 2]})
        path = self.path("unknown.onnx", model)
        for arguments in self.each_command(path):
            if arguments[0] != "inspect":
                self.refuse(*arguments, says=["Frobnicate", "node0"])

    def test_inspect_lists_unknown_operators(self):
        nodes = [("Frobnicate", ["x"], ["a"]), ("Frobnicate", ["a"], ["b"]), ("SequenceMap", ["b"], ["y"])]
        model = self.path("unknown.onnx", onnx(nodes, {"x": ["n", 2]}, {"y": ["n", 2]}))
        done = self.execute("inspect", model)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aqtensor: [^\n]+Frobnicate[^\n]+\n\Z")
        self.assertRegex(done.stdout, r"Frobnicate +ai.onnx +2  export for an older opset")
        self.assertRegex(done.stdout, r"SequenceMap +ai.onnx +1  sequences are supported where")
        done = self.execute("inspect", self.path("one.onnx", onnx(nodes[:1], {"x": ["n", 2]}, {"a": ["n", 2]})), "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([(u["op"], u["domain"], u["nodes"]) for u in json.loads(done.stdout)["unsupported"]],
                         [("Frobnicate", "ai.onnx", 1)])

    def test_unknown_operators_have_the_opset_of_their_domain(self):
        nodes = [("near::Frobnicate", ["x"], ["a"]), ("far::Frobnicate", ["a"], ["b"]), ("Frobnicate", ["b"], ["y"])]
        model = onnx(nodes, {"x": ["n", 2]}, {"y": ["n", 2]}) + opset_import("far", 2**40)
        done = self.execute("inspect", self.path("domains.onnx", model), "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual({u["domain"]: u["opset"] for u in json.loads(done.stdout)["unsupported"]},
                         {"near": None, "far": 2**40, "ai.onnx": 17})

    def test_cycle(self):
        model = onnx([("Add", ["x", "b"], ["a"]), ("Relu", ["a"], ["b"])], {"x": ["n", 2]}, {"b": ["n", 2]})
        self.check_broken(self.path("cycle.onnx", model))

    def test_missing_initializer(self):
        model = onnx([("Add", ["x", "w"], ["y"])], {"x": ["n", 2]}, {"y": ["n", 2]})
        self.check_broken(self.path("missing.onnx", model), "w")

    def test_models_that_do_not_compare(self):
        other = self.path("other.onnx", onnx([("Relu", ["image"], ["y"])], {"image": ["n", 1, 8, 8]}, {"y": ["n", 1, 8, 8]}))
        self.refuse("compare", MODEL, other, "--data", IMAGES, says=["1x10", "1x1x8x8"])

    def test_quantizing_twice(self):
        int8 = self.path("int8.onnx")
        self.succeed("quantize", MODEL, "-o", int8, "--data", CALIBRATION, "--samples", "5")
        self.refuse("quantize", int8, "-o", self.path("again.onnx"), "--data", CALIBRATION)

    def test_open_dimensions_in_bench(self):
        model = onnx([("Relu", ["x"], ["y"])], {"x": ["n", 3, "height"]}, {"y": ["n", 3, "height"]})
        path = self.path("open.onnx", model)
        self.refuse("bench", path, says=["'x'", "dimension 2", "--shape x="])
        self.refuse("bench", path, "--shape", "y=1x3x4", says=["y=1x3x4"])
        self.refuse("bench", path, "--shape", "x=1x3", says=["?x3x?", "1x3"])
        self.refuse("bench", path, "--shape", "x=1x-3x4", code=2)
        self.refuse("bench", path, "--shape", "1x3x4", code=2)
        self.succeed("bench", path, "--shape", "x=1x3x4", "--seconds", "0.1")


class Data(CommandTest):
    def each_command(self, data):
        yield ["quantize", MODEL, "-o", "out.onnx", "--data", data]
        yield ["run", MODEL, "-o", "out.npy", "--data", data]
        yield ["compare", MODEL, MODEL, "--data", data]

    def check_broken(self, data, says=()):
        for arguments in self.each_command(data):
            self.refuse(*arguments, says=says)

    def test_files_that_are_no_arrays(self):
        self.check_broken("no-such-file.npy", "no-such-file.npy")
        os.mkdir(self.path("empty-folder"))
        self.check_broken("empty-folder", "empty-folder")
        for content in (b"", b"\x93NUMPY", b"hello world, this is no array", random.Random(4).randbytes(1000)):
            self.check_broken(self.path("x.npy", content), "x.npy")
            self.check_broken(self.path("x.safetensors", content), "x.safetensors")

    def test_npy_headers(self):
        good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
        for header in (
                "", "{", "{}", "[]", good[:-3], good.replace("<f4", "<c8"), good.replace("<f4", "|O"),
                good.replace("False", "Maybe"), good.replace("(1,", "(-1,"),
                good.replace("(1,", "(99999999999999999999,"), good.replace("(1, 1, 8, 8)", "(4294967296, 4294967296, 8, 8)"),
                good.replace("(1, 1, 8, 8)", "()"), good.replace("(1, 1, 8, 8)", "(0, 1, 8, 8)"),
                good.replace("(1,", "(2,"), good.replace("(1,", "(" + "1, " * 100), good.replace("'shape'", "'size'"),
                good.replace("'descr': '<f4', ", "")):
            self.check_broken(self.path("x.npy", npy([0.5] * 64, (), header=header or " ")), "x.npy")

    def test_npy_truncated(self):
        whole = npy([0.5] * 64, (1, 1, 8, 8))
        for size in (*range(0, 130, 7), len(whole) - 1):
            self.refuse("run", MODEL, "-o", "out.npy", "--data", self.path("x.npy", whole[:size]), says="x.npy")
        self.refuse("run", MODEL, "-o", "out.npy", "--data", self.path("x.npy", whole.replace(b"NUMPY\x01", b"NUMPY\x09")))

    def test_safetensors_headers(self):
        whole = safetensors({"image": ([0.5] * 64, [1, 1, 8, 8])})
        for old, new in ((b"F32", b"F33"), (b"256", b"255"), (b"256", b"999"), (b'"shape"', b'"shope"'), (b"[0,", b"[9,"),
                         (b"[1, 1, 8, 8]", b"[1,-1, 8, 8]"), (b"[1, 1, 8, 8]", b'[1,"1",8, 8]'), (b"[0, 256]", b"[256, 0]"),
                         (b"image", b"imaga"), (b"{", b"["), (b"[0, 256]", b"[0,1e99]"), (b"image", b"im\xffge")):
            self.assertIn(old, whole)
            self.check_broken(self.path("x.safetensors", whole.replace(old, new)))
        for size in (0, 7, 8, 20, len(whole) - 1):
            self.check_broken(self.path("x.safetensors", whole[:size]))

    def test_wrong_shape_names_both(self):
        self.check_broken(self.path("x.npy", npy([0.5] * 49, (1, 1, 7, 7))), ["image", "1x1x7x7", "x1x8x8"])
        self.check_broken(self.path("x.npy", npy([0.5] * 64, (1, 64))), "image")

    def test_wrong_element_type(self):
        self.check_broken(self.path("x.npy", npy([1] * 64, (1, 1, 8, 8), "|u1")), ["image", "uint8"])

    def test_not_a_number_in_calibration(self):
        for bad in ("nan", "inf", "-inf"):
            values = [0.5] * 64 * 5
            values[64 * 3 + 10] = float(bad)
            data = self.path("x.npy", npy(values, (5, 1, 8, 8)))
            self.refuse("quantize", MODEL, "-o", "out.onnx", "--data", data, says=["image", "3"])

    def test_labels(self):
        data = self.path("x.npy", npy([0.5] * 128, (2, 1, 8, 8)))
        for labels, says in ((npy([1], (1,), "<i8"), "1 labels for 2 samples"), (npy([1, 10], (2,), "<i8"), "label 10"),
                             (npy([1, -1], (2,), "<i8"), "label -1"), (npy([1, 1], (2,), "<f4"), "float32"),
                             (npy([1] * 4, (2, 2), "<i8"), "2x2")):
            self.refuse("compare", MODEL, MODEL, "--data", data, "--labels", self.path("labels.npy", labels), says=says)
        self.refuse("compare", MODEL, MODEL, "--data", data, "--labels", "no-labels.npy", says="no-labels.npy")


class Outputs(CommandTest):
    def test_places_that_cannot_be_written(self):
        os.mkdir(self.path("folder.onnx"))
        os.mkdir(self.path("folder.npy"))
        self.path("file", b"")
        for path in ("no-such-folder/out", "file/out", "/proc/out"):
            self.refuse("quantize", MODEL, "-o", path + ".onnx", "--data", CALIBRATION, says=path)
            self.refuse("run", MODEL, "-o", path + ".npy", "--data", IMAGES, says=path)
        self.refuse("quantize", MODEL, "-o", "folder.onnx", "--data", CALIBRATION, says="folder.onnx")
        self.refuse("run", MODEL, "-o", "folder.npy", "--data", IMAGES, says="folder.npy")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_folder_without_permission(self):
        os.mkdir(self.path("locked"), 0o500)
        self.refuse("quantize", MODEL, "-o", "locked/out.onnx", "--data", CALIBRATION, says="locked/out.onnx")

    def test_failure_keeps_what_was_there(self):
        out = self.path("out.onnx", b"precious")
        data = self.path("x.npy", npy([float("nan")] * 64, (1, 1, 8, 8)))
        self.refuse("quantize", MODEL, "-o", out, "--data", data)
        with open(out, "rb") as file:
            self.assertEqual(file.read(), b"precious")


class CommandLine(CommandTest):
    def test_wrong_command_line(self):
        for arguments in (
                [], ["frobnicate"], ["--frobnicate"], ["inspect"], ["inspect", MODEL, "--frobnicate"], ["inspect", MODEL, "more"],
                ["run", MODEL], ["run", MODEL, "-o", "out.npy"], ["run", MODEL, "--data", IMAGES],
                ["run", MODEL, "--data", IMAGES, "-o", "out.txt"], ["run", MODEL, "--data", IMAGES, "-o"],
                ["run", MODEL, "--data", IMAGES, "-o", "out.npy", "--batch", "0"],
                ["run", MODEL, "--data", IMAGES, "-o", "out.npy", "--batch", "two"],
                ["run", MODEL, "--data", IMAGES, "-o", "out.npy", "--threads", "-1"],
                ["run", MODEL, "--data", IMAGES, "-o", "out.npy", "--engine", "magic"],
                ["quantize", MODEL, "--data", CALIBRATION], ["quantize", MODEL, "-o", "out.onnx", "--samples", "3"],
                ["quantize", MODEL, "-o", "out.onnx", "--data", CALIBRATION, "--samples", "0"],
                ["quantize", MODEL, "-o", "out.onnx", "--data", CALIBRATION, "--format", "xml"],
                ["compare", MODEL, "--data", IMAGES], ["bench"], ["bench", MODEL, "--seconds", "-1"]):
            self.assertLess(len(self.refuse(*arguments, code=2)), 200)

    def test_names_that_the_library_does_not_know(self):
        quantize = ["quantize", MODEL, "-o", "out.onnx", "--data", CALIBRATION]
        self.refuse(*quantize, "--config", "no-such-config", code=2, says="no-such-config")
        self.refuse(*quantize, "--observer", "no-such-observer", code=2, says="no-such-observer")
        self.refuse("run", MODEL, "--data", IMAGES, "-o", "out.npy", "--isa", "z80", code=2, says="z80")

    def test_numbers_outside_of_their_range(self):
        quantize = ["quantize", MODEL, "-o", "out.onnx", "--data", CALIBRATION]
        for option in ("--smooth", "--target-top1"):
            for number in ("-0.1", "1.5", "nan", "0.5x"):
                self.refuse(*quantize, option, number, code=2, says=[option, number])
        for option, number in (("--target-top1", "0"), ("--target-sqnr", "nan"), ("--target-sqnr", ""), ("--samples", "")):
            self.refuse(*quantize, option, number, code=2, says=[option, number or "an empty word"])
        self.refuse("run", MODEL, "--data", IMAGES, "-o", "out.npy", "--threads", "1025", code=2, says="1025")
        self.refuse("bench", MODEL, "--threads", "1025", code=2, says="1025")

    def test_options_that_contradict_each_other(self):
        quantize = ["quantize", MODEL, "-o", "out.onnx", "--data", CALIBRATION]
        for a, b in (("--equalize", "--no-equalize"), ("--bias-correction", "--no-bias-correction"), ("--plain", "--auto"),
                     ("--plain", "--adaround"), ("--plain", "--bias-correction"), ("--plain", "--absorb-bias")):
            self.refuse(*quantize, a, b, code=2, says=[a, b])
        self.succeed(*quantize, "--plain", "--no-bias-correction", "--no-equalize")
        self.succeed("calibrate", MODEL, "-o", "all.qcal", "--data", CALIBRATION)
        for option in (["--samples", "5"], ["--mean", "1"], ["--layout", "nhwc"]):
            self.refuse("quantize", MODEL, "-o", "out.onnx", "--calibration", "all.qcal", *option, code=2, says=[option[0], "--data"])
            self.refuse("quantize", MODEL, "-o", "out.onnx", *option, code=2, says=[option[0], "--data"])

    def test_shapes_that_contradict_each_other(self):
        bench = ["bench", self.path("m.onnx", onnx([("Relu", ["x"], ["y"])], {"x": ["n", 3]}, {"y": ["n", 3]})), "--seconds", "0.01"]
        self.refuse(*bench, "--shape", "x=2x3", "--shape", "x=3x3", code=2, says="x=3x3")
        self.refuse(*bench, "--shape", "x=2x3", "--batch", "7", code=2, says=["--batch 7", "2x3"])
        self.assertEqual(self.succeed_json(*bench, "--shape", "x=2x3", "--batch", "2")["batch"], 2)
        self.assertEqual(self.succeed_json(*bench)["batch"], 1)

    def test_unknown_words_are_named(self):
        for word in ("frobnicate", "--frobnicate"):
            self.refuse(word, code=2, says=word + ": no such sub-command or option")

    def test_help_on_a_full_device(self):
        with open("/dev/full", "wb") as full:
            for option in ("--help", "--version"):
                done = subprocess.run([COMMAND, option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (1, "qtensor: standard output cannot be written\n"))


if __name__ == "__main__":
    unittest.main()
