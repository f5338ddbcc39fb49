// SPDX-License-Identifier: Apache-2.0
#include "quant/quantize_options.hpp"

#include <cmath>
#include <string_view>

#include "base/error.hpp"
#include "base/find_named.hpp"

namespace qtn::quant {
namespace {

constexpr AttrSpec kKeys[] = {
    {"plain", AttrSpec::kInt},
    {"smooth", AttrSpec::kFloat},
    {"absorb_bias", AttrSpec::kInt},
    {"bias_correction", AttrSpec::kInt},
    {"gptq", AttrSpec::kInt},
    {"adaround", AttrSpec::kInt},
    {"auto", AttrSpec::kInt},
    {"target_sqnr", AttrSpec::kFloat},
    {"target_top1", AttrSpec::kFloat},
    {"fallback", AttrSpec::kString},
    {"sensitivity", AttrSpec::kInt},
    {"histograms", AttrSpec::kInt},
    {"measured_samples", AttrSpec::kInt},
};

Targets targets_of(const Attrs &attrs) {
  Targets targets;
  if (attrs.has("target_sqnr")) {
    targets.sqnr_db = attrs.get_float("target_sqnr", 0);
    if (!std::isfinite(*targets.sqnr_db))
      fail(QTN_EINVAL, "quantize: target_sqnr ", *targets.sqnr_db, " is not finite");
  }
  if (attrs.has("target_top1")) {
    targets.top1 = attrs.get_float("target_top1", 0);
    if (!(*targets.top1 > 0) || *targets.top1 > 1)
      fail(QTN_EINVAL, "quantize: target_top1 ", *targets.top1, " is outside (0, 1]");
  }
  return targets;
}

bool falls_back_to_int16(const Attrs &attrs, const Targets &targets) {
  constexpr std::string_view kFallbacks[] = {"float", "int16"};
  const std::string_view fallback =
      find_named(kFallbacks, attrs.get_string("fallback", "float"), "quantize", "fallback");
  if (attrs.has("fallback") && !targets.any())
    fail(QTN_EINVAL, "quantize: fallback \"", fallback, "\" is for target_sqnr and target_top1, neither is given");
  return fallback == "int16";
}

}  // namespace

QuantizeOptions options_of(const Attrs &attrs) {
  attrs.check(kKeys, "quantize");
  const auto flag = [&](const char *key, bool otherwise = false) {
    const std::int64_t value = attrs.get_int(key, otherwise);
    if (value != 0 && value != 1) fail(QTN_EINVAL, "quantize: ", key, " is ", value, ", not 0 or 1");
    return value == 1;
  };
  QuantizeOptions o{.plain = flag("plain"),
                    .absorb_bias = flag("absorb_bias"),
                    .correct_bias = flag("bias_correction", true),
                    .feedback = flag("gptq", true),
                    .learn_rounding = flag("adaround"),
                    .automatic = flag("auto"),
                    .sensitivity = flag("sensitivity"),
                    .histograms = flag("histograms"),
                    .smooth = attrs.get_float("smooth", 0),
                    .targets = targets_of(attrs),
                    .wide = false,
                    .measured = 0};
  for (const char *key : {"absorb_bias", "bias_correction", "gptq", "adaround", "auto"})
    if (o.plain && flag(key)) fail(QTN_EINVAL, "quantize: plain tries nothing, and ", key, " is 1");
  if (o.plain && o.smooth > 0) fail(QTN_EINVAL, "quantize: plain tries nothing, and smooth is ", o.smooth);
  if (!(o.smooth >= 0) || o.smooth > 1) fail(QTN_EINVAL, "quantize: smooth ", o.smooth, " is outside [0, 1]");
  const std::int64_t measured = attrs.get_int("measured_samples", 32);
  if (measured < 1) fail(QTN_EINVAL, "quantize: measured_samples is ", measured, ", not positive");
  o.measured = static_cast<std::size_t>(measured);
  o.wide = falls_back_to_int16(attrs, o.targets);
  return o;
}

}  // namespace qtn::quant
