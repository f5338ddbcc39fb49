// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of ONNX Runtime: ONNX's Attention to what came before, whose keys and values are kept in a cache
// that may be longer than what each sequence of the batch has filled.
#include "ops/common/grouped_queries.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"do_rotary", AttrSpec::kInt},          {"kv_num_heads", AttrSpec::kInt},
                               {"local_window_size", AttrSpec::kInt},  {"num_heads", AttrSpec::kInt},
                               {"rotary_interleaved", AttrSpec::kInt}, {"scale", AttrSpec::kFloat},
                               {"smooth_softmax", AttrSpec::kInt},     {"softcap", AttrSpec::kFloat}};
constexpr const char *kName = "GroupQueryAttention";
using enum GroupedForm::Input;

void expect(const char *name, const Tensor *t, const Shape &shape) {
  if (t && !(t->shape() == shape))
    fail(QTN_ESHAPE, kName, ": ", name, " is ", to_string(t->shape()), ", not ", to_string(shape));
}

void refuse_others(const Call &call) {
  for (const std::size_t i : {kAdded, kSink})
    if (call.in(i))
      fail(QTN_EUNSUPPORTED, kName, ": ", i == kAdded ? "attention_bias" : "head_sink", " is not supported");
  for (std::size_t i = kSink + 1; i < call.inputs.size(); ++i)
    if (call.in(i)) fail(QTN_EUNSUPPORTED, kName, ": input ", i, " is not supported");
}

Types infer(const Call &call) {
  const Tensor &q = *call.in(kQuery);
  require_float(kName, "query", &q);
  refuse_others(call);
  if (!call.in(kLengths) || !call.in(kTotal))
    fail(QTN_EINVAL, kName, ": seqlens_k and total_sequence_length must be given");
  if ((call.in(kKey) != nullptr) != (call.in(kValue) != nullptr) ||
      (call.in(kPastKey) != nullptr) != (call.in(kPastValue) != nullptr))
    fail(QTN_EINVAL, kName, ": key and value, past_key and past_value go together");
  const GroupedForm f(call);
  for (const std::size_t i : {kKey, kValue, kPastKey, kPastValue, kCosines, kSines})
    require_float(kName, "each input of numbers", call.in(i));
  const Shape now{f.batches, f.places, f.kv_heads * f.features}, before{f.batches, f.kv_heads, f.past, f.features};
  expect("key", call.in(kKey), now), expect("value", call.in(kValue), now);
  expect("past_key", call.in(kPastKey), before), expect("past_value", call.in(kPastValue), before);
  require_dtype(kName, "seqlens_k", *call.in(kLengths), {QTN_INT32, QTN_INT64});
  if (call.in(kLengths)->count() != f.batches)
    fail(QTN_ESHAPE, kName, ": seqlens_k is ", to_string(call.in(kLengths)->shape()), " for ", f.batches, " batches");
  require_dtype(kName, "total_sequence_length", *call.in(kTotal), {QTN_INT32, QTN_INT64});
  if (call.in(kTotal)->count() != 1)
    fail(QTN_ESHAPE, kName, ": total_sequence_length is ", to_string(call.in(kTotal)->shape()), ", not one number");
  if (call.attrs.get_int("do_rotary", 0) != 0) {
    const Tensor *c = call.in(kCosines);
    if (!c || !call.in(kSines)) fail(QTN_EINVAL, kName, ": do_rotary needs cos_cache and sin_cache");
    if (c->rank() != 2 || c->dim(1) < 1 || 2 * c->dim(1) > f.features || !(c->shape() == call.in(kSines)->shape()))
      fail(QTN_ESHAPE, kName, ": cos_cache is ", to_string(c->shape()), ", sin_cache ",
           to_string(call.in(kSines)->shape()), ", heads have ", f.features, " features");
  }
  if (const Tensor *p = call.in(kPlaces)) {
    require_dtype(kName, "position_ids", *p, {QTN_INT64});
    expect("position_ids", p, {f.batches, f.places});
  }
  if (call.attrs.get_int("smooth_softmax", 0) > 0) fail(QTN_EUNSUPPORTED, kName, ": smooth_softmax is not supported");
  Types types{{q.dtype(), {f.batches, f.places, f.heads * f.features}}};
  if (call.output_count > 1) {
    const std::vector<std::int64_t> total =
        int_values(require_constant(kName, "total_sequence_length", *call.in(kTotal)), "total_sequence_length");
    if (total[0] < 0) fail(QTN_EINVAL, kName, ": total_sequence_length is no length");
    const TensorType cache{q.dtype(), {f.batches, f.kv_heads, std::max(f.past, total[0]), f.features}};
    types.insert(types.end(), {cache, cache});
  }
  types.resize(std::min(call.output_count, types.size()));
  return types;
}

/// ONNX's Attention, where every sequence ends at a place of its own.
void run(const Call &call, std::span<Tensor> outputs) {
  const GroupedForm f(call);
  const std::int64_t room = f.room(call), width = f.heads * f.features;
  const Shape cache{f.batches, f.kv_heads, room, f.features};
  const auto wanted = [&](std::size_t o) {
    return outputs.size() > o && outputs[o].has_data() ? outputs[o] : Tensor(QTN_FLOAT32, cache);
  };
  const GroupedQueries made{Tensor(QTN_FLOAT32, {f.batches, f.heads, f.places, f.features}), wanted(1), wanted(2),
                            Tensor(QTN_INT64, {f.batches})};
  group_queries(call, made);
  if (!outputs[0].has_data()) return;
  Attrs attrs;
  attrs.set("is_causal", std::int64_t{1});
  if (const double scale = call.attrs.get_float("scale", 0); scale != 0) attrs.set("scale", scale);
  if (const double softcap = call.attrs.get_float("softcap", 0); softcap > 0) attrs.set("softcap", softcap);
  if (const std::int64_t window = call.attrs.get_int("local_window_size", -1); window > 0)
    attrs.set("left_window_size", window - 1);
  const Tensor *inputs[] = {&made.queries, &made.keys, &made.values, nullptr, nullptr, nullptr, &made.ends};
  copy_elements(outputs[0].view({f.batches, f.heads, f.places, f.features}, {f.places * width, f.features, width, 1}),
                run_op(kAttention, {attrs, inputs})[0]);
}

/// Every query meets what came before, over all features.
double work(const Call &call) {
  const GroupedForm f(call);
  return 2 * static_cast<double>(f.past + f.places);
}

}  // namespace

const OpDef kGroupQueryAttention{.name = kName,
                                 .domain = kMicrosoft,
                                 .min_inputs = 1,
                                 .max_inputs = 14,
                                 .max_outputs = 3,
                                 .attrs = kAttrs,
                                 .infer = infer,
                                 .run = run,
                                 .shapes_from = {kTotal, 1},
                                 .work = work};

}  // namespace qtn::ops
