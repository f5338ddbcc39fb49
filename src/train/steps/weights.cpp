// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/parallel.hpp"
#include "kernels/real/real.hpp"
#include "train/finite.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

/// How weights lie: [outer][grids][inner].
struct Layout {
  std::size_t outer, grids, inner;
};

Layout layout_of(const Shape &shape, const quant::ObserverSettings &settings) {
  if (is_per_tensor(settings.scheme)) return {1, 1, static_cast<std::size_t>(element_count(shape))};
  const auto axis = static_cast<std::size_t>(settings.axis);
  return {static_cast<std::size_t>(element_count(shape, 0, axis)), static_cast<std::size_t>(shape[axis]),
          static_cast<std::size_t>(element_count(shape, axis + 1, shape.size()))};
}

class WeightStep final : public Step {
 public:
  WeightStep(const graph::Node &node, SlotId w, SlotId y, WeightGrid &grid, SlotIds learned,
             const ActivationGrid &input, std::shared_ptr<BiasUnits> units, std::shared_ptr<Fold> fold, SlotId scale,
             const Switches &switches)
      : grid_(grid),
        settings_(grid.settings),
        input_(input),
        units_(std::move(units)),
        fold_(std::move(fold)),
        switches_(switches) {
    name = node.name;
    keeps = {w};
    reads = {w};
    reads.insert(reads.end(), learned.begin(), learned.end());
    grad_inputs = reads;
    writes = {y};
    if (fold_) {
      reads.push_back(scale);
      grad_inputs.push_back(scale);
    }
    const QuantizerPtr form = weight_form(settings_);
    grids_ = {{},
              {},
              static_cast<std::int32_t>(form->range().lo),
              static_cast<std::int32_t>(form->range().hi),
              grid.range ? Rounding::reciprocal : form->rounding(),
              !grid.range && form->divides_back(),
              static_cast<std::size_t>(settings_.axis)};
  }

  void bind(std::span<const Slot> slots) override {
    w_ = slots[static_cast<std::size_t>(reads[0])].value;
    y_ = slots[static_cast<std::size_t>(writes[0])].value;
    dy_ = slots[static_cast<std::size_t>(writes[0])].gradient;
    layout_ = layout_of(w_.shape(), settings_);
    scales_.resize(layout_.grids);
    units_->of_channel.reserve(layout_.grids);
    zeros_.resize(layout_.grids);
    mins_.resize(layout_.grids);
    maxs_.resize(layout_.grids);
    grids_.scales = scales_;
    grids_.zero_points = zeros_;
    if (fold_) {
      scaled_ = Tensor(QTN_FLOAT32, w_.shape());
      channel_ = layout_of(w_.shape(), per_channel());
    }
  }

  void forward(Scratch &) override {
    if (fold_) {
      fold_->renew();
      each_element(
          [&](std::size_t i, std::size_t c) { scaled_.as<float>()[i] = w_.as<const float>()[i] * fold_->factor[c]; });
    }
    rounds_ = switches_.fake_quant;
    hides_not_finite = false;
    units_->of_channel.clear();
    if (!rounds_) return copy_elements(y_, x());
    grid_.learned ? follow() : grid_.range ? follow_average() : choose();
    if (input_.known()) settle_units();
    fake_quantize(x(), grids_, y_);
  }

  void backward(std::span<const Tensor> dx, Scratch &scratch) override {
    // No step reads the gradient of y after this.
    const Tensor &d = dx[0].has_data() ? dx[0] : dy_;
    const std::span<const Tensor> learned = dx.subspan(1, grid_.parameters.size());
    if (!rounds_) {
      copy_elements(d, dy_);
      for (const Tensor &part : learned)
        if (part.has_data()) std::fill_n(part.as<float>(), part.count(), 0.0f);
    } else if (grid_.learned) {
      grid_.learned->backward(x(), grids_, static_cast<double>(w_.count()), dy_, d, learned, scratch);
    } else {
      fake_quantize_backward(x(), grids_, dy_, d);
    }
    if (!fold_) return;
    float *to = d.as<float>();
    if (const Tensor &d_scale = dx.back(); d_scale.has_data()) {
      sums_.assign(fold_->factor.size(), 0.0);
      each_element([&](std::size_t i, std::size_t c) {
        sums_[c] += static_cast<double>(to[i]) * static_cast<double>(w_.as<const float>()[i]);
      });
      for (std::size_t c = 0; c < sums_.size(); ++c)
        d_scale.as<float>()[c] = fold_->follows_scale(c) ? static_cast<float>(sums_[c] * fold_->running_rstd(c)) : 0.0f;
    }
    if (dx[0].has_data()) each_element([&](std::size_t i, std::size_t c) { to[i] *= fold_->factor[c]; });
  }

 private:
  const Tensor &x() const { return fold_ ? scaled_ : w_; }

  quant::ObserverSettings per_channel() const {
    quant::ObserverSettings settings = settings_;
    settings.scheme = QTN_PER_CHANNEL_SYMMETRIC;
    return settings;
  }

