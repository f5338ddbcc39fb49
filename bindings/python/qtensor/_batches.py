# SPDX-License-Identifier: Apache-2.0
"""What Model.quantize_qat takes as data, as the batches that the library asks for: those of an epoch in turn, but some of
the first one beforehand, to calibrate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from qtensor import core
from qtensor._arrays import KEPT_BYTES, SAMPLE_BYTES, copied, inputs_of, kind, targets_of
from qtensor._samples import need_methods

if TYPE_CHECKING:
    from qtensor import _mixins
    from qtensor._arrays import Types


class _Epochs:
    """The epochs of an iterable that can be iterated again, like a DataLoader: each may have another order. Batches that are not asked
    for are left out."""

    def __init__(self, source: Any) -> None:
        self._source, self._iterator = source, iter(())  # type: tuple[Any, Iterator[Any]]
        self._at: tuple[int, int] | None = None
        self._last: Any = None

    def __len__(self) -> int:
        return len(self._source)

    def get(self, epoch: int, index: int) -> Any:
        if self._at is None or self._at[0] != epoch or self._at[1] > index:
            self._iterator, self._at = iter(self._source), (epoch, -1)
        for at in range(self._at[1] + 1, index + 1):
            try:
                self._last = next(self._iterator)
            except StopIteration:
                raise ValueError(f"batches is a {kind(self._source)} of {len(self)}, but epoch {epoch} has only "
                                 f"{at}") from None
            self._at = epoch, at
        return self._last


class _Listed:
    """Of what has an index, the same in each epoch."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def get(self, epoch: int, index: int) -> Any:
        return self._source[index]


class _OfModel(core.Batches):
    """What the library asks for batches."""

    def __init__(self, types: tuple[Types, list[str]]) -> None:
        super().__init__()
        self._model_types = types

    def batch(self, epoch: int, index: int) -> list[Any]:
        inputs, targets = self._parts(epoch, index)
        return inputs + targets

    def _parts(self, epoch: int, index: int) -> tuple[list[Any], list[Any]]:
        raise NotImplementedError


class _Pairs(_OfModel):
    def __init__(self, source: _Epochs | _Listed, types: tuple[Types, list[str]]) -> None:
        super().__init__(types)
        self._source = source

    def count(self) -> int:
        return len(self._source)

    def target_count(self) -> int:
        return len(self._parts(0, 0)[1]) if len(self._source) else 1

    def _parts(self, epoch: int, index: int) -> tuple[list[Any], list[Any]]:
        return _pair(self._source.get(epoch, index), f"batch {index}", self._model_types)


class _Asked(_OfModel):
    """Of a program's own class, which gives inputs and targets in one list."""

    def __init__(self, source: core.Batches, types: tuple[Types, list[str]]) -> None:
        super().__init__(types)
        self._source = source

    def count(self) -> int:
        return self._source.count()

    def target_count(self) -> int:
        return self._source.target_count()

    def _parts(self, epoch: int, index: int) -> tuple[list[Any], list[Any]]:
        values = list(self._source.batch(epoch, index))
        inputs, outputs = self._model_types
        return (inputs_of(values[:len(inputs)], inputs, f"inputs of batch {index}"),
                targets_of(values[len(inputs):], outputs, f"targets of batch {index}"))


def _pair(batch: Any, name: str, types: tuple[Types, list[str]]) -> tuple[list[Any], list[Any]]:
    if not isinstance(batch, (list, tuple)) or len(batch) != 2:
        found = f" of {len(batch)}" if isinstance(batch, (list, tuple)) else ""
        raise TypeError(f"{name} is a {kind(batch)}{found}, not a pair of inputs and targets")
    inputs, outputs = types
    return inputs_of(batch[0], inputs, f"inputs of {name}"), targets_of(batch[1], outputs, f"targets of {name}")


def _kept(batches: Iterable[Any], types: tuple[Types, list[str]]) -> list[Any]:
    """What gives batches once, for the epochs to come. Tensors are copies, because it may fill the same array again."""
    kept: list[Any] = []
    held = 0
    for batch in batches:
        parts = _pair(batch, f"batch {len(kept)}", types)
        kept.append([[tensor if tensor is None else copied(tensor) for tensor in part] for part in parts])
        held += SAMPLE_BYTES + sum(tensor.nbytes for part in parts for tensor in part if tensor is not None)
        if held > KEPT_BYTES:
            raise ValueError(f"batches is a {kind(batches)}, whose batches are kept, and {len(kept)} of them take {held} "
                             f"bytes, more than {KEPT_BYTES}: pass a list, a DataLoader, or a qtensor.Batches, which is "
                             "asked for each")
    return kept


def batches_of(batches: Any, model: _mixins.Model) -> core.Batches:
    types = model.inputs, model.outputs
    if isinstance(batches, core.Batches):
        need_methods(batches, core.Batches, "count", "batch")
        return _Asked(batches, types)
    if hasattr(batches, "__getitem__") and hasattr(batches, "__len__") and not isinstance(batches, Mapping):
        return _Pairs(_Listed(batches), types)
    if not isinstance(batches, Iterable) or isinstance(batches, Mapping):
        raise TypeError(f"batches is of type '{kind(batches)}', not a list of pairs of inputs and targets, an iterable of "
                        "them, a DataLoader or a Batches")
    return _Pairs(_Epochs(batches) if _has_epochs(batches) else _Listed(_kept(batches, types)), types)


def _has_epochs(batches: Any) -> bool:
    try:
        return len(batches) > 0 and not isinstance(batches, Iterator)
    except TypeError:  # a DataLoader of an IterableDataset has no length, though it has the method
        return False
