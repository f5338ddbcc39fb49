// SPDX-License-Identifier: Apache-2.0
#include "train/quantization.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "graph/facts.hpp"
#include "quant/weights.hpp"

namespace qtn::train {
namespace {

/// What a symmetric scale was chosen for. Integers may reach further, on one side.
float magnitude_of(float scale, const quant::ObserverSettings &settings) {
  const double scale_of_one = choose_scale(settings.dtype, true, -1, 1, settings.choose).scale;
  return static_cast<float>(static_cast<double>(scale) / scale_of_one);
}

}  // namespace

ActivationGrid::ActivationGrid(std::string name, const quant::ObserverSettings &settings, const QuantizerPtr &given,
                               quant::Learning learning, bool fused)
    : name_(std::move(name)), settings_(settings), fixed_(given != nullptr), fused_(fused && !given) {
  if (given) settings_.dtype = given->dtype();
  // PyTorch's clips where the range ends that its scale is for; all others where the integers of the type do.
  const IntegerRange range = fused_ ? spread_range(settings_.dtype, is_symmetric(settings_.scheme), settings_.choose)
                                    : settings_.choose.range.value_or(integer_range(settings_.dtype));
  lo_ = static_cast<std::int32_t>(range.lo);
  hi_ = static_cast<std::int32_t>(range.hi);
  if (given)
    begin_with(*given);
  else if (learning != quant::Learning::none)
    learned_.emplace(learning, settings_, lo_, hi_, Shape{});
}

void ActivationGrid::begin_with(const Quantizer &grid) {
  const auto end = [&](std::int64_t q) { return grid.scale() * static_cast<float>(q - grid.zero_point()); };
  const IntegerRange over = fixed_ ? IntegerRange{lo_, hi_} : spread_range(settings_.dtype, false, settings_.choose);
  float min = end(over.lo), max = end(over.hi);
  if (is_symmetric(settings_.scheme) && min < 0) {
    max = magnitude_of(grid.scale(), settings_);
    min = -max;
  }
  restore({true, min, max, grid.scale(), grid.zero_point()});
  if (fused_) {
    choose();
    now_ = next_;
  }
  begin_learning();
  follow();
}

void ActivationGrid::revert() {
  if (learned_ && !now_.seen) learned_->forget();
  next_ = now_;
  extent_.reset();
}

void ActivationGrid::follow() {
  if (!learned_ || !now_.seen) return;
  learned_->read({&now_.scale, 1}, {&now_.zero, 1});
  next_ = now_;
}

void ActivationGrid::observe(float min, float max) {
  if (!observes()) return;
  if (extent_) {
    min = std::min(min, extent_->first);
    max = std::max(max, extent_->second);
  }
  extent_ = {min, max};
  const auto c = static_cast<float>(settings_.averaging_constant);
  next_.min = now_.seen ? now_.min + c * (min - now_.min) : min;
  next_.max = now_.seen ? now_.max + c * (max - now_.max) : max;
  next_.seen = true;
  choose();
}

void ActivationGrid::choose() {
  const bool symmetric = is_symmetric(settings_.scheme);
  const ScaleZero chosen = fused_ ? choose_fused({lo_, hi_}, symmetric, next_.min, next_.max)
                                  : choose_scale(settings_.dtype, symmetric, static_cast<double>(next_.min),
                                                 static_cast<double>(next_.max), settings_.choose);
  next_.scale = static_cast<float>(chosen.scale);
  next_.zero = static_cast<std::int32_t>(chosen.zero_point);
  begin_learning();
}

void ActivationGrid::begin_learning() {
  if (learned_) learned_->begin(0, next_.scale, next_.zero, next_.min, next_.max);
}

QuantizerPtr ActivationGrid::quantizer() const {
  if (!now_.seen) return nullptr;
  ScaleZero grid{static_cast<double>(now_.scale), now_.zero};
  if (fused_)  // PyTorch converts by the rule of its observer
    grid = choose_scale(settings_.dtype, is_symmetric(settings_.scheme), static_cast<double>(now_.min),
                        static_cast<double>(now_.max), settings_.choose);
  return std::make_shared<Quantizer>(settings_.dtype, QTN_PER_TENSOR_AFFINE, 0,
                                     std::vector{static_cast<double>(static_cast<float>(grid.scale))},
                                     std::vector<std::int64_t>{grid.zero_point}, Numerics::onnx);
}

QuantizerPtr weight_form(const quant::ObserverSettings &settings) {
  const double ends[] = {-1, 1};
  return choose_quantizer(settings.dtype, QTN_PER_TENSOR_SYMMETRIC, 0, std::span(ends, 1), std::span(ends + 1, 1),
                          settings.choose);
}

bool WeightRange::seen() const { return std::isfinite(running.as<const float>()[0]); }

void WeightRange::observe(std::span<const float> mins, std::span<const float> maxs, float weight_of_newest) {
  const float *before = running.as<const float>();
  for (std::size_t i = 0; i < next.size(); ++i) {
    const float now = i < mins.size() ? mins[i] : maxs[i - mins.size()];
    next[i] = seen() ? before[i] + weight_of_newest * (now - before[i]) : now;
  }
}

void WeightRange::commit() {
  if (std::isfinite(next[0])) std::copy(next.begin(), next.end(), running.as<float>());
}

void WeightGrid::commit() {
  begins = false;
  if (range) range->commit();
}

void WeightGrid::begin_with(const Quantizer &grid) {
  for (std::size_t c = 0; c < grid.count(); ++c) {
    const auto scale = static_cast<float>(grid.scales()[c]), magnitude = magnitude_of(scale, settings);
    learned->begin(c, scale, 0, -magnitude, magnitude);
  }
}

void WeightGrid::revert() {
  if (range) std::fill(range->next.begin(), range->next.end(), std::numeric_limits<float>::infinity());
  if (begins) learned->forget();
  begins = false;
}

QuantizerPtr WeightGrid::quantizer() const {
  if (!learned || !learned->begun()) return nullptr;
  std::vector<float> scales(static_cast<std::size_t>(learned->parts()[0].value.count()));
  std::vector<std::int32_t> zeros(scales.size());
  learned->read(scales, zeros);
  const QuantizerPtr form = weight_form(settings);
  return std::make_shared<Quantizer>(form->dtype(), settings.scheme, settings.axis,
                                     std::vector<double>(scales.begin(), scales.end()),
                                     std::vector<std::int64_t>(scales.size(), 0), form->numerics(), 0, form->range());
}

namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

template <class Items>
auto by_name(const Items &items) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < items.size(); ++i) index.emplace(items[i].name, i);
  return index;
}

