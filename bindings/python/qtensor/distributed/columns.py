# SPDX-License-Identifier: Apache-2.0
"""Columns of tables as inputs: numbers, lists of numbers, or tensors of one shape in each row. A column with flat lists takes
the shape of the rows of its input."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

if TYPE_CHECKING:
    from qtensor._arrays import Types

Columns = Mapping[str, Union[str, Sequence[str]]]
"""By the name of an input: the column that holds it, or columns of numbers that are its elements. What has no entry is looked for
under its own name."""


class Table(NamedTuple):
    """How a program says what is where."""

    columns: Columns | None = None
    label: str | None = None


def of_table(names: Sequence[str], column: Callable[[str], Any], types: Types, table: Table) -> dict[str, Any]:
    """An array for each input, and the labels where the table has them. `column` gives one by its name, as an array."""
    import numpy as np

    found: dict[str, Any] = {}
    chosen, label = dict(table.columns or {}), table.label
    unknown = [name for name in chosen if name not in types and name != label]
    if unknown:
        raise ValueError(f'columns names "{unknown[0]}", and the model has the inputs {", ".join(types)}')
    for name, (_, shape) in types.items():
        wanted = chosen.get(name, name)
        several = [wanted] if isinstance(wanted, str) else list(wanted)
        missing = [one for one in several if one not in names]
        if missing:
            raise ValueError(f'the table has the columns {", ".join(names)}, and no "{missing[0]}" for the input "{name}": '
                             'pass columns={"input": "column"}')
        array = column(wanted) if isinstance(wanted, str) else np.stack([column(one) for one in several], axis=1)
        found[name] = shaped(array, shape, name)
    under = chosen.get(label, label) if label is not None else None
    if label is not None and isinstance(under, str) and under in names:
        found[label] = column(under)
    return found


def shaped(array: Any, shape: tuple[int, ...], name: str) -> Any:
    """Rows of flat lists in the shape of an input's rows."""
    row = shape[1:]
    if array.ndim == 2 and len(row) > 1:
        if any(extent < 0 for extent in row) or math.prod(row) != array.shape[1]:
            raise ValueError(f'the column for the input "{name}" has {array.shape[1]} numbers in a row, and rows of the input '
                             f"have the shape {list(row)}: store tensors of that shape")
        return array.reshape(len(array), *row)
    return array


def of_pandas(frame: Any, types: Types, table: Table) -> dict[str, Any]:
    import numpy as np

    def column(name: str) -> Any:
        values = frame[name].to_numpy()
        return np.stack([np.asarray(value) for value in values]) if values.dtype == object and len(values) else values

    return of_table(list(frame.columns), column, types, table)


def of_arrow(column: Any) -> Any:
    """A column of Arrow as an array whose first axis runs over rows."""
    import numpy as np

    pa = importlib.import_module("pyarrow")

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of extension types, where there is more than one chunk
            return np.concatenate([of_arrow(chunk) for chunk in column.chunks])
    if column.null_count:
        raise ValueError(f"a column of {column.type} has {column.null_count} rows without a value")
    if isinstance(column.type, pa.FixedShapeTensorType):
        return column.to_numpy_ndarray()
    lengths = [len(column)]
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        flat = column.flatten()
        rows = len(column)
        lengths.append(len(flat) // rows if rows else 0)
        if not pa.types.is_fixed_size_list(column.type):
            sizes = np.diff(column.offsets.to_numpy())
            if rows and (sizes != sizes[0]).any():
                raise ValueError(f"a column of {column.type} has lists of {sizes.min()} to {sizes.max()} elements, which are no "
                                 "tensors of one shape")
        column = flat
        if column.null_count:
            raise ValueError(f"a list of {column.type} has {column.null_count} elements without a value")
    values = column.to_numpy(zero_copy_only=False)
    return values.reshape(lengths)
