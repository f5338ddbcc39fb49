// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's LSTM of integers as ONNX's LSTM with dequantized weights. It brings x and the state to 8 bits, which
// is left to sessions.
#include <algorithm>

#include "onnx/composing.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {
namespace {

/// Codes [directions][depth][rows] as rows of gates [directions][rows][depth], less their zero points where those
/// differences are int8.
struct Codes {
  Tensor integers, zeros;  ///< no zeros: all are 0
};

/// One for each direction, or for each row of each, as one for each row.
Tensor by_row(Composing &c, const char *what, const std::optional<Tensor> &t, std::int64_t directions,
              std::int64_t rows) {
  if (!t) c.refuse(what, " is not a constant");
  const bool for_all = t->shape() == Shape{directions}, for_rows = t->shape() == Shape{directions, rows};
  if (!for_all && !for_rows)
    c.refuse(what, " is ", to_string(t->shape()), ", not ", to_string({directions}), " or ",
             to_string({directions, rows}));
  const Shape wanted{directions, rows, 1};
  return (for_all ? t->reshape({directions, 1, 1}).expand(wanted) : t->reshape(wanted)).clone();
}

Codes codes_of(const Tensor &given, const Tensor &zeros) {
  constexpr std::int32_t kTransposed[] = {0, 2, 1};
  const Tensor codes = given.permute(kTransposed).clone();
  const std::int64_t depth = codes.dim(2);
  const bool is_signed = given.dtype() == QTN_INT8;
  const auto at = [&](const Tensor &t, std::int64_t i) -> std::int32_t {
    return is_signed ? t.as<const std::int8_t>()[i] : t.as<const std::uint8_t>()[i];
  };
  const Tensor differences(QTN_INT8, codes.shape());
  for (std::int64_t i = 0; i < codes.count(); ++i) {
    const std::int32_t difference = at(codes, i) - at(zeros, i / depth);
    if (difference < -128 || difference > 127) return {codes, zeros};
    differences.as<std::int8_t>()[i] = static_cast<std::int8_t>(difference);
  }
  return {differences, {}};
}

std::string weights(Composing &c, const char *what, std::size_t input, std::size_t scale, std::size_t zero) {
  const std::optional<Tensor> given = c.constant(c.in(input));
  if (!given) c.refuse(what, " is not a constant");
  if (given->rank() != 3 || given->count() == 0) c.refuse(what, " is ", to_string(given->shape()));
  if (given->dtype() != QTN_INT8 && given->dtype() != QTN_UINT8)
    c.refuse(what, " is ", dtype_name(given->dtype()), ", not int8 or uint8");
  const std::int64_t directions = given->dim(0), depth = given->dim(1), rows = given->dim(2);
  const std::optional<Tensor> given_zeros = c.constant(c.in(zero));
  if (given_zeros && given_zeros->dtype() != given->dtype())
    c.refuse("the zero point of ", what, " is ", dtype_name(given_zeros->dtype()));
  const Codes codes = codes_of(*given, by_row(c, "a zero point", given_zeros, directions, rows));
  Names inputs{c.make(codes.integers), c.make(by_row(c, "a scale", c.constant(c.in(scale)), directions, rows))};
  if (codes.zeros.has_data()) inputs.push_back(c.make(codes.zeros));
  return c.one("DequantizeLinear", std::move(inputs), with("axis", std::int64_t{2}, "block_size", depth));
}

bool dynamic_quantize_lstm(Composing &c) {
  Names inputs{c.in(0), weights(c, "W", 1, 8, 9), weights(c, "R", 2, 10, 11)};
  for (std::size_t i = 3; i < 8; ++i) inputs.push_back(c.in(i));
  while (inputs.back().empty()) inputs.pop_back();
  Names outputs;
  for (std::size_t i = 0; i < c.node().outputs.size(); ++i) outputs.push_back(c.node().outputs[i]);
  c.add("LSTM", std::move(inputs), c.attrs(), std::move(outputs));
  return true;
}

}  // namespace

const std::vector<ComposedRule> kRecurrentRules{{ops::kMicrosoft, "DynamicQuantizeLSTM", dynamic_quantize_lstm}};

}  // namespace qtn::onnx
