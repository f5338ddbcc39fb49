// SPDX-License-Identifier: Apache-2.0
// Operators on quantized tensors: against ONNX Runtime's integer operators, and against sums written out here.
#include "base/parallel.hpp"
#include "ops/common/requantization.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

Tensor run_quantized(const char *op, const Attrs &a, const Inputs &inputs, const QuantizerPtr &y,
                     const ops::Clamp *clamp = nullptr) {
  return ops::run_quantized_op(*ops::find_op(op), ops::Call{a, inputs}, std::span(&y, 1), clamp)[0];
}

QuantizerPtr quantizer_of(const nlohmann::json &c, const std::string &name, std::int32_t axis) {
  const Tensor scale = tensor_of(c.at(name + "_scale")), zero = tensor_of(c.at(name + "_zero_point"));
  std::vector<double> scales;
  for (const float s : float_values(scale, "scale")) scales.push_back(s);
  std::vector<std::int64_t> zeros = int_values(zero, "zero point");
  if (scales.size() == 1) return per_tensor(zero.dtype(), scales[0], zeros[0]);
  if (zeros.size() == 1) zeros.resize(scales.size(), zeros[0]);
  return per_channel(zero.dtype(), axis, scales, zeros);
}

void onnx_runtime_nodes(void **) {
  const nlohmann::json file = golden("quant/qlinear.json");
  assert_true(file.at("cases").size() > 5);
  for (const auto &c : file.at("cases")) {
    const auto name = c.at("name").get<std::string>(), op_name = c.at("op").get<std::string>();
    const char *op = op_name == "QLinearConv" ? "Conv" : op_name == "QGemm" ? "Gemm" : "MatMul";
    const Attrs a = attrs_of(c.at("attrs"), *ops::find_op(op));
    const std::int32_t axis = op == std::string("Conv") || a.get_int("transB", 0) ? 0 : 1;
    const QuantizerPtr qx = quantizer_of(c, "x", 0), qw = quantizer_of(c, "w", axis), qy = quantizer_of(c, "y", 0);
    const Tensor x = tensor_of(c.at("x")).with_quantizer(qx), w = tensor_of(c.at("w")).with_quantizer(qw);
    Tensor bias;
    Inputs inputs{&x, &w};
    if (c.contains("bias")) {
      std::vector<double> units;
      for (const double scale : qw->scales())
        units.push_back(static_cast<float>(qx->scale() * static_cast<float>(scale)));
      bias = tensor_of(c.at("bias"));
      bias = bias.with_quantizer(units.size() == 1
                                     ? per_tensor(QTN_INT32, units[0], 0)
                                     : per_channel(QTN_INT32, 0, units, std::vector<std::int64_t>(units.size())));
      inputs.push_back(&bias);
    }
    expect_equal(run_quantized(op, a, inputs, qy), tensor_of(c.at("y")), 0, name);

    // The accumulator by way of a float output, whose multiplier is sx * sw[c].
    const Tensor sums = run_quantized(op, a, inputs, nullptr);
    const std::vector<std::int64_t> accumulator = int_values(tensor_of(c.at("accumulator")), "accumulator");
    const auto channels = static_cast<std::size_t>(w.dim(static_cast<std::size_t>(axis)));
    const auto inner =
        static_cast<std::size_t>(op == std::string("Conv") ? element_count(sums.shape(), 2, sums.rank()) : 1);
    const std::vector<float> m = ops::conv_multipliers(*qx, *qw, nullptr, channels);
    for (std::size_t i = 0; i < accumulator.size(); ++i)
      assert_true(sums.as<const float>()[i] == static_cast<float>(accumulator[i]) * m[i / inner % channels]);
  }
}

Tensor on_grid(const nlohmann::json &t) {
  const Tensor q = tensor_of(t.at("q"));
  return q.with_quantizer(
      std::make_shared<Quantizer>(q.dtype(), QTN_PER_TENSOR_AFFINE, 0, std::vector{t.at("scale").get<double>()},
                                  std::vector{t.at("zero_point").get<std::int64_t>()}, Numerics::fbgemm));
}

