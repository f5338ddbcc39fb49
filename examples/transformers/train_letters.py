#!/usr/bin/env python3
"""Trains the language model of characters with weights of four bits, in qtensor alone, and compares it with quantization without training.

usage: train_letters.py [OUT.onnx] [--steps N]
"""

import argparse
import math
import pathlib

import numpy as np
import qtensor as qt

HERE = pathlib.Path(__file__).resolve().parent
LENGTH, BATCH, TEST_PART = 128, 16, 0.1
FOUR_BITS = {"weight_bits": 4}


def tokens_of(text):
    codes = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64)
    return np.where(codes == ord("\n"), 0, codes - 31)


def batches(tokens, steps):
    """Pieces of text and, for each character of them, the one that follows."""
    random = np.random.default_rng(0)
    for _ in range(steps):
        starts = random.integers(0, len(tokens) - LENGTH, BATCH)
        pieces = np.stack([tokens[start : start + LENGTH + 1] for start in starts])
        yield np.ascontiguousarray(pieces[:, :-1]), np.ascontiguousarray(pieces[:, 1:])


def bits_of_a_character(model, pieces):
    session, bits = qt.Session(model), 0.0
    for piece in pieces:
        scores = np.asarray(session(piece[None, :-1]), np.float64)[0]
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        bits -= scores[np.arange(len(scores)), piece[1:]].mean() / math.log(2)
    return bits / len(pieces)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", default="letters-int4.onnx")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    tokens = tokens_of((HERE / "text.txt").read_text())
    tokens = tokens[: int(len(tokens) * (1 - TEST_PART))]
    calibration, test = np.load(HERE / "letters_calibration.npy"), np.load(HERE / "letters_test.npy")
    model = qt.Model.load(str(HERE / "letters.onnx"))
    print(f"float                 {bits_of_a_character(model, test):.4f} bits a character")
    for name, attrs in {"rounded": {"gptq": False}, "GPTQ": {}}.items():
        quantized = model.quantize(calibration, {"*": FOUR_BITS}, attrs)
        print(f"int4, {name:<15} {bits_of_a_character(quantized, test):.4f}")

    config = qt.Config("onnx")
    config.set("*", FOUR_BITS)
    prepared = model.prepare(config, "qat")
    prepared.calibrate(calibration)
    trainer = qt.Trainer(
        prepared,
        {"class_axis": -1, "optimizer": "adamw", "lr": 5e-4, "schedule": "cosine", "total_steps": arguments.steps},
    )
    for pieces, following in batches(tokens, arguments.steps):
        trainer.step(pieces, following)
    trained = trainer.model().convert()
    trained.save(arguments.out)
    print(f"int4, trained         {bits_of_a_character(trained, test):.4f}")


if __name__ == "__main__":
    main()
