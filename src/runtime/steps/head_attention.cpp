// SPDX-License-Identifier: Apache-2.0
// Keys and values of a head are packed once in the scratch of a thread, for all queries that share it; few queries read
// them where they lie. Scores of some queries stay in the second level of cache and become probabilities there. Keys
// that no query of them sees take no time.
#include <algorithm>
#include <limits>

#include "kernels/activation/activation.hpp"
#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/kernel.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/padding_row.hpp"
#include "runtime/steps/divided_heads.hpp"
#include "runtime/steps/heads.hpp"

namespace qtn::runtime {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr ops::Clamp kEverything{kNever, -kNever};

/// A mask as if it had four axes, of which those that it repeats over are 0 apart.
Matrices over_scores(const SlotForm &mask, const Shape &scores) {
  Shape rows = mask.shape, steps = mask.strides;
  rows.erase(rows.size() - 1);
  steps.erase(steps.size() - 1);
  Shape strides = broadcast_strides(rows, steps, Shape(std::span(scores).first(3)));
  strides.push_back(1);
  return Matrices({mask.dtype, scores, strides, nullptr});
}

/// Keys [begin, end).
struct Range {
  std::int64_t begin, end;
};

class HeadAttentionStep final : public Step {
 public:
  HeadAttentionStep(HeadAttention attention, const ops::Clamp &clamp, Isa isa)
      : a_(std::move(attention)),
        gemm_(kernels::choose(kernels::gemm_real_kernels(), isa)),
        rows_(kernels::choose(kernels::rows_kernels(), isa)),
        activation_(kernels::choose(kernels::activation_kernels(), isa)),
        clamp_(clamp),
        q_(a_.q.form),
        k_(a_.k.form),
        v_(a_.v.form),
        y_(a_.y.form),
        batches_(a_.q.form.shape[0]),
        heads_(a_.q.form.shape[1]),
        kv_heads_(a_.k.form.shape[1]),
        queries_(a_.q.form.shape[2]),
        keys_(a_.k.form.shape[2]),
        d_(static_cast<std::size_t>(a_.q.form.shape[3])),
        e_(static_cast<std::size_t>(a_.v.form.shape[3])) {
    op = "Attention";
    kernel = gemm_.name;
    float_mode = FloatMode::without_denormals;
    reads = {a_.q.slot, a_.k.slot, a_.v.slot};
    if (a_.mask) {
      reads.push_back(a_.mask->slot);
      mask_ = over_scores(a_.mask->form, {batches_, heads_, queries_, keys_});
    }
    if (a_.padding) reads.push_back(a_.padding->slot);
    for (const SlotId s : {a_.lengths, a_.sinks})
      if (s != kNoSlot) reads.push_back(s);
    writes = {a_.y.slot};
    // A query of each head that shares keys is as good a block of rows as queries of one.
    const std::int64_t shared = heads_ / kv_heads_;
    one_query_ = queries_ == 1;
    lines_ = one_query_ ? shared : queries_;
    runs_ = one_query_ ? 1 : shared;
    row_ = round_up(static_cast<std::size_t>(keys_ + (a_.has_sink ? 1 : 0)), kScoreLine);
    block_ = score_block(static_cast<std::size_t>(lines_), row_, gemm_.mr);
    const auto all = static_cast<std::size_t>(lines_ * runs_);
    units_ = DividedHeads(static_cast<std::size_t>(batches_ * kv_heads_), all, gemm_.mr);
    few_ = lines_ * runs_ <= kFewQueries && k_.column == 1 && v_.column == 1;
    no_bias_.assign(round_up(std::max<std::size_t>(1, e_), gemm_.nr), 0);
    macs = batches_ * heads_ * queries_ * keys_ * static_cast<std::int64_t>(d_ + e_);
  }

  std::size_t lane_bytes() const override { return addends_at() + row_bytes(); }

  void run(const Context &c) const override {
    units_.for_each(c, static_cast<std::size_t>(macs) / 100,
                    [&](std::size_t lane, std::int64_t unit, std::size_t first, std::size_t last) {
                      Head(*this, c, lane, unit).run(first, last);
                    });
  }

