# SPDX-License-Identifier: Apache-2.0
"""Samples as the steps of a sequence: `run --state OUTPUT=INPUT`."""

import unittest

from support import CommandTest, npy, onnx, read_safetensors, safetensors

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
        self.refuse("run", self.model, "-o", self.out, "--data", f"x={self.data}", "--data", f"so_far={self.data}", "--state", "total=so_far",
                    code=2, says="that input is given by --state")


if __name__ == "__main__":
    unittest.main()
