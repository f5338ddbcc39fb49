// SPDX-License-Identifier: Apache-2.0
// What key_padding_mask of MultiHeadAttention says of a query.
#pragma once

#include "core/tensor.hpp"

namespace qtn::ops {

/// A row of the mask, int32 or int64: [batches] ends, [2 * batches] ends and then begins, or
/// [batches][(queries)][keys], where numbers above 0 are keys that count.
struct PaddingRow {
  static constexpr double kHidden = -10000;  ///< without mask_filter_value

  const Tensor &mask;
  std::int64_t batches, batch, query;
  double hidden;

  /// Rows with the same source are the same.
  const void *source() const {
    const std::int64_t keys = mask.shape().back(),
                       row = mask.rank() == 1 ? 0 : (mask.rank() == 3 ? batch * mask.dim(1) + query : batch);
    const std::int64_t at = mask.rank() == 1 ? batch : row * keys;
    return static_cast<const std::byte *>(mask.data()) + static_cast<std::size_t>(at) * dtype_size(mask.dtype());
  }

  /// What is added to the scores of the first keys.
  template <class T>
  void write(T *row, std::size_t keys) const {
    mask.dtype() == QTN_INT32 ? write<std::int32_t>(row, keys) : write<std::int64_t>(row, keys);
  }

 private:
  template <class Int, class T>
  void write(T *row, std::size_t keys) const {
    const auto *given = static_cast<const Int *>(source());
    const auto other = static_cast<T>(hidden);
    if (mask.rank() > 1) {
      for (std::size_t j = 0; j < keys; ++j) row[j] = given[j] > 0 ? T(0) : other;
      return;
    }
    const auto count = static_cast<std::int64_t>(keys), end = static_cast<std::int64_t>(given[0]),
               begin = mask.dim(0) == batches ? 0 : static_cast<std::int64_t>(given[batches]);
    for (std::int64_t j = 0; j < count; ++j) row[j] = j >= begin && j < end ? T(0) : other;
  }
};

}  // namespace qtn::ops
