#!/usr/bin/env python3
"""Weights of 4 and 8 bits with float activations, a few rows at a time: single products, and a decoder that makes one
token with a past of 512.

The decoder takes the past as inputs and gives the keys and values of its token, which the caller keeps. Both engines run
the same file, in which weights are MatMulNBits with random codes as ONNX Runtime's quantizer lays them out (blocks of 32
for 4 bits, of 128 for 8). `qtensor` and `ort`, which is ONNX Runtime, have accuracy_level 0, floats; `qtensor_level4` and
`ort_level4` bring activations to 8 bits. `float` and `ort_float` run the floats for which the codes stand. All take turns
in one process; with one thread the clock is CPU time. `read_gbs` is how fast the same process reads memory, and
`copy_gbs` how fast it copies, bytes read and bytes written; `share` and `share_level4` are the parts of `read_gbs` at
which our sessions pass over the weights that they hold and over their inputs, which the past is. `ratio` is the time of `ort` by that of `qtensor`,
`ratio_level4` that of `ort_level4` by that of `qtensor_level4`.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/decoding.py --python build/release/python --csv decoding.csv --page docs/transformers.md
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import peer_lib
import record
from inference import turn_of

PAST, HEAD = 512, 64
BLOCKS = {4: 32, 8: 128}
PRODUCTS = [(rows, k, n) for k, n in ((4096, 4096), (2048, 8192)) for rows in (1, 2, 4, 8, 128)]
DECODERS = [(1024, 8), (2048, 4)]  # hidden size, layers
MARKERS = ("<!-- decoding from the csv -->\n", "<!-- end of the decoding -->\n")
FIELDS = (
    "network", "rows", "bits", "threads", "qtensor_ms", "ort_ms", "qtensor_level4_ms", "ort_level4_ms", "float_ms", "ort_float_ms", "ratio",
    "ratio_level4", "weights_mib", "float_weights_mib", "gbs", "gbs_level4", "read_gbs", "copy_gbs", "share", "share_level4", "cpu", "peers",
)  # fmt: skip


class Network:
    """Nodes of a file whose matrices are codes, or with 32 bits the floats for which 4-bit ones stand."""

    def __init__(self, bits, level):
        self.bits, self.level, self.random = bits, level, np.random.default_rng(7)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def node(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"{op}_{name}", **attributes))
        return name

    def product(self, x, k, n):
        block = BLOCKS.get(self.bits, 32)
        if self.bits == 32:
            weights = self.random.standard_normal((k, n), np.float32) * np.float32(k**-0.5)
            return self.node("MatMul", x, self.constant(weights))
        codes = self.random.integers(0, 256, (n, k // block, block * self.bits // 8), np.uint8)
        spread = np.float32(2 ** (self.bits - 1) / 1.7 * k**0.5)
        scales = self.random.uniform(0.8, 1.2, n * k // block).astype(np.float32) / spread
        return self.node(
            "MatMulNBits", x, self.constant(codes), self.constant(scales), domain="com.microsoft", K=k, N=n, bits=self.bits,
            block_size=block, accuracy_level=self.level,
        )  # fmt: skip

    def normalized(self, x, hidden):
        return self.node("LayerNormalization", x, self.constant(np.ones(hidden, np.float32)), axis=-1)

    def attention(self, x, hidden, layer):
        heads = hidden // HEAD
        by_head, flat = self.constant(np.array([1, 1, heads, HEAD])), self.constant(np.array([1, 1, hidden]))
        q, k, v = (
            self.node("Transpose", self.node("Reshape", self.product(x, hidden, hidden), by_head), perm=[0, 2, 1, 3])
            for _ in range(3)
        )
        past = [self.input(f"{kind}_{layer}", [1, heads, PAST, HEAD]) for kind in ("keys", "values")]
        for now in (k, v):
            self.output(now, [1, heads, 1, HEAD])
        k, v = (self.node("Concat", before, now, axis=2) for before, now in zip(past, (k, v)))
        q = self.node("Mul", q, self.constant(np.float32(HEAD**-0.5)))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        return self.product(self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), flat), hidden, hidden)

    def feed_forward(self, x, hidden):
        inner = hidden * 11 // 4
        gate, up = self.product(x, hidden, inner), self.product(x, hidden, inner)
        return self.product(self.node("Mul", self.node("Mul", gate, self.node("Sigmoid", gate)), up), inner, hidden)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "decoding", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
        return path


def product(rows, k, n, bits, level):
    network = Network(bits, level)
    network.output(network.product(network.input("x", [rows, k]), k, n), [rows, n])
    return network


def decoder(hidden, layers, bits, level):
    network = Network(bits, level)
    x = network.input("x", [1, 1, hidden])
    for layer in range(layers):
        x = network.node("Add", x, network.attention(network.normalized(x, hidden), hidden, layer))
        x = network.node("Add", x, network.feed_forward(network.normalized(x, hidden), hidden))
    network.output(x, [1, 1, hidden])
    return network


def bandwidth():
    """Bytes of memory that this process reads, and copies both ways, in a second."""
    source = np.ones(64 << 20, np.int32)
    target = np.zeros_like(source)
    read = lambda: source.max()
    copy = lambda: np.copyto(target, source)
    return {"read": (read, source.nbytes), "copy": (copy, 2 * source.nbytes)}


def measure(make, bits, threads, arguments, moved, folder):
    import qtensor

    clock = time.process_time if threads == 1 else time.perf_counter
    files = {name: make(*form).save(folder / f"{name}.onnx") for name, form in {"ort": (bits, 0), "ort_level4": (bits, 4), "ort_float": (32, 0)}.items()}
    sources = {"qtensor": files["ort"], "qtensor_level4": files["ort_level4"], "float": files["ort_float"]}
    if bits == 8 and not arguments.slow:
        del files["ort"]  # a second for each product
    peers = {name: peer_lib.ort_session(path, threads) for name, path in files.items()}
    ours = {name: qtensor.Session(qtensor.Model.load(str(path)), {"threads": threads}) for name, path in sources.items()}
    random = np.random.default_rng(1)
    inputs = {x.name: random.standard_normal(x.shape, np.float32) for x in peers["ort_float"].get_inputs()}
    values = list(inputs.values())
    calls = {name: (lambda session=session: session.run(None, inputs)) for name, session in peers.items()}
    calls |= {name: (lambda session=session: session(*values)) for name, session in ours.items()}
    calls |= {name: call for name, (call, _) in moved.items()}
    taken = peer_lib.take_turns({name: turn_of(call, arguments.seconds, clock) for name, call in calls.items()}, arguments.rounds)
    ms = {name: statistics.median(values) for name, values in taken.items()}
    row = {f"{name}_ms": f"{ms[name]:.3f}" for name in (*ours, *peers)}
    for level in ("", "_level4"):
        if f"ort{level}" in taken:
            pairs = zip(taken[f"qtensor{level}"], taken[f"ort{level}"])
            row[f"ratio{level}"] = f"{statistics.median(b / a for a, b in pairs):.2f}"
    held = {name: session.profile(values)["weights_bytes"] for name, session in ours.items()}
    speed = {name: size / ms[name] / 1e6 for name, (_, size) in moved.items()}
    for level in ("", "_level4"):
        gbs = (held[f"qtensor{level}"] + sum(v.nbytes for v in values)) / ms[f"qtensor{level}"] / 1e6
        row |= {f"gbs{level}": f"{gbs:.1f}", f"share{level}": f"{100 * gbs / speed['read']:.0f}"}
    return row | {
        "weights_mib": f"{held['qtensor'] / 2**20:.1f}", "float_weights_mib": f"{held['float'] / 2**20:.1f}",
        "read_gbs": f"{speed['read']:.1f}", "copy_gbs": f"{speed['copy']:.1f}",
    }  # fmt: skip


def page(rows):
    shown = {
        "qtensor_ms": "qtensor", "ort_ms": "ONNX Runtime", "ratio": "ratio", "qtensor_level4_ms": "qtensor, level 4",
        "ort_level4_ms": "ONNX Runtime, level 4", "ratio_level4": "ratio", "float_ms": "qtensor, float", "weights_mib": "MiB",
        "float_weights_mib": "float: MiB", "share": "of reading, %", "share_level4": "level 4, %",
    }  # fmt: skip
    lines = [f"| ms | bits | rows | {' | '.join(shown.values())} |", "|---" * (len(shown) + 3) + "|"]
    for row in rows:
        cells = [row.get(name, "") for name in shown]
        lines.append("| " + " | ".join([row["network"], str(row["bits"]), str(row["rows"]), *cells]) + " |")
    return f"{rows[0]['cpu']}; {rows[0]['peers']}.\n\n" + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, default="build/release/python", help="of ours (%(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--bits", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--slow", action="store_true", help="ONNX Runtime with 8 bits and accuracy_level 0 too")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the rows to")
    parser.add_argument("--page", type=pathlib.Path, help="page whose table is replaced")
    parser.add_argument("names", nargs="*", metavar="NETWORK", help="those whose name begins so")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.python))
    about = {"cpu": record.cpu_name(), "peers": f"onnxruntime {onnxruntime.__version__}"}
    networks = [
        (f"product_{k}x{n}", rows, lambda bits, level, r=rows, k=k, n=n: product(r, k, n, bits, level))
        for rows, k, n in PRODUCTS
    ] + [
        (f"decoder_{hidden}x{layers}", 1, lambda bits, level, h=hidden, l=layers: decoder(h, l, bits, level))
        for hidden, layers in DECODERS
    ]
    rows, moved = [], bandwidth()
    for name, count, make in networks:
        if arguments.names and not name.startswith(tuple(arguments.names)):
            continue
        for bits in arguments.bits:
            for threads in arguments.threads:
                with tempfile.TemporaryDirectory() as folder:
                    row = measure(make, bits, threads, arguments, moved, pathlib.Path(folder))
                rows.append({"network": name, "rows": count, "bits": bits, "threads": threads} | row | about)
                print(*(f"{key}={rows[-1][key]}" for key in FIELDS[:-2] if key in rows[-1]), flush=True)
                if arguments.csv:
                    record.write_csv(arguments.csv, rows, FIELDS)
    if arguments.page:
        record.replace_between(arguments.page, MARKERS, page(rows))


if __name__ == "__main__":
    main()
