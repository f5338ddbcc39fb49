// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: forms that ONNX Runtime does not run on a CPU give the bits of those that it does, rows those
// that they have alone, weights of few bits the numbers of the floats that they stand for; and what is refused.
#include <limits>

#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr std::int64_t kExperts = 3, kHidden = 32, kInner = 48, kRows = 30;

Attrs swiglu(std::int64_t fusion) {
  return attrs({{"k", std::int64_t{2}},
                {"activation_type", std::string("swiglu")},
                {"activation_alpha", 1.702},
                {"activation_beta", 1.0},
                {"swiglu_limit", 0.75},
                {"swiglu_fusion", fusion}});
}

/// Rows of a and b, in parts or in turns.
Tensor joined(const Tensor &a, const Tensor &b, bool in_turns) {
  Shape shape = a.shape();
  const std::int64_t rows = shape[1], width = a.count() / (shape[0] * rows);
  shape[1] *= 2;
  const Tensor all(a.dtype(), shape);
  for (std::int64_t e = 0; e < shape[0]; ++e)
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t from = (e * rows + r) * width, to = e * 2 * rows;
      std::copy_n(a.as<const float>() + from, width, all.as<float>() + (to + (in_turns ? 2 * r : r)) * width);
      std::copy_n(b.as<const float>() + from, width,
                  all.as<float>() + (to + (in_turns ? 2 * r + 1 : rows + r)) * width);
    }
  return all;
}

struct Operands {
  std::mt19937 engine{1};
  Tensor x = random_floats(engine, {kRows, kHidden}), router = random_floats(engine, {kRows, kExperts}),
         gate = random_floats(engine, {kExperts, kInner, kHidden}),
         gate_bias = random_floats(engine, {kExperts, kInner}),
         linear = random_floats(engine, {kExperts, kInner, kHidden}),
         linear_bias = random_floats(engine, {kExperts, kInner}),
         down = random_floats(engine, {kExperts, kHidden, kInner}),
         down_bias = random_floats(engine, {kExperts, kHidden});
};

void forms_of_swiglu(void **) {
  const Operands o;
  const auto fused = [&](bool in_turns) {
    const Tensor w = joined(o.gate, o.linear, in_turns), b = joined(o.gate_bias, o.linear_bias, in_turns);
    return run("MoE", swiglu(in_turns ? 1 : 2), {&o.x, &o.router, &w, &b, &o.down, &o.down_bias})[0];
  };
  const Tensor want = fused(true);
  expect_equal(fused(false), want, 0, "in parts");
  expect_equal(run("MoE", swiglu(0),
                   {&o.x, &o.router, &o.gate, &o.gate_bias, &o.down, &o.down_bias, &o.linear, &o.linear_bias})[0],
               want, 0, "three layers");
}

/// As Mixtral has it: the activation of the first layer, times the third one.
void third_layer_of_other_activations(void **) {
  const Operands o;
  const Tensor zeros(QTN_FLOAT32, o.linear.shape()), ones(QTN_FLOAT32, o.linear_bias.shape());
  std::fill_n(zeros.as<float>(), zeros.count(), 0.0f);
  std::fill_n(ones.as<float>(), ones.count(), 1.0f);
  for (const char *activation : {"relu", "gelu", "silu", "identity"}) {
    const Attrs a = attrs({{"activation_type", std::string(activation)}, {"k", kExperts}});
    const Inputs two{&o.x, &o.router, &o.gate, nullptr, &o.down};
    expect_equal(run("MoE", a, {&o.x, &o.router, &o.gate, nullptr, &o.down, nullptr, &zeros, &ones})[0],
                 run("MoE", a, two)[0], 0, activation);
  }
}

void rows_alone(void **) {
  const Operands o;
  const Attrs a = attrs({{"k", std::int64_t{2}}});
  const Tensor all = run("MoE", a, {&o.x, &o.router, &o.gate, &o.gate_bias, &o.down})[0];
  for (std::int64_t r = 0; r < kRows; ++r) {
    const Tensor x = o.x.slice(0, r, r + 1, 1).to_contiguous(), router = o.router.slice(0, r, r + 1, 1).to_contiguous();
    expect_equal(run("MoE", a, {&x, &router, &o.gate, &o.gate_bias, &o.down})[0], all.slice(0, r, r + 1, 1), 0,
                 cat("row ", r));
  }
}

