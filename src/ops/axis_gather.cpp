// SPDX-License-Identifier: Apache-2.0
#include "ops/axis_gather.hpp"

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

}  // namespace

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
