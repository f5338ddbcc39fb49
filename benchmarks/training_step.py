"""A training step of ours, in a module that imports nothing large: training.py runs it alone, too, for the memory it takes."""

import ctypes

import numpy as np

from library import Library

RATE, MOMENTUM, DECAY = 0.01, 0.9, 1e-4


def our_step(library, model, x, labels, threads, qat=True):
    c = library.c
    source = library.made(c.qmodel_load_bytes, model, ctypes.c_size_t(len(model)))
    if qat:
        source = library.made(c.qmodel_prepare, source, library.made(c.qconfig_create, b"fbgemm"), 1)
    attrs = library.attrs()
    for key, value in (("lr", RATE), ("momentum", MOMENTUM), ("weight_decay", DECAY)):
        library.check(c.qattrs_set_float(attrs, key.encode(), ctypes.c_double(value)))
    library.check(c.qattrs_set_int(attrs, b"threads", ctypes.c_int64(threads)))
    trainer = library.made(c.qtrainer_create, source, attrs)
    inputs, targets = ((ctypes.c_void_p * 1)(library.tensor(a)) for a in (x, labels))
    loss, one = ctypes.c_double(), ctypes.c_size_t(1)

    def step():
        library.check(c.qtrainer_step(ctypes.byref(loss), trainer, inputs, one, targets, one))
        return loss.value

    return step


def main(path, files):
    model, x, labels = open(files[0], "rb").read(), np.load(files[1]), np.load(files[2])
    step = our_step(Library(path), model, x, labels, 1)
    for _ in range(10):
        step()
