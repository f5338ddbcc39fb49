// SPDX-License-Identifier: Apache-2.0
#include "quant/support.hpp"

namespace qtn::test {

std::vector<double> numbers(const nlohmann::json &tensor) {
  std::vector<double> values;
  for (const auto &v : tensor.at("data")) values.push_back(number(v));
  return values;
}

Shape shape_of(const nlohmann::json &tensor) {
  Shape shape;
  for (const auto &dim : tensor.at("shape")) shape.push_back(dim.get<std::int64_t>());
  return shape;
}

Tensor float_tensor(const nlohmann::json &tensor) {
  std::vector<float> values;
  for (const double v : numbers(tensor)) values.push_back(static_cast<float>(v));
  return floats(shape_of(tensor), values);
}

}  // namespace qtn::test
