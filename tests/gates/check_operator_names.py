#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts where operators are named outside of their own folder, and compares with operator_names.txt.

What an operator is to quantization, training and shapes stands in its row of src/ops (see OpDef); code that asks there
needs no name. Usage: check_operator_names.py ROOT
"""
import pathlib
import re
import sys

# Definitions, the format, lowering, and rewriting of some operators into others.
HOME = ("src/ops", "src/onnx", "src/runtime", "src/graph/passes")


def operators(root):
    return set(re.findall(r"^QTN_(?:FAST_|VECTOR_)?OP\((\w+)\)", (root / "src/ops/ops.inc").read_text(), re.M))


def names_in(path, known):
    """The operators that a file names, each as often as it does."""
    code = re.sub(r"//.*", "", path.read_text())
    return [name for pair in re.findall(r'ops::k(\w+)|"(\w+)"', code) for name in pair if name in known]


def allowed(path):
    """File -> how many names, from lines "count file: why"."""
    rows = {}
    for line in path.read_text().splitlines():
        row = re.fullmatch(r"(\d+) (\S+): (.+)", line.split("#")[0].strip())
        if row:
            rows[row[2]] = int(row[1])
    return rows


def main():
    root = pathlib.Path(sys.argv[1])
    known, rows = operators(root), allowed(root / "tests/gates/operator_names.txt")
    faults = []
    for path in sorted((root / "src").rglob("*.[ch]pp")):
        file = path.relative_to(root).as_posix()
        names = [] if file.startswith(HOME) else names_in(path, known)
        if len(names) != rows.pop(file, 0):
            faults.append(f"{file}: names {len(names)} operators ({', '.join(sorted(set(names)))})")
    faults += [f"{file}: is in the list, and not in the tree" for file in rows]
    print("\n".join(faults) or "operators are named where operator_names.txt says why, nowhere else")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
