# SPDX-License-Identifier: Apache-2.0
"""The packages for other languages with allocations failing in turn, wherever a conformance case calls them: the error
that a language has for it, and the same call succeeds afterwards. Those of C++ fail, not those of the language itself."""

import os
import re
import subprocess
import unittest

from support import ALL, DIGITS, figure

ROOT = os.path.realpath(os.path.join(DIGITS, "..", ".."))
CASES = ["cases", "errors", "torch", "toolkit", "networks", "training"] if ALL else ["cases"]
# From there on, each point is a tenth farther than the one before.
DENSE = "100" if ALL else "3"


class Languages(unittest.TestCase):
    def walk(self, language):
        command = os.environ.get(f"QTENSOR_WALK_{language}")
        if not command:
            self.skipTest("the package is not built")
        files = [os.path.join(os.environ["QTENSOR_CONFORMANCE"], f"{name}.json") for name in CASES]
        done = subprocess.run([*command.split(" "), DENSE, ROOT, *files], capture_output=True, text=True,
                              env={**os.environ, "LD_PRELOAD": os.environ["QTENSOR_FAILING_NEW"], "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        points = int(re.search(r"^points (\d+)$", done.stdout, re.M)[1])
        self.assertGreater(points, 1000)
        figure(f"allocations in {language.capitalize().replace('sharp', '#')}", points, points, "the conformance cases by its package")

    def test_python(self):
        self.walk("PYTHON")

    def test_java(self):
        self.walk("JAVA")

    def test_csharp(self):
        self.walk("CSHARP")


if __name__ == "__main__":
    unittest.main()
