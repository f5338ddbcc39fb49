// SPDX-License-Identifier: Apache-2.0
// Inference only: the input passes through and the mask keeps everything.
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"seed", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  if (const Tensor *training = call.in(2)) {
    require_dtype("Dropout", "training_mode", *training, {QTN_BOOL});
    require_constant("Dropout", "training_mode", *training);
  }
  Types types{{x.dtype(), x.shape()}};
  if (call.output_count > 1) types.push_back({QTN_BOOL, x.shape()});
  return types;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const bool training = call.in(2) && item(*call.in(2)) != 0;
  if (training && !(call.in(1) && item(*call.in(1)) == 0))  // of which nothing is dropped
    fail(QTN_EUNSUPPORTED, "Dropout: training_mode is for trainers");
  copy_elements(outputs[0], *call.in(0));
  if (outputs.size() < 2) return;
  const bool keep = true;
  const Shape repeated = broadcast_strides({}, {}, outputs[1].shape());
  copy_elements(outputs[1], Tensor(QTN_BOOL, outputs[1].shape(), repeated, const_cast<bool *>(&keep), nullptr));
}

void upgrade(OldNode &node) {
  if (node.opset < 12) node.attrs.erase("ratio");
}

qdtype output_dtype(const Attrs &, std::size_t output, qdtype moved) { return output == 0 ? moved : QTN_BOOL; }

}  // namespace

const OpDef kDropout{.name = "Dropout",
                     .min_inputs = 1,
                     .max_inputs = 3,
                     .max_outputs = 2,
                     .attrs = kAttrs,
                     .infer = infer,
                     .run = run,
                     .moves = always_moves,
                     .backward = backward_copy,
                     .keeps_order = true,
                     .output_dtype = output_dtype,
                     .upgrade = upgrade};

}  // namespace qtn::ops
