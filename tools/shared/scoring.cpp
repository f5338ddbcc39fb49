// SPDX-License-Identifier: Apache-2.0
#include "shared/scoring.hpp"

#include <algorithm>
#include <cmath>

#include "shared/model.hpp"

namespace tool {

namespace {

size_t classes_of(const qtensor *output) {
  const Shape shape = shape_of(output);
  if (shape.size() != 2 || shape[1] == 0)
    throw Failure("labels need a first output of shape [batch, classes], it is " + shape_text(shape));
  return static_cast<size_t>(shape[1]);
}

double cross_entropy(const double *logits, size_t classes, size_t label) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (size_t k = 0; k < classes; ++k) sum += std::exp(logits[k] - largest);
  return std::log(sum) + largest - logits[label];
}

}  // namespace

Score score(const Answer &answer, const LabelledSamples &samples, size_t count, size_t batch) {
  Score total;
  for (size_t first = 0; first < count; first += batch) {
    std::vector<size_t> indices;
    for (size_t i = first; i < std::min(first + batch, count); ++i) indices.push_back(i * samples.count() / count);
    const std::vector<Tensor> outputs = answer(samples.read(indices).inputs);
    const size_t classes = classes_of(outputs.front().get());
    if (first == 0) samples.check_labels(classes);
    const std::vector<double> logits = values_of(outputs.front().get());
    for (size_t i = 0; i < indices.size(); ++i) {
      const double *row = logits.data() + i * classes;
      const auto label = static_cast<size_t>(samples.label(indices[i]));
      total.loss += cross_entropy(row, classes, label);
      total.top1 += static_cast<size_t>(std::max_element(row, row + classes) - row) == label;
    }
  }
  return {total.loss / static_cast<double>(count), total.top1 / static_cast<double>(count)};
}

Answer answer_of(const qmodel *model, const qsession *session) {
  return [=](const std::vector<Tensor> &inputs) { return run_session(model, session, inputs); };
}

}  // namespace tool
