// SPDX-License-Identifier: Apache-2.0
#include "train/fake_quantize.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "kernels/fake/fake.hpp"

namespace qtn::train {
namespace {

using kernels::ClipSums;
using kernels::FakeGrids;
using kernels::FakeSums;

constexpr std::size_t kPiece = std::size_t{1} << 16;

/// Part of a tensor as kernels take it.
struct Piece {
  std::size_t element, rows, columns;
  std::size_t grid;  ///< the first
  std::size_t sum;   ///< the first of one for each grid
};

/// A tensor in pieces whose sizes its shape alone decides. Grids are those of rows, or of columns where the axis is the
/// last. Sums are [batches][grids][parts]: a grid's are added up in this order.
class Pieces {
 public:
  Pieces(const Grids &grids, const Shape &shape) {
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    std::size_t outer = 1, inner = 1;
    grids_ = grids.scales.size();
    if (grids_ == 1) {
      inner = size(element_count(shape));
    } else {
      for (std::size_t i = 0; i < shape.size(); ++i)
        if (i != grids.axis) (i < grids.axis ? outer : inner) *= size(shape[i]);
    }
    by_column_ = inner == 1 && grids_ > 1;
    rows_ = by_column_ ? outer : grids_;
    columns_ = by_column_ ? grids_ : inner;
    if (outer == 0 || inner == 0) return;
    parts_ = by_column_ ? 1 : ceil_div(columns_, kPiece);
    rows_of_piece_ = std::max<std::size_t>(1, kPiece / columns_);
    pieces_of_batch_ = ceil_div(rows_, rows_of_piece_) * parts_;
    count_ = (by_column_ ? 1 : outer) * pieces_of_batch_;
    batches_ = by_column_ ? pieces_of_batch_ : outer;
  }

  std::size_t count() const { return count_; }
  std::size_t sums() const { return batches_ * grids_ * parts_; }
  bool by_column() const { return by_column_; }

  Piece operator[](std::size_t i) const {
    const std::size_t batch = i / pieces_of_batch_, part = i % parts_;
    const std::size_t row = i % pieces_of_batch_ / parts_ * rows_of_piece_, column = part * kPiece;
    const std::size_t rows = std::min(rows_of_piece_, rows_ - row);
    const std::size_t columns = parts_ == 1 ? columns_ : std::min(kPiece, columns_ - column);
    const std::size_t element = (batch * rows_ + row) * columns_ + column;
    if (by_column_) return {element, rows, columns, 0, i * grids_};
    return {element, rows, columns, row, (batch * grids_ + row) * parts_ + part};
  }

  FakeSums total(const FakeSums *sums, std::size_t grid) const {
    FakeSums total{0, 0};
    for (std::size_t batch = 0; batch < batches_; ++batch)
      for (std::size_t part = 0; part < parts_; ++part) {
        const FakeSums &sum = sums[(batch * grids_ + grid) * parts_ + part];
        total.steps += sum.steps;
        total.outside += sum.outside;
      }
    return total;
  }

