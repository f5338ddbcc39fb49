// SPDX-License-Identifier: Apache-2.0
// The loops on vectors of doubles of any length.
#pragma once

#include <cmath>

#include "kernels/doubles.hpp"
#include "kernels/fold.hpp"
#include "kernels/real_functions.hpp"
#include "kernels/rows/rows.hpp"
#include "kernels/rows/turned.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

template <int bytes>
struct Rows : Vectors<bytes> {
  using typename Vectors<bytes>::Doubles;
  using typename Vectors<bytes>::Floats;
  using Vectors<bytes>::wide;
  using Vectors<bytes>::narrow;
  static constexpr std::size_t kCount = bytes / sizeof(double), kLanes = 8;
  static constexpr std::size_t kShortRow = 15;  // the longest of which a vector is taken to hold several
  static constexpr int kParts = kLanes / kCount;

  static Doubles wide(const float *p) { return wide(load(p)); }
  static Floats load(const float *p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }

  /// For each of some rows the sum of terms: vector(row, i) from i on, one(row, i) of the rest.
  template <int rows, class Vector, class One>
  [[gnu::always_inline]] static void sums(std::size_t count, const Vector &vector, const One &one,
                                          double (&totals)[rows]) {
    Doubles lanes[rows][kParts] = {};
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      unroll<kParts>([&](auto part) { unroll<rows>([&](auto r) { lanes[r][part] += vector(r, i + part * kCount); }); });
    for (double &total : totals) total = 0;
    for (; i < count; ++i) unroll<rows>([&](auto r) { totals[r] += one(r, i); });
    unroll<kParts>([&](auto part) {
      for (std::size_t lane = 0; lane < kCount; ++lane)
        unroll<rows>([&](auto r) { totals[r] += lanes[r][part][lane]; });
    });
  }

  template <class Vector, class One>
  [[gnu::always_inline]] static double sum(std::size_t count, const Vector &vector, const One &one) {
    double total[1];
    sums<1>(
        count, [&](auto, std::size_t i) { return vector(i); }, [&](auto, std::size_t i) { return one(i); }, total);
    return total[0];
  }

  static double sum(const float *x, std::size_t count) {
    return sum(
        count, [x](std::size_t i) { return wide(x + i); }, [x](std::size_t i) { return static_cast<double>(x[i]); });
  }

  /// What happens to scores before Softmax: see change().
  struct Nothing {
    static constexpr bool kChanges = false;
    template <class T>
    [[gnu::always_inline]] T operator()(T v, std::size_t, std::size_t) const {
      return v;
    }
  };
  struct Scaled {
    static constexpr bool kChanges = true;
    float factor;
    template <class T>
    [[gnu::always_inline]] T operator()(T v, std::size_t, std::size_t) const {
      return v * factor;
    }
  };
  struct ScaledAndMasked {
    static constexpr bool kChanges = true;
    float factor;
    const float *addend;
    std::ptrdiff_t row;
    template <class T>
    [[gnu::always_inline]] T operator()(T v, std::size_t r, std::size_t column) const {
      T other;
      __builtin_memcpy(&other, addend + static_cast<std::ptrdiff_t>(r) * row + column, sizeof other);
      return v * factor + other;
    }
  };

  /// y = f(x, row, column), and the largest of y. The last vector begins early enough to be whole, and is read before
  /// anything is written, because y may be x. Rows shorter than a vector are left to shorter ones.
  template <int size, class F>
  [[gnu::always_inline]] static float change(const float *x, float *y, std::size_t count, std::size_t row, const F &f) {
    using V = Functions<size>;
    if (count < V::kCount) {
      if constexpr (size > 16) return change<size / 2>(x, y, count, row, f);
      float top = f(x[0], row, 0);
      if constexpr (F::kChanges) y[0] = top;
      for (std::size_t i = 1; i < count; ++i) {
        const float v = f(x[i], row, i);
        if constexpr (F::kChanges) y[i] = v;
        top = v > top ? v : top;
      }
      return top;
    }
    const std::size_t last = count - V::kCount;
    typename V::Floats top = f(V::load(x + last), row, last);
    const typename V::Floats end = top;
    for (std::size_t i = 0; i < last; i += V::kCount) {
      const typename V::Floats v = f(V::load(x + i), row, i);
      if constexpr (F::kChanges) V::store(y + i, v);
      top = v > top ? v : top;
    }
    if constexpr (F::kChanges) V::store(y + last, end);
    return folded<float>(
        top, [](auto a, auto b) __attribute__((always_inline)) { return b > a ? b : a; });
  }

