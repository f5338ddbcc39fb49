# SPDX-License-Identifier: Apache-2.0
"""What programs have, as tensors: arrays of any library, buffers, nested lists of numbers. What the wrapped functions
cannot take themselves, a Tensor or a plain buffer, they ask foreign() for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

from qtensor import core
from qtensor._enums import DType
from qtensor._errors import DTypeError, Error

if TYPE_CHECKING:
    import array

    import numpy.typing as npt

    from qtensor import _mixins

    class SupportsDLPack(Protocol):
        def __dlpack__(self) -> Any: ...

    class SupportsArray(Protocol):
        def __array__(self) -> Any: ...

    Numbers = Union[list[Any], tuple[Any, ...], range]  # a Sequence would be a str, too
    Memory = Union[bytes, bytearray, memoryview, "array.array[Any]"]
    Array = Union[_mixins.Tensor, npt.NDArray[Any], SupportsDLPack, SupportsArray, Memory]
    TensorLike = Union[Array, Numbers]
    Inputs = Union[Array, Mapping[str, Any], Iterable[Union[TensorLike, None]]]
    Types = Mapping[str, tuple[DType, tuple[int, ...]]]

    def of(value: Any, name: str) -> core.Tensor:
        ...
else:
    from qtensor._core import Tensor__of as of

KEPT_BYTES = 2 << 30  # of what gives samples or batches once, and is read more than once
SAMPLE_BYTES = 1 << 10  # about what an object costs beside its elements
CPU, PINNED = 1, 3  # devices of DLPack whose memory a CPU reads
PLAIN = {"float32", "float64", "float16", "uint8", "int8", "uint16", "int16", "int32", "int64", "uint32",
         "uint64", "bool"}
NARROW = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "float8_e4m3fnuz": "uint8",
          "float8_e5m2fnuz": "uint8", "float8_e8m0": "uint8"}  # of ml_dtypes: no buffers have them
PACKED = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8",
          "float4_e2m1": "float32"}  # of ml_dtypes, which have a byte for each
OWN_NAMES = {"float8_e8m0": "float8_e8m0fnu", "float4_e2m1": "float4_e2m1fn"}  # those of ml_dtypes
RANGES = {"bool": (0, 1), "uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
          "int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), (1 << 63) - 1),
          "uint32": (0, (1 << 32) - 1), "uint64": (0, (1 << 64) - 1)}
FEW_BITS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
EXACT = {name: (-(1 << bits), 1 << bits) for name, bits in (("float16", 11), ("float32", 24), ("float64", 53))}
WIDER = {"float64": {"float32"}, "float16": {"float32", "float64"}, "bfloat16": {"float32", "float64"},
         "float32": {"float64"}}  # and float64 for float32, which rounds


def kind(value: Any) -> str:
    """The class of a value, as a program writes it."""
    module, name = type(value).__module__, type(value).__name__
    return name if module == "builtins" else f"{module.split('.')[0]}.{name}"


def quoted(names: Iterable[Any]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def with_keys(values: Mapping[str, Any]) -> str:
    return f"a {kind(values)} with the keys {quoted(values)}" if values else f"an empty {kind(values)}"


def is_array(value: Any) -> bool:
    """Whether this is one array, where a list of arrays may be, too."""
    if hasattr(value, "__dlpack__"):  # first, for it is what most arrays have
        return True
    if isinstance(value, (list, tuple, str, Mapping)):
        return False
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return True
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return True
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def shape_of_numbers(value: Any) -> tuple[int, ...] | None:
    """The shape of nested lists of numbers; None where there is something else in them, or they are no array."""
    if isinstance(value, (list, tuple)):
        inner = {shape_of_numbers(item) for item in value} or {()}
        first = inner.pop()
        return None if inner or first is None else (len(value), *first)
    return () if isinstance(value, (int, float)) or getattr(value, "shape", None) == () else None


def foreign(value: Any, name: str) -> core.Tensor:
    """A tensor of what is neither a Tensor nor a buffer that tensors can be over. `name` says what it is, in messages."""
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)):
        return _of_numpy(np.asarray(value), name)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value, name)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return of_python(value, name)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__") or is_array(value):
        return _of_array(value, name)
    if isinstance(value, Mapping):
        raise TypeError(f"{name} is {with_keys(value)}, not a Tensor or an array: pass what it holds")
    raise TypeError(f"{name} is of type '{kind(value)}', not a Tensor or an array")


def of_python(value: Any, name: str, wide: bool = False) -> core.Tensor:
    """Numbers of Python, in lists or alone: floats become float32, unless they are `wide`."""
    import numpy as np

    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TypeError(f"{name} is a {kind(value)} which is no array: {error}") from None
    if array.dtype == np.float64 and not wide:
        array = array.astype(np.float32)
    return _of_numpy(array, name)


def _of_numpy(array: Any, name: str) -> core.Tensor:
    """Of the types that NumPy may have, those that tensors have."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtype = {own: name for name, own in OWN_NAMES.items()}.get(array.dtype.name, array.dtype.name)
    if dtype in PLAIN:
        return core.Tensor._from_buffer(array, True)
    if dtype in NARROW:
        return core.Tensor._from_buffer(array.view(NARROW[dtype]), True, dtype)
    if dtype in PACKED:
        return cast(core.Tensor._from_buffer(array.astype(PACKED[dtype]), True), DType[dtype])
    wanted = {"f": ': pass .astype("float64")'}.get(array.dtype.kind, "")
    raise TypeError(f"{name} has elements of type {dtype}, which tensors do not have{wanted}")


