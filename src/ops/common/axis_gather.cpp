// SPDX-License-Identifier: Apache-2.0
#include "ops/common/axis_gather.hpp"

#include "base/parallel.hpp"

namespace qtn::ops {
namespace {

template <class T>
struct Gather {
  const Tensor &y, &x;
  const AxisSources &sources;
  T fill;

  void run(std::size_t axis, T *to, const T *from) const {
    if (axis == sources.size()) {
      *to = from ? *from : fill;
      return;
    }
    const std::int64_t to_step = y.strides()[axis], from_step = x.strides()[axis];
    const std::vector<std::int64_t> &source = sources[axis];
    const bool last = axis + 1 == sources.size();
    for (std::size_t i = 0; i < source.size(); ++i, to += to_step) {
      const T *at = from && source[i] >= 0 ? from + source[i] * from_step : nullptr;
      if (last)
        *to = at ? *at : fill;
      else
        run(axis + 1, to, at);
    }
  }
};

template <class T>
void gather(const Tensor &y, const Tensor &x, const AxisSources &sources, const void *fill) {
  const T *from = x.as<const T>();
  Gather<T>{y, x, sources, fill ? *static_cast<const T *>(fill) : T()}.run(0, y.as<T>(),
                                                                           x.count() == 0 ? nullptr : from);
}

bool is_whole(const std::vector<std::int64_t> &source, std::int64_t size) {
  for (std::size_t i = 0; i < source.size(); ++i)
    if (source[i] != static_cast<std::int64_t>(i)) return false;
  return static_cast<std::int64_t>(source.size()) == size;
}

struct Scatter {
  const Tensor &dx, &dy;
  const AxisSources &sources;

  void run(std::size_t axis, float *to, const float *from) const {
    if (axis == sources.size()) {
      *to += *from;
      return;
    }
    const std::vector<std::int64_t> &source = sources[axis];
    const bool last = axis + 1 == sources.size();
    for (std::size_t i = 0; i < source.size(); ++i, from += dy.strides()[axis]) {
      if (source[i] < 0) continue;
      float *at = to + source[i] * dx.strides()[axis];
      last ? void(*at += *from) : run(axis + 1, at, from);
    }
  }
};

}  // namespace

void scatter_axes(const Tensor &dx, const Tensor &dy, const AxisSources &sources) {
  float *to = dx.as<float>();
  std::fill_n(to, dx.count(), 0.0f);
  if (dy.count() == 0) return;
  std::size_t whole = 0;
  while (whole < sources.size() && is_whole(sources[whole], dx.dim(whole))) ++whole;
  const std::int64_t planes = element_count(dx.shape(), 0, whole);
  parallel_for(static_cast<std::size_t>(planes), [&](std::size_t index) {
    const auto plane = static_cast<std::int64_t>(index);
    Scatter{dx, dy, sources}.run(whole, to + plane * (dx.count() / planes),
                                 dy.as<const float>() + plane * (dy.count() / planes));
  });
}

void gather_axes(const Tensor &y, const Tensor &x, const AxisSources &sources, const void *fill) {
  if (y.count() == 0) return;
  switch (dtype_size(y.dtype())) {
    case 1:
      return gather<std::uint8_t>(y, x, sources, fill);
    case 2:
      return gather<std::uint16_t>(y, x, sources, fill);
    case 4:
      return gather<std::uint32_t>(y, x, sources, fill);
    default:
      return gather<std::uint64_t>(y, x, sources, fill);
  }
}

}  // namespace qtn::ops
