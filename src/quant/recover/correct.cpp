// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/correct.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "core/scales.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "quant/recover/adaround.hpp"
#include "quant/recover/gptq.hpp"
#include "quant/recover/moments.hpp"
#include "quant/recover/walk.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

/// Rows of a sample that a layer is measured with: enough for the mean, few enough for products.
constexpr std::int64_t kRowsOfSample = 256;

/// Samples on their way through both graphs hold as much at once, or it is one.
constexpr std::size_t kHeldBytes = std::size_t{1} << 30;

/// Into which the rows of a single sample are divided to see whether they agree. They are less independent than samples
/// are, so they have to agree more.
constexpr std::int64_t kPartsOfOne = 8;
constexpr double kSignificant = 1, kSignificantOfOne = 8;

/// Weights as [channel][depth].
Tensor by_channel(const Layer &layer, const Tensor &weight) {
  constexpr std::int32_t kTransposed[] = {1, 0};
  return (layer.transposed ? weight.permute(kTransposed) : weight).to_contiguous();
}

/// The step and the zero point of each weight, as [channel][depth].
struct Grid {
  std::vector<float> steps;
  std::vector<std::int64_t> zeros;

  Grid(const Layer &layer, const Quantizer &q, const Shape &shape) {
    const ScaleLayout at = scale_layout(q, shape);
    for (std::int64_t c = 0; c < layer.channels(); ++c)
      for (std::int64_t i = 0; i < layer.depth; ++i) {
        const auto element = static_cast<std::int64_t>(weight_index(layer, c, i));
        const std::int64_t number = element / (at.dim * at.inner) * at.outer_step +
                                    element / at.inner % at.dim / at.block * at.axis_step +
                                    element % at.inner * at.inner_step;
        steps.push_back(static_cast<float>(q.scales()[static_cast<std::size_t>(number)]));
        zeros.push_back(q.zero_points()[static_cast<std::size_t>(number)]);
      }
  }
};

class Corrector {
 public:
  Corrector(const PreparedModel &prepared, Graph &quantized, const Samples &samples, const Corrections &which)
      : placement_(prepared.placement),
        real_(prepared.graph),
        quantized_(quantized),
        which_(which),
        real_uses_(real_),
        uses_(quantized_),
        real_engine_(real_),
        engine_(quantized_) {
    if (real_.nodes.size() != quantized_.nodes.size())
      fail(QTN_EINTERNAL, "correct: ", real_.nodes.size(), " nodes became ", quantized_.nodes.size());
    std::vector<Tensor> inputs = samples.read(0);
    const Samples together = some_of(samples, how_many_fit(inputs));  // of which it is the first
    for (std::size_t s = 0; s < together.count; ++s) {
      if (s > 0) inputs = together.read(s);
      real_walks_.emplace_back(real_engine_, real_uses_, inputs);
      walks_.emplace_back(engine_, uses_, inputs);
    }
  }

  void run() {
    for (std::size_t n = 0; n < quantized_.nodes.size(); ++n) {
      correct_node(n);
      for (std::size_t s = 0; s < walks_.size(); ++s) {
        real_walks_[s].step(n);
        walks_[s].step(n);
      }
      real_engine_.forget(n);
      engine_.forget(n);
    }
    graph::remove_dead(quantized_);
  }

 private:
  /// All samples go through a layer before any goes on, so that what they hold counts for each.
  std::size_t how_many_fit(std::span<const Tensor> sample) const {
    const std::size_t bytes = 2 * walk_bytes(real_, real_uses_, sample);
    return std::max<std::size_t>(1, kHeldBytes / std::max<std::size_t>(1, bytes));
  }

  /// Where weights are on a grid; whether activations are too does not matter.
  void correct_node(std::size_t n) {
    const Node &node = quantized_.nodes[n];
    const ValueId weight = input_of(node, 1);
    if (weight == kNoValue || !quantized_.value(weight).is_constant() || !quantized_.value(weight).quantizer) return;
    const Tensor q = quantized_.value(weight).constant;
    const auto layer = layer_of(node, q.shape());
    if (!layer) return;
    const Tensor weights = by_channel(*layer, real_.value(real_.nodes[n].inputs[1]).constant);
    std::vector<Moments> moments = measure(n, *layer, q.shape(), weights);
    if (which_.rounding != Rounding::nearest) round_weights(n, *layer, q, weights, moments);
    if (which_.bias && node.op->product->has_bias) correct_bias(n, *layer, weights, moments);
  }

  std::vector<Moments> measure(std::size_t n, const Layer &layer, const Shape &shape, const Tensor &weights) const {
    Moments none;
    none.significant = walks_.size() == 1 ? kSignificantOfOne : kSignificant;
    std::vector<Moments> moments(static_cast<std::size_t>(layer.groups), none);
    const auto size = static_cast<std::size_t>(layer.outputs * layer.depth);
    for (std::size_t s = 0; s < walks_.size(); ++s) {
      const Tensor &x = real_walks_[s].at(real_.nodes[n].inputs[0]), &x_q = walks_[s].at(quantized_.nodes[n].inputs[0]);
      if (x.shape() != x_q.shape()) continue;  // they depend on data, and the rows are not of the same things
      for (std::int64_t g = 0; g < layer.groups; ++g) {
        const auto i = static_cast<std::size_t>(g);
        moments[i].add(layer, weights.as<const float>() + i * size,
                       rows_of(layer, quantized_.nodes[n], x, shape, g, kRowsOfSample),
                       rows_of(layer, quantized_.nodes[n], x_q, shape, g, kRowsOfSample),
                       walks_.size() == 1 ? kPartsOfOne : 1, which_.rounding != Rounding::nearest);
      }
    }
    return moments;
  }

