#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every QTN_API function has a doc comment right before it that says `@param` for each parameter and `@since`, and the
same version stands in symbols.txt. Usage: check_docs.py ROOT"""
import pathlib
import re
import sys

DECLARATION = re.compile(r"^QTN_API\s+([^;]*?)\b(q\w+)\(([^;]*)\);", re.M)


def parameters(text):
    names = []
    for part in text.split(","):
        part = part.strip()
        if part and part != "void":
            names.append(re.search(r"(\w+)$", part).group(1))
    return names


def main():
    root = pathlib.Path(sys.argv[1])
    symbols = dict(line.split() for line in (root / "capi/symbols.txt").read_text().splitlines() if line)
    faults, seen = [], set()
    for header in sorted((root / "capi/include/qtensor").glob("*.h")):
        text = header.read_text()
        for declaration in DECLARATION.finditer(text):
            result, name, arguments = declaration.groups()
            where = f"{header.relative_to(root)}:{text.count(chr(10), 0, declaration.start()) + 1}: {name}"
            seen.add(name)
            before = text[:declaration.start()]
            if not before.endswith("*/\n"):
                faults.append(f"{where} has no comment right before it")
                continue
            comment = before[before.rindex("/*"):]
            if not comment.startswith("/** "):
                faults.append(f"{where}: its comment is no /** doc comment */")
            for parameter in parameters(arguments):
                if f"@param {parameter} " not in comment:
                    faults.append(f"{where} does not document parameter {parameter}")
            for documented in re.findall(r"@param (\w+)", comment):
                if documented not in parameters(arguments):
                    faults.append(f"{where} documents {documented}, which is no parameter")
            since = re.search(r"@since (\d+\.\d+)", comment)
            if not since:
                faults.append(f"{where} has no @since")
            elif symbols.get(name) != since.group(1):
                faults.append(f"{where}: @since is {since.group(1)}, symbols.txt says {symbols.get(name)}")
    faults += [f"capi/symbols.txt: {name} is declared in no header" for name in sorted(set(symbols) - seen)]
    print("\n".join(faults) or f"{len(seen)} functions are documented")
    return 1 if faults else 0


sys.exit(main())
