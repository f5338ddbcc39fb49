// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

constexpr AttrSpec kNumericsOnly[] = {{"numerics", AttrSpec::kString}};
constexpr AttrSpec kChoose[] = {{"numerics", AttrSpec::kString},
                                {"reduce_range", AttrSpec::kInt},
                                {"narrow_range", AttrSpec::kInt},
                                {"eps", AttrSpec::kFloat}};

/// "Symmetric" has its zero in the middle of the range.
std::int64_t default_zero(qdtype dtype, qscheme scheme) {
  const IntegerRange range = integer_range(dtype);
  return is_symmetric(scheme) && range.lo == 0 ? (range.hi + 1) / 2 : 0;
}

void check_grid(const char *entry, qdtype dtype, qscheme scheme, std::int32_t axis) {
  check_dtype(entry, dtype);
  check_scheme(entry, scheme);
  if (!is_quantizable(dtype)) fail(QTN_EDTYPE, entry, ": ", dtype_name(dtype), " holds no quantized values");
  if (is_per_channel(scheme) && (axis < 0 || static_cast<std::size_t>(axis) >= kMaxRank))
    fail(QTN_EINVAL, entry, ": axis is ", axis, ", not from 0 to ", kMaxRank - 1);
}

}  // namespace

qstatus qquantizer_create(qquantizer **out, qdtype dtype, qscheme scheme, int32_t axis, const double *scales,
                          const int64_t *zero_points, size_t count, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need_array(entry, scales, count, "scales");
    check_grid(entry, dtype, scheme, axis);
    const Attrs &options = attrs_or_none(attrs);
    options.check(kNumericsOnly, entry);
    std::vector<std::int64_t> zeros(count, default_zero(dtype, scheme));
    if (zero_points) zeros.assign(zero_points, zero_points + count);
    *out = new qquantizer{std::make_shared<Quantizer>(dtype, scheme, is_per_channel(scheme) ? axis : 0,
                                                      std::vector<double>(scales, scales + count), std::move(zeros),
                                                      parse_numerics(options.get_string("numerics", "fbgemm")))};
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
    given.check(kChoose, entry);
    ChooseOptions options;
    options.numerics = parse_numerics(given.get_string("numerics", "fbgemm"));
    options.reduce_range = given.get_int("reduce_range", 0) != 0;
    options.narrow_range = given.get_int("narrow_range", 0) != 0;
    options.eps = given.get_float("eps", options.eps);
    *out = new qquantizer{
        choose_quantizer(dtype, scheme, is_per_channel(scheme) ? axis : 0, {mins, count}, {maxs, count}, options)};
  });
}

void qquantizer_free(qquantizer *q) { delete q; }

qdtype qquantizer_dtype(const qquantizer *q) { return q ? q->value->dtype() : qdtype{}; }
qscheme qquantizer_scheme(const qquantizer *q) { return q ? q->value->scheme() : qscheme{}; }
int32_t qquantizer_axis(const qquantizer *q) { return q ? q->value->axis() : 0; }
size_t qquantizer_count(const qquantizer *q) { return q ? q->value->count() : 0; }
const double *qquantizer_scales(const qquantizer *q) { return q ? q->value->scales().data() : nullptr; }
const int64_t *qquantizer_zero_points(const qquantizer *q) { return q ? q->value->zero_points().data() : nullptr; }
