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
                               {"layout", AttrSpec::kInt}};

struct Sizes : Recurrent {
  explicit Sizes(const Call &call) : Recurrent("RNN", call, 1, {"Tanh"}) {}
};

Types infer(const Call &call) {
  const Sizes r(call);
  const qdtype dtype = call.in(0)->dtype();
  Types types{{dtype, r.y_shape()}, {dtype, r.state_shape()}};
  types.resize(call.output_count);
  return types;
}

template <class T>
void run_direction(const Call &call, const Recurrent &r, std::size_t d, const Lengths &lengths, const Tensor &y,
                   const Tensor &last, Pieces<T> &memory, const Tape<T> *tape) {
  const std::span<T> sums = memory.zeros(r.batches * r.hidden);
  const Direction<T> direction(r, call, d, 1, memory);
  const std::span<T> h = direction.initial(call.in(5), memory);
  for (std::int64_t k = 0; k < r.steps; ++k) {
    direction.recur(h, 0, 1, sums);
    direction.for_batches(k, lengths, y, [&](std::int64_t b, std::int64_t row, const T *of_x, T *to) {
      T *state = h.data() + b * r.hidden;
      if (tape) tape->keep(tape->before, row, state);
      for (std::int64_t i = 0; i < r.hidden; ++i) state[i] = of_x[i] + sums[static_cast<std::size_t>(b * r.hidden + i)];
      activate(r.activation(d, 0), r.clip, state, r.hidden);
      if (tape) tape->keep_gates(row, 0, 1, state);
      if (to) std::copy_n(state, r.hidden, to);
    });
  }
  if (last.has_data()) direction.store(h, last);
}

template <class T>
void run_as(const Call &call, std::span<Tensor> outputs) {
  const Ready<Sizes> sizes(call);
  const Recurrent &r = *sizes;
  const Lengths lengths("RNN", r, call.in(4));
  const Tensor y = wanted_output(outputs, 0), last = wanted_output(outputs, 1);
  clear(y);
  Pieces<T> memory(call.scratch, r.work_size());
  for (std::size_t d = 0; d < r.directions; ++d, memory.reuse())
    run_direction<T>(call, r, d, lengths, y, last, memory, nullptr);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Ready<Sizes> sizes(run.call);
  const Recurrent &r = *sizes;
  require_gradient("RNN", r);
  const Lengths lengths("RNN", r, run.call.in(4));
  Pieces<float> memory(&run.scratch, gradient_work_size(r));
  for (std::size_t d = 0; d < r.directions; ++d, memory.reuse()) {
    const Tape<float> tape(r, memory);
    run_direction<float>(run.call, r, d, lengths, {}, {}, memory, &tape);
    TimeGradient time(r, run, d, lengths, memory);
    const GateActivation &f = r.activation(d, 0);
    for (std::int64_t k = r.steps; k-- > 0;) {
      time.for_batches(k, [&](std::int64_t b, std::int64_t row) {
        const float *y = tape.gates.data() + row * r.hidden;
        float *state = time.state(b), *slopes = time.of_x(row);
        for (std::int64_t i = 0; i < r.hidden; ++i) {
          time.of_state(row)[i] = slopes[i] = state[i] * f.slope(y[i]);
          state[i] = 0;
        }
      });
      time.through_matrices(k, 1);
    }
    time.finish(tape.before, 1, {}, dx);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? run_as<double>(call, outputs) : run_as<float>(call, outputs);
}

}  // namespace

const OpDef kRNN{.name = "RNN",
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
