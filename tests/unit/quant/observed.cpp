// SPDX-License-Identifier: Apache-2.0
#include "quant/observed.hpp"

#include <random>

namespace qtn::test {

Tensor random_tensor(unsigned seed, const Shape &shape, float mean, float deviation) {
  std::mt19937 engine(seed);
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) {
    // Sum of uniforms rather than std::normal_distribution, whose values are not the same everywhere.
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>(engine()) / 4294967296.0f - 0.5f;
    t.as<float>()[i] = mean + deviation * sum;
  }
  return t;
}

std::unique_ptr<quant::Observer> make_kind(std::string_view kind,
                                           std::initializer_list<std::pair<const char *, Attr>> items) {
  Attrs a = attrs(items);
  if (kind == "fixed") {
    a.set("min", -1.0);
    a.set("max", 2.0);
  }
  return quant::make_observer(std::string(kind), a);
}

}  // namespace qtn::test
