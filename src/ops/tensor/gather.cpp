// SPDX-License-Identifier: Apache-2.0
#include <cstring>

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

/// The place along the axis that index i says.
std::int64_t place_of(const Tensor &indices, std::int64_t i, const Tensor &x, std::size_t axis) {
  const std::int64_t index =
      indices.dtype() == QTN_INT32 ? indices.as<const std::int32_t>()[i] : indices.as<const std::int64_t>()[i];
  if (index < -x.dim(axis) || index >= x.dim(axis))
    fail(QTN_EINVAL, "Gather: index ", index, " is outside dimension ", axis, " of x ", to_string(x.shape()));
  return index < 0 ? index + x.dim(axis) : index;
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

  for (std::int64_t i = 0; i < indices.count(); ++i) {
    const std::int64_t place = place_of(indices, i, x, axis);
    std::ptrdiff_t offset = 0;
    std::int64_t rest = i;
    for (std::size_t k = indices.rank(); k-- > 0;) {
      offset += rest % indices.dim(k) * y.strides()[axis + k];
      rest /= indices.dim(k);
    }
    f(y.view(shape, y_strides, offset), x.view(shape, x_strides, place * x.strides()[axis]));
  }
}

/// Runs of `size` bytes, one for each index before the next piece of x follows.
template <class Copy>
void gather_runs(const Tensor &indices, const Tensor &x, std::size_t axis, const Tensor &y, std::size_t size,
                 Copy copy) {
  const std::int64_t pieces = element_count(x.shape(), 0, axis), count = indices.count();
  auto *to = static_cast<std::byte *>(y.data());
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const std::byte *from =
        static_cast<const std::byte *>(x.data()) + static_cast<std::size_t>(piece * x.dim(axis)) * size;
    for (std::int64_t i = 0; i < count; ++i, to += size)
      copy(to, from + static_cast<std::size_t>(place_of(indices, i, x, axis)) * size);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (!x.contiguous() || !y.contiguous() || dtype_bits(x.dtype()) < 8)
    return for_slabs(call, x, y, [](const Tensor &to, const Tensor &from) { copy_elements(to, from); });
  const Tensor indices = call.in(1)->to_contiguous();
  const std::size_t axis = axis_of(call);
  const std::size_t size =
      static_cast<std::size_t>(element_count(x.shape(), axis + 1, x.rank())) * dtype_bits(x.dtype()) / 8;
  if (size == 4)
    gather_runs(indices, x, axis, y, size, [](std::byte *to, const std::byte *from) { std::memcpy(to, from, 4); });
  else
    gather_runs(indices, x, axis, y, size,
                [size](std::byte *to, const std::byte *from) { std::memcpy(to, from, size); });
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
