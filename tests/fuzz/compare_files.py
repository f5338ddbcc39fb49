#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ONNX files with ONNX Runtime: in floats on both engines, and in every mode of quantization, where other instruction sets
must give the same bits, a saved file the same bits when it is read again, and ONNX Runtime must take it. Inputs are random.

Run with:  PYTHONPATH=build/dev/python $(benchmarks/peers/make-venv)/bin/python tests/fuzz/compare_files.py FOLDER...

All .onnx files of a FOLDER are taken, those with the same content once. A line of JSON for each file that differs, that this library
refuses where ONNX Runtime does not, or that ends or holds up a process; what is to be expected (random numbers, operators of
other domains) is for the reader to tell. Exit code 1 where there are such lines, and where no file was run.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
import qtensor as qt

warnings.simplefilter("ignore")
MOST_SECONDS = 120
MOST_ELEMENTS = 3e7  # of an input
DIMENSIONS = (1, 2, 3, 4, 8, 16, 64, 224)  # for those that a file leaves open, until ONNX Runtime takes one
RECIPES = ("onnx", "nvidia", "tflite", "qnnpack", "x86")


def message(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


def session_of(path, exact=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # By default it rounds what it multiplies by weights behind DequantizeLinear to 8 bits.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1" if exact else "4")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feed_of(inputs, dimension, seed):
    random, feed = np.random.default_rng(seed), {}
    for x in inputs:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(x.type[7:-1].upper()))
        shape = [d if isinstance(d, int) else dimension for d in x.shape]
        if np.prod(shape, dtype=float) > MOST_ELEMENTS:
            raise ValueError(f"{x.name} has {shape}")
        whole = (lambda: random.integers(0, 3, shape), lambda: np.zeros(shape), lambda: np.ones(shape))[seed % 3]
        feed[x.name] = np.asarray(random.standard_normal(shape) if dtype.kind == "f" else whole()).astype(dtype)
    return feed


def difference(want, got):
    """What is wrong, in a line; "" where nothing is. Floats may be apart by a part of the largest one."""
    for i, (a, b) in enumerate(zip(want, got, strict=True)):
        if a is None or isinstance(a, list):
            continue
        b = np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i} is {b.dtype} {b.shape}, not {a.dtype} {a.shape}"
        if a.dtype.kind != "f":
            if (a != b).any():
                return f"output {i}: {(a != b).sum()} of {a.size} differ"
            continue
        finite = np.isfinite(a)
        if (finite != np.isfinite(b)).any() or (np.isnan(a) != np.isnan(b)).any():
            return f"output {i}: {(finite != np.isfinite(b)).sum()} of {a.size} are infinite or no number in one alone"
        x, y = a[finite].astype(float), b[finite].astype(float)
        apart = np.abs(x - y).max(initial=0) / max(np.abs(x).max(initial=0), 1e-30)
        if apart > (4e-3 if a.dtype == np.float16 else 1e-4):
            return f"output {i}: apart by {apart:.2g} of the largest"
    return ""


def same_bits(a, b):
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in zip(a, b, strict=True) if not isinstance(x, list))


def run(model, feed, count, **attrs):
    y = qt.Session(model, {"threads": 1, **attrs})(*feed.values())
    return [y] if count == 1 else list(y)


def modes_of(model, feed):
    yield "dynamic", lambda: model.quantize_dynamic(qt.Config("onnx"))
    for bits in 8, 4:
        yield f"weights of {bits} bits", lambda: model.quantize_weights({"dtype": f"int{bits}"})
    samples = [{k: np.random.default_rng(seed).standard_normal(x.shape).astype(x.dtype) for k, x in feed.items()} for seed in range(2)]
    if all(x.dtype == np.float32 for x in feed.values()):
        for recipe in RECIPES:
            yield recipe, lambda: model.quantize(samples, config=recipe, attrs={"plain": True})


def mode_difference(quantized, feed, count, saved):
    y, best = run(quantized, feed, count), qt.core.Lib.isa()
    qt.core.Lib.set_isa("scalar")
    try:
        scalar = run(quantized, feed, count)
    finally:
        qt.core.Lib.set_isa(best)
    if not same_bits(y, scalar):
        return f"scalar and {best} differ"
    quantized.save(str(saved))
    if not same_bits(y, run(qt.Model.load(str(saved)), feed, count)):
        return "other bits come back"
    try:
        session_of(saved, exact=True).run(None, feed)
    except Exception as error:
        return f"ONNX Runtime: {message(error)}"
    return ""


def compare_modes(model, feed, count, saved):
    for mode, make in modes_of(model, feed):
        try:
            if said := mode_difference(make(), feed, count, saved):
                yield mode, said
        except Exception as error:
            if "quantized already" not in str(error):
                yield mode, message(error)


def compare(path, saved):
    """What is wrong with a file, by what was tried; None where ONNX Runtime does not run it."""
    try:
        session = session_of(path)
        inputs = session.get_inputs()
        feed = want = None
        for seed, dimension in ((s, d) for s in range(3) for d in DIMENSIONS):
            try:
                feed = feed_of(inputs, dimension, seed)
                want = session.run(None, feed)
                break
            except Exception:
                continue
        if want is None:
            return None
    except Exception:
        return None
    try:
        model = qt.Model.load(str(path))
        wrong = {}
        for engine in "native", "reference":
            if said := difference(want, run(model, feed, len(want), engine=engine)):
                wrong[engine] = said
        wrong.update(compare_modes(model, feed, len(want), saved))
        return wrong
    except Exception as error:
        return {"float": message(error)}


def work():
    """Files come in by line, and what is wrong goes out, beside which nobody else may print."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            print(json.dumps(compare(line.rstrip("\n"), pathlib.Path(folder, "saved.onnx"))), file=answers, flush=True)


class Worker:
    process = None

    def __call__(self, path):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([sys.executable, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(path, file=self.process.stdin, flush=True)
        ready = select.select([self.process.stdout], [], [], MOST_SECONDS)[0]
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.process.kill()
        code = self.process.wait()
        return {"process": f"ended with {code}" if ready else f"took more than {MOST_SECONDS} seconds"}


def files_in(folders):
    seen = set()
    for path in sorted(p for folder in folders for p in pathlib.Path(folder).rglob("*.onnx")):
        content = hashlib.sha256(path.read_bytes()).digest()
        if content not in seen:
            seen.add(content)
            yield path


def main():
    parser = argparse.ArgumentParser(usage="%(prog)s [--jobs N] FOLDER...")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    counts = collections.Counter()
    idle = [Worker() for _ in range(options.jobs)]

    def one(path):
        worker = idle.pop()
        try:
            return path, worker(path)
        finally:
            idle.append(worker)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, wrong in pool.map(one, files_in(options.folders)):
            counts["not run by ONNX Runtime" if wrong is None else "that differ" if wrong else "alike"] += 1
            if wrong:
                print(json.dumps({"file": str(path), **wrong}), flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()) or "no files", file=sys.stderr)
    return 1 if counts["that differ"] or not counts["alike"] else 0


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--work"] else sys.exit(main())
