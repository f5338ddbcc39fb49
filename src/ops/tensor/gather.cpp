// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <span>

#include "base/size.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", 0), call.in(0)->rank(), "Gather");
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  require_dtype("Gather", "indices", indices, {QTN_INT64, QTN_INT32});
  const std::size_t axis = axis_of(call);
  Shape shape = x.shape();
  shape.erase(axis);
  for (std::size_t i = 0; i < indices.rank(); ++i) shape.insert(axis + i, indices.dim(i));
  return {{x.dtype(), shape}};
}

[[noreturn]] void fail_outside(std::int64_t index, const Tensor &x, std::size_t axis) {
  fail(QTN_EINVAL, "Gather: index ", index, " is outside dimension ", axis, " of x ", to_string(x.shape()));
}

/// Calls f(place along the axis) for each index, in order.
template <class F>
void each_place(const Tensor &indices, const Tensor &x, std::size_t axis, F f) {
  const std::int64_t dim = x.dim(axis), count = indices.count();
  const auto walk = [&](const auto *index) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = index[i];
      if (at < -dim || at >= dim) fail_outside(at, x, axis);
      f(at < 0 ? at + dim : at);
    }
  };
  indices.dtype() == QTN_INT32 ? walk(indices.as<const std::int32_t>()) : walk(indices.as<const std::int64_t>());
}

/// Calls f(slab of y, slab of x that it takes) for each index, in order. A slab is what is left of y without the axes
/// that the indices brought.
template <class F>
void for_slabs(const Call &call, const Tensor &x, const Tensor &y, F &&f) {
  const Tensor indices = call.in(1)->to_contiguous();
  const std::size_t axis = axis_of(call);
  Shape shape = x.shape(), x_strides = x.strides(), y_strides = y.strides();
  shape.erase(axis);
  x_strides.erase(axis);
  for (std::size_t i = 0; i < indices.rank(); ++i) y_strides.erase(axis);

  std::int64_t i = 0;
  each_place(indices, x, axis, [&](std::int64_t place) {
    std::ptrdiff_t offset = 0;
    std::int64_t rest = i++;
    for (std::size_t k = indices.rank(); k-- > 0;) {
      offset += rest % indices.dim(k) * y.strides()[axis + k];
      rest /= indices.dim(k);
    }
    f(y.view(shape, y_strides, offset), x.view(shape, x_strides, place * x.strides()[axis]));
  });
}

/// Calls copy(to, from) for an element of `size` bytes for each index.
template <class Copy>
void gather_piece(const Tensor &indices, const Tensor &x, std::size_t axis, const Tensor &y, std::size_t size,
                  Copy copy) {
  const auto *from = static_cast<const std::byte *>(x.data());
  auto *to = static_cast<std::byte *>(y.data());
  each_place(indices, x, axis, [=](std::int64_t place) mutable {
    copy(to, from + static_cast<std::size_t>(place) * size);
    to += size;
  });
}

/// Bytes that follow one another in each piece.
struct Run {
  std::size_t first, count;
};

std::span<const Run> runs_of(const Tensor &indices, const Tensor &x, std::size_t axis, std::size_t size,
                             Scratch &scratch) {
  auto *runs = reinterpret_cast<Run *>(scratch.take((Size(indices.count()) * sizeof(Run)).value()));
  std::size_t found = 0;
  each_place(indices, x, axis, [&](std::int64_t place) {
    const std::size_t first = static_cast<std::size_t>(place) * size;
    if (found > 0 && first == runs[found - 1].first + runs[found - 1].count)
      runs[found - 1].count += size;
    else
      runs[found++] = {first, size};
  });
  return {runs, found};
}

/// One piece of x after the other, each with all indices.
void gather_pieces(std::span<const Run> runs, const Tensor &x, std::size_t piece, std::byte *to) {
  const auto *from = static_cast<const std::byte *>(x.data());
  if (runs.size() == 1 && runs[0].count == piece) return void(std::memcpy(to, from, x.nbytes()));
  for (const std::byte *end = from + x.nbytes(); from < end; from += piece)
    for (const Run &run : runs) {
      run.count == 4 ? std::memcpy(to, from + run.first, 4) : std::memcpy(to, from + run.first, run.count);
      to += run.count;
    }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (!x.contiguous() || !y.contiguous() || dtype_bits(x.dtype()) < 8)
    return for_slabs(call, x, y, [](const Tensor &to, const Tensor &from) { copy_elements(to, from); });
  const Tensor indices = call.in(1)->to_contiguous();
  const std::size_t axis = axis_of(call);
  if (y.count() == 0) return each_place(indices, x, axis, [](std::int64_t) {});
  const std::size_t size =
      static_cast<std::size_t>(element_count(x.shape(), axis + 1, x.rank())) * dtype_bits(x.dtype()) / 8;
  const std::size_t piece = static_cast<std::size_t>(x.dim(axis)) * size;
  if (x.nbytes() <= piece && size == 4)
    return gather_piece(indices, x, axis, y, size,
                        [](std::byte *to, const std::byte *from) { std::memcpy(to, from, 4); });
  if (x.nbytes() <= piece)
    return gather_piece(indices, x, axis, y, size,
                        [size](std::byte *to, const std::byte *from) { std::memcpy(to, from, size); });
  Scratch own;
  const auto runs = runs_of(indices, x, axis, size, call.scratch ? *call.scratch : own);
  gather_pieces(runs, x, piece, static_cast<std::byte *>(y.data()));
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  std::fill_n(dx[0].as<float>(), dx[0].count(), 0.0f);
  for_slabs(run.call, dx[0], run.dy[0], [](const Tensor &slope, const Tensor &to) {
    for_rows<2>(to.shape(), {to.strides(), slope.strides()}, [&](const auto &at, const auto &steps, std::int64_t n) {
      float *sum = to.as<float>() + at[0];
      const float *part = slope.as<const float>() + at[1];
      for (std::int64_t i = 0; i < n; ++i) sum[i * steps[0]] += part[i * steps[1]];
    });
  });
}

}  // namespace

const OpDef kGather{.name = "Gather",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .any_type = true,
                    .infer = infer,
                    .run = run,
                    .moves = always_moves,
                    .backward = backward,
                    .keeps = {.inputs = {1, 1}},
                    .weights = {0, 1}};

}  // namespace qtn::ops
