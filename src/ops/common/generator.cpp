// SPDX-License-Identifier: Apache-2.0
#include "ops/common/generator.hpp"

#include <bit>
#include <cmath>

#include "base/elementary.hpp"
#include "ops/common/convert.hpp"

namespace qtn::ops {

qdtype dtype_attribute(const char *op, const Attrs &attrs, const char *name, qdtype fallback) {
  const std::int64_t code = attrs.get_int(name, fallback);
  const auto dtype = static_cast<qdtype>(code > 0 && code < 64 ? code : 0);
  if (dtype_name(dtype)[0] == '?')
    fail(QTN_EUNSUPPORTED, op, ": ", name, " is ", code, ", which is no element type of this version");
  return dtype;
}

qdtype output_dtype_or_input(const Attrs &attrs, std::size_t, qdtype moved) {
  return static_cast<qdtype>(attrs.get_int("dtype", moved));
}

namespace {

const Tensor &one_number(const char *op, const char *name, const Tensor &t) {
  if (t.count() != 1) fail(QTN_ESHAPE, op, ": ", name, " must be one number, it is ", to_string(t.shape()));
  return require_constant(op, name, t);
}

}  // namespace

std::int64_t constant_int(const char *op, const char *name, const Tensor &t) {
  require_dtype(op, name, t, {QTN_INT64, QTN_INT32});
  return int_values(one_number(op, name, t), name)[0];
}

double constant_number(const char *op, const char *name, const Tensor &t) { return item(one_number(op, name, t)); }

void store_doubles(const Tensor &y, std::int64_t first, std::span<const double> values) {
  dispatch(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::transform(values.begin(), values.end(), y.as<T>() + first, convert<T, double>);
  });
}

Draws::Draws(const Attrs &attrs)
    : random_(std::bit_cast<std::uint32_t>(static_cast<float>(attrs.get_float("seed", 0))), 0) {}

double Draws::uniform(std::int64_t index) const {
  const RandomWords words = random_.block(static_cast<std::uint64_t>(index));
  return static_cast<double>((std::uint64_t{words[0]} << 32 | words[1]) >> 12) * 0x1p-52;
}

double Draws::normal(std::int64_t index) const {
  // Box and Muller: a radius and an angle.
  const RandomWords words = random_.block(static_cast<std::uint64_t>(index));
  const double radius = std::sqrt(-2 * logarithm((words[0] + 1.0) * 0x1p-32)), turn = words[1] * 0x1p-31;
  return radius * cosine_of_pi(turn > 1 ? 2 - turn : turn);
}

}  // namespace qtn::ops
