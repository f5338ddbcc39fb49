# SPDX-License-Identifier: Apache-2.0
"""MPI: 1, 2 and 4 ranks give what one process gives, to the byte."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from shared import DIGITS, MPI_OPTIONS, missing

try:
    import mpi4py  # noqa: F401
except ImportError:
    missing("mpi4py")
if not shutil.which("mpiexec"):
    missing("mpiexec")

HERE = pathlib.Path(__file__).resolve().parent


def command(ranks, *program):
    return ["mpiexec", "-n", str(ranks), sys.executable, *map(str, program)]


class Mpi(unittest.TestCase):
    def test_ranks(self):
        for ranks in 1, 2, 4:
            done = subprocess.run(command(ranks, HERE / "mpi_ranks.py"), env={**os.environ, **MPI_OPTIONS}, capture_output=True, text=True,
                                  timeout=200)
            self.assertEqual(done.returncode, 0, f"{ranks} ranks:\n{done.stdout}{done.stderr}")

    def test_the_example(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for ranks in 1, 3:
                path = pathlib.Path(folder, f"{ranks}.onnx")
                example = HERE.parents[3] / "examples/mpi/calibrate.py"
                done = subprocess.run(command(ranks, example, DIGITS / "digits.onnx", DIGITS / "calibration.npy", path,
                                              DIGITS / "test_images.npy", DIGITS / "test_labels.npy"),
                                      env={**os.environ, **MPI_OPTIONS}, capture_output=True, text=True, timeout=200)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("97.78 %", done.stdout)
                files.append(path.read_bytes())
            self.assertEqual(*files)

    def test_a_rank_that_is_killed_and_a_second_run(self):
        """MPI ends all ranks where one dies; what a checkpoint holds is not computed again."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = command(2, HERE / "mpi_checkpoint.py", folder)
            first = subprocess.Popen(arguments, env={**os.environ, **MPI_OPTIONS}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            pid = int(first.stdout.readline().split()[1])
            while len(os.listdir(folder)) < 2:
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
            first.communicate()
            self.assertNotEqual(first.returncode, 0)
            done = len(os.listdir(folder))
            self.assertLess(done, 8)
            second = subprocess.run(arguments, env={**os.environ, **MPI_OPTIONS}, capture_output=True, text=True, timeout=200)
            self.assertEqual(second.returncode, 0, second.stderr)
            self.assertIn(f"equal, {8 - done} computed", second.stdout)

    def test_ranks_that_are_killed(self):
        """The same call gives the result of one process where it is made again."""
        for what, name in ("calibrate", "mobilenet_v2"), ("predict", "digits"), ("evaluate", "digits"):
            with self.subTest(f"{what} {name}"), tempfile.TemporaryDirectory() as folder:
                arguments = command(2, HERE / "mpi_killed.py", what, name, folder)
                first, second = (subprocess.run(arguments, env={**os.environ, **MPI_OPTIONS}, capture_output=True, text=True, timeout=200)
                                 for _ in range(2))
                self.assertNotEqual(first.returncode, 0)
                self.assertNotIn("equal", first.stdout)
                self.assertTrue(os.path.exists(os.path.join(folder, "killed")))
                self.assertEqual((second.returncode, second.stdout), (0, "equal\n"), second.stderr)


if __name__ == "__main__":
    unittest.main()
