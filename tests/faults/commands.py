# SPDX-License-Identifier: Apache-2.0
"""Runs of the command that read and write every kind of file it knows, on a network so small that they take a moment,
and what a file looks like that was written whole."""

import json
import os
import struct
import subprocess
import zlib

from support import COMMAND, FILE_CALLS, FaultTest

SAMPLES = 3


def npy(descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def png(width, height, pixel):
    """A picture of one channel."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\x00" + bytes(pixel(x, y) for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def picture_model():
    """x [N, 3, 6, 6] -> GlobalAveragePool, as ONNX bytes."""
    def field(number, value):
        if isinstance(value, int):
            return bytes([number << 3, value])
        data = value.encode() if isinstance(value, str) else value
        return bytes([number << 3 | 2, len(data)]) + data

    def value(name, shape):
        dims = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in shape)
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))

    node = field(1, "x") + field(2, "y") + field(3, "pool") + field(4, "GlobalAveragePool")
    graph = (field(1, node) + field(2, "g") + field(11, value("x", ["N", 3, 6, 6])) +
             field(12, value("y", ["N", 3, 1, 1])))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


# name: (arguments, what is written)
RUNS = {
    "inspect": (["inspect", "in.all.safetensors"], []),
    "merge": (["merge", "in.calibration", "in.calibration", "-o", "out.qcal"], ["out.qcal"]),
    "calibrate": (["calibrate", "in.onnx", "-o", "out.qcal", "--data", "data.npy"], ["out.qcal"]),
    "calibrate with pictures": (["calibrate", "pictures.onnx", "-o", "out.qcal", "--data", "pictures"], ["out.qcal"]),
    "run": (["run", "in.onnx", "-o", "out.npy", "--data", "data.npy"], ["out.npy"]),
    "compare": (["compare", "in.onnx", "in.onnx", "--data", "data.npy", "--labels", "labels.npy"], []),
    "train": (["train", "in.onnx", "-o", "out.onnx", "--data", "data.npy", "--labels", "labels.npy", "--epochs", "1",
               "--checkpoint", "out.safetensors", "--log", "out.jsonl", "--report", "out.html"],
              ["out.onnx", "out.safetensors", "out.best.safetensors", "out.jsonl", "out.html"]),
    "quantize": (["quantize", "in.onnx", "-o", "out.onnx", "--data", "data.npy", "--config", "in.json", "--plain"],
                 ["out.onnx"]),
}


def is_whole(name, content):
    """Whether a file that holds times, or is written more than once, is one of its kind to the end."""
    if name.endswith(".html"):
        return content.rstrip().endswith(b"</html>")
    if name.endswith(".safetensors"):
        (length,) = struct.unpack("<Q", content[:8])
        entries = json.loads(content[8:8 + length])
        return len(content) == 8 + length + max(entry["data_offsets"][1] for key, entry in entries.items()
                                                if key != "__metadata__")
    if name.endswith(".jsonl"):  # a line is added at a time, and a line that was cut off is passed over
        return True
    return False


class CommandTest(FaultTest):
    def setUp(self):
        super().setUp()
        subprocess.run([FILE_CALLS, "prepare", self.folder], check=True)
        values = [((i * 7919) % 97) / 48 - 1 for i in range(36 * SAMPLES)]
        self.path("data.npy", npy("<f4", (SAMPLES, 1, 6, 6), struct.pack(f"<{len(values)}f", *values)))
        self.path("labels.npy", npy("<i8", (SAMPLES,), struct.pack(f"<{SAMPLES}q", *[i % 3 for i in range(SAMPLES)])))
        self.path("pictures.onnx", picture_model())
        os.mkdir(self.path("pictures"))
        for i in range(2):
            self.path(f"pictures/{i}.png", png(6, 6, lambda x, y, i=i: (x * 40 + y * 17 + i * 90) % 256))
        self.before = sorted(os.listdir(self.folder))

    def forget(self):
        for name in os.listdir(self.folder):
            if name not in self.before:
                os.unlink(self.path(name))

    def left(self):
        """What is there that was not given."""
        return sorted(name for name in os.listdir(self.folder) if name not in self.before)

    def run_command(self, name, kind="", at=0, old=None, env=None):
        """`old`: what each output holds before, None: it is not there."""
        self.forget()
        arguments, outputs = RUNS[name]
        for output in outputs:
            if old is not None and not output.endswith(".jsonl"):
                self.path(output, old)
        return self.run_broken([COMMAND, *arguments], kind, at, env)

    def results(self, name):
        return {output: self.content(output) for output in RUNS[name][1]}

    def assert_whole(self, results, old, new):
        """Each output is what it was before, or what it had to become."""
        for output, content in results.items():
            if content == (None if output.endswith(".jsonl") else old) or content == new[output]:
                continue
            self.assertIsNotNone(content, f"{output} is gone")
            self.assertTrue(is_whole(output, content), f"{output} has {len(content)} bytes of {len(new[output])}")
