"""A zoo of architectures with seeded random weights, exported as their users export them: torchvision's builders by name,
and transformers, recurrent networks and a segmentation network with group normalization.

`NAMES` are those of one small member of each family; `make(name, folder)` also takes any other builder of torchvision.
"""

import contextlib
import functools
import pathlib
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

SEED = 0
SAMPLES = 12

CLASSIFICATION = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3",
    "maxvit_t", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "regnet_y_400mf", "resnet18", "resnext50_32x4d",
    "shufflenet_v2_x1_0", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11_bn", "vit_b_16", "wide_resnet50_2",
)  # fmt: skip
OTHERS = (
    "lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50", "ssdlite320_mobilenet_v3_large",
    "fasterrcnn_mobilenet_v3_large_320_fpn", "retinanet_resnet50_fpn", "r3d_18", "raft_small",
)  # fmt: skip
NEWER_EXPORTER = "_dynamo"
SIDES = {"inception_v3": 299, "swin_v2_t": 256} | dict.fromkeys(OTHERS, 256)


def pictures(count, side, seed):
    """Noise at octaves, as smooth as photographs are."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.zeros(count, 3, side, side)
    for octave in range(6):
        noise = torch.randn(count, 3, 4 << octave, 4 << octave, generator=generator)
        images += F.interpolate(noise, size=(side, side), mode="bilinear", align_corners=False) / 2**octave
    return images / images.std()


def without_zero_layers(module):
    """torchvision starts some heads with zeros, behind which nothing can be measured."""
    for name, parameter in module.named_parameters():
        if name.endswith("weight") and parameter.ndim > 1 and not parameter.abs().max():
            nn.init.normal_(parameter, std=0.02)
    return module.eval()


class FirstOutput(nn.Module):
    def __init__(self, model, names, **options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=False, **self.options)[0]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(1000, 128)
        self.layers = getattr(nn, kind)(128, 256, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(512, 10)

    def forward(self, ids):
        return self.head(self.layers(self.embedding(ids))[0].mean(1))


class GroupNormUnet(nn.Module):
    def __init__(self):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())

        self.down = nn.ModuleList([block(3, 32), block(32, 64), block(64, 128)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)])
        self.join = nn.ModuleList([block(128, 64), block(64, 32)])
        self.head = nn.Conv2d(32, 4, 1)

    def forward(self, x):
        fine = self.down[0](x)
        middle = self.down[1](F.max_pool2d(fine, 2))
        y = self.join[0](torch.cat([self.up[0](self.down[2](F.max_pool2d(middle, 2))), middle], 1))
        return self.head(self.join[1](torch.cat([self.up[1](y), fine], 1)))


def tokens(length):
    generator = torch.Generator().manual_seed(SEED)
    return [torch.randint(1, 1000, (1, length), generator=generator) for _ in range(SAMPLES)]


def text_encoder(config):
    import transformers

    config._attn_implementation = "eager"
    names = ("input_ids", "attention_mask")
    module = FirstOutput(transformers.AutoModel.from_config(config), names)
    axes = {name: {0: "batch", 1: "sequence"} for name in names}
    samples = [dict(zip(names, (ids, torch.ones_like(ids)))) for ids in tokens(64)]
    return module, samples, {"dynamic_axes": axes}


def language_model(config):
    import transformers

    config._attn_implementation = "eager"
    module = FirstOutput(transformers.AutoModelForCausalLM.from_config(config), ("input_ids",), use_cache=False)
    return module, [{"input_ids": ids} for ids in tokens(64)], {"dynamo": True}


def transformers_network(name):
    import transformers as t

    small = dict(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536)
    llama = dict(hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1376, vocab_size=8000)
    encoders = {
        "minilm": lambda: t.BertConfig(**small),
        "distilbert": lambda: t.DistilBertConfig(n_layers=3),
        "roberta": lambda: t.RobertaConfig(**small),
        "albert": lambda: t.AlbertConfig(**small),
        "electra": lambda: t.ElectraConfig(**small),
        "deberta_v2": lambda: t.DebertaV2Config(
            **small, vocab_size=2000, relative_attention=True, position_buckets=256, pos_att_type=["p2c", "c2p"]
        ),
    }  # fmt: skip
    if name in encoders:
        return text_encoder(encoders[name]())
    if name == "whisper_tiny_encoder":
        config = t.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
        config._attn_implementation = "eager"
        generator = torch.Generator().manual_seed(SEED)
        samples = [{"input_features": torch.randn(1, 80, 3000, generator=generator)} for _ in range(SAMPLES)]
        return FirstOutput(t.WhisperModel(config).encoder, ("input_features",)), samples, {}
    causal = {
        "gpt2": lambda: t.GPT2Config(n_layer=6),
        "llama_tiny": lambda: t.LlamaConfig(**llama, num_key_value_heads=4),
        "qwen2_tiny": lambda: t.Qwen2Config(**llama, num_key_value_heads=2),
    }
    return language_model(causal[name]())


TRANSFORMERS = (
    "minilm", "distilbert", "roberta", "albert", "electra", "deberta_v2", "whisper_tiny_encoder", "gpt2", "llama_tiny",
    "qwen2_tiny",
)  # fmt: skip
OWN = {
    "text_lstm": lambda: (Recurrent("LSTM"), [{"ids": ids} for ids in tokens(64)], {}),
    "text_gru": lambda: (Recurrent("GRU"), [{"ids": ids} for ids in tokens(64)], {}),
    "text_rnn": lambda: (Recurrent("RNN"), [{"ids": ids} for ids in tokens(64)], {}),
    "unet_groupnorm": lambda: (GroupNormUnet(), [{"input": x[None]} for x in pictures(SAMPLES, 128, SEED)], {}),
}
NAMES = (
    *CLASSIFICATION,
    *OTHERS,
    *TRANSFORMERS,
    *OWN,
    *(name + NEWER_EXPORTER for name in ("resnet18", "mobilenet_v3_large", "vit_b_16", "swin_t")),
)


def torchvision_network(name):
    options = {"weights": None}
    if name in OTHERS and "raft" not in name and "r3d" not in name:
        options["weights_backbone"] = None
    module = torchvision.models.get_model(name, **options)
    side = SIDES.get(name, 224)
    images = [{"input": x[None]} for x in pictures(SAMPLES, side, SEED)]
    if "r3d" in name:
        images = [{"input": pictures(8, 112, s).transpose(0, 1)[None]} for s in range(SAMPLES)]
    if "raft" in name:
        pairs = [pictures(2, 128, s) for s in range(SAMPLES)]
        images = [{"first": pair[:1].clamp(-1, 1), "second": pair[1:].clamp(-1, 1)} for pair in pairs]
    return module, images, {}


def network(name):
    """The module in evaluation mode, always with the same weights; its samples by name; options of the exporter."""
    torch.manual_seed(SEED)
    newer = name.endswith(NEWER_EXPORTER)
    name = name.removesuffix(NEWER_EXPORTER)
    make = OWN.get(name) or functools.partial(
        transformers_network if name in TRANSFORMERS else torchvision_network, name
    )
    module, samples, options = make()
    return without_zero_layers(module), samples, options | ({"dynamo": True} if newer else {})


def samples_in(path):
    if not path.exists():
        return 0
    with np.load(path) as inputs:
        return len(inputs[inputs.files[0]])


def make(name, folder, opset=17):
    """FOLDER/NAME.onnx and FOLDER/NAME.npz (the samples, stacked by input), unless they are there with as many samples."""
    folder = pathlib.Path(folder)
    path = folder / f"{name}.onnx"
    if path.exists() and samples_in(path.with_suffix(".npz")) == SAMPLES:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), contextlib.suppress(ImportError), torch.no_grad():
        warnings.simplefilter("ignore")
        module, samples, options = network(name)
        options = {"dynamo": False, "opset_version": opset} | options
        if options["dynamo"]:
            options |= {"opset_version": max(opset, 18), "external_data": False, "verbose": False}
        torch.onnx.export(module, tuple(samples[0].values()), str(path), input_names=list(samples[0]), **options)
    stacked = {key: np.stack([sample[key].numpy() for sample in samples]) for key in samples[0]}
    np.savez(path.with_suffix(".npz"), **stacked)
    return path
