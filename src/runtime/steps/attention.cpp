// SPDX-License-Identifier: Apache-2.0
// A head at a time, in the scratch of a thread: scores of some queries, which stay in the second level of cache, become
// probabilities there.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/kernel.hpp"
#include "kernels/pointwise/pointwise.hpp"
#include "kernels/rows/rows.hpp"
#include "runtime/steps/attention_products.hpp"
#include "runtime/steps/divided_heads.hpp"
#include "runtime/steps/hidden_keys.hpp"
#include "runtime/steps/stack.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

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

class AttentionStep final : public Step {
 public:
  AttentionStep(const Edge &q, const std::vector<KeysAndValues> &parts, const Edge &y, std::vector<ScoreTerm> terms,
                bool guarded, std::unique_ptr<AttentionProducts> products, Isa isa)
      : products_(std::move(products)),
        pointwise_(kernels::choose(kernels::pointwise_kernels(), isa)),
        grid_(kernels::choose(kernels::grid_kernels(), isa)),
        rows_(kernels::choose(kernels::rows_kernels(), isa)),
        batch_(leading_axes(y.form.shape)),
        q_(q.form, batch_),
        y_(y.form, batch_),
        m_(static_cast<std::size_t>(q.form.shape[q.form.shape.size() - 2])),
        guarded_(guarded),
        terms_(std::move(terms)) {
    sizes_.features = static_cast<std::size_t>(q.form.shape.back());
    sizes_.values = static_cast<std::size_t>(parts[0].values.form.shape.back());
    sizes_.parts = parts.size();
    op = "Attention";
    kernel = products_->kernel();
    float_mode = products_->float_mode();
    reads = {q.slot};
    for (const auto &[keys, values] : parts) {
      const auto count = static_cast<std::size_t>(keys.form.shape.back());
      keys_.push_back({{keys.form, batch_}, {values.form, batch_}, count});
      sizes_.keys += count;
      reads.insert(reads.end(), {keys.slot, values.slot});
    }
    for (const ScoreTerm &term : terms_) {
      const auto over = [&](const SlotForm &form) { return over_scores(form, term.stack, m_, sizes_.keys); };
      reads.push_back(term.other.slot);
      others_.push_back(over(term.other.form));
      fillers_.push_back(term.filler ? std::optional(over(term.filler->form)) : std::nullopt);
      if (term.filler) reads.push_back(term.filler->slot);
    }
    writes = {y.slot};
    split_terms();
    // Whole lines of cache where nothing asks for rows without gaps.
    const bool gaps = alone_ == 0 && !(factor_ && terms_[*factor_].kind == ScoreTerm::div);
    sizes_.row = gaps ? round_up(sizes_.keys, kScoreLine) : sizes_.keys;
    sizes_.block = score_block(m_, sizes_.row, products_->rows_at_once());
    product_bytes_ = products_->settle(sizes_);
    const auto heads = static_cast<std::size_t>(element_count(batch_));
    heads_ = DividedHeads(heads, m_, products_->rows_at_once());
    macs = static_cast<std::int64_t>(heads * m_ * sizes_.keys * (sizes_.features + sizes_.values));
  }

  std::size_t lane_bytes() const override { return product_bytes_ + 2 * score_bytes(); }

  void run(const Context &c) const override {
    heads_.for_each(c, static_cast<std::size_t>(macs) / 100,
                    [&](std::size_t lane, std::int64_t head, std::size_t first, std::size_t last) {
                      run_head(c, lane, head, first, last);
                    });
  }

 private:
  static constexpr std::size_t kMostParts = 2;

  struct Part {
    Stack keys, values;
    std::size_t count;
  };

  /// The last terms can be done on the way to Softmax: one factor, then a choice between scores and one number, then one
  /// row of addends for each row of scores.
  void split_terms() {
    alone_ = terms_.size();
    if (alone_ > 0 && terms_[alone_ - 1].kind == ScoreTerm::add && others_[alone_ - 1].column == 1) addend_ = --alone_;
    if (alone_ > 0 && terms_[alone_ - 1].kind == ScoreTerm::where && others_[alone_ - 1].column == 1 &&
        fillers_[alone_ - 1]->column == 0 && fillers_[alone_ - 1]->row == 0)
      choice_ = --alone_;
    if (alone_ == 0) return;
    const ScoreTerm &term = terms_[alone_ - 1];
    const Stack &other = others_[alone_ - 1];
    if ((term.kind == ScoreTerm::mul || term.kind == ScoreTerm::div) && other.column == 0 && other.row == 0)
      factor_ = --alone_;
  }

  std::size_t score_bytes() const {
    return round_up(sizes_.block * sizes_.row * sizeof(float) + kReadSlack, kAlignment);
  }

  const float *at(const Context &c, SlotId slot) const { return c.tensor(slot).as<const float>(); }

