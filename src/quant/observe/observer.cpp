// SPDX-License-Identifier: Apache-2.0
#include "quant/observe/observer.hpp"

#include <cmath>

#include "base/find_named.hpp"
#include "core/choose_options.hpp"
#include "core/scheme.hpp"
#include "quant/descriptors.hpp"
#include "quant/observe/bytes.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

constexpr std::int64_t kMaxBins = 65536;

struct Kind {
  std::string_view name;
  std::unique_ptr<Observer> (*make)(const ObserverSettings &settings);
  bool many_ranges = false;  ///< per channel and per block too
  std::int64_t bins = ObserverSettings().bins;
  double percentile = ObserverSettings().percentile;
  std::int64_t most_bins = kMaxBins;  ///< fewer where a search takes time with their square: a file may ask for it
};
constexpr Kind kKinds[] = {
    {"minmax", make_minmax, true},
    {"max", make_max, true},
    {"moving_average", make_moving_average, true},
    {"mse", make_mse},
    {.name = "histogram", .make = make_histogram, .most_bins = 16384},
    {"percentile", make_percentile},
    {.name = "entropy", .make = make_entropy, .bins = 128, .most_bins = 2048},
    {"nvidia_percentile", make_nvidia_percentile, false, 2048, 99.99},
    {.name = "nvidia_entropy", .make = make_nvidia_entropy, .most_bins = 4096},
    {.name = "nvidia_mse", .make = make_nvidia_mse, .most_bins = 4096},
    {"fixed", make_fixed},
};

constexpr AttrSpec kKeys[] = {
    {"dtype", AttrSpec::kString},
    {"scheme", AttrSpec::kString},
    {"axis", AttrSpec::kInt},
    {"block_size", AttrSpec::kInt},
    {"reduce_range", AttrSpec::kInt},
    {"narrow_range", AttrSpec::kInt},
    {"quant_min", AttrSpec::kInt},
    {"quant_max", AttrSpec::kInt},
    {"numerics", AttrSpec::kString},
    {"eps", AttrSpec::kFloat},
    {"averaging_constant", AttrSpec::kFloat},
    {"bins", AttrSpec::kInt},
    {"percentile", AttrSpec::kFloat},
    {"absolute", AttrSpec::kInt},
    {"descriptor", AttrSpec::kString},
    {"scale_amax", AttrSpec::kFloat},
    {"scale", AttrSpec::kFloat},
    {"zero_point", AttrSpec::kInt},
    {"min", AttrSpec::kFloat},
    {"max", AttrSpec::kFloat},
};

constexpr qdtype kDtypes[] = {QTN_UINT8, QTN_INT8, QTN_UINT16, QTN_INT16, QTN_INT32,
                              QTN_UINT4, QTN_INT4, QTN_UINT2,  QTN_INT2};
constexpr qscheme kSchemes[] = {QTN_PER_TENSOR_AFFINE,
                                QTN_PER_TENSOR_SYMMETRIC,
                                QTN_PER_CHANNEL_AFFINE,
                                QTN_PER_CHANNEL_SYMMETRIC,
                                QTN_PER_BLOCK_AFFINE,
                                QTN_PER_BLOCK_SYMMETRIC,
                                QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS};
constexpr std::string_view kMagic = "QTNOBSV1", kWithScaledAmax = "QTNOBSV2";

/// The kinds that have a range for each channel or block.
std::string kinds_of_many_ranges() {
  std::string names;
  for (const Kind &kind : kKinds)
    if (kind.many_ranges) names += cat(" ", kind.name);
  return names;
}

const Kind &find_kind(std::string_view name) { return find_named(kKinds, name, "observer", "kind", &Kind::name); }

qdtype parse_dtype(const std::string &name) { return find_named(kDtypes, name, "observer", "dtype", dtype_name); }

qscheme parse_observed_scheme(const std::string &name) {
  return find_named(kSchemes, name, "observer", "scheme", scheme_name);
}

