// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>

#include "base/parallel.hpp"
#include "kernels/pointwise/pointwise.hpp"
#include "kernels/real/real.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/prepared.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/window.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString}, {"ceil_mode", AttrSpec::kInt},
                               {"dilations", AttrSpec::kInts},  {"kernel_shape", AttrSpec::kInts},
                               {"pads", AttrSpec::kInts},       {"storage_order", AttrSpec::kInt},
                               {"strides", AttrSpec::kInts}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_number("MaxPool", "x", x);
  if (const std::int64_t order = call.attrs.get_int("storage_order", 0); order != 0 && order != 1)
    fail(QTN_EINVAL, "MaxPool: storage_order is ", order, ", not 0 or 1");
  const Window w = pool_window("MaxPool", call.attrs, x.shape());
  Shape shape = x.shape();
  for (std::size_t i = 0; i < w.rank; ++i) shape[i + 2] = w.out[i];
  Types types{{x.dtype(), shape}};
  if (call.output_count > 1) types.push_back({QTN_INT64, shape});
  return types;
}

struct Windows final : Prepared {
  explicit Windows(const Call &call)
      : w(pool_window("MaxPool", call.attrs, call.in(0)->shape()).lifted()), taps(w.tap_table()) {
    if (!small()) return;
    for (std::int64_t k = 0; k < w.kernel[2]; ++k) outputs.push_back(w.outputs(2, k));
    for (std::int64_t k0 = 0; k0 < w.kernel[0]; ++k0)
      for (std::int64_t k1 = 0; k1 < w.kernel[1]; ++k1)
        for (std::int64_t k2 = 0; k2 < w.kernel[2]; ++k2)
          offsets.push_back((k0 * w.dilation[0] * w.in[1] + k1 * w.dilation[1]) * w.in[2] + k2 * w.dilation[2]);
  }

  /// Padding may make windows far larger than the image.
  bool small() const { return w.kernel[0] <= 16 && w.kernel[1] <= 16 && w.kernel[2] <= 16; }

  /// Where the first tap of a window is in a contiguous plane, or would be.
  std::int64_t corner(std::int64_t o0, std::int64_t o1, std::int64_t o2) const {
    const auto at = [&](std::size_t axis, std::int64_t o) { return o * w.stride[axis] - w.pad_begin[axis]; };
    return (at(0, o0) * w.in[1] + at(1, o1)) * w.in[2] + at(2, o2);
  }

  const Window w;
  const Window::TapTable taps;
  std::vector<Span> outputs;          ///< of small windows, of each tap along the last axis
  std::vector<std::int64_t> offsets;  ///< and of each tap from the first
};

/// Strides of a batch and channel plane over three spatial axes.
Window::Dims plane_strides(const Shape &strides) {
  Window::Dims dims{};
  const std::size_t rank = strides.size() - 2;
  for (std::size_t i = 0; i < rank; ++i) dims[Window::kMaxRank - rank + i] = strides[i + 2];
  return dims;
}

/// Calls body(largest element, its offset or -1, place of the window) for each window of a plane.
template <class T, class Body>
void for_windows(const Windows &windows, const T *x, const Window::Dims &sx, Body &&body) {
  const Window &w = windows.w;
  const auto offset = [&](std::size_t axis, std::int64_t o, std::int64_t k) {
    return (o * w.stride[axis] - w.pad_begin[axis] + k * w.dilation[axis]) * sx[axis];
  };
  for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
    for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
      for (std::int64_t o2 = 0; o2 < w.out[2]; ++o2) {
        const Span t0 = windows.taps[0][static_cast<std::size_t>(o0)],
                   t1 = windows.taps[1][static_cast<std::size_t>(o1)],
                   t2 = windows.taps[2][static_cast<std::size_t>(o2)];
        T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                      : std::numeric_limits<T>::lowest();
        std::int64_t at = -1;
        for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
          for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1) {
            const std::int64_t line = offset(0, o0, k0) + offset(1, o1, k1);
            for (std::int64_t k2 = t2.begin; k2 < t2.end; ++k2) {
              const std::int64_t place = line + offset(2, o2, k2);
              const T v = x[place];
              // NaN wins, and stays since nothing is greater.
              const bool takes = (v > best) | (v != v) | (at < 0);
              best = takes ? v : best;
              at = takes ? place : at;
            }
          }
        if constexpr (std::is_floating_point_v<T>) best += T(0);  // 0 has no sign
        body(best, at, Window::Dims{o0, o1, o2});
      }
}

/// So many windows that stand side by side at most.
constexpr std::int64_t kBlock = 128;

