// SPDX-License-Identifier: Apache-2.0
// How good a classifier is on samples whose classes are known.
#pragma once

#include <functional>
#include <vector>

#include "data/labelled.hpp"

namespace tool {

/// The outputs of a model for a batch.
using Answer = std::function<std::vector<Tensor>(const std::vector<Tensor> &inputs)>;

struct Score {
  double loss = 0;  ///< cross-entropy, the mean
  double top1 = 0;  ///< a fraction
};

/// Takes `count` samples, spread evenly. Throws where the first output is not [batch, classes], or a label is no class.
Score score(const Answer &answer, const LabelledSamples &samples, size_t count, size_t batch);

/// A session's answers; it and the model must live on.
Answer answer_of(const qmodel *model, const qsession *session);

}  // namespace tool
