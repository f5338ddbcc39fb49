// SPDX-License-Identifier: Apache-2.0
#include "quant/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "quant/data_check.hpp"
#include "quant/recover/correct.hpp"
#include "quant/rows.hpp"
#include "quant/search/route.hpp"

namespace qtn::quant {
namespace {

struct Options {
  bool plain, absorb_bias, correct_bias, learn_rounding, automatic, sensitivity, histograms;
  double smooth;  ///< 0: not
  Targets targets;
  bool wide;             ///< layers fall back to int16
  std::size_t measured;  ///< samples that are read more than once
};

constexpr AttrSpec kKeys[] = {
    {"plain", AttrSpec::kInt},           {"smooth", AttrSpec::kFloat},      {"absorb_bias", AttrSpec::kInt},
    {"bias_correction", AttrSpec::kInt}, {"adaround", AttrSpec::kInt},      {"auto", AttrSpec::kInt},
    {"target_sqnr", AttrSpec::kFloat},   {"target_top1", AttrSpec::kFloat}, {"fallback", AttrSpec::kString},
    {"sensitivity", AttrSpec::kInt},     {"histograms", AttrSpec::kInt},    {"measured_samples", AttrSpec::kInt},
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
  const auto flag = [&](const char *key, bool otherwise = false) { return attrs.get_int(key, otherwise) != 0; };
  Options o{.plain = flag("plain"),
            .absorb_bias = flag("absorb_bias"),
            .correct_bias = flag("bias_correction", true),
            .learn_rounding = flag("adaround"),
            .automatic = flag("auto"),
            .sensitivity = flag("sensitivity"),
            .histograms = flag("histograms"),
            .smooth = attrs.get_float("smooth", 0),
            .targets = targets_of(attrs),
            .wide = false,
            .measured = 0};
  for (const char *key : {"absorb_bias", "bias_correction", "adaround", "auto"})
    if (o.plain && flag(key)) fail(QTN_EINVAL, "quantize: plain tries nothing, and ", key, " is 1");
  if (o.plain && o.smooth > 0) fail(QTN_EINVAL, "quantize: plain tries nothing, and smooth is ", o.smooth);
  if (!(o.smooth >= 0) || o.smooth > 1) fail(QTN_EINVAL, "quantize: smooth ", o.smooth, " is outside [0, 1]");
  const std::int64_t measured = attrs.get_int("measured_samples", 32);
  if (measured < 1) fail(QTN_EINVAL, "quantize: measured_samples is ", measured, ", not positive");
  o.measured = static_cast<std::size_t>(measured);
  o.wide = falls_back_to_int16(attrs, o.targets);
  return o;
}

/// What a candidate has to gain on the held-back samples, in dB: a measurable difference, and the more the fewer they
/// are. What changes ranges has to gain more than a correction, for it also changes what is clipped of samples that are
/// rarer than these.
struct Threshold {
  double of_many, of_one;

  double at(std::size_t samples) const { return of_many + of_one / std::pow(static_cast<double>(samples), 1.5); }
};
constexpr Threshold kOfCorrection{0.1, 6}, kOfRanges{1, 20};

/// SmoothQuant's strength that its authors take for most models.
constexpr double kSmooth = 0.5;

class Pipeline {
 public:
  Pipeline(const graph::Graph &real, const Config &config, const Samples &samples, const RowCount &rows,
           const Options &options, const Progress &progress)
      : real_(real),
        samples_(samples),
        rows_(rows),
        division_(divide(samples, options.measured)),
        also_judging_(some_of(division_.fitted, options.plain || samples.count == 1 ? 0 : division_.fitted.count)),
        measured_(some_of(samples, options.measured)),
        start_{real, config, division_.fitted, options.histograms},
        options_(options),
        progress_(progress) {}

  Quantized run() {
    Attempt attempt = options_.plain ? calibrated({}) : best_attempt();
    Prepared &prepared = attempt.prepared;
    Account &account = account_;
    account.samples = rows_.of(samples_);
    account.automatic = options_.automatic;
    account.observers = std::move(attempt.observers);
    account.targets = options_.targets;
    account.wide = options_.wide;
    std::optional<Goal> goal;
    if (options_.targets.any()) goal.emplace(real_, measured_, samples_, options_.targets);
    graph::Graph quantized = corrected(prepared, goal);
    if (goal && !goal->met_by(quantized)) {
      account.fallen = fall_back(prepared, *goal);
      quantized = corrected(prepared, goal);
    }
    if (goal) account.reached = goal->reached(quantized);
    account.judges = rows_.of(division_.held_back);
    account.held_back = samples_.count > 1;
    if (options_.sensitivity)
      account.layers = measure_damage(prepared.graph, quantized, counted(measured_, "measuring each layer", progress_));
    account.describe(real_, prepared, quantized);
    return {std::move(quantized), std::move(account)};
  }

 private:
  /// Of a route that exists, with all samples.
  Attempt calibrated(const Route &route) const {
    Attempt attempt = *prepare_along(start_, route);
    calibrate_along(start_, attempt, counted(samples_, "calibrating", progress_));
    return attempt;
  }

