// SPDX-License-Identifier: Apache-2.0
#include "ops/common/log_likelihood.hpp"

namespace qtn::ops {
namespace {

template <class T>
void run_as(const char *op, const Call &call, const Tensor &x, const Tensor &y) {
  const Tensor *weights = call.in(2);
  const std::vector<std::int64_t> classes = int_values(*call.in(1), op);
  const bool may_ignore = call.attrs.has("ignore_index"), each = call.attrs.get_string("reduction", "mean") == "none";
  const std::int64_t ignored = call.attrs.get_int("ignore_index", 0);
  const std::int64_t count = x.dim(1), inner = element_count(x.shape(), 2, x.rank());
  double sum = 0, total = 0;
  for (std::size_t n = 0; n < classes.size(); ++n) {
    const std::int64_t c = classes[n], i = static_cast<std::int64_t>(n);
    double loss = 0;
    if (!may_ignore || c != ignored) {
      if (c < 0 || c >= count) fail(QTN_EINVAL, op, ": class ", c, " of target ", i, " is not in [0, ", count, ")");
      const double weight = weights ? static_cast<double>(weights->as<const T>()[c]) : 1;
      loss = -weight * static_cast<double>(x.as<const T>()[(i / inner * count + c) * inner + i % inner]);
      total += weight;
    }
    sum += loss;
    if (each) y.as<T>()[i] = static_cast<T>(loss);
  }
  if (!each) *y.as<T>() = static_cast<T>(call.attrs.get_string("reduction", "mean") == "mean" ? sum / total : sum);
}

}  // namespace

Types infer_log_likelihood(const char *op, const Call &call) {
  const Tensor &x = *call.in(0), &target = *call.in(1);
  require_real(op, "input", &x);
  require_dtype(op, "target", target, {QTN_INT32, QTN_INT64});
  if (x.rank() < 2) fail(QTN_ESHAPE, op, ": input ", to_string(x.shape()), " must be [N, C, ...]");
  Shape places = x.shape();
  places.erase(1);
  if (target.shape() != places)
    fail(QTN_ESHAPE, op, ": target is ", to_string(target.shape()), ", input ", to_string(x.shape()));
  if (const Tensor *weights = call.in(2)) {
    require_same_dtype(op, x, *weights);
    if (weights->shape() != Shape{x.dim(1)})
      fail(QTN_ESHAPE, op, ": weight is ", to_string(weights->shape()), " for ", x.dim(1), " classes");
  }
  const std::string reduction = call.attrs.get_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    fail(QTN_EINVAL, op, ": reduction is \"", reduction, "\", not none, sum or mean");
  return {{x.dtype(), reduction == "none" ? places : Shape()}};
}

void log_likelihood(const char *op, const Call &call, const Tensor &log_probabilities, const Tensor &y) {
  y.dtype() == QTN_FLOAT64 ? run_as<double>(op, call, log_probabilities, y)
                           : run_as<float>(op, call, log_probabilities, y);
}

}  // namespace qtn::ops
