// SPDX-License-Identifier: Apache-2.0
// Between real and integer forms, and between layouts of one form.
#include "base/error.hpp"
#include "kernels/kernel.hpp"
#include "kernels/quantize/quantize.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

constexpr std::size_t kChunk = 16 * 1024;

/// Both sides as images of rows x columns: pixels by channels where the integer side is an image, one long column
/// else.
struct Planes {
  std::size_t images, rows, columns;
  std::ptrdiff_t real_row, real_column, real_image;
  std::ptrdiff_t q_row, q_column, q_image;
  std::size_t rows_per_task() const { return std::max<std::size_t>(1, kChunk / std::max<std::size_t>(1, columns)); }
};

Planes planes_of(const SlotForm &real, const SlotForm &q) {
  const auto count = static_cast<std::size_t>(element_count(q.shape));
  // The strides of an empty tensor say nothing, and it need not be an image.
  if (count == 0 || same_layout(q.shape, real.strides, q.strides)) {
    return {1, count, 1, 1, 0, 0, 1, 0, 0};
  }
  const auto image = as_image(q.shape, q.strides);
  if (!image) fail(QTN_EINTERNAL, "session: ", to_string(q.shape), " integers with strides ", to_string(q.strides));
  const Image &p = *image;
  const auto pixels = static_cast<std::size_t>(p.pixels()), channels = static_cast<std::size_t>(p.c);
  return {static_cast<std::size_t>(p.n), pixels, channels, 1, p.pixels(), p.pixels() * p.c, p.pixel, 1,
          p.pixels() * p.pixel};
}

template <class Body>
void for_blocks(const Context &c, const Planes &p, Body &&body) {
  const std::size_t block = p.rows_per_task(), blocks = ceil_div(p.rows, block);
  for_chunks(c, p.images * blocks, p.images * p.rows * p.columns / 8, [&](std::size_t, std::size_t chunk) {
    const auto image = static_cast<std::ptrdiff_t>(chunk / blocks);
    const std::size_t first = chunk % blocks * block;
    const auto row = static_cast<std::ptrdiff_t>(first);
    body(image * p.real_image + row * p.real_row, image * p.q_image + row * p.q_row, std::min(block, p.rows - first));
  });
}

class QuantizeStep final : public Step {
 public:
  QuantizeStep(const Edge &x, const Edge &q, Isa isa)
      : kernel_(kernels::choose(kernels::quantize_kernels(), isa)),
        x_(x.slot),
        q_(q.slot),
        planes_(planes_of(x.form, q.form)),
        scale_(q.form.quantizer->scale()),
        range_{q.form.quantizer->zero_point(), 0, 255} {
    op = "QuantizeLinear";
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {q.slot};
  }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const float>();
    auto *q = c.tensor(q_).as<std::uint8_t>();
    for_blocks(c, planes_, [&](std::ptrdiff_t real, std::ptrdiff_t integer_at, std::size_t rows) {
      kernel_.quantize({rows, planes_.columns, x + real, planes_.real_row, planes_.real_column, q + integer_at,
                        planes_.q_row, planes_.q_column, scale_, range_});
    });
  }

 private:
  const kernels::QuantizeKernel &kernel_;
  SlotId x_, q_;
  Planes planes_;
  float scale_;
  QuantizedRange range_;
};

class QuantizeTail final : public Tail {
 public:
  QuantizeTail(const SlotForm &q, Isa isa)
      : kernel_(kernels::choose(kernels::quantize_kernels(), isa)),
        columns_(q.shape.back()),
        scale_(q.quantizer->scale()),
        range_{q.quantizer->zero_point(), 0, 255} {}

  void run(const Context &, OutputBlock &block) const override {
    constexpr std::ptrdiff_t kFloat = sizeof(float);
    const std::size_t first = block.first_column / sizeof(float), columns = block.columns / sizeof(float);
    const auto row = static_cast<std::ptrdiff_t>(columns_);
    std::uint8_t *q = block.output + static_cast<std::ptrdiff_t>(block.first_row) * row + first;
    kernel_.quantize({block.rows, columns, reinterpret_cast<const float *>(block.y), block.ldy / kFloat, 1, q, row, 1,
                      scale_, range_});
    block = {q, row, block.first_row, block.rows, first, columns, block.output};
  }

