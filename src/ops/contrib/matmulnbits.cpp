// SPDX-License-Identifier: Apache-2.0
#include "ops/common/matmulnbits.hpp"

#include "ops/common/qlinear.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "MatMulNBits";
constexpr AttrSpec kAttrs[] = {{"K", AttrSpec::kInt},
                               {"N", AttrSpec::kInt},
                               {"accuracy_level", AttrSpec::kInt},
                               {"bits", AttrSpec::kInt},
                               {"block_size", AttrSpec::kInt}};

// Inputs A, B, scales, zero_points, g_idx, bias. A row of B is an output's weights, blocks of two codes a byte, the
// first in the low half.
struct Layout {
  std::int64_t n, k, block, blocks;
};

Layout layout_of(const Call &call) {
  const std::int64_t bits = call.attrs.get_int("bits", 4);
  if (bits != 4) fail(QTN_EUNSUPPORTED, kName, ": bits is ", bits, ", supported is 4");
  const Layout l{call.attrs.get_int("N", 0), call.attrs.get_int("K", 0), call.attrs.get_int("block_size", 0), 0};
  if (l.n < 1 || l.k < 1 || l.block < 2 || l.block % 2 != 0)
    fail(QTN_EINVAL, kName, ": N is ", l.n, ", K is ", l.k, ", block_size is ", l.block);
  return {l.n, l.k, l.block, l.k / l.block + (l.k % l.block != 0)};
}

void check_weights(const Call &call, const Layout &l) {
  const Tensor &b = *call.in(1), &scales = *call.in(2), *zeros = call.in(3);
  require_dtype(kName, "B", b, {QTN_UINT8});
  require_dtype(kName, "scales", scales, {QTN_FLOAT32});
  if (b.shape() != Shape{l.n, l.blocks, l.block / 2})
    fail(QTN_ESHAPE, kName, ": B is ", to_string(b.shape()), ", not ", l.n, "x", l.blocks, "x", l.block / 2);
  if (scales.count() != l.n * l.blocks)
    fail(QTN_ESHAPE, kName, ": ", scales.count(), " scales for ", l.n, " rows of ", l.blocks, " blocks");
  if (call.in(4)) fail(QTN_EUNSUPPORTED, kName, ": g_idx is not supported");
  if (!zeros) return;
  if (zeros->dtype() != QTN_UINT8)
    fail(QTN_EUNSUPPORTED, kName, ": zero_points are ", dtype_name(zeros->dtype()), ", supported is uint8");
  if (zeros->count() != l.n * ((l.blocks + 1) / 2))
    fail(QTN_ESHAPE, kName, ": ", zeros->count(), " bytes of zero_points for ", l.n, " rows of ", l.blocks, " blocks");
}

std::uint8_t code_at(const std::uint8_t *bytes, std::int64_t i) {
  return static_cast<std::uint8_t>(i % 2 != 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15);
}

Types infer(const Call &call) {
  const Layout l = layout_of(call);
  require_dtype(kName, "A", *call.in(0), {QTN_FLOAT32});
  check_weights(call, l);
  const Tensor weights = Tensor::meta(QTN_FLOAT32, Shape{l.k, l.n});
  check_column_bias(kName, call.in(5), weights);
  const Tensor *operands[] = {call.in(0), &weights};
  return infer_op(kMatMul, {{}, operands});
}

void run(const Call &call, std::span<Tensor> outputs) {
  const int order[] = {1, 0};
  const Tensor weights = dequantize(nbits_weights(call)).permute(order);
  const Tensor *operands[] = {call.in(0), &weights};
  copy_elements(outputs[0], run_op(kMatMul, {{}, operands})[0]);
  add_column_bias(outputs[0], call.in(5));
}

}  // namespace

Tensor nbits_weights(const Call &call) {
  const Layout l = layout_of(call);
  check_weights(call, l);
  const Tensor b = call.in(1)->to_contiguous(), zeros = call.in(3) ? call.in(3)->to_contiguous() : Tensor();
  std::vector<std::int64_t> zero_points(static_cast<std::size_t>(l.n * l.blocks), 8);
  const Tensor codes(QTN_UINT8, {l.n, l.k});
  for (std::int64_t row = 0; row < l.n; ++row) {
    for (std::int64_t i = 0; i < l.k; ++i)
      codes.as<std::uint8_t>()[row * l.k + i] = code_at(b.as<const std::uint8_t>() + row * l.blocks * (l.block / 2), i);
    for (std::int64_t i = 0; zeros.has_data() && i < l.blocks; ++i)
      zero_points[static_cast<std::size_t>(row * l.blocks + i)] =
          code_at(zeros.as<const std::uint8_t>() + row * ((l.blocks + 1) / 2), i);
  }
  const std::vector<float> scales = float_values(*call.in(2), "scales");
  try {
    const auto q = std::make_shared<Quantizer>(QTN_UINT4, QTN_PER_BLOCK_AFFINE, 1,
                                               std::vector<double>(scales.begin(), scales.end()),
                                               std::move(zero_points), Numerics::onnx, l.block);
    return from_plain(codes, QTN_UINT4).with_quantizer(q);
  } catch (const Error &e) {
    fail(e.status(), kName, ": ", e.what());
  }
}

const OpDef kMatMulNBits{.name = kName,
                         .domain = kMicrosoft,
                         .min_inputs = 3,
                         .max_inputs = 6,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run};

}  // namespace qtn::ops
