#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small voice detector on invented audio (sounds.py) and writes it as voice.onnx, beside this script or in --out.

The network takes a chunk of 32 ms at a time. It has an If, because a chunk of 16 kHz is brought to 8 kHz first, an LSTM, and two
states, which go in and come out: what the LSTM remembers, and the last samples of the chunk before.

  samples     float32 [1, 256] at 8 kHz, [1, 512] at 16 kHz; from -1 to 1
  rate        int64 [], 8000 or 16000
  memory      float32 [2, 1, 40], zeros at first      -> memory_next
  context     float32 [1, 64], zeros at first         -> context_next
  probability float32 [1, 1]: that somebody speaks in this chunk

Seeds and one thread fix the result on one machine and version of torch.

Run again with:  $(benchmarks/peers/make-venv)/bin/python examples/voice/make_voice.py
"""
import argparse
import pathlib
import warnings

import numpy as np
import onnx
import torch
from sounds import scene
from torch import nn

RATE, CHUNK, CONTEXT, WINDOW, HOP = 8000, 256, 64, 128, 64
HIDDEN = 40
SCENES, SECONDS, STEPS, BATCH, LEARNING_RATE = 240, 12, 900, 16, 4e-3
HELD_BACK = 24
OPSET = 17


def fourier():
    """Windowed cosines and sines of 64 frequencies, above 0, as the weights of a convolution."""
    t, k = np.arange(WINDOW), np.arange(1, WINDOW // 2 + 1)[:, None]
    angle = 2 * np.pi * k * t / WINDOW
    basis = np.concatenate([np.cos(angle), np.sin(angle)]) * np.hanning(WINDOW + 1)[:WINDOW]
    return torch.tensor(basis[:, None] / np.sqrt(WINDOW), dtype=torch.float32)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.fourier = nn.Conv1d(1, WINDOW, WINDOW, stride=HOP, bias=False)
        with torch.no_grad():
            self.fourier.weight.copy_(fourier())
        self.fourier.weight.requires_grad_(False)
        self.frames = nn.Sequential(nn.Conv1d(64, 48, 1), nn.ReLU(), nn.Conv1d(48, 32, 4), nn.ReLU())  # four frames in, one out
        self.lstm = nn.LSTM(32, HIDDEN)
        self.score = nn.Linear(HIDDEN, 1)

    def features(self, x: torch.Tensor):
        """[batch, samples at 8 kHz] -> [batch, 64, frames], about between -2 and 2."""
        both = self.fourier(x.unsqueeze(1))
        power = both[:, :64] ** 2 + both[:, 64:] ** 2
        return torch.log(power + 1e-7) / 5 + 2

    def chunks(self, x):
        """Scores of all chunks of whole scenes, for training: [batch, chunks * 256] -> [chunks, batch]."""
        features = self.features(nn.functional.pad(x, (CONTEXT, 0)))  # a frame for each hop
        wanted = features.unfold(2, 4, 4).permute(0, 2, 1, 3)  # batch, chunks, 64, 4
        made = self.frames(wanted.flatten(0, 1)).view(x.shape[0], -1, 32).transpose(0, 1)
        return self.score(self.lstm(made)[0]).squeeze(2)

    def forward(self, samples: torch.Tensor, rate: torch.Tensor, memory: torch.Tensor, context: torch.Tensor):
        if bool(rate == 16000):
            x = nn.functional.avg_pool1d(samples.unsqueeze(1), 2).squeeze(1)
        else:
            x = samples
        x = torch.cat([context, x], 1)
        made = self.frames(self.features(x))
        y, (h, c) = self.lstm(made.permute(2, 0, 1), (memory[:1], memory[1:]))
        return torch.sigmoid(self.score(y[0])), torch.cat([h, c]), x[:, -64:]


def make_scenes(first, count):
    """Samples and labels of scenes, of which every other one was of 16 kHz."""
    length = SECONDS * RATE // CHUNK * CHUNK
    x, labels = [], []
    for i in range(count):
        factor = 1 + i % 2
        samples, speaks = scene(first + i, SECONDS, factor * RATE)
        x.append(samples[: factor * length].reshape(length, factor).mean(1))
        labels.append(speaks[: factor * length].reshape(-1, factor * CHUNK).mean(1) > 0.5)
    return torch.from_numpy(np.stack(x)), torch.from_numpy(np.stack(labels).T.astype(np.float32))


def train(network):
    x, labels = make_scenes(100_000, SCENES)
    parameters = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    generator = torch.Generator().manual_seed(0)
    for step in range(STEPS):
        chosen = torch.randint(SCENES, (BATCH,), generator=generator)
        loss = nn.functional.binary_cross_entropy_with_logits(network.chunks(x[chosen]), labels[:, chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)


def export(network, path):
    inputs = (torch.zeros(1, 2 * CHUNK), torch.tensor(16000), torch.zeros(2, 1, HIDDEN), torch.zeros(1, CONTEXT))
    names = ["samples", "rate", "memory", "context"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(torch.jit.script(network), inputs, path, input_names=names,
                          output_names=["probability", "memory_next", "context_next"],
                          dynamic_axes={"samples": {1: "count"}}, opset_version=OPSET, dynamo=False)  # fmt: skip
    model = onnx.load(path)
    kept = model.graph.output[2].type.tensor_type.shape.dim[1]  # which the exporter leaves open
    kept.Clear()
    kept.dim_value = CONTEXT
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="folder (%(default)s)")
    path = parser.parse_args().out / "voice.onnx"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = Detector()
    train(network)
    network.eval()
    x, labels = make_scenes(200_000, HELD_BACK)
    with torch.no_grad():
        right = ((network.chunks(x) > 0) == (labels > 0.5)).float().mean().item()
    export(network, path)
    print(f"{100 * right:.1f} % of the chunks of {HELD_BACK} scenes that were not seen; {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
