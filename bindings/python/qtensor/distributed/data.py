# SPDX-License-Identifier: Apache-2.0
"""Partitions of files. Each function lists files, and gives small objects that can be sent to workers; a worker reads its files
there, some rows at a time. The same paths must mean the same files on every worker."""

from __future__ import annotations

import glob
import importlib
import os
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from qtensor.distributed.columns import of_arrow

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
ROWS = 256  # that a reader gives at a time


def files(paths: Paths) -> list[str]:
    """A path, a pattern with *, ? or [ ], or a list of these; what a pattern finds is sorted by name."""
    found: list[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        text = os.fspath(path)
        if os.path.exists(text) or not glob.has_magic(text):
            found.append(text)
            continue
        matching = sorted(glob.glob(text))
        if not matching:
            raise FileNotFoundError(f"{text}: no file has such a name")
        found += matching
    if not found:
        raise ValueError("paths is an empty list")
    return found


# --- .npy


@dataclass(frozen=True)
class NpyRows:
    path: str
    first: int
    end: int
    labels: str | None = None

    def __iter__(self) -> Iterator[Any]:
        import numpy as np

        images = np.load(self.path, mmap_mode="r")
        labels = np.load(self.labels, mmap_mode="r") if self.labels else None
        for at in range(self.first, self.end, ROWS):
            rows = slice(at, min(at + ROWS, self.end))
            yield np.array(images[rows]) if labels is None else (np.array(images[rows]), np.array(labels[rows]))


def npy(paths: Paths, labels: Paths | None = None, rows: int | None = None) -> list[NpyRows]:
    """A partition for each .npy file, or for each `rows` rows of one. `labels`: a file for each of them, in their order."""
    import numpy as np

    found = files(paths)
    theirs: list[str | None] = [None] * len(found) if labels is None else [*files(labels)]
    if len(theirs) != len(found):
        raise ValueError(f"there are {len(found)} files of inputs, and {len(theirs)} of labels")
    partitions = []
    for path, label in zip(found, theirs):
        array = np.load(path, mmap_mode="r")
        if array.ndim == 0:
            raise ValueError(f"{path}: is a scalar; the first axis runs over samples")
        if label is not None and len(np.load(label, mmap_mode="r")) != len(array):
            raise ValueError(f"{label}: has not one label for each of the {len(array)} rows of {path}")
        step = rows or max(len(array), 1)
        partitions += [NpyRows(path, at, min(at + step, len(array)), label) for at in range(0, len(array), step)]
    return partitions


# --- Parquet


@dataclass(frozen=True)
class RowGroup:
    path: str
    index: int
    columns: tuple[tuple[str, str], ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        pq = importlib.import_module("pyarrow.parquet")
        shapes = dict(self.shapes)
        with pq.ParquetFile(self.path) as file:
            wanted = [column for _, column in self.columns] or None
            for batch in file.iter_batches(ROWS, row_groups=[self.index], columns=wanted):
                names = self.columns or tuple((name, name) for name in batch.schema.names)
                found = {name: of_arrow(batch.column(column)) for name, column in names}
                yield {name: array.reshape(len(array), *shapes[name]) if name in shapes else array for name, array in found.items()}


def parquet(paths: Paths, columns: Mapping[str, str] | None = None,
            shapes: Mapping[str, Sequence[int]] | None = None) -> list[RowGroup]:
    """A partition for each row group of Parquet files: rows as dicts by name. `columns`: the column for each input, and for
    "label"; without it all, by their own names. `shapes`: of a row of an input, where its column has flat lists; tensors of
    Arrow (fixed_shape_tensor) have theirs. Needs pyarrow."""
    try:
        pq = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError("pyarrow is missing, which reads Parquet: pip install 'qtensor[data]'") from error
    chosen = tuple((columns or {}).items())
    rows = tuple((name, tuple(shape)) for name, shape in (shapes or {}).items())
    return [RowGroup(path, index, chosen, rows) for path in files(paths) for index in range(pq.read_metadata(path).num_row_groups)]


# --- images


@dataclass(frozen=True)
class ImageDecoder:
    """How images become arrays, as the options of `qtensor quantize --data FOLDER` say it: decoded to RGB, resized by bilinear
    interpolation with half-pixel centres, (pixel - mean) / std. Needs Pillow."""

    size: tuple[int, int]
    """Width and height."""
    mean: tuple[float, float, float] = (0, 0, 0)
    std: tuple[float, float, float] = (1, 1, 1)
    layout: str = "nchw"
    channels: str = "rgb"

    def __call__(self, file: Any) -> Any:
        """A float32 array of what is in a file, a path or an open one."""
        import numpy as np

        try:
            image_of = importlib.import_module("PIL.Image").open
        except ImportError as error:
            raise ImportError("Pillow is missing, which reads images: pip install 'qtensor[data]'") from error
        with image_of(file) as image:
            pixels = np.asarray(image.convert("RGB"), np.float32)
        if self.channels == "bgr":
            pixels = pixels[:, :, ::-1]
        for axis, size in ((1, self.size[0]), (0, self.size[1])):
            pixels = _resized(pixels, axis, size)
        pixels = (pixels - np.asarray(self.mean, np.float32)) / np.asarray(self.std, np.float32)
        return np.ascontiguousarray(pixels if self.layout == "nhwc" else pixels.transpose(2, 0, 1))


def _resized(pixels: Any, axis: int, size: int) -> Any:
    """In float32, as the command does it, so that both give the same bits."""
    import numpy as np

    count = pixels.shape[axis]
    centres = np.clip((np.arange(size) + 0.5) * count / size - 0.5, 0, count - 1)
    low = centres.astype(np.int64)
    part = (centres - low).astype(np.float32).reshape([-1 if i == axis else 1 for i in range(3)])
    first, second = pixels.take(low, axis), pixels.take(np.minimum(low + 1, count - 1), axis)
    return first + (second - first) * part


@dataclass(frozen=True)
class Folder:
    paths: tuple[str, ...]
    prepare: Callable[[Any], Any]
    labels: tuple[int, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        for i, path in enumerate(self.paths):
            yield (self.prepare(path), self.labels[i]) if self.labels else self.prepare(path)


SUFFIXES = re.compile(r"\.(jpe?g|png)$", re.IGNORECASE)


def images(folder: str | os.PathLike[str], prepare: Callable[[Any], Any], count: int = 256, by_class: bool = False) -> list[Folder]:
    """A partition for each `count` images of a folder, in the order of their names. `prepare`: an ImageDecoder, or a function that
    makes an array of a path. `by_class`: the folder has a folder for each class, whose places in the order of names are labels."""
    root = os.fspath(folder)
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir()) if by_class else [""]
    found = [(os.path.join(root, name, file), label) for label, name in enumerate(classes)
             for file in sorted(os.listdir(os.path.join(root, name))) if SUFFIXES.search(file)]
    if not found:
        raise ValueError(f"{root}: holds no .jpg, .jpeg or .png file")
    return [Folder(tuple(path for path, _ in part), prepare, tuple(label for _, label in part) if by_class else ())
            for part in (found[at : at + count] for at in range(0, len(found), count))]


# --- tar


@dataclass(frozen=True)
class Shard:
    path: str
    prepare: Callable[[dict[str, bytes]], Any]

    def __iter__(self) -> Iterator[Any]:
        key: str | None = None
        sample: dict[str, bytes] = {}
        shard: Any
        with tarfile.open(self.path, "r|*") as shard:
            for member in shard:
                shard.members.clear()  # which would grow with the shard
                if not member.isfile():
                    continue
                folder, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                this = f"{folder}/{stem}"
                if this != key and sample:
                    yield self.prepare(sample)
                    sample = {}
                key = this
                content = shard.extractfile(member)
                if content is not None:
                    sample[extension.lower()] = content.read()
        if sample:
            yield self.prepare(sample)


def tar(paths: Paths, prepare: Callable[[dict[str, bytes]], Any]) -> list[Shard]:
    """A partition for each tar file in the layout of WebDataset: members that follow each other and whose names are the same up to the
    first dot are one sample. `prepare` makes a sample, or a pair with its label, of a dict of bytes by extension: {"png": ..., "cls":
    ...}; decoded() has what is usual."""
    return [Shard(path, prepare) for path in files(paths)]


@dataclass(frozen=True)
class decoded:
    """For tar(): the image, or the array of .npy, that a sample has, and its class number of .cls where it has one."""

    image: Callable[[Any], Any] | None = None
    """An ImageDecoder; None where samples are .npy."""

    def __call__(self, sample: dict[str, bytes]) -> Any:
        import io

        import numpy as np

        found = [(extension, content) for extension, content in sample.items() if extension in ("npy", "png", "jpg", "jpeg")]
        if len(found) != 1:
            raise ValueError(f"a sample has the members {', '.join(sample)}, and not one of npy, png, jpg, jpeg")
        (extension, content), = found
        if extension != "npy" and self.image is None:
            raise ValueError(f"a sample is a {extension}: pass decoded(ImageDecoder(size=...))")
        array = np.load(io.BytesIO(content)) if extension == "npy" else self.image(io.BytesIO(content))  # type: ignore[misc]
        return (array, int(sample["cls"])) if "cls" in sample else array


__all__ = ["ImageDecoder", "decoded", "files", "images", "npy", "parquet", "tar"]
