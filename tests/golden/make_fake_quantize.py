#!/usr/bin/env python3
"""Makes training/fake_quantize.json: fake quantization and its gradients by PyTorch, the clamp of NVIDIA's toolkit in NumPy.

  fixed    fake_quantize_per_tensor_affine, fake_quantize_per_channel_affine, and their backward passes
  learned  _fake_quantize_learnable_per_tensor_affine and _per_channel_affine, with gradients of scales and zero points
  fused    scales and zero points of fused_moving_avg_obs_fake_quant for a tensor of which only the ends are known
  clip     y = clamp(x, lo, hi) with learned bounds (PACT): gradients where the toolkit's ClipFunction passes them

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_fake_quantize.py
"""

import pathlib

import numpy as np
import torch

import golden_json

RANGES = [(0, 2**bits - 1) for bits in range(2, 9)] + [(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in range(2, 9)]
RANGES += [(-127, 127), (0, 127), (-7, 7), (-32768, 32767), (0, 65535)]


def noise(seed, *shape, scale):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).round(decimals=3)


def ties(lo, hi, zero, scale):
    """About both ends of a grid and about zero; the scale is a power of two, so all are exact."""
    return torch.tensor([i - zero + 0.5 for end in (lo, hi, zero) for i in range(end - 3, end + 3)]) * scale


def with_neighbours(x):
    infinity = torch.tensor(float("inf"))
    return torch.cat([x, torch.nextafter(x, infinity), torch.nextafter(x, -infinity)])


def integers(t):
    return t.numpy().astype(np.int32)


def fixed(name, x, scale, zero, lo, hi, axis=None):
    x = x.clone().requires_grad_()
    dy = noise(99, *x.shape, scale=1.0)
    if axis is None:
        y = torch.fake_quantize_per_tensor_affine(x, scale.item(), int(zero), lo, hi)
    else:
        y = torch.fake_quantize_per_channel_affine(x, scale, zero, axis, lo, hi)
    y.backward(dy)
    return {"name": name, "quant_min": lo, "quant_max": hi, "axis": axis, "scale": scale.numpy(), "zero_point": integers(zero),
            "x": x.detach().numpy(), "dy": dy.numpy(), "y": y.detach().numpy(), "dx": x.grad.numpy()}  # fmt: skip


