// SPDX-License-Identifier: Apache-2.0
// What must hold of a model, whatever file it came from.
#pragma once

#include <optional>

#include "fuzzing.hpp"

namespace fuzz {

/// Inputs for a model, of the shapes that it declares, open dimensions chosen; nothing: they would be too large.
std::optional<std::vector<Tensor>> inputs_of(const qmodel *m, Dice &dice);

/// What a run gives, or the status of why not.
struct Answer {
  qstatus status = QTN_OK;
  std::string message;
  std::vector<Tensor> outputs;
};

Answer run(const qmodel *m, const char *engine, const std::vector<Tensor> &inputs);

/// Both engines, on the best instruction set and with plain loops, give the same bits or both give an error. So does
/// the model once it was saved and read again. Returns what it answers.
Answer check_runs(const qmodel *m, const std::vector<Tensor> &inputs, Dice &dice);

/// check_runs of a model, and of what quantization makes of it.
void check_model(const qmodel *m, Dice &dice);

/// A number that follows from all of the bytes.
std::uint64_t seed_of(const std::uint8_t *data, std::size_t size);

}  // namespace fuzz
