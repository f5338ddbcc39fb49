// SPDX-License-Identifier: Apache-2.0
// Products of matrices, and rows of a table.
#include <limits>
#include <span>

#include "graph/integer.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// To which the step of such products adds up in int32.
constexpr std::int64_t kMatMulDepth = std::numeric_limits<std::int32_t>::max() / (3 * 255 * 128);

bool multiplies_8bit(Lowering &l) {
  if (l.node().op != &ops::kMatMul || l.node().clamp || !l.is_8bit(l.input(0)) || !l.is_8bit(l.input(1))) return false;
  const Shape &a = l.shape_of(l.input(0)), &b = l.shape_of(l.input(1));
  const QuantizerPtr &qy = l.g.value(l.output()).quantizer;
  return a.size() >= 2 && b.size() >= 2 && a.back() <= kMatMulDepth && element_count(a) != 0 && element_count(b) != 0 &&
         (!qy || l.is_8bit(l.output()));
}

/// What a Gemm does beside multiplying, and a MatMul does not.
struct GemmFactors {
  float alpha = 1, beta = 1;
  bool rows_are_columns = false, weight_is_transposed = false;

  explicit GemmFactors(const graph::Node &node) {
    if (node.op != &ops::kGemm) return;
    alpha = static_cast<float>(node.attrs.get_float("alpha", 1));
    beta = static_cast<float>(node.attrs.get_float("beta", 1));
    rows_are_columns = node.attrs.get_int("transA", 0) != 0;
    weight_is_transposed = node.attrs.get_int("transB", 0) != 0;
  }
};

Tensor scaled(const Tensor &t, float factor) {
  if (!t.has_data() || factor == 1) return t;
  const Tensor product = t.clone();
  for (float &v : std::span(product.as<float>(), static_cast<std::size_t>(product.count()))) v *= factor;
  return product;
}

/// The columns of a matrix as rows.
SlotId transposed(Lowering &l, SlotId x) {
  const Shape &shape = l.form(x).shape;
  const Shape turned{shape[1], shape[0]};
  return l.add_view(l.copied(x, Shape{1, shape[0]}), {turned, contiguous_strides(turned), 0});
}

}  // namespace

/// Rows by constant weights.
bool lower_product(Lowering &l) {
  const ValueId x = l.input(0), y = l.output();
  const QuantizerPtr qx = canonical(l.g.value(x).quantizer);
  const QuantizerPtr qy = l.is_8bit(y) ? canonical(l.g.value(y).quantizer) : nullptr;
  const LinearWeights one = linear_weights(l.g, l.node()), w = l.finished(one, one.out, *qx, qy.get());
  if (!w.sums_fit) return false;
  const SlotId xs = l.contiguous(l.integer(x));
  const Shape strides = contiguous_strides(l.shape_of(y));
  const SlotId ys = qy ? l.integer_output(y, l.shape_of(y), strides) : l.real_slot(l.shape_of(y), strides);
  const std::size_t rows = w.out == 0 ? 0 : static_cast<std::size_t>(element_count(l.shape_of(y))) / w.out;
  l.add_step(make_gemm(l.edge(xs), l.edge(ys), rows, w, qy ? l.range(qy) : QuantizedRange{}, l.clamp(), l.isa,
                       l.pack_cache()));
  if (!qy) l.set_real(y, ys);
  return true;
}

/// Integers whose rows lie side by side in memory of the plan, behind which kernels may read.
SlotId integer_rows(Lowering &l, ValueId v) {
  const SlotId s = l.integer(v);
  const Shape shape = l.form(s).shape;
  const bool lie_so = shape.back() == 1 || l.form(s).strides.back() == 1;
  const bool are_of_plan = !l.is_integer_input(s) && !l.constant_of(v).has_data();
  return lie_so && are_of_plan ? s : l.copied(s, contiguous_strides(shape));
}

/// The product of two activations in 8 bits.
bool lower_matmul(Lowering &l) {
  if (!multiplies_8bit(l)) return false;
  const ValueId y = l.output();
  const SlotId a = integer_rows(l, l.input(0)), b = l.integer(l.input(1));
  const Shape &shape = l.shape_of(y);
  const SlotId to =
      l.is_8bit(y) ? l.integer_output(y, shape, contiguous_strides(shape)) : l.plain_slot(QTN_FLOAT32, shape);
  l.add_step(make_matmul(l.edge(a), l.edge(b), l.edge(to), l.isa));
  if (!l.is_8bit(y)) l.set_real(y, to);
  return true;
}

