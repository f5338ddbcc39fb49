// SPDX-License-Identifier: Apache-2.0
#include "quant/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/buffer_reuse.hpp"
#include "base/error.hpp"
#include "base/find_named.hpp"
#include "quant/calibrate.hpp"
#include "quant/data_check.hpp"
#include "quant/recover/correct.hpp"
#include "quant/rows.hpp"
#include "quant/search/route.hpp"

namespace qtn::quant {
namespace {

struct Options {
  bool plain, absorb_bias, correct_bias, feedback, learn_rounding, automatic, sensitivity, histograms;
  double smooth;  ///< 0: not
  Targets targets;
  bool wide;             ///< layers fall back to int16
  std::size_t measured;  ///< samples that are read more than once
};

constexpr AttrSpec kKeys[] = {
    {"plain", AttrSpec::kInt},
    {"smooth", AttrSpec::kFloat},
    {"absorb_bias", AttrSpec::kInt},
    {"bias_correction", AttrSpec::kInt},
    {"gptq", AttrSpec::kInt},
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
  constexpr std::string_view kFallbacks[] = {"float", "int16"};
  const std::string_view fallback =
      find_named(kFallbacks, attrs.get_string("fallback", "float"), "quantize", "fallback");
  if (attrs.has("fallback") && !targets.any())
    fail(QTN_EINVAL, "quantize: fallback \"", fallback, "\" is for target_sqnr and target_top1, neither is given");
  return fallback == "int16";
}

Options options_of(const Attrs &attrs) {
  attrs.check(kKeys, "quantize");
  const auto flag = [&](const char *key, bool otherwise = false) {
    const std::int64_t value = attrs.get_int(key, otherwise);
    if (value != 0 && value != 1) fail(QTN_EINVAL, "quantize: ", key, " is ", value, ", not 0 or 1");
    return value == 1;
  };
  Options o{.plain = flag("plain"),
            .absorb_bias = flag("absorb_bias"),
            .correct_bias = flag("bias_correction", true),
            .feedback = flag("gptq", true),
            .learn_rounding = flag("adaround"),
            .automatic = flag("auto"),
            .sensitivity = flag("sensitivity"),
            .histograms = flag("histograms"),
            .smooth = attrs.get_float("smooth", 0),
            .targets = targets_of(attrs),
            .wide = false,
            .measured = 0};
  for (const char *key : {"absorb_bias", "bias_correction", "gptq", "adaround", "auto"})
    if (o.plain && flag(key)) fail(QTN_EINVAL, "quantize: plain tries nothing, and ", key, " is 1");
  if (o.plain && o.smooth > 0) fail(QTN_EINVAL, "quantize: plain tries nothing, and smooth is ", o.smooth);
  if (!(o.smooth >= 0) || o.smooth > 1) fail(QTN_EINVAL, "quantize: smooth ", o.smooth, " is outside [0, 1]");
  const std::int64_t measured = attrs.get_int("measured_samples", 32);
  if (measured < 1) fail(QTN_EINVAL, "quantize: measured_samples is ", measured, ", not positive");
  o.measured = static_cast<std::size_t>(measured);
  o.wide = falls_back_to_int16(attrs, o.targets);
  return o;
}

/// What a candidate has to gain on the held-back samples, in dB: a measurable difference, and the more the less they
/// tell. What changes ranges has to gain more than a correction, for it also changes what is clipped of samples that are
/// rarer than these.
struct Threshold {
  double of_many, of_one;

