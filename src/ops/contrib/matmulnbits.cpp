// SPDX-License-Identifier: Apache-2.0
#include "ops/common/matmulnbits.hpp"

#include <algorithm>
#include <limits>

#include "base/counted.hpp"
#include "base/memory.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/positive_scales.hpp"
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "MatMulNBits";
constexpr std::int64_t kMostInBlock = std::int64_t{1} << 40;
constexpr AttrSpec kAttrs[] = {
    {"K", AttrSpec::kInt},    {"N", AttrSpec::kInt},          {"accuracy_level", AttrSpec::kInt},
    {"bits", AttrSpec::kInt}, {"block_size", AttrSpec::kInt}, {"weight_prepacked", AttrSpec::kInt}};

// Inputs A, B, scales, zero_points, g_idx, bias. A row of B is an output's weights in blocks, the first code in the
// lowest bits of a byte; g_idx says of which block an element has the scale.
struct Layout {
  std::int64_t n, k, block, blocks, bits;

  std::int64_t bytes_of(std::int64_t codes) const { return (codes * bits + 7) / 8; }
};

Layout layout_of(const Call &call) {
  const std::int64_t bits = call.attrs.get_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8)
    fail(QTN_EUNSUPPORTED, kName, ": bits is ", bits, ", supported are 2, 4 and 8");
  const Layout l{call.attrs.get_int("N", 0), call.attrs.get_int("K", 0), call.attrs.get_int("block_size", 0), 0, bits};
  if (l.n < 1 || l.k < 1 || l.block < 2 || l.block > kMostInBlock || l.block % 2 != 0 || l.block * bits % 8 != 0)
    fail(QTN_EINVAL, kName, ": N is ", l.n, ", K is ", l.k, ", block_size is ", l.block);
  return {l.n, l.k, l.block, l.k / l.block + (l.k % l.block != 0), bits};
}

bool has_real_zeros(const Call &call) { return call.in(3) && call.in(3)->dtype() == QTN_FLOAT32; }

void check_weights(const Call &call, const Layout &l) {
  const Tensor &b = *call.in(1), &scales = *call.in(2), *zeros = call.in(3);
  require_dtype(kName, "B", b, {QTN_UINT8});
  require_dtype(kName, "scales", scales, {QTN_FLOAT32});
  const std::int64_t bytes = l.bytes_of(l.block);
  if (b.shape() != Shape{l.n, l.blocks, bytes})
    fail(QTN_ESHAPE, kName, ": B is ", to_string(b.shape()), ", not ", l.n, "x", l.blocks, "x", bytes);
  if (scales.count() != l.n * l.blocks)
    fail(QTN_ESHAPE, kName, ": ", scales.count(), " scales for ", l.n, " rows of ", l.blocks, " blocks");
  if (const Tensor *groups = call.in(4)) {
    require_dtype(kName, "g_idx", *groups, {QTN_INT32});
    if (groups->count() != l.k && groups->count() != l.blocks * l.block)
      fail(QTN_ESHAPE, kName, ": g_idx is ", to_string(groups->shape()), " for ", l.k, " elements");
  }
  if (!zeros) return;
  require_dtype(kName, "zero_points", *zeros, {QTN_UINT8, QTN_FLOAT32});
  if (has_real_zeros(call)) {
    if (zeros->count() != l.n * l.blocks)
      fail(QTN_ESHAPE, kName, ": ", zeros->count(), " zero_points for ", l.n, " rows of ", l.blocks, " blocks");
  } else if (zeros->count() != l.n * l.bytes_of(l.blocks)) {
    fail(QTN_ESHAPE, kName, ": ", zeros->count(), " bytes of zero_points for ", l.n, " rows of ", l.blocks, " blocks");
  }
}

qdtype dtype_of(const Layout &l) { return l.bits == 8 ? QTN_UINT8 : l.bits == 4 ? QTN_UINT4 : QTN_UINT2; }

/// The first `count` codes of each of N rows of bytes, where they lie. The last byte of a row may be part empty.
Tensor rows_of_codes(const Tensor &bytes, const Layout &l, std::int64_t count) {
  const Tensor rows = bytes.to_contiguous().reshaped({l.n, bytes.count() / l.n});
  return (l.bits == 8 ? rows : rows.as_packed(dtype_of(l))).slice(1, 0, count, 1);
}

