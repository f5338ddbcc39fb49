// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/float_scope.hpp"
#include "base/parallel.hpp"
#include "train/finite.hpp"
#include "train/options.hpp"

namespace qtn::train {
namespace {

constexpr AttrSpec kOwnOptions[] = {{"seed", AttrSpec::kInt},
                                    {"threads", AttrSpec::kInt},
                                    {"freeze_bn", AttrSpec::kInt},
                                    {"observers", AttrSpec::kInt},
                                    {"fake_quant", AttrSpec::kInt}};
constexpr AttrSpec kLaterOptions[] = {{"lr", AttrSpec::kFloat},
                                      {"freeze_bn", AttrSpec::kInt},
                                      {"observers", AttrSpec::kInt},
                                      {"fake_quant", AttrSpec::kInt}};

/// Programs for so many shapes are kept: that of most batches, and of the last one of an epoch.
constexpr std::size_t kPrograms = 2;

void check_all(const Attrs &attrs) { attrs.check(trainer_options(), "trainer"); }

Switches switched(Switches switches, const Attrs &attrs, bool quantized) {
  for (const std::string_view key : {"observers", "fake_quant"})
    if (!quantized && attrs.has(key))
      fail(QTN_EINVAL, "trainer: \"", key, "\" is for models that were prepared with QTN_QAT");
  switches.freeze_bn = flag(attrs, "freeze_bn", switches.freeze_bn, "trainer");
  switches.observers = flag(attrs, "observers", switches.observers, "trainer");
  switches.fake_quant = flag(attrs, "fake_quant", switches.fake_quant, "trainer");
  return switches;
}

std::unique_ptr<Network> network_of(const quant::PreparedModel &prepared) {
  if (!prepared.training) fail(QTN_ESTATE, "trainer: the model is prepared with QTN_PTQ, not with QTN_QAT");
  auto network = std::make_unique<Network>(prepared.training->graph, Quantization(prepared));
  // What calibration has found stays, unless it is told to follow.
  network->switches.observers = prepared.samples == 0;
  return network;
}

}  // namespace

std::vector<AttrSpec> trainer_options() {
  std::vector<AttrSpec> specs;
  for (const std::span<const AttrSpec> part :
       {std::span<const AttrSpec>(kLossOptions), std::span<const AttrSpec>(kOptimizerOptions),
        std::span<const AttrSpec>(kScheduleOptions), std::span<const AttrSpec>(kOwnOptions)})
    specs.insert(specs.end(), part.begin(), part.end());
  return specs;
}

Trainer::Trainer(graph::Graph g, const Attrs &attrs) : Trainer(std::make_unique<Network>(std::move(g)), attrs) {}

Trainer::Trainer(const quant::PreparedModel &prepared, const Attrs &attrs) : Trainer(network_of(prepared), attrs) {}

Trainer::Trainer(std::unique_ptr<Network> network, const Attrs &attrs)
    : network_(std::move(network)), schedule_options_(attrs), schedule_((check_all(attrs), attrs)) {
  loss_ = make_loss(attrs);
  if (network_->parameters.empty()) fail(QTN_EINVAL, "trainer: the model has nothing to train");
  optimizer_ = make_optimizer(attrs, network_->parameters);
  const std::int64_t threads = attrs.get_int("threads", 0);
  if (threads < 0 || threads > 1024) fail(QTN_EINVAL, "trainer: threads is ", threads, ", not from 0 to 1024");
  threads_ = static_cast<int>(threads);
  network_->switches = switched(network_->switches, attrs, network_->quantization.has_value());
  network_->switches.seed = static_cast<std::uint64_t>(attrs.get_int("seed", 0));
}

void Trainer::check(std::span<const Tensor *const> inputs) const {
  const graph::Graph &g = network_->graph;
  if (inputs.size() != g.inputs.size())
    fail(QTN_EINVAL, "trainer: the model takes ", g.inputs.size(), " inputs, not ", inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    graph::check_input(g, i, inputs[i]->dtype(), inputs[i]->shape(), "trainer");
}

Program &Trainer::program_for(std::span<const Tensor *const> inputs) {
  check(inputs);
  const auto found =
      std::find_if(programs_.begin(), programs_.end(), [&](const auto &program) { return program->fits(inputs); });
  if (found != programs_.end()) {
    std::rotate(found, found + 1, programs_.end());
    return *programs_.back();
  }
  std::vector<ops::TensorType> types;
  for (const Tensor *t : inputs) types.push_back({t->dtype(), t->shape()});
  if (programs_.size() == kPrograms) programs_.erase(programs_.begin());
  programs_.push_back(std::make_unique<Program>(*network_, types));
  return *programs_.back();
}

double Trainer::run(Program &program, std::span<const Tensor *const> inputs, std::span<const Tensor *const> targets) {
  program.forward(inputs);
  for (const Tensor &output : program.outputs())
    if (output.count() == 0) fail(QTN_EINVAL, "trainer: the batch is empty, an output is ", to_string(output.shape()));
  const double loss = loss_->run(program.outputs(), targets, program.output_gradients());
  if (std::isfinite(loss) && !program.hides_not_finite()) return loss;
  network_->revert();
  const std::string culprit = program.first_not_finite(inputs).value_or("loss");
  fail(QTN_EINVAL, "trainer: the loss is ", loss, " at step ", network_->switches.step,
       "; the first tensor that is not finite is \"", culprit, "\"");
}

void Trainer::run_backward(Program &program, std::span<const Tensor *const> inputs,
                           std::span<const Tensor *const> targets) {
  program.backward();
  const std::vector<Parameter> &all = parameters();
  if (std::all_of(all.begin(), all.end(), [](const Parameter &p) { return all_finite(p.gradient); })) return;
  network_->revert();
  const double loss = run(program, inputs, targets);
  fail(QTN_EINVAL, "trainer: the loss is ", loss, " at step ", network_->switches.step,
       "; the first tensor whose gradient is not finite is \"", program.first_not_finite_gradient().value_or(""), "\"");
}

void Trainer::keep_gradients() {
  if (means_.empty()) {
    std::vector<Tensor> means;
    for (const Parameter &p : parameters()) means.emplace_back(QTN_FLOAT32, p.value.shape());
    means_ = std::move(means);
  }
  for (std::size_t i = 0; i < means_.size(); ++i) copy_elements(means_[i], parameters()[i].gradient);
}

void Trainer::restore_gradients() {
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const Tensor &gradient = parameters()[i].gradient;
    if (batches_ > 0)
      copy_elements(gradient, means_[i]);
    else
      std::fill_n(gradient.as<float>(), gradient.count(), 0.0f);
  }
}

double Trainer::backward(std::span<const Tensor *const> inputs, std::span<const Tensor *const> targets) {
  const ThreadScope threads(threads_);
  Program &program = program_for(inputs);
  const std::vector<Parameter> &parameters = network_->parameters;
  if (batches_ > 0) keep_gradients();
  double loss = 0;
  bool ran = false;
  network_->follow();
  try {
    loss = run(program, inputs, targets);
    ran = true;
    run_backward(program, inputs, targets);
  } catch (...) {
    network_->revert();
    if (ran) restore_gradients();
    throw;
  }
  if (batches_ > 0) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      float *sum = parameters[i].gradient.as<float>();
      const float *before = means_[i].as<const float>();
      for (std::int64_t e = 0; e < means_[i].count(); ++e) sum[e] = mean_of_batches(before[e], sum[e], batches_);
    }
  }
  network_->commit();
  ++network_->switches.batch;
  ++batches_;
  return loss;
}

