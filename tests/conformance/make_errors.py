#!/usr/bin/env python3
"""Makes errors.json: every fallible function with each of its pointers NULL, and with arguments that do not fit.

Statuses and messages are written down here, as the header promises them; nothing is asked of the library.

Run again with:  python3 tests/conformance/make_errors.py
"""

import json
import pathlib

HUGE = 2**63 - 1

# What calls work on, and what it must still be after every failure.
SETUP = [
    {"call": "qquantizer_create", "out": "g", "with": {"dtype": "int8", "scheme": "per_tensor_affine", "axis": 0, "scales": [0.5], "zero_points": [1]}},
    {"call": "qquantizer_create", "out": "c", "with": {"dtype": "int8", "scheme": "per_channel_affine", "axis": 1, "scales": [0.5, 1.0, 2.0], "zero_points": [0, 1, 2]}},
    {"call": "qtensor_create", "out": "x", "with": {"dtype": "float32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]}},
    {"call": "qtensor_create", "out": "q", "with": {"dtype": "int8", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6], "quantizer": "$g"}},
    {"call": "qtensor_create", "out": "p", "with": {"dtype": "int8", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6], "quantizer": "$c"}},
    {"call": "qtensor_create", "out": "i", "with": {"dtype": "int32", "shape": [2], "data": [7, 8]}},
    {"call": "qobserver_create", "out": "o", "with": {"kind": "minmax"}},
    {"call": "qobserver_observe", "with": {"o": "$o", "x": "$x"}},
    {"call": "qmodel_load", "out": "m", "with": {"path": "examples/digits/digits.onnx"}},
    {"call": "qconfig_create", "out": "settings", "with": {"name": "onnx"}},
    {"call": "qsession_create", "out": "s", "with": {"m": "$m"}},
]  # fmt: skip
UNCHANGED = [
    {"expect": "$x", "dtype": "float32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6], "quantizer": None},
    {"expect": "$q", "dtype": "int8", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6], "quantizer": {"scheme": 0, "scales": [0.5], "zero_points": [1]}},
    {"expect": "$p", "data": [1, 2, 3, 4, 5, 6], "quantizer": {"scheme": 2, "axis": 1, "scales": [0.5, 1.0, 2.0], "zero_points": [0, 1, 2]}},
    {"call": "qobserver_quantizer", "out": "seen", "with": {"o": "$o"}},
    {"call": "qquantizer_zero_points", "with": {"q": "$seen"}, "equals": [0]},
]  # fmt: skip

TENSOR = {"dtype": "float32", "shape": [2], "data": [1, 2]}
GRID = {"dtype": "int8", "scheme": "per_tensor_affine", "axis": 0, "scales": [0.5], "zero_points": [0]}
CHANNELS = {"dtype": "int8", "scheme": "per_channel_affine", "axis": 0, "scales": [0.5, 1.0]}
RANGE = {"dtype": "int8", "scheme": "per_tensor_affine", "axis": 0, "mins": [-1.0], "maxs": [1.0]}

LINEAR = {"kind": "linear", "weight": "$x", "config": "$settings"}
BATCH = {"t": "$t", "inputs": ["$batch"], "targets": ["$labels"]}
COUNTS = {"input_count": 1, "target_count": 1}
ONE_CALL = {"m": "$m", "config": "$settings", "inputs": ["$batch"], "targets": ["$labels"]}

SCALE = {"domain": "com.example", "name": "Scale", "since_version": 1}

