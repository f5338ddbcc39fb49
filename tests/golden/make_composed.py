#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes composed/NAME.onnx and composed/composed.json: models of operators that the library reads as several others, in the
form of make_control.py. Those of ONNX Runtime are run by it, those of ONNX by its reference evaluator.

Run with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_composed.py
"""
import pathlib
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from golden_json import write
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OUT = pathlib.Path(__file__).with_name("composed")
MICROSOFT, ML, PREVIEW = "com.microsoft", "ai.onnx.ml", "ai.onnx.preview"
FLOAT, INT64, INT32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
MODELS = {}


def noise(name, *shape, scale=1.0):
    rng = np.random.default_rng(sum(name.encode()))
    return (rng.normal(size=shape) * scale).round(3).astype(np.float32)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs.split(",") if inputs else [], outputs.split(","), domain=domain, **attributes)


def model(name, nodes, inputs, constants, outputs, opset=18, told=(), extra=()):
    """`inputs`: name -> values of the first run. `outputs`: names, or (name, type). `told`: shapes of values, as files say
    them. A second run has the negated floats."""
    kinds = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()]
    made = [helper.make_tensor_value_info(*(o if isinstance(o, tuple) else (o, FLOAT)), None) for o in outputs]
    graph = helper.make_graph(nodes, name, kinds, made, [numpy_helper.from_array(v, n) for n, v in constants.items()],
                              value_info=[helper.make_tensor_value_info(n, FLOAT, s) for n, s in told])
    domains = {n.domain for n in nodes} - {""}
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 3 if d == ML else 1) for d in sorted(domains))]
    second = {n: -v if v.dtype == np.float32 else v for n, v in inputs.items()}
    MODELS[name] = (helper.make_model(graph, opset_imports=opsets, ir_version=10), [inputs, second], domains)


def fused_products():
    x, w = noise("x", 1, 2, 5, 5), noise("w", 3, 2, 3, 3)
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    for name, attributes in {"relu": {"activation": "Relu"},
                             "leaky": {"activation": "LeakyRelu", "activation_params": [0.2]},
                             "clip": {"activation": "Clip", "activation_params": [-0.5, 1.5]},
                             "hard_sigmoid": {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
                             "sigmoid": {"activation": "Sigmoid"}}.items():
        model(f"fused_conv_{name}", [node("FusedConv", "x,w,b", "y", MICROSOFT, **conv, **attributes)], {"x": x},
              {"w": w, "b": noise("b", 3)}, ["y"])
    model("fused_conv_sum", [node("FusedConv", "x,w,b,z", "y", MICROSOFT, **conv, activation="Relu")],
          {"x": x, "z": noise("z", 1, 3, 5, 5)}, {"w": w, "b": noise("b", 3)}, ["y"])
    a, b = noise("a", 3, 4), noise("b", 5, 4)
    for name, attributes in {"relu": {"activation": "Relu"}, "leaky": {"activation": "LeakyRelu", "activation_alpha": 0.3},
                             "tanh": {"activation": "Tanh", "alpha": 0.5}}.items():
        model(f"fused_gemm_{name}", [node("FusedGemm", "a,b,c", "y", MICROSOFT, transB=1, **attributes)], {"a": a},
              {"b": b, "c": noise("c", 5)}, ["y"])
    q, k = noise("q", 2, 3, 4), noise("k", 2, 5, 4)
    model("fused_matmul_scaled", [node("FusedMatMul", "q,k", "y", MICROSOFT, transB=1, alpha=0.25)], {"q": q, "k": k}, {}, ["y"])
    model("fused_matmul_constant", [node("FusedMatMul", "q,k", "y", MICROSOFT, transB=1)], {"q": q}, {"k": k[0].copy()}, ["y"])
    model("fused_matmul_unknown_rank", [node("Neg", "q", "p"), node("Neg", "k", "n"),
                                        node("FusedMatMul", "p,n", "y", MICROSOFT, transA=1)],
          {"q": q, "k": noise("k", 2, 3, 2)}, {}, ["y"])


def embeddings():
    tables = {"words": noise("words", 7, 4), "places": noise("places", 6, 4), "kinds": noise("kinds", 2, 4),
              "gamma": noise("gamma", 4), "beta": noise("beta", 4)}
    ids = {"ids": ints([1, 3, 0], [6, 2, 2], dtype=np.int32), "segments": ints([0, 1, 1], [0, 0, 1], dtype=np.int32)}
    model("embed_plain", [node("EmbedLayerNormalization", "ids,segments,words,places,kinds,gamma,beta", "y,m", MICROSOFT)],
          ids, tables, ["y", ("m", INT32)])
    model("embed_all", [node("EmbedLayerNormalization", "ids,segments,words,places,kinds,gamma,beta,mask,at", "y,m,s", MICROSOFT,
                             epsilon=1e-5)],
          {**ids, "mask": ints([1, 1, 0], [1, 0, 0], dtype=np.int32), "at": ints([2, 1, 0], [0, 5, 3], dtype=np.int32)}, tables,
          ["y", ("m", INT32), "s"])
    for name, bits, dtype in (("typed", 4, "int4"), ("bytes_4", 4, "uint8"), ("bytes_8", 8, "uint8")):
        for zeros in (False, True):
            rng = np.random.default_rng(bits)
            rows, width, block = 5, 32, 16
            constants = {"scales": noise("scales", rows, width // block) ** 2 + np.float32(0.1)}
            packed = width // 2 if name == "bytes_4" else width
            names = "data,ids,scales" + (",zeros" if zeros else "")
            attributes = {"gather_axis": 0, "quantize_axis": 1, "block_size": block, "bits": bits}
            made = node("GatherBlockQuantized", names, "y", MICROSOFT, **attributes)
            title = f"gather_blocks_{name}{'_zeros' if zeros else ''}"
            if dtype == "uint8":
                constants["data"] = rng.integers(0, 256, (rows, packed)).astype(np.uint8)
                if zeros:
                    constants["zeros"] = rng.integers(0, 256, (rows, 1 if bits == 4 else 2)).astype(np.uint8)
            else:
                constants["data"] = rng.integers(-8, 8, (rows, width)).astype(onnx.helper.tensor_dtype_to_np_dtype(TensorProto.INT4))
                if zeros:
                    constants["zeros"] = rng.integers(-8, 8, (rows, 2)).astype(onnx.helper.tensor_dtype_to_np_dtype(TensorProto.INT4))
            model(title, [made], {"ids": ints([4, 0], [1, 1])}, constants, ["y"], opset=21)


def attention():
    x, w, b = noise("x", 2, 3, 8), noise("w", 8, 24, scale=0.4), noise("b", 24)
    constants = {"w": w, "b": b}
    heads = {"num_heads": 2}
    model("attention_plain", [node("Attention", "x,w,b", "y", MICROSOFT, **heads)], {"x": x}, constants, ["y"])
    model("attention_mask", [node("Attention", "x,w,b,m", "y", MICROSOFT, **heads)],
          {"x": x, "m": ints([1, 1, 0], [1, 0, 0], dtype=np.int32)}, constants, ["y"])
    model("attention_lengths", [node("Attention", "x,w,b,m", "y", MICROSOFT, **heads)],
          {"x": x, "m": ints(2, 3, dtype=np.int32)}, constants, ["y"])
    model("attention_begins", [node("Attention", "x,w,b,m", "y", MICROSOFT, **heads)],
          {"x": x, "m": ints(3, 3, 1, 0, dtype=np.int32)}, constants, ["y"])
    model("attention_causal_past", [node("Attention", "x,w,b,,p", "y,n", MICROSOFT, unidirectional=1, **heads)],
          {"x": x, "p": noise("p", 2, 2, 2, 2, 4)}, constants, ["y", "n"])
    model("attention_sizes", [node("Attention", "x,w,b", "y", MICROSOFT, qkv_hidden_sizes=[8, 8, 4], scale=0.2, **heads)],
          {"x": x}, {"w": w[:, :20].copy(), "b": b[:20].copy()}, ["y"])
    model("attention_added", [node("Attention", "x,w,b,,,a", "y", MICROSOFT, **heads)],
          {"x": x, "a": noise("a", 2, 2, 3, 3)}, constants, ["y"])
    rng = np.random.default_rng(3)
    quantized = {"w": rng.integers(-128, 128, (8, 24)).astype(np.int8), "b": b, "s": np.float32(0.02), "t": np.float32(0.01),
                 "z": np.uint8(120), "v": np.int8(3)}
    model("attention_of_integers", [node("QAttention", "q,w,b,s,t,,z,v", "y", MICROSOFT, **heads)],
          {"q": rng.integers(0, 256, (2, 3, 8)).astype(np.uint8)}, quantized, ["y"])
    angles = {"c": np.cos(np.arange(16, dtype=np.float32)).reshape(8, 2), "s": np.sin(np.arange(16, dtype=np.float32)).reshape(8, 2)}
    ids = ints([2, 0, 1], [3, 3, 0])
    model("rotary_ids", [node("RotaryEmbedding", "x,i,c,s", "y", MICROSOFT)], {"x": x, "i": ids}, angles, ["y"])
    model("rotary_first", [node("RotaryEmbedding", "x,i,c,s", "y", MICROSOFT, interleaved=1)], {"x": x, "i": ints(2)}, angles, ["y"])
    model("rotary_part", [node("RotaryEmbedding", "x,i,c,s", "y", MICROSOFT, num_heads=1, rotary_embedding_dim=4)],
          {"x": x, "i": ids}, angles, ["y"])
    model("rotary_heads", [node("RotaryEmbedding", "x,i,c,s", "y", MICROSOFT)], {"x": noise("h", 2, 2, 3, 4), "i": ids}, angles, ["y"])


def graph_of(name, nodes, constants=()):
    info = [helper.make_tensor_value_info(n, FLOAT, [1, 4, 2, 3]) for n in ("scores", "changed")]
    return helper.make_graph(nodes, name, info[:1], info[1:], [numpy_helper.from_array(v, n) for n, v in constants])


def flexible_attention():
    q, k, v = noise("q", 1, 4, 2, 4), noise("k", 1, 2, 3, 4), noise("v", 1, 2, 3, 5)
    capped = graph_of("capped", [node("Tanh", "scores", "t"), node("Mul", "t,five", "changed")], [("five", np.float32(5))])
    halved = graph_of("halved", [node("Mul", "scores,scores", "changed")])
    for name, attributes in {"plain": {}, "scaled": {"scale": 0.3}, "scores": {"score_mod": capped},
                             "both": {"score_mod": capped, "prob_mod": halved}}.items():
        model(f"flex_{name}", [node("FlexAttention", "q,k,v", "y", PREVIEW, **attributes)], {"q": q, "k": k, "v": v}, {}, ["y"],
              opset=26)


def sequences():
    x, y = noise("x", 5, 3), noise("y", 2, 3)
    one = {"one": ints(1)[0], "last": ints(-1)[0]}
    model("split_each", [node("SplitToSequence", "x", "s", axis=1, keepdims=0), node("SequenceAt", "s,one", "a"),
                         node("SequenceAt", "s,last", "b"), node("SequenceLength", "s", "n")],
          {"x": x}, one, ["a", "b", ("n", INT64)])
    model("split_each_kept", [node("SplitToSequence", "x", "s"), node("SequenceAt", "s,last", "a"),
                              node("ConcatFromSequence", "s", "b", axis=0)], {"x": x}, one, ["a", "b"])
    model("split_by_number", [node("SplitToSequence", "x,two", "s"), node("SequenceAt", "s,one", "a"), node("SequenceLength", "s", "n"),
                              node("SequenceAt", "s,last2", "b")],
          {"x": x}, {**one, "two": ints(2)[0], "last2": ints(2)[0]}, ["a", ("n", INT64), "b"])
    model("split_by_lengths", [node("SplitToSequence", "x,l", "s"), node("SequenceAt", "s,last", "a"), node("SequenceAt", "s,one", "b")],
          {"x": x}, {**one, "l": ints(1, 2, 2)}, ["a", "b"])
    model("split_at_run_time", [node("SplitToSequence", "x", "s", axis=0), node("SequenceAt", "s,i", "a")], {"x": x, "i": np.array(3)}, {},
          ["a"])
    model("construct_concat", [node("SequenceConstruct", "x,y", "s"), node("ConcatFromSequence", "s", "a", axis=0),
                               node("SequenceAt", "s,last", "b")], {"x": x, "y": y}, one, ["a", "b"])
    model("construct_stack", [node("SequenceConstruct", "x,z", "s"), node("ConcatFromSequence", "s", "a", axis=-1, new_axis=1)],
          {"x": x, "z": noise("z", 5, 3)}, one, ["a"])
    model("insert_erase", [node("SequenceEmpty", "", "e"), node("SequenceInsert", "e,x", "s"), node("SequenceInsert", "s,y", "t"),
                           node("SequenceInsert", "t,y,last", "u"), node("SequenceErase", "u,one", "v"), node("SequenceErase", "u", "w"),
                           node("ConcatFromSequence", "u", "a", axis=0), node("ConcatFromSequence", "v", "b", axis=0),
                           node("ConcatFromSequence", "w", "c", axis=0)], {"x": x, "y": y}, one, ["a", "b", "c"])
    model("optionals", [node("Optional", "x", "o"), node("OptionalHasElement", "o", "h"), node("OptionalGetElement", "o", "g")], {"x": x}, {},
          ["g", ("h", BOOL)])


def learning():
    x = noise("x", 3, 4)
    model("extractor", [node("ArrayFeatureExtractor", "x,c", "y", ML)], {"x": x}, {"c": ints(2, 0, 2)}, ["y"])
    model("extractor_of_list", [node("ArrayFeatureExtractor", "x,c", "y", ML)], {"x": x[0].copy()}, {"c": ints([[2, 0]])[0]}, ["y"])
    model("binarizer", [node("Binarizer", "x", "y", ML, threshold=0.25)], {"x": x}, {}, ["y"])


def outputs_of(name, proto, domains, feeds):
    if PREVIEW in domains or name == "optionals":  # which ONNX Runtime has not
        # An optional is a list of one.
        return [o[0] if isinstance(o, list) else o for o in ReferenceEvaluator(proto).run(None, feeds)]
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def main():
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    OUT.mkdir(exist_ok=True)
    for group in (fused_products, embeddings, attention, flexible_attention, sequences, learning):
        group()
    cases, failures = [], 0
    for name, (proto, runs, domains) in MODELS.items():
        try:
            results = [{"inputs": list(f.values()), "outputs": [np.asarray(o) for o in outputs_of(name, proto, domains, f)]} for f in runs]
        except Exception as error:  # noqa: BLE001 - all that fail are to be seen
            failures += 1
            print(f"{name}: {error}", file=sys.stderr)
            continue
        onnx.save(proto, OUT / f"{name}.onnx")
        cases.append({"name": name, "runs": results})
    write(OUT / "composed.json", {"cases": cases})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
