#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of promises in docs/languages.md, from the rows that conformance cases name, with a sentence
where we do otherwise than what the promise is made of. --check: only say whether it is so."""
import collections
import json
import sys

import page


def table():
    counts = collections.Counter()
    for name in page.CASES:
        for case in json.loads((page.HERE / f"{name}.json").read_text()):
            counts.update(case["rows"])
    rows = json.loads((page.HERE / "rows.json").read_text())
    unknown, missing = set(counts) - set(rows), set(rows) - set(counts)
    if unknown or missing:
        sys.exit(f"feature_table: rows without a title: {sorted(unknown)}, without a case: {sorted(missing)}")
    lines = ["| test | what it shows | what differs from the original | cases |\n", "|---|---|---|---|\n"]
    for row, about in rows.items():
        lines.append(f"| `conformance/{row}` | {about['shows']} | {about.get('differs', '')} | {counts[row]} |\n")
    return "".join(lines)


if __name__ == "__main__":
    page.bring("promises", table())
