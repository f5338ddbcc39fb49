// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent_gradient.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"activation_alpha", AttrSpec::kFloats}, {"activation_beta", AttrSpec::kFloats},
                               {"activations", AttrSpec::kStrings},     {"clip", AttrSpec::kFloat},
                               {"direction", AttrSpec::kString},        {"hidden_size", AttrSpec::kInt},
                               {"input_forget", AttrSpec::kInt},        {"layout", AttrSpec::kInt}};

/// In the order of their matrices; peepholes have the first three.
enum Gate { kInput, kOutput, kForget, kCell, kGates };

struct Sizes : Recurrent {
  explicit Sizes(const Call &call) : Recurrent("LSTM", call, kGates, {"Sigmoid", "Tanh", "Tanh"}) {
    check_state("LSTM", "initial_c", call.in(6));
    const Shape peepholes{static_cast<std::int64_t>(directions), 3 * hidden};
    if (const Tensor *p = call.in(7); p && !(p->shape() == peepholes))
      fail(QTN_ESHAPE, "LSTM: P is ", to_string(p->shape()), ", ", to_string(peepholes), " is expected");
  }
};

Types infer(const Call &call) {
  const Sizes r(call);
  const qdtype dtype = call.in(0)->dtype();
  Types types{{dtype, r.y_shape()}, {dtype, r.state_shape()}, {dtype, r.state_shape()}};
  types.resize(call.output_count);
  return types;
}

template <class T>
class Run {
 public:
  Run(const Call &call, const Recurrent &r)
      : call_(call), r_(r), lengths_("LSTM", r, call.in(4)), coupled_(call.attrs.get_int("input_forget", 0) != 0) {}

  void run(std::size_t d, const Tensor &y, const Tensor &last_h, const Tensor &last_c, Pieces<T> &memory,
           const Tape<T> *tape) const {
    const Direction<T> direction(r_, call_, d, kGates, memory);
    const std::int64_t size = r_.hidden;
    const T *peepholes = call_.in(7) ? call_.in(7)->as<const T>() + direction.at(3 * size) : nullptr;
    const std::span<T> h = direction.initial(call_.in(5), memory), c = direction.initial(call_.in(6), memory),
                       gates = memory.zeros(kGates * r_.batches * size);
    const GateActivation &f = r_.activation(d, 0), &g = r_.activation(d, 1), &out = r_.activation(d, 2);
    for (std::int64_t k = 0; k < r_.steps; ++k) {
      direction.recur(h, 0, kGates, gates);
      direction.for_batches(k, lengths_, y, [&](std::int64_t b, std::int64_t row, const T *of_x, T *to) {
        T *of_gates = gates.data() + kGates * b * size, *state = h.data() + b * size, *cell = c.data() + b * size;
        T *input = of_gates + kInput * size, *output = of_gates + kOutput * size, *forget = of_gates + kForget * size,
          *next = of_gates + kCell * size;
        if (tape) tape->keep(tape->before, row, state);
        if (tape) tape->keep(tape->inner, row, cell);
        for (std::int64_t i = 0; i < kGates * size; ++i) of_gates[i] += of_x[i];
        for (std::int64_t i = 0; peepholes && i < size; ++i) {
          input[i] += peepholes[kInput * size + i] * cell[i];
          forget[i] += peepholes[kForget * size + i] * cell[i];
        }
        activate(f, r_.clip, input, size);
        activate(f, r_.clip, forget, size);
        activate(g, r_.clip, next, size);
        for (std::int64_t i = 0; i < size; ++i)
          cell[i] = (coupled_ ? 1 - input[i] : forget[i]) * cell[i] + input[i] * next[i];
        for (std::int64_t i = 0; peepholes && i < size; ++i) output[i] += peepholes[kOutput * size + i] * cell[i];
        activate(f, r_.clip, output, size);
        if (tape) tape->keep_gates(row, 0, kGates, of_gates);
        if (tape) tape->keep(tape->after, row, cell);
        std::copy_n(cell, size, state);
        activate(out, std::numeric_limits<double>::infinity(), state, size);
        for (std::int64_t i = 0; i < size; ++i) state[i] *= output[i];
        if (to) std::copy_n(state, size, to);
      });
    }
    if (last_h.has_data()) direction.store(h, last_h);
    if (last_c.has_data()) direction.store(c, last_c);
  }

 private:
  const Call &call_;
  const Recurrent &r_;
  Lengths lengths_;
  bool coupled_;
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
    run.run(d, y, wanted_output(outputs, 1), wanted_output(outputs, 2), memory, nullptr);
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? run_as<double>(call, outputs) : run_as<float>(call, outputs);
}

void walk_back(const Recurrent &r, std::size_t d, const Tape<float> &tape, TimeGradient &time, std::span<float> cells) {
  const GateActivation &f = r.activation(d, 0), &g = r.activation(d, 1), &out = r.activation(d, 2);
  const std::int64_t size = r.hidden;
  for (std::int64_t k = r.steps; k-- > 0;) {
    time.for_batches(k, [&](std::int64_t b, std::int64_t row) {
      const float *gates = tape.gates.data() + row * kGates * size, *before = tape.inner.data() + row * size;
      float *shown = tape.after.data() + row * size, *slopes = time.of_x(row), *state = time.state(b);
      float *cell = cells.data() + b * size;
      activate(out, std::numeric_limits<double>::infinity(), shown, size);
      for (std::int64_t i = 0; i < size; ++i) {
        const float input = gates[kInput * size + i], output = gates[kOutput * size + i],
                    forget = gates[kForget * size + i], next = gates[kCell * size + i];
        const float slope = cell[i] + state[i] * output * out.slope(shown[i]);
        slopes[kInput * size + i] = slope * next * f.slope(input);
        slopes[kOutput * size + i] = state[i] * shown[i] * f.slope(output);
        slopes[kForget * size + i] = slope * before[i] * f.slope(forget);
        slopes[kCell * size + i] = slope * input * g.slope(next);
        cell[i] = slope * forget;
        state[i] = 0;
      }
      std::copy_n(slopes, kGates * size, time.of_state(row));
    });
    time.through_matrices(k, kGates);
  }
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Ready<Sizes> sizes(run.call);
  const Recurrent &r = *sizes;
  require_gradient("LSTM", r);
  if (run.call.in(7)) fail(QTN_EUNSUPPORTED, "LSTM: no gradient with peepholes");
  if (run.call.attrs.get_int("input_forget", 0) != 0) fail(QTN_EUNSUPPORTED, "LSTM: no gradient with input_forget");
  const Lengths lengths("LSTM", r, run.call.in(4));
  Pieces<float> memory(&run.scratch, gradient_work_size(r));
  for (std::size_t d = 0; d < r.directions; ++d, memory.reuse()) {
    const Tape<float> tape(r, memory);
    Run<float>(run.call, r).run(d, {}, {}, {}, memory, &tape);
    TimeGradient time(r, run, d, lengths, memory);
    const std::span<float> cells = time.last(2, memory);
    walk_back(r, d, tape, time, cells);
    time.finish(tape.before, kGates, {}, dx);
    time.store(6, cells, dx);
  }
}

}  // namespace

const OpDef kLSTM{.name = "LSTM",
                  .min_inputs = 3,
                  .max_inputs = 8,
                  .max_outputs = 3,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .prepare = prepare<Sizes>,
                  .backward = backward,
                  .keeps = {.inputs = {0, 8}},
                  .weights = {1, 2},
                  .offsets = {3, 1},
                  .work = recurrent_work};

}  // namespace qtn::ops
