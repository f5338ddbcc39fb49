# SPDX-License-Identifier: Apache-2.0
"""Every form of DATA, and of the files that `run` writes."""

import base64
import os
import struct
import unittest
import zlib

from support import IMAGES, LABELS, MODEL, CommandTest, npy, onnx, read_npy, read_safetensors, safetensors

IDENTITY = onnx([("Identity", ["x"], ["y"])], {"x": ["n", 2]}, {"y": ["n", 2]})
TWO = onnx([("Add", ["a", "b"], ["sum"]), ("Mul", ["a", "b"], ["product"])], {"a": ["n", 2], "b": ["n", 2]},
           {"sum": ["n", 2], "product": ["n", 2]})
PICTURE = onnx([("Identity", ["x"], ["y"])], {"x": ["n", "c", "h", "w"]}, {"y": ["n", "c", "h", "w"]})

# 8x8, one colour: (200, 100, 50).
JPEG = base64.b64decode("""
    /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoKCgoKBggLDAsK
    DAkKCgr/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgr/wAARCAAIAAgD
    ASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAACP/EABQRAQAA
    AAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJ4Armw//9k=""")


def png(rows, color_type=2):
    """An 8-bit PNG file from rows of samples."""
    channels = {0: 1, 2: 3, 6: 4}[color_type]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", len(rows[0]) // channels, len(rows), 8, color_type, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


