// SPDX-License-Identifier: Apache-2.0
// What is done with a tile, on vectors of any length.
#pragma once

#include "kernels/fake/lanes.hpp"

namespace qtn::kernels {
namespace {

/// The grids of a strip.
template <class V, Kind kind>
struct Grids {
  void begin(std::size_t first, std::size_t count) {
    if (count == 1) {
      const Grid<V, kind> same(V::all(from.scale[first]), V::all(static_cast<float>(from.zero[first])), from);
      for (Grid<V, kind> &g : of) g = same;
      return;
    }
    alignas(64) float scale[kLanes], zero[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      scale[i] = from.scale[first + (i < count ? i : 0)];
      zero[i] = static_cast<float>(from.zero[first + (i < count ? i : 0)]);
    }
    for (int v = 0; v < kVectors<V>; ++v)
      of[v] = {V::load(scale + v * static_cast<int>(V::kCount)), V::load(zero + v * static_cast<int>(V::kCount)), from};
  }

  const FakeGrids &from;
  Grid<V, kind> of[kVectors<V>];
};

template <class V, Kind kind>
struct Quantize {
  void begin(std::size_t first, std::size_t count) { grids.begin(first, count); }
  void end(std::size_t, std::size_t) {}

  void run(const Tile &t) {
    for_vectors<V>(t, [&](const auto &at, std::size_t g, auto v) { at.put(g, v, grids.of[v].fake(at.x(g, v))); });
  }

  Grids<V, kind> grids;
};

template <class V, Kind kind, bool summing>
struct Backward {
  void begin(std::size_t first, std::size_t count) {
    grids.begin(first, count);
    if (summing) sums.clear();
  }
  void end(std::size_t first, std::size_t count) {
    if (!summing) return;
    if (!by_column)
      to[first] = {sums.total(0), sums.total(1)};
    else
      for (std::size_t i = 0; i < count; ++i) to[first + i] = {sums.lane(0, i), sums.lane(1, i)};
  }

  void run(const Tile &t) {
    typename Sums<V>::Part part = {};
    for_vectors<V>(t, [&](const auto &at, std::size_t g, auto v) {
      const auto dy = at.dy(g, v);
      const auto seen = grids.of[v].see(at.x(g, v));
      at.put(g, v, V::where(seen.inside, dy));
      part[0][v] += dy * seen.steps;
      part[1][v] += V::where_not(seen.inside, dy);
    });
    if (summing) sums.add(part);
  }

  Grids<V, kind> grids;
  bool by_column;
  FakeSums *to;
  Sums<V> sums;
};

template <class V>
struct ClipBackward {
  void begin(std::size_t, std::size_t) { sums.clear(); }
  void end(std::size_t, std::size_t) {}

  void run(const Tile &t) {
    typename Sums<V>::Part part = {};
    const auto low = V::all(lo), high = V::all(hi);
    for_vectors<V>(t, [&](const auto &at, std::size_t g, auto v) {
      const auto x = at.x(g, v), dy = at.dy(g, v);
      at.put(g, v, V::where(V::both(V::less(low, x), V::less(x, high)), dy));
      part[0][v] += V::where(V::less_equal(x, low), dy);
      part[1][v] += V::where(V::less_equal(high, x), dy);
    });
    sums.add(part);
  }

  float lo, hi;
  Sums<V> sums;
};

template <class V>
struct Moments {
  void begin(std::size_t channel, std::size_t) {
    shift = shifts[channel];
    sums.clear();
    for (int v = 0; v < kVectors<V>; ++v) min[v] = V::all(__builtin_inff()), max[v] = V::all(-__builtin_inff());
  }
  void end(std::size_t channel, std::size_t) {
    PlanesMoments &m = to[channel];
    m = {sums.total(0), sums.total(1), min[0][0], max[0][0]};
    for (int v = 0; v < kVectors<V>; ++v)
      for (std::size_t i = 0; i < V::kCount; ++i) {
        m.min = min[v][i] < m.min ? min[v][i] : m.min;
        m.max = max[v][i] > m.max ? max[v][i] : m.max;
      }
    m.min += 0.0f;
    m.max += 0.0f;
  }

