// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"start", AttrSpec::kInt}, {"end", AttrSpec::kInt}};

std::span<const std::int64_t> dims_of(const Call &call) {
  const Shape &shape = call.in(0)->shape();
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto place = [rank](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = place(call.attrs.get_int("start", 0)), end = place(call.attrs.get_int("end", rank));
  return {shape.begin() + start, static_cast<std::size_t>(std::max<std::int64_t>(0, end - start))};
}

Types infer(const Call &call) { return {{QTN_INT64, {static_cast<std::int64_t>(dims_of(call).size())}}}; }

// Reads no element of x, so that x may be a type alone.
void run(const Call &call, std::span<Tensor> outputs) {
  const std::span<const std::int64_t> dims = dims_of(call);
  std::copy(dims.begin(), dims.end(), outputs[0].as<std::int64_t>());
}

}  // namespace

const OpDef kShape{.name = "Shape",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .max_outputs = 1,
                   .attrs = kAttrs,
                   .any_type = true,
                   .infer = infer,
                   .run = run,
                   .reads_shapes = true,
                   .output_dtype = makes<QTN_INT64>};

}  // namespace qtn::ops
