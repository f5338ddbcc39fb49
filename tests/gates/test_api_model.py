#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of the C API: it says of functions, types and numbers what Clang reads in the same headers, and headers that leave
something undocumented are refused, with file and line. Usage: test_api_model.py ROOT BUILD"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = map(pathlib.Path, sys.argv[1:])
INCLUDE = ROOT / "capi/include"
sys.path.insert(0, str(ROOT / "capi/model"))
sys.dont_write_bytecode = True
import api

MODEL = json.loads((BUILD / "api.json").read_text())


def clang():
    """The declarations of the headers as Clang reads them: {kind: {name: node}}."""
    command = ["clang", "-x", "c", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-I", INCLUDE, "-I", BUILD / "include", "-"]
    done = subprocess.run(command, input="#include <qtensor/qtensor.h>\n", capture_output=True, text=True, check=True)
    found = {"FunctionDecl": {}, "EnumDecl": {}, "TypedefDecl": {}}
    for node in json.loads(done.stdout)["inner"]:
        if node["kind"] in found and re.match("q[a-z]", node.get("name", "")):
            found[node["kind"]][node["name"]] = node
    return found


def plain(kind):
    return re.sub(r"\s+|\bstruct\b", "", kind)


class OneReader(unittest.TestCase):
    def test_no_other_script_reads_the_headers(self):
        reading = re.compile(r"\bQTN_API\b|\btypedef enum\b")  # what one must look for
        scripts = [path for folder in ("benchmarks", "bindings", "docs", "examples", "packaging", "tests", "tools")
                   for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".sh")]
        self.assertGreater(len(scripts), 50)
        found = {str(path.relative_to(ROOT)) for path in scripts if reading.search(path.read_text())}
        self.assertEqual(found, {"tests/gates/test_api_model.py"})


