#!/usr/bin/env python3
"""Makes node/<Op>.json, node/out_of_scope.json and models/<kind>.json from the tests that ONNX keeps for its backends.

Every single-node model whose operator this library has is taken; those with an element type that the library does not
store, arithmetic on integers that it only stores, or a form of the operator newer than opset 28 are listed as out of scope
with their reason. Tests of other kinds, of networks that PyTorch exported and of small models, are taken where they are about numbers
and come to at most MOST_BYTES. What is taken but does not pass stands in node/failing.json and models/failing.json, which are
written by hand. tests/conformance/backend_tests.py runs what is not taken, too.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_node_tests.py
"""

import base64
import collections
import glob
import json
import os
import pathlib
import re
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).resolve().parent
OLDEST, NEWEST = 1, 28  # the opsets that the library reads
MOST_ELEMENTS = 20000
MOST_BYTES = 8000
KINDS = ("simple", "pytorch-operator", "pytorch-converted")
BFLOAT16_RTOL = 2**-6  # by which ONNX's own runner compares bfloat16, and which only Attention needs, whose steps it rounds
STORED = {
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16,
    TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64, TensorProto.BOOL, TensorProto.FLOAT16,
    TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ,
}  # fmt: skip
ONLY_STORED = {TensorProto.UINT4, TensorProto.INT4, TensorProto.UINT2, TensorProto.INT2,
               TensorProto.FLOAT4E2M1, TensorProto.FLOAT8E8M0}  # fmt: skip
DOMAINS = {"", "ai.onnx.preview.training", "ai.onnx.preview", "ai.onnx.ml"}  # of which the library has operators
CONVERTING = {"BitCast", "Cast", "CastLike", "QuantizeLinear", "DequantizeLinear"}


def operators():
    """Those of their own, and those that are read as others."""
    source = HERE.parent.parent / "src"
    own = set(re.findall(r"^QTN_(?:FAST_|VECTOR_)?OP\((\w+)\)", (source / "ops/ops.inc").read_text(), re.M))
    rules = "".join(file.read_text() for file in (source / "onnx").glob("composed_*.cpp"))
    return own | set(re.findall(r'\{(?:""|kMl|"ai.onnx.preview"), "(\w+)", \w+\}', rules))


def readable(model):
    """The model, of an opset that the library reads."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    own = [entry for entry in copy.opset_import if not entry.domain]
    if own and not OLDEST <= own[0].version <= NEWEST:
        own[0].version = NEWEST
    copy.ir_version = min(copy.ir_version, 14)
    copy.producer_name = ""
    return copy


def out_of_scope(case, op):
    """Why a case is not the library's, or None."""
    graph = case.model.graph
    domain = graph.node[0].domain
    version = next(entry.version for entry in case.model.opset_import if entry.domain == domain)
    since = onnx.defs.get_schema(op, version, domain).since_version
    for value in [*graph.input, *graph.output]:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            return f"a value of kind {kind.removesuffix('_type')}"
        code = value.type.tensor_type.elem_type
        name = TensorProto.DataType.Name(code).lower()
        if code not in STORED | ONLY_STORED:
            return f"element type {name}"
        if code in ONLY_STORED and op not in CONVERTING:
            return f"operator on {name}, which is only stored"
    try:
        # Another form is the same where the one of that opset takes these attributes and types.
        onnx.checker.check_model(readable(case.model), full_check=since > NEWEST)
    except Exception:
        return f"the operator's form of opset {since}"
    inputs, outputs = case.data_sets[0]
    if sum(np.size(a) for a in [*inputs, *outputs]) > MOST_ELEMENTS:
        return f"more than {MOST_ELEMENTS} elements"
    return None


def tensor(array, code):
    array = numpy_helper.to_array(array) if isinstance(array, TensorProto) else np.asarray(array)
    proto = numpy_helper.from_array(array)
    if proto.data_type != code:
        proto = numpy_helper.from_array(array.astype(onnx.helper.tensor_dtype_to_np_dtype(code)))
    data = base64.b64encode(proto.raw_data).decode()
    return {"dtype": code, "shape": list(array.shape), "data": data}


def record(case, model, inputs, outputs):
    graph = model.graph
    constants = {constant.name for constant in graph.initializer}
    rounded = any(node.op_type == "Attention" for node in graph.node)
    codes = [[v.type.tensor_type.elem_type for v in values if v.name not in constants] for values in (graph.input, graph.output)]
    return {
        "name": case.name,
        "rtol": max(case.rtol, BFLOAT16_RTOL) if rounded and TensorProto.BFLOAT16 in codes[1] else case.rtol,
        "atol": case.atol,
        "model": base64.b64encode(model.SerializeToString()).decode(),
        "inputs": [tensor(a, c) for a, c in zip(inputs, codes[0])],
        "outputs": [tensor(a, c) for a, c in zip(outputs, codes[1])],
    }


def stored(case, what):
    folder = pathlib.Path(case.model_dir) / "test_data_set_0"
    return [onnx.load_tensor(folder / f"{what}_{i}.pb") for i in range(len(list(folder.glob(f"{what}_*.pb"))))]


def small_models(kind):
    for case in sorted(load_model_tests(kind=kind), key=lambda c: c.name):
        size = sum(os.path.getsize(f) for f in glob.glob(f"{case.model_dir}/**/*", recursive=True) if os.path.isfile(f))
        model = onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
        values = [v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]]
        if size <= MOST_BYTES and all(code in STORED for code in values):
            yield record(case, readable(model), stored(case, "input"), stored(case, "output"))


def write(path, cases):
    path.parent.mkdir(exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


def main():
    for kind in KINDS:
        cases = list(small_models(kind))
        write(HERE / f"models/{kind}.json", cases)
        print(len(cases), "cases of kind", kind)
    known = operators()
    taken, left = collections.defaultdict(list), {}
    for case in sorted(collect_testcases(None), key=lambda c: c.name):
        nodes = case.model.graph.node
        if len(nodes) != 1 or case.name.endswith("_expanded") or nodes[0].domain not in DOMAINS or nodes[0].op_type not in known:
            continue
        reason = out_of_scope(case, nodes[0].op_type)
        if reason:
            left[case.name] = reason
        else:
            taken[nodes[0].op_type].append(record(case, readable(case.model), *case.data_sets[0]))
    folder = HERE / "node"
    for old in folder.glob("[A-Z]*.json"):
        old.unlink()
    for op, cases in taken.items():
        write(folder / f"{op}.json", cases)
    (folder / "out_of_scope.json").write_text(json.dumps(left, indent=1, sort_keys=True) + "\n")
    print(sum(map(len, taken.values())), "cases of", len(taken), "operators;", len(left), "out of scope")
    print("operators without a case:", *sorted(known - set(taken)))
    for reason, count in collections.Counter(left.values()).most_common():
        print(f"  {count:4} {reason}")


if __name__ == "__main__":
    main()