  double at(double evidence) const { return of_many + of_one / std::pow(evidence, 1.5); }
};
constexpr Threshold kOfCorrection{0.1, 10}, kOfRanges{0.5, 30}, kOfFeatures{0.1, 6};

/// Outputs of so many numbers say what a sample alone does; the noise of more is known better, by the root of their number.
constexpr double kFewNumbers = 6;

/// How much held-back samples tell, in samples of few numbers. A single one, which is fitted too, says no more than that.
double evidence_of(const Accuracy &accuracy) {
  const auto count = static_cast<double>(accuracy.samples.size());
  if (accuracy.samples.size() < 2) return 1;
  return count * std::sqrt(std::max(1.0, accuracy.numbers / count / kFewNumbers));
}

/// Samples that say which layers stay in float by default.
constexpr std::size_t kRanking = 4;

/// For grids which are found at every run nothing is fitted that could be chance, but a run takes longer.
constexpr Threshold kOfDynamic{3, 0}, kOfDynamicForTarget{0.1, 0};

/// In dB, what 8 bits tell. With ranges that clip some samples, the ratio of one beyond it is chance: a Softmax which
/// is sure of its class has some of 90 dB and makes 70 of them for nothing that can be seen.
constexpr double kTold = 48;

/// Whether any weights have fewer than 8 bits.
bool has_coarse_weights(const graph::Graph &quantized) {
  return std::ranges::any_of(quantized.values, [](const graph::Value &value) {
    return value.is_constant() && value.quantizer && is_packed(value.quantizer->dtype());
  });
}

/// SmoothQuant's strength that its authors take for most models.
constexpr double kSmooth = 0.5;

/// An attempt, and what its fitted samples made of it.
struct JudgedAttempt {
  Attempt attempt;
  graph::Graph quantized;
  Verdict verdict;
  std::size_t trial;  ///< of the report
};

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
        progress_(progress),
        bias_(options.correct_bias && !options.plain) {
    if (options_.targets.any()) goal_.emplace(real_, measured_, samples_, options_.targets);
  }

  Quantized run() {
    Attempt attempt = options_.plain ? plain_attempt() : best_attempt();
    PreparedModel &prepared = attempt.prepared;
    QuantizationReport &report = report_;
    report.samples = rows_.of(samples_);
    report.automatic = options_.automatic;
    report.observers = std::move(attempt.observers);
    report.targets = options_.targets;
    report.wide = options_.wide;
    graph::Graph quantized = corrected(prepared);
    if (goal_ ? !goal_->met_by(quantized) : is_useless()) {
      report.fallen = goal_ ? fall_back(prepared, *goal_) : make_useful(prepared);
      quantized = corrected(prepared);
    }
    if (goal_) report.reached = goal_->reached(quantized);
    report.judges = rows_.of(division_.held_back);
    report.held_back = samples_.count > 1;
    if (report.held_back) report.accuracy = kept_ || !report.fallen.empty() ? on_unseen(prepared) : std::move(unseen_);
    if (options_.sensitivity)
      report.layers =
          measure_sensitivity(prepared.graph, quantized, counted(measured_, "measuring each layer", progress_));
    report.describe(real_, prepared, quantized);
    return {std::move(quantized), std::move(report)};
  }

 private:
  Attempt plain_attempt() {
    Attempt attempt = *prepare_along(start_, {});
    PreparedModel twin = observed_anew(attempt.prepared, start_.config, nullptr);
    twin.distributions.clear();
    calibrate_both(attempt.prepared, twin, counted(samples_, "calibrating", progress_), division_.fitted);
    if (samples_.count > 1) unseen_ = judge(convert(twin, nullptr)).held_back;
    return attempt;
  }

  /// Features were seen in many rows, and their factors promise half of the noise before they are tried.
  const Threshold &threshold_of(const Route &route) const {
    if (route.dynamic) return options_.targets.any() ? kOfDynamicForTarget : kOfDynamic;
    return route.smooth_features ? kOfFeatures : kOfRanges;
  }

  /// What GPTQ follows was seen in many rows, too.
  static const Threshold &threshold_of(const Corrections &which) {
    return which.rounding == Rounding::gptq ? kOfFeatures : kOfCorrection;
  }

