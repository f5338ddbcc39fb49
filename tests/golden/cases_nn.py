"""Cases of make_ops.py: normalizations, pools, attention, and what finds and pools regions of pictures."""

import numpy as np

from arrays import CLOSE, EXACT, f32, f64, i64, ramp, scalar, truths

REFERENCE = {"only": "reference"}
RUNTIME = {"only": "onnxruntime"}


def groups(case):
    def more_normalization():
        op = "RMSNormalization"
        case(op, "last_axis", (2, 3, 4), (4,))
        case(op, "axis_1", (2, 3, 4), (3, 4), axis=1)
        case(op, "axis_0", (2, 3), (2, 3), axis=0, epsilon=0.1)
        case(op, "one_scale", (2, 3), (1,))
        case(op, "special", f32([np.nan, 1, 2], [np.inf, 1, 2], [0, 0, 0]), f32(1, 2, 3))
        case(op, "float64", f64([1.5, -2], [0.25, 3]), f64(1, 0.5))

        op = "SimplifiedLayerNormalization"
        case(op, "last_axis", (2, 3, 4), (4,), **RUNTIME)
        case(op, "inverse_too", (2, 3, 4), (4,), outputs=2, epsilon=1e-3, **RUNTIME)

        op = "LayerNormalization"
        # The reference refuses every type but 1, which says how precisely the mean is computed.
        for stash in (0, 10, 11, 16):
            case(op, f"stash_{stash}", (2, 3, 4), (4,), (4,), stash_type=stash, **RUNTIME)

        op = "GroupNormalization"
        case(op, "two_groups", (2, 4, 3, 2), (4,), (4,), num_groups=2, epsilon=1e-2)
        case(op, "each_channel", (1, 3, 5), (3,), (3,), num_groups=3)
        case(op, "one_group", (2, 3, 2, 1, 2), (3,), (3,), num_groups=1)
        case(op, "float64", np.arange(12.0).reshape(1, 4, 3), f64(1, 2, 3, 4), f64(0, 1, 0, -1), num_groups=2)

        op = "LpNormalization"
        for p in (1, 2):
            case(op, f"l{p}_last", np.abs(ramp(3, 4) + 0.5), p=p)
            case(op, f"l{p}_first", np.abs(ramp(3, 4) + 0.5), p=p, axis=0)
        case(op, "middle_negative", (2, 3, 4), axis=-2)
        # The reference adds what is below zero as it is.
        case(op, "l1_signs", (2, 3), p=1, **RUNTIME)
        case(op, "zeros", np.zeros((2, 3), np.float32))
        case(op, "float64", f64([1, -2], [3, 4]))

        op = "LRN"
        case(op, "default", (5, 5, 2, 2), size=3)
        # The reference looks at as many channels as there are images, ONNX Runtime at an odd number.
        case(op, "even", (5, 5, 1, 2), size=4, alpha=0.5, beta=0.6, bias=2.0, **REFERENCE)
        case(op, "wider_than_channels", (2, 3, 2, 2), size=9, alpha=1.0, **RUNTIME)
        case(op, "one", (3, 3, 1, 2), size=1, alpha=2.0)

        op = "MeanVarianceNormalization"
        case(op, "channels", (2, 3, 2, 4), axes=[0, 2, 3])
        case(op, "axes", (2, 3, 4), axes=[0, -1])
        case(op, "every_element", (2, 2), axes=[0, 1])

    def more_pooling():
        op = "GlobalMaxPool"
        case(op, "2d", (2, 3, 4, 5), tolerance=EXACT)
        # The reference knows pictures only, ONNX Runtime float32 only.
        case(op, "1d", (2, 3, 4), tolerance=EXACT, **RUNTIME)
        case(op, "3d", (1, 2, 2, 3, 2), tolerance=EXACT, **RUNTIME)
        case(op, "float64", np.arange(24.0).reshape(2, 2, 2, 3) % 7, tolerance=EXACT, **REFERENCE)
        case(op, "negative", -1 - ramp(1, 2, 3), tolerance=EXACT, **RUNTIME)

        op = "GlobalLpPool"
        case(op, "2d", (2, 3, 2, 3), **RUNTIME)
        case(op, "p1", (1, 2, 5), p=1, **RUNTIME)
        case(op, "p3", (1, 2, 2, 2), p=3, **RUNTIME)

        op = "LpPool"
        case(op, "basic", (1, 2, 4, 5), kernel_shape=[2, 2])
        case(op, "1d_p1", (2, 2, 7), kernel_shape=[3], p=1, strides=[2])
        case(op, "p3_pads", (1, 1, 4, 4), kernel_shape=[3, 3], p=3, pads=[1, 1, 1, 1], strides=[2, 2])
        case(op, "dilations", (1, 1, 6, 6), kernel_shape=[2, 2], dilations=[2, 3])
        case(op, "same_upper", (1, 1, 5, 4), kernel_shape=[2, 3], auto_pad="SAME_UPPER", strides=[2, 1])
        # The reference takes the mean of what a window meets for what it does not meet.
        case(op, "ceil", (1, 1, 5, 6), kernel_shape=[2, 2], strides=[2, 4], ceil_mode=1, **RUNTIME)
        case(op, "3d", (1, 1, 3, 3, 3), kernel_shape=[2, 2, 2])

        op = "MaxPool"
        two = {"outputs": 2, "tolerance": EXACT}
        case(op, "indices_pads_strides", (1, 1, 5, 5), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], **two)
        # The reference counts in each channel.
        case(op, "indices", (2, 2, 4, 5), kernel_shape=[2, 2], **two, **RUNTIME)
        case(op, "indices_1d_dilated", (1, 2, 9), kernel_shape=[3], dilations=[2], **two, **RUNTIME)
        case(op, "indices_3d", (1, 2, 3, 3, 4), kernel_shape=[2, 2, 2], **two, **RUNTIME)
        # The reference counts columns of another picture.
        attrs = {"kernel_shape": [2, 2], "strides": [2, 2], "storage_order": 1}
        case(op, "indices_by_columns", (1, 2, 4, 6), **attrs, **two, **RUNTIME)
        case(op, "indices_of_equals", np.zeros((1, 1, 3, 4), np.float32), kernel_shape=[2, 2], **two)
        # A window may be larger than the padded picture.
        wide = {"kernel_shape": [2, 4], "strides": [2, 3], "pads": [0, 1, 0, 0], "ceil_mode": 1}
        case(op, "ceil_wide", (2, 3, 1, 2), **wide, tolerance=EXACT, **RUNTIME)
        case("AveragePool", "ceil_wide", (2, 3, 1, 2), **wide, **RUNTIME)
        case("AveragePool", "ceil_wide_pad", (2, 3, 1, 2), count_include_pad=1, **wide, **RUNTIME)
        case(op, "indices_int8", (ramp(1, 1, 4, 4) * 37 % 251 - 125).astype(np.int8), kernel_shape=[2, 2], **two, **RUNTIME)

        op = "MaxUnpool"
        x, places = f32([[[1, 2], [3, 4]]])[None][0], i64([[[5, 7], [13, 15]]])
        x, places = x.reshape(1, 1, 2, 2), places.reshape(1, 1, 2, 2)
        attrs = {"kernel_shape": [2, 2], "strides": [2, 2], "tolerance": EXACT}
        case(op, "basic", x, places, **attrs)
        case(op, "larger", x, places, i64(1, 1, 5, 5), **attrs, **REFERENCE)
        case(op, "1d", f32([[1, 2, 3]]), i64([[1, 2, 5]]), kernel_shape=[2], strides=[2], tolerance=EXACT)
        case(op, "pads", x, i64(0, 1, 3, 4).reshape(1, 1, 2, 2), kernel_shape=[2, 2], strides=[2, 2],
             pads=[0, 0, 1, 1], tolerance=EXACT)  # fmt: skip

        op = "MaxRoiPool"
        rois = f32([0, 0, 0, 3, 3], [1, 1, 2, 5, 4], [0, -2, -2, 1, 1], [1, 5, 4, 9, 9])
        case(op, "2x2", (2, 2, 5, 6), rois, pooled_shape=[2, 2], tolerance=EXACT, **RUNTIME)
        case(op, "scaled", (2, 1, 5, 6), rois, pooled_shape=[3, 1], spatial_scale=0.5, tolerance=EXACT, **RUNTIME)

    def regions():
        op = "RoiAlign"
        rois, images = f32([0, 0, 4, 4], [1, 2, 5.5, 3.5], [-3, -1, 2, 7], [2, 2, 2, 2]), i64(0, 1, 1, 0)
        size = {"output_height": 2, "output_width": 3}
        for mode in ("half_pixel", "output_half_pixel"):
            attrs = {"coordinate_transformation_mode": mode, **size}
            case(op, f"{mode}_ratio_2", (2, 2, 5, 6), rois, images, sampling_ratio=2, **attrs)
            case(op, f"{mode}_adaptive", (2, 2, 5, 6), rois, images, spatial_scale=0.75, **attrs)
            case(op, f"{mode}_max", (2, 1, 5, 6), rois, images, sampling_ratio=2, mode="max", **attrs)
        case(op, "defaults", (1, 1, 3, 3), f32([[0, 0, 2, 2]])[0], i64(0))
        case(op, "no_regions", (1, 1, 3, 3), np.zeros((0, 4), np.float32), i64(), **REFERENCE)

        op = "NonMaxSuppression"
        boxes = f32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]])
        scores = f32([[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]])
        three, half, none = i64(3), f32(0.5), f32(0.0)
        exact = {"tolerance": EXACT}
        boxes = boxes.reshape(1, 6, 4)
        case(op, "suppress", boxes, scores, three, half, none, **exact)
        case(op, "scores", boxes, scores, three, half, f32(0.4), **exact)
        case(op, "limit", boxes, scores, i64(2), half, none, **exact)
        case(op, "flipped", boxes[..., [2, 3, 0, 1]], scores, three, half, none, **exact)
        case(op, "centers", boxes + f32(0.5, 0.5, 0, 0), scores, three, half, none, center_point_box=1, **exact)
        case(op, "equal_scores", boxes, np.full((1, 1, 6), 0.5, np.float32), i64(6), f32(0.3), **exact)
        case(op, "nothing_wanted", boxes, scores, **exact, **RUNTIME)
        case(op, "classes_and_images", np.concatenate([boxes, boxes[:, ::-1]]), np.concatenate([scores, scores * 0.5, scores[..., ::-1], scores]).reshape(2, 2, 6), i64(4), f32(0.4), f32(0.2), **exact)

        op = "Col2Im"
        case(op, "basic", ramp(1, 4, 6), i64(3, 4), i64(2, 2), tolerance=EXACT)
        case(op, "strides", ramp(1, 4, 4), i64(5, 5), i64(2, 2), strides=[3, 3], tolerance=EXACT)
        case(op, "pads", ramp(1, 5, 15), i64(5, 5), i64(1, 5), pads=[0, 1, 0, 1], tolerance=EXACT)
        case(op, "dilations", ramp(2, 4, 6), i64(4, 4), i64(2, 2), dilations=[2, 1], tolerance=EXACT)
        case(op, "1d_channels", ramp(1, 6, 4), i64(6), i64(3), tolerance=EXACT)

        op = "DeformConv"
        case(op, "padding", (1, 1, 3, 3), (1, 1, 2, 2), (1, 8, 4, 4), pads=[1, 1, 1, 1], kernel_shape=[2, 2])
        case(op, "all", (1, 4, 4, 4), (2, 2, 2, 2), (1, 16, 3, 3), (2,), (1, 8, 3, 3), group=2, offset_group=2)
        case(op, "strides", (2, 1, 5, 5), (1, 1, 2, 2), (2, 8, 2, 2), None, (2, 4, 2, 2), strides=[2, 2], dilations=[2, 1])

    def attention():
        op = "Attention"
        # ONNX Runtime has it without the windows of opset 25.
        heads = ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3))
        only = dict(REFERENCE)
        case(op, "heads", *heads, **only)
        case(op, "scale", *heads, scale=0.3, **only)
        case(op, "causal", *heads, is_causal=1, **only)
        case(op, "softcap", *heads, softcap=0.5, **only)
        case(op, "mask", *heads, (3, 5), **only)
        case(op, "mask_of_heads", *heads, (2, 1, 5), **only)
        seen = truths([1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1])
        case(op, "truths", *heads, seen, **only)
        case(op, "short_mask", *heads, (3, 3), **only)
        case(op, "mask_of_integers", *heads, i64([0, 1, -2, 0, 3], [2, 0, 0, -9, 1], [1, 1, 1, 1, 1]), **only)
        case(op, "truths_and_causal", *heads, seen, is_causal=1, **only)
        shared = ((1, 4, 2, 4), (1, 2, 3, 4), (1, 2, 3, 4))
        case(op, "shared_heads", *shared, **only)
        flat = ((2, 3, 8), (2, 4, 4), (2, 4, 6))
        case(op, "flat", *flat, q_num_heads=4, kv_num_heads=2, **only)
        past = ((1, 2, 2, 4), (1, 2, 2, 3))
        case(op, "past", *heads, None, *past, outputs=3, **only)
        case(op, "past_causal_flat", (1, 2, 8), (1, 3, 4), (1, 3, 4), None, (1, 2, 2, 2), (1, 2, 2, 2), outputs=3,
             q_num_heads=4, kv_num_heads=2, is_causal=1, **only)  # fmt: skip
        for mode in (0, 1, 2, 3):
            case(op, f"scores_{mode}", *heads, seen, None, None, outputs=4, qk_matmul_output_mode=mode, softcap=2.0, **only)
        case(op, "lengths", *((2, *h[1:]) for h in heads), None, None, None, i64(2, 5), **only)
        case(op, "lengths_causal", *((2, *h[1:]) for h in heads), None, None, None, i64(2, 5), is_causal=1, **only)
        case(op, "left_window", *heads, left_window_size=1, **only)
        case(op, "both_windows_past", *heads, None, *past, outputs=3, left_window_size=2, right_window_size=1, **only)

        op = "RotaryEmbedding"
        ids = i64([2, 0, 1], [3, 3, 0])
        for interleaved in (0, 1):
            attrs = {"interleaved": interleaved}
            case(op, f"heads_{interleaved}", (2, 2, 3, 4), (4, 2), (4, 2), ids, **attrs)
            case(op, f"flat_{interleaved}", (2, 3, 8), (4, 2), (4, 2), ids, num_heads=2, **attrs)
            case(op, f"part_{interleaved}", (2, 2, 3, 6), (4, 2), (4, 2), ids, rotary_embedding_dim=4, **attrs)
            case(op, f"no_ids_{interleaved}", (2, 1, 3, 4), (2, 3, 2), (2, 3, 2), **attrs)

    def fused_activations():
        case("QuickGelu", "default", (2, 3, 4))
        case("QuickGelu", "alpha", f32(-90, -2, -0.0, 1, 60), alpha=1.0)

    return more_normalization, more_pooling, regions, attention, fused_activations
