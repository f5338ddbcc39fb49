// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX once had on trial, and that files of CoreML and Caffe2 still hold.
#include <limits>

#include "onnx/composing.hpp"

namespace qtn::onnx {
namespace {

std::string attribute(Composing &c, const char *name, double otherwise) {
  return c.number_like(static_cast<float>(c.attrs().get_float(name, otherwise)), c.in(0));
}

bool affine(Composing &c) {
  c.formula("Mul a b;Add A c", {c.in(0), attribute(c, "alpha", 1), attribute(c, "beta", 0)}, c.out(0));
  return true;
}

bool scaled_tanh(Composing &c) {
  c.formula("Mul a b;Tanh A;Mul B c", {c.in(0), attribute(c, "beta", 1), attribute(c, "alpha", 1)}, c.out(0));
  return true;
}

bool parametric_softplus(Composing &c) {
  c.formula("Mul a b;Softplus A;Mul B c", {c.in(0), attribute(c, "beta", 1), attribute(c, "alpha", 1)}, c.out(0));
  return true;
}

/// Images times a number, plus one for each channel.
bool image_scaler(Composing &c) {
  const std::vector<double> bias = c.attrs().get_floats("bias");
  const std::vector<float> values(bias.begin(), bias.end());
  std::string shift =
      c.make(Tensor::from<float>(QTN_FLOAT32, {static_cast<std::int64_t>(values.size()), 1, 1}, values));
  if (c.type(c.in(0)) != QTN_FLOAT32) shift = c.one("CastLike", {shift, c.in(0)});
  c.formula("Mul a b;Add A c", {c.in(0), attribute(c, "scale", 1), shift}, c.out(0));
  return true;
}

/// Images without `border` left, above, right, below; or from there on as many rows and columns as `scale` says.
bool crop(Composing &c) {
  const Attrs attrs = c.attrs();
  const std::vector<std::int64_t> border = attrs.get_ints("border"), size = attrs.get_ints("scale");
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (border.size() != 4 || (!size.empty() && size.size() != 2))
    c.refuse("border has ", border.size(), " numbers and scale ", size.size(), ", not 4, and 2 or none");
  for (const auto *list : {&border, &size})
    for (const std::int64_t i : *list)
      if (i < 0 || i > kMost) c.refuse("border or scale holds ", i);
  std::vector<std::int64_t> ends;
  for (const std::size_t i : {1, 0}) {
    const std::int64_t behind = border[i + 2];
    if (size.empty())
      ends.push_back(behind == 0 ? std::numeric_limits<std::int64_t>::max() : -behind);
    else
      ends.push_back(border[i] + size[1 - i]);
  }
  c.one("Slice", {c.in(0), c.make_ints({border[1], border[0]}), c.make_ints(ends), c.make_ints({2, 3})}, {}, c.out(0));
  return true;
}

}  // namespace

const std::vector<ComposedRule> kExperimentalRules{{"", "Affine", affine},
                                                   {"", "Crop", crop},
                                                   {"", "ImageScaler", image_scaler},
                                                   {"", "ParametricSoftplus", parametric_softplus},
                                                   {"", "ScaledTanh", scaled_tanh}};

}  // namespace qtn::onnx
