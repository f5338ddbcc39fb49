// SPDX-License-Identifier: Apache-2.0
// LinearAttention of opset 27: a matrix of each head, to which every place adds the product of its key and value. As
// that of ONNX Runtime, it also takes fewer heads of queries and keys than of values, which then share them.
#include <cmath>

#include "base/counted.hpp"
#include "base/size.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/lane_tasks.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"chunk_size", AttrSpec::kInt},
                               {"kv_num_heads", AttrSpec::kInt},
                               {"q_num_heads", AttrSpec::kInt},
                               {"scale", AttrSpec::kFloat},
                               {"update_rule", AttrSpec::kString}};
constexpr const char *kName = "LinearAttention";

/// Attributes, and how many of what the operands hold: places of d_k or d_v features for each head.
struct Form {
  explicit Form(const Call &call)
      : q_heads(call.attrs.get_int("q_num_heads", 0)),
        kv_heads(call.attrs.get_int("kv_num_heads", 0)),
        rule(call.attrs.get_string("update_rule", "gated_delta")) {
    if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
      fail(QTN_EINVAL, kName, ": update_rule is \"", rule,
           "\", not \"linear\", \"gated\", \"delta\" or \"gated_delta\"");
    if (q_heads < 1 || kv_heads < 1 || std::max(q_heads, kv_heads) % std::min(q_heads, kv_heads) != 0)
      fail(QTN_EINVAL, kName, ": q_num_heads is ", q_heads, " and kv_num_heads ", kv_heads,
           ", of which neither is a multiple of the other");
    for (const std::size_t i : {0, 1, 2})
      if (call.in(i)->rank() != 3)
        fail(QTN_ESHAPE, kName, ": query, key and value must have 3 axes, one is ", to_string(call.in(i)->shape()));
    if (q_heads > call.in(0)->dim(2) || kv_heads > call.in(2)->dim(2))
      fail(QTN_ESHAPE, kName, ": ", q_heads, " and ", kv_heads, " heads for query ", to_string(call.in(0)->shape()),
           " and value ", to_string(call.in(2)->shape()));
    batches = call.in(0)->dim(0), places = call.in(0)->dim(1);
    d_k = call.in(0)->dim(2) / q_heads, d_v = call.in(2)->dim(2) / kv_heads;
    const std::int64_t fewer = call.in(1)->dim(2) / d_k;
    key_heads = fewer > 0 && kv_heads % fewer == 0 ? fewer : kv_heads;
  }

  bool gated() const { return rule.starts_with("gated"); }
  bool corrected() const { return rule.ends_with("delta"); }
  std::int64_t y_heads() const { return std::max(q_heads, kv_heads); }
  Shape state() const { return {batches, kv_heads, d_k, d_v}; }

  std::int64_t q_heads, kv_heads, key_heads, batches, places, d_k, d_v;
  std::string rule;
};

void check_rate(const char *name, const Tensor *t, bool wanted, const Form &f, std::int64_t one, std::int64_t other) {
  if ((t != nullptr) != wanted)
    fail(QTN_EINVAL, kName, ": update_rule \"", f.rule, wanted ? "\" needs the input " : "\" takes no input ", name);
  if (!t) return;
  if (t->rank() != 3 || t->dim(0) != f.batches || t->dim(1) != f.places || (t->dim(2) != one && t->dim(2) != other))
    fail(QTN_ESHAPE, kName, ": ", name, " is ", to_string(t->shape()), ", not ",
         to_string(Shape{f.batches, f.places, one}), " or ", to_string(Shape{f.batches, f.places, other}));
}

Types infer(const Call &call) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.in(i)) require_dtype(kName, "each input", *call.in(i), {QTN_FLOAT32, QTN_FLOAT16, QTN_BFLOAT16});
  const Form f(call);
  require_shape(kName, "query", *call.in(0), {f.batches, f.places, mul_dims(kName, f.q_heads, f.d_k)});
  require_shape(kName, "key", *call.in(1), {f.batches, f.places, mul_dims(kName, f.key_heads, f.d_k)});
  require_shape(kName, "value", *call.in(2), {f.batches, f.places, mul_dims(kName, f.kv_heads, f.d_v)});
  if (call.in(3)) require_shape(kName, "past_state", *call.in(3), f.state());
  check_rate("decay", call.in(4), f.gated(), f, f.kv_heads, mul_dims(kName, f.kv_heads, f.d_k));
  check_rate("beta", call.in(5), f.corrected(), f, f.kv_heads, 1);
  const qdtype dtype = call.in(0)->dtype();
  Types types{{dtype, {f.batches, f.places, mul_dims(kName, f.y_heads(), f.d_v)}},
              {call.in(3) ? call.in(3)->dtype() : dtype, f.state()}};
  types.resize(call.output_count);
  return types;
}

/// The places of one head, one after the other.
class Head {
 public:
  Head(const Form &f, std::span<const Tensor> in, float scale, const Tensor &y)
      : f_(f), in_(in), scale_(scale), y_(y) {}

