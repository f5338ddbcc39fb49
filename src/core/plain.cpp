// SPDX-License-Identifier: Apache-2.0
// Between types that are only stored and types that compute.
#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "core/half.hpp"
#include "core/integer_type.hpp"
#include "core/tensor.hpp"

namespace qtn {
namespace {

void widen(const Tensor &narrow, const Tensor &plain) {
  auto *to = plain.as<float>();
  const qdtype dtype = narrow.dtype();
  if (is_packed(dtype)) {
    const PackedSpan from = narrow.packed();
    for (std::int64_t i = 0; i < narrow.count(); ++i)
      to[i] = decode_float(dtype, static_cast<std::uint16_t>(from.load(i)));
  } else if (dtype_bits(dtype) == 8) {
    std::array<float, 256> values;
    for (std::uint16_t code = 0; code < 256; ++code) values[code] = decode_float(dtype, code);
    const auto *from = narrow.as<const std::uint8_t>();
    for (std::int64_t i = 0; i < narrow.count(); ++i) to[i] = values[from[i]];
  } else {
    const auto *from = narrow.as<const std::uint16_t>();
    if (dtype == QTN_FLOAT16)
      std::transform(from, from + narrow.count(), to, decode_half);
    else
      std::transform(from, from + narrow.count(), to, decode_bfloat16);
  }
}

}  // namespace

Tensor to_plain(const Tensor &t) {
  const Tensor flat = t.to_contiguous().with_quantizer(nullptr);
  if (plain_dtype(t.dtype()) == t.dtype()) return flat;
  const Tensor plain(plain_dtype(t.dtype()), t.shape());
  if (is_packed_integer(t.dtype()))
    flat.packed().load_run(0, flat.count(), plain.as<std::int8_t>());
  else
    widen(flat, plain);
  return plain;
}

Tensor as_float32(const Tensor &t) {
  if (t.quantized() || !is_floating(t.dtype()) || t.dtype() == QTN_FLOAT32) return t;
  if (is_narrow_float(t.dtype())) return to_plain(t);
  const Tensor wide = t.to_contiguous(), narrow(QTN_FLOAT32, t.shape());
  std::transform(wide.as<const double>(), wide.as<const double>() + t.count(), narrow.as<float>(),
                 [](double v) { return static_cast<float>(v); });
  return narrow;
}

Tensor from_plain(const Tensor &t, qdtype dtype, bool saturate) {
  const Tensor flat = t.to_contiguous().with_quantizer(nullptr);
  if (t.dtype() != plain_dtype(dtype))
    fail(QTN_EDTYPE, "convert: ", dtype_name(t.dtype()), " is not what computes for ", dtype_name(dtype));
  if (t.dtype() == dtype) return flat;
  const Tensor stored(dtype, t.shape());
  if (is_packed_integer(dtype)) {
    stored.packed().store_run(0, t.count(), flat.as<const std::int8_t>());
  } else if (is_packed(dtype)) {
    const PackedSpan to = stored.packed();
    const auto *from = flat.as<const float>();
    for (std::int64_t i = 0; i < t.count(); ++i) to.store(i, encode_float(dtype, from[i], saturate));
  } else {
    const auto *from = flat.as<const float>(), *end = from + t.count();
    if (dtype == QTN_FLOAT16)
      std::transform(from, end, stored.as<std::uint16_t>(), encode_half);
    else if (dtype == QTN_BFLOAT16)
      std::transform(from, end, stored.as<std::uint16_t>(), encode_bfloat16);
    else
      std::transform(from, end, stored.as<std::uint8_t>(),
                     [&](float value) { return static_cast<std::uint8_t>(encode_float(dtype, value, saturate)); });
  }
  return stored;
}

Tensor in_integer_type(const Tensor &t, qdtype dtype) {
  if (t.dtype() == dtype) return t.to_contiguous();
  const Quantizer &q = *t.quantizer();
  return from_plain(to_plain(t), dtype)
      .with_quantizer(std::make_shared<Quantizer>(dtype, q.scheme(), q.axis(), q.scales(), q.zero_points(),
                                                  q.numerics(), q.block_size()));
}

}  // namespace qtn
