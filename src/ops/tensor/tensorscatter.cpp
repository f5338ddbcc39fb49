// SPDX-License-Identifier: Apache-2.0
#include "ops/common/contiguous.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"mode", AttrSpec::kString}};
constexpr const char *kName = "TensorScatter";

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", -2), call.in(0)->rank(), kName);
}

Types infer(const Call &call) {
  const Tensor &past = *call.in(0), &update = *call.in(1);
  require_same_dtype(kName, past, update);
  const std::string mode = call.attrs.get_string("mode", "linear");
  if (mode != "linear" && mode != "circular")
    fail(QTN_EINVAL, kName, ": mode is \"", mode, "\", not linear or circular");
  const std::size_t axis = axis_of(call);
  if (axis == 0) fail(QTN_EINVAL, kName, ": axis is that of the batch");
  bool fits = past.rank() == update.rank();
  for (std::size_t i = 0; fits && i < past.rank(); ++i)
    fits = i == axis ? update.dim(i) <= past.dim(i) : update.dim(i) == past.dim(i);
  if (!fits)
    fail(QTN_ESHAPE, kName, ": update ", to_string(update.shape()), " does not lie in past_cache ",
         to_string(past.shape()), " along axis ", axis);
  if (const Tensor *places = call.in(2)) {
    require_dtype(kName, "write_indices", *places, {QTN_INT64});
    if (!(places->shape() == Shape{past.dim(0)}))
      fail(QTN_ESHAPE, kName, ": write_indices is ", to_string(places->shape()), ", past_cache ",
           to_string(past.shape()));
  }
  return {{past.dtype(), past.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &past = *call.in(0), &update = *call.in(1), &y = outputs[0];
  const bool circular = call.attrs.get_string("mode", "linear") == "circular";
  const std::size_t axis = axis_of(call);
  const std::int64_t length = past.dim(axis), steps = update.dim(axis), batches = past.dim(0);
  std::vector<std::int64_t> begin(static_cast<std::size_t>(batches), 0);
  if (call.in(2)) begin = int_values(*call.in(2), "write_indices");
  for (std::int64_t &at : begin) {
    if (at < 0 || (circular ? at >= length && steps > 0 : at > length - steps))
      fail(QTN_EINVAL, kName, ": ", steps, " steps from ", at, " on do not lie in past_cache ", to_string(past.shape()),
           " along axis ", axis);
  }
  copy_elements(y, past);
  if (steps == 0) return;
  const std::size_t inner =
      static_cast<std::size_t>(element_count(past.shape(), axis + 1, past.rank())) * dtype_size(past.dtype());
  const std::int64_t outer = element_count(past.shape(), 0, axis);
  const auto *from = update.as<const std::byte>();
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < steps; ++i, from += inner) {
      const std::int64_t at = (begin[static_cast<std::size_t>(o / (outer / batches))] + i) % length;
      std::copy_n(from, inner, y.as<std::byte>() + static_cast<std::size_t>(o * length + at) * inner);
    }
}

}  // namespace

const OpDef kTensorScatter{
    .name = kName, .min_inputs = 2, .max_inputs = 3, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
