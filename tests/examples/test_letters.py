#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training gives the language model of examples/transformers back a part of what weights of four bits cost."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: NumPy is missing")
    sys.exit(77)

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/transformers/train_letters.py"


class Letters(unittest.TestCase):
    def test_few_steps_help(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "letters.onnx"
            done = subprocess.run([sys.executable, "-B", SCRIPT, out, "--steps", "20"], check=True, capture_output=True, text=True)
            bits = [float(number) for number in re.findall(r"\d\.\d{4}", done.stdout)]
            self.assertEqual(len(bits), 4, done.stdout)
            exact, rounded, recovered, trained = bits
            self.assertAlmostEqual(exact, 2.077, places=3)  # what PyTorch printed when it was trained
            self.assertLess(recovered, rounded - 0.4 * (rounded - exact), done.stdout)
            self.assertLess(trained, rounded - 0.2 * (rounded - exact), done.stdout)
            self.assertLess(out.stat().st_size, 0.22 * (SCRIPT.parent / "letters.onnx").stat().st_size)


if __name__ == "__main__":
    unittest.main()
