// SPDX-License-Identifier: Apache-2.0
// Loops of gradients. A gradient without data is not wanted, and costs nothing.
#pragma once

#include <bit>
#include <utility>

#include "kernels/real/real.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {

/// condition ? a : b without a branch: what is in activations, no CPU predicts.
inline float choose(bool condition, float a, float b) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) | (std::bit_cast<std::uint32_t>(b) & ~mask));
}

/// dx = f(dy, t) element by element.
template <class F>
void map_gradient(const Tensor &dx, const Tensor &dy, const Tensor &t, F &&f) {
  if (!dx.has_data()) return;
  float *to = dx.as<float>();
  const float *slope = dy.as<const float>(), *at = t.as<const float>();
  for_blocks(dx.count(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = f(slope[i], at[i]);
  });
}

/// The gradient of an operator with one operand, dx = f(dy, x) or dx = f(dy, y).
template <class F>
void backward_by_input(const Backward &run, std::span<const Tensor> dx, F &&f) {
  map_gradient(dx[0], run.dy[0], *run.call.in(0), f);
}
template <class F>
void backward_by_output(const Backward &run, std::span<const Tensor> dx, F &&f) {
  map_gradient(dx[0], run.dy[0], run.outputs[0], f);
}

/// The gradient of an operator that bounds its operand: at a bound nothing passes, as in PyTorch's ReLU6.
inline void backward_of_bounds(const Backward &run, std::span<const Tensor> dx, float lo, float hi) {
  if (!dx[0].has_data()) return;
  const float *dy = run.dy[0].as<const float>(), *y = run.outputs[0].as<const float>();
  for_blocks(dx[0].count(), [&, gate = kernels::real_kernel().gate](std::int64_t begin, std::int64_t end) {
    gate({dy + begin, y + begin, lo, hi, dx[0].as<float>() + begin, static_cast<std::size_t>(end - begin)});
  });
}

/// Elements of several operands that are read together along a row.
template <std::size_t N>
struct OperandRow {
  std::array<const float *, N> at;
  std::array<std::int64_t, N> steps;

  /// take(i, f(element i of each operand)) for i in [0, count)
  template <class F, class Take>
  void map(std::int64_t count, F &&f, Take &&take) const {
    map(count, f, take, std::make_index_sequence<N>());
  }
  OperandRow from(std::int64_t i) const {
    OperandRow row = *this;
    for (std::size_t o = 0; o < N; ++o) row.at[o] += i * steps[o];
    return row;
  }

 private:
  template <class F, class Take, std::size_t... o>
  void map(std::int64_t count, F &&f, Take &&take, std::index_sequence<o...>) const {
    if (((steps[o] == 1) && ...))
      for (std::int64_t i = 0; i < count; ++i) take(i, f(at[o][i]...));
    else
      for (std::int64_t i = 0; i < count; ++i) take(i, f(at[o][i * steps[o]]...));
  }
};

/// Sums of f(operands) over the axes of a shape along which the elements of dx repeat; along the others each is its
/// own.
template <std::size_t N>
class BroadcastSum {
 public:
  /// strides[0] are those of dx.
  BroadcastSum(const Shape &shape, const std::array<Shape, N + 1> &strides,
               const std::array<const float *, N> &operands)
      : operands_(operands) {
    const Walk walk(shape, strides);
    for (std::size_t axis = 0; axis < walk.dims.size(); ++axis) {
      Axes &axes = walk.strides[0][axis] == 0 ? repeated_ : own_;
      axes.dims.push_back(walk.dims[axis]);
      for (std::size_t o = 0; o < N; ++o) axes.strides[o].push_back(walk.strides[o + 1][axis]);
    }
    last_repeats_ = walk.strides[0].back() == 0;
  }

  template <class F>
  void run(float *dx, F &&f) const {
    last_repeats_ ? sum_rows(dx, f) : add_rows(dx, f);
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  struct Axes {
    Shape dims;
    std::array<Shape, N> strides;

    std::int64_t rows() const { return element_count(dims, 0, dims.empty() ? 0 : dims.size() - 1); }
    std::int64_t length() const { return dims.empty() ? 1 : dims.back(); }
    /// The operands at place `index` of the first `count` of these axes.
    OperandRow<N> at(OperandRow<N> row, std::int64_t index, std::size_t count) const {
      for (std::size_t axis = count; axis-- > 0; index /= dims[axis])
        for (std::size_t o = 0; o < N; ++o) row.at[o] += index % dims[axis] * strides[o][axis];
      return row;
    }
    OperandRow<N> along_last(OperandRow<N> row) const {
      for (std::size_t o = 0; o < N; ++o) row.steps[o] = dims.empty() ? 0 : strides[o].back();
      return row;
    }
  };

  /// Each element of dx is a sum of whole rows.
  template <class F>
  void sum_rows(float *dx, F &&f) const {
    const std::int64_t length = repeated_.length(), rows = repeated_.rows();
    parallel_for(static_cast<std::size_t>(element_count(own_.dims)), [&](std::size_t index) {
      const OperandRow<N> place = own_.at({operands_, {}}, static_cast<std::int64_t>(index), own_.dims.size());
      float values[kBlock];
      double sum = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const OperandRow<N> row = repeated_.along_last(repeated_.at(place, r, repeated_.dims.size() - 1));
        for (std::int64_t begin = 0; begin < length; begin += kBlock) {
          const std::int64_t count = std::min(kBlock, length - begin);
          row.from(begin).map(count, f, [&](std::int64_t i, float value) { values[i] = value; });
          sum += sum_of(count, [&](std::int64_t i) { return values[i]; });
        }
      }
      dx[index] = static_cast<float>(sum);
    });
  }

