// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gate_activation.hpp"

#include "base/error.hpp"

namespace qtn::ops {
namespace {

struct Row {
  const char *name;
  GateActivation::Kind kind;
  bool takes_alpha, takes_beta;
  double alpha, beta;
};

using G = GateActivation;
constexpr Row kRows[] = {{"relu", G::relu, false, false, 0, 0},
                         {"tanh", G::tanh, false, false, 0, 0},
                         {"sigmoid", G::sigmoid, false, false, 0, 0},
                         {"affine", G::affine, true, true, 1, 0},
                         {"leakyrelu", G::leaky_relu, true, false, 0.01, 0},
                         {"thresholdedrelu", G::thresholded_relu, true, false, 1, 0},
                         {"scaledtanh", G::scaled_tanh, true, true, 1, 1},
                         {"hardsigmoid", G::hard_sigmoid, true, true, 0.2, 0.5},
                         {"elu", G::elu, true, false, 1, 0},
                         {"softsign", G::softsign, false, false, 0, 0},
                         {"softplus", G::softplus, false, false, 0, 0}};

const Row &row_of(const char *op, const std::string &name) {
  // Upper and lower case do not count, as in ONNX Runtime.
  std::string lower = name;
  for (char &c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const Row &row : kRows)
    if (lower == row.name) return row;
  fail(QTN_EINVAL, op, ": activation \"", name, "\" is unknown");
}

}  // namespace

std::vector<GateActivation> gate_activations(const char *op, const Attrs &attrs, std::size_t directions,
                                             const std::vector<std::string> &defaults) {
  std::vector<std::string> names = attrs.get_strings("activations");
  if (names.empty())
    for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != directions * defaults.size())
    fail(QTN_EINVAL, op, ": ", names.size(), " activations given, ", directions * defaults.size(), " expected");
  const std::vector<double> alphas = attrs.get_floats("activation_alpha"), betas = attrs.get_floats("activation_beta");
  std::size_t alpha = 0, beta = 0;
  std::vector<GateActivation> activations;
  for (const std::string &name : names) {
    const Row &row = row_of(op, name);
    activations.push_back({row.kind, row.takes_alpha && alpha < alphas.size() ? alphas[alpha++] : row.alpha,
                           row.takes_beta && beta < betas.size() ? betas[beta++] : row.beta});
  }
  return activations;
}

}  // namespace qtn::ops
