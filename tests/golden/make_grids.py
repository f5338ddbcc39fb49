#!/usr/bin/env python3
"""Makes quant/grids.json: element types that are only stored, scales per block, and grids of TensorFlow Lite and NVIDIA.

  codes     float16, bfloat16, float8 and float4 bit patterns of floats, and the floats of patterns (ml_dtypes)
  powers    float8_e8m0 patterns of floats by each way to round (onnx.numpy_helper)
  packed    int4, uint4, int2 and uint2 as bytes (onnx.numpy_helper)
  blocks    QuantizeLinear and DequantizeLinear per block (ONNX's reference evaluator)
  float8    the same to float8 and float4 types, per tensor
  tflite    QUANTIZE and DEQUANTIZE (LiteRT's interpreter)
  nvidia    tensor_quant of NVIDIA's toolkit: its three float32 operations, in NumPy

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_grids.py
"""

import pathlib

import flatbuffers
import ml_dtypes
import numpy as np
import onnx.reference
import tflite
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from onnx import TensorProto, helper, numpy_helper

import golden_json

NARROW = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4_e2m1": ml_dtypes.float4_e2m1fn,
}
PACKED = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "int2": TensorProto.INT2, "uint2": TensorProto.UINT2}


def f32(*values):
    return np.array(values, np.float32)


def noise(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).round(3).astype(np.float32)


def codes():
    cases = []
    for name, dtype in NARROW.items():
        unsigned = np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16
        if unsigned == np.uint8:
            patterns = np.arange(16 if "float4" in name else 256, dtype=np.uint8)
        else:
            patterns = np.array([0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x8001, 0xC000, 0xFBFF], unsigned)
        decoded = patterns.view(dtype).astype(np.float32)
        finite = np.sort(np.unique(np.abs(decoded[np.isfinite(decoded)])))
        middles = (finite[:-1].astype(np.float64) + finite[1:]) / 2  # ties, some of them
        step = max(1, len(middles) // 40)
        ties = middles[::step].astype(np.float32)
        values = np.concatenate(
            [ties, -ties, np.nextafter(ties, np.float32(np.inf)), noise(1, 40), noise(2, 20, scale=1e-3),
             f32(0, -0.0, 1e-30, -1e-45, np.inf, -np.inf, np.nan, 65504, 65519, 65520, 3e38)]
        ).astype(np.float32)
        keep = values if unsigned == np.uint16 else values[np.isnan(values) | (np.abs(values) <= finite[-1])]
        with np.errstate(over="ignore"):
            encoded = keep.astype(dtype).view(unsigned)
        # One NaN is as good as another: compared as NaN, not by its bits.
        cases.append({"dtype": name, "patterns": patterns, "decoded": decoded, "values": keep, "encoded": encoded})
    return cases


def powers():
    exponents = np.arange(-128, 128, 5).astype(np.float64)
    values = np.concatenate([f * 2.0**exponents for f in (1, 1.25, 1.4999999, 1.5, 1.75)])
    values = np.concatenate([values[np.abs(values) < 3.4e38], [0, -0.0, -3, 1e-45, 6e-39, 3.4e38, np.inf, np.nan]])
    values = values.astype(np.float32)
    cases = []
    for saturate in (True, False):
        for rounding in ("up", "down", "nearest"):
            encoded = numpy_helper.to_float8e8m0(values, saturate, rounding)
            cases.append({"saturate": int(saturate), "rounding": rounding, "values": values,
                          "encoded": encoded.view(np.uint8), "decoded": encoded.astype(np.float32)})  # fmt: skip
    return cases


def packed():
    cases = []
    for name, code in PACKED.items():
        bits = int(name[-1])
        low = -(1 << (bits - 1)) if name[0] == "i" else 0
        values = np.arange(7, dtype=np.int8) % (1 << bits) + low
        tensor = helper.make_tensor("t", code, [7], values.astype(np.int64).tolist())
        bytes_ = numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
        cases.append({"dtype": name, "values": values, "bytes": np.frombuffer(bytes_, np.uint8)})
    return cases


def evaluate(node, feeds, opset=25):
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    graph = helper.make_graph([node], "case", inputs, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0]


def blocks():
    cases = []
    for seed, (dtype, shape, axis, block) in enumerate(
        [
            ("int4", (3, 8), 1, 4), ("uint4", (2, 7), 1, 3), ("int8", (6, 5), 0, 2), ("uint8", (2, 5, 3), 1, 2),
            ("int16", (2, 4, 2), -1, 2), ("int2", (4, 4), 0, 2), ("uint2", (1, 9), -1, 4), ("int8", (2, 3), 1, 1),
        ]
    ):  # fmt: skip
        numpy_dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype.upper()))
        at = axis % len(shape)
        grid = tuple(-(-d // block) if i == at else d for i, d in enumerate(shape))
        rng = np.random.default_rng(seed)
        scale = rng.uniform(0.05, 0.6, size=grid).round(3).astype(np.float32)
        low, high = {"int4": (-8, 8), "uint4": (0, 16), "int2": (-2, 2), "uint2": (0, 4)}.get(dtype, (0, 100))
        zero = rng.integers(low, high, size=grid).astype(numpy_dtype)
        x = noise(100 + seed, *shape)
        attrs = {"axis": axis, "block_size": block}
        q = evaluate(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **attrs), {"x": x, "s": scale, "z": zero})
        y = evaluate(helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **attrs), {"q": q, "s": scale, "z": zero})
        cases.append({"dtype": dtype, "axis": axis, "block_size": block, "scale": scale,
                      "zero_point": zero.astype(np.int64), "x": x, "q": q.astype(np.int64), "dequantized": y})  # fmt: skip
    return cases


