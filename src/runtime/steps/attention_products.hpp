// SPDX-License-Identifier: Apache-2.0
// The two products of attention, and the Softmax between them, for a head at a time in the scratch of a thread.
#pragma once

#include <memory>
#include <span>

#include "base/cpu.hpp"
#include "base/float_scope.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/op.hpp"

namespace qtn::runtime {

/// A matrix of floats under any strides.
struct HeadMatrix {
  const float *at;
  std::ptrdiff_t row, column;  ///< elements from row to row and from column to column
};

/// Keys [D, count] and values [count, E].
struct HeadPart {
  HeadMatrix keys, values;
  std::size_t count;
};

struct HeadSizes {
  std::size_t keys, features, values;  ///< T, D and E of keys [D, T] and values [T, E]
  std::size_t parts;                   ///< in which keys and values come
  std::size_t block;                   ///< of queries, at most, which are worked on at a time
  std::size_t row;                     ///< elements from one row of scores to the next
};

/// What happens to scores on their way to Softmax: x * factor + addend.
struct ScoreChange {
  float factor = 1;
  const float *addend = nullptr;  ///< null: none
  std::ptrdiff_t addend_row = 0;  ///< elements from row to row
  bool guarded = false;           ///< shares that are no numbers are zeros; not where products are of integers
};

/// Keys that come after these have no share in any of the queries.
struct ScoreBlock {
  std::size_t queries, keys;
};

/// A multiple of the columns of every tile and of what sums of rows go by.
constexpr std::size_t kKeysAtOnce = 32;

class AttentionProducts {
 public:
  virtual ~AttentionProducts() = default;

  virtual const char *kernel() const = 0;
  virtual FloatMode float_mode() const = 0;
  virtual std::size_t rows_at_once() const = 0;  ///< blocks of queries are multiples of it
  /// Comes before everything below. How much scratch there has to be, aligned as all scratch is.
  virtual std::size_t settle(const HeadSizes &sizes) = 0;

  /// Brings keys [D, T] and values [T, E] into the scratch, whose parts follow one another.
  virtual void pack(std::byte *scratch, std::span<const HeadPart> parts) const = 0;
  /// scores [count, T] = queries keys, of the first `keys` keys: all of them, or a multiple of kKeysAtOnce; neighbours
  /// of a row of queries lie side by side.
  virtual void multiply_keys(std::byte *scratch, const HeadMatrix &queries, ScoreBlock block, float *scores) const = 0;
  /// y [count, E] = clamp(softmax(changed scores) values), without the keys behind those; leaves other numbers in
  /// `scores`.
  virtual void mix_values(std::byte *scratch, float *scores, ScoreBlock block, const ScoreChange &change, float *y,
                          std::ptrdiff_t y_row) const = 0;
};

/// Softmax of the changed scores, in place; rows are `row` elements apart. All shares of a row are numbers, or none.
void make_shares(const kernels::RowsKernel &rows, float *scores, ScoreBlock block, std::ptrdiff_t row,
                 const ScoreChange &change);

std::unique_ptr<AttentionProducts> make_real_products(const ops::Clamp &clamp, Isa isa);

/// For few queries of a head, as kFewQueries says. The values of a key lie side by side.
std::unique_ptr<AttentionProducts> make_few_real_products(Isa isa);

/// Both products as DynamicMatMul forms them, of keys and values in one part; `centered` is that of the first.
std::unique_ptr<AttentionProducts> make_integer_products(bool centered, const ops::Clamp &clamp, Isa isa);

}  // namespace qtn::runtime
