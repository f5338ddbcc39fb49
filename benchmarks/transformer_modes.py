#!/usr/bin/env python3
"""What each way to quantize gives two trained transformers: size, accuracy on data that they have not seen, and speed.

The networks are those of examples/transformers: a language model of characters, the same one character at a time with its keys and values
as state, and a vision transformer of digits. `accuracy` is in bits a character (less is better) or top-1 in % of the test images. `db` is
the SQNR of the outputs against ONNX Runtime's float. Times are CPU time of one thread: one sequence of 128 characters, one character,
or one image. All rows of a network take turns in one process; `vs_ort_float` and `vs_ort_dynamic` are the medians of the rounds' ratios of
the time of ONNX Runtime's float, or of its dynamic int8, by that of the row: above 1, the row is the faster one.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/transformer_modes.py --csv transformers.csv --page docs/transformers.md
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time
import warnings

import numpy as np
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization import shape_inference

import peer_lib
import record

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
TRANSFORMERS, DIGITS = EXAMPLES / "transformers", EXAMPLES / "digits"
FIELDS = ("model", "engine", "mode", "kib", "accuracy", "db", "us", "vs_ort_float", "vs_ort_dynamic", "cpu", "peers")
MARKERS = ("<!-- from the csv -->\n", "<!-- end of the csv -->\n")
BLOCKS = {"weight_dtype": "int4", "weight_scheme": "per_block_symmetric", "block_size": 32}


def without_samples(qt):
    """What quantizes a model of ours without samples, by the name of the mode."""
    return {
        "float": lambda model: model,
        "dynamic": lambda model: model.quantize_dynamic(qt.Config("onnx")),
        "dynamic, per tensor": lambda model: model.quantize_dynamic(qt.Config("onnx"), {"granularity": "tensor"}),
        "weights int8": lambda model: model.quantize_weights({"dtype": "int8"}),
        "weights int4 in blocks": lambda model: model.quantize_weights({"dtype": "int4", "block_size": 32}),
    }


def with_samples(samples):
    return {
        "static": lambda model: model.quantize(samples),
        "weights int4 in blocks, GPTQ": lambda model: model.quantize(samples, {"*": BLOCKS | {"mode": "weights_only"}}),
        "static, auto": lambda model: model.quantize(samples, attrs={"auto": True}),
        "static, weights int4 in blocks, GPTQ": lambda model: model.quantize(samples, {"*": BLOCKS}),
        "static, weights int4 in blocks, AdaRound": lambda model: model.quantize(samples, {"*": BLOCKS}, {"adaround": True, "gptq": False}),
    }


class Whole:
    """A network that takes a sample at a time, and what is made of it."""

    def __init__(self, qt, path, calibration, test, score):
        self.qt, self.path, self.test, self.score = qt, path, test, score
        self.calibration = calibration
        self.modes = without_samples(qt) | with_samples(calibration)

    def ours(self, model):
        session = self.qt.Session(model, {"threads": 1})
        sample = self.qt.as_tensor(self.test[:1])
        outputs = np.concatenate([session(self.test[i : i + 1]) for i in range(len(self.test))])
        return outputs, lambda: session.run([sample])

    def ort(self, path):
        session = peer_lib.ort_session(path, 1)
        binding, name = session.io_binding(), session.get_inputs()[0].name
        binding.bind_cpu_input(name, np.ascontiguousarray(self.test[:1]))
        binding.bind_output(session.get_outputs()[0].name)
        outputs = [session.run(None, {name: self.test[i : i + 1]})[0] for i in range(len(self.test))]
        return np.concatenate(outputs), lambda: session.run_with_iobinding(binding)

    def ort_static(self, target):
        prepared = target.with_suffix(".prepared")
        shape_inference.quant_pre_process(str(self.path), str(prepared), skip_symbolic_shape=True)
        samples = peer_lib.Samples(peer_lib.ort_session(self.path, 1).get_inputs()[0].name, self.calibration)
        quantization.quantize_static(
            str(prepared), str(target), samples, per_channel=True,
            activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip


class Stepwise:
    """A network that takes a character at a time; its other inputs are what its other outputs were. Times are those of a full cache."""

    def __init__(self, qt, path, test, score):
        self.qt, self.path, self.test, self.score = qt, path, test, score
        self.modes = without_samples(qt)

    def ours(self, model):
        session = self.qt.Session(model, {"threads": 1})
        past = list(session.inputs)[1:]
        for name in past:
            session.bind(f"next_{name}", name)
        rest = [None] * len(past)
        outputs = np.empty((*self.test.shape, 96), np.float32)
        for i, sequence in enumerate(self.test):
            session.reset()
            for j, token in enumerate(sequence):
                outputs[i, j] = session.run([np.array([[token]]), *rest])[0].numpy()[0, 0]
        inputs = [self.qt.as_tensor(self.test[:1, :1]), *rest]
        return outputs, lambda: session.run(inputs)

    def ort(self, path):
        session = peer_lib.ort_session(path, 1)
        past = session.get_inputs()[1:]
        types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
        zeros = [np.zeros(x.shape, types[x.type]) for x in past]
        places = [[onnxruntime.OrtValue.ortvalue_from_numpy(x.copy()) for x in zeros] for _ in range(2)]
        token = onnxruntime.OrtValue.ortvalue_from_numpy(self.test[:1, :1].copy())
        logits = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, 1, 96), np.float32))
        bindings = []  # two, which take turns: what one writes the other reads
        for read, write in (places, places[::-1]):
            bindings.append(session.io_binding())
            bindings[-1].bind_ortvalue_input("token", token)
            bindings[-1].bind_ortvalue_output("logits", logits)
            for x, a, b in zip(past, read, write):
                bindings[-1].bind_ortvalue_input(x.name, a)
                bindings[-1].bind_ortvalue_output(f"next_{x.name}", b)

        def step():
            session.run_with_iobinding(bindings[0])
            bindings.reverse()

        outputs = np.empty((*self.test.shape, 96), np.float32)
        for i, sequence in enumerate(self.test):
            for place in places:
                for value, start in zip(place, zeros):
                    value.update_inplace(start)
            for j, next_token in enumerate(sequence):
                token.update_inplace(np.array([[next_token]]))
                step()
                outputs[i, j] = logits.numpy()[0, 0]
        return outputs, step


def bits(tokens):
    """Of each character but the first, by the logits before it."""

    def score(logits):
        logits = logits[:, :-1].astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        found = np.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0] - np.log(np.exp(logits).sum(-1))
        return f"{-found.mean() / np.log(2):.4f}"

    return score


def tasks(qt):
    calibration, test = (np.load(TRANSFORMERS / f"letters_{what}.npy") for what in ("calibration", "test"))
    yield Whole(qt, TRANSFORMERS / "letters.onnx", calibration, test, bits(test))
    few = test[:32]  # which are 4,096 runs
    yield Stepwise(qt, TRANSFORMERS / "letters_step.onnx", few, bits(few))
    images, test, labels = (np.load(DIGITS / f"{name}.npy") for name in ("calibration", "test_images", "test_labels"))
    yield Whole(qt, TRANSFORMERS / "vit.onnx", images, test, lambda y: f"{100 * (y.argmax(1) == labels).mean():.2f}")


def made(task, folder):
    """(engine, mode), the size of the file, its outputs and a call to be timed."""
    files = {"float": task.path, "dynamic": folder / "dynamic.onnx"}
    quantization.quantize_dynamic(str(task.path), str(files["dynamic"]), per_channel=True, weight_type=quantization.QuantType.QInt8)
    if hasattr(task, "ort_static"):
        files["static"] = folder / "static.onnx"
        task.ort_static(files["static"])
    for mode, path in files.items():
        yield ("onnxruntime", mode), path.stat().st_size, *task.ort(path)
    float_model = task.qt.Model.load(str(task.path))
    for mode, quantized in task.modes.items():
        model = quantized(float_model)
        path = folder / "ours.onnx"
        model.save(str(path))
        yield ("qtensor", mode), path.stat().st_size, *task.ours(model)


def rows(task, arguments):
    with tempfile.TemporaryDirectory() as folder:
        entries = {name: rest for name, *rest in made(task, pathlib.Path(folder))}
    turns = {
        name: lambda call=call: peer_lib.turn(call, arguments.seconds, clock=time.thread_time)
        for name, (_, _, call) in entries.items()
    }  # fmt: skip
    taken = peer_lib.take_turns(turns, arguments.rounds)
    want = entries["onnxruntime", "float"][1].astype(np.float64)
    for (engine, mode), (size, outputs, _) in entries.items():
        ratio = lambda peer: statistics.median(a / b for a, b in zip(taken["onnxruntime", peer], taken[engine, mode]))
        yield {
            "model": task.path.stem, "engine": engine, "mode": mode, "kib": f"{size / 1024:.0f}", "accuracy": task.score(outputs),
            "db": f"{peer_lib.sqnr_db(want, outputs):.1f}",
            "us": f"{statistics.median(taken[engine, mode]):.1f}",
            "vs_ort_float": f"{ratio('float'):.2f}", "vs_ort_dynamic": f"{ratio('dynamic'):.2f}",
        }  # fmt: skip


def page_table(table):
    """A row for each engine and mode, with all networks side by side."""
    found = {(row["engine"], row["mode"], row["model"]): row for row in table}
    cells = {"letters": ("kib", "accuracy", "db", "ratios"), "letters_step": ("ratios",), "vit": ("kib", "accuracy", "db", "ratios")}
    lines = [
        "| | letters: KiB | bits | dB | speed | step: speed | vit: KiB | top-1 % | dB | speed |",
        "|---" * 10 + "|",
    ]
    for engine, mode in dict.fromkeys((row["engine"], row["mode"]) for row in table):
        line = [mode if engine == "qtensor" else f"ONNX Runtime, {mode}"]
        for model, keys in cells.items():
            row = found.get((engine, mode, model), {})
            if row:
                row = row | {"ratios": f"{row['vs_ort_float']}, {row['vs_ort_dynamic']}", "db": row["db"].replace("inf", "")}
            line += [row.get(key, "") for key in keys]
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, default="build/release/python", help="of ours (%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each row (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of a turn (%(default)s)")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the table to")
    parser.add_argument("--page", type=pathlib.Path, help="page whose table is replaced")
    parser.add_argument("names", nargs="*", metavar="NETWORK", help="letters, letters_step, vit (all)")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.python))
    warnings.simplefilter("ignore")
    import qtensor as qt

    about = {"cpu": record.cpu_name(), "peers": f"onnxruntime {onnxruntime.__version__}"}
    table = [row for task in tasks(qt) if not arguments.names or task.path.stem in arguments.names for row in rows(task, arguments)]
    peer_lib.print_table(FIELDS[:-2], [[row[key] for key in FIELDS[:-2]] for row in table])
    if arguments.csv:
        record.write_csv(arguments.csv, [row | about for row in table], FIELDS)
    if arguments.page:
        text = f"{about['cpu']}; {about['peers']}.\n\n{page_table(table)}"
        record.replace_between(arguments.page, MARKERS, text)


if __name__ == "__main__":
    main()
