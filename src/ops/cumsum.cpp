// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"exclusive", AttrSpec::kInt}, {"reverse", AttrSpec::kInt}};

Types infer(const Call &call) {
  require_dtype("CumSum", "axis", *call.in(1), {QTN_INT64, QTN_INT32});
  if (call.in(1)->count() != 1)
    fail(QTN_ESHAPE, "CumSum: axis must be one number, it is ", to_string(call.in(1)->shape()));
  return infer_number_unary("CumSum", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const std::size_t axis = normalize_axis(int_values(*call.in(1), "axis")[0], x.rank(), "CumSum");
  const bool exclusive = call.attrs.get_int("exclusive", 0) != 0, reverse = call.attrs.get_int("reverse", 0) != 0;
  if (x.count() == 0) return;
  const std::int64_t length = x.dim(axis), inner = element_count(x.shape(), axis + 1, x.rank());
  dispatch_number(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
    parallel_for(static_cast<std::size_t>(x.count() / length), [&](std::size_t index) {
      const auto i = static_cast<std::int64_t>(index);
      const std::int64_t start = i / inner * length * inner + i % inner;
      Wide sum = 0;
      for (std::int64_t k = 0; k < length; ++k) {
        const std::int64_t at = start + (reverse ? length - 1 - k : k) * inner;
        const Wide before = sum;
        sum += static_cast<Wide>(x.as<const T>()[at]);
        y.as<T>()[at] = static_cast<T>(exclusive ? before : sum);
      }
    });
  });
}

}  // namespace

const OpDef kCumSum{
    .name = "CumSum", .min_inputs = 2, .max_inputs = 2, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
