// SPDX-License-Identifier: Apache-2.0
#include "quant/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "graph/passes.hpp"
#include "quant/normalize.hpp"
#include "quant/recover/correct.hpp"
#include "quant/recover/equalize.hpp"

namespace qtn::quant {
namespace {

struct Options {
  bool absorb_bias, correct_bias, learn_rounding, automatic, sensitivity, histograms;
  double smooth;  ///< 0: not
  Targets targets;
  bool wide;             ///< layers fall back to int16
  std::size_t measured;  ///< samples that are read more than once
};

constexpr AttrSpec kKeys[] = {
    {"smooth", AttrSpec::kFloat},
    {"absorb_bias", AttrSpec::kInt},
    {"bias_correction", AttrSpec::kInt},
    {"adaround", AttrSpec::kInt},
    {"auto", AttrSpec::kInt},
    {"target_sqnr", AttrSpec::kFloat},
    {"target_top1", AttrSpec::kFloat},
    {"fallback", AttrSpec::kString},
    {"sensitivity", AttrSpec::kInt},
    {"histograms", AttrSpec::kInt},
    {"measured_samples", AttrSpec::kInt},
};

Targets targets_of(const Attrs &attrs) {
  Targets targets;
  if (attrs.has("target_sqnr")) {
    targets.sqnr_db = attrs.get_float("target_sqnr", 0);
    if (!std::isfinite(*targets.sqnr_db))
      fail(QTN_EINVAL, "quantize: target_sqnr ", *targets.sqnr_db, " is not finite");
  }
  if (attrs.has("target_top1")) {
    targets.top1 = attrs.get_float("target_top1", 0);
    if (!(*targets.top1 > 0) || *targets.top1 > 1)
      fail(QTN_EINVAL, "quantize: target_top1 ", *targets.top1, " is outside (0, 1]");
  }
  return targets;
}

bool falls_back_to_int16(const Attrs &attrs, const Targets &targets) {
  const std::string fallback = attrs.get_string("fallback", "float");
  if (fallback != "float" && fallback != "int16")
    fail(QTN_EINVAL, "quantize: fallback \"", fallback, "\" is not offered; there are: float int16");
  if (attrs.has("fallback") && !targets.any())
    fail(QTN_EINVAL, "quantize: fallback \"", fallback, "\" is for target_sqnr and target_top1, neither is given");
  return fallback == "int16";
}

Options options_of(const Attrs &attrs) {
  attrs.check(kKeys, "quantize");
  const auto flag = [&](const char *key) { return attrs.get_int(key, 0) != 0; };
  Options o{flag("absorb_bias"), flag("bias_correction"),      flag("adaround"),  flag("auto"), flag("sensitivity"),
            flag("histograms"),  attrs.get_float("smooth", 0), targets_of(attrs), false,        0};
  if (!(o.smooth >= 0) || o.smooth > 1) fail(QTN_EINVAL, "quantize: smooth ", o.smooth, " is outside [0, 1]");
  const std::int64_t measured = attrs.get_int("measured_samples", 32);
  if (measured < 1) fail(QTN_EINVAL, "quantize: measured_samples is ", measured, ", not positive");
  o.measured = static_cast<std::size_t>(measured);
  o.wide = falls_back_to_int16(attrs, o.targets);
  return o;
}

/// Evenly spread over all.
Samples some_of(const Samples &all, std::size_t most) {
  const std::size_t count = std::min(all.count, most);
  return {count, [&all, count](std::size_t i) { return all.read(i * all.count / count); }};
}

Samples counted(const Samples &samples, const char *stage, const Progress &progress) {
  return {samples.count, [&samples, stage, &progress](std::size_t i) {
            std::vector<Tensor> inputs = samples.read(i);
            if (progress) progress(stage, i + 1, samples.count);
            return inputs;
          }};
}

class Pipeline {
 public:
  Pipeline(const Config &config, const Samples &samples, const Options &options, const Progress &progress)
      : config_(config),
        samples_(samples),
        measured_(some_of(samples_, options.measured)),
        options_(options),
        progress_(progress) {}

