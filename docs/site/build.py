#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site: docs/ and the page of the C API, by MkDocs with the theme Material (Debian's mkdocs-material).

usage: docs/site/build.py [FOLDER]      FOLDER/site/index.html is its first page; build/docs by default
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "capi/model"))
import api
import reference


def with_files(text, pages):
    """Files of the sources that a page links come along."""
    def copied(match):
        path = match[1]
        (pages / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, pages / "files" / path)
        return f"](files/{path})"
    return re.sub(r"\]\(\.\./([^)#]+)\)", copied, text)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/docs"
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for page in (ROOT / "docs").glob("*.md"):
        (pages / page.name).write_text(with_files(page.read_text(), pages))
    for picture in (ROOT / "docs").glob("*.svg"):
        shutil.copy(picture, pages)
    (pages / "c-api.md").write_text(reference.page(api.read(ROOT / "capi/include")))
    shutil.copy(ROOT / "docs/site/mkdocs.yml", folder)
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", folder / "mkdocs.yml"], check=True)
    print(f"{folder}/site/index.html")


if __name__ == "__main__":
    main()
