# SPDX-License-Identifier: Apache-2.0
"""`quantize --report`: one page that loads nothing, with every tensor and whatever names a model has."""

import html.parser
import json
import os
import shutil
import subprocess
import unittest

from support import CALIBRATION, MODEL, CommandTest, npy, onnx

SECTIONS = ("totals", "sensitivity", "speed", "tensors", "fused", "float", "reproduce")
HOSTILE = "</script><img src=x onerror=\"document.title='run'\"><!--'&quot;"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


class Page(html.parser.HTMLParser):
    """Sections, everything that a browser would load, and the data of a page."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.loads, self.data, self.open = [], [], "", []
        self.in_data = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "section":
            self.sections.append(attrs["id"])
        for key, value in attrs.items():
            if key in ("src", "srcset", "data", "action", "poster") or (key == "href" and not value.startswith("#")):
                self.loads.append(f"{tag} {key}={value}")
        self.loads += [tag] if tag in ("link", "iframe", "object", "embed", "base", "img") else []
        self.in_data = tag == "script" and attrs.get("id") == "data"
        if tag not in ("meta", "input", "br", "img", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.in_data = False
        assert self.open.pop() == tag, f"</{tag}> out of place"

    def handle_data(self, data):
        if self.in_data:
            self.data += data


def browse(path, home):
    """The text of a page after its script has run."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{path}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": home}).stdout


class ReportTest(CommandTest):
    def report(self, *options, model=MODEL, data=CALIBRATION):
        out, path = self.path("out.onnx"), self.path("report.html")
        self.succeed("quantize", model, "-o", out, "--data", data, "--report", path, *options)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        page = Page(text)
        self.assertEqual(page.open, [])
        return text, page, json.loads(page.data)


