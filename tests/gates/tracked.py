# SPDX-License-Identifier: Apache-2.0
"""The files of a checkout that are the project's: what git knows, or, where there is no git, all but what is built."""
import pathlib
import shutil
import subprocess


def tracked(root):
    if shutil.which("git"):
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True)
        if listed.returncode == 0:
            return {pathlib.Path(name) for name in listed.stdout.decode().split("\0") if name}
    found = {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
    return {path for path in found if path.parts[0] not in ("build", ".git")}
