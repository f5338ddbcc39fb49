// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"activation_alpha", AttrSpec::kFloats}, {"activation_beta", AttrSpec::kFloats},
                               {"activations", AttrSpec::kStrings},     {"clip", AttrSpec::kFloat},
                               {"direction", AttrSpec::kString},        {"hidden_size", AttrSpec::kInt},
                               {"input_forget", AttrSpec::kInt},        {"layout", AttrSpec::kInt}};

/// In the order of their matrices; peepholes have the first three.
enum Gate { kInput, kOutput, kForget, kCell, kGates };

Recurrent sizes(const Call &call) {
  const Recurrent r("LSTM", call, kGates, {"Sigmoid", "Tanh", "Tanh"});
  r.check_state("LSTM", "initial_c", call.in(6));
  const Shape peepholes{static_cast<std::int64_t>(r.directions), 3 * r.hidden};
  if (const Tensor *p = call.in(7); p && !(p->shape() == peepholes))
    fail(QTN_ESHAPE, "LSTM: P is ", to_string(p->shape()), ", ", to_string(peepholes), " is expected");
  return r;
}

Types infer(const Call &call) {
  const Recurrent r = sizes(call);
  const qdtype dtype = call.in(0)->dtype();
  Types types{{dtype, r.y_shape()}, {dtype, r.state_shape()}, {dtype, r.state_shape()}};
  types.resize(call.output_count);
  return types;
}

template <class T>
class Run {
 public:
  Run(const Call &call, const Recurrent &r)
      : call_(call),
        r_(r),
        lengths_(sequence_lengths("LSTM", r, call.in(4))),
        coupled_(call.attrs.get_int("input_forget", 0) != 0) {}

  void run(std::size_t d, const Tensor &y, const Tensor &last_h, const Tensor &last_c) const {
    const Direction<T> direction(r_, call_, d, kGates);
    const std::int64_t size = r_.hidden;
    const T *peepholes = call_.in(7) ? call_.in(7)->as<const T>() + direction.at(3 * size) : nullptr;
    std::vector<T> h = direction.initial(call_.in(5)), c = direction.initial(call_.in(6)), gates(kGates * h.size());
    const GateActivation &f = r_.activation(d, 0), &g = r_.activation(d, 1), &out = r_.activation(d, 2);
    for (std::int64_t k = 0; k < r_.steps; ++k) {
      direction.recur(h, 0, kGates, gates);
      direction.for_batches(k, lengths_, y, [&](std::int64_t b, const T *of_x, T *to) {
        T *of_gates = gates.data() + kGates * b * size, *state = h.data() + b * size, *cell = c.data() + b * size;
        T *input = of_gates + kInput * size, *output = of_gates + kOutput * size, *forget = of_gates + kForget * size,
          *next = of_gates + kCell * size;
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
  std::vector<std::int64_t> lengths_;
  bool coupled_;
};

template <class T>
void run_as(const Call &call, std::span<Tensor> outputs) {
  const Recurrent r = sizes(call);
  const Run<T> run(call, r);
  const Tensor y = wanted_output(outputs, 0);
  clear(y);
  for (std::size_t d = 0; d < r.directions; ++d) run.run(d, y, wanted_output(outputs, 1), wanted_output(outputs, 2));
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? run_as<double>(call, outputs) : run_as<float>(call, outputs);
}

}  // namespace

const OpDef kLSTM{.name = "LSTM",
                  .min_inputs = 3,
                  .max_inputs = 8,
                  .max_outputs = 3,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .work = recurrent_work};

}  // namespace qtn::ops
