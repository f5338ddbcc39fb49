# SPDX-License-Identifier: Apache-2.0
"""The command with each call on files failing in turn: it ends with the result, or with one line that names the file;
outputs are the old file or the new one; and nothing temporary stays."""

import unittest

from commands import RUNS, CommandTest
from support import ALL, figure

HARMLESS = ["EINTR", "short"] if ALL else ["short"]
HARMFUL = ["EIO", "ENOSPC", "EACCES", "EMFILE", "full"] if ALL else ["EIO"]
QUICK = ["inspect", "merge", "calibrate with pictures"]
OLD = b"what was there before"


class Command(CommandTest):
    def check(self, name, kind, old):
        clean = self.run_command(name, old=old)
        self.assertEqual((clean.code, clean.err), (0, ""))
        new = self.results(name)

        def judge(n, done):
            self.assertEqual([file for file in self.left() if file not in RUNS[name][1]], [])
            if done.code == 0:
                self.assertEqual([line for line in done.err.splitlines() if "warning" not in line], [])
                for output, content in self.results(name).items():
                    self.assertTrue(content == new[output] or self.is_later(output, content), output)
                return
            self.assertNotIn(kind, HARMLESS)
            self.assertEqual(done.code, 1)
            self.assert_one_line(done.err)
            self.assertTrue(any(file in done.err for file in [*self.before, *new]), done.err)
            self.assert_whole(self.results(name), old, new)

        return self.walk(f"{name}, {kind}", lambda n: self.run_command(name, kind, n, old), judge)

    def is_later(self, output, content):
        """Pages and logs have times in them."""
        return content and content != OLD and output.endswith((".html", ".jsonl"))

    def test_runs(self):
        points = 0
        for name in RUNS if ALL else QUICK:
            for kind in HARMLESS + HARMFUL:
                for old in (None, OLD) if ALL and RUNS[name][1] else (OLD,):
                    with self.subTest(name=name, kind=kind, old=old):
                        points += self.check(name, kind, old)
        figure("files of the command", points, points,
               f"{len(RUNS)} runs, each call of the system failing in {len(HARMLESS + HARMFUL)} ways")


if __name__ == "__main__":
    unittest.main()
