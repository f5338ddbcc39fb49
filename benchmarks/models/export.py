#!/usr/bin/env python3
"""Exports the float networks of the benchmarks to ONNX, with random but well-behaved weights.

Makes, in a folder outside the repository:
  <network>.onnx   torchvision's architectures, opset 17, input "input" float32 [batch, 3, 224, 224], output "output"
                   [batch, 1000]; Conv + BatchNormalization are folded by the exporter
  resnet18_bn.onnx the same resnet18 with its BatchNormalization nodes kept
  inputs.npy       float32 [16, 3, 224, 224], smooth image-like content, mean 0 and standard deviation 1

No trained weights are downloaded. Speed does not depend on the weights, but the error of quantization does: plain
random initialization lets activations explode or vanish, so the BatchNorm layers get varied scales and shifts, and
running statistics measured on seeded batches. Top-1 of these networks has no meaning; the distance of int8 from float
has.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/models/export.py [--out DIR] [NETWORK ...]
"""

import argparse
import os
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import torchvision

NETWORKS = (
    "resnet18",
    "resnet18_bn",
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
    "efficientnet_b0",
    "densenet121",
)
OPSET = 17
SEED = 0
IMAGE_SIZE = 224
RESIDUAL_BLOCKS = ("BasicBlock", "Bottleneck", "InvertedResidual", "MBConv")
RESIDUAL_SCALE = 0.3
CALIBRATION_BATCHES = 4
CALIBRATION_BATCH_SIZE = 16


def make_images(count, seed):
    """Images with the 1/f spectrum of photographs (noise at octaves) and a few flat rectangles for hard edges."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.zeros(count, 3, IMAGE_SIZE, IMAGE_SIZE)
    for octave in range(6):
        cells = 4 << octave
        noise = torch.randn(count, 3, cells, cells, generator=generator)
        # Most of the energy is shared by the three channels, as in photographs.
        noise = 0.7 * noise.mean(dim=1, keepdim=True) * 3**0.5 + 0.3 * noise
        images += F.interpolate(noise, size=(IMAGE_SIZE, IMAGE_SIZE), mode="bicubic", align_corners=False) / 2**octave
    for image in images:
        for _ in range(4):
            top, left = torch.randint(0, IMAGE_SIZE - 32, (2,), generator=generator).tolist()
            height, width = torch.randint(16, 96, (2,), generator=generator).tolist()
            image[:, top : top + height, left : left + width] += torch.randn(3, 1, 1, generator=generator)
    return (images - images.mean()) / images.std()


def settle_batch_norm(model):
    """Gives BatchNorm layers varied affine parameters and running statistics that match the activations they see."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    generator = torch.Generator().manual_seed(SEED)
    for norm in norms:
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5, generator=generator)
        torch.nn.init.normal_(norm.bias, 0.0, 0.5, generator=generator)
        norm.reset_running_stats()
        norm.momentum = None  # cumulative average
        norm.train()
    # Trained residual branches add little to what they are added to; random ones of full size make a chaotic network.
    with torch.no_grad():
        for block in model.modules():
            if type(block).__name__ in RESIDUAL_BLOCKS:
                branch = [m for name, m in block.named_modules() if m in norms and not name.startswith("downsample")]
                branch[-1].weight *= RESIDUAL_SCALE
    with torch.no_grad():
        for batch in range(CALIBRATION_BATCHES if norms else 0):
            model(make_images(CALIBRATION_BATCH_SIZE, seed=SEED + 100 + batch))
    model.eval()


def network(name):
    """The module that is exported under this name, always with the same weights."""
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(torchvision.models, name.removesuffix("_bn"))(weights=None).eval()
    settle_batch_norm(model)
    return model


def export(name, path, samples):
    model = network(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (samples[:1],),
            path,
            input_names=["input"],
            output_names=["output"],
            dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
            opset_version=OPSET,
            # PRESERVE exports the evaluation mode the model is in, but leaves Conv + BatchNormalization unfolded.
            training=torch.onnx.TrainingMode.PRESERVE if name.endswith("_bn") else torch.onnx.TrainingMode.EVAL,
            do_constant_folding=True,
            dynamo=False,
        )
    onnx.checker.check_model(str(path), full_check=True)
    with torch.no_grad():
        return model(samples[:4])


def verify(path, samples, expected):
    """Compares with ONNX Runtime and describes the model in one line."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"input": samples[:4].numpy()})
    error = np.abs(output - expected.numpy()).max() / np.abs(output).max()
    if not error < 1e-4:
        raise SystemExit(f"{path.name}: ONNX Runtime and torch differ by {error:.2e}")
    ops = sorted({node.op_type for node in onnx.load(str(path)).graph.node})
    spread = output.std(axis=0).mean() / output.std()
    print(
        f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, output std {output.std():.3g}, between samples {spread:.2f} "
        f"of it, error {error:.1e}, ops {' '.join(ops)}",
        flush=True,
    )


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=cache / "qtensor" / "models", help="folder (%(default)s)")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)} (all)")
    arguments = parser.parse_args()
    unknown = set(arguments.networks) - set(NETWORKS)
    if unknown:
        parser.error(f"unknown network {', '.join(sorted(unknown))}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    samples = make_images(16, seed=SEED)
    np.save(arguments.out / "inputs.npy", samples.numpy())
    for name in arguments.networks or NETWORKS:
        path = arguments.out / f"{name}.onnx"
        verify(path, samples, export(name, path, samples))


if __name__ == "__main__":
    main()