  /// The sum of a row: element i is added to float i % 16, and after every 512 of them these to double i % 8. What is
  /// beyond the last sixteen is added to doubles at once: see sum().
  struct Sums {
    Doubles lanes[kParts];
    double rest;

    double total() const {
      double total = rest;
      unroll<kParts>([&](auto part) {
        for (std::size_t lane = 0; lane < kCount; ++lane) total += lanes[part][lane];
      });
      return total;
    }
    [[gnu::always_inline]] void add(const float *x) {
      unroll<kParts>([&](auto part) { lanes[part] += wide(x + part * kCount); });
    }
  };

  struct FloatSums {
    static constexpr std::size_t kFloats = 16, kBlock = 512;
    static constexpr std::size_t kVectors = kFloats / Functions<bytes>::kCount;
    typename Functions<bytes>::Floats floats[kVectors];

    /// Vector `number` of those that begin at a multiple of 16.
    [[gnu::always_inline]] void add(typename Functions<bytes>::Floats v, std::size_t number) {
      floats[number % kVectors] += v;
    }
    [[gnu::always_inline]] void move_to(Sums &sums) {
      Floats halves[kFloats / kCount];
      __builtin_memcpy(halves, floats, sizeof halves);
      unroll<kFloats / kCount>([&](auto i) { sums.lanes[i % kParts] += wide(halves[i]); });
      *this = {};
    }
  };

  template <std::size_t count, class F>
  [[gnu::always_inline]] static void add_exponentials(const float *x, float *y, FloatSums &sums, const F &e) {
    using V = Functions<bytes>;
    unroll<count / V::kCount>([&](auto part) {
      const typename V::Floats v = e(V::load(x + part * V::kCount));
      V::store(y + part * V::kCount, v);
      sums.add(v, part);
    });
  }

  /// y = exp(x - top); y may be x.
  [[gnu::always_inline]] static Sums exponentials(const float *x, float *y, std::size_t count, float top) {
    using V = Functions<bytes>;
    constexpr std::size_t kStep = FloatSums::kFloats, kMany = 4 * V::kCount;  // many hide what each of them waits for
    Sums sums{};
    const auto e = [top](typename V::Floats v) { return V::brief_exp(v - top); };
    std::size_t i = 0;
    if (count < V::kCount) {
      V::map(x, y, count, e);
    } else {
      const typename V::Floats end = V::load(x + count - V::kCount);
      FloatSums floats{};
      for (std::size_t whole = count / kStep * kStep; i < whole;) {
        const std::size_t block = i + FloatSums::kBlock < whole ? i + FloatSums::kBlock : whole;
        for (; i + kMany <= block; i += kMany) add_exponentials<kMany>(x + i, y + i, floats, e);
        for (; i < block; i += kStep) add_exponentials<kStep>(x + i, y + i, floats, e);
        floats.move_to(sums);
      }
      if (i != count) {
        for (std::size_t j = i; j + V::kCount < count; j += V::kCount) V::store(y + j, e(V::load(x + j)));
        V::store(y + count - V::kCount, e(end));
      }
    }
    for (; i + kLanes <= count; i += kLanes) sums.add(y + i);
    for (; i < count; ++i) sums.rest += static_cast<double>(y[i]);
    return sums;
  }

  /// What becomes of a row of exponentials y of x - top: shares of their sum.
  struct Shares {
    static float of_sum(double total) { return static_cast<float>(1 / total); }
    static void finish(const float *, float *y, std::size_t columns, float, float share) {
      Functions<bytes>::map(y, y, columns, [share](typename Functions<bytes>::Floats v) { return v * share; });
    }
  };
  /// Or the logarithms of these shares.
  struct Logarithms {
    static float of_sum(double total) { return static_cast<float>(std::log(total)); }
    static void finish(const float *x, float *y, std::size_t columns, float top, float logarithm) {
      Functions<bytes>::map(x, y, columns, [=](typename Functions<bytes>::Floats v) { return v - top - logarithm; });
    }
  };

