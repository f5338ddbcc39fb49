"""torchvision's builders by name: `NAMES`, and `network(name, count)` with so many samples."""

import torch
import torch.nn as nn
import torchvision

from models.zoo_transformers import picture

CLASSIFICATION = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3",
    "maxvit_t", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "regnet_x_400mf", "regnet_y_400mf", "resnet18",
    "resnext50_32x4d", "shufflenet_v2_x1_0", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11_bn", "vit_b_16",
    "wide_resnet50_2",
)  # fmt: skip
SEGMENTATION = ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50")
DETECTION = {  # what they need to find anything with random weights
    "ssdlite320_mobilenet_v3_large": dict(score_thresh=0.011, detections_per_img=20, topk_candidates=50),
    "fasterrcnn_mobilenet_v3_large_320_fpn": dict(box_score_thresh=0.011, box_detections_per_img=20),
    "retinanet_resnet50_fpn": dict(score_thresh=0.005, detections_per_img=20, topk_candidates=50),
    "fcos_resnet50_fpn": dict(score_thresh=0.005, detections_per_img=20, topk_candidates=50),
    "maskrcnn_resnet50_fpn": dict(box_score_thresh=0.011, box_detections_per_img=10, rpn_post_nms_top_n_test=100),
    "keypointrcnn_resnet50_fpn": dict(box_score_thresh=0.05, box_detections_per_img=5, rpn_post_nms_top_n_test=100),
}
VIDEO = {"r3d_18": 8, "mc3_18": 8, "r2plus1d_18": 8, "s3d": 16, "swin3d_t": 8, "mvit_v2_s": 16}
NAMES = (*CLASSIFICATION, *SEGMENTATION, *DETECTION, *VIDEO, "raft_small")
SIDES = {"inception_v3": 299, "swin_v2_t": 256, "raft_small": 128, "maskrcnn_resnet50_fpn": 160}
SIDES |= {"keypointrcnn_resnet50_fpn": 160, "swin3d_t": 64, "s3d": 224, "mvit_v2_s": 224}
SIDES |= dict.fromkeys((*SEGMENTATION, "retinanet_resnet50_fpn", "fcos_resnet50_fpn"), 128)
SIDES |= {"ssdlite320_mobilenet_v3_large": 320, "fasterrcnn_mobilenet_v3_large_320_fpn": 192}


def sample(name, index):
    side = SIDES.get(name, 112 if name in VIDEO else 224)
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
    module = torchvision.models.get_model(name, **options)
    if name in DETECTION:
        module = Detector(module, SIDES[name])
    elif name in SEGMENTATION:
        module = Named(module)
    elif "raft" in name:
        module = Flow(module)
    return module, [sample(name, index) for index in range(count)]