  /// `added`: memory for a value.
  void run(std::int64_t batch, std::int64_t head, float *state, float *added) const {
    for (std::int64_t t = 0; t < f_.places; ++t) {
      const std::int64_t place = batch * f_.places + t;
      const std::int64_t shared = head / (f_.kv_heads / f_.key_heads);
      const float *k = in_[1].as<const float>() + (place * f_.key_heads + shared) * f_.d_k,
                  *v = in_[2].as<const float>() + (place * f_.kv_heads + head) * f_.d_v;
      if (f_.gated()) decay(place, head, state);
      std::copy_n(v, f_.d_v, added);
      if (f_.corrected()) correct(place, head, k, state, added);
      for (std::int64_t i = 0; i < f_.d_k; ++i)
        for (std::int64_t j = 0; j < f_.d_v; ++j) state[i * f_.d_v + j] += k[i] * added[j];
      read(place, head, state);
    }
  }

 private:
  void decay(std::int64_t place, std::int64_t head, float *state) const {
    const Tensor &gates = in_[4];
    const bool of_heads = gates.dim(2) == f_.kv_heads;
    const float *g = gates.as<const float>() + place * gates.dim(2) + (of_heads ? head : head * f_.d_k);
    for (std::int64_t i = 0; i < f_.d_k; ++i) {
      const float factor = std::exp(g[of_heads ? 0 : i]);
      for (std::int64_t j = 0; j < f_.d_v; ++j) state[i * f_.d_v + j] *= factor;
    }
  }

  /// What the state does not say about the key yet.
  void correct(std::int64_t place, std::int64_t head, const float *k, const float *state, float *added) const {
    const std::int64_t rates = in_[5].dim(2);
    const float rate = in_[5].as<const float>()[place * rates + (rates == 1 ? 0 : head)];
    for (std::int64_t i = 0; i < f_.d_k; ++i)
      for (std::int64_t j = 0; j < f_.d_v; ++j) added[j] -= state[i * f_.d_v + j] * k[i];
    for (std::int64_t j = 0; j < f_.d_v; ++j) added[j] *= rate;
  }

  void read(std::int64_t place, std::int64_t head, const float *state) const {
    const std::int64_t group = f_.y_heads() / f_.kv_heads;
    for (std::int64_t h = head * group; h < (head + 1) * group; ++h) {
      const std::int64_t shared = h / (f_.y_heads() / f_.q_heads);
      const float *q = in_[0].as<const float>() + (place * f_.q_heads + shared) * f_.d_k;
      float *y = y_.as<float>() + (place * f_.y_heads() + h) * f_.d_v;
      std::fill_n(y, f_.d_v, 0.0f);
      for (std::int64_t i = 0; i < f_.d_k; ++i)
        for (std::int64_t j = 0; j < f_.d_v; ++j) y[j] += q[i] * state[i * f_.d_v + j];
      for (std::int64_t j = 0; j < f_.d_v; ++j) y[j] *= scale_;
    }
  }

  const Form &f_;
  std::span<const Tensor> in_;
  float scale_;
  const Tensor &y_;
};

void run(const Call &call, std::span<Tensor> outputs) {
  const Form f(call);
  std::vector<Tensor> in(6);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (call.in(i)) in[i] = to_plain(*call.in(i));
  const double given = call.attrs.get_float("scale", 0);
  const auto scale = static_cast<float>(given == 0 ? 1 / std::sqrt(static_cast<double>(f.d_k)) : given);
  const Tensor y(QTN_FLOAT32, {f.batches, f.places, f.y_heads() * f.d_v});
  const Tensor states(QTN_FLOAT32, f.state());
  if (call.in(3))
    copy_elements(states, in[3]);
  else
    std::fill_n(states.as<float>(), states.count(), 0.0f);
  const Head heads(f, in, scale, y);
  CountedVector<float> memory((Size(current_threads()) * f.d_v).value());
  for_tasks(f.batches * f.kv_heads, memory.data(), f.d_v, [&](std::int64_t at, float *added) {
    heads.run(at / f.kv_heads, at % f.kv_heads, states.as<float>() + at * f.d_k * f.d_v, added);
  });
  const auto give = [&](std::size_t o, const Tensor &t) {
    if (o < outputs.size() && outputs[o].has_data()) copy_elements(outputs[o], from_plain(t, outputs[o].dtype()));
  };
  give(0, y);
  give(1, states);
}

/// Each value meets all features of its key three or four times.
double work(const Call &call) { return 4 * static_cast<double>(Form(call).d_k); }

}  // namespace

const OpDef kLinearAttention{.name = kName,
                             .min_inputs = 3,
                             .max_inputs = 6,
                             .max_outputs = 2,
                             .attrs = kAttrs,
                             .any_type = true,
                             .infer = infer,
                             .run = run,
                             .work = work};

}  // namespace qtn::ops
