// SPDX-License-Identifier: Apache-2.0
#include "ops/common/attention.hpp"

#include "base/parallel.hpp"
#include "base/size.hpp"
#include "blas/gemm.hpp"
#include "ops/common/gradient.hpp"

namespace qtn::ops {
namespace attention {

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

Heads::Heads(const Call &call)
    : q(as_heads("Q", *call.in(kQuery), call.attrs.get_int("q_num_heads", 0))),
      k(as_heads("K", *call.in(kKey), call.attrs.get_int("kv_num_heads", 0))),
      v(as_heads("V", *call.in(kValue), call.attrs.get_int("kv_num_heads", 0))),
      past(call.in(kPastKey) ? call.in(kPastKey)->dim(2) : 0) {}

}  // namespace attention

namespace {

using namespace attention;

/// Keys or values of what was there before and what comes, and their gradient: contiguous heads in scratch.
struct Joined {
  Tensor all, gradient;

  static Size size(const Heads &h, const Tensor &now) {
    return Size(now.dim(0)) * now.dim(1) * h.keys() * now.dim(3) * 2;
  }

  Joined(const Heads &h, const Tensor *past, const Tensor &now, const Tensor &slopes, float *room) {
    const Shape shape{now.dim(0), now.dim(1), h.keys(), now.dim(3)}, strides = contiguous_strides(shape);
    all = Tensor(QTN_FLOAT32, shape, strides, room, nullptr);
    gradient = Tensor(QTN_FLOAT32, shape, strides, room + all.count(), nullptr);
    if (past && past->count() > 0) copy_elements(part(all, 0, h.past), *past);
    copy_elements(part(all, h.past, now.dim(2)), now);
    if (slopes.has_data())
      copy_elements(gradient, slopes);
    else
      std::fill_n(gradient.as<float>(), gradient.count(), 0.0f);
  }

  static Tensor part(const Tensor &t, std::int64_t first, std::int64_t count) {
    return t.view({t.dim(0), t.dim(1), count, t.dim(3)}, t.strides(), first * t.strides()[2]);
  }
};

class Gradient {
 public:
  Gradient(const Backward &run, std::span<const Tensor> dx)
      : call_(run.call),
        dx_(dx),
        dy_(run.dy),
        heads_(call_),
        bias_(call_, heads_),
        rows_(rows_at_a_time(std::max<std::int64_t>(1, heads_.q.dim(2)), heads_.keys())),
        scale_(static_cast<float>(call_.attrs.get_float("scale", 1 / std::sqrt(static_cast<double>(heads_.q.dim(3)))))),
        softcap_(static_cast<float>(call_.attrs.get_float("softcap", 0))),
        of_rows_(Size(rows_) * heads_.keys()),
        memory_(reinterpret_cast<float *>(run.scratch.take(
            ((of_rows_ * kMatrices + Joined::size(heads_, heads_.k) + Joined::size(heads_, heads_.v)) * sizeof(float))
                .value()))),
        keys_(heads_, call_.in(kPastKey), heads_.k, slopes(1), memory_ + (of_rows_ * kMatrices).value()),
        values_(heads_, call_.in(kPastValue), heads_.v, slopes(2),
                memory_ + (of_rows_ * kMatrices + Joined::size(heads_, heads_.k)).value()) {}

  void run() const {
    for (const std::size_t i : {kQuery, kMask})
      if (wanted(i)) std::fill_n(dx_[i].as<float>(), dx_[i].count(), 0.0f);
    const std::int64_t queries = heads_.q.dim(2);
    if (dy_[0].has_data())
      for (std::int64_t batch = 0; batch < heads_.batches(); ++batch)
        for (std::int64_t head = 0; head < heads_.q.dim(1); ++head)
          for (std::int64_t first = 0; first < queries; first += rows_)
            run_rows(batch, head, first, std::min(rows_, queries - first));
    give(keys_.gradient, kKey, kPastKey);
    give(values_.gradient, kValue, kPastValue);
  }

 private:
  static constexpr std::size_t kMatrices = 3;  // of scores: shares, their slopes, and what a cap leaves of these

  bool wanted(std::size_t i) const { return i < dx_.size() && dx_[i].has_data(); }
  Tensor slopes(std::size_t o) const { return o < dy_.size() ? dy_[o] : Tensor(); }

