# SPDX-License-Identifier: Apache-2.0
"""What Model.quantize takes as data, as the samples that the library asks for: by index, in any order, more than once,
and always the same one for an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from qtensor import core
from qtensor._arrays import KEPT_BYTES, SAMPLE_BYTES, copied, could_fit, fitted, inputs_of, is_array, kind, named, of
from qtensor._arrays import shape_of_numbers
from qtensor._enums import DType
from qtensor._errors import Error

if TYPE_CHECKING:
    from qtensor import _mixins
    from qtensor._arrays import Types


class _Rows(core.Samples):
    """Of one array for each input. Rows keep the axis of the batch where the model has one, and are as many together as
    it fixes."""

    def __init__(self, arrays: list[Any], own: list[bool], types: Types) -> None:
        super().__init__()
        self._arrays, self._own, self._types = arrays, own, list(types.items())
        shape = self._types[0][1][1]
        self._batch = 0 if len(shape) == len(arrays[0].shape) - 1 else max(shape[0], 1) if shape else 1
        rows = len(arrays[0])
        if self._batch and rows % self._batch:
            advice = f": pass data[:{rows - rows % self._batch}]" if rows > self._batch else ""
            raise ValueError(f"data has {rows} rows, no multiple of the batch of {self._batch} that the model fixes{advice}")

    def count(self) -> int:
        return len(self._arrays[0]) // (self._batch or 1)

    def sample(self, index: int) -> list[Any]:
        first = index * self._batch
        rows = slice(first, first + self._batch) if self._batch else index
        found = [array[rows] for array in self._arrays]
        if len(found) != len(self._types):
            return found
        names = [f'sample {index}, input "{name}"' for name, _ in self._types]
        return [fitted(of(row, name), dtype, name, own)
                for row, name, own, (_, (dtype, _)) in zip(found, names, self._own, self._types)]


class _Calls(core.Samples):
    """Of samples one by one, or batches of them: what each call of the library is given, as it came."""

    def __init__(self, types: Types) -> None:
        super().__init__()
        self._types = types
        self._calls: list[list[tuple[core.Tensor, bool]]] = []

    def count(self) -> int:
        return len(self._calls)

    def sample(self, index: int) -> list[Any]:
        call = self._calls[index]
        if len(call) != len(self._types):
            return [tensor for tensor, _ in call]
        return [fitted(tensor, dtype, f'sample {index}, input "{name}"', own)
                for (tensor, own), (name, (dtype, _)) in zip(call, self._types.items())]

    def keep(self, first: int) -> None:
        """Copies what the calls from this one on are given."""
        for call in self._calls[first:]:
            call[:] = [(copied(tensor), own) for tensor, own in call]

    def add(self, item: Any, name: str) -> int:
        """How many bytes the tensors have."""
        values = values_of(item, self._types, name)
        shapes = [shape for _, shape in self._types.values()]
        if len(values) != len(shapes):
            shapes = [()] * len(values)
        if any(value is None for value in values):
            raise TypeError(f"{name} has None where a Tensor or an array is wanted")
        several = len(values) == len(self._types) > 1
        names = [f'{name}, input "{of_input}"' for of_input in self._types] if several else [name] * len(values)
        tensors = [of(value, of_input) for value, of_input in zip(values, names)]
        parts = [parts_of(tensor, shape, name) for tensor, shape in zip(tensors, shapes)]
        counts = {len(part) for part in parts if len(part) != 1}
        if len(counts) > 1:
            raise ValueError(f"{name} has inputs of {' and '.join(str(n) for n in sorted(counts))} batches")
        own = [isinstance(value, core.Tensor) for value in values]
        for i in range(counts.pop() if counts else 1):
            self._calls.append([(part[min(i, len(part) - 1)], mine) for part, mine in zip(parts, own)])
        return sum(tensor.nbytes for tensor in tensors)


class _Asked(core.Samples):
    """Of a program's own class, for as long as it gives what inputs take."""

    def __init__(self, source: core.Samples, types: Types) -> None:
        super().__init__()
        self._source, self._types = source, types

    def count(self) -> int:
        return self._source.count()

    def sample(self, index: int) -> list[Any]:
        name, values = f"sample {index}", self._source.sample(index)
        return inputs_of(named(values, self._types, name) if isinstance(values, Mapping) else values, self._types, name)


# --- how a sample fits an input