 private:
  std::size_t values_at() const {
    if (few_) return 0;
    return round_up(gemm_.packed_bytes(static_cast<std::size_t>(keys_), d_ * sizeof(float)), kAlignment);
  }
  std::size_t scores_at() const {
    if (few_) return 0;
    return values_at() + round_up(gemm_.packed_bytes(e_, static_cast<std::size_t>(keys_) * sizeof(float)), kAlignment);
  }
  std::size_t addends_at() const {
    return scores_at() + round_up(block_ * row_ * sizeof(float) + kReadSlack, kAlignment);
  }
  std::size_t row_bytes() const { return round_up(row_ * sizeof(float), kAlignment); }

  /// The keys that a query sees, as far as its place says it.
  Range seen(std::int64_t query, std::int64_t length) const {
    const std::int64_t at = query + (a_.lengths == kNoSlot ? a_.past : length - queries_), far = 2 * keys_ + queries_;
    Range r{0, length};
    if (a_.right >= 0) r.end = std::min(r.end, at + std::min(a_.right, far) + 1);
    if (a_.left >= 0) r.begin = std::max<std::int64_t>(r.begin, at - std::min(a_.left, far));
    r.begin = std::clamp<std::int64_t>(r.begin, 0, length);
    r.end = std::clamp<std::int64_t>(r.end, r.begin, length);
    return r;
  }

  /// A head of keys and values of a batch, with the scratch of a thread.
  class Head {
   public:
    Head(const HeadAttentionStep &step, const Context &c, std::size_t lane, std::int64_t unit)
        : s_(step),
          batch_(unit / s_.kv_heads_),
          kv_head_(unit % s_.kv_heads_),
          q_(floats(c, s_.a_.q)),
          y_(c.tensor(s_.a_.y.slot).as<float>()),
          keys_(c.lane_scratch(lane)),
          values_(keys_ + s_.values_at()),
          scores_(reinterpret_cast<float *>(keys_ + s_.scores_at())),
          addends_(reinterpret_cast<float *>(keys_ + s_.addends_at())),
          mask_(s_.a_.mask ? c.tensor(s_.a_.mask->slot).data() : nullptr),
          padding_(s_.a_.padding ? &c.tensor(s_.a_.padding->slot) : nullptr),
          sinks_(s_.a_.sinks == kNoSlot ? nullptr : c.tensor(s_.a_.sinks).as<const float>()),
          length_(s_.keys_) {
      const HeadAttention &a = s_.a_;
      if (a.lengths != kNoSlot)
        length_ = std::clamp<std::int64_t>(c.tensor(a.lengths).as<const std::int64_t>()[batch_], 0, s_.keys_);
      if (a.mask) length_seen_ = a.mask->form.shape.back();
      k_ = floats(c, a.k) + s_.k_.at(batch_, kv_head_), v_ = floats(c, a.v) + s_.v_.at(batch_, kv_head_);
      needed_ = reaches_all()
                    ? Range{0, s_.keys_}
                    : Range{limited(s_.seen(0, length_)).begin, limited(s_.seen(s_.queries_ - 1, length_)).end};
      k_ += needed_.begin * s_.k_.row, v_ += needed_.begin * s_.v_.row;
      if (s_.few_ || needed_.begin >= needed_.end) return;
      const auto count = static_cast<std::size_t>(needed_.end - needed_.begin);
      s_.gemm_.pack(keys_, {k_, s_.k_.row, s_.k_.column, nullptr, count, s_.d_});
      s_.gemm_.pack(values_, {v_, s_.v_.column, s_.v_.row, nullptr, s_.e_, count});
    }

    /// Rows [first, last) of all that share the head.
    void run(std::size_t first, std::size_t last) {
      const auto lines = static_cast<std::size_t>(s_.lines_);
      while (first < last) {
        const std::size_t line = first % lines, count = std::min({s_.block_, lines - line, last - first});
        run_block(static_cast<std::int64_t>(first / lines), static_cast<std::int64_t>(line), count);
        first += count;
      }
    }

   private:
    static const float *floats(const Context &c, const Edge &edge) { return c.tensor(edge.slot).as<const float>(); }

    /// Whether queries may see what is hidden by a number.
    bool reaches_all() const { return s_.a_.hides_by_number && (mask_ || padding_); }

    Range limited(Range r) const {
      r.end = std::min(r.end, length_seen_);
      return {std::min(r.begin, r.end), r.end};
    }