  void run(const Tile &t) {
    typename Sums<V>::Part part = {};
    const auto zero = V::all(shift);
    for_vectors<V>(t, [&](const auto &at, std::size_t g, auto v) {
      const auto x = at.x(g, v), d = at.x(g, v, shift) - zero;
      part[0][v] += d;
      part[1][v] += d * d;
      min[v] = V::min(x, min[v]);
      max[v] = V::max(x, max[v]);
    });
    sums.add(part);
  }

  const float *shifts;
  PlanesMoments *to;
  float shift;
  typename V::Floats min[kVectors<V>], max[kVectors<V>];
  Sums<V> sums;
};

/// What jobs on planes share. `gridded`: there is a grid, of this kind.
template <class V, bool gridded, Kind kind>
struct Planes {
  using Floats = typename V::Floats;

  explicit Planes(const PlanesArgs &a) : args(a), lo(V::all(a.lo)), hi(V::all(a.hi)) {
    if constexpr (gridded) grid = {V::all(*a.grid->scale), V::all(static_cast<float>(*a.grid->zero)), *a.grid};
  }
  void begin(std::size_t channel, std::size_t) {
    gain = V::all(args.gain[channel]);
    shift = V::all(args.shift[channel]);
  }

  Floats normalized(Floats x) const { return x * gain + shift; }
  /// Where a gradient passes.
  typename V::Mask inside(Floats x) const {
    const Floats u = normalized(x);
    const typename V::Mask mask = V::both(V::less(lo, u), V::less(u, hi));
    if constexpr (gridded) return V::both(mask, grid.see(u).inside);
    return mask;
  }

  const PlanesArgs &args;
  Floats lo, hi, gain, shift;
  Grid<V, kind> grid;
};

template <class V, bool gridded, Kind kind>
struct Normalize : Planes<V, gridded, kind> {
  using Planes<V, gridded, kind>::Planes;
  void end(std::size_t, std::size_t) {}

  void run(const Tile &t) {
    typename V::Floats sums[kVectors<V>];
    unroll<kVectors<V>>([&](auto v) { sums[v] = nothing[v]; });
    for_vectors<V>(t, [&](const auto &at, std::size_t g, auto v) {
      const auto u = this->normalized(at.x(g, v)), within = clamped<V>(u, this->lo, this->hi);
      if constexpr (gridded) {
        sums[v] += u - u;
        at.put(g, v, this->grid.fake(within));
      } else {
        at.put(g, v, within);
      }
    });
    unroll<kVectors<V>>([&](auto v) { nothing[v] = sums[v]; });
  }

  bool finite() const {
    for (int v = 0; v < kVectors<V>; ++v)
      for (std::size_t i = 0; i < V::kCount; ++i)
        if (nothing[v][i] != 0) return false;
    return true;
  }

 private:
  typename V::Floats nothing[kVectors<V>] = {};  // sums of u - u, which is NaN where u is not finite
};

template <class V, bool gridded, Kind kind>
struct NormalizeSums : Planes<V, gridded, kind> {
  using Shared = Planes<V, gridded, kind>;

  NormalizeSums(const PlanesArgs &a, PlanesSums *sums_of_channels) : Shared(a), to(sums_of_channels) {}
  void begin(std::size_t channel, std::size_t count) {
    Shared::begin(channel, count);
    sums.clear();
  }
  void end(std::size_t channel, std::size_t) { to[channel] = {sums.total(0), sums.total(1)}; }

  void run(const Tile &t) {
    typename Sums<V>::Part part = {};
    for_vectors<V>(t, [&](const auto &at, std::size_t g, auto v) {
      const auto x = at.x(g, v), dz = at.dy(g, v);
      const auto inside = this->inside(x);
      part[0][v] += V::where(inside, dz);
      part[1][v] += V::where(inside, dz * x);
    });
    sums.add(part);
  }

