// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of ONNX Runtime: attention to what came before, whose keys and values are kept in a cache that may
// be longer than what each sequence of the batch has filled, or hold the last of its places alone.
#include "base/parallel.hpp"
#include "blas/gemm.hpp"
#include "ops/common/attention.hpp"
#include "ops/common/grouped_queries.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"causal", AttrSpec::kInt},          {"do_rotary", AttrSpec::kInt},
                               {"k_quant_type", AttrSpec::kString}, {"kv_cache_bit_width", AttrSpec::kInt},
                               {"kv_num_heads", AttrSpec::kInt},    {"local_window_size", AttrSpec::kInt},
                               {"num_heads", AttrSpec::kInt},       {"qk_norm_epsilon", AttrSpec::kFloat},
                               {"qk_output", AttrSpec::kInt},       {"rotary_interleaved", AttrSpec::kInt},
                               {"scale", AttrSpec::kFloat},         {"sliding_window_cache", AttrSpec::kInt},
                               {"smooth_softmax", AttrSpec::kInt},  {"softcap", AttrSpec::kFloat},
                               {"v_quant_type", AttrSpec::kString}};
constexpr const char *kName = "GroupQueryAttention";
using enum GroupedForm::Input;
using Form = GroupedForm;

/// An attribute of 0 to `most`.
std::int64_t limited(const Attrs &attrs, const char *name, std::int64_t fallback, std::int64_t most) {
  const std::int64_t value = attrs.get_int(name, fallback);
  if (value < 0 || value > most)
    fail(QTN_EUNSUPPORTED, kName, ": ", name, " is ", value, ", supported are 0 to ", most);
  return value;
}

void check_caches(const Attrs &attrs) {
  const std::string keys = attrs.get_string("k_quant_type", "NONE"), values = attrs.get_string("v_quant_type", "NONE");
  const bool floats = keys == "NONE";
  if (keys != values || (!floats && keys != "PER_TENSOR" && keys != "PER_CHANNEL"))
    fail(QTN_EUNSUPPORTED, kName, ": k_quant_type is ", keys, ", v_quant_type ", values,
         ", supported are NONE, PER_TENSOR and PER_CHANNEL for both");
  if (const std::int64_t bits = attrs.get_int("kv_cache_bit_width", 0); floats ? bits != 0 : bits != 4 && bits != 8)
    fail(QTN_EUNSUPPORTED, kName, ": kv_cache_bit_width is ", bits, " where k_quant_type is ", keys);
}

void check(const Call &call) {
  const Attrs &attrs = call.attrs;
  if (attrs.get_int("smooth_softmax", 0) > 0) limited(attrs, "smooth_softmax", 0, 1);
  check_caches(attrs);
  const std::int64_t window = attrs.get_int("local_window_size", -1);
  if (limited(attrs, "causal", 1, 1) == 0 && window > 0)
    fail(QTN_EUNSUPPORTED, kName, ": causal is 0, and local_window_size ", window);
  const std::int64_t slides = limited(attrs, "sliding_window_cache", 0, 1), shown = limited(attrs, "qk_output", 0, 2);
  if (slides != 0 && window < 1) fail(QTN_EINVAL, kName, ": sliding_window_cache is 1, and local_window_size ", window);
  if (slides != 0 && shown != 0) fail(QTN_EUNSUPPORTED, kName, ": qk_output is ", shown, " with sliding_window_cache");
  if (shown == 0 && call.output_count > Form::kScores) fail(QTN_EINVAL, kName, ": qk_output is 0, with an output");
  for (const std::size_t i : {kQueryNorm, kKeyNorm})
    if (call.in(i))
      fail(QTN_EUNSUPPORTED, kName, ": ", i == kQueryNorm ? "q_norm_weight" : "k_norm_weight", " is not supported");
}

void expect(const char *name, const Tensor *t, const Shape &shape) {
  if (t && !(t->shape() == shape))
    fail(QTN_ESHAPE, kName, ": ", name, " is ", to_string(t->shape()), ", not ", to_string(shape));
}

void check_rotary(const Call &call, const Form &f) {
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
}

void check_past(const Call &call, const Form &f) {
  const Shape before = f.cache_shape(f.past);
  for (const auto &[name, i] : {std::pair{"past_key", kPastKey}, std::pair{"past_value", kPastValue}})
    if (const Tensor *past = call.in(i)) {
      require_dtype(kName, name, *past, {f.cache_dtype()});
      expect(name, past, before);
    }
  if (f.slides && (!call.in(kPastKey) || f.past < f.window))
    fail(QTN_EINVAL, kName, ": past_key has ", f.past, " places for a window of ", f.window);
  if (f.bits == 0) return;
  if (f.bits == 4 && f.features % 2 != 0)
    fail(QTN_EUNSUPPORTED, kName, ": heads have ", f.features, " features, and pairs of 4 bits are supported");
  const std::int64_t count = f.by_channel ? f.kv_heads * f.features : 1;
  for (const auto &[name, i] : {std::pair{"k_scale", kKeyScale}, std::pair{"v_scale", kValueScale}}) {
    if (!call.in(i)) fail(QTN_EINVAL, kName, ": ", name, " is absent");
    require_float(kName, name, call.in(i));
    if (call.in(i)->count() != count)
      fail(QTN_ESHAPE, kName, ": ", name, " is ", to_string(call.in(i)->shape()), ", not ", count, " numbers");
  }
}

