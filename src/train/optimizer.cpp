// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "train/optimizers/clip.hpp"
#include "train/optimizers/kinds.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

constexpr std::string_view kSgdOptions[] = {"optimizer",    "momentum",  "nesterov",
                                            "weight_decay", "clip_norm", "clip_value"};
constexpr std::string_view kAdamOptions[] = {"optimizer",    "beta1",     "beta2",     "epsilon",
                                             "weight_decay", "clip_norm", "clip_value"};

struct Kind {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const Attrs &attrs, std::span<const Parameter> parameters);
  std::span<const std::string_view> options;
};
constexpr Kind kKinds[] = {
    {"sgd", make_sgd, kSgdOptions},
    {"adam", make_adam, kAdamOptions},
    {"adamw", make_adamw, kAdamOptions},
};

void check(const Parameter &p) {
  if (p.value.dtype() != QTN_FLOAT32 || p.gradient.dtype() != QTN_FLOAT32)
    fail(QTN_EDTYPE, "optimizer: ", p.name, " is ", dtype_name(p.value.dtype()), ", its gradient ",
         dtype_name(p.gradient.dtype()), ", not float32");
  if (!(p.value.shape() == p.gradient.shape()) || !p.value.contiguous() || !p.gradient.contiguous())
    fail(QTN_ESHAPE, "optimizer: ", p.name, " is ", to_string(p.value.shape()), ", its gradient ",
         to_string(p.gradient.shape()), "; both must be contiguous and of one shape");
}

Tensor zeros(qdtype dtype, const Shape &shape) {
  Tensor t(dtype, shape);
  std::fill_n(t.as<std::byte>(), t.nbytes(), std::byte{});
  return t;
}

}  // namespace

Optimizer::Optimizer(const OptimizerSettings &settings, std::span<const Parameter> parameters,
                     std::vector<std::string_view> state_names)
    : settings_(settings), parameters_(parameters), state_names_(std::move(state_names)), steps_(zeros(QTN_INT64, {})) {
  constexpr std::size_t kBlock = std::size_t{1} << 14;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    check(parameters_[p]);
    const auto count = static_cast<std::size_t>(parameters_[p].value.count());
    for (std::size_t at = 0; at < count; at += kBlock) blocks_.push_back({p, at, std::min(count, at + kBlock)});
    for (std::size_t s = 0; s < state_names_.size(); ++s)
      states_.push_back(zeros(QTN_FLOAT32, parameters_[p].value.shape()));
  }
}

void Optimizer::step(double rate) {
  if (settings_.clip_value > 0) clip_value(parameters_, settings_.clip_value);
  if (settings_.clip_norm > 0) clip_norm(parameters_, settings_.clip_norm);
  const std::int64_t now = ++*steps_.as<std::int64_t>();
  parallel_for(blocks_.size(), [&](std::size_t i) {
    const auto [index, begin, end] = blocks_[i];
    const Parameter &p = parameters_[index];
    if (p.frozen) return;
    Piece piece{.count = end - begin,
                .value = p.value.as<float>() + begin,
                .gradient = p.gradient.as<const float>() + begin,
                .state = {},
                .rate = rate * static_cast<double>(p.rate_factor),
                .weight_decay = p.weight_decay.value_or(p.decays ? settings_.weight_decay : 0),
                .step = now};
    for (std::size_t s = 0; s < state_names_.size(); ++s)
      piece.state[s] = states_[index * state_names_.size() + s].as<float>() + begin;
    move(piece);
  });
}

void Optimizer::for_each_state(const std::function<void(const std::string &, const Tensor &)> &f) const {
  f("step", steps_);
  for (std::size_t i = 0; i < states_.size(); ++i)
    f(cat(parameters_[i / state_names_.size()].name, ".", state_names_[i % state_names_.size()]), states_[i]);
}

OptimizerSettings optimizer_settings(const Attrs &attrs, double weight_decay) {
  OptimizerSettings s;
  s.weight_decay = not_negative(attrs, "weight_decay", weight_decay, "optimizer");
  if (attrs.has("clip_norm")) s.clip_norm = positive(attrs, "clip_norm", 0, "optimizer");
  if (attrs.has("clip_value")) s.clip_value = positive(attrs, "clip_value", 0, "optimizer");
  return s;
}

std::unique_ptr<Optimizer> make_optimizer(const Attrs &attrs, std::span<const Parameter> parameters) {
  const Kind &kind = find_kind<Kind>(kKinds, attrs, "optimizer");
  check_options(attrs, kOptimizerOptions, kind.options, "optimizer", kind.name);
  return kind.make(attrs, parameters);
}

}  // namespace qtn::train
