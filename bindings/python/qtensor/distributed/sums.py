# SPDX-License-Identifier: Apache-2.0
"""What evaluation counts and adds up, exactly: the sums of all partitions are the same in any order and of any parts, to the
bit, and so is what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

UNIT = 1074  # sums count in 2^-UNIT, of which every double is a multiple


def exact(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT + 1 - denominator.bit_length())


@dataclass
class OfOutput:
    """Of one output of the reference (a) and of the model (b)."""

    aa: int = 0
    ab: int = 0
    bb: int = 0
    noise: int = 0
    largest: float = 0.0
    finite: bool = True

    def add(self, a: Any, b: Any) -> None:
        """A row of each."""
        import numpy as np

        x, y = np.asarray(a, np.float64).reshape(-1), np.asarray(b, np.float64).reshape(-1)
        if x.shape != y.shape:
            raise ValueError(f"a row of an output has {x.size} values in the reference, and {y.size} in the model")
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.abs(x - y)
            products = [x * x, x * y, y * y, gap * gap]
        if not all(np.isfinite(values).all() for values in products):
            self.finite = False
            return
        aa, ab, bb, noise = (exact(math.fsum(values.tolist())) for values in products)
        self.aa, self.ab, self.bb, self.noise = self.aa + aa, self.ab + ab, self.bb + bb, self.noise + noise
        self.largest = max(self.largest, float(gap.max(initial=0)))

    def merge(self, other: OfOutput) -> None:
        self.aa += other.aa
        self.ab += other.ab
        self.bb += other.bb
        self.noise += other.noise
        self.largest = max(self.largest, other.largest)
        self.finite = self.finite and other.finite

    def result(self, name: str) -> dict[str, Any]:
        """As `qtensor compare` says it: None where values are not finite, 999 dB where nothing differs."""
        if not self.finite:
            return {"name": name, "sqnr_db": None, "cosine": None, "max_abs": None}
        sqnr = 999.0 if not self.noise else -999.0 if not self.aa else 10 * (_log10(self.aa) - _log10(self.noise))
        both = math.isqrt(self.aa * self.bb)
        cosine = 1.0 if not self.noise else min(self.ab / both, 1.0) if both else 0.0
        return {"name": name, "sqnr_db": sqnr, "cosine": cosine, "max_abs": self.largest}


def _log10(sum_: int) -> float:
    """Of integers that a double need not hold."""
    shift = max(sum_.bit_length() - 64, 0)
    return math.log10(sum_ >> shift) + shift * math.log10(2)


@dataclass
class Sums:
    samples: int = 0
    labelled: int = 0
    correct: int = 0
    correct_reference: int = 0
    agreeing: int = 0
    classes: bool = True
    """Whether the first output is one row of scores for each sample, so that there is a largest one."""
    outputs: list[OfOutput] = field(default_factory=list)

    def add(self, outputs: Sequence[Any], reference: Sequence[Any] | None, labels: Sequence[int] | None) -> None:
        """The outputs for some rows, their first axis."""
        first = outputs[0]
        self.samples += len(first)
        self.classes = self.classes and first.ndim == 2 and first.shape[1] > 0
        best = first.argmax(1).tolist() if self.classes else []
        if reference is not None:
            self.outputs = self.outputs or [OfOutput() for _ in outputs]
            if len(reference) != len(outputs):
                raise ValueError(f"the reference has {len(reference)} outputs, and the model {len(outputs)}")
            for sum_, a, b in zip(self.outputs, reference, outputs):
                for row_a, row_b in zip(a, b):
                    sum_.add(row_a, row_b)
            if self.classes:
                theirs = reference[0].argmax(1).tolist()
                self.agreeing += sum(x == y for x, y in zip(best, theirs))
                if labels is not None:
                    self.correct_reference += sum(x == y for x, y in zip(theirs, labels))
        if labels is not None:
            if not self.classes:
                raise ValueError(f"the first output has shape {list(first.shape)}, and labels are for one of [batch, classes]")
            self.labelled += len(labels)
            self.correct += sum(x == y for x, y in zip(best, labels))

    def merge(self, other: Sums) -> None:
        if other.samples == 0:
            return
        self.samples += other.samples
        self.labelled += other.labelled
        self.correct += other.correct
        self.correct_reference += other.correct_reference
        self.agreeing += other.agreeing
        self.classes = self.classes and other.classes
        self.outputs = self.outputs or [OfOutput() for _ in other.outputs]
        for mine, theirs in zip(self.outputs, other.outputs):
            mine.merge(theirs)

    def result(self, names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {"samples": self.samples}
        if self.labelled:
            found.update(correct=self.correct, top1=self.correct / self.labelled)
        if self.outputs:
            found["outputs"] = [sum_.result(name) for sum_, name in zip(self.outputs, names)]
            found["top1_agreement"] = self.agreeing / self.samples if self.classes else None
            if self.labelled:
                found.update(correct_reference=self.correct_reference, top1_reference=self.correct_reference / self.labelled)
        return found
