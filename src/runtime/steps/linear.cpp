// SPDX-License-Identifier: Apache-2.0
// Conv, Gemm and MatMul: dense and grouped convolutions are products of packed weights and rows of taps.
#include <cmath>

#include "graph/integer.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/kernel.hpp"
#include "ops/requantization.hpp"
#include "runtime/im2row.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

// A block of rows of this size stays in the first level of cache beside a panel of weights.
constexpr std::size_t kBlockBytes = 24 * 1024;

PackedWeights pack_groups(const kernels::GemmKernel &kernel, const LinearWeights &w) {
  PackedWeights packed;
  const std::size_t each = round_up(kernel.packed_bytes(w.out, w.k), kAlignment);
  packed.bytes = AlignedBuffer(each * w.groups);
  for (std::size_t i = 0; i < w.groups; ++i) {
    packed.offsets.push_back(i * each);
    kernel.pack(packed.bytes.data() + i * each,
                {w.weight.data() + i * w.out * w.k, static_cast<std::ptrdiff_t>(w.k), w.bias.data() + i * w.out,
                 w.multiplier.data() + i * w.out, w.out, w.k});
  }
  return packed;
}

/// What convolutions and plain products share: one product of a block of rows with one group's weights.
class LinearStep : public Step {
 public:
  LinearStep(const Edge &x, const Edge &y, const LinearWeights &w, const QuantizedRange &range, const ops::Clamp &clamp,
             Isa isa, const PackCache &cache)
      : kernel_(kernels::choose(kernels::gemm_kernels(), isa)),
        packed_(cache([&] { return pack_groups(kernel_, w); })),
        x_(x.slot),
        y_(y.slot),
        float_output_(y.form.dtype == QTN_FLOAT32),
        groups_(w.groups),
        out_(w.out),
        k_(w.k),
        range_(range),
        clamp_(clamp) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {y.slot};
  }

 protected:
  std::size_t product_bytes() const { return round_up(kernel_.scratch_bytes(k_), kAlignment); }

  /// Rows of one task: whole tiles, of about kBlockBytes.
  std::size_t block_rows(std::size_t row_bytes) const {
    const std::size_t tiles = std::max<std::size_t>(1, kBlockBytes / std::max<std::size_t>(1, row_bytes) / kernel_.mr);
    return tiles * kernel_.mr;
  }

  void product(std::size_t group, std::size_t rows, const std::uint8_t *a, std::ptrdiff_t lda, std::byte *y,
               std::ptrdiff_t ldy, void *scratch) const {
    kernels::GemmArgs args{};
    args.m = rows;
    args.n = out_;
    args.k = k_;
    args.a = a;
    args.lda = lda;
    args.packed = packed_->bytes.data() + packed_->offsets[group];
    args.y = y + group * out_ * (float_output_ ? sizeof(float) : 1);
    args.ldy = ldy;
    args.range = range_;
    args.lo = clamp_.lo;
    args.hi = clamp_.hi;
    args.scratch = scratch;
    (float_output_ ? kernel_.run_f32 : kernel_.run_u8)(args);
  }

  const kernels::GemmKernel &kernel_;
  PackedPtr packed_;
  SlotId x_, y_;
  bool float_output_;
  std::size_t groups_, out_, k_;
  QuantizedRange range_;
  ops::Clamp clamp_;
};

class GemmStep final : public LinearStep {
 public:
  GemmStep(const Edge &x, const Edge &y, std::size_t rows, const LinearWeights &w, const QuantizedRange &range,
           const ops::Clamp &clamp, Isa isa, const PackCache &cache)
      : LinearStep(x, y, w, range, clamp, isa, cache), rows_(rows) {
    macs = static_cast<std::int64_t>(rows * out_ * k_);
  }

  std::size_t lane_bytes() const override { return product_bytes(); }

  void run(const Context &c) const override {
    const auto *a = c.tensor(x_).as<const std::uint8_t>();
    auto *y = static_cast<std::byte *>(c.tensor(y_).data());
    const std::size_t block = block_rows(k_), element = float_output_ ? sizeof(float) : 1;
    for_chunks(c, ceil_div(rows_, block), [&](std::size_t lane, std::size_t chunk) {
      const std::size_t first = chunk * block;
      product(0, std::min(block, rows_ - first), a + first * k_, static_cast<std::ptrdiff_t>(k_),
              y + first * out_ * element, static_cast<std::ptrdiff_t>(out_), c.lane_scratch(lane));
    });
  }

 private:
  std::size_t rows_;
};

class ConvStep final : public LinearStep {
 public:
  ConvStep(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w, const QuantizedRange &range,
           const ops::Clamp &clamp, Isa isa, const PackCache &cache)
      : LinearStep(x, y, w, range, clamp, isa, cache),
        picture_(*as_picture(x.form.shape, x.form.strides)),
        y_picture_(*as_picture(y.form.shape, y.form.strides)),
        rows_{window, picture_, picture_.c / static_cast<std::int64_t>(groups_),
              static_cast<std::uint8_t>(x.form.quantizer->zero_point())} {
    const auto one = [](const ops::Window::Dims &d) { return d[0] == 1 && d[1] == 1; };
    pointwise_ = one(window.kernel) && one(window.stride) &&
                 window.pad_begin[0] + window.pad_begin[1] + window.pad_end[0] + window.pad_end[1] == 0;
    macs = picture_.n * window.outputs_count() * static_cast<std::int64_t>(groups_ * out_ * k_);
  }

