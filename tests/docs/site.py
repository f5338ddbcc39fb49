#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site is built; it has a place for every function, and every link within it leads somewhere. usage: site.py ROOT FOLDER"""
import html.parser
import importlib.util
import pathlib
import subprocess
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        if tag in ("a", "img") and (attributes.get("href") or attributes.get("src")):
            self.links.append(attributes.get("href") or attributes.get("src"))


def faults(root, site):
    pages = {path: Page(path) for path in site.glob("*.html") if path.name != "404.html"}
    functions = [line.split()[0] for line in (root / "capi/symbols.txt").read_text().splitlines()]
    yield from (f"c-api.html has no place for {name}" for name in functions if name not in pages[site / "c-api.html"].ids)
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link in (".", "/"):
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)) if parts.path else path
            if not target.exists():
                yield f"{path.name}: {link} leads nowhere"
            elif parts.fragment and target in pages and parts.fragment not in pages[target].ids:
                yield f"{path.name}: {link}: there is no such place on that page"


def main():
    if not importlib.util.find_spec("mkdocs"):
        print("MkDocs is not there (Debian: mkdocs-material)")
        sys.exit(77)
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    subprocess.run([sys.executable, root / "docs/site/build.py", folder], check=True)
    found = list(faults(root, folder / "site"))
    print("\n".join(found) or f"{len(list((folder / 'site').glob('*.html')))} pages, every link leads somewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
