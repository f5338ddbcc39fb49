// SPDX-License-Identifier: Apache-2.0
#include "ops/common/plane_copy.hpp"

#include "kernels/real/real.hpp"

namespace qtn::ops {
namespace {

/// A window's numbers along rows and columns: those of its last two axes.
struct Image {
  explicit Image(const Window &w)
      : in(last_two(w.in)),
        out(last_two(w.out)),
        kernel(last_two(w.kernel)),
        stride(last_two(w.stride)),
        dilation(last_two(w.dilation)),
        pad(last_two(w.pad_begin)) {}
  static Place last_two(const Window::Dims &dims) { return {dims[1], dims[2]}; }

  Place in, out, kernel, stride, dilation, pad;
};

std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0); }

/// The index of `first` in `parts`, where it is put if need be.
std::int64_t part_of(std::vector<Place> &parts, const Place &first) {
  const auto at = std::find(parts.begin(), parts.end(), first);
  const auto index = at - parts.begin();
  if (at == parts.end()) parts.push_back(first);
  return index;
}

}  // namespace

void PlaneCopy::run(const float *from, std::int64_t from_step, std::int64_t planes, std::int64_t rows, float *to,
                    std::int64_t to_step) const {
  const auto copy = kernels::real_kernel().copy;
  for (const Place &start : first) {
    // What of the part is the plane's, in rows and columns of the part.
    const std::int64_t top = start[0] + rows * step[0];
    const Place corner{top, start[1]};
    Place begin, end;
    for (const std::size_t axis : {0, 1}) {
      begin[axis] = std::clamp<std::int64_t>(ceil_quotient(-corner[axis], step[axis]), 0, size[axis]);
      end[axis] =
          std::clamp<std::int64_t>(ceil_quotient(plane[axis] - corner[axis], step[axis]), begin[axis], size[axis]);
    }
    const bool any = begin[0] < end[0] && begin[1] < end[1];
    const float *seen = from + (top + begin[0] * step[0]) * plane[1] + start[1] + begin[1] * step[1];
    for (std::int64_t c = 0; c < planes; ++c) {
      float *part = to + c * to_step;
      std::fill(part, part + begin[0] * size[1], 0.0f);
      if (any)
        copy({seen + c * from_step, static_cast<std::size_t>(step[0] * plane[1]), static_cast<std::size_t>(step[1]),
              part + begin[0] * size[1] + begin[1], static_cast<std::size_t>(size[1]), 1,
              static_cast<std::size_t>(end[0] - begin[0]), static_cast<std::size_t>(end[1] - begin[1])});
      std::fill(part + end[0] * size[1], part + part_size(), 0.0f);
    }
    to += part_size();
  }
}

Scan forward_scan(const Window &w, bool flush) {
  const Image p(w);
  Scan scan{{p.in, {}, p.stride, {}}, {{p.out, {0, 0}, {1, 1}, {}}}, p.out[0]};
  const auto shift = [&](std::size_t axis, std::int64_t k) { return k * p.dilation[axis] / p.stride[axis]; };
  const auto phase = [&](std::size_t axis, std::int64_t k) {
    return k * p.dilation[axis] % p.stride[axis] - p.pad[axis];
  };
  for (const std::size_t axis : {0, 1}) scan.copy.size[axis] = p.out[axis] + shift(axis, p.kernel[axis] - 1);
  if (flush) scan.copy.size[1] = p.out[1];
  for (std::int64_t k0 = 0; k0 < p.kernel[0]; ++k0)
    for (std::int64_t k1 = 0; k1 < p.kernel[1]; ++k1) {
      const std::int64_t column = flush ? k1 * p.dilation[1] - p.pad[1] : phase(1, k1);
      const std::int64_t part = part_of(scan.copy.first, {phase(0, k0), column});
      scan.passes[0].taps.push_back({part, shift(0, k0), flush ? 0 : shift(1, k1), k0 * p.kernel[1] + k1});
    }
  return scan;
}

Scan backward_scan(const Window &w, bool flush) {
  const Image p(w);
  // In x with its padding, row v = q * stride + phase. Tap k of output o meets it where o = q - k * dilation / stride,
  // if k * dilation has the same phase.
  struct Axis {
    std::vector<std::int64_t> first, count;  ///< q, by phase
    std::int64_t most;                       ///< the largest count
    std::int64_t begin, size;                ///< of the rows of dy that are met
  };
  std::array<Axis, 2> axes;
  for (const std::size_t axis : {0, 1}) {
    Axis &a = axes[axis];
    for (std::int64_t phase = 0; phase < p.stride[axis]; ++phase) {
      a.first.push_back(ceil_quotient(p.pad[axis] - phase, p.stride[axis]));
      a.count.push_back(ceil_quotient(p.pad[axis] + p.in[axis] - phase, p.stride[axis]) - a.first.back());
    }
    a.most = *std::max_element(a.count.begin(), a.count.end());
    // A later phase begins and ends no later.
    a.begin = a.first.back() - (p.kernel[axis] - 1) * p.dilation[axis] / p.stride[axis];
    a.size = a.first[0] + a.count[0] - a.begin;
  }
  Scan scan{{p.out, {axes[0].size, flush ? axes[1].most : axes[1].size}, {1, 1}, {}}, {}, axes[0].most};
  for (std::int64_t a0 = 0; a0 < p.stride[0]; ++a0)
    for (std::int64_t a1 = 0; a1 < p.stride[1]; ++a1) {
      const Place phase{a0, a1};
      Pass pass{{}, {}, p.stride, {}};
      Place q;
      for (const std::size_t axis : {0, 1}) {
        const auto at = static_cast<std::size_t>(phase[axis]);
        q[axis] = axes[axis].first[at];
        pass.count[axis] = axes[axis].count[at];
        pass.first[axis] = q[axis] * p.stride[axis] + phase[axis] - p.pad[axis];
      }
      if (pass.count[0] <= 0 || pass.count[1] <= 0) continue;
      for (std::int64_t k0 = 0; k0 < p.kernel[0]; ++k0)
        for (std::int64_t k1 = 0; k1 < p.kernel[1]; ++k1) {
          const Place reach{k0 * p.dilation[0], k1 * p.dilation[1]};
          if (reach[0] % p.stride[0] != a0 || reach[1] % p.stride[1] != a1) continue;
          const std::int64_t row = q[0] - reach[0] / p.stride[0] - axes[0].begin;
          const std::int64_t column = q[1] - reach[1] / p.stride[1];
          const std::int64_t first = flush ? column : axes[1].begin;
          const std::int64_t part = part_of(scan.copy.first, {axes[0].begin, first});
          pass.taps.push_back({part, row, column - first, k0 * p.kernel[1] + k1});
        }
      scan.passes.push_back(pass);
    }
  return scan;
}

}  // namespace qtn::ops
