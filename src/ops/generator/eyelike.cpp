// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dtype", AttrSpec::kInt}, {"k", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  if (x.rank() != 2) fail(QTN_ESHAPE, "EyeLike: input ", to_string(x.shape()), " is no matrix");
  return {{dtype_attribute("EyeLike", call.attrs, "dtype", x.dtype()), x.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  const std::int64_t rows = y.dim(0), columns = y.dim(1), k = call.attrs.get_int("k", 0);
  const double one = 1;
  std::memset(y.data(), 0, y.nbytes());
  if (k >= columns || k <= -rows) return;
  for (std::int64_t row = std::max<std::int64_t>(0, -k); row < std::min(rows, columns - k); ++row)
    store_doubles(y, row * columns + row + k, std::span(&one, 1));
}

}  // namespace

const OpDef kEyeLike{.name = "EyeLike",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kAttrs,
                     .infer = infer,
                     .run = run,
                     .reads_shapes = true,
                     .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
