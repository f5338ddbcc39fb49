"""What trained networks read: photographs (of scikit-image's wheel), written text, sentences, and the invented voices of
examples/voice."""

import functools
import io
import pathlib
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageDraw, ImageFont

from models.zoo_wheels import wheel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "voice"))
from sounds import scene  # noqa: E402

PHOTOGRAPHS = (
    "astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "hubble_deep_field.jpg",
    "ihc.png", "retina.jpg",
)  # fmt: skip
IMAGENET = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
HALF = np.float32(0.5), np.float32(0.5)
UNIT = np.float32(0), np.float32(1)
SIGNED = np.float32(127.5 / 255), np.float32(128 / 255)
WAKE = "openwakeword==0.4.0", "openwakeword/resources/models/"
LINES = (
    "Plain words are the best", "7 July 1926, 14:05", "Total: 1,204.50 EUR", "see page 12 of part II", "No entry",
    "RESULTS OF THE SURVEY", "a.turing@example.org", "(c) quick brown fox",
)  # fmt: skip
CODES = ("4x7kq", "Hn3w2", "p9TzB", "m2c8d", "kR6ye", "7aWq4", "Z3fgs", "u8nLx")
SENTENCES = (
    "The committee will publish its report on Thursday.", "How do I change the oil of a small petrol engine?",
    "A cat sleeps on the warm stones.", "Profits fell by a third, and the shares with them.",
    "She learned the sonata in four weeks.", "Boil the potatoes before you fry them.",
    "What is the capital of Mongolia?", "The server answers with status 404 if the page is not there.",
)  # fmt: skip


@functools.cache
def photograph(index):
    data = wheel("scikit-image==0.26.0").read(f"skimage/data/{PHOTOGRAPHS[index]}")
    return Image.open(io.BytesIO(data)).convert("RGB")


def planes(image, normal):
    """[1, 3, height, width]; (pixel / 255 - mean) / deviation."""
    mean, deviation = normal
    return ((np.asarray(image, np.float32) / 255 - mean) / deviation).transpose(2, 0, 1)[None]


def photo(width, height=None, normal=IMAGENET, name="x"):
    return lambda index: {name: planes(photograph(index).resize((width, height or width)), normal)}


def caffe_photo(name):
    """[1, 224, 224, 3], blue first, without the mean colour."""

    def sample(index):
        pixels = np.asarray(photograph(index).resize((224, 224)), np.float32)
        return {name: pixels[None, :, :, ::-1] - np.float32([104, 117, 123])}

    return sample


def pixels_photo(side, name):
    """Blue first, 0 to 255."""
    return lambda index: {name: 255 * planes(photograph(index).resize((side, side)), UNIT)[:, ::-1].copy()}


