#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that the library writes, in ONNX Runtime: models of tests/golden/others as QDQ and as QOperator, a network
quantized without samples, one quantized to few bits, weights in blocks with scales below zero, one whose outputs are on a grid, one with external data, random convolutions,
transposed ones and pools over one to three axes, integers that are moved, and a network of float64, checked by onnx.checker and run beside the library; the last also by
ONNX's reference evaluator. Usage: export.py LIBRARY FOLDER. Exit
code 77 (skipped) where numpy, onnx or onnxruntime is not installed.
"""

import collections
import ctypes
import json
import pathlib
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnx.reference
    import onnxruntime
except ImportError:
    sys.exit(77)
try:
    import openvino
except ImportError:
    openvino = None  # which is counted

FLOAT32 = 1
DTYPES = {"float32": FLOAT32, "float64": 11}
LIBRARY = ctypes.CDLL(str(pathlib.Path(sys.argv[1]).resolve()))
FOLDER = pathlib.Path(sys.argv[2])
LIBRARY.qerror_message.restype = ctypes.c_char_p
LIBRARY.qtensor_data.restype = ctypes.c_void_p
TOLERANCE = 1e-5  # of what is computed in float, relative to the largest output
OPSETS = {"qdq": (13, 17, 21, 25), "qoperator": (13, 21, 25)}


class Refused(Exception):
    pass


def call(function, *arguments):
    if getattr(LIBRARY, function)(*arguments) != 0:
        raise Refused(LIBRARY.qerror_message().decode())


def made(function, *arguments):
    handle = ctypes.c_void_p()
    call(function, ctypes.byref(handle), *arguments)
    return handle


def save(model, path, form, opset=None, **options):
    attrs = made("qattrs_create")
    call("qattrs_set_string", attrs, b"format", form.encode())
    for key, value in {"opset": opset, **options}.items() if opset else options.items():
        call("qattrs_set_int", attrs, key.encode(), ctypes.c_int64(value))
    try:
        call("qmodel_save", model, str(path).encode(), attrs)
    finally:
        LIBRARY.qattrs_free(attrs)


def run(model, x, shape, count=1):
    """The first of so many outputs, of the type of x."""
    session = made("qsession_create", model, None)
    dims = (ctypes.c_int64 * x.ndim)(*x.shape)
    data = x.tobytes()
    tensor = made("qtensor_create", DTYPES[x.dtype.name], dims, ctypes.c_size_t(x.ndim), None, data, ctypes.c_size_t(len(data)))
    inputs, outputs = (ctypes.c_void_p * 1)(tensor), (ctypes.c_void_p * count)()
    call("qsession_run", outputs, ctypes.c_size_t(count), session, inputs, ctypes.c_size_t(1))
    real = ctypes.c_float if x.dtype == numpy.float32 else ctypes.c_double
    data = ctypes.cast(LIBRARY.qtensor_data(ctypes.c_void_p(outputs[0])), ctypes.POINTER(real))
    y = numpy.ctypeslib.as_array(data, (int(numpy.prod(shape)),)).copy()
    for handle in (tensor, *map(ctypes.c_void_p, outputs)):
        LIBRARY.qtensor_free(handle)
    LIBRARY.qsession_free(session)
    return y.reshape(shape)


def ort_session(path, floats, fuse, exact):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "0" if fuse else "1")
    options.add_session_config_entry("session.x64quantprecision", "1" if exact else "0")
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # By default ONNX Runtime rounds what it multiplies by weights behind DequantizeLinear to 8 bits.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1" if floats else "4")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def onnx_runtime(path, x, floats=False, fuse=True):
    # On CPUs with AVX2 alone, sums of pairs saturate unless weights become uint8, for which it lacks kernels beside int8.
    try:
        session = ort_session(path, floats, fuse, exact=True)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        session = ort_session(path, floats, fuse, exact=False)
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def saturates():
    """Whether sums of pairs do in a product that the option for exact ones does not reach."""
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node("MatMulInteger", ["x", "w"], ["y"])], "product",
        [value("x", onnx.TensorProto.UINT8, [1, 2]), value("w", onnx.TensorProto.INT8, [2, 1])], [value("y", onnx.TensorProto.INT32, [1, 1])],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x, w = numpy.full((1, 2), 255, "uint8"), numpy.full((2, 1), 127, "int8")
    return session.run(None, {"x": x, "w": w})[0].item() != 2 * 255 * 127


def has_signed_matrix(model):
    return any(t.data_type == onnx.TensorProto.INT8 and len(t.dims) > 1 for t in model.graph.initializer)


def beside_openvino(path, x, want, what, counts, failures):
    if openvino is None:
        counts["not run by OpenVINO, which is not installed"] += 1
        return
    # By default it rounds what it multiplies by weights behind DequantizeLinear to 8 bits, too.
    got = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"})([x])[0]
    db = 10 * numpy.log10((want.astype(float) ** 2).sum() / max(((want.astype(float) - got) ** 2).sum(), 1e-30))
    if not db > 50:
        failures.append(f"{what}: OpenVINO is apart, {db} dB")
    counts["beside OpenVINO"] += 1


def tensor(j):
    return numpy.array(j["data"], numpy.float32).reshape(j["shape"])


def count_apart(got, want, step):
    """As tests/unit/runtime/others_test.cpp counts."""
    return int((numpy.abs(got.astype(float) - want) > step + 3e-7 * (numpy.abs(want) + step)).sum())


def eighths(random, size):
    """Sums of their products are exact in float, so that what follows is rounded alike everywhere."""
    return (random.integers(-16, 17, size) / 8).astype("float32")


def network():
    """Conv, MatMul, Gemm: what qmodel_quantize_dynamic and qmodel_quantize_weights take."""
    random = numpy.random.default_rng(1)
    constants = {
        "cw": eighths(random, (40, 36, 3, 3)), "cb": eighths(random, 40), "w": random.normal(size=(36, 50)),
        "wb": random.normal(size=50), "v": random.normal(size=(7, 2000)), "vb": random.normal(size=7),
    }  # fmt: skip
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [
        node("Conv", ["x", "cw", "cb"], ["c"]), node("Relu", ["c"], ["r"]), node("Flatten", ["r"], ["rows"], axis=2),
        node("MatMul", ["rows", "w"], ["m"]), node("Add", ["m", "wb"], ["a"]), node("Flatten", ["a"], ["f"], axis=0),
        node("Gemm", ["f", "v", "vb"], ["y"], transB=1),
    ]  # fmt: skip
    graph = onnx.helper.make_graph(
        nodes, "network", [value("x", FLOAT32, [1, 36, 8, 8])], [value("y", FLOAT32, [1, 7])],
        [onnx.numpy_helper.from_array(array.astype("float32"), name) for name, array in constants.items()],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


# What is asked for, by attribute, the opsets that have it, and an operator that the file must hold.
DYNAMIC = [({}, (13, 21, 25), "IsInf"), ({b"granularity": b"tensor"}, (13, 21, 25), "DynamicQuantizeLinear"), ({b"conv": 1}, (13, 21, 25), "ConvInteger")]
RECIPES = {b"onnx": None, b"fbgemm": "Reciprocal", b"qnnpack": "Reciprocal"}  # of PyTorch's grids
WEIGHTS = [
    ({b"dtype": b"int8"}, (13, 21), "DequantizeLinear"), ({b"dtype": b"int4"}, (13, 21, 25), "DequantizeLinear"),
    ({b"dtype": b"int8", b"block_size": 16}, (21, 25), "DequantizeLinear"),
    ({b"dtype": b"int4", b"block_size": 32}, (21, 25), "DequantizeLinear"),
]  # fmt: skip


def without_samples(path, counts, failures):
    data = network()
    float_model = made("qmodel_load_bytes", data, ctypes.c_size_t(len(data)))
    x = eighths(numpy.random.default_rng(2), (1, 36, 8, 8))
    cases = []
    for recipe, operator in RECIPES.items():
        config = made("qconfig_create", recipe)
        cases += [("qmodel_quantize_dynamic", [config], options, opsets, operator or usual) for options, opsets, usual in DYNAMIC]
    cases += [("qmodel_quantize_weights", [], *case) for case in WEIGHTS]
    for function, arguments, options, opsets, operator in cases:
        attrs = made("qattrs_create")
        for key, value in options.items():
            setter, argument = ("string", value) if isinstance(value, bytes) else ("int", ctypes.c_int64(value))
            call(f"qattrs_set_{setter}", attrs, key, argument)
        model = made(function, float_model, *arguments, attrs)
        want = run(model, x, (1, 7))
        for opset in opsets:
            save(model, path, "qdq", opset)
            onnx.checker.check_model(str(path), full_check=True)
            error = numpy.abs(onnx_runtime(path, x, floats=True) - want).max() / numpy.abs(want).max()
            nodes = onnx.load(path).graph.node
            if operator not in [node.op_type for node in nodes] or any(node.domain for node in nodes) or not error < TOLERANCE:
                failures.append(f"{function} {options}, opset {opset}: apart by {error}")
            if not (run(made("qmodel_load", str(path).encode()), x, (1, 7)) == want).all():
                failures.append(f"{function} {options}, opset {opset}: other bits come back")
            # It takes blocks only that divide an axis, and in front of ConvInteger it rounds otherwise than ONNX Runtime.
            if not options.keys() & {b"block_size", b"conv"}:
                beside_openvino(path, x, want, f"{function} {options}, opset {opset}", counts, failures)
            counts["without samples"] += 1


# By bits, the opsets, and the type of weights in files of them; operators on integers take bytes.
FEW_BITS = [
    (bits, opset, dtype)
    for bits, dtypes in {2: (3, 3, 22, 22, 26), 3: (3, 3, 22, 22, 22), 4: (3, 3, 22, 22, 22), 5: (3,) * 5, 8: (3,) * 5}.items()
    for opset, dtype in zip((13, 20, 21, 24, 25), dtypes)
]  # fmt: skip


def calibrated(float_model, x, recipe=b"onnx", **settings):
    config = made("qconfig_create", recipe)
    attrs = made("qattrs_create")
    for key, value in settings.items():
        call("qattrs_set_int", attrs, key.encode(), ctypes.c_int64(value))
    call("qconfig_set", config, b"*", attrs)
    prepared = made("qmodel_prepare", float_model, config, ctypes.c_int(0))
    dims, data = (ctypes.c_int64 * x.ndim)(*x.shape), x.tobytes()
    tensor = made("qtensor_create", DTYPES[x.dtype.name], dims, ctypes.c_size_t(x.ndim), None, data, ctypes.c_size_t(len(data)))
    call("qmodel_calibrate", prepared, (ctypes.c_void_p * 1)(tensor), ctypes.c_size_t(1))
    return made("qmodel_convert", prepared, None)


def few_bits(path, counts, failures):
    """Weights by every width: how the file stores them, in how many bytes, and what others compute with it."""
    data = network()
    float_model = made("qmodel_load_bytes", data, ctypes.c_size_t(len(data)))
    x = eighths(numpy.random.default_rng(2), (1, 36, 8, 8))
    for bits, opset, dtype in FEW_BITS:
        model = calibrated(float_model, x, weight_bits=bits)
        want = run(model, x, (1, 7))
        for form in ("qdq", "qoperator"):
            what = f"weights of {bits} bits as {form}, opset {opset}"
            save(model, path, form, opset)
            onnx.checker.check_model(str(path), full_check=True)
            proto = onnx.load(path)
            takers = {name: node.op_type for node in proto.graph.node for name in node.input}
            for tensor in proto.graph.initializer:
                if not tensor.name.startswith(("cw_", "w_", "v_")) or tensor.name.endswith("_scale"):
                    continue
                stored = dtype if takers[tensor.name] == "DequantizeLinear" else 3
                elements = int(numpy.prod(tensor.dims))
                per_byte = {3: 1, 22: 2, 26: 4}[stored]
                if tensor.data_type != stored or len(tensor.raw_data) != -(-elements // per_byte):
                    failures.append(f"{what}: {tensor.name} is of type {tensor.data_type} in {len(tensor.raw_data)} bytes")
                counts["weights of few bits"] += 1
            int2 = any(tensor.data_type == 26 for tensor in proto.graph.initializer)
            answers = {"ONNX Runtime": onnx_runtime(path, x, fuse=not int2)}
            if form == "qdq" and opset >= 19:  # what the evaluator has of DequantizeLinear
                answers["ONNX"] = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": x})[0]
            for who, got in answers.items():
                error = numpy.abs(got - want).max() / numpy.abs(want).max()
                if not error < TOLERANCE:
                    failures.append(f"{what}: {who} is apart by {error}")
                counts[f"few bits beside {who}"] += 1


def signed_blocks(path, counts, failures):
    """Weights in blocks with scales below zero, which files hold in as many bits, to the bit."""
    quant = FOLDER.parent / "quant"
    for case in json.loads((quant / "signed_blocks.json").read_text())["cases"]:
        if case["name"].startswith("gather"):
            continue  # which takes int64
        model = made("qmodel_load", str(quant / case["file"]).encode())
        save(model, path, "qdq", 25 if case["bits"] == 2 else 21)
        onnx.checker.check_model(str(path), full_check=True)
        for r in case["runs"]:
            x, want = tensor(r["x"]), tensor(r["y"])
            if not (onnx_runtime(path, x, floats=True) == want).all() or not (run(model, x, want.shape) == want).all():
                failures.append(f"signed blocks {case['name']}: apart")
            counts["signed blocks"] += 1


def external_data(path, counts, failures):
    """Files whose large constants lie beside them, one after the other at one path."""
    data = network()
    float_model = made("qmodel_load_bytes", data, ctypes.c_size_t(len(data)))
    x = eighths(numpy.random.default_rng(2), (1, 36, 8, 8))
    for what, model in ("floats", float_model), ("integers", calibrated(float_model, x)), ("4 bits", calibrated(float_model, x, weight_bits=4)):
        want = run(model, x, (1, 7))
        for form, opsets in OPSETS.items():
            for opset in opsets:
                save(model, path, form, opset, external_data=1)
                onnx.checker.check_model(str(path), full_check=True)
                beside = {
                    entry.value for tensor in onnx.load(path, load_external_data=False).graph.initializer
                    for entry in tensor.external_data if entry.key == "location"
                }  # fmt: skip
                there = {file.name for file in path.parent.glob("*.data")}
                error = numpy.abs(onnx_runtime(path, x) - want).max() / numpy.abs(want).max()
                if len(beside) != 1 or beside != there or not error < TOLERANCE:
                    failures.append(f"{what} in {beside} as {form}, opset {opset}: {there} are there, apart by {error}")
                counts["external data"] += 1


def output_grid(path, counts, failures):
    """Files whose output is on a grid: integers up to the last node, and the same floats."""
    data = network()
    float_model = made("qmodel_load_bytes", data, ctypes.c_size_t(len(data)))
    x = eighths(numpy.random.default_rng(2), (1, 36, 8, 8))
    model = calibrated(float_model, x, quantize_outputs=1)
    want = run(model, x, (1, 7))
    for form, opsets in OPSETS.items():
        for opset in opsets:
            what = f"an output on a grid as {form}, opset {opset}"
            save(model, path, form, opset)
            onnx.checker.check_model(str(path), full_check=True)
            nodes = onnx.load(path).graph.node
            makers = {name: node for node in nodes for name in node.output}
            last = makers["y"]
            integers = makers[last.input[0]]
            if last.op_type != "DequantizeLinear" or integers.op_type != {"qdq": "QuantizeLinear", "qoperator": "QGemm"}[form]:
                failures.append(f"{what}: {integers.op_type} and {last.op_type} make it")
            if form == "qoperator" and len(integers.input) != 9:
                failures.append(f"{what}: QGemm has no y_scale and y_zero_point")
            if not (onnx_runtime(path, x) == want).all():
                failures.append(f"{what}: ONNX Runtime gives {onnx_runtime(path, x)}, not {want}")
            counts["outputs on a grid"] += 1


def moved(path, counts, failures):
    """Integers of every recipe that operators move, those of the file and the Reshape that ONNX Runtime puts in front of a product, at the
    opset that files have unless another one is asked for."""
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    random = numpy.random.default_rng(5)
    graph = onnx.helper.make_graph(
        [node("Conv", ["x", "w"], ["c"]), node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]), node("Squeeze", ["t", "first"], ["s"]),
         node("MatMul", ["s", "v"], ["m"]), node("Add", ["m", "b"], ["a"]), node("Transpose", ["a"], ["u"], perm=[2, 0, 1]), node("Unsqueeze", ["u", "first"], ["y"])],
        "network", [value("x", FLOAT32, [1, 4, 6, 6])], [value("y", FLOAT32, None)],
        [onnx.numpy_helper.from_array(eighths(random, shape), name) for name, shape in {"w": (8, 4, 3, 3), "v": (8, 5), "b": 5}.items()]
        + [onnx.numpy_helper.from_array(numpy.array([0]), "first")],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    data = onnx.shape_inference.infer_shapes(model, strict_mode=True).SerializeToString()
    float_model = made("qmodel_load_bytes", data, ctypes.c_size_t(len(data)))
    x = eighths(random, (1, 4, 6, 6))
    for recipe, opset in (b"onnx", 21), (b"x86", 21), (b"qnnpack", 21), (b"nvidia", 20), (b"tflite", 20):
        quantized = calibrated(float_model, x, recipe)
        want = run(quantized, x, (1, 5, 4, 4))
        save(quantized, path, "qdq")
        onnx.checker.check_model(str(path), full_check=True)
        onnx_runtime(path, x)  # whose integers may saturate where a CPU has no sums of 32 bits, but which must take the file
        error = numpy.abs(onnx_runtime(path, x, fuse=False) - want).max() / numpy.abs(want).max()
        written = onnx.load(path).opset_import[0].version
        if written != opset or not error < TOLERANCE:
            failures.append(f"moved by {recipe}: opset {written}, apart by {error}")
        counts["moved integers"] += 1


def windowed(random):
    """A network of one Conv, ConvTranspose or pool over one to three axes and a Relu, and an input."""
    axes = int(random.integers(1, 4))
    op = ("Conv", "ConvTranspose", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool")[random.integers(6)]
    groups = int(random.choice([1, 1, 2, 3, 8]))
    channels = groups * int(random.integers(1, 5) if groups < 8 else 1)
    kernel, strides = random.integers(1, 5, axes), random.integers(1, 4, axes)
    dilations = random.choice([1, 1, 2], axes) if op.startswith("Conv") else numpy.ones(axes, int)
    pads = random.integers(0, kernel.repeat(2).reshape(axes, 2).T)
    length = random.integers(1, 7, axes) + (op != "ConvTranspose") * (kernel - 1) * dilations
    attributes = {} if op == "GlobalAveragePool" else {
        "kernel_shape": kernel, "strides": strides, "pads": pads.ravel(), "dilations": dilations,
    }  # fmt: skip
    names, constants = ["x"], {}
    if op.startswith("Conv"):
        attributes["group"] = groups
        filters = int(random.integers(1, 5))
        shape = (channels, filters) if op == "ConvTranspose" else (groups * filters, channels // groups)
        constants["w"] = random.normal(size=(*shape, *kernel))
        names.append("w")
        if random.integers(2):
            constants["b"] = random.normal(size=groups * filters)
            names.append("b")
    if op == "ConvTranspose":
        # What ONNX Runtime takes of what ONNX allows; and outputs there are.
        attributes["output_padding"] = random.integers(0, strides)
        whole = strides * (length - 1) + (kernel - 1) * dilations + 1
        attributes["pads"] = (pads * (whole > pads.sum(0))).ravel()
    if op == "AveragePool":
        del attributes["dilations"]
        attributes["count_include_pad"] = int(random.integers(2))
    x = [int(random.integers(1, 3)), channels, *map(int, length)]
    attributes = {key: v if isinstance(v, int) else [int(i) for i in v] for key, v in attributes.items()}
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node(op, names, ["u"], **attributes), node("Relu", ["u"], ["y"])], "network", [value("x", FLOAT32, x)],
        [value("y", FLOAT32, None)],
        [onnx.numpy_helper.from_array(array.astype("float32"), name) for name, array in constants.items()],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    return f"{op} of {x} with {attributes}", model.SerializeToString(), random.normal(size=x).astype("float32")


def windows(path, counts, failures):
    """What this library quantizes: every integer is that of ONNX Runtime, or its neighbour where floats were rounded."""
    random = numpy.random.default_rng(3)
    elements = apart = 0
    for _ in range(300):
        what, data, x = windowed(random)
        model = calibrated(made("qmodel_load_bytes", data, ctypes.c_size_t(len(data))), x, quantize_outputs=1)
        for form, opsets in OPSETS.items():
            save(model, path, form, int(random.choice(opsets)))
            onnx.checker.check_model(str(path), full_check=True)
            proto = onnx.load(path)
            scale = next(t for t in proto.graph.initializer if t.name == "y_scale")
            step = float(onnx.numpy_helper.to_array(scale))
            want = onnx_runtime(path, x)
            got = run(model, x, want.shape)
            if count_apart(got, want, step):
                failures.append(f"{what} as {form}: {count_apart(got, want, step)} elements are more than a step apart")
            elements += want.size
            apart += int((numpy.abs(got - want) > step / 2).sum())
            counts[f"windows as {form}"] += 1
    if apart * 1000 > elements:
        failures.append(f"{apart} of {elements} integers of windows are neighbours")


def doubles(path, counts, failures):
    """A network of float64, which ONNX Runtime does not run, as a file that it does, in floats and in integers."""
    folder = FOLDER.parent / "doubles"
    case = json.loads((folder / "doubles.json").read_text())["cases"][0]
    x, want = (numpy.array(case[key][0]["data"]).reshape(case[key][0]["shape"]) for key in ("inputs", "outputs"))
    model = made("qmodel_load", str(folder / f"{case['name']}.onnx").encode())
    for what, exported, tolerance in ("floats", model, TOLERANCE), ("integers", calibrated(model, x), 0.05):
        ours = run(exported, x, want.shape, 2)
        for opset in OPSETS["qdq"]:
            save(exported, path, "qdq", opset)
            onnx.checker.check_model(str(path), full_check=True)
            got = onnx_runtime(path, x)
            for who, other, most in ("PyTorch", want, tolerance), ("this library", ours, TOLERANCE):
                error = numpy.abs(got - other).max() / numpy.abs(want).max()
                if got.dtype != numpy.float64 or not error < most:
                    failures.append(f"float64 in {what}, opset {opset}: apart from {who} by {error}")
            counts["float64"] += 1


def main():
    file = json.loads((FOLDER / "others.json").read_text())
    exceptions = json.loads((FOLDER / "exceptions.json").read_text())["apart"]
    counts, failures, is_inexact = collections.Counter(), [], saturates()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        for entry in file["models"]:
            model = made("qmodel_load", str(FOLDER / f"{entry['name']}.onnx").encode())
            inputs = [tensor(x) for x in file["inputs"][entry["network"]]]
            shape = entry["outputs"][0]["shape"]
            wanted = [run(model, x, shape) for x in inputs]
            for form, opsets in OPSETS.items():
                for opset in opsets:
                    what = f"{entry['name']} as {form}, opset {opset}"
                    try:
                        save(model, path, form, opset)
                    except Refused as e:
                        counts["refused: " + str(e).split("): ")[-1]] += 1
                        continue
                    try:
                        onnx.checker.check_model(str(path), full_check=True)
                        got = [onnx_runtime(path, x) for x in inputs]
                    except Exception as e:
                        failures.append(f"{what}: {e}")
                        continue
                    counts[form] += 1
                    written = onnx.load(path)
                    operators = [node.op_type for node in written.graph.node]
                    counts["operators on integers"] += sum(o.startswith("QLinear") or o == "QGemm" for o in operators)
                    apart = sum(count_apart(g, w, entry["step"]) for g, w in zip(got, wanted))
                    if apart and is_inexact and form == "qoperator" and has_signed_matrix(written):
                        counts["not compared: sums of ONNX Runtime saturate on this CPU"] += 1
                    elif apart != exceptions.get(entry["name"], {"elements": 0})["elements"]:
                        failures.append(f"{what}: {apart} elements are apart")
            LIBRARY.qmodel_free(model)
        without_samples(path, counts, failures)
        few_bits(path, counts, failures)
        signed_blocks(path, counts, failures)
        output_grid(path, counts, failures)
        external_data(path.with_name("beside.onnx"), counts, failures)
        moved(path, counts, failures)
        windows(path, counts, failures)
        doubles(path, counts, failures)
    print(*(f"{count} {what}" for what, count in sorted(counts.items())), *failures, sep="\n")
    return 1 if failures or not counts["qoperator"] else 0


if __name__ == "__main__":
    sys.exit(main())