# A call that succeeds, and the pointers of it that may not be NULL.
CALLS = {
    "qlib_set_isa": ({"isa": "scalar"}, ["isa"]),
    "qlib_limit": ({"name": "nodes"}, ["out", "name"]),
    "qattrs_create": ({}, ["out"]),
    "qattrs_set_int": ({"key": "k", "value": 1}, ["a", "key"]),
    "qattrs_set_float": ({"key": "k", "value": 1.5}, ["a", "key"]),
    "qattrs_set_string": ({"key": "k", "value": "v"}, ["a", "key", "value"]),
    "qattrs_set_ints": ({"key": "k", "values": [1, 2], "count": 2}, ["a", "key", "values"]),
    "qattrs_set_floats": ({"key": "k", "values": [1.5, 2], "count": 2}, ["a", "key", "values"]),
    "qattrs_get_int": ({"key": "k"}, ["out", "a", "key"]),
    "qattrs_get_float": ({"key": "k"}, ["out", "a", "key"]),
    "qattrs_get_string": ({"key": "k"}, ["out", "a", "key"]),
    "qattrs_get_ints": ({"key": "k"}, ["out", "count", "a", "key"]),
    "qattrs_get_floats": ({"key": "k"}, ["out", "count", "a", "key"]),
    "qattrs_get_tensor": ({"key": "k"}, ["out", "a", "key"]),
    "qcall_set_output_type": ({}, ["c"]),
    "qcall_fail": ({}, ["c"]),
    "qop_register": (SCALE, ["domain", "name", "infer", "run"]),
    "qop_unregister": (SCALE, ["domain", "name"]),
    "qquantizer_create": ({**GRID, "count": 1}, ["out", "scales"]),
    "qquantizer_choose": ({**RANGE, "count": 1}, ["out", "mins", "maxs"]),
    "qquantizer_choose_dynamic": ({"dtype": "int8", "x": "$x"}, ["out", "x"]),
    "qtensor_create": ({**TENSOR, "rank": 1}, ["out", "shape"]),
    "qtensor_wrap": ({**TENSOR}, ["out", "data"]),
    "qtensor_share": ({"t": "$x"}, ["out", "t"]),
    "qtensor_data_mut": ({"t": "$x"}, ["out", "t"]),
    "qtensor_quantize": ({"x": "$x", "quantizer": "$g"}, ["out", "x", "quantizer"]),
    "qtensor_dequantize": ({"x": "$q"}, ["out", "x"]),
    "qtensor_select": ({"t": "$x", "axis": 0, "index": 0}, ["out", "t"]),
    "qtensor_slice": ({"t": "$x", "axis": 0, "start": 0, "stop": 1, "step": 1}, ["out", "t"]),
    "qtensor_permute": ({"t": "$x", "axes": [1, 0], "count": 2}, ["out", "t", "axes"]),
    "qtensor_reshape": ({"t": "$x", "shape": [6], "rank": 1}, ["out", "t", "shape"]),
    "qtensor_contiguous": ({"t": "$x"}, ["out", "t"]),
    "qtensor_int_repr": ({"t": "$q"}, ["out", "t"]),
    "qtensor_equal": ({"a": "$x", "b": "$x"}, ["out", "a", "b"]),
    "qtensor_copy": ({"dst": "$x", "src": "$x"}, ["dst", "src"]),
    "qtensor_item": ({"t": "$x"}, ["out", "t"]),
    "qtensor_describe": ({"t": "$x"}, ["buf", "out_len", "t"]),
    "qtensor_save": ({"t": "$x", "path": "@e.safetensors"}, ["t", "path"]),
    "qtensor_load": ({"path": "@e.safetensors"}, ["out", "path"]),
    "qtensor_save_npy": ({"t": "$x", "path": "@e.npy"}, ["t", "path"]),
    "qtensor_load_npy": ({"path": "@e.npy"}, ["out", "path"]),
    "qtensor_save_all": ({"path": "@all.safetensors", "names": ["x"], "tensors": ["$x"], "count": 1}, ["path", "names", "tensors"]),
    "qtensor_load_named": ({"path": "@all.safetensors", "name": "x"}, ["out", "path", "name"]),
    "qtensor_load_rows": ({"path": "@all.safetensors", "start": 0, "stop": 1}, ["out", "path"]),
    "qtensor_inspect": ({"path": "@all.safetensors"}, ["out", "path"]),
    "qtensor_to_dlpack": ({"t": "$x"}, ["out", "t"]),
    "qtensor_to_dlpack_versioned": ({"t": "$x"}, ["out", "t"]),
    "qtensor_from_dlpack": ({"device": 1}, ["out", "managed"]),
    "qtensor_from_dlpack_versioned": ({"device": 1}, ["out", "managed"]),
    "qobserver_load": ({"data": None, "nbytes": 4}, ["out", "data"]),
    "qobserver_create": ({"kind": "minmax"}, ["out", "kind"]),
    "qobserver_observe": ({"o": "$o", "x": "$x"}, ["o", "x"]),
    "qobserver_merge": ({"o": "$o", "other": "$o"}, ["o", "other"]),
    "qobserver_quantizer": ({"o": "$o"}, ["out", "o"]),
    "qobserver_save": ({"o": "$o"}, ["out", "o"]),
    "qobserver_save_file": ({"o": "$o", "path": "@o.observer"}, ["o", "path"]),
    "qobserver_load_file": ({"path": "@o.observer"}, ["out", "path"]),
    "qop_run": ({"op": "Relu", "inputs": ["$x"], "input_count": 1}, ["op", "inputs"]),
    "qop_linear": ({"x": "$x", "weight": "$x"}, ["out", "x", "weight"]),
    "qop_conv2d": ({"x": "$x", "weight": "$x"}, ["out", "x", "weight"]),
    "qop_relu": ({"x": "$x"}, ["out", "x"]),
    "qop_fake_quantize": ({"x": "$x", "quantizer": "$g"}, ["out", "x", "quantizer"]),
    "qop_fake_quantize_backward": ({"dy": "$x", "x": "$x", "quantizer": "$g"}, ["out", "dy", "x", "quantizer"]),
    "qop_add": ({"a": "$x", "b": "$x"}, ["out", "a", "b"]),
    "qop_matmul": ({"a": "$x", "b": "$x"}, ["out", "a", "b"]),
    "qop_cat": ({"inputs": ["$x"], "axis": 0, "input_count": 1}, ["out", "inputs"]),
    "qop_max_pool2d": ({"x": "$x"}, ["out", "x"]),
    "qop_avg_pool2d": ({"x": "$x"}, ["out", "x"]),
    "qconfig_create": ({"name": "onnx"}, ["out", "name"]),
    "qconfig_set": ({"c": "$settings", "selector": "*"}, ["c", "selector"]),
    "qconfig_save": ({"c": "$settings", "path": "@c.json"}, ["c", "path"]),
    "qconfig_load": ({"path": "@c.json"}, ["out", "path"]),
    "qmodel_load": ({"path": "examples/digits/digits.onnx"}, ["out", "path"]),
    "qmodel_load_bytes": ({"data": [1], "nbytes": 1}, ["out", "data"]),
    "qmodel_inspect": ({"m": "$m"}, ["out", "m"]),
    "qmodel_tensor": ({"m": "$m", "name": "11.weight"}, ["out", "m", "name"]),
    "qmodel_set_tensor": ({"m": "$m", "name": "11.weight", "t": "$x"}, ["m", "name", "t"]),
    "qsession_profile": ({"s": "$s", "inputs": ["$x"]}, ["out", "s"]),
    "qmodel_fuse": ({"m": "$m", "nodes": ["conv", "relu"], "count": 2}, ["out", "m", "nodes"]),
    "qmodel_prepare": ({"m": "$m"}, ["out", "m", "config"]),
    "qmodel_convert": ({"prepared": "$m"}, ["out", "prepared"]),
    "qmodel_save_calibration": ({"prepared": "$m", "path": "@n.qcal"}, ["prepared"]),
    "qmodel_load_calibration": ({"prepared": "$m", "path": "@n.qcal"}, ["prepared"]),
    "qmodel_merge_calibrations": ({"path": "@n.qcal", "parts": ["@n.qcal"], "count": 1}, ["path", "parts"]),
    "qmodel_quantize": ({"m": "$m", "config": "$settings"}, ["out", "m", "config", "sample"]),
    "qmodel_quantize_dynamic": ({"m": "$m", "config": "$settings"}, ["out", "m", "config"]),
    "qmodel_quantize_weights": ({"m": "$m"}, ["out", "m"]),
    "qmodel_quantize_qat": (ONE_CALL, ["out", "m", "config", "batch"]),
    "qreport_summary": ({"report": "{}"}, ["out", "report"]),
    "qmodel_save": ({"m": "$m", "path": "@n.onnx"}, ["m", "path"]),
    "qmodel_save_bytes": ({"m": "$m"}, ["out", "m"]),
    "qmodel_calibrate": ({"prepared": "$m", "inputs": ["$x"]}, ["prepared"]),
    "qsession_create": ({"m": "$m"}, ["out", "m"]),
    "qsession_run": ({"s": "$s", "inputs": ["$x"]}, ["s"]),
    "qsession_bind": ({"s": "$s", "output": 0, "input": 0}, ["s"]),
    "qsession_reset": ({"s": "$s"}, ["s"]),
    "qlayer_create": ({"kind": "linear", "weight": "$x", "config": "$settings"}, ["out", "kind", "weight"]),
    "qlayer_run": ({"layer": "$linear", "x": "$x"}, ["out", "layer", "x"]),
    "qlayer_weight": ({"layer": "$linear"}, ["out", "layer"]),
    "qlayer_bias": ({"layer": "$linear"}, ["out", "layer"]),
    "qtrainer_create": ({"m": "$m"}, ["out", "m"]),
    "qtrainer_step": ({**BATCH, **COUNTS}, ["out_loss", "t", "inputs", "targets"]),
    "qtrainer_backward": ({**BATCH, **COUNTS}, ["out_loss", "t", "inputs", "targets"]),
    "qtrainer_update": ({"t": "$t"}, ["t"]),
    "qtrainer_evaluate": ({"t": "$t", "inputs": ["$batch"], "input_count": 1}, ["outputs", "t", "inputs"]),
    "qtrainer_set": ({"t": "$t", "attrs": {"lr": 0.1}}, ["t", "attrs"]),
    "qtrainer_set_group": ({"t": "$t", "selector": "*", "settings": {"frozen": 0}}, ["t", "selector", "settings"]),
    "qtrainer_parameter": ({"t": "$t", "index": 0}, ["out", "t"]),
    "qtrainer_gradient": ({"t": "$t", "index": 0}, ["out", "t"]),
    "qtrainer_buffer": ({"t": "$t", "index": 0}, ["out", "t"]),
    "qtrainer_model": ({"t": "$t"}, ["out", "t"]),
    "qtrainer_save": ({"t": "$t", "path": "@t.safetensors"}, ["t", "path"]),
    "qtrainer_load": ({"t": "$t", "path": "@t.safetensors"}, ["t", "path"]),
    "qtrainer_save_bytes": ({"t": "$t"}, ["out", "t"]),
    "qtrainer_load_bytes": ({"t": "$t", "data": [1], "nbytes": 1}, ["t", "data"]),
}

# qtrainer_step and qtrainer_backward.
BAD_BATCHES = [
    ({**BATCH, "inputs": []}, "QTN_EINVAL", "trainer: the model takes 1 inputs, not 0"),
    ({**BATCH, "targets": []}, "QTN_EINVAL", "loss: 1 outputs have 1 targets, not 0"),
    ({**BATCH, "inputs": ["$x"]}, "QTN_ESHAPE", 'trainer: input "image" takes ?x1x8x8, not 2x3'),
    ({**BATCH, "inputs": ["$i"]}, "QTN_EDTYPE", 'trainer: input "image" is float32, not int32'),
    ({**BATCH, "targets": ["$q"]}, "QTN_EDTYPE", "cross_entropy: the target is int8, not labels (int64, int32) or float32"),
    ({**BATCH, "targets": ["$x"]}, "QTN_ESHAPE", "cross_entropy: the distributions are 2x3, not 2x10 for logits 2x10"),
    ({**BATCH, "targets": ["$three"]}, "QTN_ESHAPE", "cross_entropy: the labels are 3, not 2 for logits 2x10"),
    ({**BATCH, "targets": ["$high"]}, "QTN_EINVAL", "cross_entropy: label 10 of sample 1 is outside the 10 classes"),
    ({**BATCH, "targets": ["$low"]}, "QTN_EINVAL", "cross_entropy: label -1 of sample 0 is outside the 10 classes"),
]  # fmt: skip

