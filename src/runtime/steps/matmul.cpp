// SPDX-License-Identifier: Apache-2.0
// Products of two activations: the right one is read by its columns, as weights of a linear layer are by their rows.
#include <algorithm>

#include "ops/common/integer_linear.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class MatMulStep final : public Step {
 public:
  MatMulStep(const Edge &a, const Edge &b, const Edge &y)
      : a_(a.slot), b_(b.slot), y_(y.slot), batch_(y.form.shape), result_(y.form.quantizer) {
    batch_.erase(batch_.size() - 1);
    batch_.erase(batch_.size() - 1);
    kernel = "dot";
    integer = true;
    reads = {a.slot, b.slot};
    writes = {y.slot};
    macs = element_count(y.form.shape) * a.form.shape.back();
  }

  void run(const Context &c) const override {
    const Tensor &y = c.tensor(y_);
    const Operand a = operand(c.tensor(a_), false), b = operand(c.tensor(b_), true);
    const std::size_t bytes = y.nbytes() / static_cast<std::size_t>(element_count(batch_));
    for (std::int64_t i = 0; i < element_count(batch_); ++i) {
      const Tensor rows = matrix(a, i);
      const std::optional<Tensor> part = ops::integer_linear(rows, *rows.quantizer(), matrix(b, i), nullptr, result_);
      std::copy_n(part->as<const std::byte>(), bytes,
                  static_cast<std::byte *>(y.data()) + static_cast<std::size_t>(i) * bytes);
    }
  }

 private:
  /// A stack of matrices, one for each product, in any order of strides.
  struct Operand {
    const Tensor &tensor;
    Shape matrix, strides, batch_strides;
  };

  Operand operand(const Tensor &t, bool by_columns) const {
    Operand o{t, {}, {}, {}};
    const std::size_t rank = t.rank();
    Shape outer, outer_strides;
    for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
      outer.push_back(t.shape()[axis]);
      outer_strides.push_back(t.strides()[axis]);
    }
    o.batch_strides = broadcast_strides(outer, outer_strides, batch_);
    for (const std::size_t axis : {rank - (by_columns ? 1 : 2), rank - (by_columns ? 2 : 1)}) {
      o.matrix.push_back(t.shape()[axis]);
      o.strides.push_back(t.strides()[axis]);
    }
    return o;
  }

  Tensor matrix(const Operand &o, std::int64_t i) const {
    std::int64_t offset = 0;
    for (std::size_t axis = batch_.size(); axis-- > 0; i /= batch_[axis])
      offset += i % batch_[axis] * o.batch_strides[axis];
    auto *first = const_cast<std::uint8_t *>(o.tensor.as<const std::uint8_t>()) + offset;
    return Tensor(o.tensor.dtype(), o.matrix, o.strides, first, nullptr)
        .with_quantizer(o.tensor.quantizer())
        .to_contiguous();
  }

  SlotId a_, b_, y_;
  Shape batch_;
  QuantizerPtr result_;
};

}  // namespace

StepPtr make_matmul(const Edge &a, const Edge &b, const Edge &y) { return std::make_unique<MatMulStep>(a, b, y); }

}  // namespace qtn::runtime