  /// Recurrent layers in 8 bits are smaller and faster than in float, so that it is enough that they cost nothing, or that
  /// the target is met with them; anything else has to gain.
  bool is_better(const Route &route, const graph::Graph &quantized, const Verdict &before, const Verdict &after,
                 double most) const {
    if (route == Route{.recurrent = true}) return costs_nothing(before, after) || (goal_ && goal_->met_by(quantized));
    return gains(before, after, threshold_of(route).at(evidence_of(after.held_back)), most);
  }

  /// Routes have to gain twice: on ranges of the fitted samples, so that the held-back ones show what a range misses,
  /// and on those of all samples, which are what is kept.
  Attempt best_attempt() {
    std::vector<JudgedAttempt> candidates = gaining_candidates();
    for (JudgedAttempt &candidate : candidates) widen(candidate.attempt);
    JudgedAttempt &best = candidates[gaining_when_widened(candidates)];
    report_.trials[best.trial].kept = true;
    unseen_ = best.verdict.held_back;
    if (options_.correct_bias && samples_.count > 1) bias_ = bias_stands(best);
    route_trials_ = report_.trials.size();
    return std::move(best.attempt);
  }

  /// The plain recipe, and routes each of which gains on the one before it.
  std::vector<JudgedAttempt> gaining_candidates() {
    std::vector<JudgedAttempt> gaining;
    const auto challenge = [&](std::optional<Attempt> attempt) {
      if (!attempt) return;
      const Route &route = attempt->route;
      const std::string stage = cat("trying ", route.name());
      graph::Graph quantized;
      try {
        calibrate_along(start_, *attempt, counted(division_.fitted, stage.c_str(), progress_));
        quantized = convert(attempt->prepared, nullptr);
      } catch (const NotRead &) {
        throw;
      } catch (const Error &e) {
        // What the first one takes may be too much for an observer with bins, and dynamic layers take no blocks.
        if (gaining.empty() || (e.status() != QTN_EINVAL && e.status() != QTN_EUNSUPPORTED)) throw;
        return;
      }
      Verdict verdict = judge(quantized);
      const bool first = gaining.empty();
      add_trial(route.name(), verdict, first ? nullptr : &gaining.back().verdict);
      if (first || is_better(route, quantized, gaining.back().verdict, verdict, kTold))
        gaining.push_back({std::move(*attempt), std::move(quantized), std::move(verdict), report_.trials.size() - 1});
    };
    const auto challenge_observed = [&](auto change) {
      const Attempt &last = gaining.back().attempt;
      Route route = last.route;
      change(route);
      challenge(observed_along(start_, last, route));
    };
    challenge(prepare_along(start_, {}));
    if (!start_.config.says("mode")) challenge(prepare_along(start_, {.recurrent = true}));
    const bool recurrent = gaining.back().attempt.route.recurrent;
    for (Route route : rewrites()) {
      route.recurrent = recurrent;
      challenge(prepare_along(start_, route));
    }
    for (const char *observer : observers()) challenge_observed([&](Route &route) { route.observer = observer; });
    if (automatic() && !start_.config.says("mode") && !(goal_ && goal_->met_by(gaining.back().quantized)))
      challenge(prepare_along(start_, {.recurrent = recurrent, .dynamic = true}));
    if (automatic()) challenge_observed([](Route &route) { route.choose_observers = true; });
    return gaining;
  }

  /// Adds what the fitted samples left out to the ranges.
  void widen(Attempt &attempt) const {
    if (!order_matters(attempt) || division_.rest.count == 0)
      return calibrate_all(attempt.prepared, counted(division_.rest, "calibrating", progress_));
    attempt = observed_along(start_, attempt, attempt.route);
    calibrate_along(start_, attempt, counted(samples_, "calibrating", progress_));
  }

