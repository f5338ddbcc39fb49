#!/usr/bin/env python3
"""Networks in int8 compared with ONNX Runtime and OpenVINO on the same file, in one process, in turns.

A network of the zoo is quantized with what lies beside it as .npz, and saved as QDQ, which all three run. inference.py says what the
columns are. With --plain nothing is corrected, and no layer stays in float because the network would be of no use otherwise, as in
inception_v3 with random weights.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/integers.py --python build/release/python --csv integers.csv
"""

import functools
import pathlib
import tempfile

import numpy as np

import inference
import network_table
import peer_lib

NAMES = (
    "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "shufflenet_v2_x1_0", "densenet121",
    "squeezenet1_1", "googlenet", "inception_v3", "regnet_y_400mf", "convnext_tiny", "swin_t", "vit_b_16", "minilm", "bert_base",
)  # fmt: skip


@functools.cache
def quantized(path, folder, plain):
    """The file that we make of a network, and the inputs to run it with."""
    import qtensor

    inputs = inference.sample_of(path, peer_lib.ort_session(path, 1))
    stored = np.load(path.with_suffix(".npz"))
    samples = [{key: stored[key][i] for key in inputs} for i in range(len(stored[next(iter(inputs))]))]
    made = folder / path.name
    qtensor.Model.load(str(path)).quantize(samples, attrs={"plain": True} if plain else {}).save(str(made))
    return made, inputs


def main():
    parser = network_table.parser_of(__doc__, threads=[1, 2], seconds=0.5, rounds=7)
    parser.add_argument("--plain", action="store_true", help="ranges only, no corrections, and no layers left in float")
    with tempfile.TemporaryDirectory() as folder:

        def measure(path, threads, arguments):
            made, inputs = quantized(path, pathlib.Path(folder), arguments.plain)
            return inference.in_turns(made, inputs, peer_lib.ort_session(made, threads), threads, arguments)

        network_table.write(parser, NAMES, inference.FIELDS, measure)


if __name__ == "__main__":
    main()
