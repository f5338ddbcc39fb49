#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes composed/NAME.onnx and composed/composed.json: models of operators that the library reads as several others, in the
form of make_control.py. Those of ONNX Runtime are run by it, those of ONNX by its reference evaluator. Forms of old opsets, which
neither has, are computed by NumPy from what ONNX's text of them says, and so is QLinearMatMul, of which ONNX Runtime has some forms only.

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
MODELS, BY_NUMPY = {}, {}


def noise(name, *shape, scale=1.0):
    rng = np.random.default_rng(sum(name.encode()))
    return (rng.normal(size=shape) * scale).round(3).astype(np.float32)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs.split(",") if inputs else [], outputs.split(","), domain=domain, **attributes)


def sparse(name, values, in_rows):
    """The elements that are not zero, with their numbers or with rows of their coordinates."""
    flat = np.flatnonzero(values).astype(np.int64)
    places = np.argwhere(values).astype(np.int64) if in_rows else flat
    return helper.make_sparse_tensor(numpy_helper.from_array(values.ravel()[flat], name),
                                     numpy_helper.from_array(places, name + "_places"), values.shape)  # fmt: skip


def model(name, nodes, inputs, constants, outputs, opset=18, told=(), by=None, sparse=()):
    """`inputs`: name -> values of the first run. `outputs`: names, or (name, type). `told`: shapes of values, as files say
    them. `by`: a function of inputs and constants that gives the outputs. `sparse`: constants of that form. A second run has
    the negated floats."""
    kinds = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()]
    made = [helper.make_tensor_value_info(*(o if isinstance(o, tuple) else (o, FLOAT)), None) for o in outputs]
    graph = helper.make_graph(nodes, name, kinds, made, [numpy_helper.from_array(v, n) for n, v in constants.items()],
                              value_info=[helper.make_tensor_value_info(n, FLOAT, s) for n, s in told],
                              sparse_initializer=sparse)  # fmt: skip
    domains = {n.domain for n in nodes} - {""}
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 3 if d == ML else 1) for d in sorted(domains))]
    second = {n: np.negative(v, out=v.copy()) if v.dtype == np.float32 else v for n, v in inputs.items()}
    MODELS[name] = (helper.make_model(graph, opset_imports=opsets, ir_version=10), [inputs, second], domains)
    if by:
        BY_NUMPY[name] = lambda feeds: by(**feeds, **constants)


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
    # Places in front of batches and heads, where Transposes of attention became part of products.
    q, k = noise("q", 5, 2, 3, 4), noise("k", 6, 2, 3, 4)
    batches = {"transBatchA": 1, "transBatchB": 1, "transB": 1}
    model("fused_matmul_batches", [node("FusedMatMul", "q,k", "y", MICROSOFT, **batches)], {"q": q, "k": k}, {}, ["y"])
    model("fused_matmul_batches_constant", [node("FusedMatMul", "q,k", "y", MICROSOFT, **batches)], {"q": q}, {"k": k}, ["y"])
    model("fused_matmul_batches_unknown_rank", [node("Neg", "q", "p"), node("Neg", "k", "n"),
                                                node("FusedMatMul", "p,n", "y", MICROSOFT, **batches)],
          {"q": q, "k": k}, {}, ["y"])


