// SPDX-License-Identifier: Apache-2.0
#include "ops/common/grouped_queries.hpp"

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace qtn::ops {
namespace {

using enum GroupedForm::Input;

constexpr const char *kName = "GroupQueryAttention";

/// Pairs of features of a head turned by the angles of its place.
void turn(float *head, const float *cosines, const float *sines, std::int64_t half, bool interleaved) {
  for (std::int64_t i = 0; i < half; ++i) {
    float &a = head[interleaved ? 2 * i : i], &b = head[interleaved ? 2 * i + 1 : i + half];
    const float x = a, y = b;
    a = x * cosines[i] - y * sines[i];
    b = y * cosines[i] + x * sines[i];
  }
}

class Grouping {
 public:
  Grouping(const Call &call, const GroupedQueries &to)
      : call_(call),
        f_(call),
        to_(to),
        room_(f_.room(call)),
        keys_(f_.keys(call)),
        rotary_(call.attrs.get_int("do_rotary", 0) != 0),
        interleaved_(call.attrs.get_int("rotary_interleaved", 0) != 0) {
    const std::int64_t total = f_.total(call);
    if (total < 0) fail(QTN_EINVAL, kName, ": total_sequence_length is ", total);
    const Tensor *added = call.in(kAdded);
    if (added && added->dim(3) != total)
      fail(QTN_ESHAPE, kName, ": attention_bias is ", to_string(added->shape()), ", total_sequence_length ", total);
    // Caches with more room may have been filled further.
    const std::int64_t most = f_.slides || added || call.output_count > GroupedForm::kScores ? total : room_;
    if (f_.places > most)
      fail(QTN_EINVAL, kName, ": total_sequence_length is ", total, ", less than the ", f_.places, " places of query");
    for (std::int64_t batch = 0; batch < f_.batches; ++batch)
      if (const std::int64_t last = GroupedForm::int_at(*call.in(kLengths), batch); last < 0 || last >= most)
        fail(QTN_EINVAL, kName, ": seqlens_k has ", last, ", total_sequence_length is ", total);
    check_angles();
  }

  void run() const {
    for (std::int64_t batch = 0; batch < f_.batches; ++batch)
      to_.ends.as<std::int64_t>()[batch] =
          f_.attends_to_caches() ? f_.resident(before(batch) + f_.places) : f_.resident(before(batch)) + f_.places;
    parallel_for(static_cast<std::size_t>(f_.batches * f_.kv_heads), [&](std::size_t i) {
      const std::int64_t batch = static_cast<std::int64_t>(i) / f_.kv_heads,
                         head = static_cast<std::int64_t>(i) % f_.kv_heads;
      fill(batch, head, 0, to_.keys, to_.present_keys);
      fill(batch, head, 1, to_.values, to_.present_values);
    });
    parallel_for(static_cast<std::size_t>(f_.batches * f_.heads), [&](std::size_t i) {
      const std::int64_t batch = static_cast<std::int64_t>(i) / f_.heads,
                         head = static_cast<std::int64_t>(i) % f_.heads;
      for (std::int64_t p = 0; p < f_.places; ++p) {
        float *query = to_.queries.as<float>() + (static_cast<std::int64_t>(i) * f_.places + p) * f_.features;
        std::copy_n(given(*call_.in(kQuery), batch, p, head), f_.features, query);
        rotate(query, batch, p);
      }
    });
  }

 private:
  std::int64_t before(std::int64_t batch) const { return f_.before(call_, batch); }

  /// A head of a place of an operand, `offset` heads behind the first of the row.
  const float *given(const Tensor &t, std::int64_t batch, std::int64_t place, std::int64_t head) const {
    return t.as<const float>() + (batch * f_.places + place) * t.dim(2) + head * f_.features;
  }

  std::int64_t angle_at(std::int64_t batch, std::int64_t place) const {
    const Tensor *places = call_.in(kPlaces);
    return places ? GroupedForm::int_at(*places, batch * f_.places + place) : before(batch) + place;
  }

  /// Before tasks in parallel, which must not fail.
  void check_angles() const {
    if (!rotary_) return;
    const std::int64_t angles = call_.in(kCosines)->dim(0);
    for (std::int64_t batch = 0; batch < f_.batches; ++batch)
      for (std::int64_t place = 0; place < f_.places; ++place)
        if (const std::int64_t at = angle_at(batch, place); at < 0 || at >= angles)
          fail(QTN_EINVAL, kName, ": place ", at, " is behind the ", angles, " of cos_cache");
  }

  void rotate(float *head, std::int64_t batch, std::int64_t place) const {
    if (!rotary_) return;
    const Tensor &cosines = *call_.in(kCosines), &sines = *call_.in(kSines);
    const std::int64_t half = cosines.dim(1), at = angle_at(batch, place) * half;
    turn(head, cosines.as<const float>() + at, sines.as<const float>() + at, half, interleaved_);
  }

  /// Row r of what was there before and of what comes is row r - gone of the cache; those with r < gone leave it.
  void fill(std::int64_t batch, std::int64_t head, std::size_t i, const Tensor &seen, const Tensor &present) const {
    const CacheRows rows = f_.rows(call_, i);
    const std::int64_t index = batch * f_.kv_heads + head, old = f_.resident(before(batch)), all = old + f_.places,
                       stay = f_.resident(before(batch) + f_.places), gone = all - stay, kept = std::min(old, f_.past),
                       left = std::min(gone, kept);
    const auto bytes = static_cast<std::int64_t>(rows.bytes());
    std::byte *cache = present.as<std::byte>() + index * room_ * bytes;
    const Tensor *filled = call_.in(kPastKey + i);
    const std::byte *past = filled ? filled->as<const std::byte>() + index * f_.past * bytes : nullptr;
    if (past) std::copy_n(past + left * bytes, (kept - left) * bytes, cache);
    std::fill(cache + (kept - left) * bytes, cache + (old - left) * bytes, std::byte{0});
    std::fill(cache + stay * bytes, cache + room_ * bytes, std::byte{0});
    const bool apart = !f_.attends_to_caches();
    float *floats = seen.as<float>() + index * keys_ * f_.features;
    for (std::int64_t r = 0; apart && r < old; ++r)
      rows.read(head, r < gone ? past + r * bytes : cache + (r - gone) * bytes, floats + r * f_.features);
    for (std::int64_t p = 0; p < f_.places; ++p) {
      // What leaves at once lies for a moment where the first that stays will be.
      const std::int64_t at = std::max<std::int64_t>(old + p - gone, 0);
      float *x = floats + (apart ? old + p : at) * f_.features;
      std::copy_n(arriving(i, batch, p, head), f_.features, x);
      if (i == 0) rotate(x, batch, p);
      if (!apart) continue;
      rows.write(head, x, cache + at * bytes);
      if (f_.bits != 0) rows.read(head, cache + at * bytes, x);
    }
  }

  /// A key or a value of a place.
  const float *arriving(std::size_t i, std::int64_t batch, std::int64_t place, std::int64_t head) const {
    if (!f_.packed) return given(*call_.in(kKey + i), batch, place, head);
    return given(*call_.in(kQuery), batch, place, f_.heads + static_cast<std::int64_t>(i) * f_.kv_heads + head);
  }

  const Call &call_;
  GroupedForm f_;
  const GroupedQueries &to_;
  std::int64_t room_, keys_;
  bool rotary_, interleaved_;
};

}  // namespace

void group_queries(const Call &call, const GroupedQueries &to) { Grouping(call, to).run(); }

}  // namespace qtn::ops
