// SPDX-License-Identifier: Apache-2.0
#include "quant/search/route.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/pipelines.hpp"
#include "ops/common/recurrent_op.hpp"
#include "quant/calibrate.hpp"
#include "quant/recover/equalize.hpp"
#include "quant/recover/smooth.hpp"

namespace qtn::quant {
namespace {

bool may_be_recurrent(const graph::Node &node) { return ops::is_recurrent(*node.op); }
bool is_product(const graph::Node &node) { return graph::is_linear(node) && !graph::is_convolution(node); }

Config config_of(const Route &route, Config config) {
  if (route.equalize) {
    Attrs equalize;
    equalize.set("equalize", std::int64_t{1});
    config.set("*", &equalize);
  }
  if (route.recurrent) config.suggest("dynamic", may_be_recurrent);
  if (!route.mode.empty()) config.suggest(route.mode, is_product);
  if (route.observer) {
    Attrs observer;
    observer.set("observer", route.observer);
    config.set("*", &observer);
  }
  return config;
}

/// Whether any of such nodes are not static.
bool has_other_modes(const PreparedModel &prepared, bool (*nodes)(const graph::Node &)) {
  for (std::size_t n = 0; n < prepared.placement.nodes.size(); ++n)
    if (prepared.placement.nodes[n].mode != Mode::fixed && nodes(prepared.graph.nodes[n])) return true;
  return false;
}

}  // namespace

std::string Route::name() const {
  std::string all;
  const auto add = [&](const std::string &what) { all += (all.empty() ? "" : " + ") + what; };
  if (equalize) add("equalize");
  if (absorb_bias) add("absorb_bias");
  if (smooth) add(cat("smooth ", *smooth));
  if (smooth_features) add("smooth");
  if (recurrent) add("recurrent");
  if (!mode.empty()) add(std::string(mode));
  if (choose_observers)
    add("observers");
  else if (observer)
    add(cat("observer ", observer));
  return all.empty() ? "plain" : all;
}

std::optional<Attempt> prepare_along(const Start &start, const Route &route) {
  if (route.recurrent && std::ranges::none_of(start.real.nodes, may_be_recurrent)) return std::nullopt;
  graph::Graph real = start.real;
  const Config config = config_of(route, start.config);
  if (route.smooth) {
    graph::run_passes(real, graph::Pipeline::quantization);
    if (!equalize_activations(real, start.fitted, *route.smooth)) return std::nullopt;
  }
  if (route.smooth_features) {
    graph::run_passes(real, graph::Pipeline::quantization);
    if (!smooth_features(real, config, start.fitted)) return std::nullopt;
  }
  if (route.absorb_bias) {
    real = prepare(real, config).graph;  // equalized
    if (!absorb_biases(real, start.fitted)) return std::nullopt;
  }
  Attempt attempt{route, prepare(real, config), {}};
  if (route.equalize && !route.absorb_bias && !attempt.prepared.equalized) return std::nullopt;
  if (!route.mode.empty() && !has_other_modes(attempt.prepared, is_product)) return std::nullopt;
  if (route.recurrent && !has_other_modes(attempt.prepared, may_be_recurrent)) return std::nullopt;
  if (start.histograms) attempt.prepared.distributions.resize(attempt.prepared.placement.groups.size());
  return attempt;
}

Attempt observed_along(const Start &start, const Attempt &attempt, const Route &route) {
  return {route, observed_anew(attempt.prepared, config_of(route, start.config), route.observer), {}};
}

void calibrate_along(const Start &start, Attempt &attempt, const Samples &samples) {
  if (attempt.route.choose_observers)
    attempt.observers = choose_observers(attempt.prepared, samples, start.fitted);
  else
    calibrate_all(attempt.prepared, samples);
}

bool order_matters(const PreparedModel &prepared) {
  constexpr std::string_view kExact[] = {"minmax", "max", "mse", "fixed"};
  return std::any_of(prepared.observers.begin(), prepared.observers.end(), [&](const auto &observer) {
    return observer && std::find(std::begin(kExact), std::end(kExact), observer->kind()) == std::end(kExact);
  });
}

}  // namespace qtn::quant
