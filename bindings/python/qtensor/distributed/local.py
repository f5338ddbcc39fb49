# SPDX-License-Identifier: Apache-2.0
"""No engine: one process sees the partitions one after the other. What engines give is what this gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qtensor._arrays import is_array, kind
from qtensor.distributed.job import Job


def listed(dataset: Any) -> Sequence[Any]:
    """Partitions, of a list of them or of one array."""
    if is_array(dataset):
        return [dataset]
    if isinstance(dataset, (list, tuple)):
        return dataset
    raise TypeError(f"a dataset is of type '{kind(dataset)}', not a list of partitions, nor what Dask or Spark have: name the "
                    "engine, or make a list")


class Local:
    """What every engine offers."""

    is_driver = True
    """Whether this process merges what comes of the partitions."""

    told: Callable[[int], None] = staticmethod(lambda done: None)
    """For engines that know how many partitions are done before they have their results."""

    def __init__(self, dataset: Any) -> None:
        self._partitions = listed(dataset)

    def __len__(self) -> int:
        return len(self._partitions)

    def each(self, work: Callable[..., Any], job: Job, todo: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """The results of these partitions, in any order, at the driver."""
        for index in todo:
            yield index, work(job, index, self._partitions[index])

    def chain(self, work: Callable[..., Any], job: Job) -> Iterator[tuple[int, Any]]:
        """The same for work that takes the result of the partition before, in the order of the partitions."""
        state = None
        for index, partition in enumerate(self._partitions):
            state = work(job, index, partition, state)
            yield index, state

    def agreed(self, value: Any) -> Any:
        """What the driver has found, in every process of the program."""
        return value

    def predict(self, work: Callable[..., Any], job: Job, batch: int) -> Any:
        """What every partition gives, in a list; engines have collections of their own."""
        return None
