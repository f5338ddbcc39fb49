// SPDX-License-Identifier: Apache-2.0
#include "ops/common/contiguous.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"kernel_shape", AttrSpec::kInts}, {"pads", AttrSpec::kInts}, {"strides", AttrSpec::kInts}};
constexpr const char *kName = "MaxUnpool";

/// The image that was pooled, as the attributes say: indices count in it.
Shape pooled_shape(const Call &call) {
  const Tensor &x = *call.in(0);
  if (x.rank() < 3) fail(QTN_ESHAPE, kName, ": x ", to_string(x.shape()), " has no spatial axes");
  const std::size_t rank = x.rank() - 2;
  const std::vector<std::int64_t> kernel = call.attrs.get_ints("kernel_shape"),
                                  strides = call.attrs.get_ints("strides", std::vector<std::int64_t>(rank, 1)),
                                  pads = call.attrs.get_ints("pads", std::vector<std::int64_t>(2 * rank, 0));
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    fail(QTN_EINVAL, kName, ": kernel_shape, strides and pads have ", kernel.size(), ", ", strides.size(), " and ",
         pads.size(), " values for ", rank, " spatial axes");
  Shape shape = x.shape();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t whole = add_dims(kName, mul_dims(kName, x.dim(i + 2) - 1, strides[i]), kernel[i]);
    shape[i + 2] = add_dims(kName, whole, -add_dims(kName, pads[i], pads[i + rank]));
    if (kernel[i] < 1 || strides[i] < 1 || pads[i] < 0 || pads[i + rank] < 0 || shape[i + 2] < 0)
      fail(QTN_EINVAL, kName, ": kernel ", kernel[i], ", stride ", strides[i], " and pads of ", pads[i], " and ",
           pads[i + rank], " for x ", to_string(x.shape()));
  }
  return shape;
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  require_dtype(kName, "indices", indices, {QTN_INT64});
  if (!(indices.shape() == x.shape()))
    fail(QTN_ESHAPE, kName, ": indices ", to_string(indices.shape()), " are not as x ", to_string(x.shape()));
  Shape shape = pooled_shape(call);
  if (call.in(2)) {
    const Shape wanted(constant_ints(kName, "output_shape", *call.in(2)));
    bool covers = wanted.size() == shape.size();
    for (std::size_t i = 0; covers && i < shape.size(); ++i) covers = wanted[i] >= shape[i];
    if (!covers) fail(QTN_ESHAPE, kName, ": output_shape ", to_string(wanted), " does not hold ", to_string(shape));
    shape = wanted;
  }
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const Shape pooled = pooled_shape(call), strides = y.strides();
  const std::int64_t count = element_count(pooled);
  const bool is_same = y.shape() == pooled;
  std::fill_n(y.as<std::byte>(), y.nbytes(), std::byte{0});
  const auto *indices = call.in(1)->as<const std::int64_t>();
  dispatch_width(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < x.count(); ++i) {
      std::int64_t rest = indices[i], at = is_same ? rest : 0;
      if (rest < 0 || rest >= count) fail(QTN_EINVAL, kName, ": index ", rest, " is outside of ", to_string(pooled));
      for (std::size_t axis = is_same ? 0 : pooled.size(); axis-- > 0; rest /= pooled[axis])
        at += rest % pooled[axis] * strides[axis];
      y.as<T>()[at] = x.as<const T>()[i];
    }
  });
}

}  // namespace

const OpDef kMaxUnpool{.name = kName,
                       .min_inputs = 2,
                       .max_inputs = 3,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .any_type = true,
                       .infer = infer,
                       .run = run,
                       .shapes_from = {2, 1}};

}  // namespace qtn::ops
