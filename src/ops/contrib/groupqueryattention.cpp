// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of ONNX Runtime: ONNX's Attention to what came before, whose keys and values are kept in a cache
// that may be longer than what each sequence of the batch has filled.
#include "base/parallel.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"do_rotary", AttrSpec::kInt},          {"kv_num_heads", AttrSpec::kInt},
                               {"local_window_size", AttrSpec::kInt},  {"num_heads", AttrSpec::kInt},
                               {"rotary_interleaved", AttrSpec::kInt}, {"scale", AttrSpec::kFloat},
                               {"smooth_softmax", AttrSpec::kInt},     {"softcap", AttrSpec::kFloat}};
constexpr const char *kName = "GroupQueryAttention";
constexpr std::int64_t kMostHeads = 1 << 20;
enum Input : std::size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCosines,
  kSines,
  kPlaces,
  kAdded,
  kSink
};

struct Form {
  explicit Form(const Call &call)
      : heads(call.attrs.get_int("num_heads", 0)), kv_heads(call.attrs.get_int("kv_num_heads", 0)) {
    const Tensor &q = *call.in(kQuery);
    if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || heads > kMostHeads)
      fail(QTN_EINVAL, kName, ": num_heads is ", heads, ", kv_num_heads ", kv_heads);
    packed = !call.in(kKey);
    if (q.rank() != 3) fail(QTN_ESHAPE, kName, ": query must have 3 axes, it is ", to_string(q.shape()));
    const std::int64_t all = packed ? heads + 2 * kv_heads : heads;
    if (all > q.dim(2) || q.dim(2) % all != 0)
      fail(QTN_ESHAPE, kName, ": ", all, " heads do not share the features of query ", to_string(q.shape()));
    batches = q.dim(0), places = q.dim(1), features = q.dim(2) / all;
    past = call.in(kPastKey) ? call.in(kPastKey)->rank() == 4 ? call.in(kPastKey)->dim(2) : 0 : 0;
  }
  std::int64_t heads, kv_heads, batches, places, features, past;
  bool packed;
};

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
  const Form f(call);
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

/// Pairs of features of a head turned by the angles of its place.
void turn(float *head, const float *cosines, const float *sines, std::int64_t half, bool interleaved) {
  for (std::int64_t i = 0; i < half; ++i) {
    float &a = head[interleaved ? 2 * i : i], &b = head[interleaved ? 2 * i + 1 : i + half];
    const float x = a, y = b;
    a = x * cosines[i] - y * sines[i];
    b = y * cosines[i] + x * sines[i];
  }
}

class Run {
 public:
  Run(const Call &call, std::span<Tensor> outputs) : call_(call), f_(call) {
    lengths_ = int_values(*call.in(kLengths), "seqlens_k");
    const std::int64_t total = int_values(*call.in(kTotal), "total_sequence_length").at(0);
    room_ = std::max(f_.past, total);
    if (f_.places > room_)
      fail(QTN_EINVAL, kName, ": total_sequence_length is ", total, ", less than the ", f_.places, " places of query");
    for (std::int64_t &last : lengths_) {
      if (last < 0 || last >= room_)
        fail(QTN_EINVAL, kName, ": seqlens_k has ", last, ", total_sequence_length is ", total);
      ++last;
    }
    // All sequences begin here, or none.
    first_ = f_.places == total;
    const Shape cache{f_.batches, f_.kv_heads, room_, f_.features};
    for (std::size_t i = 0; i < 2; ++i) {
      const bool wanted = outputs.size() > i + 1 && outputs[i + 1].has_data();
      caches_[i] = wanted ? outputs[i + 1] : Tensor(QTN_FLOAT32, cache);
      std::fill_n(caches_[i].as<float>(), caches_[i].count(), 0.0f);
    }
    scale_ = call.attrs.get_float("scale", 0);
    softcap_ = call.attrs.get_float("softcap", 0);
    window_ = call.attrs.get_int("local_window_size", -1);
    if (call.in(kPlaces)) places_ = int_values(*call.in(kPlaces), "position_ids");
    check_angles();
  }

  void run(std::span<Tensor> outputs) const {
    parallel_for(static_cast<std::size_t>(f_.batches * f_.kv_heads), [&](std::size_t i) {
      fill(static_cast<std::int64_t>(i) / f_.kv_heads, static_cast<std::int64_t>(i) % f_.kv_heads);
    });
    if (outputs[0].has_data()) attend(outputs[0]);
  }

 private:
  /// Places of a sequence that were there before.
  std::int64_t before(std::int64_t batch) const {
    return first_ ? 0 : std::max<std::int64_t>(lengths_[static_cast<std::size_t>(batch)] - f_.places, 0);
  }

