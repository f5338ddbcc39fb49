# SPDX-License-Identifier: Apache-2.0
"""The command, ended at each of its calls on files: by SIGKILL, after which only a temporary file may be left, and by
SIGINT, after which nothing is. What was to be written is the old file or the new one, and the same run then succeeds."""

import signal
import unittest

from commands import RUNS, CommandTest
from support import ALL, figure

OLD = b"what was there before"
# What writes; others have nothing to lose.
WRITING = [name for name in RUNS if RUNS[name][1]] if ALL else ["merge"]


class Signals(CommandTest):
    def walk_signal(self, kind, codes, may_leave):
        points = 0
        for name in WRITING:
            clean = self.run_command(name, old=OLD)
            self.assertEqual((clean.code, clean.err), (0, ""))
            new = self.results(name)

            def judge(n, done):
                self.assertIn(done.code, codes)
                for file in self.left():
                    if file not in RUNS[name][1]:
                        self.assertTrue(may_leave and file.endswith(".tmp"), file)
                self.assert_whole(self.results(name), OLD, new)

            with self.subTest(name=name, kind=kind):
                points += self.walk(f"{name}, {kind}", lambda n: self.run_command(name, kind, n, OLD), judge)
        return points

    def test_kill(self):
        points = self.walk_signal("kill", [-signal.SIGKILL], True)
        figure("SIGKILL", points, points, f"{len(WRITING)} runs of the command, killed at each call on a file")

    def test_interrupt(self):
        # Training ends early and writes what it has.
        points = self.walk_signal("int", [-signal.SIGINT, 0, 1, 130], False)
        figure("SIGINT", points, points, f"{len(WRITING)} runs of the command, interrupted at each call on a file")


if __name__ == "__main__":
    unittest.main()
