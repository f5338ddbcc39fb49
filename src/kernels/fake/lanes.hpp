// SPDX-License-Identifier: Apache-2.0
// Sixteen floats in vectors of an instruction set, grids in them, and the walk over a matrix. `V` is an instruction
// set: the types Floats and Mask, and the operations used below. Integers stay floats: there are fewer than 2^17 of
// them on either side of zero.
#pragma once

#include <type_traits>

#include "kernels/fake/fake.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

constexpr std::size_t kLanes = 16;  ///< floats in a group
constexpr std::size_t kBlock = 16;  ///< groups in a block, whose sums are formed in float32

template <class V>
constexpr int kVectors = kLanes / V::kCount;

/// How x becomes steps and steps become y: FakeGrids::rounding and `inverses` in one.
enum class Kind { reciprocal, inverse, division, half_away };

/// NaN stays.
template <class V>
typename V::Floats clamped(typename V::Floats v, typename V::Floats lo, typename V::Floats hi) {
  return V::min(hi, V::max(lo, v));
}

/// Rounds numbers up to 2^22, never -0: sums with 3 * 2^22 have no bits for fractions.
template <class V, Kind kind>
typename V::Floats rounded(typename V::Floats v) {
  using Floats = typename V::Floats;
  const Floats whole = V::all(12582912);
  const Floats even = (v + whole) - whole;
  if constexpr (kind != Kind::half_away) return even;
  const Floats rest = v - even, zero = V::all(0), half = V::all(0.5f), one = V::all(1);
  const Floats up = V::where(V::both(V::equal(rest, half), V::less(zero, v)), one);
  return even + up - V::where(V::both(V::equal(rest, zero - half), V::less(v, zero)), one);
}

/// The grids of a vector of values.
template <class V, Kind kind>
struct Grid {
  using Floats = typename V::Floats;
  using Mask = typename V::Mask;

  Grid() = default;
  Grid(Floats given, Floats zero, const FakeGrids &grids)
      : scale(given),
        factor(kind == Kind::reciprocal ? V::all(1) / given : given),
        least(V::all(static_cast<float>(grids.lo)) - zero),
        most(V::all(static_cast<float>(grids.hi)) - zero),
        top(V::all(static_cast<float>(grids.hi))) {}

  Floats scaled(Floats x) const { return kind == Kind::reciprocal || kind == Kind::inverse ? x * factor : x / factor; }
  Floats fake(Floats x) const {
    const Floats steps = rounded<V, kind>(clamped<V>(scaled(x), least, most));
    const Floats numbers = V::where(V::equal(steps, steps), steps);
    return kind == Kind::inverse ? numbers / scale : numbers * scale;
  }

  struct Seen {
    Mask inside;
    Floats steps;  ///< of what the gradient of the scale is made
  };
  Seen see(Floats x) const {
    const Floats one = V::all(1), v = scaled(x);
    const Floats beyond = rounded<V, kind>(clamped<V>(v, least - one, most + one));
    const Floats end = clamped<V>(beyond, least, most);
    Mask inside = V::equal(beyond, end);
    if constexpr (kind == Kind::inverse) inside = V::both(inside, V::less_equal(factor, top / V::absolute(x)));
    return {inside, V::where(V::equal(end, end), end) - V::where(inside, v)};
  }

 private:
  Floats scale, factor, least, most, top;
};

/// body(Kind) as a constant.
template <class Body>
void with_kind(const FakeGrids &grids, const Body &body) {
  if (grids.rounding == Rounding::division) return body(std::integral_constant<Kind, Kind::division>{});
  if (grids.rounding == Rounding::half_away) return body(std::integral_constant<Kind, Kind::half_away>{});
  if (grids.inverses) return body(std::integral_constant<Kind, Kind::inverse>{});
  body(std::integral_constant<Kind, Kind::reciprocal>{});
}

/// Groups of up to sixteen, `stride` elements apart.
struct Tile {
  const float *x, *dy;  ///< null where a job reads no dy
  float *out;           ///< null where it writes nothing
  std::size_t groups, stride, width;
};

