# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/distributed.md, as the page says to run them: ten lines from pip install to the model that one
process gives."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from shared import DIGITS, MPI_OPTIONS, ROOT, SAMPLES, digits

PAGE = (ROOT / "docs/distributed.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^```sh\n[^\n]*pip install[^\n]*\n(?P<run>[^\n]+)\n```\n.*?"
                     r"^```python title=\"(?P<name>\w+\.py)\"\n(?P<text>.*?)^```$", re.M | re.S)
NEEDS = {"with_dask.py": ["distributed"], "with_spark.py": ["pyspark", "java"], "with_mpi.py": ["mpi4py", "mpirun"]}


def there(need):
    return importlib.util.find_spec(need) is not None or shutil.which(need) is not None


class Page(unittest.TestCase):
    def test_ten_lines(self):
        sections = list(SECTION.finditer(PAGE))
        self.assertEqual({section["name"] for section in sections}, set(NEEDS))
        want = digits().quantize(SAMPLES, attrs={"plain": True}).save_bytes()
        for section in sections:
            missing = [need for need in NEEDS[section["name"]] if not there(need)]
            with self.subTest(section["name"]), tempfile.TemporaryDirectory() as folder:
                lines = [line for line in section["text"].splitlines() if line]
                self.assertLessEqual(2 + len(lines), 10)
                if missing:
                    print(f"{section['name']}: not run: {missing[0]} is missing here (tests/distributed/make-venv)", flush=True)
                    continue
                shutil.copy(DIGITS / "digits.onnx", os.path.join(folder, "net.onnx"))
                np.save(os.path.join(folder, "calibration.npy"), SAMPLES)
                pathlib.Path(folder, section["name"]).write_text(section["text"], encoding="utf-8")
                run = section["run"].split()
                run[run.index("python")] = sys.executable
                settings = {**os.environ, **MPI_OPTIONS, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
                done = subprocess.run(run, cwd=folder, env=settings, capture_output=True, text=True, timeout=200)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(pathlib.Path(folder, "net-int8.onnx").read_bytes(), want)


if __name__ == "__main__":
    unittest.main()
