// SPDX-License-Identifier: Apache-2.0
#include "ops/common/matmulnbits.hpp"

#include <algorithm>
#include <limits>

#include "base/counted.hpp"
#include "base/memory.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/linear_grid.hpp"
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "MatMulNBits";
constexpr std::int64_t kMostInBlock = std::int64_t{1} << 40;
constexpr AttrSpec kAttrs[] = {{"K", AttrSpec::kInt},
                               {"N", AttrSpec::kInt},
                               {"accuracy_level", AttrSpec::kInt},
                               {"bits", AttrSpec::kInt},
                               {"block_size", AttrSpec::kInt}};

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

std::uint8_t code_at(const std::uint8_t *bytes, std::int64_t i, std::int64_t bits) {
  const std::int64_t bit = i * bits;
  return static_cast<std::uint8_t>(bytes[bit / 8] >> bit % 8 & ((1 << bits) - 1));
}

/// The codes of all weights, [N, K].
Tensor codes_of(const Call &call, const Layout &l) {
  const Tensor b = call.in(1)->to_contiguous(), codes(QTN_UINT8, {l.n, l.k});
  const std::int64_t row_bytes = l.blocks * l.bytes_of(l.block);
  for (std::int64_t row = 0; row < l.n; ++row)
    for (std::int64_t i = 0; i < l.k; ++i)
      codes.as<std::uint8_t>()[row * l.k + i] = code_at(b.as<const std::uint8_t>() + row * row_bytes, i, l.bits);
  return codes;
}

std::vector<std::int64_t> zeros_of(const Call &call, const Layout &l) {
  std::vector<std::int64_t> zeros(static_cast<std::size_t>(l.n * l.blocks), 1 << (l.bits - 1));
  if (!call.in(3) || has_real_zeros(call)) return zeros;
  const Tensor packed = call.in(3)->to_contiguous();
  for (std::int64_t i = 0; i < l.n * l.blocks; ++i)
    zeros[static_cast<std::size_t>(i)] =
        code_at(packed.as<const std::uint8_t>() + i / l.blocks * l.bytes_of(l.blocks), i % l.blocks, l.bits);
  return zeros;
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
  const Tensor codes = codes_of(call, l), weights(QTN_FLOAT32, {l.n, l.k});
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
  const NBitsCodes codes = nbits_codes(call);
  const kernels::GemmBlocksKernel &kernel = kernels::choose(kernels::gemm_blocks_kernels(), isa());
  AlignedBuffer packed(kernel.packed_bytes(codes.n, codes.form));
  const Tensor bias = call.in(5) ? call.in(5)->to_contiguous() : Tensor(), x = call.in(0)->to_contiguous();
  kernel.pack(packed.data(), {codes.form, codes.q.data(), codes.scales.data(), codes.zeros.data(),
                              call.in(5) ? bias.as<const float>() : nullptr, codes.n});
  const std::size_t rows = static_cast<std::size_t>(x.count()) / codes.form.k, blocks = codes.form.blocks();
  CountedVector<std::int8_t> q(rows * codes.form.row_bytes());
  CountedVector<float> scales(rows * blocks);
  CountedVector<std::int32_t> sums(rows * blocks);
  const kernels::BlocksRows bytes{q.data(), scales.data(), sums.data()};
  kernel.quantize(bytes, x.as<const float>(), rows, codes.form);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  kernel.run({codes.form, rows, codes.n, bytes, packed.data(), y.as<float>(), static_cast<std::ptrdiff_t>(codes.n),
              -kInfinity, kInfinity});
}

Tensor as_reals(const Tensor &weights) { return weights.quantized() ? dequantize(weights) : weights; }

void run(const Call &call, std::span<Tensor> outputs) {
  if (multiplies_bytes(call)) return multiply_bytes(call, outputs[0]);
  const int order[] = {1, 0};
  const Tensor weights =
      (has_real_zeros(call) || call.in(4) ? real_weights(call) : as_reals(nbits_weights(call))).permute(order);
  const Tensor *operands[] = {call.in(0), &weights};
  copy_elements(outputs[0], run_op(kMatMul, {{}, operands})[0]);
  add_column_bias(outputs[0], call.in(5));
}

}  // namespace

Tensor nbits_weights(const Call &call) {
  const Layout l = layout_of(call);
  check_weights(call, l);
  const qdtype dtype = l.bits == 8 ? QTN_UINT8 : l.bits == 4 ? QTN_UINT4 : QTN_UINT2;
  const std::vector<float> scales = float_values(*call.in(2), "scales");
  try {
    // ONNX Runtime's quantizer gives a block a negative scale where its largest number is positive.
    if (std::ranges::any_of(scales, [](float s) { return s <= 0; }))
      return on_positive_scales(codes_of(call, l), scales, zeros_of(call, l), 1, l.block, Numerics::onnx);
    const auto q =
        std::make_shared<Quantizer>(dtype, QTN_PER_BLOCK_AFFINE, 1, std::vector<double>(scales.begin(), scales.end()),
                                    zeros_of(call, l), Numerics::onnx, l.block);
    return from_plain(codes_of(call, l), dtype).with_quantizer(q);
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

NBitsCodes nbits_codes(const Call &call) {
  const Layout l = layout_of(call);
  check_weights(call, l);
  NBitsCodes codes{nbits_form(call), static_cast<std::size_t>(l.n), {}, {}, float_values(*call.in(2), "scales")};
  const int middle = 1 << (l.bits - 1);
  const auto around_zero = [&](auto code) { return static_cast<std::int8_t>(static_cast<int>(code) - middle); };
  const Tensor q = codes_of(call, l);
  codes.q.resize(static_cast<std::size_t>(q.count()));
  std::transform(q.as<const std::uint8_t>(), q.as<const std::uint8_t>() + q.count(), codes.q.begin(), around_zero);
  const std::vector<std::int64_t> zeros = zeros_of(call, l);
  codes.zeros.resize(zeros.size());
  std::transform(zeros.begin(), zeros.end(), codes.zeros.begin(), around_zero);
  return codes;
}

const OpDef kMatMulNBits{.name = kName,
                         .domain = kMicrosoft,
                         .min_inputs = 3,
                         .max_inputs = 6,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run,
                         .work = work_of_product};

}  // namespace qtn::ops
