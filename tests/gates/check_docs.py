#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of the C API has every function of symbols.txt, no other one, since the same version, and of each what it does,
what its parameters are, and what it returns. Usage: check_docs.py API.json SYMBOLS.txt"""
import json
import pathlib
import sys


def faults(functions, symbols):
    yield from (f"symbols.txt: {name} is declared in no header" for name in sorted(symbols.keys() - functions.keys()))
    for name, function in functions.items():
        if symbols.get(name) != function["since"]:
            yield f"{name}: @since is {function['since']}, symbols.txt says {symbols.get(name)}"
        if not function["doc"]:
            yield f"{name} is not described"
        yield from (f"{name} does not document {p['name']}" for p in function["params"] if not p["doc"])
        if function["return"]["type"] != "void" and not function["return"]["doc"]:
            yield f"{name} says nothing of its result"


def main():
    api, symbols = map(pathlib.Path, sys.argv[1:])
    functions = {function["name"]: function for function in json.loads(api.read_text())["functions"]}
    found = list(faults(functions, dict(line.split() for line in symbols.read_text().splitlines() if line)))
    print("\n".join(found) or f"{len(functions)} functions are documented")
    sys.exit(bool(found))


main()
