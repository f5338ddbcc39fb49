#!/usr/bin/env python3
"""Writes networks of one node that attends, each with its inputs beside it as .npz, for benchmarks/floats.py.

Names say operator, tokens and form: 12 heads of 64 features; `grouped`: 14 heads share 2 of keys and values; `causal`; `step`: one
token after 512. Run again with:

  $(benchmarks/peers/make-venv)/bin/python benchmarks/models/attention_nodes.py FOLDER
  $(benchmarks/peers/make-venv)/bin/python benchmarks/floats.py --python build/release/python --threads 1 --csv attention.csv FOLDER/*.onnx
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import helper

HEADS, FEATURES, PAST = 12, 64, 512
OPSETS = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]


def write(folder, name, op, inputs, outputs=1, **attributes):
    """`inputs` by name; None: an absent input. Numbers of zero axes and int32 are constants."""
    rng = np.random.default_rng(1)
    arrays = {k: rng.standard_normal(x).astype(np.float32) if isinstance(x, tuple) else x for k, x in inputs.items()}
    node = helper.make_node(
        op, ["" if x is None else k for k, x in arrays.items()], [f"y{o}" for o in range(outputs)],
        domain="" if op == "Attention" else "com.microsoft", **attributes,
    )  # fmt: skip
    fed = {k: x for k, x in arrays.items() if x is not None and x.dtype == np.float32}
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info(k, onnx.TensorProto.FLOAT, x.shape) for k, x in fed.items()],
        [helper.make_empty_tensor_value_info(o) for o in node.output],
        [onnx.numpy_helper.from_array(x, k) for k, x in arrays.items() if x is not None and k not in fed],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=OPSETS, ir_version=10), folder / f"{name}.onnx")
    np.savez(folder / f"{name}.npz", **fed)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for tokens in (128, 512):
        flat = dict.fromkeys("qkv", (1, tokens, HEADS * FEATURES))
        both = {"q_num_heads": HEADS, "kv_num_heads": HEADS}
        hidden = np.zeros((1, 1, tokens, tokens), np.float32)
        hidden[..., -9:] = np.finfo(np.float32).min
        write(folder, f"onnx_{tokens}", "Attention", flat, **both)
        write(folder, f"onnx_{tokens}_mask", "Attention", {**flat, "mask": hidden}, **both)
        write(folder, f"onnx_{tokens}_causal", "Attention", flat, is_causal=1, **both)
        write(folder, f"multi_{tokens}", "MultiHeadAttention", flat, num_heads=HEADS)
        padding = (np.arange(tokens) < tokens - 9).astype(np.int32)[None]
        write(folder, f"multi_{tokens}_padding", "MultiHeadAttention", {**flat, "bias": None, "padding": padding}, num_heads=HEADS)
        write(folder, f"multi_{tokens}_causal", "MultiHeadAttention", flat, num_heads=HEADS, unidirectional=1)
        grouped = {"q": (1, tokens, 14 * FEATURES), **dict.fromkeys("kv", (1, tokens, 2 * FEATURES))}
        write(folder, f"onnx_{tokens}_grouped_causal", "Attention", grouped, q_num_heads=14, kv_num_heads=2, is_causal=1)
        ends = {"pk": None, "pv": None, "ends": np.array([tokens - 1], np.int32), "total": np.array(tokens, np.int32)}
        write(folder, f"grouped_{tokens}", "GroupQueryAttention", {**grouped, **ends}, outputs=3, num_heads=14, kv_num_heads=2)
    one = dict.fromkeys("qkv", (1, 1, HEADS * FEATURES))
    past = dict.fromkeys(("pk", "pv"), (1, HEADS, PAST, FEATURES))
    write(folder, "onnx_step", "Attention", {**one, "mask": None, **past}, outputs=3, q_num_heads=HEADS, kv_num_heads=HEADS)
    write(folder, "multi_step", "MultiHeadAttention", {**one, "b": None, "p": None, "a": None, **past}, outputs=3, num_heads=HEADS)
    one = {"q": (1, 1, 14 * FEATURES), **dict.fromkeys("kv", (1, 1, 2 * FEATURES))}
    past = dict.fromkeys(("pk", "pv"), (1, 2, PAST, FEATURES))
    ends = {"ends": np.array([PAST], np.int32), "total": np.array(PAST + 1, np.int32)}
    write(folder, "grouped_step", "GroupQueryAttention", {**one, **past, **ends}, outputs=3, num_heads=14, kv_num_heads=2)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