void check_settings(const Kind &kind, const ObserverSettings &s, std::int64_t axis) {
  if (axis < 0 || axis >= static_cast<std::int64_t>(kMaxRank))
    fail(QTN_EINVAL, "observer: axis ", axis, " is outside [0, ", kMaxRank - 1, "]");
  if (!(s.averaging_constant > 0) || s.averaging_constant > 1)
    fail(QTN_EINVAL, "observer: averaging_constant ", s.averaging_constant, " is outside (0, 1]");
  if (s.bins < 2 || s.bins > kind.most_bins)
    fail(QTN_EINVAL, "observer: bins ", s.bins, " of \"", kind.name, "\" is outside [2, ", kind.most_bins, "]");
  if (!(s.percentile >= 0) || s.percentile > 100)
    fail(QTN_EINVAL, "observer: percentile ", s.percentile, " is outside [0, 100]");
  if (!is_per_tensor(s.scheme) && !kind.many_ranges)
    fail(QTN_EUNSUPPORTED, "observer: \"", kind.name, "\" observes per tensor, not ", scheme_name(s.scheme),
         "; other schemes have:", kinds_of_many_ranges());
  // Combinations that have no grid show themselves here rather than after a long calibration.
  constexpr double kLow = 0, kHigh = 1;
  choose_quantizer(s.dtype, s.scheme, 0, std::span(&kLow, 1), std::span(&kHigh, 1), s.choose);
}

/// The grid that the attributes of "fixed" give; scale 0 where they give none.
ScaleZero parse_given(const Kind &kind, const Attrs &attrs, const ObserverSettings &s) {
  std::string given;
  for (const char *key : {"scale", "zero_point", "min", "max"})
    if (attrs.has(key)) given += cat(" ", key);
  if (given.empty()) return {0, 0};
  if (kind.make != make_fixed)
    fail(QTN_EINVAL, "observer: only \"fixed\" is given a grid, \"", kind.name, "\" is given:", given);
  if (given != " scale zero_point" && given != " min max")
    fail(QTN_EINVAL, "observer: \"fixed\" is given scale and zero_point, or min and max, not:", given);
  if (given == " min max")
    return choose_scale(s.dtype, is_symmetric(s.scheme), attrs.get_float("min", 0), attrs.get_float("max", 0),
                        s.choose);
  const ScaleZero grid = {attrs.get_float("scale", 0), attrs.get_int("zero_point", 0)};
  if (!(grid.scale > 0)) fail(QTN_EINVAL, "observer: scale ", grid.scale, " is not positive");
  return grid;
}

}  // namespace

std::vector<std::string_view> observer_kinds() {
  std::vector<std::string_view> names;
  for (const Kind &kind : kKinds) names.push_back(kind.name);
  return names;
}

bool operator==(const ObserverSettings &a, const ObserverSettings &b) {
  return a.dtype == b.dtype && a.scheme == b.scheme && a.axis == b.axis && a.choose.numerics == b.choose.numerics &&
         a.choose.reduce_range == b.choose.reduce_range && a.choose.narrow_range == b.choose.narrow_range &&
         a.choose.eps == b.choose.eps && a.choose.block_size == b.choose.block_size &&
         a.choose.range == b.choose.range && a.choose.scale_amax == b.choose.scale_amax &&
         a.averaging_constant == b.averaging_constant && a.bins == b.bins && a.percentile == b.percentile &&
         a.absolute == b.absolute && a.given.scale == b.given.scale && a.given.zero_point == b.given.zero_point;
}

void check_finite(const Tensor &x, std::string_view who, std::string_view where) {
  const auto count = static_cast<std::size_t>(x.count());
  if (count == 0 || extent_of(x.in_any_order().as<const float>(), count).finite) return;
  const Tensor flat = x.to_contiguous();
  const auto *data = flat.as<const float>();
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(data[i]))
      fail(QTN_EINVAL, who, " has ",
           std::isnan(data[i]) ? "nan"
           : data[i] > 0       ? "inf"
                               : "-inf",
           " at index ", i, where);
}

void Observer::observe(const Tensor &x) {
  if (x.dtype() != QTN_FLOAT32)
    fail(QTN_EDTYPE, "observer: the tensor must be float32, not ", x.quantized() ? "quantized " : "",
         dtype_name(x.dtype()));
  const Tensor flat = x.to_contiguous();
  check_finite(flat, "observer: the tensor");
  observe_finite(flat);
}

void Observer::observe_finite(const Tensor &x) {
  if (x.count() == 0) return;
  const bool per_tensor = !is_per_channel(settings_.scheme) && !is_per_block(settings_.scheme);
  take(per_tensor ? x.in_any_order() : x.to_contiguous());
}

void Observer::merge(const Observer &other) {
  if (kind() != other.kind())
    fail(QTN_EINVAL, "observer: cannot merge a \"", other.kind(), "\" into a \"", kind(), "\"");
  if (!(settings_ == other.settings_)) fail(QTN_EINVAL, "observer: cannot merge observers of different settings");
  if (!other.empty()) take_from(other);
}

QuantizerPtr Observer::quantizer() const {
  if (empty()) fail(QTN_ESTATE, "observer: no data was observed, so there is no range to choose a scale from");
  return choose();
}