/// The codes of all weights, [N, K].
Tensor codes_of(const Call &call, const Layout &l) { return rows_of_codes(*call.in(1), l, l.k); }

std::vector<std::int64_t> zeros_of(const Call &call, const Layout &l) {
  if (call.in(3) && !has_real_zeros(call)) return int_values(rows_of_codes(*call.in(3), l, l.blocks), "zero_points");
  return std::vector<std::int64_t>(static_cast<std::size_t>(l.n * l.blocks), 1 << (l.bits - 1));
}

/// Whether any zero point is not the middle of the codes. Every plan asks, so bytes are compared as they lie.
bool has_other_zeros(const Call &call, const Layout &l) {
  if (!call.in(3)) return false;
  const std::int64_t middle = 1 << (l.bits - 1);
  if (l.blocks * l.bits % 8 != 0)
    return std::ranges::any_of(zeros_of(call, l), [&](std::int64_t zero) { return zero != middle; });
  const auto all_in_the_middle = static_cast<std::uint8_t>(255 / ((1 << l.bits) - 1) * middle);
  const Tensor packed = call.in(3)->to_contiguous();
  const auto *bytes = packed.as<const std::uint8_t>();
  return std::any_of(bytes, bytes + packed.count(), [&](std::uint8_t byte) { return byte != all_in_the_middle; });
}

/// What is no grid of blocks: elements of any block, zero points between codes.
Tensor real_weights(const Call &call) {
  const Layout l = layout_of(call);
  const Tensor codes = to_plain(codes_of(call, l)), weights(QTN_FLOAT32, {l.n, l.k});
  const std::vector<float> scales = float_values(*call.in(2), "scales");
  std::vector<float> zeros;
  if (has_real_zeros(call))
    zeros = float_values(*call.in(3), "zero_points");
  else
    for (const std::int64_t zero : zeros_of(call, l)) zeros.push_back(static_cast<float>(zero));
  std::vector<std::int64_t> groups;
  if (call.in(4)) groups = int_values(*call.in(4), "g_idx");
  for (const std::int64_t group : groups)
    if (group < 0 || group >= l.blocks)
      fail(QTN_EINVAL, kName, ": g_idx has ", group, ", there are ", l.blocks, " blocks");
  for (std::int64_t i = 0; i < l.n * l.k; ++i) {
    const std::int64_t column = i % l.k,
                       block = groups.empty() ? column / l.block : groups[static_cast<std::size_t>(column)];
    const auto at = static_cast<std::size_t>(i / l.k * l.blocks + block);
    weights.as<float>()[i] = (static_cast<float>(codes.as<const std::uint8_t>()[i]) - zeros[at]) * scales[at];
  }
  return weights;
}

void check(const Call &call) {
  if (const std::int64_t order = call.attrs.get_int("weight_prepacked", 0); order != 0)
    fail(QTN_EUNSUPPORTED, kName, ": weight_prepacked is ", order, ", supported is 0");
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

/// accuracy_level 4.
void multiply_bytes(const Call &call, const Tensor &y) {
  const kernels::GemmBlocksKernel &kernel = kernels::choose(kernels::gemm_blocks_kernels(), isa());
  const AlignedBuffer packed = packed_nbits(call, kernel);
  const kernels::BlocksForm form = nbits_form(call);
  const Tensor x = call.in(0)->to_contiguous();
  const std::size_t rows = static_cast<std::size_t>(x.count()) / form.k, blocks = form.blocks();
  CountedVector<std::int8_t> q(rows * form.row_bytes());
  CountedVector<float> scales(rows * blocks);
  CountedVector<std::int32_t> sums(rows * blocks);
  const kernels::BlocksRows bytes{q.data(), scales.data(), sums.data()};
  kernel.quantize(bytes, x.as<const float>(), rows, form);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::int64_t n = y.shape().back();
  kernel.run({form, rows, static_cast<std::size_t>(n), bytes, packed.data(), y.as<float>(), n, -kInfinity, kInfinity});
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (multiplies_bytes(call)) return multiply_bytes(call, outputs[0]);
  const int order[] = {1, 0};
  const Tensor weights =
      (has_real_zeros(call) || call.in(4) ? real_weights(call) : reals_of(nbits_weights(call))).permute(order);
  const Tensor *operands[] = {call.in(0), &weights};
  copy_elements(outputs[0], run_op(kMatMul, {{}, operands})[0]);
  add_column_bias(outputs[0], call.in(5));
}

}  // namespace

