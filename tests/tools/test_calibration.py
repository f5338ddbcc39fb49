# SPDX-License-Identifier: Apache-2.0
"""Calibration by several processes: shards and merging, files that do not belong together, kills."""

import os
import pty
import re
import signal
import struct
import subprocess
import time
import unittest

from support import CALIBRATION, COMMAND, IMAGES, MODEL, CommandTest, npy, onnx, read_npy

PARTS = 4


class CalibrationTest(CommandTest):
    def calibrate(self, name, *options, model=MODEL, data=CALIBRATION):
        path = self.path(name)
        self.succeed("calibrate", model, "-o", path, "--data", data, *options)
        return path

    def quantize(self, name, *options):
        path = self.path(name)
        self.succeed("quantize", MODEL, "-o", path, *options)
        return self.bytes_of(path)

    def bytes_of(self, path):
        with open(path, "rb") as file:
            return file.read()


class Shards(CalibrationTest):
    def test_processes_side_by_side_give_the_model_of_one(self):
        for observer in ("minmax", "max", "mse"):
            options = ("--observer", observer)
            paths = [self.path(f"part{i}.qcal") for i in range(PARTS)]
            processes = [
                subprocess.Popen([COMMAND, "calibrate", MODEL, "-o", path, "--data", CALIBRATION, "--shard",
                                  f"{i + 1}/{PARTS}", *options], stdout=subprocess.DEVNULL)
                for i, path in enumerate(paths)
            ]  # fmt: skip
            self.assertEqual([process.wait() for process in processes], [0] * PARTS)
            merged, whole = self.path("merged.qcal"), self.calibrate("whole.qcal", *options)
            self.succeed("merge", *paths, "-o", merged)
            self.assertEqual(self.bytes_of(merged), self.bytes_of(whole))
            self.assertEqual(self.quantize("a.onnx", "--calibration", merged, *options),
                             self.quantize("b.onnx", "--data", CALIBRATION, "--plain", *options))
            self.assertNotEqual(self.quantize("c.onnx", "--calibration", paths[0], *options),
                                self.quantize("d.onnx", "--calibration", merged, *options))

    def test_every_observer_saves_and_merges(self):
        for observer in ("minmax", "max", "moving_average", "mse", "histogram", "percentile", "entropy", "nvidia_percentile",
                         "nvidia_entropy", "nvidia_mse"):
            options = ("--observer", observer, "--samples", "30")
            whole = self.calibrate("whole.qcal", *options)
            self.assertEqual(self.quantize("a.onnx", "--calibration", whole, "--observer", observer),
                             self.quantize("b.onnx", "--data", CALIBRATION, "--plain", *options))
            parts = [self.calibrate(f"{i}.qcal", *options, "--shard", f"{i}/2") for i in (1, 2)]
            self.succeed("merge", *parts, "-o", "merged.qcal")
            self.quantize("c.onnx", "--calibration", "merged.qcal", "--observer", observer)

    def test_shards_cover_every_sample_once(self):
        counts = []
        for i in range(1, 8):
            text = self.succeed("calibrate", MODEL, "-o", "x.qcal", "--data", CALIBRATION, "--samples", "30", "--shard", f"{i}/7")
            counts.append(int(text.split()[-2]))
        self.assertEqual(sum(counts), 30)
        self.assertLessEqual(max(counts) - min(counts), 1)

    def test_wrong_shards(self):
        arguments = ("calibrate", MODEL, "-o", "x.qcal", "--data", CALIBRATION)
        for shard in ("0/4", "5/4", "1", "1/", "/4", "1/0", "1/4/4", "a/4", "-1/4", "1/4 "):
            self.refuse(*arguments, "--shard", shard, code=2, says="--shard")
        self.refuse(*arguments, "--samples", "3", "--shard", "1/4", says=["shard 1/4", "3 samples"])