BAD = {
    "qquantizer_create": [
        ({**GRID, "dtype": 99}, "QTN_EINVAL", "qquantizer_create: dtype 99 is unknown"),
        ({**GRID, "dtype": "float32"}, "QTN_EDTYPE", "qquantizer_create: float32 holds no quantized values"),
        ({**GRID, "scheme": 7}, "QTN_EINVAL", "qquantizer_create: scheme 7 is unknown"),
        ({**GRID, "scales": []}, "QTN_EINVAL", "quantizer: there must be at least one scale"),
        ({**GRID, "scales": [0.5, 1.0], "zero_points": None}, "QTN_EINVAL", "quantizer: a per-tensor scheme takes 1 scale, not 2"),
        ({**GRID, "scales": [0.0]}, "QTN_EINVAL", "quantizer: scale 0 at index 0 is not a positive finite float32"),
        ({**GRID, "scales": [-1.5]}, "QTN_EINVAL", "quantizer: scale -1.5 at index 0 is not a positive finite float32"),
        ({**GRID, "scales": ["inf"]}, "QTN_EINVAL", "quantizer: scale inf at index 0 is not a positive finite float32"),
        ({**GRID, "scales": ["nan"]}, "QTN_EINVAL", "quantizer: scale nan at index 0 is not a positive finite float32"),
        ({**GRID, "zero_points": [128]}, "QTN_EINVAL", "quantizer: zero_point 128 at index 0 is outside int8 [-128, 127]"),
        ({**CHANNELS, "axis": 8}, "QTN_EINVAL", "qquantizer_create: axis is 8, not from -8 to 7"),
        ({**CHANNELS, "axis": -9}, "QTN_EINVAL", "qquantizer_create: axis is -9, not from -8 to 7"),
        ({**GRID, "attrs": {"numerics": "tpu"}}, "QTN_EINVAL", 'numerics: name "tpu" is unknown; known are fbgemm qnnpack onnx nvidia tflite'),
        ({**GRID, "attrs": {"numeric": "onnx"}}, "QTN_EINVAL", 'qquantizer_create: unknown attribute "numeric"; valid are: numerics block_size quant_min quant_max float_zero_points'),
        ({**GRID, "attrs": {"block_size": 4}}, "QTN_EINVAL", "quantizer: block size 4 for a scheme without blocks"),
        ({**GRID, "scheme": "per_block_affine"}, "QTN_EINVAL", "quantizer: block size 0 for a scheme with blocks"),
        ({**GRID, "attrs": {"quant_min": 0}}, "QTN_EINVAL", "qquantizer_create: quant_min is given without the other"),
        ({**GRID, "attrs": {"quant_min": 3, "quant_max": 3}}, "QTN_EINVAL", "quantizer: range [3, 3] is not inside int8 [-128, 127]"),
    ],
    "qquantizer_choose": [
        ({**RANGE, "mins": [2.0]}, "QTN_EINVAL", "quantizer: range [2, 1] is not finite and ordered"),
        ({**RANGE, "maxs": ["inf"]}, "QTN_EINVAL", "quantizer: range [-1, inf] is not finite and ordered"),
        ({**RANGE, "mins": ["nan"]}, "QTN_EINVAL", "quantizer: range [nan, 1] is not finite and ordered"),
        ({**RANGE, "attrs": {"numerics": "nvidia"}}, "QTN_EUNSUPPORTED", "quantizer: nvidia numerics are symmetric, the scheme is affine"),
        ({**RANGE, "dtype": "bool"}, "QTN_EDTYPE", "qquantizer_choose: bool holds no quantized values"),
    ],
    "qquantizer_choose_dynamic": [
        ({"dtype": "int8", "x": "$bad"}, "QTN_EINVAL", "qquantizer_choose_dynamic: x holds NaN or infinity, which has no scale"),
        ({"dtype": "int8", "x": "$endless", "attrs": {"numerics": "tflite"}}, "QTN_EINVAL", "qquantizer_choose_dynamic: x holds NaN or infinity, which has no scale"),
        ({"dtype": "int4", "x": "$x"}, "QTN_EDTYPE", "qquantizer_choose_dynamic: dtype is int4, neither uint8 nor int8"),
        ({"dtype": 8, "x": "$x"}, "QTN_EINVAL", "qquantizer_choose_dynamic: dtype 8 is unknown"),
        ({"dtype": "int8", "x": "$q"}, "QTN_EDTYPE", "qquantizer_choose_dynamic: x is quantized, not float32"),
        ({"dtype": "int8", "x": "$i"}, "QTN_EDTYPE", "qquantizer_choose_dynamic: x is int32, not float32"),
        ({"dtype": "int8", "x": "$x", "attrs": {"numerics": "tpu"}}, "QTN_EINVAL", 'numerics: name "tpu" is unknown; known are fbgemm qnnpack onnx nvidia tflite'),
        ({"dtype": "int8", "x": "$x", "attrs": {"eps": 0.5}}, "QTN_EINVAL", 'qquantizer_choose_dynamic: unknown attribute "eps"; valid are: numerics reduce_range'),
        ({"dtype": "uint8", "x": "$below", "attrs": {"numerics": "nvidia"}}, "QTN_EINVAL", "quantizer: negative values, down to -1.5, in unsigned quantization with nvidia numerics"),
    ],
    "qtensor_create": [
        ({**TENSOR, "dtype": 8}, "QTN_EINVAL", "qtensor_create: dtype 8 is unknown"),
        ({**TENSOR, "nbytes": 7}, "QTN_EINVAL", "qtensor_create: nbytes is 7, a 2 tensor of float32 takes 8"),
        ({**TENSOR, "nbytes": 9}, "QTN_EINVAL", "qtensor_create: nbytes is 9, a 2 tensor of float32 takes 8"),
        ({**TENSOR, "shape": [-2]}, "QTN_ESHAPE", "shape: -2 has a negative dimension, -2"),
        ({"dtype": "float32", "shape": [1] * 9}, "QTN_ESHAPE", "shape: rank 9 is over the limit of 8"),
        ({"dtype": "float32", "shape": [HUGE, 2]}, "QTN_ESHAPE", f"shape: {HUGE}x2 is too large"),
        ({"dtype": "float32", "shape": [HUGE]}, "QTN_ENOMEM", f"qtensor_create: a {HUGE} tensor does not fit in memory"),
        ({"dtype": "float32", "shape": [2**60]}, "QTN_ENOMEM", f"qtensor_create: a {2**60} tensor does not fit in memory"),
        ({"dtype": "int8", "shape": [3, 2], "quantizer": "$c"}, "QTN_ESHAPE", "quantizer: 3 scales for dimension 1 of a 3x2 tensor"),
        ({"dtype": "int8", "shape": [3], "quantizer": "$c"}, "QTN_EINVAL", "quantizer: axis 1 is outside a tensor of rank 1"),
        ({"dtype": "uint8", "shape": [3], "quantizer": "$g"}, "QTN_EDTYPE", "qtensor_create: the quantizer is for int8, dtype is uint8"),
    ],
    "qtensor_wrap": [
        ({**TENSOR, "nbytes": 4}, "QTN_EINVAL", "qtensor_wrap: nbytes is 4, a 2 tensor of float32 takes 8"),
        ({**TENSOR, "misaligned": 1}, "QTN_EINVAL", "qtensor_wrap: data is not aligned for float32"),
    ],
    "qtensor_quantize": [
        ({"x": "$i", "quantizer": "$g"}, "QTN_EDTYPE", "quantize: x must be float32, not int32"),
        ({"x": "$q", "quantizer": "$g"}, "QTN_EDTYPE", "quantize: x must be float32, not quantized int8"),
    ],
    "qtensor_dequantize": [({"x": "$x"}, "QTN_EDTYPE", "dequantize: x is a plain float32 tensor without a quantizer")],
    "qtensor_select": [
        ({"t": "$x", "axis": 2, "index": 0}, "QTN_EINVAL", "select: axis 2 is outside a tensor of rank 2"),
        ({"t": "$x", "axis": -3, "index": 0}, "QTN_EINVAL", "select: axis -3 is outside a tensor of rank 2"),
        ({"t": "$x", "axis": 0, "index": 2}, "QTN_EINVAL", "select: index 2 is outside dimension 0 of size 2"),
        ({"t": "$x", "axis": 0, "index": -3}, "QTN_EINVAL", "select: index -3 is outside dimension 0 of size 2"),
    ],
    "qtensor_slice": [
        ({"t": "$x", "axis": 5, "start": 0, "stop": 1, "step": 1}, "QTN_EINVAL", "slice: axis 5 is outside a tensor of rank 2"),
        ({"t": "$x", "axis": 0, "start": 0, "stop": 1, "step": 0}, "QTN_EINVAL", "slice: step 0 must be positive"),
        ({"t": "$p", "axis": 1, "start": 2, "stop": 1, "step": 1}, "QTN_EINVAL", "slice: a tensor quantized per channel cannot lose all of its scales"),
    ],
    "qtensor_permute": [
        ({"t": "$x", "axes": [0]}, "QTN_EINVAL", "permute: 1 axes for a tensor of rank 2"),
        ({"t": "$x", "axes": [0, 0]}, "QTN_EINVAL", "permute: axis 0 is named twice"),
        ({"t": "$x", "axes": [0, 2]}, "QTN_EINVAL", "permute: axis 2 is outside a tensor of rank 2"),
    ],
    "qtensor_reshape": [
        ({"t": "$x", "shape": [7]}, "QTN_ESHAPE", "reshape: 2x3 has 6 elements, 7 has 7"),
        ({"t": "$x", "shape": [4, -1]}, "QTN_ESHAPE", "reshape: no dimension in place of -1 makes 4x? of the 6 elements of 2x3"),
        ({"t": "$x", "shape": [HUGE, HUGE]}, "QTN_ESHAPE", f"shape: {HUGE}x{HUGE} is too large"),
        ({"t": "$p", "shape": [6]}, "QTN_ESHAPE", "reshape: 2x3 to 6 does not keep axis 1, which the scales run along"),
    ],
    "qtensor_int_repr": [({"t": "$x"}, "QTN_EDTYPE", "qtensor_int_repr: t is a plain float32 tensor")],
    "qtensor_copy": [
        ({"dst": "$x", "src": "$i"}, "QTN_ESHAPE", "qtensor_copy: dst is 2x3, src is 2"),
        ({"dst": "$x", "src": "$q"}, "QTN_EDTYPE", "qtensor_copy: src is quantized, dst is not; dequantize src first"),
    ],
    "qtensor_item": [({"t": "$x"}, "QTN_ESHAPE", "item: a 2x3 tensor has 6 elements, not 1")],
    "qtensor_load": [({"path": "@nothing.safetensors"}, "QTN_EIO", "{folder}/nothing.safetensors: No such file or directory")],
    "qtensor_load_named": [({"path": "@nothing.safetensors", "name": "x"}, "QTN_EIO", "{folder}/nothing.safetensors: No such file or directory")],
    "qtensor_to_dlpack": [({"t": "$q"}, "QTN_EDTYPE", "dlpack: has no quantized tensors; hand over the integers that qtensor_int_repr takes of this one, or the values that qtensor_dequantize gives")],
    "qtensor_from_dlpack_versioned": [({"device": 3}, "QTN_EUNSUPPORTED", "dlpack: device type 3 (CUDA host) is not supported, only CPU (1)")],
    "qmodel_load_bytes": [({"data": [1, 2, 3]}, "QTN_EFORMAT", "qmodel_load_bytes: model is not a valid ONNX file: invalid tag exception")],
    "qsession_profile": [({"s": "$s", "inputs": ["$i"]}, "QTN_EDTYPE", 'session: input "image" is float32, not int32')],
    "qobserver_create": [({"kind": "crystal"}, "QTN_EINVAL", 'observer: kind "crystal" is unknown; known are minmax max moving_average mse histogram percentile entropy nvidia_percentile nvidia_entropy nvidia_mse fixed')],
    "qobserver_observe": [({"o": "$o", "x": "$i"}, "QTN_EDTYPE", "observer: the tensor must be float32, not int32")],
    "qop_register": [
        ({**SCALE, "domain": "", "name": "Relu"}, "QTN_EINVAL", "qop_register: Relu is an operator that the library has"),
        ({**SCALE, "domain": "com.microsoft", "name": "FusedConv"}, "QTN_EINVAL", "qop_register: com.microsoft::FusedConv is an operator that the library has"),
        ({**SCALE, "name": "no name"}, "QTN_EINVAL", 'qop_register: name "no name" is not one that an operator can have: letters, digits and _'),
        ({**SCALE, "domain": "no domain"}, "QTN_EINVAL", 'qop_register: domain "no domain" is not one that an operator can have: letters, digits, _, . and -'),
        ({**SCALE, "since_version": 0}, "QTN_EINVAL", "qop_register: since_version of com.example::Scale is 0, below 1"),
    ],
    "qop_unregister": [
        (SCALE, "QTN_EINVAL", "qop_unregister: operator Scale (domain com.example) is not registered since version 1"),
    ],
    "qop_run": [
        ({"op": "Dream", "inputs": ["$x"]}, "QTN_EUNSUPPORTED", 'qop_run: operator "Dream" is not one that this version has'),
        ({"op": "Relu", "inputs": ["$x", "$x"]}, "QTN_EINVAL", "Relu: 2 inputs given, 1 to 1 expected"),
        ({"op": "Add", "inputs": ["$x", None]}, "QTN_EINVAL", "Add: input 1 is absent"),
        ({"op": "Relu", "inputs": ["$x"], "output_count": 2}, "QTN_EINVAL", "Relu: 2 outputs wanted, it has 1"),
        ({"op": "Relu", "inputs": ["$x"], "attrs": {"alpha": 1.0}}, "QTN_EINVAL", 'Relu: unknown attribute "alpha"; valid are: none'),
        ({"op": "Add", "inputs": ["$x", "$i"]}, "QTN_EDTYPE", "Add: inputs are float32 and int32, not of one type"),
    ],
    "qop_linear": [
        ({"x": "$x", "weight": "$i"}, "QTN_ESHAPE", "linear: weight is 2, not of rank 2"),
        ({"x": "$i", "weight": "$x"}, "QTN_ESHAPE", "linear: weight has 3 input features, x has 2"),
        ({"x": "$p", "weight": "$q"}, "QTN_EDTYPE", "linear: x is quantized per channel, not per tensor"),
        ({"x": "$q", "weight": "$p"}, "QTN_EDTYPE", "linear: weight is quantized along axis 1, not along axis 0"),
        ({"x": "$q", "weight": "$q", "out_quantizer": "$c"}, "QTN_EDTYPE", "linear: the quantizer of the result is per channel, not per tensor"),
        ({"x": "$q", "weight": "$q", "bias": "$i"}, "QTN_EDTYPE", "linear: bias is int32, not float32"),
    ],
    "qlayer_create": [
        ({**LINEAR, "kind": "dense"}, "QTN_EINVAL", 'layer: kind "dense" is unknown; known are linear conv1d conv2d conv3d embedding embedding_bag'),
        ({"kind": "linear", "weight": "$x"}, "QTN_EINVAL", "linear: weight is float32, and there is no config that says how to quantize it"),
        ({**LINEAR, "kind": "conv2d"}, "QTN_ESHAPE", "conv2d: weight is 2x3, not of rank 4"),
        ({**LINEAR, "weight": "$i2"}, "QTN_EDTYPE", "linear: weight is a plain int32 tensor, neither float32 nor quantized"),
        ({**LINEAR, "weight": "$p"}, "QTN_EDTYPE", "linear: weight is int8 per channel along axis 1, not of 8 bits or fewer per tensor or per channel along axis 0"),
        ({**LINEAR, "weight": "$none"}, "QTN_ESHAPE", "linear: weight is 0x3, without elements"),
        ({**LINEAR, "weight": "$nan"}, "QTN_EINVAL", "linear: weight has nan at index 1"),
        ({**LINEAR, "bias": "$x"}, "QTN_ESHAPE", "linear: bias is 2x3, weight 2x3"),
        ({**LINEAR, "bias": "$i"}, "QTN_EDTYPE", "linear: bias is int32, not float32"),
        ({**LINEAR, "bias": "$q"}, "QTN_EDTYPE", "linear: bias is quantized int8, not float32"),
        ({**LINEAR, "x_quantizer": "$c"}, "QTN_EDTYPE", "linear: x_quantizer is int8 per channel, not uint8 or int8 per tensor"),
        ({**LINEAR, "out_quantizer": "$g16"}, "QTN_EDTYPE", "linear: out_quantizer is int16 per tensor, not uint8 or int8 per tensor"),
        ({**LINEAR, "attrs": {"strides": [1]}}, "QTN_EINVAL", 'linear: unknown attribute "strides"; valid are: none'),
        ({**LINEAR, "kind": "embedding", "bias": "$pair"}, "QTN_EINVAL", "embedding: takes no bias"),
        ({**LINEAR, "kind": "embedding", "out_quantizer": "$g"}, "QTN_EINVAL", "embedding: takes no out_quantizer"),
        ({**LINEAR, "kind": "embedding_bag", "attrs": {"mode": "max"}}, "QTN_EINVAL", 'embedding_bag: mode "max" is unknown; known are sum mean'),
        ({"kind": "conv1d", "weight": "$cube", "config": "$settings", "attrs": {"group": 2}}, "QTN_ESHAPE", "conv1d: weight has 1 output channels, no multiple of group 2"),
    ],
    "qlayer_run": [
        ({"layer": "$linear", "x": "$pair"}, "QTN_ESHAPE", "linear: weight has 3 input features, x has 2"),
        ({"layer": "$linear", "x": "$scalar"}, "QTN_ESHAPE", "linear: x is a scalar, without features"),
        ({"layer": "$linear", "x": "$i"}, "QTN_EDTYPE", "linear: x is a plain int32 tensor, neither float32 nor uint8 or int8 per tensor"),
        ({"layer": "$linear", "x": "$p"}, "QTN_EDTYPE", "linear: x is quantized to int8 per channel, neither float32 nor uint8 or int8 per tensor"),
        ({"layer": "$conv", "x": "$x"}, "QTN_ESHAPE", "conv1d: x is 2x3, not of rank 3"),
        ({"layer": "$conv", "x": "$planes"}, "QTN_ESHAPE", "conv1d: weight has 2 input channels, x has 3"),
        ({"layer": "$rows", "x": "$i"}, "QTN_EINVAL", "embedding: index 7 is outside of the 2 rows"),
        ({"layer": "$rows", "x": "$x"}, "QTN_EDTYPE", "embedding: x is float32, not int64 or int32"),
        ({"layer": "$bags", "x": "$i"}, "QTN_ESHAPE", "embedding_bag: x is 2, not [bags, n]"),
    ],
    "qreport_summary": [
        ({"report": "SQNR"}, "QTN_EFORMAT", "report: is no JSON at byte 1"),
        ({"report": "[]"}, "QTN_EFORMAT", 'report: has no number "samples"'),
        ({"report": '{"samples": "all"}'}, "QTN_EFORMAT", 'report: has no number "samples"'),
        ({"report": '{"samples": 1}'}, "QTN_EFORMAT", 'report: has no number "nodes.all"'),
        ({"report": '{"samples": 1, "nodes": {"all": 1, "int8": 1}, "trials": [{"name": "plain", "kept": true}]}'}, "QTN_EFORMAT", 'report: has no number "trials.0.sqnr_db"'),
        ({"report": "[" * 17}, "QTN_EFORMAT", "report: 0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0: is nested too deep for a report"),
    ],
    "qop_conv2d": [({"x": "$x", "weight": "$x"}, "QTN_ESHAPE", "conv2d: x is 2x3, not of rank 4")],
    "qop_fake_quantize": [
        ({"x": "$i", "quantizer": "$g"}, "QTN_EDTYPE", "fake_quantize: x must be float32, not int32"),
        ({"x": "$q", "quantizer": "$g"}, "QTN_EDTYPE", "fake_quantize: x must be float32, not quantized int8"),
        ({"x": "$x", "quantizer": "$two"}, "QTN_ESHAPE", "quantizer: 2 scales for dimension 1 of a 2x3 tensor"),
        ({"x": "$x", "quantizer": "$wide"}, "QTN_EUNSUPPORTED", "fake_quantize: integers from -2147483648 to 2147483647 are more than 16 bits hold"),
        ({"x": "$x", "quantizer": "$float8"}, "QTN_EUNSUPPORTED", "fake_quantize: float8_e4m3fn is no grid of integers"),
        ({"x": "$x", "quantizer": "$blocks"}, "QTN_EUNSUPPORTED", "fake_quantize: the quantizer is per block, not per tensor or per channel"),
    ],
    "qop_fake_quantize_backward": [
        ({"dy": "$i", "x": "$x", "quantizer": "$g"}, "QTN_EDTYPE", "fake_quantize_backward: dy must be float32, not int32"),
        ({"dy": "$x", "x": "$q", "quantizer": "$g"}, "QTN_EDTYPE", "fake_quantize_backward: x must be float32, not quantized int8"),
        ({"dy": "$row", "x": "$x", "quantizer": "$g"}, "QTN_ESHAPE", "fake_quantize_backward: dy is 3, x is 2x3"),
        ({"dy": "$x", "x": "$x", "quantizer": "$two"}, "QTN_ESHAPE", "quantizer: 2 scales for dimension 1 of a 2x3 tensor"),
        ({"dy": "$x", "x": "$x", "quantizer": "$wide"}, "QTN_EUNSUPPORTED", "fake_quantize_backward: integers from -2147483648 to 2147483647 are more than 16 bits hold"),
    ],
    "qop_add": [({"a": "$x", "b": "$i"}, "QTN_EDTYPE", "Add: inputs are float32 and int32, not of one type")],
    "qop_matmul": [({"a": "$x", "b": "$x"}, "QTN_ESHAPE", "MatMul: b wants 2 input features, a has 3 (a 2x3, b 2x3)")],
    "qop_cat": [({"inputs": ["$x"], "axis": 2}, "QTN_EINVAL", "Concat: axis 2 is outside a tensor of rank 2")],
    "qop_max_pool2d": [({"x": "$x"}, "QTN_ESHAPE", "qop_max_pool2d: x is 2x3, not of rank 4")],
    "qop_avg_pool2d": [({"x": "$x"}, "QTN_ESHAPE", "qop_avg_pool2d: x is 2x3, not of rank 4")],
    "qconfig_create": [({"name": "abacus"}, "QTN_EUNSUPPORTED", 'config: recipe "abacus" is not offered; offered are onnx fbgemm x86 qnnpack onednn nvidia tflite torchvision_fbgemm torchvision_qnnpack')],
    "qconfig_set": [
        ({"c": "$settings", "selector": "type:Conv"}, "QTN_EINVAL", 'config: selector "type:Conv" is none of * op:TYPE name:GLOB node:NAME tensor:NAME'),
        ({"c": "$settings", "selector": "tensor:x"}, "QTN_EINVAL", 'config: selector "tensor:x": a tensor is in float if the nodes that read it are; select them'),
        ({"c": "$settings", "selector": "tensor:x", "settings": {"weight_dtype": "int4"}}, "QTN_EINVAL", 'config: of a tensor: unknown attribute "weight_dtype"; valid are: quantize observer activation_dtype activation_scheme activation_bits reduce_range fixed_outputs scale zero_point min max numerics averaging_constant bins eps percentile absolute activation_learning scale_amax margin quant_desc_input'),
        ({"c": "$settings", "selector": "*", "settings": {"weight_dtype": "int2"}}, "QTN_EUNSUPPORTED", 'config: weight_dtype "int2" is not offered; offered are int8 int4'),
        ({"c": "$settings", "selector": "*", "settings": {"mode": "weights"}}, "QTN_EUNSUPPORTED", 'config: mode "weights" is not offered; offered are static dynamic weights_only'),
        ({"c": "$settings", "selector": "tensor:x", "settings": {"mode": "dynamic"}}, "QTN_EINVAL", 'config: of a tensor: unknown attribute "mode"; valid are: quantize observer activation_dtype activation_scheme activation_bits reduce_range fixed_outputs scale zero_point min max numerics averaging_constant bins eps percentile absolute activation_learning scale_amax margin quant_desc_input'),
        ({"c": "$settings", "selector": "*", "settings": {"bias": "int16"}}, "QTN_EUNSUPPORTED", 'config: bias "int16" is not offered; offered are int32 float32'),
        ({"c": "$settings", "selector": "*", "settings": {"activation_dtype": "int4"}}, "QTN_EUNSUPPORTED", 'config: activation_dtype "int4" is not offered; offered are uint8 int8 int16'),
        ({"c": "$settings", "selector": "*", "settings": {"weight_scheme": "per_block_symmetric"}}, "QTN_EINVAL", 'config: weight_scheme "per_block_symmetric" needs block_size'),
        ({"c": "$settings", "selector": "*", "settings": {"block_size": 32}}, "QTN_EINVAL", 'config: block_size is of weight_scheme "per_block_symmetric", here it is "per_channel_symmetric"'),
        ({"c": "$settings", "selector": "*", "settings": {"max": 2.0}}, "QTN_EINVAL", 'config: max is of the observer "fixed", the observer here is "minmax"'),
        ({"c": "$settings", "selector": "*", "settings": {"activation_learning": "lsq++"}}, "QTN_EINVAL", 'config: activation_learning "lsq++" is unknown; known are none lsq lsq+ pact amax'),
        ({"c": "$settings", "selector": "*", "settings": {"weight_learning": "pact"}}, "QTN_EINVAL", 'config: weight_learning "pact" is unknown; known are none lsq amax'),
        ({"c": "$settings", "selector": "tensor:x", "settings": {"activation_learning": "amax"}}, "QTN_EUNSUPPORTED", 'config: activation_learning "amax" is for activation_scheme "per_tensor_symmetric", here it is "per_tensor_affine"'),
        ({"c": "$settings", "selector": "*", "settings": {"activation_learning": "pact", "activation_scheme": "per_tensor_symmetric"}}, "QTN_EUNSUPPORTED", 'config: activation_learning "pact" is for activation_scheme "per_tensor_affine", here it is "per_tensor_symmetric"'),
        ({"c": "$settings", "selector": "*", "settings": {"activation_learning": "lsq", "reduce_range": 1}}, "QTN_EUNSUPPORTED", 'config: activation_learning "lsq" needs reduce_range 0: what is learned is where all integers of the type end'),
        ({"c": "$settings", "selector": "*", "settings": {"weight_learning": "amax"}}, "QTN_EUNSUPPORTED", 'config: weight_learning "amax" is for weight_scheme "per_tensor_symmetric", here it is "per_channel_symmetric"'),
        ({"c": "$settings", "selector": "*", "settings": {"weight_learning": "lsq", "weight_scheme": "per_block_symmetric", "block_size": 32}}, "QTN_EUNSUPPORTED", 'config: weight_learning "lsq" is for scales per tensor or channel, not for "per_block_symmetric"'),
        ({"c": "$settings", "selector": "*", "settings": {"weight_learning": "lsq", "weight_reduce_range": 1}}, "QTN_EUNSUPPORTED", 'config: weight_learning "lsq" needs weight_reduce_range 0: what is learned is where all integers of the type end'),
    ],
    "qconfig_load": [({"path": "@nothing.json"}, "QTN_EIO", "{folder}/nothing.json: No such file or directory")],
    "qmodel_load": [({"path": "@nothing.onnx"}, "QTN_EIO", "{folder}/nothing.onnx: No such file or directory")],
    "qmodel_calibrate": [({"prepared": "$m", "inputs": ["$x"]}, "QTN_ESTATE", "qmodel_calibrate: the model is not prepared")],
    "qmodel_save_calibration": [({"prepared": "$m", "path": "@n.qcal"}, "QTN_ESTATE", "qmodel_save_calibration: the model is not prepared")],
    "qmodel_load_calibration": [({"prepared": "$m", "path": "@n.qcal"}, "QTN_ESTATE", "qmodel_load_calibration: the model is not prepared")],
    "qmodel_merge_calibrations": [
        ({"path": "@n.qcal", "parts": []}, "QTN_EINVAL", "qmodel_merge_calibrations: count is 0"),
        ({"path": "@n.qcal", "parts": ["@nothing.qcal"]}, "QTN_EIO", "{folder}/nothing.qcal: No such file or directory"),
    ],
    "qmodel_quantize": [
        ({"m": "$m", "config": "$settings", "samples": []}, "QTN_ESTATE", "quantize: there are no samples, and calibration needs one"),
        ({"m": "$m", "config": "$settings", "samples": ["$i"]}, "QTN_EDTYPE", 'calibrate: input "image" is float32, not int32'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"magic": 1}}, "QTN_EINVAL", 'quantize: unknown attribute "magic"; valid are: plain smooth absorb_bias bias_correction gptq adaround auto target_sqnr target_top1 fallback sensitivity histograms measured_samples'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"smooth": 2.0}}, "QTN_EINVAL", 'quantize: smooth 2 is outside [0, 1]'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"target_sqnr": "inf"}}, "QTN_EINVAL", 'quantize: attribute "target_sqnr" must be a float, not a string'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"target_top1": 0.0}}, "QTN_EINVAL", 'quantize: target_top1 0 is outside (0, 1]'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"target_top1": 1.5}}, "QTN_EINVAL", 'quantize: target_top1 1.5 is outside (0, 1]'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"target_top1": 0.9, "fallback": "int4"}}, "QTN_EINVAL", 'quantize: fallback "int4" is unknown; known are float int16'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"fallback": "int16"}}, "QTN_EINVAL", 'quantize: fallback "int16" is for target_sqnr and target_top1, neither is given'),
        ({"m": "$m", "config": "$settings", "samples": [], "attrs": {"measured_samples": 0}}, "QTN_EINVAL", 'quantize: measured_samples is 0, not positive'),
    ],
    "qmodel_quantize_dynamic": [
        ({"m": "$m", "config": "$settings", "attrs": {"gemm": 1}}, "QTN_EINVAL", 'qmodel_quantize_dynamic: unknown attribute "gemm"; valid are: conv granularity'),
        ({"m": "$m", "config": "$settings", "attrs": {"granularity": "column"}}, "QTN_EINVAL", 'qmodel_quantize_dynamic: granularity is "tensor" or "row", not "column"'),
        ({"m": "$m", "config": "$settings", "attrs": {"conv": "yes"}}, "QTN_EINVAL", 'qmodel_quantize_dynamic: attribute "conv" must be an int, not a string'),
    ],
    "qmodel_quantize_weights": [
        ({"m": "$m", "attrs": {"bits": 4}}, "QTN_EINVAL", 'qmodel_quantize_weights: unknown attribute "bits"; valid are: dtype block_size'),
        ({"m": "$m", "attrs": {"dtype": "uint8"}}, "QTN_EINVAL", 'qmodel_quantize_weights: dtype "uint8" is unknown; known are int8 int4'),
        ({"m": "$m", "attrs": {"block_size": -1}}, "QTN_EINVAL", 'qmodel_quantize_weights: block_size -1 is negative'),
    ],
    "qmodel_tensor": [
        ({"m": "$m", "name": "11.wait"}, "QTN_EINVAL", 'qmodel_tensor: the model has no tensor "11.wait"; nearest are: 11.weight 11.bias onnx::Conv_55'),
        ({"m": "$m", "name": ""}, "QTN_EINVAL", 'qmodel_tensor: the model has no tensor ""; nearest are: 11.bias 11.weight onnx::Conv_55'),
    ],
    "qmodel_set_tensor": [
        ({"m": "$m", "name": "bias", "t": "$x"}, "QTN_EINVAL", 'qmodel_set_tensor: the model has no tensor "bias"; nearest are: 11.bias 11.weight onnx::Conv_55'),
        ({"m": "$m", "name": "11.bias", "t": "$x"}, "QTN_ESHAPE", 'qmodel_set_tensor: tensor "11.bias" is a 10 tensor of float32, t is a 2x3 tensor of float32'),
        ({"m": "$m", "name": "11.bias", "t": "$i"}, "QTN_EDTYPE", 'qmodel_set_tensor: tensor "11.bias" is a 10 tensor of float32, t is a 2 tensor of int32'),
        ({"m": "$m", "name": "11.bias", "t": "$q"}, "QTN_EDTYPE", 'qmodel_set_tensor: tensor "11.bias" is a 10 tensor of float32, t is a quantized 2x3 tensor of int8'),
        ({"m": "$int8", "name": "11.weight", "t": "$x"}, "QTN_EDTYPE", 'qmodel_set_tensor: tensor "11.weight_quantized" is a quantized 10x64 tensor of int8, t is a 2x3 tensor of float32'),
        ({"m": "$int8", "name": "11.weight", "t": "$q"}, "QTN_ESHAPE", 'qmodel_set_tensor: tensor "11.weight_quantized" is a quantized 10x64 tensor of int8, t is a quantized 2x3 tensor of int8'),
        ({"m": "$ptq", "name": "11.weight", "t": "$x"}, "QTN_ESTATE", "qmodel_set_tensor: the model is prepared, its observers know other weights"),
    ],
    "qmodel_convert": [({"prepared": "$m"}, "QTN_ESTATE", "qmodel_convert: the model is not prepared")],
    "qsession_create": [({"m": "$m", "attrs": {"engine": "steam"}}, "QTN_EINVAL", 'qsession_create: engine "steam" is unknown; known are native reference')],
    "qsession_run": [
        ({"s": "$s", "inputs": []}, "QTN_EINVAL", "qsession_run: input_count is 0, the model has 1 inputs"),
        ({"s": "$s", "inputs": ["$x"]}, "QTN_ESHAPE", 'session: input "image" takes ?x1x8x8, not 2x3'),
        ({"s": "$s", "inputs": ["$i"]}, "QTN_EDTYPE", 'session: input "image" is float32, not int32'),
    ],
    "qsession_bind": [
        ({"s": "$s", "output": 1, "input": 0}, "QTN_EINVAL", "session: output 1 is not one of the model's 1"),
        ({"s": "$s", "output": 0, "input": 1}, "QTN_EINVAL", "session: input 1 is not one of the model's 1"),
        ({"s": "$s", "output": 0, "input": 0}, "QTN_ESHAPE", 'session: output "scores" is ?x10, and input "image" takes ?x1x8x8'),
    ],
    "qmodel_quantize_qat": [
        ({**ONE_CALL, "inputs": [], "targets": []}, "QTN_EINVAL", "quantize_qat: there are no batches"),
        ({**ONE_CALL, "inputs": ["$x"]}, "QTN_ESHAPE", 'calibrate: input "image" takes ?x1x8x8, not 2x3'),
        ({**ONE_CALL, "targets": ["$high"]}, "QTN_EINVAL", "cross_entropy: label 10 of sample 1 is outside the 10 classes"),
        ({**ONE_CALL, "m": "$int8"}, "QTN_EUNSUPPORTED", 'prepare: the model is quantized already (tensor "image")'),
        ({**ONE_CALL, "attrs": {"epochs": 0}}, "QTN_EINVAL", "quantize_qat: epochs 0 is below 1"),
        ({**ONE_CALL, "inputs": 2 * ONE_CALL["inputs"], "targets": 2 * ONE_CALL["targets"], "attrs": {"epochs": 2**62}}, "QTN_EINVAL",
         "quantize_qat: epochs is 4611686018427387904, too many for 2 batches"),
        ({**ONE_CALL, "attrs": {"calibration_batches": -1}}, "QTN_EINVAL", "quantize_qat: calibration_batches -1 is below 0"),
        ({**ONE_CALL, "attrs": {"speed": 9}}, "QTN_EINVAL", 'quantize_qat: unknown attribute "speed"; valid are: epochs calibration_batches loss label_smoothing delta alpha temperature class_axis ignore_index optimizer momentum nesterov weight_decay beta1 beta2 epsilon clip_norm clip_value schedule lr min_lr warmup_steps step_size gamma seed threads freeze_bn observers fake_quant'),
        ({**ONE_CALL, "attrs": {"total_steps": 9}}, "QTN_EINVAL", "quantize_qat: total_steps follows from epochs and batches"),
        ({**ONE_CALL, "attrs": {"schedule": "step"}}, "QTN_EINVAL", "schedule: step_size 0 is below 1"),
    ],
    "qtrainer_create": [
        ({"m": "$int8"}, "QTN_EUNSUPPORTED", 'trainer: the model is quantized already (tensor "image")'),
        ({"m": "$ptq"}, "QTN_ESTATE", "trainer: the model is prepared with QTN_PTQ, not with QTN_QAT"),
        ({"m": "$m", "attrs": {"speed": 1}}, "QTN_EINVAL", 'trainer: unknown attribute "speed"; valid are: loss label_smoothing delta alpha temperature class_axis ignore_index optimizer momentum nesterov weight_decay beta1 beta2 epsilon clip_norm clip_value schedule lr min_lr total_steps warmup_steps step_size gamma seed threads freeze_bn observers fake_quant'),
        ({"m": "$m", "attrs": {"lr": "fast"}}, "QTN_EINVAL", 'trainer: attribute "lr" must be a float, not a string'),
        ({"m": "$m", "attrs": {"lr": -1.0}}, "QTN_EINVAL", "schedule: lr -1 is not zero or a positive number"),
        ({"m": "$m", "attrs": {"loss": "hinge"}}, "QTN_EINVAL", 'loss: kind "hinge" is unknown; known are cross_entropy mse huber distillation'),
        ({"m": "$m", "attrs": {"delta": 1.0}}, "QTN_EINVAL", 'loss: "cross_entropy" has no "delta"; it has: loss label_smoothing class_axis ignore_index'),
        ({"m": "$m", "attrs": {"label_smoothing": 1.0}}, "QTN_EINVAL", "cross_entropy: label_smoothing 1 is outside [0, 1)"),
        ({"m": "$m", "attrs": {"optimizer": "lion"}}, "QTN_EINVAL", 'optimizer: kind "lion" is unknown; known are sgd adam adamw'),
        ({"m": "$m", "attrs": {"beta1": 0.9}}, "QTN_EINVAL", 'optimizer: "sgd" has no "beta1"; it has: optimizer momentum nesterov weight_decay clip_norm clip_value'),
        ({"m": "$m", "attrs": {"clip_norm": 0.0}}, "QTN_EINVAL", "optimizer: clip_norm 0 is not positive"),
        ({"m": "$m", "attrs": {"schedule": "zigzag"}}, "QTN_EINVAL", 'schedule: kind "zigzag" is unknown; known are constant step cosine'),
        ({"m": "$m", "attrs": {"schedule": "cosine", "total_steps": 5, "warmup_steps": 5}}, "QTN_EINVAL", "schedule: nothing is left of total_steps 5 after warmup_steps 5"),
        ({"m": "$m", "attrs": {"threads": -1}}, "QTN_EINVAL", "trainer: threads is -1, not from 0 to 1024"),
        ({"m": "$m", "attrs": {"freeze_bn": 2}}, "QTN_EINVAL", "trainer: freeze_bn is 2, not 0 or 1"),
        ({"m": "$m", "attrs": {"observers": 0}}, "QTN_EINVAL", 'trainer: "observers" is for models that were prepared with QTN_QAT'),
    ],
    "qtrainer_step": BAD_BATCHES,
    "qtrainer_backward": BAD_BATCHES,
    "qtrainer_update": [({"t": "$t"}, "QTN_ESTATE", "trainer: there was no backward since the last update")],
    "qtrainer_evaluate": [
        ({"t": "$t", "inputs": []}, "QTN_EINVAL", "trainer: the model takes 1 inputs, not 0"),
        ({"t": "$t", "inputs": ["$batch"], "output_count": 2}, "QTN_EINVAL", "qtrainer_evaluate: output_count is 2, the model has 1 outputs"),
        ({"t": "$t", "inputs": ["$x"]}, "QTN_ESHAPE", 'trainer: input "image" takes ?x1x8x8, not 2x3'),
        ({"t": "$t", "inputs": ["$i"]}, "QTN_EDTYPE", 'trainer: input "image" is float32, not int32'),
    ],
    "qtrainer_set": [
        ({"t": "$t", "attrs": {"momentum": 0.5}}, "QTN_EINVAL", 'trainer: unknown attribute "momentum"; valid are: lr freeze_bn observers fake_quant'),
        ({"t": "$t", "attrs": {"lr": "nan"}}, "QTN_EINVAL", 'trainer: attribute "lr" must be a float, not a string'),
        ({"t": "$t", "attrs": {"lr": -0.5}}, "QTN_EINVAL", "schedule: lr -0.5 is not zero or a positive number"),
        ({"t": "$t", "attrs": {"freeze_bn": -1}}, "QTN_EINVAL", "trainer: freeze_bn is -1, not 0 or 1"),
        ({"t": "$t", "attrs": {"fake_quant": 0}}, "QTN_EINVAL", 'trainer: "fake_quant" is for models that were prepared with QTN_QAT'),
    ],
    "qtrainer_set_group": [
        ({"t": "$t", "selector": "weights", "settings": {"frozen": 1}}, "QTN_EINVAL", 'trainer: selector "weights" is none of * op:TYPE name:GLOB node:NAME tensor:NAME parameter:GLOB'),
        ({"t": "$t", "selector": "op:Convolution", "settings": {"frozen": 1}}, "QTN_EINVAL", 'trainer: selector "op:Convolution": there is no operator Convolution'),
        ({"t": "$t", "selector": "op:Relu", "settings": {"frozen": 1}}, "QTN_EINVAL", 'trainer: selector "op:Relu" matches no parameter'),
        ({"t": "$t", "selector": "parameter:*.scale", "settings": {"frozen": 1}}, "QTN_EINVAL", 'trainer: selector "parameter:*.scale" matches no parameter'),
        ({"t": "$t", "selector": "*", "settings": {"momentum": 0.5}}, "QTN_EINVAL", 'trainer: of a group: unknown attribute "momentum"; valid are: lr_factor weight_decay frozen'),
        ({"t": "$t", "selector": "*", "settings": {"lr_factor": -2.0}}, "QTN_EINVAL", "trainer: lr_factor -2 is not zero or a positive number"),
        ({"t": "$t", "selector": "*", "settings": {"weight_decay": -0.1}}, "QTN_EINVAL", "trainer: weight_decay -0.1 is not zero or a positive number"),
        ({"t": "$t", "selector": "*", "settings": {"frozen": 2}}, "QTN_EINVAL", "trainer: frozen is 2, not 0 or 1"),
    ],
    "qtrainer_parameter": [({"t": "$t", "index": 12}, "QTN_EINVAL", "qtrainer_parameter: index is 12, the trainer has 12 parameters")],
    "qtrainer_gradient": [({"t": "$t", "index": -1}, "QTN_EINVAL", f"qtrainer_gradient: index is {2**64 - 1}, the trainer has 12 parameters")],
    "qtrainer_buffer": [({"t": "$t", "index": 0}, "QTN_EINVAL", "qtrainer_buffer: index is 0, the trainer has 0 buffers")],
    "qtrainer_save": [({"t": "$t", "path": "@no/t.safetensors"}, "QTN_EIO", "{folder}/no/t.safetensors: No such file or directory")],
    "qtrainer_load_bytes": [({"t": "$t", "data": [1, 2, 3]}, "QTN_EFORMAT", "data: is no safetensors file: it has 3 bytes")],
    "qobserver_save_file": [({"o": "$o", "path": "@no/o.observer"}, "QTN_EIO", "{folder}/no/o.observer: No such file or directory")],
    "qobserver_load_file": [({"path": "@nothing.observer"}, "QTN_EIO", "{folder}/nothing.observer: No such file or directory")],
    "qmodel_save_bytes": [({"m": "$m", "attrs": {"opset": 5}}, "QTN_EINVAL", "qmodel_save_bytes: opset is 5, not from 13 to 28")],
    "qtrainer_load": [({"t": "$t", "path": "@nothing.safetensors"}, "QTN_EIO", "{folder}/nothing.safetensors: No such file or directory")],
}  # fmt: skip


