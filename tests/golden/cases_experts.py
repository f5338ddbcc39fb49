"""Cases of make_ops.py: mixtures of experts."""

import zlib

import numpy as np

from arrays import CLOSE, f32

SWIGLU = {"activation_type": "swiglu", "swiglu_fusion": 1}


def packed(codes, bits):
    """Along the last axis, the first code in the lowest bits of a byte; the last byte may be part empty."""
    per_byte = 8 // bits
    padding = [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % per_byte)]
    groups = np.pad(codes, padding).reshape(*codes.shape[:-1], -1, per_byte)
    return (groups << (bits * np.arange(per_byte))).sum(-1).astype(np.uint8)


def groups(case):
    def experts():
        op = "MoE"
        layers = (3, 6, 4), None, (3, 4, 6)
        case(op, "one", (5, 4), (5, 3), *layers)
        case(op, "two_of_sequences", (2, 3, 4), (6, 3), *layers, k=2)
        case(op, "normalized", (5, 4), (5, 3), *layers, k=2, normalize_routing_weights=1)
        case(op, "biases", (5, 4), (5, 3), (3, 6, 4), (3, 6), (3, 4, 6), (3, 4), k=3)
        for activation in ("gelu", "silu", "identity"):
            case(op, activation, (5, 4), (5, 3), *layers, k=2, activation_type=activation)
        case(op, "swiglu", (5, 4), (5, 3), (3, 12, 4), (3, 12), (3, 4, 6), (3, 4), k=2, **SWIGLU)
        case(op, "swiglu_limit", (5, 4), (5, 3), (3, 12, 4), None, (3, 4, 6), k=2, activation_alpha=1.702, activation_beta=1.0,
             swiglu_limit=0.5, **SWIGLU)
        case(op, "other_way_round", (5, 4), (5, 3), (3, 4, 6), None, (3, 6, 4), k=2)
        case(op, "equal_numbers", (5, 4), f32(*[[1, 1, 0]] * 3, [0, 0, 0], [2, 3, 3]), *layers)
        case(op, "no_numbers", (4, 4), f32([np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, -np.inf, 1], [-200, 0, 1]), *layers, k=2)
        case(op, "no_rows", (0, 4), (0, 3), *layers)
        case(op, "many_rows", (40, 2), (40, 1), (1, 70, 2), None, (1, 2, 70))

    def quantized(name, experts=3, hidden=8, inner=8, bits=4, block=0, zeros=False, bias=False, weights=False, rows=5, **attributes):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        wide = 2 * inner if "swiglu_fusion" in attributes else inner

        def layer(outputs, inputs):
            grids = (experts, outputs, inputs // block) if block else (experts, outputs)
            codes = packed(rng.integers(0, 1 << bits, (experts, outputs, inputs)), bits)
            scales = rng.uniform(0.02, 0.1, grids).round(3).astype(np.float32)
            middle = rng.integers(0, 1 << bits, grids)
            noise = rng.normal(size=(experts, outputs)).round(2).astype(np.float32)
            return codes, scales, noise if bias else None, packed(middle, bits) if zeros else None

        first, second = layer(wide, hidden), layer(hidden, inner)
        routes = rng.uniform(0, 1, (rows, experts)).round(3).astype(np.float32) if weights else None
        if bits != 4:
            attributes["expert_weight_bits"] = bits
        if block:
            attributes["block_size"] = block
        case("QMoE", name, (rows, hidden), (rows, experts), *first[:3], *second[:3], None, None, None, first[3], second[3], None,
             routes, tolerance=CLOSE, k=min(2, experts), **attributes)  # fmt: skip

    def quantized_experts():
        for bits in (2, 4, 8):
            quantized(f"rows_of_{bits}_bits", bits=bits)
            quantized(f"rows_of_{bits}_bits_zeros", hidden=8 if bits == 8 else 12, bits=bits, zeros=True, bias=True)
        for zeros in (False, True):  # ONNX Runtime makes bytes of x where blocks of weights have 8 bits
            quantized(f"blocks_of_2_bits{'_zeros' * zeros}", experts=1, hidden=32, inner=16, bits=2, block=16, zeros=zeros)
            quantized(f"a_block_of_4_bits{'_zeros' * zeros}", experts=1, hidden=16, inner=16, block=16, zeros=zeros)
        quantized("swiglu", experts=2, zeros=True, bias=True, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0, **SWIGLU)
        quantized("normalized", normalize_routing_weights=1)
        quantized("router_weights", weights=True)
        quantized("router_weights_normalized", weights=True, normalize_routing_weights=1)
        quantized("many_rows", experts=2, rows=20, weights_prepacked=0, quant_type="int")

    return [experts, quantized_experts]
