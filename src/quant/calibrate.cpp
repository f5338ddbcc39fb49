// SPDX-License-Identifier: Apache-2.0
#include "quant/calibrate.hpp"

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

/// Copies see the sample; they take the observers' places when all went well.
void observe(PreparedModel &prepared, std::span<const Tensor *const> inputs, std::size_t number) {
  std::vector<std::unique_ptr<Observer>> observers;
  for (const auto &observer : prepared.observers) observers.push_back(observer ? observer->clone() : nullptr);
  std::vector<Distribution> distributions = prepared.distributions;
  show(prepared, inputs, number, [&](std::size_t group, const Tensor &t) {
    if (observers[group]) observers[group]->observe_finite(t);
    if (!distributions.empty()) distributions[group].add(t);
  });
  prepared.observers = std::move(observers);
  prepared.distributions = std::move(distributions);
  ++prepared.samples;
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
  observe(prepared, inputs, prepared.samples);
}

void calibrate_all(PreparedModel &prepared, const Samples &samples) {
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::vector<Tensor> inputs = samples.read(s);
    std::vector<const Tensor *> pointers;
    for (const Tensor &x : inputs) pointers.push_back(&x);
    observe(prepared, pointers, samples.number(s));
  }
}

}  // namespace qtn::quant