  /// A head of a place of an operand, `offset` heads behind the first of the row.
  const float *given(const Tensor &t, std::int64_t batch, std::int64_t place, std::int64_t head) const {
    return t.as<const float>() + (batch * f_.places + place) * t.dim(2) + head * f_.features;
  }

  std::int64_t angle_at(std::int64_t batch, std::int64_t place) const {
    return places_.empty() ? before(batch) + place : places_[static_cast<std::size_t>(batch * f_.places + place)];
  }

  /// Before tasks in parallel, which must not fail.
  void check_angles() const {
    if (call_.attrs.get_int("do_rotary", 0) == 0) return;
    const std::int64_t angles = call_.in(kCosines)->dim(0);
    for (std::int64_t batch = 0; batch < f_.batches; ++batch)
      for (std::int64_t place = 0; place < f_.places; ++place)
        if (const std::int64_t at = angle_at(batch, place); at < 0 || at >= angles)
          fail(QTN_EINVAL, kName, ": place ", at, " is behind the ", angles, " of cos_cache");
  }

  void rotate(float *head, std::int64_t batch, std::int64_t place) const {
    if (call_.attrs.get_int("do_rotary", 0) == 0) return;
    const Tensor &cosines = *call_.in(kCosines), &sines = *call_.in(kSines);
    const std::int64_t half = cosines.dim(1);
    const std::int64_t at = angle_at(batch, place);
    turn(head, cosines.as<const float>() + at * half, sines.as<const float>() + at * half, half,
         call_.attrs.get_int("rotary_interleaved", 0) != 0);
  }

  void fill(std::int64_t batch, std::int64_t head) const {
    const std::int64_t past = before(batch), row = f_.features;
    for (std::size_t i = 0; i < 2; ++i) {
      float *cache = caches_[i].as<float>() + (batch * f_.kv_heads + head) * room_ * row;
      if (const Tensor *old = call_.in(kPastKey + i))
        std::copy_n(old->as<const float>() + (batch * f_.kv_heads + head) * f_.past * row,
                    std::min(past, f_.past) * row, cache);
      for (std::int64_t p = 0; p < f_.places && past + p < room_; ++p) {
        const float *now =
            f_.packed ? given(*call_.in(kQuery), batch, p, f_.heads + static_cast<std::int64_t>(i) * f_.kv_heads + head)
                      : given(*call_.in(kKey + i), batch, p, head);
        float *to = cache + (past + p) * row;
        std::copy_n(now, row, to);
        if (i == 0) rotate(to, batch, p);
      }
    }
  }

  /// ONNX's Attention, where every sequence ends at a place of its own.
  void attend(const Tensor &y) const {
    const std::int64_t row = f_.features;
    const Tensor queries(QTN_FLOAT32, {f_.batches, f_.heads, f_.places, row});
    parallel_for(static_cast<std::size_t>(f_.batches * f_.heads), [&](std::size_t i) {
      const std::int64_t batch = static_cast<std::int64_t>(i) / f_.heads,
                         head = static_cast<std::int64_t>(i) % f_.heads;
      for (std::int64_t p = 0; p < f_.places; ++p) {
        float *query = queries.as<float>() + (static_cast<std::int64_t>(i) * f_.places + p) * row;
        std::copy_n(given(*call_.in(kQuery), batch, p, head), row, query);
        rotate(query, batch, p);
      }
    });
    std::vector<std::int64_t> ends;
    for (std::int64_t batch = 0; batch < f_.batches; ++batch) ends.push_back(before(batch) + f_.places);
    const Tensor lengths = Tensor::from_ints(ends);
    Attrs attrs;
    attrs.set("is_causal", std::int64_t{1});
    if (scale_ != 0) attrs.set("scale", scale_);
    if (softcap_ > 0) attrs.set("softcap", softcap_);
    if (window_ > 0) attrs.set("left_window_size", window_ - 1);
    const Tensor *inputs[] = {&queries, &caches_[0], &caches_[1], nullptr, nullptr, nullptr, &lengths};
    const std::int64_t width = f_.heads * row;
    copy_elements(y.view({f_.batches, f_.heads, f_.places, row}, {f_.places * width, row, width, 1}),
                  run_op(kAttention, {attrs, inputs})[0]);
  }

  const Call &call_;
  Form f_;
  std::vector<std::int64_t> lengths_, places_;
  std::int64_t room_, window_;
  bool first_;
  Tensor caches_[2];
  double scale_, softcap_;
};

void run(const Call &call, std::span<Tensor> outputs) { Run(call, outputs).run(outputs); }

/// Every query meets what came before, over all features.
double work(const Call &call) {
  const Form f(call);
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
