// SPDX-License-Identifier: Apache-2.0
// What LSTM, GRU and RNN share: their operands, and the walk of each direction over its steps.
#pragma once

#include "base/parallel.hpp"
#include "blas/gemm.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/gate_activation.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/prepared.hpp"

namespace qtn::ops {

/// Sizes and meaning of a call: inputs X, W, R, B, sequence_lens, initial_h. What LSTM, GRU and RNN prepare is one.
struct Recurrent : Prepared {
  /// Checks what the operators share. `gates`: matrices in W and R; `defaults`: activations of one direction.
  Recurrent(const char *op, const Call &call, std::int64_t gates, const std::vector<std::string> &defaults);

  /// The shape of Y, and that of Y_h or a state.
  Shape y_shape() const;
  Shape state_shape() const;
  void check_state(const char *op, const char *name, const Tensor *t) const;

  const GateActivation &activation(std::size_t direction, std::size_t i) const {
    return activations[direction * (activations.size() / directions) + i];
  }
  bool backwards(std::size_t direction) const { return reverse || direction == 1; }

  /// Which step of X is the k-th that a direction takes, of a sequence of `length` steps.
  std::int64_t step(std::size_t direction, std::int64_t k, std::int64_t length) const {
    return backwards(direction) ? length - 1 - k : k;
  }

  /// Where X, Y and states have what belongs to step t of batch b: in rows of X, and in elements.
  std::int64_t row(std::int64_t b, std::int64_t t) const { return by_batch ? b * steps + t : t * batches + b; }
  std::int64_t y_at(std::size_t direction, std::int64_t b, std::int64_t t) const {
    const auto count = static_cast<std::int64_t>(directions), d = static_cast<std::int64_t>(direction);
    return (by_batch ? (b * steps + t) * count + d : (t * count + d) * batches + b) * hidden;
  }
  std::int64_t state_at(std::size_t direction, std::int64_t b) const {
    const auto count = static_cast<std::int64_t>(directions), d = static_cast<std::int64_t>(direction);
    return (by_batch ? b * count + d : d * batches + b) * hidden;
  }

  std::int64_t steps, batches, features, hidden, gates;
  std::size_t directions;
  bool reverse, by_batch;  ///< layout 1: batches are outermost
  double clip;
  std::vector<GateActivation> activations;

  std::int64_t rows() const { return steps * batches; }
  /// Elements that a direction of a run needs: products of x, what the gates of a step read, and four states at most.
  std::int64_t work_size() const { return rows() * gates * hidden + batches * hidden * (gates + 4); }
};

/// The lengths of sequences: all steps where the input is absent.
class Lengths {
 public:
  /// Throws QTN_EINVAL where a sequence is longer than x.
  Lengths(const char *op, const Recurrent &r, const Tensor *given);
  std::int64_t operator[](std::int64_t b) const { return given_ ? given_[b] : steps_; }
  bool differ() const { return given_ != nullptr; }

 private:
  const std::int32_t *given_;
  std::int64_t steps_;
};

/// Memory of a call, of one piece: that of a caller which repeats the call, or its own.
template <class T>
class Pieces {
 public:
  Pieces(Scratch *scratch, std::int64_t count)
      : count_(count),
        at_(reinterpret_cast<T *>((scratch ? *scratch : own_).take(static_cast<std::size_t>(count) * sizeof(T)))) {}

  std::span<T> zeros(std::int64_t count) {
    if (count > count_ - taken_) fail(QTN_EINTERNAL, "recurrent: ", taken_ + count, " of ", count_, " elements");
    const std::span<T> piece(at_ + taken_, static_cast<std::size_t>(count));
    taken_ += count;
    std::fill(piece.begin(), piece.end(), T(0));
    return piece;
  }
  /// For the next direction.
  void reuse() { taken_ = 0; }

 private:
  Scratch own_;
  std::int64_t count_, taken_ = 0;
  T *at_;
};

/// y [rows][width] = (y +) x [rows][depth] times w [width][depth] transposed. Floats do without BLAS, which
/// starts threads when it is loaded and packs, at every step, the weights that a step reads once.
template <class T>
void multiply_rows(std::int64_t rows, std::int64_t width, std::int64_t depth, const T *x, const T *w, bool adds, T *y) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr std::int64_t kTaskWork = std::int64_t{1} << 20;
    const std::int64_t step = std::max<std::int64_t>(16, kTaskWork / std::max<std::int64_t>(1, rows * depth) / 16 * 16);
    const auto tasks = static_cast<std::size_t>((width + step - 1) / step);
    parallel_for(tasks, [&, products = kernels::rows_kernel().products](std::size_t task) {
      const std::int64_t first = static_cast<std::int64_t>(task) * step, count = std::min(step, width - first);
      products({x, static_cast<std::size_t>(rows), w + first * depth, static_cast<std::size_t>(count),
                static_cast<std::size_t>(depth), y + first, static_cast<std::size_t>(width), adds});
    });
  } else {
    blas::gemm(rows, width, depth, T(1), x, {depth}, w, {depth, true}, T(adds), y, width);
  }
}

