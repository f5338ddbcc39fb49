#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every snippet of a page, in the order of the page, in a folder of its own that has the files which pages speak of.

    snippets.py ROOT BUILD PAGE

- sh: one shell for the page; each block ends it when a command fails.
- A block with a title (```c title="quantize.c") is that file, in the folder where the shell is; a block of the shell says what becomes
  of it. $QTENSOR is a folder like that of the sources, with examples/digits, examples/transformers, examples/voice and build/release.
- python without a title: one program for the page. A line `print(error)  # text` prints that text.
- c and cpp without a title: parts of a program, scaffolds/<page>.<language>, at its lines `//@ 1`, `//@ 2` ... A call of
  the C API that fails ends it.
- java and csharp without a title: more of the page's program, before the end of its main, which then runs as a whole. Where a
  line prints and ends in `// text`, that text is printed.
- In the end the shell goes through scaffolds/<page>.sh, where there is one.
- json: is JSON, and where it is a configuration, one that the library takes.
- A block of no language after the line <!-- printed --> is output: each of its lines is printed by the page, with numbers that
  differ by 2 % at most; of a line with times only the first word counts.
- Other blocks of no language are drawings, xml ones part of a file.

A block that cannot be run has a comment before it that says why: <!-- not run: it needs a GPU -->; one for which a module of Debian's
Python may be missing names that: <!-- needs: distributed -->. Prints what it skips. Exits with 77
where the page has nothing to run, or needs a package that was not built.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap

BLOCK = re.compile(r"^(?P<indent> *)```(?P<info>[a-z]+[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
PRINTED = re.compile(r"^<!-- printed -->\n```\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
COMPILERS = {"c": ["cc", "-std=c99"], "cpp": ["c++", "-std=c++17"]}
PACKAGES = {"java": "java/qtensor.jar", "csharp": "csharp/QTensor.dll"}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


class Block:
    def __init__(self, match, page):
        info = match["info"].split(None, 1)
        self.language = info[0]
        self.title = (re.findall(r'title="([^"]+)"', match["info"]) or [None])[0]
        self.text = textwrap.dedent(match["text"])
        before = page[: match.start()].rstrip().rsplit("\n", 1)[-1].strip()
        self.reason = (re.findall(r"^<!-- not run: (.*) -->$", before) or [None])[0]
        for module in re.findall(r"^<!-- needs: (.*) -->$", before):
            if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
                self.reason = f"{module} of Python is missing here"
        self.line = page.count("\n", 0, match.start()) + 1


def fill(folder, root, build):
    """The files which pages speak of, most of them made of the digits."""
    digits = root / "examples/digits"
    (folder / "examples").mkdir()
    shutil.copytree(digits, folder / "examples/digits")
    shutil.copytree(root / "examples/voice", folder / "examples/voice")
    shutil.copytree(root / "examples/transformers", folder / "examples/transformers")
    for name, source in {"net.onnx": "digits.onnx", "calibration.npy": "calibration.npy", "test.npy": "test_images.npy",
                         "labels.npy": "test_labels.npy", "train.npy": "train_images.npy",
                         "train_labels.npy": "train_labels.npy"}.items():
        shutil.copy(digits / source, folder / name)
    for file in (root / "tests/golden/custom").glob("swish*"):
        shutil.copy(file, folder)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(build)
    prefix = folder / ".installed"
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    (prefix / "bin/python3").symlink_to("/usr/bin/python3")  # which has Debian's NumPy, whatever stands before it in PATH
    lib = next(prefix.glob("**/qtensor.pc")).parents[1]
    for file in (build / "java/qtensor.jar", *(build / "csharp").glob("*.dll"), *(build / "csharp").glob("*.so")):
        if file.exists():
            shutil.copy(file, folder)
    return dict(os.environ, PATH=f"{prefix / 'bin'}:{os.environ['PATH']}", LD_LIBRARY_PATH=f"{lib}:{folder}",
                QTENSOR=str(folder), PKG_CONFIG_PATH=str(lib / "pkgconfig"), PYTHONPATH=str(build / "python"))


def prints_what_it_says(text):
    return re.findall(r"^ *print\(error\) +# (.+)$", text, re.M)


def python(blocks, folder, page):
    (folder / ".page.py").write_text("\n".join(b.text for b in blocks))
    said = [text for b in blocks for text in prints_what_it_says(b.text)]
    checks = "".join(f"grep -qF -- {shlex.quote(text)} .printed\n" for text in said)
    return f"python3 -X dev {folder}/.page.py > .printed || {{ cat .printed; exit 1; }}\ncat .printed\n{checks}"


def compiled(language, blocks, folder, page, build):
    scaffold = pathlib.Path(__file__).parent / "scaffolds" / f"{page}.{language}"
    program = scaffold.read_text()
    for number, block in enumerate(blocks, 1):
        place = re.compile(rf"^//@ {number}$", re.M)
        if len(place.findall(program)) != 1:
            sys.exit(f"{scaffold.name} has no place for the {language} block at line {block.line}: //@ {number}")
        program = place.sub(lambda _: block.text, program)
    source = folder / f".page.{language}"
    source.write_text(program)
    (folder / "checked.h").write_text(checked(build))
    return (f"{shlex.join(COMPILERS[language] + WARNINGS)} {source} $(pkg-config --cflags --libs qtensor) -o {folder}/.program\n"
            f"{folder}/.program\n")


def grown(language, blocks, program, folder):
    """The titled program with these blocks at the end of its main."""
    end = re.search(r"^  }\n}", program.text, re.M)
    text = program.text[: end.start()] + "".join(block.text for block in blocks) + program.text[end.start():]
    name = pathlib.Path(program.title)
    (folder / "grown").mkdir()
    (folder / "grown" / name).write_text(text)
    said = re.findall(r"(?:println|WriteLine)\(.*\); +// (.+)$", text, re.M)
    build = {"java": f"javac -cp qtensor.jar -d grown grown/{name}\njava -Xcheck:jni -cp qtensor.jar:grown {name.stem}",
             "csharp": f"mcs -r:QTensor.dll grown/{name} -out:grown.exe\nmono grown.exe"}[language]
    checks = "".join(f"grep -qxF -- {shlex.quote(text)} .printed\n" for text in said)
    return f"{build} > .printed || {{ cat .printed; exit 1; }}\n{checks}"


def checked(build):
    """A header with which a call that fails ends a C program."""
    functions = json.loads((build / "api.json").read_text())["functions"]
    calls = [function["name"] for function in functions if function["return"]["type"] == "qstatus"]
    return """#include <qtensor/qtensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline qstatus checked(qstatus status, const char *call) {
  if (status != QTN_OK) exit((fprintf(stderr, "%s: %s\\n", call, qerror_message()), 1));
  return status;
}
""" + "".join(f"#define {call}(...) checked({call}(__VA_ARGS__), \"{call}\")\n" for call in calls)


def same(wanted, line):
    if " ms" in wanted:
        return wanted.split()[0] == (line.split() or [""])[0]
    pairs = zip(map(float, NUMBER.findall(wanted)), map(float, NUMBER.findall(line)))
    return NUMBER.sub("#", wanted).split() == NUMBER.sub("#", line).split() and all(abs(a - b) <= 0.02 * abs(a) for a, b in pairs)


def run(script, folder, environment):
    """Runs it, shows what it prints, and returns its exit code and these lines."""
    lines = []
    with subprocess.Popen(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as shell:
        for line in shell.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    return shell.returncode, lines


def check_json(block, folder):
    value = json.loads(block.text)
    if not isinstance(value, dict) or "recipe" not in value:
        return ""
    file = folder / (block.title or f".line{block.line}.json")
    file.write_text(block.text)
    return f'python3 -c \'import qtensor as qt; qt.Config.load("{file}")\'\n'


def main():
    root, build, path = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
    page = (root / path).read_text()
    blocks = [Block(m, page) for m in BLOCK.finditer(page)]
    for block in blocks:
        if block.reason:
            print(f"{path}:{block.line}: not run: {block.reason}")
    blocks = [b for b in blocks if not b.reason]
    missing = [f"{path} needs {file}" for language, file in PACKAGES.items()
               if any(b.language == language for b in blocks) and not (build / file).exists()]
    print(*missing, sep="\n", end="\n" if missing else "")
    if missing or not blocks:
        sys.exit(77)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = fill(folder, root, build)
        script = ["set -euo pipefail\n"]
        parts = {}  # of one program, by language
        for block in blocks:
            script.append(f"echo {shlex.quote(f'== {path}:{block.line} {block.language}')}\n")
            if block.title:
                (folder / block.title).write_text(block.text)
                script.append(f"[[ . -ef {folder} ]] || cp {folder / block.title} .\n")
            if block.language == "sh":
                script.append(block.text)
            elif block.language == "json":
                script.append(check_json(block, folder))
            elif not block.title and block.language != "xml":
                parts.setdefault(block.language, []).append(block)
        for language, some in parts.items():
            script.append(f'echo "== {path}: {language}"\n')
            if language == "python":
                script.append(python(some, folder, path.stem))
            elif language in COMPILERS:
                script.append(compiled(language, some, folder, path.stem, build))
            else:
                program = next(b for b in blocks if b.language == language and b.title)
                script.append(grown(language, some, program, folder))
        epilogue = pathlib.Path(__file__).parent / "scaffolds" / f"{path.stem}.sh"
        if epilogue.exists():
            script.append(f"echo '== {epilogue.name}'\n{epilogue.read_text()}")
        code, lines = run("".join(script), folder, environment)
    missing = [wanted for text in PRINTED.findall(page) for wanted in text.splitlines() if not any(same(wanted, line) for line in lines)]
    for line in missing:
        print(f"{path} shows a line that nothing printed: {line}")
    sys.exit(code or bool(missing))


if __name__ == "__main__":
    main()
