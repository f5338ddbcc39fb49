// SPDX-License-Identifier: Apache-2.0
#include "ops/common/indices.hpp"

namespace qtn::ops {

void fail_index(const char *op, std::int64_t index, const Shape &x, std::size_t axis) {
  fail(QTN_EINVAL, op, ": index ", index, " is outside dimension ", axis, " of ", to_string(x));
}

std::vector<std::int64_t> indices_within(const char *op, const Tensor &indices, const Shape &x, std::size_t axis) {
  std::vector<std::int64_t> values = int_values(indices, op);
  for (std::int64_t &index : values) index = index_within(op, index, x, axis);
  return values;
}

std::vector<std::int64_t> tuple_offsets(const char *op, const Tensor &indices, const Shape &x, std::size_t batch) {
  const std::vector<std::int64_t> values = int_values(indices, op);
  const auto length = static_cast<std::size_t>(indices.shape().back());
  const auto tuples = static_cast<std::size_t>(element_count(indices.shape(), 0, indices.rank() - 1));
  const std::int64_t batches = element_count(x, 0, batch);
  const std::size_t of_batch = batches == 0 ? 0 : tuples / static_cast<std::size_t>(batches);
  const Shape strides = contiguous_strides(x);
  const std::int64_t batch_stride = element_count(x, batch, x.size());
  std::vector<std::int64_t> offsets(tuples);
  for (std::size_t t = 0; t < tuples; ++t) {
    offsets[t] = static_cast<std::int64_t>(t / of_batch) * batch_stride;
    for (std::size_t k = 0; k < length; ++k)
      offsets[t] += index_within(op, values[t * length + k], x, batch + k) * strides[batch + k];
  }
  return offsets;
}

}  // namespace qtn::ops
