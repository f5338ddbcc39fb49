# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, and writing arrays and small models."""

import ast
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

COMMAND = os.environ["QTENSOR_COMMAND"]
DIGITS = os.environ["QTENSOR_DIGITS"]
MODEL = os.path.join(DIGITS, "digits.onnx")
CALIBRATION = os.path.join(DIGITS, "calibration.npy")
IMAGES = os.path.join(DIGITS, "test_images.npy")
LABELS = os.path.join(DIGITS, "test_labels.npy")

FORMATS = {"f2": "e", "f4": "f", "f8": "d", "i8": "q", "i4": "i", "u1": "B"}


def format_of(descr, count):
    """The format of NumPy's type code for struct."""
    return f"{'>' if descr[0] == '>' else '<'}{count}{FORMATS[descr[1:]]}"



class CommandTest(unittest.TestCase):
    """Runs each test in an empty folder of its own, `self.folder`."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qtensor-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def execute(self, *arguments, env=None):
        return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, errors="replace", timeout=240,
                              cwd=self.folder, env={**os.environ, **(env or {})})

    def succeed(self, *arguments, env=None):
        done = self.execute(*arguments, env=env)
        said = [line for line in done.stderr.splitlines() if not line.startswith("qtensor: warning: ")]
        self.assertEqual((done.returncode, said), (0, []), f"{arguments}\n{done.stdout}")
        return done.stdout

    def succeed_json(self, *arguments, env=None):
        return json.loads(self.succeed(*arguments, "--json", env=env))

    def refuse(self, *arguments, code=1, says=()):
        """Expects a failure: one line, nothing on standard output, and no file that was not there before."""
        before = sorted(os.listdir(self.folder))
        done = self.execute(*arguments)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        self.assertRegex(done.stderr, r"\Aqtensor: [^\n]+\n\Z", f"{arguments}")
        self.assertEqual(done.stdout, "", f"{arguments}")
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, done.stderr, f"{arguments}")
        self.assertEqual(sorted(os.listdir(self.folder)), before, f"{arguments}: left a file")
        return done.stderr


def flat_size(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size


def npy(values, shape, descr="<f4", version=1, header=None):
    """The bytes of a .npy file."""
    text = header or f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text = text + " " * (-(len(text) + 11) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + struct.pack(
        format_of(descr, len(values)), *values)


def read_npy(path):
    """(values, shape, descr) of a .npy file."""
    with open(path, "rb") as file:
        content = file.read()
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    (length,) = struct.unpack("<H", content[8:10])
    assert (10 + length) % 64 == 0
    header = ast.literal_eval(content[10:10 + length].decode())
    count = flat_size(header["shape"])
    values = struct.unpack(format_of(header["descr"], count), content[10 + length:])
    return list(values), header["shape"], header["descr"]


def safetensors(tensors):
    """The bytes of a .safetensors file of float32 tensors {name: (values, shape)}."""
    header, data = {}, b""
    for name, (values, shape) in tensors.items():
        bytes_ = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    """{name: (values, shape)} of a .safetensors file of float32 tensors."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        data = content[8 + length + begin:8 + length + end]
        tensors[name] = (list(struct.unpack(f"<{len(data) // 4}f", data)), entry["shape"])
    return tensors


def _varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _field(number, value):
    """One protobuf field: an int, a text, or the bytes of a message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value_info(name, shape, dtype=1):
    dims = b"".join(_field(1, _field(2, d) if isinstance(d, str) else _field(1, d)) for d in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, dtype) + _field(2, dims)))


def opset_import(domain, version):
    return _field(8, _field(1, domain) + _field(2, version))


def onnx(nodes, inputs, outputs, opset=17, dtype=1, external=()):
    """The bytes of an ONNX model of one type, float32. nodes: (op or domain::op, input names, output names); inputs,
    outputs: {name: shape}; external: (name, shape, file) of constants. Other domains are not imported; opset_import()
    behind it imports one."""
    graph = b""
    for index, (op, node_inputs, node_outputs) in enumerate(nodes):
        node = b"".join(_field(1, name) for name in node_inputs) + b"".join(_field(2, name) for name in node_outputs)
        domain, _, name = op.rpartition("::")
        graph += _field(1, node + _field(3, f"node{index}") + _field(4, name) + _field(7, domain))
    graph += _field(2, "test")
    for name, shape, file in external:
        tensor = b"".join(_field(1, extent) for extent in shape) + _field(2, dtype) + _field(8, name)
        graph += _field(5, tensor + _field(13, _field(1, "location") + _field(2, file)) + _field(14, 1))
    graph += b"".join(_field(11, _value_info(*item, dtype)) for item in inputs.items())
    graph += b"".join(_field(12, _value_info(*item, dtype)) for item in outputs.items())
    return _field(1, 8) + _field(7, graph) + opset_import("", opset)
