// SPDX-License-Identifier: Apache-2.0
// What operators that make their elements of a few numbers share.
#pragma once

#include <algorithm>
#include <array>

#include "base/random.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

/// An element type that an attribute names by ONNX's number.
qdtype dtype_attribute(const char *op, const Attrs &attrs, const char *name, qdtype fallback);

/// OpDef::output_dtype where the attribute "dtype" says it, and otherwise input 0.
qdtype output_dtype_or_input(const Attrs &attrs, std::size_t output, qdtype moved);

/// The one number that an input holds, on which shapes depend.
std::int64_t constant_int(const char *op, const char *name, const Tensor &t);
double constant_number(const char *op, const char *name, const Tensor &t);

/// y[first + i] = values[i], in the type of y: floats that integers do not hold are cut off.
void store_doubles(const Tensor &y, std::int64_t first, std::span<const double> values);

/// y[i] = f(i) for all elements.
template <class F>
void generate(const Tensor &y, F &&f) {
  std::array<double, 256> block;
  for (std::int64_t first = 0; first < y.count(); first += static_cast<std::int64_t>(block.size())) {
    const auto count = std::min<std::int64_t>(static_cast<std::int64_t>(block.size()), y.count() - first);
    for (std::int64_t i = 0; i < count; ++i) block[static_cast<std::size_t>(i)] = f(first + i);
    store_doubles(y, first, std::span(block.data(), static_cast<std::size_t>(count)));
  }
}

/// Numbers that follow from the attribute "seed" and an index alone, so that every run draws the same, on every CPU and
/// any number of threads. Without a seed it is 0.
class Draws {
 public:
  explicit Draws(const Attrs &attrs);
  double uniform(std::int64_t index) const;  ///< in [0, 1), a multiple of 2^-52
  double normal(std::int64_t index) const;   ///< of mean 0 and variance 1

 private:
  Random random_;
};

}  // namespace qtn::ops
