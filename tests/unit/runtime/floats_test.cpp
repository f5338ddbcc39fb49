// SPDX-License-Identifier: Apache-2.0
// Sessions of networks in float32: their bits depend on neither the instruction set nor threads nor batch, and they are
// those of the operators' definitions except for the order of sums.
#include <array>

#include "one_answer.hpp"
#include "quant/weights_only.hpp"

namespace qtn::test {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr int kLayers = 4;  // with products, one after the other

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::int64_t in(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(engine_);
  }
  bool one_in(std::int64_t n) { return in(1, n) == 1; }
  Ints several(std::size_t count, std::int64_t lo, std::int64_t hi) {
    Ints values(count);
    for (std::int64_t &v : values) v = in(lo, hi);
    return values;
  }

 private:
  std::mt19937 engine_;
};

void expect_one_answer(const graph::Graph &g, const Tensor &x, const std::string &what) {
  test::expect_one_answer(g, x, what, kLayers);
}

/// A convolution of any form over x, of 3 to 5 axes, and its number of output channels.
std::int64_t add_any_conv(GraphBuilder &b, Dice &dice, const std::string &name, const std::string &x,
                          const std::string &y, std::int64_t channels, std::size_t spatial) {
  const bool transposed = dice.one_in(4);
  const std::int64_t groups = dice.one_in(3) ? channels : dice.one_in(3) && channels % 2 == 0 ? 2 : 1;
  const std::int64_t filters = groups * dice.in(1, groups == channels ? 2 : 20);
  Shape weight = transposed ? Shape{channels, filters / groups} : Shape{filters, channels / groups};
  Ints pads(2 * spatial);
  for (std::size_t i = 0; i < spatial; ++i) {
    weight.push_back(dice.in(1, 3));
    pads[i] = pads[i + spatial] = dice.in(0, weight.back() - 1);
  }
  Attrs a = attrs({{"pads", pads}, {"group", groups}, {"strides", dice.several(spatial, 1, 2)}});
  if (dice.one_in(3)) a.set("dilations", Ints(spatial, transposed ? 1 : 2));
  const auto seed = static_cast<unsigned>(dice.in(0, 1 << 20));
  b.constant(name + ".weight", random(weight, -0.5f, 0.5f, seed));
  std::vector<std::string> inputs{x, name + ".weight"};
  if (!dice.one_in(3)) {
    b.constant(name + ".bias", random({filters}, -0.3f, 0.3f, seed + 1));
    inputs.push_back(name + ".bias");
  }
  b.node(transposed ? "ConvTranspose" : "Conv", name, inputs, {y}, a);
  return filters;
}

/// Convolutions one after the other, with what stands between them in networks.
graph::Graph any_network(unsigned seed, const Shape &input) {
  Dice dice(seed);
  GraphBuilder b;
  b.input("x", input);
  const std::size_t spatial = input.size() - 2;
  std::int64_t channels = input[1];
  std::string x = "x";
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string name = cat("n", layer), y = cat("y", layer);
    const auto unary = [&](const char *op, const char *part, const std::string &from, const std::string &to) {
      b.node(op, name + part, {from}, {to});
    };
    switch (dice.in(0, 6)) {
      case 0:
        unary("Relu", "relu", x, y);
        break;
      case 1:
        unary("Sigmoid", "gate", x, y + "g");
        b.node("Mul", name + "mul", {x, y + "g"}, {y});
        break;
      case 2:
        unary("GlobalAveragePool", "pool", x, y + "p");
        b.node("Mul", name + "scale", {x, y + "p"}, {y});
        break;
      case 3:
        b.constant(name + "c", random({channels}, 0.5f, 1.5f, seed));
        b.constant(name + "d", random({channels}, -0.5f, 0.5f, seed + 1));
        b.node("BatchNormalization", name + "norm", {x, name + "c", name + "d", name + "d", name + "c"}, {y});
        break;
      case 4: {
        b.node("Relu", name + "left", {x}, {y + "l"}).node("Sigmoid", name + "right", {x}, {y + "r"});
        b.node("Concat", name + "join", {y + "l", x, y + "r"}, {y}, attrs({{"axis", std::int64_t{1}}}));
        channels *= 3;
        break;
      }
      case 5: {
        const Ints ones(spatial, 1);
        b.node(dice.one_in(2) ? "MaxPool" : "AveragePool", name + "window", {x}, {y},
               attrs({{"kernel_shape", Ints(spatial, 3)}, {"strides", ones}, {"pads", Ints(2 * spatial, 1)}}));
        break;
      }
      default: {
        // A sum at the end of a convolution, as residual blocks have it.
        b.constant(name + "w", random(spatial == 1   ? Shape{channels, channels, 1}
                                      : spatial == 2 ? Shape{channels, channels, 1, 1}
                                                     : Shape{channels, channels, 1, 1, 1},
                                      -0.5f, 0.5f, seed));
        b.node("Conv", name + "conv", {x, name + "w"}, {y + "c"}).node("Add", name + "sum", {x, y + "c"}, {y});
      }
    }
    x = y;
    channels = add_any_conv(b, dice, name + "conv2", x, y + "z", channels, spatial);
    x = y + "z";
  }
  b.node("Flatten", "flat", {x}, {"f"});
  return b.build({x, "f"});
}

