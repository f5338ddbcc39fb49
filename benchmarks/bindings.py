#!/usr/bin/env python3
"""What Python, C# and Java add to a call: an int8 network of one layer, run from C and through the packages, turn by turn; and what
accessors cost. A figure is the median over the turns. C and Python share a process, the others have one each.

Run again with:  PYTHONPATH=build/release/python benchmarks/bindings.py build/release --csv bindings.csv
"""

import argparse
import ctypes
import functools
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
WARM = 50000  # calls after which a compiler at run time has done its best


def c_loop(build, folder):
    library = f"{folder}/bindings.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", ROOT / "benchmarks/bindings.c", "-o", library,
                    f"-I{ROOT}/capi/include", f"-I{build}/include", f"-L{build}/capi", "-lqtensor",
                    f"-Wl,-rpath,{build}/capi"], check=True)
    loop = ctypes.CDLL(library)
    loop.run.restype = ctypes.c_double
    return loop


class Program:
    """Times cases of a program in another language."""

    def __init__(self, *command):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, case, calls=CALLS):
        print(case, calls, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self):
        self.process.communicate()


def csharp(build, folder, *arguments):
    program = f"{folder}/Bindings.exe"
    subprocess.run(["mcs", "-optimize", f"-r:{build}/csharp/QTensor.dll", f"-out:{program}", ROOT / "benchmarks/Bindings.cs"], check=True)
    return Program("env", f"MONO_PATH={build}/csharp", "mono", program, *arguments)


def java(build, folder, *arguments):
    subprocess.run(["javac", "-cp", build / "java/qtensor.jar", "-d", folder, ROOT / "benchmarks/Bindings.java"], check=True)
    return Program("java", f"-Djava.library.path={build}/java", "-cp", f"{build}/java/qtensor.jar:{folder}", "Bindings", *arguments)


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
    inputs, by_name = [t], {model.input_name(0): x}
    programs = {f"{language.__name__}_{name}": language for language in (csharp, java) for name in ("run", "run_arrays", "wrap", "shape")}
    running = {language: language(build, folder, path, *x.shape) for language in set(programs.values())}
    for name, language in programs.items():
        running[language](name, WARM)
    cases = {
        "c_run": lambda: loop.run(ctypes.c_size_t(CALLS)),
        "run_tensors": lambda: timed(lambda: session.run(inputs)),
        "call_tensor": lambda: timed(lambda: session(t)),
        "call_numpy": lambda: timed(lambda: session(x)),
        "call_dict": lambda: timed(lambda: session(by_name)),
        "tensor_of_array": lambda: timed(lambda: qt.from_numpy(x)),
        "array_of_tensor": lambda: timed(t.numpy),
        "accessor_shape": lambda: timed(lambda: t.shape),
        "accessor_dtype": lambda: timed(lambda: t.dtype),
        "lambda": lambda: timed(lambda: None),
        **{name: functools.partial(running[language], name) for name, language in programs.items()},
    }
    turns = [{name: case() for name, case in cases.items()} for _ in range(TURNS)]
    for program in running.values():
        program.close()
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
