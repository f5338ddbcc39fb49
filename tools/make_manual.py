#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the command says of itself in --help into its manual page, qtensor.1, between the lines that say so.

usage: make_manual.py COMMAND [--check]      COMMAND: the built command; --check: changes nothing, fails where it would
"""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).with_name("qtensor.1")
BEGIN, END = '.\\" commands: tools/make_manual.py\n', '.\\" end of commands\n'
COLUMN = 30  # where descriptions begin; they are in a line of their own where what they describe is longer


def entries(text, title):
    """(what is described, its description) of a section of the help."""
    found = re.search(rf"^{title}:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    lines = found.group(1).splitlines() if found else []
    while lines:
        line = lines.pop(0)
        own = bool(lines) and lines[0].startswith(" " * COLUMN)
        yield (line.split(), lines.pop(0).strip()) if own else (line[:COLUMN].split(), line[COLUMN:])


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def sentence(text):
    return roff(text if text.endswith(".") else text + ".")


def bold(text):
    return f"\\fB{roff(text)}\\fR"


def value(kind):
    """`TEXT:{nchw,nhwc}`, `N` or `...`, as a page shows it."""
    choice = re.search(r"\{(.*)\}", kind)
    return "|".join(map(bold, choice.group(1).split(","))) if choice else f"\\fI{roff(kind)}\\fR"


def option(words, text):
    """`-o,--output OUT.onnx REQUIRED`, `--resume Needs: --checkpoint`, ..."""
    relations = [i for i, word in enumerate(words) if word in ("Excludes:", "Needs:")] + [len(words)]
    head = words[:relations[0]]
    kinds = [value(word) for word in head[1:] if word != "REQUIRED"]
    lines = [".TP", " ".join([", ".join(map(bold, head[0].split(","))), *kinds]), sentence(text)]
    if "REQUIRED" in head:
        lines.append("Required.")
    for begin, end in zip(relations, relations[1:]):
        says = {"Excludes:": "Not with", "Needs:": "Only with"}[words[begin]]
        lines.append(f"{says} {', '.join(map(bold, words[begin + 1:end]))}.")
    return lines


def commands(help_of):
    lines = []
    for (name, *_), summary in entries(help_of(), "Subcommands"):
        text = help_of(name)
        arguments = re.search(r"^Usage: qtensor \S+ \[OPTIONS\] ?(.*)$", text, re.M).group(1)
        lines += [f".SS {bold('qtensor ' + name)} [\\fIOPTIONS\\fR] \\fI{roff(arguments)}\\fR", sentence(summary)]
        for words, description in entries(text, "Positionals"):
            lines += [".TP", value(words[0]), sentence(description)]
        for words, description in entries(text, "Options"):
            lines += option(words, description)
    return "".join(line + "\n" for line in lines)


def main():
    def help_of(*words):
        return subprocess.run([sys.argv[1], *words, "--help"], check=True, capture_output=True, text=True).stdout

    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    wanted = head + BEGIN + commands(help_of) + END + rest.split(END)[1]
    if "--check" not in sys.argv:
        PAGE.write_text(wanted)
    elif text != wanted:
        sys.exit("tools/qtensor.1 is not what --help says: run tools/make_manual.py COMMAND")


if __name__ == "__main__":
    main()
