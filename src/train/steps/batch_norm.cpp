// SPDX-License-Identifier: Apache-2.0
// In two passes over memory each way: one for sums, one for elements.
#include <algorithm>
#include <atomic>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "ops/common/epsilon.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

/// [images][channels][size], in pieces of neighbouring channels of one image.
struct Planes {
  std::size_t images = 1, channels = 1, size = 1;

  double count() const { return static_cast<double>(images * size); }

  /// Calls f(image, first channel, channels, offset of the piece) in parallel.
  template <class F>
  void each_piece(F &&f) const {
    constexpr std::size_t kPiece = std::size_t{1} << 14;
    const std::size_t most = std::max<std::size_t>(1, kPiece / std::max<std::size_t>(1, size));
    const std::size_t pieces = ceil_div(channels, most);
    parallel_for(images * pieces, [&](std::size_t i) {
      const std::size_t image = i / pieces, first = i % pieces * most;
      f(image, first, std::min(most, channels - first), (image * channels + first) * size);
    });
  }
};

Planes planes_of(const Shape &shape) {
  const auto dim = [&](std::size_t from, std::size_t to) {
    return static_cast<std::size_t>(element_count(shape, from, to));
  };
  if (shape.size() < 2) return {dim(0, shape.size()), 1, 1};
  return {dim(0, 1), dim(1, 2), dim(2, shape.size())};
}

class BatchNormStep final : public Step {
 public:
  BatchNormStep(const graph::Node &node, SlotIds inputs, SlotId y, Statistics &statistics, std::size_t index,
                std::shared_ptr<Fold> fold, const Epilogue &epilogue, const Switches &switches)
      : inputs_(std::move(inputs)),
        statistics_(statistics),
        use_(statistics.uses.at(index)),
        fold_(std::move(fold)),
        epilogue_(epilogue),
        switches_(switches),
        epsilon_(node.attrs.get_float("epsilon", ops::kDefaultEpsilon)) {
    name = node.name;
    grad_inputs = inputs_;
    std::copy_if(inputs_.begin(), inputs_.end(), std::back_inserter(reads), [](SlotId s) { return s != kNoSlot; });
    keeps = {inputs_[0], inputs_[1]};
    writes = {y};
    overwrites = Overwrites::by_first;
  }

  void bind(std::span<const Slot> slots) override {
    const auto slot = [&](SlotId s) -> const Slot & { return slots[static_cast<std::size_t>(s)]; };
    x_ = slot(inputs_[0]).value;
    scale_ = slot(inputs_[1]).value;
    offset_ = slot(inputs_[2]).value;
    if (inputs_.size() > 3 && inputs_[3] != kNoSlot) bias_ = slot(inputs_[3]).value;
    y_ = slot(writes[0]).value;
    dy_ = slot(writes[0]).gradient;
    planes_ = planes_of(x_.shape());
    const std::size_t c = planes_.channels, all = planes_.images * c;
    moments_.resize(all);
    sums_.resize(all);
    of_channel_.resize(c);
    for (std::vector<float> *v : {&guess_, &gain_, &shift_, &dv_factor_, &x_factor_, &constant_}) v->resize(c);
  }

  void forward(Scratch &) override {
    by_batch_ = !switches_.freeze_bn;
    if (by_batch_ && planes_.images * planes_.size == 0)
      fail(QTN_EINVAL, "trainer: node \"", name, "\": a batch of shape ", to_string(x_.shape()),
           " has no mean to normalize by");
    const bool observes = switches_.observers && epilogue_.grid && !epilogue_.grid->fixed() && x_.count() > 0;
    if (by_batch_ || observes) measure();
    for (std::size_t c = 0; c < planes_.channels; ++c) by_batch_ ? settle_by_batch(c) : settle_by_running(c);
    use_.measured = by_batch_;
    if (observes) observe();
    rounds_ = epilogue_.grid && switches_.fake_quant && epilogue_.grid->known();
    if (rounds_) grid_ = kernel_grid(epilogue_.grid->view());
    std::atomic<bool> finite = true;
    planes_.each_piece([&](std::size_t, std::size_t first, std::size_t channels, std::size_t at) {
      if (!kernels::fake_kernel().normalize(piece(first, channels, at), y_.as<float>() + at)) finite = false;
    });
    hides_not_finite = rounds_ && !finite;
  }

