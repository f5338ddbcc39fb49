# SPDX-License-Identifier: Apache-2.0
"""The page of the C API, from the header: its sections, and of each function the declaration and the comment before it."""
import re
import textwrap

SECTION = r"/\* -{50,}\n(?P<section>.*?)\*/"
FUNCTION = r"/\*\* (?P<comment>(?:(?!\*/).)*)\*/\n(?P<declaration>QTN_API [^;]*;)"


def prose(comment):
    lines = [re.sub(r"^ \* ?", "", line) for line in comment.rstrip().split("\n")]
    return textwrap.dedent("\n".join(lines[:1] + [l for l in lines[1:]]))


def of_function(name, declaration, comment):
    text, *tags = re.split(r"^@(?=param|since)", prose(comment), flags=re.M)
    parameters, rest = [], []
    for tag in tags:
        kind, words = tag.split(None, 1)
        if kind == "since":
            rest.append(f"Since {words.strip()}.")
            continue
        words, errors, what = words.partition("Errors:")
        parameter, meaning = words.split(None, 1)
        parameters.append(f"- `{parameter}`: {' '.join(meaning.split())}")
        if errors:
            rest.append(f"Errors: {what.strip()}")
    declaration = declaration.replace("QTN_API ", "")
    parts = [f"### {name}", f"```c\n{declaration}\n```", text.strip(), "\n".join(parameters), *rest]
    return "\n\n".join(part for part in parts if part)


def page(header, types):
    parts = ["# C, by function", "From `qtensor.h`, which has the same words.",
             prose(header[header.index("/* SPDX"):header.index("*/")]).split("\n", 2)[2]]
    for match in re.finditer(f"{SECTION}|{FUNCTION}", header, re.S):
        if match["section"]:
            title, _, text = prose(match["section"].replace("/* ", "", 1)).partition("\n")
            parts += [f"## {title.strip()}", text.strip()]
        else:
            name = re.search(r"\b(q\w+)\(", match["declaration"])[1]
            parts.append(of_function(name, match["declaration"], match["comment"]))
    parts += ["## Types", f"```c\n{types}```"]
    return "\n\n".join(parts) + "\n"