class Arrays(CommandTest):
    def setUp(self):
        super().setUp()
        self.identity = self.path("identity.onnx", IDENTITY)
        self.two = self.path("two.onnx", TWO)
        self.out = self.path("out.npy")

    def test_npy_of_every_version_and_float_type(self):
        values = [1, -2.5, 3, 4, 5, 6]
        for version in (1, 2, 3):
            for descr in ("<f4", "<f8"):
                data = self.path("x.npy", npy(values, (3, 2), descr, version))
                self.succeed("run", self.identity, "--data", data, "-o", self.out)
                self.assertEqual(read_npy(self.out), (values, (3, 2), "<f4"))

    def test_shards(self):
        parts = [([1, 2, 3, 4], (2, 2), "<f4"), ([], (0, 2), "<f4"), ([5, 6], (1, 2), "<f8"), ([7, 8, 9, 10, 11, 12], (3, 2), "<f4")]
        for i, (values, shape, descr) in enumerate(parts):
            self.path(f"x-{i}.npy", npy(values, shape, descr))
        paths = [self.path(f"x-{i}.npy") for i in range(len(parts))]
        whole = [value for values, _, _ in parts for value in values]
        repeated = [word for path in paths for word in ("--data", path)]
        for data in (["--data", self.path("x-*.npy")], ["--data", "x-?.npy"], ["--data", "x-[0-3].npy"], ["--data", *paths], repeated,
                     ["--data", "x=x-*.npy"], ["--data", paths[0], self.path("x-[123].npy")]):
            for batch in (1, 2, 5, 100):
                self.succeed("run", self.identity, *data, "-o", self.out, "--batch", str(batch))
                self.assertEqual(read_npy(self.out), (whole, (6, 2), "<f4"), f"{data}, {batch}")
        self.succeed("run", self.identity, "-o", self.out, "--data", *reversed(paths))  # in the order given
        self.assertEqual(read_npy(self.out)[0], whole[6:] + whole[4:6] + whole[:4])
        # A name of its own, though it looks like a pattern.
        self.succeed("run", self.identity, "--data", self.path("x-[12].npy", npy([1, 2], (1, 2))), "-o", self.out)
        self.assertEqual(read_npy(self.out), ([1, 2], (1, 2), "<f4"))

    def test_shards_of_several_inputs(self):
        for name, values in (("a", [1, 2, 3, 4]), ("b", [5, 6, 7, 8])):
            self.path(f"{name}-0.npy", npy(values[:2], (1, 2)))
            self.path(f"{name}-1.npy", npy(values[2:], (1, 2)))
        out, whole = self.path("out.safetensors"), self.path("whole.safetensors")
        self.path("both.safetensors", safetensors({"a": ([1, 2, 3, 4], [2, 2]), "b": ([5, 6, 7, 8], [2, 2])}))
        self.succeed("run", self.two, "--data", "both.safetensors", "-o", whole)
        self.succeed("run", self.two, "--data", "a=a-*.npy", "--data", "b=b-*.npy", "-o", out)
        self.assertEqual(read_safetensors(out), read_safetensors(whole))
        self.refuse("run", self.two, "--data", "a-*.npy", "-o", out, says=["a-0.npy", "2"])

    def test_shards_that_do_not_go_together(self):
        self.path("x-0.npy", npy([1, 2, 3, 4], (2, 2)))
        self.path("x-1.npy", npy([1, 2, 3], (1, 3)))
        run = ("run", self.identity, "-o", self.out, "--data")
        self.refuse(*run, "x-*.npy", says=["x-1.npy", "1x3", "x-0.npy", "2x2"])
        self.refuse(*run, "y-*.npy", says="y-*.npy: matches no file")
        self.path("x-1.npy", npy([1], ()))
        self.refuse(*run, "x-*.npy", says="x-1.npy: is a scalar")

    def test_paths_with_an_equals_sign(self):
        """NAME= is what begins with the name of an input. Anything else is a path, in a folder such as lr=0.1."""
        os.mkdir(self.path("lr=0.1"))
        for name, values in (("a", [1, 2]), ("b", [3, 4])):
            self.path(f"lr=0.1/{name}.npy", npy(values, (1, 2)))
        for data in ("lr=0.1/a.npy", "lr=0.1/[a].npy", "x=lr=0.1/a.npy", "x=lr=0.1/[a].npy", "./lr=0.1/a.npy"):
            self.succeed("run", self.identity, "--data", data, "-o", self.out)
            self.assertEqual(read_npy(self.out)[0], [1, 2], data)
        self.succeed("run", self.identity, "--data", "lr=0.1/a.npy", "lr=0.1/b.npy", "-o", self.out)
        self.assertEqual(read_npy(self.out)[0], [1, 2, 3, 4])
        self.refuse("run", self.identity, "--data", "lr=0.1/c.npy", "-o", self.out, says=["lr=0.1/c.npy", "'x'"])
        self.refuse("run", self.two, "--data", "a=lr=0.1/a.npy", "lr=0.1/b.npy", "-o", self.path("out.safetensors"),
                    says=["lr=0.1/b.npy", "'b'"])

    def test_names_with_an_equals_sign(self):
        names = ["a", "a=b"]
        model = self.path("names.onnx", onnx([("Sub", names, ["y"])], {name: ["n", 2] for name in names}, {"y": ["n", 2]}))
        self.path("1.npy", npy([5, 7], (1, 2)))
        self.path("2.npy", npy([1, 2], (1, 2)))
        self.succeed("run", model, "--data", "a=1.npy", "a=b=2.npy", "-o", self.out)
        self.assertEqual(read_npy(self.out)[0], [4, 5])

    def test_labels_in_shards(self):
        values, shape, _ = read_npy(LABELS)
        self.path("labels-0.npy", npy(values[:100], (100,), "<i8"))
        self.path("labels-1.npy", npy(values[100:], (shape[0] - 100,), "<i8"))
        compare = ("compare", MODEL, MODEL, "--data", IMAGES, "--labels")
        self.assertEqual(self.succeed_json(*compare, "labels-*.npy"), self.succeed_json(*compare, LABELS))
        self.refuse(*compare, "labels-1.npy", says=["440 labels", "540 samples"])

    def test_inputs_of_other_floats(self):
        for dtype, result in ((11, "<f8"), (10, "<f2")):
            model = onnx([("GlobalAveragePool", ["x"], ["y"])], {"x": ["n", 1, 2]}, {"y": ["n", 1, 1]}, dtype=dtype)
            model = self.path("model.onnx", model)
            for descr in ("<f2", "<f4", "<f8"):
                data = self.path("x.npy", npy([1, -2.5, 3, 4], (2, 1, 2), descr))
                self.succeed("run", model, "--data", data, "-o", self.out)
                self.assertEqual(read_npy(self.out), ([-0.75, 3.5], (2, 1, 1), result))
                quantized = self.path("quantized.onnx", b"")
                self.succeed("quantize", model, "-o", quantized, "--data", data)
                self.succeed("compare", model, quantized, "--data", data)

    def test_inputs_of_bfloat16(self):
        model = onnx([("GlobalAveragePool", ["x"], ["y"])], {"x": ["n", 1, 2]}, {"y": ["n", 1, 1]}, dtype=16)
        data = self.path("x.npy", npy([1, -2.5, 3, 4], (2, 1, 2)))
        self.succeed("quantize", self.path("model.onnx", model), "-o", self.path("quantized.onnx", b""), "--data", data)

    def test_npy_in_fortran_order(self):
        header = "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }"
        data = self.path("x.npy", npy([1, 3, 5, 2, 4, 6], (), header=header))
        self.succeed("run", self.identity, "--data", data, "-o", self.out)
        self.assertEqual(read_npy(self.out), ([1, 2, 3, 4, 5, 6], (3, 2), "<f4"))

    def test_big_endian_npy(self):
        data = self.path("x.npy", npy([1, -2.5], (1, 2), ">f4"))
        self.succeed("run", self.identity, "--data", data, "-o", self.out)
        self.assertEqual(read_npy(self.out), ([1, -2.5], (1, 2), "<f4"))

    def test_other_element_types_are_refused_with_both_names(self):
        data = self.path("x.npy", npy([1, 2], (1, 2), "<i8"))
        self.refuse("run", self.identity, "--data", data, "-o", self.out, says=["int64", "float32"])

    def test_safetensors(self):
        data = self.path("x.safetensors", safetensors({"other": ([7.0], [1]), "x": ([1, 2, 3, 4], [2, 2])}))
        self.succeed("run", self.identity, "--data", data, "-o", self.out)
        self.assertEqual(read_npy(self.out)[0], [1, 2, 3, 4])

    def test_several_inputs_and_outputs(self):
        a, b = self.path("a.npy", npy([1, 2, 3, 4], (2, 2))), self.path("b.npy", npy([5, 6, 7, 8], (2, 2)))
        out = self.path("out.safetensors")
        both = self.path("both.safetensors", safetensors({"b": ([5, 6, 7, 8], [2, 2]), "a": ([1, 2, 3, 4], [2, 2])}))
        for data in (["--data", f"a={a}", "--data", f"b={b}"], ["--data", f"b={b}", f"a={a}"], ["--data", both]):
            for batch in ([], ["--batch", "2"]):
                self.succeed("run", *data, self.two, "-o", out, *batch)
                self.assertEqual(read_safetensors(out),
                                 {"sum": ([6, 8, 10, 12], [2, 2]), "product": ([5, 12, 21, 32], [2, 2])})
        self.refuse("run", self.two, "--data", f"a={a}", f"b={b}", "-o", self.out, says="2 outputs")
        self.refuse("run", self.two, "--data", a, "-o", out, says=["'a'", "'b'"])
        self.refuse("run", self.two, "--data", f"a={a}", "-o", out, says="'b'")
        self.refuse("run", self.two, "--data", f"a={a}", f"c={b}", "-o", out, says=["c=", "'b'"])
        self.refuse("run", self.two, "--data", f"a={a}", f"a={b}", "-o", out, code=2)
        short = self.path("short.npy", npy([5, 6], (1, 2)))
        self.refuse("run", self.two, "--data", f"a={a}", f"b={short}", "-o", out, says=["1 samples", "2"])

    def test_one_output_may_go_to_safetensors(self):
        data, out = self.path("x.npy", npy([1, 2], (1, 2))), self.path("out.safetensors")
        self.succeed("run", self.identity, "--data", data, "-o", out)
        self.assertEqual(read_safetensors(out), {"y": ([1, 2], [1, 2])})

    def test_compare_figures(self):
        twice = self.path("twice.onnx", onnx([("Add", ["x", "x"], ["y"])], {"x": ["n", 2]}, {"y": ["n", 2]}))
        data = self.path("x.npy", npy([1, 2, 4, 3], (2, 2)))
        labels = self.path("labels.npy", npy([1, 1], (2,), "<i8"))
        result = self.succeed_json("compare", self.identity, twice, "--data", data, "--labels", labels)
        (output,) = result["outputs"]
        self.assertAlmostEqual(output["sqnr_db"], 0)
        self.assertAlmostEqual(output["cosine"], 1)
        self.assertEqual(output["max_abs"], 4)
        self.assertEqual((result["top1_agreement"], result["top1_a"], result["top1_b"]), (1, 0.5, 0.5))

    def test_inspect_array_files(self):
        data = self.path("x.safetensors", safetensors({"x": ([1, 2], [1, 2])}))
        self.assertEqual(self.succeed_json("inspect", data),
                         {"tensors": [{"name": "x", "dtype": "float32", "shape": [1, 2]}]})
        data = self.path("x.npy", npy([1, 2], (2, 1), "<i8"))
        self.assertEqual(self.succeed_json("inspect", data),
                         {"tensors": [{"name": "", "dtype": "int64", "shape": [2, 1]}]})


