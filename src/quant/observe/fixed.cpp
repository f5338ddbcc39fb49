// SPDX-License-Identifier: Apache-2.0
// "fixed": a grid that was known beforehand, as PyTorch's FixedQParamsObserver. Data is checked and forgotten.
#include <array>

#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

QuantizerPtr given_grid(const ObserverSettings &s) {
  if (s.given.scale == 0) fail(QTN_EINVAL, "observer: \"fixed\" needs scale and zero_point, or min and max");
  // Values saturate as on any grid of these settings.
  constexpr std::array kLow = {0.0}, kHigh = {1.0};
  const IntegerRange range = choose_quantizer(s.dtype, s.scheme, 0, kLow, kHigh, s.choose)->range();
  return std::make_shared<Quantizer>(s.dtype, s.scheme, 0, std::vector{s.given.scale}, std::vector{s.given.zero_point},
                                     s.choose.numerics, 0, range);
}

class Fixed final : public Observer {
 public:
  explicit Fixed(const ObserverSettings &settings) : Observer(settings), grid_(given_grid(settings)) {}
  std::unique_ptr<Observer> clone() const override { return std::make_unique<Fixed>(*this); }
  std::string_view kind() const override { return "fixed"; }
  bool empty() const override { return false; }

 protected:
  void take(const Tensor &) override {}
  void take_from(const Observer &) override {}
  QuantizerPtr choose() const override { return grid_; }
  void write(ByteWriter &) const override {}
  void read(ByteReader &) override {}

 private:
  QuantizerPtr grid_;
};

}  // namespace

std::unique_ptr<Observer> make_fixed(const ObserverSettings &settings) { return std::make_unique<Fixed>(settings); }

}  // namespace qtn::quant
