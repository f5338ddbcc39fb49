"""A zoo of architectures with seeded random weights, exported as their users export them.

`NAMES` are those that benchmarks/zoo.py checks; `make(name, folder)` also takes those of zoo_full_size and zoo_timm, those of
zoo_keras, which an interpreter with TensorFlow makes, and any other builder of torchvision. A name may end in the exporter: `_opset11` is PyTorch's older one, `_dynamo` and `_dynamo20` the
newer one at opsets 18 and 20, and `_symbolic` the older one with names in place of the sizes of first and last axes.
"""

import contextlib
import pathlib
import re
import warnings

import numpy as np
import torch
import torch.nn as nn

from models import export, zoo_full_size, zoo_keras, zoo_small, zoo_timm, zoo_torchvision, zoo_trained, zoo_transformers

SEED = 0
SAMPLES = 8
ALSO = (
    "resnet18_dynamo", "resnet18_opset11", "mobilenet_v3_large_dynamo", "mobilenet_v3_large_dynamo20",
    "vit_b_16_dynamo20", "minilm_symbolic", "segformer_symbolic", "text_lstm_symbolic", "crnn_symbolic",
    "swin_t_dynamo", "googlenet_opset11", "shufflenet_v2_x1_0_opset11", "convnext_tiny_opset14", "text_lstm_opset11",
    "text_gru_opset14", "text_lstm_dynamo", "unet_groupnorm_opset14", "unet_groupnorm_dynamo20", "minilm_opset11",
    "minilm_opset14", "minilm_dynamo20", "segformer_dynamo", "wav2vec2_dynamo20", "crnn_opset14", "conv_tasnet_dynamo",
    "spatial_transformer_dynamo20",
)  # fmt: skip
NEED_NEWER_EXPORTER = (
    {"spatial_transformer", "mvit_v1_b", "mvit_v2_s", "patchtsmixer"}
    | zoo_transformers.NEEDS_NEWER_EXPORTER
    | zoo_full_size.NEEDS_NEWER_EXPORTER
    | zoo_timm.NEEDS_NEWER_EXPORTER
)
CHAOTIC = ("levit",)  # in float not even the same in two orders of summation, once its activations do not vanish
NAMES = (*zoo_trained.NETWORKS, *zoo_torchvision.NAMES, *zoo_transformers.NAMES, *zoo_small.NETWORKS, *ALSO)


def settle(module, samples):
    """Some heads start with zeros, behind which nothing can be measured, and activations explode or vanish where
    BatchNorm has the statistics of nothing: those of the samples take their place."""
    for name, parameter in module.named_parameters():
        if name.endswith("weight") and parameter.ndim > 1 and not parameter.abs().max():
            nn.init.normal_(parameter, std=0.02)
    norms = [part for part in module.eval().modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    norms = norms if samples else []

    def measure(norm, inputs):
        norm.train(inputs[0].numel() > inputs[0].shape[1])  # a single value has no variance

    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # cumulative average
    for block in module.modules():
        if type(block).__name__ in export.RESIDUAL_BLOCKS:  # trained branches add little; random ones make chaos
            branch = [part for name, part in block.named_modules() if part in norms and "downsample" not in name]
            if branch:
                branch[-1].weight *= export.RESIDUAL_SCALE
    hooks = [norm.register_forward_pre_hook(measure) for norm in norms]
    for sample in samples if norms else []:
        module(*sample.values())
    for hook in hooks:
        hook.remove()
    return module.eval()


def network(name):
    """The module in evaluation mode, always with the same weights; its samples by name; options of the exporter."""
    torch.manual_seed(SEED)
    ending = re.search("(_dynamo|_opset|_symbolic)([0-9]*)$", name)
    options = {"dynamo": False, "opset_version": 17}
    if ending:
        name = name[: ending.start()]
        options = {"dynamo": ending[1] == "_dynamo", "opset_version": int(ending[2] or 18)}
        if ending[1] == "_symbolic":
            options |= {"opset_version": 17, "dynamic_axes": {}}
    elif name in NEED_NEWER_EXPORTER:
        options = {"dynamo": True, "opset_version": 18}
    if name in zoo_small.NETWORKS:
        module, sample = zoo_small.NETWORKS[name]()
        samples = [sample(index) for index in range(SAMPLES)]
    else:
        rooms = (room for room in (zoo_transformers, zoo_full_size, zoo_timm) if name in room.NAMES)
        module, samples = next(rooms, zoo_torchvision).network(name, SAMPLES)
    with torch.no_grad():
        return settle(module, [] if name in CHAOTIC else samples[:4]), samples, options


def samples_in(path):
    if not path.exists():
        return 0
    with np.load(path) as inputs:
        return len(inputs[inputs.files[0]])


def make(name, folder):
    """FOLDER/NAME.onnx and FOLDER/NAME.npz (samples, stacked by input), unless they are there with as many samples."""
    folder = pathlib.Path(folder)
    path = folder / f"{name}.onnx"
    if path.exists() and samples_in(path.with_suffix(".npz")) == SAMPLES:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if name.startswith("keras_"):
        samples = zoo_keras.make(name, path, SAMPLES)
    else:
        samples = zoo_trained.write(name, path, SAMPLES) if name in zoo_trained.NETWORKS else export_network(name, path)
    np.savez(path.with_suffix(".npz"), **{key: np.stack([sample[key] for sample in samples]) for key in samples[0]})
    return path


def export_network(name, path):
    """PATH gets the network; returns its samples."""
    with warnings.catch_warnings(), contextlib.suppress(ImportError), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.backends.mha.set_fastpath_enabled(False)  # which the exporters do not know
        module, samples, options = network(name)
        if options["dynamo"]:
            options |= {"external_data": False, "verbose": False}
        values = tuple(samples[0].values())
        if "dynamic_axes" in options:
            axes = {key: {0: "batch", value.ndim - 1: "last"} for key, value in samples[0].items()}
            options["dynamic_axes"] = axes
        if name in zoo_torchvision.DETECTION:
            module(*values)
            options["output_names"] = [f"head_{index}" for index in range(len(module.heads))]
        torch.onnx.export(module, values, str(path), input_names=list(samples[0]), **options)
    return [{key: value.numpy() for key, value in sample.items()} for sample in samples]
