#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of languages in docs/languages.md: how many cases each runs, and what it cannot say of C.

usage: languages.py FOLDER [--check]      FOLDER: build/dev/conformance, what the runners have said. --check: only say whether it is so
"""
import json
import pathlib
import re
import sys

import page

LANGUAGES = {"python": "Python", "java": "Java", "csharp": "C#"}


def told(path):
    text = path.read_text()
    cases, failed = map(int, re.search(r"^(\d+) cases, (\d+) failed$", text, re.M).groups())
    unsayable = {why: int(steps) for why, steps in re.findall(r"^\S+ cannot say (.*): (\d+) steps of \d+ functions$", text, re.M)}
    return cases - failed, unsayable


def table(folder):
    cases = [case for name in page.CASES for case in json.loads((page.HERE / f"{name}.json").read_text())]
    calls = sum("call" in step for case in cases for step in case["steps"])
    runs = {language: told(folder / f"{language}.txt") for language in LANGUAGES}
    lines = ["| | C | " + " | ".join(LANGUAGES.values()) + " |\n", "|---|" + "---|" * (1 + len(LANGUAGES)) + "\n",
             f"| cases | {len(cases)} | " + " | ".join(str(done) for done, _ in runs.values()) + " |\n",
             f"| calls that it can express | {calls} | " + " | ".join(str(calls - sum(why.values())) for _, why in runs.values()) + " |\n"]
    for why in sorted({why for _, unsayable in runs.values() for why in unsayable}):
        lines.append(f"| without: {why} | | " + " | ".join(str(u.get(why, "")) for _, u in runs.values()) + " |\n")
    return "".join(lines)


def main():
    folder = pathlib.Path(sys.argv[1])
    missing = [name for language, name in LANGUAGES.items() if not (folder / f"{language}.txt").exists()]
    if missing:
        print(*missing, "has not run", file=sys.stderr)
        sys.exit(77)
    page.bring("cases", table(folder))


if __name__ == "__main__":
    main()