def fixed_cases():
    cases = []
    huge = torch.tensor([1e9, -1e9, 1e19, -1e19, 3e38, -3e38, float("inf"), float("-inf"), 1e-40, -0.0])
    for i, (lo, hi) in enumerate(RANGES):
        for zero in sorted({lo, hi, (lo + hi) // 2 + 1}):
            scale = torch.tensor(0.25)
            x = torch.cat([with_neighbours(ties(lo, hi, zero, 0.25)), huge])
            cases.append(fixed(f"borders/{lo}_{hi}/{zero}", x, scale, torch.tensor(zero, dtype=torch.int32), lo, hi))
        scale = torch.tensor([0.037, 0.0021, 1.3])[i % 3]
        x = noise(i, 40, scale=0.6 * (hi - lo) * scale.item())
        cases.append(fixed(f"random/{lo}_{hi}", x, scale, torch.tensor((2 * lo + hi) // 3, dtype=torch.int32), lo, hi))
    for axis in range(4):
        for lo, hi in ((-8, 7), (-127, 127), (0, 255)):
            shape = (3, 4, 2, 5)
            count = shape[axis]
            scale = torch.linspace(0.01, 0.07, count)
            zero = torch.linspace(lo, hi, count).to(torch.int32)
            cases.append(fixed(f"channels/{axis}/{lo}_{hi}", noise(7, *shape, scale=4.0), scale, zero, lo, hi, axis))
    # Rows of all kinds of lengths, and of more elements than are done at once.
    for shape, axis in (((2, 300), 0), ((300, 3), 1), ((20, 17), 1), ((1, 2, 71, 9), 1)):
        count = shape[axis]
        x = noise(8, *shape, scale=3.0)
        cases.append(fixed(f"shape/{'x'.join(map(str, shape))}", x, torch.linspace(0.02, 0.05, count),
                           torch.zeros(count, dtype=torch.int32), -128, 127, axis))  # fmt: skip
    return cases


def learned(name, x, scale, zero, lo, hi, grad_factor, axis=None):
    x, scale = x.clone().requires_grad_(), scale.clone().requires_grad_()
    zero = zero.to(torch.float32).requires_grad_()
    dy = noise(98, *x.shape, scale=1.0)
    if axis is None:
        y = torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero, lo, hi, grad_factor)
    else:
        y = torch._fake_quantize_learnable_per_channel_affine(x, scale, zero, axis, lo, hi, grad_factor)
    y.backward(dy)
    return {"name": name, "quant_min": lo, "quant_max": hi, "axis": axis, "grad_factor": grad_factor, "scale": scale.detach().numpy(),
            "zero_point": integers(zero.detach()), "x": x.detach().numpy(), "dy": dy.numpy(), "y": y.detach().numpy(),
            "dx": x.grad.numpy(), "d_scale": scale.grad.numpy(), "d_zero_point": zero.grad.numpy()}  # fmt: skip


def learned_cases():
    """No negative zero points, which PyTorch's backward pass takes for one more: it truncates zero_point + 0.5. No ties with
    odd ones and no neighbours of ties either: there it adds the zero point before it rounds."""
    cases = []
    for i, (lo, hi) in enumerate(RANGES):
        factor = 1.0 if i % 2 else 1 / (200 * hi) ** 0.5
        scale = torch.tensor([[0.037, 0.0021, 1.3][i % 3]])
        x = noise(20 + i, 200, scale=0.6 * (hi - lo) * scale.item())
        cases.append(learned(f"random/{lo}_{hi}", x, scale, torch.tensor([(lo + 2 * hi) // 3]), lo, hi, factor))
        even = hi // 4 * 2
        cases.append(learned(f"borders/{lo}_{hi}", ties(lo, hi, even, 0.25), torch.tensor([0.25]), torch.tensor([even]), lo, hi, factor))
    for shape, axis in (((3, 4, 2, 5), 0), ((3, 4, 2, 5), 1), ((3, 4, 2, 5), 3), ((40, 19), 1), ((5, 700), 0)):
        count = shape[axis]
        scale, zero = torch.linspace(0.010301, 0.071703, count), torch.linspace(0, 100, count).round()
        factor = 1 / (np.prod(shape) / count * 127) ** 0.5
        cases.append(learned(f"channels/{'x'.join(map(str, shape))}/{axis}", noise(9, *shape, scale=4.0), scale, zero, -128, 127, float(factor), axis))
    return cases


def fused_cases():
    """Ranges of all sizes, on both sides of zero and on one; down to where scales have a floor and to nothing."""
    rng = np.random.default_rng(5)
    ranges = [(0.0, 0.0), (-1.0, 1.0), (-1.28, 1.27), (-128.0, 127.0), (0.5, 2.0), (-2.0, -0.5), (0.0, 3.0), (-3.0, 0.0), (1e-40, 1e-39),
              (-1e-3, 1e-3), (-1e-6, 2e-6), (0.0, 1e-5), (-1e-5, 0.0), (-3e38, 1e38), (-1e-30, 5e-31)]  # fmt: skip
    for _ in range(120):
        size = 10.0 ** rng.uniform(-6, 6)
        low, high = sorted(rng.uniform(-size, size, 2) if rng.random() < 0.8 else rng.uniform(0, size, 2) * rng.choice([-1, 1]))
        ranges.append((float(np.float32(low)), float(np.float32(high))))
    cases = []
    for lo, hi in ((-128, 127), (-127, 127), (0, 255), (0, 127)):
        for symmetric in (True, False) if lo < 0 else (False,):
            for low, high in ranges:
                scale, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
                on = torch.ones(1, dtype=torch.long)
                torch.fused_moving_avg_obs_fake_quant(torch.tensor([low, high]), on, on, torch.tensor(float("inf")), torch.tensor(float("-inf")),
                                                      scale, zero, 0.01, lo, hi, 0, False, symmetric)  # fmt: skip
                cases.append({"quant_min": lo, "quant_max": hi, "symmetric": symmetric, "min": low, "max": high, "scale": scale.item(),
                              "zero_point": zero.item()})  # fmt: skip
    return cases


def clip_cases():
    cases = []
    for lo, hi in ((-1.5, 2.0), (0.0, 6.0)):
        x = torch.cat([noise(3, 500, scale=3.0), torch.tensor([lo, hi] * 5)]).numpy()
        dy = noise(97, x.size, scale=1.0).numpy()
        below, above = (dy * (x <= lo)).astype(np.float64).sum(), (dy * (x >= hi)).astype(np.float64).sum()
        dx = np.where((x > lo) & (x < hi), dy, np.float32(0))
        cases.append({"lo": lo, "hi": hi, "x": x, "dy": dy, "dx": dx, "d_lo": float(below), "d_hi": float(above)})
    return cases


def main():
    folder = pathlib.Path(__file__).parent / "training"
    folder.mkdir(exist_ok=True)
    golden = {"fixed": fixed_cases(), "learned": learned_cases(), "fused": fused_cases(), "clip": clip_cases()}
    golden_json.write(folder / "fake_quantize.json", golden)
    print({key: len(cases) for key, cases in golden.items()})


if __name__ == "__main__":
    main()
