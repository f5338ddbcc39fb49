#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of the C API: the public headers, read once, as JSON. Gates, the site, bindings, the conformance check and the
fault tests read that, and none of them reads the headers. docs/dev/api-model.md describes its members.

usage: api.py INCLUDE_DIR OUT.json

Headers keep to a small part of C, in which comments say more than declarations; so this is no parser of C. What it does
not understand, and what is not documented, is an error with file and line. A test compares the outcome with what clang reads.
"""

import json
import pathlib
import re
import sys

HEADERS = "qtensor/types.h", "qtensor/qtensor.h"
SCALARS = "int", "int32_t", "int64_t", "size_t", "double", "char"
OPTION_TYPES = "int", "float", "string", "ints", "floats"
TABLE_HEAD = ["key", "type", "default", "meaning"]


class Fault(Exception):
    """What the headers do not say as they should; its text begins with file and line."""


class Place:
    def __init__(self, header, text):
        self.header, self.text = header, text

    def fault(self, offset, what):
        return Fault(f"{self.header}:{self.text.count(chr(10), 0, offset) + 1}: {what}")


# --- the text in pieces


def pieces(place):
    """("doc" | "comment" | "macro" | "declaration", offset, text), in their order; docs and comments without their frame."""
    text, at = place.text, 0
    while True:
        at = re.compile(r"\s*").match(text, at).end()
        if at == len(text):
            return
        start = at
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            yield "doc" if text.startswith("/**", start) else "comment", start, text[start:at]
        elif text[at] == "#":
            at = re.compile(r"(?:[^\\\n]|\\.)*", re.S).match(text, at).end()
            yield "macro", start, text[start:at]
        else:
            at = end_of_declaration(place, at)
            yield "declaration", start, text[start:at]


def end_of_declaration(place, at):
    """Behind its semicolon: the first one outside of braces and comments."""
    depth, start = 0, at
    for token in re.compile(r"/\*.*?\*/|[{};]", re.S).finditer(place.text, at):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if token[0] == ";" and depth == 0:
            return token.end()
    raise place.fault(start, "a declaration that does not end")


def unframed(comment):
    """The lines of a comment without /**, * and */."""
    lines = re.sub(r"^/\*+<? ?|\s*\*/$", "", comment).split("\n")
    return "\n".join([lines[0], *(re.sub(r"^\s*\* ?", "", line) for line in lines[1:])]).strip("\n")


def joined(text):
    return " ".join(text.split())


# --- what a comment says


def documentation(comment):
    """{"doc", "params": {name: text}, "return", "values": [{"value", "doc"}], "since", "deprecated"}"""
    said = {"doc": "", "params": {}, "return": None, "values": [], "since": None, "deprecated": None}
    text, *tags = re.split(r"^@", unframed(comment), flags=re.M)
    said["doc"] = text.rstrip()
    for tag in tags:
        kind, words = (tag.split(None, 1) + [""])[:2]
        name, meaning = (words.split(None, 1) + ["", ""])[:2]
        if kind == "param" and name not in said["params"]:
            said["params"][name] = meaning.rstrip()
        elif kind == "retval" and meaning:
            said["values"].append({"value": name, "doc": joined(meaning)})
        elif kind in ("return", "since", "deprecated") and said[kind] is None and words:
            said[kind] = joined(words)
        else:
            raise ValueError(f"@{kind} {name} is not known, comes twice or says nothing")
    return said


def options(meaning):
    """The text before a table, and its rows: [{"key", "type", "default", "doc"}], or {"of": function, "doc"}."""
    text, *lines = re.split(r"\n(?=\|)", meaning)
    if not lines:
        return joined(text), None
    rows = []
    for line in lines:
        cells = [joined(cell) for cell in line[1:].split("|", 3)]
        if len(cells) != 4 or "\n" in line:
            raise ValueError(f"no row of four cells: {line}")
        rows.append(cells)
    if len(rows) < 3 or rows[0] != TABLE_HEAD or not all(re.fullmatch("-+", cell) for cell in rows[1]):
        raise ValueError(f"a table that does not begin with {' | '.join(TABLE_HEAD)}")
    table = []
    for key, kind, default, said in rows[2:]:
        if not key and table and not kind:  # more of the row before
            table[-1]["doc"] += f" {said}"
            if default:
                table[-1]["default"] += f" {default}"
        elif key.startswith('"') and key.endswith('"'):
            if kind not in OPTION_TYPES or not default or not said:
                raise ValueError(f"option {key} without type, default or meaning")
            table.append({"key": key.strip('"'), "type": kind, "default": default, "doc": said})
        elif re.fullmatch(r"q\w+", key):
            table.append({"of": key, "doc": said})
        else:
            raise ValueError(f"{key or 'a row'} is no option")
    return joined(text), table


# --- what a declaration says


def parameters(text):
    """[{"name", "type", "nullable"}]"""
    found = []
    for part in filter(None, (joined(p) for p in text.split(","))):
        if part == "void":
            continue
        match = re.fullmatch(r"(QTN_OPT )?((?:const |struct )*\w+(?: ?\*(?: ?const)?)* ?\*?)\b(\w+)", part)
        if not match or match[2].strip() in ("const", "struct", ""):
            raise ValueError(f"parameter \"{part}\" is not understood")
        found.append({"name": match[3], "type": match[2].strip(), "nullable": bool(match[1])})
    return found


def direction(kind, handles, frees):
    """in: read, or given away; out: written; inout: a handle that is changed."""
    if "*" not in kind or kind.startswith("const "):
        return "in"
    base = re.sub(r"[*\s]|struct|const", "", kind)
    if kind.count("*") == 2 or base in SCALARS:
        return "out"
    return "inout" if base in handles and not frees else "in"


def signature(place, offset, name, kind, arguments, said, handles):
    """Parameters and result with what is said of them."""
    params = parameters(arguments)
    names = [p["name"] for p in params]
    for param in params:
        if param["name"] not in said["params"]:
            raise place.fault(offset, f"{name} does not document parameter {param['name']}")
    for documented in said["params"]:
        if documented not in names:
            raise place.fault(offset, f"{name} documents {documented}, which is no parameter")
    for param in params:
        param["direction"] = direction(param["type"], handles, name.endswith("_free"))
        param["doc"], table = options(said["params"][param["name"]])
        if not param["doc"]:
            raise place.fault(offset, f"{name} says nothing of parameter {param['name']}")
        if table is not None:
            param["options"] = table
    if said["return"] is None and kind != "void":
        raise place.fault(offset, f"{name} says nothing of its result")
    if said["return"] is not None and kind == "void":
        raise place.fault(offset, f"{name} documents a result, and has none")
    result = {"type": kind, "doc": said["return"] or ""}
    if said["values"]:
        result["values"] = said["values"]
    return params, result


class Model:
    def __init__(self):
        self.introduction, self.sections, self.functions = "", [], []
        self.handles, self.enums, self.callbacks, self.macros = [], [], [], []

    def read(self, place):
        doc = None  # (end, comment) of the comment that documents what follows
        for kind, offset, text in pieces(place):
            if kind == "doc" and text.startswith("/**<"):
                if not self.handles or place.text.count("\n", self.handles[-1]["end"], offset):
                    raise place.fault(offset, "a comment that follows nothing")
                self.handles[-1]["doc"] = joined(unframed(text))
            elif kind == "doc":
                doc = offset + len(text), text
            elif kind == "comment":
                self.comment(place, unframed(text))
            else:
                said = doc[1] if doc and place.text[doc[0]:offset] == "\n" else None
                try:
                    (self.macro if kind == "macro" else self.declaration)(place, offset, text, said)
                except ValueError as error:
                    raise place.fault(offset, f"{error}") from None

    def comment(self, place, text):
        title = re.match(r"-{50,}\n(?:\d+\. )?([^\n]*)\n+(.*)", text, re.S)
        if title:
            self.sections.append({"title": title[1], "doc": title[2].strip(), "functions": []})
        elif text.startswith("SPDX") and place.header.endswith("/qtensor.h"):
            self.introduction = text.split("\n", 2)[2].strip()

    def macro(self, place, offset, text, said):
        name = re.match(r"#\s*define (\w+)", text)
        if name and said:
            self.macros.append({"name": name[1], "doc": joined(unframed(said))})

    def declaration(self, place, offset, raw, said):
        text = joined(re.sub(r"/\*(?!\*<).*?\*/", "", raw, flags=re.S))
        if handle := re.fullmatch(r"typedef struct (\w+) (\w+);", text):
            self.handles.append({"name": handle[2], "doc": joined(unframed(said)) if said else "",
                                 "end": offset + len(text)})
        elif re.fullmatch(r"struct \w+;", text):
            pass
        elif enum := re.fullmatch(r"typedef enum (\w+) QTN_INT \{(.*)\} \1;", text):
            self.enum(place, offset, enum[1], enum[2], said)
        elif callback := re.fullmatch(r"typedef ([\w ]+) \(\*(\w+)\)\((.*)\);", text):
            self.function(place, offset, callback[2], callback[1], callback[3], said, self.callbacks)
        elif alias := re.fullmatch(r"typedef (\w+) (\w+);", text):
            found = [c for c in self.callbacks if c["name"] == alias[1]]
            if not found or not said or not documentation(said)["deprecated"]:
                raise ValueError(f"{alias[2]} is no deprecated name of a callback")
            found[0]["deprecated"] = alias[2]
        elif function := re.fullmatch(r"QTN_API (.*?)\b(q\w+)\(([^()]*)\);", text):
            self.function(place, offset, function[2], function[1].strip(), function[3], said, self.functions)
            self.functions[-1]["declaration"] = raw.removeprefix("QTN_API ").replace("\n" + " " * len("QTN_API "), "\n")
        else:
            raise ValueError(f"\"{text[:60]}\" is not understood")

    def enum(self, place, offset, name, body, said):
        if not said:
            raise place.fault(offset, f"{name} has no comment right before it")
        values = []
        for item in re.finditer(r"(\w+) = (\w+),? *(?:/\*\*< (.*?) \*/)?", body):
            if item[1].endswith("_FORCE32"):
                continue
            if not item[3]:
                raise place.fault(offset, f"{name} does not document {item[1]}")
            values.append({"name": item[1], "value": int(item[2], 0), "doc": item[3]})
        self.enums.append({"name": name, "doc": joined(unframed(said)), "values": values})

    def function(self, place, offset, name, kind, arguments, comment, to):
        if not comment:
            raise place.fault(offset, f"{name} has no comment right before it")
        said = documentation(comment)
        if not said["doc"]:
            raise place.fault(offset, f"{name} is not described")
        params, result = signature(place, offset, name, kind, arguments, said, {h["name"] for h in self.handles})
        entry = {"name": name, "doc": said["doc"], "params": params, "return": result}
        if to is self.functions:
            if not re.fullmatch(r"\d+\.\d+", said["since"] or ""):
                raise place.fault(offset, f"{name} has no @since")
            entry = {"name": name, "section": self.sections[-1]["title"] if self.sections else None, "since": said["since"],
                     **{key: value for key, value in entry.items() if key != "name"}}
            if not self.sections:
                raise place.fault(offset, f"{name} stands before the first section")
            self.sections[-1]["functions"].append(name)
            for param in params:
                takes_options = param["type"] == "const qattrs *" and not name.startswith("qattrs_")
                if takes_options and "options" not in param and not param["doc"].startswith("none in this version"):
                    raise place.fault(offset, f"{name} has no table of the options in {param['name']}")
        to.append(entry)

    def check(self):
        """What can be seen only when all has been read."""
        tables = {f["name"] for f in self.functions for p in f["params"] if "options" in p}
        statuses = {v["name"] for e in self.enums if e["name"] == "qstatus" for v in e["values"]}
        for handle in self.handles:
            if not handle["doc"]:
                raise Fault(f"{handle['name']} is not documented")
            handle.pop("end")
        for function in self.functions:
            others = tables - {function["name"]}
            for row in (row for param in function["params"] for row in param.get("options", [])):
                if "of" in row and row["of"] not in others:
                    raise Fault(f"{function['name']}: {row['of']} has no table of options")
            for value in function["return"].get("values", []):
                if function["return"]["type"] == "qstatus" and value["value"] not in statuses:
                    raise Fault(f"{function['name']}: {value['value']} is no status")

    def members(self):
        return {"introduction": self.introduction, "sections": self.sections, "functions": self.functions, "handles": self.handles,
                "enums": self.enums, "callbacks": self.callbacks, "macros": self.macros}


def read(include):
    """The model of the headers in a folder. Throws Fault."""
    model = Model()
    for header in HEADERS:
        model.read(Place(header, (pathlib.Path(include) / header).read_text()))
    model.check()
    return model.members()


def main():
    include, out = map(pathlib.Path, sys.argv[1:])
    try:
        out.write_text(json.dumps(read(include), indent=1) + "\n")
    except Fault as fault:
        sys.exit(f"{include}/{fault}")


if __name__ == "__main__":
    main()
