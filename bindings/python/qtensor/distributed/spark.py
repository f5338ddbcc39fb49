# SPDX-License-Identifier: Apache-2.0
"""Partitions on Spark: RDDs of samples, DataFrames whose columns are inputs, or lists of anything that can be sent to a worker.
Spark takes the result of a partition once, however often it was computed."""

from __future__ import annotations

import importlib
import pickle
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import GenericAlias
from typing import Any

from qtensor.distributed import work as works
from qtensor.distributed.columns import Table, of_arrow, of_table
from qtensor.distributed.job import KEPT_JOBS, Job
from qtensor.distributed.local import Local, listed

try:
    pyspark = importlib.import_module("pyspark")
except ImportError as error:
    raise ImportError("Spark is missing: pip install 'qtensor[spark]'") from error

_shared: OrderedDict[tuple[str, str], Any] = OrderedDict()


def shared(context: Any, job: Job) -> Any:
    """The job as a broadcast, which goes to each executor once, also where several calls are about the same models."""
    key = (str(context.applicationId), job.key)
    if key not in _shared:
        _shared[key] = context.broadcast(job)
        while len(_shared) > KEPT_JOBS:
            _shared.popitem(last=False)[1].unpersist()
    _shared.move_to_end(key)
    return _shared[key]


class Spark(Local):
    def __init__(self, dataset: Any, engine: Any, table: Table) -> None:
        self._dataset, self._table = dataset, table
        self._context = _context(dataset, engine)
        if isinstance(dataset, pyspark.RDD):
            self._rdd: Any = dataset
        elif not is_frame(dataset):
            partitions = listed(dataset)
            self._rdd = self._context.parallelize(list(partitions), max(len(partitions), 1)).mapPartitions(_one)
            self._count = len(partitions)

    def __len__(self) -> int:
        if is_frame(self._dataset):
            return int(self._dataset.rdd.getNumPartitions())
        return int(getattr(self, "_count", self._rdd.getNumPartitions()))

    def each(self, work: Callable[..., Any], job: Job, todo: Sequence[int]) -> Iterator[tuple[int, Any]]:
        if todo:
            yield from self._results(work, job, None, list(todo))

    def chain(self, work: Callable[..., Any], job: Job) -> Iterator[tuple[int, Any]]:
        state = None
        for index in range(len(self)):
            (_, state), = self._results(work, job, (state,), [index])
            yield index, state

    def _results(self, work: Callable[..., Any], job: Job, state: tuple[Any] | None, todo: list[int]) -> Any:
        broadcast = shared(self._context, job)
        if is_frame(self._dataset):
            frame = self._dataset.mapInArrow(partial(_run_arrow, work, broadcast, state, self._table), "result binary")
            return self._run(frame.rdd, _unpacked, todo)
        return self._run(self._rdd, partial(_run, work, broadcast, state), todo)

    def _run(self, rdd: Any, work: Callable[[Iterable[Any]], Iterable[Any]], todo: list[int]) -> Iterator[tuple[int, Any]]:
        """The job runs on a thread, so that the caller hears how far it is, and may cancel it."""
        group, found, failed = f"qtensor-{uuid.uuid4()}", [], []  # type: str, list[Any], list[BaseException]

        def job() -> None:
            try:
                self._context.setJobGroup(group, "qtensor", interruptOnCancel=True)
                found.extend(self._context.runJob(rdd, work, todo))
            except BaseException as error:
                failed.append(error)

        thread = pyspark.InheritableThread(target=job)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.1)
                self.told(self._completed(group))
        except BaseException:
            self._context.cancelJobGroup(group)
            raise
        if failed:
            raise failed[0]
        for _, result in found:
            if isinstance(result, works.Failed):
                raise result.error
        yield from found

    def _completed(self, group: str) -> int:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numCompletedTasks for stage in stages[-1:] if stage)

    def predict(self, work: Callable[..., Any], job: Job, batch: int) -> Any:
        if isinstance(self._dataset, pyspark.RDD):
            return self._dataset.mapPartitions(partial(_predict_items, batch, shared(self._context, job)))
        if not is_frame(self._dataset):
            return None
        schema = importlib.import_module("pyspark.sql.types").StructType([*self._dataset.schema.fields, *_fields(job)])
        run = partial(_predict_arrow, batch, shared(self._context, job), self._table)
        return self._dataset.mapInArrow(run, schema)


def is_frame(dataset: Any) -> bool:
    return hasattr(dataset, "mapInArrow")


