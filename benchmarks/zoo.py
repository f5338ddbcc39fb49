#!/usr/bin/env python3
"""A zoo of architectures through qtensor and ONNX Runtime: does it load, is float the same, and what is lost in int8?

One row a model, none is left out: where a step fails, the cell holds its error. SQNR in dB of the worst float output
over samples that calibration did not see, against ONNX Runtime in float; beside ours the best of ONNX Runtime's six
static recipes (MinMax, Entropy and Percentile, weights per channel and per tensor) and its dynamic one. "same" is that
ONNX Runtime reads our file with our numbers, in dB. Where a network says what its heads say (the zoo's detectors), int8
is measured there, and everything else in float only; "float" is an error where integers or shapes are not the same.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/zoo.py --python build/release/python --csv zoo.csv
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx.external_data_helper import uses_external_data

import peer_lib
import record
from models import zoo

CALIBRATION = 4  # of the samples; the others are measured with
FIELDS = (
    "model", "float_db", "plain_db", "default_db", "auto_db", "ort_static_db", "ort_recipe", "dynamic_db",
    "ort_dynamic_db", "same_db", "in_float", "cpu", "peers",
)  # fmt: skip
METHODS = ("MinMax", "Entropy", "Percentile")


def worst_sqnr(want, got):
    """In dB over lists (of samples) of lists (of outputs); None where no output is a float."""
    ratios = []
    for a, b in zip(zip(*want), zip(*got)):
        if a[0].dtype.kind != "f":
            continue
        if any(x.shape != y.shape for x, y in zip(a, b)):
            return -999.0
        finite = [np.isfinite(x) for x in a]
        if any((np.isfinite(y) != known).any() for y, known in zip(b, finite)):
            return -999.0
        db = peer_lib.sqnr_db(*([x[known] for x, known in zip(side, finite)] for side in (a, b)))
        ratios.append(0.0 if db == -np.inf else min(200.0, db))
    return float(min(ratios)) if ratios else None


def require_equal_integers(want, got):
    for a, b in zip(zip(*want), zip(*got)):
        if any(x.shape != y.shape for x, y in zip(a, b)):
            raise ValueError(f"shapes differ: {[x.shape for x in a]}, {[y.shape for y in b]}")
        if a[0].dtype.kind != "f" and any((x != y).any() for x, y in zip(a, b)):
            raise ValueError("integers differ")


class Check:
    def __init__(self, name, path, division=0):
        stacked = np.load(path.with_suffix(".npz"))
        samples = [{key: stacked[key][i] for key in stacked.files} for i in range(zoo.SAMPLES)]
        if division:
            random.Random(division).shuffle(samples)
        self.path, self.row = path, {"model": name}
        session = peer_lib.ort_session(path, 1)
        wanted = [x.name for x in session.get_inputs()]
        heads = sum(x.name.startswith("head_") for x in session.get_outputs())
        self.measured = heads or len(session.get_outputs())
        samples = [{key: sample[key] for key in wanted} for sample in samples]
        self.calibration, self.test = samples[:CALIBRATION], samples[CALIBRATION:]
        self.want = [session.run(None, sample) for sample in self.test]
        self.kept = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.kept.name)

    def cell(self, column, work):
        try:
            value = work()
            self.row[column] = f"{value:.1f}" if isinstance(value, float) else value
        except Exception as error:
            self.row[column] = "error: " + (str(error).strip() or type(error).__name__).splitlines()[-1][:160]
        print(json.dumps(self.row), flush=True)  # for a process that does not come to its end

    def int8_sqnr(self, got, want=None):
        first = slice(self.measured)
        return worst_sqnr([sample[first] for sample in want or self.want], [sample[first] for sample in got])

    def ours(self, model):
        import qtensor

        session = qtensor.Session(model, {"threads": 1})
        outputs = [session(*sample.values()) for sample in self.test]
        return [[np.asarray(y) for y in (o if isinstance(o, (list, tuple)) else [o])] for o in outputs]

    def ort(self, path):
        session = peer_lib.ort_session(path, 1)
        return [session.run(None, sample) for sample in self.test]

    def run_ours(self, quick):
        import qtensor

        model = None

        def load():
            nonlocal model
            model = qtensor.Model.load(str(self.path))
            got = self.ours(model)
            require_equal_integers(self.want, got)
            return worst_sqnr(self.want, got)

        def static(attrs):
            quantized = model.quantize(self.calibration, attrs=attrs)
            if not attrs:
                self.row["in_float"] = len(quantized.report["float_nodes"])
                self.cell("same_db", lambda: self.same(quantized))
            return self.int8_sqnr(self.ours(quantized))

        self.cell("float_db", load)
        if model is None:
            return
        for column, attrs in (("plain_db", {"plain": True}), ("default_db", {}), ("auto_db", {"auto": True})):
            if not (quick and "auto" in attrs):
                self.cell(column, lambda: static(attrs))
        self.cell(
            "dynamic_db", lambda: self.int8_sqnr(self.ours(model.quantize_dynamic(qtensor.Config("onnx"))))
        )

    def same(self, quantized):
        path = self.folder / "ours.onnx"
        quantized.save(str(path))
        return self.int8_sqnr(self.ort(path), self.ours(quantized))

    def run_ort(self, methods):
        from onnxruntime import quantization as q
        from onnxruntime.quantization import shape_inference

        prepared, made = self.folder / "prepared.onnx", self.folder / "made.onnx"
        weights = onnx.load(self.path, load_external_data=False).graph.initializer
        external = any(map(uses_external_data, weights))  # beyond 2 GB
        best = None

        class Reader(q.CalibrationDataReader):
            def __init__(reader):
                reader.left = iter(self.calibration)

            def get_next(reader):
                return next(reader.left, None)

        def static(method, per_channel):
            q.quantize_static(
                str(prepared), str(made), Reader(), per_channel=per_channel, activation_type=q.QuantType.QUInt8,
                weight_type=q.QuantType.QInt8, calibrate_method=q.CalibrationMethod[method],
                use_external_data_format=external,
            )  # fmt: skip
            return self.int8_sqnr(self.ort(made))

        def best_static():
            nonlocal best, prepared
            try:
                shape_inference.quant_pre_process(
                    str(self.path), str(prepared), skip_symbolic_shape=True, save_as_external_data=external
                )
            except Exception:  # it is recommended, and not needed
                prepared = self.path
            failure = None
            for method in methods:
                for per_channel in (True, False):
                    try:
                        found = static(method, per_channel)
                    except Exception as error:
                        failure = error
                        continue
                    if found is not None and (best is None or found > best):
                        best = found
                        self.row["ort_recipe"] = f"{method} per {'channel' if per_channel else 'tensor'}"
            if best is None and failure:
                raise failure
            return best

        def dynamic():
            q.quantize_dynamic(str(self.path), str(made), per_channel=True, use_external_data_format=external)
            return self.int8_sqnr(self.ort(made))

        self.cell("ort_static_db", best_static)
        self.cell("ort_dynamic_db", dynamic)


def check_one(name, arguments):
    sys.path.insert(0, str(arguments.python))
    warnings.simplefilter("ignore")
    try:
        path = zoo.make(name, arguments.models)
    except Exception as error:
        return {"model": name, "float_db": "error: export: " + str(error).strip().splitlines()[0][:140]}
    check = Check(name, path, arguments.division)
    check.run_ours(arguments.quick)
    if not arguments.ours_only:
        check.run_ort(METHODS[:1] if arguments.quick else METHODS)
    return check.row


def check_apart(name, arguments):
    """In a process of its own: what hangs or crashes is a row too."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--one", name], capture_output=True, text=True,
            timeout=arguments.timeout,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return ended(name, arguments, (late.stdout or b"").decode(), f"not done after {arguments.timeout} s")
    if done.returncode == 0:
        return last_row(done.stdout)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return ended(name, arguments, done.stdout, f"exit code {done.returncode}: {last[:160]}")


