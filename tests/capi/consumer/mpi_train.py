# SPDX-License-Identifier: Apache-2.0
"""Whether the float network that examples/mpi/train.c has trained for some steps is that of one trainer in one process,
which takes the parts of a step in turn: it adds them up in another order, so that last bits may differ.

usage: mpi_train.py UNTRAINED.onnx IMAGES.npy LABELS.npy STEPS FLOAT.onnx"""

import sys

import numpy as np

import qtensor as qt

PARTS, ROWS = 4, 32
untrained, images, labels, steps, trained = sys.argv[1:]
images, labels = np.load(images), np.load(labels)
trainer = qt.Trainer(qt.Model.load(untrained), {"lr": 0.01, "momentum": 0.9, "threads": 1})
untouched = trainer.model()
for step in range(int(steps)):
    for part in range(step * PARTS, (step + 1) * PARTS):
        rows = slice(part * ROWS, (part + 1) * ROWS)
        trainer.backward(images[rows], labels[rows])
    trainer.update()
want, got = trainer.model(), qt.Model.load(trained)
names = [want.tensor_name(i) for i in range(want.tensor_count)]
assert names == [got.tensor_name(i) for i in range(got.tensor_count)] and names
moved = 0
for name in names:
    np.testing.assert_allclose(got.tensor(name).numpy(), want.tensor(name).numpy(), rtol=0, atol=1e-6, err_msg=name)
    moved += not np.array_equal(got.tensor(name).numpy(), untouched.tensor(name).numpy())
assert moved, "nothing was trained"
print(f"{moved} of {len(names)} tensors are trained, as one process trains them")
