"""A file run by qtensor, ONNX Runtime and OpenVINO, in one process, in turns.

With one thread the clock is CPU time of the process, which stands still while another program has the core; with more it is the
time of day. `ratio` is the time of the faster peer by ours in the same round: above 1, qtensor is the faster one. Nine of ten
rounds stayed above `ratio_p10`, and below `ratio_p90`. `error` is the largest difference from ONNX Runtime's outputs, as a part of
the largest element of an output.
"""

import statistics
import sys
import time

import numpy as np

import peer_lib

FIELDS = (
    "model", "threads", "qtensor_ms", "ort_ms", "openvino_ms", "peer", "ratio", "ratio_p10", "ratio_p90", "error", "cpu",
    "peers",
)  # fmt: skip


def sample_of(path, session):
    """The first sample of the zoo's file, or the inputs that it holds."""
    stored = np.load(path.with_suffix(".npz"))
    shapes = {x.name: len(x.shape) for x in session.get_inputs()}
    return {name: stored[name][0] if stored[name].ndim > rank else stored[name] for name, rank in shapes.items()}


def our_call(path, inputs, threads):
    import qtensor

    session = qtensor.Session(qtensor.Model.load(str(path)), {"threads": threads})
    return lambda: session(*inputs.values())


def openvino_call(path, inputs, threads):
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(str(path), "CPU", settings).create_infer_request()
    values = list(inputs.values())
    return lambda: request.infer(values, share_inputs=True, share_outputs=True)


def turn_of(call, seconds, clock):
    return lambda: peer_lib.turn(call, seconds, least=3, clock=clock) / 1e3


def error_of(got, want):
    worst = 0.0
    for mine, theirs in zip(got if isinstance(got, (list, tuple)) else [got], want):
        if theirs.dtype.kind == "f" and theirs.size:
            scale = np.abs(theirs).max() or 1
            worst = max(worst, float(np.abs(np.asarray(mine, np.float64) - theirs).max() / scale))
    return worst


def in_turns(path, inputs, session, threads, arguments):
    """The columns of a file for these inputs; `session` is ONNX Runtime's."""
    clock = time.process_time if threads == 1 else time.perf_counter
    ours = our_call(path, inputs, threads)
    calls = {"qtensor": ours, "ort": lambda: session.run(None, inputs)}
    try:
        calls["openvino"] = openvino_call(path, inputs, threads)
        calls["openvino"]()
    except Exception as error:
        calls.pop("openvino", None)
        print(f"{path.stem}: OpenVINO: {str(error).splitlines()[0][:160]}", file=sys.stderr)
    error = error_of(ours(), calls["ort"]())
    taken = peer_lib.take_turns({k: turn_of(c, arguments.seconds, clock) for k, c in calls.items()}, arguments.rounds)
    times = {engine: statistics.median(values) for engine, values in taken.items()}
    best = min(times.keys() - {"qtensor"}, key=times.get)
    ratios = [peer / own for peer, own in zip(taken[best], taken["qtensor"])]
    return {
        **{f"{engine}_ms": f"{value:.2f}" for engine, value in times.items()},
        "peer": best, **peer_lib.ratio_fields(ratios), "error": f"{error:.1e}",
    }  # fmt: skip


def measure(path, threads, arguments):
    """The columns of a file whose inputs lie beside it."""
    session = peer_lib.ort_session(path, threads)
    return in_turns(path, sample_of(path, session), session, threads, arguments)