  /// Routes compete on ranges of the fitted samples, so that the held-back ones show what a range misses.
  Attempt best_attempt() {
    std::optional<Attempt> best = prepare_along(start_, {});
    Verdict verdict = judged(*best);
    std::size_t kept = account_.trials.size();
    account_.trials.push_back({best->route.name(), verdict.held_back.sqnr_db(), std::nullopt, true});
    const auto challenge = [&](const Route &route) {
      std::optional<Attempt> other = prepare_along(start_, route);
      if (!other) return;
      Verdict of_other = judged(*other);
      const bool better = gains(verdict, of_other, kOfRanges.at(division_.held_back.count));
      account_.trials.push_back({route.name(), of_other.held_back.sqnr_db(), verdict.held_back.sqnr_db(), better});
      if (!better) return;
      account_.trials[kept].kept = false;
      kept = account_.trials.size() - 1;
      best = std::move(other);
      verdict = std::move(of_other);
    };
    for (const Route &route : rewrites()) challenge(route);
    if (automatic()) {
      Route observed = best->route;
      observed.choose_observers = true;
      challenge(observed);
    }
    route_trials_ = account_.trials.size();
    if (order_matters(*best) && division_.rest.count > 0) return calibrated(best->route);
    calibrate_all(best->prepared, counted(division_.rest, "calibrating", progress_));
    return std::move(*best);
  }

  std::vector<Route> rewrites() const {
    std::vector<Route> routes;
    if (!start_.config.says("equalize")) routes.push_back({.equalize = true});
    if (options_.absorb_bias) routes.push_back({.equalize = true, .absorb_bias = true});
    if (automatic() && options_.smooth != kSmooth) routes.push_back({.smooth = kSmooth});
    if (options_.smooth > 0) routes.push_back({.smooth = options_.smooth});
    return routes;
  }

  std::vector<Corrections> corrections() const {
    std::vector<Corrections> which;
    if (options_.correct_bias && !options_.plain) which.push_back({.bias = true});
    if (options_.learn_rounding) which.push_back({.rounding = true});
    if (options_.learn_rounding && options_.correct_bias) which.push_back({.rounding = true, .bias = true});
    return which;
  }

  /// What is fitted to the only sample cannot be judged by it.
  bool automatic() const { return options_.automatic && samples_.count > 1; }

  Verdict judged(Attempt &attempt) {
    const std::string stage = cat("trying ", attempt.route.name());
    calibrate_along(start_, attempt, counted(division_.fitted, stage.c_str(), progress_));
    return judge(convert(attempt.prepared, nullptr));
  }

  Verdict judge(const graph::Graph &quantized) {
    if (!judge_) judge_.emplace(real_, division_.held_back, also_judging_);
    return judge_->on(quantized);
  }

  std::vector<FallenLayer> fall_back(Prepared &prepared, const Goal &goal) const {
    const Samples again = counted(samples_, "calibrating with 16 bits", progress_);
    return reach(prepared, goal, measured_, options_.wide ? to_int16(prepared, again) : to_float(prepared));
  }

  /// Converted, with the corrections that gain. What was tried of an earlier conversion is forgotten.
  graph::Graph corrected(const Prepared &prepared, const std::optional<Goal> &goal) {
    account_.trials.resize(route_trials_);
    account_.rounding_learned = account_.bias_corrected = false;
    const graph::Graph plain = convert(prepared, nullptr);
    graph::Graph best = plain;
    Verdict verdict = judge(plain);
    for (const Corrections &which : corrections()) {
      graph::Graph other = plain;
      const Samples fitted = counted(division_.fitted, which.rounding ? "learning to round" : "correcting", progress_);
      correct(prepared, other, fitted, which);
      if (keeps(which, goal, best, other, verdict)) best = std::move(other);
    }
    account_.accuracy = std::move(verdict.held_back);
    return best;
  }

  /// Where a correction gains, and misses no target that has been reached.
  bool keeps(const Corrections &which, const std::optional<Goal> &goal, const graph::Graph &best,
             const graph::Graph &other, Verdict &verdict) {
    Verdict of_other = judge(other);
    const bool better = gains(verdict, of_other, kOfCorrection.at(division_.held_back.count)) &&
                        (!goal || goal->met_by(other) || !goal->met_by(best));
    const std::string name =
        which.rounding ? which.bias ? "adaround + bias_correction" : "adaround" : "bias_correction";
    account_.trials.push_back({name, of_other.held_back.sqnr_db(), verdict.held_back.sqnr_db(), better});
    if (!better) return false;
    verdict = std::move(of_other);
    account_.rounding_learned = which.rounding;
    account_.bias_corrected = which.bias;
    return true;
  }

  const graph::Graph &real_;
  const Samples &samples_;
  const RowCount &rows_;
  const Division division_;
  const Samples also_judging_;  // the fitted ones, where something is compared and they are others
  const Samples measured_;
  const Start start_;
  const Options &options_;
  const Progress &progress_;
  std::optional<Judge> judge_;
  std::size_t route_trials_ = 0;  // the first trials of the account
  Account account_;
};

}  // namespace

Quantized quantize(const graph::Graph &float_graph, const Config &config, const Samples &samples, const Attrs *attrs,
                   const Progress &progress) {
  const Options options = options_of(attrs ? *attrs : Attrs());
  DataCheck check(float_graph);
  RowCount rows(float_graph);
  const Samples looked_at = check.watch(samples), watched = rows.watch(looked_at);
  Quantized quantized = Pipeline(float_graph, config, watched, rows, options, progress).run();
  quantized.account.warnings = check.warnings(samples.count, quantized.account.samples);
  return quantized;
}

}  // namespace qtn::quant
