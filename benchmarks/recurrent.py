#!/usr/bin/env python3
"""Recurrent networks compared with ONNX Runtime's, in float32 and with dynamic int8, in one process, in turns.

Networks are those of the zoo, or files that have their inputs beside them as .npz. `ort_int8` is the file of ONNX Runtime's
quantize_dynamic, in which it knows LSTM but neither GRU nor RNN. With one thread the clock is CPU time of the process, which stands
still while another program has the core. `ratio_float` is the time of ONNX Runtime's float by that of ours in the same round, and
`ratio_int8` that of the faster one of both its files by our int8: above 1, qtensor is the faster one. `db` and `ort_db` are the SQNR
of both int8 outputs compared with ONNX Runtime's float.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/recurrent.py --python build/release/python --csv recurrent.csv
"""

import pathlib
import statistics
import tempfile
import time

from onnxruntime.quantization import QuantType, quantize_dynamic

import network_table
import peer_lib
from inference import sample_of, turn_of

NAMES = ("text_lstm", "text_gru", "text_rnn")
FIELDS = (
    "model", "threads", "float_ms", "int8_ms", "ort_float_ms", "ort_int8_ms", "ratio_float", "ratio_int8", "db", "ort_db", "error",
    "cpu", "peers",
)  # fmt: skip


def ours(model, inputs, threads):
    import qtensor

    session = qtensor.Session(model, {"threads": threads})
    return lambda: session(*inputs.values())


def measure(path, threads, arguments):
    import qtensor

    model = qtensor.Model.load(str(path))
    with tempfile.TemporaryDirectory() as folder:
        quantized = pathlib.Path(folder) / path.name
        quantize_dynamic(str(path), str(quantized), weight_type=QuantType.QInt8)
        sessions = {"ort_float": peer_lib.ort_session(path, threads), "ort_int8": peer_lib.ort_session(quantized, threads)}
    inputs = sample_of(path, sessions["ort_float"])
    calls = {"float": ours(model, inputs, threads), "int8": ours(model.quantize_dynamic(qtensor.Config("onnx")), inputs, threads)}
    calls |= {name: (lambda s=session: s.run(None, inputs)[0]) for name, session in sessions.items()}
    clock = time.process_time if threads == 1 else time.perf_counter
    taken = peer_lib.take_turns({k: turn_of(c, arguments.seconds, clock) for k, c in calls.items()}, arguments.rounds)
    times = {engine: statistics.median(values) for engine, values in taken.items()}
    ratio = statistics.median(peer / own for peer, own in zip(taken["ort_float"], taken["float"]))
    fastest = [min(pair) for pair in zip(taken["ort_float"], taken["ort_int8"])]
    ratio_int8 = statistics.median(peer / own for peer, own in zip(fastest, taken["int8"]))
    want = calls["ort_float"]()
    return {
        **{f"{engine}_ms": f"{value:.2f}" for engine, value in times.items()},
        "ratio_float": f"{ratio:.2f}", "ratio_int8": f"{ratio_int8:.2f}", "db": f"{peer_lib.sqnr_db(want, calls['int8']()):.1f}", "ort_db": f"{peer_lib.sqnr_db(want, calls['ort_int8']()):.1f}",
    }  # fmt: skip


if __name__ == "__main__":
    parser = network_table.parser_of(__doc__, threads=[1], seconds=0.3, rounds=9)
    network_table.write(parser, NAMES, FIELDS, measure)
