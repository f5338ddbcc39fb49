# SPDX-License-Identifier: Apache-2.0
"""Configurations, and functions that are told how far a call is, as what the library takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from qtensor import core


def config_of(config: Any) -> core.Config:
    if isinstance(config, core.Config):
        return config
    if isinstance(config, str):
        return core.Config(config)
    if not isinstance(config, Mapping):
        raise TypeError(f"config is of type '{type(config).__name__}', not a Config, the name of a recipe, or a dict of settings "
                        "by selector")
    made = core.Config("onnx")
    for selector, settings in config.items():
        if settings is not None and not isinstance(settings, dict):
            raise TypeError(f"config[{selector!r}] is of type '{type(settings).__name__}', not a dict of settings, or None")
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
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"progress is of type '{type(progress).__name__}', not a bool or a function")
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
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is of type '{type(progress).__name__}', not a function")
    return _ToldTraining(progress) if progress else None
