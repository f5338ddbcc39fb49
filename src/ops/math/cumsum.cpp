// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"exclusive", AttrSpec::kInt}, {"reverse", AttrSpec::kInt}};

Types infer(const Call &call) {
  require_dtype("CumSum", "axis", *call.in(1), {QTN_INT64, QTN_INT32});
  if (call.in(1)->count() != 1)
    fail(QTN_ESHAPE, "CumSum: axis must be one number, it is ", to_string(call.in(1)->shape()));
  return infer_number_unary("CumSum", call);
}

std::size_t axis_of(const Call &call) {
  return normalize_axis(static_cast<std::int64_t>(item(*call.in(1))), call.in(0)->rank(), "CumSum");
}

/// y[k] = sum of x up to k, or before it; in reverse of those behind.
template <class T>
void accumulate(const Tensor &x, const Tensor &y, std::size_t axis, bool exclusive, bool reverse) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  if (x.count() == 0) return;
  const std::int64_t length = x.dim(axis), inner = element_count(x.shape(), axis + 1, x.rank());
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
}

bool is_set(const Attrs &attrs, const char *name) { return attrs.get_int(name, 0) != 0; }

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  dispatch_number(x.dtype(), [&](auto zero) {
    accumulate<decltype(zero)>(x, outputs[0], axis_of(call), is_set(call.attrs, "exclusive"),
                               is_set(call.attrs, "reverse"));
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data())
    accumulate<float>(run.dy[0], dx[0], axis_of(run.call), is_set(run.call.attrs, "exclusive"),
                      !is_set(run.call.attrs, "reverse"));
}

}  // namespace

const OpDef kCumSum{.name = "CumSum",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .backward = backward,
                    .keeps = {.inputs = {1, 1}}};

}  // namespace qtn::ops
