// SPDX-License-Identifier: Apache-2.0
#include "train/loss.hpp"

#include "train/losses/kinds.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

constexpr std::string_view kCrossEntropyOptions[] = {"loss", "label_smoothing", "class_axis", "ignore_index"};
constexpr std::string_view kMseOptions[] = {"loss"};
constexpr std::string_view kHuberOptions[] = {"loss", "delta"};
constexpr std::string_view kDistillationOptions[] = {"loss", "temperature", "alpha", "class_axis"};

struct Kind {
  std::string_view name;
  std::unique_ptr<Loss> (*make)(const Attrs &attrs);
  std::span<const std::string_view> options;
};
constexpr Kind kKinds[] = {
    {"cross_entropy", make_cross_entropy, kCrossEntropyOptions},
    {"mse", make_mse, kMseOptions},
    {"huber", make_huber, kHuberOptions},
    {"distillation", make_distillation, kDistillationOptions},
};

}  // namespace

double Loss::run(std::span<const Tensor> outputs, std::span<const Tensor *const> targets,
                 std::span<const Tensor> dy) const {
  const std::size_t each = target_count();
  if (targets.size() != outputs.size() * each)
    fail(QTN_EINVAL, "loss: ", outputs.size(), " outputs have ", outputs.size() * each, " targets, not ",
         targets.size());
  double sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() != QTN_FLOAT32)
      fail(QTN_EDTYPE, "loss: output ", i, " is ", dtype_name(outputs[i].dtype()), ", not float32");
    sum += run_one(outputs[i], targets.subspan(i * each, each), dy[i]);
  }
  return sum;
}

std::unique_ptr<Loss> make_loss(const Attrs &attrs) {
  const Kind &kind = find_kind<Kind>(kKinds, attrs, "loss");
  check_options(attrs, kLossOptions, kind.options, "loss", kind.name);
  return kind.make(attrs);
}

}  // namespace qtn::train