def ended(name, arguments, printed, why):
    """What a process has found out, and in the first cell that it has not, why it ended."""
    row = last_row(printed) or {"model": name}
    row |= {"auto_db": ""} if arguments.quick else {}
    missing = [column for column in FIELDS if column.endswith("_db") and column not in row]
    return row | {column: f"error: {why}" for column in missing[:1]}


def last_row(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, default="build/release/python", help="of ours (%(default)s)")
    parser.add_argument(
        "--models", type=pathlib.Path, default=peer_lib.cache_folder() / "zoo", help="made here (%(default)s)"
    )
    parser.add_argument("--timeout", type=int, default=1800, help="seconds a model (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="without auto; of ONNX Runtime's recipes only MinMax")
    parser.add_argument("--ours-only", action="store_true", help="leave ONNX Runtime's quantization out")
    parser.add_argument(
        "--division", type=int, default=0, metavar="SEED", help="calibrate with four samples by random, not the first ones"
    )
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the rows to")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    families = parser.add_mutually_exclusive_group()
    families.add_argument("--keras", action="store_true", help="the networks of Keras, where no names are given")
    families.add_argument("--timm", action="store_true", help="those of timm, where no names are given")
    parser.add_argument(
        "names", nargs="*", metavar="MODEL", help="of the zoo, or any builder of torchvision (all but those of Keras and timm)"
    )
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(check_one(arguments.one, arguments)))
        return
    about = {"cpu": record.cpu_name(), "peers": f"onnxruntime {onnxruntime.__version__}"}
    rows = []
    family = zoo.zoo_keras if arguments.keras else zoo.zoo_timm if arguments.timm else zoo
    for name in arguments.names or family.NAMES:
        rows.append(check_apart(name, arguments) | about)
        print(*(f"{key}={rows[-1][key]}" for key in FIELDS[:-2] if key in rows[-1]), flush=True)
        if arguments.csv:
            record.write_csv(arguments.csv, rows, FIELDS)


if __name__ == "__main__":
    main()
