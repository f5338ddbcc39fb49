// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/stable_order.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/requantization.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

/// Loops over the output, outermost first, in the order of its strides; neighbours merged where all three step as one.
struct Loop {
  std::int64_t count, a, b, y;
};

std::vector<Loop> plan_loops(const SlotForm &a, const SlotForm &b, const SlotForm &y) {
  const Shape as = broadcast_strides(a.shape, a.strides, y.shape), bs = broadcast_strides(b.shape, b.strides, y.shape);
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < y.shape.size(); ++i)
    if (y.shape[i] != 1) loops.push_back({y.shape[i], as[i], bs[i], y.strides[i]});
  std::vector<Loop> merged;
  for (const Loop &loop : stably_sorted(std::move(loops), [](const Loop &l, const Loop &r) { return l.y > r.y; })) {
    if (!merged.empty()) {
      Loop &outer = merged.back();
      if (outer.y == loop.y * loop.count && outer.a == loop.a * loop.count && outer.b == loop.b * loop.count) {
        outer = {outer.count * loop.count, loop.a, loop.b, loop.y};
        continue;
      }
    }
    merged.push_back(loop);
  }
  // The kernel walks two loops, the inner one in steps of 0 or 1.
  const auto unit = [](std::int64_t step) { return step == 0 || step == 1; };
  if (merged.empty() || !(unit(merged.back().a) && unit(merged.back().b) && merged.back().y == 1))
    merged.push_back({1, 0, 0, 1});
  if (merged.size() < 2) merged.insert(merged.begin(), {1, 0, 0, 0});
  return merged;
}

constexpr std::int64_t kChunk = 16 * 1024;  // elements of one task

/// The numbers of y = a op b; operands and sizes are the caller's.
kernels::BinaryArgs arithmetic(const Quantizer &a, const Quantizer &b, const Quantizer &y, Binary kind,
                               const QuantizedRange &range) {
  kernels::BinaryArgs args{};
  args.a_zero = a.zero_point();
  args.b_zero = b.zero_point();
  args.range = range;
  if (kind == Binary::mul) {
    args.a_multiplier = ops::mul_multiplier(a, b, y);
  } else {
    args.a_multiplier = ops::add_multiplier(a.scale(), y.scale());
    const float mb = ops::add_multiplier(b.scale(), y.scale());
    args.b_multiplier = kind == Binary::sub ? -mb : mb;
  }
  return args;
}

auto kernel_of(const kernels::BinaryKernel &chosen, Binary kind) {
  return kind == Binary::mul ? chosen.mul : chosen.add;
}

class BinaryStep final : public Step {
 public:
  BinaryStep(const Edge &a, const Edge &b, const Edge &y, Binary kind, const QuantizedRange &range, Isa isa)
      : a_(a.slot), b_(b.slot), y_(y.slot), loops_(plan_loops(a.form, b.form, y.form)) {
    const kernels::BinaryKernel &chosen = kernels::choose(kernels::binary_kernels(), isa);
    run_ = kernel_of(chosen, kind);
    kernel = chosen.name;
    integer = true;
    reads = {a.slot, b.slot};
    writes = {y.slot};
    args_ = arithmetic(*a.form.quantizer, *b.form.quantizer, *y.form.quantizer, kind, range);
    // One long run is cut into rows, so that threads share it.
    Loop &outer = loops_[loops_.size() - 2], &inner = loops_.back();
    if (outer.count == 1 && inner.count > kChunk) {
      outer = {inner.count / kChunk, inner.a * kChunk, inner.b * kChunk, kChunk};
      rest_ = inner.count % kChunk;
      inner.count = kChunk;
    }
    args_.columns = static_cast<std::size_t>(inner.count);
    args_.a_step = inner.a;
    args_.b_step = inner.b;
    args_.a_row = outer.a;
    args_.b_row = outer.b;
    args_.y_row = outer.y;
    rows_per_task_ = std::max<std::int64_t>(1, kChunk / std::max<std::int64_t>(1, inner.count));
    for (std::size_t i = 0; i + 2 < loops_.size(); ++i) planes_ *= loops_[i].count;
  }

