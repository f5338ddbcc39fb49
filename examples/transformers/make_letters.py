#!/usr/bin/env python3
"""Trains a small language model of characters on text.txt and writes it in two forms, with its data.

Makes, in the folder of this script or in --out:
  letters.onnx             the whole sequence: "tokens" int64 [batch, length], "logits" float32 [batch, length, 96]; by torch.export
  letters_step.onnx        the same weights, one character at a time: "token" int64 [1, 1], the position and the keys and values of the
                           last 128 characters as inputs, and what they become as outputs; by torch.export
  letters_calibration.npy  int64 [64, 128], evenly from the part of the text that it was trained on
  letters_test.npy         int64 [128, 128], from the last tenth of the text, which it has not seen

A decoder as they are built today: RMSNorm, rotary positions, SwiGLU, no biases, the table of characters is also the last layer. Token 0 is
the end of a line, and 1 to 95 are the printable characters of ASCII.

Seeds and one thread fix the result on one machine and version of torch; another version may give slightly different weights.

Run again with:  $(benchmarks/peers/make-venv)/bin/python examples/transformers/make_letters.py      (five minutes)
"""

import argparse
import math
import pathlib

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
SEED = 0
STEPS = 1600
BATCH = 32
LEARNING_RATE = 4e-3
TOKENS = 96
LENGTH = 128
WIDTH, HEADS, HIDDEN, LAYERS = 96, 3, 256, 2
HEAD = WIDTH // HEADS
TEST_PART = 0.1
CALIBRATION_SAMPLES = 64
TEST_SAMPLES = 128


def tokens_of(text):
    codes = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64)
    return np.where(codes == ord("\n"), 0, codes - 31)


def rotated(x, positions):
    """Rotary positions: the first half of a head is the real part, the second the imaginary one."""
    frequencies = 10000.0 ** (torch.arange(0, HEAD, 2) / -HEAD)
    angles = positions[:, None].float() * frequencies
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def heads(self, x, positions):
        split = [layer(x).unflatten(-1, (HEADS, HEAD)).transpose(1, 2) for layer in (self.q, self.k, self.v)]
        return rotated(split[0], positions), rotated(split[1], positions), split[2]

    def joined(self, x):
        return self.o(x.transpose(1, 2).flatten(2))

    def forward(self, x, positions):
        q, k, v = self.heads(x, positions)
        return self.joined(functional.scaled_dot_product_attention(q, k, v, is_causal=True))

    def step(self, x, position, keys, values):
        """One character; the oldest keys and values make room for its own, and those from before the text are not seen."""
        q, k, v = self.heads(x, position)
        keys, values = torch.cat([keys[:, :, 1:], k], 2), torch.cat([values[:, :, 1:], v], 2)
        seen = torch.arange(LENGTH) >= LENGTH - 1 - position
        return self.joined(functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen[None, None, None])), keys, values


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.hidden_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention = Attention()
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def hidden(self, x):
        y = self.hidden_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    def forward(self, x, positions):
        return self.hidden(x + self.attention(self.attention_norm(x), positions))

    def step(self, x, position, keys, values):
        y, keys, values = self.attention.step(self.attention_norm(x), position, keys, values)
        return self.hidden(x + y), keys, values


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        nn.init.normal_(self.table.weight, std=0.05)

    def logits(self, x):
        return functional.linear(self.norm(x), self.table.weight)

    def forward(self, tokens):
        x, positions = self.table(tokens), torch.arange(tokens.shape[1])
        for block in self.blocks:
            x = block(x, positions)
        return self.logits(x)


class Step(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters = letters

    def forward(self, token, position, *past):
        x, present = self.letters.table(token), []
        for block, keys, values in zip(self.letters.blocks, past[::2], past[1::2]):
            x, *both = block.step(x, position, keys, values)
            present += both
        return self.letters.logits(x), position + 1, *present


def bits(network, samples):
    """A character, of all but the first."""
    with torch.no_grad():
        x = torch.from_numpy(samples)
        loss = functional.cross_entropy(network(x)[:, :-1].transpose(1, 2), x[:, 1:])
    return loss.item() / math.log(2)


def train(network, tokens, test):
    generator = torch.Generator().manual_seed(SEED)
    tokens = torch.from_numpy(tokens)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.1, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, STEPS, pct_start=0.1)
    for step in range(STEPS):
        starts = torch.randint(0, len(tokens) - LENGTH, (BATCH,), generator=generator)
        batch = torch.stack([tokens[i : i + LENGTH + 1] for i in starts])
        loss = functional.cross_entropy(network(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1)
        optimizer.step()
        schedule.step()
        if step % 200 == 199:
            print(f"step {step + 1}: {loss.item() / math.log(2):.3f} bits a character, {bits(network, test):.3f} on the test", flush=True)


def export(network, path, inputs, names, outputs, dynamic=None):
    torch.onnx.export(network, inputs, path, input_names=names, output_names=outputs, dynamic_shapes=dynamic, dynamo=True,
                      external_data=False, verbose=False)  # fmt: skip
    model = onnx.load(path)
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        del part.metadata_props[:]  # where in this script each node comes from
    onnx.save(model, path)
    onnx.checker.check_model(str(path), full_check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="folder (%(default)s)")
    out = parser.parse_args().out
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    tokens = tokens_of((HERE / "text.txt").read_text())
    split = int(len(tokens) * (1 - TEST_PART))
    test = tokens[split : split + TEST_SAMPLES * LENGTH].reshape(TEST_SAMPLES, LENGTH)
    starts = np.linspace(0, split - LENGTH, CALIBRATION_SAMPLES).astype(int)
    calibration = np.stack([tokens[i : i + LENGTH] for i in starts])

    network = Letters()
    train(network, tokens[:split], test)
    network.eval()

    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "letters_calibration.npy", calibration)
    np.save(out / "letters_test.npy", test)
    lengths = {"tokens": {0: torch.export.Dim("batch", max=1024), 1: torch.export.Dim("length", max=LENGTH)}}
    export(network, out / "letters.onnx", (torch.from_numpy(test[:2]),), ["tokens"], ["logits"], lengths)
    past = [f"{what}_{layer}" for layer in range(LAYERS) for what in ("keys", "values")]
    caches = [torch.zeros(1, HEADS, LENGTH, HEAD) for _ in past]
    first = (torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), *caches)
    export(Step(network).eval(), out / "letters_step.onnx", first, ["token", "position", *past],
           ["logits", "next_position", *(f"next_{name}" for name in past)])  # fmt: skip
    parameters = sum(parameter.numel() for parameter in network.parameters())
    print(f"{parameters} parameters, {bits(network, test):.4f} bits a character on the test (PyTorch)")


if __name__ == "__main__":
    main()
