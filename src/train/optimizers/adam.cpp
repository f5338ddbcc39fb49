// SPDX-License-Identifier: Apache-2.0
// "adam" and "adamw", which differ in what weight decay is added to: the gradient, or the weight itself.
#include <cmath>

#include "base/elementary.hpp"
#include "train/optimizers/kinds.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

struct AdamSettings {
  double beta1, beta2, epsilon;
  bool decoupled;
};

class Adam final : public Optimizer {
 public:
  Adam(const OptimizerSettings &settings, const AdamSettings &adam, std::span<const Parameter> parameters)
      : Optimizer(settings, parameters, {"exp_avg", "exp_avg_sq"}), adam_(adam) {}

 private:
  void move(const Piece &p) const override {
    const double left1 = 1 - power(adam_.beta1, p.step), left2 = 1 - power(adam_.beta2, p.step);
    const auto rate = static_cast<float>(p.rate / left1), root_left2 = static_cast<float>(std::sqrt(left2));
    const auto shrink = static_cast<float>(adam_.decoupled ? 1 - p.rate * p.weight_decay : 1);
    const auto decay = static_cast<float>(adam_.decoupled ? 0 : p.weight_decay);
    const auto new1 = static_cast<float>(1 - adam_.beta1), new2 = static_cast<float>(1 - adam_.beta2);
    const auto old1 = 1 - new1, old2 = static_cast<float>(adam_.beta2), epsilon = static_cast<float>(adam_.epsilon);
    float *value = p.value, *mean = p.state[0], *square = p.state[1];
    const float *gradient = p.gradient;
    for (std::size_t i = 0; i < p.count; ++i) {
      const float v = value[i] * shrink, g = gradient[i] + decay * v, step = g - mean[i];
      // torch.lerp
      const float m = new1 < 0.5f ? mean[i] + new1 * step : g - step * old1;
      const float s = square[i] * old2 + new2 * g * g;
      mean[i] = m;
      square[i] = s;
      value[i] = v - rate * m / (std::sqrt(s) / root_left2 + epsilon);
    }
  }

  AdamSettings adam_;
};

std::unique_ptr<Optimizer> make(const Attrs &attrs, std::span<const Parameter> parameters, const char *name,
                                bool decoupled, double weight_decay) {
  const AdamSettings adam = {fraction(attrs, "beta1", 0.9, name), fraction(attrs, "beta2", 0.999, name),
                             not_negative(attrs, "epsilon", 1e-8, name), decoupled};
  return std::make_unique<Adam>(optimizer_settings(attrs, weight_decay), adam, parameters);
}

}  // namespace

std::unique_ptr<Optimizer> make_adam(const Attrs &attrs, std::span<const Parameter> parameters) {
  return make(attrs, parameters, "adam", false, 0);
}

std::unique_ptr<Optimizer> make_adamw(const Attrs &attrs, std::span<const Parameter> parameters) {
  return make(attrs, parameters, "adamw", true, 0.01);
}

}  // namespace qtn::train