void test_any_network(void **) {
  int made = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Dice dice(seed + 1000);
    const std::int64_t channels = dice.in(1, 9);
    const Shape shapes[] = {{2, channels, dice.in(6, 40)},
                            {2, channels, dice.in(5, 20), dice.in(5, 20)},
                            {2, channels, dice.in(4, 7), dice.in(4, 9), dice.in(4, 9)},
                            {1, channels, dice.in(4, 6), dice.in(4, 7), dice.in(12, 24)}};
    const Shape input = shapes[dice.in(0, 3)];
    const graph::Graph g = any_network(seed, input);
    const Tensor x = random(input, -1, 1, seed);
    try {
      run(g, x, runtime::Engine::reference, 1);
    } catch (const Error &) {
      continue;  // windows larger than what is left of the image
    }
    ++made;
    expect_one_answer(g, x, cat("network ", seed));
  }
  assert_true(made > 30);
}

/// Products by constants and of two activations, under transposed and broadcast operands.
void test_products(void **) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Dice dice(seed);
    const std::int64_t heads = dice.in(1, 3), rows = dice.in(1, 40), depth = dice.in(1, 70), out = dice.in(1, 50);
    GraphBuilder b;
    b.input("x", {2, rows, heads * depth});
    b.constant("w", random({heads * depth, out}, -1, 1, seed)).node("MatMul", "first", {"x", "w"}, {"a"});
    b.constant("shape", Tensor::from_ints(Ints{2, rows, heads, depth}));
    b.node("Reshape", "split", {"x", "shape"}, {"h"});
    b.node("Transpose", "q", {"h"}, {"q"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
    b.node("Transpose", "k", {"h"}, {"k"}, attrs({{"perm", Ints{0, 2, 3, 1}}}));
    b.node("MatMul", "scores", {"q", "k"}, {"s"}).node("Softmax", "soft", {"s"}, {"p"});
    b.node("MatMul", "mix", {"p", "q"}, {"m"});
    b.node("Transpose", "back", {"m"}, {"t"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
    b.constant("flat", Tensor::from_ints(Ints{2, rows, heads * depth}));
    b.node("Reshape", "join", {"t", "flat"}, {"j"}).node("Add", "residual", {"j", "x"}, {"r"});
    b.constant("one", random({1, 1, depth, 3}, -1, 1, seed + 5)).node("MatMul", "shared", {"q", "one"}, {"o"});
    expect_one_answer(b.build({"a", "r", "o"}), random({2, rows, heads * depth}, -1, 1, seed), cat("products ", seed));
  }
}

/// Gemm by a constant, with everything that it does beside multiplying.
void test_gemms(void **) {
  const std::array<double, 4> factors = {1, 0.5, -1.7, 0};
  for (unsigned seed = 0; seed < 64; ++seed) {
    Dice dice(seed);
    const std::int64_t rows = dice.in(1, 40), depth = dice.in(1, 70), out = dice.in(1, 50);
    const bool a = dice.one_in(2), b = dice.one_in(2);
    const Shape x = a ? Shape{depth, rows} : Shape{rows, depth};
    const Shape biases[] = {{out}, {1, out}, {1}, {rows, out}, {rows, 1}};
    Attrs with = attrs({{"transA", std::int64_t{a}}, {"transB", std::int64_t{b}}});
    with.set("alpha", factors[static_cast<std::size_t>(dice.in(0, 3))]);
    with.set("beta", factors[static_cast<std::size_t>(dice.in(0, 3))]);
    GraphBuilder g;
    g.input("x", x).constant("w", random(b ? Shape{out, depth} : Shape{depth, out}, -1, 1, seed));
    std::vector<std::string> inputs{"x", "w"};
    if (!dice.one_in(4)) {
      g.constant("bias", random(biases[dice.in(0, 4)], -1, 1, seed + 1));
      inputs.push_back("bias");
    }
    g.node("Gemm", "product", inputs, {"y"}, with);
    expect_one_answer(g.build({"y"}), random(x, -1, 1, seed + 2), cat("Gemm ", seed));
  }
}

/// Weights of more than a megabyte are read in blocks of columns, each of which meets several blocks of rows.
void test_large_weights(void **) {
  GraphBuilder b;
  b.input("x", {1, 270, 520})
      .constant("w", random({520, 700}, -0.05f, 0.05f, 1))
      .node("MatMul", "a", {"x", "w"}, {"y"});
  expect_one_answer(b.build({"y"}), random({1, 270, 520}, -1, 1, 2), "large weights");
}

/// Rows that would meet in one set of the cache are copied a part at a time: the bits are those of instruction sets that
/// do without.
void test_rows_that_meet(void **) {
  const std::array<std::int64_t, 3> products[] = {{9, 1024, 33}, {150, 1024, 70}, {31, 2048, 300}, {200, 1024, 300}};
  for (const auto &[rows, depth, out] : products) {
    GraphBuilder b;
    b.input("x", {1, rows, depth}).constant("w", random({depth, out}, -0.05f, 0.05f, 1));
    b.node("MatMul", "product", {"x", "w"}, {"p"}).node("Relu", "relu", {"p"}, {"y"});
    expect_one_answer(b.build({"y"}), random({1, rows, depth}, -1, 1, 2), cat(rows, " rows of ", depth));
  }
  GraphBuilder b;
  b.input("x", {2, 1024, 5, 7}).constant("w", random({40, 1024, 1, 1}, -0.05f, 0.05f, 1));
  b.node("Conv", "near", {"x", "w"}, {"a"});
  b.node("Conv", "far", {"x", "w"}, {"b"}, attrs({{"strides", Ints{2, 2}}}));
  expect_one_answer(b.build({"a", "b"}), random({2, 1024, 5, 7}, -1, 1, 3), "pixels of 1024 channels");
}

/// Images and volumes so wide that a block is a row of outputs, whose taps lie far apart: they are read where they lie, and
/// what lies at the borders has taps of its own.
void test_far_taps(void **) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    Dice dice(seed);
    const std::size_t axes = seed % 2 ? 2 : 3;
    const std::int64_t channels = dice.in(1, 24);
    Shape x{1, channels}, weight{dice.in(1, 20), channels};
    Ints dilations, pads(2 * axes);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const bool last = axis + 1 == axes;
      weight.push_back(dice.in(2, 3));
      dilations.push_back(dice.in(1, 9));
      const std::int64_t reach = (weight.back() - 1) * dilations.back();
      for (const std::size_t end : {std::size_t{0}, axes}) pads[axis + end] = dice.in(0, reach);
      const std::int64_t wide = std::min<std::int64_t>(700, 24 * 1024 / 4 / channels);
      x.push_back(last ? wide + dice.in(0, 9) : dice.in(1, 3) + reach);
    }
    GraphBuilder b;
    b.input("x", x).constant("w", random(weight, -0.3f, 0.3f, seed + 1));
    b.node("Conv", "far", {"x", "w"}, {"y"}, attrs({{"dilations", dilations}, {"pads", pads}}));
    expect_one_answer(b.build({"y"}), random(x, -1, 1, seed + 2),
                      cat("far taps x ", to_string(x), " w ", to_string(weight), " dilations ",
                          to_string(Shape(dilations)), " pads ", to_string(Shape(pads))));
  }
}

