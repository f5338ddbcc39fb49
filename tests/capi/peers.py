#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library against NumPy, PyTorch and the safetensors package in one process: DLPack both ways without a copy, and
files both ways. Usage: peers.py LIBRARY. Exit code 77 (skipped) where none of the three is installed.

Needs: numpy, safetensors, torch, each for its part.
"""

import ctypes
import gc
import importlib
import os
import sys
import tempfile
import unittest

FLOAT32, UINT8, INT8, INT64, BOOL, UINT32, UINT64 = 1, 2, 3, 7, 9, 12, 13
DTYPES = {FLOAT32: "float32", UINT8: "uint8", INT8: "int8", INT64: "int64", BOOL: "bool", UINT32: "uint32", UINT64: "uint64"}
LIBRARY = ctypes.CDLL(os.path.abspath(sys.argv.pop(1)))
LIBRARY.qerror_message.restype = ctypes.c_char_p
LIBRARY.qtensor_data.restype = ctypes.c_void_p
LIBRARY.qtensor_shape.restype = LIBRARY.qtensor_strides.restype = ctypes.POINTER(ctypes.c_int64)
LIBRARY.qtensor_rank.restype = ctypes.c_size_t

PYTHON = ctypes.pythonapi
PYTHON.PyCapsule_New.restype = ctypes.py_object
PYTHON.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
PYTHON.PyCapsule_GetPointer.restype = ctypes.c_void_p
PYTHON.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
PYTHON.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED, USED_VERSIONED = b"used_dltensor", b"used_dltensor_versioned"  # must outlive the capsules


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


numpy, torch, safetensors = optional("numpy"), optional("torch"), optional("safetensors.numpy")
DLPACK_1 = bool(numpy) and tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 1)  # else NumPy has no versions and no bool
VERSIONS = (None, (1, 0)) if DLPACK_1 else (None,)


def call(function, *arguments):
    if getattr(LIBRARY, function)(*arguments) != 0:
        raise RuntimeError(LIBRARY.qerror_message().decode())


class Tensor:
    """Owns a handle. What __dlpack__ gives, NumPy and PyTorch consume."""

    def __init__(self, function, *arguments):
        self.handle = ctypes.c_void_p()
        call(function, ctypes.byref(self.handle), *arguments)

    def __del__(self):
        LIBRARY.qtensor_free(self.handle)

    @staticmethod
    def of(dtype, array):
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        data = array.tobytes()
        rank, nbytes = ctypes.c_size_t(array.ndim), ctypes.c_size_t(len(data))
        return Tensor("qtensor_create", dtype, shape, rank, None, data, nbytes)

    @staticmethod
    def from_dlpack(capsule):
        versioned = b"dltensor_versioned" in repr(capsule).encode()
        name, used = (b"dltensor_versioned", USED_VERSIONED) if versioned else (b"dltensor", USED)
        managed = ctypes.c_void_p(PYTHON.PyCapsule_GetPointer(capsule, name))
        tensor = Tensor("qtensor_from_dlpack" + "_versioned" * versioned, managed)
        PYTHON.PyCapsule_SetName(capsule, used)
        return tensor

    def __dlpack_device__(self):
        return (1, 0)

    versioned = False  # which form __dlpack__ gives

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        managed = ctypes.c_void_p()
        call("qtensor_to_dlpack" + "_versioned" * self.versioned, ctypes.byref(managed), self.handle)
        return PYTHON.PyCapsule_New(managed, b"dltensor_versioned" if self.versioned else b"dltensor", None)

    def data(self):
        return LIBRARY.qtensor_data(self.handle)

    def shape(self):
        return tuple(LIBRARY.qtensor_shape(self.handle)[:LIBRARY.qtensor_rank(self.handle)])

    def strides(self):
        return tuple(LIBRARY.qtensor_strides(self.handle)[:LIBRARY.qtensor_rank(self.handle)])


def capsule_of(array, version):
    return array.__dlpack__(max_version=version) if DLPACK_1 else array.__dlpack__()


@unittest.skipUnless(numpy, "numpy is not installed")
class NumPy(unittest.TestCase):
    def test_ours_to_numpy(self):
        for version in VERSIONS:
            for dtype, name in DTYPES.items():
                if dtype == BOOL and not DLPACK_1:
                    continue
                array = numpy.arange(24).reshape(2, 3, 4).astype(name)
                tensor = Tensor.of(dtype, array)
                tensor.versioned = version is not None
                theirs = numpy.from_dlpack(tensor)
                self.assertEqual(theirs.ctypes.data, tensor.data())
                del tensor
                gc.collect()
                numpy.testing.assert_array_equal(theirs, array)
                self.assertEqual(theirs.dtype, array.dtype)

    def test_numpy_to_ours(self):
        base = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
        for array in (base, base.transpose(2, 0, 1), base[:, 1:, ::2], base[:0], numpy.array(3.5)):
            for version in VERSIONS:
                references = sys.getrefcount(array)
                tensor = Tensor.from_dlpack(capsule_of(array, version))
                self.assertEqual(tensor.data(), array.ctypes.data)
                self.assertEqual(tensor.shape(), array.shape)
                if array.size:
                    self.assertEqual(tensor.strides(), tuple(s // array.itemsize for s in array.strides))
                self.assertGreater(sys.getrefcount(array), references)
                del tensor
                gc.collect()
                self.assertEqual(sys.getrefcount(array), references)

    def test_what_we_do_not_take_stays_theirs(self):
        fixed = numpy.zeros(3)
        fixed.flags.writeable = False
        bad = [(numpy.zeros(3, numpy.complex64), "code 5"), (numpy.arange(4)[::-1], "negative")]
        for array, why in bad + ([(fixed, "read-only")] if DLPACK_1 else []):  # an older NumPy keeps it to itself
            references = sys.getrefcount(array)
            capsule = capsule_of(array, VERSIONS[-1])
            with self.assertRaisesRegex(RuntimeError, why):
                Tensor.from_dlpack(capsule)
            del capsule
            gc.collect()
            self.assertEqual(sys.getrefcount(array), references)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.npy").encode()
            for array in (numpy.arange(6.0).reshape(2, 3), numpy.array(2.5), numpy.zeros((0, 2))):
                array = numpy.asarray(array, numpy.float32)
                tensor = Tensor.of(FLOAT32, array)
                call("qtensor_save_npy", tensor.handle, path)
                theirs = numpy.load(path.decode())
                numpy.testing.assert_array_equal(theirs, array)
                self.assertEqual((theirs.dtype, theirs.shape), (array.dtype, array.shape))
                numpy.save(path.decode(), array)
                numpy.testing.assert_array_equal(numpy.from_dlpack(Tensor("qtensor_load_npy", path)), array)


@unittest.skipUnless(torch and numpy, "torch is not installed")
class PyTorch(unittest.TestCase):
    def test_ours_to_torch(self):
        for versioned in (False, True):
            array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
            tensor = Tensor.of(FLOAT32, array)
            tensor.versioned = versioned
            theirs = torch.from_dlpack(tensor)
            self.assertEqual(theirs.data_ptr(), tensor.data())
            del tensor
            gc.collect()
            numpy.testing.assert_array_equal(theirs.numpy(), array)

    def test_torch_to_ours(self):
        base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
        for theirs in (base, base.permute(2, 0, 1), base[:, 1:, ::2], base[:1].expand(5, 3, 4), base.to(torch.bfloat16),
                       base.to(torch.float16), base > 3, torch.tensor(2.0)):
            for version in (None, (1, 0)):
                tensor = Tensor.from_dlpack(theirs.__dlpack__(max_version=version))
                self.assertEqual((tensor.data(), tensor.shape()), (theirs.data_ptr(), tuple(theirs.shape)))
                self.assertEqual([s for s, n in zip(tensor.strides(), theirs.shape) if n > 1],
                                 [s for s, n in zip(theirs.stride(), theirs.shape) if n > 1])
                again = torch.from_dlpack(tensor)
                del tensor
                gc.collect()
                self.assertEqual(again.dtype, theirs.dtype)
                self.assertTrue(torch.equal(again, theirs))


@unittest.skipUnless(safetensors, "safetensors is not installed")
class Safetensors(unittest.TestCase):
    def test_quantized_tensors_are_integers_to_others(self):
        scales, zeros = (ctypes.c_double * 3)(0.1, 1 / 3, 2.0), (ctypes.c_int64 * 3)(0, 5, -5)
        shape = (ctypes.c_int64 * 2)(2, 3)
        grid = ctypes.c_void_p()
        call("qquantizer_create", ctypes.byref(grid), INT8, 2, 1, scales, zeros, ctypes.c_size_t(3), None)
        integers = numpy.array([[1, -2, 3], [127, -128, 0]], numpy.int8)
        tensor = Tensor("qtensor_create", INT8, shape, ctypes.c_size_t(2), grid, integers.tobytes(), ctypes.c_size_t(6))
        LIBRARY.qquantizer_free(grid)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            call("qtensor_save", tensor.handle, path.encode())
            theirs = safetensors.load_file(path)
            self.assertEqual(list(theirs), ["tensor"])
            numpy.testing.assert_array_equal(theirs["tensor"], integers)
            safetensors.save_file(theirs, path)
            numpy.testing.assert_array_equal(numpy.from_dlpack(Tensor("qtensor_load", path.encode())), integers)


if __name__ == "__main__":
    if not (numpy or torch or safetensors):
        print("skipped: neither numpy nor torch nor safetensors is installed")
        sys.exit(77)
    unittest.main()
