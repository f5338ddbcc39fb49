// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/kinds.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerSettings &settings, double momentum, bool nesterov, std::span<const Parameter> parameters)
      : Optimizer(settings, parameters,
                  momentum > 0 ? std::vector<std::string_view>{"momentum_buffer"} : std::vector<std::string_view>{}),
        momentum_(static_cast<float>(momentum)),
        nesterov_(nesterov) {}

 private:
  void move(const Piece &p) const override {
    const auto rate = static_cast<float>(p.rate), decay = static_cast<float>(p.weight_decay);
    float *value = p.value, *buffer = p.state[0];
    const float *gradient = p.gradient;
    if (!buffer) {
      for (std::size_t i = 0; i < p.count; ++i) value[i] -= rate * (gradient[i] + decay * value[i]);
      return;
    }
    // From a buffer of zeros the first step is torch's, which begins with a copy of the gradient.
    for (std::size_t i = 0; i < p.count; ++i) {
      const float g = gradient[i] + decay * value[i], b = momentum_ * buffer[i] + g;
      buffer[i] = b;
      value[i] -= rate * (nesterov_ ? g + momentum_ * b : b);
    }
  }

  float momentum_;
  bool nesterov_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const Attrs &attrs, std::span<const Parameter> parameters) {
  const double momentum = fraction(attrs, "momentum", 0, "sgd");
  const bool nesterov = attrs.get_int("nesterov", 0) != 0;
  if (nesterov && momentum == 0) fail(QTN_EINVAL, "sgd: nesterov needs a momentum above 0");
  return std::make_unique<Sgd>(optimizer_settings(attrs, 0), momentum, nesterov, parameters);
}

}  // namespace qtn::train
