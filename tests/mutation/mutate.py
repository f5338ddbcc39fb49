#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one place of a source file at a time and sees whether a test notices.

usage: mutate.py BUILD AREA [--count N] [--seed N] [--again] [--only FILE:LINE:COLUMN]

AREA is one of tests/mutation/areas.json: files, the one source that is compiled for them, and the tests that are run,
in this order, until one fails. A mutant is compiled in place of its source, linked in front of the archives of a
prebuilt tree, so that nothing else is built, and judged:

    killed          a test fails, crashes or takes too long
    survived        no test notices
    not compiled    the compiler refuses it

Writes a line for each into tests/mutation/AREA.csv and says the share of those that compiled and were killed. The same
seed gives the same mutants. One job at a time.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SECONDS = 60

# What a change may be: an expression, and what may stand in its place.
CHANGES = [
    (r"(?<![<\-])<=(?!>)", ["<", "=="]), (r"(?<![>\-=])>=", [">", "=="]),
    (r"(?<= )<(?= )", ["<=", ">"]), (r"(?<= )>(?= )", [">=", "<"]),
    (r"==", ["!="]), (r"!=", ["=="]), (r"&&", ["||"]), (r"\|\|", ["&&"]),
    (r"(?<= )\+(?= )", ["-"]), (r"(?<= )-(?= )", ["+"]), (r"(?<= )\*(?= )", ["/"]), (r"(?<= )/(?= )", ["*"]),
    (r"(?<= )%(?= )", ["/"]), (r"(?<= )\^(?= )", ["|"]), (r"(?<= )\|(?= )", ["&"]), (r"(?<= )<<(?= )", [">>"]),
    (r"\+=", ["-="]), (r"-=", ["+="]), (r"\+\+(?=\w)", ["--"]), (r"--(?=\w)", ["++"]),
    (r"\bstd::min\b", ["std::max"]), (r"\bstd::max\b", ["std::min"]),
    (r"\btrue\b", ["false"]), (r"\bfalse\b", ["true"]),
    (r"\bstd::nearbyint\b", ["std::trunc"]), (r"\bstd::rint\b", ["std::trunc"]), (r"\bstd::round\b", ["std::nearbyint"]),
    (r"(?<![\w.])\d+(?![\w.'])", ["{+1}", "{-1}"]), (r"(?<![\w.])\d+\.\d+f?(?![\w.])", ["{*2}"]),
    (r"(?<=if \()(?=[^)]*\)(?: |$))", ["!("]),
    (r"\bcontinue;", [";"]), (r"\bbreak;", [";"]),
]


def code_of(line):
    """The line with comments and texts blanked out, so that columns stay."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', lambda m: " " * len(m.group()), line)
    line = re.sub(r"'(?:\\.|[^'\\])'", lambda m: " " * len(m.group()), line)
    return re.sub(r"//.*", "", line)


def mutants_of(path):
    """(line number, column, old, new, the changed line) of each change that may be made to a file."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = code_of(line)
        if re.match(r"\s*(#|template|using|namespace|static_assert|\*|//)", line) or not code.strip():
            continue
        for pattern, replacements in CHANGES:
            for match in re.finditer(pattern, code):
                for new in replacements:
                    old = match.group()
                    if new == "!(":
                        end = closing(code, match.start())
                        if end < 0:
                            continue
                        changed = line[:match.start()] + "!(" + line[match.start():end] + ")" + line[end:]
                        yield number, match.start() + 1, "if (...)", "if (!(...))", changed
                        continue
                    text = {"{+1}": lambda: str(int(old) + 1), "{-1}": lambda: str(int(old) - 1),
                            "{*2}": lambda: repr(2 * float(old.rstrip("f")) or 1.0) + ("f" if old.endswith("f") else "")}
                    put = text[new]() if new in text else new
                    yield number, match.start() + 1, old, put, line[:match.start()] + put + line[match.end():]


def closing(code, start):
    depth = 1
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
        if depth == 1 and code[at] == ";":  # if (init; condition)
            return -1
    return -1


