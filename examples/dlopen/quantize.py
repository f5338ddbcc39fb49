# SPDX-License-Identifier: Apache-2.0
"""Quantizes a model and runs it from Python's standard library alone: ctypes and libqtensor.so.0.

    python3 quantize.py digits.onnx digits-int8.onnx calibration.npy
"""
import ctypes
import sys

library = ctypes.CDLL("libqtensor.so.0")
library.qerror_message.restype = ctypes.c_char_p


def call(function, *arguments):
    if getattr(library, function)(*arguments) != 0:
        sys.exit(library.qerror_message().decode())


def made_by(function, *arguments):
    made = ctypes.c_void_p()
    call(function, ctypes.byref(made), *arguments)
    return made


if len(sys.argv) != 4:
    sys.exit("usage: quantize.py IN.onnx OUT.onnx SAMPLES.npy")
path_in, path_out, path_data = map(str.encode, sys.argv[1:])

data = made_by("qtensor_load_npy", path_data)
model = made_by("qmodel_load", path_in)
prepared = made_by("qmodel_prepare", model, made_by("qconfig_create", b"onnx"), 0)
call("qmodel_calibrate", prepared, ctypes.byref(data), ctypes.c_size_t(1))
int8 = made_by("qmodel_convert", prepared, None)
call("qmodel_save", int8, path_out, None)

session = made_by("qsession_create", int8, None)
scores = ctypes.c_void_p()
call("qsession_run", ctypes.byref(scores), ctypes.c_size_t(1), session, ctypes.byref(data), ctypes.c_size_t(1))
text = ctypes.create_string_buffer(2000)
call("qtensor_describe", text, ctypes.c_size_t(len(text)), ctypes.byref(ctypes.c_size_t()), scores)
print(text.value.decode())
