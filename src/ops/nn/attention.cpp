// SPDX-License-Identifier: Apache-2.0
// Attention of opsets 23 to 25: scores of queries and keys, masks, softmax, and the mean of values by them.
#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "base/size.hpp"
#include "blas/gemm.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"is_causal", AttrSpec::kInt},
                               {"kv_num_heads", AttrSpec::kInt},
                               {"left_window_size", AttrSpec::kInt},
                               {"q_num_heads", AttrSpec::kInt},
                               {"qk_matmul_output_mode", AttrSpec::kInt},
                               {"right_window_size", AttrSpec::kInt},
                               {"scale", AttrSpec::kFloat},
                               {"softcap", AttrSpec::kFloat},
                               {"softmax_precision", AttrSpec::kInt}};
constexpr const char *kName = "Attention";
constexpr double kExponential = 8;  // takes as long as so many products

/// x as [batch][head][place][feature], wherever its heads are.
Tensor as_heads(const char *name, const Tensor &x, std::int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3) fail(QTN_ESHAPE, kName, ": ", name, " must have 3 or 4 axes, it is ", to_string(x.shape()));
  if (heads < 1 || x.dim(2) % heads != 0)
    fail(QTN_EINVAL, kName, ": ", heads, " heads do not share the ", x.dim(2), " features of ", name, " ",
         to_string(x.shape()));
  const std::int64_t features = x.dim(2) / heads;
  return x.view({x.dim(0), heads, x.dim(1), features},
                {x.strides()[0], features * x.strides()[2], x.strides()[1], x.strides()[2]});
}

/// The operands of a call as heads.
struct Heads {
  explicit Heads(const Call &call)
      : q(as_heads("Q", *call.in(0), call.attrs.get_int("q_num_heads", 0))),
        k(as_heads("K", *call.in(1), call.attrs.get_int("kv_num_heads", 0))),
        v(as_heads("V", *call.in(2), call.attrs.get_int("kv_num_heads", 0))),
        past(call.in(4) ? call.in(4)->dim(2) : 0) {}

  std::int64_t batches() const { return q.dim(0); }
  std::int64_t keys() const { return past + k.dim(2); }

  Tensor q, k, v;
  std::int64_t past;
};

void check_past(const Call &call, std::size_t i, const Tensor &now) {
  const Tensor &past = *call.in(i);
  require_same_dtype(kName, past, now);
  Shape expected = now.shape();
  if (past.rank() == 4) expected[2] = past.dim(2);
  if (!(past.shape() == expected))
    fail(QTN_ESHAPE, kName, ": ", i == 4 ? "past_key" : "past_value", " is ", to_string(past.shape()),
         ", before keys or values of ", to_string(now.shape()));
}

void check_mask(const Tensor &mask, const Heads &h) {
  require_dtype(kName, "attn_mask", mask, {QTN_BOOL, h.q.dtype()});
  const Shape scores{h.batches(), h.q.dim(1), h.q.dim(2), h.keys()};
  bool fits = mask.rank() >= 1 && mask.rank() <= 4 && mask.shape().back() <= h.keys();
  for (std::size_t i = 2; fits && i <= mask.rank(); ++i) {
    const std::int64_t dim = mask.dim(mask.rank() - i);
    fits = dim == 1 || dim == scores[4 - i];
  }
  if (!fits)
    fail(QTN_ESHAPE, kName, ": attn_mask ", to_string(mask.shape()), " does not broadcast to scores ",
         to_string(scores));
}

