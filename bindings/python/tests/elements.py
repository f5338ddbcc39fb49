# SPDX-License-Identifier: Apache-2.0
"""Elements of every type as the cases write them: floats of 32 and 64 bits as reals, narrower ones as bit patterns, packed
integers one by one."""

import math
import struct

BITS = {"uint2": 2, "int2": 2, "uint4": 4, "int4": 4, "uint8": 8, "int8": 8, "bool": 8, "float8_e4m3fn": 8,
        "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "float8_e8m0": 8, "float4_e2m1": 4,
         "uint16": 16, "int16": 16, "float16": 16, "bfloat16": 16, "int32": 32, "uint32": 32,
        "float32": 32, "int64": 64, "uint64": 64, "float64": 64}
REALS = {"float32": "f", "float64": "d"}


def bytes_of(dtype, values):
    """Nothing for a number that is no dtype."""
    if dtype in REALS:
        return struct.pack(f"<{len(values)}{REALS[dtype]}", *map(float, values))
    bits = BITS.get(dtype, 0)
    whole = sum((v & (1 << bits) - 1) << i * bits for i, v in enumerate(values)) if bits else 0
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


def elements_of(tensor):
    dtype, raw = tensor.dtype.name, tensor.tobytes()
    if dtype in REALS:
        return ["nan" if math.isnan(v) else v for v in struct.unpack(f"<{tensor.numel}{REALS[dtype]}", raw)]
    bits, whole = BITS[dtype], int.from_bytes(raw, "little")
    values = [whole >> i * bits & (1 << bits) - 1 for i in range(tensor.numel)]
    if dtype.startswith("int"):
        values = [v - (1 << bits) if v >> bits - 1 else v for v in values]
    return values
