// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/gptq.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "base/stable_order.hpp"
#include "blas/gemm.hpp"

namespace qtn::quant {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr std::int64_t kRows = 8;  // that are rounded side by side
constexpr int kAttempts = 4;       // each with more damping, where rounding leaves no root
constexpr double kMoreDamping = 10;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// H = L L', or nullopt where rounding has made H indefinite. Only the lower triangle is read and written.
class Cholesky {
 public:
  static std::optional<Cholesky> of(std::vector<float> h, std::int64_t size) {
    Cholesky factor(std::move(h), size);
    for (std::int64_t begin = 0; begin < size; begin += kBlock)
      if (!factor.add_columns(begin, std::min(begin + kBlock, size))) return std::nullopt;
    return factor;
  }

  const float *row(std::int64_t i) const { return l_.data() + i * size_; }
  float at(std::int64_t i, std::int64_t j) const { return row(i)[j]; }
  std::int64_t size() const { return size_; }

 private:
  Cholesky(std::vector<float> h, std::int64_t size) : l_(std::move(h)), size_(size) {}

  bool add_columns(std::int64_t begin, std::int64_t end) {
    float *l = l_.data();
    blas::gemm(size_ - begin, end - begin, begin, -1.0f, l + begin * size_, {size_}, l + begin * size_, {size_, true},
               1.0f, l + begin * size_ + begin, size_);
    for (std::int64_t i = begin; i < end; ++i)
      if (!finish(i, begin, i + 1)) return false;
    parallel_for(index(size_ - end), [&](std::size_t i) { finish(end + static_cast<std::int64_t>(i), begin, end); });
    return true;
  }

  /// Row i of the columns from `begin` to `end`, of which it takes those before it off. false: a root of no number.
  bool finish(std::int64_t i, std::int64_t begin, std::int64_t end) {
    float *to = l_.data() + i * size_;
    for (std::int64_t j = begin; j < end; ++j) {
      double sum = static_cast<double>(to[j]);
      for (std::int64_t k = begin; k < j; ++k) sum -= static_cast<double>(to[k]) * static_cast<double>(at(j, k));
      if (i == j && !(sum > 0)) return false;
      to[j] = static_cast<float>(i == j ? std::sqrt(sum) : sum / static_cast<double>(at(j, j)));
    }
    return true;
  }

  std::vector<float> l_;
  std::int64_t size_;
};

/// Inputs in the order in which they are rounded, last to first: those that tell most have all others left to make up
/// for them.
std::vector<std::int64_t> order_of(const RoundingProblem &p) {
  const auto told = [&](std::size_t k) {
    return p.qq[p.at(static_cast<std::int64_t>(k), static_cast<std::int64_t>(k))];
  };
  const std::vector<std::size_t> order =
      stable_order(index(p.depth), [&](std::size_t a, std::size_t b) { return told(a) < told(b); });
  return {order.begin(), order.end()};
}

/// ŵ (QQ + d) ŵ' - 2 ŵ (QY + d w), with a damping d that keeps weights where they are as far as the data says nothing,
/// is |ŵ L - c|² with L L' = QQ + d and c L' = QY' + d w, except for a constant. Column j of ŵ L reads ŵ from j on, so
/// that, from the last one, each integer is the nearest to what its column still misses.
class Feedback {
 public:
  explicit Feedback(const RoundingProblem &p) : p_(p), order_(order_of(p)) {}

  std::optional<std::vector<std::int64_t>> solve(double damping) {
    std::optional<Cholesky> factor = Cholesky::of(damped(damping), p_.depth);
    if (!factor) return std::nullopt;
    missing_ = targets(damping);
    forward(*factor);
    integers_.resize(p_.weights.size());
    rounded_.assign(p_.weights.size(), 0);
    for (std::int64_t end = p_.depth; end > 0; end = (end - 1) / kBlock * kBlock)
      round_columns(*factor, (end - 1) / kBlock * kBlock, end);
    return std::move(integers_);
  }

 private:
  std::vector<float> damped(double damping) const {
    std::vector<float> h(index(p_.depth * p_.depth));
    for (std::int64_t i = 0; i < p_.depth; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) h[p_.at(i, j)] = p_.qq[p_.at(order_[index(i)], order_[index(j)])];
      h[p_.at(i, i)] += static_cast<float>(damping);
    }
    return h;
  }

