// SPDX-License-Identifier: Apache-2.0
// Losses: the number that training makes small, and where it points. A new kind is one file and one row in loss.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/attrs.hpp"
#include "core/tensor.hpp"

namespace qtn::train {

inline constexpr AttrSpec kLossOptions[] = {
    {"loss", AttrSpec::kString}, {"label_smoothing", AttrSpec::kFloat}, {"delta", AttrSpec::kFloat},
    {"alpha", AttrSpec::kFloat}, {"temperature", AttrSpec::kFloat},   {"class_axis", AttrSpec::kInt},
    {"ignore_index", AttrSpec::kInt},
};

class Loss {
 public:
  virtual ~Loss() = default;

  /// The loss of a batch, summed over the outputs of a model, and in dy[i] its gradient with respect to outputs[i].
  /// Outputs and dy are contiguous float32, dy of the outputs' shapes. Each output has target_count() targets of any
  /// strides, those of the first output first. Throws QTN_EINVAL, QTN_ESHAPE or QTN_EDTYPE with the values where
  /// targets do not fit. Allocates nothing where targets are contiguous. NaN where outputs are.
  double run(std::span<const Tensor> outputs, std::span<const Tensor *const> targets, std::span<const Tensor> dy) const;

  virtual std::size_t target_count() const { return 1; }

 private:
  virtual double run_one(const Tensor &output, std::span<const Tensor *const> targets, const Tensor &dy) const = 0;
};

/// A loss of the kind that "loss" names; "cross_entropy" without it. Options of other parts of a trainer are passed
/// over. Throws QTN_EINVAL on an unknown kind, an option of another kind, or a value out of range.
///
/// cross_entropy  logits [N, C, ...]; targets int64 or int32 labels [N, ...], or float32 distributions [N, C, ...];
///                the mean over N and what follows C. "class_axis" (default 1, negative counted from the last axis) is
///                that of C: -1 for logits [N, ..., C], labels [N, ...]. Places with the label "ignore_index" do not
///                count: the mean is over the others, and 0 where there are none. "label_smoothing" s in [0, 1): targets
///                t become (1 - s) t + s / C
/// mse            targets of the output's shape; the mean of (y - t)^2 over all elements
/// huber          the same with (y - t)^2 / 2 up to "delta" d (default 1), from there d (|y - t| - d / 2)
/// distillation   targets: logits of the teacher; T^2 KL(softmax(teacher / T) || softmax(y / T)) summed over all but N,
///                mean over N. "temperature" T > 0 (default 1). With "alpha" a in [0, 1] the targets are teacher and
///                labels, and the loss a times this and (1 - a) times cross_entropy of the labels. "class_axis" as there
std::unique_ptr<Loss> make_loss(const Attrs &attrs);

}  // namespace qtn::train
