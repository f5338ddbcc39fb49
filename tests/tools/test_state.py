# SPDX-License-Identifier: Apache-2.0
"""Samples as the steps of a sequence: `run --state OUTPUT=INPUT`."""

import os
import unittest

from support import CommandTest, npy, onnx, read_npy, read_safetensors, safetensors

# Sums of all that came so far, and how far each of them is from x.
SUMS = onnx([("Add", ["x", "so_far"], ["total"]), ("Sub", ["total", "x"], ["rest"])], {"x": [1, 2], "so_far": [1, 2]},
            {"rest": [1, 2], "total": [1, 2]})
STEPS = [1, 2, 10, 20, 100, 200]


class State(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.path("sums.onnx", SUMS)
        self.data = self.path("x.npy", npy(STEPS, (3, 2)))
        self.out = self.path("out.safetensors")

    def test_each_sample_begins_with_the_state_of_the_one_before(self):
        files = {"alone": self.data, "named": f"x={self.data}", "by name": self.path("x.safetensors", safetensors({"x": (STEPS, [3, 2])}))}
        for form, data in files.items():
            with self.subTest(form):
                self.succeed("run", self.model, "--data", data, "--state", "total=so_far", "-o", self.out)
                got = read_safetensors(self.out)
                self.assertEqual(got["total"][0], [1, 2, 11, 22, 111, 222])
                self.assertEqual(got["rest"][0], [0, 0, 1, 2, 11, 22])

    def test_what_is_no_state(self):
        run = ["run", self.model, "-o", self.out, "--data", self.data, "--state"]
        self.refuse(*run, "total=y", says="--state total=y: is not OUTPUT=INPUT with names of the model")
        self.refuse(*run, "x=so_far", says="--state x=so_far: is not OUTPUT=INPUT")
        self.refuse(*run, "total=so_far", "--state", "rest=so_far", code=2, says="--state rest=so_far: that input has been given already")
        self.refuse(*run, "total=so_far", "--state", "rest=x", says="--state leaves no input for --data")

    def test_data_for_the_state_begin_with_it(self):
        first = self.path("first.npy", npy([1000, 2000], (1, 2)))
        both = self.path("both.safetensors", safetensors({"x": (STEPS, [3, 2]), "so_far": ([1000, 2000], [1, 2])}))
        for data in ([f"x={self.data}", f"so_far={first}"], [both]):
            self.succeed("run", self.model, "--data", *data, "--state", "total=so_far", "-o", self.out)
            self.assertEqual(read_safetensors(self.out)["total"][0], [1001, 2002, 1011, 2022, 1111, 2222])
        run = ("run", self.model, "-o", self.out, "--state", "total=so_far", "--data")
        self.refuse(*run, f"x={self.data}", f"so_far={self.data}", says='"so_far" takes 1x2, not 3x2')
        self.refuse(*run, f"so_far={first}", says="no file for the input 'x'")
        self.refuse("run", self.model, "-o", "alias.safetensors", "--state", "total=so_far", "--data", f"x={self.data}",
                    f"so_far={self.alias(first)}", code=2, says="alias.safetensors: is also read")

    def alias(self, path):
        os.symlink(path, self.path("alias.safetensors"))
        return path

    def test_open_batch(self):
        """Zeros for each sample of a run: with two, samples 0, 2, 4 are one stream and 1, 3, 5 the other."""
        shape = ["batch", 2]
        model = onnx([("Add", ["x", "so_far"], ["total"])], {"x": shape, "so_far": shape}, {"total": shape})
        model, data, out = self.path("open.onnx", model), self.path("x.npy", npy(range(12), (6, 2))), self.path("out.npy")
        for batch, sums in (([], [0, 1, 2, 4, 6, 9, 12, 16, 20, 25, 30, 36]),
                            (["--batch", "2"], [0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 21])):
            self.succeed("run", model, "--data", data, "--state", "total=so_far", "-o", out, *batch)
            self.assertEqual((read_npy(out)[0], read_npy(out)[1]), (sums, (6, 2)), batch)

    def test_other_open_dimensions_have_to_be_given(self):
        """How long the first keys and values of a decoder are, for example, would be a guess."""
        model = onnx([("Add", ["x", "so_far"], ["total"])], {"x": ["batch", 1], "so_far": ["batch", "length"]},
                     {"total": ["batch", "length"]})
        model, data, out = self.path("open.onnx", model), self.path("x.npy", npy([1, 10], (2, 1))), self.path("out.npy")
        run = ("run", model, "--state", "total=so_far", "-o", out, "--data", f"x={data}")
        self.refuse(*run, says=["1x?", "--data so_far=FILE.npy"])
        self.succeed(*run, "so_far=" + self.path("first.npy", npy([100, 200, 300], (1, 3))))
        self.assertEqual(read_npy(out)[0], [101, 201, 301, 111, 211, 311])


if __name__ == "__main__":
    unittest.main()
