#!/usr/bin/env python3
"""Compares this library with ONNX Runtime node by node on equal inputs: which operator parts from it first, and how far.

The model, float or quantized (QDQ), is cut into units: a node with the DequantizeLinear nodes before it and the Relu, Clip
and QuantizeLinear behind it, which is what both engines fuse. ONNX Runtime runs unit after unit; ours runs each on the
values that ONNX Runtime has there, so that nothing is carried on from one to the next. A row is a kind of unit:

  elements, differ   how many there are, and how many of them are not the same bits
  steps              of integers: the largest difference
  from_tie           of integers that differ: how far from half way between two integers the real number was, at most
  apart              of floats: the largest difference, relative to the largest result
  ours_off, ort_off  of floats, with --double: the same for either engine and the unit computed in double

Run again with:
  PYTHONPATH=build/release/python $(benchmarks/peers/make-venv)/bin/python benchmarks/nodes.py MODEL.onnx DATA.npz|DATA.npy
"""

import argparse
import collections
import pathlib

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.reference
import onnxruntime

import qtensor as qt

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
FUSED_BEHIND = ("Relu", "Clip", QUANTIZE)
SMALLEST = np.finfo(np.float32).tiny


class Model:
    """The nodes of a file, who makes and who reads each value, and its constants."""

    def __init__(self, path):
        self.proto = onnx.load(path)
        graph = self.proto.graph
        self.constants = {t.name: t for t in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                tensor = onnx.TensorProto()
                tensor.CopyFrom(node.attribute[0].t)
                tensor.name = node.output[0]
                self.constants[tensor.name] = tensor
        self.nodes = [node for node in graph.node if node.output[0] not in self.constants]
        self.maker = {name: node for node in self.nodes for name in node.output}
        self.readers = collections.defaultdict(list)
        for node in self.nodes:
            for name in node.input:
                self.readers[name].append(node)
        self.outputs = {value.name for value in graph.output}

    def behind(self, node):
        """What is fused into the node: single readers of single results, up to the first QuantizeLinear."""
        chain = [node]
        while chain[-1].op_type != QUANTIZE and len(chain[-1].output) == 1 and chain[-1].output[0] not in self.outputs:
            made = chain[-1].output[0]
            readers = self.readers[made]
            if len(readers) != 1 or readers[0].op_type not in FUSED_BEHIND or made != readers[0].input[0]:
                break
            chain.append(readers[0])
        return chain

    def before(self, nodes):
        """The DequantizeLinear that the nodes read, which each of them has for itself."""
        makers = [self.maker[name] for node in nodes for name in node.input if name in self.maker]
        return [node for node in makers if node.op_type == DEQUANTIZE]

    def units(self):
        """Lists of nodes, in order."""
        done = set()
        for node in self.nodes:
            if id(node) in done or (node.op_type == DEQUANTIZE and not set(node.output) & self.outputs):
                continue
            chain = self.behind(node) if node.op_type != DEQUANTIZE else [node]
            done.update(map(id, chain))
            before = {id(n): n for n in self.before(chain) if node.op_type != DEQUANTIZE}
            yield [*before.values(), *chain]

    def grid(self, node):
        """Scale and zero point of QuantizeLinear or DequantizeLinear; an activation has one of each."""
        return (onnx.numpy_helper.to_array(self.constants[name]) for name in node.input[1:3])

    def real(self, node, values):
        scale, zero = self.grid(node)
        return (values[node.input[0]].astype(np.float32) - zero.astype(np.float32)) * scale

    def integers(self, node, real):
        scale, zero = self.grid(node)
        return (np.rint(real.astype(np.float64) / scale) + zero).astype(zero.dtype)

    def part(self, nodes, values):
        """The nodes as a model of their own, with its inputs."""
        nodes = [*nodes]
        inputs = {}
        # Engines fuse what lies between floats, and the integers of a value follow from its float.
        for node in [node for node in nodes if node.op_type == DEQUANTIZE and node.input[0] in self.maker]:
            real = node.input[0] + "_real"
            nodes.insert(0, onnx.helper.make_node(QUANTIZE, [real, *node.input[1:]], [node.input[0]]))
            inputs[real] = self.real(node, values)
        if nodes[-1].op_type == QUANTIZE:
            made, *grid = nodes[-1].output[0], *nodes[-1].input[1:]
            nodes.append(onnx.helper.make_node(DEQUANTIZE, [made, *grid], [made + "_real"]))
        made = {name for node in nodes for name in node.output} | set(inputs)
        read = dict.fromkeys(name for node in nodes for name in node.input if name and name not in made)
        inputs |= {name: values[name] for name in read if name not in self.constants}
        types = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in inputs.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output if name]
        constants = [self.constants[name] for name in read if name in self.constants]
        graph = onnx.helper.make_graph(nodes, "unit", types, outputs, constants)
        model = onnx.helper.make_model(graph, opset_imports=self.proto.opset_import, functions=self.proto.functions)
        model.ir_version = self.proto.ir_version
        return model, inputs