def _of_array(value: Any, name: str) -> core.Tensor:
    import numpy as np

    try:
        array = np.asarray(value)
    except Exception as error:
        raise TypeError(f"{name} is a {kind(value)} that cannot be read: {error}") from error
    return _of_numpy(array, name)


def _of_dlpack(value: Any, name: str) -> core.Tensor:
    """Over the same memory, or a copy where a tensor cannot be over it: read-only arrays, strides below 0."""
    if getattr(value, "requires_grad", False) is True:
        raise TypeError(f"{name} is a {kind(value)} that requires grad, which is not computed here: pass its detach()")
    if hasattr(value, "is_neg") and value.is_neg():  # a mark of PyTorch's, which DLPack would leave out
        value = value.resolve_neg()
    try:
        device = value.__dlpack_device__()
    except Exception as error:
        raise TypeError(f"{name} is a {kind(value)} that cannot be read: {error}") from error
    if device[0] not in (CPU, PINNED):
        raise TypeError(f"{name} is a {kind(value)} on the device {getattr(value, 'device', device)}, and tensors live on "
                        "the CPU: pass a copy there, as cpu() makes one")
    try:
        return core.Tensor.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError, Error) as error:
        if not hasattr(value, "__array__"):
            raise TypeError(f"{name} is a {kind(value)} that cannot be read: {error}") from error
    return _of_array(value, name)


def copied(tensor: core.Tensor) -> core.Tensor:
    copy = core.Tensor.create(tensor.dtype, tensor.shape, tensor.quantizer)
    copy.copy(tensor)
    return copy


# --- element types


