# SPDX-License-Identifier: Apache-2.0
"""What Python adds to the wrapped classes. Those inherit from the classes of the same name here; for type checkers these
stand on what SWIG wraps, which core.pyi calls _Tensor and so on."""

from __future__ import annotations

import json
import operator
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union

if TYPE_CHECKING:
    from types import EllipsisType, TracebackType

    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Self

    from qtensor import core
    from qtensor._arrays import Inputs, Memory, TensorLike
    from qtensor._enums import DType, Scheme
    from qtensor._report import Report

    Array = npt.NDArray[Any]
    Data = Union[Inputs, core.Samples]
    Settings = Mapping[str, Union[int, float, str, DType, Scheme, list[int], list[float]]]
    Rules = Mapping[str, Union[Settings, None]]
    Index = Union[int, slice, EllipsisType]
    Key = Union[Index, tuple[Index, ...]]
    Output = TypeVar("Output")

    TensorBase = core._Tensor
    QuantizerBase = core._Quantizer
    ObserverBase = core._Observer
    ConfigBase = core._Config
    ModelBase = core._Model
    SessionBase = core._Session
    TrainerBase = core._Trainer
    LayerBase = core._Layer

    def _run(session: Session, inputs: Any) -> list[core.Tensor]: ...
    def _arrays(session: Session, inputs: Any) -> list[Array]: ...
    def _array(tensor: Tensor) -> Array: ...
else:
    from qtensor._core import Buffer as TensorBase
    from qtensor._core import Session__arrays as _arrays  # a frame of Python less than core.Session._arrays
    from qtensor._core import Session__run as _run
    from qtensor._core import Tensor__array as _array

    QuantizerBase = ObserverBase = ConfigBase = ModelBase = SessionBase = TrainerBase = LayerBase = object


class Closing:
    """Memory that goes with the last name of an object, or at once with close()."""

    def close(self) -> None:
        """Frees the object. Whatever is asked of it afterwards raises StateError; closing again does nothing."""
        self._close(self)  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        """What the modules copy and pickle ask: another name for the same memory would be closed with this one."""
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled")