/// The normalization behind a node of the training graph that the optimized graph has folded into it.
std::optional<std::size_t> folded_norm(const Graph &g, const graph::Uses &uses, const Node &node,
                                       const std::map<std::string, std::size_t> &optimized) {
  const ValueId y = node.outputs[0];
  if (!uses.single_use(y)) return std::nullopt;
  const auto reader = static_cast<std::size_t>(uses.consumers[static_cast<std::size_t>(y)][0]);
  const Node &norm = g.nodes[reader];
  if (norm.op->statistics.count == 0 || optimized.count(norm.name)) return std::nullopt;
  return reader;
}

/// Parameters of a grid, by their indices.
std::vector<std::size_t> add_parameters(std::vector<Parameter> &to, const std::string &name, const LearnedGrid *grid) {
  std::vector<std::size_t> indices;
  if (!grid) return indices;
  for (const LearnedGrid::Part &part : grid->parts()) {
    indices.push_back(to.size());
    to.push_back({cat(name, part.suffix), part.value, part.value.clone(), 1, false});
  }
  return indices;
}

/// On a scale for each channel or for all.
std::optional<LearnedGrid> learned_weights(quant::Learning kind, const quant::ObserverSettings &settings,
                                           const Tensor &weight) {
  if (kind == quant::Learning::none) return std::nullopt;
  const IntegerRange range = weight_form(settings)->range();
  const Shape scales =
      is_per_tensor(settings.scheme) ? Shape{} : Shape{weight.dim(static_cast<std::size_t>(settings.axis))};
  return LearnedGrid(kind, settings, static_cast<std::int32_t>(range.lo), static_cast<std::int32_t>(range.hi), scales);
}

/// As it was trained, or from the beginning.
WeightRange range_of(const quant::ObserverSettings &settings, const Tensor &weight,
                     const std::map<std::string, Tensor> &trained, const std::string &node) {
  const std::int64_t grids = is_per_tensor(settings.scheme) ? 1 : weight.dim(static_cast<std::size_t>(settings.axis));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  WeightRange range{Tensor(QTN_FLOAT32, Shape{2, grids}), std::vector(2 * static_cast<std::size_t>(grids), kInfinity)};
  std::copy(range.next.begin(), range.next.end(), range.running.as<float>());
  if (const auto known = trained.find(node); known != trained.end()) copy_elements(range.running, known->second);
  return range;
}

}  // namespace

void Quantization::commit() {
  for (ActivationGrid &grid : activations) grid.commit();
  for (auto &[node, grid] : weights) grid.commit();
}

void Quantization::revert() {
  for (ActivationGrid &grid : activations) grid.revert();
  for (auto &[node, grid] : weights) grid.revert();
}

void Quantization::before_update() {
  for (ActivationGrid &grid : activations)
    if (grid.learned()) grid.learned()->before_update();
  for (auto &[node, grid] : weights)
    if (grid.learned) grid.learned->before_update();
}

