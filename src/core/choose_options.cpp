// SPDX-License-Identifier: Apache-2.0
#include "core/choose_options.hpp"

#include <cmath>

#include "base/error.hpp"

namespace qtn {

std::optional<IntegerRange> given_range(const Attrs &attrs, std::string_view who) {
  const bool min = attrs.has("quant_min"), max = attrs.has("quant_max");
  if (min != max) fail(QTN_EINVAL, who, ": ", min ? "quant_min" : "quant_max", " is given without the other");
  if (!min) return std::nullopt;
  return IntegerRange{attrs.get_int("quant_min", 0), attrs.get_int("quant_max", 0)};
}

void check_scale_amax(const ChooseOptions &options, std::string_view who) {
  const auto factor = static_cast<float>(options.scale_amax);
  if (!(factor > 0) || !std::isfinite(factor))
    fail(QTN_EINVAL, who, ": scale_amax ", options.scale_amax, " is not a positive float32");
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
  if (const auto eps = static_cast<float>(options.eps); !(eps > 0) || !std::isfinite(eps))
    fail(QTN_EINVAL, who, ": eps ", options.eps, " is not a positive float32");
  options.block_size = attrs.get_int("block_size", 0);
  options.range = given_range(attrs, who);
  options.scale_amax = attrs.get_float("scale_amax", 1);
  if (attrs.has("scale_amax")) check_scale_amax(options, who);
  return options;
}

}  // namespace qtn
