# SPDX-License-Identifier: Apache-2.0
"""Tensors and quantizers beside NumPy: memory that is shared, values, text, indices, errors."""

import copy
import gc
import io
import pathlib
import pickle
import tempfile
import unittest
import weakref

import numpy as np

import qtensor as qt


def matrix():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


def address(array):
    return array.__array_interface__["data"][0]


class Memory(unittest.TestCase):
    def test_a_hundred_megabytes_go_in_and_out_at_the_same_address(self):
        a = np.ones(25_000_000, np.float32)
        t = qt.as_tensor(a)
        self.assertEqual(address(t.numpy()), address(a))
        self.assertEqual(address(np.asarray(t)), address(a))
        self.assertEqual(address(np.from_dlpack(t)), address(a))
        self.assertEqual(address(qt.from_dlpack(a).numpy()), address(a))
        t[0] = 7
        self.assertEqual(a[0], 7)

    def test_every_type_of_numpy(self):
        for name in "float32 uint8 int8 uint16 int16 int32 int64 uint32 uint64 bool float16 float64".split():
            for shape in (), (3,), (0, 2), (2, 3, 4):
                a = np.ones(shape, name)
                t = qt.as_tensor(a)
                self.assertEqual((t.dtype.name, t.shape, t.numel), (name, shape, a.size))
                self.assertEqual(t.numpy().dtype, a.dtype)
                np.testing.assert_array_equal(t.numpy(), a)

    def test_the_array_stays_as_long_as_the_tensor_and_the_other_way_round(self):
        a = matrix()
        gone = weakref.ref(a)
        t = qt.as_tensor(a)
        view, shown = t[1], t.numpy()
        del a, t
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual(float(view[2]), 5)
        np.testing.assert_array_equal(shown, matrix())
        del view, shown
        gc.collect()
        self.assertIsNone(gone())

    def test_an_array_of_a_closed_tensor_is_still_there(self):
        t = qt.Tensor.create(qt.float32, [4])
        shown = t.numpy()
        with t:
            t[1] = 3
        np.testing.assert_array_equal(shown, [0, 3, 0, 0])

    def test_what_cannot_be_shared_is_copied_or_refused(self):
        rows = matrix()[:, ::2]
        fixed = matrix()
        fixed.setflags(write=False)
        for a, why in (rows, "array is not C-contiguous"), (fixed, "array is read-only"):
            np.testing.assert_array_equal(qt.as_tensor(a).numpy(), a)
            self.assertNotEqual(address(qt.as_tensor(a).numpy()), address(a))
            with self.assertRaisesRegex(ValueError, why):
                qt.from_numpy(a)
        for a in matrix().astype(">f4"), np.ones(2, np.complex64):
            with self.assertRaisesRegex(TypeError, 'array has elements of format ".*", which tensors do not have'):
                qt.from_numpy(a)

    def test_views_of_tensors_are_views_in_numpy(self):
        a = matrix()
        column = qt.as_tensor(a).permute([1, 0])[1:]
        np.testing.assert_array_equal(column.numpy(), a.T[1:])
        with self.assertRaisesRegex(BufferError, "not C-contiguous"):
            io.BytesIO(column)
        column.numpy()[0, 0] = 9
        self.assertEqual(a[0, 1], 9)

    def test_quantized_and_narrow_tensors_are_no_arrays(self):
        q = qt.as_tensor(matrix()).quantize(qt.Quantizer.per_tensor(qt.int8, 0.5, 0))
        for call in q.numpy, lambda: np.asarray(q):
            with self.assertRaisesRegex(TypeError, r"a tensor of quantized int8 is no array: ask int_repr\(\)"):
                call()
        with self.assertRaises(BufferError):
            memoryview(q)
        with self.assertRaises(qt.DTypeError):
            np.from_dlpack(q)
        np.testing.assert_array_equal(q.int_repr().numpy(), matrix() * 2)
        with self.assertRaisesRegex(BufferError, "a tensor of int4 is no array"):
            memoryview(qt.Tensor.create("int4", [2]))

    def test_capsules_that_nobody_takes_free_what_they_hold(self):
        a = matrix()
        gone = weakref.ref(a)
        for version in None, (1, 0):
            capsule = qt.as_tensor(a).__dlpack__(max_version=version)
            self.assertIn('"dltensor_versioned"' if version else '"dltensor"', repr(capsule))
            del capsule
        again = qt.from_dlpack(qt.as_tensor(a))
        del a, again
        gc.collect()
        self.assertIsNone(gone())
        with self.assertRaises(BufferError):
            qt.as_tensor([1]).__dlpack__(dl_device=(2, 0))
        self.assertEqual(qt.as_tensor([1]).__dlpack_device__(), (1, 0))
        a = matrix()
        copied = qt.Tensor._from_capsule(qt.as_tensor(a).__dlpack__(copy=True)).numpy()
        np.testing.assert_array_equal(copied, a)
        self.assertNotEqual(address(copied), address(a))
        with self.assertRaises(ValueError):
            qt.Tensor._from_capsule(42)