def float8():
    cases = []
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1"):
        zero = np.zeros((), NARROW[name])
        x = np.concatenate([noise(7, 30), f32(0, 1000, -1000, 1e6, 1e-3, 13.5)])
        scale = np.float32(0.037)
        q = evaluate(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]), {"x": x, "s": scale, "z": zero})
        y = evaluate(helper.make_node("DequantizeLinear", ["q", "s"], ["y"]), {"q": q, "s": scale})
        cases.append({"dtype": name, "scale": scale, "x": x, "q": q.view(np.uint8), "dequantized": y.astype(np.float32),
                      "odd": y.astype(np.float32)[1::2]})  # fmt: skip
    return cases


def lite_model(dtype, size, scale, zero_point):
    """A .tflite file: x float32 -> QUANTIZE -> q -> DEQUANTIZE -> y."""
    b = flatbuffers.Builder(1024)

    def vector(start, offsets):
        start(b, len(offsets))
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    def tensor(name, kind, quantization):
        text = b.CreateString(name)
        shape = b.CreateNumpyVector(np.array([size], np.int32))
        tflite.TensorStart(b)
        tflite.TensorAddShape(b, shape)
        tflite.TensorAddType(b, kind)
        tflite.TensorAddBuffer(b, 0)
        tflite.TensorAddName(b, text)
        if quantization is not None:
            tflite.TensorAddQuantization(b, quantization)
        return tflite.TensorEnd(b)

    def operator(index, source, target):
        inputs, outputs = (b.CreateNumpyVector(np.array([i], np.int32)) for i in (source, target))
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, index)
        tflite.OperatorAddInputs(b, inputs)
        tflite.OperatorAddOutputs(b, outputs)
        return tflite.OperatorEnd(b)

    def code(builtin, version):
        tflite.OperatorCodeStart(b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, builtin)
        tflite.OperatorCodeAddBuiltinCode(b, builtin)
        tflite.OperatorCodeAddVersion(b, version)
        return tflite.OperatorCodeEnd(b)

    scales = b.CreateNumpyVector(np.array([scale], np.float32))
    zeros = b.CreateNumpyVector(np.array([zero_point], np.int64))
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddScale(b, scales)
    tflite.QuantizationParametersAddZeroPoint(b, zeros)
    grid = tflite.QuantizationParametersEnd(b)
    kinds = {"int8": tflite.TensorType.INT8, "uint8": tflite.TensorType.UINT8, "int16": tflite.TensorType.INT16}
    tensors = vector(
        tflite.SubGraphStartTensorsVector,
        [tensor("x", tflite.TensorType.FLOAT32, None), tensor("q", kinds[dtype], grid),
         tensor("y", tflite.TensorType.FLOAT32, None)],
    )  # fmt: skip
    operators = vector(tflite.SubGraphStartOperatorsVector, [operator(0, 0, 1), operator(1, 1, 2)])
    inputs = b.CreateNumpyVector(np.array([0], np.int32))
    outputs = b.CreateNumpyVector(np.array([1, 2], np.int32))
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensors)
    tflite.SubGraphAddInputs(b, inputs)
    tflite.SubGraphAddOutputs(b, outputs)
    tflite.SubGraphAddOperators(b, operators)
    graphs = vector(tflite.ModelStartSubgraphsVector, [tflite.SubGraphEnd(b)])
    codes_ = vector(
        tflite.ModelStartOperatorCodesVector,
        [code(tflite.BuiltinOperator.QUANTIZE, 3), code(tflite.BuiltinOperator.DEQUANTIZE, 5)],
    )
    tflite.BufferStart(b)
    buffers = vector(tflite.ModelStartBuffersVector, [tflite.BufferEnd(b)])
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, codes_)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, buffers)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def lite():
    cases = []
    for seed, (dtype, scale, zero) in enumerate(
        [("int8", 0.25, 0), ("int8", 0.1, -7), ("uint8", 0.25, 128), ("int16", 0.001, 0)]
    ):
        x = np.concatenate([np.arange(-20, 20, dtype=np.float32) * np.float32(scale / 2), noise(seed, 40), f32(1e6, -1e6)])
        interpreter = Interpreter(
            model_content=lite_model(dtype, len(x), scale, zero),
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        )
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        q, y = (interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details())
        cases.append({"dtype": dtype, "scale": np.float32(scale), "zero_point": zero, "x": x, "q": q, "dequantized": y})
    return cases


def nvidia():
    cases = []
    for bits, unsigned, amax in [(8, False, 1.7), (8, True, 0.99), (4, False, 2.5), (4, True, 1.0), (8, False, 3e-8)]:
        bound = np.float32(2.0 ** (bits - 1 + unsigned) - 1)
        x = noise(bits, 60)
        x = np.abs(x) if unsigned else x
        amax = np.float32(amax)
        vanishing = amax <= np.float32(2.0**-24)
        scale = np.float32(1) if vanishing else bound / amax
        x = x * amax if vanishing else x
        q = np.clip(np.rint(x * scale), np.float32(0) if unsigned else -bound, bound)
        q = q.astype(np.int64)  # integers have no -0
        cases.append({"bits": bits, "unsigned": int(unsigned), "amax": amax, "x": x, "q": q,
                      "fake": q.astype(np.float32) / scale})  # fmt: skip
    return cases


def main():
    parts = {"codes": codes(), "powers": powers(), "packed": packed(), "blocks": blocks(), "float8": float8(),
             "tflite": lite(), "nvidia": nvidia()}  # fmt: skip
    golden_json.write(pathlib.Path(__file__).parent / "quant" / "grids.json", parts)


if __name__ == "__main__":
    main()