  /// Some rows at a time, step by step, so that what a step of a row waits for is hidden by those of others.
  template <class Result, class F>
  static void softmax_rows(const float *x, float *y, std::size_t rows, std::size_t columns, std::ptrdiff_t row,
                           const F &f) {
    constexpr std::size_t kMost = 16, kFloats = 4096;  // which stay in the first level of cache
    const std::size_t fit = kFloats / columns, block = fit < 1 ? 1 : fit > kMost ? kMost : fit;
    const float *from = F::kChanges ? y : x;
    float tops[kMost], of_sums[kMost];
    Sums sums[kMost];
    for (std::size_t first = 0; first < rows; first += block) {
      const std::size_t count = rows - first < block ? rows - first : block;
      const auto at = [&](std::size_t r) { return static_cast<std::ptrdiff_t>(first + r) * row; };
      for (std::size_t r = 0; r < count; ++r) tops[r] = change<bytes>(x + at(r), y + at(r), columns, first + r, f);
      for (std::size_t r = 0; r < count; ++r) sums[r] = exponentials(from + at(r), y + at(r), columns, tops[r]);
      for (std::size_t r = 0; r < count; ++r) of_sums[r] = Result::of_sum(sums[r].total());
      for (std::size_t r = 0; r < count; ++r) Result::finish(from + at(r), y + at(r), columns, tops[r], of_sums[r]);
    }
  }

  /// Softmax of elements `inner` apart, of as many neighbours as a vector has.
  static void softmax_beside(const float *x, float *y, std::size_t columns, std::size_t inner) {
    using V = Functions<bytes / 2>;
    Floats top = load(x);
    for (std::size_t k = 1; k < columns; ++k) {
      const Floats v = load(x + k * inner);
      top = v > top ? v : top;
    }
    Doubles total{};
    for (std::size_t k = 0; k < columns; ++k) {
      const Floats e = V::brief_exp(load(x + k * inner) - top);
      V::store(y + k * inner, e);
      total += wide(e);
    }
    const Doubles factor = 1 / total;
    for (std::size_t k = 0; k < columns; ++k) V::store(y + k * inner, narrow(wide(y + k * inner) * factor));
  }

  /// Rows of up to kShortRow, with the bits of softmax_rows().
  static void softmax_short_rows(const float *x, float *y, std::size_t rows, std::size_t columns) {
    using V = Functions<bytes / 2>;
    for_turned_rows<kShortRow, kCount>(x, y, rows, columns, [columns](float *turned) {
      Floats top = load(turned);
      for (std::size_t k = 1; k < columns; ++k) {
        const Floats v = load(turned + k * kCount);
        top = v > top ? v : top;
      }
      for (std::size_t k = 0; k < columns; ++k)
        V::store(turned + k * kCount, V::brief_exp(load(turned + k * kCount) - top));
      // As Sums adds them: those beyond the last eight first.
      const std::size_t lanes = columns / kLanes * kLanes;
      Doubles total{};
      for (std::size_t k = lanes; k < columns; ++k) total += wide(turned + k * kCount);
      for (std::size_t k = 0; k < lanes; ++k) total += wide(turned + k * kCount);
      const Floats factor = narrow(1 / total);
      for (std::size_t k = 0; k < columns; ++k) V::store(turned + k * kCount, load(turned + k * kCount) * factor);
      return turned;
    });
  }

  /// The last vector of neighbours begins early enough to be whole.
  static void softmax(const SoftmaxRowsArgs &args) {
    const std::size_t columns = args.columns, inner = args.inner;
    if (inner == 1 && columns <= kShortRow) return softmax_short_rows(args.x, args.y, args.outer, columns);
    if (inner == 1)
      return softmax_rows<Shares>(args.x, args.y, args.outer, columns, static_cast<std::ptrdiff_t>(columns), Nothing{});
    for (std::size_t o = 0; o < args.outer; ++o) {
      const float *x = args.x + o * columns * inner;
      float *y = args.y + o * columns * inner;
      for (std::size_t i = 0; i + kCount < inner; i += kCount) softmax_beside(x + i, y + i, columns, inner);
      softmax_beside(x + inner - kCount, y + inner - kCount, columns, inner);
    }
  }