    std::int64_t head_of(std::int64_t run, std::int64_t line) const {
      return kv_head_ * (s_.heads_ / s_.kv_heads_) + (s_.one_query_ ? line : run);
    }
    std::int64_t query_of(std::int64_t line) const { return s_.one_query_ ? 0 : line; }
    std::ptrdiff_t line_step(const Matrices &m) const { return s_.one_query_ ? m.head : m.row; }
    std::ptrdiff_t place(const Matrices &m, std::int64_t run, std::int64_t line) const {
      return m.at(batch_, head_of(run, line)) + query_of(line) * m.row;
    }

    void run_block(std::int64_t run, std::int64_t line, std::size_t count) {
      const auto last = line + static_cast<std::int64_t>(count) - 1;
      Range block{limited(s_.seen(query_of(line), length_)).begin, limited(s_.seen(query_of(last), length_)).end};
      if (reaches_all()) block = needed_;
      float *y = y_ + place(s_.y_, run, line);
      if (block.begin >= block.end) {
        for (std::size_t r = 0; r < count; ++r)
          std::fill_n(y + static_cast<std::ptrdiff_t>(r) * line_step(s_.y_), s_.e_,
                      std::clamp(0.0f, s_.clamp_.lo, s_.clamp_.hi));
        return;
      }
      block = {block.begin - needed_.begin, block.end - needed_.begin};
      multiply_keys(q_ + place(s_.q_, run, line), count, block);
      become_shares(run, line, count, block);
      multiply_values(count, block, y);
    }

    void multiply_few_keys(const float *q, std::size_t count, const Range &block) const {
      s_.rows_.key_products({q, line_step(s_.q_), count, k_ + block.begin * s_.k_.row, s_.k_.row,
                             static_cast<std::size_t>(block.end - block.begin), s_.d_, row(0) + block.begin,
                             static_cast<std::ptrdiff_t>(s_.row_)});
    }

    void multiply_few_values(std::size_t count, const Range &block, float *y) const {
      s_.rows_.mixtures({scores_ + block.begin, static_cast<std::ptrdiff_t>(s_.row_), count,
                         v_ + block.begin * s_.v_.row, s_.v_.row, s_.e_,
                         static_cast<std::size_t>(block.end - block.begin), y, line_step(s_.y_)});
      if (s_.clamp_.lo == kEverything.lo && s_.clamp_.hi == kEverything.hi) return;
      for (std::size_t r = 0; r < count; ++r, y += line_step(s_.y_))
        for (std::size_t i = 0; i < s_.e_; ++i)
          y[i] = y[i] < s_.clamp_.lo ? s_.clamp_.lo : y[i] > s_.clamp_.hi ? s_.clamp_.hi : y[i];
    }

    /// Scores of whole panels of keys.
    void multiply_keys(const float *q, std::size_t count, const Range &block) const {
      if (s_.few_) return multiply_few_keys(q, count, block);
      const auto nr = static_cast<std::int64_t>(s_.gemm_.nr), all = needed_.end - needed_.begin;
      const std::int64_t begin = block.begin / nr * nr, end = std::min(all, (block.end + nr - 1) / nr * nr);
      kernels::GemmArgs args{};
      args.m = count;
      args.n = static_cast<std::size_t>(end - begin);
      args.k = s_.d_ * sizeof(float);
      args.a = reinterpret_cast<const std::uint8_t *>(q);
      args.lda = line_step(s_.q_) * static_cast<std::ptrdiff_t>(sizeof(float));
      args.packed = keys_ + s_.gemm_.packed_bytes(static_cast<std::size_t>(begin), args.k);
      args.y = scores_ + begin;
      args.ldy = static_cast<std::ptrdiff_t>(s_.row_);
      args.lo = kEverything.lo;
      args.hi = kEverything.hi;
      s_.gemm_.run(args);
    }