def codes_of_bitsandbytes():
    """FP4 and NF4, whose blocks run on through rows; an odd number of codes leaves half a byte. ONNX Runtime reads memory that
    nothing has written where B is not transposed."""
    rng = np.random.default_rng(17)
    for name, kind, n, k in (("fp4", 0, 5, 24), ("nf4", 1, 5, 24), ("nf4_odd", 1, 3, 15)):
        constants = {"b": rng.integers(0, 256, (n * k + 1) // 2).astype(np.uint8), "largest": noise(name, (n * k + 15) // 16)}
        made = node("MatMulBnb4", "x,b,largest", "y", MICROSOFT, N=n, K=k, block_size=16, quant_type=kind)
        model(f"bnb4_{name}", [made], {"x": noise("x", 2, 3, k)}, constants, ["y"])

    def by_rows(x, b, largest):
        parts = np.float32([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4])
        codes = np.stack([b >> 4, b & 15], -1).ravel()
        numbers = np.where(codes < 8, 1, -1) * parts[codes % 8] * largest.repeat(16)
        return [(x @ numbers.reshape(6, 16)).astype(np.float32)]

    constants = {"b": rng.integers(0, 256, 48).astype(np.uint8), "largest": noise("rows", 6)}
    made = node("MatMulBnb4", "x,b,largest", "y", MICROSOFT, N=6, K=16, block_size=16, quant_type=0, transB=0)
    model("bnb4_by_rows", [made], {"x": noise("x", 2, 3, 6)}, constants, ["y"], by=by_rows)


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
    # A file need not say the shapes of what it computes. There are fewer rows of angles than heads at all places.
    hidden = [node("Neg", "x", "a"), node("Abs", "i", "j"), node("Neg", "c", "d")]
    turned = {"x": noise("w", 2, 3, 16), "heads": noise("h", 2, 2, 3, 4)}
    for name, of in turned.items():
        for places, positions in (("ids", ids), ("first", ints(2))):
            model(f"rotary_{name}_of_unknown_rank_{places}", [*hidden, node("RotaryEmbedding", "a,j,d,s", "y", MICROSOFT)],
                  {"x": of, "i": positions}, angles, ["y"])
    for name, of in turned.items():
        model(f"rotary_{name}_of_unknown_rank_part", [*hidden, node("RotaryEmbedding", "a,j,d,s", "y", MICROSOFT, num_heads=2, rotary_embedding_dim=4)],
              {"x": np.concatenate([of, of], -1), "i": ids}, angles, ["y"])


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


def old_opsets():
    x = noise("x", 2, 3, 4, 5)
    unknown = node("Neg", "x", "p"), node("Neg", "p", "q")  # of no rank that the file says
    for name, op, of, axis, shape in [("add", "Add", np.add, 1, (3,)), ("sub", "Sub", np.subtract, 0, (2, 3)), ("mul", "Mul", np.multiply, 2, (4, 1)),
                                      ("div", "Div", np.divide, -2, (4, 5)), ("add_number", "Add", np.add, 0, ())]:  # fmt: skip
        by = lambda x, b, of=of, axis=axis: [of(x, b.reshape(b.shape + (1,) * (4 - axis % 4 - b.ndim)))]
        model(f"old_{name}", [node(op, "x,b", "y", axis=axis, broadcast=1)], {"x": x}, {"b": noise(op, *shape) + np.float32(3)}, ["y"], opset=6, by=by)
    by = lambda x, b: [np.power(np.abs(x), b.reshape(3, 1, 1)), x > b.reshape(3, 1, 1), x < b.reshape(3, 1, 1)]
    model("old_unknown_rank", [*unknown, node("Abs", "q", "a"), node("Pow", "a,b", "y", axis=1, broadcast=1),
                               node("Greater", "q,b", "g", axis=1, broadcast=1), node("Less", "q,b", "l", axis=-3, broadcast=1)],
          {"x": x}, {"b": noise("b", 3)}, ["y", ("g", BOOL), ("l", BOOL)], opset=6, by=by)
    by = lambda x, b: [np.logical_xor(np.logical_or(x > 0, b.reshape(3, 1, 1)), np.logical_and(x > 0, b.reshape(3, 1, 1)))]
    model("old_logic", [node("Greater", "x,zero", "g", broadcast=1), node("Or", "g,b", "o", axis=1, broadcast=1),
                        node("And", "g,b", "a", axis=1, broadcast=1), node("Xor", "o,a", "y")], {"x": x},
          {"b": np.array([True, False, True]), "zero": np.float32(0)}, [("y", BOOL)], opset=6,
          by=lambda b, zero, x: by(x, b))  # fmt: skip
    model("old_prelu", [node("PRelu", "x,s", "y"), *unknown, node("PRelu", "q,s", "z"), node("PRelu", "q,o", "w")], {"x": x},
          {"s": noise("s", 3), "o": noise("o", 1)}, ["y", "z", "w"], opset=6,
          by=lambda x, s, o: [np.where(x < 0, x * s.reshape(3, 1, 1), x)] * 2 + [np.where(x < 0, x * o, x)])
    model("old_gemm", [node("Gemm", "a,b,c", "y", broadcast=1, transB=1)], {"a": noise("a", 4, 3)},
          {"b": noise("b", 5, 3), "c": noise("c", 5)}, ["y"], opset=6, by=lambda a, b, c: [a @ b.T + c])
    model("old_tile", [*unknown, node("Tile", "q,n,axis", "y")], {"x": x}, {"n": ints(3)[0], "axis": ints(2)[0]}, ["y"], opset=1,
          by=lambda x, n, axis: [np.concatenate([x] * n, axis)])
    model("old_reshape", [node("Reshape", "x", "r", shape=[0, -1]), node("Concat", "r,r", "y")], {"x": x}, {}, ["y"], opset=3,
          by=lambda x: [np.concatenate([x.reshape(2, -1)] * 2, 1)])
    model("old_pad", [node("Pad", "x", "p", paddings=[0, 0, 1, 2, 0, 0, 3, 0], value=1.5), node("Cast", "p", "y", to="DOUBLE")],
          {"x": x}, {}, [("y", TensorProto.DOUBLE)], opset=1,
          by=lambda x: [np.pad(x, ((0, 0), (0, 0), (1, 3), (2, 0)), constant_values=1.5).astype(np.float64)])
    model("old_upsample", [node("Upsample", "x", "y", height_scale=2.0, width_scale=3.0)], {"x": x}, {}, ["y"], opset=1,
          by=lambda x: [x.repeat(2, 2).repeat(3, 3)])
    model("old_pools", [node("LpPool", "x", "y", kernel_shape=[2, 2], p=1.0), node("GlobalLpPool", "x", "z", p=2.0)], {"x": x}, {},
          ["y", "z"], opset=1, by=lambda x: [sum(np.abs(x[:, :, i : 3 + i, j : 4 + j]) for i in (0, 1) for j in (0, 1)),
                                             np.sqrt((x * x).sum((2, 3), keepdims=True))])
    gamma, alpha = np.float64(1.0507), np.float64(1.6732)
    model("old_activations", [node("Selu", "x", "y", consumed_inputs=[0]), node("Relu", "x", "r", consumed_inputs=[0]),
                              node("Dropout", "r", "z", is_test=1, consumed_inputs=[0])], {"x": x * 2}, {}, ["y", "z"], opset=1,
          by=lambda x: [(gamma * np.where(x > 0, x, alpha * np.expm1(x))).astype(np.float32), np.maximum(x, 0)])
    split = {"l": ints(1, 2)}
    model("old_split", [node("Split", "x,l", "a,b", axis=1)], {"x": x}, split, ["a", "b"], opset=1, by=lambda x, l: [x[:, :1], x[:, 1:]])
    places = {n: noise(n, 3, 4, 5) for n in ("scale", "shift", "mean")} | {"var": np.abs(noise("var", 3, 4, 5)) + 0.5}
    for opset, attributes in {8: {}, 6: {"is_test": 1}}.items():
        model(f"old_batch_of_places_{opset}", [node("BatchNormalization", "x,scale,shift,mean,var", "y", spatial=0, epsilon=1e-3, **attributes)],
              {"x": x}, places, ["y"], opset=opset,
              by=lambda x, scale, shift, mean, var: [(x - mean) / np.sqrt(var + 1e-3) * scale + shift])
    kinds = [helper.make_tensor_value_info(n, FLOAT, (2,)) for n in ("s", "v", "t", "o")]
    body = helper.make_graph([node("Add", "s,v", "t"), node("Mul", "t,factor", "o")], "body", kinds[:2], kinds[2:])
    first, steps = noise("first", 3, 2), noise("steps", 3, 4, 2)
    for name, directions in {"forward": [0], "backward": [1]}.items():
        def sums(first, steps, factor, back=directions[0]):
            all_sums = first[:, None] + np.cumsum(steps[:, ::-1] if back else steps, 1)
            return [all_sums[:, -1], all_sums * factor]
        model(f"old_scan_{name}", [node("Scan", ",first,steps", "y,z", num_scan_inputs=1, directions=directions, body=body)],
              {"first": first, "steps": steps}, {"factor": np.float32(2)}, ["y", "z"], opset=8, by=sums)


def experimental():
    x = noise("x", 2, 3, 6, 7)
    for name, op, attributes in [("affine", "Affine", {"alpha": 1.5, "beta": -0.25}), ("scaled_tanh", "ScaledTanh", {"alpha": 1.2, "beta": 0.7}),
                                 ("parametric_softplus", "ParametricSoftplus", {"alpha": 1.2, "beta": 0.7}),
                                 ("image_scaler", "ImageScaler", {"scale": 0.5, "bias": [0.1, -0.2, 0.3]}),
                                 ("crop_borders", "Crop", {"border": [1, 2, 0, 1]}), ("crop_size", "Crop", {"border": [1, 2, 0, 1], "scale": [3, 4]})]:
        model(f"experimental_{name}", [node(op, "x", "y", **attributes)], {"x": x}, {}, ["y"], opset=8)


def run_time_sequences():
    x, y, z = (noise(n, 4, 3) for n in "xyz")
    made = node("SequenceConstruct", "x,y,z", "s")
    for i, (at, to) in enumerate([(0, 0), (2, -1), (-3, 3), (-1, -3)]):
        model(f"positions_at_run_time_{i}", [made, node("SequenceErase", "s,i", "t"), node("SequenceInsert", "s,x,j", "u"),
                                             node("SequenceAt", "s,i", "a"), node("ConcatFromSequence", "t", "b", axis=0, new_axis=1),
                                             node("ConcatFromSequence", "u", "c", axis=0, new_axis=1), node("SequenceLength", "u", "n"),
                                             node("SequenceAt", "t,last", "d")],
              {"x": x, "y": y, "z": z, "i": np.array(at), "j": np.array(to)}, {"last": ints(-1)[0]}, ["a", "b", "c", ("n", INT64), "d"])
    model("lengths_at_run_time", [node("SplitToSequence", "x,l", "s", axis=0), node("SequenceLength", "s", "n"), node("SequenceAt", "s,i", "a")],
          {"x": x, "l": ints(1, 2, 1), "i": np.array(-2)}, {}, [("n", INT64), "a"])
    for name, length, at in (("some", 3, 1), ("largest", 2**63 - 1, 0)):
        model(f"lengths_of_{name}_at_run_time", [node("SplitToSequence", "x,l", "s", axis=0), node("SequenceLength", "s", "n"),
                                                 node("SequenceAt", "s,i", "a")],
              {"x": x, "l": np.array(length), "i": np.array(at)}, {}, [("n", INT64), "a"])


def grown_sequences():
    """Of which a loop puts items at the end: one of them, or two, beside a state and an output of every iteration."""
    x = noise("x", 6, 3, 4)
    tensor, sequence = helper.make_tensor_value_info, helper.make_tensor_sequence_value_info
    steps = [node("Gather", "x,i", "item"), node("Neg", "item", "other"), node("Add", "sum,item", "sum_out"),
             node("SequenceInsert", "s,item", "s_out"), node("Identity", "c", "c_out"), node("Abs", "item", "each")]
    kinds = [tensor("i", INT64, []), tensor("c", BOOL, []), sequence("s", FLOAT, None), tensor("sum", FLOAT, [3, 4])]
    made = [tensor("c_out", BOOL, []), sequence("s_out", FLOAT, None), tensor("sum_out", FLOAT, [3, 4]), tensor("each", FLOAT, [3, 4])]
    second = [node("SequenceInsert", "t,other", "t_out")], sequence("t", FLOAT, None), sequence("t_out", FLOAT, None)
    one = helper.make_graph(steps, "one", kinds, made)
    two = helper.make_graph(steps + second[0], "two", [*kinds[:3], second[1], kinds[3]], [*made[:2], second[2], *made[2:]])
    given = {"n": ints(4)[0], "yes": np.array(True), "zeros": np.zeros((3, 4), np.float32), "last": ints(-1)[0]}
    ends = ["y", "total", "all"]
    empty = node("SequenceEmpty", "", "e")
    for axis, new_axis in ((0, 1), (1, 1), (2, 1), (-1, 1), (-3, 1), (0, 0), (1, 0), (-1, 0), (-2, 0)):
        loop = node("Loop", "n,yes,e,zeros", "grown,total,all", body=one)
        model(f"grown_{axis}_{new_axis}", [empty, loop, node("ConcatFromSequence", "grown", "y", axis=axis, new_axis=new_axis)],
              {"x": x}, given, ends)
    for axis, new_axis in ((1, 1), (0, 0), (-2, 0)):  # not to be counted when the file is read
        loop = node("Loop", "n,yes,e,zeros", "grown,total,all", body=one)
        model(f"grown_at_run_time_{axis}_{new_axis}", [empty, loop, node("ConcatFromSequence", "grown", "y", axis=axis, new_axis=new_axis)],
              {"x": x, "n": np.array(4)}, {k: v for k, v in given.items() if k != "n"}, ends)
    loop = node("Loop", "n,yes,e,e,zeros", "grown,grown2,total,all", body=two)
    model("grown_two", [empty, loop, node("ConcatFromSequence", "grown", "y", axis=1), node("SequenceLength", "grown2", "count"),
                        node("SequenceAt", "grown2,last", "end")], {"x": x}, given, [*ends, ("count", INT64), "end"])


def carried_sequences():
    """Lists as scripts of PyTorch have them in loops: read at their end, grown by a condition, of parts of several lengths; with as many
    iterations as the file says, and as a run says."""
    x, one = noise("x", 2, 6, 3), ints(1)
    tensor, sequence = helper.make_tensor_value_info, helper.make_tensor_sequence_value_info
    def loop(steps, constants=(), kind=INT64, count=()):
        return helper.make_graph([node("Identity", "yes", "on"), *steps], "body", [tensor("i", kind, count), tensor("c", BOOL, []), sequence("s", FLOAT, None)],
                                 [tensor("on", BOOL, []), sequence("t", FLOAT, None)], [numpy_helper.from_array(v, k) for k, v in constants])
    def forms(name, before, body, after, constants, outputs, count=4, by_count=True):
        for counted in (True, False) if by_count else (False,):
            known = dict({"yes": np.array(True), "half": np.float32(0.5), "zero": ints(0)[0], "one": one, "last": ints(-1)[0], "first": ints(0)[0]}, **constants)
            feeds = {"x": x}
            (known if counted else feeds)["n"] = np.array(count)
            model(f"{name}_{'counted' if counted else 'at_run_time'}", [*before, node("Loop", "n,yes,b", "r", body=body), *after], feeds, known, outputs)
    item = [node("Gather", "x,i", "item", axis=1)]
    start = [node("Gather", "x,zero", "x0", axis=1), node("SequenceConstruct", "x0", "b")]
    empty = [node("SequenceEmpty", "", "b")]
    stack, length = node("ConcatFromSequence", "r", "y", axis=1, new_axis=1), node("SequenceLength", "r", "m")
    grow = [*item, node("SequenceAt", "s,last", "end"), node("Mul", "end,half", "less"), node("Add", "item,less", "new"), node("SequenceInsert", "s,new", "t")]
    forms("list_read_at_its_end", start, loop(grow), [stack, length, node("SequenceAt", "r,last", "z")], {}, ["y", ("m", INT64), "z"])
    stops = loop([*item, node("SequenceInsert", "s,item", "t")])
    stops.node[0].CopyFrom(node("Less", "i,two", "on"))
    forms("list_that_stops", empty, stops, [stack, length], {"two": ints(2)[0]}, ["y", ("m", INT64)])
    forms("list_of_many", empty, loop([node("Mod", "i,six", "j"), node("Gather", "x,j", "item", axis=1), node("SequenceInsert", "s,item", "t")]), [stack, length],
          {"six": ints(6)[0]}, ["y", ("m", INT64)], 300)
    cut = [node("Unsqueeze", "i,at0", "from"), node("Add", "from,from", "twice"), node("Add", "twice,one", "to"),
           node("Slice", "x,from,to,one", "item"), node("SequenceInsert", "s,item", "t")]
    at0 = [("at0", ints(0))]
    rest = [node("SequenceInsert", "r,x", "u"), node("ConcatFromSequence", "u", "y", axis=1), node("SequenceAt", "u,one0", "z"),
            node("ConcatFromSequence", "r", "w", axis=-2), node("SequenceErase", "u,first", "v"), node("SequenceAt", "v,first", "q")]
    forms("list_of_lengths", empty, loop(cut, at0), rest, {"one0": ints(1)[0]}, ["y", "z", "w", "q"], 3)
    number = [node("Gather", "x,i", "item", axis=1), node("SequenceInsert", "s,item", "t")]
    forms("list_by_lists_of_one", empty, loop([node("Squeeze", "i", "i0"), node("Gather", "x,i0", "item", axis=1), number[1]], count=[1]), [node("SequenceAt", "r,last", "z"), stack], {}, ["z", "y"])
    def branch(name, steps):
        return helper.make_graph(steps, name, [], [sequence(name, FLOAT, None)])
    decide = [*item, node("ReduceSum", "item", "sum", keepdims=0), node("Greater", "sum,none", "is_more"),
              node("If", "is_more", "t", then_branch=branch("longer", [node("SequenceInsert", "s,item", "longer")]),
                   else_branch=branch("same", [node("Identity", "s", "same")]))]
    more = [node("Gather", "x,zero", "x0", axis=1), node("SequenceInsert", "r,x0", "u"), node("ConcatFromSequence", "u", "y", axis=1, new_axis=1),
            node("ConcatFromSequence", "u", "z", axis=-1), node("SequenceLength", "u", "m"), node("SequenceInsert", "u,x0,first", "f"),
            node("SequenceInsert", "f,x0,last", "g"), node("SequenceErase", "g,one", "h"), node("ConcatFromSequence", "h", "w", axis=0)]
    forms("list_by_a_condition", empty, loop(decide), more, {"none": np.float32(0)}, ["y", "z", ("m", INT64), "w"], 6)
    numbers = [*item, node("ReduceSum", "item", "sum", keepdims=0), node("Greater", "sum,none", "is_more"),
               node("If", "is_more", "t", then_branch=branch("longer", [node("SequenceInsert", "s,sum", "longer")]),
                    else_branch=branch("same", [node("SequenceInsert", "s,half", "same")]))]
    forms("list_of_numbers", empty, loop(numbers), [node("ConcatFromSequence", "r", "y", axis=0, new_axis=1)], {"none": np.float32(0)}, ["y"], 6)
    pieces = [node("SequenceConstruct", "x,x3", "b")]
    walk = [node("SequenceAt", "b,i", "item"), node("SequenceInsert", "s,item", "t")]
    read = helper.make_graph([node("Identity", "yes", "on"), node("SequenceAt", "b,i", "item"), node("ReduceSum", "item,axes", "part", keepdims=0), node("Add", "sum,part", "sum_out")],
                             "body", [tensor("i", INT64, []), tensor("c", BOOL, []), tensor("sum", FLOAT, [2, 3])], [tensor("on", BOOL, []), tensor("sum_out", FLOAT, [2, 3])])
    model("list_read_in_a_loop", [node("Slice", "x,first,three,one", "x3"), *pieces, node("Loop", "n,yes,zeros", "y", body=read)],
          {"x": x, "n": np.array(2)}, {"yes": np.array(True), "zeros": np.zeros((2, 3), np.float32), "axes": one, "first": ints(0), "three": ints(3), "one": one}, ["y"])


def joined_sequences():
    """Of which a run says how many items there are: along every axis, with items of no elements among them, and with none else."""
    def branch(name, items):
        return helper.make_graph([node("SequenceConstruct", items, name)], name, [], [helper.make_tensor_sequence_value_info(name, FLOAT, None)])
    def join(name, axis, shapes):
        items = {n: noise(n, *shape) for n, shape in zip("xyz", shapes)}
        model(f"joined_{name}", [node("If", "which", "s", then_branch=branch("all", ",".join(items)), else_branch=branch("one", "x")),
                                 node("ConcatFromSequence", "s", "y0", axis=axis)], {**items, "which": np.array(True)}, {}, ["y0"])
    for axis in range(-3, 3):
        shapes = [[2, 3, 2] for _ in range(3)]
        shapes[1][axis], shapes[2][axis] = 0, 4
        join(axis, axis, shapes)
    join("of_nothing", 1, [(2, 0), (2, 0), (2, 0)])
    join("beside_nothing", 0, [(0, 4), (2, 3), (1, 3)])


def computed_lengths():
    """SplitToSequence by lengths that follow from a shape, as PyTorch writes tensor_split and split."""
    x = noise("x", 2, 9, 6)
    ends = [node("SequenceAt", "s,first", "a"), node("SequenceAt", "s,last", "b"), node("SequenceLength", "s", "m")]
    known = {"one": ints(1), "first": ints(0)[0], "last": ints(-1)[0], "four": ints(4), "four0": ints(4)[0]}
    sections = [node("Shape", "x", "d"), node("Gather", "d,one", "dim"), node("Div", "dim,four", "q"), node("Add", "q,one", "q1"), node("Mod", "dim,four", "r"),
                node("Tile", "q1,r", "long"), node("Sub", "four,r", "others"), node("Tile", "q,others", "short"), node("Concat", "long,short", "l", axis=0)]
    model("split_by_sections", [*sections, node("SplitToSequence", "x,l", "s", axis=1), *ends], {"x": x}, known, ["a", "b", ("m", INT64)])
    length = [node("Shape", "x", "d"), node("Gather", "d,one0", "dim"), node("Div", "dim,four0", "l")]
    model("split_by_a_length", [*length, node("SplitToSequence", "x,l", "s", axis=1), *ends], {"x": x}, dict(known, one0=ints(1)[0]), ["a", "b", ("m", INT64)])


def products_of_integers():
    """QLinearMatMul: where scales and zero points of columns lie, and how many there are of each."""
    x = noise("rows", 2, 5, 4)

    def by(x, x_scale, x_zero, b, b_scale, b_zero, y_scale, y_zero):
        a = np.clip(np.rint(x / x_scale) + np.float64(x_zero), 0, 255) - x_zero
        real = (a * x_scale) @ ((b - np.float64(b_zero)) * b_scale)
        return [((np.clip(np.rint(real / y_scale) + y_zero, 0, 255) - y_zero) * y_scale).astype(np.float32)]

    of_columns, zeros = noise("column scales", 4, scale=0.01) ** 2 + np.float32(0.01), ints(3, -2, 0, 5, dtype=np.int8)
    for name, (shape, b_scale, b_zero) in {
        "batches": ((2, 4, 4), of_columns, zeros),
        "one_scale": ((4, 4), of_columns[:1].reshape(()), zeros),
        "one_zero_point": ((4, 4), of_columns, zeros[0]),
        "many_axes": ((2, 4, 4), of_columns.reshape(1, 1, 4), zeros.reshape(1, 1, 4)),
    }.items():
        b = (noise("integers", *shape) * 50).clip(-128, 127).astype(np.int8)
        grids = {"x_scale": np.float32(0.02), "x_zero": np.uint8(120), "y_scale": np.float32(0.125), "y_zero": np.uint8(100)}
        nodes = [node("QuantizeLinear", "x,x_scale,x_zero", "a"),
                 node("QLinearMatMul", "a,x_scale,x_zero,b,b_scale,b_zero,y_scale,y_zero", "c"),
                 node("DequantizeLinear", "c,y_scale,y_zero", "y")]
        constants = grids | {"b": b, "b_scale": b_scale, "b_zero": np.asarray(b_zero)}
        model(f"qlinearmatmul_{name}", nodes, {"x": x}, {k: np.asarray(v) for k, v in constants.items()}, ["y"], opset=21, by=by)


def optimized():
    """What ONNX Runtime's optimizer and quantizer leave in a file."""
    x = noise("pixels", 1, 6, 5, 4)
    for name, op, more, attributes in (("gelu", "Gelu", {}, {}), ("trilu", "Trilu", {"k": np.int64(1)}, {"upper": 0}),
                                       ("gather_nd", "GatherND", {"i": ints(0, 5, 0, 2).reshape(2, 2)}, {}),
                                       ("grid_sample", "GridSample", {"g": noise("grid", 1, 3, 3, 2, scale=0.5)}, {"mode": "bilinear"})):
        nodes = [node(op, ",".join(["x", *more]), "y", MICROSOFT, **attributes)]
        model(f"microsoft_{name}", nodes, {"x": x}, {k: np.asarray(v) for k, v in more.items()}, ["y"])
    model("microsoft_range", [node("Range", "a,b,c", "r", MICROSOFT), node("Mul", "x,r", "y")], {"x": noise("x", 4)},
          {"a": np.float32(1), "b": np.float32(9), "c": np.float32(2)}, ["y"])

    grid = {"s": np.float32(0.02), "z": np.uint8(120), "s2": np.float32(0.05), "z2": np.uint8(110)}
    conv = {"w": (noise("w", 3, 4, 3, 3) * 40).astype(np.int8), "ws": np.abs(noise("scales", 3, scale=0.01)) + np.float32(0.01),
            "wz": ints(0, 0, 0, dtype=np.int8), "bias": ints(40, -300, 7, dtype=np.int32)}
    window = {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1]}
    for name, op, inputs, more, attributes in (
        ("conv", "QLinearConv", "q,s,z,w,ws,wz,s2,z2,bias", conv, {"channels_last": 1, "strides": [2, 1], **window}),
        ("max_pool", "NhwcMaxPool", "q", {"s2": grid["s"], "z2": grid["z"]}, window),
        ("average_pool", "QLinearAveragePool", "q,s,z,s2,z2", {}, {"channels_last": 1, **window}),
        ("global_average_pool", "QLinearGlobalAveragePool", "q,s,z,s2,z2", {}, {"channels_last": 1}),
        ("where", "QLinearWhere", "which,q,s,z,other,s,z,s2,z2",
         {"which": noise("which", 6, 5, 1) > 0, "other": ints(3, 90, 200, 255, dtype=np.uint8)}, {}),
    ):
        nodes = [node("QuantizeLinear", "x,s,z", "q"), node(op, inputs, "r", MICROSOFT, **attributes),
                 node("DequantizeLinear", "r,s2,z2", "y")]
        model(f"microsoft_integers_{name}", nodes, {"x": x}, grid | more, ["y"])

    tables = {"words": (9, 8), "places": (6, 8), "segments": (2, 8), "gamma": (8,), "beta": (8,)}
    integers = {k: (np.abs(noise(k, *shape)) * 60).clip(0, 255).astype(np.uint8) for k, shape in tables.items()}
    scales = {f"{k}_s": np.float32(0.02 + 0.01 * i) for i, k in enumerate(tables)}
    zeros = {f"{k}_z": np.uint8(50 + i) for i, k in enumerate(tables)}
    inputs = ",".join(["ids", "types", *tables, "mask", *scales, *zeros])
    model("embed_layer_normalization_of_integers", [node("QEmbedLayerNormalization", inputs, "y,lengths", MICROSOFT, epsilon=1e-5)],
          {"ids": ints(0, 3, 8, 1, 1, 2, dtype=np.int32).reshape(2, 3), "types": ints(0, 1, 1, 0, 0, 1, dtype=np.int32).reshape(2, 3),
           "mask": ints(1, 1, 0, 1, 1, 1, dtype=np.int32).reshape(2, 3)}, integers | scales | zeros, ["y", ("lengths", INT32)])

    # ONNX Runtime has it for float16 only.
    w, z = noise("kernel", 3, 4, 2, 2), noise("sum", 1, 5, 5, 3)

    def by(x, w, b, z):
        rows = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 0)))
        patches = np.lib.stride_tricks.sliding_window_view(rows, (2, 2), axis=(1, 2))
        return [np.maximum(np.einsum("nhwcij,ocij->nhwo", patches, w) + b + z, 0).astype(np.float32)]

    model("fused_conv_of_channels_last", [node("NhwcFusedConv", "x,w,b,z", "y", MICROSOFT, kernel_shape=[2, 2], pads=[0, 0, 0, 1], activation="Relu")],
          {"x": x}, {"w": w, "b": noise("bias", 3), "z": z}, ["y"], by=by)


