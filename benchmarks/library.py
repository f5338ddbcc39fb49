"""The library by ctypes, for measurements that call it from this process."""

import ctypes

import numpy as np

FLOAT32 = 1
CODES = {"int64": 7, "uint8": 2, "int8": 3, "int4": 22}
PER_TENSOR, PER_CHANNEL, PER_BLOCK = 0, 2, 4


class Library:
    """The C API, as much of it as is measured."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.qerror_message.restype = ctypes.c_char_p
        self.c.qtensor_data.restype = ctypes.c_void_p
        self.c.qtensor_nbytes.restype = ctypes.c_size_t
        self.check(self.c.qlib_set_threads(1))

    def check(self, status):
        if status:
            raise RuntimeError(self.c.qerror_message().decode())

    def made(self, function, *arguments):
        out = ctypes.c_void_p()
        self.check(function(ctypes.byref(out), *arguments))
        return out

    def attrs(self, **texts):
        attrs = self.made(self.c.qattrs_create)
        for key, text in texts.items():
            self.check(self.c.qattrs_set_string(attrs, key.encode(), text.encode()))
        return attrs

    def quantizer(self, dtype, scales, zeros, axis=None, numerics="fbgemm", block=None):
        scales, zeros = np.ravel(scales).astype(np.float64), np.ravel(zeros).astype(np.int64)
        scheme = PER_BLOCK if block else PER_TENSOR if axis is None else PER_CHANNEL
        attrs = self.attrs(numerics=numerics)
        if block:
            self.check(self.c.qattrs_set_int(attrs, b"block_size", ctypes.c_int64(block)))
        return self.made(
            self.c.qquantizer_create, CODES[dtype], scheme, axis or 0, scales.ctypes.data_as(ctypes.c_void_p),
            zeros.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(scales)), attrs,
        )  # fmt: skip

    def tensor(self, array, quantizer=None):
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        code = CODES.get(array.dtype.name, FLOAT32)
        rank, nbytes = ctypes.c_size_t(array.ndim), ctypes.c_size_t(array.nbytes)
        data = array.ctypes.data_as(ctypes.c_void_p)
        return self.made(self.c.qtensor_create, code, shape, rank, quantizer, data, nbytes)

    def array(self, tensor, like):
        data = ctypes.string_at(self.c.qtensor_data(tensor), self.c.qtensor_nbytes(tensor))
        return np.frombuffer(data, like.dtype).reshape(like.shape)

    def call(self, function, *arguments):
        """A call without arguments that makes a tensor and frees it."""
        out = ctypes.c_void_p()
        reference, free = ctypes.byref(out), self.c.qtensor_free

        def run():
            if function(reference, *arguments):
                self.check(1)
            free(out)

        return run
