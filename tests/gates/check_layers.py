#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parses every #include and compares it with layers.txt. Usage: check_layers.py ROOT"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".hpp", ".cpp", ".h", ".c", ".inc"}


class Rules:
    def __init__(self, path):
        self.ranks = {}  # layer -> line number among layers
        self.folders = {}  # layer -> folder or file
        self.separate, self.shared, self.clients, self.only, self.granted = [], set(), [], [], {}
        for line in path.read_text().splitlines():
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "separate":
                self.separate.append(words[1])
            elif words[0] == "shares":
                self.shared.add((words[1], words[2]))
            elif words[0] == "client":
                self.clients.append(words[1])
                self.granted[words[1]] = words[2:]
            elif words[0] == "only":
                self.only.append((words[1:-1], words[-1]))
            else:
                rank = len(set(self.ranks.values()))
                for word in words:
                    name, folder = word.split("=")
                    self.ranks[name], self.folders[name] = rank, folder

    def layer_of(self, path):
        """The layer with the longest folder that holds the path, or None."""
        held = [n for n, f in self.folders.items() if is_in(path, f)]
        return max(held, key=lambda n: len(self.folders[n])) if held else None


def is_in(path, folder):
    return path == folder or path.startswith(folder + "/")


def resolve(root, includer, name):
    """The path of a quoted header, relative to the root, or None."""
    for folder in (includer.parent, root / "src", root / "capi", root / "capi/include", root / "tests", root / "tools"):
        for candidate in (folder / name, folder / (name + ".in")):
            if candidate.is_file():
                return candidate.resolve().relative_to(root).as_posix()
    return None


def fault(rules, path, kind, name, target):
    """Why `path` may not include `name` (which is the file `target`), or None."""
    if kind == "<":
        for folders, prefix in rules.only:
            if name.startswith(prefix) and not any(is_in(path, folder) for folder in folders):
                return f"<{name}> belongs to {' and '.join(folders)} only"
        return None
    if target is None:
        return f'"{name}" is not found'
    for client in rules.clients:
        if is_in(path, client):
            if is_in(target, client) or is_in(target, "capi/include") or target in rules.granted[client]:
                return None
            return f"{client} sees the public headers only, not {target}"
    own, other = rules.layer_of(path), rules.layer_of(target)
    if own is None or other is None:
        return f"{target if own else path} is in no layer"
    if other != own and rules.ranks[other] >= rules.ranks[own]:
        return f"{own} does not see {other} ({target})"
    for folder in rules.separate:
        if is_in(path, folder) and is_in(target, folder):
            mine = path[len(folder) + 1:].split("/")[:-1]
            theirs = target[len(folder) + 1:].split("/")[:-1]
            if theirs and theirs != mine and ("/".join(mine), "/".join(theirs)) not in rules.shared:
                return f"{'/'.join(mine) or folder} does not see {'/'.join(theirs)} ({target})"
    return None


def find_cycle(edges):
    """One cycle of includes as a list of paths, or None."""
    state = {}

    def visit(node, trail):
        state[node] = 1
        for following in edges.get(node, ()):
            if state.get(following) == 1:
                return trail[trail.index(following):] + [following]
            if following not in state:
                found = visit(following, trail + [following])
                if found:
                    return found
        state[node] = 2
        return None

    for node in sorted(edges):
        if node not in state:
            found = visit(node, [node])
            if found:
                return found
    return None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    rules = Rules(pathlib.Path(__file__).with_name("layers.txt"))
    faults, edges, count = [], {}, 0
    for top in ["src", "capi"] + rules.clients:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            count += 1
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                if not found:
                    continue
                kind, name = found.groups()
                if kind == "<" and name.startswith("qtensor/"):
                    kind = '"'
                target = resolve(root, file, name) if kind == '"' else None
                why = fault(rules, path, kind, name, target)
                if why:
                    faults.append(f"{path}:{number}: {why}")
                if target:
                    edges.setdefault(path, []).append(target)
    cycle = find_cycle(edges)
    if cycle:
        faults.append(f"{cycle[0]}:1: includes itself: " + " -> ".join(cycle))
    print("\n".join(faults) or f"{count} files keep the layers")
    return 1 if faults else 0


sys.exit(main())