/// A step with products, or of a normalization, and an activation of what it makes, which is an output where `shown`.
graph::Graph activated(int kind, const Shape &x, const char *op, const Attrs &a, bool shown) {
  GraphBuilder b;
  b.input("x", x);
  if (kind == 0) {
    b.constant("w", random({70, 40, 3, 3}, -0.1f, 0.1f, 1));
    b.node("Conv", "product", {"x", "w"}, {"p"}, attrs({{"pads", Ints{1, 1, 1, 1}}}));
  } else if (kind == 1) {
    b.constant("w", random({40, 1, 3, 3}, -1, 1, 1));
    b.node("Conv", "product", {"x", "w"}, {"p"}, attrs({{"group", std::int64_t{40}}}));
  } else if (kind == 2) {
    b.constant("w", random({40, 37}, -0.3f, 0.3f, 1)).node("MatMul", "product", {"x", "w"}, {"p"});
  } else {
    b.constant("w", random({40, 40, 1, 1}, -0.3f, 0.3f, 1)).node("Conv", "before", {"x", "w"}, {"c"});
    b.constant("s", random({40}, 0.5f, 1.5f, 2)).constant("m", random({40}, -0.5f, 0.5f, 3));
    b.node("MaxPool", "pool", {"c"}, {"d"}, attrs({{"kernel_shape", Ints{2, 2}}}));
    if (kind == 3)
      b.node("BatchNormalization", "norm", {"d", "s", "m", "m", "s"}, {"p"});
    else
      b.node("GroupNormalization", "norm", {"d", "s", "m"}, {"p"}, attrs({{"num_groups", std::int64_t{8}}}));
  }
  b.node(op, "activation", {"p"}, {"y"}, a);
  return b.build(shown ? std::vector<std::string>{"y", "p"} : std::vector<std::string>{"y"});
}