class Tree:
    """A build tree: how a source is compiled and what is linked."""

    def __init__(self, build, overlay):
        self.build, self.overlay = pathlib.Path(build).resolve(), overlay
        self.commands = {pathlib.Path(entry["file"]).resolve(): entry
                         for entry in json.loads((self.build / "compile_commands.json").read_text())
                         if "-DQTN_STATIC" not in entry["command"]}  # capi is compiled for both libraries
        self.links = {}

    def compile(self, source, output):
        """Of the overlay where it has the source. Unoptimized: that is quicker, and no test is of speed."""
        entry = self.commands[(ROOT / source).resolve()]
        words = shlex.split(entry["command"])
        if words[0].endswith("ccache"):
            words = words[1:]
        place = self.overlay / source if (self.overlay / source).exists() else ROOT / source
        words[words.index("-o") + 1] = str(output)
        words[words.index("-c") + 1] = str(place)
        words[1:1] = [f"-I{self.overlay}/src"]
        words = [word for word in words if word not in ("-g", "-Werror")] + ["-O1", "-g0", "-w"]
        return subprocess.run(words, capture_output=True, cwd=entry["directory"]).returncode == 0

    def link(self, target, mutant, output):
        if target not in self.links:
            done = subprocess.run(["ninja", "-t", "commands", target], capture_output=True, text=True, cwd=self.build, check=True)
            lines = [line for line in done.stdout.splitlines() if re.search(r" -o (?!\S+\.o )\S+", line) and " -c " not in line]
            self.links[target] = lines[-1]
        line = self.links[target]
        line = re.sub(r" -o (\S+)", f" -o {output} {mutant}", line, count=1).replace(" -g ", " ")
        line = line.split(" && ")[1] if line.startswith(": && ") else line
        return subprocess.run(line + " -Wl,--strip-debug -Wl,--allow-multiple-definition", shell=True, capture_output=True,
                              cwd=self.build).returncode == 0


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    os.nice(10)


def passes(words, folder, environment):
    try:
        done = subprocess.run(words, capture_output=True, cwd=folder, timeout=SECONDS, preexec_fn=limit,
                              env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def judge(tree, area, source, work):
    mutant = work / "mutant.o"
    if not tree.compile(source, mutant):
        return "not compiled", ""
    shared = False
    for test in area["tests"]:
        if test.startswith("kernels_") and not source.startswith("src/kernels/"):
            continue  # it has nothing else of the library
        if test.startswith(("unit_", "kernels_")):
            program = work / test
            if not tree.link(test, mutant, program):
                return "not compiled", "link"
            if not passes([program], work, {}):
                return "killed", test
            continue
        if not shared:
            shared = tree.link("qtensor", mutant, work / "libqtensor.so.0")
            if not shared:
                return "not compiled", "link"
        for isa in area.get("isas", [""]):
            environment = {"LD_LIBRARY_PATH": str(work), **({"QTENSOR_ISA": isa} if isa else {})}
            words = shlex.split(test.format(build=tree.build, root=ROOT, library=work / "libqtensor.so.0"))
            if not passes(words, ROOT, environment):
                return "killed", pathlib.Path(words[0]).name + (" " + isa if isa else "")
    return "survived", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("area")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="FILE:LINE:COLUMN, to look at one again")
    parser.add_argument("--again", action="store_true", help="judge the survivors of AREA.csv again")
    arguments = parser.parse_args()
    area = json.loads((HERE / "areas.json").read_text())[arguments.area]

    found = [(file, source, *change) for file, source in area["files"].items() for change in mutants_of(ROOT / file)]
    kept, table = [], HERE / f"{arguments.area}.csv"
    if arguments.again:
        with open(table, newline="") as file:
            kept = list(csv.reader(file))[1:]
        survivors = [row[:1] + [int(row[1]), int(row[2])] + row[3:5] for row in kept if row[5] == "survived"]
        chosen = [m for m in found if [m[0], *m[2:6]] in survivors]
        kept = [row for row in kept if row[5] != "survived"]
        if len(chosen) != len(survivors):
            sys.exit("the sources have changed: run the area anew")
    elif arguments.only:
        chosen = [m for m in found if f"{m[0]}:{m[2]}:{m[3]}" == arguments.only]
    else:
        chosen = sorted(random.Random(arguments.seed).sample(found, min(arguments.count, len(found))))
    rows = []
    with tempfile.TemporaryDirectory(prefix="qtensor-mutants-") as folder:
        work = pathlib.Path(folder)
        overlay = work / "overlay"
        tree = Tree(arguments.build, overlay)
        for file, source, number, column, old, new, changed in chosen:
            lines = (ROOT / file).read_text().splitlines()
            lines[number - 1] = changed
            place = overlay / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("\n".join(lines) + "\n")
            verdict, by = judge(tree, area, source, work)
            place.unlink()
            rows.append([file, number, column, old, new, verdict, by])
            print(f"{verdict:13}{file}:{number}:{column}  {old} -> {new}  {by}", flush=True)
    if arguments.again:
        rows = sorted(kept + rows, key=lambda row: (row[0], int(row[1]), int(row[2])))
    if not arguments.only:
        with open(table, "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["file", "line", "column", "old", "new", "verdict", "by"])
            out.writerows(rows)
    killed, survived = (sum(row[5] == verdict for row in rows) for verdict in ("killed", "survived"))
    print(f"{arguments.area}: {killed} of {killed + survived} killed ({100 * killed / max(1, killed + survived):.1f} %), "
          f"{len(rows) - killed - survived} did not compile")


if __name__ == "__main__":
    sys.exit(main())
