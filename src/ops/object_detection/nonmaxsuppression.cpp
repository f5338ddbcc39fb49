// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <vector>

#include "ops/common/convert.hpp"
#include "ops/common/made.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"center_point_box", AttrSpec::kInt}};
constexpr const char *kName = "NonMaxSuppression";

struct Box {
  float left, top, right, bottom;

  float area() const { return (right - left) * (bottom - top); }
};

/// Two corners in any order, rows first; or center, width and height.
Box box_at(const float *p, bool center) {
  if (center) return {p[0] - p[2] / 2, p[1] - p[3] / 2, p[0] + p[2] / 2, p[1] + p[3] / 2};
  return {std::min(p[1], p[3]), std::min(p[0], p[2]), std::max(p[1], p[3]), std::max(p[0], p[2])};
}

/// Boxes that stay, edge by edge, so that a box meets many of them at a time.
class Kept {
 public:
  void add(const Box &box) {
    left_.push_back(box.left), top_.push_back(box.top), right_.push_back(box.right), bottom_.push_back(box.bottom);
    area_.push_back(box.area());
  }

  /// Whether what the box and one of these both cover is more than that part of what either covers.
  bool cover(const Box &box, float threshold) const {
    const std::size_t count = area_.size();
    bool covers = false;
    for (std::size_t first = 0; first < count && !covers; first += kAtOnce)
      covers = any(box, threshold, first, std::min(count, first + kAtOnce));
    return covers;
  }

 private:
  static constexpr std::size_t kAtOnce = 64;

  bool any(const Box &box, float threshold, std::size_t first, std::size_t last) const {
    const float *lefts = left_.data(), *tops = top_.data(), *rights = right_.data(), *bottoms = bottom_.data(),
                *areas = area_.data();
    const float area = box.area();
    std::int32_t found = 0;
    for (std::size_t i = first; i < last; ++i) {
      const float width = std::min(box.right, rights[i]) - std::max(box.left, lefts[i]),
                  height = std::min(box.bottom, bottoms[i]) - std::max(box.top, tops[i]);
      const float both = width * height, either = area + areas[i] - both;
      found |= std::int32_t{width > 0} & std::int32_t{height > 0} & std::int32_t{areas[i] > 0} &
               std::int32_t{either > 0} & std::int32_t{both / either > threshold};
    }
    return found && area > 0;
  }

  std::vector<float> left_, top_, right_, bottom_, area_;
};

/// The one number of an optional input, which may also have no elements.
template <class T>
T number(const Call &call, std::size_t i, const char *name, T fallback) {
  const Tensor *t = call.in(i);
  if (!t || t->count() == 0) return fallback;
  require_dtype(kName, name, *t, {std::is_same_v<T, float> ? QTN_FLOAT32 : QTN_INT64});
  if (t->count() != 1) fail(QTN_ESHAPE, kName, ": ", name, " must be one number, it is ", to_string(t->shape()));
  return require_constant(kName, name, *t).as<const T>()[0];
}

struct Candidate {
  float score;
  std::int64_t box;

  bool operator<(const Candidate &other) const {
    return score > other.score || (score == other.score && box < other.box);
  }
};

/// Candidates best first. They are sorted piece by piece, each larger than the one before: often few are asked for.
class Ranking {
 public:
  explicit Ranking(std::span<Candidate> candidates) : candidates_(candidates) {}

  /// nullptr behind the last.
  const Candidate *next() {
    if (at_ == sorted_) sort_piece();
    return at_ < sorted_ ? &candidates_[at_++] : nullptr;
  }

 private:
  void sort_piece() {
    constexpr std::size_t kGrowth = 4;
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const std::size_t count = std::min(piece_, candidates_.size() - sorted_);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    if (end != candidates_.end()) std::nth_element(begin, end, candidates_.end());
    std::sort(begin, end);
    sorted_ += count;
    piece_ *= kGrowth;
  }

