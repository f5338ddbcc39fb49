# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/languages.md that scripts write, each between two comments: <!-- NAME: SCRIPT --> and <!-- end of NAME -->."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/languages.md"
CASES = ("cases", "torch", "networks", "toolkit", "training", "errors")


def bring(name, table):
    """Writes the table; with --check only says whether it is there."""
    text = PAGE.read_text()
    block = re.compile(rf"(<!-- {name}: (\S+) -->\n).*(<!-- end of {name} -->\n)", re.S)
    script = block.search(text)[2]
    wanted = block.sub(lambda match: match[1] + table + match[3], text)
    if "--check" not in sys.argv:
        PAGE.write_text(wanted)
    elif text != wanted:
        sys.exit(f"docs/languages.md: the table of {name} is old; run {script}")