/// Calls body(place of the first tap, count, largest elements, taps that these are) for all windows of a contiguous
/// plane in order, small ones: of equal elements the first, or the last NaN. A block of windows goes from tap to tap
/// together: no branch depends on what is in x.
template <class Body>
void for_maxima(const Windows &windows, const float *x, Body &&body) {
  const Window &w = windows.w;
  const auto take = kernels::real_kernel().take;
  for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
    for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
      for (std::int64_t begin = 0; begin < w.out[2]; begin += kBlock) {
        const std::int64_t count = std::min(kBlock, w.out[2] - begin), corner = windows.corner(o0, o1, begin);
        const Span t0 = windows.taps[0][static_cast<std::size_t>(o0)],
                   t1 = windows.taps[1][static_cast<std::size_t>(o1)];
        float top[kBlock];
        std::int32_t at[kBlock];
        std::fill_n(top, count, -std::numeric_limits<float>::infinity());
        std::fill_n(at, count, -1);
        for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
          for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1)
            for (std::int64_t k2 = 0; k2 < w.kernel[2]; ++k2) {
              const Span valid = windows.outputs[static_cast<std::size_t>(k2)];
              const std::int64_t first = std::clamp<std::int64_t>(valid.begin - begin, 0, count),
                                 last = std::clamp<std::int64_t>(valid.end - begin, first, count);
              if (first == last) continue;
              const std::int64_t tap = (k0 * w.kernel[1] + k1) * w.kernel[2] + k2;
              take({x + corner + windows.offsets[static_cast<std::size_t>(tap)] + first * w.stride[2],
                    static_cast<std::size_t>(w.stride[2]), static_cast<std::size_t>(last - first),
                    static_cast<std::int32_t>(tap), top + first, at + first});
            }
        body(corner, count, top, at);
      }
}

/// So many neighbours in a line that fit where lines are made.
constexpr std::int64_t kLine = 1024;

/// Windows that stand side by side: first all lines of their taps become one, then that moved by each tap along it.
class Lines {
 public:
  explicit Lines(const Window &w) : w_(w), reach_((w.kernel[2] - 1) * w.dilation[2]) {
    std::fill(above_.begin(), above_.end(), -std::numeric_limits<float>::infinity());
  }
  /// Whether there is room for the taps of one window at least, and some more.
  static bool hold(const Window &w) { return (w.kernel[2] - 1) * w.dilation[2] + w.stride[2] < kLine / 2; }
  std::int64_t most() const { return (kLine - reach_ - 1) / w_.stride[2] + 1; }

  /// The largest of line `from`, which is all of a line of x, at the taps of windows from `begin` on.
  void add(const float *from, std::int64_t begin, std::int64_t count) {
    const std::int64_t corner = begin * w_.stride[2] - w_.pad_begin[2],
                       end = corner + (count - 1) * w_.stride[2] + reach_ + 1;
    const std::int64_t first = std::clamp<std::int64_t>(0, corner, end), last = std::clamp(w_.in[2], first, end);
    join(above_.data() + (first - corner), from + first, last - first);
  }
  /// These windows; then the lines are those of others.
  void take(std::int64_t count, float *to) {
    const std::int64_t stride = w_.stride[2], width = (count - 1) * stride + 1;
    std::array<float, kLine> top;
    std::copy_n(above_.data(), width, top.data());
    for (std::int64_t at = w_.dilation[2]; at <= reach_; at += w_.dilation[2])
      join(top.data(), above_.data() + at, width);
    for (std::int64_t i = 0; i < count; ++i) to[i] = top[static_cast<std::size_t>(i * stride)] + 0.0f;  // 0 has no sign
    std::fill_n(above_.begin(), width + reach_, -std::numeric_limits<float>::infinity());
  }

 private:
  void join(float *to, const float *from, std::int64_t count) const {
    if (count > 0)
      join_({kernels::Arithmetic::max, 1, static_cast<std::size_t>(count), {to, 0, false}, {from, 0, false}, to});
  }

  const Window &w_;
  const std::int64_t reach_;
  void (*const join_)(const kernels::PointwiseArgs &args) = kernels::pointwise_kernel().run;
  std::array<float, kLine> above_;
};