/// Codes, scales, zero points, and the floats that they stand for.
struct Coded {
  Coded(std::mt19937 &engine, std::int64_t rows, std::int64_t columns, std::int64_t bits, std::int64_t block) {
    const std::int64_t blocks = block == 0 ? 1 : columns / block, width = columns / blocks, per_byte = 8 / bits;
    codes = Tensor(QTN_UINT8, {kExperts, rows, columns / per_byte});
    zeros = Tensor(QTN_UINT8, block == 0 ? Shape{kExperts, (rows + per_byte - 1) / per_byte}
                                         : Shape{kExperts, rows, (blocks + per_byte - 1) / per_byte});
    for (const Tensor *t : {&codes, &zeros})
      for (std::int64_t i = 0; i < t->count(); ++i) t->as<std::uint8_t>()[i] = static_cast<std::uint8_t>(engine());
    scales = random_floats(engine, block == 0 ? Shape{kExperts, rows} : Shape{kExperts, rows, blocks});
    reals = Tensor(QTN_FLOAT32, {kExperts, rows, columns});
    const auto code = [&](const Tensor &t, std::int64_t list, std::int64_t length, std::int64_t i) {
      const std::int64_t bytes = (length + per_byte - 1) / per_byte;
      return t.as<const std::uint8_t>()[list * bytes + i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1);
    };
    for (std::int64_t i = 0; i < reals.count(); ++i) {
      const std::int64_t row = i / columns, at = row * blocks + i % columns / width;
      const int zero = block == 0 ? code(zeros, row / rows, rows, row % rows) : code(zeros, row, blocks, at % blocks);
      reals.as<float>()[i] =
          static_cast<float>(code(codes, row, columns, i % columns) - zero) * scales.as<const float>()[at];
    }
  }

  Tensor codes, scales, zeros, reals;
};

void weights_of_few_bits(void **) {
  Operands o;
  for (const std::int64_t bits : {2, 4, 8})
    for (const std::int64_t block : {0, 16}) {
      const Coded gate(o.engine, kInner, kHidden, bits, block), linear(o.engine, kInner, kHidden, bits, block),
          down(o.engine, kHidden, kInner, bits, block);
      Attrs floats = swiglu(0), coded = swiglu(0);
      floats.set("normalize_routing_weights", std::int64_t{1});
      coded.set("expert_weight_bits", bits);
      coded.set("block_size", block);
      const Tensor got =
          run("QMoE", coded,
              {&o.x, &o.router, &gate.codes, &gate.scales, &o.gate_bias, &down.codes, &down.scales, nullptr,
               &linear.codes, &linear.scales, nullptr, &gate.zeros, &down.zeros, &linear.zeros})[0];
      const Tensor want =
          run("MoE", floats, {&o.x, &o.router, &gate.reals, &o.gate_bias, &down.reals, nullptr, &linear.reals})[0];
      expect_equal(got, want, 1e-5, cat(bits, " bits, blocks of ", block));
    }
}

void refuse(qstatus status, const std::string &text, const char *op, const Attrs &a, const Inputs &inputs) {
  expect_error(status, text, [&] { ops::infer_op(*ops::find_op(op), ops::Call{a, inputs}); });
}

Tensor meta(const Shape &shape, qdtype dtype = QTN_FLOAT32) { return Tensor::meta(dtype, shape); }

