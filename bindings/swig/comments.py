# SPDX-License-Identifier: Apache-2.0
"""What the model of the C API says, in the words of languages in whose classes SWIG writes no comments."""

import json
import re

# Sentences that objects which free themselves make untrue.
OF_C = re.compile(r"\b[Ll]ives? as long as|Do not free|text is static|NULL for an index")
# What is said of an output, besides what it is.
OUT_OF_C = re.compile(r"^receives |^the new handle\b.*|[;.] ?[Ff]ree (?:it|them) with q\w+_free|: qblob_data\(\) ends .*|; belongs to .*")


def summary(doc):
    """The first paragraph, except what only C needs, and what leads to a list."""
    first = re.sub(r"; NULL for an index out of range", "", " ".join(doc.split("\n\n")[0].split()))
    return " ".join(s for s in re.split(r"(?<=[.:]) (?=[A-Z])", first) if not OF_C.search(s) and not s.endswith(":"))


def parameter(p, separator):
    """What it is, with its options, if it has any."""
    rows = [f'"{row["key"]}" ({row["type"]}, {row["default"]}): {row["doc"]}' if "key" in row else f"those of {row['of']} ({row['doc']})"
            for row in p.get("options", [])]
    return f"{p['doc']}. Options, with their types and defaults:{separator[-1]}{separator.join(rows)}" if rows else p["doc"]


def result(function):
    """What a member gives that returns the one thing which the function writes, or what it returns."""
    if function["return"]["type"] == "qstatus":
        out = [p for p in function["params"] if p["direction"] == "out"]
        return OUT_OF_C.sub("", out[0]["doc"]) if len(out) == 1 else ""
    return re.sub(r"(?:; |, )?(?:NULL|0|\"\") (?:where|for) .*", "", function["return"]["doc"])


class Comments:
    def __init__(self, path, separator="; "):
        """`separator`: between options, of which a language makes a sentence or lines."""
        self._separator = separator
        model = json.loads(path.read_text())
        self._functions = {f["name"].replace("_", ""): f for f in model["functions"]}
        # Each enumeration has its comment, and its enumerators have theirs by their number.
        self.enumerations = {e["name"]: (e["doc"], {str(v["value"]): v["doc"] for v in e["values"]}) for e in model["enums"]}

    def function(self, *names):
        """Summary, parameters and result of the first of these names, without underlines, that C has."""
        for function in filter(None, map(self._functions.get, names)):
            return summary(function["doc"]), {p["name"]: parameter(p, self._separator) for p in function["params"]}, result(function)
        return None
