// SPDX-License-Identifier: Apache-2.0
#include "train/losses/cross_entropy.hpp"

#include "train/blocks.hpp"
#include "train/losses/kinds.hpp"
#include "train/losses/rows.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

/// Targets give class k the share targets.share(row, k), and all classes of a row targets.total(row). The loss is a mean
/// over `counted` rows.
template <class Targets>
double run_rows(const Tensor &logits, const Rows &rows, std::size_t counted, double weight, const Tensor &dy,
                const Targets &targets) {
  const double scale = counted == 0 ? 0 : weight / static_cast<double>(counted);
  const double sum = sum_blocks(rows.count, rows.least(), [&](std::size_t begin, std::size_t end) {
    double block = 0;
    RowPart part;
    for (std::size_t row = begin; row < end; ++row) {
      const auto *x = logits.as<const float>() + rows.begin(row);
      auto *to = dy.as<float>() + rows.begin(row);
      const double normalizer = log_sum(x, rows, 1), total = targets.total(row);
      for (std::size_t first = 0; first < rows.classes; first += RowPart::kMost) {
        part.load(x, rows, first, 1, normalizer);
        for (std::size_t i = 0; i < part.count; ++i) {
          const double share = targets.share(row, first + i);
          if (share != 0) block -= share * part.logs[i];  // a logit of -infinity has no part where it is not asked for
          to[(first + i) * rows.step] = static_cast<float>((total * part.values[i] - share) * scale);
        }
      }
    }
    return block;
  });
  return sum * scale;
}

template <class Label>
struct Labels {
  const Label *labels;
  const std::optional<std::int64_t> ignored;
  double smoothing, spread;

  Labels(const Tensor &target, const Classes &of, const Rows &rows)
      : labels(target.as<const Label>()),
        ignored(of.ignored),
        smoothing(of.smoothing),
        spread(of.smoothing / static_cast<double>(rows.classes)) {}

  bool counts(std::size_t row) const { return !ignored || labels[row] != *ignored; }
  double share(std::size_t row, std::size_t k) const {
    if (!counts(row)) return 0;
    return spread + (k == static_cast<std::size_t>(labels[row]) ? 1 - smoothing : 0);
  }
  double total(std::size_t row) const { return counts(row) ? 1 : 0; }

  /// How many rows count. Throws QTN_EINVAL on a label that is no class.
  std::size_t check(const char *who, const Rows &rows) const {
    std::size_t counted = 0;
    for (std::size_t row = 0; row < rows.count; ++row) {
      if (!counts(row)) continue;
      ++counted;
      if (static_cast<std::size_t>(labels[row]) >= rows.classes)  // as are negative ones
        fail(QTN_EINVAL, who, ": label ", labels[row], " of sample ", row / (rows.count / rows.batch),
             " is outside the ", rows.classes, " classes");
    }
    return counted;
  }
};

struct Distributions {
  const float *data;
  const Rows &rows;
  double smoothing, spread;

  Distributions(const Tensor &target, double s, const Rows &r)
      : data(target.as<const float>()), rows(r), smoothing(s), spread(s / static_cast<double>(r.classes)) {}

  double share(std::size_t row, std::size_t k) const {
    return spread + (1 - smoothing) * static_cast<double>(data[rows.begin(row) + k * rows.step]);
  }
  double total(std::size_t row) const {
    double sum = 0;
    for (std::size_t k = 0; k < rows.classes; ++k) sum += share(row, k);
    return sum;
  }
};

template <class Label>
double run_labels(const char *who, const Tensor &logits, const Rows &rows, const Tensor &target, const Classes &classes,
                  double weight, const Tensor &dy) {
  const Labels<Label> labels(target, classes, rows);
  return run_rows(logits, rows, labels.check(who, rows), weight, dy, labels);
}

class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(const Classes &classes) : classes_(classes) {}

 private:
  double run_one(const Tensor &output, std::span<const Tensor *const> targets, const Tensor &dy) const override {
    return cross_entropy("cross_entropy", output, *targets[0], classes_, 1, dy);
  }

  Classes classes_;
};

}  // namespace

std::int64_t class_axis(const Attrs &attrs, const char *who) {
  const std::int64_t axis = attrs.get_int("class_axis", 1);
  if (axis == 0) fail(QTN_EINVAL, who, ": class_axis is 0, the axis of samples");
  return axis;
}

double cross_entropy(const char *who, const Tensor &logits, const Tensor &target, const Classes &classes, double weight,
                     const Tensor &dy) {
  const Rows rows(who, logits, classes.axis);
  const qdtype dtype = target.dtype();
  if (dtype != QTN_INT64 && dtype != QTN_INT32 && dtype != QTN_FLOAT32)
    fail(QTN_EDTYPE, who, ": the target is ", dtype_name(dtype), ", not labels (int64, int32) or float32");
  const Shape &wanted = dtype == QTN_FLOAT32 ? logits.shape() : rows.places;
  if (target.shape() != wanted)
    fail(QTN_ESHAPE, who, ": the ", dtype == QTN_FLOAT32 ? "distributions are " : "labels are ",
         to_string(target.shape()), ", not ", to_string(wanted), " for logits ", to_string(logits.shape()));
  const Tensor flat = target.to_contiguous();
  if (dtype == QTN_FLOAT32)
    return run_rows(logits, rows, rows.count, weight, dy, Distributions(flat, classes.smoothing, rows));
  return dtype == QTN_INT64 ? run_labels<std::int64_t>(who, logits, rows, flat, classes, weight, dy)
                            : run_labels<std::int32_t>(who, logits, rows, flat, classes, weight, dy);
}

std::unique_ptr<Loss> make_cross_entropy(const Attrs &attrs) {
  constexpr const char *kName = "cross_entropy";
  Classes classes{.axis = class_axis(attrs, kName), .smoothing = fraction(attrs, "label_smoothing", 0, kName)};
  if (attrs.has("ignore_index")) classes.ignored = attrs.get_int("ignore_index", 0);
  return std::make_unique<CrossEntropy>(classes);
}

}  // namespace qtn::train
