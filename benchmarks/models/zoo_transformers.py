"""Networks of transformers with small configurations: `NAMES`, and `network(name, count)` with so many samples.

A row names the configuration, what it sets, what the model reads, and its class (without it, AutoModel). Widths are
those of small members of each family, and depths are cut to what runs in a second. Left out are families whose
networks PyTorch's exporters refuse (Nystromformer, Jamba, Mixtral), and SuperPoint and PatchTST, whose exported files
ONNX Runtime refuses.
"""

import torch
import torch.nn as nn

SEED = 0
WORDS = 1000  # tokens are below this, and every vocabulary has at least as many
SMALL = dict(hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=1024, vocab_size=2000)
NEWER = {"dynamo": True}
DECODER = SMALL | dict(num_key_value_heads=2)


def numbers(index, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED + index))


def tokens(index, length, start=5):
    return torch.randint(start, WORDS, (1, length), generator=torch.Generator().manual_seed(SEED + index))


def smooth(index, *shape):
    """Waves with the spectrum 1/f of sounds and series, along the last axis."""
    white = torch.fft.rfft(numbers(index, *shape))
    wave = torch.fft.irfft(white / torch.arange(1, white.shape[-1] + 1) ** 0.5, n=shape[-1])
    return wave / wave.std()


def text(index, length=64):
    return {"input_ids": tokens(index, length), "attention_mask": torch.ones(1, length, dtype=torch.int64)}


def tokens_of(index, length=64):
    return {"input_ids": tokens(index, length)}


def padded_text(index, length=64):
    """The last words of a sentence are padding, of which each sample has another number."""
    sample = text(index, length)
    sample["attention_mask"][:, length - 1 - index % 16 :] = 0
    return sample


READS = {
    "text": text,
    "padded": padded_text,
    "perceiver": lambda index: {
        "inputs": tokens(index, 64), "attention_mask": torch.ones(1, 64, dtype=torch.int64)
    },
    "ids": tokens_of,
    "pair": lambda index: {"input_ids": tokens(index, 48), "decoder_input_ids": tokens(index + 99, 16)},
    "wave": lambda index: {"input_values": smooth(index, 1, 8000)},
    "mel": lambda index: {"input_features": smooth(index, 1, 80, 3000)},
    "frames": lambda index: {"input_features": smooth(index, 1, 80, 128).transpose(1, 2)},
    "states_and_ids": lambda index: {
        "input_ids": tokens(index, 16), "encoder_hidden_states": numbers(index, 1, 150, 256)
    },
    "spectrogram": lambda index: {"spectrogram": smooth(index, 1, 80, 40).transpose(1, 2)},
    "audio_picture": lambda index: {"input_values": smooth(index, 1, 128, 128)},
    "series": lambda index: {"past_values": smooth(index, 1, 4, 96).transpose(1, 2)},
}  # fmt: skip


def picture(index, side, frames=0):
    images = torch.zeros(max(frames, 1), 3, side, side)
    generator = torch.Generator().manual_seed(SEED + index)
    for octave in range(6):
        noise = torch.randn(len(images), 3, 4 << octave, 4 << octave, generator=generator)
        images += nn.functional.interpolate(noise, size=(side, side), mode="bilinear", align_corners=False) / 2**octave
    images /= images.std()
    return images[None] if frames else images


