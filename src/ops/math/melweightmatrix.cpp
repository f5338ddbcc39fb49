// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <numbers>

#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"output_datatype", AttrSpec::kInt}};

constexpr const char *kNames[] = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"};

std::int64_t count_at(const Call &call, std::size_t i) {
  return constant_int("MelWeightMatrix", kNames[i], *call.in(i));
}

double hertz_at(const Call &call, std::size_t i) { return constant_number("MelWeightMatrix", kNames[i], *call.in(i)); }

Types infer(const Call &call) {
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t least = i == 0 ? 0 : 1, most = std::int64_t{1} << 40, given = count_at(call, i);
    if (given < least || given > most) fail(QTN_EINVAL, "MelWeightMatrix: ", kNames[i], " is ", given);
  }
  const double low = hertz_at(call, 3), high = hertz_at(call, 4), rate = static_cast<double>(count_at(call, 2));
  if (!(low >= 0 && low <= high && high <= rate))
    fail(QTN_EINVAL, "MelWeightMatrix: edges of ", low, " and ", high, " Hz, with ", rate, " samples per second");
  return {{dtype_attribute("MelWeightMatrix", call.attrs, "output_datatype", QTN_FLOAT32),
           {count_at(call, 1) / 2 + 1, count_at(call, 0)}}};
}

/// The bin of the spectrum in which edge i of the bands lies.
std::int64_t spectrum_bin(const Call &call, std::int64_t i) {
  const auto mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::numbers::ln10; };
  const double low = mel(hertz_at(call, 3)), high = mel(hertz_at(call, 4));
  const double step = (high - low) / static_cast<double>(count_at(call, 0) + 2);
  const double hertz = 700 * std::expm1((static_cast<double>(i) * step + low) / 2595 * std::numbers::ln10);
  const double bin =
      std::floor(static_cast<double>(count_at(call, 1) + 1) * hertz / static_cast<double>(count_at(call, 2)));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(bin), 0, count_at(call, 1) / 2);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  std::memset(y.data(), 0, y.nbytes());
  for (std::int64_t band = 0; band < y.dim(1); ++band) {
    const std::int64_t low = spectrum_bin(call, band), top = spectrum_bin(call, band + 1),
                       high = spectrum_bin(call, band + 2);
    const auto set = [&](std::int64_t bin, double weight) {
      store_doubles(y, bin * y.dim(1) + band, std::span(&weight, 1));
    };
    for (std::int64_t bin = low; bin < top; ++bin)
      set(bin, static_cast<double>(bin - low) / static_cast<double>(top - low));
    for (std::int64_t bin = top; bin < high; ++bin)
      set(bin, static_cast<double>(high - bin) / static_cast<double>(high - top));
    set(top, 1);
  }
}

qdtype output_dtype(const Attrs &attrs, std::size_t, qdtype) {
  return static_cast<qdtype>(attrs.get_int("output_datatype", QTN_FLOAT32));
}

}  // namespace

const OpDef kMelWeightMatrix{.name = "MelWeightMatrix",
                             .min_inputs = 5,
                             .max_inputs = 5,
                             .max_outputs = 1,
                             .attrs = kAttrs,
                             .infer = infer,
                             .run = run,
                             .shapes_from = {0, 5},
                             .output_dtype = output_dtype};

}  // namespace qtn::ops
