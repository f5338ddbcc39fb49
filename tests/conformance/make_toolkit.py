#!/usr/bin/env python3
"""Makes toolkit.json: conformance cases of NVIDIA's pytorch-quantization on a network. Answers are its formulas in NumPy,
since the package needs CUDA to be installed: a QuantConv2d and a QuantLinear fake-quantize their input per tensor and
their weights per output channel, with an amax that calibrators find on a network that is not quantized yet.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/conformance/make_toolkit.py
"""

import pathlib
import sys

import numpy as np
import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "golden"))

import make_calibrators  # noqa: E402
from make_cases import call, case, expected_floats, floats, nvidia_step, quantized_run, write  # noqa: E402
from make_networks import data, export, settle  # noqa: E402

CLOSE = 1e-5  # of float sums, once all integers are equal
CONFIG = [call("qconfig_create", "c", name="nvidia")]


def set_for(selector, settings):
    return call("qconfig_set", c="$c", selector=selector, settings=settings)


class Net(nn.Module):
    """A convolution and a Linear, without biases, which we round and the toolkit does not."""

    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.fc = nn.Conv2d(2, 3, 3, bias=False), nn.ReLU(), nn.Linear(12, 3, bias=False)

    def forward(self, x):
        return self.fc(self.relu(self.conv(x)).flatten(1))


def fake_quant(x, amax):
    """fake_tensor_quant; on export it saturates as QuantizeLinear does, at -128, which divides: no case has such a tie."""
    scale = np.float32(127) / np.float32(amax)
    q = np.rint(x.numpy() * scale)
    assert (q == np.rint(x.numpy() / np.float32(nvidia_step(amax, 127)))).all()
    return torch.from_numpy(np.clip(q, -128, 127).astype(np.float32) / scale)


class Quant(nn.Module):
    """A quantized layer: QuantConv2d or QuantLinear."""

    def __init__(self, layer, per_channel=True):
        super().__init__()
        self.layer, self.amax, self.quantizes = layer, None, False
        weight = layer.weight.detach()
        axes = tuple(range(1, weight.dim())) if per_channel else tuple(range(weight.dim()))
        scale = 127 / weight.abs().amax(axes, keepdim=True)
        self.weight = torch.clamp(torch.round(weight * scale), -127, 127) / scale

    def forward(self, x):
        if not self.quantizes:  # enable_calib(), disable_quant()
            self.amax = max(self.amax or 0, float(x.abs().max()))
            return self.layer(x)
        x = fake_quant(x, self.amax)
        if isinstance(self.layer, nn.Linear):
            return nn.functional.linear(x, self.weight)
        return nn.functional.conv2d(x, self.weight)


def quantized(net, samples, per_channel=True, conv=True, fc=True):
    """Calibrated by `max` on samples; amax loaded, quantization enabled."""
    other = Net()
    other.conv, other.fc = Quant(net.conv, per_channel) if conv else net.conv, Quant(net.fc, per_channel) if fc else net.fc
    with torch.no_grad():
        for sample in samples:
            other(sample)
    for layer in (other.conv, other.fc):
        layer.quantizes = True
    return other


def result(net, x):
    with torch.no_grad():
        return net(x)


def network():
    net = settle(Net(), 5)
    x, samples = data(6, 2, 2, 4, 4, limit=14), [data(7 + i, 3, 2, 4, 4, limit=9 + 8 * i) for i in range(2)]
    return net, export("conv_fc", net, x), x, samples


def initialize():
    """quant_modules.initialize(): every layer of a type is replaced at once; a list of types; other descriptors."""
    net, loaded, x, samples = network()
    every, fc = {"per_channel": True}, {"conv": False}
    cases = {
        "every_layer": ([], every, ["int8", "int8", "int8"]),
        "one_type": ([set_for("*", None), set_for("op:MatMul", {})], fc, ["float32", "int8", "int8"]),
        "all_but_one_type": ([set_for("op:MatMul", None)], {"fc": False}, ["int8", "float32", "float32"]),
        "default_descriptor": ([set_for("*", {"weight_scheme": "per_tensor_symmetric"})], {"per_channel": False}, ["int8", "int8", "int8"]),
    }  # fmt: skip
    for name, (settings, replaced, dtypes) in cases.items():
        other = quantized(net, samples, **replaced)
        y = result(other, x)
        assert not torch.allclose(y, result(net, x), atol=1e-3)
        nodes = [{"op": op, "dtype": dtype} for op, dtype in zip(("Conv", "Flatten", "MatMul"), dtypes)]
        case(f"initialize/{name}", ["N11"], loaded, *quantized_run([*CONFIG, *settings], samples, x, "y"), call("qmodel_inspect", "report", m="$q"),
             {"expect": "$report", "json": {"nodes": nodes}}, expected_floats("y", y, tolerance=CLOSE))  # fmt: skip