// What PyTorch's FloatFunctional becomes, on the grids that PyTorch gave the results.
void functionals_of_pytorch(void **) {
  const nlohmann::json file = golden("quant/functional.json");
  assert_true(file.at("cases").size() > 50);
  for (const auto &c : file.at("cases")) {
    const std::string op = c.at("op");
    const Tensor a = on_grid(c.at("a")), want = on_grid(c.at("y"));
    const Tensor b = c.contains("b") ? on_grid(c.at("b")) : Tensor::scalar(c.at("scalar").get<float>());
    const char *name = op == "matmul" ? "MatMul" : op == "add_scalar" ? "Add" : "Mul";
    const ops::Clamp relu{0, std::numeric_limits<float>::infinity()};
    const Tensor got = run_quantized(name, attrs(), {&a, &b}, want.quantizer(), op == "mul_relu" ? &relu : nullptr);
    expect_equal(got.with_quantizer(nullptr), want.with_quantizer(nullptr), 0, op);
    if (!c.contains("scalar")) continue;
    // In a model it is a table.
    const Tensor bytes = ops::all_bytes(a.quantizer());
    const Tensor *inputs[] = {&bytes, &b};
    const auto table =
        ops::table_of(ops::run_on_bytes(*ops::find_op(name), {{}, inputs, 1}, want.quantizer(), nullptr));
    for (std::int64_t i = 0; i < a.count(); ++i)
      assert_int_equal(table[a.as<const std::uint8_t>()[i]], want.as<const std::uint8_t>()[i]);
  }
}

// One output at a time, straight from the definition.
void convolution_by_definition(void **) {
  std::mt19937 engine(7);
  for (const qdtype dtype : {QTN_UINT8, QTN_INT8}) {
    const std::int64_t n = 2, groups = 2, c = 6, m = 4, h = 7, w = 9, kh = 3, kw = 2;
    const QuantizerPtr qx = per_tensor(dtype, 0.02, dtype == QTN_UINT8 ? 117 : -9), qy = per_tensor(dtype, 0.31, 5);
    const QuantizerPtr qw = per_channel(QTN_INT8, 0, {0.01, 0.02, 0.005, 0.04}, {0, 3, -7, 1});
    const Tensor x = random_bytes(engine, {n, c, h, w}, qx), weight = random_bytes(engine, {m, c / groups, kh, kw}, qw);
    const Tensor bias = random_floats(engine, {m});
    const Attrs a =
        attrs({{"group", groups}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 3}}, {"pads", Ints{1, 2, 0, 3}}});
    const ops::Clamp clamp{0, 20};
    const Tensor y = run_quantized("Conv", a, {&x, &weight, &bias}, qy, &clamp);
    assert_true(y.shape() == (Shape{n, m, 3, 11}));
    const std::vector<std::int64_t> xs = int_values(x, "x"), ws = int_values(weight, "w"), ys = int_values(y, "y");
    std::size_t at = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t f = 0; f < m; ++f)
        for (std::int64_t oy = 0; oy < 3; ++oy)
          for (std::int64_t ox = 0; ox < 11; ++ox, ++at) {
            const double sw = qw->scales()[static_cast<std::size_t>(f)];
            auto sum =
                static_cast<std::int64_t>(std::rint(static_cast<double>(bias.as<const float>()[f]) / (0.02 * sw)));
            for (std::int64_t k = 0; k < c / groups * kh * kw; ++k) {
              const std::int64_t iy = oy * 2 - 1 + k / kw % kh, ix = ox - 2 + k % kw * 3;
              const std::int64_t ic = f / (m / groups) * (c / groups) + k / kw / kh;
              if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
              sum += (xs[static_cast<std::size_t>(((i * c + ic) * h + iy) * w + ix)] - qx->zero_point()) *
                     (ws[static_cast<std::size_t>(f * c / groups * kh * kw + k)] -
                      qw->zero_points()[static_cast<std::size_t>(f)]);
            }
            const float scale = (0.02f * static_cast<float>(sw)) / 0.31f;
            const float rounded = std::nearbyint(static_cast<float>(sum) * scale) + 5;
            // The clamp [0, 20] is [5, 70] on this grid, which both types hold.
            assert_int_equal(ys[at], std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), 5, 70));
          }
  }
}

