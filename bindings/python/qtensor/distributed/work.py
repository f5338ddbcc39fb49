# SPDX-License-Identifier: Apache-2.0
"""What a worker does with one partition, on whatever engine. A result follows from the job and the partition alone, so one
that is computed again, because a worker died, is the same one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from typing import Any

from qtensor import core
from qtensor._errors import Error
from qtensor.distributed.job import Job, prepared, scratch, session
from qtensor.distributed.rows import Rows, calls, inputs_of_pair, items, labelled, labels_of, rows_of
from qtensor.distributed.sums import Sums


class PartitionError(ValueError):
    """What is wrong with a partition; the message says with which one."""


def _placed(index: int, error: Exception) -> Exception:
    """The same error of the library, whose message says where."""
    text = f"partition {index}: {error}"
    return type(error)(text) if isinstance(error, Error) else PartitionError(text)


class Failed:
    """An error on its way to other processes, where it is raised as it was."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def tried(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result, or what is wrong with the data. Computing that again, as engines do where a worker fails, would not help."""
    try:
        return work(*arguments)
    except (Error, PartitionError) as error:
        return Failed(error)


def calibrate(batch: int, job: Job, index: int, partition: Any, state: bytes | None = None) -> bytes:
    """The calibration file of a partition; or that of all up to this one, where it is given that of those before."""
    try:
        model = prepared(job)
        with scratch() as folder:
            path = os.path.join(folder, "calibration.qcal")
            if state is not None:
                with open(path, "wb") as file:
                    file.write(state)
                model.load_calibration(path)
            for call in calls(_rows(items(partition), model.inputs), model.inputs, batch):
                model._calibrate(call)
            model.save_calibration(path)
            with open(path, "rb") as file:
                return file.read()
    except (Error, ValueError, TypeError) as error:
        raise _placed(index, error) from error


def predict(batch: int, job: Job, found: Iterable[Any]) -> Iterator[list[Any]]:
    """Arrays for each item: one for each output, with the axis of the batch where the item has it."""
    running = session(job)
    for rows, outputs in _outputs(running, _rows(found, running.inputs), batch):
        yield [output[0] for output in outputs] if rows.single else outputs


def predict_partition(batch: int, sink: Callable[[int, list[Any]], Any] | None, job: Job, index: int,
                      partition: Any) -> Any:
    """One array for each output, with the rows of the whole partition; or what `sink` makes of them."""
    import numpy as np

    try:
        running = session(job)
        parts = [outputs for _, outputs in _outputs(running, _rows(items(partition), running.inputs), batch)]
        if not parts:
            raise ValueError("it is empty, so that the shapes of its outputs are not known")
        outputs = [np.concatenate(column) for column in zip(*parts)]
    except (Error, ValueError, TypeError) as error:
        raise _placed(index, error) from error
    return outputs if sink is None else sink(index, outputs)


def evaluate(batch: int, label: str | None, job: Job, index: int, partition: Any) -> Sums:
    """`job` has the model, and after it the reference, if there is one. `label`: None where items are inputs alone."""
    sums = Sums()
    try:
        models = [session(job, i) for i in range(len(job.models))]
        types = models[0].inputs
        labels: deque[list[int] | None] = deque()

        def rows() -> Iterator[Rows]:
            for i, item in enumerate(items(partition)):
                name = f"item {i}"
                if label is None:
                    labels.append(None)
                    yield rows_of(item, types, name)
                else:
                    inputs, given = labelled(item, label, name)
                    found = inputs_of_pair(inputs, types, name)
                    labels.append(labels_of(given, found.count, name))
                    yield found

        runs = [_outputs(model, found, batch) for model, found in zip(models, tee(rows(), len(models)))]
        for of_models in zip(*runs):
            outputs = [of_model[1] for of_model in of_models]
            sums.add(outputs[0], outputs[1] if len(outputs) > 1 else None, labels.popleft())
        return sums
    except (Error, ValueError, TypeError) as error:
        raise _placed(index, error) from error


def _rows(found: Iterable[Any], types: Any) -> Iterator[Rows]:
    return (rows_of(item, types, f"item {i}") for i, item in enumerate(found))


def _outputs(running: core.Session, found: Iterator[Rows], batch: int) -> Iterator[tuple[Rows, list[Any]]]:
    """The outputs for the rows of each item. Calls are filled with rows of several items, and what comes of them is divided
    among these again."""
    import numpy as np

    pending: deque[Rows] = deque()
    held: list[list[Any]] = []  # arrays for each call, that no item has got yet

    def told() -> Iterator[Rows]:
        for rows in found:
            pending.append(rows)
            yield rows

    def divided() -> Iterator[tuple[Rows, list[Any]]]:
        have = sum(len(call[0]) for call in held)
        if not pending or have < pending[0].count or not held:
            return
        columns = [np.concatenate(column) if len(held) > 1 else column[0] for column in zip(*held)]
        at = 0
        while pending and at + pending[0].count <= have:
            rows = pending.popleft()
            yield rows, [column[at : at + rows.count] for column in columns]
            at += rows.count
        held[:] = [[column[at:] for column in columns]]

    for call in calls(told(), running.inputs, batch):
        outputs = [output.numpy() for output in running.run(call)]
        if pending[0].whole:
            outputs = [output[None] for output in outputs]
        for name, output in zip(running.outputs, outputs):
            if output.ndim == 0 or (not pending[0].whole and len(output) != call[0].shape[0]):
                raise ValueError(f'the output "{name}" has shape {list(output.shape)} for {call[0].shape[0]} rows, and rows '
                                 "are along the first axis")
        held.append(outputs)
        yield from divided()
    if pending and not held:  # of no rows
        held.append([output.numpy() for output in running.run(pending[0].tensors)])
    yield from divided()
