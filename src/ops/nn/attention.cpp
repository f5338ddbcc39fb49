// SPDX-License-Identifier: Apache-2.0
// Attention of opsets 23 to 25: scores of queries and keys, masks, softmax, and the mean of values by them.
#include "ops/common/attention.hpp"

#include "base/parallel.hpp"
#include "base/size.hpp"
#include "blas/gemm.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

using namespace attention;

constexpr AttrSpec kAttrs[] = {{"is_causal", AttrSpec::kInt},
                               {"kv_num_heads", AttrSpec::kInt},
                               {"left_window_size", AttrSpec::kInt},
                               {"q_num_heads", AttrSpec::kInt},
                               {"qk_matmul_output_mode", AttrSpec::kInt},
                               {"right_window_size", AttrSpec::kInt},
                               {"scale", AttrSpec::kFloat},
                               {"softcap", AttrSpec::kFloat},
                               {"softmax_precision", AttrSpec::kInt}};
constexpr double kExponential = 8;  // takes as long as so many products

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
  if (mask.dtype() != QTN_BOOL) require_number(kName, "attn_mask", mask);
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

template <class T>
class Run {
 public:
  Run(const Call &call, std::span<Tensor> outputs) : heads_(call), bias_(call, heads_) {
    const auto wanted = [&](std::size_t i) {
      return i < outputs.size() && outputs[i].has_data() ? &outputs[i] : nullptr;
    };
    const std::int64_t queries = heads_.q.dim(2);
    rows_ = rows_at_a_time(std::max<std::int64_t>(1, queries), heads_.keys());
    const Size of_scores = Size(rows_) * heads_.keys(), of_keys = size_of(call.in(kPastKey), heads_.k, wanted(1)),
               of_values = size_of(call.in(kPastValue), heads_.v, wanted(2));
    Scratch &scratch = call.scratch ? *call.scratch : own_;
    scores_ = reinterpret_cast<T *>(scratch.take(((of_scores + of_keys + of_values) * sizeof(T)).value()));
    keys_ = joined(call.in(kPastKey), heads_.k, wanted(1), scores_ + of_scores.value());
    values_ = joined(call.in(kPastValue), heads_.v, wanted(2), scores_ + (of_scores + of_keys).value());
    const Tensor y = outputs[0].has_data() ? outputs[0] : Tensor(heads_.q.dtype(), infer(call)[0].shape);
    y_ = as_heads("Y", y, heads_.q.dim(1));
    if (wanted(3)) shown_ = outputs[3];
    mode_ = call.attrs.get_int("qk_matmul_output_mode", 0);
    const double features = static_cast<double>(heads_.q.dim(3));
    scale_ = static_cast<T>(call.attrs.get_float("scale", 1 / std::sqrt(features)));
    softcap_ = static_cast<T>(call.attrs.get_float("softcap", 0));
  }

  void run() const {
    const std::int64_t queries = heads_.q.dim(2), q_heads = heads_.q.dim(1);
    if (queries == 0) return;  // then there may be any number of heads, of no features
    for (std::int64_t batch = 0; batch < heads_.batches(); ++batch)
      for (std::int64_t head = 0; head < q_heads; ++head)
        for (std::int64_t first = 0; first < queries; first += rows_)
          run_rows(batch, head, first, std::min(rows_, queries - first), scores_);
  }

 private:
  /// Elements of scratch that joined() needs.
  static Size size_of(const Tensor *past, const Tensor &now, const Tensor *wanted) {
    return !past || wanted ? Size(0) : Size(past->count()) + now.count();
  }

  /// What was there and what comes, along the places: into `wanted` where that is an output, else as it is if nothing was
  /// there, else into `room`.
  static Tensor joined(const Tensor *past, const Tensor &now, const Tensor *wanted, T *room) {
    if (!past && !wanted) return now;
    const std::int64_t before = past ? past->dim(2) : 0;
    const Shape shape{now.dim(0), now.dim(1), before + now.dim(2), now.dim(3)};
    const Tensor all = wanted ? *wanted : Tensor(now.dtype(), shape, contiguous_strides(shape), room, nullptr);
    const auto part = [&](std::int64_t first, const Tensor &from) {
      if (from.count() > 0) copy_elements(all.view(from.shape(), all.strides(), first * all.strides()[2]), from);
    };
    if (past) part(0, *past);
    part(before, now);
    return all;
  }

  void run_rows(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count, T *scores) const {
    const std::int64_t keys = heads_.keys(), features = heads_.q.dim(3), values = heads_.v.dim(3),
                       shared = head / (heads_.q.dim(1) / heads_.k.dim(1));
    const std::int64_t q_step = heads_.q.strides()[2], y_step = y_.strides()[2];
    blas::gemm(count, keys, features, scale_, matrix<T>(heads_.q, batch, head, first), {q_step},
               matrix<T>(keys_, batch, shared), {keys_.strides()[2], true}, T(0), scores, keys);
    parallel_for(static_cast<std::size_t>(count), [&](std::size_t i) {
      const std::int64_t query = first + static_cast<std::int64_t>(i);
      T *row = scores + static_cast<std::int64_t>(i) * keys;
      const auto show = [&](bool now) {
        if (now && shown_.has_data()) std::copy_n(row, keys, matrix<T>(shown_, batch, head, query));
      };
      if (softcap_ > 0) cap(row, keys, softcap_);
      show(mode_ < 2);
      const bool sees = bias_.add(batch, head, query, row);
      show(mode_ == 2);
      sees ? softmax(row, keys) : void(std::fill_n(row, keys, T(0)));
      show(mode_ == 3);
    });
    blas::gemm(count, values, keys, T(1), scores, {keys}, matrix<T>(values_, batch, shared), {values_.strides()[2]},
               T(0), matrix<T>(y_, batch, head, first), y_step);
  }

  Heads heads_;
  Bias<T> bias_;
  Scratch own_;
  T *scores_;
  Tensor keys_, values_, y_, shown_;
  std::int64_t rows_, mode_;
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
                       .backward = attention_backward,
                       .keeps = {.inputs = kAllInputs},
                       .work = work};

}  // namespace qtn::ops
