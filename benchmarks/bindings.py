#!/usr/bin/env python3
"""What Python and C# add to a call: an int8 network of one layer, run from C and through the packages, turn by turn; and what
accessors cost. A figure is the median over the turns. C and Python share a process, C# has one of its own.

Run again with:  PYTHONPATH=build/release/python benchmarks/bindings.py build/release --csv bindings.csv
"""

import argparse
import ctypes
import functools
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import qtensor as qt
import record

ROOT = pathlib.Path(__file__).resolve().parent.parent
TURNS, CALLS = 15, 2000


def c_loop(build, folder):
    library = f"{folder}/bindings.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", ROOT / "benchmarks/bindings.c", "-o", library,
                    f"-I{ROOT}/capi/include", f"-I{build}/include", f"-L{build}/capi", "-lqtensor",
                    f"-Wl,-rpath,{build}/capi"], check=True)
    loop = ctypes.CDLL(library)
    loop.run.restype = ctypes.c_double
    return loop


class CSharp:
    """Times cases of Bindings.cs."""

    def __init__(self, build, folder, model, shape):
        program = f"{folder}/Bindings.exe"
        subprocess.run(["mcs", "-optimize", f"-r:{build}/csharp/QTensor.dll", f"-out:{program}", ROOT / "benchmarks/Bindings.cs"],
                       check=True)
        self.process = subprocess.Popen(["mono", program, model, *map(str, shape)], env={**os.environ, "MONO_PATH": f"{build}/csharp"},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, case):
        print(case, CALLS, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self):
        self.process.communicate()


def timed(call):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def measure(build, folder):
    x = np.random.default_rng(0).standard_normal((1, 4)).astype(np.float32)
    model = qt.Model.load(ROOT / "tests/conformance/networks/linear.onnx")
    x = np.resize(x, [max(n, 1) for n in model.inputs[model.input_name(0)][1]]).astype(np.float32)
    path = f"{folder}/layer.onnx"
    model.quantize([x]).save(path)
    loop = c_loop(build, folder)
    shape = (ctypes.c_int64 * x.ndim)(*x.shape)
    loop.prepare(path.encode(), ctypes.c_void_p(x.ctypes.data), shape, ctypes.c_size_t(x.ndim), ctypes.c_size_t(x.nbytes))

    session, t = qt.Session(qt.Model.load(path), {"threads": 1}), qt.as_tensor(x)
    inputs = [t]
    csharp = CSharp(build, folder, path, x.shape)
    cases = {
        "c_run": lambda: loop.run(ctypes.c_size_t(CALLS)),
        "run_tensors": lambda: timed(lambda: session.run(inputs)),
        "call_tensor": lambda: timed(lambda: session(t)),
        "call_numpy": lambda: timed(lambda: session(x)),
        "tensor_of_array": lambda: timed(lambda: qt.from_numpy(x)),
        "array_of_tensor": lambda: timed(t.numpy),
        "accessor_shape": lambda: timed(lambda: t.shape),
        "accessor_dtype": lambda: timed(lambda: t.dtype),
        "lambda": lambda: timed(lambda: None),
        **{f"csharp_{name}": functools.partial(csharp, f"csharp_{name}") for name in ("run", "run_arrays", "wrap", "shape")},
    }
    turns = [{name: case() for name, case in cases.items()} for _ in range(TURNS)]
    csharp.close()
    return {name: statistics.median(turn[name] for turn in turns) for name in cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build folder with capi/libqtensor.so")
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options.build.resolve(), folder)
    rows = [{"case": name, "us": f"{us:.2f}", "above_c_us": f"{us - figures['c_run']:.2f}" if "run" in name or "call" in name
             else "", "isa": qt.Lib.isa()} for name, us in figures.items()]
    for row in rows:
        print(f"{row['case']:<18} {row['us']:>7} us  {row['above_c_us']:>7}")
    if options.csv:
        record.write_csv(options.csv, [row | {"cpu": record.cpu_name()} for row in rows])


if __name__ == "__main__":
    main()
