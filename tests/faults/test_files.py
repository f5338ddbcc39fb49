# SPDX-License-Identifier: Apache-2.0
"""Every function of the C API that has to do with a file, with each of its calls of the system failing in turn. What it
writes is the old file or the new one; what it reads comes whole or not at all; nothing temporary stays; and the same
call made again succeeds as if nothing had been."""

import os
import shutil
import subprocess
import unittest

from support import ALL, API, DIGITS, FILE_CALLS, FaultTest, figure

# What a call may meet; EINTR and "short" are no failures.
HARMLESS = ["EINTR", "short"] if ALL else ["EINTR"]
HARMFUL = ["EIO", "ENOSPC", "EACCES", "EDQUOT", "EROFS", "EMFILE", "ENOMEM", "full"] if ALL else ["EIO"]

ROOT = os.path.join(DIGITS, "..", "..")
TWO_FILES = "qmodel_save_external"
FUNCTIONS = subprocess.run([FILE_CALLS, "list"], capture_output=True, text=True, check=True).stdout.split()
FUNCTIONS.remove(TWO_FILES)


class Files(FaultTest):
    def setUp(self):
        super().setUp()
        for name in ("external.onnx", "make_sure.bin"):
            shutil.copy(os.path.join(ROOT, "tests/golden/hostile", name), self.folder)
        subprocess.run([FILE_CALLS, "prepare", self.folder], check=True)
        self.before = sorted(os.listdir(self.folder))

    def forget(self, keep=()):
        for name in os.listdir(self.folder):
            if name not in self.before and name not in keep:
                os.unlink(self.path(name))

    def files(self):
        return {name: self.content(name) for name in sorted(os.listdir(self.folder)) if name not in self.before}

    def check(self, function, kind, old):
        """All points of one function; `old`: there is a file already."""
        self.forget()
        clean = self.run_broken([FILE_CALLS, function, self.folder])
        good = clean.out
        self.assertEqual((clean.code, good.count("QTN_OK")), (0, 1), clean.err + good)
        new = self.files()
        self.assertGreater(len(clean.calls), 1)
        before = {name: b"what was there before" for name in new} if old else {}

        def run(n):
            self.forget()
            for name, content in before.items():
                self.path(name, content)
            return self.run_broken([FILE_CALLS, function, self.folder], kind, n)

        def judge(n, done):
            self.assertEqual(done.code, 0)
            status, message = done.out.rstrip("\n").split("\t", 1)
            if status == "QTN_OK":
                self.assertEqual((done.out, self.files()), (good, new))
            else:
                self.assertNotIn(kind, HARMLESS)
                self.assertEqual(status, "QTN_EIO" if kind != "ENOMEM" or status != "QTN_ENOMEM" else status)
                self.assertNotIn("\n", message)
                self.assertTrue(any(name in message for name in [*new, *self.before]), message)
                self.assertIn(self.files(), [before, new])
            again = self.run_broken([FILE_CALLS, function, self.folder, "again"], kind, n)
            self.assertEqual(again.code, 0)
            if kind != "full":
                self.assertEqual(again.out.splitlines(True)[1], good)
                self.assertEqual(self.files(), new)

        return self.walk(f"{function}, {kind}", run, judge)

    def test_every_function_of_the_header_is_here(self):
        with_files = {function["name"] for function in API if any(p["name"] == "path" for p in function["params"])}
        self.assertEqual(with_files - set(FUNCTIONS), set())

    def test_functions(self):
        points = 0
        for function in FUNCTIONS:
            for kind in HARMLESS + HARMFUL:
                for old in (False, True) if ALL and ("save" in function or "merge" in function) else (False,):
                    with self.subTest(function=function, kind=kind, old=old):
                        points += self.check(function, kind, old)
        figure("files of the C API", points, points,
               f"{len(FUNCTIONS)} functions, each call of the system failing in {len(HARMLESS + HARMFUL)} ways")

    def test_two_files(self):
        """A model and its external data: the model that is there always has the data that it names."""
        command = [FILE_CALLS, TWO_FILES, self.folder]
        clean = self.run_broken(command)
        self.assertTrue(clean.out.startswith("QTN_OK"), clean.out)
        saved = self.files()
        self.assertEqual(list(saved), ["out.onnx", "out.onnx.data"])
        points = 0
        for kind in HARMLESS + HARMFUL:
            for before in ({}, saved):

                def run(n):
                    self.forget()
                    for name, content in before.items():
                        self.path(name, content)
                    return self.run_broken(command, kind, n)

                def judge(n, done):
                    self.assertEqual(done.code, 0)
                    files = self.files()
                    if not done.out.startswith("QTN_OK"):
                        self.assertNotIn(kind, HARMLESS)
                        self.assertEqual(files, before, done.out)
                        return
                    named = "out.onnx.1.data" if before else "out.onnx.data"
                    self.assertIn(named.encode(), files["out.onnx"])
                    self.assertEqual(files[named], saved["out.onnx.data"])
                    # The former data stays where it cannot be known or removed.
                    left = set(files) - {"out.onnx", named}
                    self.assertIn(left, [set()] if kind in HARMLESS else [set(), set(before) - {"out.onnx"}])

                with self.subTest(kind=kind, old=bool(before)):
                    points += self.walk(f"{TWO_FILES}, {kind}", run, judge)
        figure("a model in two files", points, points, f"each call of the system failing in {len(HARMLESS + HARMFUL)} ways")


if __name__ == "__main__":
    unittest.main()
