// SPDX-License-Identifier: Apache-2.0
// A plan is a list of steps over slots. A slot is one tensor of the run: a real or an integer form of a value, bound to
// a place in the context's arena; a step is one kernel call, its operands resolved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/float_scope.hpp"
#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "base/poison.hpp"
#include "core/tensor.hpp"
#include "ops/op.hpp"

namespace qtn::runtime {

using SlotId = std::int32_t;
inline constexpr SlotId kNoSlot = -1;

/// Called with a value of the graph and what it has come to, without gaps, its axes in any order. The memory is used for
/// something else afterwards.
using Watch = std::function<void(std::int32_t value, const Tensor &)>;

/// The memory of one run. Contexts of one session share steps and packed weights and nothing that is written.
struct Context {
  std::vector<Tensor> tensors;  ///< by slot
  AlignedBuffer arena;
  AlignedBuffer scratch;  ///< `lanes` pieces of `lane_bytes`
  std::size_t lanes = 1, lane_bytes = 0;
  const Watch *watch = nullptr;  ///< of plans with taps

  const Tensor &tensor(SlotId slot) const { return tensors[static_cast<std::size_t>(slot)]; }
  std::byte *lane_scratch(std::size_t lane) const { return scratch.data() + lane * lane_bytes; }
  std::size_t bytes() const { return arena.size() + scratch.size(); }

  /// Nothing may be read of what the run before has left in the arena, and the step before in the scratch.
  void begin_run() const { poison(arena.data(), arena.size() + kReadSlack); }
  void begin_step() const { poison(scratch.data(), scratch.size() + kReadSlack); }
};

/// Deals `chunks` to lanes, body(lane, begin, end) for ranges of them; a lane is one thread at a time and has scratch
/// of its own. Chunks do not depend on the number of lanes. `ns`: what all chunks take one thread, about; what is over
/// soon is not worth another thread.
template <class Body>
void for_ranges(const Context &c, std::size_t chunks, std::size_t ns, Body &&body) {
  constexpr std::size_t kLaneNs = 800;
  const std::size_t lanes = std::max<std::size_t>(1, std::min(c.lanes, ns / kLaneNs));
  parallel_ranges(lanes, chunks, [&](std::size_t begin, std::size_t end, std::size_t lane) { body(lane, begin, end); });
}

/// body(lane, chunk) for every chunk.
template <class Body>
void for_chunks(const Context &c, std::size_t chunks, std::size_t ns, Body &&body) {
  for_ranges(c, chunks, ns, [&](std::size_t lane, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(lane, i);
  });
}

class Step {
 public:
  virtual ~Step() = default;
  virtual void run(const Context &c) const = 0;

  /// Bytes of scratch each lane needs.
  virtual std::size_t lane_bytes() const { return 0; }

  /// Bytes of what the step holds for itself, where that grows with shapes or constants; weights are shared.
  virtual std::size_t held_bytes() const { return 0; }

  /// Makes pixels of the output image lie `pixel` bytes apart, as part of a larger one. False: this step cannot.
  virtual bool spread_output(std::ptrdiff_t /*pixel*/) { return false; }

  std::vector<SlotId> reads, writes;

  // What a profile says of the step.
  std::string node, op, kernel;
  bool integer = false;
  std::int64_t macs = 0;

  /// For products of floats: networks have weights and channels that training has let fade, and what they add to others
  /// is less than a float tells.
  FloatMode float_mode = FloatMode::standard;
};

using StepPtr = std::unique_ptr<Step>;

/// Part of an output, channels last: rows are pixels, counted over all images.
struct OutputBlock {
  std::uint8_t *y;
  std::ptrdiff_t ldy;                                  ///< bytes from row to row
  std::size_t first_row, rows, first_column, columns;  ///< columns in bytes
  std::uint8_t *output = nullptr;                      ///< of a block in scratch: where the output of the step begins
};

/// What becomes of a block of a step's output, while it is in cache: an operator that had a step of its own. It works in
/// place, or says where its result is.
class Tail {
 public:
  virtual ~Tail() = default;
  virtual void run(const Context &c, OutputBlock &block) const = 0;

  std::vector<SlotId> reads;
};

using TailPtr = std::unique_ptr<Tail>;

/// A step that takes tails.
class TailedStep : public Step {
 public:
  /// From now on the step's output is that of the tail, the elements of `y`, whose layout is that of the old one.
  void append(TailPtr tail, SlotId y, const std::string &tail_op) {
    reads.insert(reads.end(), tail->reads.begin(), tail->reads.end());
    become(y, tail_op);
    tails_.push_back(std::move(tail));
  }
  /// The same of an operator that the step has taken in.
  void become(SlotId y, const std::string &taken_op) {
    writes = {y};
    op += "+" + taken_op;
  }

  /// Takes in the addition of a row of floats to all rows of the output, and a clamp after it. False: this step cannot.
  virtual bool add_to_rows(const Tensor & /*row*/, const ops::Clamp & /*clamp*/) { return false; }

  /// Leaves blocks in scratch from now on, until a tail that comes next takes them to the output. False: this step cannot.
  virtual bool hold_blocks() { return false; }

  /// Whether rows of the output are those of its last axis rather than pixels. Strides do not tell: with an axis of
  /// length 1, a matrix lies as an image does.
  virtual bool makes_matrices() const { return false; }

  /// Whether rows of its blocks are shorter than vectors, so that what works on vectors runs faster on its own.
  virtual bool has_narrow_blocks() const { return false; }

  /// Elements between the rows of a second operand of a tail, which lies so; nullopt where they are not evenly apart.
  std::optional<std::ptrdiff_t> row_of(const Shape &shape, const Shape &strides) const;

 protected:
  SlotId output() const { return writes[0]; }
  bool has_tails() const { return !tails_.empty(); }
  void run_tails(const Context &c, OutputBlock block) const {
    for (const TailPtr &tail : tails_) tail->run(c, block);
  }

 private:
  std::vector<TailPtr> tails_;
};

/// A channels-last image: rank 3 to 5, channel stride 1, pixels equally far apart. Rank 3 has
/// height 1; the planes of a volume, of rank 5, are below one another.
struct Image {
  std::int64_t n, c, h, w;
  std::ptrdiff_t pixel;  ///< elements from pixel to pixel, >= c
  std::int64_t pixels() const { return h * w; }
};

/// nullopt where shape and strides are not such an image.
std::optional<Image> as_image(const Shape &shape, const Shape &strides);

}  // namespace qtn::runtime
