#!/usr/bin/env python3
"""Transformers and recurrent networks: our float, static and dynamic int8 with all that a user could pick instead.

The others are ONNX Runtime in float, after quantize_dynamic, quantize_static, and its optimizer for transformers with
quantize_dynamic; OpenVINO in float and after NNCF's quantization for transformers; PyTorch after its dynamic
quantization. All take turns in one process, with weights made by random. With one thread the clock is CPU time of the
process. Four samples calibrate, and `db` is the SQNR on four others to ONNX Runtime's float; `seen_db` is that on the
samples which calibrated, where ranges of each feature fit better than they do on anything else. `peer` is the fastest
int8 of the others which keeps 20 dB, `ratio` its time by that of our faster int8 which does: above 1, qtensor is the
faster one. What fails has no time.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/transformer_peers.py --python build/release/python --csv transformer-peers.csv --page docs/transformers.md
"""

import logging
import pathlib
import statistics
import sys
import tempfile
import time
import warnings

import numpy as np

import network_table
import peer_lib
import record
from inference import turn_of
from models import zoo, zoo_full_size
from zoo import CALIBRATION, worst_sqnr

OURS = ("static", "dynamic")
THEIRS = ("ort_dynamic", "ort_static", "ort_optimized_dynamic", "nncf", "torch_dynamic")
ENGINES = ("float", *OURS, "ort_float", "openvino_float", *THEIRS)
KEPT = 20.0  # dB
MARKERS = ("<!-- peers from the csv -->\n", "<!-- end of the peers -->\n")
NAMES = (*zoo_full_size.NAMES, "vit_b_16", "swin_t", "convnext_tiny", "text_lstm", "text_gru")
FIELDS = (
    "model", "threads", "peer", "ratio", *(f"{engine}_ms" for engine in ENGINES),
    *(f"{engine}_db" for engine in (*OURS, *THEIRS)), *(f"{engine}_seen_db" for engine in (*OURS, *THEIRS)), "error",
    "cpu", "peers",
)  # fmt: skip


