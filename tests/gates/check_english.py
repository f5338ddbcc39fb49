#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds turns in prose that no native speaker would write: in every .md file that git tracks, and in the comments of sources.
english.txt lists files in which some remain, with how many at most. Usage: check_english.py ROOT
"""
import pathlib
import re
import sys

from tracked import tracked

THINGS = """activation allocation argument array axis batch bias block bool buffer bound byte call case cast channel checkpoint chunk class
code column command comment configuration constant context copy CPU crash engine entry error exponent exporter factor field file filter
function gate gradient graph grid group handle head header histogram image index input integer item kernel key layer length level library
line link list loop loss machine mask matrix memory message method model module name network node number object observer operand operator
option output package page panel parameter part pass pattern picture pixel plan point pool process product program prototype quantizer
range reader rank recipe report result rounding row rule run runtime sample scale schema script section selector sequence session
setting shape share sign signal slice slot snippet source statement step stride string structure suffix sum symbol table tail tap target
task tensor test thread tile tool type unit value variable vector version view weight window word worker writer zero""".split()
PEERS = "ONNX|PyTorch|torch|oneDNN|OpenVINO|NumPy|NVIDIA|TensorRT|other (?:engines|projects|runtimes|tools)|others|peers|theirs"
EVERYWHERE = {
    r"\bbut\s+for\b": "say \"except\"",
    rf"\bbesides?\s+(?:{PEERS})\b": "say \"compared with\", or \"next to\" for a place",
    rf"\b(?:{'|'.join(THINGS)})(?:s|es)?,?\s+who(?:m|ever)?\b": "a thing is \"which\"",
    r"(?:(?<=[.!?:;]\s)|^|(?<=^- )|(?<=\|\s))Of\s+(?!course\b)\w": "begin with the subject, not with \"Of\"",
    r"\b[TPDN]\d\d\b": "say what it promises, not its number",
    r"(?<!there )\b(?:is|are|was|were)\s+none\b": "say \"is not a ...\" or \"there is no ...\"",
    r"\bof\s+now\b": "say \"current\"",
    r"\banew\b": "say \"again\"",
    r"\bfor\s+ever\b": "say \"forever\", or what ends it",
    r"\b(?:its|their)\s+(?:likes?|kin)\b": "say \"similar\"",
    r"\b[Ww]hoever\b": "name who or what it is",
    r"\bin\s+the\s+mean\b(?!\s+of)": "say \"on average\"",
}
PAGES = {
    r"\b[Pp]ictures?\b": "say \"image\"",
    r"\b(?:[Ss]ome|[Aa]ny|[Nn]o)body\b": "name the node, the program or the thread",
    r"(?<![Tt]here )\b(?:is|are|was|were)\s+no\s+(?!longer|more|less|better|worse|larger|smaller|wider|fewer|nearer|further)\w": "say \"is not a\"",
    r"\bhas\s+to\s+be\s+said\b|\bsees?\s+to\b|\bstrangers\b": "say it with a plainer verb or noun",
}
LANGUAGES = {
    "c": (".c", ".h", ".hpp", ".cpp", ".inc", ".i", ".java", ".cs", ".js", ".go"),
    "hash": (".py", ".sh", ".cmake", ".txt"),
}
FOLDERS = ("benchmarks", "bindings", "capi", "cmake", "docs", "examples", "packaging", "scripts", "src", "tests", "tools")
TOKENS = {
    "c": re.compile(r"(?P<comment>//[^\n]*|/\*.*?\*/)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.S),
    "hash": re.compile(r"(?P<comment>(?:(?<=\s)|(?<=^))#[^\n]*|(?<=\n)\s*(?:\"\"\"|''').*?(?:\"\"\"|'''))|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S),
    "md": re.compile(r"^ *(```|~~~).*?^ *\1 *$|(`+)(?!`).+?(?<!`)\2(?!`)|<!--.*?-->|\]\([^)\s]*\)", re.M | re.S),
}
MARKS = re.compile(r"^[ \t]*(?://[/!<]*|/\*+<?|\*+/?|#+!?)[ \t]?|//[/!]*<?|/\*+<?|\*+/", re.M)


def emptied(text):
    return re.sub(r"[^\n]", " ", text)


def prose_of_page(text):
    return TOKENS["md"].sub(lambda match: emptied(match[0]), text)


def prose_of_source(text, language):
    """The comments, everything else as spaces, so that lines stay where they are; words in quotation marks are names."""
    parts, end = [], 0
    for match in TOKENS[language].finditer(text):
        parts.append(emptied(text[end : match.start()]))
        comment = match["comment"] and MARKS.sub("", match[0])
        parts.append(re.sub(r"\"[^\"\n]*\"|`[^`\n]*`", "_", comment) if comment else emptied(match[0]))
        end = match.end()
    return re.sub(r"^[ \t]+", "", "".join(parts), flags=re.M)


def language_of(file):
    if file.suffix == ".md":
        return "md"
    if file.parts[0] not in FOLDERS or file.name in ("CMakePresets.json",):
        return None
    if file.suffix == "" and file.parts[0] in ("scripts", "packaging", "benchmarks"):
        return "hash"
    if file.suffix == ".txt" and file.name != "CMakeLists.txt":
        return None
    return next((language for language, suffixes in LANGUAGES.items() if file.suffix in suffixes), None)


def findings(file, text):
    language = language_of(file)
    prose = prose_of_page(text) if language == "md" else prose_of_source(text, language)
    rules = {**EVERYWHERE, **PAGES} if language == "md" else EVERYWHERE
    for pattern, advice in rules.items():
        for match in re.finditer(pattern, prose, re.M):
            yield prose.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), advice


def allowed(path):
    """File -> how many at most, from lines "count file: why"."""
    rows = re.findall(r"^(\d+) (\S+): .+$", path.read_text(), re.M)
    return {file: int(count) for count, file in rows}


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    rows, faults, count = allowed(root / "tests/gates/english.txt"), [], 0
    for file in sorted(tracked(root)):
        if not language_of(file) or not (root / file).exists() or file.name == "check_english.py":
            continue
        count += 1
        found = [f"{file}:{line}: \"{words}\": {advice}" for line, words, advice in findings(file, (root / file).read_text(errors="replace"))]
        if len(found) > rows.get(file.as_posix(), 0):
            faults += found
    print("\n".join(faults) or f"{count} files have none of the turns that check_english.py knows")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
