#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns each option of CMakeLists.txt to what the build under test does not have: the project must still configure, and sources that look
at the option must compile. What an option only adds or leaves out is compiled by the build under test, which has all of it.

Usage: check_configurations.py ROOT CACHE, the CMakeCache.txt of the build under test
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

OPTION = re.compile(r'^option\((QTN_\w+) ".*?" (?:ON|OFF)\)', re.M)
# The smallest project that an option can be tried on, and what an option needs besides.
BASE = {"QTN_TESTS": "OFF", "QTN_PYTHON": "OFF", "QTN_JAVA": "OFF", "QTN_CSHARP": "OFF", "CMAKE_BUILD_TYPE": "Release"}
NEEDS = {"QTN_FUZZ": {"CMAKE_C_COMPILER": "clang", "CMAKE_CXX_COMPILER": "clang++", "QTN_TOOLS": "OFF"}}


def configure(root, build, settings):
    """The output where it fails, else None."""
    words = ["cmake", "-S", root, "-B", build, "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    done = subprocess.run(words + [f"-D{name}={value}" for name, value in settings.items()], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else None


def compile_readers(root, build, option):
    """Messages of the compiler about library sources that name the option themselves or through a header next to them."""
    named = {p for p in (*root.glob("src/**/*.[ch]pp"), *root.glob("capi/*.[ch]pp")) if option in p.read_text()}
    sources = {p.with_suffix(".cpp") for p in named}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if pathlib.Path(entry["file"]) not in sources:
            continue
        words = shlex.split(entry["command"])
        at = words.index("-o")
        done = subprocess.run(words[:at] + words[at + 2:] + ["-fsyntax-only", "-Werror"], cwd=entry["directory"], capture_output=True, text=True)
        if done.returncode:
            yield done.stderr


def main():
    root, cache = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
    options, faults, tried = OPTION.findall((root / "CMakeLists.txt").read_text()), [], []
    for option in options:
        was_on = re.search(rf"^{option}:BOOL=(?:ON|1|TRUE|YES)$", cache, re.M)
        settings = {**BASE, **NEEDS.get(option, {}), option: "OFF" if was_on else "ON"}
        if settings in tried:
            continue
        tried.append(settings)
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            broken = configure(root, build, settings)
            faults += [f"{option}={settings[option]}: {text}" for text in ([broken] if broken else compile_readers(root, build, option))]
    print("\n".join(faults) or f"{len(options)} options configure and compile the other way, too")
    sys.exit(1 if faults or not options else 0)


if __name__ == "__main__":
    main()
