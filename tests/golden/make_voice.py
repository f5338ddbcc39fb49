#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes voice.npy: what ONNX Runtime gives for each chunk of the audio that examples/voice/sounds.py invents, with the network of
examples/voice, whose states are fed back: float32 [2, chunks], for 125 s at 8 kHz and at 16 kHz.

Run with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_voice.py
"""
import pathlib
import sys
import tempfile
import wave

import numpy as np
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent
VOICE = HERE.parent.parent / "examples/voice"
sys.path.insert(0, str(VOICE))
import sounds  # noqa: E402

SECONDS, SEED, MILLISECONDS = 125, 1, 32


def probabilities(session, path):
    with wave.open(str(path)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
    count = rate * MILLISECONDS // 1000
    samples = np.pad(samples, (0, -len(samples) % count)).reshape(-1, 1, count)
    memory, context = np.zeros((2, 1, 40), np.float32), np.zeros((1, 64), np.float32)
    for chunk in samples:
        inputs = {"samples": chunk, "rate": np.array(rate), "memory": memory, "context": context}
        probability, memory, context = session.run(None, inputs)
        yield probability.item()


def main():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(VOICE / "voice.onnx"), options, providers=["CPUExecutionProvider"])
    rows = []
    for rate in (8000, 16000):
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            sounds.write_wav(file.name, sounds.scenes(SEED, SECONDS, rate)[0], rate)
            rows.append(list(probabilities(session, file.name)))
    np.save(HERE / "voice.npy", np.array(rows, np.float32))


if __name__ == "__main__":
    main()