// Each input position adds its taps to the outputs that they fall on. Groups share the scales of their filters.
void transposed_convolution_by_definition(void **) {
  std::mt19937 engine(13);
  for (const std::int64_t groups : {1, 3}) {
    const std::int64_t c = 6, m = 4, h = 5, w = 4, kh = 3, kw = 2, oh = 9, ow = 9, all = groups * m;
    const QuantizerPtr qx = per_tensor(QTN_INT8, 0.02, -9), qy = per_tensor(QTN_UINT8, 0.11, 128);
    const QuantizerPtr qw = per_channel(QTN_INT8, 1, {0.01, 0.02, 0.005, 0.04}, {0, 3, -7, 1});
    const Tensor x = random_bytes(engine, {1, c, h, w}, qx), weight = random_bytes(engine, {c, m, kh, kw}, qw);
    const Tensor bias = random_floats(engine, {all});
    const Attrs a =
        attrs({{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 0}}, {"dilations", Ints{1, 2}}, {"group", groups}});
    const Tensor y = run_quantized("ConvTranspose", a, {&x, &weight, &bias}, qy);
    assert_true(y.shape() == (Shape{1, all, oh, ow}));
    const std::vector<std::int64_t> xs = int_values(x, "x"), ws = int_values(weight, "w"), ys = int_values(y, "y");
    for (std::int64_t filter = 0; filter < all; ++filter) {
      const std::int64_t f = filter % m, group = filter / m, each = c / groups;
      const double sw = qw->scales()[static_cast<std::size_t>(f)];
      const auto start =
          static_cast<std::int64_t>(std::rint(static_cast<double>(bias.as<const float>()[filter]) / (0.02 * sw)));
      std::vector<std::int64_t> sums(static_cast<std::size_t>(oh * ow), start);
      for (std::int64_t i = 0; i < each * h * w * kh * kw; ++i) {
        const std::int64_t k = i % (kh * kw), at = i / (kh * kw) + group * each * h * w;
        const std::int64_t oy = at / w % h * 2 - 1 + k / kw, ox = at % w * 2 + k % kw * 2;
        if (oy < 0 || oy >= oh || ox < 0 || ox >= ow) continue;
        const auto tap = static_cast<std::size_t>((at / w / h * m + f) * kh * kw + k);
        sums[static_cast<std::size_t>(oy * ow + ox)] +=
            (xs[static_cast<std::size_t>(at)] + 9) * (ws[tap] - qw->zero_points()[static_cast<std::size_t>(f)]);
      }
      const float scale = (0.02f * static_cast<float>(sw)) / 0.11f;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const float rounded = std::nearbyint(static_cast<float>(sums[i]) * scale) + 128;
        assert_int_equal(ys[static_cast<std::size_t>(filter * oh * ow) + i],
                         std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), 0, 255));
      }
    }
  }
}

