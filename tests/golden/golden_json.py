"""The JSON form of golden vectors: what make_ops.py and make_quant.py share. The keys are described in README.md."""

import json
import math

import numpy as np


def number(value, dtype):
    """The shortest decimal that gives `value` back: through double for every float narrower than double."""
    if dtype.kind == "b":
        return "1" if value else "0"
    if dtype.kind in "iu":
        return str(int(value))
    if math.isnan(value):
        return '"nan"'
    if math.isinf(value):
        return '"inf"' if value > 0 else '"-inf"'
    text = str(dtype.type(value))
    # A JSON reader parses to double first; rounding twice must not change the value.
    if dtype.type(float(text)) != dtype.type(value):
        text = repr(float(value))
    return text.removesuffix(".0") if "e" not in text and text != "-0.0" else text


class Tensor:
    """A NumPy array that is written as {"dtype", "shape", "data"} on one line."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def __str__(self):
        dtype = self.array.dtype
        data = ", ".join(number(value, dtype) for value in self.array.ravel(order="C"))
        return f'{{"dtype": "{dtype.name}", "shape": {list(self.array.shape)}, "data": [{data}]}}'


def scalar(value):
    if isinstance(value, np.generic):
        return number(value, value.dtype)
    if isinstance(value, float):
        return number(np.float64(value), np.dtype(np.float64))
    return json.dumps(value)


def is_flat(value):
    """True for a list of scalars, and for an object of scalars and lists of scalars."""
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, (list, tuple))]
        others = [item for item in value.values() if not isinstance(item, (list, tuple))]
        return all(map(is_flat, lists)) and is_flat(others)
    return not any(isinstance(item, (Tensor, np.ndarray, dict, list, tuple)) for item in value)


def dump(value, indent=0):
    """Like json.dumps, but with one line for each tensor and each flat list or object."""
    if isinstance(value, np.ndarray):
        value = Tensor(value)
    if isinstance(value, Tensor):
        return str(value)
    if not isinstance(value, (dict, list, tuple)):
        return scalar(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {dump(item, indent + 1)}" for key, item in value.items()]
    else:
        items = [dump(item, indent + 1) for item in value]
    if is_flat(value):
        return opening + ", ".join(items) + closing
    gap = "\n" + " " * (indent + 1)
    return opening + gap + ("," + gap).join(items) + "\n" + " " * indent + closing


def write(path, value):
    text = dump(value) + "\n"
    json.loads(text)
    path.write_text(text)
