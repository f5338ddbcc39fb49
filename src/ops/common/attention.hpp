// SPDX-License-Identifier: Apache-2.0
// What runs and gradients of Attention share: operands as heads, masks, and the softmax of a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "ops/common/cast.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

namespace attention {

inline constexpr const char *kName = "Attention";
enum Input : std::size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };

/// x as [batch][head][place][feature], wherever its heads are.
Tensor as_heads(const char *name, const Tensor &x, std::int64_t heads);

/// The operands of a call as heads.
struct Heads {
  explicit Heads(const Call &call);

  std::int64_t batches() const { return q.dim(0); }
  std::int64_t keys() const { return past + k.dim(2); }

  Tensor q, k, v;
  std::int64_t past;
};

/// The matrix of a head, from a place on; only the step from place to place is free.
template <class T>
T *matrix(const Tensor &t, std::int64_t batch, std::int64_t head, std::int64_t first = 0) {
  if (t.count() == 0) return t.as<T>();
  return t.as<T>() + batch * t.strides()[0] + head * t.strides()[1] + first * t.strides()[2];
}

/// Scores of some queries are worked on at a time: those of all may be far larger than what goes in and comes out.
inline std::int64_t rows_at_a_time(std::int64_t queries, std::int64_t keys) {
  return std::clamp<std::int64_t>((1 << 18) / std::max<std::int64_t>(1, keys), 1, queries);
}

/// Which keys a query sees, and what is added to its scores.
template <class T>
class Bias {
 public:
  Bias(const Call &call, const Heads &h) : queries_(h.q.dim(2)), keys_(h.keys()), past_(h.past) {
    causal_ = call.attrs.get_int("is_causal", 0) != 0;
    left_ = call.attrs.get_int("left_window_size", -1);
    right_ = call.attrs.get_int("right_window_size", -1);
    if (call.in(kLengths)) lengths_ = call.in(kLengths)->as<const std::int64_t>();
    if (!call.in(kMask)) return;
    mask_ = *call.in(kMask);
    if (mask_.dtype() != QTN_BOOL && mask_.dtype() != h.q.dtype()) {
      mask_ = Tensor(h.q.dtype(), mask_.shape());
      cast_elements(*call.in(kMask), mask_, true);
    }
    masked_ = mask_.shape().back();
    Shape rows = mask_.shape(), strides = mask_.strides();
    rows.erase(rows.size() - 1);
    strides.erase(strides.size() - 1);
    strides_ = broadcast_strides(rows, strides, {h.batches(), h.q.dim(1), queries_});
  }

  /// In place of scores, which are those of a row, their sums with the bias. False: no key is seen.
  bool add(std::int64_t batch, std::int64_t head, std::int64_t query, T *scores) const {
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    std::int64_t begin = 0, end = keys_;
    const std::int64_t at = query + offset(batch);
    if (causal_) end = std::min(end, at + 1);
    if (right_ >= 0) end = std::min(end, at + std::min(right_, 2 * keys_ + queries_) + 1);
    if (left_ >= 0) begin = std::max(begin, at - std::min(left_, 2 * keys_ + queries_));
    if (lengths_) end = std::min(end, length(batch));
    if (mask_.has_data()) end = std::min(end, masked_);
    begin = std::clamp<std::int64_t>(begin, 0, keys_);
    end = std::clamp<std::int64_t>(end, begin, keys_);
    std::fill_n(scores, begin, kNever);
    std::fill(scores + end, scores + keys_, kNever);
    if (!mask_.has_data()) return begin < end;
    const std::int64_t row = mask_row(batch, head, query);
    bool any = false;
    if (mask_.dtype() == QTN_BOOL) {
      const bool *seen = mask_.as<const bool>() + row;
      for (std::int64_t j = begin; j < end; ++j) {
        if (!seen[j]) scores[j] = kNever;
        any |= seen[j];
      }
    } else {
      const T *added = mask_.as<const T>() + row;
      for (std::int64_t j = begin; j < end; ++j) {
        scores[j] += added[j];
        any |= added[j] != kNever;
      }
    }
    return any;
  }

  /// Where in the mask the row of a query begins, and how many keys it has.
  std::int64_t mask_row(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    return batch * strides_[0] + head * strides_[1] + query * strides_[2];
  }
  std::int64_t masked() const { return masked_; }

 private:
  /// Keys before the first query.
  std::int64_t offset(std::int64_t batch) const { return lengths_ ? length(batch) - queries_ : past_; }
  std::int64_t length(std::int64_t batch) const { return std::clamp<std::int64_t>(lengths_[batch], 0, keys_); }

  std::int64_t queries_, keys_, past_, left_, right_, masked_ = 0;
  bool causal_;
  const std::int64_t *lengths_ = nullptr;
  Tensor mask_;
  Shape strides_;
};

/// In place. A row without a finite score becomes zeros. `sink`: one score more, whose share no key has.
template <class T>
void softmax(T *row, std::int64_t count, const T *sink = nullptr) {
  T top = sink ? *sink : -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < count; ++j) top = row[j] > top || row[j] != row[j] ? row[j] : top;
  if (top == -std::numeric_limits<T>::infinity()) return void(std::fill_n(row, count, T(0)));
  double sum = sink ? static_cast<double>(std::exp(*sink - top)) : 0;
  for (std::int64_t j = 0; j < count; ++j) sum += static_cast<double>(row[j] = std::exp(row[j] - top));
  const T factor = static_cast<T>(1 / sum);
  for (std::int64_t j = 0; j < count; ++j) row[j] *= factor;
}

/// Scores between -most and most.
template <class T>
void cap(T *row, std::int64_t count, T most) {
  for (std::int64_t j = 0; j < count; ++j) row[j] = std::tanh(row[j] / most) * most;
}

}  // namespace attention

/// See OpDef::backward. Scores that are shown have no gradient.
void attention_backward(const Backward &run, std::span<const Tensor> dx);

}  // namespace qtn::ops
