// SPDX-License-Identifier: Apache-2.0
// A head at a time: keys and values are packed in the scratch of a thread, and scores of some queries, which stay in the
// second level of cache, become probabilities there.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/size.hpp"
#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/kernel.hpp"
#include "kernels/pointwise/pointwise.hpp"
#include "kernels/rows/rows.hpp"
#include "runtime/steps/stack.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

constexpr std::size_t kScoreBytes = 128 << 10;  // of the scores that are worked on at a time

constexpr ops::Clamp kEverything{-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};

kernels::Arithmetic arithmetic_of(ScoreTerm::Kind kind) {
  switch (kind) {
    case ScoreTerm::sub:
      return kernels::Arithmetic::sub;
    case ScoreTerm::mul:
      return kernels::Arithmetic::mul;
    case ScoreTerm::div:
      return kernels::Arithmetic::div;
    default:
      return kernels::Arithmetic::add;
  }
}

Shape leading_axes(const Shape &shape) { return Shape(std::span(shape).first(shape.size() - 2)); }

/// An operand of a term, as if it had the shape of the scores; its columns repeat where they are 0 apart.
Stack over_scores(const SlotForm &form, const Shape &stack, std::size_t rows, std::size_t columns) {
  Shape scores = stack;
  scores.push_back(static_cast<std::int64_t>(rows));
  scores.push_back(static_cast<std::int64_t>(columns));
  return Stack({form.dtype, scores, broadcast_strides(form.shape, form.strides, scores), nullptr}, stack);
}

/// 1 / x where division by x gives the bits of multiplication by that: where x is a power of two, else 0.
float exact_inverse(float x) {
  int exponent = 0;
  const float inverse = 1 / x;
  return std::fabs(std::frexp(x, &exponent)) == 0.5f && std::isnormal(x) && std::isnormal(inverse) ? inverse : 0;
}

class RealAttentionStep final : public Step {
 public:
  RealAttentionStep(const Edge &q, const Edge &k, const Edge &v, const Edge &y, std::vector<ScoreTerm> terms,
                    const ops::Clamp &clamp, Isa isa)
      : gemm_(kernels::choose(kernels::gemm_real_kernels(), isa)),
        pointwise_(kernels::choose(kernels::pointwise_kernels(), isa)),
        rows_(kernels::choose(kernels::rows_kernels(), isa)),
        batch_(leading_axes(y.form.shape)),
        q_(q.form, batch_),
        k_(k.form, batch_),
        v_(v.form, batch_),
        y_(y.form, batch_),
        m_(static_cast<std::size_t>(q.form.shape[q.form.shape.size() - 2])),
        d_(static_cast<std::size_t>(q.form.shape.back())),
        t_(static_cast<std::size_t>(k.form.shape.back())),
        e_(static_cast<std::size_t>(v.form.shape.back())),
        clamp_(clamp),
        terms_(std::move(terms)) {
    op = "Attention";
    kernel = gemm_.name;
    reads = {q.slot, k.slot, v.slot};
    for (const ScoreTerm &term : terms_) {
      const auto over = [&](const SlotForm &form) { return over_scores(form, term.stack, m_, t_); };
      reads.push_back(term.other.slot);
      others_.push_back(over(term.other.form));
      fillers_.push_back(term.filler ? std::optional(over(term.filler->form)) : std::nullopt);
      if (term.filler) reads.push_back(term.filler->slot);
    }
    writes = {y.slot};
    split_terms();
    // Whole lines of cache where nothing asks for rows without gaps.
    const bool gaps = alone_ == 0 && !(factor_ && terms_[*factor_].kind == ScoreTerm::div);
    row_ = gaps ? round_up(t_, kLine) : t_;
    const std::size_t fit = kScoreBytes / sizeof(float) / row_ / gemm_.mr * gemm_.mr;
    block_ = std::clamp<std::size_t>(fit, gemm_.mr, round_up(m_, gemm_.mr));
    const auto heads = static_cast<std::size_t>(element_count(batch_));
    // Few heads are shared by threads, each of which packs the keys.
    parts_ = std::min(ceil_div(m_, 4 * gemm_.mr), ceil_div(kFewHeads, std::max<std::size_t>(1, heads)));
    macs = static_cast<std::int64_t>(heads * m_ * t_ * (d_ + e_));
  }

