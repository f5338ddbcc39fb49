// SPDX-License-Identifier: Apache-2.0
// Hinton, Vinyals and Dean, "Distilling the Knowledge in a Neural Network", 2015.
#include "train/blocks.hpp"
#include "train/losses/cross_entropy.hpp"
#include "train/losses/kinds.hpp"
#include "train/losses/pointwise.hpp"
#include "train/losses/rows.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

constexpr const char *kName = "distillation";

class Distillation final : public Loss {
 public:
  Distillation(double temperature, double alpha, bool labels, std::int64_t axis)
      : temperature_(temperature), alpha_(alpha), labels_(labels), axis_(axis) {}

  std::size_t target_count() const override { return labels_ ? 2 : 1; }

 private:
  double run_one(const Tensor &output, std::span<const Tensor *const> targets, const Tensor &dy) const override {
    check_alike(kName, "teacher's output", output, *targets[0]);
    const Tensor teacher = targets[0]->to_contiguous();
    if (!labels_) return learn(output, teacher, dy, false);
    const double hard = cross_entropy(kName, output, *targets[1], {.axis = axis_}, 1 - alpha_, dy);
    return hard + learn(output, teacher, dy, true);
  }

  /// Writes the gradient, or adds it to what is there.
  double learn(const Tensor &student, const Tensor &teacher, const Tensor &dy, bool add) const {
    const Rows rows(kName, student, axis_);
    const double factor = 1 / temperature_, slope = alpha_ * temperature_ / static_cast<double>(rows.batch);
    const double sum = sum_blocks(rows.count, rows.least(), [&](std::size_t begin, std::size_t end) {
      double block = 0;
      RowPart p, q;
      for (std::size_t row = begin; row < end; ++row) {
        const std::size_t at = rows.begin(row);
        const auto *x = student.as<const float>() + at, *wanted = teacher.as<const float>() + at;
        auto *to = dy.as<float>() + at;
        const double log_x = log_sum(x, rows, factor), log_wanted = log_sum(wanted, rows, factor);
        for (std::size_t first = 0; first < rows.classes; first += RowPart::kMost) {
          p.load(x, rows, first, factor, log_x);
          q.load(wanted, rows, first, factor, log_wanted);
          for (std::size_t i = 0; i < p.count; ++i) {
            if (q.values[i] != 0) block += q.values[i] * (q.logs[i] - p.logs[i]);  // a -infinity has no part
            float &g = to[(first + i) * rows.step];
            g = (add ? g : 0) + static_cast<float>(slope * (p.values[i] - q.values[i]));
          }
        }
      }
      return block;
    });
    return sum * slope * temperature_;
  }

  double temperature_, alpha_;
  bool labels_;
  std::int64_t axis_;
};

}  // namespace

std::unique_ptr<Loss> make_distillation(const Attrs &attrs) {
  const double alpha = attrs.get_float("alpha", 1);
  if (!(alpha >= 0 && alpha <= 1)) fail(QTN_EINVAL, kName, ": alpha ", alpha, " is outside [0, 1]");
  return std::make_unique<Distillation>(positive(attrs, "temperature", 1, kName), alpha, attrs.has("alpha"),
                                        class_axis(attrs, kName));
}

}  // namespace qtn::train
