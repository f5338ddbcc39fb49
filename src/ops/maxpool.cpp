// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/parallel.hpp"
#include "ops/prepared.hpp"
#include "ops/reshaping.hpp"
#include "ops/window.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString}, {"ceil_mode", AttrSpec::kInt},
                               {"dilations", AttrSpec::kInts},  {"kernel_shape", AttrSpec::kInts},
                               {"pads", AttrSpec::kInts},       {"storage_order", AttrSpec::kInt},
                               {"strides", AttrSpec::kInts}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_number("MaxPool", "x", x);
  if (call.output_count > 1) fail(QTN_EUNSUPPORTED, "MaxPool: the output Indices is not supported");
  if (call.attrs.get_int("storage_order", 0) != 0) fail(QTN_EUNSUPPORTED, "MaxPool: storage_order 1 is not supported");
  const Window w = pool_window("MaxPool", call.attrs, x.shape());
  Shape shape = x.shape();
  for (std::size_t i = 0; i < w.rank; ++i) shape[i + 2] = w.out[i];
  return {{x.dtype(), shape}};
}

struct Windows final : Prepared {
  explicit Windows(const Call &call)
      : w(pool_window("MaxPool", call.attrs, call.in(0)->shape()).lifted()), taps(w.tap_table()) {
    for (std::int64_t k = 0; k < w.kernel[2]; ++k) outputs.push_back(w.outputs(2, k));
  }
  const Window w;
  const Window::TapTable taps;
  std::vector<Span> outputs;  ///< of each tap along the last axis
};

/// Strides of a batch and channel plane over three spatial axes.
Window::Dims plane_strides(const Shape &strides) {
  Window::Dims dims{};
  const std::size_t rank = strides.size() - 2;
  for (std::size_t i = 0; i < rank; ++i) dims[Window::kMaxRank - rank + i] = strides[i + 2];
  return dims;
}

template <class T>
void pool_plane(const Window &w, const Window::TapTable &taps, const T *x, const Window::Dims &sx, T *y,
                const Window::Dims &sy) {
  const auto offset = [&](std::size_t axis, std::int64_t o, std::int64_t k) {
    return (o * w.stride[axis] - w.pad_begin[axis] + k * w.dilation[axis]) * sx[axis];
  };
  for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
    for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
      for (std::int64_t o2 = 0; o2 < w.out[2]; ++o2) {
        const Span t0 = taps[0][static_cast<std::size_t>(o0)], t1 = taps[1][static_cast<std::size_t>(o1)],
                   t2 = taps[2][static_cast<std::size_t>(o2)];
        T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                      : std::numeric_limits<T>::lowest();
        for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
          for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1) {
            const T *line = x + offset(0, o0, k0) + offset(1, o1, k1);
            for (std::int64_t k2 = t2.begin; k2 < t2.end; ++k2) {
              const T v = line[offset(2, o2, k2)];
              // NaN wins, and stays since nothing is greater.
              best = ((v > best) | (v != v)) ? v : best;
            }
          }
        y[o0 * sy[0] + o1 * sy[1] + o2 * sy[2]] = best;
      }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const Ready<Windows> windows(call);
  const Window::Dims sx = plane_strides(x.strides()), sy = plane_strides(y.strides());
  const std::int64_t channels = x.dim(1);
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(static_cast<std::size_t>(x.dim(0) * channels), [&](std::size_t plane) {
      const std::int64_t n = static_cast<std::int64_t>(plane) / channels,
                         c = static_cast<std::int64_t>(plane) % channels;
      pool_plane(windows->w, windows->taps, x.as<const T>() + n * x.strides()[0] + c * x.strides()[1], sx,
                 y.as<T>() + n * y.strides()[0] + c * y.strides()[1], sy);
    });
  });
}

/// dx += dy at the tap that each window took: the first of the largest, or the last NaN. A block of windows goes from
/// tap to tap together: no branch depends on what is in x.
void backward_plane(const Window &w, const Window::TapTable &taps, std::span<const Span> outputs, const float *x,
                    const float *dy, float *dx) {
  constexpr std::int64_t kBlock = 64;
  const auto place = [&](std::size_t axis, std::int64_t o, std::int64_t k) {
    return o * w.stride[axis] - w.pad_begin[axis] + k * w.dilation[axis];
  };
  for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
    for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
      for (std::int64_t begin = 0; begin < w.out[2]; begin += kBlock) {
        const std::int64_t count = std::min(kBlock, w.out[2] - begin);
        const Span t0 = taps[0][static_cast<std::size_t>(o0)], t1 = taps[1][static_cast<std::size_t>(o1)];
        std::int64_t at[kBlock];
        std::fill_n(at, count, -1);
        for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
          for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1)
            for (std::int64_t k2 = 0; k2 < w.kernel[2]; ++k2) {
              const Span valid = outputs[static_cast<std::size_t>(k2)];
              const std::int64_t line = (place(0, o0, k0) * w.in[1] + place(1, o1, k1)) * w.in[2] + place(2, begin, k2);
              for (std::int64_t i = std::max<std::int64_t>(0, valid.begin - begin);
                   i < std::min(count, valid.end - begin); ++i) {
                const std::int64_t from = line + i * w.stride[2], best = at[i] < 0 ? from : at[i];
                const float v = x[from];
                const bool takes = (v > x[best]) | (v != v);
                at[i] = best + static_cast<std::int64_t>(takes) * (from - best);
              }
            }
        for (std::int64_t i = 0; i < count; ++i, ++dy)
          if (at[i] >= 0) dx[at[i]] += *dy;
      }
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  const Tensor &x = *run.call.in(0);
  const Ready<Windows> windows(run.call);
  const Window &w = windows->w;
  const std::int64_t in = w.in[0] * w.in[1] * w.in[2], out = w.outputs_count();
  parallel_for(static_cast<std::size_t>(x.dim(0) * x.dim(1)), [&](std::size_t index) {
    const auto plane = static_cast<std::int64_t>(index);
    float *to = dx[0].as<float>() + plane * in;
    std::fill_n(to, in, 0.0f);
    backward_plane(w, windows->taps, windows->outputs, x.as<const float>() + plane * in,
                   run.dy[0].as<const float>() + plane * out, to);
  });
}

}  // namespace

const OpDef kMaxPool{.name = "MaxPool",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 2,
                     .attrs = kAttrs,
                     .infer = infer,
                     .run = run,
                     .prepare = prepare<Windows>,
                     .moves = always_moves,
                     .backward = backward,
                     .keeps = {.inputs = kAllInputs}};

}  // namespace qtn::ops