/// One direction of a run on elements T.
template <class T>
class Direction {
 public:
  /// The bias of the recurrence goes with the products of x for the first `joint` gates.
  Direction(const Recurrent &r, const Call &call, std::size_t direction, std::int64_t joint, Pieces<T> &memory)
      : r_(r),
        direction_(direction),
        recurrence_(call.in(2)->as<const T>() + at(r.gates * r.hidden * r.hidden)),
        bias_(call.in(3) ? call.in(3)->as<const T>() + at(2 * r.gates * r.hidden) : nullptr),
        products_(memory.zeros(r.steps * r.batches * r.gates * r.hidden)) {
    // What comes from x does not wait for other steps.
    const std::int64_t width = r.gates * r.hidden;
    for (std::int64_t row = 0; bias_ && row < r.steps * r.batches; ++row)
      for (std::int64_t i = 0; i < width; ++i)
        products_[static_cast<std::size_t>(row * width + i)] =
            i < joint * r.hidden ? bias_[i] + bias_[width + i] : bias_[i];
    multiply_rows(r.steps * r.batches, width, r.features, call.in(0)->as<const T>(),
                  call.in(1)->as<const T>() + at(width * r.features), true, products_.data());
  }

  /// The state at the beginning: [batch][hidden].
  std::span<T> initial(const Tensor *given, Pieces<T> &memory) const {
    const std::span<T> state = memory.zeros(r_.batches * r_.hidden);
    if (given)
      for (std::int64_t b = 0; b < r_.batches; ++b)
        std::copy_n(given->as<const T>() + r_.state_at(direction_, b), r_.hidden, state.data() + b * r_.hidden);
    return state;
  }
  void store(std::span<const T> state, const Tensor &to) const {
    for (std::int64_t b = 0; b < r_.batches; ++b)
      std::copy_n(state.data() + b * r_.hidden, r_.hidden, to.as<T>() + r_.state_at(direction_, b));
  }

  /// out [batch][count * hidden] = state times the matrices of gates [first, first + count), transposed.
  void recur(std::span<const T> state, std::int64_t first, std::int64_t count, std::span<T> out) const {
    multiply_rows(r_.batches, count * r_.hidden, r_.hidden, state.data(), recurrence_ + first * r_.hidden * r_.hidden,
                  false, out.data());
  }

  /// Calls step(batch, row of X, gates of x, place in Y or nullptr) for the batches that have a k-th step, in the order
  /// of this direction.
  template <class Step>
  void for_batches(std::int64_t k, const Lengths &lengths, const Tensor &y, Step &&step) const {
    for (std::int64_t b = 0; b < r_.batches; ++b) {
      const std::int64_t length = lengths[b];
      if (k >= length) continue;
      const std::int64_t t = r_.step(direction_, k, length), row = r_.row(b, t);
      step(b, row, products_.data() + row * r_.gates * r_.hidden,
           y.has_data() ? y.as<T>() + r_.y_at(direction_, b, t) : nullptr);
    }
  }

  /// The bias of the recurrence, or nullptr.
  const T *recurrent_bias(std::int64_t gate) const { return bias_ ? bias_ + (r_.gates + gate) * r_.hidden : nullptr; }

  std::int64_t at(std::int64_t size) const { return static_cast<std::int64_t>(direction_) * size; }

 private:
  const Recurrent &r_;
  std::size_t direction_;
  const T *recurrence_, *bias_;
  std::span<T> products_;
};

/// OpDef::work: each step multiplies by all weights of its direction.
inline double recurrent_work(const Call &call) {
  return static_cast<double>(call.in(1)->count() + call.in(2)->count());
}

/// Output i, or an empty tensor where it is not wanted.
inline Tensor wanted_output(std::span<const Tensor> outputs, std::size_t i) {
  return i < outputs.size() && outputs[i].has_data() ? outputs[i] : Tensor();
}

/// Steps beyond the length of a sequence give zeros.
inline void clear(const Tensor &y) {
  if (y.has_data()) std::fill_n(y.as<std::byte>(), y.nbytes(), std::byte{0});
}

}  // namespace qtn::ops
