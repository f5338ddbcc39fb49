# SPDX-License-Identifier: Apache-2.0
"""Every function of the C API with each of its allocations failing in turn, wherever a conformance case calls it: the
right error, nothing leaked, and the same call succeeds afterwards with the results that the case expects."""

import itertools
import os
import re
import subprocess
import unittest

from support import ALL, API, DIGITS, LIBRARY, figure

ROOT = os.path.realpath(os.path.join(DIGITS, "..", ".."))
WALK = os.environ["QTENSOR_WALK_ALLOCATIONS"]
CASES = ["cases", "errors", "torch", "toolkit", "networks", "training"]
# From there on, each point is a tenth farther than the one before. Several: what a failure leaves in a cache is met by
# the next call, which then fails elsewhere.
DENSE = ["1", "10", "100", "2000"] if ALL else ["10"]


class Allocations(unittest.TestCase):
    def walk(self, densities, *more):
        """{function: [calls, points, survived, exhausted]}"""
        table = {}
        for name, dense in itertools.product(CASES, densities):
            with self.subTest(cases=name, dense=dense):
                cases = os.path.join(ROOT, f"tests/conformance/{name}.json")
                done = subprocess.run([WALK, LIBRARY, ROOT, cases, "--dense", dense, *more], capture_output=True,
                                      text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
                for line in re.findall(r"^q\w+(?: \d+){4}$", done.stdout, re.M):
                    function, *numbers = line.split()
                    before = table.get(function, [0, 0, 0, 0])
                    table[function] = [a + int(b) for a, b in zip(before, numbers)]
        return table

    def test_every_allocation(self):
        table = self.walk(DENSE)
        fallible = {function["name"] for function in API if function["return"]["type"] == "qstatus"}
        self.assertEqual({name for name in fallible if table.get(name, [0, 0])[1] == 0}, set(), "not walked")
        if ALL:
            self.assertEqual({name for name in fallible if table[name][3] == 0}, set(), "in no case walked to the end")
        calls, points, survived, exhausted = (sum(row[i] for row in table.values()) for i in range(4))
        self.assertEqual(points, survived)
        figure("allocations", points, survived,
               f"{len(fallible)} functions in {calls} calls, {exhausted} of them at all of their allocations")

    def test_every_allocation_with_all_after_it(self):
        table = self.walk(["10", "300"] if ALL else ["3"], "--for-good")
        points, survived = (sum(row[i] for row in table.values()) for i in (1, 2))
        self.assertEqual(points, survived)
        figure("allocations for good", points, survived, "no memory from there to the end of the call")


if __name__ == "__main__":
    unittest.main()