  /// f(element, output channel). Groups of ConvTranspose follow one another in front of the axis of its filters.
  template <class F>
  void each_element(F &&f) const {
    const Layout &l = channel_;
    const std::size_t groups = l.grids ? fold_->factor.size() / l.grids : 1, of_group = l.outer / groups;
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t g = 0; g < l.grids; ++g)
        for (std::size_t i = 0; i < l.inner; ++i) f((o * l.grids + g) * l.inner + i, o / of_group * l.grids + g);
  }

  /// Grids as they have been learned, or where that begins.
  void follow() {
    if (grid_.learned->begun()) {
      hides_not_finite = !all_finite(x());
      grid_.learned->read(scales_, zeros_);
    } else {
      choose();
      for (float &s : scales_) s = scale_of(s);
      for (std::size_t g = 0; g < scales_.size(); ++g)
        grid_.learned->begin(g, scales_[g], zeros_[g], mins_[g], maxs_[g]);
      grid_.begins = true;
    }
    for (float &s : scales_) s = scale_of(s);
  }

  /// Grids over a moving average of what the weights were.
  void follow_average() {
    measure();
    if (hides_not_finite) return choose_scales();
    grid_.range->observe(mins_, maxs_, static_cast<float>(settings_.averaging_constant));
    const std::vector<float> &range = grid_.range->next;
    for (std::size_t g = 0; g < scales_.size(); ++g) {
      const ScaleZero chosen =
          choose_fused({grids_.lo, grids_.hi}, is_symmetric(settings_.scheme), range[g], range[scales_.size() + g]);
      scales_[g] = static_cast<float>(chosen.scale);
      zeros_[g] = static_cast<std::int32_t>(chosen.zero_point);
    }
  }

  /// Or the inverse of a scale, which the grids are then given by.
  float scale_of(float given) const {
    return grids_.inverses ? static_cast<float>(1.0 / static_cast<double>(given)) : given;
  }

  /// Grids over what the weights are now.
  void choose() {
    measure();
    choose_scales();
  }

  void measure() {
    const float *x = this->x().as<const float>();
    if (layout_.inner == 1 && layout_.outer > 1) {
      hides_not_finite = !all_finite(this->x());
      for (std::size_t g = 0; g < layout_.grids; ++g) mins_[g] = maxs_[g] = x[g];
      for (std::size_t o = 1; o < layout_.outer; ++o)
        for (std::size_t g = 0; g < layout_.grids; ++g) {
          mins_[g] = std::min(mins_[g], x[o * layout_.grids + g]);
          maxs_[g] = std::max(maxs_[g], x[o * layout_.grids + g]);
        }
    } else {
      for (std::size_t row = 0; row < layout_.outer * layout_.grids; ++row) {
        const kernels::Extent extent = kernels::real_kernel().extent(x + row * layout_.inner, layout_.inner);
        const std::size_t g = row % layout_.grids;
        hides_not_finite = hides_not_finite || !extent.finite;
        mins_[g] = row < layout_.grids ? extent.min : std::min(mins_[g], extent.min);
        maxs_[g] = row < layout_.grids ? extent.max : std::max(maxs_[g], extent.max);
      }
    }
    if (hides_not_finite) {  // any grid will do
      std::fill(mins_.begin(), mins_.end(), 0.0f);
      std::fill(maxs_.begin(), maxs_.end(), 0.0f);
    }
  }

  void choose_scales() {
    for (std::size_t g = 0; g < scales_.size(); ++g) {
      const ScaleZero chosen =
          choose_scale(settings_.dtype, is_symmetric(settings_.scheme), static_cast<double>(mins_[g]),
                       static_cast<double>(maxs_[g]), settings_.choose);
      scales_[g] = static_cast<float>(grids_.inverses ? 1.0 / chosen.scale : chosen.scale);
      zeros_[g] = static_cast<std::int32_t>(chosen.zero_point);
    }
  }

  void settle_units() {
    const float of_input = input_.view().scales[0];
    for (const float s : scales_) units_->of_channel.push_back(of_input * (grids_.inverses ? 1.0f / s : s));
  }

  WeightGrid &grid_;
  const quant::ObserverSettings &settings_;
  const ActivationGrid &input_;
  const std::shared_ptr<BiasUnits> units_;
  const std::shared_ptr<Fold> fold_;
  const Switches &switches_;
  Tensor w_, scaled_, y_, dy_;
  Layout layout_{}, channel_{};
  Grids grids_{};
  std::vector<float> scales_, mins_, maxs_;
  std::vector<std::int32_t> zeros_;
  std::vector<double> sums_;
  bool rounds_ = false;
};

}  // namespace

StepPtr make_weights(const graph::Node &node, SlotId w, SlotId y, WeightGrid &grid, SlotIds learned,
                     const ActivationGrid &input, std::shared_ptr<BiasUnits> units, std::shared_ptr<Fold> fold,
                     SlotId scale, const Switches &switches) {
  return std::make_unique<WeightStep>(node, w, y, grid, std::move(learned), input, std::move(units), std::move(fold),
                                      scale, switches);
}

}  // namespace qtn::train
