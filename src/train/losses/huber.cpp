// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "train/losses/kinds.hpp"
#include "train/losses/pointwise.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

class Huber final : public Loss {
 public:
  explicit Huber(double delta) : delta_(delta) {}

 private:
  double run_one(const Tensor &output, std::span<const Tensor *const> targets, const Tensor &dy) const override {
    return run_pointwise("huber", output, *targets[0], dy, [delta = delta_](double d) {
      const double size = std::fabs(d);
      const double value = size < delta ? d * d / 2 : delta * (size - delta / 2);
      return Slope{value, d > delta ? delta : d < -delta ? -delta : d};
    });
  }

  double delta_;
};

}  // namespace

std::unique_ptr<Loss> make_huber(const Attrs &attrs) {
  return std::make_unique<Huber>(positive(attrs, "delta", 1, "huber"));
}

}  // namespace qtn::train
