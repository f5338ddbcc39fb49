# SPDX-License-Identifier: Apache-2.0
"""What Model.quantize and Model.quantize_qat say of their work."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from qtensor import core
from qtensor._errors import Error


class Report(dict[str, Any]):
    """What was done, and why. docs/quantization.md has the members, which are attributes, too: report.samples,
    report.accuracy["sqnr_db"]. It prints in sentences, as `qtensor quantize` ends.

    A program that has measured the speed says so:
    report["speed"] = {"batch": 1, "float_ms": 3.1, "int8_ms": 1.2}."""

    def __init__(self, report: str | Mapping[str, Any]) -> None:
        super().__init__(json.loads(report) if isinstance(report, str) else report)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the report has no {name!r}; it has {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self})

    def __str__(self) -> str:
        return core.Model._report_summary(json.dumps(self)).rstrip("\n")

    def __repr__(self) -> str:
        try:
            return str(self)
        except (Error, TypeError, ValueError):  # of a dict that is no report any more
            return super().__repr__()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"