void Trainer::update() {
  if (batches_ == 0) fail(QTN_ESTATE, "trainer: there was no backward since the last update");
  const ThreadScope threads(threads_);
  if (network_->quantization) network_->quantization->before_update();
  {
    const FloatScope scope(FloatMode::without_denormals);  // weights and moments that decay end at zero
    optimizer_->step(schedule_.rate(static_cast<std::int64_t>(network_->switches.step)));
  }
  network_->update_statistics();
  batches_ = 0;
  ++network_->switches.step;
  if (network_->quantization) network_->quantization->after_update();
}

std::vector<Tensor> Trainer::evaluate(std::span<const Tensor *const> inputs) {
  const ThreadScope threads(threads_);
  check(inputs);
  network_->follow();
  return evaluator_.of(*network_, inputs);
}

void Trainer::set(const Attrs &attrs) {
  attrs.check(kLaterOptions, "trainer");
  Attrs options = schedule_options_;
  if (attrs.has("lr")) options.set("lr", attrs.get_float("lr", 0));
  const Schedule schedule(options);
  network_->switches = switched(network_->switches, attrs, network_->quantization.has_value());
  schedule_ = schedule;
  schedule_options_ = std::move(options);
}

void Trainer::set_group(const std::string &selector, const Attrs &settings) {
  if (batches_ > 0) fail(QTN_ESTATE, "trainer: a group is set between backward and update");
  std::vector<bool> before;
  for (const Parameter &p : parameters()) before.push_back(p.frozen);
  groups_.set(selector, settings, *network_);
  // Nothing below may throw: the group is set.
  if (std::equal(before.begin(), before.end(), parameters().begin(), parameters().end(),
                 [](bool frozen, const Parameter &p) { return frozen == p.frozen; }))
    return;
  // Which gradients are computed is part of a program.
  programs_.clear();
  for (const Parameter &p : parameters())
    if (p.frozen) std::fill_n(p.gradient.as<float>(), p.gradient.count(), 0.0f);
}

}  // namespace qtn::train
