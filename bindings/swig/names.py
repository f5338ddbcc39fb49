# SPDX-License-Identifier: Apache-2.0
"""Names of parameters, which SWIG's %rename does not reach, in the way of languages that write zeroPoints."""

import re


def with_names(text, member):
    """zero_points becomes zeroPoints, where it is a parameter and wherever that is used. `member`: its second group is a list
    of parameters."""
    for name in {n for found in member.finditer(text) for n in re.findall(r"\b([a-z]+(?:_[a-z]+)+)(?:,|$)", found[2] or "")}:
        text = re.sub(rf"\b{name}\b", re.sub(r"_([a-z])", lambda m: m[1].upper(), name), text)
    return text
