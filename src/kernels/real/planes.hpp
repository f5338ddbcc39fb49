// SPDX-License-Identifier: Apache-2.0
// Convolutions over copies of planes, and their gradient with respect to the weights, on vectors of any length.
#pragma once

#include <utility>

#include "kernels/real/lanes.hpp"
#include "kernels/real_functions.hpp"

namespace qtn::kernels {
namespace {

inline void copy_one_by_one(const CopyArgs &args) {
  for (std::size_t row = 0; row < args.rows; ++row)
    for (std::size_t i = 0; i < args.columns; ++i) {
      float &y = args.y[row * args.y_pitch + i * args.y_step];
      const float x = args.x[row * args.x_pitch + i * args.x_step];
      y = args.adds ? y + x : x;
    }
}

/// The first taps of outputs, from the first one on.
class FirstTaps {
 public:
  FirstTaps(const float *x, const Rows &rows) : x_(x), rows_(rows), column_(rows.column) {}

  /// That of the next one; goes `count` further, which does not lead past the end of a row but to it.
  const float *next(std::size_t count) {
    const float *at = x_ + column_;
    column_ += count;
    if (column_ == rows_.length) {
      column_ = 0;
      x_ += rows_.pitch;
    }
    return at;
  }

 private:
  const float *x_;
  Rows rows_;
  std::size_t column_;
};

inline void convolve_one_by_one(const ConvolveArgs &args) {
  for (std::size_t f = 0; f < args.filters; ++f) {
    FirstTaps first(args.x, args.rows);
    for (std::size_t i = 0; i < args.count; ++i) {
      const float *x = first.next(1);
      float sum = 0;
      for (std::size_t t = 0; t < args.taps; ++t)
        sum = __builtin_fmaf(args.weights[t * args.filters + f], x[args.offsets[t]], sum);
      args.y[f * args.y_step + i] = sum;
    }
  }
}

/// The sums of the lanes become one, halves added to halves.
inline float sum_of_lanes(float (&lanes)[kSumLanes]) {
  for (std::size_t half = kSumLanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

inline void correlate_one_by_one(const CorrelateArgs &args) {
  for (std::size_t f = 0; f < args.filters; ++f)
    for (std::size_t t = 0; t < args.taps; ++t) {
      float lanes[kSumLanes] = {};
      for (std::size_t image = 0; image < args.images; ++image) {
        FirstTaps first(args.x + image * args.x_image + args.offsets[t], args.rows);
        const float *dy = args.dy + image * args.dy_image + f * args.dy_step;
        for (std::size_t i = 0; i < args.count; ++i) {
          const float x = *first.next(1);
          lanes[i % kSumLanes] = __builtin_fmaf(dy[i], x, lanes[i % kSumLanes]);
        }
      }
      args.sums[f * args.sums_step + t] += sum_of_lanes(lanes);
    }
}

inline void take_one_by_one(const TakeArgs &args, std::size_t begin) {
  for (std::size_t i = begin; i < args.count; ++i) {
    const float v = args.x[i * args.step];
    const bool takes = (v > args.top[i]) | (v != v) | (args.at[i] < 0);
    args.top[i] = takes ? v : args.top[i];
    args.at[i] = takes ? args.tap : args.at[i];
  }
}

/// `filters`, `vectors` and `taps` at a time are what registers hold.
template <int bytes>
struct Planes : Lanes<bytes> {
  using Base = Lanes<bytes>;
  using Base::kCount;
  using Base::load;
  using Base::store;
  using typename Base::Floats;
  static constexpr bool kManyRegisters = bytes != 32;

  /// Planes are often pages, past whose end no CPU reads ahead by itself.
  static void ask_for(const float *x) { __builtin_prefetch(x + 512); }

  /// The last vector begins early enough to be whole; rows shorter than one are copied by shorter ones.
  static void copy_row(const float *x, float *y, std::size_t count) {
    if (count < kCount) {
      if constexpr (bytes > 16)
        Planes<bytes / 2>::copy_row(x, y, count);
      else
        for (std::size_t i = 0; i < count; ++i) y[i] = x[i];
      return;
    }
    std::size_t i = 0;
    for (; i + kCount <= count; i += kCount) {
      ask_for(x + i);
      store(y + i, load(x + i));
    }
    if (i < count) store(y + count - kCount, load(x + count - kCount));
  }

  static void add_row(const float *x, float *y, std::size_t count) {
    std::size_t i = 0;
    for (; i + kCount <= count; i += kCount) store(y + i, load(y + i) + load(x + i));
    for (; i < count; ++i) y[i] += x[i];
  }

  /// Elements of two vectors, counted through both.
  template <int... places>
  static Floats pick(const Floats &a, const Floats &b, std::integer_sequence<int, places...>) {
    return __builtin_shufflevector(a, b, places...);
  }

  template <int... i>
  static Floats pick_every_other(const Floats &a, const Floats &b, std::integer_sequence<int, i...>) {
    return pick(a, b, std::integer_sequence<int, 2 * i...>());
  }

  /// The first element of each pair in these vectors, the one after the other.
  static Floats every_other(const Floats &a, const Floats &b) {
    return pick_every_other(a, b, std::make_integer_sequence<int, kCount>());
  }

  /// Elements of a vector in place of the first of each pair in y.
  template <int... i>
  static void put_in_pairs(const Floats &x, float *y, std::integer_sequence<int, i...>) {
    constexpr int half = static_cast<int>(kCount / 2), second = static_cast<int>(kCount);
    store(y, pick(x, load(y), std::integer_sequence<int, (i % 2 == 0 ? i / 2 : second + i)...>()));
    store(y + kCount,
          pick(x, load(y + kCount), std::integer_sequence<int, (i % 2 == 0 ? half + i / 2 : second + i)...>()));
  }

  /// Adds the vector moved down by `half`, and so on, until the first element is the sum of all of them.
  template <int half, int... i>
  static void fold_lanes(Floats &sum, std::integer_sequence<int, i...> all) {
    sum += pick(sum, sum, std::integer_sequence<int, (i + half) % static_cast<int>(kCount)...>());
    if constexpr (half > 1) fold_lanes<half / 2>(sum, all);
  }

  /// Every other element.
  static void thin_row(const float *x, float *y, std::size_t count) {
    std::size_t i = 0;
    // The element behind the last one may not be there to be read.
    for (; i + kCount < count; i += kCount) store(y + i, every_other(load(x + 2 * i), load(x + 2 * i + kCount)));
    for (; i < count; ++i) y[i] = x[2 * i];
  }

  /// To every other element, of which those between stay; what is left is done by shorter vectors.
  static void spread_row(const float *x, float *y, std::size_t count, bool adds) {
    std::size_t i = 0;
    // The element behind the last one is not this row's.
    for (; i + kCount < count; i += kCount) {
      float *to = y + 2 * i;
      Floats v = load(x + i);
      if (adds) v = every_other(load(to), load(to + kCount)) + v;
      put_in_pairs(v, to, std::make_integer_sequence<int, kCount>());
    }
    if constexpr (bytes > 16)
      Planes<bytes / 2>::spread_row(x + i, y + 2 * i, count - i, adds);
    else
      for (; i < count; ++i) y[2 * i] = adds ? y[2 * i] + x[i] : x[i];
  }

  static void copy(const CopyArgs &args) {
    const bool thins = args.x_step == 2 && args.y_step == 1 && !args.adds;
    if (!thins && (args.x_step != 1 || args.y_step > 2)) return copy_one_by_one(args);
    for (std::size_t row = 0; row < args.rows; ++row) {
      const float *x = args.x + row * args.x_pitch;
      float *y = args.y + row * args.y_pitch;
      if (thins)
        thin_row(x, y, args.columns);
      else if (args.y_step == 2)
        spread_row(x, y, args.columns, args.adds);
      else
        args.adds ? add_row(x, y, args.columns) : copy_row(x, y, args.columns);
    }
  }

  /// From window i on; what is left is done by shorter vectors.
  static void take(const TakeArgs &args, std::size_t i = 0) {
    using Ints = typename Base::Ints;
    if (args.step > 2) return take_one_by_one(args, i);
    // The element behind the last one may not be there to be read.
    for (; i + kCount + args.step - 1 <= args.count; i += kCount) {
      const float *x = args.x + i * args.step;
      const Floats v = args.step == 1 ? load(x) : every_other(load(x), load(x + kCount));
      const Floats top = load(args.top + i);
      Ints at;
      __builtin_memcpy(&at, args.at + i, sizeof at);
      const Ints takes = (v > top) | (v != v) | (at < 0);
      store(args.top + i, takes ? v : top);
      at = takes ? Ints{} + args.tap : at;
      __builtin_memcpy(args.at + i, &at, sizeof at);
    }
    if constexpr (bytes > 16)
      Planes<bytes / 2>::take(args, i);
    else
      take_one_by_one(args, i);
  }

  /// Outputs `i` and following, whose first taps are at `from`.
  template <int filters, int vectors>
  static void convolve_block(const ConvolveArgs &args, std::size_t first, std::size_t i,
                             const float *const (&from)[vectors]) {
    Floats sum[filters][vectors];
    unroll<filters>([&](auto f) { unroll<vectors>([&](auto v) { sum[f][v] = Floats{}; }); });
    const float *weights = args.weights + first;
    for (std::size_t t = 0; t < args.taps; ++t, weights += args.filters) {
      const std::ptrdiff_t offset = args.offsets[t];
      Floats x[vectors];
      unroll<vectors>([&](auto v) { x[v] = load(from[v] + offset); });
      unroll<filters>([&](auto f) {
        const Floats weight = Functions<bytes>::all(weights[f]);
        unroll<vectors>([&](auto v) { sum[f][v] = Functions<bytes>::fma(weight, x[v], sum[f][v]); });
      });
    }
    unroll<filters>([&](auto f) {
      float *to = args.y + (first + f) * args.y_step + i;
      unroll<vectors>([&](auto v) { store(to + v * kCount, sum[f][v]); });
    });
  }

  /// As many blocks as fit before the last `rest` outputs, from i on.
  template <int filters, int vectors>
  static void convolve_blocks(const ConvolveArgs &args, std::size_t first, std::size_t &i, FirstTaps &taps,
                              std::size_t rest = 0) {
    for (; i + vectors * kCount + rest <= args.count; i += vectors * kCount) {
      const float *from[vectors];
      unroll<vectors>([&](auto v) { from[v] = taps.next(kCount); });
      convolve_block<filters, vectors>(args, first, i, from);
    }
  }

  /// The last vector begins early enough to be whole.
  template <int filters, int vectors>
  static void convolve_rows(const ConvolveArgs &args, std::size_t first) {
    std::size_t i = 0;
    FirstTaps taps(args.x, args.rows);
    // Four vectors are better taken as two and two than as three and one.
    constexpr int kPairs = 2;
    const bool pairs = vectors == 3 && args.count / kCount % vectors == 1;
    convolve_blocks<filters, vectors>(args, first, i, taps, pairs ? kPairs * kCount : 0);
    if constexpr (vectors > kPairs) convolve_blocks<filters, kPairs>(args, first, i, taps);
    convolve_blocks<filters, 1>(args, first, i, taps);
    if (i < args.count) convolve_block<filters, 1>(args, first, args.count - kCount, {args.x + args.count - kCount});
  }

  static void convolve(const ConvolveArgs &args) {
    if (args.count < kCount) return convolve_one_by_one(args);
    std::size_t f = 0;
    if constexpr (kManyRegisters)
      for (; f + 8 <= args.filters; f += 8) convolve_rows<8, 3>(args, f);
    for (; f + 4 <= args.filters; f += 4) convolve_rows<4, kManyRegisters ? 4 : 3>(args, f);
    for (; f < args.filters; ++f) convolve_rows<1, 4>(args, f);
  }

  /// sum_of_lanes() of vectors that together are its lanes.
  template <int parts>
  static float sum_of(Floats (&lanes)[parts]) {
    if constexpr (parts == 4) {
      lanes[0] += lanes[2];
      lanes[1] += lanes[3];
    }
    if constexpr (parts > 1) lanes[0] += lanes[1];
    fold_lanes<static_cast<int>(kCount / 2)>(lanes[0], std::make_integer_sequence<int, kCount>());
    return lanes[0][0];
  }

  template <int filters, int taps>
  static void correlate_block(const CorrelateArgs &args, std::size_t f0, std::size_t t0) {
    constexpr int kParts = kSumLanes / kCount;
    Floats sum[filters][taps][kParts];
    unroll<filters>(
        [&](auto f) { unroll<taps>([&](auto t) { unroll<kParts>([&](auto part) { sum[f][t][part] = Floats{}; }); }); });
    for (std::size_t image = 0; image < args.images; ++image) {
      FirstTaps first(args.x + image * args.x_image, args.rows);
      const float *dy = args.dy + image * args.dy_image + f0 * args.dy_step;
      for (std::size_t i = 0; i < args.count; i += kSumLanes) {
        const float *from = first.next(kSumLanes);
        unroll<kParts>([&](auto part) {
          Floats slope[filters];
          unroll<filters>([&](auto f) { slope[f] = load(dy + f * args.dy_step + i + part * kCount); });
          unroll<taps>([&](auto t) {
            const Floats v = load(from + args.offsets[t0 + t] + part * kCount);
            unroll<filters>([&](auto f) { sum[f][t][part] = Functions<bytes>::fma(slope[f], v, sum[f][t][part]); });
          });
        });
      }
    }
    unroll<filters>([&](auto f) {
      float *to = args.sums + (f0 + f) * args.sums_step + t0;
      unroll<taps>([&](auto t) { to[t] += sum_of(sum[f][t]); });
    });
  }

  template <int taps>
  static void correlate_taps(const CorrelateArgs &args, std::size_t t) {
    constexpr int kFilters = bytes == 64 ? 4 : 2;
    std::size_t f = 0;
    for (; f + kFilters <= args.filters; f += kFilters) correlate_block<kFilters, taps>(args, f, t);
    for (; f < args.filters; ++f) correlate_block<1, taps>(args, f, t);
  }

  static void correlate(const CorrelateArgs &args) {
    constexpr int kTaps = bytes == 64 ? 6 : bytes == 32 ? 3 : 2;
    std::size_t t = 0;
    for (; t + kTaps <= args.taps; t += kTaps) correlate_taps<kTaps>(args, t);
    if constexpr (kTaps > 3)
      for (; t + 3 <= args.taps; t += 3) correlate_taps<3>(args, t);
    for (; t < args.taps; ++t) correlate_taps<1>(args, t);
  }
};

}  // namespace
}  // namespace qtn::kernels