 private:
  bool by_column_;
  std::size_t grids_, rows_, columns_;
  std::size_t parts_ = 1, rows_of_piece_ = 1, pieces_of_batch_ = 1, batches_ = 0, count_ = 0;
};

FakeGrids kernel_grids(const Grids &g, const Piece &piece) {
  return {g.scales.data() + piece.grid, g.zero_points.data() + piece.grid, g.lo, g.hi, g.rounding, g.inverses};
}

void backward(const Tensor &x, const Grids &grids, const Pieces &pieces, const Tensor &dy, const Tensor &dx,
              FakeSums *sums) {
  parallel_for(pieces.count(), [&](std::size_t i) {
    const Piece p = pieces[i];
    kernels::fake_kernel().backward({p.rows, p.columns, pieces.by_column(), kernel_grids(grids, p),
                                     x.as<const float>() + p.element, dy.as<const float>() + p.element,
                                     dx.as<float>() + p.element, sums ? sums + p.sum : nullptr});
  });
}

void need_floats(const char *entry, const char *name, const Tensor &t) {
  if (t.dtype() != QTN_FLOAT32 || t.quantized())
    fail(QTN_EDTYPE, entry, ": ", name, " must be float32, not ", t.quantized() ? "quantized " : "",
         dtype_name(t.dtype()));
}

}  // namespace

QuantizerGrids::QuantizerGrids(const char *entry, const Quantizer &q)
    : rounding_(q.rounding()), inverses_(q.divides_back()), axis_(static_cast<std::size_t>(q.axis())) {
  if (is_tiny_float(q.dtype())) fail(QTN_EUNSUPPORTED, entry, ": ", dtype_name(q.dtype()), " is no grid of integers");
  if (q.zeros_are_floats()) fail(QTN_EUNSUPPORTED, entry, ": the quantizer has float zero points, not integers");
  if (q.per_block()) fail(QTN_EUNSUPPORTED, entry, ": the quantizer is per block, not per tensor or per channel");
  if (q.range().lo < -32768 || q.range().hi > 65535)
    fail(QTN_EUNSUPPORTED, entry, ": integers from ", q.range().lo, " to ", q.range().hi,
         " are more than 16 bits hold");
  lo_ = static_cast<std::int32_t>(q.range().lo);
  hi_ = static_cast<std::int32_t>(q.range().hi);
  for (std::size_t i = 0; i < q.count(); ++i) {
    scales_.push_back(q.back_factor(i));
    zero_points_.push_back(static_cast<std::int32_t>(q.zero_points()[i]));
  }
}

void fake_quantize(const Tensor &x, const Grids &grids, const Tensor &y) {
  const Pieces pieces(grids, x.shape());
  parallel_for(pieces.count(), [&](std::size_t i) {
    const Piece p = pieces[i];
    kernels::fake_kernel().quantize({p.rows, p.columns, pieces.by_column(), kernel_grids(grids, p),
                                     x.as<const float>() + p.element, y.as<float>() + p.element});
  });
}

void fake_quantize_backward(const Tensor &x, const Grids &grids, const Tensor &dy, const Tensor &dx) {
  backward(x, grids, Pieces(grids, x.shape()), dy, dx, nullptr);
}

void learned_backward(const Tensor &x, const Grids &grids, const Tensor &dy, const Tensor &dx,
                      std::span<float> d_scales, std::span<float> d_zero_points, Scratch &scratch) {
  const Pieces pieces(grids, x.shape());
  auto *const sums = reinterpret_cast<FakeSums *>(scratch.take(pieces.sums() * sizeof(FakeSums)));
  backward(x, grids, pieces, dy, dx, sums);
  for (std::size_t c = 0; c < grids.scales.size(); ++c) {
    const FakeSums total = pieces.total(sums, c);
    const auto given = static_cast<double>(grids.scales[c]), scale = grids.inverses ? 1 / given : given;
    d_scales[c] = static_cast<float>(total.steps);
    d_zero_points[c] = static_cast<float>(-total.outside * scale);
  }
}

ClipGradient clip_backward(const Tensor &x, float lo, float hi, const Tensor &dy, const Tensor &dx, Scratch &scratch) {
  const auto count = static_cast<std::size_t>(x.count()), pieces = ceil_div(count, kPiece);
  auto *const sums = reinterpret_cast<ClipSums *>(scratch.take(pieces * sizeof(ClipSums)));
  parallel_for(pieces, [&](std::size_t i) {
    const std::size_t from = i * kPiece;
    sums[i] = kernels::fake_kernel().clip_backward({std::min(kPiece, count - from), lo, hi, x.as<const float>() + from,
                                                    dy.as<const float>() + from, dx.as<float>() + from});
  });
  ClipSums total{0, 0};
  for (std::size_t i = 0; i < pieces; ++i) {
    total.below += sums[i].below;
    total.above += sums[i].above;
  }
  return {static_cast<float>(total.below), static_cast<float>(total.above)};
}

Tensor fake_quantize(const Tensor &x, const QuantizerPtr &quantizer) {
  need_floats("fake_quantize", "x", x);
  const QuantizerGrids grids("fake_quantize", *fitted(quantizer, x.shape()));
  const Tensor y(QTN_FLOAT32, x.shape());
  fake_quantize(x.to_contiguous(), grids.grids(), y);
  return y;
}

Tensor fake_quantize_backward(const Tensor &dy, const Tensor &x, const QuantizerPtr &quantizer) {
  need_floats("fake_quantize_backward", "dy", dy);
  need_floats("fake_quantize_backward", "x", x);
  if (dy.shape() != x.shape())
    fail(QTN_ESHAPE, "fake_quantize_backward: dy is ", to_string(dy.shape()), ", x is ", to_string(x.shape()));
  const QuantizerGrids grids("fake_quantize_backward", *fitted(quantizer, x.shape()));
  const Tensor dx(QTN_FLOAT32, x.shape());
  fake_quantize_backward(x.to_contiguous(), grids.grids(), dy.to_contiguous(), dx);
  return dx;
}

}  // namespace qtn::train