  void run_head(const Context &c, std::size_t lane, std::int64_t head, std::size_t first, std::size_t last) const {
    std::byte *scratch = c.lane_scratch(lane), *of_scores = scratch + product_bytes_;
    std::array<HeadPart, kMostParts> parts;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const auto matrix = [&](const Stack &m, SlotId slot) {
        return HeadMatrix{at(c, slot) + m.offset(batch_, head), m.row, m.column};
      };
      parts[i] = {matrix(keys_[i].keys, reads[1 + 2 * i]), matrix(keys_[i].values, reads[2 + 2 * i]), keys_[i].count};
    }
    const std::span<const HeadPart> of_head = std::span(parts).first(keys_.size());
    products_->pack(scratch, of_head);
    auto *scores = reinterpret_cast<float *>(of_scores), *others = reinterpret_cast<float *>(of_scores + score_bytes());
    const float *q = at(c, reads[0]) + q_.offset(batch_, head);
    float *y = c.tensor(writes[0]).as<float>() + y_.offset(batch_, head);
    HiddenKeys hidden(of_head, sizes_, grid_);
    std::size_t alone = alone_;
    float factor = 1;
    if (factor_) {
      factor = *operand(c, *factor_, head, 0);
      if (terms_[*factor_].kind == ScoreTerm::div && (factor = exact_inverse(factor)) == 0) factor = 1, ++alone;
    }
    for (std::size_t row = first; row < last; row += sizes_.block) {
      ScoreBlock block{std::min(sizes_.block, last - row), sizes_.keys};
      const auto place = static_cast<std::ptrdiff_t>(row);
      const HeadMatrix queries{q + place * q_.row, q_.row, 1};
      const ScoreMask mask = mask_of(c, head, row);
      if (alone == 0) block.keys = hidden.in_sight(queries, block.queries, factor, mask);
      products_->multiply_keys(scratch, queries, block, scores);
      for (std::size_t i = 0; i < alone; ++i) {
        apply(c, i, head, row, block.queries, scores, others);
        std::swap(scores, others);
      }
      if (mask.chosen)
        rows_.choose_scores({scores, block.queries, block.keys, static_cast<std::ptrdiff_t>(sizes_.row), factor,
                             mask.chosen, mask.chosen_row, mask.keeps, mask.filler});
      const ScoreChange change{mask.chosen ? 1 : factor, mask.addend, mask.addend_row, guarded_};
      products_->mix_values(scratch, scores, block, change, y + place * y_.row, y_.row);
    }
  }

  ScoreMask mask_of(const Context &c, std::int64_t head, std::size_t row) const {
    ScoreMask mask;
    if (addend_) {
      mask.addend = operand(c, *addend_, head, row);
      mask.addend_row = others_[*addend_].row;
    }
    if (choice_) {
      const ScoreTerm &term = terms_[*choice_];
      const Stack &chosen = others_[*choice_];
      mask.chosen = static_cast<const std::uint8_t *>(c.tensor(term.other.slot).data()) +
                    chosen.offset(term.stack, head) + static_cast<std::ptrdiff_t>(row) * chosen.row;
      mask.chosen_row = chosen.row;
      mask.keeps = term.scores_first;
      mask.filler = at(c, term.filler->slot)[fillers_[*choice_]->offset(term.stack, head)];
    }
    return mask;
  }

  /// The other operand of term i, of a row of scores.
  const float *operand(const Context &c, std::size_t i, std::int64_t head, std::size_t row) const {
    return at(c, terms_[i].other.slot) + others_[i].offset(terms_[i].stack, head) +
           static_cast<std::ptrdiff_t>(row) * others_[i].row;
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
    const kernels::PointwiseOperand mine{scores, static_cast<std::ptrdiff_t>(sizes_.keys), false};
    const kernels::PointwiseOperand theirs{at(c, term.other.slot) + offset, other.row, other.column == 0};
    pointwise_.run({arithmetic_of(term.kind), count, sizes_.keys, term.scores_first ? mine : theirs,
                    term.scores_first ? theirs : mine, to});
  }

  void select(const ScoreTerm &term, const bool *chosen, const Stack &of_chosen, const float *filler,
              const Stack &of_filler, std::size_t count, const float *scores, float *to) const {
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t j = 0; j < sizes_.keys; ++j) {
        const float other = filler[of_filler.column == 0 ? 0 : j];
        to[j] = chosen[of_chosen.column == 0 ? 0 : j] == term.scores_first ? scores[j] : other;
      }
      chosen += of_chosen.row;
      filler += of_filler.row;
      scores += sizes_.keys;
      to += sizes_.keys;
    }
  }

  std::unique_ptr<AttentionProducts> products_;
  const kernels::PointwiseKernel &pointwise_;
  const kernels::GridKernel &grid_;
  const kernels::RowsKernel &rows_;
  Shape batch_;
  Stack q_, y_;
  std::vector<Part> keys_;
  std::size_t m_, product_bytes_ = 0;
  DividedHeads heads_;
  HeadSizes sizes_{};
  std::size_t alone_ = 0;  ///< terms that are run one by one
  std::optional<std::size_t> factor_, choice_, addend_;
  bool guarded_;
  std::vector<ScoreTerm> terms_;
  std::vector<Stack> others_;
  std::vector<std::optional<Stack>> fillers_;
};

}  // namespace

StepPtr make_attention(const Edge &q, const std::vector<KeysAndValues> &parts, const Edge &y,
                       std::vector<ScoreTerm> terms, bool guarded, std::unique_ptr<AttentionProducts> products,
                       Isa isa) {
  return std::make_unique<AttentionStep>(q, parts, y, std::move(terms), guarded, std::move(products), isa);
}

}  // namespace qtn::runtime
