# SPDX-License-Identifier: Apache-2.0
"""The version in CMakeLists.txt is that of everything that says one: headers, library, command, pkg-config, CMake,
Python, the list of changes. Packages have tests of their own.

usage: test_version.py ROOT BUILD VERSION
"""

import ctypes
import os
import pathlib
import re
import subprocess
import sys


def found(pattern, path):
    return ".".join(re.findall(pattern, path.read_text(), re.M))


def main():
    root, build, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    library = ctypes.CDLL(str(build / f"capi/libqtensor.so.{version}"))
    number = library.qlib_version()
    says = {
        "CMakeLists.txt": found(r"^project\(qtensor VERSION ([0-9.]+)", root / "CMakeLists.txt"),
        "version.h": found(r"^#define QTN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", build / "include/qtensor/version.h"),
        "qlib_version": f"{number >> 16}.{number >> 8 & 255}.{number & 255}",
        "qtensor.pc": found(r"^Version: (.*)", build / "qtensor.pc"),
        "qtensorConfigVersion.cmake": found(r'^set\(PACKAGE_VERSION "(.*)"\)', build / "qtensorConfigVersion.cmake"),
        "CHANGELOG.md": re.search(r"^## ([0-9.]+)", (root / "CHANGELOG.md").read_text(), re.M).group(1),
    }
    if (build / "tools/qtensor").exists():
        text = subprocess.run([build / "tools/qtensor", "--version"], check=True, capture_output=True, text=True).stdout
        says["qtensor --version"] = text.removeprefix("qtensor ").strip()
    if (build / "python/qtensor").exists():
        command = ["/usr/bin/python3", "-c", "import qtensor; print(qtensor.__version__)"]
        environment = {**os.environ, "PYTHONPATH": str(build / "python")}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        says["Python"] = done.stdout.strip()
    wrong = {name: text for name, text in says.items() if text != version}
    assert not wrong, f"the version is {version}: {wrong}"
    soname = subprocess.run(["readelf", "-d", build / "capi/libqtensor.so"], check=True, capture_output=True, text=True)
    major = version.split(".")[0]
    assert f"[libqtensor.so.{major}]" in soname.stdout, soname.stdout
    print(f"{version}: {', '.join(says)}")


main()