def dtype_of(dtype: Any) -> DType:
    """A DType by its member, name or number, or by a dtype of another library."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, int):
        return DType(dtype)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    try:
        return DType[name.removeprefix("torch.").rstrip("_")]
    except KeyError:
        raise ValueError(f"dtype is {dtype!r}, no DType; there are: {' '.join(DType.__members__)}") from None


def cast(tensor: core.Tensor, dtype: DType) -> core.Tensor:
    return tensor if tensor.dtype is dtype else core.Op.run("Cast", [tensor], {"to": dtype.value})[0]


def check_range(tensor: core.Tensor, target: str, name: str) -> None:
    """Integers that a program has written down are those that it means."""
    bounds = (RANGES | FEW_BITS).get(target)
    if bounds is None or target == "bool" or tensor.dtype.name not in RANGES or not tensor.numel:
        return
    values = tensor.numpy()
    low, high = int(values.min()), int(values.max())
    if low < bounds[0] or high > bounds[1]:
        raise OverflowError(f"{name} has {low if low < bounds[0] else high}, and {target} holds integers from {bounds[0]} to "
                            f"{bounds[1]}")


def copied_array(tensor: core.Tensor) -> Any:
    """A copy of what no buffer shows. A quantized tensor has none."""
    copy = of_ml_dtypes(tensor) if tensor.quantizer is None else None
    if copy is None:
        try:
            memoryview(tensor)  # type: ignore[arg-type]
        except BufferError as error:
            raise TypeError(str(error)) from None
    return copy


def of_ml_dtypes(tensor: core.Tensor) -> Any:
    """A copy of what NumPy has no type for, in those of ml_dtypes; None where that package or the type is missing."""
    import numpy as np

    try:
        dtype = np.dtype(getattr(importlib.import_module("ml_dtypes"), OWN_NAMES.get(tensor.dtype.name, tensor.dtype.name)))
    except (ImportError, AttributeError):
        return None
    if tensor.dtype.name in PACKED:
        return cast(tensor, DType[PACKED[tensor.dtype.name]]).numpy().astype(dtype)
    bits = core.Op.run("BitCast", [tensor], {"to": DType[NARROW[tensor.dtype.name]].value})[0]
    return bits.numpy().view(dtype)


def could_fit(source: DType, target: DType) -> bool:
    """Whether an array of this type may go into an input of that one, as far as types say."""
    return (source is target or target.name in WIDER.get(source.name, ()) or
            (source.name in RANGES and target.name in EXACT | RANGES and target is not DType.bool))


def fitted(tensor: core.Tensor, dtype: DType, name: str, own: bool) -> core.Tensor:
    """An array in the element type that an input takes, where no value is lost but by rounding float64 to float32.
    `own`: it was a Tensor, and its integers stay as they are, for they may be codes of a grid."""
    source, target = tensor.dtype.name, dtype.name
    if tensor.dtype is dtype or tensor.quantizer is not None:
        return tensor
    if target in WIDER.get(source, ()):
        return cast(tensor, dtype)
    if own:
        return tensor
    if not could_fit(tensor.dtype, dtype):
        raise DTypeError(f'{name} takes {target}, not {source}: pass it as {target}, if that is meant')
    lowest, highest = (EXACT | RANGES)[target]
    low, high = RANGES[source]
    if source in ("int32", "int64", "uint32", "uint64") and tensor.numel:  # what NumPy makes of integers of any size
        values = tensor.numpy()
        low, high = int(values.min()), int(values.max())
    if low < lowest or high > highest:
        raise DTypeError(f"{name} takes {target}, which holds all integers from {lowest} to {highest}, not {source} from "
                         f"{low} to {high}: pass it as {target}, if that is meant")
    return cast(tensor, dtype)


def fitted_like(value: Any, dtype: DType, name: str) -> core.Tensor | None:
    """The same for whatever an input is given."""
    return None if value is None else fitted(of(value, name), dtype, name, isinstance(value, core.Tensor))


# --- the inputs of a model


def named(values: Mapping[str, Any], names: Iterable[str], what: str, noun: str = "input") -> list[Any]:
    """The values of a dict in the order of the inputs; a batch may hold more than those."""
    wanted = list(names)
    if all(name in values for name in wanted):
        return [values[name] for name in wanted]
    ours = f'one {noun}, "{wanted[0]}"' if len(wanted) == 1 else f"the {noun}s {quoted(wanted)}"
    example = ", ".join(f'"{name}": ...' for name in wanted)
    raise ValueError(f"{what} is {with_keys(values)}, and the model has {ours}: pass {{{example}}}")


def listed(values: Any, names: Iterable[str], what: str, noun: str = "input") -> list[Any]:
    """One value for each input, of a list of them, a dict by name, or one array."""
    if isinstance(values, (list, tuple)):
        return [values] if values and isinstance(values[0], (int, float)) else list(values)
    if isinstance(values, Mapping):
        wanted = list(names)
        unknown = [name for name in values if name not in wanted]
        if unknown and all(name in values for name in wanted):
            raise ValueError(f"{what} has the keys {quoted(unknown)}, which name none of {quoted(wanted)}")
        return named(values, wanted, what, noun)
    if is_array(values):
        return [values]
    if isinstance(values, Iterable) and not isinstance(values, str):
        return list(values)
    raise TypeError(f"{what} is of type '{kind(values)}', not an array, a list of them, or a dict by name")


def inputs_of(values: Any, types: Types, what: str = "inputs") -> list[Any]:
    """Tensors in the element types of a model; another number of them is for the library to refuse."""
    found = listed(values, types, what)
    if len(found) != len(types):
        return [None if value is None else of(value, f"{what}[{i}]") for i, value in enumerate(found)]
    return [fitted_like(value, dtype, f'input "{name}"') for value, (name, (dtype, _)) in zip(found, types.items())]


def targets_of(values: Any, names: Sequence[str], what: str = "targets") -> list[Any]:
    """The same for what a loss takes: int64 or int32 for labels, else float32."""
    found = []
    for i, value in enumerate(listed(values, names, what, "output")):
        name = f"{what}[{i}]"
        if value is None or isinstance(value, core.Tensor):
            found.append(value)
            continue
        tensor = of(value, name)
        source = tensor.dtype.name
        if source in RANGES and source not in ("int64", "int32", "bool"):
            tensor = cast(tensor, DType.int64)
        elif source in WIDER and source != "float32":
            tensor = cast(tensor, DType.float32)
        found.append(tensor)
    return found