/// Rows by a constant matrix.
bool lower_real_product(Lowering &l) {
  if (l.node().op != &ops::kGemm && l.node().op != &ops::kMatMul) return false;
  const GemmFactors factors(l.node());
  if (factors.alpha == 0 || factors.beta == 0) return false;  // which hide infinities
  const Tensor &weight = l.constant_of(l.input(1)), bias = scaled(l.real_constant(l.input(2)), factors.beta);
  const Shape &x = l.shape_of(l.input(0)), &shape = l.shape_of(l.output());
  if (!weight.has_data() || weight.rank() != 2 || weight.count() == 0 || x.empty() || element_count(x) == 0)
    return false;
  const bool is_matrix = !factors.weight_is_transposed;
  const std::int64_t depth = weight.dim(is_matrix ? 0 : 1), out = weight.dim(is_matrix ? 1 : 0);
  if (l.input(2) != kNoValue && !(bias.has_data() && graph::is_of_channels(bias, out))) return false;
  const auto k = static_cast<std::size_t>(depth), columns = static_cast<std::size_t>(out);
  const std::size_t rows = static_cast<std::size_t>(element_count(x)) / k;
  const SlotId any = l.real(l.input(0)), from = factors.rows_are_columns ? transposed(l, any) : any;
  const SlotId y = l.real_slot(shape, contiguous_strides(shape));
  const CodedWeights coded{weight, bias, columns, k, is_matrix};
  if (factors.alpha == 1 && stays_coded(coded, l.isa)) {
    l.add_step(make_coded_gemm(l.edge(from), l.edge(y), rows, coded, l.clamp(), l.isa, l.pack_cache()));
  } else {
    const RealWeights w{scaled(l.real_constant(l.input(1)), factors.alpha), bias, 1, columns, k, 1, is_matrix};
    l.add_step(make_real_gemm(l.edge(from), l.edge(y), rows, w, l.clamp(), l.isa, l.pack_cache()));
  }
  l.set_real(l.output(), y);
  return true;
}

/// The product of two matrices that are both computed.
bool lower_real_matmul(Lowering &l) {
  if (l.node().op != &ops::kMatMul || !l.is_real(l.input(1))) return false;
  const Shape &a = l.shape_of(l.input(0)), &b = l.shape_of(l.input(1)), &shape = l.shape_of(l.output());
  if (a.size() < 2 || b.size() < 2 || element_count(a) == 0 || element_count(b) == 0) return false;
  const SlotId y = l.real_slot(shape, contiguous_strides(shape));
  l.add_step(make_real_matmul(l.edge(l.side_by_side(l.input(0))), l.edge(l.any_real(l.input(1))), l.edge(y), l.clamp(),
                              l.isa));
  l.set_real(l.output(), y);
  return true;
}

/// The table stays in integers, of which a run needs a few rows.
bool lower_embedding(Lowering &l) {
  if (l.node().op != &ops::kGather || l.node().clamp) return false;
  const Tensor &constant = l.constant_of(l.input(0));
  if (!constant.has_data() || !constant.quantized() || constant.rank() != 2 || !l.is_real(l.output())) return false;
  const Tensor table = constant.to_contiguous();
  const Quantizer &q = *table.quantizer();
  const bool by_row = q.per_channel() && (q.axis() == 0 || q.axis() == -2);
  const std::int64_t axis = l.node().attrs.get_int("axis", 0);
  if ((q.dtype() != QTN_INT8 && q.dtype() != QTN_UINT8) || q.per_block() || (q.per_channel() && !by_row) ||
      q.numerics() != Numerics::onnx || (axis != 0 && axis != -2))
    return false;
  const Shape &shape = l.shape_of(l.output());
  const SlotId y = l.real_slot(shape, contiguous_strides(shape));
  l.add_step(make_embedding(table, l.edge(l.real(l.input(1))), l.edge(y), l.isa));
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