class Files(CalibrationTest):
    def setUp(self):
        super().setUp()
        self.good = self.calibrate("good.qcal", "--samples", "5")

    def check_refused(self, other, says, model_says=None):
        self.refuse("merge", self.good, other, "-o", "all.qcal", says=says)
        self.refuse("quantize", MODEL, "-o", "out.onnx", "--calibration", other, says=model_says or says)

    def test_other_model(self):
        nodes = [("Add", ["image", "image"], ["a"]), ("Relu", ["a"], ["b"])]
        shape = {"image": ["n", 1, 8, 8]}
        path = self.path("other.onnx", onnx(nodes, shape, {"b": ["n", 1, 8, 8]}))
        self.check_refused(self.calibrate("other.qcal", model=path), ["other.qcal", "another model"])

    def test_other_weights(self):
        weight = bytearray(self.bytes_of(MODEL))
        middle = len(weight) // 2
        weight[middle] ^= 1
        path = self.path("other.onnx", bytes(weight))
        self.check_refused(self.calibrate("other.qcal", model=path), ["other.qcal", "another model"])

    def test_other_config(self):
        self.check_refused(self.calibrate("other.qcal", "--config", "fbgemm"), ["other.qcal", '"fbgemm"', '"onnx"'])

    def test_other_observer(self):
        self.check_refused(self.calibrate("other.qcal", "--observer", "mse"), ["other.qcal", '"mse"', '"minmax"', '"image"'])

    def test_other_version(self):
        content = self.bytes_of(self.good)
        other = self.path("other.qcal", content[:8] + struct.pack("<I", 2) + content[12:])
        self.check_refused(other, ["other.qcal", "version 2"])

    def test_damaged(self):
        content = self.bytes_of(self.good)
        for damaged in (b"", b"QTN", content[:7], b"\0" + content[1:], content[:20], content[:-1], content + b"\0",
                        content[:-4] + b"\xff\xff\xff\xff", self.bytes_of(MODEL)):
            self.check_refused(self.path("other.qcal", damaged), "other.qcal")
        for size in range(0, len(content), 13):
            self.check_refused(self.path("other.qcal", content[:size]), "other.qcal")
        self.check_refused("nothing.qcal", "nothing.qcal")

    def test_command_line(self):
        self.refuse("quantize", MODEL, "-o", "out.onnx", "--calibration", self.good, "--data", CALIBRATION, code=2)
        self.refuse("quantize", MODEL, "-o", "out.onnx", "--observer", "mse", code=2, says="--data")
        self.refuse("merge", "-o", "all.qcal", code=2)
        self.refuse("merge", self.good, code=2)
        self.refuse("merge", self.good, "-o", "no-such-folder/all.qcal", says="no-such-folder/all.qcal")


class Samples(CalibrationTest):
    """What must not be calibrated with: one line says why, and nothing is written."""

    def check(self, data, says, *options, model=MODEL):
        for command, output in (("calibrate", "out.qcal"), ("quantize", "out.onnx")):
            self.refuse(command, model, "-o", output, "--data", data, *options, says=says)

    def test_not_a_number(self):
        values = [0.5] * 64 * 5
        values[64 * 3 + 10] = float("nan")
        self.check(self.path("x.npy", npy(values, (5, 1, 8, 8))), ["image", "nan at index 10", "sample 3"])

    def test_wrong_shape(self):
        self.check(self.path("x.npy", npy([0.5] * 49, (1, 1, 7, 7))), ["image", "1x1x7x7", "x1x8x8"])

    def test_pictures(self):
        nodes = [("Relu", ["x"], ["y"])]
        model = self.path("model.onnx", onnx(nodes, {"x": ["n", 3, 4, 4]}, {"y": ["n", 3, 4, 4]}))
        folder = self.path("pictures")
        os.mkdir(folder)
        self.check(folder, ["pictures", "holds no"], model=model)
        self.path("pictures/broken.png", b"\x89PNG\r\n\x1a\n and no more")
        self.check(folder, "broken.png", model=model)


