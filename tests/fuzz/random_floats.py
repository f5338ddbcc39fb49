#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small networks of floats, run by both engines of the library and by ONNX Runtime: windows with odd strides, pads,
dilations and groups along one to three axes, transposed ones, pools of all modes, products, normalizations, and what
moves elements between them. Results may differ by 1e-5 of the largest of an output, plus what float32 itself loses on
the way, which the differences of ONNX Runtime from ONNX's reference evaluator on doubles show.

Run with:  PYTHONPATH=build/dev/python $(benchmarks/peers/make-venv)/bin/python tests/fuzz/random_floats.py [FIRST [COUNT]]

Prints the number of every network of which an output differs, and saves it as differs_NUMBER.onnx where asked to with
--save FOLDER. Exit code 1 where one differs.
"""

import argparse
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import qtensor as qt
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

TOLERANCE = 1e-5
DIALECTS = (9, 11, 12, 13, 17, 18, 19, 20, 21, 21, 21)


class Network:
    def __init__(self, number):
        self.rng = np.random.default_rng(number)
        self.has_ones = number % 4 == 3  # with an axis of length 1, one layout is another, too
        self.opset = self.pick(DIALECTS)
        self.nodes, self.constants, self.shapes, self.kinds = [], [], {}, {}
        rank = self.pick((2, 3, 3, 4, 4, 4, 4, 5, 5))
        batch = self.pick((0, 1, 1, 1, 2, 3)) if rank > 2 else self.pick((1, 2, 5))
        channels = self.pick((1, 2, 3, 4, 7, 8, 12, 16, 17, 24, 32))
        space = [self.pick((1, 2, 3, 5, 6, 7, 9, 11, 14)) for _ in range(rank - 2)]
        self.input = self.named("x", [batch, channels, *space])
        self.last = "x"
        for _ in range(self.whole(1, 7)):
            self.grow()

    def pick(self, items):
        if self.has_ones and 1 in items and self.rng.random() < 0.5:
            return 1
        return items[int(self.rng.integers(len(items)))]

    def whole(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def one_in(self, n):
        return self.whole(1, n) == 1

    def named(self, name, shape):
        self.shapes[name] = list(shape)
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def noise(self, *shape, scale=1.0):
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def proto(self, wanted=None):
        outputs = [self.named(n, self.shapes[n]) for n in wanted] if wanted else [helper.make_tensor_value_info("probe", 0, None)]
        graph = helper.make_graph(self.nodes, "random", [self.input], outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def add(self, op, inputs, **attributes):
        """The node where it fits; otherwise nothing."""
        name = f"v{len(self.nodes)}"
        node = helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes)
        self.nodes.append(node)
        try:
            graph = helper.make_graph(self.nodes, "random", [self.input], [helper.make_empty_tensor_value_info(name)], self.constants)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
            made = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph.output[0]
            dims = [d.dim_value for d in made.type.tensor_type.shape.dim]
            known = made.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in made.type.tensor_type.shape.dim)
            if not known or any(d < 0 or d > 200 for d in dims) or np.prod(dims) > 60000 or (0 in dims[1:]):
                raise ValueError("too large, or not known")
        except Exception:  # of the checker: the node says what no engine takes
            self.nodes.pop()
            return None
        self.shapes[name] = dims
        self.last = name
        return name

    def window(self, space, transposed=False):
        n = len(space)
        kernel = [self.pick((1, 1, 2, 3, 3, 3, 4, 5)) for _ in range(n)]
        attrs = {"kernel_shape": kernel}
        if self.one_in(2):
            attrs["strides"] = [self.pick((1, 1, 2, 2, 3, 4)) for _ in range(n)]
        if self.one_in(3):
            attrs["dilations"] = [self.pick((1, 1, 2, 3)) for _ in range(n)]
        if self.one_in(8):
            attrs["auto_pad"] = self.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
        elif not self.one_in(3):
            most = [min(k - 1, 3) if not transposed else k - 1 for k in kernel]
            attrs["pads"] = [self.whole(0, m) for m in most] + [self.whole(0, m) for m in most]
        return kernel, attrs

    def convolution(self, shape):
        channels, space = shape[1], shape[2:]
        kernel, attrs = self.window(space)
        groups = self.pick([g for g in (1, 1, 1, 2, 3, 4, channels) if channels % g == 0])
        filters = groups * self.pick((1, 1, 2, 3, 4, 5, 8, 16, 17))
        weight = self.noise(filters, channels // groups, *kernel, scale=0.5)
        inputs = [self.last, weight] + ([self.noise(filters)] if self.one_in(2) else [])
        return self.add("Conv", inputs, group=groups, **attrs)

    def transposed(self, shape):
        channels, space = shape[1], shape[2:]
        kernel, attrs = self.window(space, True)
        groups = self.pick([g for g in (1, 1, 1, 2, 4, channels) if channels % g == 0])
        filters = self.pick((1, 2, 3, 4, 8, 9))
        strides = attrs.get("strides", [1] * len(space))
        if self.one_in(3):
            attrs["output_padding"] = [self.whole(0, s - 1) for s in strides]
        # ONNX says that the output is as large as strides make it; ONNX Runtime's may be another where it has to grow.
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, attrs.get("dilations", [1] * len(kernel)))]
        if "output_padding" in attrs or any(r < s for r, s in zip(reach, strides)):
            attrs.pop("auto_pad", None)
        weight = self.noise(channels, filters, *kernel, scale=0.5)
        inputs = [self.last, weight] + ([self.noise(groups * filters)] if self.one_in(2) else [])
        return self.add("ConvTranspose", inputs, group=groups, **attrs)

    def pool(self, shape):
        op = self.pick(("MaxPool", "AveragePool", "AveragePool"))
        _, attrs = self.window(shape[2:])
        if op == "AveragePool" and self.opset < 19 or op == "MaxPool" and self.opset < 10:
            attrs.pop("dilations", None)
        if "auto_pad" in attrs:
            attrs.pop("dilations", None)  # ONNX Runtime pads as if there were none
        if self.opset >= 10 and self.one_in(2) and "auto_pad" not in attrs:
            attrs["ceil_mode"] = 1
        if op == "AveragePool" and self.one_in(2):
            attrs["count_include_pad"] = 1
        return self.add(op, [self.last], **attrs)

    def product(self, shape):
        if len(shape) == 2 and self.one_in(2):
            turns = {"transA": int(self.one_in(4)), "transB": int(self.one_in(2))}
            k, n = shape[0 if turns["transA"] else 1], self.pick((1, 2, 5, 16, 17, 33))
            weight = self.noise(*((n, k) if turns["transB"] else (k, n)))
            bias = self.pick(([], [self.noise(n)], [self.noise(1)], [self.noise(1, n)]))
            factors = {"alpha": 0.5, "beta": 2.0} if self.one_in(4) else {}
            return self.add("Gemm", [self.last, weight, *(bias or ([self.noise(n)] if self.opset < 11 else []))], **turns, **factors)
        if self.one_in(3) and len(shape) >= 2:
            perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            left = self.last
            turned = self.add("Transpose", [left], perm=perm)
            if not turned:
                return None
            return self.add("MatMul", [left, turned] if self.one_in(2) else [turned, left])
        return self.add("MatMul", [self.last, self.noise(shape[-1], self.pick((1, 3, 8, 16, 31)))])

    def normalization(self, shape):
        channels = shape[1]
        scale, shift = self.noise(channels), self.noise(channels)
        kinds = ["BatchNormalization", "InstanceNormalization"]
        if self.opset >= 17:
            kinds.append("LayerNormalization")
        if self.opset >= 21:
            kinds.append("GroupNormalization")
        op = self.pick(kinds)
        if op == "BatchNormalization":
            variance = self.constant(self.rng.uniform(0.5, 2, channels).astype(np.float32))
            return self.add(op, [self.last, scale, shift, self.noise(channels), variance])
        if op == "LayerNormalization":
            return self.add(op, [self.last, self.noise(shape[-1]), self.noise(shape[-1])], axis=-1)
        if op == "GroupNormalization":
            return self.add(op, [self.last, scale, shift], num_groups=self.pick([g for g in (1, 2, 3, 4) if channels % g == 0]))
        # Where there is one element, ONNX Runtime does not give the shift alone: what cancels is rounded.
        return self.add(op, [self.last, scale, shift]) if np.prod(shape[2:]) > 1 else None

    def elementwise(self, shape):
        op = self.pick(("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Abs", "Neg", "Elu", "Softplus", "Add", "Mul", "Sub", "Clip", "Max", "PRelu",
                        "HardSigmoid", "Softmax", "Exp"))
        if op in ("Add", "Mul", "Sub", "Max"):
            same = [n for n, s in self.shapes.items() if s == shape]
            other = self.pick(same) if self.one_in(2) else self.noise(*self.pick(
                ([1], shape, [shape[1], *[1] * (len(shape) - 2)], [1, shape[1], *[1] * (len(shape) - 2)], shape[-1:])))
            return self.add(op, [self.last, other] if self.one_in(2) else [other, self.last])
        if op == "PRelu":
            return self.add(op, [self.last, self.noise(shape[1], *[1] * (len(shape) - 2))])
        if op == "Clip":
            return self.add(op, [self.last, self.constant(np.float32(-0.5)), self.constant(np.float32(1.5))]) if self.opset >= 11 else None
        if op == "Exp":
            self.add("Clip", [self.last, self.constant(np.float32(-4)), self.constant(np.float32(2))]) if self.opset >= 11 else None
        return self.add(op, [self.last])

    def moved(self, shape):
        rank = len(shape)
        op = self.pick(("Transpose", "Reshape", "Slice", "Pad", "Concat", "Flatten", "Unsqueeze", "GlobalAveragePool", "GlobalMaxPool",
                        "ReduceMean", "Split", "Expand", "Squeeze", "DepthToSpace", "Gather"))
        if op == "Transpose":
            return self.add(op, [self.last], perm=[int(i) for i in self.rng.permutation(rank)])
        if op == "Reshape":
            order = [0, 0, -1] if rank > 2 else [-1, 1]
            return self.add(op, [self.last, self.constant(np.array(order, np.int64))])
        if op == "Slice":
            axis = self.whole(1, rank - 1)
            begin, step = self.whole(0, max(0, shape[axis] - 1)), self.pick((1, 1, 2))
            if self.opset < 10:
                return None
            return self.add(op, [self.last, *(self.constant(np.array([v], np.int64)) for v in (begin, shape[axis], axis, step))])
        if op == "Pad":
            pads = np.zeros([2, rank], np.int64)
            pads[:, 2:] = self.rng.integers(0, 3, [2, rank - 2])
            mode = self.pick(("constant", "constant", "edge", "reflect"))
            return self.add(op, [self.last, self.constant(pads.ravel())], mode=mode) if self.opset >= 11 else None
        if op == "Concat":
            fits = [n for n, s in self.shapes.items() if len(s) == rank and s[0] == shape[0] and s[2:] == shape[2:]]
            return self.add(op, [self.last, *(self.pick(fits) for _ in range(self.whole(1, 2)))], axis=1)
        if op == "Split":
            return self.add("Slice", [self.last, *(self.constant(np.array([v], np.int64)) for v in (0, (shape[1] + 1) // 2, 1))]) if self.opset >= 10 else None
        if op == "Expand":
            return self.add(op, [self.last, self.constant(np.array([2, *[1] * rank], np.int64))]) if rank < 5 and shape[0] else None
        if op == "ReduceMean":
            if self.opset >= 18:
                return self.add(op, [self.last, self.constant(np.arange(2, rank, dtype=np.int64))], keepdims=int(self.one_in(2))) if rank > 2 else None
            return self.add(op, [self.last], axes=list(range(2, rank)), keepdims=int(self.one_in(2))) if rank > 2 else None
        if op in ("Unsqueeze", "Squeeze"):
            axes = [1] if op == "Unsqueeze" else [i for i, d in enumerate(shape) if d == 1 and i > 0][:1]
            if not axes or rank > 5:
                return None
            return self.add(op, [self.last, self.constant(np.array(axes, np.int64))]) if self.opset >= 13 else self.add(op, [self.last], axes=axes)
        if op == "DepthToSpace":
            return self.add(op, [self.last], blocksize=2) if rank == 4 and shape[1] % 4 == 0 else None
        if op == "Gather":
            return self.add(op, [self.last, self.constant(self.rng.integers(0, shape[1], 3))], axis=1)
        return self.add(op, [self.last])

    def grow(self):
        if self.one_in(5):
            self.last = self.pick(sorted(self.shapes))
        shape = self.shapes[self.last]
        ways = [self.elementwise, self.elementwise, self.moved, self.product]
        if 3 <= len(shape) <= 5:
            ways += [self.convolution] * 4 + [self.transposed] * 2 + [self.pool] * 3 + [self.normalization]
        if len(shape) >= 2:
            self.pick(ways)(shape)

    def model(self):
        read = {name for node in self.nodes for name in node.input}
        made = [node.output[0] for node in self.nodes]
        ends = [name for name in made if name not in read or self.one_in(6)] or made[-1:]
        return self.proto(ends) if self.nodes else None


def in_doubles(model):
    """The same network on doubles."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for value in [*wide.graph.input, *wide.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for constant in wide.graph.initializer:
        if constant.data_type == TensorProto.FLOAT:
            constant.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(constant).astype(np.float64), constant.name))
    return wide