void arithmetic_by_definition(void **) {
  std::mt19937 engine(8);
  const QuantizerPtr qa = per_tensor(QTN_UINT8, 0.013, 128), qb = per_tensor(QTN_INT8, 0.27, -3),
                     qy = per_tensor(QTN_INT8, 0.3, 11);
  const Tensor a = random_bytes(engine, {5, 1, 40}, qa), b = random_bytes(engine, {3, 40}, qb);
  const std::vector<std::int64_t> as = int_values(a, "a"), bs = int_values(b, "b");
  const float ma = 0.013f / 0.3f, mb = 0.27f / 0.3f, mm = (0.013f * 0.27f) / 0.3f;
  for (const std::string op : {"Add", "Sub", "Mul"}) {
    const std::vector<std::int64_t> ys = int_values(run_quantized(op.c_str(), attrs(), {&a, &b}, qy), "y");
    for (std::size_t i = 0; i < ys.size(); ++i) {
      const std::int64_t u = as[i / 120 * 40 + i % 40] - 128, v = bs[i % 120] + 3;
      const float left = static_cast<float>(u) * ma, right = static_cast<float>(v) * mb;
      const float sum = op == "Add" ? left + right : op == "Sub" ? left - right : static_cast<float>(u * v) * mm;
      assert_int_equal(ys[i], std::clamp<std::int64_t>(static_cast<std::int64_t>(std::nearbyint(sum)) + 11, -128, 127));
    }
  }
}

void means_by_definition(void **) {
  std::mt19937 engine(9);
  const QuantizerPtr qx = per_tensor(QTN_UINT8, 0.05, 31), qy = per_tensor(QTN_UINT8, 0.04, 20);
  const Tensor x = random_bytes(engine, {2, 3, 5, 4}, qx);
  const std::vector<std::int64_t> xs = int_values(x, "x");
  const Tensor axes = ints({2, 3});
  const auto expected = [](std::int64_t sum, std::int64_t count) {
    const float m = (0.05f / 0.04f) / static_cast<float>(count);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::nearbyint(static_cast<float>(sum) * m)) + 20, 0,
                                    255);
  };
  for (const Tensor &y :
       {run_quantized("GlobalAveragePool", attrs(), {&x}, qy), run_quantized("ReduceMean", attrs(), {&x, &axes}, qy)}) {
    for (std::size_t plane = 0; plane < 6; ++plane) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < 20; ++i) sum += xs[plane * 20 + i] - 31;
      assert_int_equal(y.as<const std::uint8_t>()[plane], expected(sum, 20));
    }
  }
  for (const std::int64_t include_pad : {0, 1}) {
    const Attrs a =
        attrs({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", include_pad}});
    const Tensor y = run_quantized("AveragePool", a, {&x}, qy);
    for (std::int64_t at = 0; at < y.count(); ++at) {
      std::int64_t sum = 0, count = 0;
      for (std::int64_t k = 0; k < 9; ++k) {
        const std::int64_t iy = at / 4 % 5 + k / 3 - 1, ix = at % 4 + k % 3 - 1;
        const bool inside = iy >= 0 && iy < 5 && ix >= 0 && ix < 4;
        if (inside) sum += xs[static_cast<std::size_t>(at / 20 * 20 + iy * 4 + ix)] - 31;
        count += inside || include_pad;
      }
      assert_int_equal(y.as<const std::uint8_t>()[at], expected(sum, count));
    }
  }
}

void sums_by_definition(void **) {
  std::mt19937 engine(14);
  const QuantizerPtr qx = per_tensor(QTN_UINT8, 0.05, 31), qy = per_tensor(QTN_INT8, 0.7, -20);
  const Tensor x = random_bytes(engine, {4, 6}, qx), axes = ints({1});
  const std::vector<std::int64_t> xs = int_values(x, "x"),
                                  ys = int_values(run_quantized("ReduceSum", attrs(), {&x, &axes}, qy), "y");
  for (std::size_t row = 0; row < 4; ++row) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += xs[row * 6 + i] - 31;
    const float rounded = std::nearbyint(static_cast<float>(sum) * (0.05f / 0.7f)) - 20;
    assert_int_equal(ys[row], std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), -128, 127));
  }
}

