// SPDX-License-Identifier: Apache-2.0
#include "quant/search/accuracy.hpp"

#include <algorithm>
#include <cmath>

#include "base/stable_order.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;

constexpr std::size_t kKeptBytes = std::size_t{64} << 20;
double decibels(const Noise &noise) { return std::clamp(noise.sqnr_db(), -kExact, kExact); }

/// How many rows of [batch, classes] have their largest value in the same place, of equals the first. None do where
/// the shapes depend on data and are not the same.
std::size_t rows_that_agree(const Tensor &a, const Tensor &b) {
  if (a.shape() != b.shape()) return 0;
  const Tensor want = a.to_contiguous(), got = b.to_contiguous();
  const std::int64_t classes = want.dim(1);
  const auto largest = [classes](const Tensor &t, std::int64_t row) {
    const float *first = t.as<const float>() + row * classes;
    return std::max_element(first, first + classes) - first;
  };
  std::size_t agree = 0;
  for (std::int64_t row = 0; row < want.dim(0); ++row) agree += largest(want, row) == largest(got, row);
  return agree;
}

double mean_decibels(const std::vector<Noise> &outputs, const std::vector<bool> &steady) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (steady[i]) {
      sum += decibels(outputs[i]);
      ++count;
    }
  return count > 0 ? sum / count : kExact;
}

}  // namespace

std::vector<Tensor> run(const runtime::Session &session, const std::vector<Tensor> &inputs) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &x : inputs) pointers.push_back(&x);
  std::vector<Tensor> outputs = session.run(pointers);
  for (Tensor &y : outputs) y = as_float32(y);
  return outputs;
}

std::shared_ptr<const runtime::Session> float_session(const Graph &real) {
  return std::make_shared<runtime::Session>(real, runtime::SessionOptions());
}

Noise Accuracy::of_output(std::size_t output) const {
  Noise all;
  for (const std::vector<Noise> &sample : samples) all.add(sample[output]);
  return all;
}

Noise Accuracy::of_all_outputs() const {
  Noise all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!steady[i]) continue;
    all.signal += 1;
    all.noise += of_output(i).relative();
  }
  return all;
}

double Accuracy::sqnr_db() const {
  std::vector<Noise> outputs;
  for (std::size_t i = 0; i < names.size(); ++i) outputs.push_back(of_output(i));
  return mean_decibels(outputs, steady);
}

double Accuracy::worst_db() const {
  double worst = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const Noise noise = of_output(i); steady[i] && noise.noise != 0)
      worst = std::min(worst, std::max(noise.sqnr_db(), -kExact));
  return worst;
}

double Accuracy::typical_db(double most) const {
  if (samples.empty()) return most;
  double sum = 0;
  for (const std::vector<Noise> &sample : samples) sum += std::min(mean_decibels(sample, steady), most);
  return sum / static_cast<double>(samples.size());
}

std::optional<double> Accuracy::agreement() const {
  if (rows == 0) return std::nullopt;
  return static_cast<double>(agree) / static_cast<double>(rows);
}

Accuracy Accuracy::only(const std::vector<std::size_t> &of_samples) const {
  Accuracy some{.names = names, .steady = steady, .samples = {}};
  for (const std::size_t s : of_samples) some.samples.push_back(samples[s]);
  return some;
}

std::vector<std::size_t> Accuracy::noisiest(std::size_t most) const {
  std::vector<double> noise(samples.size(), 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!steady[i]) continue;
    const double signal = of_output(i).signal;
    for (std::size_t s = 0; s < samples.size(); ++s)
      noise[s] = std::max(noise[s], Noise{.signal = signal, .noise = samples[s][i].noise}.relative());
  }
  std::vector<std::size_t> order =
      stable_order(samples.size(), [&](std::size_t a, std::size_t b) { return noise[a] > noise[b]; });
  order.resize(std::min(most, order.size()));
  return order;
}

Accuracy Verdict::of_both() const {
  Accuracy both{.names = held_back.names, .steady = held_back.steady, .samples = held_back.samples};
  both.samples.insert(both.samples.end(), fitted.samples.begin(), fitted.samples.end());
  return both;
}

