#!/usr/bin/env python3
"""The table of features in README.md, from the rows that conformance cases name. --check: only say whether it is so."""

import collections
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parent.parent / "README.md"
BEGIN, END = "<!-- features: tests/conformance/feature_table.py -->\n", "<!-- end of features -->\n"


def table():
    counts = collections.Counter()
    for name in ("cases.json", "torch.json", "networks.json", "toolkit.json", "training.json", "errors.json"):
        for case in json.loads((HERE / name).read_text()):
            counts.update(case["rows"])
    rows = json.loads((HERE / "rows.json").read_text())
    unknown, missing = set(counts) - set(rows), set(rows) - set(counts)
    if unknown or missing:
        sys.exit(f"feature_table: rows without a title: {sorted(unknown)}, without a case: {sorted(missing)}")
    lines = ["| test | what it shows | cases |\n", "|---|---|---|\n"]
    lines += [f"| `conformance/{row}` | {title} | {counts[row]} |\n" for row, title in rows.items()]
    return "".join(lines)


def main():
    text = README.read_text()
    head, rest = text.split(BEGIN)
    wanted = head + BEGIN + table() + END + rest.split(END)[1]
    if "--check" not in sys.argv:
        README.write_text(wanted)
    elif text != wanted:
        sys.exit("README.md: the table of features is old; run tests/conformance/feature_table.py")


if __name__ == "__main__":
    main()
