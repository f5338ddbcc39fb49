// SPDX-License-Identifier: Apache-2.0
#include "quant/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/buffer_reuse.hpp"
#include "base/error.hpp"
#include "quant/calibrate.hpp"
#include "quant/data_check.hpp"
#include "quant/quantize_options.hpp"
#include "quant/recover/correct.hpp"
#include "quant/rows.hpp"
#include "quant/search/route.hpp"
#include "quant/search/speed.hpp"
#include "quant/search/work.hpp"
#include "runtime/shared_packs.hpp"

namespace qtn::quant {
namespace {

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

/// Samples that say which layers stay in float by default, from large networks to small ones, and the work in all of them.
constexpr double kRanking = 4, kMostRanking = 64, kRankingWork = 1e9;

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

constexpr Corrections kBias{.bias = true};

/// SmoothQuant's strength that its authors take for most models.
constexpr double kSmooth = 0.5;

/// An attempt, and what its fitted samples made of it.
struct JudgedAttempt {
  Attempt attempt;
  graph::Graph quantized;
  Verdict verdict;
  std::size_t trial;                         ///< of the report
  std::optional<PreparedModel> narrow = {};  ///< what the fitted samples made of it, where the others were added
};

class Pipeline {
 public:
  Pipeline(const graph::Graph &real, const Config &config, const Samples &samples, const RowCount &rows,
           const QuantizeOptions &options, const Progress &progress)
      : real_(real),
        samples_(samples),
        rows_(rows),
        division_(divide(samples, options.measured)),
        also_judging_(some_of(division_.fitted, options.plain || samples.count == 1 ? 0 : division_.fitted.count)),
        judging_(joined(division_.held_back, also_judging_)),
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
    if (!goal_ && is_useless()) make_useful(prepared, quantized);
    if (goal_ && !goal_->met_by(quantized)) leave_in_float(prepared, quantized, *goal_);
    if (goal_) report.reached = goal_->reached(quantized);
    if (goal_ && automatic() && !start_.config.says("mode") && options_.targets.met_by(report.reached))
      take_fastest_mode(attempt, quantized);
    report.judges = rows_.of(division_.held_back);
    report.held_back = samples_.count > 1;
    if (report.held_back) report.accuracy = unseen(prepared);
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
    Onlooker both[] = {{attempt.prepared, samples_}, {twin, division_.fitted}};
    calibrate_together(both, counted(samples_, "calibrating", progress_));
    if (samples_.count > 1) unseen_ = judge(convert(twin, nullptr)).held_back;
    return attempt;
  }

  /// Features were seen in many rows, and their factors promise half of the noise before they are tried.
  const Threshold &threshold_of(const Route &route) const {
    if (!route.mode.empty()) return options_.targets.any() ? kOfDynamicForTarget : kOfDynamic;
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
    widen(candidates);
    JudgedAttempt &best = candidates[gaining_when_widened(candidates)];
    report_.trials[best.trial].kept = true;
    unseen_ = best.verdict.held_back;
    if (options_.correct_bias && samples_.count > 1) bias_ = bias_stands(best);
    route_trials_ = report_.trials.size();
    narrow_ = std::move(best.narrow);
    return std::move(best.attempt);
  }

  /// The plain recipe, and routes each of which gains on the one before it.
  std::vector<JudgedAttempt> gaining_candidates() {
    std::vector<JudgedAttempt> gaining;
    const auto challenge = [&](std::optional<Attempt> attempt) {
      if (!attempt) return;
      const std::string stage = cat("trying ", attempt->route.name());
      const auto calibrate = [&] {
        calibrate_along(start_, *attempt, counted(division_.fitted, stage.c_str(), progress_));
      };
      if (gaining.empty())
        calibrate();
      else if (!is_possible(calibrate))
        return;
      consider(std::move(*attempt), gaining);
    };
    challenge(prepare_along(start_, {}));
    if (!start_.config.says("mode")) challenge(prepare_along(start_, {.recurrent = true}));
    const bool recurrent = gaining.back().attempt.route.recurrent;
    for (Route route : rewrites()) {
      route.recurrent = recurrent;
      challenge(prepare_along(start_, route));
    }
    for (Attempt &attempt : observed_in_other_ways(gaining.back().attempt)) consider(std::move(attempt), gaining);
    if (automatic() && !start_.config.says("mode") && !(goal_ && goal_->met_by(gaining.back().quantized)))
      challenge(prepare_along(start_, {.recurrent = recurrent, .mode = "dynamic"}));
    if (automatic()) {
      Route route = gaining.back().attempt.route;
      route.choose_observers = true;
      challenge(observed_along(start_, gaining.back().attempt, route));
    }
    return gaining;
  }