class Values(unittest.TestCase):
    def test_lists_become_float32_and_int64(self):
        self.assertEqual(qt.as_tensor([[1.5, 2]]).dtype, qt.float32)
        self.assertEqual(qt.as_tensor([1, 2]).dtype, qt.int64)
        self.assertEqual(qt.as_tensor([1, 2], "int8").dtype, qt.int8)
        self.assertEqual(qt.as_tensor(matrix(), qt.float64).dtype, qt.float64)
        t = qt.as_tensor([1.0])
        self.assertIs(qt.as_tensor(t), t)

    def test_one_element_is_a_number(self):
        for dtype in np.uint8, np.int8, np.int16, np.uint32, np.int64, np.uint64, np.float32, np.float64, np.bool_:
            value = np.array([49]).astype(dtype)
            t = qt.as_tensor(value)
            self.assertEqual(t.item(), value.item())
            self.assertIs(type(t.item()), type(value.item()))
            self.assertEqual((int(t), float(t), complex(t)), (int(value[0]), float(value[0]), complex(value[0])))
        for exact in (1 << 53) + 1, -(1 << 63), (1 << 64) - 1:
            self.assertEqual(qt.as_tensor([exact]).item(), exact)
            self.assertEqual(int(qt.as_tensor([exact])), exact)
        self.assertEqual([10, 20, 30][qt.as_tensor(np.array(1))], 20)
        self.assertEqual(qt.as_tensor([3], "int4").item(), 3)
        self.assertEqual(int(qt.as_tensor([2.75])), 2)
        half = qt.as_tensor([1.5]).quantize(qt.Quantizer.per_tensor("uint8", 0.5, 0))
        self.assertEqual((half.item(), int(half)), (1.5, 1))
        for t in qt.as_tensor([1.0]), half, qt.as_tensor(np.array(True)):
            with self.assertRaisesRegex(TypeError, f"{t.dtype.name} is not an index"):
                [10, 20, 30][t]
        several = qt.as_tensor(np.array([49, 50, 57], np.uint8))
        for number in int, float, complex, [1].__getitem__:
            with self.assertRaisesRegex(TypeError, "a tensor of 3 elements is not one number"):
                number(several)
        with self.assertRaises(qt.ShapeError):
            several.item()

    def test_integers_out_of_range_are_refused(self):
        t = qt.as_tensor([1, 2], "int8")
        for call in [lambda: qt.as_tensor([1, 300], "int8"), lambda: qt.as_tensor(300, "int8"), lambda: t.__setitem__(0, 300),
                     lambda: qt.Tensor.create("int8", [2], None, [300, 1])]:
            with self.assertRaisesRegex(OverflowError, "data has 300, and int8 holds integers from -128 to 127"):
                call()
        with self.assertRaisesRegex(OverflowError, "data has -1, and uint4 holds integers from 0 to 15"):
            qt.as_tensor([15, -1], "uint4")
        self.assertEqual(qt.as_tensor([-128, 127], "int8").numpy().tolist(), [-128, 127])
        self.assertEqual(qt.as_tensor(np.array([300]), "int8").numpy().tolist(), [44])  # of arrays as Cast does
        self.assertEqual(t.numpy().tolist(), [1, 2])

    def test_copies(self):
        per_channel = qt.Quantizer("int8", "per_channel_symmetric", 0, [0.5, 0.25], [], {"quant_min": -127, "quant_max": 127})
        floats = qt.Quantizer("uint8", "per_channel_affine_float_qparams", 0, [0.5, 0.25], [], {"float_zero_points": [1.5, 2]})
        blocks = qt.Quantizer("int4", "per_block_symmetric", 1, [1, 0.5, 1, 0.25], [], {"block_size": 2, "numerics": "onnx"})
        observer = qt.Observer("minmax", {"dtype": qt.int8})
        observer.observe(matrix())
        for thing in [qt.as_tensor(matrix()), qt.as_tensor(1.5), qt.as_tensor(matrix()).permute([1, 0]), qt.as_tensor([1, -2, 3], "int4"),
                      qt.as_tensor(matrix()).quantize(per_channel), per_channel, floats, blocks, observer]:
            for copied in copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t)):
                other = copied(thing)
                if isinstance(thing, qt.Tensor):
                    self.assertTrue(other.equal(thing))
                elif isinstance(thing, qt.Observer):
                    self.assertEqual(other.save(), thing.save())
                else:
                    for name in "scales", "zero_points", "float_zero_points", "axis", "block_size", "quant_min", "numerics", "dtype", "scheme":
                        self.assertEqual(getattr(other, name), getattr(thing, name))
                other.close()
                repr(thing)
        t = qt.as_tensor([1.0, 2.0])
        copy.copy(t)[0] = 9
        self.assertEqual(t.numpy().tolist(), [1, 2])

    def test_text(self):
        t = qt.Tensor.create(qt.int8, [2], qt.Quantizer.per_tensor(qt.int8, 0.1, 10), bytes([0, 127]))
        self.assertEqual(repr(t), "tensor([-1.0000, 11.7000], size=(2,), dtype=qint8,\n"
                                  "       quantization_scheme=per_tensor_affine, scale=0.1, zero_point=10)")
        self.assertEqual(repr(t.quantizer), "Quantizer(dtype=int8, scheme=per_tensor_affine, scale=0.1, zero_point=10, "
                                            "numerics='fbgemm')")
        self.assertEqual(repr(qt.int8), "qtensor.DType.int8")

    def test_types_have_the_names_of_the_library(self):
        for dtype in qt.DType:
            self.assertEqual(qt.Lib.dtype_name(dtype), dtype.name)
            module_name = "bool_" if dtype.name == "bool" else dtype.name
            self.assertIs(getattr(qt, module_name), dtype)
        for status in qt.Status:
            self.assertEqual(qt.Lib.status_name(status), f"QTN_{status.name}")

    def test_indices(self):
        a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        t = qt.as_tensor(a)
        for key in [0, -1, (1, 2), (0, slice(None), 3), slice(1, None), (..., 2), (0, ..., slice(None, None, 2)), ...,
                    (slice(-9, 9), slice(2, 1)), (), np.int64(1)]:
            np.testing.assert_array_equal(t[key].numpy(), a[key], str(key))
        np.testing.assert_array_equal([row.numpy() for row in t], a)
        self.assertEqual((len(t), float(t[1, 2, 3]), bool(t[0, 0, 0])), (2, 23, False))
        for key, why in [(2, "index 2 is out of range for a dimension of 2"), (None, "not None"), (1.5, "not 1.5"),
                         (slice(None, None, -1), "step -1"), ((0, 0, 0, 0), "4 indices for a tensor of rank 3")]:
            with self.assertRaisesRegex(IndexError, why):
                t[key]
        with self.assertRaisesRegex(TypeError, "a scalar has no length"):
            len(t[0, 0, 0])

    def test_assignment_quantizes(self):
        q = qt.as_tensor([0.0, 1.0]).quantize(qt.Quantizer.per_tensor(qt.uint8, 1e-4, 2))
        q[0] = 3.5
        q[1:] = np.array([0.001], np.float32)
        self.assertEqual(q.int_repr().numpy().tolist(), [255, 12])
        t = qt.as_tensor(matrix())
        t[:, 1] = np.float32(8)
        t[0] = [1.0, 2.0, 3.0]
        self.assertEqual(t.numpy().tolist(), [[1, 2, 3], [3, 8, 5]])

    def test_quantizers(self):
        q = qt.Quantizer("int8", "per_channel_symmetric", -1, np.array([0.5, 0.25, 1.0]))
        self.assertEqual((q.dtype, q.scheme, q.scales, q.zero_points, q.count), (
            qt.int8, qt.per_channel_symmetric, (0.5, 0.25, 1.0), (0, 0, 0), 3))
        self.assertEqual((q.quant_min, q.quant_max, q.block_size), (-128, 127, 0))
        with self.assertRaisesRegex(ValueError, "a quantizer per_channel_symmetric has 3 scales"):
            q.scale
        x = qt.as_tensor(matrix()).quantize(q)
        self.assertEqual(x.quantizer.axis, 1)
        self.assertTrue(x.is_quantized)
        self.assertIsNone(qt.as_tensor(matrix()).quantizer)
        chosen = qt.Quantizer.choose(qt.uint8, qt.per_tensor_affine, 0, [-1], [3], {"numerics": "onnx"})
        self.assertEqual((chosen.numerics, chosen.zero_point), ("onnx", 64))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ä.npy"
            qt.as_tensor(matrix()).save_npy(path)
            np.testing.assert_array_equal(np.load(path), matrix())
            self.assertTrue(qt.Tensor.load_npy(str(path)).equal(matrix()))
            qt.Tensor.save_all(f"{folder}/a.safetensors", ["x", "y"], [matrix(), qt.as_tensor([1])])
            self.assertEqual({t["name"] for t in qt.Tensor.inspect(f"{folder}/a.safetensors")["tensors"]}, {"x", "y"})