/// The same whether an activation ends the step before it or is one of its own, as it has to be where its operand is an
/// output, too.
void test_activations(void **) {
  const std::pair<const char *, Attrs> activations[] = {{"Swish", {}},   {"Swish", attrs({{"alpha", 1.5}})},
                                                        {"Gelu", {}},    {"Gelu", attrs({{"approximate", "tanh"}})},
                                                        {"Sigmoid", {}}, {"Tanh", {}},
                                                        {"Erf", {}},     {"HardSwish", {}},
                                                        {"Mish", {}},    {"Relu", {}}};
  for (const auto &activation : activations)
    for (const int kind : {0, 1, 2, 3, 4}) {
      const char *op = activation.first;
      const Shape shape = kind == 2 ? Shape{2, 9, 40} : Shape{2, 40, 6, 5};
      const graph::Graph one = activated(kind, shape, op, activation.second, false),
                         two = activated(kind, shape, op, activation.second, true);
      const Tensor x = random(shape, -3, 3, 4);
      each_isa([&](const std::string &isa) {
        for (const int threads : {1, 3})
          expect_equal(run(one, x, runtime::Engine::native, threads)[0], run(two, x, runtime::Engine::native, 1)[0],
                       cat(op, " behind kind ", kind, ", ", isa, ", ", threads, " threads"));
      });
    }
}

/// Groups of one channel and of all, also with a factor for each group, behind a layer whose channels lie side by side.
void test_normalized_groups(void **) {
  const Shape shapes[] = {{2, 3, 50}, {2, 3, 9, 8}, {1, 3, 4, 5, 6}, {1, 3, 1, 1}};
  for (const Shape &shape : shapes)
    for (const std::int64_t channels : {1, 6, 36, 70, 96})
      for (const std::int64_t groups : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, channels}) {
        if (groups > 0 && channels % groups != 0) continue;
        for (const bool of_groups : {false, true}) {
          const std::int64_t factors = of_groups && groups > 0 ? groups : channels;
          Shape window(std::vector<std::int64_t>(shape.size(), 1));
          window[0] = channels;
          window[1] = 3;
          GraphBuilder b;
          b.input("x", shape).constant("w", random(window, -1, 1, 1)).node("Conv", "conv", {"x", "w"}, {"c"});
          b.constant("s", random({factors}, 0.5f, 1.5f, 2)).constant("b", random({factors}, -1, 1, 3));
          if (groups > 0)
            b.node("GroupNormalization", "norm", {"c", "s", "b"}, {"n"}, attrs({{"num_groups", groups}}));
          else
            b.node("InstanceNormalization", "norm", {"c", "s", "b"}, {"n"}, attrs({{"epsilon", 0.01}}));
          b.node("Relu", "relu", {"n"}, {"y"});
          expect_one_answer(b.build({"y"}), random(shape, -3, 5, 4),
                            cat(groups, " groups of ", channels, " channels, ", to_string(shape)));
        }
      }
}