 private:
  const kernels::QuantizeKernel &kernel_;
  std::int64_t columns_;
  float scale_;
  QuantizedRange range_;
};

class DequantizeStep final : public Step {
 public:
  DequantizeStep(const Edge &q, const Edge &x, Isa isa)
      : kernel_(kernels::choose(kernels::quantize_kernels(), isa)),
        q_(q.slot),
        x_(x.slot),
        planes_(planes_of(x.form, q.form)),
        scale_(q.form.quantizer->scale()),
        zero_(q.form.quantizer->zero_point()) {
    op = "DequantizeLinear";
    kernel = kernel_.name;
    integer = true;
    reads = {q.slot};
    writes = {x.slot};
  }

  void run(const Context &c) const override {
    const auto *q = c.tensor(q_).as<const std::uint8_t>();
    auto *x = c.tensor(x_).as<float>();
    for_blocks(c, planes_, [&](std::ptrdiff_t real, std::ptrdiff_t integer_at, std::size_t rows) {
      kernel_.dequantize({rows, planes_.columns, q + integer_at, planes_.q_row, planes_.q_column, x + real,
                          planes_.real_row, planes_.real_column, scale_, zero_});
    });
  }

 private:
  const kernels::QuantizeKernel &kernel_;
  SlotId q_, x_;
  Planes planes_;
  float scale_;
  std::int32_t zero_;
};

class CopyStep final : public Step {
 public:
  CopyStep(const Edge &from, const Edge &to) : from_(from.slot), to_(to.slot) {
    op = "Copy";
    kernel = "copy";
    integer = from.form.quantizer || to.form.quantizer;
    reads = {from.slot};
    writes = {to.slot};
  }
  void run(const Context &c) const override { copy_elements(c.tensor(to_), c.tensor(from_)); }

 private:
  SlotId from_, to_;
};

class FlipStep final : public Step {
 public:
  FlipStep(const Edge &from, const Edge &to)
      : from_(from.slot), to_(to.slot), count_(static_cast<std::size_t>(element_count(from.form.shape))) {
    op = "Flip";
    kernel = "ref";
    integer = true;
    reads = {from.slot};
    writes = {to.slot};
  }
  void run(const Context &c) const override {
    const auto *from = c.tensor(from_).as<const std::uint8_t>();
    auto *to = c.tensor(to_).as<std::uint8_t>();
    for_chunks(c, ceil_div(count_, kChunk), count_ / 8, [&](std::size_t, std::size_t chunk) {
      const std::size_t end = std::min(count_, (chunk + 1) * kChunk);
      for (std::size_t i = chunk * kChunk; i < end; ++i) to[i] = from[i] ^ 0x80;
    });
  }

 private:
  SlotId from_, to_;
  std::size_t count_;
};

class RoundTripStep final : public Step {
 public:
  RoundTripStep(SlotId from, SlotId to, QuantizerPtr quantizer)
      : from_(from), to_(to), quantizer_(std::move(quantizer)) {
    op = "QuantizeDequantize";
    kernel = "ref";
    reads = {from};
    writes = {to};
  }
  void run(const Context &c) const override {
    copy_elements(c.tensor(to_), dequantize(quantize(c.tensor(from_), quantizer_)));
  }

 private:
  SlotId from_, to_;
  QuantizerPtr quantizer_;
};

}  // namespace

StepPtr make_quantize(const Edge &x, const Edge &q, Isa isa) { return std::make_unique<QuantizeStep>(x, q, isa); }
TailPtr make_quantize_tail(const SlotForm &q, Isa isa) { return std::make_unique<QuantizeTail>(q, isa); }
StepPtr make_dequantize(const Edge &q, const Edge &x, Isa isa) { return std::make_unique<DequantizeStep>(q, x, isa); }
StepPtr make_copy(const Edge &from, const Edge &to) { return std::make_unique<CopyStep>(from, to); }
StepPtr make_flip(const Edge &from, const Edge &to, Isa) { return std::make_unique<FlipStep>(from, to); }
StepPtr make_round_trip(SlotId from, SlotId to, QuantizerPtr quantizer) {
  return std::make_unique<RoundTripStep>(from, to, std::move(quantizer));
}

}  // namespace qtn::runtime
