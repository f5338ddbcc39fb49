#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Invented audio for a voice detector: something like speech, with pauses, among noise, hum, tones and clicks.

`scene` gives samples and says where the voice is. The same seed gives the same audio. As a program it writes several such
scenes as a WAV file of 16-bit samples:

    sounds.py FILE.wav [--seconds 125] [--rate 16000] [--seed 1]
"""
import argparse
import wave

import numpy as np

# Resonances of ten vowels in Hz, about those of Peterson and Barney's table for men.
VOWELS = np.array([(270, 2290, 3010), (390, 1990, 2550), (530, 1840, 2480), (660, 1720, 2410), (730, 1090, 2440),
                   (570, 840, 2410), (440, 1020, 2240), (300, 870, 2240), (640, 1190, 2390), (490, 1350, 1690)], float)  # fmt: skip
WIDTHS = np.array([90.0, 110.0, 160.0])
LOUDNESS = np.array([1.0, 0.5, 0.25])


def coloured(rng, count, rate, shape):
    """Noise whose spectrum has the given shape, a function of the frequency in Hz; its mean square is 1."""
    spectrum = np.fft.rfft(rng.standard_normal(count)) * shape(np.fft.rfftfreq(count, 1 / rate))
    noise = np.fft.irfft(spectrum, count)
    return noise / (np.sqrt(np.mean(noise**2)) + 1e-12)


def bump(count, rise, fall):
    """Rises and falls as half a cosine does."""
    t = np.arange(count)
    up = 0.5 - 0.5 * np.cos(np.pi * np.minimum(t / max(rise, 1), 1))
    return up * (0.5 - 0.5 * np.cos(np.pi * np.minimum((count - t) / max(fall, 1), 1)))


def syllable(rng, rate, pitch, scale):
    """A vowel that glides into another, often behind a hiss."""
    count = int(rate * rng.uniform(0.1, 0.28))
    glide = np.linspace(0, 1, count)
    first, second = VOWELS[rng.integers(len(VOWELS), size=2)] * scale
    f0 = pitch * (1 + rng.uniform(-0.15, 0.15) * glide + 0.02 * np.sin(2 * np.pi * rng.uniform(4, 7) * np.arange(count) / rate))
    phase = 2 * np.pi * np.cumsum(f0) / rate
    sound = np.zeros(count)
    for k in range(1, int(min(3900, 0.48 * rate) / f0.max()) + 1):
        gain = np.zeros(count)
        for n in range(3):
            centre = first[n] + (second[n] - first[n]) * glide
            gain += LOUDNESS[n] / (1 + ((k * f0 - centre) / WIDTHS[n]) ** 2)
        sound += gain * np.sin(k * phase) / np.sqrt(k)
    sound *= bump(count, 0.03 * rate, 0.06 * rate) / np.sqrt(np.mean(sound**2) + 1e-12)
    if rng.random() < 0.5:
        low = rng.uniform(1500, 3000)
        hiss = coloured(rng, int(rate * rng.uniform(0.04, 0.1)), rate, lambda f: (f > low) * 1.0)
        sound = np.concatenate([0.35 * hiss * bump(len(hiss), 0.01 * rate, 0.02 * rate), sound])
    return sound


def phrase(rng, rate, seconds):
    """Syllables with short gaps, at least one."""
    pitch, scale = rng.uniform(85, 260), rng.uniform(0.9, 1.2)
    parts, length = [], 0.0
    while not parts or length < seconds:
        parts.append(syllable(rng, rate, pitch * rng.uniform(0.85, 1.15), scale) * rng.uniform(0.5, 1))
        parts.append(np.zeros(int(rate * rng.uniform(0, 0.07))))
        length += (len(parts[-1]) + len(parts[-2])) / rate
    return np.concatenate(parts[:-1])


def background(rng, rate, count):
    """One kind of noise for the whole scene, and now and then hum, a tone or clicks."""
    t = np.arange(count) / rate
    slope = rng.uniform(0, 1.2)
    sound = coloured(rng, count, rate, lambda f: 1 / np.maximum(f, 50) ** slope)
    sound *= 1 + 0.4 * np.sin(2 * np.pi * rng.uniform(0.1, 1) * t)
    if rng.random() < 0.5:
        mains = rng.choice([50.0, 60.0])
        sound += rng.uniform(0.5, 3) * sum(np.sin(2 * np.pi * mains * k * t + k) / k for k in range(1, int(rng.integers(3, 12))))
    for _ in range(rng.poisson(count / rate / 6)):
        begin, length = int(rng.integers(count)), int(rate * rng.uniform(0.1, 0.8))
        part = slice(begin, min(begin + length, count))
        sound[part] += rng.uniform(1, 5) * np.sin(2 * np.pi * rng.uniform(300, 3000) * t[part]) * bump(part.stop - begin, 80, 80)
    for begin in rng.integers(count, size=rng.poisson(count / rate)):
        click = rng.standard_normal(min(int(rate * rng.uniform(0.001, 0.012)), count - begin))
        sound[begin : begin + len(click)] += 8 * click * np.linspace(1, 0, len(click))
    return sound / (np.sqrt(np.mean(sound**2)) + 1e-12)


def scene(seed, seconds, rate):
    """Samples between -1 and 1 as float32, and for each whether somebody speaks."""
    rng = np.random.default_rng(seed)
    count = int(seconds * rate)
    voice, speaks = np.zeros(count), np.zeros(count, bool)
    at = int(rate * rng.uniform(0.2, 2))
    while at < count:
        sound = phrase(rng, rate, rng.uniform(0.3, 3))[: count - at]
        voice[at : at + len(sound)] = sound
        speaks[at : at + len(sound)] = True
        at += len(sound) + int(rate * rng.uniform(0.4, 3))
    below = 10 ** (-rng.uniform(5, 30) / 20)
    mixed = (voice + below * background(rng, rate, count)) * 10 ** (-rng.uniform(15, 35) / 20)
    return np.clip(mixed, -1, 1).astype(np.float32), speaks


def scenes(seed, seconds, rate, each=25):
    """Scenes one after another, of seeds that follow the first."""
    parts = [scene(seed + i, min(each, seconds - i * each), rate) for i in range(int(np.ceil(seconds / each)))]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def write_wav(path, samples, rate):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.round(samples * 32767).astype("<i2").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--seconds", type=float, default=125)
    parser.add_argument("--rate", type=int, default=16000, choices=(8000, 16000))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write_wav(arguments.file, scenes(arguments.seed, arguments.seconds, arguments.rate)[0], arguments.rate)


if __name__ == "__main__":
    main()
