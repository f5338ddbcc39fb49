// SPDX-License-Identifier: Apache-2.0
#include "train/learned_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qtn::train {
namespace {

using quant::Learning;

constexpr float kSmallestScale = 0x1p-23f, kLargest = std::numeric_limits<float>::max();

/// NaN becomes the lower end.
void keep_within(float &x, float lo, float hi) { x = x > lo ? std::min(x, hi) : lo; }

Tensor zeros(const Shape &shape) {
  Tensor t(QTN_FLOAT32, shape);
  std::fill_n(t.as<float>(), t.count(), 0.0f);
  return t;
}

std::vector<std::string_view> suffixes(Learning kind) {
  switch (kind) {
    case Learning::none:
      break;
    case Learning::lsq:
      return {".scale"};
    case Learning::lsq_plus:
      return {".scale", ".zero_point"};
    case Learning::pact:
      return {".alpha", ".beta"};
    case Learning::amax:
      return {".amax"};
  }
  return {};
}

}  // namespace

LearnedGrid::LearnedGrid(Learning kind, const quant::ObserverSettings &settings, std::int32_t lo, std::int32_t hi,
                         const Shape &shape)
    : kind_(kind),
      settings_(settings),
      lo_(lo),
      hi_(hi),
      one_sided_(settings.choose.numerics == Numerics::nvidia && lo == 0),
      steps_(is_symmetric(settings.scheme) && !one_sided_ ? (hi - lo) / 2 : hi - lo),
      d_scales_(static_cast<std::size_t>(element_count(shape))),
      d_zeros_(d_scales_.size()),
      before_(d_scales_.size()) {
  for (const std::string_view suffix : suffixes(kind)) parts_.push_back({suffix, zeros(shape)});
}

std::span<float> LearnedGrid::values(std::size_t part) const {
  const Tensor &t = parts_[part].value;
  return {t.as<float>(), static_cast<std::size_t>(t.count())};
}

float LearnedGrid::lower(std::size_t c) const {
  if (kind_ == Learning::pact) return values(1)[c];
  return one_sided_ ? 0.0f : -values(0)[c];
}

bool LearnedGrid::begun() const { return values(0)[0] != 0.0f; }

void LearnedGrid::begin(std::size_t c, float scale, std::int32_t zero, float min, float max) const {
  switch (kind_) {
    case Learning::none:
      break;
    case Learning::lsq_plus:
      values(1)[c] = static_cast<float>(zero);
      [[fallthrough]];
    case Learning::lsq:
      values(0)[c] = scale;
      break;
    case Learning::pact:
      values(0)[c] = std::max(max, 0.0f);
      values(1)[c] = std::min(min, 0.0f);
      break;
    case Learning::amax:
      values(0)[c] = std::max(-min, max);
      break;
  }
}

void LearnedGrid::forget() const {
  for (const Part &part : parts_) std::fill_n(part.value.as<float>(), part.value.count(), 0.0f);
}

void LearnedGrid::before_update() { std::copy_n(values(0).begin(), before_.size(), before_.begin()); }

void LearnedGrid::after_update() const {
  for (std::size_t c = 0; c < before_.size(); ++c) values(0)[c] = std::max(values(0)[c], before_[c] / 2);
}

void LearnedGrid::read(std::span<float> scales, std::span<std::int32_t> zeros) const {
  const bool bounds = kind_ == Learning::pact || kind_ == Learning::amax;
  const float smallest = kSmallestScale * (bounds ? static_cast<float>(steps_) : 1.0f);
  for (std::size_t c = 0; c < scales.size(); ++c) {
    keep_within(values(0)[c], smallest, kLargest);
    scales[c] = values(0)[c];
    if (kind_ == Learning::lsq_plus) {
      keep_within(values(1)[c], static_cast<float>(lo_), static_cast<float>(hi_));
      zeros[c] = static_cast<std::int32_t>(std::nearbyint(values(1)[c]));
    }
    if (!bounds) continue;
    if (kind_ == Learning::pact) keep_within(values(1)[c], -kLargest, 0);
    const ScaleZero chosen =
        choose_scale(settings_.dtype, is_symmetric(settings_.scheme), static_cast<double>(lower(c)),
                     static_cast<double>(values(0)[c]), settings_.choose);
    scales[c] = static_cast<float>(chosen.scale);
    zeros[c] = static_cast<std::int32_t>(chosen.zero_point);
  }
}

void LearnedGrid::backward(const Tensor &x, const Grids &grids, double count, const Tensor &dy, const Tensor &dx,
                           std::span<const Tensor> d_parts, Scratch &scratch) {
  const auto write = [&](std::size_t part, std::size_t c, double d) {
    if (d_parts[part].has_data()) d_parts[part].as<float>()[c] = static_cast<float>(d);
  };
  if (kind_ == Learning::lsq || kind_ == Learning::lsq_plus) {
    learned_backward(x, grids, dy, dx, d_scales_, d_zeros_, scratch);
    const double factor = 1 / std::sqrt(std::max(1.0, count) * steps_);
    for (std::size_t c = 0; c < d_scales_.size(); ++c) {
      write(0, c, static_cast<double>(d_scales_[c]) * factor);
      if (kind_ == Learning::lsq_plus) write(1, c, static_cast<double>(d_zeros_[c]) * factor);
    }
    return;
  }
  const ClipGradient d = clip_backward(x, lower(0), values(0)[0], dy, dx, scratch);
  const double of_high = static_cast<double>(d.hi), of_low = lower(0) < 0 ? static_cast<double>(d.lo) : 0.0;
  if (kind_ == Learning::amax) return write(0, 0, of_high - of_low);
  write(0, 0, of_high);
  write(1, 0, of_low);
}

}  // namespace qtn::train