  std::size_t lane_bytes() const override { return values_at() + packed_values() + 2 * score_bytes(); }

  void run(const Context &c) const override {
    const auto heads = static_cast<std::size_t>(element_count(batch_));
    const std::size_t rows = ceil_div(m_, parts_);
    for_ranges(c, heads * parts_, static_cast<std::size_t>(macs) / 100,
               [&](std::size_t lane, std::size_t begin, std::size_t end) {
                 // Parts of a head that follow one another are one part.
                 for (std::size_t chunk = begin, next; chunk < end; chunk = next) {
                   const std::size_t head = chunk / parts_, top = head * parts_;
                   next = std::min(end, top + parts_);
                   const std::size_t first = (chunk - top) * rows, last = std::min(m_, (next - top) * rows);
                   if (first < last) run_head(c, lane, static_cast<std::int64_t>(head), first, last);
                 }
               });
  }

 private:
  static constexpr std::size_t kFewHeads = 8, kLine = 16;

  /// The last terms can be done on the way to Softmax: one factor, then one row of addends for each row of scores.
  void split_terms() {
    alone_ = terms_.size();
    if (alone_ > 0 && terms_[alone_ - 1].kind == ScoreTerm::add && others_[alone_ - 1].column == 1) mask_ = --alone_;
    if (alone_ == 0) return;
    const ScoreTerm &term = terms_[alone_ - 1];
    const Stack &other = others_[alone_ - 1];
    if ((term.kind == ScoreTerm::mul || term.kind == ScoreTerm::div) && other.column == 0 && other.row == 0)
      factor_ = --alone_;
  }

  std::size_t values_at() const { return round_up(gemm_.packed_bytes(t_, d_ * sizeof(float)), kAlignment); }
  std::size_t packed_values() const { return round_up(gemm_.packed_bytes(e_, t_ * sizeof(float)), kAlignment); }
  std::size_t score_bytes() const { return round_up(block_ * row_ * sizeof(float) + kReadSlack, kAlignment); }

  const float *at(const Context &c, SlotId slot) const { return c.tensor(slot).as<const float>(); }

  void run_head(const Context &c, std::size_t lane, std::int64_t head, std::size_t first, std::size_t last) const {
    std::byte *keys = c.lane_scratch(lane), *values = keys + values_at(), *scratch = values + packed_values();
    gemm_.pack(keys, {at(c, reads[1]) + k_.offset(batch_, head), k_.column, k_.row, nullptr, t_, d_});
    gemm_.pack(values, {at(c, reads[2]) + v_.offset(batch_, head), v_.column, v_.row, nullptr, e_, t_});
    auto *scores = reinterpret_cast<float *>(scratch), *others = reinterpret_cast<float *>(scratch + score_bytes());
    const float *q = at(c, reads[0]) + q_.offset(batch_, head);
    float *y = c.tensor(writes[0]).as<float>() + y_.offset(batch_, head);
    const auto row_step = static_cast<std::ptrdiff_t>(row_);
    std::size_t alone = alone_;
    float factor = 1;
    if (factor_) {
      factor = *operand(c, *factor_, head, 0);
      if (terms_[*factor_].kind == ScoreTerm::div && (factor = exact_inverse(factor)) == 0) factor = 1, ++alone;
    }
    for (std::size_t row = first; row < last; row += block_) {
      const std::size_t count = std::min(block_, last - row);
      const auto place = static_cast<std::ptrdiff_t>(row);
      multiply({q + place * q_.row, q_.row, count, d_}, keys, t_, kEverything, scores, row_step);
      for (std::size_t i = 0; i < alone; ++i) {
        apply(c, i, head, row, count, scores, others);
        std::swap(scores, others);
      }
      const float *mask = mask_ ? operand(c, *mask_, head, row) : nullptr;
      rows_.score({scores, count, t_, row_step, factor, mask, mask_ ? others_[*mask_].row : 0});
      multiply({scores, row_step, count, t_}, values, e_, clamp_, y + place * y_.row, y_.row);
    }
  }

