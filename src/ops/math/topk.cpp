// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"largest", AttrSpec::kInt}, {"sorted", AttrSpec::kInt}};

struct Choice {
  std::size_t axis;
  std::int64_t k;
};

Choice choice_of(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::size_t axis = normalize_axis(call.attrs.get_int("axis", -1), x.rank(), "TopK");
  const std::vector<std::int64_t> k = constant_ints("TopK", "k", *call.in(1));
  if (k.size() != 1) fail(QTN_ESHAPE, "TopK: k must be one number, it holds ", k.size());
  if (k[0] < 0 || k[0] > x.dim(axis))
    fail(QTN_EINVAL, "TopK: k is ", k[0], ", x ", to_string(x.shape()), " has ", x.dim(axis), " elements along axis ",
         axis);
  return {axis, k[0]};
}

Types infer(const Call &call) {
  require_number("TopK", "x", *call.in(0));
  const Choice choice = choice_of(call);
  Shape shape = call.in(0)->shape();
  shape[choice.axis] = choice.k;
  Types types{{call.in(0)->dtype(), shape}};
  if (call.output_count > 1) types.push_back({QTN_INT64, shape});
  return types;
}

/// Numbers in the order of the elements. NaN is above all, as in NumPy and PyTorch, and the zeros are equal.
template <class T>
std::int64_t key_of(T v) {
  using Limits = std::numeric_limits<std::int64_t>;
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return static_cast<std::int64_t>(v ^ std::uint64_t{1} << 63);
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto bits = std::bit_cast<std::int64_t>(static_cast<double>(v) + 0.0);
    return std::isnan(v) ? Limits::max() : bits < 0 ? Limits::min() - bits : bits;
  } else {
    return static_cast<std::int64_t>(v);
  }
}

struct Place {
  std::int64_t rank;  ///< the key, or for the largest its complement: the best is the least
  std::int64_t index;
  auto operator<=>(const Place &) const = default;  // of equal ones the first
};

/// The best places of one line, in order. The worst of those so far is the first of a heap, and tells most elements off.
template <class T>
class Best {
 public:
  Best(std::int64_t k, bool largest) : k_(k), largest_(largest) { places_.reserve(static_cast<std::size_t>(k)); }

  const std::vector<Place> &of(const T *from, std::int64_t length, std::int64_t step) {
    places_.clear();
    for (std::int64_t i = 0; i < k_; ++i) places_.push_back(place(from, i, step));
    std::make_heap(places_.begin(), places_.end());
    for (std::int64_t i = k_; i < length && k_ > 0;) {
      const std::int64_t end = std::min(length, i + kBlock);
      if constexpr (std::is_floating_point_v<T>)
        if (step == 1 && end - i == kBlock && !any_better(from + i, from[places_[0].index])) i = end;
      for (; i < end; ++i) offer(place(from, i, step));
    }
    std::sort_heap(places_.begin(), places_.end());
    return places_;
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  Place place(const T *from, std::int64_t i, std::int64_t step) const {
    const std::int64_t key = key_of(from[i * step]);
    return {largest_ ? ~key : key, i};
  }

  /// Whether there may be a better one among so many: NaN, which compares with nothing, may be one.
  bool any_better(const T *from, T worst) const {
    int any = 0;
    if (largest_)
      for (std::int64_t i = 0; i < kBlock; ++i) any |= !(from[i] <= worst);
    else
      for (std::int64_t i = 0; i < kBlock; ++i) any |= !(from[i] >= worst);
    return any != 0;
  }

  void offer(const Place &other) {
    if (!(other < places_[0])) return;
    std::pop_heap(places_.begin(), places_.end());
    places_.back() = other;
    std::push_heap(places_.begin(), places_.end());
  }

  const std::int64_t k_;
  const bool largest_;
  std::vector<Place> places_;
};

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &values = outputs[0], indices = outputs.size() > 1 ? outputs[1] : Tensor();
  const Choice choice = choice_of(call);
  const bool largest = call.attrs.get_int("largest", 1) != 0;
  const std::int64_t length = x.dim(choice.axis), inner = element_count(x.shape(), choice.axis + 1, x.rank());
  dispatch_number(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Best<T> best(choice.k, largest);
    for (std::int64_t row = 0; row < x.count() / std::max<std::int64_t>(length, 1); ++row) {
      const T *from = x.as<const T>() + row / inner * length * inner + row % inner;
      std::int64_t at = row / inner * choice.k * inner + row % inner;
      for (const Place &found : best.of(from, length, inner)) {
        if (values.has_data()) values.as<T>()[at] = from[found.index * inner];
        if (indices.has_data()) indices.as<std::int64_t>()[at] = found.index;
        at += inner;
      }
    }
  });
}

qdtype output_dtype(const Attrs &, std::size_t output, qdtype moved) { return output == 0 ? moved : QTN_INT64; }

/// How many was an attribute before opset 10.
void upgrade(OldNode &node) {
  if (node.opset >= 10) return;
  const std::int64_t k = node.attrs.get_int("k", 0);
  node.attrs.erase("k");
  node.constants[1] = Tensor::from_ints(std::span(&k, 1));
}

}  // namespace

const OpDef kTopK{.name = "TopK",
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .max_outputs = 2,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .output_dtype = output_dtype,
                  .upgrade = upgrade};

}  // namespace qtn::ops
