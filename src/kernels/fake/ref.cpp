// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "kernels/fake/fake.hpp"

namespace qtn::kernels::fake_ref {
namespace {

constexpr std::size_t kLanes = 16, kBlock = 16;

struct Grid {
  Grid(const FakeGrids &grids, std::size_t i)
      : rounding(grids.rounding),
        inverse(grids.inverses),
        scale(grids.scale[i]),
        factor(rounding == Rounding::reciprocal && !inverse ? 1.0f / scale : scale),
        zero(grids.zero[i]),
        lo(grids.lo),
        hi(grids.hi) {}

  float scaled(float x) const { return rounding == Rounding::reciprocal ? x * factor : x / factor; }
  std::int32_t q(float x) const { return to_grid(x, rounding, factor, zero, lo, hi); }
  float fake(float x) const { return from_grid(q(x), inverse, scale, zero); }
  bool holds(float x) const {
    if (std::isnan(scaled(x)) || to_grid(x, rounding, factor, zero, lo - 1, hi + 1) != q(x)) return false;
    return !inverse || static_cast<float>(hi) / std::fabs(x) >= factor;
  }
  /// The terms of the gradient of the scale.
  float steps(float x, bool held) const {
    const auto steps = static_cast<float>(q(x) - zero);
    return held ? steps - scaled(x) : steps;
  }

  Rounding rounding;
  bool inverse;
  float scale, factor;
  std::int32_t zero, lo, hi;
};

/// A sum in the order of fake.hpp: of a row in 16 lanes, of a column in one.
class Sum {
 public:
  explicit Sum(std::size_t lanes) : lanes_(lanes) {}

  /// Term number i of `count`.
  void add(std::size_t i, std::size_t count, float term) {
    part_[i % lanes_] += term;
    if (i % (lanes_ * kBlock) == lanes_ * kBlock - 1 || i + 1 == count / lanes_ * lanes_ || i + 1 == count) flush();
  }
  double total() const {
    double sum = 0;
    for (const double lane : total_) sum += lane;
    return sum;
  }

 private:
  void flush() {
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      total_[lane] += static_cast<double>(part_[lane]);
      part_[lane] = 0;
    }
  }
  std::size_t lanes_;
  float part_[kLanes] = {};
  double total_[kLanes] = {};
};

float clamped(float v, float lo, float hi) { return v < lo ? lo : v > hi ? hi : v; }

/// Calls body(channel, element).
template <class Body>
void each(const PlanesArgs &args, const Body &body) {
  for (std::size_t i = 0; i < args.channels * args.size; ++i) body(i / args.size, i);
}

bool passes(const PlanesArgs &args, std::size_t c, float x) {
  const float u = x * args.gain[c] + args.shift[c];
  return u > args.lo && u < args.hi && (!args.grid || Grid(*args.grid, 0).holds(u));
}

}  // namespace

void quantize(const FakeArgs &args) {
  for (std::size_t i = 0; i < args.rows; ++i)
    for (std::size_t j = 0; j < args.columns; ++j) {
      const std::size_t at = i * args.columns + j;
      args.y[at] = Grid(args.grids, args.by_column ? j : i).fake(args.x[at]);
    }
}

void backward(const FakeBackwardArgs &args) {
  const std::size_t grids = args.by_column ? args.columns : args.rows;
  const std::size_t count = args.by_column ? args.rows : args.columns;
  for (std::size_t g = 0; g < grids; ++g) {
    const Grid grid(args.grids, g);
    Sum steps(args.by_column ? 1 : kLanes), outside = steps;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = args.by_column ? i * args.columns + g : g * args.columns + i;
      const float x = args.x[at], dy = args.dy[at];
      const bool held = grid.holds(x);
      args.dx[at] = held ? dy : 0.0f;
      steps.add(i, count, dy * grid.steps(x, held));
      outside.add(i, count, held ? 0.0f : dy);
    }
    if (args.sums) args.sums[g] = {steps.total(), outside.total()};
  }
}

ClipSums clip_backward(const ClipArgs &args) {
  Sum below(kLanes), above(kLanes);
  for (std::size_t i = 0; i < args.count; ++i) {
    const float x = args.x[i], dy = args.dy[i];
    args.dx[i] = x > args.lo && x < args.hi ? dy : 0.0f;
    below.add(i, args.count, x <= args.lo ? dy : 0.0f);
    above.add(i, args.count, x >= args.hi ? dy : 0.0f);
  }
  return {below.total(), above.total()};
}

void moments(std::size_t channels, std::size_t size, const float *x, const float *shift, PlanesMoments *of_channel) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::size_t c = 0; c < channels; ++c) {
    Sum sum(kLanes), squares(kLanes);
    float min = kInfinity, max = -kInfinity;
    for (std::size_t i = 0; i < size; ++i, ++x) {
      const float d = *x - shift[c];
      sum.add(i, size, d);
      squares.add(i, size, d * d);
      min = *x < min ? *x : min;
      max = *x > max ? *x : max;
    }
    of_channel[c] = {sum.total(), squares.total(), min + 0.0f, max + 0.0f};
  }
}

bool normalize(const PlanesArgs &args, float *z) {
  bool finite = true;
  each(args, [&](std::size_t c, std::size_t at) {
    const float u = args.x[at] * args.gain[c] + args.shift[c], v = clamped(u, args.lo, args.hi);
    finite = finite && (!args.grid || std::isfinite(u));
    z[at] = args.grid ? Grid(*args.grid, 0).fake(v) : v;
  });
  return finite;
}

void normalize_sums(const PlanesArgs &args, const float *dz, PlanesSums *sums) {
  for (std::size_t c = 0; c < args.channels; ++c) {
    Sum dv(kLanes), dv_x(kLanes);
    for (std::size_t i = 0; i < args.size; ++i) {
      const float x = args.x[c * args.size + i], d = dz[c * args.size + i];
      const bool pass = passes(args, c, x);
      dv.add(i, args.size, pass ? d : 0.0f);
      dv_x.add(i, args.size, pass ? d * x : 0.0f);
    }
    sums[c] = {dv.total(), dv_x.total()};
  }
}

void normalize_backward(const PlanesBackwardArgs &args) {
  each(args.planes, [&](std::size_t c, std::size_t at) {
    const float x = args.planes.x[at], dv = passes(args.planes, c, x) ? args.dz[at] : 0.0f;
    args.dx[at] = dv * args.dv_factor[c] + x * args.x_factor[c] + args.constant[c];
  });
}

}  // namespace qtn::kernels::fake_ref
