// SPDX-License-Identifier: Apache-2.0
#include "ops/common/fill.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/unpacked.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axes", AttrSpec::kInts}};
constexpr const char *kName = "CenterCropPad";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  std::vector<std::size_t> axes;
  if (call.attrs.has("axes")) axes = constant_axes(kName, Tensor::from_ints(call.attrs.get_ints("axes")), x.rank());
  for (std::size_t i = 0; !call.attrs.has("axes") && i < x.rank(); ++i) axes.push_back(i);
  const std::vector<std::int64_t> wanted = constant_ints(kName, "shape", *call.in(1));
  if (wanted.size() != axes.size())
    fail(QTN_EINVAL, kName, ": shape has ", wanted.size(), " values for ", axes.size(), " axes of x ",
         to_string(x.shape()));
  Shape shape = x.shape();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (wanted[i] < 0) fail(QTN_EINVAL, kName, ": a dimension of shape is ", wanted[i]);
    shape[axes[i]] = wanted[i];
  }
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  const std::uint64_t fill = fill_bits(x, nullptr);
  through_contiguous(outputs[0], [&](const Tensor &y) {
    // What both have, and where it begins in each. The end has the larger half of an odd difference.
    Shape common = y.shape();
    std::ptrdiff_t from = 0, to = 0;
    for (std::size_t axis = 0; axis < x.rank(); ++axis) {
      const std::int64_t in = x.dim(axis), out = y.dim(axis);
      common[axis] = std::min(in, out);
      from += (in - common[axis]) / 2 * x.strides()[axis];
      to += (out - common[axis]) / 2 * y.strides()[axis];
    }
    dispatch_width(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (!(common == y.shape())) std::fill_n(y.as<T>(), y.count(), static_cast<T>(fill));
    });
    if (element_count(common) > 0) copy_elements(y.view(common, y.strides(), to), x.view(common, x.strides(), from));
  });
}

}  // namespace

const OpDef kCenterCropPad{.name = kName,
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .max_outputs = 1,
                           .attrs = kAttrs,
                           .any_type = true,
                           .infer = infer,
                           .run = through_unpacked<run>,
                           .moves = always_moves,
                           .shapes_from = {1, 1}};

}  // namespace qtn::ops
