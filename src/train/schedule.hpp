// SPDX-License-Identifier: Apache-2.0
// Schedules: the learning rate as a function of the number of steps before, and of nothing else.
#pragma once

#include <cstdint>

#include "core/attrs.hpp"

namespace qtn::train {

inline constexpr AttrSpec kScheduleOptions[] = {
    {"schedule", AttrSpec::kString}, {"lr", AttrSpec::kFloat},         {"min_lr", AttrSpec::kFloat},
    {"total_steps", AttrSpec::kInt}, {"warmup_steps", AttrSpec::kInt}, {"step_size", AttrSpec::kInt},
    {"gamma", AttrSpec::kFloat},
};

struct ScheduleSettings {
  double lr, min_lr, gamma;
  std::int64_t total_steps, warmup_steps, step_size;
};

class Schedule {
 public:
  /// A schedule of the kind that "schedule" names; "constant" without it. "lr" (default 0.001) is the rate that it
  /// begins with. The first "warmup_steps" w (default 0) have the rates lr / w, 2 lr / w ... lr; after them s counts
  /// from 0. Throws QTN_EINVAL on an unknown kind, an option of another kind, or a value out of range. Options of other
  /// parts of a trainer are passed over, and every kind may be told "total_steps".
  ///
  /// constant  lr
  /// step      lr * gamma^floor(s / step_size), as StepLR: "step_size" (required), "gamma" (default 0.1)
  /// cosine    min_lr + (lr - min_lr) (1 + cos(pi s / T)) / 2, as CosineAnnealingLR, T = total_steps - w; min_lr from
  ///           there on: "total_steps" (required), "min_lr" (default 0). For fine-tuning NVIDIA advises an lr of 1 % of
  ///           that of the original training and a min_lr of 1 % of this
  explicit Schedule(const Attrs &attrs);

  /// `step` counts from 0.
  double rate(std::int64_t step) const;

 private:
  ScheduleSettings settings_;
  double (*after_warmup_)(const ScheduleSettings &settings, std::int64_t step);
};

}  // namespace qtn::train
