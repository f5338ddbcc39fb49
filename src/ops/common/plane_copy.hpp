// SPDX-License-Identifier: Apache-2.0
// Where the taps of a convolution over images lie in copies of its planes.
#pragma once

#include "ops/common/im2col.hpp"

namespace qtn::ops {

/// Rows and columns, in that order.
using Place = std::array<std::int64_t, 2>;

/// Parts of a plane one after the other, each of `size` elements with zeros where it reaches past the plane: element
/// (i, j) of a part is the plane's at first + (i, j) * step.
struct PlaneCopy {
  Place plane, size, step;
  std::vector<Place> first;  ///< of each part

  std::int64_t part_size() const { return size[0] * size[1]; }
  std::int64_t count() const { return static_cast<std::int64_t>(first.size()) * part_size(); }

  /// Copies `planes` that are steps apart, as their copies are; parts of planes begin `rows` rows further down. Between
  /// their rows `to` holds zeros already.
  void run(const float *from, std::int64_t from_step, std::int64_t planes, std::int64_t rows, float *to,
           std::int64_t to_step) const;
};

/// Outputs that have the same taps, on a grid of places in the plane of outputs.
struct Pass {
  struct Tap {
    std::int64_t part, row, column;  ///< of the copy, for output (0, 0)
    std::int64_t weight;             ///< which tap of the kernel it is
  };
  Place count, first, step;
  std::vector<Tap> taps;
};

/// A convolution as passes over copies of what it reads.
struct Scan {
  PlaneCopy copy;
  std::vector<Pass> passes;
  std::int64_t rows;  ///< the most outputs of a pass, from above to below

  /// Makes copies that serve `band` rows of outputs at a time.
  void cut(std::int64_t band) {
    copy.size[0] += band - rows;
    rows = band;
  }
};

/// y from copies of x. `flush`: each column of the kernel has copies of its own, whose rows are as long as those of y,
/// so that outputs follow one another without the gaps that kernels would compute, too.
Scan forward_scan(const Window &w, bool flush);

/// dx from copies of dy.
Scan backward_scan(const Window &w, bool flush);

}  // namespace qtn::ops
