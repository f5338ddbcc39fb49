# SPDX-License-Identifier: Apache-2.0
"""Little memory: address spaces from 20 MB upwards (RLIMIT_AS), each of which ends in a result or in one line, soon."""

import resource
import subprocess
import unittest

from commands import RUNS, CommandTest
from support import ALL, COMMAND, figure

MEGABYTES = [20, 24, 28, 32, 40, 50, 60, 70, 80, 100, 120, 140, 160, 180, 200, 220, 240, 260, 280, 300, 350, 400, 500, 700]
SECONDS = 20


class Memory(CommandTest):
    def end_within(self, name, megabytes):
        """The code and what was said; the loader may not even begin."""
        self.forget()
        limit = megabytes << 20
        done = subprocess.run([COMMAND, *RUNS[name][0]], capture_output=True, text=True, cwd=self.folder, timeout=SECONDS,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        said = [line for line in done.stderr.splitlines() if "warning" not in line]
        self.assertEqual([file for file in self.left() if file not in RUNS[name][1]], [])
        if done.returncode == 0:
            self.assertEqual(said, [])
            return True
        self.assertEqual(len(said), 1, done.stderr)
        # 127: the loader had no room for the program or its libraries, and says so itself.
        self.assertIn(done.returncode, [1, 127], done.stderr)
        self.assertEqual(self.left(), [file for file in self.left() if file.endswith(".jsonl")])
        return False

    def test_ladder(self):
        points = results = 0
        for name in RUNS if ALL else ["run"]:
            for megabytes in MEGABYTES if ALL else MEGABYTES[::6]:
                with self.subTest(name=name, megabytes=megabytes):
                    points += 1
                    results += self.end_within(name, megabytes)
        figure("RLIMIT_AS", points, points, f"{MEGABYTES[0]} to {MEGABYTES[-1]} MB: {results} with a result, the others with one line")


if __name__ == "__main__":
    unittest.main()
