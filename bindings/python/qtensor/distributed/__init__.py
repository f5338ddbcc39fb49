# SPDX-License-Identifier: Apache-2.0
"""Calibration, prediction and evaluation where the data are: on Dask, Spark, MPI, or in this process.

import qtensor as qt
from qtensor import distributed

prepared = distributed.calibrate(qt.Model.load("net.onnx"), "onnx", partitions, engine=client)
prepared.convert().save("net-int8.onnx")

A dataset is a list of partitions, or what an engine has: arrays, bags, dataframes and lists of delayed objects of Dask, RDDs and
DataFrames of Spark. A partition is an array whose rows are samples, a dict of arrays by name of input, something that gives
samples or batches in turn, or a function that gives one of these when a worker calls it; qtensor.distributed.data has partitions
of files. Results do not depend on the engine, on how samples are divided into partitions, nor on when they are computed, to the
bit. docs/distributed.md says why, and where that takes more time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Union

from qtensor import core
from qtensor._arrays import kind
from qtensor._errors import CanceledError
from qtensor.distributed import chosen, work
from qtensor.distributed.columns import Columns, Table
from qtensor.distributed.job import Job, config_from, model_of, scratch
from qtensor.distributed.local import Local
from qtensor.distributed.merging import Merging
from qtensor.distributed.sums import Sums

__all__ = ["calibrate", "evaluate", "predict"]

Progress = Union[bool, Callable[[str, int, int], Union[bool, None]]]


def calibrate(model: Any, config: Any, dataset: Any, *, engine: Any = None, batch: int = 1, columns: Columns | None = None,
              in_turn: bool | None = None, checkpoint: str | os.PathLike[str] | None = None, threads: int = 1,
              progress: Progress = False) -> core.Model:
    """The prepared model, calibrated with all samples: convert() it, or save_calibration() to go on elsewhere.

    model: a Model in float, the path of an ONNX file, or its bytes.
    config: as of Model.quantize: a recipe ("onnx", "fbgemm" ...), a Config, or settings by selector.
    dataset: see this module.
    engine: a Client of Dask, a SparkSession or SparkContext, a communicator of mpi4py, or "dask", "spark", "local". None: what
    the dataset belongs to, and else this process.
    batch: rows of a call, where the model does not fix that. Ranges are the same for any batch where observers merge exactly, but
    the file counts calls, so 1 gives the bytes of `qtensor calibrate`.
    columns: of tables: the column for each input, or a list of columns of numbers.
    in_turn: whether each partition goes on from the state of the one before. None: where an observer of the configuration does
    not merge exactly ("histogram", "moving_average", "percentile", "entropy", those of NVIDIA), so that the result is that of one
    process in any case. False calibrates side by side and merges, with the bounds of docs/quantization.md.
    checkpoint: a folder for the files of partitions that are done. Called again, only the others are computed. It must be seen by
    this process only, and the partitions must be the same.
    threads: of a worker process, for one call of the library.
    progress: True shows a bar on a terminal; a function is called with stage, done and total, and cancels by returning False.
    """
    job, used = Job.of([model], config, threads=threads), _engine(dataset, engine, Table(columns))
    chain = bool(chosen.in_turn(job.config)) if in_turn is None else in_turn
    if chain and checkpoint is not None:
        kinds = ", ".join(sorted(chosen.in_turn(job.config))) or "in_turn=True"
        raise ValueError(f"checkpoint is for partitions that do not wait for each other, and these do because of {kinds}: pass "
                         "in_turn=False, or leave checkpoint out")
    with scratch() as folder, _told(progress, "calibrating", used) as told:
        path = os.path.join(folder, "merged.qcal")
        file = None
        if chain:
            for index, file in used.chain(partial(work.calibrate, batch), job):
                told(index + 1)
        else:
            if checkpoint is not None:
                os.makedirs(checkpoint, exist_ok=True)
            merging = Merging(os.fspath(checkpoint) if checkpoint is not None else folder, _key(job, batch), len(used))
            todo = merging.missing()
            for index, result in used.each(partial(work.calibrate, batch), job, todo):
                merging.add(index, result)
                told()
            if used.is_driver and len(used):
                merging.merged(path)
                with open(path, "rb") as merged:
                    file = merged.read()
        file = used.agreed(file)
        if file is None:
            raise ValueError("the dataset has no partitions")
        with open(path, "wb") as out:
            out.write(file)
        prepared = model_of(model).prepare(config_from(job.config))
        prepared.load_calibration(path)
        return prepared


def predict(model: Any, dataset: Any, *, engine: Any = None, batch: int = 32, columns: Columns | None = None,
            attrs: Mapping[str, Any] | None = None, sink: Callable[[int, list[Any]], Any] | None = None, threads: int = 1,
            progress: Progress = False) -> Any:
    """The outputs for every sample. An array, bag, RDD or DataFrame gives what an engine calls the same, which is computed when
    that is asked for: of a DataFrame of Spark the same rows with a column for each output. A list of partitions gives a list, in
    its order: for each partition an array, or a list of one for each output. On MPI rank 0 has the list, and others None.

    sink: called on the worker with the index of a partition and the list of its outputs; the list then has what it returns, such
    as the path of a file. For lists of partitions, and for outputs that are too large for one process.
    attrs: of sessions. Others: as of calibrate().
    """
    used = _engine(dataset, engine, Table(columns))
    job = Job.of([model], attrs=attrs, threads=threads)
    lazy = used.predict(work.predict, job, batch) if sink is None else None
    if lazy is not None:
        return lazy
    found: dict[int, Any] = {}
    with _told(progress, "predicting", used) as told:
        for index, result in used.each(partial(work.predict_partition, batch, sink), job, range(len(used))):
            found[index] = result[0] if sink is None and len(result) == 1 else result
            told()
    return [found[index] for index in range(len(used))] if used.is_driver else None


def evaluate(model: Any, dataset: Any, *, reference: Any = None, label: str | None = "label", engine: Any = None, batch: int = 32,
             columns: Columns | None = None, attrs: Mapping[str, Any] | None = None, threads: int = 1,
             progress: Progress = False) -> dict[str, Any]:
    """How good a model is, on pairs of inputs and labels, or on dicts and tables with labels under the name `label`: a dict with
    "samples", "correct" and "top1", the share of rows whose largest output is that of the label.

    reference: another model, mostly the one in float, with which outputs are compared: "outputs" with "name", "sqnr_db", "cosine"
    and "max_abs" of each, "top1_agreement" and "top1_reference", as `qtensor compare` says them.
    label: None: samples have no labels, and are only compared with the reference.
    Others: as of predict(). All sums are exact, so the result is the same on every engine and for any partitions, to the bit.
    """
    if label is None and reference is None:
        raise ValueError("label is None and there is no reference, so there is nothing to compare outputs with")
    used = _engine(dataset, engine, Table(columns, label))
    job = Job.of([model] if reference is None else [model, reference], attrs=attrs, threads=threads)
    sums, seen = Sums(), set()
    with _told(progress, "evaluating", used) as told:
        for index, result in used.each(partial(work.evaluate, batch, label), job, range(len(used))):
            if index not in seen:
                seen.add(index)
                sums.merge(result)
            told()
    found: dict[str, Any] = used.agreed(sums.result([name for name, _ in job.outputs]) if used.is_driver else None)
    return found


def _key(job: Job, batch: int) -> str:
    import hashlib

    return hashlib.sha256(f"{job.key} {batch}".encode()).hexdigest()


def _engine(dataset: Any, engine: Any, table: Table) -> Any:
    """By what the dataset or the engine is; their packages are only imported where they are asked for."""
    of = {type(engine).__module__.split(".")[0] if not isinstance(engine, str) else engine}
    of.add(_package(dataset))
    if "mpi4py" in of:
        from qtensor.distributed.mpi import Mpi

        return Mpi(dataset, engine)
    if of & {"dask", "distributed"}:
        from qtensor.distributed.dask import Dask

        return Dask(dataset, engine, table)
    if of & {"spark", "pyspark"}:
        from qtensor.distributed.spark import Spark

        return Spark(dataset, engine, table)
    if engine is None or engine == "local":
        return Local(dataset)
    raise ValueError(f"engine is {engine if isinstance(engine, str) else kind(engine)!r}, not a Client of Dask, a SparkSession, a "
                     'communicator of mpi4py, "dask", "spark" or "local"')


def _package(dataset: Any) -> str:
    first = next(iter(dataset), None) if isinstance(dataset, (list, tuple)) else dataset
    return type(first).__module__.split(".")[0]


@contextlib.contextmanager
def _told(progress: Progress, stage: str, used: Any) -> Iterator[Callable[..., None]]:
    from qtensor._callbacks import advance

    answer = advance(progress)
    total, at = len(used), 0

    def told(done: int | None = None) -> None:
        nonlocal at
        now = min(at + 1 if done is None else done, total)
        if now <= at or answer is None:
            return
        at = now
        if not answer.advance(stage, at, total):
            raise CanceledError(f"{stage} was canceled after {at} of {total} partitions")

    used.told = told
    yield told