  std::span<Candidate> candidates_;
  std::size_t at_ = 0, sorted_ = 0, piece_ = 64;
};

/// Which boxes stay, best first: as many as are wanted, of those above the least score, none of which covers another.
/// `memory` has room for all of them.
std::vector<std::int64_t> select(const float *boxes, const float *scores, std::int64_t count, std::int64_t most,
                                 float threshold, const float *least, bool center, Candidate *memory) {
  // Each is written, and the next one over it unless it counts: nothing foretells which do.
  std::size_t above = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    memory[above] = {scores[i], i};
    above += least ? scores[i] > *least : scores[i] == scores[i];
  }
  Ranking ranking({memory, above});
  std::vector<std::int64_t> chosen;
  Kept kept;
  while (static_cast<std::int64_t>(chosen.size()) < most) {
    const Candidate *best = ranking.next();
    if (!best) break;
    const Box box = box_at(boxes + 4 * best->box, center);
    if (kept.cover(box, threshold)) continue;
    kept.add(box);
    chosen.push_back(best->box);
  }
  return chosen;
}

std::vector<Tensor> make(const Call &call) {
  require_float(kName, "boxes", call.in(0));
  require_float(kName, "scores", call.in(1));
  const Shape &b = call.in(0)->shape(), &s = call.in(1)->shape();
  if (b.size() != 3 || b[2] != 4 || s.size() != 3 || s[0] != b[0] || s[2] != b[1])
    fail(QTN_ESHAPE, kName, ": boxes are ", to_string(b), ", scores ", to_string(s));
  const std::int64_t center = call.attrs.get_int("center_point_box", 0);
  if (center != 0 && center != 1) fail(QTN_EINVAL, kName, ": center_point_box is ", center, ", not 0 or 1");
  const std::int64_t most = std::max<std::int64_t>(0, number<std::int64_t>(call, 2, "max_output_boxes_per_class", 0));
  const float threshold = number(call, 3, "iou_threshold", 0.0f);
  if (!(threshold >= 0 && threshold <= 1))
    fail(QTN_EINVAL, kName, ": iou_threshold is ", threshold, ", not between 0 and 1");
  const float least = number(call, 4, "score_threshold", 0.0f);
  const bool filtered = call.in(4) && call.in(4)->count() > 0;
  const Tensor boxes = require_constant(kName, "boxes", *call.in(0)).to_contiguous(),
               scores = require_constant(kName, "scores", *call.in(1)).to_contiguous();
  std::vector<std::int64_t> found;
  std::vector<Candidate> memory(most > 0 ? static_cast<std::size_t>(s[2]) : 0);
  for (std::int64_t row = 0; most > 0 && row < s[0] * s[1]; ++row)
    for (const std::int64_t box :
         select(boxes.as<const float>() + row / s[1] * b[1] * 4, scores.as<const float>() + row * s[2], s[2], most,
                threshold, filtered ? &least : nullptr, center == 1, memory.data()))
      found.insert(found.end(), {row / s[1], row % s[1], box});
  return {Tensor::from<std::int64_t>(QTN_INT64, {static_cast<std::int64_t>(found.size() / 3), 3}, found)};
}

/// In all: every box meets every other that is kept, in each class of each image.
double work(const Call &call) {
  const Shape &boxes = call.in(0)->shape();
  return 8 * static_cast<double>(call.in(1)->count()) * static_cast<double>(boxes.size() > 1 ? boxes[1] : 0);
}

}  // namespace

const OpDef kNonMaxSuppression{.name = kName,
                               .min_inputs = 2,
                               .max_inputs = 5,
                               .max_outputs = 1,
                               .attrs = kAttrs,
                               .infer = infer_made<make>,
                               .run = run_made<make>,
                               .shapes_from = {0, 5},
                               .make = make,
                               .work = work,
                               .output_dtype = makes<QTN_INT64>};

}  // namespace qtn::ops