namespace {

/// As Accuracy::sqnr_db() without one of the samples.
double without_sample(const Accuracy &all, std::size_t left_out) {
  std::vector<std::size_t> others;
  for (std::size_t s = 0; s < all.samples.size(); ++s)
    if (s != left_out) others.push_back(s);
  return all.only(others).sqnr_db();
}

void add_gains(std::vector<double> &gains, const Accuracy &a, const Accuracy &b, double most) {
  for (std::size_t s = 0; s < a.samples.size(); ++s)
    gains.push_back(std::min(mean_decibels(b.samples[s], b.steady), most) -
                    std::min(mean_decibels(a.samples[s], a.steady), most));
}

/// No sample comes out worse, or their mean gain is far from chance.
bool samples_agree(const Verdict &a, const Verdict &b, double most) {
  constexpr double kStandardErrors = 4;
  std::vector<double> gains;
  add_gains(gains, a.held_back, b.held_back, most);
  add_gains(gains, a.fitted, b.fitted, most);
  const auto count = static_cast<double>(gains.size());
  double sum = 0, squares = 0;
  for (const double gain : gains) {
    sum += gain;
    squares += gain * gain;
  }
  if (*std::min_element(gains.begin(), gains.end()) >= 0) return true;
  const double mean = sum / count, variance = (squares - sum * mean) / (count - 1);
  return count > 1 && mean >= kStandardErrors * std::sqrt(std::max(variance, 0.0) / count);
}

bool is_nearer(const Accuracy &a, const Accuracy &b, double least, double most) {
  return b.sqnr_db() >= a.sqnr_db() + least && b.typical_db(most) >= std::min(a.typical_db(most) + least, most);
}

bool no_output_loses(const Accuracy &a, const Accuracy &b, double more_than = 0) {
  for (std::size_t i = 0; i < a.names.size(); ++i)
    if (a.steady[i] && !(decibels(b.of_output(i)) >= decibels(a.of_output(i)) - more_than)) return false;
  return true;
}

bool no_sample_decides(const Accuracy &a, const Accuracy &b, double least) {
  for (std::size_t s = 0; s < a.samples.size() && a.samples.size() > 1; ++s)
    if (!(without_sample(b, s) >= without_sample(a, s) + least)) return false;
  return true;
}

}  // namespace

bool gains(const Verdict &a, const Verdict &b, double least, double most) {
  return is_nearer(a.held_back, b.held_back, least, most) && no_output_loses(a.held_back, b.held_back) &&
         no_sample_decides(a.held_back, b.held_back, least / 2) && is_nearer(a.fitted, b.fitted, 0, most) &&
         samples_agree(a, b, most);
}

bool costs_nothing(const Verdict &a, const Verdict &b) {
  constexpr double kLoss = 0.1;
  return is_nearer(a.held_back, b.held_back, -kLoss, kExact) && no_output_loses(a.held_back, b.held_back, kLoss) &&
         is_nearer(a.fitted, b.fitted, -kLoss, kExact);
}

AccuracyMeter::AccuracyMeter(const Graph &real, std::shared_ptr<const runtime::Session> exact, const Samples &samples)
    : real_(real), exact_(std::move(exact)), samples_(samples), steady_(steady_outputs(real)) {
  std::size_t bytes = 0;
  for (std::size_t s = 0; s < samples.count && bytes < kKeptBytes; ++s) {
    outputs_.push_back(run(*exact_, samples.read(s)));
    for (const Tensor &t : outputs_.back()) bytes += t.nbytes();
  }
  if (outputs_.size() == samples.count) exact_.reset();
}

Accuracy AccuracyMeter::measure(const runtime::Session &coarse, double enough) const {
  Accuracy accuracy;
  for (std::size_t s = 0; s < samples_.count && accuracy.numbers < enough; ++s) {
    const std::vector<Tensor> inputs = samples_.read(s);
    const std::vector<Tensor> want = s < outputs_.size() ? outputs_[s] : run(*exact_, inputs);
    const std::vector<Tensor> got = run(coarse, inputs);
    std::vector<Noise> &noises = accuracy.samples.emplace_back();
    accuracy.names.clear();
    accuracy.steady.clear();
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (want[i].dtype() != QTN_FLOAT32) continue;
      noises.emplace_back().add(want[i], got[i]);
      accuracy.numbers += static_cast<double>(want[i].count());
      accuracy.names.push_back(real_.value(real_.outputs[i]).name);
      accuracy.steady.push_back(steady_[i]);
    }
    if (want[0].dtype() != QTN_FLOAT32 || want[0].rank() != 2 || want[0].dim(1) < 2) continue;
    accuracy.rows += static_cast<std::size_t>(want[0].dim(0));
    accuracy.agree += rows_that_agree(want[0], got[0]);
  }
  return accuracy;
}

Judge::Judge(const Graph &real, const Samples &held_back, const Samples &fitted)
    : Judge(real, float_session(real), held_back, fitted) {}

Judge::Judge(const Graph &real, const std::shared_ptr<const runtime::Session> &exact, const Samples &held_back,
             const Samples &fitted)
    : held_back_(real, exact, held_back), fitted_(real, exact, fitted) {}

Verdict Judge::on(const Graph &quantized) const {
  const runtime::Session coarse(quantized, {});
  return {held_back_.measure(coarse), fitted_.measure(coarse)};
}

Accuracy Judge::on_held_back(const Graph &quantized) const {
  return held_back_.measure(runtime::Session(quantized, {}));
}

}  // namespace qtn::quant