Types infer(const Call &call) {
  const Tensor &q = *call.in(0);
  require_real(kName, "Q", &q);
  for (const std::size_t i : {1, 2}) {
    require_same_dtype(kName, q, *call.in(i));
    if (call.in(i)->rank() != q.rank())
      fail(QTN_ESHAPE, kName, ": Q is ", to_string(q.shape()), ", K ", to_string(call.in(1)->shape()), " and V ",
           to_string(call.in(2)->shape()));
  }
  if ((call.in(4) != nullptr) != (call.in(5) != nullptr))
    fail(QTN_EINVAL, kName, ": past_key and past_value go together");
  for (const std::size_t i : {4, 5})
    if (call.in(i) && call.in(i)->rank() != 4)
      fail(QTN_ESHAPE, kName, ": past_key and past_value must have 4 axes, one has ", to_string(call.in(i)->shape()));
  const Heads h(call);
  if (!(Shape{h.k.dim(0), h.k.dim(1), h.k.dim(2)} == Shape{h.v.dim(0), h.v.dim(1), h.v.dim(2)}) ||
      h.q.dim(0) != h.k.dim(0) || h.q.dim(3) != h.k.dim(3) || h.k.dim(1) < 1 || h.q.dim(1) % h.k.dim(1) != 0)
    fail(QTN_ESHAPE, kName, ": as heads Q is ", to_string(h.q.shape()), ", K ", to_string(h.k.shape()), " and V ",
         to_string(h.v.shape()));
  if (call.in(4)) {
    check_past(call, 4, h.k);
    check_past(call, 5, h.v);
    if (call.in(4)->dim(2) != call.in(5)->dim(2))
      fail(QTN_ESHAPE, kName, ": past_key is ", to_string(call.in(4)->shape()), ", past_value ",
           to_string(call.in(5)->shape()));
  }
  if (call.in(3)) check_mask(*call.in(3), h);
  if (const Tensor *lengths = call.in(6)) {
    require_dtype(kName, "nonpad_kv_seqlen", *lengths, {QTN_INT64});
    if (call.in(4)) fail(QTN_EINVAL, kName, ": nonpad_kv_seqlen goes with no past_key");
    if (!(lengths->shape() == Shape{h.batches()}))
      fail(QTN_ESHAPE, kName, ": nonpad_kv_seqlen is ", to_string(lengths->shape()), ", Q ", to_string(q.shape()));
  }
  if (const std::int64_t mode = call.attrs.get_int("qk_matmul_output_mode", 0); mode < 0 || mode > 3)
    fail(QTN_EINVAL, kName, ": qk_matmul_output_mode is ", mode, ", not 0 to 3");
  for (const char *window : {"left_window_size", "right_window_size"})
    if (const std::int64_t size = call.attrs.get_int(window, -1); size < -1)
      fail(QTN_EINVAL, kName, ": ", window, " is ", size);

  const Shape y = q.rank() == 4 ? Shape{h.batches(), h.q.dim(1), h.q.dim(2), h.v.dim(3)}
                                : Shape{h.batches(), h.q.dim(2), mul_dims(kName, h.q.dim(1), h.v.dim(3))};
  const auto cache = [&](const Tensor &now) { return Shape{h.batches(), now.dim(1), h.keys(), now.dim(3)}; };
  Types types{{q.dtype(), y},
              {q.dtype(), cache(h.k)},
              {q.dtype(), cache(h.v)},
              {q.dtype(), {h.batches(), h.q.dim(1), h.q.dim(2), h.keys()}}};
  types.resize(call.output_count);
  return types;
}

/// What was there and what comes, along the places: into `wanted` where that is an output, else as it is if it need not
/// be copied.
Tensor joined(const Tensor *past, const Tensor &now, const Tensor *wanted) {
  if (!past && !wanted && now.strides()[3] == 1) return now;
  const std::int64_t before = past ? past->dim(2) : 0;
  const Tensor all = wanted ? *wanted : Tensor(now.dtype(), {now.dim(0), now.dim(1), before + now.dim(2), now.dim(3)});
  const auto part = [&](std::int64_t first, const Tensor &from) {
    if (from.count() > 0) copy_elements(all.view(from.shape(), all.strides(), first * all.strides()[2]), from);
  };
  if (past) part(0, *past);
  part(before, now);
  return all;
}

/// Which keys a query sees, and what is added to its scores.
template <class T>
class Bias {
 public:
  Bias(const Call &call, const Heads &h) : queries_(h.q.dim(2)), keys_(h.keys()), past_(h.past) {
    causal_ = call.attrs.get_int("is_causal", 0) != 0;
    left_ = call.attrs.get_int("left_window_size", -1);
    right_ = call.attrs.get_int("right_window_size", -1);
    if (call.in(6)) lengths_ = int_values(*call.in(6), "nonpad_kv_seqlen");
    for (std::int64_t &length : lengths_) length = std::clamp<std::int64_t>(length, 0, keys_);
    if (!call.in(3)) return;
    mask_ = call.in(3)->to_contiguous();
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
    if (!lengths_.empty()) end = std::min(end, lengths_[static_cast<std::size_t>(batch)]);
    if (mask_.has_data()) end = std::min(end, masked_);
    begin = std::clamp<std::int64_t>(begin, 0, keys_);
    end = std::clamp<std::int64_t>(end, begin, keys_);
    std::fill_n(scores, begin, kNever);
    std::fill(scores + end, scores + keys_, kNever);
    if (!mask_.has_data()) return begin < end;
    const std::int64_t row = batch * strides_[0] + head * strides_[1] + query * strides_[2];
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

 private:
  /// Keys before the first query.
  std::int64_t offset(std::int64_t batch) const {
    return lengths_.empty() ? past_ : lengths_[static_cast<std::size_t>(batch)] - queries_;
  }

  std::int64_t queries_, keys_, past_, left_, right_, masked_ = 0;
  bool causal_;
  std::vector<std::int64_t> lengths_;
  Tensor mask_;
  Shape strides_;
};

/// In place. A row without a finite score becomes zeros.
template <class T>
void softmax(T *row, std::int64_t count) {
  T top = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < count; ++j) top = row[j] > top || row[j] != row[j] ? row[j] : top;
  if (top == -std::numeric_limits<T>::infinity()) return void(std::fill_n(row, count, T(0)));
  double sum = 0;
  for (std::int64_t j = 0; j < count; ++j) sum += static_cast<double>(row[j] = std::exp(row[j] - top));
  const T factor = static_cast<T>(1 / sum);
  for (std::int64_t j = 0; j < count; ++j) row[j] *= factor;
}

