// SPDX-License-Identifier: Apache-2.0
#include "core/shape.hpp"

#include "base/error.hpp"

namespace qtn {
namespace {

void check_rank(std::size_t rank) {
  if (rank > kMaxRank) fail(QTN_ESHAPE, "shape: rank ", rank, " is over the limit of ", kMaxRank);
}

/// The stride of the next axis. One that no number holds is that of a tensor without elements, or of one that memory
/// will be asked for and not given: 0.
std::int64_t step_over(std::int64_t step, std::int64_t dim) {
  std::int64_t next;
  return __builtin_mul_overflow(step, std::max<std::int64_t>(dim, 1), &next) ? 0 : next;
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  check_rank(rank_);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

void Shape::push_back(std::int64_t dim) { insert(rank_, dim); }

void Shape::insert(std::size_t at, std::int64_t dim) {
  check_rank(rank_ + 1);
  std::copy_backward(begin() + at, end(), end() + 1);
  dims_[at] = dim;
  ++rank_;
}

void Shape::erase(std::size_t at) {
  std::copy(begin() + at + 1, end(), begin() + at);
  --rank_;
}

std::int64_t element_count(const Shape &shape) { return element_count(shape, 0, shape.size()); }

std::int64_t element_count(const Shape &shape, std::size_t from, std::size_t to) {
  std::int64_t count = 1;
  for (std::size_t i = from; i < to; ++i) {
    if (shape[i] < 0) fail(QTN_ESHAPE, "shape: ", to_string(shape), " has a negative dimension, ", shape[i]);
    if (__builtin_mul_overflow(count, shape[i], &count)) fail(QTN_ESHAPE, "shape: ", to_string(shape), " is too large");
  }
  return count;
}

bool has_strides(const Shape &shape) {
  std::int64_t bytes = 8;
  return std::ranges::all_of(
      shape, [&](std::int64_t dim) { return !__builtin_mul_overflow(bytes, std::max<std::int64_t>(dim, 1), &bytes); });
}

Shape contiguous_strides(const Shape &shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = step_over(step, shape[i]);
  }
  return strides;
}

Shape channels_last_strides(const Shape &shape) {
  if (shape.size() < 3) return contiguous_strides(shape);
  Shape strides = shape;
  strides[1] = 1;
  std::int64_t step = std::max<std::int64_t>(shape[1], 1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (i == 1) continue;
    strides[i] = step;
    step = step_over(step, shape[i]);
  }
  return strides;
}

bool same_layout(const Shape &shape, const Shape &a, const Shape &b) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] > 1 && a[i] != b[i]) return false;
  return true;
}

std::optional<Shape> reshape_strides(const Shape &shape, const Shape &strides, const Shape &target) {
  Shape out = contiguous_strides(target);
  if (element_count(target) == 0) return out;
  // Walks both shapes from the end in groups of equal element count; within a group the old axes must step as one.
  std::size_t i = shape.size(), j = target.size();
  while (j > 0) {
    while (i > 0 && shape[i - 1] == 1) --i;
    if (target[j - 1] == 1) {
      out[j - 1] = 1;
      --j;
      continue;
    }
    if (i == 0) return std::nullopt;
    std::int64_t have = shape[--i], want = target[--j];
    const std::int64_t step = strides[i];
    out[j] = step;
    while (have != want) {
      if (have < want) {
        if (i == 0) return std::nullopt;
        --i;
        if (shape[i] == 1) continue;
        if (strides[i] != step * have) return std::nullopt;
        have *= shape[i];
      } else {
        if (j == 0) return std::nullopt;
        out[--j] = step * want;
        want *= target[j];
      }
    }
  }
  return out;
}

std::string to_string(const Shape &shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const std::int64_t dim : shape)
    text += (text.empty() ? "" : "x") + (dim == -1 ? std::string("?") : std::to_string(dim));
  return text;
}

std::size_t normalize_axis(std::int64_t axis, std::size_t rank, const char *what) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) fail(QTN_EINVAL, what, ": axis ", axis, " is outside a tensor of rank ", rank);
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

Shape broadcast(const Shape &a, const Shape &b, const char *what) {
  Shape out = a.size() >= b.size() ? a : b;
  const Shape &shorter = a.size() >= b.size() ? b : a;
  const std::size_t lead = out.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t &dim = out[lead + i];
    if (dim == shorter[i] || shorter[i] == 1) continue;
    if (dim != 1) fail(QTN_ESHAPE, what, ": shapes ", to_string(a), " and ", to_string(b), " do not broadcast");
    dim = shorter[i];
  }
  return out;
}

Shape broadcast_strides(const Shape &shape, const Shape &strides, const Shape &target) {
  if (shape.size() > target.size())
    fail(QTN_EINTERNAL, "shape ", to_string(shape), " has more axes than ", to_string(target));
  Shape out = target;
  const std::size_t lead = target.size() - shape.size();
  for (std::size_t i = 0; i < target.size(); ++i) out[i] = i < lead || shape[i - lead] == 1 ? 0 : strides[i - lead];
  return out;
}

}  // namespace qtn
