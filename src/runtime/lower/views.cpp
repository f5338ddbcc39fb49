// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/views.hpp"

#include <algorithm>
#include <numeric>

namespace qtn::runtime {
namespace {

using Views = std::optional<std::vector<View>>;

Views reshape(const SlotForm &x, const Shape &target) {
  const std::optional<Shape> strides = reshape_strides(x.shape, x.strides, target);
  if (!strides) return std::nullopt;
  return std::vector<View>{{target, *strides, 0}};
}

Views transpose(const graph::Node &node, const SlotForm &x, const Shape &target) {
  std::vector<std::int64_t> perm = node.attrs.get_ints("perm");
  if (perm.empty()) {
    perm.resize(x.shape.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  Shape strides = target;
  for (std::size_t i = 0; i < perm.size(); ++i)
    strides[i] = x.strides[normalize_axis(perm[i], perm.size(), "Transpose")];
  return std::vector<View>{{target, strides, 0}};
}

Views split(const graph::Node &node, const SlotForm &x, std::span<const ops::TensorType> types) {
  const std::size_t axis = normalize_axis(node.attrs.get_int("axis", 0), x.shape.size(), "Split");
  std::vector<View> views;
  std::ptrdiff_t offset = 0;
  for (const ops::TensorType &type : types) {
    views.push_back({type.shape, x.strides, offset});
    offset += type.shape[axis] * x.strides[axis];
  }
  return views;
}

/// Slices of step 1: the starts follow from the constants, the lengths from the inferred type.
Views slice(const SlotForm &x, std::span<const Tensor *const> operands, const Shape &target) {
  for (std::size_t i = 1; i < operands.size(); ++i)
    if (operands[i] && !operands[i]->has_data()) return std::nullopt;
  const auto ints = [&](std::size_t i) {
    return i < operands.size() && operands[i] ? int_values(*operands[i], "Slice") : std::vector<std::int64_t>{};
  };
  const std::vector<std::int64_t> starts = ints(1), axes = ints(3), steps = ints(4);
  if (std::any_of(steps.begin(), steps.end(), [](std::int64_t s) { return s != 1; })) return std::nullopt;
  std::ptrdiff_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = axes.empty() ? i : normalize_axis(axes[i], x.shape.size(), "Slice");
    const std::int64_t size = x.shape[axis], start = starts[i] < 0 ? starts[i] + size : starts[i];
    offset += std::clamp<std::int64_t>(start, 0, size) * x.strides[axis];
  }
  return std::vector<View>{{target, x.strides, offset}};
}

/// A Pad of nothing, which exporters write where the lengths they saw needed none.
Views pad(const SlotForm &x, std::span<const Tensor *const> operands) {
  if (!operands[1]->has_data()) return std::nullopt;
  const std::vector<std::int64_t> pads = int_values(*operands[1], "Pad");
  if (std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p != 0; })) return std::nullopt;
  return std::vector<View>{{x.shape, x.strides, 0}};
}

}  // namespace

Views views_of(const graph::Node &node, const SlotForm &x, std::span<const Tensor *const> operands,
               std::span<const ops::TensorType> types) {
  const std::string_view op = node.op->name;
  if (std::any_of(types.begin(), types.end(), [](const ops::TensorType &t) { return element_count(t.shape) == 0; }))
    return std::nullopt;
  // In training it is refused by its own run.
  if (op == "Dropout" && operands.size() > 2 && operands[2] && (!operands[2]->has_data() || item(*operands[2]) != 0))
    return std::nullopt;
  if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" || op == "Identity" || op == "Dropout")
    return reshape(x, types[0].shape);
  if (op == "Transpose") return transpose(node, x, types[0].shape);
  if (op == "Split") return split(node, x, types);
  if (op == "Slice") return slice(x, operands, types[0].shape);
  if (op == "Pad") return pad(x, operands);
  return std::nullopt;
}

}  // namespace qtn::runtime