  /// The other operand of term i, of a row of scores.
  const float *operand(const Context &c, std::size_t i, std::int64_t head, std::size_t row) const {
    return at(c, terms_[i].other.slot) + others_[i].offset(terms_[i].stack, head) +
           static_cast<std::ptrdiff_t>(row) * others_[i].row;
  }

  struct Rows {
    const float *at;
    std::ptrdiff_t step;
    std::size_t count, depth;
  };

  void multiply(const Rows &a, const std::byte *packed, std::size_t columns, const ops::Clamp &clamp, float *y,
                std::ptrdiff_t y_row) const {
    kernels::GemmArgs args{};
    args.m = a.count;
    args.n = columns;
    args.k = a.depth * sizeof(float);
    args.a = reinterpret_cast<const std::uint8_t *>(a.at);
    args.lda = a.step * static_cast<std::ptrdiff_t>(sizeof(float));
    args.packed = packed;
    args.y = y;
    args.ldy = y_row;
    args.lo = clamp.lo;
    args.hi = clamp.hi;
    gemm_.run(args);
  }

  /// Term i of the scores of `count` queries.
  void apply(const Context &c, std::size_t i, std::int64_t head, std::size_t row, std::size_t count,
             const float *scores, float *to) const {
    const ScoreTerm &term = terms_[i];
    const Stack &other = others_[i];
    const std::ptrdiff_t offset = other.offset(term.stack, head) + static_cast<std::ptrdiff_t>(row) * other.row;
    if (term.kind == ScoreTerm::where) {
      const Stack &filler = *fillers_[i];
      return select(
          term, c.tensor(term.other.slot).as<const bool>() + offset, other,
          at(c, term.filler->slot) + filler.offset(term.stack, head) + static_cast<std::ptrdiff_t>(row) * filler.row,
          filler, count, scores, to);
    }
    const kernels::PointwiseOperand mine{scores, static_cast<std::ptrdiff_t>(t_), false};
    const kernels::PointwiseOperand theirs{at(c, term.other.slot) + offset, other.row, other.column == 0};
    pointwise_.run({arithmetic_of(term.kind), count, t_, term.scores_first ? mine : theirs,
                    term.scores_first ? theirs : mine, to});
  }

  void select(const ScoreTerm &term, const bool *chosen, const Stack &of_chosen, const float *filler,
              const Stack &of_filler, std::size_t count, const float *scores, float *to) const {
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t j = 0; j < t_; ++j) {
        const float other = filler[of_filler.column == 0 ? 0 : j];
        to[j] = chosen[of_chosen.column == 0 ? 0 : j] == term.scores_first ? scores[j] : other;
      }
      chosen += of_chosen.row;
      filler += of_filler.row;
      scores += t_;
      to += t_;
    }
  }

  const kernels::GemmRealKernel &gemm_;
  const kernels::PointwiseKernel &pointwise_;
  const kernels::RowsKernel &rows_;
  Shape batch_;
  Stack q_, k_, v_, y_;
  std::size_t m_, d_, t_, e_, row_ = 0, block_ = 0, parts_ = 1;
  std::size_t alone_ = 0;  ///< terms that are run one by one
  std::optional<std::size_t> factor_, mask_;
  ops::Clamp clamp_;
  std::vector<ScoreTerm> terms_;
  std::vector<Stack> others_;
  std::vector<std::optional<Stack>> fillers_;
};

}  // namespace

StepPtr make_real_attention(const Edge &q, const Edge &k, const Edge &v, const Edge &y, std::vector<ScoreTerm> terms,
                            const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<RealAttentionStep>(q, k, v, y, std::move(terms), clamp, isa);
}

}  // namespace qtn::runtime