  void give(const Tensor &gradient, std::size_t now, std::size_t past) const {
    if (wanted(now)) {
      const Tensor to = as_heads("K", dx_[now], call_.attrs.get_int("kv_num_heads", 0));
      copy_elements(to, Joined::part(gradient, heads_.past, to.dim(2)));
    }
    if (wanted(past) && dx_[past].count() > 0) copy_elements(dx_[past], Joined::part(gradient, 0, heads_.past));
  }

  void run_rows(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count) const {
    const std::int64_t keys = heads_.keys(), features = heads_.q.dim(3), values = heads_.v.dim(3),
                       shared = head / (heads_.q.dim(1) / heads_.k.dim(1));
    const Tensor dy = as_heads("Y", dy_[0], heads_.q.dim(1));
    const std::int64_t q_step = heads_.q.strides()[2], y_step = dy.strides()[2];
    const float *q = matrix<const float>(heads_.q, batch, head, first),
                *k = matrix<const float>(keys_.all, batch, shared),
                *v = matrix<const float>(values_.all, batch, shared),
                *slope = matrix<const float>(dy, batch, head, first);
    float *shares = memory_, *slopes = shares + of_rows_.value(), *left = slopes + of_rows_.value();
    blas::gemm(count, keys, features, scale_, q, {q_step}, k, {features, true}, 0.0f, shares, keys);
    blas::gemm(count, keys, values, 1.0f, slope, {y_step}, v, {values, true}, 0.0f, slopes, keys);
    parallel_for(static_cast<std::size_t>(count), [&](std::size_t i) {
      const std::int64_t at = static_cast<std::int64_t>(i) * keys;
      run_row(batch, head, first + static_cast<std::int64_t>(i), shares + at, slopes + at, left + at);
    });
    if (wanted(kMask)) add_to_mask(batch, head, first, count, slopes);
    if (softcap_ > 0)
      for (std::int64_t i = 0; i < count * keys; ++i) slopes[i] *= left[i];
    if (wanted(kQuery)) {
      const Tensor to = as_heads("Q", dx_[kQuery], heads_.q.dim(1));
      blas::gemm(count, features, keys, scale_, slopes, {keys}, k, {features}, 0.0f,
                 matrix<float>(to, batch, head, first), to.strides()[2]);
    }
    blas::gemm(keys, features, count, scale_, slopes, {keys, true}, q, {q_step}, 1.0f,
               matrix<float>(keys_.gradient, batch, shared), features);
    blas::gemm(keys, values, count, 1.0f, shares, {keys, true}, slope, {y_step}, 1.0f,
               matrix<float>(values_.gradient, batch, shared), values);
  }

  /// In place: scores to shares, and slopes of shares to those of scores that have been capped and masked.
  void run_row(std::int64_t batch, std::int64_t head, std::int64_t query, float *shares, float *slopes,
               float *left) const {
    const std::int64_t keys = heads_.keys();
    if (softcap_ > 0) {
      cap(shares, keys, softcap_);
      for (std::int64_t j = 0; j < keys; ++j) left[j] = 1 - shares[j] / softcap_ * (shares[j] / softcap_);
    }
    bias_.add(batch, head, query, shares) ? softmax(shares, keys) : void(std::fill_n(shares, keys, 0.0f));
    double mean = 0;
    for (std::int64_t j = 0; j < keys; ++j) mean += static_cast<double>(shares[j]) * static_cast<double>(slopes[j]);
    for (std::int64_t j = 0; j < keys; ++j) slopes[j] = shares[j] * (slopes[j] - static_cast<float>(mean));
  }

  /// A mask that repeats sums its slopes, in the order of batches, heads and queries.
  void add_to_mask(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count,
                   const float *slopes) const {
    for (std::int64_t i = 0; i < count; ++i) {
      float *to = dx_[kMask].as<float>() + bias_.mask_row(batch, head, first + i);
      const float *from = slopes + i * heads_.keys();
      for (std::int64_t j = 0; j < bias_.masked(); ++j) to[j] += from[j];
    }
  }

  const Call &call_;
  std::span<const Tensor> dx_, dy_;
  Heads heads_;
  Bias<float> bias_;
  std::int64_t rows_;
  float scale_, softcap_;
  Size of_rows_;
  float *memory_;
  Joined keys_, values_;
};

}  // namespace

void attention_backward(const Backward &run, std::span<const Tensor> dx) {
  if (run.dy.size() > 3 && run.dy[3].has_data())
    fail(QTN_EUNSUPPORTED, kName, ": no gradient of scores that are shown");
  Gradient(run, dx).run();
}

}  // namespace qtn::ops