  static void log_softmax(const SoftmaxRowsArgs &args) {
    softmax_rows<Logarithms>(args.x, args.y, args.outer, args.columns, static_cast<std::ptrdiff_t>(args.columns),
                             Nothing{});
  }

  static void score(const ScoreRowsArgs &args) {
    const auto run = [&](const auto &f) { softmax_rows<Shares>(args.x, args.x, args.rows, args.columns, args.row, f); };
    if (args.addend) return run(ScaledAndMasked{args.factor, args.addend, args.addend_row});
    args.factor == 1 ? run(Nothing{}) : run(Scaled{args.factor});
  }

  static void choose_scores(const ChooseScoresArgs &args) {
    using V = Functions<bytes>;
    using Bytes [[gnu::vector_size(V::kCount)]] = std::uint8_t;
    const std::int32_t no_or_yes = args.keeps ? -1 : 0;  // as vectors say it
    for (std::size_t r = 0; r < args.rows; ++r) {
      float *x = args.x + static_cast<std::ptrdiff_t>(r) * args.row;
      const std::uint8_t *chosen = args.chosen + static_cast<std::ptrdiff_t>(r) * args.chosen_row;
      std::size_t i = 0;
      for (; i + V::kCount <= args.columns; i += V::kCount) {
        Bytes some;
        __builtin_memcpy(&some, chosen + i, sizeof some);
        const auto kept = (__builtin_convertvector(some, typename V::Ints) != 0) == no_or_yes;
        V::store(x + i, kept ? V::load(x + i) * args.factor : V::all(args.filler));
      }
      for (; i < args.columns; ++i) x[i] = (chosen[i] != 0) == args.keeps ? x[i] * args.factor : args.filler;
    }
  }

