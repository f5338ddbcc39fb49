// SPDX-License-Identifier: Apache-2.0
#include "io/quantizer_members.hpp"

#include "base/error.hpp"
#include "core/scheme.hpp"
#include "io/checked.hpp"

namespace qtn::io {
namespace {

constexpr AttrSpec kMembers[] = {
    {"dtype", AttrSpec::kString},  // is read before: integers without a quantizer have it too
    {"scheme", AttrSpec::kString},    {"axis", AttrSpec::kInt},        {"scales", AttrSpec::kFloats},
    {"zero_points", AttrSpec::kInts}, {"numerics", AttrSpec::kString}, {"block_size", AttrSpec::kInt},
    {"quant_min", AttrSpec::kInt},    {"quant_max", AttrSpec::kInt},
};
constexpr AttrSpec kFloatZeros[] = {
    {"dtype", AttrSpec::kString},
    {"scheme", AttrSpec::kString},
    {"axis", AttrSpec::kInt},
    {"scales", AttrSpec::kFloats},
    {"float_zero_points", AttrSpec::kFloats},
    {"numerics", AttrSpec::kString},
    {"block_size", AttrSpec::kInt},
    {"quant_min", AttrSpec::kInt},
    {"quant_max", AttrSpec::kInt},
};

qscheme scheme_of(const Attrs &members) {
  const std::string name = members.get_string("scheme", "");
  const std::optional<qscheme> scheme = parse_scheme(name);
  if (!scheme) fail(QTN_EFORMAT, "scheme \"", name, "\" is unknown");
  return *scheme;
}

std::int32_t axis_of(const Attrs &members) {
  const std::int64_t axis = members.get_int("axis", 0);
  if (axis < 0 || axis >= static_cast<std::int64_t>(kMaxRank))
    fail(QTN_EFORMAT, "axis ", axis, " is not from 0 to ", kMaxRank - 1);
  return static_cast<std::int32_t>(axis);
}

}  // namespace

void write_members(JsonWriter &json, const Quantizer &q) {
  json.member("scheme", scheme_name(q.scheme()));
  json.member("axis", q.axis());
  json.member("scales", q.scales());
  if (q.zeros_are_floats())
    json.member("float_zero_points", q.float_zero_points());
  else
    json.member("zero_points", q.zero_points());
  json.member("numerics", numerics_name(q.numerics()));
  json.member("block_size", q.block_size());
  json.member("quant_min", q.range().lo);
  json.member("quant_max", q.range().hi);
}

QuantizerPtr read_members(const Attrs &members, qdtype dtype) {
  const bool float_zeros = members.has("scheme") && scheme_of(members) == QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
  check_complete(members, float_zeros ? std::span<const AttrSpec>(kFloatZeros) : kMembers, "quantizer");
  std::optional<IntegerRange> range;
  if (!is_tiny_float(dtype)) range = {members.get_int("quant_min", 0), members.get_int("quant_max", 0)};
  if (float_zeros)
    return std::make_shared<Quantizer>(dtype, axis_of(members), members.get_floats("scales"),
                                       members.get_floats("float_zero_points"),
                                       parse_numerics(members.get_string("numerics", "")), range);
  return std::make_shared<Quantizer>(
      dtype, scheme_of(members), axis_of(members), members.get_floats("scales"), members.get_ints("zero_points"),
      parse_numerics(members.get_string("numerics", "")), members.get_int("block_size", 0), range);
}

}  // namespace qtn::io