  /// Adds a calibrated attempt where it gains on the last one. The first one has to be possible.
  void consider(Attempt attempt, std::vector<JudgedAttempt> &gaining) {
    const bool first = gaining.empty();
    graph::Graph quantized;
    const auto convert_it = [&] { quantized = convert(attempt.prepared, nullptr); };
    if (first)
      convert_it();
    else if (!is_possible(convert_it))
      return;
    const Route route = attempt.route;
    Verdict verdict = judge(quantized);
    add_trial(route.name(), verdict, first ? nullptr : &gaining.back().verdict);
    if (first || is_better(route, quantized, gaining.back().verdict, verdict, kTold))
      gaining.push_back({std::move(attempt), std::move(quantized), std::move(verdict), report_.trials.size() - 1});
  }

  /// Whether a candidate can do this: what the first one takes may be too much for an observer with bins, and dynamic layers
  /// take no blocks.
  template <class Work>
  static bool is_possible(const Work &work) {
    try {
      work();
    } catch (const NotRead &) {
      throw;
    } catch (const Error &e) {
      if (e.status() != QTN_EINVAL && e.status() != QTN_EUNSUPPORTED) throw;
      return false;
    }
    return true;
  }

  /// The attempt, calibrated with other observers, all of them in the same runs.
  std::vector<Attempt> observed_in_other_ways(const Attempt &attempt) const {
    std::vector<Attempt> attempts;
    for (const char *observer : observers()) {
      Route route = attempt.route;
      route.observer = observer;
      attempts.push_back(observed_along(start_, attempt, route));
    }
    std::vector<Onlooker> onlookers;
    for (Attempt &other : attempts) onlookers.emplace_back(other.prepared, division_.fitted);
    const auto calibrate = [&] {
      calibrate_together(onlookers, counted(division_.fitted, "trying observers", progress_));
    };
    if (attempts.empty() || !is_possible(calibrate)) return {};
    keep_willing(attempts, onlookers);
    return attempts;
  }

