# SPDX-License-Identifier: Apache-2.0
"""Snippets of docs/python.md run as they stand, one after the other, in a folder that has the examples."""

import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Snippets(unittest.TestCase):
    def test_those_of_the_page_run_and_print_what_they_say(self):
        page = (ROOT / "docs" / "python.md").read_text()
        snippets = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
        self.assertGreater(len(snippets), 3)
        names = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.symlink(ROOT / "examples", "examples")
            for snippet in snippets:
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile(snippet, "docs/python.md", "exec"), names)
                for said in re.findall(r"print\(error\) +# (.+)", snippet):
                    self.assertIn(said, printed.getvalue())
            self.assertTrue(pathlib.Path("digits-int8.onnx").exists())


if __name__ == "__main__":
    unittest.main()
