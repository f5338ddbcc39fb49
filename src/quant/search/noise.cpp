// SPDX-License-Identifier: Apache-2.0
#include "quant/search/noise.hpp"

#include <cmath>
#include <limits>

namespace qtn::quant {

void Noise::add(const Tensor &want, const Tensor &got) {
  if (want.shape() != got.shape()) return add_all(want, got);
  const Tensor a = want.to_contiguous(), b = got.to_contiguous();
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const auto x = static_cast<double>(a.as<const float>()[i]), y = static_cast<double>(b.as<const float>()[i]);
    signal += x * x;
    noise += (x - y) * (x - y);
    product += x * y;
    power += y * y;
  }
}

void Noise::add_all(const Tensor &want, const Tensor &got) {
  const auto energy = [](const Tensor &t) {
    const Tensor values = t.to_contiguous();
    double sum = 0;
    for (std::int64_t i = 0; i < values.count(); ++i) {
      const auto x = static_cast<double>(values.as<const float>()[i]);
      sum += x * x;
    }
    return sum;
  };
  const double wanted = energy(want), made = energy(got);
  signal += wanted;
  power += made;
  noise += wanted + made;
}

void Noise::add(const Noise &other) {
  signal += other.signal;
  noise += other.noise;
  product += other.product;
  power += other.power;
}

double Noise::sqnr_db() const {
  if (noise == 0) return signal == 0 ? 0 : std::numeric_limits<double>::infinity();
  return signal == 0 ? -std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
}

double Noise::cosine() const {
  if (signal == 0 || power == 0) return signal == power ? 1 : 0;
  return product / std::sqrt(signal * power);
}

}  // namespace qtn::quant