class Tensor(Closing, TensorBase):
    """An n-dimensional array with an element type and, where it is quantized, a Quantizer. Indexing gives views."""

    @staticmethod
    def create(dtype: DType | str | int, shape: Iterable[int], quantizer: core.Quantizer | None = None,
               data: Memory | TensorLike | None = None) -> core.Tensor:
        """Zeros, or `data` in row-major order: bytes as the elements lie in memory, or numbers in a list, which become
        elements of this type."""
        from qtensor import core

        if isinstance(data, (list, tuple)):
            from qtensor import as_tensor

            data = as_tensor(data, dtype).tobytes()
        elif data is not None:
            try:
                memory = memoryview(data)  # type: ignore[arg-type]
                data = memory if memory.c_contiguous else memory.tobytes()
            except (TypeError, ValueError, BufferError):
                data = core.Tensor._of(data, "data").tobytes()
        return core.Tensor._create(dtype, shape, quantizer, data)

    @staticmethod
    def from_numpy(array: Array) -> core.Tensor:
        """A tensor over the memory of a C-contiguous, writable array, which it keeps alive."""
        from qtensor import core

        return core.Tensor._from_buffer(array, False)

    @staticmethod
    def from_dlpack(source: Any) -> core.Tensor:
        """A tensor over the memory of what has __dlpack__: an array of NumPy, a tensor of PyTorch ..."""
        from qtensor import core

        if not hasattr(source, "__dlpack__"):
            raise TypeError(f"source is of type '{type(source).__name__}', which has no __dlpack__: as_tensor() takes others, too")
        try:
            capsule = source.__dlpack__(max_version=(1, 0))
        except TypeError:  # of before DLPack 1
            capsule = source.__dlpack__()
        return core.Tensor._from_capsule(capsule)

    @staticmethod
    def inspect(path: Any) -> dict[str, Any]:
        """What is in a .safetensors or .npy file; elements are not read."""
        from qtensor import core

        found: dict[str, Any] = json.loads(core.Tensor._inspect(path))
        return found

    def numpy(self) -> Array:
        """An array over the same memory; of types that NumPy does not have, a copy in those of ml_dtypes. A quantized
        tensor has none: ask int_repr() or dequantize()."""
        return _array(self)

    def tobytes(self) -> bytes:
        """The elements in row-major order, of every type: integers where quantized, two int4 to a byte."""
        data: bytes = self._bytes()
        return data

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if stream is not None or dl_device not in (None, (1, 0)):
            raise BufferError(f"tensors live on the CPU, not on device {dl_device}, stream {stream}")
        shown = self
        if copy:
            from qtensor import core

            shown = core.Tensor.create(self.dtype, self.shape)
            shown.copy(self)
        return shown._capsule(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @property
    def is_quantized(self) -> bool:
        return self.quantizer is not None

    def __repr__(self) -> str:
        return self.describe()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[core.Tensor]:
        return (self.select(0, i) for i in range(len(self)))

    def item(self) -> bool | int | float:
        """The value of a tensor of one element, of a quantized one the real value: an int where it holds integers, a bool
        where it holds those, else a float."""
        value, name = self._item(), self.dtype.name
        if self.quantizer is not None or ("int" not in name and name != "bool"):
            return value
        if name in ("int64", "uint64"):  # of which a float does not hold all
            return int.from_bytes(self.tobytes(), sys.byteorder, signed=name == "int64")
        return value != 0 if name == "bool" else int(value)

    def _number(self) -> bool | int | float:
        if self.numel != 1:
            raise TypeError(f"a tensor of {self.numel} elements is not one number")
        return self.item()

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        value = self._number()
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"a tensor of {'quantized ' if self.is_quantized else ''}{self.dtype.name} is not an index")
        return value

    def __complex__(self) -> complex:
        return complex(self._number())

    def __copy__(self) -> core.Tensor:
        from qtensor._arrays import copied

        return copied(self)  # type: ignore[arg-type]

    def __deepcopy__(self, memo: dict[int, Any]) -> core.Tensor:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return Tensor.create, (self.dtype, self.shape, self.quantizer, self.tobytes())

    def __bool__(self) -> bool:
        return self.item() != 0

    def __getitem__(self, key: Key) -> core.Tensor:
        keys = key if isinstance(key, tuple) else (key,)
        if ... in keys:
            i = keys.index(...)
            keys = keys[:i] + (slice(None),) * (self.rank - len(keys) + 1) + keys[i + 1:]
        if len(keys) > self.rank:
            raise IndexError(f"{len(keys)} indices for a tensor of rank {self.rank}")
        view, axis = self.share(), 0
        for k in keys:
            if isinstance(k, slice):
                view = _slice(view, axis, k)
                axis += 1
            else:
                view = _select(view, axis, k)
        return view

    def __setitem__(self, key: Key, value: TensorLike | float) -> None:
        """Copies values as copy() does, and numbers of Python: reals into quantized tensors, else of the own type."""
        from qtensor import as_tensor

        of_python = not hasattr(value, "dtype")
        self[key].copy(as_tensor(value, ("float32" if self.is_quantized else self.dtype) if of_python else None))


def _select(view: core.Tensor, axis: int, key: Any) -> core.Tensor:
    try:
        index = operator.index(key)
    except TypeError:
        raise IndexError(f"an index is an int, a slice or ..., not {key!r}: views express nothing else") from None
    size = view.shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range for a dimension of {size}")
    return view.select(axis, index)


def _slice(view: core.Tensor, axis: int, key: slice) -> core.Tensor:
    if key.step is not None and operator.index(key.step) < 1:
        raise IndexError(f"step {key.step}: views have positive steps")
    start, stop, step = key.indices(view.shape[axis])
    return view.slice(axis, start, stop, step)


class Quantizer(Closing, QuantizerBase):
    """An immutable mapping real = (q - zero_point) * scale, of the whole tensor, of channels or of blocks."""

    @property
    def scale(self) -> float:
        self._need_one()
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        self._need_one()
        return self.zero_points[0]

    def __reduce__(self) -> Any:
        attrs: dict[str, Any] = {"numerics": self.numerics, "quant_min": self.quant_min, "quant_max": self.quant_max}
        if self.block_size:
            attrs["block_size"] = self.block_size
        zero_points = self.zero_points
        if self.float_zero_points:
            zero_points, attrs["float_zero_points"] = (), self.float_zero_points
        return type(self), (self.dtype, self.scheme, self.axis, self.scales, zero_points, attrs)

    def _need_one(self) -> None:
        if self.count != 1:
            raise ValueError(f"a quantizer {self.scheme.name} has {self.count} scales and zero points")

    def __repr__(self) -> str:
        text = f"Quantizer(dtype={self.dtype.name}, scheme={self.scheme.name}"
        if self.count == 1:
            text += f", scale={self.scale!r}, zero_point={self.zero_point}"
        else:
            text += f", axis={self.axis}, {self.count} scales"
        if self.block_size:
            text += f", block_size={self.block_size}"
        return f"{text}, numerics={self.numerics!r})"