void chosen_integers_stay_as_they_are(void **) {
  std::mt19937 engine(15);
  const QuantizerPtr q = per_tensor(QTN_INT8, 0.1, 7), other = per_tensor(QTN_UINT8, 0.25, 3);
  const Tensor a = random_bytes(engine, {1, 4, 2, 3}, q), b = random_bytes(engine, {2, 3}, q);
  const std::vector<std::int64_t> as = int_values(a, "a"), bs = int_values(b, "b");
  const bool truths[] = {true, false, false};
  const Tensor condition = Tensor::from<bool>(QTN_BOOL, {3}, std::span(truths));
  const auto larger = int_values(run_quantized("Max", attrs(), {&a, &b}, q), "y"),
             smaller = int_values(run_quantized("Min", attrs(), {&a, &b}, q), "y"),
             chosen = int_values(run_quantized("Where", attrs(), {&condition, &a, &b}, q), "y");
  for (std::size_t i = 0; i < as.size(); ++i) {
    assert_int_equal(larger[i], std::max(as[i], bs[i % 6]));
    assert_int_equal(smaller[i], std::min(as[i], bs[i % 6]));
    assert_int_equal(chosen[i], i % 3 == 0 ? as[i] : bs[i % 6]);
  }
  const Tensor axes = ints({2, 3}), twice = ints({1, 1, 2, 1});
  assert_int_equal(int_values(run_quantized("ReduceMax", attrs(), {&a, &axes}, q), "y")[1],
                   *std::max_element(as.begin() + 6, as.begin() + 12));
  assert_int_equal(int_values(run_quantized("Tile", attrs(), {&a, &twice}, q), "y")[7], as[1]);
  const Attrs blocks = attrs({{"blocksize", std::int64_t{2}}});
  const Tensor spread = run_quantized("DepthToSpace", blocks, {&a}, q);
  assert_int_equal(int_values(spread, "y")[1], as[6]);
  assert_true(int_values(run_quantized("SpaceToDepth", blocks, {&spread}, q), "y") == as);
  const Tensor indices = run_quantized("ArgMax", attrs({{"axis", std::int64_t{-1}}}), {&a}, nullptr);
  assert_int_equal(int_values(indices, "y")[2], std::max_element(as.begin() + 6, as.begin() + 9) - as.begin() - 6);

  // Grids that differ, or an operand without one: reals are chosen and quantized again.
  const Tensor c = random_bytes(engine, {2, 3}, other), half = Tensor::scalar(0.5f);
  const Tensor real_a = dequantize(a), real_c = dequantize(c);
  expect_equal(run_quantized("Max", attrs(), {&a, &c}, q), quantize(run("Max", attrs(), {&real_a, &real_c})[0], q), 0,
               "two grids");
  expect_equal(run_quantized("Where", attrs(), {&condition, &a, &half}, q),
               quantize(run("Where", attrs(), {&condition, &real_a, &half})[0], q), 0, "float operand");
}

void moved_integers_stay_as_they_are(void **) {
  std::mt19937 engine(10);
  const QuantizerPtr q = per_tensor(QTN_INT8, 0.1, 7);
  const Tensor x = random_bytes(engine, {1, 2, 4, 4}, q);
  const Tensor around = ints({0, 0, 1, 0, 0, 0, 0, 2});
  const Tensor padded = run_quantized("Pad", attrs(), {&x, &around}, q);
  const std::vector<std::int64_t> xs = int_values(x, "x"), ps = int_values(padded, "padded");
  assert_int_equal(ps[0], 7);
  assert_int_equal(ps[6], xs[0]);
  const Tensor value = Tensor::scalar(1.0f), pads = ints({0, 0, 1, 0, 0, 0, 0, 0});
  assert_int_equal(int_values(run_quantized("Pad", attrs(), {&x, &pads, &value}, q), "y")[0], 17);

  const Tensor pooled = run_quantized("MaxPool", attrs({{"kernel_shape", Ints{4, 4}}}), {&x}, q);
  assert_int_equal(int_values(pooled, "y")[1], *std::max_element(xs.begin() + 16, xs.end()));
  assert_true(*pooled.quantizer() == *q);

  // Another grid for the result: not integers moved, but reals quantized again.
  const QuantizerPtr coarse = per_tensor(QTN_UINT8, 0.4, 100);
  const Tensor joined = run_quantized("Concat", attrs({{"axis", std::int64_t{1}}}), {&x, &x}, coarse);
  assert_int_equal(int_values(joined, "y")[0], coarse->quantize(q->dequantize(xs[0])));
}

