# SPDX-License-Identifier: Apache-2.0
"""What the driver does with calibration files of partitions: it keeps one for each index, however often it gets one, and
merges them in the order of the indices."""

from __future__ import annotations

import os
from collections.abc import Iterable

from qtensor import core

AT_ONCE = 256  # files that a merge reads before it writes


class Merging:
    """Files in a folder. Where that is a program's, for checkpoints, it is found again after a crash."""

    def __init__(self, folder: str, key: str, count: int) -> None:
        self.folder, self.key, self.count = folder, key, count

    def path(self, index: int) -> str:
        return os.path.join(self.folder, f"{self.key[:16]}-{index:06d}-of-{self.count:06d}.qcal")

    def missing(self) -> list[int]:
        return [index for index in range(self.count) if not os.path.exists(self.path(index))]

    def add(self, index: int, file: bytes) -> None:
        path = self.path(index)
        if os.path.exists(path):
            return
        with open(f"{path}.{os.getpid()}.tmp", "wb") as out:
            out.write(file)
        os.replace(f"{path}.{os.getpid()}.tmp", path)  # whole or not at all

    def merged(self, path: str) -> None:
        merge(path, [self.path(index) for index in range(self.count)])


def merge(path: str, parts: Iterable[str]) -> None:
    begun: list[str] = []  # what the file to write has already
    left = list(parts)
    while left:
        core.Model.merge_calibrations(path, begun + left[:AT_ONCE])
        begun, left = [path], left[AT_ONCE:]