class Resumed(CalibrationTest):
    """A calibration that was stopped ends with the bytes of one that was not."""

    def many_samples(self):
        values, shape, _ = read_npy(IMAGES)
        half = npy(values * 2, (shape[0] * 2, *shape[1:]))
        self.path("many-0.npy", half)
        self.path("many-1.npy", half)

    def arguments(self, name, *options):
        return ("calibrate", MODEL, "-o", name, "--data", "many-*.npy", *options)

    def stop(self, stopping, *options):
        """Sends a signal when there is a checkpoint, or at once."""
        checkpoint = self.path("kept.safetensors")
        before = os.stat(checkpoint).st_mtime_ns if os.path.exists(checkpoint) else 0
        process = subprocess.Popen([COMMAND, *self.arguments("out.qcal", "--checkpoint", checkpoint, *options)], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if stopping == signal.SIGKILL:
            while process.poll() is None and (not os.path.exists(checkpoint) or os.stat(checkpoint).st_mtime_ns == before):
                time.sleep(0.01)
        else:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                while not int(next(line for line in status if line.startswith("SigCgt")).split()[1], 16) & 1 << signal.SIGINT - 1:
                    time.sleep(0.01)
                    status.seek(0)
        process.send_signal(stopping)
        return process.communicate()[1], process.returncode

    def test_interrupts(self):
        self.many_samples()
        options = ("--observer", "histogram")  # which depends on the order
        self.succeed(*self.arguments("whole.qcal", *options))
        said, status = self.stop(signal.SIGINT, *options, "--resume")  # there is none yet
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\Aqtensor: stopped after \d+ of 2160 batches; --resume goes on from \S+kept.safetensors\n\Z")
        first = int(said.split()[3])
        said, status = self.stop(signal.SIGINT, *options, "--resume")
        self.assertGreater(int(said.split()[3]), first)
        self.succeed(*self.arguments("out.qcal", "--checkpoint", "kept.safetensors", "--resume", *options))
        self.assertEqual(self.bytes_of(self.path("out.qcal")), self.bytes_of(self.path("whole.qcal")))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("kept")])

    def test_kills(self):
        self.many_samples()
        options = ("--observer", "entropy")
        self.succeed(*self.arguments("whole.qcal", *options))
        _, status = self.stop(signal.SIGKILL, *options)
        if status == 0:
            self.skipTest("the machine is too fast: all was done before there was a checkpoint")
        self.succeed(*self.arguments("out.qcal", "--checkpoint", "kept.safetensors", "--resume", *options))
        self.assertEqual(self.bytes_of(self.path("out.qcal")), self.bytes_of(self.path("whole.qcal")))

    def test_other_checkpoints_are_refused(self):
        self.many_samples()
        self.stop(signal.SIGINT)
        resumed = ("--checkpoint", "kept.safetensors", "--resume")
        self.refuse(*self.arguments("out.qcal", *resumed, "--samples", "30"), says=["kept.safetensors", "(30 samples)", "(2160 samples)"])
        self.refuse(*self.arguments("out.qcal", *resumed, "--shard", "1/2"), says=["kept.safetensors", "--shard 1/2"])
        self.refuse("calibrate", MODEL, "-o", "out.qcal", "--data", CALIBRATION, *resumed, says=["kept.safetensors", "many-*.npy"])
        self.refuse(*self.arguments("out.qcal", *resumed, "--config", "nvidia"), says=["kept.safetensors", "nvidia"])
        self.path("bad.safetensors", b"bad")
        self.refuse(*self.arguments("out.qcal", "--checkpoint", "bad.safetensors", "--resume"), says="bad.safetensors")
        self.refuse(*self.arguments("out.qcal", "--resume"), code=2, says="--checkpoint")
        self.refuse(*self.arguments("out.qcal", "--checkpoint", "out.qcal"), code=2, says="out.qcal: is named for two outputs")


class Interrupted(CalibrationTest):
    def many_samples(self):
        values, shape, _ = read_npy(IMAGES)
        times = 40
        return self.path("many.npy", npy(values * times, (shape[0] * times, *shape[1:]))), shape[0] * times

    def test_kill_leaves_no_part_of_a_file(self):
        data, count = self.many_samples()
        start = time.monotonic()
        content = self.bytes_of(self.calibrate("whole.qcal", data=data))
        whole = time.monotonic() - start
        killed = 0
        for part in (0.1, 0.5, 0.9):
            process = subprocess.Popen([COMMAND, "calibrate", MODEL, "-o", self.path("out.qcal"), "--data", data],
                                       stdout=subprocess.DEVNULL)
            time.sleep(part * whole)
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            # It may be killed before it writes, while it does, which leaves what it writes to, or when it has written all.
            for name in set(os.listdir(self.folder)) - {"many.npy", "whole.qcal"}:
                if name == "out.qcal":
                    self.assertEqual(self.bytes_of(self.path(name)), content)
                else:
                    self.assertRegex(name, r"\Aout\.qcal\.[0-9]+-[0-9]+\.tmp\Z")
                os.remove(self.path(name))
        self.assertGreater(killed, 0)

    def test_progress_says_time_left_on_a_terminal_only(self):
        data, count = self.many_samples()
        screen, terminal = pty.openpty()
        process = subprocess.Popen([COMMAND, "calibrate", MODEL, "-o", self.path("out.qcal"), "--data", data],
                                   stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        shown = b""
        try:
            while chunk := os.read(screen, 4096):
                shown += chunk
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(screen)
        self.assertEqual(process.wait(), 0)
        self.assertRegex(shown.decode(), rf"calibrating \[#* *\] \d+/{count}, \d+:\d\d left")
        self.assertIn(f"{count}/{count}, 0:00 left", shown.decode())
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-80:])


if __name__ == "__main__":
    unittest.main()
