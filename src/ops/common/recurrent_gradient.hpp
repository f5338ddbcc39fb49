// SPDX-License-Identifier: Apache-2.0
// What the gradients of LSTM, GRU and RNN share: the walk back over the steps of a direction, in float32.
#pragma once

#include "ops/common/recurrent.hpp"

namespace qtn::ops {

/// What the steps of a direction made, by row of X. Rows of no step hold zeros.
template <class T>
struct Tape {
  Tape(const Recurrent &r, Pieces<T> &memory)
      : hidden(r.hidden),
        width(r.gates * r.hidden),
        before(memory.zeros(r.rows() * hidden)),
        inner(memory.zeros(r.rows() * hidden)),
        after(memory.zeros(r.rows() * hidden)),
        gates(memory.zeros(r.rows() * width)) {}

  void keep(std::span<T> states, std::int64_t row, const T *from) const {
    std::copy_n(from, hidden, states.data() + row * hidden);
  }
  void keep_gates(std::int64_t row, std::int64_t first, std::int64_t count, const T *from) const {
    std::copy_n(from, count * hidden, gates.data() + row * width + first * hidden);
  }

  std::int64_t hidden, width;
  std::span<T> before;  ///< [row][hidden]: the state
  std::span<T> inner;   ///< LSTM: the cell before. GRU: the other factor of the reset gate
  std::span<T> after;   ///< LSTM: the cell
  std::span<T> gates;   ///< [row][gates][hidden], behind their activations
};

/// Elements that a gradient needs for a direction: those of a run, its tape, slopes, and three states.
inline std::int64_t gradient_work_size(const Recurrent &r) {
  const std::int64_t width = r.gates * r.hidden;
  return r.work_size() + r.rows() * 3 * (r.hidden + width) + r.batches * (width + 3 * r.hidden);
}

/// The gradients of one direction: `slopes` of what the activations of gates read, which a cell computes from the last
/// step to the first, and from them those of all inputs.
class TimeGradient {
 public:
  TimeGradient(const Recurrent &r, const Backward &run, std::size_t direction, const Lengths &lengths,
               Pieces<float> &memory)
      : r_(r),
        run_(run),
        direction_(direction),
        lengths_(lengths),
        width_(r.gates * r.hidden),
        of_x_(memory.zeros(r.rows() * width_)),
        of_state_(memory.zeros(r.rows() * width_)),
        step_(memory.zeros(r.batches * width_)),
        state_(last(1, memory)) {}

  /// The gradient of output i, a state after the last step: [batch][hidden].
  std::span<float> last(std::size_t i, Pieces<float> &memory) const {
    const std::span<float> slopes = memory.zeros(r_.batches * r_.hidden);
    if (i < run_.dy.size() && run_.dy[i].has_data())
      for (std::int64_t b = 0; b < r_.batches; ++b)
        std::copy_n(run_.dy[i].as<const float>() + r_.state_at(direction_, b), r_.hidden,
                    slopes.data() + b * r_.hidden);
    return slopes;
  }

  /// The gradient of the state of batch b: behind a step while it is walked back, then before it.
  float *state(std::int64_t b) { return state_.data() + b * r_.hidden; }

  /// The slopes of what the gates of a row read: what X gives, and what the state gives.
  float *of_x(std::int64_t row) { return of_x_.data() + row * width_; }
  float *of_state(std::int64_t row) { return of_state_.data() + row * width_; }

  /// Calls cell(batch, row) for the batches that have a k-th step, after adding the gradient of Y to that of the state.
  template <class Cell>
  void for_batches(std::int64_t k, Cell &&cell) {
    for (std::int64_t b = 0; b < r_.batches; ++b) {
      const std::int64_t length = lengths_[b];
      if (k >= length) continue;
      const std::int64_t t = r_.step(direction_, k, length);
      if (run_.dy[0].has_data()) {
        const float *dy = run_.dy[0].as<const float>() + r_.y_at(direction_, b, t);
        for (std::int64_t i = 0; i < r_.hidden; ++i) state(b)[i] += dy[i];
      }
      cell(b, r_.row(b, t));
    }
  }

  /// The same without the gradient of Y, for what a cell does in a second pass.
  template <class Cell>
  void again(std::int64_t k, Cell &&cell) {
    for (std::int64_t b = 0; b < r_.batches; ++b)
      if (const std::int64_t length = lengths_[b]; k < length) cell(b, r_.row(b, r_.step(direction_, k, length)));
  }