  void run(const Context &c) const override {
    const auto *a = c.tensor(a_).as<const std::uint8_t>();
    const auto *b = c.tensor(b_).as<const std::uint8_t>();
    auto *y = c.tensor(y_).as<std::uint8_t>();
    const std::int64_t rows = loops_[loops_.size() - 2].count;
    const std::int64_t tasks = (rows + rows_per_task_ - 1) / rows_per_task_;
    const auto ns = static_cast<std::size_t>(planes_ * rows * loops_.back().count) / 20;
    for_chunks(c, static_cast<std::size_t>(planes_ * tasks), ns, [&](std::size_t, std::size_t chunk) {
      std::int64_t plane = static_cast<std::int64_t>(chunk) / tasks;
      const std::int64_t first = static_cast<std::int64_t>(chunk) % tasks * rows_per_task_;
      kernels::BinaryArgs args = args_;
      args.rows = static_cast<std::size_t>(std::min(rows_per_task_, rows - first));
      std::ptrdiff_t at_a = first * args.a_row, at_b = first * args.b_row, at_y = first * args.y_row;
      for (std::size_t i = loops_.size() - 2; i-- > 0; plane /= loops_[i].count) {
        const std::int64_t index = plane % loops_[i].count;
        at_a += index * loops_[i].a;
        at_b += index * loops_[i].b;
        at_y += index * loops_[i].y;
      }
      args.a = a + at_a;
      args.b = b + at_b;
      args.y = y + at_y;
      run_(args);
    });
    if (rest_ > 0) {
      kernels::BinaryArgs args = args_;
      args.rows = 1;
      args.columns = static_cast<std::size_t>(rest_);
      args.a = a + rows * args.a_row;
      args.b = b + rows * args.b_row;
      args.y = y + rows * args.y_row;
      run_(args);
    }
  }

 private:
  SlotId a_, b_, y_;
  std::vector<Loop> loops_;
  void (*run_)(const kernels::BinaryArgs &);
  kernels::BinaryArgs args_{};
  std::int64_t rows_per_task_ = 1, planes_ = 1, rest_ = 0;
};

class BinaryTail final : public Tail {
 public:
  BinaryTail(const SlotForm &a, const Edge &b, std::ptrdiff_t b_row, const SlotForm &y, Binary kind, bool swapped,
             const QuantizedRange &range, Isa isa)
      : b_(b.slot), b_row_(b_row) {
    run_ = kernel_of(kernels::choose(kernels::binary_kernels(), isa), kind);
    args_ = swapped ? arithmetic(*b.form.quantizer, *a.quantizer, *y.quantizer, kind, range)
                    : arithmetic(*a.quantizer, *b.form.quantizer, *y.quantizer, kind, range);
    if (swapped) {
      std::swap(args_.a_zero, args_.b_zero);
      if (kind != Binary::mul) std::swap(args_.a_multiplier, args_.b_multiplier);
    }
    args_.a_step = args_.b_step = 1;
    reads = {b_};
  }

  void run(const Context &c, OutputBlock &block) const override {
    kernels::BinaryArgs args = args_;
    args.rows = block.rows;
    args.columns = block.columns;
    args.a = args.y = block.y;
    args.a_row = args.y_row = block.ldy;
    args.b = c.tensor(b_).as<const std::uint8_t>() + static_cast<std::ptrdiff_t>(block.first_row) * b_row_ +
             block.first_column;
    args.b_row = b_row_;
    run_(args);
  }

 private:
  SlotId b_;
  std::ptrdiff_t b_row_;
  void (*run_)(const kernels::BinaryArgs &);
  kernels::BinaryArgs args_;
};

}  // namespace

TailPtr make_binary_tail(const SlotForm &a, const Edge &b, std::ptrdiff_t row, const SlotForm &y, Binary kind,
                         bool swapped, const QuantizedRange &range, Isa isa) {
  return std::make_unique<BinaryTail>(a, b, row, y, kind, swapped, range, isa);
}

StepPtr make_binary(const Edge &a, const Edge &b, const Edge &y, Binary kind, const QuantizedRange &range, Isa isa) {
  return std::make_unique<BinaryStep>(a, b, y, kind, range, isa);
}

}  // namespace qtn::runtime
