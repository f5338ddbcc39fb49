#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of the recipe "nvidia" against what TensorRT's documentation demands of a network with explicit quantization:
int8 with zero points of 0; scales that are constants; activations per tensor, weights per tensor or output channel; every
QuantizeLinear in front of DequantizeLinear; biases in float; weights that go in as integers, or with the attribute
"weight_pairs" as floats with such a pair behind them, as NVIDIA's toolkit exports them; nothing between a product and its
Relu. What is read back and what ONNX Runtime computes are the same with pairs and without. Usage: tensorrt.py LIBRARY
FOLDER (with networks). Exit code 77 (skipped) where numpy, onnx or onnxruntime is not installed.
"""

import collections
import ctypes
import pathlib
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnx.numpy_helper
    import onnxruntime
except ImportError:
    sys.exit(77)

FLOAT32 = 1
BIASES = 1e-4  # ours are rounded to units of the products when a session is made
LIBRARY = ctypes.CDLL(str(pathlib.Path(sys.argv[1]).resolve()))
FOLDER = pathlib.Path(sys.argv[2])
LIBRARY.qerror_message.restype = ctypes.c_char_p
LIBRARY.qtensor_data.restype = ctypes.c_void_p
PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def made(function, *arguments):
    handle = ctypes.c_void_p()
    if getattr(LIBRARY, function)(ctypes.byref(handle), *arguments) != 0:
        raise RuntimeError(LIBRARY.qerror_message().decode())
    return handle


def call(function, *arguments):
    if getattr(LIBRARY, function)(*arguments) != 0:
        raise RuntimeError(LIBRARY.qerror_message().decode())


def ints(**values):
    attrs = made("qattrs_create")
    for key, value in values.items():
        call("qattrs_set_int", attrs, key.encode(), ctypes.c_int64(value))
    return attrs


def tensor(x):
    data = x.tobytes()
    return made("qtensor_create", FLOAT32, (ctypes.c_int64 * x.ndim)(*x.shape), ctypes.c_size_t(x.ndim), None, data, ctypes.c_size_t(len(data)))


def quantized(model, recipe, x, **settings):
    config = made("qconfig_create", recipe.encode())
    if settings:
        call("qconfig_set", config, b"*", ints(**settings))
    prepared = made("qmodel_prepare", model, config, ctypes.c_int(0))
    call("qmodel_calibrate", prepared, (ctypes.c_void_p * 1)(tensor(x)), ctypes.c_size_t(1))
    return made("qmodel_convert", prepared, None)


def run(model, x, count):
    session, outputs = made("qsession_create", model, None), (ctypes.c_void_p * 1)()
    call("qsession_run", outputs, ctypes.c_size_t(1), session, (ctypes.c_void_p * 1)(tensor(x)), ctypes.c_size_t(1))
    data = ctypes.cast(LIBRARY.qtensor_data(ctypes.c_void_p(outputs[0])), ctypes.POINTER(ctypes.c_float))
    return numpy.ctypeslib.as_array(data, (count,)).copy()


def channel_axis(node):
    if node.op_type == "MatMul":
        return 1
    if node.op_type == "Gemm":
        return 0 if any(a.name == "transB" and a.i for a in node.attribute) else 1
    return 1 if node.op_type == "ConvTranspose" else 0


class Rules:
    """What a file has against them."""

    def __init__(self, model, pairs):
        self.graph, self.pairs, self.broken = model.graph, pairs, []
        self.constants = {t.name: t for t in self.graph.initializer}
        self.maker = {name: node for node in self.graph.node for name in node.output}
        self.readers = collections.defaultdict(list)
        for node in self.graph.node:
            for name in node.input:
                self.readers[name].append(node)
        self.counts = collections.Counter()

    def against(self, node, what):
        self.broken.append(f"{node.op_type} {node.name}: {what}")

    def grid(self, node):
        """Scale and zero point of a pair's half; None where they are not as they must be."""
        if any(name not in self.constants for name in node.input[1:]):
            return self.against(node, "its scale or zero point is no constant")
        if len(node.input) < 3 or self.constants[node.input[2]].data_type != onnx.TensorProto.INT8:
            return self.against(node, "it has no zero point of int8")
        scale, zero = (onnx.numpy_helper.to_array(self.constants[name]) for name in node.input[1:3])
        if zero.any():
            self.against(node, f"its zero point is {zero.ravel().tolist()[:4]}")
        if not (scale > 0).all() or scale.dtype != numpy.float32:
            self.against(node, "its scale is no positive float32")
        return scale, zero

    def of_quantize(self, node):
        grid = self.grid(node)
        readers = self.readers[node.output[0]]
        if [r.op_type for r in readers] != ["DequantizeLinear"] or readers[0].input[1:] != node.input[1:]:
            self.against(node, "no DequantizeLinear of the same grid alone reads it")
        if node.input[0] not in self.constants and grid and grid[0].ndim != 0:
            self.against(node, "an activation has a grid for each channel")
        self.counts["pairs"] += 1

    def of_product(self, node):
        """A product that reads one operand as integers reads the other so, and its bias as floats."""
        sources = [self.maker.get(name) for name in node.input]
        dequantized = [s is not None and s.op_type == "DequantizeLinear" for s in sources]
        if not any(dequantized[:2]):
            return
        if not all(dequantized[:2]):
            self.against(node, "only one of its operands is quantized")
            return
        if len(node.input) > 2 and (dequantized[2] or self.constants[node.input[2]].data_type != FLOAT32):
            self.against(node, "its bias is quantized")
        weight = sources[1]
        grid, before = self.grid(weight), self.maker.get(weight.input[0])
        axis = next((a.i for a in weight.attribute if a.name == "axis"), None)
        if grid and grid[0].ndim and (grid[0].ndim != 1 or axis != channel_axis(node)):
            self.against(node, f"its weights have scales of shape {grid[0].shape} along axis {axis}")
        stored = self.constants.get(before.input[0] if before else weight.input[0])
        if (before is not None) != self.pairs or stored is None or stored.data_type != (FLOAT32 if self.pairs else onnx.TensorProto.INT8):
            self.against(node, "its weights are no float32 behind a pair" if self.pairs else "its weights are no int8")
        for reader in self.readers[node.output[0]]:
            if reader.op_type == "QuantizeLinear" and any(r.op_type in ("Relu", "Clip") for d in self.readers[reader.output[0]] for r in self.readers[d.output[0]]):
                self.against(node, "a pair stands between it and its Relu")
        self.counts["products"] += 1

    def check(self):
        for node in self.graph.node:
            if node.domain not in ("", "ai.onnx"):
                self.against(node, f"of the domain {node.domain}")
            if node.op_type == "QuantizeLinear":
                self.of_quantize(node)
            elif node.op_type == "DequantizeLinear":
                self.grid(node)
            elif node.op_type in PRODUCTS:
                self.of_product(node)
        return self.broken