ENCODERS = {
    "bert_base": ("Bert", dict(num_hidden_layers=4)),
    "minilm": ("Bert", SMALL | dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536)),
    "distilbert": ("DistilBert", dict(dim=384, n_layers=3, n_heads=6, hidden_dim=1536, vocab_size=2000), "padded"),
    "roberta": ("Roberta", SMALL, "padded"),
    "albert": ("Albert", SMALL),
    "electra": ("Electra", SMALL | dict(embedding_size=128)),
    "mpnet": ("MPNet", SMALL),
    "deberta": ("Deberta", SMALL | dict(relative_attention=True, pos_att_type=["p2c", "c2p"])),
    "deberta_v2": ("DebertaV2", SMALL | dict(relative_attention=True, position_buckets=256,
                                             pos_att_type=["p2c", "c2p"])),
    "fnet": ("FNet", SMALL, "ids"),
    "convbert": ("ConvBert", SMALL | dict(embedding_size=128)),
    "squeezebert": ("SqueezeBert", SMALL | dict(embedding_size=256)),
    "mobilebert": ("MobileBert", SMALL | dict(hidden_size=256, embedding_size=64, intermediate_size=256,
                                              intra_bottleneck_size=64, num_hidden_layers=6)),
    "xlnet": ("XLNet", dict(d_model=256, n_layer=3, n_head=4, d_inner=1024, vocab_size=2000)),
    "longformer": ("Longformer", SMALL | dict(attention_window=[32, 32, 32])),
    "bigbird": ("BigBird", SMALL | dict(attention_type="original_full")),
    "roformer": ("RoFormer", SMALL | dict(embedding_size=256)),
    "modernbert": ("ModernBert", SMALL | dict(pad_token_id=0)),
    "layoutlm": ("LayoutLM", SMALL),
    "ibert": ("IBert", SMALL),
    "t5_encoder": ("T5", dict(d_model=256, d_kv=64, d_ff=1024, num_layers=3, num_heads=4, vocab_size=2000),
                   "text", "T5EncoderModel"),
    "perceiver_text": ("Perceiver", dict(num_latents=32, d_latents=256, d_model=256, num_blocks=1, vocab_size=2000,
                                         num_self_attends_per_block=3, num_self_attention_heads=4,
                                         num_cross_attention_heads=4, max_position_embeddings=64),
                       "perceiver", "PerceiverForMaskedLM"),
}  # fmt: skip
CAUSAL = {
    "gpt2": ("GPT2", dict(n_embd=384, n_layer=4, n_head=6, vocab_size=2000)),
    "gpt_neo": ("GPTNeo", dict(hidden_size=256, num_layers=4, num_heads=4, attention_types=[[["global", "local"], 2]],
                               vocab_size=2000, window_size=16)),
    "gpt_neox": ("GPTNeoX", SMALL),
    "gptj": ("GPTJ", dict(n_embd=256, n_layer=3, n_head=4, rotary_dim=32, vocab_size=2000)),
    "gpt_bigcode": ("GPTBigCode", dict(n_embd=256, n_layer=3, n_head=4, vocab_size=2000)),
    "codegen": ("CodeGen", dict(n_embd=256, n_layer=3, n_head=4, rotary_dim=32, vocab_size=2000)),
    "opt": ("OPT", SMALL | dict(ffn_dim=1024, word_embed_proj_dim=256)),
    "bloom": ("Bloom", dict(hidden_size=256, n_layer=3, n_head=4, vocab_size=2000)),
    "falcon": ("Falcon", SMALL | dict(multi_query=True)),
    "llama_tiny": ("Llama", DECODER),
    "mistral": ("Mistral", DECODER | dict(sliding_window=16)),
    "qwen2_tiny": ("Qwen2", DECODER),
    "qwen3": ("Qwen3", DECODER | dict(head_dim=64)),
    "gemma": ("Gemma", DECODER | dict(head_dim=64)),
    "gemma2": ("Gemma2", DECODER | dict(head_dim=64, sliding_window=16)),
    "phi": ("Phi", SMALL),
    "phi3": ("Phi3", DECODER | dict(pad_token_id=0)),
    "olmo2": ("Olmo2", DECODER),
    "stablelm": ("StableLm", DECODER),
    "cohere": ("Cohere", DECODER),
    "starcoder2": ("Starcoder2", DECODER),
    "persimmon": ("Persimmon", SMALL),
    "nemotron": ("Nemotron", DECODER | dict(head_dim=64)),
    "mpt": ("Mpt", dict(d_model=256, n_heads=4, n_layers=3, vocab_size=2000)),
    "ctrl": ("CTRL", dict(n_embd=256, dff=1024, n_layer=3, n_head=4, vocab_size=2000)),
    "mamba": ("Mamba", SMALL | dict(state_size=16)),
    "mamba2": ("Mamba2", dict(hidden_size=256, num_hidden_layers=2, num_heads=8, head_dim=64, state_size=16,
                              n_groups=1, chunk_size=32, vocab_size=2000)),
    "falcon_mamba": ("FalconMamba", SMALL | dict(state_size=16)),
    "rwkv": ("Rwkv", dict(hidden_size=256, num_hidden_layers=3, vocab_size=2000, attention_hidden_size=256)),
    "recurrent_gemma": ("RecurrentGemma", DECODER | dict(lru_width=256, attention_window_size=32)),
    "lfm2": ("Lfm2", DECODER | dict(full_attn_idxs=[1])),
}  # fmt: skip
VISION_SMALL = dict(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768)
PICTURES = {
    "deit": ("DeiT", VISION_SMALL, 224),
    "beit": ("Beit", VISION_SMALL | dict(use_relative_position_bias=True), 224),
    "dinov2": ("Dinov2", VISION_SMALL, 224),
    "clip_vision": ("CLIPVision", VISION_SMALL, 224, "CLIPVisionModel"),
    "siglip_vision": ("SiglipVision", VISION_SMALL, 224, "SiglipVisionModel"),
    "segformer": ("Segformer", {}, 128, "SegformerForSemanticSegmentation"),
    "mobilevit": ("MobileViT", dict(image_size=128), 128, "MobileViTForImageClassification"),
    "mobilevitv2": ("MobileViTV2", dict(image_size=128), 128, "MobileViTV2ForImageClassification"),
    "dpt": ("DPT", VISION_SMALL | dict(image_size=128, backbone_out_indices=[0, 1, 2, 3], fusion_hidden_size=64,
                                       neck_hidden_sizes=[32, 48, 96, 192]), 128, "DPTForDepthEstimation"),
    "glpn": ("GLPN", {}, 128, "GLPNForDepthEstimation"),
    "cvt": ("Cvt", {}, 96, "CvtForImageClassification"),
    "levit": ("Levit", {}, 224, "LevitForImageClassification"),
    "poolformer": ("PoolFormer", {}, 128, "PoolFormerForImageClassification"),
    "pvt": ("Pvt", dict(image_size=128), 128, "PvtForImageClassification"),
    "pvt_v2": ("PvtV2", dict(image_size=128), 128, "PvtV2ForImageClassification"),
    "swin2sr": ("Swin2SR", dict(embed_dim=60, depths=[2, 2], num_heads=[6, 6], image_size=64, upscale=2), 64,
                "Swin2SRForImageSuperResolution"),
    "focalnet": ("FocalNet", dict(image_size=128), 128, "FocalNetForImageClassification"),
    "convnext_v2": ("ConvNextV2", dict(depths=[1, 1, 2, 1]), 128, "ConvNextV2ForImageClassification"),
    "bit": ("Bit", dict(depths=[1, 1, 1, 1]), 128, "BitForImageClassification"),
    "mobilenet_v1": ("MobileNetV1", dict(depth_multiplier=0.5), 128, "MobileNetV1ForImageClassification"),
    "hiera": ("Hiera", dict(image_size=[224, 224], depths=[1, 1, 2, 1]), 224, "HieraForImageClassification"),
    "yolos": ("Yolos", VISION_SMALL | dict(image_size=[128, 128], num_detection_tokens=20), 128,
              "YolosForObjectDetection"),
    "swin_v2_hf": ("Swinv2", dict(image_size=128, embed_dim=48, depths=[2, 2], num_heads=[3, 6], window_size=8), 128),
    "sam_vision": ("SamVision", dict(hidden_size=96, num_hidden_layers=3, num_attention_heads=3, image_size=256,
                                     output_channels=32, global_attn_indexes=[2], window_size=7,
                                     initializer_range=0.02), 256, "SamVisionModel"),
    "videomae": ("VideoMAE", VISION_SMALL | dict(image_size=64, num_frames=8), (64, 8)),
    "timesformer": ("Timesformer", VISION_SMALL | dict(image_size=64, num_frames=4), (64, 4)),
    "vivit": ("Vivit", VISION_SMALL | dict(image_size=64, num_frames=8), (64, 8)),
}  # fmt: skip
SOUND_SMALL = dict(hidden_size=192, num_hidden_layers=3, num_attention_heads=4, intermediate_size=768)
CONVOLUTIONS = dict(conv_dim=[64] * 7, num_conv_pos_embeddings=32, num_conv_pos_embedding_groups=4)
WHISPER = dict(d_model=256, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=1024, decoder_layers=2,
               decoder_attention_heads=4, decoder_ffn_dim=1024, vocab_size=2000, pad_token_id=0, bos_token_id=1,
               eos_token_id=2, decoder_start_token_id=1, max_target_positions=64)  # fmt: skip