void run_floats(const Windows &windows, const Tensor &x, const Tensor &y) {
  const Window &w = windows.w;
  const std::int64_t in = element_count(x.shape(), 2, x.rank());
  parallel_for(static_cast<std::size_t>(x.dim(0) * x.dim(1)), [&](std::size_t plane) {
    const float *from = x.as<const float>() + static_cast<std::int64_t>(plane) * in;
    float *to = y.as<float>() + static_cast<std::int64_t>(plane) * w.outputs_count();
    Lines lines(w);
    for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
      for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
        for (std::int64_t begin = 0, count; begin < w.out[2]; begin += count, to += count) {
          count = std::min(lines.most(), w.out[2] - begin);
          const Span t0 = windows.taps[0][static_cast<std::size_t>(o0)],
                     t1 = windows.taps[1][static_cast<std::size_t>(o1)];
          for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
            for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1)
              lines.add(from + windows.corner(o0, o1, 0) + w.pad_begin[2] +
                            (k0 * w.dilation[0] * w.in[1] + k1 * w.dilation[1]) * w.in[2],
                        begin, count);
          lines.take(count, to);
        }
  });
}

/// Where in x, all of it, an element of a plane is: the last axis innermost, or (storage_order 1) the first.
struct Places {
  const Window &w;
  bool by_columns;

  std::int64_t operator()(std::int64_t plane, std::int64_t at) const {
    const std::int64_t i2 = at % w.in[2], i1 = at / w.in[2] % w.in[1], i0 = at / w.in[2] / w.in[1];
    return plane * w.in[0] * w.in[1] * w.in[2] + (by_columns ? (i2 * w.in[1] + i1) * w.in[0] + i0 : at);
  }
};

void run(const Call &call, std::span<Tensor> outputs) {
  const Ready<Windows> windows(call);
  const bool indexed = outputs.size() > 1 && outputs[1].has_data();
  const Tensor x = indexed ? call.in(0)->to_contiguous() : *call.in(0), &y = outputs[0];
  if (x.dtype() == QTN_FLOAT32 && x.contiguous() && y.contiguous() && Lines::hold(windows->w) && !indexed)
    return run_floats(*windows, x, y);
  const Tensor indices = indexed ? Tensor(QTN_INT64, outputs[1].shape()) : Tensor();
  const Places places{windows->w, call.attrs.get_int("storage_order", 0) == 1};
  const Window::Dims sx = plane_strides(x.strides()), sy = plane_strides(y.strides());
  const std::int64_t channels = x.dim(1), out = windows->w.outputs_count();
  dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(static_cast<std::size_t>(x.dim(0) * channels), [&](std::size_t index) {
      const auto plane = static_cast<std::int64_t>(index), n = plane / channels, c = plane % channels;
      T *to = y.as<T>() + n * y.strides()[0] + c * y.strides()[1];
      std::int64_t *at = indexed ? indices.as<std::int64_t>() + plane * out : nullptr;
      for_windows(*windows, x.as<const T>() + n * x.strides()[0] + c * x.strides()[1], sx,
                  [&](T best, std::int64_t place, const Window::Dims &o) {
                    to[o[0] * sy[0] + o[1] * sy[1] + o[2] * sy[2]] = best;
                    if (at) *at++ = places(plane, place);
                  });
    });
  });
  if (indexed) copy_elements(outputs[1], indices);
}

/// dx += dy at the tap that each window took.
void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  const Tensor &x = *run.call.in(0), &dy = run.dy[0];
  const Ready<Windows> windows(run.call);
  const std::int64_t in = element_count(x.shape(), 2, x.rank()), out = element_count(dy.shape(), 2, dy.rank()),
                     stride = windows->w.stride[2];
  parallel_for(static_cast<std::size_t>(x.dim(0) * x.dim(1)), [&](std::size_t index) {
    const auto plane = static_cast<std::int64_t>(index);
    const float *slope = dy.as<const float>() + plane * out;
    float *to = dx[0].as<float>() + plane * in;
    std::fill_n(to, in, 0.0f);
    const float *from = x.as<const float>() + plane * in;
    if (!windows->small())
      return for_windows(*windows, from, plane_strides(contiguous_strides(x.shape())),
                         [&](float, std::int64_t at, const Window::Dims &) {
                           if (at >= 0) to[at] += *slope;
                           ++slope;
                         });
    for_maxima(*windows, from, [&](std::int64_t corner, std::int64_t count, const float *, const std::int32_t *at) {
      for (std::int64_t i = 0; i < count; ++i, ++slope)
        if (at[i] >= 0) to[corner + windows->offsets[static_cast<std::size_t>(at[i])] + i * stride] += *slope;
    });
  });
}

qdtype output_dtype(const Attrs &, std::size_t output, qdtype moved) { return output == 0 ? moved : QTN_INT64; }

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
                     .keeps = {.inputs = kAllInputs},
                     .homogeneous = true,
                     .work = work_of_pool,
                     .output_dtype = output_dtype};

}  // namespace qtn::ops
