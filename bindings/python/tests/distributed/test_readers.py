# SPDX-License-Identifier: Apache-2.0
"""Files as partitions: .npy, tar shards, and with their libraries Parquet and images, which the command reads to the same bits."""

import io
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
import unittest

import numpy as np
from shared import IMAGES, LABELS, SAMPLES, Case, file_of, of_one_process, pairs

from qtensor import distributed
from qtensor.distributed import data

sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *folders) for folders in [("..",), (*[".."] * 4, "tests", "tools")]]
os.environ.setdefault("QTENSOR_COMMAND", "")
os.environ.setdefault("QTENSOR_DIGITS", "")
import networks  # noqa: E402
import support  # noqa: E402

try:
    from PIL import Image
except ImportError:
    Image = None
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

CONSTANT = """
import resource, sys
import numpy as np
import qtensor as qt
from qtensor import distributed
from qtensor.distributed import data
model = qt.Model.load(sys.argv[1])
parts = data.npy(sys.argv[2:])
distributed.calibrate(model, "onnx", parts[:1], batch=64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
distributed.calibrate(model, "onnx", parts, batch=64)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


class Readers(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def calibrated(self, dataset):
        self.assertEqual(pickle.loads(pickle.dumps(dataset)), dataset)  # it can be sent to workers
        return file_of(distributed.calibrate(self.model, "onnx", dataset))

    def evaluated_as(self, dataset, **named):
        found = distributed.evaluate(self.int8, dataset, reference=self.model, **named)
        self.assertEqual(found, distributed.evaluate(self.int8, pairs(1), reference=self.model))

    def test_npy(self):
        for i, (images, labels) in enumerate(zip(np.array_split(IMAGES, 3), np.array_split(LABELS, 3))):
            np.save(self.path(f"images-{i}.npy"), images)
            np.save(self.path(f"labels-{i}.npy"), labels)
        np.save(self.path("samples.npy"), SAMPLES)
        self.assertEqual(self.calibrated(data.npy(self.path("samples.npy"))), of_one_process(self.model, "onnx"))
        self.assertEqual(len(data.npy(self.path("samples.npy"), rows=10)), 3)
        self.assertEqual(self.calibrated(data.npy(self.path("samples.npy"), rows=10)), of_one_process(self.model, "onnx"))
        self.evaluated_as(data.npy(self.path("images-*.npy"), self.path("labels-*.npy")))
        self.evaluated_as(data.npy(self.path("images-?.npy"), [self.path(f"labels-{i}.npy") for i in range(3)], rows=100))
        self.refused(ValueError, "3 files of inputs, and 1 of labels", data.npy, self.path("images-*.npy"), self.path("labels-0.npy"))
        self.refused(ValueError, "has not one label for each of the 24 rows", data.npy, self.path("samples.npy"), self.path("labels-0.npy"))
        self.refused(FileNotFoundError, "no file has such a name", data.npy, self.path("none-*.npy"))
        with open(self.path("odd[1].npy"), "wb") as file:
            np.save(file, SAMPLES)  # a name of its own, though it looks like a pattern
        self.assertEqual(len(data.npy(self.path("odd[1].npy"))), 1)

    def shard(self, name, samples, zipped=False):
        with tarfile.open(self.path(name), "w:gz" if zipped else "w") as out:
            for key, members in samples:
                for extension, content in members.items():
                    member = tarfile.TarInfo(f"{key}.{extension}")
                    member.size = len(content)
                    out.addfile(member, io.BytesIO(content))

    def test_tar(self):
        def bytes_of(array):
            out = io.BytesIO()
            np.save(out, array)
            return out.getvalue()

        samples = [(f"digits/{i:04d}", {"npy": bytes_of(x), "cls": str(y).encode(), "json": b"{}"})
                   for i, (x, y) in enumerate(zip(IMAGES, LABELS))]
        self.shard("a-0.tar", samples[:200])
        self.shard("a-1.tar.gz", samples[200:], zipped=True)
        self.evaluated_as(data.tar([self.path("a-0.tar"), self.path("a-1.tar.gz")], data.decoded()))
        self.shard("bad.tar", [("0", {"txt": b"a"})])
        self.refused(ValueError, "partition 0: a sample has the members txt, and not one of npy, png", distributed.predict, self.int8,
                     data.tar(self.path("bad.tar"), data.decoded()))

    def test_memory_does_not_grow_with_the_data(self):
        rng, files = np.random.default_rng(3), []
        with open(self.path("wide.onnx"), "wb") as file:
            file.write(networks.onnx((-1, 16384), weight=rng.standard_normal((16384, 2)).astype(np.float32)))
        for i, rows in enumerate([512, 2048, 2048]):  # of 64 KiB
            files.append(self.path(f"{i}.npy"))
            np.save(files[-1], np.tile(rng.standard_normal((64, 16384)).astype(np.float32), (rows // 64, 1)))
        done = subprocess.run([sys.executable, "-c", CONSTANT, self.path("wide.onnx"), *files], capture_output=True, text=True, check=True)
        self.assertLess(int(done.stdout), 60_000, "KiB more for 256 MiB of data")

    @unittest.skipUnless(Image, "Pillow is missing here")
    def test_images_are_those_of_the_command(self):
        rng = np.random.default_rng(2)
        for label in range(3):
            os.mkdir(self.path(str(label)))
            for i in range(4):
                height, width = rng.integers(5, 30, 2)
                mode = ["RGB", "L", "RGBA", "P"][i]
                noise = rng.integers(0, 256, (height, width, 3), np.uint8)
                Image.fromarray(noise).convert(mode).save(self.path(str(label), f"{i}.png"))
            Image.fromarray(rng.integers(0, 256, (21, 17, 3), np.uint8)).save(self.path(str(label), "photo.JPG"), "JPEG")
        prepare = data.ImageDecoder((12, 9), (123.675, 116.28, 103.53), (58.395, 57.12, 57.375))
        labelled = [item for part in data.images(self.folder, prepare, 4, by_class=True) for item in part]
        self.assertEqual([label for _, label in labelled], [0] * 5 + [1] * 5 + [2] * 5)
        ours = np.stack([image for part in data.images(self.path("0"), prepare, 2) for image in part])
        np.testing.assert_array_equal(ours, np.stack([image for image, _ in labelled[:5]]))
        # Pillow's own bilinear resize widens its window where it makes images smaller; torch has this one.
        theirs = np.stack([self.bilinear(self.path("0", name), 12, 9) for name in sorted(os.listdir(self.path("0")))])
        mean, std = np.array(prepare.mean).reshape(3, 1, 1), np.array(prepare.std).reshape(3, 1, 1)
        np.testing.assert_allclose(ours, (theirs - mean) / std, rtol=0, atol=1e-5)
        if os.environ["QTENSOR_COMMAND"]:
            self.same_as_the_command(ours)
        swapped = data.ImageDecoder((12, 9), layout="nhwc", channels="bgr")(self.path("0", "0.png"))
        plain = data.ImageDecoder((12, 9))(self.path("0", "0.png"))
        np.testing.assert_array_equal(swapped[..., ::-1].transpose(2, 0, 1), plain)

    @staticmethod
    def bilinear(path, width, height):
        """In float64, one pixel after the other."""
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB"), np.float64)
        out = np.zeros((3, height, width))
        for y in range(height):
            for x in range(width):
                v = min(max((y + 0.5) * pixels.shape[0] / height - 0.5, 0), pixels.shape[0] - 1)
                u = min(max((x + 0.5) * pixels.shape[1] / width - 0.5, 0), pixels.shape[1] - 1)
                top, left = int(v), int(u)
                bottom, right = min(top + 1, pixels.shape[0] - 1), min(left + 1, pixels.shape[1] - 1)
                a = pixels[top, left] * (1 - (u - left)) + pixels[top, right] * (u - left)
                b = pixels[bottom, left] * (1 - (u - left)) + pixels[bottom, right] * (u - left)
                out[:, y, x] = a * (1 - (v - top)) + b * (v - top)
        return out

    def same_as_the_command(self, ours):
        relu = self.path("relu.onnx")
        with open(relu, "wb") as file:
            file.write(support.onnx([("Identity", ["x"], ["y"])], {"x": ["n", 3, 9, 12]}, {"y": ["n", 3, 9, 12]}))
        subprocess.run([os.environ["QTENSOR_COMMAND"], "run", relu, "--data", self.path("0"), "-o", self.path("y.npy"), "--mean",
                        "123.675,116.28,103.53", "--std", "58.395,57.12,57.375"], check=True, capture_output=True)
        np.testing.assert_array_equal(np.load(self.path("y.npy")), ours)

    @unittest.skipUnless(pa, "pyarrow is missing here")
    def test_parquet(self):
        tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES)
        flat = pa.array(IMAGES.reshape(540, 64).tolist(), pa.list_(pa.float32()))
        fixed = pa.array(IMAGES.reshape(540, 64).tolist(), pa.list_(pa.float32(), 64))
        nested = pa.array(IMAGES.tolist())
        for i, column in enumerate([tensors, flat, fixed, nested]):
            path = self.path(f"{i}.parquet")
            pq.write_table(pa.table({"pixels": column, "digit": LABELS, "other": ["x"] * 540}), path, row_group_size=100)
            parts = data.parquet(path, {"image": "pixels", "label": "digit"}, {} if i in (0, 3) else {"image": (1, 8, 8)})
            self.assertEqual(len(parts), 6)
            self.evaluated_as(parts)
        pq.write_table(pa.table({"image": [[1.0, 2.0], [1.0]]}), self.path("ragged.parquet"))
        self.refused(ValueError, "partition 0: a column of .* has lists of 1 to 2 elements", distributed.predict, self.int8,
                     data.parquet(self.path("ragged.parquet")))
        pq.write_table(pa.table({"image": [[1.0] * 64, None]}), self.path("null.parquet"))
        self.refused(ValueError, "partition 0: a column of .* has 1 rows without a value", distributed.predict, self.int8,
                     data.parquet(self.path("null.parquet"), shapes={"image": (1, 8, 8)}))


if __name__ == "__main__":
    unittest.main()
