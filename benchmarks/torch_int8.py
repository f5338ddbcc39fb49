"""PyTorch's int8 networks: FX graph mode static quantization, made fast by TorchScript (trace and freeze).

The networks are torchvision's with the weights that models/export.py gives them, so the same as in the .onnx files.
Quantization in the exported graph (PT2E) with its Inductor back end left torch for torchao and is not measured.
"""

import copy
import warnings

import numpy as np
import torch
from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx

import peer_lib
from models import export

warnings.simplefilter("ignore")  # TorchScript and FX are deprecated, but what replaces them here is not in torch


def engines():
    return [engine for engine in torch.backends.quantized.supported_engines if engine != "none"]


def quantized(model, engine, samples):
    """One TorchScript module, calibrated on the samples one by one."""
    torch.backends.quantized.engine = engine
    with torch.inference_mode():
        prepared = quantize_fx.prepare_fx(copy.deepcopy(model), get_default_qconfig_mapping(engine), (samples[:1],))
        for i in range(len(samples)):
            prepared(samples[i : i + 1])
        converted = quantize_fx.convert_fx(prepared)
        return torch.jit.freeze(torch.jit.trace(converted, samples[:1], check_trace=False))


def check_weights(model, path, samples):
    """That the module and the .onnx file are one network."""
    with torch.inference_mode():
        ours = model(samples[:1]).numpy()
    (theirs,) = peer_lib.ort_run(path, samples[:1].numpy(), 1).values()
    if not np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max():
        raise RuntimeError(f"{path} has other weights than models/export.py gives now: export it again")


def modules(arguments, path):
    """The int8 modules of a float model by engine; made once, then kept in the cache."""
    folder = peer_lib.cache_folder() / f"torch-quantized-{torch.__version__}"
    files = {engine: folder / f"{path.stem}-{engine}.pt" for engine in engines()}
    old = [e for e, file in files.items() if not file.exists() or file.stat().st_mtime < path.stat().st_mtime]
    if old:
        folder.mkdir(parents=True, exist_ok=True)
        samples = torch.from_numpy(np.load(peer_lib.samples_path(arguments))[: arguments.calibration])
        model = export.network(path.stem)
        check_weights(model, path, samples)
        for engine in old:
            torch.jit.save(quantized(model, engine, samples), files[engine])
    found = {}
    for engine, file in files.items():
        torch.backends.quantized.engine = engine  # weights are packed for it while they are read
        found[engine] = torch.jit.load(file)
    return found
