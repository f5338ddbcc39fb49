#!/usr/bin/env python3
"""Makes what fuzzers start from in corpus: a small picture and configuration of each form, and numbers for generators.

Other targets start from what tests/golden has, or from files that they write themselves.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/fuzz/make_seeds.py
"""

import json
import pathlib

import numpy as np
from PIL import Image

CORPUS = pathlib.Path(__file__).parent / "corpus"


def make_pictures():
    rng = np.random.default_rng(1)
    rgb = rng.integers(0, 256, (9, 11, 4), dtype=np.uint8)
    folder = CORPUS / "image"
    folder.mkdir(parents=True, exist_ok=True)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        Image.fromarray(rgb).convert(mode).save(folder / f"{mode}.png")
    Image.fromarray(rng.integers(0, 65536, (5, 6), dtype=np.uint16)).save(folder / "I16.png")
    for mode in ("L", "RGB", "CMYK"):
        picture = Image.fromarray(rgb).convert(mode)
        picture.save(folder / f"{mode}.jpg", quality=60)
        picture.save(folder / f"{mode}-progressive.jpg", quality=60, progressive=True)
    for subsampling in (0, 1, 2):
        Image.fromarray(rgb[..., :3]).save(folder / f"subsampling{subsampling}.jpg", quality=60, subsampling=subsampling,
                                           restart_marker_blocks=1)


def make_configurations():
    folder = CORPUS / "config"
    folder.mkdir(parents=True, exist_ok=True)
    rules = {
        "plain": [],
        "settings": [["*", {"observer": "histogram", "bins": 64, "weight_scheme": "per_tensor_symmetric"}]],
        "few_bits": [["op:Conv", {"weight_bits": 4}], ["op:Gemm", {"weight_bits": 2, "activation_bits": 3}]],
        "names": [["node:node_y", None], ["name:node_c*", {"activation_dtype": "int8"}],
                  ["tensor:p1", {"observer": "fixed", "scale": 0.05, "zero_point": 3}]],
        "blocks": [["op:Gemm", {"weight_scheme": "per_block_symmetric", "block_size": 2}]],
        "outputs": [["*", {"quantize_outputs": True, "pools_keep_grid": True, "replace_relu6": 1, "equalize": 1}]],
        "wide": [["*", {"activation_dtype": "int16", "bias": "float32"}]],
    }
    for name, items in rules.items():
        for recipe in ("onnx", "nvidia") if name == "plain" else ("onnx",):
            config = {"recipe": recipe, "rules": [{"selector": s, "settings": v} for s, v in items]}
            (folder / f"{name}-{recipe}.json").write_text(json.dumps(config))


def make_numbers():
    """What a generator begins with: behind the last byte come numbers that follow from the first eight."""
    counts = {"calibration": 10, "checkpoint": 12, "graph": 30, "layer": 20, "observer": 20, "op": 60, "train": 20, "views": 30,
              "custom": 20, "state": 20}
    rng = np.random.default_rng(2)
    for target, count in counts.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(count):
            kind = bytes([i]) if target in ("calibration", "checkpoint") else b""
            (folder / f"seed{i:02}").write_bytes(kind + rng.bytes(8 if not kind else 64))


if __name__ == "__main__":
    make_numbers()
    make_pictures()
    make_configurations()