void mixed_operands_take_the_generic_meaning(void **) {
  std::mt19937 engine(11);
  const QuantizerPtr qx = per_tensor(QTN_UINT8, 0.1, 10), qy = per_tensor(QTN_UINT8, 0.2, 3);
  const Tensor x = random_bytes(engine, {1, 2, 3, 3}, qx), weight = random_floats(engine, {2, 2, 1, 1});
  const Tensor reals = dequantize(x);
  const ops::Clamp relu{0, std::numeric_limits<float>::infinity()};
  Tensor want = run("Conv", attrs(), {&reals, &weight})[0];
  for (std::int64_t i = 0; i < want.count(); ++i) want.as<float>()[i] = std::max(0.0f, want.as<float>()[i]);
  expect_equal(run_quantized("Conv", attrs(), {&x, &weight}, qy, &relu), quantize(want, qy), 0, "float weight");
  expect_equal(run_quantized("Conv", attrs(), {&x, &weight}, nullptr, &relu), want, 0, "float result");

  const Tensor int_weight = random_bytes(engine, {2, 3}, per_tensor(QTN_INT8, 0.1, 0)),
               row = random_bytes(engine, {1, 2}, qx);
  const Tensor real_row = dequantize(row), real_weight = dequantize(int_weight);
  const Attrs halved = attrs({{"alpha", 0.5}});
  expect_equal(run_quantized("Gemm", halved, {&row, &int_weight}, qy),
               quantize(run("Gemm", halved, {&real_row, &real_weight})[0], qy), 0, "alpha");
}

void sums_wider_than_int32_are_exact(void **) {
  const std::int64_t depth = 70000;
  const Tensor x(QTN_UINT8, {1, depth}, per_tensor(QTN_UINT8, 1, 0)),
      w(QTN_UINT8, {depth, 1}, per_tensor(QTN_UINT8, 1, 0));
  std::fill_n(x.as<std::uint8_t>(), depth, std::uint8_t{255});
  std::fill_n(w.as<std::uint8_t>(), depth, std::uint8_t{255});
  const Tensor y = run_quantized("MatMul", attrs(), {&x, &w}, nullptr);
  assert_true(*y.as<const float>() == static_cast<float>(depth * 255 * 255));
}

void tables_are_the_operator(void **) {
  for (const qdtype dtype : {QTN_UINT8, QTN_INT8}) {
    const QuantizerPtr qx = per_tensor(dtype, 0.05, 20), qy = per_tensor(QTN_UINT8, 1.0 / 256, 0);
    const Attrs none = attrs();
    const Tensor bytes = ops::all_bytes(qx);
    const Inputs one{&bytes};
    const ops::Clamp clamp{0, 0.5f};
    const auto table = ops::table_of(ops::run_on_bytes(*ops::find_op("Sigmoid"), ops::Call{none, one}, qy, &clamp));
    for (int byte = 0; byte < 256; ++byte) {
      const std::int64_t q = dtype == QTN_INT8 ? static_cast<std::int8_t>(byte) : byte;
      const float y = std::min(0.5f, 1.0f / (1.0f + std::exp(-qx->dequantize(q))));
      assert_int_equal(table[static_cast<std::size_t>(byte)], qy->quantize(y));
    }
    const Tensor three = floats({1, 1}, {3});
    const Inputs two{&three, &bytes};
    const auto difference = ops::table_of(ops::run_on_bytes(*ops::find_op("Sub"), ops::Call{none, two}, qx, nullptr));
    assert_int_equal(difference[20], static_cast<std::uint8_t>(qx->quantize(3)));
  }
}