/// Each layer reads all that came before, as in DenseNet: concatenations are the first channels of the longest one,
/// also where other nodes read their parts, and in any order.
void test_dense_blocks(void **) {
  for (const bool shown : {false, true})
    for (const bool again : {false, true}) {
      GraphBuilder b;
      b.input("x", {2, 5, 6, 7}).constant("w", random({8, 5, 3, 3}, -0.3f, 0.3f, 1));
      b.node("Conv", "first", {"x", "w"}, {"f0"}, attrs({{"pads", Ints{1, 1, 1, 1}}}));
      std::vector<std::string> features{"f0"}, outputs;
      std::int64_t channels = 8;
      for (int i = 1; i < 5; ++i) {
        const std::string n = std::to_string(i), all = i == 1 ? "f0" : "c" + n;
        if (i > 1) b.node("Concat", "join" + n, features, {all}, attrs({{"axis", std::int64_t{1}}}));
        b.constant("s" + n, random({channels}, 0.5f, 1.5f, 2)).constant("m" + n, random({channels}, -0.5f, 0.5f, 3));
        b.node("BatchNormalization", "norm" + n, {all, "s" + n, "m" + n, "m" + n, "s" + n}, {"n" + n});
        b.node("Relu", "relu" + n, {"n" + n}, {"r" + n}).constant("w" + n, random({6, channels, 3, 3}, -0.2f, 0.2f, 4));
        b.node("Conv", "conv" + n, {"r" + n, "w" + n}, {"f" + n}, attrs({{"pads", Ints{1, 1, 1, 1}}}));
        features.push_back("f" + n);
        channels += 6;
      }
      b.node("Concat", "whole", features, {"y"}, attrs({{"axis", std::int64_t{1}}}));
      if (again) {
        features.resize(3);
        b.node("Concat", "again", features, {"z"}, attrs({{"axis", std::int64_t{1}}}));
        outputs.push_back("z");
      }
      outputs.push_back("y");
      if (shown) outputs.insert(outputs.end(), {"f1", "c3"});
      expect_one_answer(b.build(outputs), random({2, 5, 6, 7}, -1, 1, 5), cat("dense block ", shown, again));
    }
}

/// What has no elements may have other axes than the images beside it.
void test_empty_parts_of_concat(void **) {
  for (const std::ptrdiff_t place : {0, 1, 2}) {
    GraphBuilder b;
    b.input("x", {2, 5, 6, 7}).constant("empty", Tensor(QTN_FLOAT32, {3, 0, 1, 9}));
    std::vector<std::string> parts{"y0", "y1"};
    for (const std::string n : {"0", "1"}) {
      b.constant("w" + n, random({8, 5, 1, 1}, -1, 1, 1));
      b.node("Conv", "conv" + n, {"x", "w" + n}, {"y" + n});
    }
    parts.insert(parts.begin() + place, "empty");
    b.node("Concat", "whole", parts, {"y"}, attrs({{"axis", std::int64_t{1}}}));
    parts.pop_back();
    b.node("Concat", "first", parts, {"z"}, attrs({{"axis", std::int64_t{1}}}));
    expect_one_answer(b.build({"y", "z"}), random({2, 5, 6, 7}, -1, 1, 2), cat("empty part ", place));
  }
}

