#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/reliability.md: what scripts/test faults walked, and the shares of tests/mutation.

usage: page.py BUILD
"""

import collections
import csv
import datetime
import pathlib
import platform
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def cpu():
    names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return names[0].strip() if names else platform.machine()


def figures(folder):
    rows = sorted(line.rstrip("\n").split("\t") for path in folder.glob("*.tsv") for line in path.open())
    kernel = platform.release().split("-")[0]
    when = datetime.date.today().isoformat()
    total = sum(int(row[1]) for row in rows)
    table = "".join(f"| {what} | {int(points):,} | {int(survived):,} | {said} |\n" for what, points, survived, said in rows)
    return (f"On {when}, {cpu()}, Linux {kernel}: {total:,} points.\n\n"
            f"| what fails | points | survived | |\n|---|---|---|---|\n{table}")


def mutants():
    table = "| area | compiled | killed | survived | share |\n|---|---|---|---|---|\n"
    for path in sorted((ROOT / "tests/mutation").glob("*.csv")):
        verdicts = collections.Counter(row["verdict"] for row in csv.DictReader(path.open()))
        compiled = verdicts["killed"] + verdicts["survived"]
        table += (f"| {path.stem} | {compiled} | {verdicts['killed']} | {verdicts['survived']} | "
                  f"{100 * verdicts['killed'] / compiled:.1f} % |\n")
    return table


def main():
    page = ROOT / "docs/reliability.md"
    text = page.read_text()
    for name, table in (("figures", figures(pathlib.Path(sys.argv[1]) / "faults")), ("mutants", mutants())):
        place = rf"<!-- {name} -->\n\n(?:On .*\n\n)?(?:\|.*\n)*"
        text, count = re.subn(place, lambda _: f"<!-- {name} -->\n\n{table}", text)
        if count != 1:
            sys.exit(f"reliability.md has no place for {name}")
    page.write_text(text)


if __name__ == "__main__":
    main()
