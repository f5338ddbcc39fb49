// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent_gradient.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"activation_alpha", AttrSpec::kFloats},
                               {"activation_beta", AttrSpec::kFloats},
                               {"activations", AttrSpec::kStrings},
                               {"clip", AttrSpec::kFloat},
                               {"direction", AttrSpec::kString},
                               {"hidden_size", AttrSpec::kInt},
                               {"layout", AttrSpec::kInt},
                               {"linear_before_reset", AttrSpec::kInt}};

/// In the order of their matrices.
enum Gate { kUpdate, kReset, kHidden, kGates };

struct Sizes : Recurrent {
  explicit Sizes(const Call &call) : Recurrent("GRU", call, kGates, {"Sigmoid", "Tanh"}) {}
};

Types infer(const Call &call) {
  const Sizes r(call);
  const qdtype dtype = call.in(0)->dtype();
  Types types{{dtype, r.y_shape()}, {dtype, r.state_shape()}};
  types.resize(call.output_count);
  return types;
}

template <class T>
class Run {
 public:
  Run(const Call &call, const Recurrent &r)
      : call_(call),
        r_(r),
        lengths_("GRU", r, call.in(4)),
        linear_(call.attrs.get_int("linear_before_reset", 0) != 0) {}

  void run(std::size_t d, const Tensor &y, const Tensor &last, Pieces<T> &memory, const Tape<T> *tape) const {
    const Direction<T> direction(r_, call_, d, linear_ ? kHidden : kGates, memory);
    const T *bias = linear_ ? direction.recurrent_bias(kHidden) : nullptr;
    const GateActivation &f = r_.activation(d, 0), &g = r_.activation(d, 1);
    const std::int64_t size = r_.hidden;
    const std::span<T> h = direction.initial(call_.in(5), memory), gates = memory.zeros(2 * r_.batches * size),
                       reset = memory.zeros(r_.batches * size), candidate = memory.zeros(r_.batches * size);
    for (std::int64_t k = 0; k < r_.steps; ++k) {
      direction.recur(h, kUpdate, 2, gates);
      direction.for_batches(k, lengths_, Tensor(), [&](std::int64_t b, std::int64_t, const T *of_x, T *) {
        T *both = gates.data() + 2 * b * size;
        for (std::int64_t i = 0; i < 2 * size; ++i) both[i] += of_x[i];
        activate(f, r_.clip, both, 2 * size);
        // What the reset leaves of the state goes through the matrix; or it is applied to what comes from there.
        for (std::int64_t i = 0; i < size && !linear_; ++i)
          reset[static_cast<std::size_t>(b * size + i)] = both[size + i] * h[static_cast<std::size_t>(b * size + i)];
      });
      direction.recur(linear_ ? h : reset, kHidden, 1, candidate);
      direction.for_batches(k, lengths_, y, [&](std::int64_t b, std::int64_t row, const T *of_x, T *to) {
        const T *update = gates.data() + 2 * b * size, *kept = update + size;
        T *state = h.data() + b * size, *next = candidate.data() + b * size;
        for (std::int64_t i = 0; linear_ && bias && i < size; ++i) next[i] += bias[i];
        if (tape) tape->keep(tape->before, row, state);
        if (tape) tape->keep(tape->inner, row, linear_ ? next : reset.data() + b * size);
        for (std::int64_t i = 0; i < size; ++i) {
          if (linear_) next[i] *= kept[i];
          next[i] += of_x[kHidden * size + i];
        }
        activate(g, r_.clip, next, size);
        if (tape) tape->keep_gates(row, kUpdate, 2, update);
        if (tape) tape->keep_gates(row, kHidden, 1, next);
        for (std::int64_t i = 0; i < size; ++i) state[i] = (1 - update[i]) * next[i] + update[i] * state[i];
        if (to) std::copy_n(state, size, to);
      });
    }
    if (last.has_data()) direction.store(h, last);
  }

 private:
  const Call &call_;
  const Recurrent &r_;
  Lengths lengths_;
  bool linear_;
};

