# SPDX-License-Identifier: Apache-2.0
"""What travels to workers: models and a configuration as bytes, known by the hash of these. A worker process makes its
sessions and models once, and keeps them for the partitions to come."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qtensor import core
from qtensor._enums import DType

if TYPE_CHECKING:
    from qtensor._arrays import Types

KEPT_JOBS = 4  # in a process: a program that goes on with other models does not fill the memory of its workers


@dataclass(frozen=True)
class Job:
    """Everything that a worker is told, besides its partitions."""

    models: tuple[bytes, ...]
    config: str = ""
    """As JSON text."""
    attrs: tuple[tuple[str, Any], ...] = ()
    """Of sessions."""
    inputs: tuple[tuple[str, int, tuple[int, ...]], ...] = ()
    """Name, element type and shape of each input."""
    outputs: tuple[tuple[str, str], ...] = ()
    """Name and element type of each output."""
    threads: int = 0
    """For each worker process; 0 leaves it as it is."""
    key: str = ""
    """The hash of all others."""
    driver: str = ""
    """The process that made it, whose threads stay as they are."""

    @staticmethod
    def of(models: list[Any], config: Any = None, attrs: Mapping[str, Any] | None = None, threads: int = 0) -> Job:
        from qtensor._callbacks import config_of

        found = [model_of(model) for model in models]
        given = tuple(model.save_bytes() for model in found)
        inputs = tuple((name, dtype.value, tuple(shape)) for name, (dtype, shape) in found[0].inputs.items())
        text = "" if config is None else config_text(config_of(config))
        outputs = tuple((output["name"], output["dtype"]) for output in found[0].inspect()["outputs"])
        settings = tuple(sorted((attrs or {}).items()))
        digest = hashlib.sha256()
        for part in (*given, text.encode(), repr(settings).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
        return Job(given, text, settings, inputs, outputs, threads, digest.hexdigest(), this_process())


    @property
    def types(self) -> Types:
        """As Model.inputs has them."""
        return {name: (DType(dtype), shape) for name, dtype, shape in self.inputs}


def this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def model_of(model: Any) -> core.Model:
    """A Model, or that of the path of an ONNX file or of the bytes of one."""
    if isinstance(model, core.Model):
        return model
    return core.Model.load_bytes(model) if isinstance(model, (bytes, bytearray, memoryview)) else core.Model.load(model)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """For small files that live for a moment: in memory where there is such a place, because the library has files reach the
    disk before it goes on."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="qtensor-", dir=memory if os.access(memory, os.W_OK) else None)


def config_text(config: core.Config) -> str:
    with scratch() as folder:
        path = os.path.join(folder, "config.json")
        config.save(path)
        with open(path, encoding="utf-8") as file:
            return file.read()


def config_from(text: str) -> core.Config:
    with scratch() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return core.Config.load(path)


# --- kept in a worker process

_kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
_lock = threading.RLock()


def kept(job: Job, name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives for this job, made at the first call in this process."""
    with _lock:
        things = _kept.setdefault(job.key, {})
        _kept.move_to_end(job.key)
        while len(_kept) > KEPT_JOBS:
            _kept.popitem(last=False)
        if name not in things:
            if job.threads and job.driver != this_process():
                core.Lib.set_threads(job.threads)
            things[name] = make()
        return things[name]


def session(job: Job, index: int = 0) -> core.Session:
    def make() -> core.Session:
        return core.Session(core.Model.load_bytes(job.models[index]), dict(job.attrs) or None)

    found: core.Session = kept(job, f"session {index}", make)
    return found


def prepared(job: Job) -> core.Model:
    """A fresh one, whose observers have seen nothing."""
    model = kept(job, "model", lambda: core.Model.load_bytes(job.models[0]))
    config = kept(job, "config", lambda: config_from(job.config))
    with _lock:
        fresh: core.Model = model.prepare(config)
        return fresh
