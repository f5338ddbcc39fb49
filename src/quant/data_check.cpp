// SPDX-License-Identifier: Apache-2.0
#include "quant/data_check.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace qtn::quant {

DataCheck::DataCheck(const graph::Graph &g) {
  for (const graph::ValueId v : g.inputs) inputs_.push_back({g.value(v).name});
}

Samples DataCheck::watch(const Samples &samples) {
  return {samples.count,
          [this, &samples](std::size_t i) {
            std::vector<Tensor> inputs = samples.read(i);
            if (seen_.insert(samples.number(i)).second) see(inputs);
            return inputs;
          },
          samples.numbers};
}

void DataCheck::see(const std::vector<Tensor> &inputs) {
  for (std::size_t i = 0; i < std::min(inputs.size(), inputs_.size()); ++i) {
    const Tensor plain = as_float32(inputs[i]).to_contiguous();
    if (plain.dtype() != QTN_FLOAT32 || plain.count() == 0) continue;
    const std::span<const float> values(plain.as<const float>(), static_cast<std::size_t>(plain.count()));
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    Input &input = inputs_[i];
    input.min = input.seen ? std::min(input.min, *least) : *least;
    input.max = input.seen ? std::max(input.max, *most) : *most;
    input.seen = true;
    input.whole = input.whole && std::all_of(values.begin(), values.end(), [](float v) { return v == std::trunc(v); });
  }
}

std::vector<std::string> DataCheck::warnings(std::size_t samples, std::size_t rows) const {
  std::vector<std::string> warnings;
  if (samples == 1 && rows > 1)
    warnings.push_back(cat("all ", rows,
                           " samples came as one batch, of which none is held back: the accuracy reported "
                           "is that of the samples that calibrated"));
  else if (samples == 1)
    warnings.push_back(
        "one sample calibrated: ranges and the accuracy reported are those of this sample; some dozens say more");
  for (const Input &input : inputs_) {
    if (!input.seen) continue;
    if (input.min == input.max)
      warnings.push_back(cat("input \"", input.name, "\" is ", input.min, " everywhere in every sample"));
    else if (input.whole && input.min >= 0 && input.max > 64 && input.max <= 255)
      warnings.push_back(cat("input \"", input.name, "\" has whole numbers from ", input.min, " to ", input.max,
                             ", as pixels of images: does the model take them without (pixel - mean) / std?"));
  }
  return warnings;
}

}  // namespace qtn::quant