def _layout(shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """How an array of this shape goes into an input: "whole", in "batches" of the fixed size (or would, were it not
    "uneven"), row by row ("rows"), with an axis of the batch to come ("one"); "" if not at all."""
    def same(some: tuple[int, ...], others: tuple[int, ...]) -> bool:
        return all(other in (-1, size) for size, other in zip(some, others))

    extra = len(shape) - len(wanted)
    if not wanted:
        return "whole"
    if extra == 0 and same(shape[1:], wanted[1:]):
        return "whole" if wanted[0] in (-1, shape[0]) else "uneven" if shape[0] % max(wanted[0], 1) else "batches"
    if extra == -1 and same(shape, wanted[1:]) and wanted[0] in (-1, 1):
        return "one"
    return "rows" if extra == 1 and same(shape[1:], wanted) else ""


def parts_of(tensor: core.Tensor, wanted: tuple[int, ...], name: str) -> list[core.Tensor]:
    """What the calls for one sample or batch are given. What does not fit goes to the library, which says why."""
    shape = tensor.shape
    layout = _layout(shape, wanted)
    if layout == "one":
        return [tensor.reshape([1, *shape])]
    if layout == "rows":
        return [tensor.select(0, i) for i in range(shape[0])]
    if layout == "batches":
        return [tensor.slice(0, i, i + wanted[0]) for i in range(0, shape[0], wanted[0])]
    if layout == "uneven":
        raise ValueError(f"{name} has {shape[0]} rows, no multiple of the batch of {wanted[0]} that the model fixes: leave "
                         "the last batch out where it is not full, as drop_last=True of a DataLoader does")
    return [tensor]


def values_of(item: Any, types: Types, name: str) -> list[Any]:
    """One value for each input, of an item of the data: those of a dict, of a list of them, or the only one, which may
    have its label beside it."""
    if isinstance(item, Mapping):
        return named(item, types, name)
    if not isinstance(item, (list, tuple)) or _is_of_numbers(item, len(types)):
        return [item]
    if len(item) == 2 and isinstance(item[0], (list, tuple, Mapping)) and shape_of_numbers(item[0]) is None:
        return values_of(item[0], types, name)  # ([x1, x2], y)
    if len(item) == 2 and len(types) == 1:
        return [_input_beside_label(item, types, name)]
    return list(item)


def _is_of_numbers(item: Any, inputs: int) -> bool:
    """Whether a list is one array: not where it has one for each of several inputs, nor is a tuple of two lists."""
    if not item or len(item) == inputs > 1 or (isinstance(item, tuple) and isinstance(item[0], (list, tuple))):
        return False
    return shape_of_numbers(item) is not None


def _input_beside_label(pair: Any, types: Types, name: str) -> Any:
    """The first of (x, y), if it fits the input and y could not be another one."""
    (wanted, (dtype, shape)), = types.items()

    def fit(value: Any) -> tuple[str, DType] | None:
        try:
            tensor = of("" if value is None else value, name)
        except (TypeError, Error):
            return None
        layout = _layout(tensor.shape, shape)
        return (layout, tensor.dtype) if layout and could_fit(tensor.dtype, dtype) else None

    x, y = (fit(value) for value in pair)
    told = f"{name} is a {kind(pair)} of {_told(pair[0])} and {_told(pair[1])}"
    takes = f'the model has one input, "{wanted}", {dtype.name} {list(shape)}'
    if x is None:
        raise ValueError(f"{told}, and {takes}, which the first does not fit: pass arrays, or pairs of one and its "
                         "label")
    if y is not None and y[0] == x[0] and y[1] in (x[1], dtype):
        raise ValueError(f"{told}, and {takes}, which both fit: if the second is a label, pass the first alone")
    return pair[0]


def _told(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return kind(value) + (f" {list(shape)}" if shape is not None else "")


# --- every form of data


def need_methods(data: Any, base: type, *names: str) -> None:
    for name in names:
        if getattr(type(data), name) is getattr(base, name):
            raise TypeError(f"{kind(data)} is a {base.__name__} without the method {name}()")


def samples_of(data: Any, model: _mixins.Model) -> core.Samples:
    types = model.inputs
    if isinstance(data, core.Samples):
        need_methods(data, core.Samples, "count", "sample")
        return _Asked(data, types)
    if isinstance(data, Mapping):
        return _rows(named(data, types, "data"), types)
    if is_array(data):
        return _rows([data], types)
    if isinstance(data, (list, tuple)):
        calls = _Calls(types)
        for i, item in enumerate(data):
            calls.add(item, f"sample {i}")
        return calls
    return _kept(data, _items(data), types)


def _rows(arrays: list[Any], types: Types) -> _Rows:
    rows = [a if hasattr(a, "shape") and not isinstance(a, memoryview) else of(a, "data") for a in arrays]
    for array, name in zip(rows, types):
        if not array.shape:
            raise ValueError(f'data for the input "{name}" is a scalar; the first axis runs over samples')
        if len(array) != len(rows[0]):
            first = next(iter(types))
            raise ValueError(f'data has {len(rows[0])} rows for the input "{first}", and {len(array)} for "{name}"')
    return _Rows(rows, [isinstance(array, core.Tensor) for array in arrays], types)


def _items(data: Any) -> Iterator[Any]:
    """Of what can be iterated, or asked by index up to its length, as a Dataset of PyTorch."""
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return iter(data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (str, bytes)):
        return (data[i] for i in range(len(data)))
    raise TypeError(f"data is of type '{kind(data)}', not an array, an iterable of samples, a Dataset, a DataLoader or a "
                    "Samples")


def _kept(data: Any, items: Iterator[Any], types: Types) -> _Calls:
    """What gives samples in turn is asked for each one once, because another time it may give others, as where pictures
    are turned at random. Tensors are copies, because it may fill the same array again."""
    calls = _Calls(types)
    held = 0
    for i, item in enumerate(items):
        first = calls.count()
        held += calls.add(item, f"sample {i}") + SAMPLE_BYTES
        if held > KEPT_BYTES:
            raise ValueError(f"data is a {kind(data)}, whose samples are kept, and {i + 1} of them take {held} bytes, more "
                             f"than {KEPT_BYTES}: pass fewer, an array, a list, or a qtensor.Samples, which is asked by "
                             "index")
        calls.keep(first)
    return calls
