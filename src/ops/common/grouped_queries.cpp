// SPDX-License-Identifier: Apache-2.0
#include "ops/common/grouped_queries.hpp"

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace qtn::ops {
namespace {

using enum GroupedForm::Input;

constexpr const char *kName = "GroupQueryAttention";
constexpr std::int64_t kMostHeads = 1 << 20;

/// An element of int32 or int64.
std::int64_t int_at(const Tensor &t, std::int64_t i) {
  return t.dtype() == QTN_INT32 ? t.as<const std::int32_t>()[i] : t.as<const std::int64_t>()[i];
}

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
        total_(int_at(*call.in(kTotal), 0)),
        room_(f_.room(call)),
        rotary_(call.attrs.get_int("do_rotary", 0) != 0),
        interleaved_(call.attrs.get_int("rotary_interleaved", 0) != 0) {
    if (f_.places > room_)
      fail(QTN_EINVAL, kName, ": total_sequence_length is ", total_, ", less than the ", f_.places, " places of query");
    for (std::int64_t batch = 0; batch < f_.batches; ++batch)
      if (const std::int64_t last = int_at(*call.in(kLengths), batch); last < 0 || last >= room_)
        fail(QTN_EINVAL, kName, ": seqlens_k has ", last, ", total_sequence_length is ", total_);
    check_angles();
  }

  void run() const {
    for (std::int64_t batch = 0; batch < f_.batches; ++batch)
      to_.ends.as<std::int64_t>()[batch] = before(batch) + f_.places;
    parallel_for(static_cast<std::size_t>(f_.batches * f_.kv_heads), [&](std::size_t i) {
      fill(static_cast<std::int64_t>(i) / f_.kv_heads, static_cast<std::int64_t>(i) % f_.kv_heads);
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
  /// Places of a sequence that were there before. All sequences begin in this call, or none.
  std::int64_t before(std::int64_t batch) const {
    if (f_.places == total_) return 0;
    return std::max<std::int64_t>(int_at(*call_.in(kLengths), batch) + 1 - f_.places, 0);
  }

  /// A head of a place of an operand, `offset` heads behind the first of the row.
  const float *given(const Tensor &t, std::int64_t batch, std::int64_t place, std::int64_t head) const {
    return t.as<const float>() + (batch * f_.places + place) * t.dim(2) + head * f_.features;
  }

  std::int64_t angle_at(std::int64_t batch, std::int64_t place) const {
    const Tensor *places = call_.in(kPlaces);
    return places ? int_at(*places, batch * f_.places + place) : before(batch) + place;
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

  void fill(std::int64_t batch, std::int64_t head) const {
    const std::int64_t past = before(batch), row = f_.features, kept = std::min(past, f_.past);
    for (std::size_t i = 0; i < 2; ++i) {
      float *cache = (i == 0 ? to_.keys : to_.values).as<float>() + (batch * f_.kv_heads + head) * room_ * row;
      if (const Tensor *old = call_.in(kPastKey + i))
        std::copy_n(old->as<const float>() + (batch * f_.kv_heads + head) * f_.past * row, kept * row, cache);
      std::fill(cache + kept * row, cache + past * row, 0.0f);
      for (std::int64_t p = 0; p < f_.places; ++p) {
        const float *now =
            f_.packed ? given(*call_.in(kQuery), batch, p, f_.heads + static_cast<std::int64_t>(i) * f_.kv_heads + head)
                      : given(*call_.in(kKey + i), batch, p, head);
        float *to = cache + (past + p) * row;
        std::copy_n(now, row, to);
        if (i == 0) rotate(to, batch, p);
      }
      std::fill(cache + (past + f_.places) * row, cache + room_ * row, 0.0f);
    }
  }

  const Call &call_;
  GroupedForm f_;
  const GroupedQueries &to_;
  std::int64_t total_, room_;
  bool rotary_, interleaved_;
};

}  // namespace

GroupedForm::GroupedForm(const Call &call)
    : heads(call.attrs.get_int("num_heads", 0)),
      kv_heads(call.attrs.get_int("kv_num_heads", 0)),
      packed(!call.in(kKey)) {
  const Tensor &q = *call.in(kQuery);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || heads > kMostHeads)
    fail(QTN_EINVAL, kName, ": num_heads is ", heads, ", kv_num_heads ", kv_heads);
  if (q.rank() != 3) fail(QTN_ESHAPE, kName, ": query must have 3 axes, it is ", to_string(q.shape()));
  const std::int64_t all = packed ? heads + 2 * kv_heads : heads;
  if (all > q.dim(2) || q.dim(2) % all != 0)
    fail(QTN_ESHAPE, kName, ": ", all, " heads do not share the features of query ", to_string(q.shape()));
  batches = q.dim(0), places = q.dim(1), features = q.dim(2) / all;
  past = call.in(kPastKey) && call.in(kPastKey)->rank() == 4 ? call.in(kPastKey)->dim(2) : 0;
}

std::int64_t GroupedForm::room(const Call &call) const { return std::max(past, int_at(*call.in(kTotal), 0)); }

void group_queries(const Call &call, const GroupedQueries &to) { Grouping(call, to).run(); }

}  // namespace qtn::ops
