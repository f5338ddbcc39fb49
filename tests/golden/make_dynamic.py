#!/usr/bin/env python3
"""Makes quant/dynamic_linear.json: what PyTorch's torch.ao.quantization.quantize_dynamic makes of two Linear layers.

Engines fbgemm, x86 and qnnpack, weights per tensor (the default qconfig) and per channel: the integers of the weights, and
outputs for inputs of ordinary, tiny and vanishing ranges.

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_dynamic.py
"""

import pathlib
import warnings

import numpy as np
import torch
from torch.ao.quantization import default_dynamic_qconfig, per_channel_dynamic_qconfig, quantize_dynamic

import golden_json

warnings.simplefilter("ignore")
torch.set_num_threads(1)
random = np.random.default_rng(41)


def floats(*shape, scale=1.0):
    return (random.normal(size=shape) * scale).astype(np.float32)


CONSTANTS = {"first.weight": floats(12, 17, scale=0.3), "first.bias": floats(12), "second.weight": floats(5, 12, scale=0.4)}
# A zero half way between two integers, where the zero point of a scale in float32 would be another one.
tie = np.zeros((1, 17), np.float32)
tie[0, :3] = -227, 3, 227
INPUTS = {
    "normal": floats(4, 17),
    "positive": np.abs(floats(3, 17)),
    "tiny": floats(2, 17, scale=1e-6),
    "far": floats(2, 17, scale=1e5),
    "zeros": np.zeros((2, 17), np.float32),
    "tie": tie,
}


def network():
    net = torch.nn.Sequential(torch.nn.Linear(17, 12), torch.nn.ReLU(), torch.nn.Linear(12, 5, bias=False)).eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.from_numpy(CONSTANTS["first.weight"]))
        net[0].bias.copy_(torch.from_numpy(CONSTANTS["first.bias"]))
        net[2].weight.copy_(torch.from_numpy(CONSTANTS["second.weight"]))
    return net


def grid_of(q):
    if q.qscheme() == torch.per_tensor_affine:
        return {"scale": np.float32([q.q_scale()]), "q": q.int_repr().numpy()}
    return {"scale": q.q_per_channel_scales().numpy().astype(np.float32), "q": q.int_repr().numpy()}


def main():
    cases = []
    for engine in ("fbgemm", "x86", "qnnpack"):
        for scheme, qconfig in (("per_tensor_symmetric", default_dynamic_qconfig), ("per_channel_symmetric", per_channel_dynamic_qconfig)):
            if engine == "qnnpack" and scheme == "per_channel_symmetric":
                continue  # which it does not have
            torch.backends.quantized.engine = engine
            net = quantize_dynamic(network(), {torch.nn.Linear: qconfig}, dtype=torch.qint8)
            outputs = {name: net(torch.from_numpy(x)).numpy() for name, x in INPUTS.items()}
            cases.append({"recipe": engine, "settings": {"weight_scheme": scheme}, "outputs": outputs,
                          "weights": {"first.weight": grid_of(net[0].weight()), "second.weight": grid_of(net[2].weight())}})  # fmt: skip
    golden_json.write(pathlib.Path(__file__).parent / "quant" / "dynamic_linear.json", {
        "source": f"torch {torch.__version__}", "constants": CONSTANTS, "inputs": INPUTS, "cases": cases})  # fmt: skip
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
