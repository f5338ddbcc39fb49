# SPDX-License-Identifier: Apache-2.0
"""Debian's packages of this build tree: what they depend on and contain, and whether they work together. They are
unpacked into a folder and used there; apt, which only pretends, says whether Debian has what they ask for.

usage: test_deb.py ROOT BUILD VERSION CC CXX
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RUNTIMES = {"libc", "libm", "libgcc_s", "libstdc++", "ld-linux-x86-64", "ld-linux-aarch64"}
PYTHON = """
import sys, numpy, qtensor as qt
model = qt.Model.load(sys.argv[1] + "/digits.onnx")
model.quantize(numpy.load(sys.argv[1] + "/calibration.npy")).save("python.onnx")
assert qt.__version__ == sys.argv[2]
assert qt.__file__.endswith("/usr/lib/python3/dist-packages/qtensor/__init__.py")
"""

JAVA = """
import java.nio.file.Path;
import org.qtensor.*;
class Use {
  public static void main(String[] arguments) {
    Model model = Model.load(Path.of(arguments[0] + "/digits.onnx"));
    Tensor images = Tensor.loadNpy(Path.of(arguments[0] + "/calibration.npy"));
    model.quantize(Samples.rows(images)).save(Path.of("java.onnx"));
  }
}
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def field(deb, name):
    return run("dpkg-deb", "-f", deb, name).strip()


def names(depends):
    return {re.sub(r"[ (].*", "", one.strip()) for one in depends.split(",")}


def check_control(debs, version):
    assert set(debs) >= {"libqtensor0", "libqtensor-dev", "qtensor", "python3-qtensor"}, set(debs)
    for name, deb in debs.items():
        assert field(deb, "Version") == f"{version}-1", name
        assert deb.stat().st_size < 25_000_000, name
        files = re.findall(r" \./(\S+[^/\s])(?: -> .*)?$", run("dpkg-deb", "-c", deb), re.M)
        for document in ("copyright", "changelog.gz", "changelog.Debian.gz"):
            assert f"usr/share/doc/{name}/{document}" in files, (name, document)
    library = names(field(debs["libqtensor0"], "Depends"))
    assert library <= {"libc6", "libstdc++6", "libgcc-s1", "libopenblas0-pthread"}, library
    assert "libopenblas0-pthread | libopenblas0" in field(debs["libqtensor0"], "Depends")
    assert field(debs["libqtensor-dev"], "Depends") == f"libqtensor0 (= {version}-1)", "libqtensor-dev"
    for name in set(debs) - {"libqtensor0", "libqtensor-dev"}:
        assert "libqtensor0" in names(field(debs[name], "Depends")), name
    assert {"python3", "python3-numpy"} <= names(field(debs["python3-qtensor"], "Depends")), "python3-qtensor"


def check_binaries(root):
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF" and path.suffix != ".o":
            dynamic = run("readelf", "-d", path)
            assert "PATH)" not in dynamic, f"{path.name} has a path of its own"
            assert ".debug_info" not in run("readelf", "-SW", path), f"{path.name} is not stripped"
            if path.name.startswith("libqtensor.so"):
                others = set(re.findall(r"\(NEEDED\).*\[(.*)\.so", dynamic)) - RUNTIMES
                assert not others, f"{path.name} needs {others}"


def check_use(root, packages, source, version, cc, cxx):
    digits = f"{source}/examples/digits"
    library = next(root.rglob("libqtensor.so.0")).parent
    environment = {"PATH": f"{root}/usr/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(library),
                   "PYTHONPATH": f"{root}/usr/lib/python3/dist-packages", "PKG_CONFIG_PATH": f"{library}/pkgconfig"}

    def use(*command):
        return run(*command, cwd=root, env=environment)

    assert use("qtensor", "--version") == f"qtensor {version}\n"
    use("qtensor", "quantize", f"{digits}/digits.onnx", "-o", "command.onnx", "--data", f"{digits}/calibration.npy",
        "--no-equalize")
    flags = use("pkg-config", "--cflags", "--libs", "qtensor").split()
    for compiler, example in ((cc, "c/quantize.c"), (cxx, "cpp/quantize.cpp")):
        use(compiler, f"{source}/examples/{example}", "-o", "program", *flags)
        use("./program", f"{digits}/digits.onnx", "program.onnx", f"{digits}/calibration.npy")
    use("/usr/bin/python3", "-c", PYTHON, digits, version)
    makers = ["command", "program", "python"]
    if "libqtensor-java" in packages:
        root.joinpath("Use.java").write_text(JAVA)
        # Where a JVM of Debian looks by itself, but in this folder.
        path = f"-Djava.library.path={next(root.rglob('jni'))}"
        use("java", path, "-cp", "usr/share/java/qtensor.jar", "Use.java", digits)
        makers.append("java")
    models = {root.joinpath(f"{maker}.onnx").read_bytes() for maker in makers}
    assert len(models) == 1, f"{makers} give different models"
    assert b"quantize" in gzip.decompress(root.joinpath("usr/share/man/man1/qtensor.1.gz").read_bytes())
    use("bash", "-n", f"{root}/usr/share/bash-completion/completions/qtensor")


def main():
    source, build, version, cc, cxx = sys.argv[1:]
    if not shutil.which("dpkg-shlibdeps"):
        print("skipped: dpkg-dev is not there")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run(f"{source}/packaging/deb", build, folder)
        debs = {path.name.split("_")[0]: path for path in pathlib.Path(folder).glob("*.deb")}
        check_control(debs, version)
        run("apt-get", "--simulate", "install", *debs.values())
        root = pathlib.Path(folder, "root")
        for deb in debs.values():
            run("dpkg-deb", "-x", deb, root)
        check_binaries(root)
        check_use(root, set(debs), source, version, cc, cxx)
        print("unpacked and used:", *(f"{path.name} {path.stat().st_size}" for path in debs.values()))
    return 0


sys.exit(main())