def methods():
    """max, entropy, percentile and mse, on an input with outliers that came in several batches."""
    net = settle(nn.Linear(6, 3, bias=False), 15)
    batches = [make_calibrators.heavy(16 + i, 240, scale=1 + 0.5 * i).reshape(40, 6) for i in range(3)]
    x = torch.from_numpy(batches[1][:4])
    loaded = export("linear_6_3", net, x)
    counts, edges = make_calibrators.nvidia_histogram(batches, 2048)
    chosen = {
        "max": (max(np.abs(batch).max() for batch in batches), {}),
        "entropy": (make_calibrators.entropy_amax(counts, edges, 128), {"observer": "nvidia_entropy"}),
        "percentile_99_9": (make_calibrators.percentile_amax(counts, edges, 99.9), {"observer": "nvidia_percentile", "percentile": 99.9}),
        "percentile_99": (make_calibrators.percentile_amax(counts, edges, 99.0), {"observer": "nvidia_percentile", "percentile": 99.0}),
        "mse": (make_calibrators.mse_amax(counts, edges, 127), {"observer": "nvidia_mse"}),
    }  # fmt: skip
    assert len({float(amax) for amax, _ in chosen.values()}) == len(chosen)
    for name, (amax, settings) in chosen.items():
        layer = Quant(net)
        layer.amax, layer.quantizes = amax, True
        # The calibrator is that of inputs: weights keep their largest magnitudes.
        config = [*CONFIG, set_for("*", settings)]
        report = {"inputs": [{"quantized_dtype": "int8", "scale": float(np.float32(nvidia_step(amax, 127))), "zero_point": 0}]}
        case(f"calibration/{name}", ["N12"], loaded, *quantized_run(config, [torch.from_numpy(batch) for batch in batches], x, "y"),
             call("qmodel_inspect", "report", m="$q"), {"expect": "$report", "json": report, "tolerance": 1e-9},
             expected_floats("y", result(layer, x), tolerance=CLOSE))  # fmt: skip


def protocol():
    """enable_calib, disable_quant; data; load_calib_amax, enable_quant: the second layer sees what a network in float gives
    it, an amax is loaded once there is data, and then stays, also as a file for another process."""
    net, loaded, x, samples = network()
    other = quantized(net, samples)
    hidden = torch.relu(other.conv(torch.cat(samples)))
    assert float(hidden.abs().max()) != other.fc.amax, "calibration of the second layer with the first quantized would not differ"
    grids = {"inputs": [{"scale": float(np.float32(nvidia_step(other.conv.amax, 127)))}],
             "nodes": [{"op": "Conv", "output_scale": float(np.float32(nvidia_step(other.fc.amax, 127)))}, {"op": "Flatten"}, {"op": "MatMul"}]}  # fmt: skip
    expect_grids = [call("qmodel_inspect", "report", m="$q"), {"expect": "$report", "json": grids, "tolerance": 1e-9}]
    prepared = [*CONFIG, call("qmodel_prepare", "p", m="$m", config="$c", mode=0)]
    none = {**call("qmodel_convert", prepared="$p"), "status": "QTN_ESTATE", "message": "convert: the model has not been calibrated"}
    feed = [step for i, sample in enumerate(samples) for step in (floats(f"s{i}", sample), call("qmodel_calibrate", prepared="$p", inputs=[f"$s{i}"]))]
    run = [floats("x", x), call("qsession_create", "n", m="$q"), call("qsession_run", "y", s="$n", inputs=["$x"]),
           expected_floats("y", result(other, x), tolerance=CLOSE)]  # fmt: skip
    converted = call("qmodel_convert", "q", prepared="$p")
    case("protocol/in_one_process", ["N13"], loaded, *prepared, none, *feed, converted, *expect_grids, *run)
    handed_on = [call("qmodel_save_calibration", prepared="$p", path="@amax.qcal"), *prepared[1:], none,
                 call("qmodel_load_calibration", prepared="$p", path="@amax.qcal")]  # fmt: skip
    case("protocol/by_a_file", ["N13"], loaded, *prepared, *feed, *handed_on, converted, *expect_grids, *run)
    larger = [floats("large", samples[-1] * 4), call("qsession_run", "z", s="$n", inputs=["$large"]), *expect_grids,
              call("qsession_run", "again", s="$n", inputs=["$x"]), expected_floats("again", result(other, x), tolerance=CLOSE)]  # fmt: skip
    case("protocol/amax_stays", ["N13"], loaded, *prepared, *feed, converted, *run, *larger)


def pairs():
    """What the toolkit exports: weights in float behind a QuantizeLinear and a DequantizeLinear, or as integers; one network,
    whose steps in the file are amax / 127."""
    net, loaded, x, samples = network()
    other = quantized(net, samples)
    y = result(other, x)
    conv, fc = (float(np.float32(nvidia_step(layer.amax, 127))) for layer in (other.conv, other.fc))
    grids = {"inputs": [{"scale": conv, "zero_point": 0, "quantized_dtype": "int8"}],
             "nodes": [{"op": "Conv", "dtype": "int8", "output_scale": fc}, {"op": "Flatten", "dtype": "int8"}, {"op": "MatMul", "dtype": "int8"}]}  # fmt: skip
    equal = {"call": "qtensor_equal", "equals": 1}
    steps = [loaded, *quantized_run(CONFIG, samples, x, "y")]
    for name, attrs in (("integers", {}), ("floats", {"weight_pairs": 1}), ("floats13", {"weight_pairs": 1, "opset": 13})):
        steps += [call("qmodel_save", m="$q", path=f"@{name}.onnx", attrs=attrs), call("qmodel_load", name, path=f"@{name}.onnx"),
                  call("qsession_create", f"{name}_session", m=f"${name}"), call("qsession_run", f"{name}_y", s=f"${name}_session", inputs=["$x"]),
                  {**equal, "with": {"a": "$y", "b": f"${name}_y"}}, call("qmodel_inspect", f"{name}_report", m=f"${name}"),
                  {"expect": f"${name}_report", "json": grids, "tolerance": 1e-9}]  # fmt: skip
    refused = {**call("qmodel_save", m="$q", path="@no.onnx", attrs={"weight_pairs": 1, "format": "qoperator"}), "status": "QTN_EINVAL",
               "message": "qmodel_save: weight_pairs is of format qdq, not of qoperator"}  # fmt: skip
    case("export/pairs_on_weights", ["N16", "N18", "N19"], *steps, expected_floats("y", y, tolerance=CLOSE), refused)


def main():
    initialize()
    pairs()
    methods()
    protocol()
    write("toolkit.json")


if __name__ == "__main__":
    main()