    /// By the keys of the block; kernels that cannot leave any out meet zeros at the others.
    void multiply_values(std::size_t count, const Range &block, float *y) const {
      if (s_.few_) return multiply_few_values(count, block, y);
      const std::size_t all = static_cast<std::size_t>(needed_.end - needed_.begin), size = sizeof(float);
      kernels::GemmArgs args{};
      args.m = count;
      args.n = s_.e_;
      args.k = all * size;
      args.a = reinterpret_cast<const std::uint8_t *>(scores_);
      args.lda = static_cast<std::ptrdiff_t>(s_.row_ * size);
      args.packed = values_;
      args.y = y;
      args.ldy = line_step(s_.y_);
      args.lo = s_.clamp_.lo;
      args.hi = s_.clamp_.hi;
      const std::size_t first = static_cast<std::size_t>(block.begin) * size;
      const kernels::GemmRun keys{static_cast<std::ptrdiff_t>(first), first,
                                  static_cast<std::size_t>(block.end - block.begin) * size};
      const kernels::GemmStrip strip{0, args.lda, count, &keys, 1, 0, 0, 1};
      const kernels::GemmImage image{&strip, 1, s_.no_bias_.data()};
      if (s_.gemm_.image_bytes != 0) args.image = &image;
      s_.gemm_.run(args);
    }

    float *row(std::size_t r) const { return scores_ + r * s_.row_; }

    /// Scores to probabilities; 0 where a key of the block is not seen.
    void become_shares(std::int64_t run, std::int64_t line, std::size_t count, const Range &block) {
      const bool alike = s_.a_.left < 0 && s_.a_.right < 0 && !padding_ && !is_bool() && !s_.a_.has_sink;
      float factor = s_.a_.scale;
      if (s_.a_.softcap > 0) {
        for (std::size_t r = 0; r < count; ++r) cap(row(r), block);
        factor = s_.a_.softcap;
      }
      const auto columns = static_cast<std::size_t>(block.end - block.begin);
      if (alike) {
        const float *added = mask_ ? mask_at(run, line) : nullptr;
        const std::ptrdiff_t step = mask_ ? line_step(*s_.mask_) : 0;
        s_.rows_.score(
            {scores_ + block.begin, count, columns, static_cast<std::ptrdiff_t>(s_.row_), factor, added, step});
        for (std::size_t r = 0; r < count; ++r) {
          if (added && !sees(added + static_cast<std::ptrdiff_t>(r) * step, columns))
            std::fill_n(row(r) + block.begin, columns, 0.0f);
          clear_outside(r, block, block);
        }
        return;
      }
      for (std::size_t r = 0; r < count; ++r) {
        const std::int64_t at = line + static_cast<std::int64_t>(r);
        clear_outside(r, become_shares(run, at, row(r), factor), block);
      }
    }

    /// One row; the keys that have shares.
    Range become_shares(std::int64_t run, std::int64_t line, float *scores, float factor) {
      Range seen = limited(s_.seen(query_of(line), length_));
      seen = {seen.begin - needed_.begin, seen.end - needed_.begin};
      if (seen.begin >= seen.end) return {0, 0};
      const float *added = addends(run, line);
      if (added && !sees(added + seen.begin, static_cast<std::size_t>(seen.end - seen.begin))) {
        if (!s_.a_.hides_by_number) return {0, 0};
        // Hidden keys are all alike, whatever their scores.
        if (added != addends_) std::copy_n(added, seen.end, addends_);
        std::fill(addends_ + seen.end, addends_ + s_.keys_, std::numeric_limits<float>::lowest());
        if (seen.end == s_.keys_ && !sees_any(addends_, kNever, static_cast<std::size_t>(s_.keys_))) return {0, 0};
        source_ = nullptr;
        added = addends_;
        seen.end = s_.keys_;
      }
      const auto columns = static_cast<std::size_t>(seen.end - seen.begin);
      scores += seen.begin;
      if (added) added += seen.begin;
      if (s_.a_.has_sink)
        share_with_sink(scores, columns, factor, added, sinks_ ? sinks_[head_of(run, line)] : 0);
      else
        s_.rows_.score({scores, 1, columns, 0, factor, added, 0});
      return seen;
    }

    /// The sink is as good a score as any behind those of the keys.
    void share_with_sink(float *scores, std::size_t columns, float factor, const float *added, float sink) const {
      for (std::size_t j = 0; j < columns; ++j) scores[j] = scores[j] * factor + (added ? added[j] : 0);
      scores[columns] = sink;
      s_.rows_.score({scores, 1, columns + 1, 0, 1, nullptr, 0});
    }

