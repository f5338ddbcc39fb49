"""Short names for the arrays that cases of operators are made of."""

import numpy as np


def f32(*values):
    return np.array(values, np.float32)


def f64(*values):
    return np.array(values, np.float64)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def truths(*values):
    return np.array(values, np.bool_)


def ramp(*shape, dtype=np.float32):
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


NOTHING = np.zeros(0, np.int64)  # an empty list of axes or sizes
EXACT = 0.0
CLOSE = 1e-5
