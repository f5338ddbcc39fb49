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
                               {"layout", AttrSpec::kInt}};

Recurrent sizes(const Call &call) { return Recurrent("RNN", call, 1, {"Tanh"}); }

Types infer(const Call &call) {
  const Recurrent r = sizes(call);
  const qdtype dtype = call.in(0)->dtype();
  Types types{{dtype, r.y_shape()}, {dtype, r.state_shape()}};
  types.resize(call.output_count);
  return types;
}

template <class T>
void run_as(const Call &call, std::span<Tensor> outputs) {
  const Recurrent r = sizes(call);
  const std::vector<std::int64_t> lengths = sequence_lengths("RNN", r, call.in(4));
  const Tensor y = wanted_output(outputs, 0), last = wanted_output(outputs, 1);
  clear(y);
  std::vector<T> sums(static_cast<std::size_t>(r.batches * r.hidden));
  for (std::size_t d = 0; d < r.directions; ++d) {
    const Direction<T> direction(r, call, d, 1);
    std::vector<T> h = direction.initial(call.in(5));
    for (std::int64_t k = 0; k < r.steps; ++k) {
      direction.recur(h, 0, 1, sums);
      direction.for_batches(k, lengths, y, [&](std::int64_t b, const T *of_x, T *to) {
        T *state = h.data() + b * r.hidden;
        for (std::int64_t i = 0; i < r.hidden; ++i)
          state[i] = of_x[i] + sums[static_cast<std::size_t>(b * r.hidden + i)];
        activate(r.activation(d, 0), r.clip, state, r.hidden);
        if (to) std::copy_n(state, r.hidden, to);
      });
    }
    if (last.has_data()) direction.store(h, last);
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
                 .work = recurrent_work};

}  // namespace qtn::ops