void check_scores(const Call &call, const Form &f) {
  require_float(kName, "attention_bias", call.in(kAdded));
  if (const Tensor *added = call.in(kAdded)) {
    const Shape &s = added->shape();
    if (s.size() != 4 || (s[0] != 1 && s[0] != f.batches) || (s[1] != 1 && s[1] != f.heads) || s[2] != f.places)
      fail(QTN_ESHAPE, kName, ": attention_bias is ", to_string(s), " for ", f.batches, " batches of ", f.heads,
           " heads and ", f.places, " places");
  }
  require_float(kName, "head_sink", call.in(kSink));
  expect("head_sink", call.in(kSink), {f.heads});
}

void require_total(const Call &call) {
  if (const Tensor &total = require_constant(kName, "total_sequence_length", *call.in(kTotal));
      int_values(total, "total_sequence_length")[0] < 0)
    fail(QTN_EINVAL, kName, ": total_sequence_length is no length");
}

Types infer(const Call &call) {
  const Tensor &q = *call.in(kQuery);
  require_float(kName, "query", &q);
  if (!call.in(kLengths) || !call.in(kTotal))
    fail(QTN_EINVAL, kName, ": seqlens_k and total_sequence_length must be given");
  if ((call.in(kKey) != nullptr) != (call.in(kValue) != nullptr) ||
      (call.in(kPastKey) != nullptr) != (call.in(kPastValue) != nullptr))
    fail(QTN_EINVAL, kName, ": key and value, past_key and past_value go together");
  const Form f(call);
  for (const std::size_t i : {kKey, kValue, kCosines, kSines})
    require_float(kName, "each input of numbers", call.in(i));
  const Shape now{f.batches, f.places, f.kv_heads * f.features};
  expect("key", call.in(kKey), now), expect("value", call.in(kValue), now);
  require_dtype(kName, "seqlens_k", *call.in(kLengths), {QTN_INT32, QTN_INT64});
  if (call.in(kLengths)->count() != f.batches)
    fail(QTN_ESHAPE, kName, ": seqlens_k is ", to_string(call.in(kLengths)->shape()), " for ", f.batches, " batches");
  require_dtype(kName, "total_sequence_length", *call.in(kTotal), {QTN_INT32, QTN_INT64});
  if (call.in(kTotal)->count() != 1)
    fail(QTN_ESHAPE, kName, ": total_sequence_length is ", to_string(call.in(kTotal)->shape()), ", not one number");
  check_past(call, f);
  check_rotary(call, f);
  check_scores(call, f);
  const bool caches = call.output_count > 1, shows = call.output_count > Form::kScores;
  if (caches && (!f.slides || shows)) require_total(call);
  const TensorType cache{f.cache_dtype(), f.cache_shape(caches ? f.room(call) : 0)};
  Types types{{q.dtype(), {f.batches, f.places, f.heads * f.features}},
              cache,
              cache,
              {q.dtype(), {f.batches, f.heads, f.places, shows ? f.total(call) : 0}}};
  types.resize(call.output_count);
  return types;
}

/// What of the scores is shown.
enum class Shown { nothing, scores, shares };

class Attending {
 public:
  Attending(const Call &call, const GroupedQueries &made, std::span<Tensor> outputs)
      : call_(call), f_(call), made_(made), added_(call.in(kAdded)) {
    if (outputs[Form::kY].has_data()) y_ = outputs[Form::kY];
    if (outputs.size() > Form::kScores && outputs[Form::kScores].has_data()) {
      scores_ = outputs[Form::kScores];
      shown_ = call.attrs.get_int("qk_output", 0) == 1 ? Shown::scores : Shown::shares;
      std::fill_n(scores_.as<float>(), scores_.count(), 0.0f);
    }
  }

  void run() const {
    if (!y_.has_data() && shown_ == Shown::nothing) return;
    for (std::int64_t batch = 0; batch < f_.batches; ++batch) {
      const std::int64_t end = made_.ends.as<std::int64_t>()[batch],
                         rows = attention::rows_at_a_time(std::max<std::int64_t>(1, f_.places), end);
      const Tensor memory(QTN_FLOAT32, {rows, end});
      for (std::int64_t head = 0; head < f_.heads; ++head)
        for (std::int64_t first = 0; first < f_.places; first += rows)
          run_rows(batch, head, first, std::min(rows, f_.places - first), memory);
    }
  }