Tensor nbits_weights(const Call &call) {
  const Layout l = layout_of(call);
  check_weights(call, l);
  const std::vector<float> scales = float_values(*call.in(2), "scales");
  try {
    // ONNX Runtime's quantizer gives a block a negative scale where its largest number is positive.
    if (std::ranges::any_of(scales, [](float s) { return s <= 0; }))
      return on_positive_scales(codes_of(call, l), scales, zeros_of(call, l), 1, l.block, Numerics::onnx);
    return codes_of(call, l).with_quantizer(std::make_shared<Quantizer>(
        dtype_of(l), QTN_PER_BLOCK_AFFINE, 1, std::vector<double>(scales.begin(), scales.end()), zeros_of(call, l),
        Numerics::onnx, l.block));
  } catch (const Error &e) {
    fail(e.status(), kName, ": ", e.what());
  }
}

bool asks_for_bytes(const Attrs &attrs) {
  constexpr std::int64_t kBytes = 4;
  return attrs.get_int("accuracy_level", 0) == kBytes;
}

bool multiplies_bytes(const Call &call) {
  return asks_for_bytes(call.attrs) && !call.in(4) && !has_real_zeros(call) &&
         std::min(layout_of(call).k, layout_of(call).block) <= static_cast<std::int64_t>(kernels::kMostInBlock);
}

kernels::BlocksForm nbits_form(const Call &call) {
  const Layout l = layout_of(call);
  return {static_cast<std::size_t>(l.k), static_cast<std::size_t>(std::min(l.k, l.block)), l.bits == 8 ? 8 : 4,
          has_other_zeros(call, l)};
}

AlignedBuffer packed_nbits(const Call &call, const kernels::GemmBlocksKernel &kernel) {
  const Layout l = layout_of(call);
  check_weights(call, l);
  const kernels::BlocksForm form = nbits_form(call);
  const std::vector<float> scales = float_values(*call.in(2), "scales");
  const Tensor codes = codes_of(call, l), bias = call.in(5) ? call.in(5)->to_contiguous() : Tensor();
  const auto around_zero = [&](auto code) { return static_cast<std::int8_t>(code - (1 << (l.bits - 1))); };
  const std::vector<std::int64_t> zeros = zeros_of(call, l);
  std::vector<std::int8_t> centered(zeros.size());
  std::ranges::transform(zeros, centered.begin(), around_zero);
  AlignedBuffer packed(kernel.packed_bytes(static_cast<std::size_t>(l.n), form));
  // Some columns at a time take little memory beside the result.
  constexpr std::int64_t kColumns = 64;
  CountedVector<std::int8_t> q(static_cast<std::size_t>(std::min(kColumns, l.n) * l.k));
  for (std::int64_t j = 0; j < l.n; j += kColumns) {
    const std::int64_t columns = std::min(kColumns, l.n - j);
    const Tensor plain = to_plain(codes.slice(0, j, j + columns, 1));
    const auto *bytes = plain.as<const std::uint8_t>();
    std::transform(bytes, bytes + plain.count(), q.begin(), around_zero);
    kernel.pack(packed.data() + (j ? kernel.packed_bytes(static_cast<std::size_t>(j), form) : 0),
                {form, q.data(), scales.data() + j * l.blocks, centered.data() + j * l.blocks,
                 call.in(5) ? bias.as<const float>() + j : nullptr, static_cast<std::size_t>(columns)});
  }
  return packed;
}

const OpDef kMatMulNBits{.name = kName,
                         .domain = kMicrosoft,
                         .min_inputs = 3,
                         .max_inputs = 6,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .check = check,
                         .infer = infer,
                         .run = run,
                         .work = work_of_product};

}  // namespace qtn::ops
