# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, buffers and lists, as tensors: by every protocol, of every type, shared where they can be."""

import array
import ctypes
import gc
import subprocess
import sys
import unittest
import weakref

import numpy as np
from given import Case, WithArray, WithDLPack, WithInterface, main, rows, torch

import qtensor as qt

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


class WithBoth(WithDLPack, WithArray):
    pass


class Arrays(Case):
    def test_every_protocol(self):
        a = rows(2, 3)
        by_ctypes = (ctypes.c_float * 3 * 2).from_buffer(a)
        for given in WithArray(a), WithInterface(a), WithDLPack(a), memoryview(a), by_ctypes, a.tolist():
            np.testing.assert_array_equal(qt.as_tensor(given).numpy(), a)
            np.testing.assert_array_equal(qt.Op.relu(given).numpy(), np.maximum(a, 0))
        self.assertEqual(qt.as_tensor(array.array("d", [1, 2])).numpy().tolist(), [1, 2])
        self.assertEqual(qt.as_tensor(b"ab").numpy().tolist(), [97, 98])
        self.assertEqual(qt.as_tensor(range(3)).numpy().tolist(), [0, 1, 2])
        self.assertEqual(qt.Op.add([1.5, 2], (1, 1.0)).numpy().tolist(), [2.5, 3])

    def test_memory_is_shared_where_it_can_be(self):
        a = rows(2, 3)
        for given in WithArray(a), WithInterface(a), WithDLPack(a), memoryview(a):
            t = qt.as_tensor(given)
            self.assertEqual(t.numpy().__array_interface__["data"], a.__array_interface__["data"])
        gone = weakref.ref(a)
        del a, given
        gc.collect()
        self.assertIsNotNone(gone())
        del t
        gc.collect()
        self.assertIsNone(gone())

    def test_what_cannot_be_shared_is_copied(self):
        a = rows(2, 3)
        fixed = a.copy()
        fixed.setflags(write=False)
        shifted = np.frombuffer(bytearray(28), np.uint8)[1:25].view(np.float32).reshape(2, 3)
        shifted[...] = a
        for given in a[:, ::-1], a[::-1], a.T, fixed, np.broadcast_to(a[0], (2, 3)), shifted, WithBoth(a[::-1]), WithBoth(fixed):
            want = np.asarray(given)
            np.testing.assert_array_equal(qt.as_tensor(given).numpy(), want)
        np.testing.assert_array_equal(qt.as_tensor(a.astype(">f4")).numpy(), a)

    def test_what_is_no_array(self):
        for given, message in [
            ("ab", "data is of type 'str', not a Tensor or an array"), (object(), "data is of type 'object'"),
            ({"x": 1, "y": 2}, 'data is a dict with the keys "x", "y", not a Tensor or an array: pass what it holds'),
            ({}, "data is an empty dict, not a Tensor"),
            ([[1], [1, 2]], "data is a list which is no array"), (["a"], "data has elements of type str"),
            (np.ones(2, np.longdouble), 'which tensors do not have: pass .astype\\("float64"\\)'),
            (np.ones(2, complex), "elements of type complex128, which tensors do not have$"),
            (np.array([None]), "elements of type object"), (None, "data is None"),
            (WithDLPack(rows(2), (2, 0)), "is a given.WithDLPack on the device \\(2, 0\\), and tensors live on the CPU"),
            (WithDLPack(rows(2)[::-1]), "cannot be read: dlpack: stride -1"),
        ]:
            self.refused(TypeError, message, qt.as_tensor, given)
        self.refused(TypeError, r"inputs\[1\] is of type 'object'", qt.Op.cat, [rows(2), object()], 0)
        self.refused(TypeError, "inputs is of type 'WithArray', not a sequence of tensors", qt.Op.cat, WithArray(rows(2)), 0)
        self.refused(TypeError, "array is of type 'list', which has no buffer", qt.from_numpy, [1])

    def test_element_types(self):
        values = [0.0, 1.0, -2.5]
        for dtype in "float64", np.float16, np.dtype("float32"), qt.float64, "bfloat16", "int8":
            t = qt.as_tensor(values, dtype)
            self.assertEqual(t.dtype.name, getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))
            want = np.trunc(values) if dtype == "int8" else values
            self.assertEqual([float(v) for v in qt.as_tensor(t, "float64")], list(want))
        self.assertEqual(float(qt.as_tensor(0.1, "float64")), 0.1)
        self.assertEqual(float(qt.as_tensor(0.1)), float(np.float32(0.1)))
        self.refused(ValueError, "dtype is 'int9', no DType; there are: float32", qt.as_tensor, values, "int9")
        q = qt.as_tensor(values).quantize(qt.Quantizer.per_tensor("int8", 0.5, 0))
        self.assertIs(qt.as_tensor(q), q)
        self.refused(qt.DTypeError, r"a tensor of quantized int8 is no float32: ask int_repr\(\)", qt.as_tensor, q, "float32")

    def test_tensors_from_data(self):
        a = rows(2, 3)
        for given in a, a.tobytes(), memoryview(a), WithDLPack(a), a.T.copy().T, a.tolist(), qt.as_tensor(a):
            np.testing.assert_array_equal(qt.Tensor.create("float32", [2, 3], data=given).numpy(), a)
        grid = qt.Quantizer.per_tensor("int8", 0.5, 0)
        self.assertEqual(qt.Tensor.create("int8", [2], grid, [-3, 4]).int_repr().numpy().tolist(), [-3, 4])
        self.assertEqual(qt.Tensor.create("int4", [3], None, [-3, 4, 7]).tobytes(), b"\x4d\x07")

    @unittest.skipUnless(ml_dtypes, "there is no ml_dtypes")
    def test_narrow_floats_of_numpy(self):
        for name in "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz":
            a = np.array([[0, 1.5, -2]], getattr(ml_dtypes, name))
            t = qt.as_tensor(a)
            self.assertEqual((t.dtype.name, t.shape, t.tobytes()), (name, (1, 3), a.tobytes()))
            a[0, 0] = 4
            self.assertEqual(t.tobytes(), a.tobytes())
        self.refused(TypeError, "elements of type float8_e3m4", qt.as_tensor, np.ones(2, ml_dtypes.float8_e3m4))

    def test_nothing_is_imported_that_is_not_needed(self):
        program = "import sys, qtensor; print([name for name in ('numpy', 'torch') if name in sys.modules])"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout, "[]\n")


