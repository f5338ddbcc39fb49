"""Transformers at the size at which people run them, each at one length: `NAMES`, and `network(name, count)`."""

import functools

import torch

from models import zoo_transformers

MINILM = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
DECODER = dict(hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1376, vocab_size=8000)
WHISPER = dict(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
NETWORKS = {  # name: configuration, its settings, sizes, with which names of rows end: a length, or a batch and its length
    "bert_base": ("Bert", {}, (128,)),
    "distilbert_base": ("DistilBert", {}, (128,)),
    "minilm_l6": ("Bert", MINILM, (16, 128, 512, "32x16", "32x128", "32x512")),
    "gpt2_l6": ("GPT2", dict(n_layer=6), (64, 512)),
    "llama_l4": ("Llama", DECODER | dict(num_key_value_heads=4), (64, 512)),
    "qwen2_l4": ("Qwen2", DECODER | dict(num_key_value_heads=2), (64, 512)),
}
DECODERS = ("gpt2_l6", "llama_l4", "qwen2_l4")
NAMES = (*(f"{name}_{size}" for name, row in NETWORKS.items() for size in row[2]), "whisper_l4_encoder")
NEEDS_NEWER_EXPORTER = {name for name in NAMES if name.startswith(DECODERS)}


def batch_of(sample, size, index):
    *batch, length = map(int, size.split("x"))
    count = batch[0] if batch else 1
    rows = [sample(index * count + i, length) for i in range(count)]
    return {name: torch.cat([row[name] for row in rows]) for name in rows[0]}


def network(name, count):
    import transformers

    if name == "whisper_l4_encoder":
        config, settings, sample = "Whisper", WHISPER, zoo_transformers.READS["mel"]
    else:
        family, size = name.rsplit("_", 1)
        config, settings, _ = NETWORKS[family]
        one = zoo_transformers.tokens_of if family in DECODERS else zoo_transformers.text
        sample = functools.partial(batch_of, one, size)
    config = getattr(transformers, config + "Config")(**settings)
    config._attn_implementation = "eager"
    samples = [sample(index) for index in range(count)]
    if name == "whisper_l4_encoder":
        module, options = transformers.WhisperModel(config).encoder, {}
    elif name.startswith(DECODERS):
        module, options = transformers.AutoModelForCausalLM.from_config(config), {"use_cache": False}
    else:
        module, options = transformers.AutoModel.from_config(config), {}
    return zoo_transformers.FirstOutput(module, tuple(samples[0]), **options), samples
