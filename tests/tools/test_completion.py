# SPDX-License-Identifier: Apache-2.0
"""Completion in bash, asked as bash asks: no option is missing, and the names are those that the library knows."""

import os
import re
import subprocess
import unittest

from support import CALIBRATION, COMMAND, MODEL, CommandTest

SCRIPT = os.path.join(os.path.dirname(__file__), "../../tools/qtensor.bash")
ASK = """
source /usr/share/bash-completion/bash_completion
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_qtensor "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(CommandTest):
    def complete(self, *words):
        """What may stand in place of the last of the words."""
        done = subprocess.run(["bash", "-c", ASK, "bash", SCRIPT, COMMAND, *words], cwd=self.folder, text=True,
                              capture_output=True)
        self.assertEqual(done.stderr, "")
        return sorted(done.stdout.split())

    def test_subcommands(self):
        self.assertEqual(self.complete(""), "bench calibrate compare inspect merge quantize run sensitivity train".split())
        self.assertEqual(self.complete("tr"), ["train"])
        self.assertEqual(self.complete("--"), ["--help", "--version"])

    def test_every_option(self):
        for command in self.complete(""):
            options = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", self.succeed(command, "--help")))
            self.assertEqual(self.complete(command, "--"), sorted(options), command)
        self.assertEqual(self.complete("quantize", "in.onnx", "--data", "x.npy", "--conf"), ["--config"])
        self.assertEqual(self.complete("quantize", "--equalize", "--no"), ["--no-bias-correction", "--no-equalize"])

    def test_values(self):
        self.assertEqual(self.complete("quantize", "--format", ""), ["qdq", "qoperator"])
        self.assertEqual(self.complete("quantize", "--weights-only", ""), ["int4", "int8"])
        self.assertEqual(self.complete("train", "--optimizer", "ad"), ["adam", "adamw"])
        self.assertEqual(self.complete("bench", "--threads", ""), [])

    def names(self, *words):
        """The names that the error about a wrong one lists."""
        return sorted(re.split("are:? ", self.refuse(*words, "nosuch", code=2))[1].split())

    def test_names_of_the_library(self):
        quantize = ("quantize", MODEL, "-o", "out.onnx", "--data", CALIBRATION)
        for words in ((*quantize, "--config"), (*quantize, "--observer"),
                      ("run", MODEL, "-o", "out.npy", "--data", CALIBRATION, "--isa")):
            self.assertEqual(self.complete(*words, ""), self.names(*words))

    def test_files(self):
        for name in "net.onnx data.npy data.safetensors part.qcal page.html rules.json log.jsonl".split():
            self.path(name, b"")
        os.mkdir(self.path("pictures"))
        for words, files in (
            (("quantize", ""), "net.onnx"),
            (("quantize", "net.onnx", "-o", ""), "net.onnx"),
            (("quantize", "net.onnx", "--data", ""), "data.npy data.safetensors"),
            (("quantize", "net.onnx", "--calibration", ""), "part.qcal"),
            (("quantize", "net.onnx", "--config", "r"), "rules.json"),
            (("compare", "net.onnx", ""), "net.onnx"),
            (("merge", "part.qcal", ""), "part.qcal"),
            (("inspect", "d"), "data.npy data.safetensors"),
            (("run", "net.onnx", "--output", ""), "data.npy data.safetensors"),
            (("train", "net.onnx", "--log", ""), "log.jsonl"),
            (("train", "net.onnx", "--checkpoint", ""), "data.safetensors"),
        ):
            folders = [] if words[-1] else ["pictures"]
            self.assertEqual(self.complete(*words), sorted(files.split() + folders), words)


if __name__ == "__main__":
    unittest.main()
