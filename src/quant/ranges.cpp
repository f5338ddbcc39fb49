// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/real/real.hpp"
#include "quant/kinds.hpp"

namespace qtn::quant {

Ranges measure(const Tensor &x, const ObserverSettings &settings) {
  const auto *data = x.as<const float>();
  std::size_t outer = 1, channels = 1, inner = static_cast<std::size_t>(x.count());
  if (is_per_channel(settings.scheme)) {
    const auto axis = static_cast<std::size_t>(settings.axis);
    if (axis >= x.rank())
      fail(QTN_ESHAPE, "observer: axis ", axis, " is not one of a tensor of shape ", to_string(x.shape()));
    outer = static_cast<std::size_t>(element_count(x.shape(), 0, axis));
    channels = static_cast<std::size_t>(x.dim(axis));
    inner = static_cast<std::size_t>(element_count(x.shape(), axis + 1, x.rank()));
  }
  const kernels::RealKernel &kernel = kernels::real_kernel();
  Ranges ranges;
  for (std::size_t c = 0; c < channels; ++c) {
    kernels::Extent all = kernel.extent(data + c * inner, inner);
    for (std::size_t o = 1; o < outer; ++o) {
      const kernels::Extent row = kernel.extent(data + (o * channels + c) * inner, inner);
      all.min = std::min(all.min, row.min);
      all.max = std::max(all.max, row.max);
    }
    ranges.mins.push_back(all.min);
    ranges.maxs.push_back(all.max);
  }
  return ranges;
}

void check_channels(const Ranges &seen, const Ranges &now) {
  if (seen.size() != now.size())
    fail(QTN_ESHAPE, "observer: the tensor has ", now.size(), " channels, those before had ", seen.size());
}

QuantizerPtr choose_from(const Ranges &ranges, const ObserverSettings &settings) {
  const std::vector<double> mins(ranges.mins.begin(), ranges.mins.end()), maxs(ranges.maxs.begin(), ranges.maxs.end());
  return choose_quantizer(settings.dtype, settings.scheme, settings.axis, mins, maxs, settings.choose);
}

void write_ranges(ByteWriter &out, const Ranges &ranges) {
  out.f32s(ranges.mins);
  out.f32s(ranges.maxs);
}

Ranges read_ranges(ByteReader &in, const ObserverSettings &settings) {
  Ranges ranges;
  ranges.mins = in.f32s();
  ranges.maxs = in.f32s();
  if (ranges.mins.size() != ranges.maxs.size()) in.broken("as many minima as maxima must follow");
  if (!is_per_channel(settings.scheme) && ranges.size() > 1) in.broken("a per-tensor observer has one range");
  for (std::size_t c = 0; c < ranges.size(); ++c)
    if (!std::isfinite(ranges.mins[c]) || !std::isfinite(ranges.maxs[c]) || ranges.mins[c] > ranges.maxs[c])
      in.broken("a range is not finite and ordered");
  return ranges;
}

}  // namespace qtn::quant
