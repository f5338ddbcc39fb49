# SPDX-License-Identifier: Apache-2.0
"""The types of the package: mypy --strict finds no fault in its sources, nor in a program that uses it, and does where a
program is wrong. Skipped where there is no mypy."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import qtensor

RIGHT = """
import numpy as np
import qtensor as qt

x = qt.as_tensor(np.zeros((2, 3), np.float32))
shape: tuple[int, ...] = x[0, ..., 1:].shape
q = x.quantize(qt.Quantizer("int8", qt.per_tensor_affine, 0, [0.1], [3]))
scale: float = q.quantizer.scale if q.quantizer else 1.0
with qt.Model.load("net.onnx") as model:
    int8: qt.Model = model.quantize([x], {"op:Conv": {"bins": 3}, "op:Gemm": None}, progress=lambda s, d, n: d < n)
weight: qt.Tensor = int8.tensors["conv.weight"]
model.tensors["conv.bias"] = np.zeros(3, np.float32)
y: list[qt.Tensor] = qt.Session(int8, {"threads": 1}).run([x, np.ones(3)])
loss: float = qt.Trainer(model).step([x], [y[0]])
loss = qt.Trainer(model).step(np.zeros((2, 3)), {"y": [1, 2]})
by_name: list[qt.Tensor] = qt.Session(int8).run({"image": np.ones(3), "mask": [[1, 0], [0, 1]]})
scores = qt.Session(int8)(image=x, mask=[1.5, 2])
qt.Session(int8)({"image": x})
kept = model.quantize((image, 3) for image in np.zeros((4, 3)))
model.quantize({"image": np.zeros((4, 3))})
model.prepare(qt.Config("onnx")).calibrate(memoryview(b"ab"))
model.quantize_qat((image, [3]) for image in np.zeros((4, 3)))
qt.Op.add(bytearray(3), [[1.0, 2.0]])
made: qt.Tensor = qt.Tensor.create("int4", [2], data=[1, 2])
names: dict[str, tuple[qt.DType, tuple[int, ...]]] = qt.Session(int8).inputs
"""
WRONG = {
    "x.shapes": '"Tensor" has no attribute "shapes"',
    "x.reshape(3)": 'Argument 1 to "reshape"',
    "x[None]": "Invalid index type",
    "qt.Session(x)": 'Argument 1 to "Session"',
    "number: int = x.item()": "Incompatible types in assignment",
    "qt.as_tensor('x')": 'Argument 1 to "as_tensor"',
    "qt.Session(int8).run(3)": 'Argument 1 to "run"',
}


def mypy(*arguments):
    ran = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", *map(str, arguments)],
                         capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


class Types(unittest.TestCase):
    def test_the_package(self):
        status, said = mypy(pathlib.Path(qtensor.__file__).parent)
        self.assertEqual(status, 0, said)

    def test_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program.py"
            program.write_text(RIGHT)
            status, said = mypy(program)
            self.assertEqual(status, 0, said)
            program.write_text(RIGHT + "\n".join(WRONG) + "\n")
            said = mypy(program)[1]
            for message in WRONG.values():
                self.assertIn(message, said)
            self.assertIn(f"Found {len(WRONG)} errors", said)


if __name__ == "__main__":
    if mypy("--version")[0] != 0:
        print("skipped: there is no mypy")
        sys.exit(77)
    unittest.main()
