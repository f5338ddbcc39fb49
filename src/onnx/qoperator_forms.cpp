// SPDX-License-Identifier: Apache-2.0
#include "onnx/qoperator_forms.hpp"

namespace qtn::onnx {

std::span<const QOperatorForm> qoperator_forms() {
  static const std::vector<QOperatorForm> all = {
      {"QLinearConv", "Conv", {0, 3}, 6, 8, 0},
      {"QLinearMatMul", "MatMul", {0, 3}, 6, 0, -1},
      {"QGemm", "Gemm", {0, 3}, 7, 6, -1},
      {"QLinearAdd", "Add", {0, 3}, 6},
      {"QLinearMul", "Mul", {0, 3}, 6},
      {"QLinearSigmoid", "Sigmoid", {0}, 3},
      {"QLinearLeakyRelu", "LeakyRelu", {0}, 3},
      {"QLinearSoftmax", "Softmax", {0}, 3},
      {"QLinearAveragePool", "AveragePool", {0}, 3},
      {"QLinearGlobalAveragePool", "GlobalAveragePool", {0}, 3},
  };
  return all;
}

}  // namespace qtn::onnx
