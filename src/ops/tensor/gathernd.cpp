// SPDX-License-Identifier: Apache-2.0
#include "ops/common/contiguous.hpp"
#include "ops/common/indices.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/unpacked.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"batch_dims", AttrSpec::kInt}};
constexpr const char *kName = "GatherND";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  require_indices(kName, indices);
  const std::int64_t given = call.attrs.get_int("batch_dims", 0);
  const auto rank = static_cast<std::int64_t>(std::min(x.rank(), indices.rank()));
  if (given < 0 || given >= rank)
    fail(QTN_EINVAL, kName, ": batch_dims is ", given, ", x ", to_string(x.shape()), " and indices ",
         to_string(indices.shape()));
  const auto batch = static_cast<std::size_t>(given);
  const std::int64_t length = indices.shape().back();
  if (!std::equal(x.shape().begin(), x.shape().begin() + batch, indices.shape().begin()) || length < 1 ||
      length > static_cast<std::int64_t>(x.rank() - batch))
    fail(QTN_ESHAPE, kName, ": indices ", to_string(indices.shape()), " do not fit x ", to_string(x.shape()),
         " behind ", batch, " axes of a batch");
  Shape shape = indices.shape();
  shape.erase(shape.size() - 1);
  for (std::size_t i = batch + static_cast<std::size_t>(length); i < x.rank(); ++i) shape.push_back(x.dim(i));
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor x = call.in(0)->to_contiguous(), &indices = *call.in(1);
  const auto batch = static_cast<std::size_t>(call.attrs.get_int("batch_dims", 0));
  const std::vector<std::int64_t> offsets = tuple_offsets(kName, indices, x.shape(), batch);
  const std::size_t first = batch + static_cast<std::size_t>(indices.shape().back());
  const std::int64_t slice = element_count(x.shape(), first, x.rank());
  through_contiguous(outputs[0], [&](const Tensor &y) {
    dispatch_width(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T *to = y.as<T>();
      for (const std::int64_t offset : offsets) to = std::copy_n(x.as<const T>() + offset, slice, to);
    });
  });
}

}  // namespace

const OpDef kGatherND{.name = kName,
                      .min_inputs = 2,
                      .max_inputs = 2,
                      .max_outputs = 1,
                      .attrs = kAttrs,
                      .any_type = true,
                      .infer = infer,
                      .run = through_unpacked<run>,
                      .moves = always_moves};

}  // namespace qtn::ops
