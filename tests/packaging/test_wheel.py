# SPDX-License-Identifier: Apache-2.0
"""The wheel, installed into a fresh environment and used there, away from the sources and from this process's
environment. Skipped where PyPI cannot be reached.

usage: test_wheel.py ROOT NATIVES VERSION
"""

import pathlib
import subprocess
import sys
import tempfile

LARGEST = 25_000_000
PROGRAM = """
import sys
import numpy as np
import qtensor as qt

digits, version = sys.argv[1:]
assert qt.__file__.startswith(sys.prefix) and qt.__version__ == version, (qt.__file__, qt.__version__)
images, labels = (np.load(f"{digits}/test_{name}.npy") for name in ("images", "labels"))
model = qt.Model.load(f"{digits}/digits.onnx")
for network in (model, model.quantize(np.load(f"{digits}/calibration.npy"))):
    for engine in ("native", "reference"):  # only this one needs the BLAS
        right = (qt.Session(network, {"engine": engine})(images).argmax(1) == labels).mean()
        assert right > 0.95, right
with open("/proc/self/maps") as maps:
    blas = {line.split(maxsplit=5)[5].strip() for line in maps if "blas" in line and "numpy" not in line}
assert blas == {qt.__file__.replace("__init__.py", "libqtensor_openblas.so.0")}, blas
"""


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def main():
    root, natives, version = sys.argv[1:]
    look = ["/usr/bin/python3", "-m", "pip", "index", "versions", "scikit-build-core"]
    reach = subprocess.run(look, capture_output=True, text=True)
    if reach.returncode != 0:
        print(f"skipped: PyPI cannot be reached: {reach.stderr.strip().splitlines()[-1]}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{root}/packaging/wheel", natives, folder], check=True)
        wheel, = pathlib.Path(folder).glob("*.whl")
        size = wheel.stat().st_size
        assert size < LARGEST, f"{wheel.name}: {size} bytes"
        assert wheel.name.startswith(f"qtensor-{version}-cp311-abi3-manylinux_"), wheel.name
        run("/usr/bin/python3", "-m", "venv", f"{folder}/venv")
        python = f"{folder}/venv/bin/python"
        run(python, "-m", "pip", "install", "-q", wheel, "abi3audit")
        run(python, "-m", "abi3audit", "--strict", wheel)
        run(python, "-c", PROGRAM, f"{root}/examples/digits", version, cwd=folder, env={})
        print(f"{wheel.name}: {size} bytes")
    return 0


sys.exit(main())
