// SPDX-License-Identifier: Apache-2.0
#include "ops/common/fill.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/unpacked.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"upper", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  if (x.rank() < 2) fail(QTN_ESHAPE, "Trilu: x ", to_string(x.shape()), " is no matrix");
  if (const Tensor *k = call.in(1)) {
    require_dtype("Trilu", "k", *k, {QTN_INT64});
    if (k->count() != 1) fail(QTN_ESHAPE, "Trilu: k must be one number, it is ", to_string(k->shape()));
  }
  return {{x.dtype(), x.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor x = call.in(0)->to_contiguous();
  const std::int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1);
  const bool upper = call.attrs.get_int("upper", 1) != 0;
  // Beyond the matrix a longer distance changes nothing more, and a sum with it could overflow.
  const std::int64_t k = call.in(1) ? std::clamp(int_values(*call.in(1), "k")[0], -rows, columns) : 0;
  const std::uint64_t fill = fill_bits(x, nullptr);
  through_contiguous(outputs[0], [&](const Tensor &y) {
    dispatch_width(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *from = x.as<const T>();
      T *to = y.as<T>();
      const auto nothing = static_cast<T>(fill);
      for (std::int64_t row = 0; row < x.count() / columns; ++row, from += columns, to += columns) {
        // The diagonal is the first of the upper part, and the last of the lower.
        const std::int64_t border = std::clamp<std::int64_t>(row % rows + k + (upper ? 0 : 1), 0, columns);
        std::copy_n(from, columns, to);
        upper ? std::fill(to, to + border, nothing) : std::fill(to + border, to + columns, nothing);
      }
    });
  });
}

}  // namespace

const OpDef kTrilu{.name = "Trilu",
                   .min_inputs = 1,
                   .max_inputs = 2,
                   .max_outputs = 1,
                   .attrs = kAttrs,
                   .any_type = true,
                   .infer = infer,
                   .run = through_unpacked<run>,
                   .moves = always_moves};

}  // namespace qtn::ops