@unittest.skipUnless(ml_dtypes, "there is no ml_dtypes")
class Narrow(Case):
    def test_types_that_numpy_does_not_have(self):
        for name in "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz int4 uint4 int2 uint2".split():
            a = np.array([[0, 1, 1], [1, 0, 1]]).astype(getattr(ml_dtypes, name))
            t = qt.as_tensor(a)
            self.assertEqual((t.dtype.name, t.shape), (name, (2, 3)))
            for shown in t.numpy(), np.asarray(t):
                self.assertEqual((shown.dtype, shown.tolist()), (a.dtype, a.tolist()))
        for name, theirs in ("float8_e8m0", ml_dtypes.float8_e8m0fnu), ("float4_e2m1", ml_dtypes.float4_e2m1fn):
            a = np.array([[0.5, 1, 2], [4, 1, 1]]).astype(theirs)
            t = qt.as_tensor(a)
            self.assertEqual((t.dtype.name, t.shape), (name, (2, 3)))
            self.assertEqual((t.numpy().dtype, t.numpy().tolist()), (a.dtype, a.tolist()))


@unittest.skipUnless(torch, "there is no torch")
class Torch(Case):
    def test_tensors_of_every_type(self):
        for name in "float32 float64 float16 bfloat16 uint8 int8 int16 int32 int64 uint32 uint64 bool float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz".split():
            x = torch.tensor([[0, 1, 3]]).to(getattr(torch, name))
            t = qt.as_tensor(x)
            self.assertEqual((t.dtype.name, t.shape), (name, (1, 3)))
            self.assertEqual(t.tobytes(), bytes(x.view(torch.uint8).flatten().tolist()))
            self.assertIs(qt.as_tensor([1.0], x.dtype).dtype, t.dtype)

    def test_memory_is_shared_whatever_the_strides(self):
        x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
        for view in x, x.permute(2, 0, 1), x[:, ::2], x[0], x[:, :1].expand(2, 3, 4), torch.tensor(2.0), x[:0]:
            t = qt.as_tensor(view)
            np.testing.assert_array_equal(t.numpy(), view.numpy())
            if view.numel():
                self.assertEqual(t.numpy().__array_interface__["data"][0], view.data_ptr())
            np.testing.assert_array_equal(qt.Op.relu(view).numpy(), view.relu().numpy())
        np.testing.assert_array_equal(qt.as_tensor(torch.tensor([1 + 2j]).conj().imag).numpy(), [-2])
        qt.as_tensor(x)[0, 0, 1] = -3
        self.assertEqual(x[0, 0, 1].item(), -3)

    def test_tensors_that_have_no_memory_here(self):
        layer = torch.nn.Linear(3, 4)
        for given, message in [
            (layer.weight, "data is a torch.Parameter that requires grad, which is not computed here: pass its detach"),
            (layer(torch.ones(1, 3)), "data is a torch.Tensor that requires grad"),
            (torch.ones(3, device="meta"), "data is a torch.Tensor that cannot be read"),
            (torch.eye(3).to_sparse(), "data is a torch.Tensor that cannot be read"),
        ]:
            self.refused(TypeError, message, qt.as_tensor, given)
        y = qt.Op.linear(torch.ones(2, 3), layer.weight.detach(), layer.bias.detach())
        np.testing.assert_allclose(y.numpy(), layer(torch.ones(2, 3)).detach().numpy(), rtol=1e-6)
        self.refused(TypeError, "weight is a torch.Parameter that requires grad", qt.Op.linear, torch.ones(2, 3), layer.weight)


if __name__ == "__main__":
    main()
