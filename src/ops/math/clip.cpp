// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <utility>

#include "ops/common/arithmetic.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_number("Clip", "x", x);
  for (const std::size_t i : {1, 2}) {
    const Tensor *bound = call.in(i);
    if (!bound) continue;
    require_same_dtype("Clip", x, *bound);
    if (bound->count() != 1) fail(QTN_ESHAPE, "Clip: a bound must be one number, it is ", to_string(bound->shape()));
  }
  return {{x.dtype(), x.shape()}};
}

/// Whether kernels broadcast the bounds.
bool is_for_kernels(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0), *lo = call.in(1), *hi = call.in(2);
  const auto fits = [&](const Tensor *bound) { return !bound || bound->rank() <= x.rank(); };
  return x.dtype() == QTN_FLOAT32 && x.contiguous() && y.contiguous() && (lo || hi) && fits(lo) && fits(hi);
}

/// By kernels, side after side.
void run_reals(const Call &call, const Tensor &y) {
  const Tensor *x = call.in(0), *lo = call.in(1), *hi = call.in(2);
  if (lo) run_arithmetic(kernels::Arithmetic::max, *std::exchange(x, &y), *lo, y);
  if (hi) run_arithmetic(kernels::Arithmetic::min, *hi, *x, y);  // of two zeros x, as everywhere
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (is_for_kernels(call, outputs[0])) return run_reals(call, outputs[0]);
  dispatch_number(call.in(0)->dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    constexpr T kLeast = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    constexpr T kMost = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const T lo = call.in(1) ? *call.in(1)->as<T>() : kLeast, hi = call.in(2) ? *call.in(2)->as<T>() : kMost;
    // ONNX 13: where min > max every element becomes max. NaN stays NaN, an open side leaves infinity.
    map_elements<T>(*call.in(0), outputs[0], [=](T x) {
      const T above = x <= lo ? lo : x;  // of two zeros the lower bound, as everywhere
      return above > hi ? hi : above;
    });
  });
}

void upgrade(OldNode &node) {
  if (node.opset >= 11) return;
  // Absent bounds were the ends of float32, which leave nothing but infinities to clip.
  const char *names[] = {"min", "max"};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!node.attrs.has(names[i])) continue;
    node.constants[i + 1] = Tensor::scalar(static_cast<float>(node.attrs.get_float(names[i], 0)));
    node.attrs.erase(names[i]);
  }
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  for (const std::size_t i : {1, 2})
    if (run.call.in(i)) refuse_gradient("Clip", "a bound", dx[i]);
  constexpr float kOpen = std::numeric_limits<float>::infinity();
  const float lo = run.call.in(1) ? *run.call.in(1)->as<const float>() : -kOpen;
  const float hi = run.call.in(2) ? *run.call.in(2)->as<const float>() : kOpen;
  backward_of_bounds(run, dx, lo, hi);
}

}  // namespace

const OpDef kClip{.name = "Clip",
                  .min_inputs = 1,
                  .max_inputs = 3,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .elementwise = true,
                  .numbers_from = 1,
                  .backward = backward,
                  .keeps = {.inputs = {1, 2}, .outputs = true},
                  .upgrade = upgrade};

}  // namespace qtn::ops