class Errors(unittest.TestCase):
    def test_classes_and_messages(self):
        t = qt.as_tensor(matrix())
        for call, own, builtin, message in [
            (lambda: t.reshape([4, 2]), qt.ShapeError, ValueError, "reshape: 2x3 has 6 elements, 4x2 has 8"),
            (lambda: t.dequantize(), qt.DTypeError, TypeError, None),
            (lambda: qt.Tensor.load("nowhere"), qt.FileError, OSError, "nowhere: No such file or directory"),
            (lambda: qt.Model.load_bytes(b"no model"), qt.FormatError, ValueError, None),
            (lambda: qt.Quantizer.per_tensor("int8", -1, 0), qt.InvalidError, ValueError, None),
            (lambda: qt.Op.run("Foo", [t]), qt.UnsupportedError, NotImplementedError, None),
            (lambda: qt.Tensor.create("int8", [1 << 60]), qt.OutOfMemoryError, MemoryError, None),
            (lambda: qt.Tensor.create(99, [1]), qt.InvalidError, ValueError, "qtensor_create: dtype 99 is unknown"),
            (lambda: qt.Op.relu(None), qt.InvalidError, ValueError, "qop_relu: x is NULL"),
        ]:
            with self.assertRaises(own) as caught:
                call()
            self.assertIsInstance(caught.exception, (qt.Error, builtin))
            self.assertIsInstance(caught.exception, builtin)
            self.assertEqual(caught.exception.status, own.status)
            if message:
                self.assertEqual(str(caught.exception), message)
        self.assertEqual({c.status for c in qt.Error.__subclasses__()}, set(qt.Status) - {qt.Status.OK})

    def test_arguments_of_another_kind_are_named(self):
        t = qt.as_tensor(matrix())
        for call, message in [
            (lambda: t.reshape("ab"), "shape is of type 'str', not a sequence of integers"),
            (lambda: t.reshape([1.5]), "shape is of type 'float', not an integer"),
            (lambda: qt.Tensor.create([], [1]), r"dtype is \[\], no DType"),
            (lambda: qt.Op.relu("x"), "x is of type 'str', not a Tensor or an array"),
            (lambda: qt.Op.cat(t, 0), "inputs is of type 'Tensor', not a sequence of tensors"),
            (lambda: qt.Op.cat([t, 3], 0), r"inputs\[1\] is of type 'int', not a Tensor or an array"),
            (lambda: t.quantize(t), "quantizer is of type 'Tensor', not Quantizer"),
            (lambda: qt.Observer("minmax", {"bins": {1, 2}}), "attribute \"bins\" is of type 'set', not int, float"),
            (lambda: qt.Observer("minmax", {1: 2}), "key of an attribute is of type 'int', not str"),
            (lambda: qt.Observer("minmax", ["bins"]), "attrs is of type 'list', not dict"),
            (lambda: qt.Observer("minmax").merge(t), "other is of type 'Tensor', not Observer$"),
            (lambda: qt.as_tensor(np.datetime64("2020")), "data has elements of type datetime64"),
            (lambda: qt.as_tensor(np.timedelta64(3, "s")), "data has elements of type timedelta64"),
            (lambda: qt.from_dlpack([1]), "source is of type 'list', which has no __dlpack__"),
            (lambda: qt.Tensor.load(3), "expected str, bytes or os.PathLike object, not int"),
        ]:
            with self.assertRaisesRegex(TypeError, message):
                call()
        with self.assertRaisesRegex(ValueError, "dtype is 'int9', no DType"):
            qt.Tensor.create("int9", [1])

    def test_closed_objects_raise(self):
        t = qt.as_tensor(matrix())
        q = t.quantize(qt.Quantizer.per_tensor("int8", 1, 0)).quantizer
        o = qt.Observer("minmax")
        c = qt.Config("onnx")
        for thing in t, q, o, c:
            thing.close()
            thing.close()
        for call in [lambda: t.shape, lambda: t.numpy(), lambda: qt.Op.relu(t), lambda: repr(t), lambda: q.scales,
                     lambda: o.quantizer(), lambda: o.observe(matrix()), lambda: c.set("op:Conv", {"bins": 3}),
                     lambda: qt.Tensor.create("int8", [1], q), lambda: memoryview(t), lambda: np.from_dlpack(t)]:
            with self.assertRaisesRegex(qt.StateError, "(Tensor|Quantizer|Observer|Config) is closed"):
                call()

    def test_types_as_attributes(self):
        x = qt.as_tensor(matrix())
        self.assertIs(qt.Op.run("Cast", [x], {"to": qt.int8})[0].dtype, qt.int8)
        for dtype in qt.int8, "int8":
            observer = qt.Observer("minmax", {"dtype": dtype, "scheme": qt.per_tensor_symmetric})
            observer.observe(x)
            self.assertIs(observer.quantizer().dtype, qt.int8)

    def test_attributes(self):
        o = qt.Observer("percentile", {"dtype": "int8", "percentile": np.float32(99), "bins": np.int64(64), "reduce_range": True})
        o.observe(matrix())
        self.assertEqual(o.quantizer().dtype, qt.int8)
        y, = qt.Op.run("MaxPool", [np.ones((1, 1, 4, 4), np.float32)], {"kernel_shape": (2, 2), "strides": [2, 2]})
        self.assertEqual(y.shape, (1, 1, 2, 2))
        self.assertIsNone(qt.Op.run("Dropout", [matrix()], output_count=1)[0].quantizer)

    def test_keywords(self):
        self.assertEqual(qt.Tensor.create(shape=[2], dtype="int8").shape, (2,))
        with self.assertRaises(TypeError):
            qt.Tensor.create(shap=[2], dtype="int8")


if __name__ == "__main__":
    unittest.main()
