#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The voice detector of examples/voice hears two minutes chunk by chunk, in Python and in C, as ONNX Runtime does.

usage: test_voice.py PROGRAM, which is voice.c
"""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import wave

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is missing")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VOICE = ROOT / "examples/voice"
sys.dont_write_bytecode = True
sys.path.insert(0, str(VOICE))
import qtensor as qt  # noqa: E402
import sounds  # noqa: E402
import voice  # noqa: E402

MODEL = VOICE / "voice.onnx"
RATES, SECONDS, SEED = (8000, 16000), 125, 1
WANTED = dict(zip(RATES, np.load(ROOT / "tests/golden/voice.npy")))


def heard(model, path):
    with wave.open(str(path)) as file:
        return np.array(list(map(voice.Detector(model, file.getframerate()), voice.chunks(file))), np.float32)


def agreement(a, b):
    return np.mean((a > 0.5) == (b > 0.5))


class Voice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.model = qt.Model.load(str(MODEL))
        cls.wavs, cls.speaks = {}, {}
        for rate in RATES:
            samples, speaks = sounds.scenes(SEED, SECONDS, rate)
            cls.wavs[rate] = pathlib.Path(cls.folder) / f"{rate}.wav"
            sounds.write_wav(cls.wavs[rate], samples, rate)
            count = rate * voice.MILLISECONDS // 1000
            cls.speaks[rate] = np.pad(speaks, (0, -len(speaks) % count)).reshape(-1, count).mean(1) > 0.5

    def test_probabilities_are_those_of_onnx_runtime(self):
        for rate, wav in self.wavs.items():
            got = heard(self.model, wav)
            self.assertGreaterEqual(len(got) * voice.MILLISECONDS, 120_000)
            np.testing.assert_allclose(got, WANTED[rate], rtol=0, atol=1e-4)

    def test_speech_is_found(self):
        for rate, wanted in WANTED.items():
            self.assertGreater(np.mean((wanted > 0.5) == self.speaks[rate]), 0.94)

    def test_c_hears_the_same(self):
        for rate, wav in self.wavs.items():
            file = pathlib.Path(self.folder) / "probabilities"
            done = subprocess.run([PROGRAM, MODEL, wav, file], capture_output=True, text=True, check=True)
            np.testing.assert_array_equal(np.fromfile(file, np.float32), heard(self.model, wav))
            printed = io.StringIO()
            sys.argv[1:] = [str(MODEL), str(wav)]
            with contextlib.redirect_stdout(printed):
                voice.main()
            self.assertEqual(done.stdout, printed.getvalue())
            self.assertGreater(done.stdout.count("speech from"), 20)

    def test_a_new_recording_begins_anew(self):
        with wave.open(str(self.wavs[8000])) as file:
            chunks = [*voice.chunks(file)][:100]
        detect = voice.Detector(self.model, 8000)
        first = [detect(chunk) for chunk in chunks]
        self.assertNotEqual([detect(chunk) for chunk in chunks], first)
        detect.reset()
        self.assertEqual([detect(chunk) for chunk in chunks], first)

    def test_int8_decides_as_float(self):
        for rate, wav in self.wavs.items():
            got = heard(self.model.quantize_dynamic(qt.Config("onnx")), wav)
            self.assertGreaterEqual(agreement(got, WANTED[rate]), 0.995)
            self.assertGreater(np.abs(got - WANTED[rate]).max(), 1e-3)  # which is not float: that is closer

    def test_what_is_no_such_recording(self):
        wav = pathlib.Path(self.folder) / "stereo.wav"
        with wave.open(str(wav), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(bytes(4000))
        said = f"{wav}: is not of 16 bits, one channel and 8 or 16 kHz"
        for command in ([PROGRAM], [sys.executable, VOICE / "voice.py"]):
            done = subprocess.run([*command, MODEL, wav], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr.strip()), (1, "", said))

    def test_the_network_is_small(self):
        self.assertLess(MODEL.stat().st_size, 300 * 1024)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