# What some of these calls are made on besides, each after what it is made of itself.
MORE = {
    "two": {"call": "qquantizer_create", "with": {"dtype": "int8", "scheme": "per_channel_affine", "axis": 1, "scales": [0.5, 1.0]}},
    "wide": {"call": "qquantizer_create", "with": {**GRID, "dtype": "int32"}},
    "float8": {"call": "qquantizer_create", "with": {**GRID, "dtype": "float8_e4m3fn"}},
    "blocks": {"call": "qquantizer_create", "with": {**GRID, "scheme": "per_block_affine", "axis": 1, "scales": [0.5, 1.0], "zero_points": [0, 0], "attrs": {"block_size": 3}}},
    "bad": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [2], "data": [1, "nan"]}},
    "endless": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [2], "data": ["-inf", 0]}},
    "below": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [2], "data": [-1.5, 1]}},
    "row": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [3], "data": [1, 2, 3]}},
    "t": {"call": "qtrainer_create", "with": {"m": "$m"}},
    "batch": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [2, 1, 8, 8]}},
    "labels": {"call": "qtensor_create", "with": {"dtype": "int64", "shape": [2], "data": [0, 9]}},
    "high": {"call": "qtensor_create", "with": {"dtype": "int64", "shape": [2], "data": [0, 10]}},
    "low": {"call": "qtensor_create", "with": {"dtype": "int32", "shape": [2], "data": [-1, 9]}},
    "three": {"call": "qtensor_create", "with": {"dtype": "int64", "shape": [3], "data": [0, 1, 2]}},
    "ptq": {"call": "qmodel_prepare", "with": {"m": "$m", "config": "$settings", "mode": 0}},
    "linear": {"call": "qlayer_create", "with": {"kind": "linear", "weight": "$x", "config": "$settings"}},
    "i2": {"call": "qtensor_create", "with": {"dtype": "int32", "shape": [2, 3]}},
    "none": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [0, 3]}},
    "nan": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [1, 2], "data": [0, "nan"]}},
    "pair": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [2]}},
    "scalar": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [], "data": [1]}},
    "planes": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [1, 3, 4]}},
    "cube": {"call": "qtensor_create", "with": {"dtype": "float32", "shape": [1, 2, 1], "data": [1, 2]}},
    "g16": {"call": "qquantizer_create", "with": {"dtype": "int16", "scheme": "per_tensor_affine", "axis": 0, "scales": [0.5]}},
    "conv": {"call": "qlayer_create", "with": {"kind": "conv1d", "weight": "$cube", "config": "$settings"}},
    "rows": {"call": "qlayer_create", "with": {"kind": "embedding", "weight": "$x", "config": "$settings"}},
    "bags": {"call": "qlayer_create", "with": {"kind": "embedding_bag", "weight": "$x", "config": "$settings"}},
    "int8": {"call": "qmodel_quantize", "with": {"m": "$m", "config": "$settings", "samples": ["$batch"]}},
}  # fmt: skip


def named(arguments):
    """Handles that arguments ask for."""
    for value in arguments.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and item.startswith("$"):
                yield item[1:]


def made(steps):
    names = {name for step in steps for name in named(step["with"])}
    for name, step in reversed(MORE.items()):
        names |= set(named(step["with"])) if name in names else set()
    return [{**step, "out": name} for name, step in MORE.items() if name in names]


def failure(function, arguments, status, message):
    return {"call": function, "with": arguments, "status": status, "message": message}


def main():
    cases = []
    for function, (arguments, pointers) in CALLS.items():
        steps = [failure(function, {**arguments, p: None}, "QTN_EINVAL", f"{function}: {p} is NULL") for p in pointers]
        cases.append((f"null/{function}", steps))
    for function, bad in BAD.items():
        cases.append((f"bad/{function}", [failure(function, *b) for b in bad]))
    lines = []
    for name, steps in cases:
        text = ",\n  ".join(json.dumps(s) for s in SETUP + made(steps) + steps + UNCHANGED)
        lines.append(f'{{"name": {json.dumps(name)}, "rows": [], "steps": [\n  {text}]}}')
    pathlib.Path(__file__).with_name("errors.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