  void backward(std::span<const Tensor> dx, Scratch &) override {
    planes_.each_piece([&](std::size_t image, std::size_t first, std::size_t channels, std::size_t at) {
      kernels::fake_kernel().normalize_sums(piece(first, channels, at), dy_.as<const float>() + at,
                                            sums_.data() + image * planes_.channels + first);
    });
    for (std::size_t c = 0; c < planes_.channels; ++c) settle_gradients(c, dx);
    if (!dx[0].has_data()) return;
    planes_.each_piece([&](std::size_t, std::size_t first, std::size_t channels, std::size_t at) {
      kernels::fake_kernel().normalize_backward({piece(first, channels, at), dy_.as<const float>() + at,
                                                 dv_factor_.data() + first, x_factor_.data() + first,
                                                 constant_.data() + first, dx[0].as<float>() + at});
    });
  }

 private:
  /// About x, the result of the node before: u = x / factor is what is normalized.
  struct Channel {
    double mean = 0, rstd = 1;  ///< of x; of u
    float min = 0, max = 0;
  };

  static double at(const Tensor &t, std::size_t c) { return static_cast<double>(t.as<const float>()[c]); }
  double factor(std::size_t c) const { return fold_ ? static_cast<double>(fold_->factor[c]) : 1.0; }
  double bias(std::size_t c) const { return bias_.has_data() ? at(bias_, c) : 0.0; }

  kernels::PlanesArgs piece(std::size_t first, std::size_t channels, std::size_t at) const {
    return {channels,     planes_.size, x_.as<const float>() + at, gain_.data() + first, shift_.data() + first,
            epilogue_.lo, epilogue_.hi, rounds_ ? &grid_ : nullptr};
  }

  /// Sums are of what is beyond the first element of a channel, so that squares keep their digits. A running mean may be
  /// far away, as in a network that is new.
  void measure() {
    for (std::size_t c = 0; c < planes_.channels; ++c) guess_[c] = x_.as<const float>()[c * planes_.size];
    planes_.each_piece([&](std::size_t image, std::size_t first, std::size_t channels, std::size_t at) {
      kernels::fake_kernel().moments(channels, planes_.size, x_.as<const float>() + at, guess_.data() + first,
                                     moments_.data() + image * planes_.channels + first);
    });
  }

  void settle_by_batch(std::size_t c) {
    kernels::PlanesMoments all = moments_[c];
    for (std::size_t n = 1; n < planes_.images; ++n) {
      const kernels::PlanesMoments &one = moments_[n * planes_.channels + c];
      all.sum += one.sum;
      all.squares += one.squares;
    }
    const double beyond = all.sum / planes_.count(), f = factor(c);
    const double variance = std::max(0.0, all.squares / planes_.count() - beyond * beyond) / (f * f);
    Channel &channel = of_channel_[c];
    channel.mean = static_cast<double>(guess_[c]) + beyond;
    channel.rstd = 1.0 / std::sqrt(variance + epsilon_);
    const double n = planes_.count();  // as PyTorch: of the population which the batch is a sample of
    use_.batch[c] = {channel.mean / f + bias(c), n > 1 ? variance * n / (n - 1) : variance};
    const double gain = at(scale_, c) * channel.rstd / f;
    gain_[c] = static_cast<float>(gain);
    shift_[c] = static_cast<float>(at(offset_, c) - channel.mean * gain);
  }

