#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What SWIG leaves undone in the classes that it makes for Java: the comments of the C API as Javadoc, and names of parameters
in Java's way.

usage: finish.py API.json FOLDER
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "swig"))
from comments import Comments
from names import with_names

CLASSES = "Config", "Layer", "Lib", "Model", "Observer", "Op", "Quantizer", "Session", "Tensor", "Trainer"
ENUMS = {"Status": "qstatus", "DType": "qdtype", "Scheme": "qscheme", "Mode": "qmode"}
# What only the classes have.
OWN = {
    "Config.leaveInFloat": "Leaves what the selector of set() names in float.",
    "Quantizer.perTensor": "One scale and zero point for all elements.",
    "Session.outputCount": "The tensors that a run gives.",
}
MEMBER = re.compile(r"^  public (?:static )?(?:[\w.<>?\[\] ,]+ )?(\w+)\((.*)\) \{$", re.M)
ENUMERATOR = re.compile(r"^  \w+\((\d+)\)[,;]", re.M)
NAME = re.compile(rf"\bq({'|'.join(map(str.lower, CLASSES))})_(\w+)(?:\(\w+\))?")


def of_java(match):
    noun, (verb, *words) = match[1].capitalize(), match[2].split("_")
    return f"{{@code {'new ' + noun if verb == 'create' else noun + '.' + verb + ''.join(map(str.capitalize, words))}}}"


def javadoc(text, tags=()):
    """A comment of C, and tags of which each is a name and such a comment."""
    def words(said):
        for sign, entity in ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("NULL", "null"):
            said = said.replace(sign, entity)
        return NAME.sub(of_java, re.sub(r"`([^`]*)`", r"{@code \1}", said))

    if not tags:
        return f"  /** {words(text)} */\n"
    return "".join([f"  /**\n   * {words(text)}\n   *\n", *(f"   * @{name} {words(said)}\n" for name, said in tags), "   */\n"])


def with_members(text, kind, c):
    def documented(match):
        name = "create" if match[1] == kind else match[1]
        said, parameters, result = c.function(f"q{kind}{name}".lower(), f"q{name}".lower()) or (OWN.get(f"{kind}.{name}"), {}, "")
        if not said:
            sys.exit(f"finish.py: C has no comment for {kind}.{name}")
        names = re.findall(r"(\w+)(?:,|$)", re.sub(r"<[^>]*>", "", match[2]))
        tags = [(f"param {n}", parameters[n]) for n in names] if set(names) <= parameters.keys() else []
        if result and match[1] != kind and not re.match("  public (?:static )?void ", match[0]):
            tags.append(("return", result))
        return javadoc(said, tags) + match[0]
    return MEMBER.sub(documented, text)


def with_enumerators(text, comment, items):
    documented = ENUMERATOR.sub(lambda match: javadoc(items[match[1]]) + match[0], text)
    return documented.replace("public enum", javadoc(comment).lstrip() + "public enum", 1)


def main():
    api, folder = map(pathlib.Path, sys.argv[1:])
    c = Comments(api)
    for kind in CLASSES:
        file = folder / f"{kind}.java"
        file.write_text(with_names(with_members(file.read_text(), kind, c), MEMBER))
    for kind, name in ENUMS.items():
        file = folder / f"{kind}.java"
        file.write_text(with_enumerators(file.read_text(), *c.enumerations[name]))


if __name__ == "__main__":
    main()