def hybrid():
    """What decoders have beside attention."""
    op, x, w = "CausalConvWithState", noise("places", 2, 4, 6), noise("taps", 4, 1, 3)
    for name, feeds, constants, attributes in (
        ("plain", {"x": x}, {"w": w}, {"ndim": 1, "state_window": 0}),
        ("all", {"x": x, "p": noise("past", 2, 4, 2)}, {"w": w, "b": noise("bias", 4)}, {"activation": "silu"}),
        ("dilated", {"x": x, "p": noise("past", 2, 4, 4)}, {"w": w}, {"dilation": 2}),
        ("channels_last", {"x": noise("last", 2, 5, 4), "p": noise("past", 2, 2, 4)}, {"w": w, "b": noise("bias", 4)},
         {"channels_last": 1, "activation": "swish"}),
        ("channels_in_parts", {"x": noise("parts", 2, 5, 2, 2), "p": noise("past", 2, 4, 2, 2)}, {"w": w},
         {"channels_last": 1, "dilation": 2}),
        ("one_tap_in_parts", {"x": noise("parts", 2, 5, 2, 2)}, {"w": noise("tap", 4, 1, 1)}, {"channels_last": 1}),
    ):
        names = ",".join(n if n in feeds | constants else "" for n in "xwbp").rstrip(",")
        model(f"causal_conv_{name}", [node(op, names, "y,s", MICROSOFT, **attributes)], feeds, constants, ["y", "s"])

    for rule in ("linear", "gated", "delta", "gated_delta"):
        for q_heads, kv_heads, key_heads in ((4, 2, 2), (2, 4, 2), (2, 4, 4), (2, 2, 1)):
            feeds = {"q": noise("q", 1, 3, q_heads * 3), "k": noise("k", 1, 3, key_heads * 3), "v": noise("v", 1, 3, kv_heads * 2)}
            if rule.startswith("gated"):
                feeds["d"] = -np.abs(noise("d", 1, 3, kv_heads * (3 if rule == "gated" else 1)))
            if rule.endswith("delta"):
                feeds["b"] = np.abs(noise("b", 1, 3, kv_heads if rule == "delta" else 1))
            if key_heads == kv_heads:
                feeds["p"] = noise("p", 1, kv_heads, 3, 2)
            names = ",".join(n if n in feeds else "" for n in "qkvpdb").rstrip(",")
            attributes = {"q_num_heads": q_heads, "kv_num_heads": kv_heads, "update_rule": rule}
            title = f"linear_attention_{rule}_{q_heads}_{kv_heads}_{key_heads}"
            model(title, [node("LinearAttention", names, "y,s", MICROSOFT, **attributes)], feeds, {}, ["y", "s"])

    a, heads = noise("a", 2, 3, 4, scale=4), {"t": noise("t", 4), "s": noise("s", 4)}
    model("linear_attention_gate", [node("LinearAttentionGate", "a,t,s,b", "y,z", MICROSOFT)], {"a": a, "b": noise("b", 2, 3, 4)},
          heads, ["y", "z"])
    model("linear_attention_gate_alone", [node("LinearAttentionGate", "a,t,s", "y", MICROSOFT)], {"a": a}, heads, ["y"])
    x, gate = noise("x", 2, 3, 8), noise("gate", 2, 3, 8)
    for activation, width in (("silu", 4), ("swish", 8), ("sigmoid", 2)):
        model(f"gated_rms_norm_{activation}", [node("GatedRMSNorm", "x,s,g", "y", MICROSOFT, activation=activation, epsilon=1e-2)],
              {"x": x, "g": gate}, {"s": noise("scale", width)}, ["y"])
    model("gated_rms_norm", [node("GatedRMSNorm", "x,s,g", "y", MICROSOFT)], {"x": x * np.float32(0.01), "g": gate, "s": noise("scale", 4)}, {}, ["y"])
    model("gated_add", [node("GatedAdd", "x,y,g", "z", MICROSOFT)], {"x": x, "y": gate, "g": noise("rows", 2, 3, 1)}, {}, ["z"])
    for name, feeds, attributes in (("plain", {}, {}), ("alpha", {}, {"alpha": 1.5}), ("scale", {"s": np.asarray([-0.7], np.float32).reshape(())}, {"alpha": 3.0})):
        model(f"scaled_silu_{name}", [node("ScaledSiLU", ",".join(["x", *feeds]), "y", MICROSOFT, **attributes)], {"x": x} | feeds, {}, ["y"])
    for name, shape, scale, attributes in (
        ("plain", (2, 3, 4), None, {}), ("features", (2, 3, 4), (4,), {"epsilon": 0.1}), ("list", (2, 3, 4), (12,), {}),
        ("flattened", (2, 12), None, {"num_branches": 3}), ("flattened_matrix", (2, 12), (3, 4), {"num_branches": 3}),
    ):  # fmt: skip
        constants = {} if scale is None else {"s": noise("scale", *scale)}
        model(f"branchwise_rms_norm_{name}", [node("BranchwiseRMSNorm", ",".join(["x", *constants]), "y", MICROSOFT, **attributes)],
              {"x": noise("branches", *shape)}, constants, ["y"])

    ids = np.random.default_rng(3).integers(0, 7, (3, 2, 4)).astype(np.int64)
    for name, shape, section, attributes in (
        ("sections", (2, 4, 24), [2, 1, 3], {"num_heads": 2}),
        ("interleaved_sections", (2, 4, 24), [2, 3, 1], {"num_heads": 2, "mrope_layout": 1}),
        ("heads", (2, 2, 4, 12), [3, 2, 1], {"mrope_layout": 1, "interleaved": 1}),
        ("part", (2, 4, 24), [1, 1, 2], {"num_heads": 2, "rotary_embedding_dim": 8, "scale": 0.5, "is_packed_batching": 1}),
    ):
        caches = {"c": noise("cosines", 7, sum(section)), "s": noise("sines", 7, sum(section))}
        model(f"rotary_streams_{name}", [node("MRotaryEmbedding", "x,i,c,s", "y", MICROSOFT, mrope_section=section, **attributes)],
              {"x": noise("x", *shape), "i": ids}, caches, ["y"])


