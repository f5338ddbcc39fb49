// SPDX-License-Identifier: Apache-2.0
#include "core/choose_options.hpp"

#include <cmath>

#include "base/error.hpp"

namespace qtn {
namespace {

void check_positive(double value, std::string_view name, std::string_view who) {
  const auto single = static_cast<float>(value);
  if (!(single > 0) || !std::isfinite(single))
    fail(QTN_EINVAL, who, ": ", name, " ", value, " is not a positive float32");
}

}  // namespace

std::optional<IntegerRange> given_range(const Attrs &attrs, std::string_view who) {
  const bool min = attrs.has("quant_min"), max = attrs.has("quant_max");
  if (min != max) fail(QTN_EINVAL, who, ": ", min ? "quant_min" : "quant_max", " is given without the other");
  if (!min) return std::nullopt;
  return IntegerRange{attrs.get_int("quant_min", 0), attrs.get_int("quant_max", 0)};
}

void check_eps(const ChooseOptions &options, std::string_view who) { check_positive(options.eps, "eps", who); }

void check_scale_amax(const ChooseOptions &options, std::string_view who) {
  check_positive(options.scale_amax, "scale_amax", who);
  if (options.numerics != Numerics::nvidia)
    fail(QTN_EINVAL, who, ": scale_amax is of numerics \"nvidia\", here they are \"", numerics_name(options.numerics),
         "\"");
}

ChooseOptions choose_options(const Attrs &attrs, std::string_view who) {
  ChooseOptions options;
  options.numerics = parse_numerics(attrs.get_string("numerics", "fbgemm"));
  options.reduce_range = attrs.get_int("reduce_range", 0) != 0;
  options.narrow_range = attrs.get_int("narrow_range", 0) != 0;
  options.eps = attrs.get_float("eps", options.eps);
  check_eps(options, who);
  options.block_size = attrs.get_int("block_size", 0);
  options.range = given_range(attrs, who);
  options.scale_amax = attrs.get_float("scale_amax", 1);
  if (attrs.has("scale_amax")) check_scale_amax(options, who);
  return options;
}

}  // namespace qtn
