# SPDX-License-Identifier: Apache-2.0
"""What packages for languages carry: it works in any folder, with its own BLAS and not the system's, needs nothing but
the C and C++ runtimes, says whose code it is, and is small enough for any registry.

usage: test_natives.py NATIVES
"""

import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LARGEST = 15_000_000  # compressed; with the rest of a package it must stay below 25 MB
RUNTIMES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2",
            "ld-linux-aarch64.so.1"}


def check_needed(library):
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    others = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - RUNTIMES
    assert not others, f"{library.name} needs {others}"
    assert "PATH)" not in dynamic, f"{library.name} has a path of the machine that built it"


def multiply(library):
    """[[1, 2], [3, 4]] times itself, by the library's operator."""
    lib = ctypes.CDLL(library)
    lib.qerror_message.restype = ctypes.c_char_p
    lib.qtensor_data.restype = ctypes.POINTER(ctypes.c_float)
    lib.qtensor_data.argtypes = [ctypes.c_void_p]
    values, shape, x = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_int64 * 2)(2, 2), ctypes.c_void_p()
    size = ctypes.c_size_t
    assert lib.qtensor_create(ctypes.byref(x), 1, shape, size(2), None, values, size(16)) == 0, lib.qerror_message()
    inputs, outputs = (ctypes.c_void_p * 2)(x, x), (ctypes.c_void_p * 1)()
    assert lib.qop_run(outputs, size(1), b"MatMul", inputs, size(2), None) == 0, lib.qerror_message()
    return lib.qtensor_data(outputs[0])[:4]


def main():
    natives = pathlib.Path(sys.argv[1])
    libraries = {path.name for path in natives.glob("*.so*")}
    assert libraries == {"libqtensor.so.0", "libqtensor_openblas.so.0"}, libraries
    licences = "".join(path.read_text() for path in (natives / "licences").iterdir())
    for words in ("Apache License", "The OpenBLAS Project", "protozero", "nlohmann"):
        assert words in licences, f"no licence has {words}"
    with tempfile.TemporaryDirectory() as folder:
        packed = pathlib.Path(shutil.make_archive(f"{folder}/natives", "gztar", natives)).stat().st_size
        assert packed < LARGEST, f"natives: {packed} bytes compressed"
        moved = pathlib.Path(shutil.copytree(natives, f"{folder}/some where"))
        for name in libraries:
            check_needed(moved / name)
        assert multiply(str(moved / "libqtensor.so.0")) == [7, 10, 15, 22]
        with open("/proc/self/maps") as maps:
            mapped = {line.split(maxsplit=5)[5].strip() for line in maps if "blas" in line or "gfortran" in line}
        assert mapped == {str(moved / "libqtensor_openblas.so.0")}, mapped
    print(f"natives: {packed} bytes compressed")


main()