class Pictures(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.path("model.onnx", PICTURE)
        self.out = self.path("out.npy")
        self.pictures = self.path("pictures")
        os.mkdir(self.pictures)

    def add(self, name, content):
        self.path(os.path.join("pictures", name), content)

    def run_pictures(self, *options):
        self.succeed("run", self.model, "--data", self.pictures, "-o", self.out, *options)
        values, shape, _ = read_npy(self.out)
        return values, shape

    def test_layout_channels_mean_and_std(self):
        self.add("a.png", png([[10, 20, 30, 40, 50, 60]]))
        size = ("--size", "2x1")
        self.assertEqual(self.run_pictures(*size), ([10, 40, 20, 50, 30, 60], (1, 3, 1, 2)))
        self.assertEqual(self.run_pictures(*size, "--layout", "nhwc"), ([10, 20, 30, 40, 50, 60], (1, 1, 2, 3)))
        self.assertEqual(self.run_pictures(*size, "--channels", "bgr")[0], [30, 60, 20, 50, 10, 40])
        self.assertEqual(self.run_pictures(*size, "--mean", "10,20,30", "--std", "1,2,4")[0], [0, 30, 0, 15, 0, 7.5])
        self.assertEqual(self.run_pictures(*size, "--mean", "10", "--std", "2")[0], [0, 15, 5, 20, 10, 25])
        self.assertEqual(self.run_pictures(*size, "--mean", "-10")[0], [20, 50, 30, 60, 40, 70])

    def test_bilinear_with_half_pixel_centres(self):
        self.add("a.png", png([[0, 0, 0, 100, 100, 100]]))
        self.assertEqual(self.run_pictures("--size", "4x1")[0][:4], [0, 25, 75, 100])
        self.assertEqual(self.run_pictures("--size", "1x2")[0][:2], [50, 50])

    def test_sorted_and_other_files_left_out(self):
        self.add("b.png", png([[2, 2, 2]]))
        self.add("a.PNG", png([[1, 1, 1, 9]], 6))
        self.add("c.jpg", JPEG)
        self.add("d.png", png([[4]], 0))
        self.add("notes.txt", b"no picture")
        values, shape = self.run_pictures("--size", "1x1", "--batch", "3")
        self.assertEqual(shape, (4, 3, 1, 1))
        self.assertEqual(values[:6] + values[9:], [1, 1, 1, 2, 2, 2, 4, 4, 4])
        for value, expected in zip(values[6:9], (200, 100, 50)):
            self.assertAlmostEqual(value, expected, delta=3)

    def test_broken_pictures_are_named(self):
        arguments = ("run", self.model, "--data", self.pictures, "-o", self.out, "--size", "2x2")
        self.refuse(*arguments, says="holds no .jpg, .jpeg or .png")
        whole = png([[1, 2, 3]] * 50)
        for content in (b"", b"no picture", JPEG[:20], JPEG[:-30], whole[:30], whole[:-20], whole[:45] + b"\xff" + whole[46:]):
            self.add("a.png", content)
            self.refuse(*arguments, says="a.png")

    def test_huge_pictures_are_not_decoded(self):
        # Progressive, which a decoder holds whole before it gives a row: 65000 by 65000 in as many bytes as a small one.
        at = JPEG.index(b"\xff\xc0")
        self.add("a.jpg", JPEG[:at] + b"\xff\xc2" + JPEG[at + 2:at + 5] + struct.pack(">HH", 65000, 65000) + JPEG[at + 9:])
        self.refuse("run", self.model, "--data", self.pictures, "-o", self.out, "--size", "2x2", says="unreasonable size")

    def test_wrong_options(self):
        self.add("a.png", png([[1, 2, 3]]))
        arguments = ("run", self.model, "--data", self.pictures, "-o", self.out)
        self.refuse(*arguments, code=2, says="--size")
        for size in ("4", "4x", "x4", "0x4", "4x4x4", "-1x4", "99999999999999999999x1", ""):
            self.refuse(*arguments, "--size", size, code=2)
        for option in (["--mean", "1,2"], ["--mean", "1,2,3,4"], ["--std", "0"], ["--std", "1,x,2"], ["--std", "nan"],
                       ["--layout", "chwn"], ["--channels", "gray"]):
            self.refuse(*arguments, "--size", "4x4", *option, code=2)
        picture = self.path("pictures/a.png", png([[1, 2, 3]]))
        os.symlink(picture, self.path("alias.npy"))
        self.refuse("run", self.model, "--data", "pictures", "--size", "1x1", "-o", "alias.npy", code=2,
                    says=["alias.npy: is also read", "a.png"])
        data = self.path("x.npy", npy([0] * 3, (1, 3, 1, 1)))
        self.refuse("run", self.model, "--data", data, "-o", self.out, "--size", "4x4", code=2, says="--size")


if __name__ == "__main__":
    unittest.main()
