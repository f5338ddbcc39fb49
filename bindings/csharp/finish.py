#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What SWIG 4.1 leaves undone in the classes that it makes for C#: the comments of the C API as XML comments, and names of
parameters in C#'s way.

usage: finish.py API.json FOLDER
"""

import pathlib
import re
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "swig"))
from comments import Comments
from names import with_names

# What only the classes have.
OWN = {
    "Call.HasInput": "Whether the input is there.",
    "Call.SetOutput": "Copies a result into its place.",
    "Call.OutputQuantizer": "The grid of an output; null where it is not quantized.",
    "Config.LeaveInFloat": "Leaves what the selector of Set() names in float.",
    "Model.GetTensor": "A tensor by name, as a copy: a weight in float, or in integers with their quantizer.",
    "Quantizer.PerTensor": "One scale and zero point for all elements.",
    "Session.OutputCount": "Tensors that a run gives.",
    "Tensor.IsQuantized": "Whether the elements are integers on a grid, which Quantizer tells.",
}
ENUMS = {"Status": "qstatus", "DType": "qdtype", "Scheme": "qscheme", "Mode": "qmode"}
MEMBER = re.compile(r"^  public (?!override)(?:static )?(?:[\w.<>,:\[\]]+ )?(\w+)(?:\((.*?)\)(?: : this.*)? \{| =>)", re.M)
ENUMERATOR = re.compile(r"^  (\w+) = (\d+)", re.M)


def summary(text):
    return f"  /// <summary>{escape(text)}</summary>\n"


def with_members(text, kind, c):
    def documented(match):
        name = "create" if match[1] == kind else match[1]
        if text[: match.start()].rstrip().endswith("</summary>"):
            return match[0]
        said, parameters, result = c.function(f"q{kind}{name}".lower(), f"q{name}".lower()) or (OWN.get(f"{kind}.{name}"), {}, "")
        if not said:
            sys.exit(f"finish.py: C has no comment for {kind}.{name}")
        names = re.findall(r"(\w+)(?:,|$)", re.sub(r"<[^>]*>", "", match[2] or ""))
        lines = [f'  /// <param name="{n}">{escape(parameters[n])}</param>\n' for n in names] if set(names) <= parameters.keys() else []
        if result and match[2] is not None and match[1] != kind and not match[0].startswith("  public void"):
            lines.append(f"  /// <returns>{escape(result)}</returns>\n")
        return summary(said) + "".join(lines) + match[0]
    return MEMBER.sub(documented, text)


def with_enumerators(text, comment, items):
    documented = ENUMERATOR.sub(lambda match: summary(items[match[2]]) + match[0], text)
    return documented.replace("public enum", f"/// <summary>{escape(comment)}</summary>\npublic enum")


def main():
    api, folder = map(pathlib.Path, sys.argv[1:])
    c = Comments(api)
    for file in folder.glob("*.cs"):
        if file.stem in ENUMS:
            file.write_text(with_enumerators(file.read_text(), *c.enumerations[ENUMS[file.stem]]))
        elif not file.stem.startswith("core"):
            file.write_text(with_names(with_members(file.read_text(), file.stem, c), MEMBER))


if __name__ == "__main__":
    main()