  std::size_t gaining_when_widened(const std::vector<JudgedAttempt> &candidates) {
    if (candidates.size() == 1 || division_.rest.count == 0) return candidates.size() - 1;
    std::size_t best = 0;
    Verdict verdict = judge(convert(candidates[0].attempt.prepared, nullptr));
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      const graph::Graph quantized = convert(candidates[i].attempt.prepared, nullptr);
      Verdict other = judge(quantized);
      if (is_better(candidates[i].attempt.route, quantized, verdict, other, kExact)) {
        best = i;
        verdict = std::move(other);
      } else {
        Trial &lost = report_.trials[candidates[i].trial];
        lost.sqnr_db = other.held_back.sqnr_db();
        lost.without_db = verdict.held_back.sqnr_db();
      }
    }
    return best;
  }

  /// Whether the typical sample does not lose by it on the ranges of the fitted samples, or not as far as 8 bits tell.
  /// What decides over all samples there is often what a range misses.
  bool bias_stands(const JudgedAttempt &candidate) {
    graph::Graph other = candidate.quantized;
    correct(candidate.attempt.prepared, other, counted(division_.fitted, "trying bias_correction", progress_),
            {.bias = true});
    const Verdict verdict = judge(other);
    for (const double most : {kExact, kTold})
      if (verdict.held_back.typical_db(most) >= candidate.verdict.held_back.typical_db(most)) return true;
    add_trial("bias_correction", verdict, &candidate.verdict);
    return false;
  }

  void add_trial(const std::string &name, const Verdict &verdict, const Verdict *before, bool kept = false) {
    report_.trials.push_back(
        {name, verdict.held_back.sqnr_db(), before ? std::optional(before->held_back.sqnr_db()) : std::nullopt, kept});
  }

  std::vector<Route> rewrites() const {
    std::vector<Route> routes;
    if (!start_.config.says("equalize")) routes.push_back({.equalize = true});
    if (options_.absorb_bias) routes.push_back({.equalize = true, .absorb_bias = true});
    routes.push_back({.smooth_features = true});
    if (automatic() && options_.smooth != kSmooth) routes.push_back({.smooth = kSmooth});
    if (options_.smooth > 0) routes.push_back({.smooth = options_.smooth});
    return routes;
  }

  /// In place of the largest and smallest values seen, where the configuration takes these without saying so.
  std::vector<const char *> observers() const {
    const bool by_default =
        !start_.config.says("observer") && start_.config.settings_for_all().activation_observer == "minmax";
    return by_default && samples_.count > 1 ? std::vector{"percentile", "mse"} : std::vector<const char *>();
  }

  /// Coarse weights lose most by what they are rounded to, so that comes first. Fitted to the only sample, integers
  /// cannot be judged by it.
  bool feeds_back(const graph::Graph &quantized) const {
    return options_.feedback && !options_.plain && samples_.count > 1 && has_coarse_weights(quantized);
  }

  std::vector<Corrections> corrections(const graph::Graph &quantized) const {
    std::vector<Corrections> which;
    const auto add = [&](Rounding rounding) {
      which.push_back({.rounding = rounding});
      if (bias_) which.push_back({.rounding = rounding, .bias = true});
    };
    if (feeds_back(quantized)) add(Rounding::gptq);
    if (bias_) which.push_back({.bias = true});
    if (options_.learn_rounding) add(Rounding::adaround);
    return which;
  }

  /// What is fitted to the only sample cannot be judged by it.
  bool automatic() const { return options_.automatic && samples_.count > 1; }

  Verdict judge(const graph::Graph &quantized) {
    if (!judge_) judge_.emplace(real_, division_.held_back, also_judging_);
    return judge_->on(quantized);
  }

  std::vector<FallenLayer> fall_back(PreparedModel &prepared, const Goal &goal) const {
    const Samples again = counted(samples_, "calibrating with 16 bits", progress_);
    return reach(prepared, goal, options_.wide ? to_int16(prepared, again) : to_float(prepared), progress_);
  }

