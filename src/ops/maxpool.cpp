// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/parallel.hpp"
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

/// Strides of a batch and channel plane over three spatial axes.
Window::Dims plane_strides(const Shape &strides) {
  Window::Dims dims{};
  const std::size_t rank = strides.size() - 2;
  for (std::size_t i = 0; i < rank; ++i) dims[Window::kMaxRank - rank + i] = strides[i + 2];
  return dims;
}

template <class T>
void pool_plane(const Window &w, const T *x, const Window::Dims &sx, T *y, const Window::Dims &sy) {
  for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
    for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
      for (std::int64_t o2 = 0; o2 < w.out[2]; ++o2) {
        const Window::Dims o{o0, o1, o2};
        std::array<Span, Window::kMaxRank> taps;
        const T *from = x;
        for (std::size_t i = 0; i < o.size(); ++i) {
          taps[i] = w.taps(i, o[i]);
          from += (o[i] * w.stride[i] - w.pad_begin[i]) * sx[i];
        }
        T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                      : std::numeric_limits<T>::lowest();
        for (std::int64_t k0 = taps[0].begin; k0 < taps[0].end; ++k0)
          for (std::int64_t k1 = taps[1].begin; k1 < taps[1].end; ++k1)
            for (std::int64_t k2 = taps[2].begin; k2 < taps[2].end; ++k2) {
              const T v = from[k0 * w.dilation[0] * sx[0] + k1 * w.dilation[1] * sx[1] + k2 * w.dilation[2] * sx[2]];
              // NaN wins and stays.
              if (!(v <= best)) best = best == best ? v : best;
            }
        y[o0 * sy[0] + o1 * sy[1] + o2 * sy[2]] = best;
      }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const Window w = pool_window("MaxPool", call.attrs, x.shape()).lifted();
  const Window::Dims sx = plane_strides(x.strides()), sy = plane_strides(y.strides());
  const std::int64_t channels = x.dim(1);
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(static_cast<std::size_t>(x.dim(0) * channels), [&](std::size_t plane) {
      const std::int64_t n = static_cast<std::int64_t>(plane) / channels,
                         c = static_cast<std::int64_t>(plane) % channels;
      pool_plane(w, x.as<const T>() + n * x.strides()[0] + c * x.strides()[1], sx,
                 y.as<T>() + n * y.strides()[0] + c * y.strides()[1], sy);
    });
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
                     .moves = always_moves};

}  // namespace qtn::ops