/// The vectors of a tile. Those of a narrow one are filled up: x by its first column, dy by zeros, which no sum sees.
template <class V, bool narrow>
struct Reach {
  using Floats = typename V::Floats;

  Floats x(std::size_t group, int v) const { return x(group, v, tile.x[group * tile.stride]); }
  Floats x(std::size_t group, int v, float rest) const {
    const float *p = tile.x + group * tile.stride + first(v);
    if constexpr (narrow) return V::load_part(p, count(v), rest);
    return V::load(p);
  }
  Floats dy(std::size_t group, int v) const {
    const float *p = tile.dy + group * tile.stride + first(v);
    if constexpr (narrow) return V::load_part(p, count(v), 0.0f);
    return V::load(p);
  }
  void put(std::size_t group, int v, Floats value) const {
    float *p = tile.out + group * tile.stride + first(v);
    if constexpr (narrow)
      V::store_part(p, count(v), value);
    else
      V::store(p, value);
  }

  const Tile &tile;

 private:
  static std::size_t first(int v) { return static_cast<std::size_t>(v) * V::kCount; }
  std::size_t count(int v) const {
    return tile.width <= first(v) ? 0 : tile.width - first(v) < V::kCount ? tile.width - first(v) : V::kCount;
  }
};

/// each(reach, group, v) for every vector.
template <class V, class Each>
[[gnu::always_inline]] inline void for_vectors(const Tile &tile, const Each &each) {
  const auto all = [&](const auto &reach) {
#pragma GCC unroll 1
    for (std::size_t g = 0; g < tile.groups; ++g) unroll<kVectors<V>>([&](auto v) { each(reach, g, v); });
  };
  tile.width == kLanes ? all(Reach<V, false>{tile}) : all(Reach<V, true>{tile});
}

struct Matrix {
  std::size_t rows, columns;
  bool by_column;
  const float *x, *dy;
  float *out;

  Tile tile(std::size_t at, std::size_t groups, std::size_t stride, std::size_t width) const {
    return {x + at, dy ? dy + at : nullptr, out ? out + at : nullptr, groups, stride, width};
  }
};

/// A strip is a row, or up to sixteen columns. For each: job.begin(first, count) with the rows or columns of the strip,
/// job.run(tile) for its blocks, job.end(first, count).
template <class Job>
void walk(const Matrix &m, Job &job) {
  const std::size_t all = m.by_column ? m.columns : m.rows, length = m.by_column ? m.rows : m.columns;
  const std::size_t step = m.by_column ? kLanes : 1;
  for (std::size_t first = 0; first < all; first += step) {
    const std::size_t count = all - first < step ? all - first : step;
    job.begin(first, count);
    for (std::size_t i = 0; i < length;) {
      const std::size_t along = m.by_column ? 1 : length - i < kLanes ? length - i : kLanes;
      const std::size_t left = (length - i) / along, groups = left < kBlock ? left : kBlock;
      job.run(m.by_column ? m.tile(i * m.columns + first, groups, m.columns, count)
                          : m.tile(first * m.columns + i, groups, kLanes, along));
      i += groups * along;
    }
    job.end(first, count);
  }
}

/// The sums of fake.hpp, two at once.
template <class V>
class Sums {
 public:
  using Part = typename V::Floats[2][kVectors<V>];

  [[gnu::noinline]] void clear() {
    for (auto &lanes : total_)
      for (double &lane : lanes) lane = 0;
  }
  /// The parts of a block.
  void add(const Part &part) {
    unroll<kVectors<V>>([&](auto v) {
      V::add_to(total_[0] + v * V::kCount, part[0][v]);
      V::add_to(total_[1] + v * V::kCount, part[1][v]);
    });
  }
  double lane(int s, std::size_t i) const { return total_[s][i]; }
  [[gnu::noinline]] double total(int s) const {
    double sum = 0;
    for (const double lane : total_[s]) sum += lane;
    return sum;
  }

 private:
  alignas(64) double total_[2][kLanes];
};

}  // namespace
}  // namespace qtn::kernels