  static void root_mean_square(const RootMeanSquareArgs &args) {
    const RowsArgs &r = args.rows;
    for (std::size_t index = 0; index < r.rows; ++index) {
      const float *x = r.x + index * r.columns;
      float *y = args.y + index * r.columns;
      const double squares = sum(
          r.columns, [x](std::size_t i) { return wide(x + i) * wide(x + i); },
          [x](std::size_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
      const Row row{0, 1 / std::sqrt(squares / static_cast<double>(r.columns) + r.epsilon)};
      if (args.rstd) args.rstd[index] = static_cast<float>(row.rstd);
      std::size_t i = 0;
      for (; i + kCount <= r.columns; i += kCount) {
        const Floats v = narrow(wide(x + i) * row.rstd) * load(r.scale + i);
        __builtin_memcpy(y + i, &v, sizeof v);
      }
      for (; i < r.columns; ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) * row.rstd) * r.scale[i];
    }
  }

  struct Row {
    double mean, rstd;
    float v(float x) const { return static_cast<float>((static_cast<double>(x) - mean) * rstd); }
    Floats v(const float *x) const { return narrow((wide(x) - mean) * rstd); }
  };

  /// Moments of rows without gaps.
  template <int rows>
  [[gnu::always_inline]] static void moments(const float *x, std::size_t count, RowMoments (&moments)[rows]) {
    const auto at = [&](auto row, std::size_t i) __attribute__((always_inline)) {
      return x + static_cast<std::size_t>(row) * count + i;
    };
    double means[rows], squares[rows];
    sums<rows>(
        count, [&](auto row, std::size_t i) { return wide(at(row, i)); },
        [&](auto row, std::size_t i) { return static_cast<double>(*at(row, i)); }, means);
    for (double &mean : means) mean /= static_cast<double>(count);
    sums<rows>(
        count,
        [&](auto row, std::size_t i) {
          const Doubles away = wide(at(row, i)) - means[row];
          return away * away;
        },
        [&](auto row, std::size_t i) {
          const double away = static_cast<double>(*at(row, i)) - means[row];
          return away * away;
        },
        squares);
    for (int row = 0; row < rows; ++row) moments[row] = {means[row], squares[row] / static_cast<double>(count)};
  }

  static RowMoments moments(const float *x, std::size_t count) {
    RowMoments one[1];
    moments<1>(x, count, one);
    return one[0];
  }

  static Row row_of(const RowsArgs &args, const float *x) {
    const RowMoments m = moments(x, args.columns);
    return {m.mean, 1 / std::sqrt(m.variance + args.epsilon)};
  }

  static void shift(const ShiftArgs &args) {
    std::size_t i = 0;
    for (; i + kCount <= args.count; i += kCount) {
      const Floats v = narrow((wide(args.x + i) - args.mean) * args.gain + args.shift);
      __builtin_memcpy(args.y + i, &v, sizeof v);
    }
    for (; i < args.count; ++i)
      args.y[i] = static_cast<float>((static_cast<double>(args.x[i]) - args.mean) * args.gain + args.shift);
  }

  template <int rows>
  static void normalize(const NormalizeRowsArgs &args, std::size_t first) {
    const RowsArgs &r = args.rows;
    const float *x = r.x + first * r.columns;
    float *y = args.y + first * r.columns;
    RowMoments moments_of[rows];
    Row row[rows];
    moments<rows>(x, r.columns, moments_of);
    for (int k = 0; k < rows; ++k) row[k] = {moments_of[k].mean, 1 / std::sqrt(moments_of[k].variance + r.epsilon)};
    std::size_t i = 0;
    for (; i + kCount <= r.columns; i += kCount)
      unroll<rows>([&](auto k) {
        Floats v = row[k].v(x + k * r.columns + i) * load(r.scale + i);
        if (args.shift) v += load(args.shift + i);
        __builtin_memcpy(y + k * r.columns + i, &v, sizeof v);
      });
    for (; i < r.columns; ++i)
      for (std::size_t k = 0; k < rows; ++k) {
        float &v = y[k * r.columns + i];
        v = row[k].v(x[k * r.columns + i]) * r.scale[i];
        if (args.shift) v += args.shift[i];
      }
  }

  /// Some rows at once, so that their sums do not wait for themselves.
  static void normalize(const NormalizeRowsArgs &args) {
    constexpr int kRows = bytes == 16 ? 2 : 4;
    std::size_t first = 0;
    for (; first + kRows <= args.rows.rows; first += kRows) normalize<kRows>(args, first);
    for (; first < args.rows.rows; ++first) normalize<1>(args, first);
  }

  static void add(double *sums, Floats v) {
    Doubles sum;
    __builtin_memcpy(&sum, sums, sizeof sum);
    sum += wide(v);
    __builtin_memcpy(sums, &sum, sizeof sum);
  }

  static void backward(const NormalizeRowsBackwardArgs &args) {
    const RowsArgs &r = args.rows;
    for (std::size_t index = 0; index < r.rows; ++index) {
      const float *x = r.x + index * r.columns, *dy = args.dy + index * r.columns;
      const Row row = row_of(r, x);
      const double slopes = sum(
          r.columns, [&](std::size_t i) { return wide(load(dy + i) * load(r.scale + i)); },
          [&](std::size_t i) { return static_cast<double>(dy[i] * r.scale[i]); });
      const double products = sum(
          r.columns,
          [&](std::size_t i) {
            const Floats v = row.v(x + i), slope = load(dy + i);
            add(args.d_scale + i, slope * v);
            add(args.d_shift + i, slope);
            return wide(slope * load(r.scale + i) * v);
          },
          [&](std::size_t i) {
            const float v = row.v(x[i]);
            args.d_scale[i] += static_cast<double>(dy[i] * v);
            args.d_shift[i] += static_cast<double>(dy[i]);
            return static_cast<double>(dy[i] * r.scale[i] * v);
          });
      if (!args.dx) continue;
      const auto count = static_cast<double>(r.columns);
      const auto mean = static_cast<float>(slopes / count), along = static_cast<float>(products / count),
                 rstd = static_cast<float>(row.rstd);
      float *dx = args.dx + index * r.columns;
      std::size_t i = 0;
      for (; i + kCount <= r.columns; i += kCount) {
        const Floats to = rstd * (load(dy + i) * load(r.scale + i) - mean - along * row.v(x + i));
        __builtin_memcpy(dx + i, &to, sizeof to);
      }
      for (; i < r.columns; ++i) dx[i] = rstd * (dy[i] * r.scale[i] - mean - along * row.v(x[i]));
    }
  }
};

}  // namespace
}  // namespace qtn::kernels
