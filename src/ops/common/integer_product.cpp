// SPDX-License-Identifier: Apache-2.0
#include "ops/common/integer_product.hpp"

#include <algorithm>

#include "base/parallel.hpp"

namespace qtn::ops {

bool is_integer_product(const Tensor &x, const Tensor &w, std::size_t output_axis, const Tensor *bias,
                        const Tensor &output, std::int64_t groups) {
  if (!is_quantized_8bit(&x) || !w.quantized() || w.quantizer()->per_block()) return false;
  const qdtype bytes = plain_dtype(w.dtype());
  if (bytes != QTN_UINT8 && bytes != QTN_INT8) return false;
  if (w.quantizer()->per_channel() && normalize_axis(w.quantizer()->axis(), w.rank(), "weight") != output_axis)
    return false;
  if (bias) {
    const std::int64_t count = bias->count();
    const bool by_channel =
        count == 1 || (count == w.dim(output_axis) * groups && bias->dim(bias->rank() - 1) == count);
    if (!by_channel || (!bias->quantized() && bias->dtype() != QTN_FLOAT32)) return false;
    if (is_bias_beyond_int32(*bias, *x.quantizer(), *w.quantizer(),
                             static_cast<std::size_t>(w.dim(output_axis) * groups)))
      return false;
  }
  if (output.quantized()) return is_quantized_8bit(&output);
  return output.dtype() == QTN_FLOAT32 || output.dtype() == QTN_INT32;
}

CountedVector<double> centered_doubles(const Tensor &w, std::size_t output_axis) {
  const Quantizer &q = *w.quantizer();
  const std::vector<std::int64_t> values = int_values(w, "weight");
  const auto channels = static_cast<std::size_t>(w.dim(output_axis));
  const auto inner = static_cast<std::size_t>(element_count(w.shape(), output_axis + 1, w.rank()));
  CountedVector<double> out(values.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<double>(values[i] - q.zero_points()[q.per_channel() ? i / inner % channels : 0]);
  return out;
}

void store_products(const Tensor &output, std::span<const double> sums, std::size_t inner, const Quantizer &x,
                    const Quantizer &w, const Tensor *bias, std::size_t channels, const Clamp *clamp) {
  if (output.dtype() == QTN_INT32) {
    std::transform(sums.begin(), sums.end(), output.as<std::int32_t>(),
                   [](double sum) { return static_cast<std::int32_t>(sum); });
    return;
  }
  const std::vector<float> m = conv_multipliers(x, w, output.quantizer().get(), channels);
  const std::vector<std::int32_t> b = integer_bias(bias, x, w, channels);
  CountedVector<float> buffer(output.quantized() ? sums.size() : 0);
  float *scaled = output.quantized() ? buffer.data() : output.as<float>();
  if (sums.empty()) return;
  parallel_for(sums.size() / inner, [&](std::size_t row) {
    const std::size_t c = row % channels;
    for (std::size_t i = row * inner; i < (row + 1) * inner; ++i) scaled[i] = static_cast<float>(sums[i] + b[c]) * m[c];
  });
  if (output.quantized()) store_scaled(output, buffer, clamp);
}

}  // namespace qtn::ops