void clamps_are_ranges(void **) {
  const QuantizerPtr y = per_tensor(QTN_INT8, 0.05, -20);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto range = [&](float lo, float hi) {
    const ops::Clamp clamp{lo, hi};
    const QuantizedRange r = ops::output_range(*y, &clamp);
    assert_int_equal(r.zero, -20);
    return std::pair(r.lo, r.hi);
  };
  assert_true(range(-infinity, infinity) == std::pair(-128, 127));
  assert_true(range(0, infinity) == std::pair(-20, 127));
  assert_true(range(0, 6) == std::pair(-20, 100));
  assert_true(range(-100, 100) == std::pair(-128, 127));
}

void biases_are_converted(void **) {
  const QuantizerPtr x = per_tensor(QTN_UINT8, 0.5, 3), w = per_channel(QTN_INT8, 0, {0.5, 1e-12, 0.25}, {0, 0, 0});
  const Tensor real = floats({3}, {1.0f, -7.0f, 0.0625f});
  assert_true(ops::integer_bias(&real, *x, *w, 3) ==
              (std::vector<std::int32_t>{4, std::numeric_limits<std::int32_t>::min(), 0}));
  assert_true(ops::integer_bias(nullptr, *x, *w, 3) == (std::vector<std::int32_t>{0, 0, 0}));
  // int32 under the scale of another accumulator is worth what it stands for.
  Tensor other(QTN_INT32, {1}, per_tensor(QTN_INT32, 1.0, 0));
  other.as<std::int32_t>()[0] = 2;
  const QuantizerPtr half = per_tensor(QTN_INT8, 0.5, 0);
  assert_true(ops::integer_bias(&other, *x, *half, 1) == (std::vector<std::int32_t>{8}));
}

void threads_do_not_change_results(void **) {
  std::mt19937 engine(12);
  const Tensor x = random_floats(engine, {1, 32, 40, 40}), w = random_floats(engine, {48, 32, 3, 3}),
               dw = random_floats(engine, {32, 1, 3, 3}), tw = random_floats(engine, {32, 40, 4, 4});
  const Attrs dense = attrs({{"pads", Ints{1, 1, 1, 1}}}), depthwise = attrs({{"group", std::int64_t{32}}});
  std::vector<Tensor> results;
  for (const int threads : {1, 4}) {
    const ThreadScope scope(threads);
    results.push_back(run("Conv", dense, {&x, &w})[0]);
    results.push_back(run("Conv", depthwise, {&x, &dw})[0]);
    results.push_back(run("ConvTranspose", attrs({{"strides", Ints{2, 2}}}), {&x, &tw})[0]);
  }
  expect_equal(results[3], results[0], 0, "dense");
  expect_equal(results[4], results[1], 0, "depthwise");
  expect_equal(results[5], results[2], 0, "transposed");
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(onnx_runtime_nodes),
      cmocka_unit_test(functionals_of_pytorch),
      cmocka_unit_test(convolution_by_definition),
      cmocka_unit_test(transposed_convolution_by_definition),
      cmocka_unit_test(arithmetic_by_definition),
      cmocka_unit_test(means_by_definition),
      cmocka_unit_test(sums_by_definition),
      cmocka_unit_test(chosen_integers_stay_as_they_are),
      cmocka_unit_test(moved_integers_stay_as_they_are),
      cmocka_unit_test(mixed_operands_take_the_generic_meaning),
      cmocka_unit_test(sums_wider_than_int32_are_exact),
      cmocka_unit_test(tables_are_the_operator),
      cmocka_unit_test(clamps_are_ranges),
      cmocka_unit_test(biases_are_converted),
      cmocka_unit_test(threads_do_not_change_results),
  };
  return cmocka_run_group_tests_name("ops/integer", tests, nullptr, nullptr);
}
