#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes quant/gptq.json: what GPTQ rounds weights to, by the algorithm of the paper (Frantar et al. 2022, algorithm 1)
in NumPy in float64: with the Cholesky factor of the inverse, inputs in the order of the falling diagonal, a damping of
0.01. Grids are those of the first weights, per row or per block of a row.

No decision of these cases is nearer than 0.002 steps to a tie, so float32 makes the same.

Needs: numpy.   Run with:  make_gptq.py
"""

import pathlib

import numpy as np

import golden_json

OUT = pathlib.Path(__file__).with_name("quant")
CASES = [(1, 8, 40, 8, 7), (3, 24, 60, 24, 7), (4, 32, 10, 8, 7), (2, 70, 40, 16, 7), (2, 130, 20, 32, 1)]


def gptq(w, h, step, most):
    """The integers, and how near the nearest decision is to a tie."""
    order = np.argsort(-np.diag(h), kind="stable")
    h = h[np.ix_(order, order)] + 0.01 * np.mean(np.diag(h)) * np.eye(len(h))
    upper = np.linalg.cholesky(np.linalg.inv(h)).T
    w, q, nearest = w[:, order].copy(), np.zeros_like(w, dtype=np.int64), 0.5
    for i, k in enumerate(order):
        wanted = w[:, i] / step[:, k]
        q[:, k] = np.clip(np.rint(wanted), -most, most)
        ties = np.abs(wanted - np.floor(wanted) - 0.5)[np.abs(wanted) < most + 0.6]
        nearest = min(nearest, ties.min(initial=0.5))
        error = (w[:, i] - q[:, k] * step[:, k]) / upper[i, i]
        w[:, i:] -= np.outer(error, upper[i, i:])
    return q, nearest


def case(outputs, depth, rows, block, most):
    for seed in range(1000):
        random = np.random.default_rng([seed, outputs, depth])
        common = random.standard_normal((rows, 1))
        x = random.uniform(0.2, 1.5, depth) * (0.6 * random.standard_normal((rows, depth)) + common)
        x = x.astype(np.float32)
        w = random.standard_normal((outputs, depth)).astype(np.float32)
        amax = np.abs(w).reshape(outputs, -1, block).max(axis=2) if depth % block == 0 else None
        if amax is None:
            amax = np.stack([np.abs(w[:, i:i + block]).max(axis=1) for i in range(0, depth, block)], axis=1)
        step = np.repeat(amax / np.float32(most), block, axis=1)[:, :depth].astype(np.float32)
        h = x.astype(np.float64).T @ x.astype(np.float64) / rows
        q, nearest = gptq(w.astype(np.float64), h, step.astype(np.float64), most)
        loss = [np.einsum("ri,ij,rj->r", d, h, d) for d in (w - q * step, w - np.clip(np.rint(w / step), -most, most) * step)]
        if nearest > 0.002 and np.all(loss[0] < loss[1]):
            return {"most": most, "x": golden_json.Tensor(x), "weights": golden_json.Tensor(w), "steps": golden_json.Tensor(step),
                    "integers": golden_json.Tensor(q)}
    raise AssertionError("every seed has a tie")


if __name__ == "__main__":
    golden_json.write(OUT / "gptq.json", {"cases": [case(*sizes) for sizes in CASES]})
