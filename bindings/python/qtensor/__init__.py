# SPDX-License-Identifier: Apache-2.0
"""Float neural networks to int8: tensors and their grids, ONNX models, sessions, training.

import qtensor as qt

model = qt.Model.load("net.onnx")
int8 = model.quantize(images)       # rows of an array
int8.save("net-int8.onnx")
scores = qt.Session(int8)(images[:1])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qtensor import _arrays
from qtensor._enums import DType, Mode, Scheme, Status
from qtensor._errors import (
    CanceledError,
    DTypeError,
    Error,
    FileError,
    FormatError,
    InternalError,
    InvalidError,
    OutOfMemoryError,
    ShapeError,
    StateError,
    UnsupportedError,
)
from qtensor._operators import Operand, register_op, unregister_op
from qtensor._report import Report
from qtensor.core import (
    Batches,
    Config,
    Layer,
    Lib,
    Model,
    Observer,
    Op,
    Progress,
    Quantizer,
    Samples,
    Session,
    Tensor,
    Trainer,
    TrainingProgress,
)

if TYPE_CHECKING:
    from qtensor._arrays import TensorLike

__all__ = [
    "Batches", "CanceledError", "Config", "DType", "DTypeError", "Error", "FileError", "FormatError", "InternalError",
    "InvalidError", "Layer", "Lib", "Mode", "Model", "Observer", "Op", "Operand", "OutOfMemoryError", "Progress", "Quantizer", "Report",
    "Samples",
    "Scheme", "Session", "ShapeError", "StateError", "Status", "Tensor", "Trainer", "TrainingProgress",
    "UnsupportedError", "as_tensor", "bfloat16", "bool_", "float16", "float32", "float4_e2m1", "float64", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0", "from_dlpack", "from_numpy", "int16", "int2", "int32", "int4", "int64", "int8", "per_block_affine",
    "per_block_symmetric", "per_channel_affine", "per_channel_affine_float_qparams", "per_channel_symmetric",
    "per_tensor_affine", "per_tensor_symmetric", "register_op",
    "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "unregister_op",
]

float32, float64, float16, bfloat16 = DType.float32, DType.float64, DType.float16, DType.bfloat16
float8_e4m3fn, float8_e5m2 = DType.float8_e4m3fn, DType.float8_e5m2
float8_e4m3fnuz, float8_e5m2fnuz = DType.float8_e4m3fnuz, DType.float8_e5m2fnuz
float8_e8m0, float4_e2m1 = DType.float8_e8m0, DType.float4_e2m1
uint8, int8, uint16, int16, int32, int64 = DType.uint8, DType.int8, DType.uint16, DType.int16, DType.int32, DType.int64
uint32, uint64 = DType.uint32, DType.uint64
uint4, int4, uint2, int2, bool_ = DType.uint4, DType.int4, DType.uint2, DType.int2, DType.bool
per_tensor_affine, per_tensor_symmetric = Scheme.per_tensor_affine, Scheme.per_tensor_symmetric
per_channel_affine, per_channel_symmetric = Scheme.per_channel_affine, Scheme.per_channel_symmetric
per_channel_affine_float_qparams = Scheme.per_channel_affine_float_qparams
per_block_affine, per_block_symmetric = Scheme.per_block_affine, Scheme.per_block_symmetric

__version__ = Lib.version()
from_numpy = Tensor.from_numpy
from_dlpack = Tensor.from_dlpack


def as_tensor(data: TensorLike | float, dtype: DType | str | Any = None) -> Tensor:
    """A tensor of an array of whatever library (__dlpack__, __array__, a buffer), over the same memory where that can
    be shared, or of nested lists of numbers. Floats of Python become float32. `dtype`: of another library, too; elements
    are converted as ONNX's Cast does."""
    tensor: Tensor
    if data is None:
        raise TypeError("data is None, not a Tensor or an array")
    if isinstance(data, (list, tuple, int, float)):
        tensor = _arrays.of_python(data, "data", dtype is not None)
        if dtype is not None:
            _arrays.check_range(tensor, _arrays.dtype_of(dtype).name, "data")
    else:
        tensor = data if isinstance(data, Tensor) else _arrays.of(data, "data")
    if dtype is None:
        return tensor
    wanted = _arrays.dtype_of(dtype)
    if tensor.quantizer is not None and tensor.dtype is not wanted:
        raise DTypeError(f"a tensor of quantized {tensor.dtype.name} is no {wanted.name}: ask int_repr() or dequantize()")
    return _arrays.cast(tensor, wanted)