  /// Rows of dx are sums of rows.
  template <class F>
  void add_rows(float *dx, F &&f) const {
    const std::int64_t length = own_.length(), blocks = (length + kBlock - 1) / kBlock;
    const std::int64_t repeats = element_count(repeated_.dims);
    parallel_for(static_cast<std::size_t>(own_.rows() * blocks), [&](std::size_t task) {
      const std::int64_t index = static_cast<std::int64_t>(task) / blocks,
                         begin = static_cast<std::int64_t>(task) % blocks * kBlock,
                         count = std::min(kBlock, length - begin);
      const OperandRow<N> place = own_.along_last(own_.at({operands_, {}}, index, own_.dims.size() - 1)).from(begin);
      double sums[kBlock] = {};
      for (std::int64_t r = 0; r < repeats; ++r)
        repeated_.at(place, r, repeated_.dims.size()).map(count, f, [&](std::int64_t i, float value) {
          sums[i] += static_cast<double>(value);
        });
      std::copy(sums, sums + count, dx + index * length + begin);
    });
  }

  std::array<const float *, N> operands_;
  Axes own_, repeated_;
  bool last_repeats_;
};

/// dx[i] = sum of f(dy, operands ...) over all places of dy at which element i of x is read under broadcasting.
template <class F, class... Operands>
void broadcast_gradient(const Tensor &dx, const Tensor &dy, F &&f, const Operands &...operands) {
  if (!dx.has_data()) return;
  constexpr std::size_t kCount = 1 + sizeof...(operands);
  const Shape &shape = dy.shape();
  float *to = dx.as<float>();
  if (dy.count() == 0) return void(std::fill_n(to, dx.count(), 0.0f));
  const std::array<Shape, kCount + 1> strides{steps_over(dx, shape), dy.strides(), steps_over(operands, shape)...};
  const std::array<const float *, kCount> from{dy.as<const float>(), operands.template as<const float>()...};
  if (dx.count() != dy.count()) return BroadcastSum<kCount>(shape, strides, from).run(to, f);
  for_rows(shape, strides, [&](const auto &at, const auto &steps, std::int64_t length) {
    OperandRow<kCount> row{from, {}};
    for (std::size_t o = 0; o < kCount; ++o) {
      row.at[o] += at[o + 1];
      row.steps[o] = steps[o + 1];
    }
    float *line = to + at[0];
    row.map(length, f, [line, step = steps[0]](std::int64_t i, float value) { line[i * step] = value; });
  });
}

/// The gradient of a term of a sum, which may be dy itself.
inline void term_gradient(const Tensor &dx, const Tensor &dy) {
  if (dx.data() != dy.data()) broadcast_gradient(dx, dy, [](float slope) { return slope; });
}

/// The shape under which a list of one number for each channel broadcasts to x.
inline Shape channel_shape(const Tensor &x) {
  Shape shape = x.shape();
  std::fill(shape.begin(), shape.end(), 1);
  if (x.rank() > 1) shape[1] = x.dim(1);
  return shape;
}

/// db[c] = sum of dy over all axes but 1.
inline void channel_gradient(const Tensor &db, const Tensor &dy) {
  if (db.has_data()) broadcast_gradient(db.reshaped(channel_shape(dy)), dy, [](float slope) { return slope; });
}

/// Contiguous float32, uninitialised, until the next take().
inline Tensor scratch_tensor(Scratch &scratch, const Shape &shape) {
  const auto size = static_cast<std::size_t>(element_count(shape)) * sizeof(float);
  return Tensor(QTN_FLOAT32, shape, contiguous_strides(shape), scratch.take(size), nullptr);
}

/// Where an operator has a gradient, but not with respect to this input.
inline void refuse_gradient(const char *op, const char *input, const Tensor &dx) {
  if (dx.has_data()) fail(QTN_EUNSUPPORTED, op, ": no gradient with respect to ", input);
}

}  // namespace qtn::ops
