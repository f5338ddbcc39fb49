#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks one promise at a time, and sees whether the tests that stand for it notice.

usage: promises.py BUILD [WORD ...] [--why]
       promises.py BUILD --check         only whether each text is in its file, and each test in the tree

promises.json holds the changes: the rows (of tests/conformance/rows.json, or the name of a test), what is broken, the file,
the text that is replaced, what stands in its place, and the tests of CTest that must fail. WORD: only changes whose rows
or words contain it. Nothing in the tree is changed: a change is compiled in place of its source, as in mutate.py, and
linked in front of the archives of a prebuilt tree. First the same is done with the file as it is, and the tests must pass.
Then, for each change:

    killed          every test that is named fails, crashes or takes too long
    survived        one of them passes
    not compiled    the compiler or the linker refuses it

Exits with 1 unless all are killed. --why: shows what each failed test said.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from mutate import HERE, ROOT, Tree

SECONDS = 300
SAID = re.compile(r"FAILED|\[  ERROR|Error\b|error:|dB,|!=|differ|not ")
TABLE = json.loads((HERE / "promises.json").read_text())


class Tests:
    """The tests of a build tree by name, run with a library that may be another."""

    def __init__(self, build):
        text = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, capture_output=True, text=True).stdout
        self.all = {test["name"]: test for test in json.loads(text)["tests"]}
        self.library = str(build / "capi/libqtensor.so")

    def program(self, name):
        return pathlib.Path(self.all[name]["command"][0]).name

    def run(self, name, program=None, library=None):
        """Whether the test fails, and what it said."""
        words = list(self.all[name]["command"])
        environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        folder = ROOT
        for entry in self.all[name]["properties"]:
            if entry["name"] == "ENVIRONMENT":
                environment.update(value.split("=", 1) for value in entry["value"])
            if entry["name"] == "WORKING_DIRECTORY":
                folder = entry["value"]
        if program:
            words[0] = str(program)
        if library:
            words = [str(library) if word.startswith(self.library) else word for word in words]
            environment["LD_LIBRARY_PATH"] = str(library.parent)
        try:
            done = subprocess.run(words, cwd=folder, env=environment, timeout=SECONDS, capture_output=True, text=True,
                                  errors="replace")
        except subprocess.TimeoutExpired:
            return True, "takes too long"
        if done.returncode == 77:
            sys.exit(f"{name} is skipped here: {(done.stdout + done.stderr).strip()[-200:]}")
        return done.returncode != 0, done.stdout + done.stderr


def title(entry):
    return f"{' '.join(entry['rows'])}: {entry['breaks']}"


def changed(entry):
    text = (ROOT / entry["file"]).read_text()
    if text.count(entry["old"]) != 1:
        sys.exit(f"{title(entry)}: {entry['file']} has the text {text.count(entry['old'])} times, not once: {entry['old']}")
    return text.replace(entry["old"], entry["new"])


class Library:
    """What a changed source makes: the library, and the unit tests with it in them."""

    def __init__(self, tree, tests, file, text, work):
        self.tree, self.tests, self.work, self.shared = tree, tests, work, None
        place = tree.overlay / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        self.mutant = work / "mutant.o"
        self.compiled = tree.compile(file, self.mutant)
        place.unlink()

    def link(self, target, output):
        if not self.tree.link(target, self.mutant, output):
            sys.exit(f"{target} cannot be linked")
        return output

    def run(self, name):
        """Whether the test fails, and what it said."""
        if name.startswith("unit/"):
            target = self.tests.program(name)
            return self.tests.run(name, program=self.link(target, self.work / target))
        self.shared = self.shared or self.link("qtensor", self.work / "libqtensor.so.0")
        return self.tests.run(name, library=self.shared)


def must_pass(unchanged, names):
    for name in names:
        failed, words = unchanged.run(name)
        if failed:
            sys.exit(f"{name} fails without a change:\n{words[-2000:]}")


def judge(library, names):
    """The verdict, the tests that pass all the same, and what the others said."""
    said, passed = {}, []
    if not library.compiled:
        return "not compiled", passed, said
    for name in names:
        failed, words = library.run(name)
        if failed:
            lines = [line.strip() for line in words.splitlines()]
            said[name] = ([line for line in lines if SAID.search(line)] or lines or ["crashes"])[0][:240]
        else:
            passed.append(name)
    return "survived" if passed else "killed", passed, said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_intermixed_args()
    build = arguments.build.resolve()
    chosen = [e for e in TABLE if not arguments.words or any(w in title(e) for w in arguments.words)]
    for entry in chosen:
        changed(entry)  # the sources may have gone on
    tests = Tests(build)
    unknown = {name for entry in chosen for name in entry["tests"]} - tests.all.keys()
    if unknown:
        sys.exit(f"promises.json names tests that are not in {build}: {' '.join(sorted(unknown))}")
    if arguments.check:
        print(f"{len(chosen)} promises can be broken")
        return 0
    killed = 0
    with tempfile.TemporaryDirectory(prefix="qtensor-mutants-") as folder:
        work = pathlib.Path(folder)
        tree = Tree(build, work / "overlay")
        for file in dict.fromkeys(entry["file"] for entry in chosen):
            of_file = [entry for entry in chosen if entry["file"] == file]
            unchanged = Library(tree, tests, file, (ROOT / file).read_text(), work)
            must_pass(unchanged, dict.fromkeys(name for entry in of_file for name in entry["tests"]))
            for entry in of_file:
                library = Library(tree, tests, file, changed(entry), work)
                verdict, passed, said = judge(library, entry["tests"])
                killed += verdict == "killed"
                print(f"{verdict:13}{title(entry)}" + (f"  ({' '.join(passed)} passes)" if passed else ""), flush=True)
                for name, words in said.items() if arguments.why else ():
                    print(f"             {name}: {words}", flush=True)
    print(f"promises: {killed} of {len(chosen)} killed")
    return killed != len(chosen)


if __name__ == "__main__":
    sys.exit(main())
