// SPDX-License-Identifier: Apache-2.0
#include "ops/common/grouped_form.hpp"

#include <cmath>

#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "GroupQueryAttention";
constexpr std::int64_t kMostHeads = 1 << 20;

}  // namespace

GroupedForm::GroupedForm(const Call &call)
    : scale(call.attrs.get_float("scale", 0)),
      softcap(std::max(call.attrs.get_float("softcap", 0), 0.0)),
      window(std::max<std::int64_t>(call.attrs.get_int("local_window_size", -1), 0)),
      causal(call.attrs.get_int("causal", 1) != 0),
      smooth(call.attrs.get_int("smooth_softmax", 0) == 1),
      bits(call.attrs.get_int("kv_cache_bit_width", 0)),
      by_channel(call.attrs.get_string("k_quant_type", "") == "PER_CHANNEL"),
      slides(call.attrs.get_int("sliding_window_cache", 0) != 0),
      heads(call.attrs.get_int("num_heads", 0)),
      kv_heads(call.attrs.get_int("kv_num_heads", 0)),
      packed(!call.in(kKey)) {
  const Tensor &q = *call.in(kQuery);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || heads > kMostHeads)
    fail(QTN_EINVAL, kName, ": num_heads is ", heads, ", kv_num_heads ", kv_heads);
  if (q.rank() != 3) fail(QTN_ESHAPE, kName, ": query must have 3 axes, it is ", to_string(q.shape()));
  const std::int64_t all = packed ? heads + 2 * kv_heads : heads;
  if (all > q.dim(2) || q.dim(2) % all != 0)
    fail(QTN_ESHAPE, kName, ": ", all, " heads do not share the features of query ", to_string(q.shape()));
  batches = q.dim(0), places = q.dim(1), features = q.dim(2) / all;
  past = call.in(kPastKey) && call.in(kPastKey)->rank() == 4 ? call.in(kPastKey)->dim(2) : 0;
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(features));
}

std::int64_t GroupedForm::total(const Call &call) const { return int_at(*call.in(kTotal), 0); }

std::int64_t GroupedForm::before(const Call &call, std::int64_t batch) const {
  if (places == total(call)) return 0;
  return std::max<std::int64_t>(int_at(*call.in(kLengths), batch) + 1 - places, 0);
}

std::int64_t GroupedForm::room(const Call &call) const { return slides ? past : std::max(past, total(call)); }

std::int64_t GroupedForm::keys(const Call &call) const {
  return slides && !attends_to_caches() ? add_dims(kName, past, places) : room(call);
}

std::int64_t GroupedForm::resident(std::int64_t total) const {
  if (!slides || total <= past) return total;
  const std::int64_t step = past - window + 1;
  return total - (total - past + step - 1) / step * step;
}

std::int64_t GroupedForm::int_at(const Tensor &t, std::int64_t i) {
  return t.dtype() == QTN_INT32 ? t.as<const std::int32_t>()[i] : t.as<const std::int64_t>()[i];
}

}  // namespace qtn::ops
