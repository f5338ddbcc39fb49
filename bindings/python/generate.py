#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what follows from other files: _enums.py from the model of the C API, and core.pyi, the types of the wrapped classes, from the
signatures that SWIG has written into core.py and the comments of that model.

usage: generate.py API.json CORE.py FOLDER
"""

import ast
import json
import pathlib
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "swig"))
from comments import Comments

ENUMS = {"qstatus": "Status", "qdtype": "DType", "qscheme": "Scheme", "qmode": "Mode"}
# C++ as SWIG writes it, without const, & and qtn:: .
INPUTS = {
    "int32_t": "int", "int64_t": "int", "size_t": "int", "bool": "bool", "double": "float", "std::string": "str",
    "DType": "_DType", "Scheme": "_Scheme", "Mode": "_Mode", "Status": "Status | int", "Ints": "Iterable[int]",
    "Doubles": "Iterable[float]", "Strings": "Iterable[str]", "Tensors": "Iterable[_TensorLike | None]",
    "Tensor": "_TensorLike", "Quantizer": "Quantizer | None", "Attrs": "_Settings | None", "Bytes": "Any",
    "PyObject *": "Any", "Config": "_Recipe", "Config *": "_Recipe | None", "Progress": "Progress | None",
    "TrainingProgress": "TrainingProgress | None", "TrainingProgress::Answer": "int",
}
OUTPUTS = {
    "Ints": "tuple[int, ...]", "Doubles": "tuple[float, ...]", "Tensors": "list[Tensor]", "Tensor": "Tensor",
    "Quantizer": "Quantizer", "Blob": "bytes", "DType": "DType", "Scheme": "Scheme", "Status": "Status",
    "PyObject *": "Any", "Attrs": "dict[str, Any]", "Config": "Config", "qpy::Arrays": "list[Any]",
}
HEAD = '''# Made by generate.py.
import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from qtensor import _mixins
from qtensor._arrays import TensorLike as _TensorLike
from qtensor._enums import DType, Mode, Scheme, Status

_DType = Union[DType, str, int]
_Scheme = Union[Scheme, str, int]
_Mode = Union[Mode, str, int]
_Settings = Mapping[str, Union[int, float, str, DType, Scheme, list[int], list[float]]]
_Recipe = Union["Config", str, Mapping[str, Union[_Settings, None]]]
_Path = Union[str, bytes, os.PathLike[str]]
'''


def member(kind, name):
    """As qdtype_name() and messages say it."""
    return name if kind == "qstatus" else re.sub(r"^(float\d)(e\d)", r"\1_\2", name.lower())


def enums(api):
    lines = ["# Made by generate.py.", '"""The enumerations of the library, by the names that it prints."""', "",
             "import enum"]
    for enum in api["enums"]:
        kind = enum["name"]
        if kind not in ENUMS:  # of callbacks, which answer with Python's own values
            continue
        lines += ["", "", f"class {ENUMS[kind]}(enum.Enum):", f'    """{enum["doc"]}"""', ""]
        for value in enum["values"]:
            lines.append(f"    {member(kind, value['name'].removeprefix('QTN_'))} = {value['value']}  # {value['doc']}")
        lines += ["", "    def __repr__(self) -> str:", '        return f"qtensor.{type(self).__name__}.{self.name}"']
    return "\n".join(lines) + "\n"


def plain(cpp):
    return re.sub(r"\bqtn::|\bconst\b ?|&", "", cpp).replace("std::string *", "std::string").strip()


def parameters(text):
    """SWIG's "Type name=default, ..." as Python's."""
    for part in filter(None, re.split(r",\s*(?![^{]*\})", text)):
        declared, default, _ = part.partition("=")  # whose value is empty for members of an enumeration
        cpp, name = re.match(r"(.*?)(\w+)$", declared.strip()).groups()
        if name == "self":
            yield "self"
            continue
        python = INPUTS.get(plain(cpp), plain(cpp))
        if name in ("path", "parts"):
            python = "_Path" if name == "path" else "Iterable[_Path]"
        yield f"{name}: {python}{' = ...' if default else ''}"


def docstring(c, owner, name, shown):
    """Of what C says: summary, parameters and result. Nothing where C has no such function."""
    verb = "create" if name == "__init__" else name.replace("_", "")
    found = c.function(f"q{owner}{verb}".lower(), f"q{verb}".lower())
    if not found:
        return []
    summary, params, result = found
    names = [p.partition(":")[0] for p in shown]
    said = [f"{name}: {params[name]}" for name in names if name in params] + [f"returns: {result}" for _ in range(bool(result))]
    lines = textwrap.wrap(summary, 110) + [""] * bool(said)
    for part in said:
        first, *options = part.split("\n")
        lines += textwrap.wrap(first, 110, subsequent_indent="    ")
        for option in options:
            lines += textwrap.wrap(option, 110, initial_indent="    - ", subsequent_indent="      ")
    return [f'        """{lines[0]}', *(f"        {line}".rstrip() for line in lines[1:]), '        """']


def method(node, owner, c):
    signature = re.match(r"(\w+)\((.*)\)(?: -> (.*))?$", ast.get_docstring(node) or "")
    if not signature:
        return
    name, arguments, result = signature.groups()
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    shown = list(parameters(arguments))
    if node.name == "__init__":
        shown, result = ["self"] + [p for p in shown if p != "self"], "None"
    elif not static and shown[:1] != ["self"]:
        shown.insert(0, "self")
    python = OUTPUTS.get(plain(result or "None"), INPUTS.get(plain(result or "None"), plain(result or "None")))
    if node.name in ("_quantize", "_quantize_qat"):
        python = "tuple[Model, str]"
    if static:
        yield "    @staticmethod"
    said = docstring(c, owner, node.name, shown)
    yield f"    def {node.name}({', '.join(shown)}) -> {python}:{'' if said else ' ...'}"
    yield from said


def members(node, c):
    for child in node.body:
        if isinstance(child, ast.AnnAssign):
            yield "    @property"
            yield f"    def {child.target.id}(self) -> {child.annotation.value}: ..."
        elif isinstance(child, ast.FunctionDef) and not child.name.startswith("__swig"):
            yield from method(child, node.name, c)


def stubs(core, c):
    lines = [HEAD]
    for node in ast.parse(core).body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        sugared = any("_mixins" in ast.unparse(base) for base in node.bases)
        lines.append(f"class {'_' if sugared else ''}{node.name}:")
        lines += list(members(node, c)) or ["    ..."]
        if sugared:
            lines.append(f"\nclass {node.name}(_mixins.{node.name}): ...")
        lines.append("")
    return "\n".join(lines)


def main():
    api, core, folder = map(pathlib.Path, sys.argv[1:])
    (folder / "_enums.py").write_text(enums(json.loads(api.read_text())))
    (folder / "core.pyi").write_text(stubs(core.read_text(), Comments(api, "\n")))


if __name__ == "__main__":
    main()