/// With an axis of length 1, rows of a matrix lie as pixels of an image do.
void test_products_that_lie_as_images(void **) {
  const Shape shapes[] = {{2, 1, 8}, {3, 1, 5}, {2, 1, 4, 5}, {1, 1, 4, 5}, {3, 15, 1}, {2, 3, 4, 1}, {2, 1, 1, 3, 4}};
  for (const Shape &shape : shapes) {
    GraphBuilder b;
    b.input("x", shape);
    b.constant("w", random({shape.back(), shape.back()}, -1, 1, 1)).node("MatMul", "product", {"x", "w"}, {"p"});
    b.node("Add", "residual", {"x", "p"}, {"r"}).node("Relu", "relu", {"r"}, {"y"});
    expect_one_answer(b.build({"y"}), random(shape, -1, 1, 2), cat("residual ", to_string(shape)));

    Shape wide = shape;
    wide[shape.size() - 1] = 5;
    for (const std::size_t axis : {std::size_t{1}, shape.size() - 1}) {
      Shape along{shape[axis]};
      while (along.size() + axis < shape.size()) along.push_back(1);
      GraphBuilder slopes;
      slopes.input("x", wide).constant("w", random({5, shape.back()}, -1, 1, 1));
      slopes.constant("slopes", random(along, -1, 1, 3)).node("MatMul", "product", {"x", "w"}, {"p"});
      slopes.node("PRelu", "relu", {"p", "slopes"}, {"y"});
      expect_one_answer(slopes.build({"y"}), random(wide, -1, 1, 2),
                        cat("slopes of axis ", axis, " ", to_string(shape)));
    }
  }
  for (const Shape &shape : {Shape{2, 1, 40}, Shape{1, 1, 4, 40}, Shape{3, 4, 40}}) {  // by weights of few bits
    GraphBuilder b;
    b.input("x", shape).constant("w", random({40, 40}, -1, 1, 1)).node("MatMul", "product", {"x", "w"}, {"p"});
    b.node("Add", "residual", {"x", "p"}, {"y"});
    const graph::Graph g = b.build({"y"});
    for (const qdtype dtype : {QTN_INT8, QTN_INT4})
      expect_one_answer(quant::quantize_weights(g, {dtype, 8}), random(shape, -1, 1, 2),
                        cat("coded ", to_string(shape)));
  }
  GraphBuilder b;
  b.input("x", {2, 3, 8}).conv("conv", "x", "c", 3, 4);
  b.constant("conv.weight", random({4, 3, 1}, -1, 1, 1)).constant("w", random({8, 8}, -1, 1, 2));
  b.constant("axis", Tensor::from_ints(Ints{1})).node("ReduceMean", "mean", {"x", "axis"}, {"m"});
  b.node("MatMul", "product", {"m", "w"}, {"p"})
      .node("Concat", "joined", {"c", "p"}, {"y"}, attrs({{"axis", std::int64_t{1}}}));
  expect_one_answer(b.build({"y"}), random({2, 3, 8}, -1, 1, 3), "concatenation");
}

/// Windows that overlap, of which lines are made first, and results between bounds.
void test_pools(void **) {
  Dice dice(3);
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto axes = static_cast<std::size_t>(dice.in(1, 3));
    const std::int64_t channels = dice.one_in(4) ? 1 : dice.in(2, 40);
    Shape x{dice.in(1, 2), 3};
    for (std::size_t axis = 0; axis < axes; ++axis) x.push_back(dice.in(7, axes == 3 ? 10 : 20));
    Shape weight{channels, 3};
    for (std::size_t axis = 0; axis < axes; ++axis) weight.push_back(1);
    const Ints kernel = dice.several(axes, 1, 7), stride = dice.several(axes, 1, 3);
    Ints pads;
    for (int side = 0; side < 2; ++side)
      for (const std::int64_t k : kernel) pads.push_back(k / 2);
    GraphBuilder b;
    b.input("x", x).constant("w", random(weight, -1, 1, seed)).node("Conv", "conv", {"x", "w"}, {"c"});
    b.node(dice.one_in(2) ? "MaxPool" : "AveragePool", "pool", {"c"}, {"p"},
           attrs({{"kernel_shape", kernel}, {"strides", stride}, {"pads", pads}}));
    b.constant("low", Tensor::scalar(-0.2f)).constant("high", Tensor::scalar(0.3f));
    b.node("Clip", "clip", {"p", "low", "high"}, {"y"});
    expect_one_answer(b.build({dice.one_in(2) ? "p" : "y"}), random(x, -1, 1, seed + 1), cat("pool ", seed));
  }
}

