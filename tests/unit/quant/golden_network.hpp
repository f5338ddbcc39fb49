// SPDX-License-Identifier: Apache-2.0
// Networks of golden files, and what conversion makes of them.
#pragma once

#include <string>
#include <vector>

#include "graph_builder.hpp"

namespace qtn::test {

void calibrate_on(quant::PreparedModel &p, const Tensor &x);

Attrs node_attrs(const nlohmann::json &items);

/// The settings of a configuration in a golden file.
Attrs settings_of(const nlohmann::json &items);

void expect_equal(const std::string &what, const std::vector<double> &got, const std::vector<double> &want);

template <class T>
std::vector<double> as_doubles(const std::vector<T> &values) {
  return {values.begin(), values.end()};
}

/// The network of a golden file, calibrated on its samples.
quant::PreparedModel golden_network(const nlohmann::json &file, const quant::Config &config);

}  // namespace qtn::test
