# SPDX-License-Identifier: Apache-2.0
"""What a process finds around itself: another allocator, another locale, no BLAS or a wrong one, no shared memory, an
instruction set that is asked for by any name. Results stay the same bytes."""

import ctypes.util
import os
import shutil
import subprocess
import unittest

from commands import CommandTest
from support import COMMAND, figure

RUN = ["run", "in.onnx", "-o", "out.npy", "--data", "data.npy"]
INT8 = ["run", "int8.onnx", "-o", "out.npy", "--data", "data.npy"]
QUANTIZE = ["quantize", "in.onnx", "-o", "int8.onnx", "--data", "data.npy", "--plain"]
CORRECT = ["quantize", "in.onnx", "-o", "corrected.onnx", "--data", "data.npy"]


class Surroundings(CommandTest):
    def execute(self, arguments, env, command=()):
        return subprocess.run([*command, COMMAND, *arguments], capture_output=True, text=True, cwd=self.folder,
                              timeout=120, env={**os.environ, **env})

    def setUp(self):
        super().setUp()
        self.assertEqual(self.execute(QUANTIZE, {}).returncode, 0)
        self.assertEqual(self.execute(RUN, {}).returncode, 0)
        self.floats, self.int8 = self.content("out.npy"), self.content("int8.onnx")
        self.assertEqual(self.execute(INT8, {}).returncode, 0)
        self.integers = self.content("out.npy")

    def assert_same(self, env, command=()):
        for arguments, output, wanted in ((QUANTIZE, "int8.onnx", self.int8), (RUN, "out.npy", self.floats),
                                          (INT8, "out.npy", self.integers)):
            done = self.execute(arguments, env, command)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertEqual(self.content(output), wanted, f"{arguments[0]} under {env}")

    def test_allocators(self):
        found = [name for name in map(ctypes.util.find_library, ("jemalloc", "tcmalloc_minimal")) if name]
        for name in found:
            with self.subTest(name=name):
                self.assert_same({"LD_PRELOAD": name})
        if not found:
            self.skipTest("neither libjemalloc2 nor libtcmalloc-minimal4 is installed")
        figure("other allocators", len(found), len(found), " ".join(found))

    def test_malloc_that_fills(self):
        """What was not written is not zero, and what was freed is no longer there."""
        for perturb in ("85", "170"):
            self.assert_same({"GLIBC_TUNABLES": f"glibc.malloc.perturb={perturb}"})
        figure("memory that is filled", 2, 2, "glibc.malloc.perturb")

    def test_locales(self):
        """A locale with commas is made here where the system has none."""
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.path("de_DE.utf8")], capture_output=True)
        env = {"LC_ALL": "de_DE.utf8", "LANG": "de_DE.utf8"}
        if made.returncode == 0:
            env["LOCPATH"] = self.folder
        elif b"de_DE" not in subprocess.run(["locale", "-a"], capture_output=True).stdout:
            self.skipTest("no locale with commas can be had (Debian: locales)")
        self.assert_same(env)
        figure("locales", 1, 1, "de_DE.utf8")

    def test_instruction_sets(self):
        names = ["scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm", "", "nonsense", "AVX2",
                 "avx2 ", "x" * 100000]
        for name in names:
            with self.subTest(name=name[:20]):
                done = self.execute(RUN, {"QTENSOR_ISA": name})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.content("out.npy"), self.floats)
                done = self.execute(INT8, {"QTENSOR_ISA": name})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.content("out.npy"), self.integers)
        figure("QTENSOR_ISA", len(names), len(names), "instruction sets by name, and names of none")

    def test_blas(self):
        """None that can be loaded, empty files, and a library without its functions: sessions run, quantization with its
        defaults comes to the same, the reference engine says so."""
        self.assertEqual(self.execute(CORRECT, {}).returncode, 0)
        corrected = self.content("corrected.onnx")
        library = self.path("wrong.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=b"int cblas;", check=True)
        for kind in ("empty", "text", "wrong", "folder"):
            with self.subTest(kind=kind):
                place = self.path(f"blas-{kind}")
                os.mkdir(place)
                for name in ("libopenblas.so.0", "libblas.so.3"):
                    path = os.path.join(place, name)
                    if kind == "folder":
                        os.mkdir(path)
                    elif kind == "wrong":
                        shutil.copy(library, path)
                    else:
                        with open(path, "w") as file:
                            file.write("" if kind == "empty" else "no library\n")
                env = {"LD_LIBRARY_PATH": place}
                done = self.execute(INT8, env)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.content("out.npy"), self.integers)
                done = self.execute(RUN, env)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.content("out.npy"), self.floats)
                os.unlink(self.path("corrected.onnx"))
                done = self.execute(CORRECT, env)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.content("corrected.onnx"), corrected)
                os.unlink(self.path("out.npy"))
                done = self.execute([*RUN, "--engine", "reference"], env)
                if kind in ("folder",) and done.returncode == 0:  # the loader goes on to the system's
                    continue
                self.assertEqual(done.returncode, 1)
                self.assert_one_line(done.stderr, "BLAS", "cblas_sgemm" if kind == "wrong" else "lib")
                self.assertIsNone(self.content("out.npy"))
        figure("a wrong BLAS", 4, 4, "empty files, text, folders, a library without its functions")

    def test_without_shared_memory(self):
        alone = ["unshare", "-m", "sh", "-c", "umount -l /dev/shm && exec \"$@\"", "sh"]
        if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
            self.skipTest("/dev/shm cannot be taken away here")
        self.assert_same({}, alone)
        figure("no /dev/shm", 1, 1, "unmounted")

    def test_without_proc_and_sys(self):
        alone = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys && mount -t tmpfs none /proc && exec \"$@\"", "sh"]
        if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
            self.skipTest("/proc and /sys cannot be taken away here")
        self.assert_same({}, alone)
        figure("no /proc, no /sys", 1, 1, "empty file systems in their places")

    def test_closed_standard_streams(self):
        """Files that are opened then get the numbers 0 to 2, and what is printed must not go into them."""
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed=closed):
                self.forget()
                shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
                self.execute(QUANTIZE, {}, shell)
                self.assertIn(self.content("int8.onnx"), [self.int8, None])
                for name in os.listdir(self.folder):
                    if name in self.before and name == "data.npy":
                        self.assertTrue(self.content(name).startswith(b"\x93NUMPY"))
        figure("closed standard streams", 4, 4, "no file is written into")


if __name__ == "__main__":
    unittest.main()