  /// With a fold the result is x plus a bias, as it is when the normalization has been folded.
  void settle_by_running(std::size_t c) {
    const double rstd = 1.0 / std::sqrt(at(statistics_.variance, c) + epsilon_), gain = at(scale_, c) * rstd;
    of_channel_[c].rstd = rstd;
    gain_[c] = !fold_ ? static_cast<float>(gain) : fold_->follows_scale(c) ? 1.0f : 0.0f;
    const double shift = at(offset_, c) + (bias(c) - at(statistics_.mean, c)) * gain;
    shift_[c] = fold_ ? fold_->units->rounded(shift, c) : static_cast<float>(shift);
  }

  /// The extent of the result follows from that of x: nothing on the way changes the order of elements of a channel.
  void observe() {
    float min = std::numeric_limits<float>::infinity(), max = -min;
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      const std::size_t c = i % planes_.channels;
      for (const float end : {moments_[i].min, moments_[i].max}) {
        const float u = std::clamp(end * gain_[c] + shift_[c], epilogue_.lo, epilogue_.hi);
        min = std::min(min, u);
        max = std::max(max, u);
      }
    }
    if (std::isfinite(min) && std::isfinite(max)) epilogue_.grid->observe(min, max);
  }

  void settle_gradients(std::size_t c, std::span<const Tensor> dx) {
    double sum = 0, product = 0;  // of dv, and of dv * x
    for (std::size_t n = 0; n < planes_.images; ++n) {
      sum += sums_[n * planes_.channels + c].dv;
      product += sums_[n * planes_.channels + c].dv_x;
    }
    const Channel &channel = of_channel_[c];
    const double f = factor(c), m = planes_.count(), gain = at(scale_, c) * channel.rstd / f;
    double of_scale, of_bias = 0, through_factor;  // the last: sum of du * u
    dv_factor_[c] = static_cast<float>(gain);
    if (by_batch_) {
      of_scale = (product - channel.mean * sum) * channel.rstd / f;
      const double of_x = -gain * of_scale / m * channel.rstd / f;
      x_factor_[c] = static_cast<float>(of_x);
      constant_[c] = static_cast<float>(-gain * sum / m - of_x * channel.mean);
      through_factor = at(scale_, c) * of_scale * epsilon_ * channel.rstd * channel.rstd;
    } else {
      of_scale = (product / f + (bias(c) - at(statistics_.mean, c)) * sum) * channel.rstd;
      of_bias = gain * f * sum;
      x_factor_[c] = constant_[c] = 0.0f;
      through_factor = gain * product;
    }
    if (fold_ && fold_->follows_scale(c)) of_scale -= through_factor / f * fold_->running_rstd(c);
    const auto write = [&](std::size_t i, double value) {
      if (i < dx.size() && dx[i].has_data()) dx[i].as<float>()[c] = static_cast<float>(value);
    };
    write(1, of_scale);
    write(2, sum);
    write(3, of_bias);
  }

  const SlotIds inputs_;
  const Statistics &statistics_;
  Statistics::Use &use_;
  const std::shared_ptr<Fold> fold_;
  const Epilogue epilogue_;
  const Switches &switches_;
  const double epsilon_;
  Tensor x_, scale_, offset_, bias_, y_, dy_;
  Planes planes_;
  kernels::FakeGrids grid_{};
  bool by_batch_ = false, rounds_ = false;       // in the last forward run
  std::vector<kernels::PlanesMoments> moments_;  // [images][channels]
  std::vector<kernels::PlanesSums> sums_;
  std::vector<Channel> of_channel_;
  std::vector<float> guess_, gain_, shift_, dv_factor_, x_factor_, constant_;
};

}  // namespace

StepPtr make_batch_norm(const graph::Node &node, SlotIds inputs, SlotId y, Statistics &statistics, std::size_t index,
                        std::shared_ptr<Fold> fold, const Epilogue &epilogue, const Switches &switches) {
  return std::make_unique<BatchNormStep>(node, std::move(inputs), y, statistics, index, std::move(fold), epilogue,
                                         switches);
}

}  // namespace qtn::train