    void cap(float *scores, const Range &block) const {
      const float scale = s_.a_.scale, most = s_.a_.softcap;
      for (std::int64_t j = block.begin; j < block.end; ++j) scores[j] = scores[j] * scale / most;
      s_.activation_.run(kernels::Activation::tanh, scores + block.begin, scores + block.begin,
                         static_cast<std::size_t>(block.end - block.begin));
    }

    void clear_outside(std::size_t r, const Range &seen, Range block) const {
      if (s_.gemm_.image_bytes == 0) block = {0, needed_.end - needed_.begin};
      const std::int64_t begin = std::max(seen.begin, block.begin), end = std::max(begin, seen.end);
      std::fill(row(r) + block.begin, row(r) + std::min(begin, block.end), 0.0f);
      std::fill(row(r) + std::min(end, block.end), row(r) + block.end, 0.0f);
    }

    bool is_bool() const { return mask_ && s_.a_.mask->form.dtype == QTN_BOOL; }

    /// What the mask adds, from the first key that is needed.
    const float *mask_at(std::int64_t run, std::int64_t line) const {
      return static_cast<const float *>(mask_) + place(*s_.mask_, run, line) + needed_.begin;
    }

    static bool sees_any(const float *added, float least, std::size_t columns) {
      return !std::all_of(added, added + columns, [least](float v) { return v <= least; });
    }
    /// Whether anything added leaves the share of its key above that of hidden ones.
    bool sees(const float *added, std::size_t columns) const {
      return sees_any(added, s_.a_.hides_by_number ? std::numeric_limits<float>::lowest() / 2 : kNever, columns);
    }

    /// What is added to the scores of a row, from the first key that is needed; null: nothing.
    const float *addends(std::int64_t run, std::int64_t line) {
      if (!mask_ && !padding_) return nullptr;
      if (!padding_ && !is_bool()) return mask_at(run, line);
      // Rows that read the same have the same.
      const void *source = mask_;
      const auto columns = static_cast<std::size_t>(needed_.end - needed_.begin);
      if (is_bool()) {
        const bool *sees_key = static_cast<const bool *>(mask_) + place(*s_.mask_, run, line);
        if (source_ == sees_key) return addends_;
        source = sees_key;
        const auto limit = static_cast<std::size_t>(std::min(needed_.end, length_seen_) - needed_.begin);
        for (std::size_t j = 0; j < limit; ++j)
          addends_[j] = sees_key[needed_.begin + static_cast<std::int64_t>(j)] ? 0 : kNever;
      } else {
        const ops::PaddingRow row{*padding_, s_.batches_, batch_, query_of(line), s_.a_.padded};
        source = row.source();
        if (source_ == source && !mask_) return addends_;
        row.write(addends_, columns);
        if (mask_) {
          const float *added = mask_at(run, line);
          for (std::size_t j = 0; j < columns; ++j) addends_[j] += added[j];
        }
      }
      source_ = source;
      return addends_;
    }

    const HeadAttentionStep &s_;
    std::int64_t batch_, kv_head_;
    const float *q_;
    float *y_;
    const float *k_ = nullptr, *v_ = nullptr;  ///< of the first key that is needed
    std::byte *keys_, *values_;
    float *scores_, *addends_;
    const void *mask_;
    const Tensor *padding_;
    const float *sinks_;
    std::int64_t length_, length_seen_ = std::numeric_limits<std::int64_t>::max();
    Range needed_{0, 0};
    const void *source_ = nullptr;  ///< what addends_ were made from
  };

  HeadAttention a_;
  const kernels::GemmRealKernel &gemm_;
  const kernels::RowsKernel &rows_;
  const kernels::ActivationKernel &activation_;
  ops::Clamp clamp_;
  Matrices q_, k_, v_, y_;
  std::optional<Matrices> mask_;
  std::int64_t batches_, heads_, kv_heads_, queries_, keys_;
  std::size_t d_, e_, row_ = 0, block_ = 0;
  bool one_query_ = false, few_ = false;
  std::int64_t lines_ = 0, runs_ = 0;  ///< rows that follow one another evenly, and how often
  DividedHeads units_;                 ///< heads of keys and values
  std::vector<std::int32_t> no_bias_;
};

}  // namespace

StepPtr make_head_attention(HeadAttention attention, const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<HeadAttentionStep>(std::move(attention), clamp, isa);
}

}  // namespace qtn::runtime
