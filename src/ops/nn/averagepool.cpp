// SPDX-License-Identifier: Apache-2.0
#include "base/counted.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/prepared.hpp"
#include "ops/common/requantization.hpp"
#include "ops/common/window.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString},       {"ceil_mode", AttrSpec::kInt},
                               {"count_include_pad", AttrSpec::kInt}, {"dilations", AttrSpec::kInts},
                               {"kernel_shape", AttrSpec::kInts},     {"pads", AttrSpec::kInts},
                               {"strides", AttrSpec::kInts}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_float("AveragePool", "x", &x);
  const Window w = pool_window("AveragePool", call.attrs, x.shape());
  Shape shape = x.shape();
  for (std::size_t i = 0; i < w.rank; ++i) shape[i + 2] = w.out[i];
  return {{x.dtype(), shape}};
}

std::int64_t length(Span span) { return std::max<std::int64_t>(0, span.end - span.begin); }

/// Windows over contiguous planes.
class Windows final : public Prepared {
 public:
  explicit Windows(const Call &call)
      : w_(pool_window("AveragePool", call.attrs, call.in(0)->shape()).lifted()),
        taps_(w_.tap_table()),
        counted_(call.attrs.get_int("count_include_pad", 0) != 0 ? w_.padded_tap_table() : taps_) {}

  std::int64_t in_size() const { return w_.in[0] * w_.in[1] * w_.in[2]; }
  std::int64_t out_size() const { return w_.outputs_count(); }

  /// Calls window(count, lines) for the windows of a plane in order: lines(f) calls f(offset, taps) for rows of taps
  /// that are dilation() apart.
  template <class Body>
  void for_each(Body &&window) const {
    for (std::int64_t o0 = 0; o0 < w_.out[0]; ++o0)
      for (std::int64_t o1 = 0; o1 < w_.out[1]; ++o1)
        for (std::int64_t o2 = 0; o2 < w_.out[2]; ++o2) {
          const auto i0 = static_cast<std::size_t>(o0), i1 = static_cast<std::size_t>(o1),
                     i2 = static_cast<std::size_t>(o2);
          // A dilated window may step over a small input: its mean is that of padding.
          const std::int64_t count = length(counted_[0][i0]) * length(counted_[1][i1]) * length(counted_[2][i2]);
          window(std::max<std::int64_t>(1, count), [&](auto &&line) {
            const Span t0 = taps_[0][i0], t1 = taps_[1][i1], t2 = taps_[2][i2];
            for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
              for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1)
                line((place(0, o0, k0) * w_.in[1] + place(1, o1, k1)) * w_.in[2] + place(2, o2, t2.begin), length(t2));
          });
        }
  }
  std::int64_t dilation() const { return w_.dilation[2]; }

 private:
  std::int64_t place(std::size_t axis, std::int64_t o, std::int64_t k) const {
    return o * w_.stride[axis] - w_.pad_begin[axis] + k * w_.dilation[axis];
  }

  Window w_;
  Window::TapTable taps_, counted_;
};

/// Calls body(plane) for each plane of x, in parallel.
template <class Body>
void for_planes(const Call &call, Body &&body) {
  const Shape &x = call.in(0)->shape();
  parallel_for(static_cast<std::size_t>(x[0] * x[1]),
               [&](std::size_t plane) { body(static_cast<std::int64_t>(plane)); });
}

/// y[i] = finish(sum of window i, its count)
template <class Sum, class X, class Finish>
void average(const Call &call, const X *x, float *y, Finish &&finish) {
  const Ready<Windows> windows(call);
  for_planes(call, [&](std::int64_t plane) {
    const X *from = x + plane * windows->in_size();
    float *to = y + plane * windows->out_size();
    windows->for_each([&](std::int64_t count, auto &&lines) {
      Sum sum = 0;
      lines([&](std::int64_t at, std::int64_t taps) {
        for (std::int64_t k = 0; k < taps; ++k) sum += from[at + k * windows->dilation()];
      });
      *to++ = finish(sum, count);
    });
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  average<double>(call, call.in(0)->as<const float>(), outputs[0].as<float>(), [](double sum, std::int64_t count) {
    return static_cast<float>(sum * (1 / static_cast<double>(count)));
  });
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  const Tensor &x = *call.in(0);
  if (!is_quantized_8bit(&x) || !is_quantized_8bit(&output)) return false;
  const float sx = x.quantizer()->scale(), sy = output.quantizer()->scale();
  const Tensor q = centered(x);
  CountedVector<float> scaled(static_cast<std::size_t>(output.count()));
  average<std::int64_t>(call, q.as<const std::int32_t>(), scaled.data(), [=](std::int64_t sum, std::int64_t count) {
    return static_cast<float>(sum) * mean_multiplier(sx, sy, count);
  });
  store_scaled(output, scaled, clamp);
  return true;
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  const Ready<Windows> windows(run.call);
  for_planes(run.call, [&](std::int64_t plane) {
    const float *slope = run.dy[0].as<const float>() + plane * windows->out_size();
    float *to = dx[0].as<float>() + plane * windows->in_size();
    std::fill_n(to, windows->in_size(), 0.0f);
    windows->for_each([&](std::int64_t count, auto &&lines) {
      const float share = *slope++ / static_cast<float>(count);
      lines([&](std::int64_t at, std::int64_t taps) {
        for (std::int64_t k = 0; k < taps; ++k) to[at + k * windows->dilation()] += share;
      });
    });
  });
}

bool averages_places(std::size_t rank, const Tensor *) { return rank >= 3; }

}  // namespace

const OpDef kAveragePool{.name = "AveragePool",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run,
                         .prepare = prepare<Windows>,
                         .run_quantized = run_quantized,
                         .backward = backward,
                         .averages_places = averages_places,
                         .homogeneous = true,
                         .work = work_of_pool};

}  // namespace qtn::ops