/// Zeros of both signs, in whatever order windows and axes meet them: the largest has none.
void test_extremes_of_zeros(void **) {
  Dice dice(5);
  const Tensor x(QTN_FLOAT32, {1, 5, 9, 8});
  for (float &v : std::span(x.as<float>(), static_cast<std::size_t>(x.count())))
    v = dice.one_in(3) ? -1.0f : dice.one_in(2) ? 0.0f : -0.0f;
  for (const std::int64_t kernel : {2, 5}) {
    GraphBuilder b;
    b.input("x", x.shape()).constant("axes", Tensor::from_ints(Ints{1, 2}));
    b.constant("w", random({5, 1, 1, 1}, 1, 1, 1))
        .node("Conv", "conv", {"x", "w"}, {"c"}, attrs({{"group", std::int64_t{5}}}));
    for (const char *of : {"x", "c"}) {
      const std::string pooled = cat(of, "p"), reduced = cat(of, "r"), whole = cat(of, "g");
      b.node("MaxPool", pooled, {of}, {pooled}, attrs({{"kernel_shape", Ints{kernel, kernel}}}));
      b.node("ReduceMax", reduced, {of, "axes"}, {reduced}).node("GlobalMaxPool", whole, {of}, {whole});
    }
    const graph::Graph g = b.build({"xp", "xr", "xg", "cp", "cr", "cg"});
    for (const runtime::Engine engine : {runtime::Engine::native, runtime::Engine::reference})
      for (const Tensor &y : run(g, x, engine, 1))
        for (const float v : std::span(y.as<const float>(), static_cast<std::size_t>(y.count())))
          assert_true(v == -1 || (v == 0 && !std::signbit(v)));
  }
}

/// Channels are two axes for a while.
void test_shuffled_channels(void **) {
  for (const Shape &x : {Shape{2, 3, 11}, Shape{1, 3, 5, 7}, Shape{2, 3, 3, 4, 5}, Shape{1, 3, 1, 6}}) {
    Shape weight{12, 3}, apart{x[0], 3, 4}, joined{x[0], 12};
    Ints perm{0, 2, 1};
    for (std::size_t axis = 2; axis < x.size(); ++axis) {
      weight.push_back(1);
      apart.push_back(x[axis]);
      joined.push_back(x[axis]);
      perm.push_back(static_cast<std::int64_t>(axis) + 1);
    }
    GraphBuilder b;
    b.input("x", x).constant("w", random(weight, -1, 1, 1)).node("Conv", "conv", {"x", "w"}, {"c"});
    b.constant("apart", Tensor::from_ints(Ints(apart.begin(), apart.end())))
        .node("Reshape", "split", {"c", "apart"}, {"s"});
    b.node("Transpose", "turn", {"s"}, {"t"}, attrs({{"perm", perm}}));
    b.constant("joined", Tensor::from_ints(Ints(joined.begin(), joined.end())));
    b.node("Reshape", "join", {"t", "joined"}, {"j"}).node("Relu", "relu", {"j"}, {"y"});
    expect_one_answer(b.build({"y", "t"}), random(x, -1, 1, 2), cat("shuffle ", to_string(x)));
  }
}

/// Truth values between images, which lie as they do.
void test_choices(void **) {
  for (const Shape &x : {Shape{2, 3, 11}, Shape{1, 3, 5, 7}, Shape{2, 3, 3, 4, 5}}) {
    Shape weight{12, 3}, channel{12};
    for (std::size_t axis = 2; axis < x.size(); ++axis) weight.push_back(1), channel.push_back(1);
    GraphBuilder b;
    b.input("x", x).constant("w", random(weight, -1, 1, 1)).node("Conv", "conv", {"x", "w"}, {"c"});
    b.constant("each", random(channel, -1, 1, 3)).constant("zero", Tensor::scalar(0.0f));
    b.node("Greater", "greater", {"c", "each"}, {"g"}).node("LessOrEqual", "less", {"c", "zero"}, {"l"});
    b.node("Or", "or", {"g", "l"}, {"o"}).node("Not", "not", {"l"}, {"n"}).node("And", "and", {"o", "n"}, {"a"});
    b.node("Where", "first", {"a", "c", "each"}, {"f"}).node("Where", "second", {"l", "f", "zero"}, {"y"});
    b.node("Cast", "cast", {"a"}, {"z"}, attrs({{"to", std::int64_t{1}}}));
    expect_one_answer(b.build({"y", "z"}), random(x, -1, 1, 2), cat("choices ", to_string(x)));
  }
}

