# SPDX-License-Identifier: Apache-2.0
"""What tests of data give: arrays of libraries that nobody knows, small networks, and PyTorch where it is installed."""

import pathlib
import unittest

import networks
import numpy as np

import qtensor as qt

try:
    import torch
except ImportError:
    torch = None

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "digits"
IMAGES = np.load(DIGITS / "calibration.npy")[:40]
LABELS = np.arange(40) % 10
WEIGHT = networks.weight(3, 4)


def digits():
    return qt.Model.load(DIGITS / "digits.onnx")


def small(*shapes):
    return qt.Model.load_bytes(networks.onnx(*shapes, weight=WEIGHT))


def rows(count, *shape):
    return np.random.default_rng(count).standard_normal((count, *shape)).astype(np.float32)


def scores(model):
    return qt.Session(model)(IMAGES)


class WithArray:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


class WithInterface:
    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


class WithDLPack:
    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


class Case(unittest.TestCase):
    def refused(self, kind, message, call, *arguments):
        with self.assertRaisesRegex(kind, message):
            call(*arguments)


def main():
    if not torch:
        print("without what is about torch, which is missing here")
    unittest.main()