template <class T>
class Run {
 public:
  Run(const Call &call, std::span<Tensor> outputs) : heads_(call), bias_(call, heads_) {
    const auto wanted = [&](std::size_t i) {
      return i < outputs.size() && outputs[i].has_data() ? &outputs[i] : nullptr;
    };
    keys_ = joined(call.in(4), heads_.k, wanted(1));
    values_ = joined(call.in(5), heads_.v, wanted(2));
    const Tensor y = outputs[0].has_data() ? outputs[0] : Tensor(heads_.q.dtype(), infer(call)[0].shape);
    y_ = as_heads("Y", y, heads_.q.dim(1));
    if (wanted(3)) shown_ = outputs[3];
    mode_ = call.attrs.get_int("qk_matmul_output_mode", 0);
    const double features = static_cast<double>(heads_.q.dim(3));
    scale_ = static_cast<T>(call.attrs.get_float("scale", 1 / std::sqrt(features)));
    softcap_ = static_cast<T>(call.attrs.get_float("softcap", 0));
  }

  void run() const {
    const std::int64_t queries = heads_.q.dim(2), keys = heads_.keys(), q_heads = heads_.q.dim(1);
    if (queries == 0) return;  // then there may be any number of heads, of no features
    // Scores of some queries at a time: those of all may be far larger than what goes in and comes out.
    const std::int64_t rows = std::clamp<std::int64_t>((1 << 18) / std::max<std::int64_t>(1, keys), 1, queries);
    std::vector<T> scores((Size(rows) * keys).value());
    for (std::int64_t batch = 0; batch < heads_.batches(); ++batch)
      for (std::int64_t head = 0; head < q_heads; ++head)
        for (std::int64_t first = 0; first < queries; first += rows)
          run_rows(batch, head, first, std::min(rows, queries - first), scores.data());
  }

 private:
  /// The matrix of a head; only the step from place to place is free.
  static T *matrix(const Tensor &t, std::int64_t batch, std::int64_t head) {
    return t.as<T>() + batch * t.strides()[0] + head * t.strides()[1];
  }

  void run_rows(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count, T *scores) const {
    const std::int64_t keys = heads_.keys(), features = heads_.q.dim(3), values = heads_.v.dim(3),
                       shared = head / (heads_.q.dim(1) / heads_.k.dim(1));
    const std::int64_t q_step = heads_.q.strides()[2], y_step = y_.strides()[2];
    blas::gemm(count, keys, features, scale_, matrix(heads_.q, batch, head) + first * q_step, {q_step},
               matrix(keys_, batch, shared), {keys_.strides()[2], true}, T(0), scores, keys);
    parallel_for(static_cast<std::size_t>(count), [&](std::size_t i) {
      const std::int64_t query = first + static_cast<std::int64_t>(i);
      T *row = scores + static_cast<std::int64_t>(i) * keys;
      const auto show = [&](bool now) {
        if (now && shown_.has_data()) std::copy_n(row, keys, matrix(shown_, batch, head) + query * keys);
      };
      if (softcap_ > 0)
        for (std::int64_t j = 0; j < keys; ++j) row[j] = std::tanh(row[j] / softcap_) * softcap_;
      show(mode_ < 2);
      const bool sees = bias_.add(batch, head, query, row);
      show(mode_ == 2);
      sees ? softmax(row, keys) : void(std::fill_n(row, keys, T(0)));
      show(mode_ == 3);
    });
    blas::gemm(count, values, keys, T(1), scores, {keys}, matrix(values_, batch, shared), {values_.strides()[2]}, T(0),
               matrix(y_, batch, head) + first * y_step, y_step);
  }

  Heads heads_;
  Bias<T> bias_;
  Tensor keys_, values_, y_, shown_;
  std::int64_t mode_;
  T scale_, softcap_;
};

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? Run<double>(call, outputs).run() : Run<float>(call, outputs).run();
}

/// Every query meets every key, over all features; what that takes is shared by the values of a place.
double work(const Call &call) {
  const Heads h(call);
  const double keys = static_cast<double>(h.keys()), features = static_cast<double>(h.q.dim(3)),
               values = std::max(1.0, static_cast<double>(h.v.dim(3)));
  return keys * (1 + (features + kExponential) / values);
}

}  // namespace

const OpDef kAttention{.name = kName,
                       .min_inputs = 3,
                       .max_inputs = 7,
                       .max_outputs = 4,
                       .attrs = kAttrs,
                       .infer = infer,
                       .run = run,
                       .work = work};

}  // namespace qtn::ops
