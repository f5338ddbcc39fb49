// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QLinearConcat";
constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

// Inputs y_scale, y_zero_point, then tensor, scale, zero_point of each operand.
constexpr std::size_t kFirst = 2, kEach = 3;

Grid y_grid(const Call &call) { return {kName, "y", call.in(1)->dtype(), call.in(0), call.in(1)}; }
Grid x_grid(const Call &call, std::size_t i) {
  return {kName, "x", call.in(i)->dtype(), call.in(i + 1), call.in(i + 2)};
}

std::vector<const Tensor *> pointers(const std::vector<Tensor> &tensors) {
  std::vector<const Tensor *> list;
  for (const Tensor &t : tensors) list.push_back(&t);
  return list;
}

Types infer(const Call &call) {
  if ((call.inputs.size() - kFirst) % kEach != 0)
    fail(QTN_EINVAL, kName, ": ", call.inputs.size() - kFirst,
         " inputs after y_zero_point are not tensors with a scale and a zero point each");
  require_8bit(kName, "y_zero_point", *call.in(1));
  check_grid(y_grid(call));
  std::vector<Tensor> reals;
  for (std::size_t i = kFirst; i < call.inputs.size(); i += kEach) {
    require_same_dtype(kName, *call.in(1), *call.in(i));
    check_grid(x_grid(call, i));
    reals.push_back(Tensor::meta(QTN_FLOAT32, call.in(i)->shape()));
  }
  return {{call.in(1)->dtype(), infer_op(kConcat, {call.attrs, pointers(reals)})[0].shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  std::vector<Tensor> operands;
  for (std::size_t i = kFirst; i < call.inputs.size(); i += kEach)
    operands.push_back(call.in(i)->with_quantizer(quantizer_of(x_grid(call, i))));
  run_on_grids(kConcat, call.attrs, pointers(operands), quantizer_of(y_grid(call)), outputs[0]);
}

}  // namespace

const OpDef kQLinearConcat{.name = kName,
                           .domain = kMicrosoft,
                           .min_inputs = 5,
                           .max_inputs = kVariadic,
                           .max_outputs = 1,
                           .attrs = kAttrs,
                           .infer = infer,
                           .run = run};

}  // namespace qtn::ops