class Digits(ReportTest):
    def test_page(self):
        text, page, data = self.report()
        self.assertEqual(tuple(page.sections), SECTIONS)
        self.assertEqual(page.loads, [])
        for reference in ("http://", "https://", "@import", "url(", "fetch("):
            self.assertNotIn(reference, text)
        self.assertIn("default-src 'none'", text)

    def test_data(self):
        _, _, data = self.report()
        nodes = json.loads(self.succeed("inspect", self.path("out.onnx"), "--json"))["nodes"]
        outcome = data["outcome"]
        named = {name for tensor in outcome["tensors"] for name in tensor.get("members", [])}
        grids = {name: tensor["scale"] for tensor in outcome["tensors"] for name in tensor.get("members", [])}
        for node in nodes:
            if "output_scale" in node:
                self.assertIn(node["outputs"][0], named)
                self.assertEqual(grids[node["outputs"][0]], node["output_scale"])
        weights = [tensor for tensor in outcome["tensors"] if "weight_of" in tensor]
        self.assertEqual(len(weights), sum(node["op"] in ("Conv", "Gemm") for node in nodes))
        self.assertTrue(all(sum(tensor["histogram"]["counts"]) > 0 for tensor in outcome["tensors"]))
        self.assertEqual(data["nodes"], {"all": len(nodes), "int8": sum(node["dtype"] == "int8" for node in nodes)})
        self.assertEqual(data["files"]["float"]["bytes"], os.path.getsize(MODEL))
        self.assertEqual(data["files"]["int8"]["bytes"], os.path.getsize(self.path("out.onnx")))
        self.assertEqual({layer["node"] for layer in outcome["layers"]} - {node["name"] for node in nodes}, set())
        self.assertGreater(data["accuracy"]["outputs"][0]["sqnr_db"], 25)
        for kind in ("float", "int8"):
            self.assertGreater(data["speed"][kind]["ms"], 0)
        self.assertIn(f"qtensor compare {MODEL} {self.path('out.onnx')} --data {CALIBRATION}", data["commands"])

    def test_model_is_the_same_without(self):
        self.report()
        self.succeed("quantize", MODEL, "-o", "plain.onnx", "--data", CALIBRATION)
        with open(self.path("out.onnx"), "rb") as a, open(self.path("plain.onnx"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_choices_and_reasons(self):
        # With one value of twenty cut off, any other observer is better.
        settings = {"observer": "percentile", "percentile": 95.0}
        config = self.path("cut.json", json.dumps({"recipe": "onnx", "rules": [{"selector": "*", "settings": settings}]}).encode())
        _, _, data = self.report("--auto", "--target-sqnr", "40", "--config", config)
        chosen = {choice["tensor"]: choice["chosen"] for choice in data["outcome"]["observers"]}
        activations = [tensor for tensor in data["outcome"]["tensors"] if "members" in tensor]
        self.assertGreater(len(activations), 3)
        for tensor in activations:
            self.assertEqual(tensor["observer"], chosen[tensor["name"]])
        reasons = {node["node"]: node["reason"] for node in data["outcome"]["float_nodes"]}
        self.assertTrue(reasons)
        self.assertTrue(data["outcome"]["targets"]["target_sqnr"]["holds"])
        self.assertTrue(data["outcome"]["in_float"])
        for layer in data["outcome"]["in_float"]:
            self.assertEqual(reasons[layer["node"]], "left in float for accuracy")
        self.assertIn("Relu", {node["op"] for node in data["outcome"]["fused"]})

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_in_a_browser(self):
        _, _, data = self.report()
        shown = browse(self.path("report.html"), self.folder)
        for section in SECTIONS:
            body = shown[shown.index(f'<section id="{section}"'):]
            self.assertGreater(body.index("</section>"), 120, section)
        self.assertIn("digits in int8", shown)
        for tensor in data["outcome"]["tensors"][:12]:
            self.assertIn(f'<h3 class="name">{tensor["name"]}</h3>', shown)
        self.assertEqual(shown.count('class="histogram"'), min(12, len(data["outcome"]["tensors"])))

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_search(self):
        text, _, data = self.report()
        word = data["outcome"]["layers"][2]["node"]  # whose weight is the only tensor that names it
        typed = f"const box = at('#tensors input'); box.value = {json.dumps(word.upper())}; box.oninput()"
        typed_in = text.replace("</body>", f"<script>{typed}</script></body>")
        shown = browse(self.path("found.html", typed_in.encode()), self.folder)
        self.assertEqual(shown.count('class="histogram"'), 1)
        self.assertIn(f"<dd class=\"\">{word}</dd>", shown)

    def test_refused(self):
        arguments = ("quantize", MODEL, "-o", "out.onnx", "--data", CALIBRATION)
        self.refuse(*arguments, "--report", "no-such-folder/report.html", says="no-such-folder/report.html")
        self.refuse(*arguments, "--report", "./out.onnx", code=2, says="./out.onnx: is named for two outputs, also as out.onnx")
        self.succeed("calibrate", MODEL, "-o", "all.qcal", "--data", CALIBRATION)
        without = ("quantize", MODEL, "-o", "out.onnx", "--calibration", "all.qcal")
        self.refuse(*without, "--report", "report.html", code=2, says="--report")


class Hostile(ReportTest):
    """Names are data: none ends the script element, becomes markup, or a command of its own."""

    def setUp(self):
        super().setUp()
        nodes = [("Add", [HOSTILE, HOSTILE], ["a" + HOSTILE]), ("Mul", ["a" + HOSTILE, HOSTILE], ["b" + HOSTILE]),
                 ("Softmax", ["b" + HOSTILE], ["c" + HOSTILE])]  # fmt: skip
        shape = ["n", 4]
        self.model = self.path("it's $HOME.onnx", onnx(nodes, {HOSTILE: shape}, {"c" + HOSTILE: shape}))
        self.samples = self.path("x.npy", npy([0.5, -1, 2, 3] * 4, (4, 4)))

    def test_names(self):
        text, page, data = self.report(model=self.model, data=self.samples)
        self.assertEqual(tuple(page.sections), SECTIONS)
        self.assertEqual(page.loads, [])
        self.assertNotIn(HOSTILE, text)
        self.assertIn("'\\''s $HOME.onnx", data["commands"][0])
        self.assertEqual([output["name"] for output in data["accuracy"]["outputs"]], ["c" + HOSTILE])

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_in_a_browser(self):
        self.report(model=self.model, data=self.samples)
        shown = browse(self.path("report.html"), self.folder)
        self.assertIn("it's $HOME in int8", shown)
        self.assertNotIn("<img", shown.replace("\\u003cimg", ""))
        self.assertNotIn("<title>run", shown)


if __name__ == "__main__":
    unittest.main()