  std::vector<float> targets(double damping) const {
    std::vector<float> t(p_.weights.size());
    for (std::int64_t r = 0; r < p_.outputs; ++r)
      for (std::int64_t j = 0; j < p_.depth; ++j) {
        const std::int64_t k = order_[index(j)];
        t[p_.at(r, j)] = p_.qy[index(k * p_.outputs + r)] + static_cast<float>(damping) * p_.weights[p_.at(r, k)];
      }
    return t;
  }

  /// missing_ becomes c.
  void forward(const Cholesky &l) {
    for (std::int64_t begin = 0; begin < p_.depth; begin += kBlock) {
      const std::int64_t end = std::min(begin + kBlock, p_.depth);
      blas::gemm(p_.outputs, end - begin, begin, -1.0f, missing_.data(), {p_.depth}, l.row(begin), {p_.depth, true},
                 1.0f, missing_.data() + begin, p_.depth);
      parallel_for(index(p_.outputs), [&](std::size_t r) {
        float *c = missing_.data() + static_cast<std::int64_t>(r) * p_.depth;
        for (std::int64_t j = begin; j < end; ++j) {
          double sum = static_cast<double>(c[j]);
          for (std::int64_t k = begin; k < j; ++k) sum -= static_cast<double>(c[k]) * static_cast<double>(l.at(j, k));
          c[j] = static_cast<float>(sum / static_cast<double>(l.at(j, j)));
        }
      });
    }
  }

  void round_columns(const Cholesky &l, std::int64_t begin, std::int64_t end) {
    if (end < p_.depth)
      blas::gemm(p_.outputs, end - begin, p_.depth - end, -1.0f, rounded_.data() + end, {p_.depth}, l.row(end) + begin,
                 {p_.depth}, 1.0f, missing_.data() + begin, p_.depth);
    // By columns: factors[j][i] is L[begin + i][begin + j].
    std::vector<float> factors(index(kBlock * kBlock));
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = begin; j <= i; ++j) factors[index((j - begin) * kBlock + i - begin)] = l.at(i, j);
    parallel_for(ceil_div(index(p_.outputs), index(kRows)), [&](std::size_t part) {
      const std::int64_t first = static_cast<std::int64_t>(part) * kRows;
      round_rows(factors, first, std::min(kRows, p_.outputs - first), begin, end);
    });
  }

  /// Some rows side by side, whose sums do not wait for one another.
  void round_rows(const std::vector<float> &factors, std::int64_t first, std::int64_t rows, std::int64_t begin,
                  std::int64_t end) {
    double rounded[kBlock][kRows] = {};
    for (std::int64_t j = end - begin; j-- > 0;) {
      const float *factor = factors.data() + j * kBlock;
      double sums[kRows] = {};
      for (std::int64_t r = 0; r < rows; ++r) sums[r] = static_cast<double>(missing_[p_.at(first + r, begin + j)]);
      for (std::int64_t i = j + 1; i < end - begin; ++i)
        for (std::int64_t r = 0; r < kRows; ++r) sums[r] -= rounded[i][r] * static_cast<double>(factor[i]);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::size_t element = p_.at(first + r, order_[index(begin + j)]);
        integers_[element] = p_.nearest(element, static_cast<float>(sums[r] / static_cast<double>(factor[j])));
        const float real = p_.real(element, integers_[element]);
        rounded_[p_.at(first + r, begin + j)] = real;
        rounded[j][r] = static_cast<double>(real);
      }
    }
  }

  const RoundingProblem &p_;
  const std::vector<std::int64_t> order_;
  std::vector<float> missing_, rounded_;  // [outputs][depth], in the order
  std::vector<std::int64_t> integers_;
};

}  // namespace

std::vector<std::int64_t> round_with_feedback(const RoundingProblem &problem, double damping) {
  double mean = 0;
  for (std::int64_t k = 0; k < problem.depth; ++k)
    mean += static_cast<double>(problem.qq[problem.at(k, k)]) / static_cast<double>(problem.depth);
  std::optional<std::vector<std::int64_t>> integers;
  Feedback feedback(problem);
  for (int attempt = 0; !integers && attempt < kAttempts; ++attempt, damping *= kMoreDamping)
    integers = feedback.solve(damping * mean);
  if (!integers) return nearest_integers(problem);
  keep_better_rows(problem, *integers);
  return std::move(*integers);
}

}  // namespace qtn::quant