class Observer(Closing, ObserverBase):
    """Statistics of the tensors it is shown, from which it chooses a Quantizer."""

    def __reduce__(self) -> Any:
        return type(self).load, (self.save(),)

    def __repr__(self) -> str:
        return "Observer()"


class Config(Closing, ConfigBase):
    """What of a model is quantized, and how: a recipe, and what set() changes of it."""

    def __reduce__(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.json")
            self.save(path)
            with open(path, "rb") as file:
                return _config_of_file, (file.read(),)

    def __repr__(self) -> str:
        return "Config()"


def _config_of_file(saved: bytes) -> core.Config:
    from qtensor import core

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "wb") as file:
            file.write(saved)
        return core.Config.load(path)


class Tensors(MutableMapping[str, "core.Tensor"]):
    """The tensors of a model by name. A quantized one is found by the name that it had in float, too."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getitem__(self, name: str) -> core.Tensor:
        try:
            tensor: core.Tensor = self._model.tensor(name)
        except ValueError as e:
            raise KeyError(str(e)) from None
        return tensor

    def __setitem__(self, name: str, tensor: core.Tensor | Array) -> None:
        self._model.set_tensor(name, tensor)

    def __delitem__(self, name: str) -> None:
        raise TypeError("a model keeps all of its tensors")

    def __iter__(self) -> Iterator[str]:
        return (self._model.tensor_name(i) for i in range(self._model.tensor_count))

    def __len__(self) -> int:
        count: int = self._model.tensor_count
        return count

    def __repr__(self) -> str:
        return f"Tensors({', '.join(self)})"


class Model(Closing, ModelBase):
    """A graph of ONNX operators with its weights: float, prepared, or quantized."""

    report: Report | None = None
    """Of a model that quantize() or quantize_qat() made: what was done and why. It prints in sentences."""

    @property
    def inputs(self) -> dict[str, tuple[DType, tuple[int, ...]]]:
        """Element type and shape of each input by its name; -1 is a dimension of any size."""
        return {self.input_name(i): (self.input_dtype(i), self.input_shape(i)) for i in range(self.input_count)}

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [self.output_name(i) for i in range(self.output_count)]

    @property
    def tensors(self) -> Tensors:
        """Weights, biases and other constants by name: model.tensors["conv.weight"] is a copy, and takes another one."""
        return Tensors(self)

    def __reduce__(self) -> Any:
        return type(self).load_bytes, (self.save_bytes(),), None if self.report is None else {"report": self.report}

    def inspect(self) -> dict[str, Any]:
        """What is in the model as a session runs it: nodes, grids, sizes."""
        found: dict[str, Any] = json.loads(self._inspect())
        return found

    def calibrate(self, inputs: Inputs) -> None:
        """Shows a model that prepare() made a sample or batch: an array, a list of one for each input, a dict by name."""
        from qtensor._arrays import inputs_of

        self._calibrate(inputs_of(inputs, self.inputs))

    def quantize(self, data: Data, config: str | core.Config | Rules = "onnx", attrs: Settings | None = None,
                 progress: bool | Callable[[str, int, int], bool | None] = False) -> core.Model:
        """The model in integers, calibrated with `data`:

        - an array whose rows are samples, or a dict of such arrays by name of input;
        - a list of samples or batches: an array, a list or tuple of one for each input, or a dict of them by name;
        - what gives samples or batches in turn: a generator, a Dataset or DataLoader of PyTorch. Each is asked for once,
          and kept, 2 GiB at most;
        - a Samples, which is asked by index.

        If the model has one input, y of a pair (x, y) is the label, and x is taken. Where the model fixes its batch,
        larger ones are split. `report["samples"]` counts rows.

        config: a recipe ("onnx", "fbgemm", "nvidia" ...), a Config, or settings by selector on the recipe "onnx".
        attrs: what to try beyond equalization and bias correction, {"auto": 1}, or nothing at all, {"plain": 1}. What was
        tried and what it gave stands in `report["trials"]`, how near the model comes on samples held back in
        `report["accuracy"]`; what is suspicious about the data is warned about.
        progress: True shows a bar on a terminal; a function is called with stage, done and total, and cancels by
        returning False.
        """
        from qtensor._callbacks import advance, config_of
        from qtensor._report import Report
        from qtensor._samples import samples_of

        chosen = config_of(config)
        samples = samples_of(data, self)
        quantized, text = self._quantize(chosen, samples, attrs, advance(progress))
        quantized.report = Report(text)
        for warning in quantized.report.warnings:
            warnings.warn(warning, stacklevel=2)
        return quantized

    def quantize_qat(self, batches: Iterable[Any] | core.Batches, config: str | core.Config | Rules = "onnx",
                     attrs: Settings | None = None,
                     progress: Callable[[str, int, int, float], str | bool | None] | None = None) -> core.Model:
        """The model in integers, trained on its grids. `batches`: pairs of inputs and targets, each an array, a list of
        them, or a dict by name: a list, which every epoch takes in order; a DataLoader, which every epoch iterates again;
        a generator, whose batches are kept, 2 GiB at most; or a Batches, which is told the epoch.

        config: as of quantize().
        attrs: of the training, {"epochs": 3, "lr": 0.001}.
        progress: called with stage, done, total and loss; "finish" ends the training early, False cancels.
        """
        from qtensor._batches import batches_of
        from qtensor._callbacks import config_of, training_advance
        from qtensor._report import Report

        chosen, answer = config_of(config), training_advance(progress)
        asked = batches_of(batches, self)
        quantized, text = self._quantize_qat(chosen, asked, attrs, answer)
        quantized.report = Report(text)
        return quantized

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {dtype.name}{list(shape)}" for name, (dtype, shape) in self.inputs.items())
        return f"Model({inputs} -> {', '.join(self.outputs)})"


class OfModel:
    """What is made of a model, and knows its inputs and outputs."""

    inputs: dict[str, tuple[DType, tuple[int, ...]]]
    """Element type and shape of each input by its name; -1 is a dimension of any size."""
    outputs: list[str]
    """The names of the outputs."""

    def _remember(self, model: core.Model, attrs: Settings | None = None) -> None:
        self.inputs, self.outputs = model.inputs, model.outputs


class Session(Closing, OfModel, SessionBase):
    """A model ready to run, from many threads at once; with state, one run at a time."""

    _bound: Mapping[str, None] = {}

    def bind(self, output: int | str, input: int | str) -> None:
        """Makes an output of each run an input of the next one, both by name or number: run() takes None there, and a dict
        leaves it out. The first state is zeros, or what the first run is given. Free what run() gives for the output before
        the next run but one, and no memory is taken for it."""
        numbers = _number(output, self.outputs, "output"), _number(input, list(self.inputs), "input")
        self._bind(*numbers)
        self._bound = {**self._bound, list(self.inputs)[numbers[1]]: None}

    def run(self, inputs: Inputs) -> list[core.Tensor]:
        """The outputs for an array, a list of one for each input, or a dict of them by name."""
        return self._outputs(_run, inputs)

    def _outputs(self, run: Callable[[Session, Any], list[Output]], inputs: Inputs) -> list[Output]:
        """What `run` makes of inputs in whatever form."""
        given: Any = inputs
        if type(given) is dict:
            given = _in_order({**self._bound, **given} if self._bound else given, self.inputs)
        if type(given) is list or type(given) is tuple:
            try:
                return run(self, given)
            except TypeError:  # of an element type, mostly
                pass
        from qtensor._arrays import inputs_of

        return run(self, inputs_of(self._with_state(inputs), self.inputs))

    def __call__(self, /, *inputs: TensorLike | Mapping[str, TensorLike], **by_name: TensorLike) -> Any:
        """The outputs for one array or tensor for each input, in order, by name, or in a dict or list as of run():
        arrays, or tensors where a Tensor goes in; of a model with one output that output, else a list."""
        given: Any = inputs
        if by_name or (len(inputs) == 1 and not hasattr(inputs[0], "__dlpack__")):
            given = _given(inputs, by_name)
        run: Callable[[Session, Any], list[Any]] = _arrays
        for x in given.values() if isinstance(given, dict) else given:
            if isinstance(x, Tensor):
                run = _run
                break
        outputs = self._outputs(run, given)
        return outputs[0] if len(outputs) == 1 else outputs

    def profile(self, inputs: Inputs) -> dict[str, Any]:
        """Runs once and says how long each node took."""
        from qtensor._arrays import inputs_of

        found: dict[str, Any] = json.loads(self._profile(inputs_of(self._with_state(inputs), self.inputs)))
        return found

    def _with_state(self, inputs: Inputs) -> Inputs:
        """A dict leaves state out."""
        if not self._bound or not isinstance(inputs, Mapping):
            return inputs
        from qtensor._arrays import named

        named(inputs, [name for name in self.inputs if name not in self._bound], "inputs")  # must not lack one of these
        return {**self._bound, **inputs}

    def __repr__(self) -> str:
        return f"Session({self.output_count} outputs)" if self.output_count != 1 else "Session(1 output)"


def _in_order(values: dict[str, Any], names: Mapping[str, Any]) -> list[Any] | None:
    """The values of a dict in the order of the inputs; None where its keys are others."""
    if len(values) == len(names):
        try:
            return list(map(values.__getitem__, names))
        except KeyError:
            pass
    return None


def position(count: int | None, noun: str, index: Any) -> int:
    """An index of something that there is. None: the library knows how many there are, and says so."""
    try:
        number = operator.index(index)
    except TypeError:
        raise TypeError(f"{noun} is of type '{type(index).__name__}', not int") from None
    if not 0 <= number < (1 << 63 if count is None else count):
        told = "" if count is None else f": there {'is' if count == 1 else 'are'} {count}"
        raise IndexError(f"{noun} {number} is out of range{told}")
    return number


def _number(which: int | str, names: list[str], noun: str) -> int:
    if not isinstance(which, str):
        return position(None, noun, which)
    if which in names:
        return names.index(which)
    raise ValueError(f'the model has no {noun} "{which}", only {", ".join(names)}')


def _given(inputs: tuple[Any, ...], by_name: Mapping[str, Any]) -> tuple[Any, ...] | list[Any] | dict[str, Any]:
    """What run() takes, of what a session is called with: a dict, a list of arrays, or nested lists of one."""
    if not inputs:
        return dict(by_name)
    first = inputs[0]
    if not by_name and not isinstance(first, Mapping):
        from qtensor._arrays import is_array

        several = isinstance(first, (list, tuple)) and is_array((*first, None)[0])
        return first if several else inputs
    if len(inputs) > 1 or not isinstance(first, Mapping):
        raise TypeError(f"inputs are given in order and by name ({', '.join(by_name)}): give all in one way")
    return {**first, **by_name}


class Layer(Closing, LayerBase):
    """One layer with weights in integers, for programs that run a network themselves: Layer("linear", weight, bias,
    "fbgemm"), or "conv1d", "conv2d", "conv3d", "embedding", "embedding_bag". Many threads may run one."""

    kind: str
    """What it computes."""

    def _remember(self, kind: str, *args: Any, **kwargs: Any) -> None:
        self.kind = kind

    def __call__(self, x: TensorLike) -> Any:
        """The result for a tensor; for an array of floats, whose result is of floats, too, an array."""
        y = self.run(x)
        return y if isinstance(x, Tensor) or y.quantizer is not None else y.numpy()

    def __repr__(self) -> str:
        weight = self.weight
        return f"Layer({self.kind!r}, weight={weight.dtype.name}{list(weight.shape)}, bias={self.bias is not None})"


class Trainer(Closing, OfModel, TrainerBase):
    """A model being trained, with its optimizer. Inputs and targets are an array, a list of them, or a dict by name of
    input or output."""

    def step(self, inputs: Inputs, targets: Inputs) -> float:
        """Goes one step, and answers the loss before it."""
        return self._step(*self._batch(inputs, targets))

    def backward(self, inputs: Inputs, targets: Inputs) -> float:
        """Adds the gradients of a batch to those since the last update(), and answers its loss."""
        return self._backward(*self._batch(inputs, targets))

    def evaluate(self, inputs: Inputs) -> list[core.Tensor]:
        """The outputs that the converted model would give."""
        from qtensor._arrays import inputs_of

        return self._evaluate(inputs_of(inputs, self.inputs))

    def _batch(self, inputs: Inputs, targets: Inputs) -> tuple[list[Any], list[Any]]:
        from qtensor._arrays import inputs_of, targets_of

        return inputs_of(inputs, self.inputs), targets_of(targets, self.outputs)

    @property
    def parameters(self) -> dict[str, core.Tensor]:
        """What is trained, by name; writing to a tensor changes the model."""
        return {self.parameter_name(i): self.parameter(i) for i in range(self.parameter_count)}

    @property
    def buffers(self) -> dict[str, core.Tensor]:
        """What moves with the batches but has no gradient: running statistics."""
        return {self.buffer_name(i): self.buffer(i) for i in range(self.buffer_count)}

    def __repr__(self) -> str:
        return f"Trainer({self.parameter_count} parameters)"