def outputs_of(name, proto, domains, feeds):
    if name in BY_NUMPY:
        return BY_NUMPY[name](feeds)
    if PREVIEW in domains or name == "optionals":  # which ONNX Runtime has not
        # An optional is a list of one.
        return [o[0] if isinstance(o, list) else o for o in ReferenceEvaluator(proto).run(None, feeds)]
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def sparse_constants():
    """Which ONNX Runtime reads; a fused product makes it the one that runs the model."""
    thin = [np.where(np.abs(v) > 1, v, 0).astype(v.dtype) for v in (noise("w", 3, 2, 3, 3), noise("b", 3), noise("c", 4, 3))]
    steps = [node("Conv", "x,w,b", "c", kernel_shape=[3, 3]), node("Add", "c,nothing", "d"),
             node("Reshape", "d,shape", "e"), node("FusedMatMul", "e,m", "y", MICROSOFT, transB=1)]
    for name, in_rows in {"sparse_by_number": False, "sparse_by_coordinates": True}.items():
        constants = dict(zip(("w", "b", "m"), thin), nothing=np.zeros((3, 1, 1), np.float32), shape=ints(0, 3))
        model(name, steps, {"x": noise("x", 2, 2, 3, 3)}, {}, ["y"],
              sparse=[sparse(n, v, in_rows) for n, v in constants.items()])
        made = [helper.make_node("Constant", [], [n], sparse_value=sparse("", v, in_rows)) for n, v in constants.items()]
        model(f"{name}_in_attributes", made + steps, {"x": noise("x", 2, 2, 3, 3)}, {}, ["y"])


