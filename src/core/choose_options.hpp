// SPDX-License-Identifier: Apache-2.0
// The options of choosing a scale, as attributes name them.
#pragma once

#include <string_view>

#include "core/attrs.hpp"
#include "core/quantizer.hpp"

namespace qtn {

inline constexpr AttrSpec kChooseKeys[] = {
    {"numerics", AttrSpec::kString}, {"block_size", AttrSpec::kInt},   {"quant_min", AttrSpec::kInt},
    {"quant_max", AttrSpec::kInt},   {"reduce_range", AttrSpec::kInt}, {"narrow_range", AttrSpec::kInt},
    {"eps", AttrSpec::kFloat},       {"scale_amax", AttrSpec::kFloat},
};

/// "quant_min" and "quant_max", which come together; throws QTN_EINVAL "<who>: ..." where they do not.
std::optional<IntegerRange> given_range(const Attrs &attrs, std::string_view who);

/// Throws QTN_EINVAL "<who>: ..." unless it is positive in float32.
void check_eps(const ChooseOptions &options, std::string_view who);

/// Throws QTN_EINVAL "<who>: ..." unless it is positive in float32 and the numerics are nvidia's.
void check_scale_amax(const ChooseOptions &options, std::string_view who);

/// The attributes that kChooseKeys lists; others are not looked at.
ChooseOptions choose_options(const Attrs &attrs, std::string_view who);

}  // namespace qtn
