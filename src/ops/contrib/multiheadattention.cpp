// SPDX-License-Identifier: Apache-2.0
// MultiHeadAttention of ONNX Runtime: ONNX's Attention with a bias of queries, keys and values, and with masks that say
// which keys are padding.
#include <limits>

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/padding_row.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"mask_filter_value", AttrSpec::kFloat},
                               {"num_heads", AttrSpec::kInt},
                               {"scale", AttrSpec::kFloat},
                               {"unidirectional", AttrSpec::kInt}};
constexpr const char *kName = "MultiHeadAttention";
enum Input : std::size_t { kQuery, kKey, kValue, kBias, kPadding, kAdded, kPastKey, kPastValue };

/// Sizes of a call. Keys and values may come as [batch, places, features] or as heads, [batch, head, place, feature].
struct Form {
  explicit Form(const Call &call) : heads(call.attrs.get_int("num_heads", 0)) {
    const Tensor &q = *call.in(kQuery);
    if (q.rank() == 5 || !call.in(kKey) || !call.in(kValue) || call.in(kKey)->rank() == 5)
      fail(QTN_EUNSUPPORTED, kName, ": queries, keys and values in one tensor are not supported");
    const Tensor &k = *call.in(kKey), &v = *call.in(kValue);
    if (q.rank() != 3 || k.rank() != v.rank() || (k.rank() != 3 && k.rank() != 4))
      fail(QTN_ESHAPE, kName, ": query is ", to_string(q.shape()), ", key ", to_string(k.shape()), ", value ",
           to_string(v.shape()));
    split = k.rank() == 4;
    batches = q.dim(0), queries = q.dim(1), keys = k.dim(split ? 2 : 1);
    past = call.in(kPastKey) ? call.in(kPastKey)->dim(2) : 0;
    if (heads < 1 || heads > q.dim(2) || q.dim(2) % heads != 0)
      fail(QTN_EINVAL, kName, ": num_heads is ", heads, ", query ", to_string(q.shape()));
    features = q.dim(2) / heads;
    values = split ? v.dim(3) : v.dim(2) / heads;
    const Shape k_wanted = split ? Shape{batches, heads, keys, features} : Shape{batches, keys, heads * features},
                v_wanted = split ? Shape{batches, heads, keys, values} : Shape{batches, keys, heads * values};
    if (!(k.shape() == k_wanted) || !(v.shape() == v_wanted))
      fail(QTN_ESHAPE, kName, ": of ", heads, " heads, query is ", to_string(q.shape()), ", key ", to_string(k.shape()),
           ", value ", to_string(v.shape()));
  }
  std::int64_t total() const { return past + keys; }

  std::int64_t heads, batches, queries, keys, past, features, values;
  bool split;
};

void check_masks(const Call &call, const Form &f) {
  if (const Tensor *m = call.in(kPadding)) {
    require_dtype(kName, "key_padding_mask", *m, {QTN_INT32, QTN_INT64});
    const Shape &s = m->shape();
    if (!(s == Shape{f.batches}) && !(s == Shape{2 * f.batches}) && !(s == Shape{f.batches, f.total()}) &&
        !(s == Shape{f.batches, f.queries, f.total()}))
      fail(s == Shape{3 * f.batches + 2} ? QTN_EUNSUPPORTED : QTN_ESHAPE, kName, ": key_padding_mask is ", to_string(s),
           " for ", f.batches, " batches of ", f.queries, " queries and ", f.total(), " keys");
  }
  if (const Tensor *m = call.in(kAdded)) {
    require_same_dtype(kName, *m, *call.in(kQuery));
    const Shape scores{f.batches, f.heads, f.queries, f.total()};
    bool fits = m->rank() == 4;
    for (std::size_t i = 0; fits && i < 4; ++i) fits = m->dim(i) == scores[i] || (i < 2 && m->dim(i) == 1);
    if (!fits) fail(QTN_ESHAPE, kName, ": attention_bias is ", to_string(m->shape()), ", scores ", to_string(scores));
  }
}

Types infer(const Call &call) {
  const Tensor &q = *call.in(kQuery);
  require_real(kName, "query", &q);
  for (const std::size_t i : {kKey, kValue, kBias, kPastKey, kPastValue})
    if (call.in(i)) require_same_dtype(kName, q, *call.in(i));
  for (std::size_t i = kPastValue + 1; i < call.inputs.size(); ++i)
    if (call.in(i)) fail(QTN_EUNSUPPORTED, kName, ": input ", i, " is not supported");
  if ((call.in(kPastKey) != nullptr) != (call.in(kPastValue) != nullptr))
    fail(QTN_EINVAL, kName, ": past_key and past_value go together");
  if (call.in(kPastKey) && call.in(kPastKey)->rank() != 4)
    fail(QTN_ESHAPE, kName, ": past_key is ", to_string(call.in(kPastKey)->shape()));
  const Form f(call);
  if (call.in(kPastKey) && (!(call.in(kPastKey)->shape() == Shape{f.batches, f.heads, f.past, f.features}) ||
                            !(call.in(kPastValue)->shape() == Shape{f.batches, f.heads, f.past, f.values})))
    fail(QTN_ESHAPE, kName, ": past_key is ", to_string(call.in(kPastKey)->shape()), ", past_value ",
         to_string(call.in(kPastValue)->shape()), ", query ", to_string(q.shape()));
  const std::int64_t columns = f.heads * (2 * f.features + f.values);
  if (call.in(kBias) && !(call.in(kBias)->shape() == Shape{columns}))
    fail(QTN_ESHAPE, kName, ": bias is ", to_string(call.in(kBias)->shape()), ", not ", columns, " numbers");
  check_masks(call, f);
  Types types{{q.dtype(), {f.batches, f.queries, f.heads * f.values}},
              {q.dtype(), {f.batches, f.heads, f.total(), f.features}},
              {q.dtype(), {f.batches, f.heads, f.total(), f.values}}};
  types.resize(call.output_count);
  return types;
}

