# SPDX-License-Identifier: Apache-2.0
"""Partitions on Dask: arrays in blocks along their first axis, bags, dataframes, lists of delayed objects, or lists of anything that can
be sent to a worker. A worker that dies loses nothing: Dask computes its partitions again."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from qtensor.distributed import work as works
from qtensor.distributed.columns import Table, of_pandas
from qtensor.distributed.job import Job
from qtensor.distributed.local import Local, listed
from qtensor.distributed.rows import fixed_batch

try:
    dask, da, db, lazy = (importlib.import_module(name) for name in ("dask", "dask.array", "dask.bag", "dask.delayed"))
except ImportError as error:
    raise ImportError(f"Dask is missing, or a part of it ({error}): pip install 'qtensor[dask]'") from error
delayed, is_dask_collection = dask.delayed, dask.is_dask_collection


class _Closed:
    """A partition that Dask need not look into for parts of its own."""

    def __init__(self, partition: Any) -> None:
        self.partition = partition


def _same(job: Job) -> Job:
    return job


def _run(work: Callable[..., Any], table: Table, job: Job, index: int, partition: Any, *state: Any) -> Any:
    if isinstance(partition, _Closed):
        partition = partition.partition
    if hasattr(partition, "columns"):
        partition = of_pandas(partition, job.types, table)
    return work(job, index, partition, *state)


def _shared(job: Job) -> Any:
    """A task, not a value that lies in others: workers get its result from each other, and each keeps it."""
    return delayed(_same, pure=True)(job, dask_key_name=f"qtensor-{job.key}")


def _sent(client: Any, job: Job) -> Any:
    """The same, where there is a client, as a graph of its own. Dask warns of graphs that are large because of what a program puts
    into them, and a model has to travel."""
    if client is None:
        return _shared(job)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        return client.compute(_shared(job))


def client_of(engine: Any) -> Any:
    """A Client; None where there is none, and Dask's own schedulers compute."""
    if engine is not None and engine != "dask":
        return engine
    try:
        return importlib.import_module("distributed").get_client()
    except (ImportError, ValueError):
        return None


class Dask(Local):
    def __init__(self, dataset: Any, engine: Any, table: Table) -> None:
        self._dataset, self._client, self._table = dataset, client_of(engine), table
        self._partitions = _parts(dataset)

    def each(self, work: Callable[..., Any], job: Job, todo: Sequence[int]) -> Iterator[tuple[int, Any]]:
        run, shared = delayed(partial(_run, work, self._table), pure=False), _sent(self._client, job)
        if self._client is not None:
            self._client.replicate([shared])  # else Dask gives a few partitions to the one worker that has the model
        return self._computed([(index, run(shared, index, self._partitions[index])) for index in todo])

    def chain(self, work: Callable[..., Any], job: Job) -> Iterator[tuple[int, Any]]:
        run, shared = delayed(partial(_run, work, self._table), pure=False), _sent(self._client, job)
        tasks: list[tuple[int, Any]] = []
        for index, partition in enumerate(self._partitions):
            tasks.append((index, run(shared, index, partition, *(task for _, task in tasks[-1:]))))
        return self._computed(tasks)

    def _computed(self, tasks: list[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        if self._client is None:
            yield from zip([index for index, _ in tasks], dask.compute(*(task for _, task in tasks)))
            return
        as_completed = importlib.import_module("distributed").as_completed
        futures = self._client.compute([task for _, task in tasks])
        indices = {future.key: index for future, (index, _) in zip(futures, tasks)}
        try:
            for future in as_completed(futures):
                yield indices[future.key], future.result()
        finally:
            self._client.cancel(futures)

    def predict(self, work: Callable[..., Any], job: Job, batch: int) -> Any:
        if not is_dask_collection(self._dataset) or isinstance(self._dataset, lazy.Delayed):
            return None
        if isinstance(self._dataset, da.Array):
            return _predict_array(self._dataset, self._partitions, job, batch)
        if isinstance(self._dataset, db.Bag):
            return self._dataset.map_partitions(partial(_predict_items, batch), _shared(job))
        raise TypeError(f"predict on a {type(self._dataset).__name__} of Dask: give its partitions, dataset.to_delayed()")


def _parts(dataset: Any) -> list[Any]:
    """One for each partition: a Delayed, or an object that is sent."""
    if not is_dask_collection(dataset) or isinstance(dataset, lazy.Delayed):
        found = [dataset] if isinstance(dataset, lazy.Delayed) else listed(dataset)
        return [part if is_dask_collection(part) or type(part).__name__ == "Future" else _Closed(part) for part in found]
    if isinstance(dataset, da.Array):
        if dataset.ndim == 0:
            raise ValueError("the array is a scalar; the first axis runs over samples")
        whole = dataset.rechunk({axis: -1 for axis in range(1, dataset.ndim)}) if dataset.ndim > 1 else dataset
        return list(whole.to_delayed().reshape(-1))
    return list(dataset.to_delayed())


def _predict_items(batch: int, found: Any, job: Job) -> list[Any]:
    return [outputs[0] if len(outputs) == 1 else outputs for outputs in works.predict(batch, job, found)]


def _predict_block(batch: int, output: int, job: Job, block: Any) -> Any:
    return works.predict_partition(batch, None, job, 0, block)[output]


def _predict_array(array: Any, blocks: Sequence[Any], job: Job, batch: int) -> Any:
    """An array of Dask for each output; one run here with a row of zeros says what their rows are like."""
    import numpy as np

    row = works.predict_partition(batch, None, job, 0, np.zeros((fixed_batch(job.types) or 1, *array.shape[1:]), array.dtype))
    shared, run = _shared(job), {i: delayed(partial(_predict_block, batch, i), pure=False) for i in range(len(row))}
    found = []
    for i, like in enumerate(row):
        parts = [da.from_delayed(run[i](shared, block), (rows, *like.shape[1:]), like.dtype)
                 for block, rows in zip(blocks, array.chunks[0])]
        found.append(da.concatenate(parts, axis=0))
    return found[0] if len(found) == 1 else found