  Quantized run(const graph::Graph &float_graph) const {
    graph::Graph real = float_graph;
    if (options_.smooth > 0) {
      graph::optimize(real);
      normalize_products(real);
      equalize_activations(real, measured_, options_.smooth);
    }
    if (options_.absorb_bias) {
      real = prepare(real, config_).graph;  // equalized
      absorb_biases(real, measured_);
    }
    Quantized result;
    Account &account = result.account;
    account.samples = samples_.count;
    Prepared prepared = prepare(real, config_);
    if (options_.histograms) prepared.distributions.resize(prepared.placement.groups.size());
    if (options_.automatic)
      account.observers = choose_observers(prepared, counted(samples_, "calibrating", progress_), measured_.count);
    else
      calibrate_all(prepared, samples_, progress_);
    std::optional<Goal> goal;
    if (options_.targets.any()) {
      goal.emplace(float_graph, measured_, samples_, options_.targets);
      account.fallen = fall_back(prepared, *goal);
    }
    result.graph = convert(prepared, nullptr);
    correct_graph(prepared, goal ? &*goal : nullptr, result);
    account.wide = options_.wide;
    account.targets = options_.targets;
    if (goal) account.reached = goal->reached(result.graph);
    if (options_.sensitivity)
      account.layers =
          measure_damage(prepared.graph, result.graph, counted(measured_, "measuring each layer", progress_));
    account.describe(float_graph, prepared, result.graph);
    return result;
  }

 private:
  std::vector<FallenLayer> fall_back(Prepared &prepared, const Goal &goal) const {
    const Samples again = counted(samples_, "calibrating with 16 bits", progress_);
    return reach(prepared, goal, measured_, options_.wide ? to_int16(prepared, again) : to_float(prepared));
  }

  /// Under "auto" a bias correction that does not help is left out; so is any with which a target is missed.
  void correct_graph(const Prepared &prepared, const Goal *goal, Quantized &q) const {
    Corrections which{options_.learn_rounding, options_.correct_bias || options_.automatic};
    graph::Graph corrected = q.graph;
    correct(prepared, corrected, measured_, which);
    if (options_.automatic && !options_.correct_bias &&
        sqnr_db(prepared.graph, corrected, measured_) <= sqnr_db(prepared.graph, q.graph, measured_)) {
      which.bias = false;
      corrected = q.graph;
      correct(prepared, corrected, measured_, which);
    }
    if (goal && (which.rounding || which.bias) && !goal->met_by(corrected) && goal->met_by(q.graph)) {
      which = {};
      corrected = q.graph;
    }
    q.graph = std::move(corrected);
    q.account.rounding_learned = which.rounding;
    q.account.bias_corrected = which.bias;
  }

  const Config &config_;
  const Samples &samples_;
  const Samples measured_;
  const Options &options_;
  const Progress &progress_;
};

}  // namespace

void calibrate_all(Prepared &prepared, const Samples &samples, const Progress &progress) {
  for (std::size_t i = 0; i < samples.count; ++i) {
    const std::vector<Tensor> inputs = samples.read(i);
    std::vector<const Tensor *> pointers;
    for (const Tensor &x : inputs) pointers.push_back(&x);
    calibrate(prepared, pointers);
    if (progress) progress("calibrating", i + 1, samples.count);
  }
}

Quantized quantize(const graph::Graph &float_graph, const Config &config, const Samples &samples, const Attrs *attrs,
                   const Progress &progress) {
  const Options options = options_of(attrs ? *attrs : Attrs());
  Quantized plain = Pipeline(config, samples, options, progress).run(float_graph);
  if (!options.automatic) return plain;
  Config equalizing = config;
  Attrs equalize;
  equalize.set("equalize", std::int64_t{1});
  equalizing.set("*", &equalize);
  Quantized equalized = Pipeline(equalizing, samples, options, progress).run(float_graph);
  const Samples measured = some_of(samples, options.measured);
  const auto rank = [&](const Quantized &q) {
    return std::pair(q.account.targets.met_by(q.account.reached), sqnr_db(float_graph, q.graph, measured));
  };
  return rank(equalized) > rank(plain) ? std::move(equalized) : std::move(plain);
}

}  // namespace qtn::quant
