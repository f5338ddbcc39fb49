#!/usr/bin/env python3
"""Shows a csv of benchmarks/compare: writes the tables of docs/performance.md and the images docs/performance.svg (all
ratios) and docs/networks.svg (README's: the networks with one thread).

usage: benchmarks/performance.py benchmarks/results/compare-zen5.csv
"""

import csv
import itertools
import math
import pathlib
import sys

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
MARKERS = ("<!-- from the csv -->\n", "<!-- end of the csv -->\n")
MEAN = "geometric mean"
LAYERS = ("layers", "layers-avx2", "layers-avx2-8bit")
# Sizes within the image of all ratios, in its own units.
WIDTH, LEFT, RIGHT, ROW, TOP = 860, 230, 30, 15, 56
SCALE, TICKS = (0.4, 3), (0.5, 0.7, 1, 1.4, 2, 2.8)
COLORS = ("#1f5fa8", "#c8651b", "#3f8f4f")
BARS = (("qtensor", "qtensor int8", "#1f5fa8"), ("ort_int8", "ONNX Runtime int8", "#8a8f98"),
        ("torch_int8", "PyTorch int8", "#b9bdc4"), ("ort_fp32", "ONNX Runtime float", "#dcdfe3"))  # fmt: skip
BAR, GAP, UNIT = 13, 12, 120  # height of a bar, space between networks, width of 1


def geometric_mean(rows):
    return math.exp(sum(math.log(float(row["ratio"])) for row in rows) / len(rows))


def with_means(rows):
    """The rows, after each set its mean, and after a section of layers that of all its layers."""
    for section, group in itertools.groupby(rows, lambda row: row["section"]):
        group = list(group)
        for name, same in itertools.groupby(group, lambda row: row["set"]):
            same = list(same)
            yield from same
            yield {"section": section, "set": name, "case": MEAN, "ratio": f"{geometric_mean(same):.3f}"}
        if section != "nets":
            yield {"section": section, "set": "all", "case": MEAN, "ratio": f"{geometric_mean(group):.3f}"}


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def measured(row):
    return row["case"] != MEAN


def ratio(row):
    text = f"{float(row['ratio']):.2f}"
    return f"{text} ({float(row['ratio_p10']):.2f}-{float(row['ratio_p90']):.2f})" if measured(row) else text


def net_tables(rows):
    def milliseconds(row, engine):
        text = row.get(f"{engine}_us")
        return f"{float(text) / 1e3:.2f}" if text else ""

    header = ["ms", "qtensor", "its float", "ONNX Runtime float", "its int8", "PyTorch int8", "fastest peer", "ratio (p10-p90)"]
    engines = ("qtensor", "qtensor_fp32", "ort_fp32", "ort_int8", "torch_int8")
    for name, same in itertools.groupby(rows, lambda row: row["set"]):
        lines = [
            [row["case"], *(milliseconds(row, engine) for engine in engines), row.get("peer", ""), ratio(row)]
            for row in same
        ]
        yield f"**Networks, {name}**\n\n" + markdown(header, lines)


def layer_table(rows):
    """The instruction sets side by side."""
    cases = {}
    for row in rows:
        cases.setdefault(f"{row['set']} {row['case']}", {})[row["section"]] = row

    def cells(row):
        if row is None:
            return [""] * 4
        if not measured(row):
            return ["", "", "", ratio(row)]
        shares = ", ".join(f"{100 * float(row[f'{engine}_of_peak']):.0f}" for engine in ("qtensor", "onednn"))
        return [f"{float(row['qtensor_gmacs']):.0f}", f"{float(row['onednn_gmacs']):.0f}", shares, ratio(row)]

    header = ["layer"]
    for isa in ("", "AVX2: ", "AVX2, 8 bits: "):
        header += [f"{isa}GMAC/s", "oneDNN", "% of peak", "ratio"]
    lines = [[case, *(cell for section in LAYERS for cell in cells(found.get(section)))] for case, found in cases.items()]
    return "**Layers, one thread**\n\n" + markdown(header, lines)


def x_of(value):
    """The place of a ratio, on a logarithmic scale."""
    low, high = map(math.log, SCALE)
    at = (math.log(min(max(float(value), SCALE[0]), SCALE[1])) - low) / (high - low)
    return round(LEFT + at * (WIDTH - LEFT - RIGHT), 1)