void Quantization::after_update() {
  for (ActivationGrid &grid : activations)
    if (grid.learned()) grid.learned()->after_update();
  for (auto &[node, grid] : weights)
    if (grid.learned) grid.learned->after_update();
}

void Quantization::follow() {
  for (ActivationGrid &grid : activations) grid.follow();
}

std::map<std::string, QuantizerPtr> Quantization::weight_quantizers(const Graph &g) const {
  std::map<std::string, QuantizerPtr> grids;
  for (const auto &[node, grid] : weights)
    if (QuantizerPtr quantizer = grid.quantizer()) grids.emplace(g.nodes[node].name, std::move(quantizer));
  return grids;
}

std::map<std::string, Tensor> Quantization::weight_ranges(const Graph &g) const {
  std::map<std::string, Tensor> ranges;
  for (const auto &[node, grid] : weights)
    if (grid.range && grid.range->seen()) ranges.emplace(g.nodes[node].name, grid.range->running.clone());
  return ranges;
}

Quantization::Quantization(const quant::PreparedModel &p) : config(p.config) {
  const Graph &g = p.training->graph, &optimized = p.graph;
  const auto value_ids = by_name(g.values), optimized_nodes = by_name(optimized.nodes);
  for (std::size_t i = 0; i < p.placement.groups.size(); ++i) {
    const quant::Group &group = p.placement.groups[i];
    const auto observer = quant::make_observer(group.settings.activation_observer, group.settings.activation);
    QuantizerPtr given = group.fixed;
    activations.emplace_back(optimized.value(group.members[0]).name, observer->settings(), given,
                             group.settings.activation_learning, group.settings.fused_fake_quant);
    of_activation.push_back(add_parameters(parameters, activations[i].name(), activations[i].learned()));
    if (const auto &seen = p.observers[i]; seen && p.samples > 0)
      if (const QuantizerPtr grid = quant::observed_grid(optimized, group, *seen)) activations.back().begin_with(*grid);
    if (const QuantizerPtr trained = quant::trained_grid(*p.training, optimized, group))
      activations.back().begin_with(*trained);
    for (const ValueId v : group.sources) {
      const auto at = value_ids.find(optimized.value(v).name);
      if (at == value_ids.end())
        fail(QTN_EUNSUPPORTED, "trainer: tensor \"", optimized.value(v).name,
             "\" comes to be when the model is optimized");
      activation_of[static_cast<ValueId>(at->second)] = i;
    }
  }
  const graph::Uses uses(g);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const auto at = optimized_nodes.find(g.nodes[n].name);
    if (at == optimized_nodes.end()) continue;
    const quant::NodePlan &plan = p.placement.nodes[at->second];
    if (!plan.integer) continue;
    if (plan.role == quant::Role::moving) {
      const ValueId y = optimized.nodes[at->second].outputs[0];
      for (std::size_t i = 0; i < g.nodes[n].inputs.size(); ++i)
        if (graph::float_constant(g, g.nodes[n].inputs[i]) && quant::moves_operand(g.nodes[n], i))
          constants[{n, i}] = static_cast<std::size_t>(p.placement.group[static_cast<std::size_t>(y)]);
    }
    // A normalization on its own is rounded as the convolution that it becomes: without loss.
    if (plan.role != quant::Role::weighted || g.nodes[n].op->statistics.count > 0) continue;
    const quant::Settings &settings = *plan.settings;
    if (const std::string &kind = settings.weight_observer;
        settings.weight.has("block_size") || (kind != "minmax" && kind != "max"))
      fail(QTN_EUNSUPPORTED, "trainer: node \"", g.nodes[n].name,
           "\": weights are trained on grids per tensor or channel of \"minmax\" or \"max\", not in blocks or of \"",
           kind, "\"");
    const ValueId x = optimized.nodes[at->second].inputs[0];
    const quant::ObserverSettings of_weight = quant::weight_observer_settings(g.nodes[n], settings);
    const graph::Value &weight = g.value(g.nodes[n].inputs[1]);
    std::optional<LearnedGrid> learned = learned_weights(settings.weight_learning, of_weight, weight.constant);
    std::vector<std::size_t> indices = add_parameters(parameters, weight.name, learned ? &*learned : nullptr);
    weights[n] = {of_weight, folded_norm(g, uses, g.nodes[n], optimized_nodes),
                  static_cast<std::size_t>(p.placement.group[static_cast<std::size_t>(x)]), std::move(learned),
                  std::move(indices)};
    if (settings.fused_fake_quant)
      weights[n].range = range_of(of_weight, weight.constant, p.training->weight_ranges, g.nodes[n].name);
    if (const auto trained = p.training->weights.find(g.nodes[n].name); trained != p.training->weights.end())
      weights[n].begin_with(*trained->second);
  }
}

}  // namespace qtn::train
