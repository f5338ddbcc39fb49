// SPDX-License-Identifier: Apache-2.0
#include "graph/budget.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "graph/integer.hpp"

namespace qtn::graph {
namespace {

constexpr std::size_t kBytes = std::size_t{16} << 20, kPerConstantByte = 4;
constexpr double kWork = 1 << 29;  // about half a second
constexpr std::size_t kShapeBytes = std::size_t{1} << 20;
constexpr double kShapeWork = 1 << 22;
constexpr double kProductsAtOnce = 32;       // of matrices of floats, which BLAS multiplies
constexpr double kWorkOfRuns = 1ll << 32;    // some seconds
constexpr double kProductsAtOnceInRuns = 4;  // of all types, by either engine
// Decoders make much of small inputs, but not of small weights; attention makes much of small weights, but not of few
// tokens (scores of 32 texts of 512 are 400 MB, of ids that take 130 KB). What folding makes counts as constants here.
constexpr std::size_t kRunBytes = std::size_t{1} << 30, kRunPerConstantByte = 16, kRunPerInputByte = 4096;

thread_local std::size_t innermost_bound = std::numeric_limits<std::size_t>::max();

double count_of(const Tensor *t) { return t ? static_cast<double>(t->count()) : 0; }

/// How many multiplications of the node take the time of one elsewhere.
double multiplied_at_once(const Node &node, std::span<const ops::TensorType> results) {
  return is_linear(node) && !is_convolution(node) && is_floating(results[0].dtype) ? kProductsAtOnce : 1;
}

}  // namespace

std::size_t constant_bytes(const Graph &g) {
  std::set<const void *> seen;
  Size bytes = 0;
  for (const Value &v : g.values)
    if (v.is_constant() && seen.insert(v.constant.data()).second) bytes = bytes + v.constant.nbytes();
  return bytes.value();
}

RunBound::RunBound(std::size_t limit) : outer_(innermost_bound) { innermost_bound = limit; }

RunBound::~RunBound() { innermost_bound = outer_; }

std::size_t RunBound::limit() { return innermost_bound; }

std::size_t run_limit(std::size_t constants, std::size_t inputs) {
  if (const std::int64_t said = limit(Limit::run_bytes)) return static_cast<std::size_t>(said);
  const Size bytes = Size(constants) * kRunPerConstantByte + Size(inputs) * kRunPerInputByte + kRunBytes;
  return std::min(bytes.value(), RunBound::limit());
}

void check_run(std::size_t bytes, std::size_t most) {
  if (bytes > most)
    fail(QTN_ENOMEM, "a run takes ", bytes, " bytes at a time, over the limit of ", most,
         limit(Limit::run_bytes) ? " of run_bytes" : " for constants and inputs of this size");
}

FoldBudget::FoldBudget(std::size_t constants)
    : FoldBudget((Size(constants) * kPerConstantByte + kBytes).value(), kWork + static_cast<double>(constants)) {}

FoldBudget FoldBudget::of_shapes() { return {kShapeBytes, kShapeWork}; }

bool FoldBudget::take(std::size_t bytes) {
  if (bytes > bytes_) return false;
  bytes_ -= bytes;
  return true;
}

bool FoldBudget::take(const Node &node, std::span<const Tensor *const> operands) {
  const ops::TensorType found{QTN_INT64, {1}};  // what work() counts there is for all that is found
  return take(node, operands, std::span(&found, 1));
}

bool FoldBudget::take(const Node &node, std::span<const Tensor *const> operands,
                      std::span<const ops::TensorType> results) {
  Size bytes = 0;
  double count = 0, read = 0;
  for (const ops::TensorType &type : results) {
    bytes = bytes + storage_nbytes(type.dtype, element_count(type.shape));
    count += static_cast<double>(element_count(type.shape));
  }
  if (!node.op->reads_shapes)
    for (const Tensor *t : operands) read += count_of(t);
  const double each = node.op->work ? node.op->work({node.attrs, operands, node.outputs.size()}) : 1;
  const double work = read + count * std::max(1.0, each / multiplied_at_once(node, results));
  if (work <= work_ && take(bytes.value())) {
    work_ -= work;
    return true;
  }
  left_to_runs_ += read + count * each / (is_linear(node) ? kProductsAtOnceInRuns : 1);
  if (left_to_runs_ > kWorkOfRuns)
    fail(QTN_EUNSUPPORTED, node.op->name, " of constants alone takes about ", left_to_runs_, " operations, over ",
         kWorkOfRuns);
  return false;
}

}  // namespace qtn::graph