  /// Leaves out those whose observers refused something.
  template <class Candidate>
  static void keep_willing(std::vector<Candidate> &candidates, const std::vector<Onlooker> &onlookers) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (!onlookers[i].refused && kept++ != i) candidates[kept - 1] = std::move(candidates[i]);
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(kept), candidates.end());
  }

  /// Adds what the fitted samples left out to the ranges: all attempts that observe the same graph see it in the same runs.
  void widen(std::vector<JudgedAttempt> &candidates) const {
    if (division_.rest.count == 0) return;
    std::vector<Onlooker> onlookers;
    const auto in_order = [](const JudgedAttempt &candidate) { return order_matters(candidate.attempt.prepared); };
    for (std::size_t first = 0; first < candidates.size(); first = onlookers.size()) {
      const auto engine = candidates[first].attempt.prepared.engine;
      const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = std::find_if(begin, candidates.end(), [&](const JudgedAttempt &candidate) {
        return candidate.attempt.prepared.engine != engine;
      });
      const Samples &seen = std::any_of(begin, end, in_order) ? samples_ : division_.rest;
      for (auto candidate = begin; candidate != end; ++candidate) onlookers.push_back(widening(*candidate));
      calibrate_together(std::span(onlookers).subspan(first), counted(seen, "calibrating", progress_));
    }
    keep_willing(candidates, onlookers);
  }

  Onlooker widening(JudgedAttempt &candidate) const {
    PreparedModel &prepared = candidate.attempt.prepared;
    candidate.narrow = copy_of(prepared);
    if (!order_matters(prepared)) return {prepared, division_.rest};
    prepared = observed_anew(prepared, prepared.config, nullptr);
    return {prepared, samples_};
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
    correct(candidate.attempt.prepared, other, counted(division_.fitted, "trying bias_correction", progress_), kBias);
    const Verdict verdict = judge(other);
    for (const double most : {kExact, kTold})
      if (verdict.held_back.typical_db(most) >= candidate.verdict.held_back.typical_db(most)) {
        unseen_with_bias_ = verdict.held_back;
        return true;
      }
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
    if (bias_) which.push_back(kBias);
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

  void leave_in_float(PreparedModel &prepared, graph::Graph &quantized, const Goal &goal) {
    report_.fallen = fall_back(prepared, goal);
    if (report_.fallen.empty()) return;
    unseen_.reset();
    quantized = corrected(prepared);
  }

  /// The noisiest samples have to gain what those held back, or all, need.
  void leave_in_float_until_useful(PreparedModel &prepared, graph::Graph &quantized) {
    const Accuracy now = verdict_.of_both();
    const std::vector<double> work = work_of_nodes(quantized, judging_.read(0));
    const double samples = kRankingWork / std::accumulate(work.begin(), work.end(), 1.0);
    const auto most = static_cast<std::size_t>(std::clamp(samples, kRanking, kMostRanking));
    const std::vector<std::size_t> noisiest = now.noisiest(most);
    const Samples few = chosen(judging_, noisiest);
    const double gain = kUseful - std::min(now.worst_db(), verdict_.held_back.worst_db());
    leave_in_float(prepared, quantized,
                   Goal(real_, few, few, {.sqnr_db = now.only(noisiest).worst_db() + gain, .top1 = {}}));
  }

  /// All layers are in integers again where that gains nothing on the samples held back.
  void make_useful(PreparedModel &prepared, graph::Graph &quantized) {
    PreparedModel whole = copy_of(prepared);
    graph::Graph corrected_whole = quantized;
    QuantizationReport report = report_;
    const std::optional<Corrections> kept = kept_;
    const Accuracy before = unseen(prepared);
    leave_in_float_until_useful(prepared, quantized);
    if (report_.fallen.empty() || unseen(prepared).worst_db() > before.worst_db()) return;
    prepared = std::move(whole);
    quantized = std::move(corrected_whole);
    report_ = std::move(report);
    kept_ = kept;
    unseen_ = before;
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
    report_.accuracy = verdict.held_back;
    verdict_ = std::move(verdict);
    if (kept_) unseen_.reset();
    return best;
  }

  /// A model that meets the target.
  struct Met {
    Attempt attempt;
    graph::Graph quantized;
    std::vector<FallenLayer> fallen;
    Targets reached;
  };

  static std::string_view name_of_mode(std::string_view mode) { return mode.empty() ? "static" : mode; }

  /// The products of features in another mode; nullopt where there are none, or the target is missed. Only layers that are
  /// static fall back.
  std::optional<Met> met_with_mode(std::string_view mode, bool recurrent) const {
    std::optional<Attempt> attempt = prepare_along(start_, {.recurrent = recurrent, .mode = mode});
    if (!attempt) return std::nullopt;
    std::optional<Met> met;
    const bool possible = is_possible([&] {
      calibrate_along(start_, *attempt, counted(samples_, cat("timing ", name_of_mode(mode)).c_str(), progress_));
      graph::Graph quantized = convert(attempt->prepared, nullptr);
      Targets reached = goal_->reached(quantized);
      std::vector<FallenLayer> fallen;
      if (mode.empty() && !options_.targets.met_by(reached)) {
        fallen = fall_back(attempt->prepared, *goal_);
        quantized = convert(attempt->prepared, nullptr);
        reached = goal_->reached(quantized);
      }
      if (options_.targets.met_by(reached))
        met = Met{std::move(*attempt), std::move(quantized), std::move(fallen), reached};
    });
    return possible ? std::move(met) : std::nullopt;
  }

  /// What meets the target runs in turns with the other modes with which it is met, too, and the fastest stays.
  void take_fastest_mode(Attempt &attempt, graph::Graph &quantized) {
    const Route route = attempt.route;
    std::vector<Met> all;
    for (const std::string_view mode : {"", "dynamic", "weights_only"}) {
      if (mode == route.mode) continue;
      if (std::optional<Met> met = met_with_mode(mode, route.recurrent)) all.push_back(std::move(*met));
    }
    if (all.empty()) return;
    all.insert(all.begin(), {std::move(attempt), std::move(quantized), std::move(report_.fallen), report_.reached});
    std::vector<const graph::Graph *> graphs;
    for (const Met &met : all) graphs.push_back(&met.quantized);
    const std::vector<double> ms = milliseconds_in_turns(graphs, division_.held_back.read(0), progress_);
    const std::size_t best = fastest(ms);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string mode(name_of_mode(all[i].attempt.route.mode));
      report_.modes.push_back({mode, ms[i], all[i].reached, i == best});
    }
    if (best != 0) forget_corrections();
    attempt = std::move(all[best].attempt);
    quantized = std::move(all[best].quantized);
    report_.fallen = std::move(all[best].fallen);
    report_.reached = all[best].reached;
  }

  /// They were those of a model in whose place another one comes.
  void forget_corrections() {
    for (Trial &trial : report_.trials) trial.kept = false;
    report_.rounding_learned = report_.bias_corrected = false;
    report_.observers.clear();
    kept_.reset();
    unseen_.reset();
    narrow_.reset();
  }

  /// on_unseen() of the model as it is now; with one sample, on that.
  const Accuracy &unseen(const PreparedModel &prepared) {
    if (!unseen_) unseen_ = samples_.count > 1 ? on_unseen(prepared) : *report_.accuracy;
    return *unseen_;
  }

  /// How near the same network comes on the held-back samples if they have not widened its ranges, as those of all
  /// samples have.
  Accuracy on_unseen(const PreparedModel &prepared) const {
    const bool is_narrowed = narrow_ && report_.fallen.empty();
    if (is_narrowed && kept_ == kBias) return unseen_with_bias_;
    std::optional<PreparedModel> anew;
    if (!is_narrowed) {
      anew = observed_anew(prepared, prepared.config, nullptr);
      anew->distributions.clear();
      calibrate_all(*anew, counted(division_.fitted, "measuring", progress_));
    }
    const PreparedModel &narrow = anew ? *anew : *narrow_;
    graph::Graph quantized = convert(narrow, nullptr);
    if (kept_) correct(narrow, quantized, division_.fitted, *kept_);
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
  const Samples judging_;       // both
  const Samples measured_;
  const Start start_;
  const QuantizeOptions &options_;
  const Progress &progress_;
  bool bias_;  // a correction of biases is worth a trial
  std::optional<Goal> goal_;
  std::optional<Judge> judge_;
  Verdict verdict_;  // of the model as it was corrected last
  std::optional<Corrections> kept_;
  std::optional<PreparedModel> narrow_;  // what is kept, with ranges that held-back samples have not widened
  std::optional<Accuracy> unseen_;       // of what is kept now, where it is known
  Accuracy unseen_with_bias_;            // of what is kept in narrow_, where it stands
  std::size_t route_trials_ = 0;         // the first trials of the report
  QuantizationReport report_;
};

}  // namespace

Quantized quantize(const graph::Graph &float_graph, const Config &config, const Samples &samples, const Attrs *attrs,
                   const Progress &progress) {
  const QuantizeOptions options = options_of(attrs ? *attrs : Attrs());
  if (samples.count == 0) fail(QTN_ESTATE, "quantize: there are no samples, and calibration needs one");
  const BufferReuse candidates_in_turn;
  const runtime::SharedPacks of_float_weights;
  DataCheck check(float_graph);
  RowCount rows(float_graph);
  const Samples told_apart = marked(samples), looked_at = check.watch(told_apart), watched = rows.watch(looked_at);
  Quantized quantized = Pipeline(float_graph, config, watched, rows, options, progress).run();
  quantized.report.warnings = check.warnings(samples.count, quantized.report.samples);
  return quantized;
}

}  // namespace qtn::quant