def onnx_runtime(path, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.add_session_config_entry("session.x64quantprecision", "1")  # without it, sums of pairs saturate on CPUs with AVX2 alone
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def network():
    """What the digits do not have: a product by a matrix on the right, a Gemm of either kind, a join, means."""
    random = numpy.random.default_rng(1)
    shapes = {"a": (8, 2, 3, 3), "ab": (8,), "b": (8, 1, 3, 3), "c": (8, 8, 1, 1), "m": (16, 6), "g": (6, 5), "gb": (5,), "h": (4, 5), "hb": (4,)}
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [
        node("Conv", ["x", "a", "ab"], ["1"], pads=[1] * 4), node("Relu", ["1"], ["2"]), node("Conv", ["2", "b"], ["3"], pads=[1] * 4, group=8),
        node("Clip", ["3", "", "six"], ["4"]), node("Conv", ["4", "c"], ["5"]), node("Add", ["5", "2"], ["6"]), node("MaxPool", ["6"], ["7"], kernel_shape=[2, 2]),
        node("Concat", ["7", "7"], ["8"], axis=1), node("GlobalAveragePool", ["8"], ["9"]), node("Flatten", ["9"], ["10"]), node("MatMul", ["10", "m"], ["11"]),
        node("Gemm", ["11", "g", "gb"], ["12"]), node("Relu", ["12"], ["13"]), node("Gemm", ["13", "h", "hb"], ["y"], transB=1),
    ]  # fmt: skip
    constants = [onnx.numpy_helper.from_array(random.normal(size=shape).astype("float32"), name) for name, shape in shapes.items()]
    constants.append(onnx.numpy_helper.from_array(numpy.float32(6), "six"))
    graph = onnx.helper.make_graph(nodes, "network", [value("x", FLOAT32, [1, 2, 8, 8])], [value("y", FLOAT32, [1, 4])], constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def main():
    failures, counts = [], collections.Counter()
    models = {name: onnx.load(FOLDER / f"{name}.onnx") for name in ("digits", "mobile")}
    models["network"] = network()
    random = numpy.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        for name, proto in models.items():
            data = proto.SerializeToString()
            float_model = made("qmodel_load_bytes", data, ctypes.c_size_t(len(data)))
            shape = [max(d.dim_value, 1) for d in proto.graph.input[0].type.tensor_type.shape.dim]
            x = random.normal(size=shape).astype("float32")
            for per_tensor in (False, True):
                config = made("qconfig_create", b"nvidia")
                if per_tensor:
                    scheme = made("qattrs_create")
                    call("qattrs_set_string", scheme, b"quant_desc_weight", b"QUANT_DESC_8BIT_PER_TENSOR")
                    call("qconfig_set", config, b"*", scheme)
                prepared = made("qmodel_prepare", float_model, config, ctypes.c_int(0))
                call("qmodel_calibrate", prepared, (ctypes.c_void_p * 1)(tensor(x)), ctypes.c_size_t(1))
                int8 = made("qmodel_convert", prepared, None)
                for opset in (13, 17, 19, 21, 25):
                    answers = {}
                    for pairs in (0, 1):
                        what = f"{name}, {'weights per tensor, ' if per_tensor else ''}opset {opset}, pairs {pairs}"
                        call("qmodel_save", int8, str(path).encode(), ints(opset=opset, weight_pairs=pairs))
                        onnx.checker.check_model(str(path), full_check=True)
                        rules = Rules(onnx.load(path), bool(pairs))
                        failures += [f"{what}: {broken}" for broken in rules.check()]
                        counts.update(rules.counts)
                        answers[pairs] = onnx_runtime(path, x)
                        count = answers[pairs].size
                        again = made("qmodel_load", str(path).encode())
                        if not (run(again, x, count) == run(int8, x, count)).all():
                            failures.append(f"{what}: read back, it answers otherwise")
                        apart = numpy.abs(answers[pairs].ravel() - run(int8, x, count)).max() / numpy.abs(answers[pairs]).max()
                        if not apart < BIASES:
                            failures.append(f"{what}: ONNX Runtime is apart by {apart}")
                    if not (answers[0] == answers[1]).all():
                        failures.append(f"{name}, opset {opset}: ONNX Runtime computes otherwise with pairs")
            # The rules see what breaks them.
            other = quantized(float_model, "onnx", x)
            call("qmodel_save", other, str(path).encode(), None)
            found = " ".join(Rules(onnx.load(path), False).check())
            for what in ("no zero point of int8", "its bias is quantized"):
                if what not in found:
                    failures.append(f"{name} under the recipe onnx: the rules do not see \"{what}\"")
    print(*(f"{count} {what}" for what, count in counts.items()), *failures, sep="\n")
    return 1 if failures or counts["products"] < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
