# SPDX-License-Identifier: Apache-2.0
"""What the tests of faults share: programs under broken_io, walks from one point of failure to the next, figures."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.environ.get("QTENSOR_COMMAND")
DIGITS = os.environ["QTENSOR_DIGITS"]
BROKEN_IO = os.environ["QTENSOR_BROKEN_IO"]
FILE_CALLS = os.environ["QTENSOR_FILE_CALLS"]
LIBRARY = os.environ["QTENSOR_LIBRARY"]
# The functions of the C API, as the header declares them.
with open(os.environ["QTENSOR_API"]) as file:
    API = json.load(file)["functions"]
# Every point, or a few of them while working.
ALL = os.environ.get("QTENSOR_FAULTS") == "all"

SECONDS = 60


class Run:
    """A program that has ended, and the calls that broken_io counted: (name, path, whether it failed)."""

    def __init__(self, done, log):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.calls = []
        for line in log.splitlines():
            name, rest = line.split(" ", 1)
            self.calls.append((name, rest.removesuffix(" FAULT"), rest.endswith(" FAULT")))

    @property
    def hit(self):
        """The call that failed, or None."""
        return next((call for call in self.calls if call[2]), None)


class FaultTest(unittest.TestCase):
    """Each test has an empty folder of its own, `self.folder`; faults are in there only."""

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="qtensor-faults-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def content(self, name):
        """The bytes of a file, None where there is none."""
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def run_broken(self, arguments, kind="", at=0, env=None, seconds=SECONDS, cwd=None):
        """Runs a program whose `at`-th call below the folder fails so."""
        log = tempfile.NamedTemporaryFile(prefix="qtensor-faults-log-")
        with log:
            told = {"LD_PRELOAD": BROKEN_IO, "FAULT_FOLDER": self.folder, "FAULT_KIND": kind, "FAULT_AT": str(at),
                    "FAULT_LOG": log.name, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", timeout=seconds,
                                  cwd=cwd or self.folder, env={**os.environ, **told, **(env or {})})
            return Run(done, log.read().decode())

    def walk(self, kind, run, judge, most=100000):
        """Calls run(n) and judge(n, result) for n = 1, 2 ... until no call fails any more. The number of points."""
        for n in range(1, most):
            done = run(n)
            if not done.hit:
                return n - 1
            try:
                judge(n, done)
            except AssertionError as error:
                name, path, _ = done.hit
                raise AssertionError(f"{kind} at call {n}, {name} of {path}: {error}\n{done.out}{done.err}") from None
        raise AssertionError(f"{kind}: more than {most} points")

    def assert_one_line(self, text, *words):
        self.assertRegex(text, r"\Aqtensor: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, text)


def figure(name, points, survived, what):
    """Says how far a walk went; docs/reliability.md is made of these lines."""
    line = f"{name}\t{points}\t{survived}\t{what}\n"
    sys.stderr.write("walked " + line)
    if "QTENSOR_FIGURES" in os.environ:
        os.makedirs(os.environ["QTENSOR_FIGURES"], exist_ok=True)
        with open(os.path.join(os.environ["QTENSOR_FIGURES"], re.sub(r"\W+", "_", name) + ".tsv"), "w") as file:
            file.write(line)
