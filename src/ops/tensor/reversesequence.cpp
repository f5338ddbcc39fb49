// SPDX-License-Identifier: Apache-2.0
#include "ops/common/contiguous.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"batch_axis", AttrSpec::kInt}, {"time_axis", AttrSpec::kInt}};
constexpr const char *kName = "ReverseSequence";

std::size_t time_axis(const Call &call) { return call.attrs.get_int("time_axis", 0) == 0 ? 0 : 1; }

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &lengths = *call.in(1);
  require_dtype(kName, "sequence_lens", lengths, {QTN_INT64});
  if (x.rank() < 2) fail(QTN_ESHAPE, kName, ": x ", to_string(x.shape()), " has no two axes of time and batch");
  const std::int64_t batch = call.attrs.get_int("batch_axis", 1), time = call.attrs.get_int("time_axis", 0);
  if (!((batch == 0 && time == 1) || (batch == 1 && time == 0)))
    fail(QTN_EINVAL, kName, ": batch_axis is ", batch, " and time_axis ", time, ", not 0 and 1 or 1 and 0");
  if (!(lengths.shape() == Shape{x.dim(static_cast<std::size_t>(batch))}))
    fail(QTN_ESHAPE, kName, ": sequence_lens is ", to_string(lengths.shape()), ", x ", to_string(x.shape()), " has ",
         x.dim(static_cast<std::size_t>(batch)), " sequences");
  return {{x.dtype(), x.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const std::size_t time = time_axis(call), batch = 1 - time;
  const std::vector<std::int64_t> lengths = int_values(*call.in(1), "sequence_lens");
  for (const std::int64_t length : lengths)
    if (length < 0 || length > x.dim(time))
      fail(QTN_EINVAL, kName, ": a sequence of ", length, " steps in x ", to_string(x.shape()), ", which has ",
           x.dim(time));
  for (std::int64_t b = 0; b < x.dim(batch); ++b) {
    const auto part = [&](const Tensor &t, std::int64_t first, std::int64_t count, std::int64_t step) {
      Shape shape = t.shape(), strides = t.strides();
      shape[batch] = 1;
      shape[time] = count;
      const std::ptrdiff_t offset = b * strides[batch] + first * strides[time];
      strides[time] *= step;
      return t.view(shape, strides, offset);
    };
    const std::int64_t length = lengths[static_cast<std::size_t>(b)], rest = x.dim(time) - length;
    if (length > 0) copy_elements(part(y, 0, length, 1), part(x, length - 1, length, -1));
    if (rest > 0) copy_elements(part(y, length, rest, 1), part(x, length, rest, 1));
  }
}

}  // namespace

const OpDef kReverseSequence{.name = kName,
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .max_outputs = 1,
                             .attrs = kAttrs,
                             .any_type = true,
                             .infer = infer,
                             .run = run,
                             .moves = always_moves};

}  // namespace qtn::ops
