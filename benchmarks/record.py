"""Tables of measurements, and what they were measured on. Imports nothing but Python's own library."""

import csv
import os
import pathlib
import platform

# Some machines are told to use the kernels of an older CPU than they have; users' are not.
os.environ.pop("OPENBLAS_CORETYPE", None)


def cpu_name():
    """The processor and the instructions that decide how fast int8 can be."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(map(str.strip, line.split(":", 1)) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    shown = [flag for flag in ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "asimddp", "i8mm") if flag in flags]
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']} model {fields['model']})"
    return " ".join([name, *shown])


def replace_between(path, markers, text):
    """What a page has between two lines that mark it."""
    before, rest = path.read_text().split(markers[0])
    path.write_text(before + markers[0] + text + markers[1] + rest.split(markers[1])[1])


def write_csv(path, rows, fields=None):
    """Of dictionaries; what one lacks is left empty. Columns are `fields`, or those of the first row."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fields or list(rows[0]), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