def residuals():
    """Sums with what ONNX Runtime's optimizer joins to them."""
    x, skip = noise("x", 2, 3, 4), noise("skip", 2, 3, 4)
    rows = {"g": noise("g", 4), "s": noise("s", 4), "b": noise("b", 4)}
    scale = {"g": rows["g"]}
    for title, op, last in (("skip_normalization", "SkipLayerNormalization", "s,b"),
                            ("skip_simplified", "SkipSimplifiedLayerNormalization", "b")):
        model(title, [node(op, "x,skip,g", "y", MICROSOFT)], {"x": x, "skip": skip}, scale, ["y"])
        used = {n: rows[n] for n in ("g", *last.split(","))}
        model(f"{title}_all", [node(op, f"x,skip,g,{last}", "y,,,z", MICROSOFT, epsilon=1e-2)], {"x": x, "skip": skip}, used,
              ["y", "z"])
        model(f"{title}_sum", [node(op, "x,skip,g", "y,,,z", MICROSOFT)], {"x": x, "skip": skip[:1].copy()}, scale, ["y", "z"])
    model("skip_normalization_bias_alone", [node("SkipLayerNormalization", "x,skip,g,,b", "y", MICROSOFT)],
          {"x": x, "skip": skip[0].copy()}, {n: rows[n] for n in "gb"}, ["y"])
    model("bias_gelu", [node("BiasGelu", "x,b", "y", MICROSOFT)], {"x": 3 * x}, {"b": rows["b"]}, ["y"])
    model("fast_gelu", [node("FastGelu", "x", "y", MICROSOFT)], {"x": 3 * x}, {}, ["y"])
    model("fast_gelu_bias", [node("FastGelu", "x,b", "y", MICROSOFT)], {"x": 3 * x}, {"b": rows["b"]}, ["y"])