@unittest.skipUnless(shutil.which("clang"), "clang is not installed")
class AsClangReadsThem(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.clang = clang()

    def test_functions(self):
        read = {function["name"]: function for function in MODEL["functions"]}
        self.assertEqual(read.keys(), self.clang["FunctionDecl"].keys())
        for name, node in self.clang["FunctionDecl"].items():
            parameters = [(p["name"], plain(p["type"]["qualType"])) for p in node.get("inner", []) if p["kind"] == "ParmVarDecl"]
            self.assertEqual([(p["name"], plain(p["type"])) for p in read[name]["params"]], parameters, name)
            self.assertEqual(plain(read[name]["return"]["type"]), plain(node["type"]["qualType"].partition("(")[0]), name)

    def test_enumerations(self):
        read = {enum["name"]: {v["name"]: v["value"] for v in enum["values"]} for enum in MODEL["enums"]}
        self.assertEqual(read.keys(), self.clang["EnumDecl"].keys())
        for name, node in self.clang["EnumDecl"].items():
            items = {item["name"]: int(item["inner"][0]["value"]) for item in node["inner"] if item["kind"] == "EnumConstantDecl"}
            self.assertEqual(read[name], {k: v for k, v in items.items() if not k.endswith("_FORCE32")})

    def test_handles_and_callbacks(self):
        typedefs = {name: node["type"]["qualType"] for name, node in self.clang["TypedefDecl"].items()}
        callbacks = {c["name"]: c for c in MODEL["callbacks"]}
        names = {h["name"] for h in MODEL["handles"]} | callbacks.keys() | {e["name"] for e in MODEL["enums"]}
        self.assertEqual(typedefs.keys(), names | {c["deprecated"] for c in callbacks.values() if "deprecated" in c})
        for name, callback in callbacks.items():
            result, _, arguments = typedefs[name].partition("(*)")
            self.assertEqual(plain(callback["return"]["type"]), plain(result))
            self.assertEqual([plain(p["type"]) for p in callback["params"]], [plain(a) for a in arguments.strip("()").split(",")])


class Refused(unittest.TestCase):
    """A copy of the headers with one thing changed."""

    def changed(self, header, old, new, line_of=None):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            shutil.copytree(INCLUDE, copy, dirs_exist_ok=True)
            text = (copy / header).read_text()
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
            (copy / header).write_text(text)
            with self.assertRaises(api.Fault) as raised:
                api.read(copy)
            if line_of:
                line = text.count("\n", 0, text.index(line_of)) + 1
                self.assertTrue(str(raised.exception).startswith(f"{header}:{line}: "), str(raised.exception))
            return str(raised.exception)

    def test_the_headers_are_not(self):
        self.assertEqual(api.read(INCLUDE), MODEL)

    def test_a_parameter_without_its_comment(self):
        said = self.changed("qtensor/qtensor.h", " * @param isa a name that", " * a name that", "QTN_API qstatus qlib_set_isa(")
        self.assertIn("qlib_set_isa does not document parameter isa", said)

    def test_each_parameter(self):
        text = (INCLUDE / "qtensor/qtensor.h").read_text()
        for number, tag in enumerate(re.finditer(r"^ \* @param (\w+) ", text, re.M)):
            if number % 10 == 0:
                declared = re.compile(r"^(?:QTN_API|typedef) [^;]*?\b(q\w+)\)?\(", re.M)
                name = declared.search(text, tag.end())[1]
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copytree(INCLUDE, folder, dirs_exist_ok=True)
                    (pathlib.Path(folder) / "qtensor/qtensor.h").write_text(text[:tag.start()] + " * " + text[tag.end():])
                    with self.assertRaisesRegex(api.Fault, rf"qtensor\.h:\d+: {name} does not document parameter {tag[1]}$"):
                        api.read(folder)
        self.assertGreater(number, 300)

    def test_a_comment_for_another_parameter(self):
        said = self.changed("qtensor/qtensor.h", "@param isa a name", "@param isa a name\n * @param usa a name")
        self.assertIn("qlib_set_isa documents usa, which is no parameter", said)

    def test_no_result(self):
        said = self.changed("qtensor/qtensor.h", " * @return the name of the instruction set", " * the name of the instruction set")
        self.assertIn("qlib_isa says nothing of its result", said)

    def test_no_version(self):
        self.assertIn("qlib_version has no @since", self.changed("qtensor/qtensor.h", " * @since 0.1 */", " */"))

    def test_no_comment(self):
        said = self.changed("qtensor/qtensor.h", "*/\nQTN_API uint32_t", "*/\n\nQTN_API uint32_t", "QTN_API uint32_t")
        self.assertIn("qlib_version has no comment", said)

    def test_a_status_that_does_not_exist(self):
        self.assertIn("QTN_EWRONG is no status", self.changed("qtensor/qtensor.h", "@retval QTN_EINVAL", "@retval QTN_EWRONG"))

    def test_options_without_a_table(self):
        said = self.changed("qtensor/qtensor.h", '@param attrs engine and threads\n * | key ', '@param attrs engine and threads\n * \\ key ')
        self.assertIn("key | type | default | meaning", said)
        self.assertIn("has no table", self.changed("qtensor/qtensor.h", "@param attrs none in this version", "@param attrs nothing"))

    def test_what_is_not_in_its_form(self):
        said = self.changed("qtensor/qtensor.h", "QTN_EINVAL for another option or value", "")
        self.assertIn("@retval  is not known", said)
        said = self.changed("qtensor/qtensor.h", " * @param isa a name", " * @param isa it\n * @param isa a name")
        self.assertIn("@param isa is not known, comes twice", said)
        self.assertIn("@returns", self.changed("qtensor/qtensor.h", "@return the name of the instruction set", "@returns the name"))
        last = "what qlib_set_threads says at each run\n"
        self.assertIn("no row of four cells", self.changed("qtensor/qtensor.h", last, last + " *   or more\n"))

    def test_an_option_without_a_type(self):
        said = self.changed("qtensor/qtensor.h", '| "nodes"           | int  |', '| "nodes"           |      |')
        self.assertIn('option "nodes" without type', said)

    def test_an_enumerator_without_its_comment(self):
        said = self.changed("qtensor/types.h", "QTN_CANCEL = 2,   /**<", "QTN_CANCEL = 2,   /*", "typedef enum qanswer")
        self.assertIn("qanswer does not document QTN_CANCEL", said)

    def test_what_is_no_declaration(self):
        self.assertIn("is not understood", self.changed("qtensor/types.h", "typedef struct qblob qblob;", "int qblob;", "int qblob;"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
