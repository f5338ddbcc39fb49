// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.hpp"

#include "base/elementary.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

double constant(const ScheduleSettings &s, std::int64_t) { return s.lr; }

double stepwise(const ScheduleSettings &s, std::int64_t step) { return s.lr * power(s.gamma, step / s.step_size); }

double cosine(const ScheduleSettings &s, std::int64_t step) {
  const std::int64_t total = s.total_steps - s.warmup_steps;
  if (step >= total) return s.min_lr;
  const double height = 1 + cosine_of_pi(static_cast<double>(step) / static_cast<double>(total));
  return s.min_lr + (s.lr - s.min_lr) * height / 2;
}

constexpr std::string_view kConstantOptions[] = {"schedule", "lr", "warmup_steps", "total_steps"};
constexpr std::string_view kStepOptions[] = {"schedule", "lr", "warmup_steps", "total_steps", "step_size", "gamma"};
constexpr std::string_view kCosineOptions[] = {"schedule", "lr", "warmup_steps", "total_steps", "min_lr"};

struct Kind {
  std::string_view name;
  double (*rate)(const ScheduleSettings &settings, std::int64_t step);
  std::span<const std::string_view> options;
};
constexpr Kind kKinds[] = {
    {"constant", constant, kConstantOptions},
    {"step", stepwise, kStepOptions},
    {"cosine", cosine, kCosineOptions},
};

constexpr const char *kName = "schedule";

std::int64_t steps(const Attrs &attrs, const char *key, std::int64_t least) {
  const std::int64_t count = attrs.get_int(key, 0);
  if (count < least) fail(QTN_EINVAL, kName, ": ", key, " ", count, " is below ", least);
  return count;
}

}  // namespace

Schedule::Schedule(const Attrs &attrs) {
  const Kind &kind = find_kind<Kind>(kKinds, attrs, kName);
  check_options(attrs, kScheduleOptions, kind.options, kName, kind.name);
  after_warmup_ = kind.rate;
  settings_ = {.lr = not_negative(attrs, "lr", 1e-3, kName),
               .min_lr = not_negative(attrs, "min_lr", 0, kName),
               .gamma = not_negative(attrs, "gamma", 0.1, kName),
               .total_steps = steps(attrs, "total_steps", kind.rate == cosine || attrs.has("total_steps") ? 1 : 0),
               .warmup_steps = steps(attrs, "warmup_steps", 0),
               .step_size = steps(attrs, "step_size", kind.rate == stepwise ? 1 : 0)};
  if (kind.rate == cosine && settings_.total_steps <= settings_.warmup_steps)
    fail(QTN_EINVAL, kName, ": nothing is left of total_steps ", settings_.total_steps, " after warmup_steps ",
         settings_.warmup_steps);
}

double Schedule::rate(std::int64_t step) const {
  const std::int64_t warmup = settings_.warmup_steps;
  if (step >= warmup) return after_warmup_(settings_, step - warmup);
  return settings_.lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
}

}  // namespace qtn::train
