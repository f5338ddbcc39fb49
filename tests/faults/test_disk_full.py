# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, a real one: a file system in memory of a few pages. What was there stays, whole."""

import os
import shutil
import subprocess
import unittest

from commands import RUNS, CommandTest
from support import COMMAND, figure

OLD = b"what was there before"


class DiskFull(CommandTest):
    def mount(self, kilobytes):
        place = self.path("small")
        os.makedirs(place, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", place], capture_output=True)
        if done.returncode != 0:
            self.skipTest("no file system may be mounted here")
        return place

    def test_sizes(self):
        points = 0
        for name in RUNS:
            arguments, outputs = RUNS[name]
            if not outputs:
                continue
            for kilobytes in (4, 8, 12, 16, 24, 48):
                with self.subTest(name=name, kilobytes=kilobytes):
                    self.forget_small()
                    place = self.mount(kilobytes)
                    try:
                        points += 1
                        with open(os.path.join(place, outputs[0]), "wb") as file:
                            file.write(OLD)
                        placed = [os.path.join("small", word) if word in outputs else word for word in arguments]
                        done = subprocess.run([COMMAND, *placed], capture_output=True, text=True, cwd=self.folder,
                                              timeout=60)
                        self.assertEqual([n for n in os.listdir(place) if n not in outputs], [])
                        if done.returncode == 0:
                            self.assertEqual(done.stderr, "")
                            continue
                        self.assertEqual(done.returncode, 1)
                        self.assert_one_line(done.stderr, "small/", "No space left on device")
                        with open(os.path.join(place, outputs[0]), "rb") as file:
                            content = file.read()
                        self.assertTrue(content == OLD or len(content) > len(OLD))
                    finally:
                        subprocess.run(["umount", place], check=True)
        figure("a full disk", points, points, "file systems of 4 to 48 KB")

    def forget_small(self):
        shutil.rmtree(self.path("small"), ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