void refusals(void **) {
  const Tensor x = meta({5, 4}), flat = meta({4}), r = meta({5, 3}), w = meta({3, 6, 4}), v = meta({3, 4, 6}),
               b = meta({3, 6}), wide = meta({3, 12, 4});
  const char *op = "MoE";
  const auto with = [](const char *name, Attr value) { return attrs({{name, std::move(value)}}); };
  const Inputs all{&x, &r, &w, &b, &v};
  refuse(QTN_EINVAL, "MoE: activation_type is \"tanh\", not relu", op, with("activation_type", std::string("tanh")),
         all);
  refuse(QTN_EUNSUPPORTED, "MoE: use_sparse_mixer is not supported", op, with("use_sparse_mixer", std::int64_t{1}),
         all);
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{4}, std::numeric_limits<std::int64_t>::max()})
    refuse(QTN_EINVAL, cat("MoE: k is ", k, " of 3 experts"), op, with("k", k), all);
  refuse(QTN_EINVAL, "MoE: swiglu_fusion is 3", op, swiglu(3), all);
  refuse(QTN_EINVAL, "MoE: swiglu_fusion is 0, without fc3_experts_weights", op, swiglu(0), all);
  refuse(QTN_EINVAL, "MoE: swiglu_fusion is 1, with fc3_experts_weights", op, swiglu(1),
         {&x, &r, &wide, nullptr, &v, nullptr, &w});
  refuse(QTN_EINVAL, "MoE: swiglu_limit is -1", op, with("swiglu_limit", -1.0), all);
  refuse(QTN_EINVAL, "MoE: fc2_experts_weights is absent", op, attrs(), {&x, &r, &w});
  refuse(QTN_EINVAL, "MoE: fc3_experts_bias is given without weights", op, attrs(),
         {&x, &r, &w, &b, &v, nullptr, nullptr, &b});
  refuse(QTN_ESHAPE, "MoE: input must have 2 or 3 axes and a feature, it is 4", op, attrs(), {&flat, &r, &w, &b, &v});
  refuse(QTN_ESHAPE, "MoE: router_probs is 3x6, not 5x6", op, attrs(), {&x, &b, &w, &b, &v});
  refuse(QTN_ESHAPE, "MoE: fc1_experts_weights is 3x12x4, not 3x6x4", op, attrs(), {&x, &r, &wide, &b, &v});
  refuse(QTN_ESHAPE, "MoE: fc1_experts_bias is 5x3, not 3x6", op, attrs(), {&x, &r, &w, &r, &v});

  const Tensor codes = meta({3, 6, 2}, QTN_UINT8), down = meta({3, 4, 3}, QTN_UINT8), odd = meta({5, 3}),
               s = meta({3, 6}), reals = meta({3, 6, 2}), t = meta({3, 4});
  const Inputs coded{&x, &r, &codes, &s, nullptr, &down, &t};
  op = "QMoE";
  assert_true(ops::infer_op(*ops::find_op(op), ops::Call{attrs(), coded})[0].shape == x.shape());
  refuse(QTN_EUNSUPPORTED, "QMoE: weights have 3 bits, supported are 2, 4 and 8", op,
         with("expert_weight_bits", std::int64_t{3}), coded);
  refuse(QTN_EUNSUPPORTED, "QMoE: quant_type is \"fp4\", supported is \"int\"", op,
         with("quant_type", std::string("fp4")), coded);
  refuse(QTN_EINVAL, "QMoE: block_size is 16 for rows of 4 weights", op, with("block_size", std::int64_t{16}), coded);
  refuse(QTN_ESHAPE, "QMoE: fc1_scales is 3x4, not 3x6", op, attrs(), {&x, &r, &codes, &t, nullptr, &down, &t});
  refuse(QTN_EINVAL, "QMoE: fc2_scales are absent", op, attrs(), {&x, &r, &codes, &s, nullptr, &down});
  refuse(QTN_ESHAPE, "QMoE: rows of 3 weights fill no bytes", op, attrs(),
         {&odd, &odd, &codes, &s, nullptr, &down, &t});
  refuse(QTN_EDTYPE, "QMoE: fc1_experts_weights is float32", op, attrs(), {&x, &r, &reals, &s, nullptr, &down, &t});
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::forms_of_swiglu), cmocka_unit_test(qtn::third_layer_of_other_activations),
      cmocka_unit_test(qtn::rows_alone), cmocka_unit_test(qtn::weights_of_few_bits), cmocka_unit_test(qtn::refusals)};
  return cmocka_run_group_tests_name("ops/experts", tests, nullptr, nullptr);
}
