#!/usr/bin/env python3
"""What an engine costs: prediction on Dask and Spark with two worker processes, with one, and in a loop without an engine, turn by
turn; what an engine adds to a sample; calibration of 100,000 images and the memory of its workers; and the constants of a small model of
cost, with what that says of clusters that are not here.

Run again with:  python=$(bindings/python/tests/distributed/make-venv)/bin/python
                 PYTHONPATH=build/release/python $python benchmarks/engines.py mobilenet_v2.onnx --csv engines.csv
"""

import argparse
import heapq
import math
import os
import pathlib
import random
import resource
import statistics
import sys
import tempfile
import time

import numpy as np
import record

import qtensor as qt
from qtensor import distributed
from qtensor.distributed import job, merging, work

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIGITS = ROOT / "examples/digits"
SPREAD = 0.2  # of the logarithm of how long the same work takes on different workers: an assumption
BANDWIDTH = 125e6  # bytes a second from one machine to another, 1 Gbit/s: an assumption


class Generated:
    """Images that a worker makes: the same one with another first element, so that making them costs nothing."""

    def __init__(self, shape, count, rows):
        self.shape, self.count, self.rows = shape, count, rows

    def __iter__(self):
        os.environ["ENGINES_BEGAN"] = str(time.process_time())  # for the sink, in the same process
        image = np.random.default_rng(1).random((self.rows, *self.shape), np.float32)
        for i in range(0, self.count, self.rows):
            image[:, :, 0, 0] = i % 255 / 255
            yield image


def cpu_seconds(index, outputs):
    """Of a partition, in its worker: on a busy machine that says more than the clock."""
    return time.process_time() - float(os.environ["ENGINES_BEGAN"])


