// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"stash_type", AttrSpec::kInt}};

std::int64_t fail_count(double start, double limit, double delta) {
  fail(QTN_ESHAPE, "Range: from ", start, " to ", limit, " in steps of ", delta, " is no number of elements");
}

std::int64_t count_of(double start, double limit, double delta, double span) {
  const double count = std::ceil(span / delta);
  if (!(count < 0x1p62)) fail_count(start, limit, delta);
  return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

std::int64_t count_of(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  if (delta > 0 ? limit <= start : limit >= start) return 0;
  const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(limit);
  const std::uint64_t span = delta > 0 ? to - from : from - to,
                      step = delta > 0 ? static_cast<std::uint64_t>(delta) : 0 - static_cast<std::uint64_t>(delta);
  const std::uint64_t count = span / step + (span % step != 0);
  if (count >> 62 != 0) fail_count(static_cast<double>(start), static_cast<double>(limit), static_cast<double>(delta));
  return static_cast<std::int64_t>(count);
}

constexpr const char *kNames[] = {"start", "limit", "delta"};

Types infer(const Call &call) {
  const Tensor &start = *call.in(0);
  require_dtype("Range", "start", start, {QTN_FLOAT32, QTN_FLOAT64, QTN_INT16, QTN_INT32, QTN_INT64});
  double real[3];
  for (std::size_t i = 0; i < 3; ++i) {
    require_same_dtype("Range", start, *call.in(i));
    real[i] = constant_number("Range", kNames[i], *call.in(i));
  }
  if (real[2] == 0) fail(QTN_EINVAL, "Range: delta is 0");
  if (start.dtype() == QTN_FLOAT64) return {{QTN_FLOAT64, {count_of(real[0], real[1], real[2], real[1] - real[0])}}};
  if (start.dtype() == QTN_FLOAT32) {
    const float span = static_cast<float>(real[1]) - static_cast<float>(real[0]);
    return {{QTN_FLOAT32, {count_of(real[0], real[1], real[2], static_cast<double>(span))}}};
  }
  const auto whole = [&](std::size_t i) { return int_values(*call.in(i), kNames[i])[0]; };
  return {{start.dtype(), {count_of(whole(0), whole(1), whole(2))}}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  dispatch_number(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
    const auto start = static_cast<Wide>(*call.in(0)->as<const T>()),
               delta = static_cast<Wide>(*call.in(2)->as<const T>());
    for (std::int64_t i = 0; i < y.count(); ++i) y.as<T>()[i] = static_cast<T>(start + static_cast<Wide>(i) * delta);
  });
}

}  // namespace

const OpDef kRange{.name = "Range",
                   .min_inputs = 3,
                   .max_inputs = 3,
                   .max_outputs = 1,
                   .attrs = kAttrs,
                   .infer = infer,
                   .run = run,
                   .shapes_from = {0, 3}};

}  // namespace qtn::ops
