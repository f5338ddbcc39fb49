# SPDX-License-Identifier: Apache-2.0
"""What the command writes to: links are followed, what is no regular file stays what it is, inputs are never overwritten."""

import json
import os
import shutil
import stat
import struct
import subprocess
import threading
import unittest

from support import CALIBRATION, COMMAND, IMAGES, LABELS, MODEL, CommandTest, onnx


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
        self.assertEqual(self.piped(*self.quantize("stdout")), want)
        with open(self.path("redirected"), "wb") as file:
            file.write(b"before ")
            file.flush()
            subprocess.run([COMMAND, *self.quantize("stdout")], stdout=file, cwd=self.folder, timeout=240, check=True,
                           stderr=subprocess.DEVNULL)
        self.assertEqual(self.content("redirected"), b"before " + want)
        self.assertTrue(os.path.islink(self.path("stdout")))

    def piped(self, *arguments, says="stdout: "):
        """What standard output gets where the output goes there; what the command says is on standard error."""
        if not os.path.islink(self.path("stdout")):
            os.symlink("/proc/self/fd/1", self.path("stdout"))
        done = subprocess.run([COMMAND, *arguments], capture_output=True, cwd=self.folder, timeout=240, check=True)
        self.assertIn(says, done.stderr.decode())
        return done.stdout

    def test_standard_output_has_nothing_else(self):
        data = ("--data", CALIBRATION)
        self.succeed(*self.quantize("reference.onnx"))
        self.assertEqual(self.piped(*self.quantize("stdout", "--json"), says='"output":"stdout"'), self.content("reference.onnx"))
        self.succeed("quantize", MODEL, "-o", "dynamic.onnx", "--dynamic")
        self.assertEqual(self.piped("quantize", MODEL, "-o", "stdout", "--dynamic", says="stdout: without samples\n"),
                         self.content("dynamic.onnx"))
        self.succeed("calibrate", MODEL, "-o", "all.qcal", *data)
        self.assertEqual(self.piped("calibrate", MODEL, "-o", "stdout", *data), self.content("all.qcal"))
        self.succeed("merge", "all.qcal", "all.qcal", "-o", "twice.qcal")
        self.assertEqual(self.piped("merge", "all.qcal", "all.qcal", "-o", "stdout"), self.content("twice.qcal"))
        train = ("train", MODEL, "--data", IMAGES, "--labels", LABELS, "--epochs", "1")
        self.succeed(*train, "-o", "trained.onnx")
        self.assertEqual(self.piped(*train, "-o", "stdout"), self.content("trained.onnx"))
        log = self.piped(*train, "-o", "again.onnx", "--log", "stdout", says="again.onnx: ")
        self.assertEqual(json.loads(log)["epoch"], 1)

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

    def each_input(self):
        """A file that is read, and a command that has it as its output."""
        for name in ("folder=1", "validation", "parts"):
            os.mkdir(self.path(name))
        for path in ("net.onnx", "a=b.onnx", "folder=1/net.onnx", "k.best.safetensors", "k.safetensors.calibration~"):
            shutil.copy(MODEL, self.path(path))
        for path in ("x.npy", "folder=1/x.npy", "validation/x.npy"):
            shutil.copy(IMAGES, self.path(path))
        for path in ("l.npy", "folder=1/l.npy", "validation/l.npy"):
            shutil.copy(LABELS, self.path(path))
        self.path("rules.json", b'{"recipe": "onnx"}')
        self.succeed("calibrate", MODEL, "-o", "parts/1.qcal", "--data", CALIBRATION)
        self.path("w.bin", struct.pack("<8f", *range(8)))
        os.symlink("w.bin", self.path("w_alias.bin"))
        external = onnx([("MatMul", ["x", "w"], ["y"])], {"x": ["n", 2]}, {"y": ["n", 4]}, external=[("w", [2, 4], "w.bin")])
        os.mkdir(self.path("beside"))
        self.path("beside/external.onnx", external)
        os.link(self.path("w.bin"), self.path("beside/w.bin"))
        self.path("external.onnx", external)
        data = ("--data", "x.npy")
        train = ("train", "net.onnx", *data, "--labels", "l.npy", "--epochs", "1")
        yield "a=b.onnx", ("quantize", "a=b.onnx", "-o", "a=b.onnx", *data)
        yield "folder=1/net.onnx", ("quantize", "folder=1/net.onnx", "-o", "folder=1/net.onnx", *data)
        yield "folder=1/x.npy", ("run", "net.onnx", "--data", "folder=1/x.npy", "-o", "folder=1/x.npy")
        yield "folder=1/x.npy", ("run", "net.onnx", "--data", "image=folder=1/[x].npy", "-o", "folder=1/x.npy")
        yield "folder=1/l.npy", (*train[:4], "--labels", "folder=1/l.npy", "-o", "folder=1/l.npy")
        yield "w.bin", ("quantize", "external.onnx", "-o", "w.bin")
        yield "w.bin", ("quantize", "external.onnx", "-o", "w_alias.bin")
        yield "w.bin", ("quantize", "beside/external.onnx", "-o", "w.bin")
        validation = ("--validation", "validation/x.npy", "--validation-labels", "validation/l.npy")
        for name in ("x.npy", "l.npy"):
            yield f"validation/{name}", (*train, *validation, "-o", f"validation/{name}")
        yield "rules.json", ("calibrate", "net.onnx", *data, "--config", "rules.json", "-o", "rules.json")
        yield "rules.json", ("quantize", "net.onnx", *data, "--config", "rules.json", "-o", "rules.json")
        yield "rules.json", (*train, "--qat", "--config", "rules.json", "-o", "rules.json")
        yield "rules.json", (*train, "--qat", "--config", "rules.json", "-o", "out.onnx", "--log", "rules.json")
        yield "parts/1.qcal", ("merge", "parts/1.qcal", "parts/1.qcal", "-o", "parts/1.qcal")
        yield "parts/1.qcal", ("quantize", "net.onnx", "--calibration", "parts/1.qcal", "-o", "parts/1.qcal")
        yield "k.best.safetensors", ("train", "k.best.safetensors", *train[2:], "-o", "out.onnx", "--checkpoint", "k.safetensors")
        calibrate = ("calibrate", "k.safetensors.calibration~", *data, "-o", "out.qcal", "--checkpoint", "k.safetensors")
        yield "k.safetensors.calibration~", calibrate

    def test_every_input_is_refused(self):
        for name, command in self.each_input():
            with self.subTest(command=command):
                before = self.content(name)
                self.refuse(*command, code=2, says="is also read")
                self.assertEqual(self.content(name), before)

    def test_recipes_are_no_files(self):
        self.path("onnx", b"old")
        self.succeed(*self.quantize("onnx", "--config", "onnx"))

    def test_two_outputs_are_two_files(self):
        data = ("--data", IMAGES)
        train = ("train", MODEL, *data, "--labels", LABELS, "--epochs", "1", "-o")
        os.mkdir(self.path("folder"))
        os.symlink("folder", self.path("other"))
        os.symlink("folder/new", self.path("dangling"))
        self.path("old", b"old")
        os.link(self.path("old"), self.path("hard"))
        for a, b in (("new", "./new"), ("new", self.path("new")), ("folder/new", "other/new"), ("folder/new", "dangling"),
                     ("old", "hard")):
            for command in ([*self.quantize(a), "--report", b], [*train, a, "--report", b], [*train, a, "--log", b],
                            [*train, "out.onnx", "--report", a, "--log", b], ["calibrate", MODEL, *data, "-o", a, "--checkpoint", b]):
                self.refuse(*command, code=2, says=f"{b}: is named for two outputs, also as {a}")
        self.refuse(*train, "k.best.safetensors", "--checkpoint", "./k.safetensors", code=2, says="two outputs")
        self.assertEqual(self.content("old"), b"old")
        self.succeed(*self.quantize("/dev/null", "--report", "/dev/null"))

    def test_names_that_are_not_utf_8(self):
        """JSON shows them with U+FFFD, and what was done counts."""
        for options in (["--data", CALIBRATION, "--plain"], ["--dynamic"]):
            done = self.execute("quantize", MODEL, "-o", b"b\xff.onnx", *options, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(done.stdout)["output"], "b\ufffd.onnx")
            os.remove(os.path.join(self.folder.encode(), b"b\xff.onnx"))

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