  /// Activations of 8 bits are to blame where nothing else is coarse, and nobody has said which bits there are to be.
  bool is_useless() const {
    const auto says = [&](const char *key) { return start_.config.says(key); };
    return !options_.plain && report_.accuracy->worst_db() < kUseless && !says("mode") && !says("weight_bits") &&
           !says("weight_dtype") && !says("activation_bits");
  }

  std::vector<FallenLayer> make_useful(PreparedModel &prepared) const {
    const Samples few = some_of(samples_, kRanking);
    const Goal goal(real_, few, few, {.sqnr_db = kUseful, .top1 = {}});
    return fall_back(prepared, goal);
  }

  /// Converted, with the corrections that gain. What was tried of an earlier conversion is forgotten.
  graph::Graph corrected(const PreparedModel &prepared) {
    report_.trials.resize(route_trials_);
    report_.rounding_learned = report_.bias_corrected = false;
    kept_.reset();
    graph::Graph plain = convert(prepared, nullptr);
    if (options_.plain && samples_.count > 1) return plain;  // nothing to correct, and unseen_ says its accuracy
    graph::Graph best = plain;
    Verdict verdict = judge(plain);
    for (const Corrections &which : corrections(plain)) {
      graph::Graph other = plain;
      const bool rounds = which.rounding != Rounding::nearest;
      const Samples fitted = counted(division_.fitted, rounds ? "learning to round" : "correcting", progress_);
      correct(prepared, other, fitted, which);
      if (keeps(which, best, other, verdict)) best = std::move(other);
    }
    report_.accuracy = std::move(verdict.held_back);
    return best;
  }

  /// How near the same network comes on the held-back samples if they have not widened its ranges, as those of all
  /// samples have.
  Accuracy on_unseen(const PreparedModel &prepared) const {
    PreparedModel twin = observed_anew(prepared, prepared.config, nullptr);
    twin.distributions.clear();
    calibrate_all(twin, counted(division_.fitted, "measuring", progress_));
    graph::Graph quantized = convert(twin, nullptr);
    if (kept_) correct(twin, quantized, division_.fitted, *kept_);
    return judge_->on_held_back(quantized);
  }

  /// Where a correction gains, and misses no target that has been reached.
  bool keeps(const Corrections &which, const graph::Graph &best, const graph::Graph &other, Verdict &verdict) {
    Verdict of_other = judge(other);
    const bool better = gains(verdict, of_other, threshold_of(which).at(evidence_of(of_other.held_back))) &&
                        (!goal_ || goal_->met_by(other) || !goal_->met_by(best));
    add_trial(which.name(), of_other, &verdict, better);
    if (!better) return false;
    verdict = std::move(of_other);
    report_.rounding_learned = which.rounding != Rounding::nearest;
    report_.bias_corrected = which.bias;
    kept_ = which;
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
  bool bias_;  // a correction of biases is worth a trial
  std::optional<Goal> goal_;
  std::optional<Judge> judge_;
  std::optional<Corrections> kept_;
  Accuracy unseen_;  // of what is kept, before corrections, on ranges that held-back samples have not widened
  std::size_t route_trials_ = 0;  // the first trials of the report
  QuantizationReport report_;
};

}  // namespace

Quantized quantize(const graph::Graph &float_graph, const Config &config, const Samples &samples, const Attrs *attrs,
                   const Progress &progress) {
  const Options options = options_of(attrs ? *attrs : Attrs());
  if (samples.count == 0) fail(QTN_ESTATE, "quantize: there are no samples, and calibration needs one");
  const BufferReuse candidates_in_turn;
  DataCheck check(float_graph);
  RowCount rows(float_graph);
  const Samples told_apart = marked(samples), looked_at = check.watch(told_apart), watched = rows.watch(looked_at);
  Quantized quantized = Pipeline(float_graph, config, watched, rows, options, progress).run();
  quantized.report.warnings = check.warnings(samples.count, quantized.report.samples);
  return quantized;
}

}  // namespace qtn::quant
