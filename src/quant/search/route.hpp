// SPDX-License-Identifier: Apache-2.0
// Ways from a float model to a calibrated one: the recipe as it is, and what may make it easier to quantize.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/prepare.hpp"
#include "quant/samples.hpp"
#include "quant/search/observers.hpp"

namespace qtn::quant {

struct Route {
  bool equalize = false;              ///< weights, also where the configuration does not say so
  bool absorb_bias = false;           ///< after that
  std::optional<double> smooth = {};  ///< SmoothQuant of this strength
  bool smooth_features = false;       ///< SmoothQuant of products of features, each by the strength that suits it
  bool recurrent = false;             ///< recurrent layers take weights of 8 bits, which no samples are needed for
  std::string_view mode = {};         ///< of products of features, where the configuration says none; "": static
  const char *observer = nullptr;     ///< of all activations, in place of the configuration's
  bool choose_observers = false;      ///< for each tensor

  bool operator==(const Route &) const = default;

  /// The keys of what it does: "plain", "equalize", "smooth 0.5 + observers".
  std::string name() const;
};

/// A model that went along a route.
struct Attempt {
  Route route;
  PreparedModel prepared;
  std::vector<ObserverChoice> observers;  ///< where they were chosen
};

/// What routes start from; all of it stays with the caller.
struct Start {
  const graph::Graph &real;
  const Config &config;
  const Samples &fitted;  ///< looked at by what a route does before calibration, and by the choice of observers
  bool histograms;        ///< are counted
};

/// nullopt where the route comes to the same as without its rewrite: no layers are linked, or equal enough already, or
/// there is nothing that could have the mode.
std::optional<Attempt> prepare_along(const Start &start, const Route &route);

/// An attempt once more, not calibrated, with another way to observe.
Attempt observed_along(const Start &start, const Attempt &attempt, const Route &route);

/// Calibrates an attempt with samples that it has not seen. Chooses observers where its route does.
void calibrate_along(const Start &start, Attempt &attempt, const Samples &samples);

/// Whether it matters in which order the observers of a model see samples.
bool order_matters(const PreparedModel &prepared);

}  // namespace qtn::quant
