#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes transformers.safetensors: what ONNX Runtime makes of the networks of examples/transformers, in float and by its quantize_dynamic
(int8 weights per channel).

  letters.logits       float32 [128, 96], of the first test sequence, in float
  letters.bits         float64 [2], bits a character of the test sequences: in float, dynamic
  letters.text         int64 [128], a text that begins with PROMPT and goes on with the most likely character each time, in float
  vit.scores           float32 [540, 10], of the test images, in float
  vit.dynamic_scores   float32 [540, 10]

Run with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_transformers.py
"""
import logging
import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
sys.path.append(str(EXAMPLES / "transformers"))

import make_letters  # noqa: E402

PROMPT = "The library "


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def both(name, folder):
    source, target = EXAMPLES / "transformers" / f"{name}.onnx", pathlib.Path(folder, f"{name}.onnx")
    quantize_dynamic(str(source), str(target), per_channel=True, weight_type=QuantType.QInt8)
    return session(source), session(target)


def run(network, inputs):
    return network.run(None, {network.get_inputs()[0].name: inputs})[0]


def bits(network, tokens):
    logits = np.concatenate([run(network, sequence[None]) for sequence in tokens])[:, :-1].astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    found = np.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0] - np.log(np.exp(logits).sum(-1))
    return -found.mean() / np.log(2)


def most_likely_text(network):
    tokens = make_letters.tokens_of(PROMPT)
    while len(tokens) < make_letters.LENGTH:
        tokens = np.append(tokens, run(network, tokens[None])[0, -1].argmax())
    return tokens


def main():
    logging.disable(logging.WARNING)
    test = np.load(EXAMPLES / "transformers/letters_test.npy")
    images = np.load(EXAMPLES / "digits/test_images.npy")
    with tempfile.TemporaryDirectory() as folder:
        letters, vit = both("letters", folder), both("vit", folder)
        found = {
            "letters.logits": run(letters[0], test[:1])[0],
            "letters.bits": np.array([bits(network, test) for network in letters]),
            "letters.text": most_likely_text(letters[0]),
            "vit.scores": run(vit[0], images),
            "vit.dynamic_scores": np.concatenate([run(vit[1], images[i : i + 1]) for i in range(len(images))]),
        }
    save_file(found, pathlib.Path(__file__).with_name("transformers.safetensors"))
    labels = np.load(EXAMPLES / "digits/test_labels.npy")
    print("bits a character:", found["letters.bits"])
    print("top-1:", [(found[f"vit.{name}"].argmax(1) == labels).mean() for name in ("scores", "dynamic_scores")])
    print(repr("".join(chr(t + 31) if t else "\n" for t in found["letters.text"])))


if __name__ == "__main__":
    main()
