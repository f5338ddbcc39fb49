# SPDX-License-Identifier: Apache-2.0
"""The manual page says of each sub-command what its --help says, in words that groff understands."""

import os
import re
import subprocess
import sys
import unittest

from support import COMMAND, CommandTest

TOOLS = os.path.join(os.path.dirname(__file__), "../../tools")


class Manual(CommandTest):
    def test_is_what_help_says(self):
        done = subprocess.run([sys.executable, f"{TOOLS}/make_manual.py", COMMAND, "--check"], capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_shows_every_option(self):
        done = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-cbou", f"{TOOLS}/qtensor.1"], capture_output=True,
                              text=True)
        self.assertEqual(done.stderr, "")
        parts = re.split(r"^   qtensor (\w+) ", done.stdout, flags=re.M)
        pages = dict(zip(parts[1::2], parts[2::2]))
        summary = self.succeed("--help").split("Subcommands:\n")[1]
        self.assertEqual(list(pages), re.findall(r"^  (\w+)", summary, flags=re.M))
        for command, page in pages.items():
            for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", self.succeed(command, "--help"), flags=re.M):
                self.assertRegex(page, rf"(?m)^ +(-\w, )?{option}\b", command)


if __name__ == "__main__":
    unittest.main()
