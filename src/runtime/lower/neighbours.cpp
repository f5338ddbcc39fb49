// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/neighbours.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/lower/vectors.hpp"

namespace qtn::runtime {
namespace {

/// Rows of fewer pixels leave too much of a tile empty.
constexpr std::int64_t kNarrow = 7;

std::int64_t pixels_of(std::int64_t width, std::int64_t count) { return (width + count - 1) / count; }

/// Each number so many times, all of them one after the other.
template <class T>
std::vector<T> repeated(const std::vector<T> &numbers, std::int64_t times) {
  std::vector<T> all;
  for (std::int64_t i = 0; i < times; ++i) all.insert(all.end(), numbers.begin(), numbers.end());
  return all;
}

}  // namespace

Neighbours::Neighbours(const ops::Window &window, std::size_t groups, std::size_t outputs)
    : one_(window), outputs_(static_cast<std::int64_t>(outputs)) {
  if (groups != 1 || window.dilation[1] != 1) return;
  for (std::int64_t count = 2; count * outputs_ <= kLanes && pixels_of(window.out[1], count) >= kNarrow; ++count)
    if (cost(count) < cost(count_)) count_ = count;
  if (4 * cost(count_) > 3 * cost(1)) count_ = 1;
}

/// Taps of a row that `count` outputs read together.
std::int64_t Neighbours::width(std::int64_t count) const { return one_.kernel[1] + (count - 1) * one_.stride[1]; }

/// Taps that a row of outputs reads, of which each takes as long for few outputs as for kLanes.
std::int64_t Neighbours::cost(std::int64_t count) const { return pixels_of(one_.out[1], count) * width(count); }

ops::Window Neighbours::window() const {
  ops::Window joined = one_;
  joined.kernel[1] = width(count_);
  joined.stride[1] *= count_;
  joined.out[1] = pixels_of(one_.out[1], count_);
  return joined;
}

double Neighbours::vectors() const {
  const std::int64_t taps = one_.kernel[0] * one_.kernel[2] * width(count_);
  return static_cast<double>(taps * vectors_of(count_ * outputs_)) / static_cast<double>(count_);
}

/// Filters [outputs][lines][taps][channels] for all neighbours, each over its own taps of a wider window.
template <class T>
Tensor Neighbours::joined(const Tensor &filters, std::size_t k) const {
  const std::int64_t lines = one_.kernel[0] * one_.kernel[2], all = outputs_ * count_;
  const std::int64_t channels = static_cast<std::int64_t>(k) / (lines * one_.kernel[1]);
  const std::int64_t row = one_.kernel[1] * channels, wide = width(count_) * channels;
  Tensor wider(filters.dtype(), Shape{all * lines * wide});
  std::memset(wider.data(), 0, wider.nbytes());
  for (std::int64_t o = 0; o < all; ++o)
    for (std::int64_t line = 0; line < lines; ++line)
      std::copy_n(filters.as<const T>() + (o % outputs_ * lines + line) * row, row,
                  wider.as<T>() + (o * lines + line) * wide + o / outputs_ * one_.stride[1] * channels);
  return wider;
}

LinearWeights Neighbours::weights(const LinearWeights &of_one) const {
  LinearWeights all = of_one;
  all.bias = repeated(of_one.bias, count_);
  all.multiplier = repeated(of_one.multiplier, count_);
  all.out = all.bias.size();
  all.weight = joined<std::int8_t>(*of_one.weight, of_one.k);
  all.k = static_cast<std::size_t>(all.weight->count()) / all.out;
  all.tap_sums = joined<std::int32_t>(of_one.tap_sums, of_one.taps);
  all.taps = static_cast<std::size_t>(all.tap_sums.count()) / all.out;
  all.kernel = nullptr;
  return all;
}

RealWeights Neighbours::weights(const RealWeights &of_one) const {
  RealWeights all = of_one;
  all.out = of_one.out * static_cast<std::size_t>(count_);
  all.weight = joined<float>(of_one.in_order(), of_one.k);
  all.k = static_cast<std::size_t>(all.weight.count()) / all.out;
  all.taps = 1;  // in the order that packing wants
  if (!of_one.bias.has_data()) return all;
  all.bias = Tensor(QTN_FLOAT32, Shape{outputs_ * count_});
  for (std::int64_t i = 0; i < count_; ++i)
    std::copy_n(of_one.bias.as<const float>(), outputs_, all.bias.as<float>() + i * outputs_);
  return all;
}

PackCache Neighbours::cache(const PackCache &of_node) const {
  return part_of(of_node, static_cast<std::size_t>(count_ - 1), kLanes);
}

void add_neighbours(Lowering &l, SlotId y, std::int64_t count, const std::function<StepPtr(SlotId to)> &make) {
  const SlotForm form = l.form(y);
  const std::size_t last = form.shape.size() - 1;
  const std::int64_t pixels = (form.shape[last] + count - 1) / count;
  Shape wide = form.shape, together = form.shape;
  wide[last] = pixels * count;
  together[last] = pixels;
  together[1] *= count;
  const Shape strides = channels_last_strides(wide);
  const bool whole = strides == form.strides && wide == form.shape;
  const SlotId all = whole ? y : l.add_slot({form.dtype, wide, strides, form.quantizer});
  l.add_step(make(l.add_view(all, {together, channels_last_strides(together), 0})));
  if (!whole) l.add_step(make_copy(l.edge(l.add_view(all, {form.shape, strides, 0})), l.edge(y)));
}

}  // namespace qtn::runtime