 private:
  void run_rows(std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count,
                const Tensor &memory) const {
    const std::int64_t shared = head / (f_.heads / f_.kv_heads), end = memory.dim(1), width = f_.heads * f_.features;
    float *scores = memory.as<float>();
    blas::gemm(count, end, f_.features, static_cast<float>(f_.scale),
               attention::matrix<float>(made_.queries, batch, head, first), {f_.features},
               attention::matrix<float>(made_.keys, batch, shared), {f_.features, true}, 0.0f, scores, end);
    parallel_for(static_cast<std::size_t>(count), [&](std::size_t i) {
      const auto row = static_cast<std::int64_t>(i);
      run_row(batch, head, first + row, end, scores + row * end);
    });
    if (y_.has_data())
      blas::gemm(count, f_.features, end, 1.0f, scores, {end}, attention::matrix<float>(made_.values, batch, shared),
                 {f_.features}, 0.0f, y_.as<float>() + (batch * f_.places + first) * width + head * f_.features, width);
  }

  /// Scores of a query to the shares of keys, of which the first `end` are there.
  void run_row(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t end, float *scores) const {
    const std::int64_t at = end - f_.places + query,
                       begin = f_.window > 0 ? std::max<std::int64_t>(0, at - f_.window + 1) : 0,
                       count = (f_.causal ? at + 1 : end) - begin;
    float *seen = scores + begin;
    if (f_.softcap > 0) attention::cap(seen, count, static_cast<float>(f_.softcap));
    if (added_) {
      const float *added = row_of(*added_, batch, head, query) + f_.before(call_, batch) + f_.places - end + begin;
      for (std::int64_t j = 0; j < count; ++j) seen[j] += added[j];
    }
    show(Shown::scores, batch, head, query, begin, {seen, static_cast<std::size_t>(count)});
    const float nothing = 0, *sink = call_.in(kSink) ? call_.in(kSink)->as<const float>() + head : &nothing;
    attention::softmax(seen, count, call_.in(kSink) || f_.smooth ? sink : nullptr);
    show(Shown::shares, batch, head, query, begin, {seen, static_cast<std::size_t>(count)});
    std::fill_n(scores, begin, 0.0f);
    std::fill(seen + count, scores + end, 0.0f);
  }

  void show(Shown what, std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t begin,
            std::span<const float> seen) const {
    if (what == shown_) std::ranges::copy(seen, row_of(scores_, batch, head, query) + begin);
  }

  /// The row of a query in a contiguous tensor whose first axes may be 1.
  static float *row_of(const Tensor &t, std::int64_t batch, std::int64_t head, std::int64_t query) {
    const std::int64_t b = t.dim(0) == 1 ? 0 : batch, h = t.dim(1) == 1 ? 0 : head;
    return t.as<float>() + ((b * t.dim(1) + h) * t.dim(2) + query) * t.dim(3);
  }

  const Call &call_;
  Form f_;
  const GroupedQueries &made_;
  const Tensor *added_;
  Tensor y_, scores_;
  Shown shown_ = Shown::nothing;
};

void run(const Call &call, std::span<Tensor> outputs) {
  const Form f(call);
  const auto cache = [&](std::size_t o) {
    return outputs.size() > o && outputs[o].has_data() ? outputs[o]
                                                       : Tensor(f.cache_dtype(), f.cache_shape(f.room(call)));
  };
  GroupedQueries made{Tensor(QTN_FLOAT32, {f.batches, f.heads, f.places, f.features}),
                      {},
                      {},
                      Tensor(QTN_INT64, {f.batches}),
                      cache(Form::kPresentKey),
                      cache(Form::kPresentValue)};
  const auto seen = [&](const Tensor &present) {
    return f.attends_to_caches() ? present : Tensor(QTN_FLOAT32, f.keys_shape(call));
  };
  made.keys = seen(made.present_keys), made.values = seen(made.present_values);
  group_queries(call, made);
  Attending(call, made, outputs).run();
}

qdtype output_dtype(const Attrs &attrs, std::size_t output, qdtype query) {
  if (output != Form::kPresentKey && output != Form::kPresentValue) return query;
  const std::int64_t bits = attrs.get_int("kv_cache_bit_width", 0);
  return bits == 4 ? QTN_UINT8 : bits == 8 ? QTN_INT8 : query;
}

/// Every query meets what came before, over all features.
double work(const Call &call) {
  const Form f(call);
  return 2 * (static_cast<double>(f.past) + static_cast<double>(f.places));
}

}  // namespace

const OpDef kGroupQueryAttention{.name = kName,
                                 .domain = kMicrosoft,
                                 .min_inputs = 1,
                                 .max_inputs = 16,
                                 .max_outputs = 4,
                                 .attrs = kAttrs,
                                 .check = check,
                                 .infer = infer,
                                 .run = run,
                                 .shapes_from = {kTotal, 1},
                                 .work = work,
                                 .output_dtype = output_dtype};

}  // namespace qtn::ops
