#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every link of a page leads to a file of the checkout, and to a heading where it names one. Looks at all .md files that git
tracks; links to other sites are not followed. Usage: check_links.py ROOT
"""
import pathlib
import re
import sys
import urllib.parse

from tracked import tracked

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.M | re.S)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)|^ {0,3}\[[^\]]+\]:\s+(\S+)|(?:href|src)=\"([^\"]+)\"", re.M)
HEADING = re.compile(r"^ {0,3}#{1,6} +(.+?) *#*$", re.M)
PLACE = re.compile(r"<a [^>]*(?:id|name)=\"([^\"]+)\"")


def blank(match):
    """As many lines without text, so that line numbers stay."""
    return "\n" * match[0].count("\n")


def anchors(text):
    """The places of a page, named as GitHub names them: the second heading of the same words ends in -1."""
    seen, places = {}, set(PLACE.findall(text))
    for title in HEADING.findall(FENCE.sub(blank, text)):
        title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        places.add(f"{name}-{count}" if count else name)
    return places


def links(text):
    """Pairs of a line number and where the link of that line leads."""
    text = COMMENT.sub(blank, CODE.sub(blank, FENCE.sub(blank, text)))
    for match in LINK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, next(filter(None, match.groups()))


def faults(root, files):
    folders = {folder for file in files for folder in file.parents}
    pages = {file: (root / file).read_text() for file in sorted(files) if file.suffix == ".md" and (root / file).exists()}
    places = {file: anchors(text) for file, text in pages.items()}
    for file, text in pages.items():
        for line, link in links(text):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = urllib.parse.unquote(parts.path)
            target = (root / file.parent / path).resolve() if path else root / file
            inside = target.relative_to(root) if target.is_relative_to(root) else None
            if inside not in files and inside not in folders:
                yield f"{file}:{line}: {link} is no file of the checkout"
            elif parts.fragment and inside in places and parts.fragment not in places[inside]:
                yield f"{file}:{line}: {link}: that page has no such heading"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = tracked(root)
    found = list(faults(root, files))
    print("\n".join(found) or f"every link of {sum(file.suffix == '.md' for file in files)} pages leads somewhere")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
