"""Cases of make_ops.py: operators that move, pick, find and resample elements."""

import numpy as np

from arrays import EXACT, f32, f64, i32, i64, ramp, scalar, truths

SMALL = ramp(2, 3, 4)


def repeated(indices, times):
    """Each index so many times, as an index of rows is expanded to all of their elements."""
    return np.repeat(np.array(indices, np.int64)[..., None], times, -1)


def groups(case):
    def gathering():
        for op in ("GatherElements",):
            case(op, "rows", ramp(3, 3), i64([1, 2, 0], [2, 0, 0]), axis=0, tolerance=EXACT)
            case(op, "columns", ramp(3, 3), i64([1, 2], [0, 0], [2, 2]), axis=1, tolerance=EXACT)
            case(op, "default_axis", ramp(4), i64(3, 0, 0, 3, 1), tolerance=EXACT)
            # The reference wants all of the other axes.
            narrow = {"tolerance": EXACT, "only": "onnxruntime"}
            case(op, "negative", ramp(2, 3), i64([-1, -3], [-2, 0]), axis=-1, **narrow)
            case(op, "narrower_indices", SMALL, i64([[0, 2]], [[1, 1]]), axis=1, **narrow)
            case(op, "int32_indices", SMALL, np.full((2, 3, 1), 3, np.int32), axis=2, tolerance=EXACT)
            case(op, "no_indices", ramp(3, 3), np.zeros((3, 0), np.int64), axis=1, tolerance=EXACT)
            case(op, "rows_of_one_index", ramp(4, 19), repeated([2, -4, 2, 3], 19), axis=0, **narrow)
            case(op, "planes_of_one_index", SMALL, repeated([[1, -3], [0, 0]], 4), axis=1, **narrow)
            for one in (0, 4):
                indices = repeated([2, 1], 5)
                indices[:, one] = 0
                case(op, f"rows_with_another_at_{one}", ramp(4, 5), indices, axis=0, tolerance=EXACT)
            for dtype in (np.bool_, np.uint8, np.int16, np.int64, np.float64):
                x = ramp(2, 3, dtype=dtype)
                case(op, np.dtype(dtype).name, x, i64([2, 0, 1], [0, 0, 2]), axis=1, tolerance=EXACT)
        op = "GatherND"
        case(op, "elements", ramp(2, 3), i64([0, 0], [1, 2]), tolerance=EXACT)
        case(op, "slices", SMALL, i64([[0, 1]], [[1, 0]]), tolerance=EXACT)
        case(op, "negative", SMALL, i64([-1], [-2], [0]), tolerance=EXACT)
        case(op, "batch_1", SMALL, i64([1], [0]), batch_dims=1, tolerance=EXACT)
        case(op, "batch_2", ramp(2, 2, 3, 2), i64([[[1], [2]], [[0], [0]]], [[[2], [1]], [[-1], [0]]]), batch_dims=2,
             tolerance=EXACT)  # fmt: skip
        case(op, "one_element", ramp(2, 3), i64(1, 2), tolerance=EXACT)
        case(op, "no_tuples", ramp(2, 3), np.zeros((0, 1), np.int64), tolerance=EXACT)
        for dtype in (np.bool_, np.uint8, np.int16, np.int64, np.float64):
            case(op, np.dtype(dtype).name, ramp(2, 3, dtype=dtype), i64([1], [0], [1]), tolerance=EXACT)

    def scattering():
        op = "ScatterElements"
        indices, updates = i64([1, 0, 2], [0, 2, 1]), f32([1.5, 1.25, 1.125], [2, 2.25, 2.125])
        case(op, "rows", np.zeros((3, 3), np.float32), indices, updates, tolerance=EXACT)
        case(op, "columns", ramp(1, 5), i64([1, 3]), f32([1.5, 2.5]), axis=1, tolerance=EXACT)
        case(op, "negative", ramp(1, 5), i64([-1, -5]), f32([1.5, 2.5]), axis=-1, tolerance=EXACT)
        case(op, "inner", ramp(2, 3, 4), i64([[2, 0]], [[1, 1]]), f32([[-1, -2]], [[-3, -4]]), axis=1, tolerance=EXACT)
        case(op, "nothing", ramp(2, 3), np.zeros((0, 3), np.int64), np.zeros((0, 3), np.float32), tolerance=EXACT)
        case(op, "twice_int32_indices", ramp(4), i32(2, 2), f32(7, 9), tolerance=EXACT)
        twice = i64([1, 1, 3])
        for reduction in ("add", "mul", "max", "min"):
            attrs = {"axis": 1, "reduction": reduction}
            case(op, reduction, ramp(1, 5), twice, f32([1.5, -2.5, 10]), **attrs)
            for dtype in (np.int32, np.int64, np.float64):
                name = f"{reduction}_{np.dtype(dtype).name}"
                case(op, name, ramp(1, 5, dtype=dtype), twice, np.array([[3, 2, 7]], dtype), **attrs)
        for reduction in ("none", "add", "mul", "max", "min"):
            attrs = {"reduction": reduction, "tolerance": EXACT}
            rows = repeated([2, 0, -1, 2], 19) if reduction != "none" else repeated([2, 0, -1], 19)
            updates = np.flip(ramp(*rows.shape)) - 20
            case(op, f"{reduction}_rows_of_one_index", ramp(4, 19) - 30, rows, updates, axis=0, **attrs)
            rows[:, 7] = [3, 1, 0, 3][:len(rows)]
            case(op, f"{reduction}_rows_except_one", ramp(4, 19) - 30, rows, updates, axis=0, **attrs)
        case(op, "bool", truths(True, False, True), i64(0, 1), truths(False, True), tolerance=EXACT)
        case(op, "uint8", ramp(3, dtype=np.uint8), i64(2), np.array([200], np.uint8), tolerance=EXACT)
        # ONNX Runtime refuses 8 bits here.
        case(op, "int8_wraps", np.array([100, 1], np.int8), i64(0), np.array([100], np.int8), reduction="add",
             tolerance=EXACT, only="reference")  # fmt: skip

        op = "ScatterND"
        case(op, "elements", ramp(8), i64([4], [3], [1], [7]), f32(9, 10, 11, 12), tolerance=EXACT)
        case(op, "slices", ramp(4, 2, 2), i64([0], [-2]), -ramp(2, 2, 2), tolerance=EXACT)
        case(op, "tuples", SMALL, i64([[0, 2], [1, -3]]), -ramp(1, 2, 4), tolerance=EXACT)
        case(op, "nothing", ramp(2, 3), np.zeros((0, 1), np.int64), np.zeros((0, 3), np.float32), tolerance=EXACT)
        for reduction in ("add", "mul", "max", "min"):
            attrs = {"reduction": reduction}
            case(op, reduction, ramp(3, 2), i64([1], [1], [2]), f32([1.5, -2.5], [4, 0.5], [-1, 9]), **attrs)
            for dtype in (np.int32, np.int64, np.float64):
                name = f"{reduction}_{np.dtype(dtype).name}"
                case(op, name, ramp(4, dtype=dtype), i64([3], [0], [3]), np.array([3, 2, 7], dtype), **attrs)
        for reduction in ("none", "add", "mul", "max", "min"):
            rows = i64([1], [0], [-1], [1]) if reduction != "none" else i64([1], [0], [-1])
            updates = np.flip(ramp(len(rows), 21)) - 30
            case(op, f"{reduction}_long_rows", ramp(3, 21) - 30, rows, updates, reduction=reduction, tolerance=EXACT)
        case(op, "bool", truths(True, False, True), i64([0], [1]), truths(False, True), tolerance=EXACT)
        case(op, "uint8", ramp(3, dtype=np.uint8), i64([2]), np.array([200], np.uint8), tolerance=EXACT)

        op = "TensorScatter"
        past, update = np.zeros((2, 1, 4, 2), np.float32), ramp(2, 1, 2, 2) + 1
        only = {"only": "reference", "tolerance": EXACT}  # ONNX Runtime's CPU does not have it
        case(op, "linear", past, update, i64(1, 2), **only)
        case(op, "circular", past, update, i64(3, 0), mode="circular", **only)
        case(op, "from_the_start", past, update, **only)
        case(op, "middle_axis", np.zeros((2, 3, 2), np.int32), ramp(2, 1, 2, dtype=np.int32), i64(0, 2), axis=1, **only)

    def picking():
        op = "Trilu"
        for upper in (0, 1):
            name = "upper" if upper else "lower"
            case(op, name, ramp(3, 4), upper=upper, tolerance=EXACT)
            for k in (-5, -1, 0, 2, 7):
                case(op, f"{name}_{k}", ramp(2, 4, 3), scalar(k, np.int64), upper=upper, tolerance=EXACT)
        case(op, "default", f32([1, np.nan], [np.nan, 4]), tolerance=EXACT)
        case(op, "far", ramp(2, 2), scalar(2**62, np.int64), upper=0, tolerance=EXACT)
        case(op, "no_rows", np.zeros((2, 0, 3), np.float32), tolerance=EXACT, only="reference")
        for dtype in (np.bool_, np.int64, np.float64):
            case(op, np.dtype(dtype).name, np.ones((3, 3), dtype), tolerance=EXACT)
        # ONNX Runtime does not have these types here.
        for dtype in (np.uint8, np.int16):
            case(op, np.dtype(dtype).name, np.ones((3, 3), dtype), tolerance=EXACT, only="reference")

        op = "OneHot"
        values = f32(0.25, 2)
        case(op, "last_axis", i64(0, 2, 1), scalar(3, np.int64), values, tolerance=EXACT)
        case(op, "first_axis", i64([0, 2], [1, 3]), scalar(4, np.int64), values, axis=0, tolerance=EXACT)
        case(op, "middle_axis", i64([0, 2], [1, 3]), i64(4), values, axis=1, tolerance=EXACT, only="onnxruntime")
        case(op, "negative_and_outside", i64(-1, -4, 4, -3, 0), scalar(3, np.int64), values, tolerance=EXACT)
        case(op, "float_indices", f32(0, 1, 2), scalar(3), values, tolerance=EXACT)
        case(op, "int32_values", i64(1), scalar(2, np.int32), i32(5, 7), tolerance=EXACT, only="reference")

        op = "ReverseSequence"
        x = ramp(4, 4)
        case(op, "time", x, i64(4, 3, 2, 1), time_axis=0, batch_axis=1, tolerance=EXACT)
        case(op, "batch", x, i64(1, 2, 3, 4), time_axis=1, batch_axis=0, tolerance=EXACT)
        case(op, "default", ramp(3, 2, 2), i64(2, 3), tolerance=EXACT)
        for dtype in (np.bool_, np.uint8, np.int64, np.float64):
            case(op, np.dtype(dtype).name, ramp(3, 2, dtype=dtype), i64(2, 3), tolerance=EXACT)

        op = "CenterCropPad"
        only = {"only": "reference", "tolerance": EXACT}  # ONNX Runtime inlines a function that needs its shapes
        case(op, "crop", ramp(5, 4), i64(2, 3), **only)
        case(op, "pad", ramp(3, 2), i64(6, 3), **only)
        case(op, "both", ramp(3, 4), i64(4, 1), **only)
        case(op, "axes", ramp(2, 3, 4), i64(2, 5), axes=[-1, 1], **only)
        case(op, "to_nothing", ramp(2, 3), i64(0, 3), **only)
        case(op, "int8", ramp(3, dtype=np.int8) - 1, i64(5), **only)

    def finding():
        op = "NonZero"
        case(op, "bool", truths([True, False], [True, True]), tolerance=EXACT)
        case(op, "floats", f32([0, -0.0, np.nan], [1e-30, np.inf, 0]), tolerance=EXACT)
        case(op, "four_axes", (np.arange(36).reshape(3, 2, 3, 2) * 7 % 5 // 3).astype(np.float32), tolerance=EXACT)
        case(op, "last_axis_of_one", np.array([[0], [2], [0], [-1]], np.int32), tolerance=EXACT)
        case(op, "three_axes", (np.arange(12).reshape(2, 3, 2) % 3).astype(np.int64), tolerance=EXACT)
        case(op, "none", np.zeros((2, 3), np.int32), tolerance=EXACT)
        case(op, "uint8", np.array([3, 0, 255], np.uint8), tolerance=EXACT)
        case(op, "empty", np.zeros((0, 3), np.float32), tolerance=EXACT)
        # ONNX Runtime counts a scalar as a list of one.
        case(op, "scalar", scalar(2), tolerance=EXACT, only="reference")

        op = "Compress"
        case(op, "flat", ramp(3, 2), truths(False, True, False, False, True), tolerance=EXACT)
        case(op, "rows", ramp(3, 2), truths(False, True, True), axis=0, tolerance=EXACT)
        case(op, "columns", ramp(3, 2), truths(False, True), axis=1, tolerance=EXACT)
        case(op, "shorter_negative_axis", ramp(2, 3, 2), truths(True, False), axis=-2, tolerance=EXACT)
        case(op, "nothing", ramp(3, 2), truths(False, False, False), axis=0, tolerance=EXACT)
        for dtype in (np.bool_, np.uint8, np.int16, np.int64, np.float64):
            case(op, np.dtype(dtype).name, ramp(2, 3, dtype=dtype), truths(True, False, True), axis=1, tolerance=EXACT)

        op = "Unique"
        x = f32(2, 1, 1, 3, 4, 3)
        four = {"outputs": 4, "tolerance": EXACT}
        case(op, "sorted", x, **four)
        case(op, "as_they_come", x, sorted=0, **four)
        case(op, "values_alone", f32([5, 3], [3, 5]), tolerance=EXACT)
        rows = f32([1, 0, 0], [1, 0, 0], [2, 3, 4])
        case(op, "rows", rows, axis=0, **four)
        case(op, "columns", f32([1, 0, 1], [2, 3, 2]), axis=-1, **four)
        case(op, "middle_axis", f32([[1, 1], [0, 1], [2, 1], [0, 1]], [[1, 1], [0, 1], [2, 1], [0, 1]]), axis=1, **four)
        case(op, "rows_as_they_come", f32([2, 3], [1, 0], [2, 3]), axis=0, sorted=0, **four)
        case(op, "int64", i64(7, -7, 7), **four)
        case(op, "int8", np.array([7, -7, 7], np.int8), **four)
        case(op, "float64", f64(0.5, 0.25, 0.5), **four)
        case(op, "zeros_and_below", f32(0.0, -1.5, -0.0, 2, -1.5, -3), **four)
        case(op, "uint64", np.array([1 << 63, 3, (1 << 64) - 1, 3], np.uint64), only="reference", **four)
        case(op, "rows_of_floats", f32([0.0, 1], [-2, 0], [-0.0, 1], [-2, -1]), axis=0, **four)
        # ONNX Runtime holds each NaN for another number.
        case(op, "nan", f32(np.nan, 1, np.nan, -np.inf), only="reference", **four)

    def sampling():
        op = "AffineGrid"
        theta = np.array([[[1, 0.5, 0.25], [-0.5, 2, 0]], [[0.5, 0, 0], [0, 0.5, 1]]], np.float32)
        cube = np.concatenate([np.eye(3, dtype=np.float32) * 0.75, np.full((3, 1), 0.125, np.float32)], 1)[None]
        for corners in (0, 1):
            case(op, f"2d_{corners}", theta, i64(2, 3, 3, 4), align_corners=corners)
            case(op, f"3d_{corners}", cube, i64(1, 1, 2, 3, 4), align_corners=corners)
        # ONNX's reference gives float32 here.
        case(op, "float64", theta.astype(np.float64), i64(2, 1, 2, 2), only="onnxruntime")

        op = "GridSample"
        x, places = (1, 2, 3, 4), f32([[-1, -1], [-0.4, 0.3]], [[0.9, -0.7], [0.1, 0]], [[1.3, 1], [-2.6, 3.9]])[None]
        for mode in ("linear", "nearest", "cubic"):
            for padding in ("zeros", "border", "reflection"):
                for corners in (0, 1):
                    attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
                    # The reference clamps the place itself, PyTorch and ONNX Runtime the pixels around it.
                    only = "onnxruntime" if (mode, padding) == ("cubic", "border") else None
                    case(op, f"{mode}_{padding}_{corners}", x, places, only=only, **attrs)
        case(op, "two_images", (2, 1, 2, 2), np.stack([places[0], -places[0]]))
        volume = f32([[-0.5, 0.25, 0.75], [0.1, -0.9, 0.4]], [[1, 1, -1], [0.3, 1.4, -1.2]])[None, None]
        case(op, "volume", (1, 2, 2, 3, 3), volume)
        case(op, "volume_nearest", (1, 2, 2, 3, 3), volume, mode="nearest", align_corners=1)
        case(op, "float64", np.arange(6.0).reshape(1, 1, 2, 3), f64([[0.3, -0.4]])[None], only="reference")

    def resizing_more():
        op, small, wide = "Resize", ramp(1, 1, 3, 4), ramp(1, 1, 6, 7)
        up, down = f32(1, 1, 2, 1.5), f32(1, 1, 0.6, 0.5)
        # ONNX Runtime mirrors what lies outside of the picture in other ways, or refuses some forms.
        reference = {"only": "reference"}
        modes = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
        for transform in modes:
            attrs = {"mode": "cubic", "coordinate_transformation_mode": transform}
            case(op, f"cubic_{transform}_up", small, None, up, **attrs)
            if transform != "align_corners":
                # Places between pixels: at a pixel the reference may take the one beside it.
                case(op, f"cubic_{transform}_down", wide, None, f32(1, 1, 0.53, 0.45), **attrs, **reference)
        case(op, "cubic_sizes", small, None, None, i64(1, 1, 5, 9), mode="cubic")
        case(op, "cubic_coefficient", small, None, up, mode="cubic", cubic_coeff_a=-0.5)
        case(op, "cubic_excludes", small, None, up, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
        case(op, "linear_excludes", wide, None, down, mode="linear", exclude_outside=1, **reference)
        for mode in ("linear", "cubic"):
            attrs = {"mode": mode, "antialias": 1}
            case(op, f"{mode}_antialias_down", wide, None, f32(1, 1, 0.5, 0.5), **attrs, **reference)
            case(op, f"{mode}_antialias_sizes", wide, None, None, i64(1, 1, 2, 5), **attrs, **reference)
            case(op, f"{mode}_antialias_up", small, None, up, **attrs, **reference)
            case(op, f"{mode}_antialias_excludes", wide, None, None, i64(1, 1, 4, 3), exclude_outside=1, **attrs,
                 tolerance=1e-5)  # fmt: skip
        roi = f32(0, 0, 0.2, 0.1, 1, 1, 0.8, 0.9)
        crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}
        case(op, "crop", wide, roi, None, i64(1, 1, 3, 4), mode="linear", **crop)
        outside = f32(0, 0, -0.22, 0.4, 1, 1, 0.8, 1.3)
        case(op, "crop_extrapolates", wide, outside, None, i64(1, 1, 3, 4), mode="linear", extrapolation_value=7.5, **crop)
        case(op, "crop_nearest", wide, outside, None, i64(1, 1, 3, 4), mode="nearest", extrapolation_value=7.5, **crop)
        case(op, "crop_axes", wide, f32(0.4, 0.2, 0.6, 0.8), None, i64(3, 4), mode="linear", axes=[3, 2], **crop,
             **reference)  # fmt: skip
        case(op, "linear_float64", small.astype(np.float64), None, up, mode="linear", **reference)
        case(op, "cubic_uint8", (small * 20).astype(np.uint8), None, up, mode="cubic", tolerance=EXACT, **reference)

    return gathering, scattering, picking, finding, sampling, resizing_more
