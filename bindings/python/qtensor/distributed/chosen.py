# SPDX-License-Identifier: Apache-2.0
"""Whether calibration may see partitions side by side. It may where every observer merges exactly; where one of them depends
on the order or on the parts, partitions are seen in turn, each going on from the state of the one before."""

from __future__ import annotations

import json

EXACT = {"minmax", "max", "mse", "fixed"}
DEFAULTS = {"onnx": "minmax", "fbgemm": "histogram", "x86": "histogram", "qnnpack": "histogram", "onednn": "histogram",
            "nvidia": "max", "tflite": "minmax", "torchvision_fbgemm": "minmax", "torchvision_qnnpack": "minmax"}


def observers(config: str) -> set[str]:
    """The kinds that a configuration, as JSON text, may give to activations."""
    found = json.loads(config)
    named = {(rule["settings"] or {}).get("observer") for rule in found["rules"]}
    everywhere = any(rule["selector"] == "*" and "observer" in (rule["settings"] or {}) for rule in found["rules"])
    if not everywhere:
        named.add(DEFAULTS.get(found["recipe"], found["recipe"]))
    return {name for name in named if name}


def in_turn(config: str) -> set[str]:
    """Those of them for which partitions are seen in turn."""
    return observers(config) - EXACT
