# SPDX-License-Identifier: Apache-2.0
"""What Model.quantize takes, as what the library calls back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from qtensor import _mixins, core


def _several(tensors: Any) -> list[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


class _Samples(core.Samples):
    def __init__(self, samples: list[Any], names: list[str]) -> None:
        super().__init__()
        self._samples, self._names = samples, names

    def count(self) -> int:
        return len(self._samples)

    def sample(self, index: int) -> list[Any]:
        sample = self._samples[index]
        if isinstance(sample, Mapping):
            return [self._named(sample, name, index) for name in self._names]
        return _several(sample)

    def _named(self, sample: Mapping[str, Any], name: str, index: int) -> Any:
        if name not in sample:
            raise ValueError(f"sample {index} has {', '.join(map(repr, sample))}, but no input '{name}'")
        return sample[name]


class _Batches(core.Batches):
    def __init__(self, batches: Sequence[tuple[Any, Any]]) -> None:
        super().__init__()
        self._batches = batches

    def count(self) -> int:
        return len(self._batches)

    def target_count(self) -> int:
        return len(_several(self._batches[0][1])) if len(self._batches) else 1

    def batch(self, epoch: int, index: int) -> list[Any]:
        inputs, targets = self._batches[index]
        return _several(inputs) + _several(targets)


def batches_of(batches: Any) -> core.Batches:
    return batches if isinstance(batches, core.Batches) else _Batches(batches)


def _rows(array: Any, model: _mixins.Model) -> list[Any]:
    """Rows keep the axis of the batch where the model has one, and are as many together as it fixes."""
    shape = model.input_shape(0)
    if len(shape) == len(array.shape) - 1:
        return [array[i] for i in range(len(array))]
    batch = max(shape[0], 1) if shape else 1
    return [array[i : i + batch] for i in range(0, len(array) - batch + 1, batch)]


def samples_of(data: Any, model: _mixins.Model) -> core.Samples:
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise TypeError(f"data is of type '{type(data).__name__}', not an array or an iterable of samples")
    samples = _rows(data, model) if hasattr(data, "shape") else list(data)
    return _Samples(samples, list(model.inputs))


def config_of(config: Any) -> core.Config:
    if isinstance(config, core.Config):
        return config
    if isinstance(config, str):
        return core.Config(config)
    made = core.Config("onnx")
    for selector, settings in config.items():
        if settings is None:
            made.leave_in_float(selector)
        else:
            made.set(selector, settings)
    return made


class _Told(core.Progress):
    def __init__(self, function: Callable[[str, int, int], bool | None]) -> None:
        super().__init__()
        self._function = function

    def advance(self, stage: str, done: int, total: int) -> bool:
        return self._function(stage, done, total) is not False


def _bar(stage: str, done: int, total: int) -> None:
    filled = 30 * done // max(total, 1)
    end = "\n" if done == total else ""
    print(f"\r{stage:<24} [{'#' * filled}{' ' * (30 - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def advance(progress: bool | Callable[[str, int, int], bool | None]) -> core.Progress | None:
    if callable(progress):
        return _Told(progress)
    return _Told(_bar) if progress and sys.stderr.isatty() else None


class _ToldTraining(core.TrainingProgress):
    GO_ON, FINISH, CANCEL = range(3)

    def __init__(self, function: Callable[[str, int, int, float], str | bool | None]) -> None:
        super().__init__()
        self._function = function

    def advance(self, stage: str, done: int, total: int, loss: float) -> int:
        answer = self._function(stage, done, total, loss)
        return self.CANCEL if answer is False else self.FINISH if answer == "finish" else self.GO_ON


def training_advance(progress: Callable[..., str | bool | None] | None) -> core.TrainingProgress | None:
    return _ToldTraining(progress) if progress else None