class Network:
    """A file with its samples, and functions which run one sample, made by each engine."""

    def __init__(self, path, threads, folder):
        self.path, self.threads, self.folder = path, threads, folder
        stored = np.load(path.with_suffix(".npz"))
        self.ort_float = peer_lib.ort_session(path, threads)
        names = [x.name for x in self.ort_float.get_inputs()]
        self.samples = [{name: stored[name][i] for name in names} for i in range(zoo.SAMPLES)]
        self.calibration = self.samples[:CALIBRATION]

    def ort(self, path):
        session = peer_lib.ort_session(path, self.threads)
        return lambda sample: session.run(None, sample)[0]

    def make_ort_float(self):
        return lambda sample: self.ort_float.run(None, sample)[0]

    def make_ort_dynamic(self, source=None):
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(str(source or self.path), str(self.folder / "dynamic.onnx"), per_channel=True)
        return self.ort(self.folder / "dynamic.onnx")

    def make_ort_optimized_dynamic(self):
        from onnxruntime.transformers.optimizer import optimize_model

        kind = {"gpt2": "gpt2", "vit_": "vit"}.get(self.path.stem[:4], "bert")
        optimized = optimize_model(str(self.path), model_type=kind, num_heads=0, hidden_size=0)
        optimized.save_model_to_file(str(self.folder / "optimized.onnx"))
        return self.make_ort_dynamic(self.folder / "optimized.onnx")

    def make_ort_static(self):
        from onnxruntime import quantization as q
        from onnxruntime.quantization.shape_inference import quant_pre_process

        samples = iter(self.calibration)

        class Reader(q.CalibrationDataReader):
            def get_next(self):
                return next(samples, None)

        quant_pre_process(str(self.path), str(self.folder / "prepared.onnx"), skip_symbolic_shape=True)
        q.quantize_static(
            str(self.folder / "prepared.onnx"), str(self.folder / "static.onnx"), Reader(), per_channel=True,
            activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8,
        )  # fmt: skip
        return self.ort(self.folder / "static.onnx")

    def openvino(self, quantize):
        import openvino

        core = openvino.Core()
        model = core.read_model(str(self.path))
        model.reshape({name: list(value.shape) for name, value in self.samples[0].items()})
        settings = {"INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        request = core.compile_model(quantize(model), "CPU", settings).create_infer_request()
        return lambda sample: list(request.infer(sample, share_inputs=True, share_outputs=True).values())[0]

    def make_openvino_float(self):
        return self.openvino(lambda model: model)

    def make_nncf(self):
        import nncf

        data = nncf.Dataset(self.calibration)
        count = len(self.calibration)
        return self.openvino(
            lambda model: nncf.quantize(model, data, subset_size=count, model_type=nncf.ModelType.TRANSFORMER)
        )

    def make_torch_dynamic(self):
        import torch

        torch.set_num_threads(self.threads)
        torch.backends.quantized.engine = "onednn"
        module, _, _ = zoo.network(self.path.stem)
        kinds = {torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU}
        module = torch.ao.quantization.quantize_dynamic(module, kinds, dtype=torch.qint8)

        def run(sample):
            with torch.inference_mode():
                return module(*(torch.from_numpy(value) for value in sample.values())).numpy()

        return run

    def ours(self, change):
        import qtensor

        session = qtensor.Session(change(qtensor.Model.load(str(self.path))), {"threads": self.threads})

        def run(sample):
            outputs = session(*sample.values())
            return np.asarray(outputs[0] if isinstance(outputs, (list, tuple)) else outputs)

        return run

    def make_float(self):
        return self.ours(lambda model: model)

    def make_static(self):
        return self.ours(lambda model: model.quantize(self.calibration))

    def make_dynamic(self):
        import qtensor

        return self.ours(lambda model: model.quantize_dynamic(qtensor.Config("onnx")))

    def made(self):
        runs = {}
        for engine in ENGINES:
            try:
                run = getattr(self, f"make_{engine}")()
                run(self.samples[0])
                runs[engine] = run
            except Exception as error:
                said = (str(error).strip() or type(error).__name__).splitlines()[0]
                print(f"{self.path.stem}: {engine}: {said[:160]}", file=sys.stderr, flush=True)
        return runs

    def decibels(self, runs, engine, samples):
        outputs = [[np.array([runs[name](sample)])] for name in ("ort_float", engine) for sample in samples]
        return worst_sqnr(outputs[: len(samples)], outputs[len(samples) :])


def measure(path, threads, arguments):
    with tempfile.TemporaryDirectory() as folder:
        network = Network(path, threads, pathlib.Path(folder))
        runs = network.made()
    clock = time.process_time if threads == 1 else time.perf_counter
    sample = network.samples[-1]
    turns = {engine: turn_of(lambda run=run: run(sample), arguments.seconds, clock) for engine, run in runs.items()}
    taken = peer_lib.take_turns(turns, arguments.rounds)
    times = {engine: statistics.median(values) for engine, values in taken.items()}
    row = {f"{engine}_ms": f"{value:.2f}" for engine, value in times.items()}
    kept = {}
    for engine in times.keys() & {*OURS, *THEIRS}:
        kept[engine] = network.decibels(runs, engine, network.samples[CALIBRATION:])
        row |= {f"{engine}_db": f"{kept[engine]:.1f}"}
        row |= {f"{engine}_seen_db": f"{network.decibels(runs, engine, network.calibration):.1f}"}
    fastest = [min((e for e in group if kept.get(e, -1) >= KEPT), key=times.get, default=None) for group in (OURS, THEIRS)]
    if all(fastest):
        mine, peer = (taken[engine] for engine in fastest)
        row |= {"peer": fastest[1], "ratio": f"{statistics.median(b / a for a, b in zip(mine, peer)):.2f}"}
    return row


def page(rows):
    """Milliseconds and dB of ours and of the fastest others with one thread, for rows that have both, and the ratio with each
    number of threads."""
    shown = {
        "static": "qtensor static", "dynamic": "qtensor dynamic", "nncf": "OpenVINO + NNCF", "ort_dynamic": "ONNX Runtime dynamic",
        "ort_static": "ONNX Runtime static",
    }  # fmt: skip
    ratios = {(row["model"], row["threads"]): row.get("ratio", "") for row in rows}
    threads = sorted({threads for _, threads in ratios})
    heads = [*shown.values(), "ratio", *(f"with {count} threads" for count in threads[1:])]
    lines = [f"| ms, dB | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for row in rows:
        if row["threads"] == threads[0] and row.get("ratio"):
            cells = [f"{row[f'{e}_ms']}, {row[f'{e}_db']}" if row.get(f"{e}_db") else "" for e in shown]
            cells += [ratios.get((row["model"], count), "") for count in threads]
            lines.append(f"| {row['model']} | {' | '.join(cells)} |")
    return f"{rows[0]['cpu']}; {rows[0]['peers']}.\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    parser = network_table.parser_of(__doc__, threads=[1, 2], seconds=0.5, rounds=7)
    parser.add_argument("--page", type=pathlib.Path, help="page whose table is replaced")
    arguments, rows = network_table.write(parser, NAMES, FIELDS, measure)
    if arguments.page:
        record.replace_between(arguments.page, MARKERS, page(rows))
