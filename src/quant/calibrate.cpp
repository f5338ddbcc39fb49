// SPDX-License-Identifier: Apache-2.0
#include "quant/calibrate.hpp"

#include <optional>
#include <set>

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
  explicit Witness(PreparedModel &prepared) : prepared_(prepared), distributions_(prepared.distributions) {
    for (const auto &observer : prepared.observers) observers_.push_back(observer ? observer->clone() : nullptr);
  }

  void see(std::size_t group, const Tensor &t) {
    if (observers_[group]) observers_[group]->observe_finite(t);
    if (!distributions_.empty()) distributions_[group].add(t);
  }

  void keep() {
    prepared_.observers = std::move(observers_);
    prepared_.distributions = std::move(distributions_);
    ++prepared_.samples;
  }

 private:
  PreparedModel &prepared_;
  std::vector<std::unique_ptr<Observer>> observers_;
  std::vector<Distribution> distributions_;
};

void observe(PreparedModel &prepared, PreparedModel *twin, std::span<const Tensor *const> inputs, std::size_t number) {
  Witness witness(prepared);
  std::optional<Witness> other;
  if (twin) other.emplace(*twin);
  show(prepared, inputs, number, [&](std::size_t group, const Tensor &t) {
    witness.see(group, t);
    if (other) other->see(group, t);
  });
  witness.keep();
  if (other) other->keep();
}

void observe_all(PreparedModel &prepared, const Samples &samples, PreparedModel *twin,
                 const std::set<std::size_t> &some) {
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::vector<Tensor> inputs = samples.read(s);
    std::vector<const Tensor *> pointers;
    for (const Tensor &x : inputs) pointers.push_back(&x);
    const std::size_t number = samples.number(s);
    observe(prepared, some.contains(number) ? twin : nullptr, pointers, number);
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
  observe(prepared, nullptr, inputs, prepared.samples);
}

void calibrate_all(PreparedModel &prepared, const Samples &samples) { observe_all(prepared, samples, nullptr, {}); }

void calibrate_both(PreparedModel &prepared, PreparedModel &twin, const Samples &samples, const Samples &some) {
  std::set<std::size_t> numbers;
  for (std::size_t s = 0; s < some.count; ++s) numbers.insert(some.number(s));
  observe_all(prepared, samples, &twin, numbers);
}

}  // namespace qtn::quant
