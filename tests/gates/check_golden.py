#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every script that makes golden data has a row in the table of tests/golden/README.md, and every row a script.
Usage: check_golden.py ROOT"""
import pathlib
import re
import sys


def main():
    golden = pathlib.Path(sys.argv[1], "tests/golden")
    scripts = {path.name for path in golden.glob("make_*.py")}
    rows = set(re.findall(r"^\|[^|]*\| `(make_\w+\.py)`", (golden / "README.md").read_text(), re.M))
    found = [f"README.md has no row for {name}" for name in sorted(scripts - rows)]
    found += [f"README.md names {name}, which is not there" for name in sorted(rows - scripts)]
    print("\n".join(found) or f"{len(scripts)} scripts have a row")
    sys.exit(bool(found))


main()
