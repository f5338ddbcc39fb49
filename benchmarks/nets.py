"""Whole networks: qtensor's int8 beside its own float, ONNX Runtime's float and int8 and the fastest of PyTorch's int8 engines.

With one thread the clock is CPU time, which stands still while another program has the core; with more it is the time
of day. Our figure is what `qtensor bench` says. The peers are called from Python, ONNX Runtime with bound operands and
PyTorch as frozen TorchScript, so that a call costs little.
"""

import json
import os
import statistics
import sys
import time

import numpy as np
import torch

import peer_lib
import torch_int8

NETS = ("resnet50", "resnet18", "mobilenet_v2", "mobilenet_v3_large", "shufflenet_v2_x1_0")
BATCH_NETS = ("resnet50", "mobilenet_v2")
TRIAL_SECONDS = 0.3


class Setting:
    """What all engines of a row have in common."""

    def __init__(self, arguments, path, threads, batch):
        self.arguments, self.path, self.threads, self.batch = arguments, path, threads, batch
        samples = np.load(peer_lib.samples_path(arguments))
        self.samples = np.ascontiguousarray(np.resize(samples, (batch, *samples.shape[1:])))
        self.clock = time.thread_time if threads == 1 else time.perf_counter

    def turn(self, call, seconds=None):
        return peer_lib.turn(call, seconds or self.arguments.seconds, least=3, clock=self.clock)


def our_turn(setting, path):
    arguments = setting.arguments
    options = (path, "--threads", setting.threads, "--batch", setting.batch, "--seconds", arguments.seconds, "--json")
    key = "cpu_ms" if setting.threads == 1 else "median_ms"
    return lambda: json.loads(peer_lib.command(arguments.qtensor, "bench", *options))[key] * 1e3


def ort_turn(setting, path):
    session = peer_lib.ort_session(path, setting.threads)
    binding = session.io_binding()
    binding.bind_cpu_input(session.get_inputs()[0].name, setting.samples)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: setting.turn(lambda: session.run_with_iobinding(binding))


def torch_turn(setting):
    """The turn of the engine that is fastest in a trial, and its name."""
    samples = torch.from_numpy(setting.samples)

    def turn_of(engine, module):
        def turn(seconds=None):
            torch.set_num_threads(setting.threads)
            torch.backends.quantized.engine = engine
            with torch.inference_mode():
                return setting.turn(lambda: module(samples), seconds)

        return turn

    turns = {e: turn_of(e, module) for e, module in torch_int8.modules(setting.arguments, setting.path).items()}
    best = min(turns, key=lambda engine: turns[engine](TRIAL_SECONDS))
    return turns[best], best


def make_turns(arguments, path, threads, batch):
    """The turns of each engine, and the name of PyTorch's. A peer that cannot run the network is left out."""
    setting = Setting(arguments, path, threads, batch)
    turns = {"qtensor": our_turn(setting, peer_lib.our_quantized(arguments, path))}
    turns["qtensor_fp32"], engine = our_turn(setting, path), None
    try:
        turns["ort_fp32"] = ort_turn(setting, path)
        turns["ort_int8"] = ort_turn(setting, peer_lib.ort_quantized(arguments, path))
    except Exception as error:
        print(f"{path.stem}: ONNX Runtime: {error}", file=sys.stderr)
    try:
        turns["torch_int8"], engine = torch_turn(setting)
    except Exception as error:
        print(f"{path.stem}: PyTorch: {error}", file=sys.stderr)
    return turns, engine


def measure(arguments, path, threads, batch):
    """A row: medians over the rounds in microseconds, the fastest peer, the ratio to it and its spread."""
    turns, engine = make_turns(arguments, path, threads, batch)
    taken = peer_lib.take_turns(turns, arguments.rounds)
    times = {name: statistics.median(values) for name, values in taken.items()}
    best = min(times.keys() - {"qtensor", "qtensor_fp32"}, key=times.get)
    ratios = [peer / own for peer, own in zip(taken[best], taken["qtensor"])]
    return {
        "section": "nets", "set": f"threads {threads} batch {batch}", "case": path.stem, "threads": threads,
        **{f"{name}_us": f"{value:.1f}" for name, value in times.items()},
        "peer": f"torch_{engine}" if best == "torch_int8" else best,
        **peer_lib.ratio_fields(ratios),
    }  # fmt: skip


def rows(arguments):
    arguments.names = arguments.names or NETS
    paths = {path.stem: path for path in peer_lib.model_paths(arguments)}
    settings = [(1, 1, NETS), (2, 1, NETS), (1, 16, BATCH_NETS)]
    if arguments.threads or arguments.batch:
        settings = [(arguments.threads or 1, arguments.batch or 1, NETS)]
    for threads, batch, nets in settings:
        if threads > len(os.sched_getaffinity(0)):
            print(f"{threads} threads: left out, this process may use fewer cores", file=sys.stderr)
            continue
        for name in arguments.names:
            if name in nets or name not in NETS:
                yield measure(arguments, paths[name], threads, batch)
