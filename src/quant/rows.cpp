// SPDX-License-Identifier: Apache-2.0
#include "quant/rows.hpp"

#include <algorithm>

namespace qtn::quant {
namespace {

/// A list of fixed length is one sample rather than a batch of scalars.
bool has_batch_axis(const graph::Graph &g) {
  const std::optional<Shape> &shape = g.value(g.inputs[0]).shape;
  if (!shape || shape->empty() || (*shape)[0] < 0) return true;
  return shape->size() > 1 && std::all_of(g.outputs.begin(), g.outputs.end(), [&](graph::ValueId v) {
           const std::optional<Shape> &y = g.value(v).shape;
           return !y || (!y->empty() && ((*y)[0] < 0 || (*y)[0] == (*shape)[0]));
         });
}

}  // namespace

std::size_t rows_of(const graph::Graph &g, std::span<const Tensor> inputs) {
  if (g.inputs.empty() || inputs.empty() || inputs[0].rank() == 0 || !has_batch_axis(g)) return 1;
  return static_cast<std::size_t>(inputs[0].dim(0));
}

Samples RowCount::watch(const Samples &samples) {
  rows_.resize(samples.count);
  return {samples.count,
          [this, &samples](std::size_t i) {
            std::vector<Tensor> inputs = samples.read(i);
            rows_[samples.number(i)] = rows_of(g_, inputs);
            return inputs;
          },
          samples.numbers};
}

std::size_t RowCount::of(const Samples &samples) const {
  std::size_t rows = 0;
  for (std::size_t i = 0; i < samples.count; ++i) rows += rows_[samples.number(i)];
  return rows;
}

}  // namespace qtn::quant
