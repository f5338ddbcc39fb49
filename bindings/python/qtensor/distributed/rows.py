# SPDX-License-Identifier: Apache-2.0
"""The items of a partition as calls of the library. An item is a sample or a batch of them; a call has so many rows as the
program says, however they came in batches, so that results do not depend on that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qtensor import core
from qtensor._arrays import copied, fitted, is_array, kind, of
from qtensor._samples import _is_of_numbers, _layout, values_of

if TYPE_CHECKING:
    from qtensor._arrays import Types


@dataclass(frozen=True)
class Rows:
    """What an item holds: a tensor for each input, whose first axis runs over rows."""

    tensors: list[core.Tensor]
    single: bool
    """The item had no axis of the batch, so its outputs have none either."""
    whole: bool
    """The model has no axis of the batch: a call takes one row without it."""

    @property
    def count(self) -> int:
        return self.tensors[0].shape[0]


def items(partition: Any) -> Iterator[Any]:
    """What a partition gives in turn. It is an array whose rows are samples, a dict of such arrays, something that can be
    iterated, or a function without arguments that gives one of these."""
    if callable(partition) and not is_array(partition):
        partition = partition()
    if isinstance(partition, Mapping) or is_array(partition):
        return iter([partition])
    if isinstance(partition, (str, bytes)) or not isinstance(partition, Iterable):
        raise TypeError(f"a partition is of type '{kind(partition)}', not an array, samples in turn, or a function that "
                        "gives one of these")
    return iter(partition)


def rows_of(item: Any, types: Types, name: str) -> Rows:
    values = values_of(item, types, name)
    if len(values) != len(types):
        raise ValueError(f"{name} has {len(values)} tensors, but the model {len(types)} inputs")
    tensors, layouts = [], []
    for value, (wanted, (dtype, shape)) in zip(values, types.items()):
        what = f'{name}, input "{wanted}"'
        tensor = fitted(of(value, what), dtype, what, isinstance(value, core.Tensor))
        layout = _layout(tensor.shape, shape) if shape else ""
        if not layout:
            raise ValueError(f"{what} has shape {list(tensor.shape)}, and the model takes {list(shape)}, with rows along the "
                             "first axis")
        layouts.append(layout)
        tensors.append(tensor.reshape([1, *tensor.shape]) if layout == "one" else tensor)
    counts = {tensor.shape[0] for tensor in tensors}
    if len(counts) > 1 or len({layout in ("one", "rows") and layout for layout in layouts}) > 1:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
        raise ValueError(f"{name} has inputs of shapes {shapes}, whose rows do not go together")
    return Rows(tensors, layouts[0] == "one", layouts[0] == "rows")


def labelled(item: Any, label: str, name: str) -> tuple[Any, Any]:
    """Inputs and labels of a pair, or of a dict that has the labels under a name."""
    if isinstance(item, Mapping):
        if label not in item:
            raise ValueError(f'{name} is a {kind(item)} without labels under "{label}"')
        return {key: value for key, value in item.items() if key != label}, item[label]
    if not isinstance(item, (list, tuple)) or len(item) != 2:
        raise TypeError(f"{name} is a {kind(item)}, not a pair of inputs and labels, nor a dict with labels")
    return item[0], item[1]


def inputs_of_pair(inputs: Any, types: Types, name: str) -> Rows:
    """`inputs` without its labels, which values_of() would look for."""
    several = isinstance(inputs, (list, tuple)) and not _is_of_numbers(inputs, len(types))
    return rows_of(inputs if several or isinstance(inputs, Mapping) else [inputs], types, name)


def labels_of(value: Any, count: int, name: str) -> list[int]:
    """Class numbers, one for each row."""
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.size != count:
        raise ValueError(f"{name} has labels of {array.dtype} {list(array.shape)}, not {count} class numbers")
    return [int(label) for label in array.reshape(-1)]


def fixed_batch(types: Types) -> int:
    """How many rows the model fixes for a call; 0: as many as one likes."""
    if not types:
        raise ValueError("the model has no inputs to feed")
    shape = next(iter(types.values()))[1]
    return max(shape[0], 0) if shape else 0


def calls(found: Iterable[Rows], types: Types, batch: int) -> Iterator[list[core.Tensor]]:
    """The tensors of each call. The last one may have fewer rows where the model leaves its batch open."""
    if batch < 1:
        raise ValueError(f"batch is {batch}, and a call has 1 row or more")
    fixed = fixed_batch(types)
    size = fixed or batch
    held: list[list[core.Tensor]] = []
    filled = 0
    for rows in found:
        if rows.whole:
            yield from ([tensor.select(0, i) for tensor in rows.tensors] for i in range(rows.count))
            continue
        at = 0
        while at < rows.count:
            taken = min(size - filled, rows.count - at)
            held.append([tensor.slice(0, at, at + taken) for tensor in rows.tensors])
            at, filled = at + taken, filled + taken
            if filled == size:
                yield joined(held)
                held, filled = [], 0
            else:  # what gave it may fill the same array again
                held[-1] = [copied(tensor) for tensor in held[-1]]
    if fixed and filled:
        raise ValueError(f"{filled} rows are left over, and the model fixes its batch at {fixed}: give partitions of a "
                         "multiple of it")
    if held:
        yield joined(held)


def joined(parts: list[list[core.Tensor]]) -> list[core.Tensor]:
    if len(parts) == 1:
        return parts[0]
    return [core.Op.run("Concat", list(column), {"axis": 0})[0] for column in zip(*parts)]