SOUNDS = {
    "wav2vec2": ("Wav2Vec2", SOUND_SMALL | CONVOLUTIONS, "wave", "Wav2Vec2ForCTC"),
    "hubert": ("Hubert", SOUND_SMALL | CONVOLUTIONS, "wave"),
    "wavlm": ("WavLM", SOUND_SMALL | CONVOLUTIONS, "wave"),
    "sew": ("SEW", SOUND_SMALL | dict(conv_dim=[32] * 13), "wave"),
    "unispeech": ("UniSpeech", SOUND_SMALL | CONVOLUTIONS, "wave"),
    "data2vec_audio": ("Data2VecAudio", SOUND_SMALL | dict(conv_dim=[64] * 7), "wave"),
    "whisper_tiny_encoder": ("Whisper", WHISPER, "mel", "WhisperModel.encoder"),
    "whisper_tiny_decoder": ("Whisper", WHISPER, "states_and_ids", "WhisperModel.decoder"),
    "speech2text": ("Speech2Text", dict(d_model=256, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=512,
                                        decoder_ffn_dim=512, vocab_size=2000), "frames", "Speech2TextModel.encoder"),
    "ast": ("AST", VISION_SMALL | dict(max_length=128, num_mel_bins=128), "audio_picture"),
    "moonshine": ("Moonshine", dict(hidden_size=144, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2,
                                    intermediate_size=576, vocab_size=2000), "wave", "MoonshineModel.encoder"),
    "hifigan": ("SpeechT5HifiGan", dict(upsample_initial_channel=128), "spectrogram", "SpeechT5HifiGan"),
    "t5": ("T5", dict(d_model=256, d_kv=64, d_ff=1024, num_layers=2, num_heads=4, vocab_size=2000), "pair", "T5Model"),
    "bart": ("Bart", dict(d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                          decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512, vocab_size=2000),
             "pair", "BartModel"),
    "marian": ("Marian", dict(d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                              decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512, vocab_size=2000,
                              pad_token_id=0, decoder_start_token_id=0), "pair", "MarianModel"),
    "patchtsmixer": ("PatchTSMixer", dict(num_input_channels=4, context_length=96, patch_length=8, patch_stride=8,
                                          d_model=32, prediction_length=24), "series", "PatchTSMixerForPrediction"),
}  # fmt: skip
NAMES = (*ENCODERS, *CAUSAL, *PICTURES, *SOUNDS)
NEEDS_NEWER_EXPORTER = {"fnet", "mobilevitv2", "moonshine", "whisper_tiny_decoder"} | set(CAUSAL) - {
    "falcon", "falcon_mamba", "rwkv"
}  # fmt: skip


