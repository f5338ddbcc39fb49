#!/usr/bin/env python3
"""Is qtensor faster than its peers on this machine? Times networks and layers, prints one table and what is below 1.

nets         int8 networks against the fastest of ONNX Runtime's float, its int8 and PyTorch's int8: batch 1 with one
             and two threads, batch 16 of two networks
layers       single layers against oneDNN, one thread
layers-avx2  the same with both engines held to AVX2; weights have seven bits, with which oneDNN is exact
layers-avx2-8bit  as above with weights of eight bits: oneDNN's sums saturate, its results differ

All engines of a row take turns over many rounds. A time is the median over the rounds, a ratio the median of the
rounds' ratios to the fastest peer (above 1: qtensor is the faster one), p10 and p90 what one round of ten is below and
above.

benchmarks/compare builds what this needs and calls it.
"""

import argparse
import csv
import os
import pathlib
import subprocess
import sys

import peer_lib
import performance
import record

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"
SECTIONS = ("nets", "layers", "layers-avx2", "layers-avx2-8bit")
HELD_TO_AVX2 = {"QTENSOR_ISA": "avx2", "DNNL_MAX_CPU_ISA": "AVX2"}
FIELDS = (
    "section", "set", "case", "threads", "isa", "macs", "qtensor_us", "qtensor_fp32_us", "ort_fp32_us", "ort_int8_us",
    "torch_int8_us", "onednn_us", "qtensor_gmacs", "onednn_gmacs", "peak_gmacs", "qtensor_of_peak", "onednn_of_peak", "differing",
    "qtensor_kernel", "onednn_kernel", "peer", "ratio_p10", "ratio_p90", "ratio", "cpu", "qtensor", "peers",
)  # fmt: skip
SHOWN = (
    "group", "case", "qtensor_us", "qtensor_fp32_us", "ort_fp32_us", "ort_int8_us", "torch_int8_us", "onednn_us",
    "qtensor_gmacs", "onednn_gmacs", "qtensor_of_peak", "onednn_of_peak", "peer", "ratio_p10", "ratio_p90", "ratio",
)  # fmt: skip


def net_rows(arguments):
    # Imported here: PyTorch's import takes longer than --help may.
    import nets
    import onnxruntime
    import torch

    for row in nets.rows(arguments):
        yield row | {"peers": f"onnxruntime {onnxruntime.__version__}, torch {torch.__version__}"}


def layer_rows(arguments, section, environment, weight_bits=7):
    program = BUILD / "benchmarks" / "layers" / "qtensor_layers"
    if not program.exists():
        print(f"{section}: left out, {program} is not built (it needs oneDNN: libdnnl-dev)", file=sys.stderr)
        return
    if section != "layers" and "avx2" not in record.cpu_name():
        print(f"{section}: left out, this CPU has no AVX2", file=sys.stderr)
        return
    command = [program, str(arguments.layer_rounds), str(weight_bits)]
    process = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    for row in csv.DictReader(process.stdout):
        yield row | {"section": section, "case": row.pop("layer"), "threads": 1, "peer": "onednn"}
    if process.wait():
        raise SystemExit(f"{section}: {program.name} ended with exit code {process.returncode}")


def measured(arguments):
    sections = {
        "nets": lambda: net_rows(arguments),
        "layers": lambda: layer_rows(arguments, "layers", {}),
        "layers-avx2": lambda: layer_rows(arguments, "layers-avx2", HELD_TO_AVX2),
        "layers-avx2-8bit": lambda: layer_rows(arguments, "layers-avx2-8bit", HELD_TO_AVX2, weight_bits=8),
    }
    revision = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True
    ).stdout.strip()
    for section in arguments.only or SECTIONS:
        for row in sections[section]():
            print(f"{section} {row['set']} {row['case']}: {row['ratio']} of {row['peer']}", file=sys.stderr, flush=True)
            yield row | {"cpu": record.cpu_name(), "qtensor": revision}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peer_lib.add_common_arguments(parser)
    parser.add_argument("--only", action="append", choices=SECTIONS, help="this section; may be given again")
    parser.add_argument("--batch", type=int, help="of networks, instead of the three settings above")
    parser.add_argument("--quick", action="store_true", help="a quarter of the rounds")
    parser.add_argument("--seconds", type=float, default=0.25, help="length of a network's turn (%(default)s)")
    parser.set_defaults(qtensor=BUILD / "tools" / "qtensor", threads=None)
    arguments = parser.parse_args()
    arguments.rounds, arguments.layer_rounds = (5, 11) if arguments.quick else (21, 41)

    print(f"{record.cpu_name()}, load {os.getloadavg()[0]:.1f} before", flush=True)
    rows = list(measured(arguments))
    if arguments.csv:
        record.write_csv(arguments.csv, rows, FIELDS)
    table = [row | {"group": f"{row['section']} {row['set']}"} for row in performance.with_means(rows)]
    peer_lib.print_table(SHOWN, [[row.get(field, "") for field in SHOWN] for row in table])
    below = [row for row in table if float(row["ratio"]) < 1]
    print(f"\nbelow 1: {len(below)} of {len(table)}" if below else "\nnothing is below 1")
    for row in below:
        spread = f" ({row['ratio_p10']} to {row['ratio_p90']}) of {row['peer']}" if "peer" in row else ""
        print(f"  {row['group']} {row['case']}: {row['ratio']}{spread}")


if __name__ == "__main__":
    main()
