#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site: docs/ and the page of the C API, by MkDocs with the theme Material (Debian's mkdocs-material).

usage: docs/site/build.py [FOLDER]      FOLDER/site/index.html is its first page; build/docs by default
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "capi/model"))
import api
import reference


HEADER = "capi/include/qtensor/qtensor.h"
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def place(path):
    """Where the site has a file of the sources: pages of docs at its top, the header as the page of the C API."""
    if path == HEADER:
        return "c-api.md"
    return path[len("docs/"):] if path.startswith("docs/") else f"files/{path}"


def bring(path, pages):
    """Puts a file of the sources and, of a page, the files that it links into the site."""
    target = pages / place(path)
    if path == HEADER or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / path, target)
    if path.endswith(".md"):
        target.write_text(LINK.sub(lambda match: moved(path, match, pages), (ROOT / path).read_text()))


def moved(path, match, pages):
    """A link of the file `path`, as it has to be in the site."""
    linked = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
    if (ROOT / linked).is_dir():
        linked += "/README.md"
    bring(linked, pages)
    return f"]({os.path.relpath(place(linked), os.path.dirname(place(path)))}{match[2] or ''})"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/docs"
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for page in (ROOT / "docs").glob("*.md"):
        bring(f"docs/{page.name}", pages)
    (pages / "c-api.md").write_text(reference.page(api.read(ROOT / "capi/include")))
    shutil.copy(ROOT / "docs/site/mkdocs.yml", folder)
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", folder / "mkdocs.yml"], check=True)
    print(f"{folder}/site/index.html")


if __name__ == "__main__":
    main()
