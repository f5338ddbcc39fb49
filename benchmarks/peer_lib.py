"""What the comparisons share: ONNX Runtime sessions, the qtensor command, taking turns, names and places."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np
import onnxruntime

import record  # noqa: F401, for the kernels that this CPU has


def cache_folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "qtensor"


def sqnr_db(want, got):
    """Signal to quantization noise, of arrays or of lists of them taken together; infinite without noise."""
    pairs = [(np.asarray(w, np.float64), np.asarray(g, np.float64)) for w, g in zip(want, got)]
    signal = sum(np.square(w).sum() for w, _ in pairs)
    noise = sum(np.square(w - g).sum() for w, g in pairs)
    return 10 * np.log10(signal / noise) if signal and noise else -np.inf if noise else np.inf


def add_common_arguments(parser):
    cache = cache_folder()
    parser.add_argument("--qtensor", default="build/release/tools/qtensor", help="our command (%(default)s)")
    parser.add_argument("--models", type=pathlib.Path, default=cache / "models", help="float .onnx files (%(default)s)")
    parser.add_argument(
        "--quantized", type=pathlib.Path, default=cache / "quantized",
        help="our int8 QDQ files, of the same names; a missing or old one is made by `qtensor quantize` (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--inputs", type=pathlib.Path, help=".npy, first axis = samples (MODELS/inputs.npy)")
    parser.add_argument(
        "--ort-quantized", type=pathlib.Path, default=cache / "ort-quantized",
        help="int8 files of ONNX Runtime's own tool; missing ones are made (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--calibration-data", type=pathlib.Path, help=".npy to calibrate with (that of --inputs)")
    parser.add_argument("--calibration", type=int, default=8, metavar="N", help="calibration samples (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of every engine (%(default)s)")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the table to")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="names without .onnx (all in --models)")


def model_paths(arguments):
    paths = sorted(arguments.models.glob("*.onnx"))
    if arguments.names:
        paths = [path for path in paths if path.stem in arguments.names]
        missing = set(arguments.names) - {path.stem for path in paths}
        if missing:
            raise SystemExit(f"not in {arguments.models}: {', '.join(sorted(missing))}")
    if not paths:
        raise SystemExit(f"no .onnx files in {arguments.models}; benchmarks/models/export.py makes them")
    return paths


def samples_path(arguments):
    return arguments.inputs or arguments.models / "inputs.npy"


def ort_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def ort_run(path, samples, threads):
    """The outputs by name, one sample at a time, as our command does by default."""
    session = ort_session(path, threads)
    name = session.get_inputs()[0].name
    runs = [session.run(None, {name: samples[i : i + 1]}) for i in range(len(samples))]
    return {output.name: np.concatenate(arrays) for output, arrays in zip(session.get_outputs(), zip(*runs))}


def ort_output_names(path):
    return [output.name for output in ort_session(path, 1).get_outputs()]


def read_safetensors(path):
    """Float32 tensors by name: eight bytes of length, a JSON header, the data."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return tensors


def command(qtensor, *arguments):
    """Runs our command and returns its standard output; raises RuntimeError with its one-line message."""
    try:
        done = subprocess.run([qtensor, *map(str, arguments)], capture_output=True, text=True)
    except OSError as error:
        raise RuntimeError(f"{qtensor}: {error.strerror}") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{pathlib.Path(qtensor).name} {arguments[0]}: {lines[-1]}")
    return done.stdout


def our_quantized(arguments, model):
    """Path of our int8 file for a float model, made if it is missing or older than the model or our command."""
    path = arguments.quantized / model.name
    sources = [source for source in (model, pathlib.Path(arguments.qtensor)) if source.exists()]
    if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        arguments.quantized.mkdir(parents=True, exist_ok=True)
        data = arguments.calibration_data or samples_path(arguments)
        options = ("--data", data, "--samples", arguments.calibration, "--format", "qdq")
        # All in int8, as the peers' files are: by default, random weights that 8 bits ruin would keep layers in float.
        command(arguments.qtensor, "quantize", model, "-o", path, "--plain", *options)
    return path


class Samples:
    """The calibration data reader that ONNX Runtime's tool asks for."""

    def __init__(self, name, samples):
        self.feeds = iter([{name: samples[i : i + 1]} for i in range(len(samples))])

    def get_next(self):
        return next(self.feeds, None)


def ort_quantized(arguments, model):
    """ONNX Runtime's int8 file of a float model, made once."""
    folder = arguments.ort_quantized
    path = folder / model.name
    if path.exists() and path.stat().st_mtime >= model.stat().st_mtime:
        return path
    # Imported here: its import takes longer than all the rest.
    from onnxruntime import quantization
    from onnxruntime.quantization import shape_inference

    folder.mkdir(parents=True, exist_ok=True)
    prepared = folder / f"{model.stem}.prepared"
    samples = np.load(arguments.calibration_data or samples_path(arguments))[: arguments.calibration]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape_inference.quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
        quantization.quantize_static(
            str(prepared),
            str(path),
            Samples(ort_session(model, 1).get_inputs()[0].name, samples),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
        )
    prepared.unlink()
    return path


def turn(call, seconds, least=5, clock=time.perf_counter):
    """Median time of a call over this long, in microseconds."""
    call()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = clock()
        call()
        times.append(clock() - start)
    return statistics.median(times) * 1e6


def take_turns(turns, rounds):
    """What the turns of each engine gave, by engine. A slow moment of the machine hits all of them; every other round
    goes backwards, so that no engine always runs after the same neighbour."""
    taken = {engine: [] for engine in turns}
    for i in range(rounds):
        for engine in sorted(turns, reverse=i % 2 == 1):
            taken[engine].append(turns[engine]())
    return taken


def milliseconds_of_turns(runs, turns=15, seconds=0.02):
    """The median CPU time of each, in turns."""
    times = [[] for _ in runs]
    for run in runs:
        run()
    begin = time.process_time()
    for turn in range(turns):
        for run, own in zip(runs, times):
            start = time.process_time()
            run()
            own.append(time.process_time() - start)
        if turn >= 2 and time.process_time() - begin > seconds * len(runs):
            break
    return [1e3 * statistics.median(own) for own in times]


def ratio_fields(ratios):
    """The last columns of a table: what nine of ten rounds stayed above and below, and the median."""
    p10, p90, median = np.quantile(ratios, (0.1, 0.9, 0.5))
    return {"ratio_p10": f"{p10:.3f}", "ratio_p90": f"{p90:.3f}", "ratio": f"{median:.3f}"}


def print_table(header, rows):
    cells = [header] + [["" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip())
    sys.stdout.flush()
