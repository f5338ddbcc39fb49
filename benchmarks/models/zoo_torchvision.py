"""torchvision's builders by name: `NAMES` are all of them but those that are quantized already, and
`network(name, count)` makes one with so many samples."""

import torch
import torch.nn as nn
from torchvision import models

from models.zoo_transformers import picture


def of(room):
    return models.list_models(module=room)


CLASSIFICATION, SEGMENTATION = of(models), of(models.segmentation)
RANDOM_WEIGHTS = {  # what detectors need to find anything with those
    "fasterrcnn": dict(box_score_thresh=0.011, box_detections_per_img=20),
    "fcos": dict(score_thresh=0.005, detections_per_img=20, topk_candidates=50),
    "keypointrcnn": dict(box_score_thresh=0.05, box_detections_per_img=5, rpn_post_nms_top_n_test=100),
    "maskrcnn": dict(box_score_thresh=0.011, box_detections_per_img=10, rpn_post_nms_top_n_test=100),
    "retinanet": dict(score_thresh=0.005, detections_per_img=20, topk_candidates=50),
    "ssd300": dict(score_thresh=0.011, detections_per_img=20, topk_candidates=50),
    "ssdlite320": dict(score_thresh=0.011, detections_per_img=20, topk_candidates=50),
}
DETECTION = {name: RANDOM_WEIGHTS[name.split("_")[0]] for name in of(models.detection)}
VIDEO = dict.fromkeys(of(models.video), 8) | {"s3d": 16, "mvit_v1_b": 16, "mvit_v2_s": 16}
NAMES = (*CLASSIFICATION, *SEGMENTATION, *DETECTION, *VIDEO, *of(models.optical_flow))
SIDES = dict.fromkeys((*SEGMENTATION, "raft_small", "raft_large"), 128) | dict.fromkeys(DETECTION, 128)
SIDES |= {name: 160 for name in DETECTION if name.startswith(("maskrcnn", "keypointrcnn"))}
SIDES |= {name: 192 for name in DETECTION if name.startswith("fasterrcnn")}
SIDES |= {"ssd300_vgg16": 300, "ssdlite320_mobilenet_v3_large": 320}
SIDES |= dict.fromkeys(VIDEO, 112) | {name: 64 for name in VIDEO if name.startswith("swin3d")}
SIDES |= {"s3d": 224, "mvit_v1_b": 224, "mvit_v2_s": 224, "inception_v3": 299}
SIDES |= {name: 256 for name in CLASSIFICATION if name.startswith("swin_v2")}


def sample(name, index):
    side = SIDES.get(name, 224)
    if name in VIDEO:
        return {"input": picture(index, side, VIDEO[name]).transpose(1, 2)}
    if "raft" in name:
        return {"first": picture(index, side).clamp(-1, 1), "second": picture(index + 99, side).clamp(-1, 1)}
    return {"input": picture(index, side)}


class Detector(nn.Module):
    """A detector that does not resize. What its heads say comes first: a small change can leave another list of boxes
    in the end, so quantization is measured at the heads."""

    def __init__(self, model, size):
        super().__init__()
        self.model = model
        self.model.transform.fixed_size = (size, size)
        self.heads = []
        head = model.head if hasattr(model, "head") else model.rpn.head
        head.register_forward_hook(lambda head, inputs, said: self.heads.extend(flat(said)))

    def forward(self, images):
        self.heads.clear()
        found = self.model([images[0]])[0]
        return (*self.heads, *found.values())


def flat(said):
    said = said.values() if isinstance(said, dict) else said
    return [said] if isinstance(said, torch.Tensor) else [tensor for part in said for tensor in flat(part)]


class Flow(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, first, second):
        return self.model(first, second, num_flow_updates=4)[-1]


class Named(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        return self.model(images)["out"]


def network(name, count):
    options = {"weights": None} | DETECTION.get(name, {})
    if name in DETECTION or name in SEGMENTATION:
        options["weights_backbone"] = None
    module = models.get_model(name, **options)
    if name.startswith("ssd300"):  # it has no BatchNorm: its scores would all be 1
        for weight in module.head.classification_head.parameters():
            weight.data *= 0.05
    if name in DETECTION:
        module = Detector(module, SIDES[name])
    elif name in SEGMENTATION:
        module = Named(module)
    elif "raft" in name:
        module = Flow(module)
    return module, [sample(name, index) for index in range(count)]
