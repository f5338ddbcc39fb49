// SPDX-License-Identifier: Apache-2.0
// What `quantize` does without grids that samples give: activations on grids of their own values, or weights only.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "shared/handles.hpp"

namespace tool {

struct DatalessOptions {
  bool dynamic = false, convolutions = false;
  std::string granularity;  // of --dynamic: row or tensor; "": as the library chooses
  std::string weights;      // int8 or int4; "": not
  int32_t block = 0;        // of weights that share a scale; 0: those of a channel

  bool any() const { return dynamic || !weights.empty(); }
};

/// To be called when the command has its other options: those that look at samples do not go with these.
void add_dataless_options(CLI::App &command, DatalessOptions &options);

// How many products of the quantized model choose grids, and what only samples would quantize, as a part of a
// sentence. Throws Failure where it has no such product.
std::string what_is_dynamic(const qmodel *model);

// The same weights as of quantize_without_data, for samples to recover what they lose.
void set_weights_only(qconfig *config, const DatalessOptions &options);

Model quantize_without_data(const qmodel *model, const qconfig *config, const DatalessOptions &options);

}  // namespace tool