  PlanesSums *to;
  Sums<V> sums;
};

template <class V, bool gridded, Kind kind>
struct NormalizeBackward : Planes<V, gridded, kind> {
  using Shared = Planes<V, gridded, kind>;

  explicit NormalizeBackward(const PlanesBackwardArgs &a) : Shared(a.planes), factors(a) {}
  void begin(std::size_t channel, std::size_t count) {
    Shared::begin(channel, count);
    dv_factor = V::all(factors.dv_factor[channel]);
    x_factor = V::all(factors.x_factor[channel]);
    constant = V::all(factors.constant[channel]);
  }
  void end(std::size_t, std::size_t) {}

  void run(const Tile &t) {
    for_vectors<V>(t, [&](const auto &at, std::size_t g, auto v) {
      const auto x = at.x(g, v), dv = V::where(this->inside(x), at.dy(g, v));
      at.put(g, v, dv * dv_factor + x * x_factor + constant);
    });
  }

  const PlanesBackwardArgs &factors;
  typename V::Floats dv_factor, x_factor, constant;
};

/// The functions of a row of kernels.inc.
template <class V>
struct Fake {
  static void quantize(const FakeArgs &args) {
    with_kind(args.grids, [&](auto kind) {
      Quantize<V, kind> job{{args.grids, {}}};
      walk({args.rows, args.columns, args.by_column, args.x, nullptr, args.y}, job);
    });
  }

  static void backward(const FakeBackwardArgs &args) {
    const Matrix m{args.rows, args.columns, args.by_column, args.x, args.dy, args.dx};
    with_kind(args.grids, [&](auto kind) {
      if (args.sums) {
        Backward<V, kind, true> job{{args.grids, {}}, args.by_column, args.sums, {}};
        walk(m, job);
      } else {
        Backward<V, kind, false> job{{args.grids, {}}, args.by_column, nullptr, {}};
        walk(m, job);
      }
    });
  }

  static ClipSums clip_backward(const ClipArgs &args) {
    ClipBackward<V> job{args.lo, args.hi, {}};
    walk({1, args.count, false, args.x, args.dy, args.dx}, job);
    return {job.sums.total(0), job.sums.total(1)};
  }

  static void moments(std::size_t channels, std::size_t size, const float *x, const float *shift,
                      PlanesMoments *of_channel) {
    Moments<V> job{shift, of_channel, 0, {}, {}, {}};
    walk({channels, size, false, x, nullptr, nullptr}, job);
  }

  static bool normalize(const PlanesArgs &args, float *z) {
    bool finite = true;
    with_grid(args, [&](auto gridded, auto kind) {
      Normalize<V, gridded, kind> job(args);
      walk({args.channels, args.size, false, args.x, nullptr, z}, job);
      finite = job.finite();
    });
    return finite;
  }

  static void normalize_sums(const PlanesArgs &args, const float *dz, PlanesSums *sums) {
    with_grid(args, [&](auto gridded, auto kind) {
      NormalizeSums<V, gridded, kind> job(args, sums);
      walk({args.channels, args.size, false, args.x, dz, nullptr}, job);
    });
  }

  static void normalize_backward(const PlanesBackwardArgs &args) {
    with_grid(args.planes, [&](auto gridded, auto kind) {
      NormalizeBackward<V, gridded, kind> job(args);
      walk({args.planes.channels, args.planes.size, false, args.planes.x, args.dz, args.dx}, job);
    });
  }

 private:
  template <class Body>
  static void with_grid(const PlanesArgs &args, const Body &body) {
    if (!args.grid) return body(std::false_type{}, std::integral_constant<Kind, Kind::division>{});
    with_kind(*args.grid, [&](auto kind) { body(std::true_type{}, kind); });
  }
};

}  // namespace
}  // namespace qtn::kernels
