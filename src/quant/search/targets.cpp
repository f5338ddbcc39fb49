// SPDX-License-Identifier: Apache-2.0
#include "quant/search/targets.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;

/// So many numbers of outputs say how noisy a layer is, compared with another.
constexpr double kEnoughNumbers = 500;

/// Where each row (along the last axis) of the first output has its largest value, of equals the first.
std::vector<std::int64_t> largest_of_rows(const Graph &g, const runtime::Session &session, const Samples &samples) {
  std::vector<std::int64_t> largest;
  for (std::size_t s = 0; s < samples.count; ++s) {
    const Tensor y = run(session, samples.read(s))[0].to_contiguous();
    if (y.dtype() != QTN_FLOAT32 || y.rank() == 0)
      fail(QTN_EUNSUPPORTED, "quantize: target_top1 is of rows of floats, output \"", g.value(g.outputs[0]).name,
           "\" is ", dtype_name(y.dtype()), " of shape ", to_string(y.shape()));
    const std::int64_t row = y.dim(y.rank() - 1);
    const auto *values = y.as<const float>();
    for (std::int64_t i = 0; i < y.count(); i += row)
      largest.push_back(std::max_element(values + i, values + i + row) - (values + i));
  }
  return largest;
}

}  // namespace

Goal::Goal(const Graph &real, const Samples &measured, const Samples &all, const Targets &targets)
    : Goal(real, float_session(real), measured, all, targets) {}

Goal::Goal(const Graph &real, const std::shared_ptr<const runtime::Session> &exact, const Samples &measured,
           const Samples &all, const Targets &targets)
    : meter_(real, exact, measured), measured_(measured), all_(all), targets_(targets) {
  if (targets.top1) largest_ = largest_of_rows(real, *exact, all);
}

Noise Goal::noise_of(const Graph &quantized) const {
  const runtime::Session coarse(quantized, {});
  return meter_.measure(coarse, kEnoughNumbers).of_all_outputs();
}

Targets Goal::reached(const Graph &quantized) const {
  const runtime::Session coarse(quantized, {});
  Targets reached;
  if (targets_.sqnr_db) reached.sqnr_db = meter_.measure(coarse).worst_db();
  if (targets_.top1) {
    const std::vector<std::int64_t> now = largest_of_rows(quantized, coarse, all_);
    std::size_t same = 0;
    for (std::size_t i = 0; i < std::min(now.size(), largest_.size()); ++i) same += now[i] == largest_[i];
    const std::size_t rows = std::max(now.size(), largest_.size());  // two numbers where it depends on data
    reached.top1 = rows == 0 ? 1.0 : static_cast<double>(same) / static_cast<double>(rows);
  }
  return reached;
}

}  // namespace qtn::quant