template <class T>
void run_as(const Call &call, std::span<Tensor> outputs) {
  const Ready<Sizes> sizes(call);
  const Recurrent &r = *sizes;
  const Run<T> run(call, r);
  Pieces<T> memory(call.scratch, r.work_size());
  const Tensor y = wanted_output(outputs, 0);
  clear(y);
  for (std::size_t d = 0; d < r.directions; ++d, memory.reuse())
    run.run(d, y, wanted_output(outputs, 1), memory, nullptr);
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? run_as<double>(call, outputs) : run_as<float>(call, outputs);
}

/// `products`: the gradient of reset * state, which the matrix of the candidate multiplies where the reset comes first.
void walk_back(const Recurrent &r, std::size_t d, bool linear, const Tape<float> &tape, TimeGradient &time,
               std::span<float> products) {
  const GateActivation &f = r.activation(d, 0), &g = r.activation(d, 1);
  const std::int64_t size = r.hidden;
  for (std::int64_t k = r.steps; k-- > 0;) {
    time.for_batches(k, [&](std::int64_t b, std::int64_t row) {
      const float *update = tape.gates.data() + row * kGates * size, *candidate = update + kHidden * size;
      const float *before = tape.before.data() + row * size;
      float *state = time.state(b), *slopes = time.of_x(row);
      for (std::int64_t i = 0; i < size; ++i) {
        slopes[kUpdate * size + i] = state[i] * (before[i] - candidate[i]) * f.slope(update[i]);
        slopes[kHidden * size + i] = state[i] * (1 - update[i]) * g.slope(candidate[i]);
        state[i] *= update[i];
      }
      std::copy_n(slopes, kGates * size, time.of_state(row));
    });
    std::fill(products.begin(), products.end(), 0.0f);
    if (!linear) time.through_matrices(k, kHidden, 1, products);
    time.again(k, [&](std::int64_t b, std::int64_t row) {
      const float *reset = tape.gates.data() + (row * kGates + kReset) * size, *inner = tape.inner.data() + row * size,
                  *before = tape.before.data() + row * size, *product = products.data() + b * size;
      float *state = time.state(b), *slopes = time.of_x(row), *others = time.of_state(row);
      for (std::int64_t i = 0; i < size; ++i) {
        const float candidate = slopes[kHidden * size + i];
        slopes[kReset * size + i] = (linear ? candidate * inner[i] : product[i] * before[i]) * f.slope(reset[i]);
        others[kReset * size + i] = slopes[kReset * size + i];
        if (linear) others[kHidden * size + i] = candidate * reset[i];
        state[i] += product[i] * reset[i];
      }
    });
    time.through_matrices(k, linear ? kGates : kHidden);
  }
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Ready<Sizes> sizes(run.call);
  const Recurrent &r = *sizes;
  require_gradient("GRU", r);
  const bool linear = run.call.attrs.get_int("linear_before_reset", 0) != 0;
  const Lengths lengths("GRU", r, run.call.in(4));
  Pieces<float> memory(&run.scratch, gradient_work_size(r));
  for (std::size_t d = 0; d < r.directions; ++d, memory.reuse()) {
    const Tape<float> tape(r, memory);
    Run<float>(run.call, r).run(d, {}, {}, memory, &tape);
    TimeGradient time(r, run, d, lengths, memory);
    walk_back(r, d, linear, tape, time, memory.zeros(r.batches * r.hidden));
    time.finish(tape.before, linear ? kGates : kHidden, tape.inner, dx);
  }
}

}  // namespace

const OpDef kGRU{.name = "GRU",
                 .min_inputs = 3,
                 .max_inputs = 6,
                 .max_outputs = 2,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .prepare = prepare<Sizes>,
                 .backward = backward,
                 .keeps = {.inputs = {0, 6}},
                 .weights = {1, 2},
                 .offsets = {3, 1},
                 .work = recurrent_work};

}  // namespace qtn::ops
