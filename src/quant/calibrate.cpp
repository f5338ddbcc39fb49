// SPDX-License-Identifier: Apache-2.0
#include "quant/calibrate.hpp"

#include <utility>

#include "base/error.hpp"

namespace qtn::quant {
namespace {

std::vector<Tensor> checked_inputs(const graph::Graph &g, std::span<const Tensor *const> inputs,
                                   const std::string &of_sample) {
  if (inputs.size() != g.inputs.size())
    fail(QTN_EINVAL, "calibrate: the model takes ", g.inputs.size(), " inputs, not ", inputs.size());
  std::vector<Tensor> checked;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    graph::check_input(g, i, inputs[i]->dtype(), inputs[i]->shape(), "calibrate");
    if (inputs[i]->dtype() == QTN_FLOAT32)
      check_finite(*inputs[i], cat("calibrate: input \"", g.value(g.inputs[i]).name, "\""), of_sample);
    checked.push_back(inputs[i]->to_contiguous());
  }
  return checked;
}

std::vector<graph::ValueId> observed_values(const Placement &placement) {
  std::vector<graph::ValueId> values;
  for (const Group &group : placement.groups) values.insert(values.end(), group.sources.begin(), group.sources.end());
  return values;
}

/// What sees a sample in place of a model's observers, and takes their places when all went well.
class Witness {
 public:
  explicit Witness(PreparedModel &prepared) : prepared_(&prepared), distributions_(prepared.distributions) {
    for (const auto &observer : prepared.observers) observers_.push_back(observer ? observer->clone() : nullptr);
  }

  void see(std::size_t group, const Tensor &t) {
    if (observers_[group]) observers_[group]->observe_finite(t);
    if (!distributions_.empty()) distributions_[group].add(t);
  }

  void keep() {
    prepared_->observers = std::move(observers_);
    prepared_->distributions = std::move(distributions_);
    ++prepared_->samples;
  }

 private:
  PreparedModel *prepared_;
  std::vector<std::unique_ptr<Observer>> observers_;
  std::vector<Distribution> distributions_;
};

std::vector<const Tensor *> pointers_to(const std::vector<Tensor> &tensors) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &t : tensors) pointers.push_back(&t);
  return pointers;
}

/// Lets each of those that look on see a tensor.
void show_to(std::vector<std::pair<Onlooker *, Witness>> &looking, std::size_t group, const Tensor &t) {
  for (std::size_t i = 0; i < looking.size();) {
    try {
      looking[i].second.see(group, t);
      ++i;
    } catch (const Error &e) {
      if (looking.size() == 1 || e.status() != QTN_EINVAL) throw;
      looking[i].first->refused = true;
      looking.erase(looking.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace

void show(PreparedModel &prepared, std::span<const Tensor *const> inputs, std::size_t number,
          const std::function<void(std::size_t group, const Tensor &)> &see) {
  const graph::Graph &g = prepared.graph;
  const Placement &placement = prepared.placement;
  const std::string of_sample = cat(" of sample ", number);
  const std::vector<Tensor> checked = checked_inputs(g, inputs, of_sample);
  if (!prepared.engine) prepared.engine = std::make_shared<runtime::Watched>(g, observed_values(placement));
  prepared.engine->run(checked, [&](graph::ValueId v, const Tensor &t) {
    const std::string who = cat("calibrate: tensor \"", g.value(v).name, "\"");
    check_finite(t, who, of_sample);
    try {
      see(static_cast<std::size_t>(placement.group[static_cast<std::size_t>(v)]), t);
    } catch (const Error &e) {
      fail(e.status(), who, of_sample, ": ", e.what());
    }
  });
}

void calibrate(PreparedModel &prepared, std::span<const Tensor *const> inputs) {
  Witness witness(prepared);
  show(prepared, inputs, prepared.samples, [&](std::size_t group, const Tensor &t) { witness.see(group, t); });
  witness.keep();
}

void calibrate_all(PreparedModel &prepared, const Samples &samples) {
  Onlooker alone(prepared, samples);
  calibrate_together({&alone, 1}, samples);
}

Onlooker::Onlooker(PreparedModel &of, const Samples &samples) : model(&of) {
  for (std::size_t s = 0; s < samples.count; ++s) numbers.insert(samples.number(s));
}

void calibrate_together(std::span<Onlooker> onlookers, const Samples &samples) {
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::size_t number = samples.number(s);
    std::vector<std::pair<Onlooker *, Witness>> looking;
    for (Onlooker &onlooker : onlookers)
      if (!onlooker.refused && onlooker.numbers.contains(number)) looking.emplace_back(&onlooker, *onlooker.model);
    if (looking.empty()) continue;
    const std::vector<Tensor> inputs = samples.read(s);
    PreparedModel &first = *onlookers.front().model;
    show(first, pointers_to(inputs), number, [&](std::size_t group, const Tensor &t) { show_to(looking, group, t); });
    for (auto &[onlooker, witness] : looking) {
      witness.keep();
      onlooker->model->engine = first.engine;
    }
  }
}

}  // namespace qtn::quant