def written(text, width, height, index, size=None):
    """Dark text on a light ground, or the other way round, a little out of true."""
    ink, paper = (30 + 10 * index, 235 - 5 * index) if index % 3 else (240, 60 + 10 * index)
    image = Image.new("RGB", (width, height), (paper, paper, max(paper - 20, 0)))
    font = ImageFont.load_default(size or height * 0.62)
    ImageDraw.Draw(image).text((height // 6, height // 8), text, font=font, fill=(ink, ink, ink + 10))
    return image.rotate(index % 5 - 2, Image.BILINEAR, fillcolor=(paper, paper, max(paper - 20, 0)))


def line(width, height, name="x", normal=HALF, texts=LINES):
    return lambda index: {name: planes(written(texts[index], width, height, index), normal)}


def grey_line(width, height, name):
    def sample(index):
        grey = np.asarray(written(CODES[index], width, height, index).convert("L"), np.float32)
        return {name: (grey[None, None] / 255 - 0.5) / 0.5}

    return sample


def page(side, normal, name="x"):
    """Lines of text on a photograph."""

    def sample(index):
        image = photograph(index).resize((side, side))
        for row in range(3):
            image.paste(written(LINES[(index + row) % 8], side * 3 // 4, side // 10, index), (side // 12, side // 8 + row * side // 4))
        return {name: planes(image, normal)}

    return sample


@functools.cache
def voice(seconds, rate, seed):
    return scene(seed, seconds, rate)[0].astype(np.float32)


def audio(count, rate, shape, name):
    return lambda index: {name: voice(-(-count // rate) + 1, rate, 400 + index)[:count].reshape(shape)}


def spectra(index):
    """Logarithms of the power of 512 samples, half of them new, by 20, and the number of a listener."""
    samples = voice(6, 16000, 500 + index)
    frames = np.lib.stride_tricks.sliding_window_view(samples, 512)[::256] * np.hamming(513)[:-1]
    power = np.log(np.maximum(np.abs(np.fft.rfft(frames)) ** 2, 1e-12)) / 20
    rater = np.random.default_rng(index).standard_normal((1, 64))
    return {"degraded_audio": power[None, None].astype(np.float32), "rater_embed": rater.astype(np.float32)}


def brain_spectra(index):
    """Something like the power of an electroencephalogram: falling with frequency, each second normalized."""
    rng = np.random.default_rng(index)
    frequency = np.arange(1, 101)[:, None]
    rhythm = np.exp(-((frequency - rng.uniform(6, 12)) ** 2) / 8) * rng.gamma(1, 1, (1, 299))
    power = (frequency**-1.5 + rhythm) * rng.gamma(2, 0.5, (100, 299))
    power = np.log(power)
    return {"x": ((power - power.mean(0)) / power.std(0)).astype(np.float32)[None]}


def file_bytes(index):
    """Begin and end of a file, 1024 bytes each; here of sources and of wheels' members."""
    sources = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    archive = wheel("scikit-image==0.26.0")
    data = [path.read_bytes() for path in sources[:4]] + [archive.read(f"skimage/data/{name}") for name in PHOTOGRAPHS[:4]]
    data = data[index // 2 + 4 * (index % 2)]
    ends = np.full(2048, 256, np.int32)
    ends[: len(data[:1024])] = list(data[:1024])
    ends[2048 - len(data[-1024:]) :] = list(data[-1024:])
    return {"bytes": ends[None]}


def letters(index):
    count = 8 + index
    rng = np.random.default_rng(index)
    return {"src": rng.integers(4, 60, (1, 12)), "src_mask": np.arange(12)[None] < count}


def chunks(index):
    """64 chunks of 32 ms with the 4 ms before each."""
    samples = np.pad(voice(4, 16000, 600 + index), (64, 0))
    frames = np.lib.stride_tricks.sliding_window_view(samples, 576)[::512][:64]
    nothing = np.zeros((1, 1, 128), np.float32)
    return {"input": frames.copy(), "h": nothing, "c": nothing}


def frames(index):
    """Eight times 64 ms of a voice, of mean 0 and deviation 1."""
    made = voice(4, 16000, 700 + index)[: 8 * 4096].reshape(8, 4096)[:, :1024]
    return {"frames": (made - made.mean(1, keepdims=True)) / made.std(1, keepdims=True)}


def loud(index):
    """A second in the numbers of 16-bit samples."""
    return {"input": 32767 * voice(3, 16000, 800 + index)[None, 16000:32000]}


@functools.cache
def wake(member):
    session = onnxruntime.InferenceSession(wheel(WAKE[0]).read(WAKE[1] + member), providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]


def windows_of_spectra(index, seconds):
    """Windows of 76 spectra, every eighth, as the networks that listen for words take them."""
    sound = 32767 * voice(seconds, 16000, 800 + index)[None]
    spectra_of_voice = wake("melspectrogram.onnx")(sound).reshape(-1, 32) / 10 + 2
    windows = np.lib.stride_tricks.sliding_window_view(spectra_of_voice, 76, 0)[::8]
    return np.ascontiguousarray(windows.transpose(0, 2, 1)[..., None])


def wake_spectra(index):
    return {"input_1": windows_of_spectra(index, 2)[:4]}


def wake_features(name):
    return lambda index: {name: wake("embedding_model.onnx")(windows_of_spectra(index, 3)[:16]).reshape(1, 16, 96)}
