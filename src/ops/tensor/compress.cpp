// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/contiguous.hpp"
#include "ops/common/made.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/unpacked.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

std::vector<Tensor> make(const Call &call) {
  const Tensor &condition = *call.in(1);
  require_dtype("Compress", "condition", condition, {QTN_BOOL});
  if (condition.rank() != 1)
    fail(QTN_ESHAPE, "Compress: condition must be a list, it is ", to_string(condition.shape()));
  // Without an axis x is one list.
  const bool flat = !call.attrs.has("axis");
  const Shape &given = call.in(0)->shape();
  const Shape shape = flat ? Shape{element_count(given)} : given;
  const std::size_t axis = flat ? 0 : normalize_axis(call.attrs.get_int("axis", 0), given.size(), "Compress");
  if (condition.dim(0) > shape[axis])
    fail(QTN_ESHAPE, "Compress: condition has ", condition.dim(0), " elements, x ", to_string(given), " has ",
         shape[axis], flat ? "" : cat(" along axis ", axis));
  const Tensor truths = require_constant("Compress", "condition", condition).to_contiguous();
  std::vector<std::int64_t> chosen;
  chosen.reserve(static_cast<std::size_t>(std::count(truths.as<bool>(), truths.as<bool>() + truths.count(), true)));
  for (std::int64_t i = 0; i < truths.count(); ++i)
    if (truths.as<bool>()[i]) chosen.push_back(i);

  Shape result = shape;
  result[axis] = static_cast<std::int64_t>(chosen.size());
  const qdtype dtype = call.in(0)->dtype();
  if (!call.in(0)->has_data()) return {Tensor::meta(dtype, result)};
  const Tensor x = unpacked(*call.in(0)).to_contiguous(), y(x.dtype(), result);
  if (y.count() == 0) return {Tensor(dtype, result)};
  const auto inner = static_cast<std::size_t>(element_count(shape, axis + 1, shape.size())) * dtype_size(x.dtype());
  const auto *from = x.as<const std::byte>();
  auto *to = y.as<std::byte>();
  for (std::int64_t outer = 0; outer < element_count(shape, 0, axis); ++outer)
    for (const std::int64_t i : chosen)
      to = std::copy_n(from + static_cast<std::size_t>(outer * shape[axis] + i) * inner, inner, to);
  return {is_packed(dtype) ? from_plain(y, dtype) : y};
}

}  // namespace

const OpDef kCompress{.name = "Compress",
                      .min_inputs = 2,
                      .max_inputs = 2,
                      .max_outputs = 1,
                      .attrs = kAttrs,
                      .any_type = true,
                      .infer = infer_made<make>,
                      .run = run_made<make>,
                      .moves = always_moves,
                      .shapes_from = {1, 1},
                      .make = make};

}  // namespace qtn::ops
