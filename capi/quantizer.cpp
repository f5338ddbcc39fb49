// SPDX-License-Identifier: Apache-2.0
#include "core/choose_options.hpp"
#include "core/scheme.hpp"
#include "guard.hpp"
#include "ops/common/dynamic_quantizer.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

constexpr AttrSpec kCreate[] = {{"numerics", AttrSpec::kString},
                                {"block_size", AttrSpec::kInt},
                                {"quant_min", AttrSpec::kInt},
                                {"quant_max", AttrSpec::kInt},
                                {"float_zero_points", AttrSpec::kFloats}};

constexpr AttrSpec kChooseDynamic[] = {{"numerics", AttrSpec::kString}, {"reduce_range", AttrSpec::kInt}};

/// "Symmetric" has its zero in the middle of the range, as qquantizer_choose has it; NVIDIA's is 0.
std::int64_t default_zero(qdtype dtype, qscheme scheme, Numerics numerics, const std::optional<IntegerRange> &range) {
  if (!is_symmetric(scheme) || is_tiny_float(dtype) || numerics == Numerics::nvidia) return 0;
  if (integer_range(dtype).lo < 0) return 0;
  if (numerics == Numerics::tflite) numerics = Numerics::fbgemm;  // which chooses no such grid
  return choose_scale(dtype, true, -1, 1, {.numerics = numerics, .range = range}).zero_point;
}

void check_grid(const char *entry, qdtype dtype, qscheme scheme, std::int32_t axis) {
  constexpr auto kRank = static_cast<std::int32_t>(kMaxRank);
  check_dtype(entry, dtype);
  check_scheme(entry, scheme);
  if (!is_quantizable(dtype)) fail(QTN_EDTYPE, entry, ": ", dtype_name(dtype), " holds no quantized values");
  if (!is_per_tensor(scheme) && (axis < -kRank || axis >= kRank))
    fail(QTN_EINVAL, entry, ": axis is ", axis, ", not from ", -kRank, " to ", kRank - 1);
}

}  // namespace

qstatus qquantizer_create(qquantizer **out, qdtype dtype, qscheme scheme, int32_t axis, const double *scales,
                          const int64_t *zero_points, size_t count, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need_array(entry, scales, count, "scales");
    check_grid(entry, dtype, scheme, axis);
    const Attrs &given = attrs_or_none(attrs);
    given.check(kCreate, entry);
    const Numerics numerics = parse_numerics(given.get_string("numerics", "fbgemm"));
    const bool float_zeros = scheme == QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    if (given.has("float_zero_points") != float_zeros || (float_zeros && zero_points))
      fail(QTN_EINVAL, entry, ": zero points of the scheme ", scheme_name(scheme), " are ",
           float_zeros ? "the attribute float_zero_points" : "integers, not float_zero_points");
    if (float_zeros) {
      if (const std::int64_t block = given.get_int("block_size", 0); block != 0)
        fail(QTN_EINVAL, "quantizer: block size ", block, " for a scheme without blocks");
      *out = new qquantizer{std::make_shared<Quantizer>(dtype, axis, std::vector<double>(scales, scales + count),
                                                        given.get_floats("float_zero_points"), numerics,
                                                        given_range(given, entry))};
      return;
    }
    const std::optional<IntegerRange> range = given_range(given, entry);
    std::vector<std::int64_t> zeros(count, default_zero(dtype, scheme, numerics, range));
    if (zero_points) zeros.assign(zero_points, zero_points + count);
    *out =
        new qquantizer{std::make_shared<Quantizer>(dtype, scheme, axis, std::vector<double>(scales, scales + count),
                                                   std::move(zeros), numerics, given.get_int("block_size", 0), range)};
  });
}

qstatus qquantizer_choose(qquantizer **out, qdtype dtype, qscheme scheme, int32_t axis, const double *mins,
                          const double *maxs, size_t count, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need_array(entry, mins, count, "mins");
    need_array(entry, maxs, count, "maxs");
    check_grid(entry, dtype, scheme, axis);
    const Attrs &given = attrs_or_none(attrs);
    given.check(kChooseKeys, entry);
    *out = new qquantizer{
        choose_quantizer(dtype, scheme, axis, {mins, count}, {maxs, count}, choose_options(given, entry))};
  });
}

qstatus qquantizer_choose_dynamic(qquantizer **out, qdtype dtype, const qtensor *x, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    check_dtype(entry, dtype);
    if (dtype != QTN_UINT8 && dtype != QTN_INT8)
      fail(QTN_EDTYPE, entry, ": dtype is ", dtype_name(dtype), ", neither uint8 nor int8");
    const Tensor &t = x->value;
    if (t.quantized()) fail(QTN_EDTYPE, entry, ": x is quantized, not float32");
    if (t.dtype() != QTN_FLOAT32) fail(QTN_EDTYPE, entry, ": x is ", dtype_name(t.dtype()), ", not float32");
    const Attrs &given = attrs_or_none(attrs);
    given.check(kChooseDynamic, entry);
    *out = new qquantizer{ops::choose_dynamic(entry, dtype, t.to_contiguous(), choose_options(given, entry))};
  });
}

void qquantizer_free(qquantizer *q) { delete alive(q); }

qdtype qquantizer_dtype(const qquantizer *q) { return alive(q) ? q->value->dtype() : qdtype{}; }
qscheme qquantizer_scheme(const qquantizer *q) { return alive(q) ? q->value->scheme() : qscheme{}; }
int32_t qquantizer_axis(const qquantizer *q) { return alive(q) ? q->value->axis() : 0; }
size_t qquantizer_count(const qquantizer *q) { return alive(q) ? q->value->count() : 0; }
const double *qquantizer_scales(const qquantizer *q) { return alive(q) ? q->value->scales().data() : nullptr; }
const int64_t *qquantizer_zero_points(const qquantizer *q) {
  return alive(q) ? q->value->zero_points().data() : nullptr;
}
const double *qquantizer_float_zero_points(const qquantizer *q) {
  return alive(q) && q->value->zeros_are_floats() ? q->value->float_zero_points().data() : nullptr;
}
int64_t qquantizer_block_size(const qquantizer *q) { return alive(q) ? q->value->block_size() : 0; }
int64_t qquantizer_quant_min(const qquantizer *q) { return alive(q) ? q->value->range().lo : 0; }
int64_t qquantizer_quant_max(const qquantizer *q) { return alive(q) ? q->value->range().hi : 0; }
const char *qquantizer_numerics(const qquantizer *q) { return alive(q) ? numerics_name(q->value->numerics()) : ""; }