def panel(title, y, rows, name_of, setting_of):
    """A line for each name with a dot and a spread for each setting. Returns its parts and where it ends."""
    names, settings = list(dict.fromkeys(map(name_of, rows))), list(dict.fromkeys(map(setting_of, rows)))
    top, bottom = y + TOP, y + TOP + ROW * len(names)
    parts = [f'<text x="10" y="{y + 20}" font-weight="bold">{title}</text>']
    for i, setting in enumerate(settings):
        parts.append(f'<circle cx="{LEFT + 150 * i}" cy="{y + 36}" r="4" fill="{COLORS[i]}"/>')
        parts.append(f'<text x="{LEFT + 150 * i + 8}" y="{y + 40}">{setting}</text>')
    for tick in TICKS:
        x, stroke = x_of(tick), "#333" if tick == 1 else "#ddd"
        parts.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{tick}</text>')
    for i, name in enumerate(names):
        parts.append(f'<text x="{LEFT - 10}" y="{top + ROW * i + 11}" text-anchor="end">{name}</text>')
    for row in rows:
        color, middle = COLORS[settings.index(setting_of(row))], top + ROW * names.index(name_of(row)) + ROW / 2
        low, high, x = x_of(row["ratio_p10"]), x_of(row["ratio_p90"]), x_of(row["ratio"])
        parts.append(f'<line x1="{low}" y1="{middle}" x2="{high}" y2="{middle}" stroke="{color}"/>')
        parts.append(f'<circle cx="{x}" cy="{middle}" r="3.5" fill="{color}"/>')
    return parts, bottom + 24


def bars(nets):
    """Each network as bars: how many times as fast as ONNX Runtime's float each engine is."""
    parts = [f'<text x="10" y="20" font-weight="bold">Times as fast as ONNX Runtime in float: one thread, batch 1</text>']
    for i, (_, label, color) in enumerate(BARS):
        parts.append(f'<rect x="{10 + 165 * i}" y="32" width="11" height="11" fill="{color}"/>')
        parts.append(f'<text x="{26 + 165 * i}" y="42">{label}</text>')
    y = 60
    for row in nets:
        middle = y + BAR * len(BARS) / 2 + 4
        parts.append(f'<text x="{LEFT - 70}" y="{middle}" text-anchor="end">{row["case"]}</text>')
        for engine, _, color in BARS:
            value = float(row["ort_fp32_us"]) / float(row[f"{engine}_us"])
            weight = ' font-weight="bold"' if engine == "qtensor" else ""
            parts.append(f'<rect x="{LEFT - 60}" y="{y}" width="{value * UNIT:.1f}" height="{BAR - 2}" fill="{color}"/>')
            parts.append(f'<text x="{LEFT - 54 + value * UNIT:.1f}" y="{y + 9.5}"{weight}>{value:.2f}</text>')
            y += BAR
        y += GAP
    return svg(y, parts)


def svg(height, parts):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def ratios(nets, layers):
    parts, y = [], 0
    if nets:
        title = "networks: times as fast as the fastest peer"
        parts, y = panel(title, y, nets, lambda row: row["case"], lambda row: row["set"])
    if layers:
        title = "layers: times as fast as oneDNN"
        more, y = panel(title, y, layers, lambda row: f"{row['set']} {row['case']}", lambda row: row["section"])
        parts += more
    return svg(y, parts)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__.splitlines()[-1])
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    nets, layers = ([row for row in rows if (row["section"] == "nets") == wanted] for wanted in (True, False))
    (DOCS / "performance.svg").write_text(ratios(nets, layers))
    (DOCS / "networks.svg").write_text(bars([row for row in nets if row["set"] == "threads 1 batch 1"]))
    versions = "; ".join(dict.fromkeys(row["peers"] for row in rows))
    shown = f"{rows[0]['cpu']}; qtensor {rows[0]['qtensor']}; {versions}.\n\n"
    shown += "![Ratios of networks and layers](performance.svg)\n\n"
    shown += "".join(net_tables(with_means(nets))) + layer_table(with_means(layers))
    page = DOCS / "performance.md"
    before, rest = page.read_text().split(MARKERS[0])
    after = rest.split(MARKERS[1])[1]
    page.write_text(before + MARKERS[0] + shown + MARKERS[1] + after)


if __name__ == "__main__":
    main()