  /// to [batch][hidden] += the slopes of_state() of the k-th step times the matrices of gates [first, first + count).
  void through_matrices(std::int64_t k, std::int64_t first, std::int64_t count, std::span<float> to) {
    const std::int64_t depth = count * r_.hidden;
    std::fill(step_.begin(), step_.end(), 0.0f);
    again(k, [&](std::int64_t b, std::int64_t row) {
      std::copy_n(of_state(row) + first * r_.hidden, depth, step_.data() + b * depth);
    });
    blas::gemm(r_.batches, r_.hidden, depth, 1.0f, step_.data(), {depth},
               matrices(2, r_.hidden) + first * r_.hidden * r_.hidden, {r_.hidden}, 1.0f, to.data(), r_.hidden);
  }
  void through_matrices(std::int64_t k, std::int64_t count) { through_matrices(k, 0, count, state_); }

  /// Writes the gradients of all inputs but initial_c. `states` are what the matrices of R multiplied, for gates
  /// before `own`; `others` for those from there on.
  void finish(std::span<const float> states, std::int64_t own, std::span<const float> others,
              std::span<const Tensor> dx) const {
    const std::int64_t rows = r_.rows();
    if (dx[0].has_data())
      blas::gemm(rows, r_.features, width_, 1.0f, of_x_.data(), {width_}, matrices(1, r_.features), {r_.features},
                 direction_ == 0 ? 0.0f : 1.0f, dx[0].as<float>(), r_.features);
    if (dx[1].has_data())
      blas::gemm(width_, r_.features, rows, 1.0f, of_x_.data(), {width_, true}, run_.call.in(0)->as<const float>(),
                 {r_.features}, 0.0f, dx[1].as<float>() + part(width_ * r_.features), r_.features);
    if (dx[2].has_data()) {
      multiply_states(0, own, states, dx[2]);
      multiply_states(own, r_.gates, others, dx[2]);
    }
    if (dx.size() > 3 && dx[3].has_data()) {
      float *to = dx[3].as<float>() + part(2 * width_);
      add_up(of_x_, to);
      add_up(of_state_, to + width_);
    }
    store(5, state_, dx);
  }

  /// Writes the gradient of input i, a state at the beginning.
  void store(std::size_t i, std::span<const float> slopes, std::span<const Tensor> dx) const {
    if (i >= dx.size() || !dx[i].has_data()) return;
    for (std::int64_t b = 0; b < r_.batches; ++b)
      std::copy_n(slopes.data() + b * r_.hidden, r_.hidden, dx[i].as<float>() + r_.state_at(direction_, b));
  }

 private:
  std::int64_t part(std::int64_t size) const { return static_cast<std::int64_t>(direction_) * size; }
  const float *matrices(std::size_t input, std::int64_t depth) const {
    return run_.call.in(input)->as<const float>() + part(width_ * depth);
  }

  void multiply_states(std::int64_t first, std::int64_t end, std::span<const float> states, const Tensor &to) const {
    if (first == end) return;
    blas::gemm((end - first) * r_.hidden, r_.hidden, r_.rows(), 1.0f, of_state_.data() + first * r_.hidden,
               {width_, true}, states.data(), {r_.hidden}, 0.0f,
               to.as<float>() + part(width_ * r_.hidden) + first * r_.hidden * r_.hidden, r_.hidden);
  }

  void add_up(std::span<const float> slopes, float *to) const {
    for (std::int64_t i = 0; i < width_; ++i) {
      double sum = 0;
      for (std::int64_t row = 0; row < r_.rows(); ++row)
        sum += static_cast<double>(slopes[static_cast<std::size_t>(row * width_ + i)]);
      to[i] = static_cast<float>(sum);
    }
  }

  const Recurrent &r_;
  const Backward &run_;
  const std::size_t direction_;
  const Lengths &lengths_;
  const std::int64_t width_;
  std::span<float> of_x_, of_state_, step_, state_;
};

/// Throws QTN_EUNSUPPORTED on a clip, whose bounds the results of activations do not show.
inline void require_gradient(const char *op, const Recurrent &r) {
  if (r.clip < std::numeric_limits<double>::infinity()) fail(QTN_EUNSUPPORTED, op, ": no gradient with clip ", r.clip);
}

}  // namespace qtn::ops
