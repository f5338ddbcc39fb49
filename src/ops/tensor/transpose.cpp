// SPDX-License-Identifier: Apache-2.0
#include "ops/common/prepared.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"perm", AttrSpec::kInts}};

std::vector<std::size_t> permutation(const Call &call) {
  const std::size_t rank = call.in(0)->rank();
  std::vector<std::size_t> perm;
  if (!call.attrs.has("perm")) {
    for (std::size_t i = rank; i-- > 0;) perm.push_back(i);
    return perm;
  }
  const std::vector<std::int64_t> given = call.attrs.get_ints("perm");
  if (given.size() != rank)
    fail(QTN_EINVAL, "Transpose: perm has ", given.size(), " axes, x is ", to_string(call.in(0)->shape()));
  for (const std::int64_t axis : given) {
    perm.push_back(normalize_axis(axis, rank, "Transpose"));
    if (std::count(perm.begin(), perm.end(), perm.back()) > 1)
      fail(QTN_EINVAL, "Transpose: axis ", axis, " is given twice in perm");
  }
  return perm;
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  Shape shape;
  for (const std::size_t axis : permutation(call)) shape.push_back(x.dim(axis));
  return {{x.dtype(), shape}};
}

struct Permutation final : Prepared {
  explicit Permutation(const Call &call) : axes(permutation(call)) {}
  const std::vector<std::size_t> axes;
};

/// x, or a tensor of its shape, read in the order of y.
Tensor permuted(const Call &call, const Tensor &x) {
  Shape shape, strides;
  const Ready<Permutation> permutation(call);
  for (const std::size_t axis : permutation->axes) {
    shape.push_back(x.dim(axis));
    strides.push_back(x.strides()[axis]);
  }
  return x.view(shape, strides);
}

void run(const Call &call, std::span<Tensor> outputs) { copy_elements(outputs[0], permuted(call, *call.in(0))); }

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data()) copy_elements(permuted(run.call, dx[0]), run.dy[0]);
}

}  // namespace

const OpDef kTranspose{.name = "Transpose",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .any_type = true,
                       .infer = infer,
                       .run = run,
                       .prepare = prepare<Permutation>,
                       .moves = always_moves,
                       .backward = backward};

}  // namespace qtn::ops
