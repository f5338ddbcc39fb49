// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/common/prepared.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

struct Selection {
  Shape shape;
  std::vector<std::int64_t> start, step;
};

std::vector<std::int64_t> list(const Call &call, std::size_t i, const char *name, std::size_t size) {
  const std::vector<std::int64_t> values = constant_ints("Slice", name, *call.in(i));
  if (values.size() != size) fail(QTN_EINVAL, "Slice: ", name, " has ", values.size(), " values, starts has ", size);
  return values;
}

Selection select(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::vector<std::int64_t> starts = constant_ints("Slice", "starts", *call.in(1));
  const std::size_t count = starts.size();
  const std::vector<std::int64_t> ends = list(call, 2, "ends", count);
  const std::vector<std::int64_t> steps =
      call.in(4) ? list(call, 4, "steps", count) : std::vector<std::int64_t>(count, 1);
  std::vector<std::size_t> axes;
  if (call.in(3)) axes = constant_axes("Slice", *call.in(3), x.rank());
  for (std::size_t i = 0; !call.in(3) && i < count; ++i)
    axes.push_back(normalize_axis(static_cast<std::int64_t>(i), x.rank(), "Slice"));
  if (axes.size() != count) fail(QTN_EINVAL, "Slice: axes has ", axes.size(), " values, starts has ", count);

  Selection s{x.shape(), std::vector<std::int64_t>(x.rank(), 0), std::vector<std::int64_t>(x.rank(), 1)};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t dim = x.dim(axes[i]);
    // Beyond the dimension a longer step selects nothing more, and a shorter one could overflow.
    const std::int64_t longest = std::min(dim, std::numeric_limits<std::int64_t>::max() - 1) + 1;
    const std::int64_t step = std::clamp(steps[i], -longest, longest);
    if (step == 0) fail(QTN_EINVAL, "Slice: step is 0");
    const auto place = [dim](std::int64_t at, std::int64_t lo, std::int64_t hi) {
      return std::clamp(at < 0 ? at + dim : at, lo, hi);
    };
    const std::int64_t start =
        step > 0 ? place(starts[i], 0, dim) : place(starts[i], 0, std::max<std::int64_t>(dim - 1, 0));
    const std::int64_t end = step > 0 ? place(ends[i], 0, dim) : place(ends[i], -1, std::max<std::int64_t>(dim - 1, 0));
    const std::int64_t distance = step > 0 ? end - start : start - end, stride = std::abs(step);
    s.shape[axes[i]] = dim == 0 || distance <= 0 ? 0 : (distance - 1) / stride + 1;
    s.start[axes[i]] = start;
    s.step[axes[i]] = step;
  }
  return s;
}

Types infer(const Call &call) { return {{call.in(0)->dtype(), select(call).shape}}; }

/// The part of x, or of a tensor of its shape, that y is.
struct Selected final : Prepared {
  explicit Selected(const Call &call) : selection(select(call)) {}
  const Selection selection;
};

Tensor selected(const Call &call, const Tensor &x) {
  const Ready<Selected> ready(call);
  const Selection &s = ready->selection;
  Shape strides = x.strides();
  std::ptrdiff_t offset = 0;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    offset += s.start[i] * strides[i];
    strides[i] *= s.step[i];
  }
  return x.view(s.shape, strides, offset);
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (outputs[0].count() > 0) copy_elements(outputs[0], selected(call, *call.in(0)));
}

void upgrade(OldNode &node) {
  if (node.opset >= 10) return;
  ints_to_input(node, "starts", 1);
  ints_to_input(node, "ends", 2);
  ints_to_input(node, "axes", 3);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  std::fill_n(dx[0].as<float>(), dx[0].count(), 0.0f);
  if (run.dy[0].count() > 0) copy_elements(selected(run.call, dx[0]), run.dy[0]);
}

}  // namespace

const OpDef kSlice{.name = "Slice",
                   .min_inputs = 3,
                   .max_inputs = 5,
                   .max_outputs = 1,
                   .attrs = {},
                   .any_type = true,
                   .infer = infer,
                   .run = run,
                   .prepare = prepare<Selected>,
                   .moves = always_moves,
                   .backward = backward,
                   .shapes_from = {1, 4},
                   .upgrade = upgrade};

}  // namespace qtn::ops
