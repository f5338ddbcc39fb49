# SPDX-License-Identifier: Apache-2.0
"""Partitions on MPI, with mpi4py: every rank calls the same function with the same list, and computes the partitions whose index
leaves its rank when divided by the number of ranks. Rank 0 merges, and every rank gets what comes of that, or raises the same
error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qtensor._errors import CanceledError
from qtensor.distributed.job import Job
from qtensor.distributed.local import Local
from qtensor.distributed.work import Failed

RESULT, STATE = 7101, 7102  # tags of messages


class Mpi(Local):
    def __init__(self, dataset: Any, comm: Any) -> None:
        super().__init__(dataset)
        self._comm = comm
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self.is_driver = self._rank == 0

    def each(self, work: Callable[..., Any], job: Job, todo: Sequence[int]) -> Iterator[tuple[int, Any]]:
        job, todo = self._comm.bcast((job, list(todo)))
        mine = (index for index in todo if index % self._size == self._rank)
        results = ((index, _tried(work, job, index, self._partitions[index])) for index in mine)
        if self.is_driver:
            yield from self._gathered(results, sum(index % self._size != 0 for index in todo))
            return
        for request in [self._comm.isend(result, 0, RESULT) for result in results]:
            request.wait()
        self._end()

    def _gathered(self, own: Iterator[tuple[int, Any]], others: int) -> Iterator[tuple[int, Any]]:
        """Own results, and between them those of other ranks. Whatever happens here, the others hear the end of it."""
        failed: Failed | None = Failed(CanceledError("rank 0 has ended the work"))
        errors: list[Failed] = []

        def good(found: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
            errors.extend(result for _, result in found if isinstance(result, Failed))
            return [] if errors else found

        def received(waiting: bool) -> list[tuple[int, Any]]:
            nonlocal others
            found = []
            while others and (waiting or self._comm.iprobe(tag=RESULT)):
                found.append(self._comm.recv(tag=RESULT))
                others, waiting = others - 1, False
            return found

        try:
            for result in own:
                yield from good([result, *received(False)])
            while others:
                yield from good(received(True))
            failed = errors[0] if errors else None
        finally:
            while others:
                received(True)
            self._comm.bcast(failed)
        if failed is not None:
            raise failed.error

    def _end(self, failed: Failed | None = None) -> None:
        failed = self._comm.bcast(failed)
        if failed is not None:
            raise failed.error

    def chain(self, work: Callable[..., Any], job: Job) -> Iterator[tuple[int, Any]]:
        job = self._comm.bcast(job)
        count, state = len(self._partitions), None
        for index in range(self._rank, count, self._size):
            if index and self._size > 1:
                state = self._comm.recv(source=(index - 1) % self._size, tag=STATE)
            if not isinstance(state, Failed):
                state = _tried(work, job, index, self._partitions[index], state)
            to = 0 if index == count - 1 else (index + 1) % self._size
            if to != self._rank:
                self._comm.send(state, to, STATE)
        if self.is_driver and count and (count - 1) % self._size:
            state = self._comm.recv(source=(count - 1) % self._size, tag=STATE)
        self._end(state if self.is_driver and isinstance(state, Failed) else None)
        if self.is_driver and count:
            yield count - 1, state

    def agreed(self, value: Any) -> Any:
        return self._comm.bcast(value)


def _tried(work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except Exception as error:
        return Failed(error)
