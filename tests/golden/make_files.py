#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of tensors as NumPy and the safetensors package write them, and what is in them. README.md has the form.

Needs: ml_dtypes, numpy, safetensors.   Run with:  make_files.py
"""

import json
import pathlib

import ml_dtypes
import numpy as np
import safetensors.numpy
from safetensors import TensorSpec, serialize_file

OUT = pathlib.Path(__file__).with_name("files")
FLOATS = [np.float64, np.float32, np.float16]
INTEGERS = [np.int64, np.int32, np.uint64, np.uint32, np.int16, np.uint16, np.int8, np.uint8]
NARROW = {t.__name__: t for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)}
# Those that the package writes from raw memory alone, by its names for them and ours.
RAW = {"float8_e4m3fnuz": ("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz), "float8_e5m2fnuz": ("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
       "float8_e8m0": ("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu)}


def values(dtype):
    """Six values of a type, its ends among them."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return np.array([True, False, True, True, False, False])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 1, 2, 100], dtype)
    info = ml_dtypes.finfo(dtype)
    return np.array([float(info.min), float(info.max), -0.0, 1.5, np.nan, float(info.tiny)]).astype(dtype)


def tensor(array, name=None):
    """What a reader must find: elements as the hexadecimal text of their row-major little-endian bytes."""
    little = array if array.dtype.byteorder != ">" else array.astype(array.dtype.newbyteorder("<"))
    entry = {"name": name} if name is not None else {}
    entry |= {"dtype": array.dtype.newbyteorder("=").name, "shape": list(array.shape)}
    return entry | {"bytes": np.ascontiguousarray(little).tobytes().hex()}


def write_npy():
    """`plain`: row-major, little-endian, version 1.0: what a writer must write to the byte."""
    grid = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    plain = {np.dtype(d).name: values(d).reshape(2, 3) for d in FLOATS + INTEGERS + [bool]}
    plain |= {"scalar": np.array(3.5, np.float32), "empty": np.zeros((0, 3), np.int16), "vector": np.arange(5.0),
              "rank8": np.arange(4, dtype=np.uint8).reshape(1, 2, 1, 1, 2, 1, 1, 1)}
    others = {"fortran": np.asfortranarray(grid), "big_endian": grid.astype(">i4"),
              "big_endian_fortran": np.asfortranarray(grid.astype(">f8"))}
    cases = []
    for name, array in (plain | others).items():
        np.save(OUT / f"{name}.npy", array)
        cases.append({"file": f"{name}.npy", "plain": name in plain, **tensor(array)})
    for version in (2, 3):
        with open(OUT / f"version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, grid, version=(version, 0))
        cases.append({"file": f"version{version}.npy", "plain": False, **tensor(grid)})
    return cases


def write_safetensors():
    """`tensors` are in the file's order."""
    files = {
        "one": {"weight": values(np.float32).reshape(3, 2)},
        "mixed": {np.dtype(d).name: values(d) for d in FLOATS + INTEGERS + [bool]} |
                 {"scalar": np.array(3.5, np.float32), "empty": np.zeros((0, 3), np.int16),
                  'odd "name"\n\u00e9': np.arange(3, dtype=np.uint8)},
        **{name: {name: values(dtype)} for name, dtype in NARROW.items()},
        "nothing": {},
    }
    cases = []
    for name, arrays in files.items():
        path = OUT / f"{name}.safetensors"
        safetensors.numpy.save_file(arrays, path)
        content = path.read_bytes()
        header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        order = sorted(arrays, key=lambda n: header[n]["data_offsets"])
        cases.append({"file": path.name, "tensors": [tensor(arrays[n], n) for n in order]})
    for name, (theirs, dtype) in RAW.items():
        array = np.array([float(ml_dtypes.finfo(dtype).max), 0.5, 1, 2, np.nan, float(ml_dtypes.finfo(dtype).tiny)]).astype(dtype)
        spec = TensorSpec(dtype=theirs, shape=[6], data_ptr=array.ctypes.data, data_len=array.nbytes)
        serialize_file({name: spec}, OUT / f"{name}.safetensors")
        cases.append({"file": f"{name}.safetensors", "tensors": [tensor(array, name) | {"dtype": name}]})
    safetensors.numpy.save_file(files["one"], OUT / "metadata.safetensors", {"note": "not ours"})
    cases.append({"file": "metadata.safetensors", "tensors": cases[0]["tensors"]})
    return cases


def main():
    OUT.mkdir(exist_ok=True)
    rows = []
    for kind, cases in (("npy", write_npy()), ("safetensors", write_safetensors())):
        rows.append(f' "{kind}": [\n' + ",\n".join("  " + json.dumps(case) for case in cases) + "\n ]")
    (OUT / "files.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
