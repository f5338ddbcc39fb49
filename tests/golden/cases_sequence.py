"""Cases of make_ops.py: what walks along a sequence or attends to one, steps of optimizers, and counts of sequences."""

import numpy as np

from arrays import EXACT, f32, i32, i64, scalar

REFERENCE = {"only": "reference"}
RUNTIME = {"only": "onnxruntime"}


def groups(case):
    def linear_attention():
        op = "LinearAttention"
        heads = {"q_num_heads": 2, "kv_num_heads": 2}
        decay, beta = f32([[-0.1, -0.5], [-1, 0], [-0.2, -3]]), f32([[0.5, 1], [0.25, 0], [1, 0.75]])
        flat = ((1, 3, 4), (1, 3, 4), (1, 3, 6))
        case(op, "linear", *flat, update_rule="linear", outputs=2, **heads, **REFERENCE)
        case(op, "gated", *flat, None, decay, update_rule="gated", outputs=2, **heads, **REFERENCE)
        case(op, "gated_by_feature", *flat, None, -np.abs(np.sin(np.arange(12, dtype=np.float32))).reshape(1, 3, 4),
             update_rule="gated", outputs=2, **heads, **REFERENCE)
        case(op, "delta", *flat, None, None, beta, update_rule="delta", outputs=2, **heads, **REFERENCE)
        case(op, "gated_delta", *flat, (1, 2, 2, 3), decay, beta, outputs=2, scale=0.3, **heads, **REFERENCE)
        case(op, "one_beta", *flat, None, decay, beta[..., :1], outputs=2, **heads, **REFERENCE)
        case(op, "shared_heads", (2, 2, 8), (2, 2, 4), (2, 2, 2), update_rule="linear", q_num_heads=4, kv_num_heads=2,
             outputs=2, **REFERENCE)
        case(op, "no_places", (1, 0, 4), (1, 0, 4), (1, 0, 6), (1, 2, 2, 3), update_rule="linear", outputs=2, **heads, **REFERENCE)
        case(op, "not_a_number", f32([[1, np.nan]], [[1, 2]]), (2, 1, 2), (2, 1, 3), update_rule="linear", q_num_heads=1,
             kv_num_heads=1, outputs=2, **REFERENCE)

        op = "CausalConvWithState"
        case(op, "plain", (2, 3, 5), (3, 1, 3), outputs=2, **REFERENCE)
        case(op, "all", (2, 3, 5), (3, 1, 4), (3,), (2, 3, 3), activation="silu", outputs=2, **REFERENCE)
        case(op, "swish", (1, 2, 4), (2, 1, 2), activation="swish", outputs=2, **REFERENCE)
        case(op, "short", (1, 2, 1), (2, 1, 4), None, (1, 2, 3), outputs=2, **REFERENCE)
        case(op, "one_tap", (1, 2, 3), (2, 1, 1), (2,), outputs=2, **REFERENCE)
        case(op, "special", f32([[1, np.inf, 2, np.nan, 0, -1]]), f32([[0.5, 1]]), outputs=2, **REFERENCE)

    def attention_of_onnxruntime():
        op = "MultiHeadAttention"
        flat = ((2, 3, 8), (2, 4, 8), (2, 4, 8))
        case(op, "plain", *flat, num_heads=2)
        case(op, "bias", *flat, (24,), num_heads=4)
        case(op, "wider_values", (1, 2, 4), (1, 3, 4), (1, 3, 6), (14,), num_heads=2, scale=0.3)
        case(op, "lengths", *flat, None, i32(2, 4), num_heads=2)
        case(op, "padding", *flat, None, i32([1, 1, 0, 1], [0, 1, 1, 0]), num_heads=2, mask_filter_value=-1e4)
        case(op, "padding_by_query", *flat, None, (np.arange(24) % 5 > 1).astype(np.int32).reshape(2, 3, 4), num_heads=2)
        case(op, "added", *flat, None, None, (1, 2, 3, 4), num_heads=2)
        case(op, "added_and_padding", *flat, None, i32([1, 1, 0, 1], [0, 1, 1, 0]), (2, 2, 3, 4), num_heads=2)
        same = ((1, 3, 8), (1, 3, 8), (1, 3, 8))
        case(op, "unidirectional", *same, num_heads=2, unidirectional=1)
        past = ((1, 2, 2, 4), (1, 2, 2, 4))
        case(op, "past", *same, (24,), None, None, *past, outputs=3, num_heads=2)
        case(op, "past_unidirectional", *same, None, None, None, *past, outputs=3, num_heads=2, unidirectional=1)
        case(op, "heads", (1, 3, 8), (1, 2, 5, 4), (1, 2, 5, 4), num_heads=2)
        case(op, "heads_with_bias", (1, 3, 8), (1, 2, 5, 4), (1, 2, 5, 4), (24,), num_heads=2)

        op = "GroupQueryAttention"
        cosines = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8)
        sines = np.sin(np.arange(64, dtype=np.float32)).reshape(8, 8)
        heads = {"num_heads": 2, "kv_num_heads": 1, "outputs": 3}
        prompt = ((1, 3, 16), (1, 3, 8), (1, 3, 8))
        empty = (np.zeros((1, 1, 0, 8), np.float32),) * 2
        three, total = i32(2), i32(3)
        case(op, "prompt", *prompt, *empty, three, total, **heads)
        case(op, "packed", (1, 3, 32), None, None, *empty, three, total, **heads)
        case(op, "scale", *prompt, *empty, three, total, scale=0.2, softcap=2.0, **heads)
        wide = ((1, 3, 32), (1, 3, 16), (1, 3, 16), *(np.zeros((1, 1, 0, 16), np.float32),) * 2)
        case(op, "rotary", *wide, three, total, cosines, sines, do_rotary=1, **heads)
        case(op, "rotary_interleaved", *wide, three, total, cosines, sines, do_rotary=1, rotary_interleaved=1, **heads)
        step = ((1, 1, 16), (1, 1, 8), (1, 1, 8), (1, 1, 4, 8), (1, 1, 4, 8))
        case(op, "step", *step, i32(4), i32(5), **heads)
        case(op, "step_rotary", (1, 1, 32), (1, 1, 16), (1, 1, 16), (1, 1, 4, 16), (1, 1, 4, 16), i32(4), i32(5), cosines, sines, do_rotary=1, **heads)
        case(op, "window", *((1, 5, n) for n in (16, 8, 8)), *empty, i32(4), i32(5), local_window_size=2, **heads)
        case(op, "lengths", *((2, 1, n) for n in (16, 8, 8)), (2, 1, 3, 8), (2, 1, 3, 8), i32(3, 1), i32(4), **heads)

        bare = (three, total, None, None, None)  # and no rotation
        ragged = (*((2, 1, n) for n in (16, 8, 8)), (2, 1, 3, 8), (2, 1, 3, 8), i32(3, 1), i32(4), None, None, None)
        case(op, "defaults", *prompt, *empty, three, total, causal=1, k_quant_type="NONE", v_quant_type="NONE",
             kv_cache_bit_width=0, qk_norm_epsilon=1e-6, qk_output=0, sliding_window_cache=0, smooth_softmax=0, **heads)
        case(op, "bias", *prompt, *empty, *bare, (1, 1, 3, 3), softcap=2.0, **heads)
        case(op, "bias_hides", *prompt, *empty, *bare, f32([[[0, 0, 0], [-np.inf, 1, 0], [2, -np.inf, 0]]]), **heads)
        case(op, "bias_of_heads", *ragged, (2, 2, 1, 4), **heads)
        case(op, "sink", *prompt, *empty, *bare, None, f32(1.5, -1), softcap=2.0, local_window_size=2, **heads)
        case(op, "sink_alone", *prompt, *empty, *bare, np.full((1, 1, 3, 3), -np.inf, np.float32), f32(1.5, -1), **heads)
        case(op, "smooth", *ragged, (1, 2, 1, 4), smooth_softmax=1, **heads)
        case(op, "all_see_all", *prompt, *empty, three, total, causal=0, **heads)
        case(op, "all_see_all_of_their_own", *ragged, causal=0, **heads)
        four = {**heads, "outputs": 4}
        more = (*prompt, (1, 1, 3, 8), (1, 1, 3, 8), i32(5), i32(6))
        case(op, "scores", *more, qk_output=1, local_window_size=4, softcap=2.0, **four)
        case(op, "shares", *more, None, None, None, (1, 1, 3, 6), f32(1.5, -1), qk_output=2, **four)

        # A window of 3 in caches of 3, or of 5 that lose three places at a time; ends of sequences at which they are full.
        window = {"local_window_size": 3, "sliding_window_cache": 1, **heads}
        caches = {size: ((1, 1, size, 8), (1, 1, size, 8)) for size in (3, 5)}
        case(op, "sliding_prompt", *((1, 7, n) for n in (16, 8, 8)), *caches[3], i32(6), i32(7), **window)
        case(op, "sliding_prompt_with_slack", *((1, 8, n) for n in (16, 8, 8)), *caches[5], i32(7), i32(8), **window)
        case(op, "sliding_step", *((1, 1, n) for n in (16, 8, 8)), *caches[3], i32(6), i32(7), **window)
        case(op, "sliding_step_with_slack", *((1, 1, n) for n in (16, 8, 8)), *caches[5], i32(7), i32(8), **window)
        case(op, "sliding_steps", *((1, 6, n) for n in (16, 8, 8)), *caches[5], i32(10), i32(11), None, None, None, None, f32(1.5, -1), **window)
        case(op, "sliding_bias", *((1, 4, n) for n in (16, 8, 8)), *caches[5], i32(10), i32(11), None, None, None, (1, 1, 4, 11), **window)
        case(op, "sliding_lengths", *((2, 1, n) for n in (16, 8, 8)), (2, 1, 3, 8), (2, 1, 3, 8), i32(9, 4), i32(10), **window)
        case(op, "sliding_rotary", *((1, 2, n) for n in (32, 16, 16)), (1, 1, 3, 16), (1, 1, 3, 16), i32(5), i32(6), cosines, sines,
             do_rotary=1, **window)

        codes = np.random.default_rng(1).integers(-128, 128, (2, 1, 1, 4, 8)).astype(np.int8)
        pairs = codes.view(np.uint8)[..., :4]
        few = {"kv_cache_bit_width": 4, **heads}
        many = {"kv_cache_bit_width": 8, **heads}
        next_two = (*((1, 2, n) for n in (16, 8, 8)), *codes, i32(5), i32(6), *(None,) * 5)
        scales = f32(0.02, 0.01, 0.03, 0.02, 0.005, 0.01, 0.02, 0.03)
        one, each = {f"{x}_quant_type": "PER_TENSOR" for x in "kv"}, {f"{x}_quant_type": "PER_CHANNEL" for x in "kv"}
        case(op, "int8", *next_two, f32(0.02), f32(0.01), **one, **many)
        case(op, "int8_by_channel", *next_two, scales, scales[::-1].copy().reshape(1, 1, 1, 8), **each, **many)
        next_two = (*next_two[:3], *pairs, *next_two[5:])
        case(op, "int4", *next_two, f32(0.2), f32(0.15), **one, **few)
        case(op, "int4_by_channel", *next_two, 10 * scales, 8 * scales, softcap=2.0, **each, **few)
        case(op, "int8_sliding", *((1, 3, n) for n in (32, 16, 16)), *np.concatenate([codes, codes], -1)[..., :3, :], i32(5), i32(6),
             *(None,) * 4, f32(1.5, -1), f32(0.02), f32(0.01), **one, **many, local_window_size=3, sliding_window_cache=1)

    def optimizers():
        one, two = ((2, 3),), ((2, 3), (4,))
        squares = {1: (np.abs(np.sin(np.arange(6, dtype=np.float32))).reshape(2, 3),)}
        squares[2] = (*squares[1], f32(0, 1, 2, 3))
        rate = scalar(0.1)
        for name, shapes in (("one", one), ("two", two)):
            n = len(shapes)
            for step in (0, 3):
                t = scalar(step, np.int64)
                case("Adagrad", f"{name}_{step}", rate, t, *shapes, *shapes, *squares[n], outputs=2 * n, decay_factor=0.1,
                     epsilon=1e-3, norm_coefficient=0.01, **REFERENCE)
                case("Adam", f"{name}_{step}", rate, t, *shapes, *shapes, *shapes, *squares[n], outputs=3 * n, alpha=0.8,
                     beta=0.9, epsilon=1e-3, norm_coefficient=0.01, norm_coefficient_post=0.02, **REFERENCE)
                for mode in ("standard", "nesterov"):
                    case("Momentum", f"{name}_{mode}_{step}", rate, t, *shapes, *shapes, *shapes, outputs=2 * n, alpha=0.9,
                         beta=0.5, norm_coefficient=0.01, mode=mode, **REFERENCE)
        case("Momentum", "float64", np.float64(0.1), np.int64(1), np.ones(2), np.ones(2) / 3, np.ones(2) / 7, outputs=2, alpha=0.9,
             beta=0.5, norm_coefficient=0.01, mode="standard", **REFERENCE)

    def counts():
        op = "TfIdfVectorizer"
        pool = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}
        row, rows = i64(1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8), i64([1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8])
        exact = {"tolerance": EXACT, "mode": "TF"}
        case(op, "pairs", row, min_gram_length=2, max_gram_length=2, max_skip_count=0, **pool, **exact)
        case(op, "both_with_skips", row, min_gram_length=1, max_gram_length=2, max_skip_count=5, **pool, **exact)
        case(op, "rows", rows, min_gram_length=1, max_gram_length=2, max_skip_count=1, **pool, **exact)
        case(op, "int32", row.astype(np.int32), min_gram_length=1, max_gram_length=1, max_skip_count=0, **pool, **exact)
        case(op, "nothing", np.zeros((2, 0), np.int64), min_gram_length=1, max_gram_length=2, max_skip_count=0, **pool, **exact, **REFERENCE)
        weights = {"weights": [2.0, 3.0, 0.5, 1.0, 4.0, 5.0, 6.0]}
        for mode in ("IDF", "TFIDF"):
            case(op, mode.lower(), rows, min_gram_length=1, max_gram_length=2, max_skip_count=1, mode=mode, **pool, **weights)
            case(op, f"{mode.lower()}_alone", rows, min_gram_length=1, max_gram_length=2, max_skip_count=1, mode=mode, **pool, **RUNTIME)

    return linear_attention, attention_of_onnxruntime, optimizers, counts