class FirstOutput(nn.Module):
    """Exporters want tuples, and one output is enough to measure."""

    def __init__(self, model, names, **options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=False, **self.options)[0]


def description(name):
    """Configuration, its settings, what sample INDEX is, class of the model, options of its call."""
    if name in ENCODERS:
        config, settings, *rest = ENCODERS[name]
        reads, kind = (*rest, *("text", "AutoModel")[len(rest) :])
        return config, settings, READS[reads], kind, {}
    if name in CAUSAL:
        return *CAUSAL[name], READS["ids"], "AutoModelForCausalLM", {"use_cache": False}
    if name in PICTURES:
        config, settings, size, kind = (*PICTURES[name], "AutoModel")[:4]
        size = size if isinstance(size, tuple) else (size,)
        return config, settings, lambda index: {"pixel_values": picture(index, *size)}, kind, {}
    config, settings, reads, kind = (*SOUNDS[name], "AutoModel")[:4]
    return config, settings, READS[reads], kind, {"use_cache": False} if "ids" in reads or reads == "pair" else {}


def network(name, count):
    import transformers

    config, settings, sample, kind, options = description(name)
    config = getattr(transformers, config + "Config")(**settings)
    config._attn_implementation = "eager"
    kind, *part = kind.split(".")
    kind = getattr(transformers, kind)
    module = kind.from_config(config) if hasattr(kind, "from_config") else kind(config)
    module = getattr(module, part[0]) if part else module
    samples = [sample(index) for index in range(count)]
    return FirstOutput(module, tuple(samples[0]), **options), samples
