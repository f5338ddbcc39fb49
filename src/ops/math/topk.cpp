// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/rank.hpp"

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

/// Places among which the best k are.
class Candidates {
 public:
  explicit Candidates(std::int64_t k) : k_(k) {}

  void add(const RankedPlace &place) { places_.push_back(place); }
  std::int64_t count() const { return static_cast<std::int64_t>(places_.size()); }

  /// The worst of the best k, which are kept.
  [[gnu::noinline]] std::int64_t keep() {
    std::nth_element(places_.begin(), places_.begin() + k_ - 1, places_.end());
    places_.resize(static_cast<std::size_t>(k_));
    return places_.back().rank;
  }
  /// The best k, in order.
  [[gnu::noinline]] std::span<const RankedPlace> sorted() {
    constexpr std::int64_t kFew = 16;
    if (count() > k_ + kFew) keep();
    std::sort(places_.begin(), places_.end());
    return {places_.data(), static_cast<std::size_t>(k_)};
  }
  void clear() { places_.clear(); }

 private:
  const std::int64_t k_;
  std::vector<RankedPlace> places_;
};

/// A rank that k of these have, or a better one, and few more where they have no order: of groups of elements, the best
/// of each, of these the k-th.
template <class Rank>
Rank bound(std::span<const Rank> ranks, std::int64_t k, Candidates &groups) {
  constexpr std::int64_t kGroups = 16, kFirst = 128;  // side by side; looked at for each of k
  const std::int64_t length = std::min(static_cast<std::int64_t>(ranks.size()), kFirst * k);
  const std::int64_t rows = std::min(length / (2 * k), length / kGroups);
  groups.clear();
  for (std::int64_t first = 0; rows > 1 && first + rows * kGroups <= length; first += rows * kGroups) {
    const Rank *from = ranks.data() + first;
    Rank best[kGroups];
    std::copy_n(from, kGroups, best);
    for (std::int64_t row = 1; row < rows; ++row)
      for (std::int64_t i = 0; i < kGroups; ++i) {
        const Rank other = from[row * kGroups + i];
        best[i] = other < best[i] ? other : best[i];
      }
    for (const Rank rank : best) groups.add({rank, 0});
  }
  return groups.count() < k ? std::numeric_limits<Rank>::max() : static_cast<Rank>(groups.keep());
}

template <class Rank>
bool any_until(Rank worst, std::span<const Rank> ranks) {
  int any = 0;
  for (const Rank rank : ranks) any |= rank <= worst;
  return any != 0;
}

/// The best k places of a line, and worse ones.
template <class Rank>
[[gnu::noinline]] void find_best(std::span<const Rank> ranks, std::int64_t k, Candidates &best) {
  constexpr std::size_t kBlock = 64;
  Rank worst = bound(ranks, k, best);
  best.clear();
  for (std::size_t first = 0; first < ranks.size(); first += kBlock) {
    const std::span<const Rank> block = ranks.subspan(first, std::min(kBlock, ranks.size() - first));
    if (!any_until(worst, block)) continue;
    if (best.count() > 2 * k + static_cast<std::int64_t>(kBlock)) {
      const std::int64_t last = best.keep();
      if (last == std::numeric_limits<Rank>::min()) break;
      worst = static_cast<Rank>(last - 1);  // of equal ones the first
    }
    for (std::size_t i = 0; i < block.size(); ++i)
      if (block[i] <= worst) best.add({block[i], static_cast<std::int64_t>(first + i)});
  }
}

/// The same of elements. Ranks of the largest are complements, so that the best is the least.
template <class T>
void find(const void *line, bool largest, const Tensor &scratch, std::int64_t k, Candidates &best) {
  using Rank = RankOf<T>;
  const T *from = static_cast<const T *>(line);
  Rank *ranks = scratch.as<Rank>();
  const Rank flip = largest ? -1 : 0;
  const std::int64_t length = scratch.count();
  for (std::int64_t i = 0; i < length; ++i) ranks[i] = rank_of(from[i]) ^ flip;
  find_best<Rank>({ranks, static_cast<std::size_t>(length)}, k, best);
}

/// x with the axis last.
Tensor in_lines(const Tensor &x, std::size_t axis) {
  std::vector<std::int32_t> axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + static_cast<std::ptrdiff_t>(axis), axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
              axes.end());
  return x.permute(axes).to_contiguous();
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &values = outputs[0], indices = outputs.size() > 1 ? outputs[1] : Tensor();
  const Choice choice = choice_of(call);
  if (choice.k == 0) return;
  const bool largest = call.attrs.get_int("largest", 1) != 0;
  const std::int64_t length = call.in(0)->dim(choice.axis);
  const std::int64_t inner = element_count(call.in(0)->shape(), choice.axis + 1, call.in(0)->rank());
  const Tensor x = in_lines(*call.in(0), choice.axis);
  const Tensor scratch(dtype_size(x.dtype()) > 4 ? QTN_INT64 : QTN_INT32, {length});
  decltype(&find<float>) find_in = nullptr;
  dispatch_number(x.dtype(), [&]<class T>(T) { find_in = find<T>; });
  Candidates best(choice.k);
  dispatch_width(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t row = 0; row < x.count() / length; ++row) {
      const T *from = x.as<const T>() + row * length;
      find_in(from, largest, scratch, choice.k, best);
      std::int64_t at = row / inner * choice.k * inner + row % inner;
      for (const RankedPlace &found : best.sorted()) {
        if (values.has_data()) values.as<T>()[at] = from[found.index];
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