/// x + its part of the bias, in heads. What comes in heads has its bias.
template <class T>
Tensor heads_of(const Tensor &x, const Tensor *bias, std::int64_t first, std::int64_t heads) {
  if (x.rank() == 4) return x;
  Tensor sum = x;
  if (bias) {
    const Tensor part = bias->slice(0, first, first + x.dim(2), 1);
    sum = Tensor(x.dtype(), x.shape());
    map_broadcast<T, T>(x, part, x.shape(), sum.as<T>(), [](T a, T b) { return a + b; });
  }
  const std::int64_t features = x.dim(2) / heads;
  return sum.view({x.dim(0), heads, x.dim(1), features}, {x.dim(1) * x.dim(2), features, x.dim(2), 1}).clone();
}

/// What is added to scores because their keys are padding, [batch, 1, 1 or query, key].
template <class T>
Tensor padding_of(const Call &call, const Form &f) {
  const Tensor &mask = *call.in(kPadding);
  const std::int64_t rows = mask.rank() == 3 ? f.queries : 1, keys = f.total();
  const Tensor added(call.in(kQuery)->dtype(), {f.batches, 1, rows, keys});
  const double hidden = call.attrs.get_float("mask_filter_value", PaddingRow::kHidden);
  for (std::int64_t i = 0; i < f.batches * rows; ++i)
    PaddingRow{mask, f.batches, i / rows, i % rows, hidden}.write(added.as<T>() + i * keys,
                                                                  static_cast<std::size_t>(keys));
  return added;
}

/// All that is added to scores, or no tensor.
template <class T>
Tensor mask_of(const Call &call, const Form &f) {
  Tensor mask;
  if (call.in(kPadding)) mask = padding_of<T>(call, f);
  if (const Tensor *added = call.in(kAdded)) {
    if (!mask.has_data()) return *added;
    const Shape shape = broadcast(mask.shape(), added->shape(), kName);
    const Tensor sum(added->dtype(), shape);
    map_broadcast<T, T>(mask, *added, shape, sum.as<T>(), [](T a, T b) { return a + b; });
    return sum;
  }
  return mask;
}

/// Keys behind a query are hidden as far as numbers reach, so that a query which sees nothing else sees them all.
template <class T>
Tensor causal(const Tensor &mask, const Form &f, qdtype dtype) {
  const Tensor ahead(dtype, {f.queries, f.total()});
  for (std::int64_t i = 0; i < ahead.count(); ++i)
    ahead.as<T>()[i] = i % f.total() > f.past + i / f.total() ? std::numeric_limits<T>::lowest() : T(0);
  if (!mask.has_data()) return ahead;
  const Shape shape = broadcast(mask.shape(), ahead.shape(), kName);
  const Tensor sum(dtype, shape);
  map_broadcast<T, T>(mask, ahead, shape, sum.as<T>(), [](T a, T b) { return b < 0 ? b : a + b; });
  return sum;
}

template <class T>
void attend(const Call &call, std::span<Tensor> outputs) {
  const Form f(call);
  const Tensor *bias = call.in(kBias);
  const Tensor q = heads_of<T>(*call.in(kQuery), bias, 0, f.heads),
               k = heads_of<T>(*call.in(kKey), bias, f.heads * f.features, f.heads),
               v = heads_of<T>(*call.in(kValue), bias, 2 * f.heads * f.features, f.heads);
  Tensor mask = mask_of<T>(call, f);
  if (call.attrs.get_int("unidirectional", 0) != 0 && f.queries > 1) mask = causal<T>(mask, f, q.dtype());
  Attrs attrs;
  if (const double scale = call.attrs.get_float("scale", 0); scale != 0) attrs.set("scale", scale);
  const Tensor *inputs[] = {&q, &k, &v, mask.has_data() ? &mask : nullptr, call.in(kPastKey), call.in(kPastValue)};
  const std::vector<Tensor> made = run_op(kAttention, {attrs, inputs, outputs.size()});
  for (std::size_t o = 1; o < outputs.size(); ++o)
    if (outputs[o].has_data()) copy_elements(outputs[o], made[o]);
  if (!outputs[0].has_data()) return;
  const std::int64_t width = f.heads * f.values;
  copy_elements(outputs[0].view({f.batches, f.heads, f.queries, f.values}, {f.queries * width, f.values, width, 1}),
                made[0]);
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? attend<double>(call, outputs) : attend<float>(call, outputs);
}

/// Every query meets every key, over all features; what that takes is shared by the values of a place.
double work(const Call &call) {
  const Form f(call);
  constexpr double kExponential = 8;  // takes as long as so many products
  return static_cast<double>(f.total()) *
         (1 + (static_cast<double>(f.features) + kExponential) / std::max(1.0, static_cast<double>(f.values)));
}

}  // namespace

const OpDef kMultiHeadAttention{.name = kName,
                                .domain = kMicrosoft,
                                .min_inputs = 1,
                                .max_inputs = 10,
                                .max_outputs = 3,
                                .attrs = kAttrs,
                                .infer = infer,
                                .run = run,
                                .work = work};

}  // namespace qtn::ops