def moved_constants():
    """Constants behind nodes that move or cast them: as language models have one table for their first and last layers, and
    angles in branches for long and short inputs."""
    codes = np.random.default_rng(4).integers(0, 256, (70, 2, 8)).astype(np.uint8)
    blocks = {"block_size": 16, "bits": 4}
    model("moved_table", [node("Identity", "w", "v"), node("Reshape", "v,shape", "table"),
                          node("GatherBlockQuantized", "table,ids,scales", "e", MICROSOFT, gather_axis=0, quantize_axis=1, **blocks),
                          node("MatMulNBits", "e,w,scales", "y", MICROSOFT, K=32, N=70, **blocks)],
          {"ids": ints([69, 0], [1, 1])}, {"w": codes, "scales": noise("scales", 70, 2), "shape": ints(70, 16)}, ["y"], opset=21)
    x, ids = noise("x", 2, 3, 8), ints([2, 0, 1], [3, 3, 0])
    turned = node("RotaryEmbedding", "x,i,cosines,sines", "y", MICROSOFT)
    angles = np.arange(1200).reshape(600, 2)  # more elements than lists of positions have
    halves = {"c": np.cos(angles).astype(np.float16), "s": np.sin(angles).astype(np.float16)}
    model("moved_angles", [node("Cast", "c", "cosines", to=FLOAT), node("Cast", "s", "sines", to=FLOAT), turned],
          {"x": x, "i": ids}, halves, ["y"])

    def branch(name, rows):
        made = [helper.make_tensor_value_info(f"{n}_{name}", FLOAT, ["rows", "pairs"]) for n in ("cos", "sin")]
        values = [numpy_helper.from_array(f(np.arange(2 * rows, dtype=np.float32).reshape(rows, 2) / rows), n)
                  for n, f in (("c", np.cos), ("s", np.sin))]
        moved = [node("Identity", "c", f"cos_{name}"), node("Transpose", "s", f"sin_{name}", perm=[0, 1])]
        return helper.make_graph(moved, name, [], made, values)

    for is_long in (False, True):
        model(f"moved_angles_of_{'long' if is_long else 'short'}_inputs",
              [node("If", "is_long", "cosines,sines", then_branch=branch("long", 16), else_branch=branch("short", 8)), turned],
              {"x": x, "i": ids, "is_long": np.array(is_long)}, {}, ["y"], told=[("cosines", ["rows", "pairs"])])


def main():
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    OUT.mkdir(exist_ok=True)
    for group in (fused_products, codes_of_bitsandbytes, embeddings, attention, flexible_attention, sequences, learning, old_opsets, experimental, run_time_sequences,
                  products_of_integers, optimized, sparse_constants, grown_sequences, carried_sequences, joined_sequences, computed_lengths, residuals, moved_constants, hybrid):
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
