#!/usr/bin/env python3
"""Writes docs/operators.md from the sources of the operators and ONNX's node tests. --check: only say whether it is so."""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/operators.md"
NODE, MODELS = ROOT / "tests/golden/node", ROOT / "tests/golden/models"
TYPES = {
    1: "float32", 11: "float64", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
    12: "uint32", 13: "uint64", 10: "float16", 16: "bfloat16", 17: "float8_e4m3fn", 19: "float8_e5m2", 21: "uint4",
    22: "int4", 18: "float8_e4m3fnuz", 20: "float8_e5m2fnuz", 23: "float4_e2m1", 24: "float8_e8m0",
    25: "uint2", 26: "int2",
}  # fmt: skip
DOMAINS = {"kMicrosoft": "com.microsoft", "kTrainingDomain": "ai.onnx.preview.training", "kOwnDomain": "qtensor"}
HEAD = """# Operators

Made by `tests/golden/operators_page.py` from the sources and from ONNX's node tests; do not edit.

The operators have the semantics of ONNX opset 21, newer ones those of their first opset, and files of opset 1 to 28 are read. An operator of the domain com.microsoft is one of ONNX Runtime's; one of
the domain qtensor is this library's, and files that it writes have its formula in ONNX's own operators.
A program can register [operators of its own](custom-operators.md).
The [glossary](glossary.md) explains the words.

- **Quantized operands**: *exact integers* means integer accumulation and one rounding ([numerics](numerics.md)); *moves* means that integers pass unchanged
  if all operands share a [grid](glossary.md#grid); *table* means that an 8-bit operand is looked up in a table of 256 results. The other operators compute on dequantized values.
- **Gradient**: whether a [trainer](training.md) can train what comes before it.
- **Types** are the types that ONNX's tests cover here, or, where it has none, the golden vectors; similar types are computed alike.
- **Node tests** counts ONNX's own tests: those that pass, of all tests whose element types the library stores. Golden vectors in addition to these
  are in `tests/golden/ops`.

| operator | quantized operands | gradient | types | node tests |
|---|---|---|---|---|
"""


def sources():
    for name in re.findall(r"^QTN_(?:FAST_|VECTOR_)?OP\((\w+)\)", (ROOT / "src/ops/ops.inc").read_text(), re.M):
        [file] = (f for f in (ROOT / "src/ops").glob(f"*/{name.lower()}.cpp") if f.parent.name != "common")
        text = file.read_text()
        definition = text[text.index(f"const OpDef k{name}{{") :]
        yield name, definition[: definition.index("};")]


def composed():
    """Operators that are read as others: (domain, name), in the order of their rules, without those that the library has."""
    texts = [file.read_text() for file in sorted((ROOT / "src/onnx").glob("composed_*.cpp"))]
    domains = {'""': "", "kMl": "ai.onnx.ml", "ops::kMicrosoft": "com.microsoft"}
    rules = re.findall(r'\{(""|kMl|ops::kMicrosoft|"[\w.]+"), "(\w+)", \w+\}', "".join(texts))
    own = {name for name, _ in sources()}
    return [(domains.get(domain, domain.strip('"')), name) for domain, name in rules if domain != '""' or name not in own]


def quantized(definition):
    kinds = [(".run_quantized", "exact integers"), (".moves", "moves"), (".elementwise = true", "table")]
    return ", ".join(kind for member, kind in kinds if member in definition)


def golden_types(name):
    path = ROOT / "tests/golden/ops" / f"{name}.json"
    cases = json.loads(path.read_text())["cases"] if path.exists() else []
    return {t["dtype"] for c in cases for t in [*c["inputs"], *c["outputs"]] if t}


def row(name, definition, failing):
    path = NODE / f"{name}.json"
    cases = json.loads(path.read_text()) if path.exists() else []
    passed = [c for c in cases if c["name"] not in failing]
    types = {TYPES[t["dtype"]] for c in passed for t in [*c["inputs"], *c["outputs"]]} or golden_types(name)
    domain = next((text for symbol, text in DOMAINS.items() if symbol in definition), None)
    shown = f"{name} ({domain})" if domain else name
    counts = f"{len(passed)} of {len(cases)}" if cases else ""
    names = [text for text in TYPES.values() if text in types]
    gradient = "yes" if ".backward" in definition else ""
    cells = shown, quantized(definition), gradient, " ".join(names), counts
    return f"| {' | '.join(cells)} |\n", len(passed), len(cases)


def listed(failing):
    return "".join(f"- `{name}`: {reason}\n" for name, reason in sorted(failing.items()))


def whole_models(failing):
    of_models = json.loads((MODELS / "failing.json").read_text())
    total = sum(len(json.loads(path.read_text())) for path in MODELS.glob("*.json") if path.stem != "failing")
    others = json.loads((ROOT / "tests/conformance/backend_failing.json").read_text())
    text = f"\n## Whole models\n\nONNX also tests small models and networks that PyTorch exported: {total - len(of_models)} of {total} pass. "
    text += "`tests/conformance/backend_tests.py` runs\nall of ONNX's tests that need no download, the larger ones and other operators too. In addition to those above, these do not pass:\n\n"
    return text + listed({name: reason for name, reason in others.items() if name not in failing})


def page():
    failing = json.loads((NODE / "failing.json").read_text())
    left = json.loads((NODE / "out_of_scope.json").read_text())
    rows = [row(name, definition, failing) for name, definition in sources()]
    passed, total = sum(r[1] for r in rows), sum(r[2] for r in rows)
    reasons = {}
    for reason in left.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    text = HEAD + "".join(r[0] for r in rows)
    others = []
    for domain, name in composed():
        counts = row(name, "", failing)[1:] if domain != "com.microsoft" else (0, 0)
        passed, total = passed + counts[0], total + counts[1]
        label = f"{name} ({domain})" if domain else name
        others.append(label + (f": {counts[0]} of {counts[1]} node tests" if counts[1] else ""))
    text += "\nA file may also hold these, which are read as several others (sequences also from iteration to iteration of a Loop and out of an If, as lists in scripts of PyTorch are):\n\n"
    text += "".join(f"- {other}\n" for other in others)
    text += f"\n{len(rows)} operators; {passed} of {total} node tests pass ({100 * passed / total:.1f} %). These do not:\n\n"
    text += listed(failing)
    text += f"\n{len(left)} more tests of these operators are out of scope:\n\n"
    text += "".join(f"- {count}: {reason}\n" for reason, count in sorted(reasons.items(), key=lambda i: (-i[1], i[0])))
    return text + whole_models(failing)


def main():
    wanted = page()
    if "--check" not in sys.argv:
        PAGE.write_text(wanted)
    elif not PAGE.exists() or PAGE.read_text() != wanted:
        sys.exit("docs/operators.md is old; run tests/golden/operators_page.py")


if __name__ == "__main__":
    main()