  std::size_t lane_bytes() const override {
    return product_bytes() + (pointwise_ ? 0 : round_up(block_rows(k_) * row_stride() + kReadSlack, kAlignment));
  }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const std::uint8_t>();
    auto *y = static_cast<std::byte *>(c.tensor(y_).data());
    const auto pixels = static_cast<std::size_t>(y_picture_.pixels());
    const std::size_t block = block_rows(k_), blocks = ceil_div(pixels, block);
    for_chunks(c, static_cast<std::size_t>(picture_.n) * blocks, [&](std::size_t lane, std::size_t chunk) {
      const std::size_t image = chunk / blocks, first = chunk % blocks * block, count = std::min(block, pixels - first);
      block_of_rows(x + static_cast<std::ptrdiff_t>(image) * picture_.pixels() * picture_.pixel,
                    y + (image * pixels + first) * static_cast<std::size_t>(y_picture_.pixel) *
                            (float_output_ ? sizeof(float) : 1),
                    first, count, c.lane_scratch(lane));
    });
  }

 private:
  std::size_t row_stride() const { return round_up(k_, 4); }

  void block_of_rows(const std::uint8_t *image, std::byte *y, std::size_t first, std::size_t count,
                     std::byte *scratch) const {
    auto *gathered = reinterpret_cast<std::uint8_t *>(scratch + product_bytes());
    for (std::size_t group = 0; group < groups_; ++group) {
      const std::uint8_t *channels = image + group * static_cast<std::size_t>(rows_.channels);
      if (pointwise_) {
        product(group, count, channels + static_cast<std::ptrdiff_t>(first) * picture_.pixel, picture_.pixel, y,
                y_picture_.pixel, scratch);
        continue;
      }
      const auto ld = static_cast<std::ptrdiff_t>(row_stride());
      rows_.fill(gathered, ld, channels, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
      product(group, count, gathered, ld, y, y_picture_.pixel, scratch);
    }
  }

  Picture picture_, y_picture_;
  Im2Row rows_;
  bool pointwise_;
};

}  // namespace

LinearWeights linear_weights(const graph::Graph &g, const graph::Node &node, const Quantizer &x, const Quantizer *y) {
  const graph::Value &value = g.value(node.inputs[1]);
  const Tensor weight = value.constant.to_contiguous();
  const Quantizer &wq = *value.quantizer;
  const bool conv = std::string_view(node.op->name) == "Conv";
  const std::size_t channel_axis = graph::output_channel_axis(node);
  LinearWeights w;
  w.groups = conv ? static_cast<std::size_t>(node.attrs.get_int("group", 1)) : 1;
  const auto channels = static_cast<std::size_t>(weight.dim(channel_axis));
  w.out = channels / w.groups;
  w.k = channels == 0 ? 0 : static_cast<std::size_t>(weight.count()) / channels;
  // Taps come before channels, as im2row lays them out: [o][c][taps] -> [o][taps][c]. A matrix [k][n] is transposed.
  const auto o_count = static_cast<std::int64_t>(channels), k = static_cast<std::int64_t>(w.k);
  const std::int64_t in = conv ? weight.dim(1) : k, taps = conv && in ? k / in : 1;
  w.weight.resize(channels * w.k);
  const auto *from = weight.as<const std::int8_t>();
  for (std::int64_t o = 0; o < o_count; ++o)
    for (std::int64_t t = 0; t < taps; ++t)
      for (std::int64_t c = 0; c < in; ++c)
        w.weight[static_cast<std::size_t>(o * k + t * in + c)] =
            channel_axis == 0 ? from[o * k + c * taps + t] : from[c * o_count + o];

  const graph::ValueId bias_id = node.inputs.size() > 2 ? node.inputs[2] : graph::kNoValue;
  w.bias = ops::integer_bias(bias_id == graph::kNoValue ? nullptr : &g.value(bias_id).constant, x, wq, channels);
  for (std::size_t o = 0; o < channels; ++o) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < w.k; ++i) sum += w.weight[o * w.k + i];
    // Wraps where the exact sum does not fit; the accumulator wraps back by the same amount.
    w.bias[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(w.bias[o]) -
                                          static_cast<std::uint32_t>(sum) * static_cast<std::uint32_t>(x.zero_point()));
  }
  w.multiplier = ops::conv_multipliers(x, wq, y, channels);
  return w;
}

StepPtr make_conv(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                  const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  return std::make_unique<ConvStep>(x, y, window, w, range, clamp, isa, cache);
}

StepPtr make_gemm(const Edge &x, const Edge &y, std::size_t rows, const LinearWeights &w, const QuantizedRange &range,
                  const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  return std::make_unique<GemmStep>(x, y, rows, w, range, clamp, isa, cache);
}

}  // namespace qtn::runtime