std::unique_ptr<Observer> make_observer(const std::string &kind_name, const Attrs &given) {
  const Kind &kind = find_kind(kind_name);
  given.check(kKeys, "observer");
  const Attrs attrs = described(given);
  ObserverSettings s;
  s.dtype = parse_dtype(attrs.get_string("dtype", "uint8"));
  s.scheme = parse_observed_scheme(attrs.get_string("scheme", "per_tensor_affine"));
  const std::int64_t axis = attrs.get_int("axis", 0);
  s.choose = choose_options(attrs, "observer");
  s.averaging_constant = attrs.get_float("averaging_constant", s.averaging_constant);
  s.bins = attrs.get_int("bins", kind.bins);
  s.percentile = attrs.get_float("percentile", kind.percentile);
  s.absolute = attrs.get_int("absolute", s.absolute) != 0;
  check_settings(kind, s, axis);
  s.axis = static_cast<std::int32_t>(axis);
  s.given = parse_given(kind, attrs, s);
  return kind.make(s);
}

std::vector<std::byte> Observer::save() const {
  ByteWriter out;
  const bool scaled = settings_.choose.scale_amax != 1;
  for (const char c : scaled ? kWithScaledAmax : kMagic) out.u8(static_cast<std::uint8_t>(c));
  out.text(kind());
  out.u32(static_cast<std::uint32_t>(settings_.dtype));
  out.u32(static_cast<std::uint32_t>(settings_.scheme));
  out.i64(settings_.axis);
  out.text(numerics_name(settings_.choose.numerics));
  out.u8(settings_.choose.reduce_range);
  out.u8(settings_.choose.narrow_range);
  out.f64(settings_.choose.eps);
  out.i64(settings_.choose.block_size);
  out.u8(settings_.choose.range.has_value());
  out.i64(settings_.choose.range ? settings_.choose.range->lo : 0);
  out.i64(settings_.choose.range ? settings_.choose.range->hi : 0);
  out.f64(settings_.averaging_constant);
  out.i64(settings_.bins);
  out.f64(settings_.percentile);
  out.u8(settings_.absolute);
  out.f64(settings_.given.scale);
  out.i64(settings_.given.zero_point);
  if (scaled) out.f64(settings_.choose.scale_amax);
  write(out);
  return out.take();
}

namespace {

template <class Enum, std::size_t N>
Enum read_one_of(ByteReader &in, const Enum (&list)[N], std::string_view what) {
  const std::uint32_t number = in.u32();
  for (const Enum e : list)
    if (number == static_cast<std::uint32_t>(e)) return e;
  in.broken(cat(what, " ", number, " is unknown"));
}

ObserverSettings read_settings(ByteReader &in, const Kind &kind, bool scaled) {
  ObserverSettings s;
  s.dtype = read_one_of(in, kDtypes, "element type");
  s.scheme = read_one_of(in, kSchemes, "scheme");
  const std::int64_t axis = in.i64();
  s.choose.numerics = parse_numerics(in.text());
  s.choose.reduce_range = in.u8() != 0;
  s.choose.narrow_range = in.u8() != 0;
  s.choose.eps = in.f64();
  s.choose.block_size = in.i64();
  const bool ranged = in.u8() != 0;
  const IntegerRange range = {in.i64(), in.i64()};
  if (ranged) s.choose.range = range;
  s.averaging_constant = in.f64();
  s.bins = in.i64();
  s.percentile = in.f64();
  s.absolute = in.u8() != 0;
  s.given.scale = in.f64();
  s.given.zero_point = in.i64();
  if (scaled) {
    s.choose.scale_amax = in.f64();
    check_scale_amax(s.choose, "observer");
  }
  check_eps(s.choose, "observer");
  check_settings(kind, s, axis);
  s.axis = static_cast<std::int32_t>(axis);
  return s;
}

}  // namespace

std::unique_ptr<Observer> load_observer(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "observer");
  std::string magic;
  for (std::size_t i = 0; i < kMagic.size(); ++i) magic += static_cast<char>(in.u8());
  if (magic != kMagic && magic != kWithScaledAmax) in.broken("not a saved observer");
  try {
    const Kind &kind = find_kind(in.text());
    std::unique_ptr<Observer> observer = kind.make(read_settings(in, kind, magic == kWithScaledAmax));
    observer->read(in);
    if (in.remaining() != 0) in.broken("has bytes after its end");
    return observer;
  } catch (const Error &e) {
    // Settings that no observer can have are, in a file, a broken file.
    throw Error(QTN_EFORMAT, e.what());
  }
}

}  // namespace qtn::quant