  void round_weights(std::size_t n, const Layer &layer, const Tensor &q, const Tensor &weights,
                     const std::vector<Moments> &moments) {
    const Grid grid(layer, *q.quantizer(), q.shape());
    const IntegerRange range = weight_range(quantized_.nodes[n], real_.value(real_.nodes[n].inputs[1]).constant,
                                            *placement_.nodes[n].settings);
    Tensor learned(QTN_FLOAT32, q.shape());
    const auto size = static_cast<std::size_t>(layer.outputs * layer.depth);
    for (std::size_t g = 0; g < moments.size(); ++g) {
      const Moments &m = moments[g];
      if (m.rows == 0) return;
      std::vector<float> qq = m.qq, qy = m.qy;
      for (float &v : qq) v /= static_cast<float>(m.rows);
      for (float &v : qy) v /= static_cast<float>(m.rows);
      const RoundingProblem problem{layer.outputs,
                                    layer.depth,
                                    {weights.as<const float>() + g * size, size},
                                    std::span(grid.steps).subspan(g * size, size),
                                    std::span(grid.zeros).subspan(g * size, size),
                                    range.lo,
                                    range.hi,
                                    qq,
                                    qy};
      const std::vector<std::int64_t> integers = which_.rounding == Rounding::gptq
                                                     ? round_with_feedback(problem, gptq_damping(layer.depth, m.rows))
                                                     : learn_rounding(problem, which_.iterations);
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t element = weight_index(
            layer, static_cast<std::int64_t>(g) * layer.outputs + static_cast<std::int64_t>(i) / layer.depth,
            static_cast<std::int64_t>(i) % layer.depth);
        const std::size_t k = g * size + i;
        learned.as<float>()[element] = static_cast<float>(integers[i] - grid.zeros[k]) * grid.steps[k];
      }
    }
    replace(n, 1, quantize(learned, q.quantizer()));
  }

  /// b + W E[x] - Ŵ E[x̂], which makes the mean of every channel that of the float model. Weights may be on a grid where
  /// what is added is computed, or no number for each channel: that stays.
  void correct_bias(std::size_t n, const Layer &layer, const Tensor &weights, const std::vector<Moments> &moments) {
    const Node &node = quantized_.nodes[n];
    if (!adds_to_channels(real_, real_.nodes[n], layer)) return;
    const Tensor now = by_channel(layer, dequantize(quantized_.value(node.inputs[1]).constant));
    const ValueId old = input_of(real_.nodes[n], 2);
    std::vector<float> bias = old == kNoValue ? std::vector<float>(static_cast<std::size_t>(layer.channels()), 0.0f)
                                              : float_values(real_.value(old).constant, "bias");
    for (std::size_t g = 0; g < moments.size(); ++g) {
      const std::size_t first = g * static_cast<std::size_t>(layer.outputs * layer.depth);
      const std::vector<double> errors =
          mean_errors(layer, moments[g], weights.as<const float>() + first, now.as<const float>() + first);
      for (std::size_t o = 0; o < errors.size(); ++o)
        bias[g * static_cast<std::size_t>(layer.outputs) + o] += static_cast<float>(errors[o]);
    }
    const Tensor corrected = Tensor::from<float>(QTN_FLOAT32, Shape{layer.channels()}, bias);
    const bool integer = graph::integer_form(quantized_, node) == graph::IntegerForm::linear &&
                         !placement_.nodes[n].settings->float_bias;
    replace(n, 2,
            integer ? quantize_bias(corrected, quantized_.value(node.inputs[0]).quantizer->scales()[0],
                                    *quantized_.value(node.inputs[1]).quantizer)
                    : corrected);
  }

  /// A constant of its own for input i of node n.
  void replace(std::size_t n, std::size_t i, const Tensor &t) {
    const ValueId old = input_of(quantized_.nodes[n], i);
    const std::string name = old == kNoValue ? quantized_.nodes[n].name + "_bias" : quantized_.value(old).name;
    const ValueId made = quantized_.add_constant(name + "_corrected", t);
    std::vector<ValueId> &inputs = quantized_.nodes[n].inputs;
    inputs.resize(std::max(inputs.size(), i + 1), kNoValue);
    inputs[i] = made;
  }

  const Placement &placement_;
  const Graph &real_;
  Graph &quantized_;
  const Corrections which_;
  const graph::Uses real_uses_, uses_;
  NodeEngine real_engine_, engine_;
  std::vector<Walk> real_walks_, walks_;
};

}  // namespace

std::string Corrections::name() const {
  const std::string rounds = rounding == Rounding::nearest ? "" : rounding == Rounding::gptq ? "gptq" : "adaround";
  if (!bias) return rounds;
  return rounds.empty() ? "bias_correction" : rounds + " + bias_correction";
}

void correct(const PreparedModel &prepared, Graph &quantized, const Samples &samples, const Corrections &which) {
  if (which.rounding == Rounding::nearest && !which.bias) return;
  Corrector(prepared, quantized, samples, which).run();
}

}  // namespace qtn::quant
