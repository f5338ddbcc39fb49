#!/usr/bin/env python3
"""Networks in float32 compared with ONNX Runtime's and OpenVINO's, in one process, in turns.

Networks are those of the zoo, or files that have their inputs beside them as .npz. inference.py says what the columns are.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/floats.py --python build/release/python --csv floats.csv
"""

import inference
import network_table

NAMES = (
    "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "shufflenet_v2_x1_0", "densenet121",
    "squeezenet1_1", "googlenet", "regnet_y_400mf", "convnext_tiny", "swin_t", "vit_b_16", "unet_groupnorm", "r3d_18",
    "minilm", "distilbert", "text_lstm", "text_gru",
)  # fmt: skip


if __name__ == "__main__":
    parser = network_table.parser_of(__doc__, threads=[1, 2], seconds=0.5, rounds=7)
    network_table.write(parser, NAMES, inference.FIELDS, inference.measure)