/// A few rows times a matrix that is computed as well, one for each or one for all.
void test_few_rows(void **) {
  Dice dice(4);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::int64_t batch = dice.in(1, 3), rows = dice.in(1, 10), depth = dice.in(1, 300), columns = dice.in(1, 70);
    const bool shared = dice.one_in(2);
    GraphBuilder b;
    b.input("x", {batch, rows, depth}).constant("w", random({rows, columns}, -1, 1, seed));
    b.constant("axis", Tensor::from_ints(Ints{0}));
    b.node("Transpose", "turn", {"x"}, {"t"}, attrs({{"perm", Ints{0, 2, 1}}}));
    b.node("MatMul", "right", {"t", "w"}, {"r"});
    if (shared) b.node("ReduceMean", "mean", {"r", "axis"}, {"m"}, attrs({{"keepdims", std::int64_t{0}}}));
    b.node("MatMul", "product", {"x", shared ? "m" : "r"}, {"y"});
    expect_one_answer(b.build({"y"}), random({batch, rows, depth}, -0.1f, 0.1f, seed + 1),
                      cat(batch, " times ", rows, " rows of ", depth, " by ", columns));
  }
}

/// What an item comes to does not depend on the batch that it is in.
void test_batches(void **) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const Shape shape{5, 6, 11, 9};
    const graph::Graph g = any_batch(any_network(seed, {1, 6, 11, 9}));
    const Tensor x = random(shape, -1, 1, seed);
    std::vector<Tensor> all;
    try {
      all = run(g, x, runtime::Engine::native, 2);
    } catch (const Error &) {
      continue;
    }
    for (std::int64_t i = 0; i < 5; ++i) {
      const Tensor one = x.view({1, 6, 11, 9}, x.strides(), i * 6 * 11 * 9).to_contiguous();
      const Tensor want = run(g, one, runtime::Engine::native, 1)[0];
      const Tensor got = all[0].view(want.shape(), all[0].strides(), i * want.count()).to_contiguous();
      expect_equal(got, want, cat("item ", i, " of network ", seed));
    }
  }
}

/// Large outputs are written where they stay: twice, seen otherwise, and read by what follows. The next run leaves them
/// alone.
void test_large_outputs(void **) {
  GraphBuilder b;
  b.input("x", {300, 300}).node("Relu", "relu", {"x"}, {"y"}).constant("flat", Tensor::from_ints(Ints{90000}));
  b.node("Reshape", "reshape", {"y", "flat"}, {"z"}).node("Neg", "neg", {"y"}, {"w"});
  const runtime::Session session(b.build({"y", "z", "y", "w"}), {runtime::Engine::native, 1});
  const Tensor x = random({300, 300}, -1, 1, 1), other = random({300, 300}, -1, 1, 2);
  const Tensor *first[] = {&x}, *second[] = {&other};
  const std::vector<Tensor> outputs = session.run(first);
  session.run(second);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const float want = std::max(0.0f, x.as<const float>()[i]);
    for (const std::size_t o : {0, 1, 2}) assert_true(outputs[o].as<const float>()[i] == want);
    assert_true(outputs[3].as<const float>()[i] == -want);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_any_network),
                              cmocka_unit_test(test_products),
                              cmocka_unit_test(test_gemms),
                              cmocka_unit_test(test_large_weights),
                              cmocka_unit_test(test_rows_that_meet),
                              cmocka_unit_test(test_far_taps),
                              cmocka_unit_test(test_activations),
                              cmocka_unit_test(test_normalized_groups),
                              cmocka_unit_test(test_dense_blocks),
                              cmocka_unit_test(test_empty_parts_of_concat),
                              cmocka_unit_test(test_products_that_lie_as_images),
                              cmocka_unit_test(test_pools),
                              cmocka_unit_test(test_extremes_of_zeros),
                              cmocka_unit_test(test_shuffled_channels),
                              cmocka_unit_test(test_choices),
                              cmocka_unit_test(test_few_rows),
                              cmocka_unit_test(test_batches),
                              cmocka_unit_test(test_large_outputs)};
  return cmocka_run_group_tests_name("runtime/floats", tests, nullptr, nullptr);
}
