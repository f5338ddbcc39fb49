// SPDX-License-Identifier: Apache-2.0
#include "shared/comparison.hpp"

#include <algorithm>
#include <cmath>

namespace tool {

namespace {

constexpr double kInfinite = 999;

int64_t winner(const std::vector<double> &values, size_t at, size_t classes) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(at);
  return std::max_element(first, first + static_cast<std::ptrdiff_t>(classes)) - first;
}

}  // namespace

void Difference::add(const std::vector<double> &a, const std::vector<double> &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = a[i] - b[i];
    signal += a[i] * a[i];
    other += b[i] * b[i];
    product += a[i] * b[i];
    noise += error * error;
    largest = std::isnan(error) ? error : std::max(largest, std::abs(error));
  }
}

double Difference::sqnr_db() const {
  if (noise == 0) return kInfinite;
  return signal == 0 ? -kInfinite : std::min(10 * std::log10(signal / noise), kInfinite);
}

double Difference::cosine() const {
  if (noise == 0) return 1;
  return signal == 0 || other == 0 ? 0 : std::min(product / (std::sqrt(signal) * std::sqrt(other)), 1.0);
}

void Top1::add(const std::vector<double> &a, const std::vector<double> &b, size_t classes,
               const std::vector<int64_t> &labels) {
  for (size_t at = 0; at + classes <= a.size(); at += classes, ++samples) {
    const int64_t winner_a = winner(a, at, classes), winner_b = winner(b, at, classes);
    agree += winner_a == winner_b;
    if (labels.empty()) continue;
    const int64_t label = labels.at(samples);
    if (label < 0 || label >= static_cast<int64_t>(classes))
      throw Failure("label " + std::to_string(label) + " of sample " + std::to_string(samples) +
                    " is not a class: the output has " + std::to_string(classes));
    right_a += winner_a == label;
    right_b += winner_b == label;
  }
}

Comparison::Comparison(const qmodel *model) {
  for (size_t i = 0; i < qmodel_output_count(model); ++i) names.emplace_back(qmodel_output_name(model, i));
  outputs.resize(names.size());
}

void Comparison::add(const std::vector<Tensor> &a, const std::vector<Tensor> &b, const std::vector<int64_t> &labels) {
  for (size_t i = 0; i < a.size(); ++i) {
    const Shape shape = shape_of(a[i].get()), other = shape_of(b[i].get());
    if (shape != other)
      throw Failure("output '" + names[i] + "' has shape " + shape_text(shape) + " in one model and " +
                    shape_text(other) + " in the other");
    const std::vector<double> values_a = values_of(a[i].get()), values_b = values_of(b[i].get());
    outputs[i].add(values_a, values_b);
    if (i > 0) continue;
    has_top1 = shape.size() == 2 && shape[1] > 0;
    if (has_top1)
      top1.add(values_a, values_b, static_cast<size_t>(shape[1]), labels);
    else if (!labels.empty())
      throw Failure("labels need a first output of shape [batch, classes], '" + names[0] + "' is " + shape_text(shape));
  }
}

nlohmann::ordered_json json_of(const Comparison &comparison) {
  nlohmann::ordered_json json;
  json["outputs"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < comparison.outputs.size(); ++i) {
    const Difference &output = comparison.outputs[i];
    json["outputs"].push_back({{"name", comparison.names[i]},
                               {"sqnr_db", output.sqnr_db()},
                               {"cosine", output.cosine()},
                               {"max_abs", output.largest}});
  }
  json["top1_agreement"] = nullptr;
  if (comparison.has_top1) json["top1_agreement"] = comparison.top1.fraction(comparison.top1.agree);
  return json;
}

}  // namespace tool