def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def divided(shape, count, parts, rows):
    return [Generated(shape, count // parts, rows) for _ in range(parts)]


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def prediction(network, model, shape, count, rows, engines, turns):
    """Seconds for `count` images on each engine, by the clock and, of the worker that took most, of its CPU; `rows` of them in an item and in a
    call."""
    session = qt.Session(model, {"threads": 1})

    def bare():
        for images in Generated(shape, count, rows):
            session.run([images])
        return [cpu_seconds(0, None)]

    cases = {("no engine", 1): bare}
    for name, engine in engines.items():
        for workers in (1, 2):
            parts = divided(shape, count, workers, rows)
            cases[name, workers] = lambda parts=parts, engine=engine: distributed.predict(model, parts, engine=engine, batch=rows, sink=cpu_seconds)
    seconds, cpu = {case: [] for case in cases}, {case: [] for case in cases}
    for turn in range(turns + 1):
        for case, call in cases.items():
            start = time.perf_counter()
            of_partitions = call()
            if turn:  # the first one makes sessions
                seconds[case].append(time.perf_counter() - start)
                cpu[case].append(max(of_partitions))
    medians = {case: statistics.median(found) for case, found in seconds.items()}
    out = []
    for (name, workers), median in medians.items():
        one = medians[name, 1]
        pairs = [a / b for a, b in zip(seconds[name, 1], seconds[name, workers])]
        cpu_pairs = [a / b for a, b in zip(cpu[name, 1], cpu[name, workers])]
        out.append({"what": "prediction", "network": network, "engine": name, "workers": workers, "samples": count, "rows": rows,
                    "seconds": f"{median:.3f}", "per_second": f"{count / median:.0f}", "of_one_worker": f"{statistics.median(pairs):.2f}",
                    "cpu_seconds": f"{statistics.median(cpu[name, workers]):.3f}", "of_one_worker_cpu": f"{statistics.median(cpu_pairs):.2f}",
                    "us_above_bare": f"{(one - medians['no engine', 1]) / count * 1e6:.1f}" if workers == 1 else ""})
    return out


def memory(model, client):
    """Peaks of the workers after calibrations of more and more images."""
    out = []
    for count in 1_000, 100_000:
        parts = divided((1, 8, 8), count, 20, 50)
        taken = timed(lambda: distributed.calibrate(model, "onnx", parts, engine=client, batch=50))
        peaks = client.run(peak_kib).values()
        out.append({"what": "calibration", "network": "digits", "engine": "dask", "workers": 2, "samples": count, "rows": 50,
                    "seconds": f"{taken:.2f}", "per_second": f"{count / taken:.0f}", "peak_mib": f"{max(peaks) / 1024:.1f}"})
    return out


def constants(network, model, shape, small, engines, turns):
    """What the model of cost is made of, each the median of some turns."""
    given = job.Job.of([model], "onnx")
    empty, parts = np.zeros((0, *shape), np.float32), 32
    sample = np.random.default_rng(2).random((8, *shape), np.float32)

    def median(call):
        return statistics.median(timed(call) for _ in range(turns))

    def merge():
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            kept = merging.Merging(folder, given.key, parts)
            for i in range(parts):
                kept.add(i, file)
            kept.merged(f"{folder}/all.qcal")

    file = work.calibrate(1, given, 0, empty)
    begin = median(lambda: work.calibrate(1, given, 0, empty))
    found = {"job_bytes": len(given.models[0]), "file_bytes": len(file), "partition_s": begin,
             "sample_s": max(median(lambda: work.calibrate(1, given, 0, sample)) - begin, 0) / len(sample), "merge_s": median(merge) / parts}
    nothing_to_do = np.zeros((0, 1, 8, 8), np.float32)
    for name, engine in engines.items():  # with a small network, which takes no time itself
        few, many = (median(lambda e=engine, n=n: distributed.calibrate(small, "onnx", [nothing_to_do] * n, engine=e)) for n in (2, 66))
        found[f"task_s_{name}"] = max(many - few, 0) / 64
    return [{"what": "constant", "network": network, "engine": key, "seconds": f"{value:.3g}"} for key, value in found.items()], found


def simulated(found, samples, workers, partitions, engine="dask"):
    """Seconds that a calibration takes: the model goes to the workers along a tree; the driver hands out partitions one after the other to
    a worker that is free, receives their files and merges them. Workers differ in speed, each time another way."""
    rng = random.Random(workers)
    task, merge = found[f"task_s_{engine}"], found["merge_s"] + found["file_bytes"] / BANDWIDTH
    sent = found["job_bytes"] / BANDWIDTH * max(math.ceil(math.log2(workers + 1)), 1)
    free, driver, last = [sent] * workers, sent, 0.0
    each = found["partition_s"] + found["sample_s"] * samples / partitions
    for _ in range(partitions):
        driver = max(driver, heapq.heappop(free)) + task
        done = driver + each * rng.lognormvariate(0, SPREAD)
        heapq.heappush(free, done)
        last = max(last, done)
    return max(last, driver) + merge * partitions


def planned(network, found):
    out = []
    for samples in 10**5, 10**7, 10**9:
        for workers in 1, 2, 10, 100, 1000:
            partitions = max(workers * 4, 8)
            seconds = simulated(found, samples, workers, partitions)
            out.append({"what": "simulated", "network": network, "engine": "dask", "workers": workers, "samples": samples, "rows": partitions,
                        "seconds": f"{seconds:.4g}", "per_second": f"{samples / seconds:.4g}",
                        "of_one_worker": f"{simulated(found, samples, 1, 8) / seconds:.1f}"})
    return out


def engines_here():
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    found = {"dask": Client(cluster)}
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return found
    modules = os.pathsep.join([str(ROOT / "benchmarks"), os.environ["PYTHONPATH"]])
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", PYTHONPATH=modules)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    found["spark"] = builder.getOrCreate()
    found["spark"].sparkContext.setLogLevel("ERROR")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="a float network of images, such as that of benchmarks/models/export.py")
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--csv")
    parser.add_argument("--note", default="", help="such as: busy machine")
    options = parser.parse_args()
    load = os.getloadavg()[0]  # of others: what is measured here has not begun
    if load > 0.3:
        print(f"the load is {load:.1f}: what the clock says of two workers is about a machine that has two free cores", file=sys.stderr)
    qt.Lib.set_threads(1)
    large, digits = qt.Model.load(options.network), qt.Model.load(DIGITS / "digits.onnx")
    name = pathlib.Path(options.network).stem
    shape = tuple(next(iter(large.inputs.values()))[1][1:])
    large_int8 = large.quantize(np.random.default_rng(3).random((4, *shape), np.float32), attrs={"plain": True})
    digits_int8 = digits.quantize(np.load(DIGITS / "calibration.npy"), attrs={"plain": True})
    engines = engines_here()
    rows = prediction(name, large_int8, shape, options.images, 1, engines, options.turns)
    rows += prediction("digits", digits_int8, (1, 8, 8), 64_000, 32, engines, options.turns)
    rows += prediction("digits", digits_int8, (1, 8, 8), 12_800, 1, engines, options.turns)
    rows += memory(digits, engines["dask"])
    measured, found = constants(name, large, shape, digits, engines, options.turns)
    rows += measured + planned(name, found)
    for row in rows:
        row.update(note=options.note, load=f"{load:.1f}", cpu=record.cpu_name())
        print({key: value for key, value in row.items() if value and key != "cpu"}, flush=True)
    fields = ["what", "network", "engine", "workers", "samples", "rows", "seconds", "per_second", "of_one_worker", "cpu_seconds",
              "of_one_worker_cpu", "us_above_bare",
              "peak_mib", "note", "load", "cpu"]
    if options.csv:
        record.write_csv(options.csv, rows, fields)
    engines["dask"].close()


if __name__ == "__main__":
    main()
