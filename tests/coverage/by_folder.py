#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the lines and branches of src that the tests of a tree with gcov have reached, by folder.

usage: by_folder.py BUILD [--files]      --files: each file, too
"""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    build = sys.argv[1]
    done = subprocess.run(["gcovr", "--root", ROOT, "--filter", f"{ROOT}/src/", "--exclude-throw-branches",
                           "--exclude-unreachable-branches", "--gcov-ignore-parse-errors", "--json", "-", build],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in json.loads(done.stdout)["files"]:
        path = pathlib.PurePath(file["file"])
        lines = [line for line in file["lines"] if not line.get("gcovr/noncode")]
        branches = [branch["count"] for line in lines for branch in line["branches"]]
        counts = [sum(line["count"] > 0 for line in lines), len(lines), sum(n > 0 for n in branches), len(branches)]
        folder = "/".join(path.parts[:3 if path.parts[1] == "kernels" and len(path.parts) > 3 else 2])
        for name in (folder, str(path)) if "--files" in sys.argv else (folder,):
            rows[name] = [a + b for a, b in zip(rows[name], counts)]
    print("| folder | lines | branches |\n|---|---|---|")
    for name, (lines, all_lines, branches, all_branches) in sorted(rows.items()):
        print(f"| {name} | {100 * lines / max(1, all_lines):.1f} % of {all_lines} | "
              f"{100 * branches / max(1, all_branches):.1f} % of {all_branches} |")


if __name__ == "__main__":
    main()
