// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"
#include "ops/infer.hpp"
#include "ops/requantization.hpp"
#include "ops/window.hpp"

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

/// y[i] = finish(sum of window i, its count) over contiguous planes.
template <class Sum, class X, class Finish>
void average(const Call &call, const X *x, float *y, Finish &&finish) {
  const Shape &shape = call.in(0)->shape();
  const Window w = pool_window("AveragePool", call.attrs, shape).lifted();
  const bool include_pad = call.attrs.get_int("count_include_pad", 0) != 0;
  const std::int64_t in = w.in[0] * w.in[1] * w.in[2], out = w.out[0] * w.out[1] * w.out[2];
  const Window::TapTable taps = w.tap_table(), counted = include_pad ? w.padded_tap_table() : taps;
  const auto position = [&](std::size_t axis, std::int64_t o, std::int64_t k) {
    return o * w.stride[axis] - w.pad_begin[axis] + k * w.dilation[axis];
  };
  parallel_for(static_cast<std::size_t>(shape[0] * shape[1]), [&](std::size_t plane) {
    const X *from = x + static_cast<std::int64_t>(plane) * in;
    float *to = y + static_cast<std::int64_t>(plane) * out;
    for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
      for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
        for (std::int64_t o2 = 0; o2 < w.out[2]; ++o2) {
          const auto i0 = static_cast<std::size_t>(o0), i1 = static_cast<std::size_t>(o1),
                     i2 = static_cast<std::size_t>(o2);
          const Span t0 = taps[0][i0], t1 = taps[1][i1], t2 = taps[2][i2];
          Sum sum = 0;
          for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
            for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1) {
              const X *line = from + (position(0, o0, k0) * w.in[1] + position(1, o1, k1)) * w.in[2];
              for (std::int64_t k2 = t2.begin; k2 < t2.end; ++k2) sum += line[position(2, o2, k2)];
            }
          // A dilated window may step over a small input: its mean is that of padding.
          const std::int64_t count = length(counted[0][i0]) * length(counted[1][i1]) * length(counted[2][i2]);
          *to++ = finish(sum, std::max<std::int64_t>(1, count));
        }
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  average<double>(call, call.in(0)->as<const float>(), outputs[0].as<float>(),
                  [](double sum, std::int64_t count) { return static_cast<float>(sum / static_cast<double>(count)); });
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  const Tensor &x = *call.in(0);
  if (!is_quantized_8bit(&x) || !is_quantized_8bit(&output)) return false;
  const float sx = x.quantizer()->scale(), sy = output.quantizer()->scale();
  const Tensor q = centered(x);
  std::vector<float> scaled(static_cast<std::size_t>(output.count()));
  average<std::int64_t>(call, q.as<const std::int32_t>(), scaled.data(), [=](std::int64_t sum, std::int64_t count) {
    return static_cast<float>(sum) * mean_multiplier(sx, sy, count);
  });
  store_scaled(output, scaled, clamp);
  return true;
}

}  // namespace

const OpDef kAveragePool{.name = "AveragePool",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run,
                         .run_quantized = run_quantized};

}  // namespace qtn::ops
