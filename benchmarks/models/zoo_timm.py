"""Image classifiers of timm, the smallest of each family: `NAMES`, and `network(name, count)` with so many samples.

Left out are families that torchvision or transformers have, and members of more than 40 million weights. Those that begin
with `tf_` pad as TensorFlow does, by amounts that the exported network computes of its shapes.
"""

from models.zoo_transformers import picture

PREFIX = "timm_"
MODELS = (
    "bat_resnext26ts", "cait_xxs24_224", "coat_tiny", "convit_tiny", "convmixer_768_32", "convnext_zepto_rms",
    "cpubone_nano", "crossvit_tiny_240", "cs3darknet_focus_s", "csatv2", "cspnext_tiny", "davit_tiny", "dla46x_c",
    "dpn48b", "edgenext_xx_small", "efficientformer_l1", "efficientformerv2_s0", "efficientnet_lite0", "efficientvim_m1",
    "efficientvit_b0", "efficientvit_m0", "ese_vovnet19b_slim_dw", "fasternet_t0", "fastvit_t8", "gcvit_xxtiny",
    "ghostnet_050", "ghostnetv3_050", "gmlp_ti16_224", "halonet_h1", "hardcorenas_b", "hgnetv2_b0", "hrnet_w18_small",
    "iformer_t", "inception_next_atto", "lcnetv2_small", "legacy_seresnet18", "legacy_xception", "lowformer_b0",
    "mambaout_femto", "maxvit_pico_rw_256", "mixnet_s", "mobilenet_edgetpu_100", "mobileone_s1", "mvitv2_tiny",
    "nest_tiny", "nextvit_small", "nf_regnet_b0", "pit_ti_224", "poolformerv2_s12", "rdnet_tiny", "regnetz_005",
    "repghostnet_050", "repvgg_a0", "repvit_m1", "res2next50", "resnest14d", "resnetv2_18", "rexnet_100", "selecsls42",
    "sequencer2d_s", "shvit_s1", "skresnet18", "starnet_s050", "swiftformer_xs", "swinv2_cr_tiny_224",
    "tf_mixnet_s", "tf_mobilenetv3_small_075", "tiny_vit_5m_224", "tinynet_e", "tnt_s_legacy_patch16_224", "tresnet_m",
    "twins_svt_small", "visformer_tiny", "vit_srelpos_small_patch16_224", "vit_tiny_patch16_dinov3_qkvb",
    "vit_tiny_r_s16_p8_224", "vitamin_small_224", "volo_d1_224", "xception41p", "xcit_nano_12_p8_224",
)  # fmt: skip
NAMES = tuple(PREFIX + model for model in MODELS)
NEEDS_NEWER_EXPORTER = {PREFIX + model for model in ("csatv2", "halonet_h1", "vit_tiny_patch16_dinov3_qkvb", "volo_d1_224")}


def network(name, count):
    import timm

    module = timm.create_model(name.removeprefix(PREFIX), pretrained=False)
    side = module.default_cfg["input_size"][1]
    return module, [{"input": picture(index, side)} for index in range(count)]