def _context(dataset: Any, engine: Any) -> Any:
    if isinstance(dataset, pyspark.RDD):
        return dataset.context
    found = dataset.sparkSession if is_frame(dataset) else engine
    if isinstance(found, str) or found is None:
        found = pyspark.SparkContext._active_spark_context
        if found is None:
            raise ValueError('engine is "spark", and no SparkContext runs: pass a SparkSession')
    return found.sparkContext if hasattr(found, "sparkContext") else found


def _one(found: Iterator[Any]) -> Iterator[Any]:
    """The items of the partition that a list has for this one of Spark."""
    from qtensor.distributed.rows import items

    for partition in found:
        yield from items(partition)


def _run(work: Callable[..., Any], broadcast: Any, state: tuple[Any] | None, found: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    index = pyspark.TaskContext.get().partitionId()
    yield index, works.tried(work, broadcast.value, index, found, *(state or ()))


def _run_arrow(work: Callable[..., Any], broadcast: Any, state: tuple[Any] | None, table: Table, batches: Any) -> Any:
    pa = importlib.import_module("pyarrow")

    dicts = (_of_batch(batch, broadcast.value, table) for batch in batches if batch.num_rows)
    for result in _run(work, broadcast, state, dicts):
        yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(result)]})


def _unpacked(rows: Iterable[Any]) -> Iterator[Any]:
    return (pickle.loads(row.result) for row in rows)


def _of_batch(batch: Any, job: Job, table: Table) -> dict[str, Any]:
    return of_table(batch.schema.names, lambda name: of_arrow(batch.column(name)), job.types, table)


def _predict_items(batch: int, broadcast: Any, found: Iterable[Any]) -> Iterator[Any]:
    for outputs in works.predict(batch, broadcast.value, found):
        yield outputs[0] if len(outputs) == 1 else outputs


def _predict_arrow(batch: int, broadcast: Any, table: Table, batches: Any) -> Any:
    pa = importlib.import_module("pyarrow")

    job: Job = broadcast.value
    for rows in batches:
        if not rows.num_rows:
            continue
        outputs = works.predict_partition(batch, None, job, 0, _of_batch(rows, job, Table(table.columns)))
        arrays = [*rows.columns, *(_lists(output) for output in outputs)]
        yield pa.RecordBatch.from_arrays(arrays, [*rows.schema.names, *(name for name, _ in job.outputs)])


def _lists(output: Any) -> Any:
    import numpy as np

    pa = importlib.import_module("pyarrow")

    flat = np.ascontiguousarray(output).reshape(-1)
    return pa.ListArray.from_arrays(pa.array(np.arange(len(output) + 1, dtype=np.int32) * (flat.size // max(len(output), 1))),
                                    pa.array(flat))


def _fields(job: Job) -> list[Any]:
    """A column for each output: a list of its numbers in a row."""
    types = importlib.import_module("pyspark.sql.types")
    kinds = {"float32": types.FloatType(), "float64": types.DoubleType(), "int64": types.LongType(), "int32": types.IntegerType(),
             "int16": types.ShortType(), "int8": types.ByteType(), "bool": types.BooleanType()}
    fields = []
    for name, dtype in job.outputs:
        if dtype not in kinds:
            raise TypeError(f'the output "{name}" has elements of type {dtype}, which columns of Spark do not have')
        fields.append(types.StructField(name, types.ArrayType(kinds[dtype], False), False))
    return fields


def udf(model: Any, batch: int = 32, attrs: Any = None, output: int = 0) -> Any:
    """A pandas UDF of one input: scores = udf(model); frame.select(scores("pixels")). The column has flat lists or numbers, the
    result has the output in flat lists."""
    pd, functions = importlib.import_module("pandas"), importlib.import_module("pyspark.sql.functions")
    job = Job.of([model], attrs=attrs, threads=1)
    context = _context(None, None)
    broadcast, field = shared(context, job), _fields(job)[output]
    (name,) = [name for name, _, _ in job.inputs] if len(job.inputs) == 1 else (None,)
    if name is None:
        raise ValueError(f"the model has {len(job.inputs)} inputs, and a UDF has one column: use predict")

    def scores(found: Any) -> Any:
        from qtensor.distributed.columns import of_pandas

        for series in found:
            rows = of_pandas(series.to_frame(name), broadcast.value.types, Table())
            result = works.predict_partition(batch, None, broadcast.value, 0, rows)[output]
            yield pd.Series(list(result.reshape(len(result), -1)))

    scores.__annotations__ = dict.fromkeys(("found", "return"), GenericAlias(Iterator, pd.Series))  # by which Spark knows its kind
    return functions.pandas_udf(scores, field.dataType)
