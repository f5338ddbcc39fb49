// SPDX-License-Identifier: Apache-2.0
// Every operator that has a gradient against central differences: all at once, each alone, on any number of threads.
#include "base/parallel.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

// What networks that are trained are made of.
constexpr const char *kDifferentiable[] = {"Abs",
                                           "Add",
                                           "AveragePool",
                                           "BatchNormalization",
                                           "Clip",
                                           "Concat",
                                           "Conv",
                                           "ConvTranspose",
                                           "CumSum",
                                           "DepthToSpace",
                                           "Div",
                                           "Dropout",
                                           "Elu",
                                           "Erf",
                                           "Exp",
                                           "Expand",
                                           "Flatten",
                                           "Gather",
                                           "Gelu",
                                           "Gemm",
                                           "GlobalAveragePool",
                                           "HardSigmoid",
                                           "HardSwish",
                                           "Identity",
                                           "InstanceNormalization",
                                           "LayerNormalization",
                                           "LeakyRelu",
                                           "Log",
                                           "LogSoftmax",
                                           "MatMul",
                                           "Max",
                                           "MaxPool",
                                           "Min",
                                           "Mish",
                                           "Mul",
                                           "Neg",
                                           "PRelu",
                                           "Pad",
                                           "Pow",
                                           "Reciprocal",
                                           "ReduceMax",
                                           "ReduceMean",
                                           "ReduceMin",
                                           "ReduceProd",
                                           "ReduceSum",
                                           "Relu",
                                           "Reshape",
                                           "Resize",
                                           "Selu",
                                           "Sigmoid",
                                           "Slice",
                                           "Softmax",
                                           "Softplus",
                                           "Softsign",
                                           "SpaceToDepth",
                                           "Split",
                                           "Sqrt",
                                           "Squeeze",
                                           "Sub",
                                           "Tanh",
                                           "Tile",
                                           "Transpose",
                                           "Unsqueeze",
                                           "Where"};

struct Case {
  std::string name;
  Attrs attrs;
  std::vector<Tensor> inputs, dy, dx;  ///< without data: absent, zero, no gradient
  std::vector<bool> present;
};

Tensor optional_tensor(const nlohmann::json &j) { return j.is_null() ? Tensor() : tensor_of(j); }

Case read_case(const nlohmann::json &j, const ops::OpDef &op) {
  Case c{cat(op.name, "/", j.at("name").get<std::string>()), attrs_of(j.at("attrs"), op), {}, {}, {}, {}};
  for (const auto &t : j.at("inputs")) {
    c.present.push_back(!t.is_null());
    c.inputs.push_back(optional_tensor(t));
  }
  for (const auto &t : j.at("dy")) c.dy.push_back(optional_tensor(t));
  for (const auto &t : j.at("dx")) c.dx.push_back(optional_tensor(t));
  return c;
}

Tensor without_data(const Tensor &t) { return Tensor::meta(t.dtype(), t.shape()); }

/// Whether shapes cannot be inferred without the numbers of the input, which then are known before there is a program.
bool is_constant(const ops::OpDef &op, const Case &c, std::size_t input) {
  std::vector<Tensor> left = c.inputs;
  left[input] = without_data(left[input]);
  Inputs operands;
  for (std::size_t i = 0; i < left.size(); ++i) operands.push_back(c.present[i] ? &left[i] : nullptr);
  try {
    ops::infer_op(op, {c.attrs, operands, c.dy.size()});
    return false;
  } catch (const NotKnown &) {
    return true;
  }
}

/// A run as backward() may see it: what the operator does not keep is gone.
class Run {
 public:
  Run(const ops::OpDef &op, const Case &c) : op_(op), case_(c) {
    Inputs all;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) all.push_back(c.present[i] ? &c.inputs[i] : nullptr);
    outputs_ = ops::run_op(op, {c.attrs, all, c.dy.size()});
    if (!op.keeps.outputs)
      for (Tensor &y : outputs_) y = without_data(y);
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const bool stays = !c.present[i] || op.keeps.inputs.holds(i) || is_constant(op, c, i);
      left_.push_back(stays ? c.inputs[i] : without_data(c.inputs[i]));
    }
    for (std::size_t i = 0; i < c.inputs.size(); ++i) inputs_.push_back(c.present[i] ? &left_[i] : nullptr);
  }

  /// The gradients that are wanted, in memory that holds something else.
  std::vector<Tensor> backward(const std::vector<bool> &wanted) {
    std::vector<Tensor> dx(case_.inputs.size());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (!wanted[i]) continue;
      dx[i] = Tensor(QTN_FLOAT32, case_.inputs[i].shape());
      std::fill_n(dx[i].as<float>(), dx[i].count(), std::numeric_limits<float>::quiet_NaN());
    }
    const ops::Call call{case_.attrs, inputs_, case_.dy.size()};
    op_.backward({call, outputs_, case_.dy, scratch_}, dx);
    return dx;
  }

 private:
  const ops::OpDef &op_;
  const Case &case_;
  std::vector<Tensor> outputs_, left_;
  Inputs inputs_;
  Scratch scratch_;
};

void expect_near(const Tensor &got, const Tensor &want, const std::string &what) {
  const float *a = got.as<const float>(), *b = want.as<const float>();
  float largest = 0;
  for (std::int64_t i = 0; i < want.count(); ++i) largest = std::max(largest, std::abs(b[i]));
  for (std::int64_t i = 0; i < want.count(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-4f * largest))
      fail_test(what, ": element ", i, " is ", a[i], ", not ", b[i], "; the largest is ", largest);
}

void expect_same(const std::vector<Tensor> &got, const std::vector<Tensor> &want, const std::string &what) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (got[i].has_data()) expect_equal(got[i], want[i], 0, cat(what, ", input ", i));
}

void check(const ops::OpDef &op, const Case &c) {
  Run run(op, c);
  std::vector<bool> all;
  for (const Tensor &dx : c.dx) all.push_back(dx.has_data());
  const std::vector<Tensor> got = run.backward(all);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i]) expect_near(got[i], c.dx[i], cat(c.name, ": input ", i));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    std::vector<bool> one(all.size());
    one[i] = true;
    expect_same(run.backward(one), got, c.name + " alone");
  }
  run.backward(std::vector<bool>(all.size()));
  for (const int threads : {1, 2, 3}) {
    const ThreadScope scope(threads);
    expect_same(run.backward(all), got, cat(c.name, " on ", threads, " threads"));
  }
}

void every_gradient(void **) {
  for (const ops::OpDef *op : ops::all_ops()) {
    if (!op->backward) continue;
    const nlohmann::json file = golden(cat("gradients/", op->name, ".json"));
    if (file.at("cases").size() < 2) fail_test(op->name, ": fewer than two cases");
    for (const auto &j : file.at("cases")) check(*op, read_case(j, *op));
  }
}

void operators_of_networks_have_one(void **) {
  for (const char *name : kDifferentiable)
    if (!ops::find_op(name)->backward) fail_test(name, " has no gradient");
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::every_gradient),
                              cmocka_unit_test(qtn::operators_of_networks_have_one)};
  return cmocka_run_group_tests_name("ops/gradient", tests, nullptr, nullptr);
}
