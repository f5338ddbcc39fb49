// SPDX-License-Identifier: Apache-2.0
// How near a quantized model comes to the float one on samples that nothing was fitted to.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "quant/samples.hpp"
#include "quant/search/noise.hpp"
#include "quant/search/steady_outputs.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {

std::shared_ptr<const runtime::Session> float_session(const graph::Graph &real);

/// The outputs, as_float32().
std::vector<Tensor> run(const runtime::Session &session, const std::vector<Tensor> &inputs);

constexpr double kExact = 120;  ///< dB, about what floats can tell apart

struct Accuracy {
  std::vector<std::string> names;           ///< of the outputs that are floats
  std::vector<bool> steady;                 ///< which of them count below: see steady_outputs()
  std::vector<std::vector<Noise>> samples;  ///< [sample][output]
  double numbers = 0;                       ///< in these outputs, of all samples
  std::size_t rows = 0, agree = 0;          ///< of the first output, and those whose largest value stays where it is

  /// The noise of one output over all samples.
  Noise of_output(std::size_t output) const;

  /// The noise of all outputs, each with a signal of 1.
  Noise of_all_outputs() const;

  /// The mean over the outputs of their ratios, between -120 and 120: no output hides another by being larger.
  double sqnr_db() const;

  /// The least of the ratios, -120 or more; infinite where there is no noise.
  double worst_db() const;

  /// The same with the mean over the samples of the ratio of each: of all samples together, one that is clipped
  /// decides, which hides what becomes of the others. A ratio above `most` counts as that.
  double typical_db(double most = kExact) const;

  /// Part of the rows of a first output [batch, classes] with the largest value where the float model has it.
  std::optional<double> agreement() const;

  /// The noise of these samples alone.
  Accuracy only(const std::vector<std::size_t> &of_samples) const;

  /// At most so many samples, those with the most noise first: in any output, as a part of its signal in all samples.
  std::vector<std::size_t> noisiest(std::size_t most) const;
};

class AccuracyMeter {
 public:
  /// Runs `exact`, a session of the float graph `real`, and lets go of it where its outputs are small enough to be kept.
  /// Graph and samples stay with the caller.
  AccuracyMeter(const graph::Graph &real, std::shared_ptr<const runtime::Session> exact, const Samples &samples);

  /// The accuracy of a session of a graph with the same inputs and outputs, over so many samples that `enough` numbers
  /// of outputs are compared, or all.
  Accuracy measure(const runtime::Session &coarse, double enough = std::numeric_limits<double>::infinity()) const;

 private:
  const graph::Graph &real_;
  std::shared_ptr<const runtime::Session> exact_;
  const Samples &samples_;
  std::vector<bool> steady_;                  // by output
  std::vector<std::vector<Tensor>> outputs_;  // in float, of as many samples as are small enough to be kept
};

/// On samples that nothing was fitted to, and on those that it was fitted to.
struct Verdict {
  Accuracy held_back, fitted;

  /// The noise of the samples held back, then of the others.
  Accuracy of_both() const;
};

/// Whether `b` is nearer to float than `a` by `least` dB of the held-back samples: over all of them, of which no single
/// one decides, and of the typical one; no output loses. Few samples are nearer by chance, so
/// that nothing may be lost on the fitted ones either, and of both together either no sample comes out worse or the
/// mean gain is four times its standard error. The ratio of a single sample counts up to `most` dB.
bool gains(const Verdict &a, const Verdict &b, double least, double most = kExact);

/// Whether what `b` loses beside `a` is too little to tell: a tenth of a dB over the samples of either kind, of the typical
/// one, and of each output.
bool costs_nothing(const Verdict &a, const Verdict &b);

class Judge {
 public:
  /// Graph and samples stay with the caller.
  Judge(const graph::Graph &real, const Samples &held_back, const Samples &fitted);

  Verdict on(const graph::Graph &quantized) const;
  Accuracy on_held_back(const graph::Graph &quantized) const;

 private:
  Judge(const graph::Graph &real, const std::shared_ptr<const runtime::Session> &exact, const Samples &held_back,
        const Samples &fitted);

  const AccuracyMeter held_back_, fitted_;
};

}  // namespace qtn::quant