def of_ort(model, inputs, optimized=True):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs)


def of_ours(model, inputs):
    session = qt.Session(qt.Model.load_bytes(model.SerializeToString()), {"threads": 1})
    results = session(*(np.ascontiguousarray(x) for x in inputs.values()))
    return results if isinstance(results, list) else [results]


def real_result(model, nodes, values):
    """What the QuantizeLinear at the end of a unit reads."""
    if len(nodes) == 1:
        return values[nodes[0].input[0]]
    return of_ort(*model.part(nodes[:-1], values), optimized=False)[0]


def in_double(model, inputs):
    """By ONNX's reference evaluator, None where it has no such operator."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    inputs = {n: x.astype(np.float64) if x.dtype == np.float32 else x for n, x in inputs.items()}
    try:
        return onnx.reference.ReferenceEvaluator(wide).run(None, inputs)
    except Exception:
        return None


class Row:
    def __init__(self):
        self.units = self.elements = self.differ = self.steps = 0
        self.from_tie = self.apart = self.ours_off = self.ort_off = 0.0

    def integers(self, got, want, real, scale):
        """`real`: a call that gives what was rounded to integers."""
        difference = np.abs(got.astype(np.int64) - want)
        self.differ += np.count_nonzero(difference)
        self.steps = max(self.steps, int(difference.max(initial=0)))
        if difference.any() and scale is not None:
            steps = real()[difference > 0] / scale.astype(np.float64)
            self.from_tie = max(self.from_tie, float(np.abs(np.abs(steps - np.rint(steps)) - 0.5).max()))

    def floats(self, got, want, exact):
        top = max(float(np.abs(want).max(initial=0)), SMALLEST)
        self.differ += np.count_nonzero(got != want)
        self.apart = max(self.apart, float(np.abs(got - want).max(initial=0)) / top)
        if exact is not None:
            self.ours_off = max(self.ours_off, float(np.abs(got - exact).max(initial=0)) / top)
            self.ort_off = max(self.ort_off, float(np.abs(want - exact).max(initial=0)) / top)


def read_data(path, names):
    data = np.load(path)
    if isinstance(data, np.ndarray):
        return {names[0]: data[:1]}
    return {name: data[name] for name in names}


def kind(nodes, dtype):
    names = [node.op_type for node in nodes if node.op_type not in (QUANTIZE, DEQUANTIZE)] or [nodes[-1].op_type]
    return "+".join(names) + (" of integers" if nodes[0].op_type == DEQUANTIZE else "") + f" -> {dtype}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path, help=".npz with the inputs by name, or .npy, whose first row is taken")
    parser.add_argument("--double", action="store_true", help="also compute units of floats in double")
    parser.add_argument("--each", action="store_true", help="a line for each unit that differs, as it is found")
    arguments = parser.parse_args()
    model = Model(arguments.model)
    values = read_data(arguments.data, [v.name for v in model.proto.graph.input if v.name not in model.constants])
    rows = collections.defaultdict(Row)
    for nodes in model.units():
        part, inputs = model.part(nodes, values)
        want = of_ort(part, inputs)
        last, row = nodes[-1], Row()
        got = of_ours(part, inputs) if inputs else want
        floats = want[0].dtype == np.float32 and last.op_type != QUANTIZE
        exact = in_double(part, inputs) if arguments.double and floats else None
        scale = None
        if last.op_type == QUANTIZE:
            scale = next(model.grid(last))
            got, want = ([model.integers(last, y) for y in ys] for ys in (got, want))
        values.update(zip([name for name in last.output if name], want))
        for i, (ours, ort) in enumerate(zip(got, want)):
            if ours.shape != ort.shape or ours.dtype != ort.dtype:
                raise SystemExit(f"{last.name}: {ours.dtype}{ours.shape} is not {ort.dtype}{ort.shape}")
            if ort.dtype == np.float32:
                row.floats(ours, ort, exact[i] if exact else None)
            else:
                row.integers(ours, ort, lambda: real_result(model, nodes, values), scale)
        total = rows[kind(nodes, want[0].dtype)]
        total.units += 1
        total.elements += sum(y.size for y in want)
        total.differ += row.differ
        for field in ("steps", "from_tie", "apart", "ours_off", "ort_off"):
            setattr(total, field, max(getattr(total, field), getattr(row, field)))
        if arguments.each and row.differ:
            print(last.output[0], kind(nodes, want[0].dtype), vars(row), flush=True)
    header = ["unit", "units", "elements", "differ", "steps", "from_tie", "apart", "ours_off", "ort_off"]
    print(*header, sep=",")
    for name, row in rows.items():
        floats = [f"{value:.2g}" if value else "" for value in (row.from_tie, row.apart, row.ours_off, row.ort_off)]
        print(name, row.units, row.elements, row.differ, row.steps or "", *floats, sep=",")


if __name__ == "__main__":
    main()
