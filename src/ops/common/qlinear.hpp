// SPDX-License-Identifier: Apache-2.0
// Operators that take scales and zero points as inputs beside plain integers: each is the operator it is named after,
// on tensors that carry those as quantizers, so there is one definition of what Conv or Add means in integers.
#pragma once

#include "ops/common/infer.hpp"

namespace qtn::ops {

/// Inputs that say what an integer tensor stands for.
struct Grid {
  const char *op, *name;       ///< "QLinearConv", "w": messages speak of w_scale and w_zero_point
  qdtype dtype;                ///< of the integers
  const Tensor *scale, *zero;  ///< nullptr: 1, 0
  std::int64_t channels = 1;   ///< over 1: there may be one scale and one zero point for each
  std::size_t axis = 0;        ///< where channels are counted
};

/// Throws QTN_EDTYPE or QTN_ESHAPE; reads no data.
void check_grid(const Grid &grid);

/// The grid as a quantizer. Throws QTN_EINVAL on a scale that is not positive and finite.
QuantizerPtr quantizer_of(const Grid &grid);

/// The grid of a MatMul's right operand, which may have one for each column.
Grid columns_grid(Grid grid, const Tensor &b);

/// Throws QTN_EDTYPE unless t is uint8 or int8.
void require_8bit(const char *op, const char *name, const Tensor &t);

/// The shape of the operator's output 0 for operands of these shapes, taken as float32.
Shape real_shape(const OpDef &op, const Attrs &attrs, const std::vector<const Tensor *> &operands);

/// The operator on quantized operands, into a plain tensor: integers of quantizer y, or float32 where y is nullptr.
void run_on_grids(const OpDef &op, const Attrs &attrs, const std::vector<const Tensor *> &operands,
                  const QuantizerPtr &y, const Tensor &output);

/// The sums of Conv or MatMul of quantized operands as int32, which check_int32_sums() has let pass.
void run_sums(const OpDef &op, const Attrs &attrs, const std::vector<const Tensor *> &operands, const Tensor &output);

/// Throws QTN_EUNSUPPORTED where a sum of `depth` products of any elements of these types, less their zero points,
/// could leave int32.
void check_int32_sums(const Grid &x, const Grid &w, std::int64_t depth);

/// int32 counted in products of elements of x and w, for each of w's channels.
Tensor accumulator_units(const Tensor &bias, const Quantizer &x, const Quantizer &w);

/// A float32 bias of a product's columns, in any shape, as ONNX Runtime takes it; nullptr: none.
void check_column_bias(const char *op, const Tensor *bias, const Tensor &b);
void add_column_bias(const Tensor &y, const Tensor *bias);

/// The attributes that ONNX's own pools know. Throws QTN_EUNSUPPORTED on channels_last, which only ONNX Runtime's
/// rewritten graphs have.
Attrs without_channels_last(const char *op, const Attrs &attrs);

// Inputs x, x_scale, x_zero_point, y_scale, y_zero_point. Zero points may be absent in the middle, so that an OpDef can
// only ask for the first two inputs itself.
Types infer_qlinear_unary(const char *name, const OpDef &op, const Attrs &attrs, const Call &call);
void run_qlinear_unary(const char *name, const OpDef &op, const Attrs &attrs, const Call &call, const Tensor &output);

// Inputs a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point, likewise.
Types infer_qlinear_binary(const char *name, const OpDef &op, const Call &call);
void run_qlinear_binary(const char *name, const OpDef &op, const Call &call, const Tensor &output);

}  // namespace qtn::ops
