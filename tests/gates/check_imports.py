#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Python script takes from a module in its own folder is there: benchmarks need peers, and no test runs them, so that a
name which has moved shows only when somebody measures. Usage: check_imports.py ROOT
"""
import ast
import pathlib
import sys

from tracked import tracked


def names_of(body):
    """What statements define, in any branch, but not inside of functions and classes."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
            for branch in ("body", "orelse", "finalbody"):
                names |= names_of(getattr(node, branch, []))
            for handler in getattr(node, "handlers", []):
                names |= names_of(handler.body)
    return names


def taken(tree, siblings):
    """Triples of a line, a module beside the script, and the name that it takes from there."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name in siblings}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in siblings:
            yield from ((node.lineno, node.module, alias.name) for alias in node.names if alias.name != "*")
    others = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}  # parameters of the same name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules.keys() - others:
            yield node.lineno, modules[node.value.id], node.attr


def main(root):
    scripts = {path: ast.parse((root / path).read_text()) for path in tracked(root) if path.suffix == ".py" and (root / path).exists()}
    names = {path: names_of(tree.body) for path, tree in scripts.items()}
    count = 0
    missing = []
    for path, tree in sorted(scripts.items()):
        siblings = {other.stem: other for other in scripts if other.parent == path.parent and other != path}
        for line, module, name in taken(tree, siblings):
            count += 1
            if name not in names[siblings[module]] and not name.startswith("__"):
                missing.append(f"{path}:{line}: {module}.py has no {name}")
    print("\n".join(missing) if missing else f"{count} names of modules beside scripts are there")
    return 1 if missing or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
