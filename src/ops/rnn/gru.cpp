// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent.hpp"

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

Recurrent sizes(const Call &call) { return Recurrent("GRU", call, kGates, {"Sigmoid", "Tanh"}); }

Types infer(const Call &call) {
  const Recurrent r = sizes(call);
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
        lengths_(sequence_lengths("GRU", r, call.in(4))),
        linear_(call.attrs.get_int("linear_before_reset", 0) != 0) {}

  void run(std::size_t d, const Tensor &y, const Tensor &last) const {
    const Direction<T> direction(r_, call_, d, linear_ ? kHidden : kGates);
    const T *bias = linear_ ? direction.recurrent_bias(kHidden) : nullptr;
    const GateActivation &f = r_.activation(d, 0), &g = r_.activation(d, 1);
    const std::int64_t size = r_.hidden;
    std::vector<T> h = direction.initial(call_.in(5)), gates(2 * h.size()), reset(h.size()), candidate(h.size());
    for (std::int64_t k = 0; k < r_.steps; ++k) {
      direction.recur(h, kUpdate, 2, gates);
      direction.for_batches(k, lengths_, Tensor(), [&](std::int64_t b, const T *of_x, T *) {
        T *both = gates.data() + 2 * b * size;
        for (std::int64_t i = 0; i < 2 * size; ++i) both[i] += of_x[i];
        activate(f, r_.clip, both, 2 * size);
        // What the reset leaves of the state goes through the matrix; or it is applied to what comes from there.
        for (std::int64_t i = 0; i < size && !linear_; ++i)
          reset[static_cast<std::size_t>(b * size + i)] = both[size + i] * h[static_cast<std::size_t>(b * size + i)];
      });
      direction.recur(linear_ ? h : reset, kHidden, 1, candidate);
      direction.for_batches(k, lengths_, y, [&](std::int64_t b, const T *of_x, T *to) {
        const T *update = gates.data() + 2 * b * size, *kept = update + size;
        T *state = h.data() + b * size, *next = candidate.data() + b * size;
        for (std::int64_t i = 0; i < size; ++i) {
          if (linear_) next[i] = kept[i] * (next[i] + (bias ? bias[i] : T(0)));
          next[i] += of_x[kHidden * size + i];
        }
        activate(g, r_.clip, next, size);
        for (std::int64_t i = 0; i < size; ++i) state[i] = (1 - update[i]) * next[i] + update[i] * state[i];
        if (to) std::copy_n(state, size, to);
      });
    }
    if (last.has_data()) direction.store(h, last);
  }

 private:
  const Call &call_;
  const Recurrent &r_;
  std::vector<std::int64_t> lengths_;
  bool linear_;
};

template <class T>
void run_as(const Call &call, std::span<Tensor> outputs) {
  const Recurrent r = sizes(call);
  const Run<T> run(call, r);
  const Tensor y = wanted_output(outputs, 0);
  clear(y);
  for (std::size_t d = 0; d < r.directions; ++d) run.run(d, y, wanted_output(outputs, 1));
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? run_as<double>(call, outputs) : run_as<float>(call, outputs);
}

}  // namespace

const OpDef kGRU{.name = "GRU",
                 .min_inputs = 3,
                 .max_inputs = 6,
                 .max_outputs = 2,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .work = recurrent_work};

}  // namespace qtn::ops
