# SPDX-License-Identifier: Apache-2.0
"""The comments of the C headers, for languages in whose classes SWIG writes none."""

import re

FUNCTION = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\nQTN_API[^;]*?\b(q\w+)\(", re.S)
ENUMERATION = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\ntypedef enum (q\w+) \{(.*?)\}", re.S)
ENUMERATOR = re.compile(r"(QTN_\w+) = (\d+)(?!x),?(?:\s*/\*\*<(.*?)\*/)?")
# Sentences that objects which free themselves make untrue.
OF_C = re.compile(r"\b[Ll]ives? as long as|Do not free|text is static|NULL for an index")


def line(comment):
    return " ".join(re.sub(r"^\s*\*? ?", "", text).strip() for text in comment.splitlines() if text.strip(" *")).strip()


def summary(comment):
    """The first paragraph, but for what only C needs, and for what leads to a list."""
    first = re.sub(r"; NULL for an index out of range", "", line(re.split(r"\n \*\n", comment)[0]))
    return " ".join(s for s in re.split(r"(?<=[.:]) (?=[A-Z])", first) if not OF_C.search(s) and not s.endswith(":"))


def functions(header):
    """Of each function its summary and what its parameters are, by its name without underlines."""
    found = {}
    for comment, name in FUNCTION.findall(header):
        text, *tags = re.split(r"@(?=param|since)", re.split(r"^ \* Errors:", comment, flags=re.M)[0])
        parameters = dict(re.match(r"param (\w+)(.*)", tag, re.S).groups() for tag in tags if tag.startswith("param"))
        found[name.replace("_", "")] = summary(text), {key: line(value) for key, value in parameters.items()}
    return found


def enumerations(types):
    """Of each enumeration its comment, and those of its enumerators by their number."""
    return {name: (line(comment), {number: line(said) or f"{item} of C." for item, number, said in ENUMERATOR.findall(body)})
            for comment, name, body in ENUMERATION.findall(types)}
