# SPDX-License-Identifier: Apache-2.0
"""What the command writes to: links are followed, what is no regular file stays what it is, inputs are never overwritten."""

import os
import shutil
import stat
import subprocess
import threading
import unittest

from support import CALIBRATION, COMMAND, MODEL, CommandTest


class Output(CommandTest):
    def quantize(self, output, *more):
        return ["quantize", MODEL, "-o", output, "--data", CALIBRATION, "--plain", *more]

    def reference(self):
        self.succeed(*self.quantize("reference.onnx"))
        with open(self.path("reference.onnx"), "rb") as file:
            return file.read()

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_links_are_followed(self):
        want = self.reference()
        os.mkdir(self.path("elsewhere"))
        self.path("elsewhere/model.onnx", b"old")
        os.symlink("elsewhere/model.onnx", self.path("link.onnx"))
        os.symlink("link.onnx", self.path("link_to_link.onnx"))
        os.symlink("elsewhere/new.onnx", self.path("dangling.onnx"))
        self.succeed(*self.quantize("link_to_link.onnx"))
        self.succeed(*self.quantize("dangling.onnx"))
        for name in ("link.onnx", "link_to_link.onnx", "dangling.onnx"):
            self.assertTrue(os.path.islink(self.path(name)), name)
        self.assertEqual(self.content("elsewhere/model.onnx"), want)
        self.assertEqual(self.content("elsewhere/new.onnx"), want)
        os.symlink("loop.onnx", self.path("loop.onnx"))
        self.refuse(*self.quantize("loop.onnx"), says="loop.onnx")

    def test_permissions_stay(self):
        self.path("private.onnx", b"old")
        os.chmod(self.path("private.onnx"), 0o600)
        self.succeed(*self.quantize("private.onnx"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("private.onnx")).st_mode), 0o600)

    def test_pipes_get_the_bytes(self):
        want = self.reference()
        os.mkfifo(self.path("pipe"))
        got = []

        def read():
            with open(self.path("pipe"), "rb") as file:
                got.append(file.read())

        reader = threading.Thread(target=read)
        reader.start()
        self.succeed(*self.quantize("pipe"))
        reader.join()
        self.assertEqual(got, [want])
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))
        self.refuse(*self.quantize("pipe"), says="pipe")  # nobody reads it

    def test_open_files_get_the_bytes(self):
        """As /dev/stdout does, which a test that runs as root had better not risk: a link into /proc."""
        want = self.reference()
        os.symlink("/proc/self/fd/1", self.path("stdout"))
        done = subprocess.run([COMMAND, *self.quantize("stdout")], capture_output=True, cwd=self.folder, timeout=240,
                              check=True)
        self.assertEqual(done.stdout[:len(want)], want)
        with open(self.path("redirected"), "wb") as file:
            file.write(b"before ")
            file.flush()
            subprocess.run([COMMAND, *self.quantize("stdout")], stdout=file, cwd=self.folder, timeout=240, check=True)
        self.assertEqual(self.content("redirected")[:7 + len(want)], b"before " + want)
        self.assertTrue(os.path.islink(self.path("stdout")))

    def test_inputs_are_refused(self):
        shutil.copy(MODEL, self.path("net.onnx"))
        shutil.copy(CALIBRATION, self.path("data.npy"))
        os.symlink("net.onnx", self.path("alias.onnx"))
        os.link(self.path("net.onnx"), self.path("hard.onnx"))
        data = ["--data", "data.npy"]
        for output in ("net.onnx", "./net.onnx", self.path("net.onnx"), "alias.onnx", "hard.onnx", "data.npy"):
            self.refuse("quantize", "net.onnx", "-o", output, *data, code=2, says="overwritten")
        self.refuse("quantize", "net.onnx", "-o", "out.onnx", "--report", "data.npy", *data, code=2, says="overwritten")
        self.refuse("calibrate", "net.onnx", "-o", "net.onnx", *data, code=2, says="overwritten")
        self.refuse("run", "net.onnx", "-o", "data.npy", *data, code=2, says="overwritten")
        for name, original in (("net.onnx", MODEL), ("data.npy", CALIBRATION)):
            with open(original, "rb") as file:
                self.assertEqual(self.content(name), file.read())

    def test_a_dash_is_no_file(self):
        self.refuse(*self.quantize("-"), code=2, says="./-")

    def test_planted_links_are_not_followed(self):
        # The next process numbers are anyone's guess, so all of them are taken.
        self.path("victim", b"precious")
        for pid in range(os.getpid(), os.getpid() + 300):
            for name in ("report.html", "out.onnx"):
                for ending in (f"{pid}.tmp", f"{pid}-0.tmp"):
                    os.symlink("victim", self.path(f"{name}.{ending}"))
        self.succeed(*self.quantize("out.onnx", "--report", "report.html"))
        self.assertEqual(self.content("victim"), b"precious")


if __name__ == "__main__":
    unittest.main()