def peer(model, x):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, {"x": x})


def differences(model, x):
    """What differs, in words; None where ONNX Runtime refuses the model."""
    try:
        wanted = peer(model, x)
    except Exception:
        return None
    found = compare(model, x, wanted, wanted, [wanted])
    if found:
        # What float32 loses on the way may be more: ONNX's reference evaluator says, on doubles, and what ONNX Runtime makes
        # of inputs that are others in their last bit.
        try:
            exact = ReferenceEvaluator(in_doubles(model)).run(None, {"x": x.astype(np.float64)})
        except Exception:  # some transposed convolutions are too much for it
            exact = wanted
        rng = np.random.default_rng(0)
        others = [peer(model, np.nextafter(x, x + rng.choice([-1, 0, 1], x.shape).astype(np.float32))) for _ in range(4)]
        found = compare(model, x, wanted, exact, [wanted, *others])
    return found


def compare(model, x, wanted, exact, others):
    found = []
    read = qt.Model.load_bytes(model.SerializeToString())
    for engine in ("native", "reference"):
        got = qt.Session(read, {"engine": engine, "threads": 1})(x)
        got = got if isinstance(got, (list, tuple)) else [got]
        for o, (a, b, c) in enumerate(zip(got, wanted, exact)):
            name, a = model.graph.output[o].name, np.asarray(a)
            if a.shape != b.shape:
                found.append(f"{engine}: {name} is {a.shape}, not {b.shape}")
                continue
            if a.size == 0:
                continue
            if not (np.isfinite(a) == np.isfinite(b)).all():
                found.append(f"{engine}: {name} is not finite elsewhere")
                continue
            largest = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
            with np.errstate(invalid="ignore"):
                error, *owns = (np.nan_to_num(np.abs(v.astype(np.float64) - c), posinf=0).max() / largest
                                for v in (a, *(other[o] for other in others)))
            own = max(owns)
            if error > TOLERANCE + 8 * own:
                found.append(f"{engine}: {name} differs by {error:.2g} of its largest, ONNX Runtime by {own:.2g}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("count", nargs="?", type=int, default=200)
    parser.add_argument("--save", type=pathlib.Path)
    options = parser.parse_args()
    ran = refused = differs = 0
    for number in range(options.first, options.first + options.count):
        network = Network(number)
        model = network.model()
        if model is None:
            continue
        x = network.rng.standard_normal(network.shapes["x"]).astype(np.float32)
        try:
            found = differences(model, x)
        except Exception as error:  # of the library
            # Where a window is larger than the padded picture, ONNX Runtime's output has one element or none.
            found = None if "does not fit an input" in str(error) else [f"refused: {error}"]
        if found is None:
            refused += 1
            continue
        ran += 1
        if found:
            differs += 1
            print(f"{number} (opset {network.opset}, {' '.join(n.op_type for n in model.graph.node)}): {'; '.join(found)}", flush=True)
            if options.save:
                onnx.save(model, options.save / f"differs_{number}.onnx")
    print(f"{ran} networks ran, {refused} were refused, {differs} differ")
    sys.exit(differs > 0)


main()
