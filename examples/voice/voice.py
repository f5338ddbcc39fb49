#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says where somebody speaks in a WAV file of 8 or 16 kHz, which is read chunk by chunk as a microphone would give it.

    voice.py MODEL.onnx FILE.wav
"""
import sys
import wave

import numpy as np
import qtensor as qt

MILLISECONDS = 32  # of a chunk


class Detector:
    """The detector of one stream. What it remembers of the chunks before is state of its session."""

    def __init__(self, model, rate):
        self.rate = np.array(rate)
        self.session = qt.Session(model, {"threads": 1})
        self.session.bind("memory_next", "memory")
        self.session.bind("context_next", "context")

    def __call__(self, samples):
        """The probability that somebody speaks in the next chunk."""
        probability, _, _ = self.session({"samples": samples.reshape(1, -1), "rate": self.rate})
        return probability.item()

    def reset(self):
        """The next chunk is the first one of another recording."""
        self.session.reset()


def chunks(file):
    """Samples between -1 and 1, the last chunk filled up with silence."""
    count = file.getframerate() * MILLISECONDS // 1000
    while data := file.readframes(count):
        samples = np.frombuffer(data, "<i2").astype(np.float32) / 32768
        yield np.pad(samples, (0, count - len(samples)))


def speech(probabilities, begin=0.5, end=0.35, patience=10):
    """Where speech begins and ends, in chunks: it ends with `patience` chunks in a row below `end`."""
    first, quiet, i = None, 0, -1
    for i, probability in enumerate(probabilities):
        if first is None:
            if probability >= begin:
                first, quiet = i, 0
            continue
        quiet = quiet + 1 if probability < end else 0
        if quiet == patience:
            yield first, i + 1 - patience
            first = None
    if first is not None:
        yield first, i + 1 - quiet


def main():
    model, path = sys.argv[1:]
    with wave.open(path) as file:
        if file.getnchannels() != 1 or file.getsampwidth() != 2 or file.getframerate() not in (8000, 16000):
            sys.exit(f"{path}: is not of 16 bits, one channel and 8 or 16 kHz")
        detect = Detector(qt.Model.load(model), file.getframerate())
        for begin, end in speech(map(detect, chunks(file))):
            print(f"speech from {begin * MILLISECONDS / 1000:.3f} to {end * MILLISECONDS / 1000:.3f} s", flush=True)


if __name__ == "__main__":
    main()
