// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools with random windows: the native engine gives the bits of the reference engine on every
// instruction set, with one and two threads, at batch 1 and 3.
#include "graph/integer.hpp"
#include "runtime/support.hpp"
#include "sums.hpp"

namespace qtn::test {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : generator_(seed) {}
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator_);
  }
  bool one_in(std::int64_t n) { return in(1, n) == 1; }
  Ints two(std::int64_t low, std::int64_t high) { return {in(low, high), in(low, high)}; }

 private:
  std::mt19937 generator_;
};

struct Windowed {
  Shape x;
  Ints kernel, strides, dilations, pads;
};

/// Outputs exist, and no pad is as large as its window.
Windowed random_window(Dice &dice, std::int64_t channels) {
  Windowed w;
  do {
    w.kernel = dice.one_in(3) ? Ints{3, 3} : dice.two(1, 7);
    w.strides = dice.one_in(2) ? Ints{1, 1} : dice.two(1, 3);
    w.dilations = dice.one_in(3) ? dice.two(1, 2) : Ints{1, 1};
    w.x = {1, channels, dice.in(1, 18), dice.in(1, 24)};
    w.pads.clear();
    for (int i = 0; i < 4; ++i)
      w.pads.push_back(dice.in(0, std::min<std::int64_t>(3, w.kernel[static_cast<std::size_t>(i % 2)] - 1)));
  } while (w.x[2] + w.pads[0] + w.pads[2] < (w.kernel[0] - 1) * w.dilations[0] + 1 ||
           w.x[3] + w.pads[1] + w.pads[3] < (w.kernel[1] - 1) * w.dilations[1] + 1);
  return w;
}

Attrs attrs_of(const Windowed &w) {
  return attrs({{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}});
}

/// With a reader of y in integers, which keeps y in integers too.
graph::Graph with_reader(GraphBuilder &b, std::int64_t channels) {
  add_conv(b, "reader", "y", "z", {2, channels, 1, 1}, {});
  return b.build({"z"});
}

void expect_same_bits(const graph::Graph &float_graph, const std::string &what,
                      const quant::Config &config = quant::Config("onnx")) {
  const graph::Graph g = any_batch(quantized(float_graph, config));
  if (!graph::is_8bit_activation(g.value(g.nodes[0].outputs[0]).quantizer)) fail_test(what, ": y is not in integers");
  for (const std::int64_t batch : {1, 3}) {
    Shape shape = *float_graph.value(float_graph.inputs[0]).shape;
    shape[0] = batch;
    const Tensor x = random(shape, -1.2f, 1.7f, 7);
    const Tensor *inputs[] = {&x};
    const Tensor want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs)[0];
    each_isa([&](const std::string &isa) {
      for (const int threads : {1, 2})
        expect_equal(runtime::Session(g, {runtime::Engine::native, threads}).run(inputs)[0], want,
                     cat(isa, ", ", threads, " threads, batch ", batch, ", ", what));
    });
  }
}

std::string describe(const char *op, const Windowed &w, const Shape &weight) {
  return cat(op, " x ", to_string(w.x), " w ", to_string(weight), " kernel ", to_string(Shape(w.kernel)), " strides ",
             to_string(Shape(w.strides)), " dilations ", to_string(Shape(w.dilations)), " pads ",
             to_string(Shape(w.pads)));
}

void test_convolutions(void **) {
  Dice dice(1);
  for (int i = 0; i < 120; ++i) {
    const std::int64_t groups = dice.one_in(3) ? dice.in(2, 4) : 1, each = dice.in(1, dice.one_in(4) ? 40 : 9);
    const Windowed w = random_window(dice, groups * each);
    const Shape weight{groups * dice.in(1, dice.one_in(4) ? 70 : 9), each, w.kernel[0], w.kernel[1]};
    Attrs a = attrs_of(w);
    a.set("group", groups);
    GraphBuilder b;
    b.input("x", w.x);
    add_conv(b, "conv", "x", "y", weight, a);
    expect_same_bits(with_reader(b, weight[0]), describe("Conv", w, weight),
                     i % 2 ? seven_bit_weights() : quant::Config("onnx"));
  }
}

void test_depthwise(void **) {
  Dice dice(2);
  for (int i = 0; i < 80; ++i) {
    const std::int64_t channels = dice.in(1, dice.one_in(3) ? 150 : 40);
    const Windowed w = random_window(dice, channels);
    const Shape weight{channels, 1, w.kernel[0], w.kernel[1]};
    Attrs a = attrs_of(w);
    a.set("group", channels);
    GraphBuilder b;
    b.input("x", w.x);
    add_conv(b, "conv", "x", "y", weight, a);
    expect_same_bits(with_reader(b, channels), describe("depthwise", w, weight));
  }
}

/// One session sees images of all these sizes.
void expect_same_in_one_session(graph::Graph g, const std::vector<Shape> &sizes, bool integers, const std::string &what) {
  Shape &shape = *g.value(g.inputs[0]).shape;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) shape[axis] = -1;
  const runtime::Session reference(g, {runtime::Engine::reference, 1});
  each_isa([&](const std::string &isa) {
    const runtime::Session session(g, {runtime::Engine::native, 1});
    for (const Shape &size : sizes) {
      const Tensor image = random(size, -1.2f, 1.7f, 7);
      const Tensor *inputs[] = {&image};
      const Tensor got = session.run(inputs)[0], want = reference.run(inputs)[0];
      const std::string which = cat(isa, ", x ", to_string(size), ", ", what);
      if (integers)
        expect_equal(got, want, which);
      else if (!equal_but_for_sums(got, want, 0, 1e-5))
        fail_test(which, " is not that of the operators");
    }
  });
}

/// Images of up to three places along each axis, where many taps meet borders only, and others after them in one session.
void test_tiny_images(void **) {
  Dice dice(12);
  for (int i = 0; i < 150; ++i) {
    const auto axes = static_cast<std::size_t>(dice.in(1, 3));
    const bool depthwise = dice.one_in(4), integers = !dice.one_in(3);
    const std::int64_t groups = depthwise ? dice.in(2, 40) : dice.one_in(3) ? dice.in(2, 3) : 1;
    const std::int64_t each = depthwise ? 1 : dice.in(1, 40), filters = groups * (depthwise ? 1 : dice.in(1, 20));
    Shape x{1, groups * each}, weight{filters, each}, pointwise{2, filters};
    Ints strides, dilations, pads(2 * axes);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      weight.push_back(dice.in(1, axes == 3 ? 4 : 7));
      strides.push_back(dice.in(1, 2));
      dilations.push_back(dice.in(1, 2));
      const std::int64_t reach = (weight.back() - 1) * dilations.back();
      pads[axis] = dice.in(0, reach);
      pads[axes + axis] = dice.in(reach - pads[axis], reach);
      x.push_back(dice.in(1, 3));
      pointwise.push_back(1);
    }
    GraphBuilder b;
    b.input("x", x);
    add_conv(b, "conv", "x", "y", weight,
             attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}}));
    add_conv(b, "reader", "y", "z", pointwise, {});
    graph::Graph g = b.build({"z"});
    if (integers) g = quantized(g, i % 2 ? seven_bit_weights() : quant::Config("onnx"));
    std::vector<Shape> sizes{x};
    for (const int longest : {9, 3}) {
      for (std::size_t axis = 2; axis < x.size(); ++axis) x[axis] = dice.in(1, longest);
      sizes.push_back(x);
    }
    expect_same_in_one_session(g, sizes, integers,
                               cat("tiny image, w ", to_string(weight), " groups ", groups, " strides ",
                                   to_string(Shape(strides)), " dilations ", to_string(Shape(dilations)), " pads ",
                                   to_string(Shape(pads))));
  }
}

/// One convolution that sees images of one place along an axis, and larger ones, in either order.
void test_sizes_in_turns(void **) {
  const auto expect = [](const Shape &weight, const Attrs &a, const std::vector<Shape> &sizes,
                         const char *op = "Conv") {
    const bool transposed = std::string_view(op) == "ConvTranspose";
    GraphBuilder b;
    b.input("x", sizes[0]).constant("w", random(weight, -0.7f, 0.7f, 3));
    b.node(op, "convolution", {"x", "w"}, {"y"}, a);
    Shape pointwise{2, weight[transposed]};
    while (pointwise.size() < weight.size()) pointwise.push_back(1);
    add_conv(b, "reader", "y", "z", pointwise, {});
    const graph::Graph g = b.build({"z"});
    for (const bool integers : {true, false})
      expect_same_in_one_session(integers ? quantized(g, quant::Config("onnx")) : g, sizes, integers,
                                 cat("sizes in turns, w ", to_string(weight)));
  };
  for (const std::int64_t filters : {3, 24})
    for (const std::int64_t channels : {1, 6})
      expect({filters, channels, 5, 1}, attrs({{"pads", Ints{2, 0, 2, 0}}}),
             {{1, channels, 30, 1}, {1, channels, 30, 20}, {1, channels, 8, 1}});
  expect({6, 1, 5, 1}, attrs({{"pads", Ints{2, 0, 2, 0}}, {"group", std::int64_t{6}}}), {{1, 6, 9, 4}, {1, 6, 9, 1}});
  expect({6, 1, 1, 3, 3}, attrs({{"pads", Ints{0, 1, 2, 0, 1, 2}}, {"dilations", Ints{1, 1, 2}}, {"group", std::int64_t{6}}}),
         {{1, 6, 1, 5, 9}, {1, 6, 3, 5, 9}});
  // Images of one plane, each channel of which has five outputs, and volumes.
  expect({15, 1, 1, 1, 2}, attrs({{"pads", Ints{0, 0, 0, 0, 0, 1}}, {"group", std::int64_t{3}}}),
         {{1, 3, 4, 3, 5}, {1, 3, 1, 3, 5}, {1, 3, 2, 3, 5}});
  // Lines laid down, the taps of whose rows are fewer and filled up to as many.
  expect({1, 16, 4, 5, 2},
         attrs({{"strides", Ints{2, 2, 2}}, {"dilations", Ints{2, 1, 1}}, {"pads", Ints{0, 2, 1, 2, 0, 1}}, {"output_padding", Ints{0, 1, 1}}}),
         {{1, 1, 6, 6, 6}, {1, 1, 4, 4, 1}, {1, 1, 4, 4, 4}, {1, 1, 4, 4, 1}}, "ConvTranspose");
}

/// The same of any convolution, plain or transposed: weights of one node are packed for windows that differ with the image.
void test_any_sizes_in_turns(void **) {
  Dice dice(31);
  for (int i = 0; i < 200; ++i) {
    const auto axes = static_cast<std::size_t>(dice.in(dice.one_in(2) ? 3 : 1, 3));
    const bool transposed = dice.one_in(2), integers = dice.one_in(2), alone = dice.one_in(4);
    const std::int64_t groups = alone ? dice.in(2, 6) : dice.in(1, 3), each = alone ? 1 : dice.in(1, 3),
                       outputs = dice.one_in(4) ? 16 : dice.in(1, 6), channels = groups * each;
    Shape weight = transposed ? Shape{channels, outputs} : Shape{groups * outputs, each};
    Ints strides, dilations, pads(2 * axes);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      weight.push_back(dice.in(1, 5));
      strides.push_back(dice.in(1, 3));
      dilations.push_back(dice.in(1, 2));
      for (const std::size_t end : {std::size_t{0}, axes}) pads[axis + end] = dice.in(0, 2);
    }
    const auto any_size = [&](std::int64_t least) {
      Shape size{1, channels};
      for (std::size_t axis = 0; axis < axes; ++axis) {
        const std::int64_t reach = dilations[axis] * (weight[axis + 2] - 1) + 1, pad = pads[axis] + pads[axis + axes];
        const std::int64_t needed = transposed ? (pad - reach + strides[axis]) / strides[axis] + 1 : reach - pad;
        size.push_back(std::max({least, needed, dice.one_in(2) ? 1 : dice.in(1, 9)}));
      }
      return size;
    };
    std::vector<Shape> sizes{any_size(5)};
    for (int more = 0; more < 4; ++more) sizes.push_back(any_size(1));
    GraphBuilder b;
    b.input("x", sizes[0]).constant("w", random(weight, -0.7f, 0.7f, static_cast<unsigned>(i)));
    b.node(transposed ? "ConvTranspose" : "Conv", "convolution", {"x", "w"}, {"y"},
           attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}}));
    Shape pointwise{2, groups * outputs};
    while (pointwise.size() < weight.size()) pointwise.push_back(1);
    add_conv(b, "reader", "y", "z", pointwise, {});
    const graph::Graph g = b.build({"z"});
    expect_same_in_one_session(integers ? quantized(g, quant::Config("onnx")) : g, sizes, integers,
                               cat(transposed ? "transposed" : "plain", " convolution ", i, " in turns, w ",
                                   to_string(weight), " groups ", groups));
  }
}

/// Few outputs over wide rows, of which kernels make several that lie side by side together.
void test_few_outputs(void **) {
  Dice dice(8);
  for (int i = 0; i < 60; ++i) {
    std::size_t axes = static_cast<std::size_t>(dice.in(1, 3));
    const bool transposed = dice.one_in(4), upright = axes < 3 && dice.one_in(3);
    const std::int64_t channels = dice.in(1, dice.one_in(4) ? 40 : 9), filters = dice.in(1, 8);
    Shape x{1, channels}, weight = transposed ? Shape{channels, filters} : Shape{filters, channels};
    Ints strides, pads(2 * axes);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const bool last = axis + 1 == axes;
      weight.push_back(last ? dice.in(2, 9) : dice.in(1, 3));
      strides.push_back(dice.one_in(4) ? 2 : 1);
      for (const std::size_t end : {std::size_t{0}, axes}) pads[axis + end] = dice.in(0, weight.back() - 1);
      x.push_back(weight.back() + (last ? dice.in(8, 60) : dice.in(0, 4)));
    }
    if (upright) {
      for (Shape *shape : {&x, &weight}) shape->push_back(1);
      strides.push_back(1);
      pads.insert(pads.begin() + static_cast<std::ptrdiff_t>(axes++), 0);
      pads.push_back(0);
    }
    GraphBuilder b;
    b.input("x", x).constant("w", random(weight, -0.7f, 0.7f, static_cast<unsigned>(i)));
    b.node(transposed ? "ConvTranspose" : "Conv", "conv", {"x", "w"}, {"y"},
           attrs({{"strides", strides}, {"pads", pads}}));
    Shape pointwise{2, filters};
    for (std::size_t axis = 0; axis < axes; ++axis) pointwise.push_back(1);
    add_conv(b, "reader", "y", "z", pointwise, {});
    expect_same_bits(b.build({"z"}),
                     cat("few outputs x ", to_string(x), " w ", to_string(weight), " strides ",
                         to_string(Shape(strides)), " pads ", to_string(Shape(pads)), transposed ? " transposed" : ""),
                     i % 2 ? seven_bit_weights() : quant::Config("onnx"));
  }
}

/// Transposed convolutions of volumes in groups of a few channels, whose windows begin before or within the volume.
void test_transposed_volumes(void **) {
  Dice dice(9);
  for (int i = 0; i < 150; ++i) {
    const std::int64_t groups = dice.in(1, 4), each = dice.one_in(2) ? 1 : dice.in(2, 5), filters = dice.in(1, 4);
    Shape x{1, groups * each}, weight{groups * each, filters};
    Ints strides, dilations, pads(6);
    for (const std::size_t axis : {0, 1, 2}) {
      weight.push_back(dice.in(1, 4));
      strides.push_back(dice.in(1, 3));
      dilations.push_back(dice.in(1, 2));
      x.push_back(axis == 2 ? dice.in(1, dice.one_in(2) ? 3 : 14) : dice.in(1, 4));
      const std::int64_t reach = (weight.back() - 1) * dilations.back(),
                         whole = (x.back() - 1) * strides.back() + reach;
      pads[axis] = dice.in(0, std::min(reach, whole));
      pads[axis + 3] = dice.in(0, std::min(reach, whole - pads[axis]));
    }
    GraphBuilder b;
    b.input("x", x).constant("w", random(weight, -0.7f, 0.7f, static_cast<unsigned>(i)));
    b.node("ConvTranspose", "up", {"x", "w"}, {"y"},
           attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}}));
    add_conv(b, "reader", "y", "z", {2, groups * filters, 1, 1, 1}, {});
    expect_same_bits(
        b.build({"z"}),
        cat("transposed volume x ", to_string(x), " w ", to_string(weight), " groups ", groups, " strides ",
            to_string(Shape(strides)), " dilations ", to_string(Shape(dilations)), " pads ", to_string(Shape(pads))),
        i % 2 ? seven_bit_weights() : quant::Config("onnx"));
  }
}

/// Phases of one tap: some begin before the volume, and some leave out its last pixels.
void test_phases_of_one_tap(void **) {
  GraphBuilder b;
  b.input("x", {2, 3, 4, 3, 2}).constant("w", random({3, 2, 1, 2, 3}, -0.7f, 0.7f, 1));
  b.node("ConvTranspose", "up", {"x", "w"}, {"y"},
         attrs({{"strides", Ints{2, 3, 3}},
                {"dilations", Ints{1, 1, 2}},
                {"pads", Ints{0, 1, 0, 0, 1, 1}},
                {"group", std::int64_t{3}}}));
  add_conv(b, "reader", "y", "z", {2, 6, 1, 1, 1}, {});
  expect_same_bits(b.build({"z"}), "phases of one tap");
}

/// Taps far apart, farther than the image is wide among them, and rows enough for several bands.
void test_dilated_depthwise(void **) {
  Dice dice(7);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t channels = dice.in(2, dice.one_in(3) ? 150 : 40);
    Ints kernel = dice.two(1, 5), dilations = dice.two(1, 13), strides = dice.one_in(4) ? dice.two(1, 2) : Ints{1, 1};
    Ints pads(4);
    Shape x{1, channels}, weight{channels, 1, kernel[0], kernel[1]};
    for (const std::size_t axis : {0, 1}) {
      const std::int64_t reach = (kernel[axis] - 1) * dilations[axis];
      for (const std::size_t end : {0, 2}) pads[axis + end] = dice.in(0, reach);
      const std::int64_t least = std::max<std::int64_t>(1, reach + 1 - pads[axis] - pads[axis + 2]);
      x.push_back(least + dice.in(0, axis == 0 && dice.one_in(4) ? 70 : 20));
    }
    GraphBuilder b;
    b.input("x", x);
    add_conv(b, "conv", "x", "y", weight,
             attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", channels}}));
    expect_same_bits(with_reader(b, channels), cat("dilated depthwise x ", to_string(x), " w ", to_string(weight),
                                                   " strides ", to_string(Shape(strides)), " dilations ",
                                                   to_string(Shape(dilations)), " pads ", to_string(Shape(pads))));
  }
}

/// What lies between taps does not matter where there is one.
void test_far_dilation_of_one_tap(void **) {
  constexpr std::int64_t kFar = 1 << 30;
  for (const Ints &kernel : {Ints{1, 1}, Ints{1, 3}, Ints{3, 1}}) {
    GraphBuilder b;
    b.input("x", {1, 5, 9, 9});
    const Ints dilations{kernel[0] == 1 ? kFar : 2, kernel[1] == 1 ? kFar : 2};
    add_conv(b, "conv", "x", "y", {5, 1, kernel[0], kernel[1]},
             attrs({{"dilations", dilations}, {"group", std::int64_t{5}}}));
    expect_same_bits(with_reader(b, 5), cat("far dilation, kernel ", to_string(Shape(kernel))));
  }
}

/// Along one to three axes. Kernels may be larger than x, pads may cut off what only they reach, and outputs may be
/// what no tap falls on.
void test_transposed_convolutions(void **) {
  Dice dice(4);
  for (int i = 0; i < 160; ++i) {
    const std::int64_t axes = dice.one_in(3) ? dice.in(1, 3) : 2;
    const bool depthwise = dice.one_in(4);
    const std::int64_t groups = depthwise ? dice.in(2, 40) : dice.one_in(3) ? dice.in(2, 3) : 1;
    const std::int64_t each = depthwise ? 1 : dice.in(1, dice.one_in(4) ? 40 : 9);
    const std::int64_t filters = depthwise ? 1 : dice.in(1, dice.one_in(4) ? 40 : 9);
    Shape x{1, groups * each}, weight{groups * each, filters};
    Ints strides, dilations, extra, begin, end;
    for (std::int64_t axis = 0; axis < axes; ++axis) {
      const std::int64_t length = dice.in(1, axes == 3 ? 5 : 14), kernel = dice.in(1, axes == 3 ? 3 : 6);
      const std::int64_t stride = dice.in(1, 4), dilation = dice.one_in(3) ? dice.in(1, 3) : 1;
      x.push_back(length);
      weight.push_back(kernel);
      strides.push_back(stride);
      dilations.push_back(dilation);
      extra.push_back(dice.in(0, std::max(stride, dilation) - 1));
      const std::int64_t whole = stride * (length - 1) + (kernel - 1) * dilation + 1 + extra.back();
      begin.push_back(dice.in(0, std::min<std::int64_t>(4, whole - 1)));
      end.push_back(dice.in(0, std::min<std::int64_t>(4, whole - 1 - begin.back())));
    }
    begin.insert(begin.end(), end.begin(), end.end());
    GraphBuilder b;
    b.input("x", x).constant("w", random(weight, -0.7f, 0.7f, static_cast<unsigned>(i)));
    std::vector<std::string> inputs{"x", "w"};
    if (dice.one_in(2)) {
      b.constant("bias", random({groups * filters}, -0.5f, 0.5f, 3));
      inputs.push_back("bias");
    }
    const bool relu = dice.one_in(2);
    b.node("ConvTranspose", "up", inputs, {relu ? "u" : "y"},
           attrs({{"strides", strides},
                  {"dilations", dilations},
                  {"output_padding", extra},
                  {"pads", begin},
                  {"group", groups}}));
    if (relu) b.node("Relu", "relu", {"u"}, {"y"});
    Shape pointwise{2, groups * filters};
    for (std::int64_t axis = 0; axis < axes; ++axis) pointwise.push_back(1);
    add_conv(b, "reader", "y", "z", pointwise, {});
    expect_same_bits(b.build({"z"}),
                     cat("ConvTranspose x ", to_string(x), " w ", to_string(weight), " groups ", groups, " strides ",
                         to_string(Shape(strides)), " dilations ", to_string(Shape(dilations)), " output_padding ",
                         to_string(Shape(extra)), " pads ", to_string(Shape(begin))),
                     i % 2 ? seven_bit_weights() : quant::Config("onnx"));
  }
}

/// More than are steps of their own: windows that overlap by half, by other lengths and not at all, outputs that are no
/// whole number of strides, a phase that pads cut off, and taps that are few for so many phases.
void test_many_phases(void **) {
  const struct {
    Shape x, w;
    Ints strides, pads;
  } all[] = {{{1, 6, 9}, {6, 1, 200}, {100}, {}},
             {{2, 6, 9}, {6, 2, 161}, {80}, {30, 17}},
             {{1, 5, 40}, {5, 3, 80}, {80}, {100, 79}},
             {{1, 5, 4, 3}, {5, 3, 32, 20}, {16, 10}, {8, 3, 5, 2}},
             {{2, 5, 4, 3}, {5, 1, 16, 24}, {8, 9}, {0, 11, 1, 7}},
             {{1, 4, 3, 5}, {4, 2, 1, 2}, {9, 9}, {}}};
  for (const auto &[x, w, strides, pads] : all) {
    GraphBuilder b;
    b.input("x", x).constant("w", random(w, -0.7f, 0.7f, 1)).constant("bias", random({w[1]}, -0.5f, 0.5f, 3));
    Attrs a = attrs({{"strides", strides}});
    if (!pads.empty()) a.set("pads", pads);
    b.node("ConvTranspose", "up", {"x", "w", "bias"}, {"y"}, a);
    Shape pointwise{2, w[1]};
    for (std::size_t axis = 2; axis < x.size(); ++axis) pointwise.push_back(1);
    add_conv(b, "reader", "y", "z", pointwise, {});
    expect_same_bits(b.build({"z"}), cat("phases of x ", to_string(x), " w ", to_string(w)));
  }
}

/// A convolution or a pool over so many axes; from `still` on they have length 1, and windows do not move along them.
void expect_windows(Dice &dice, std::size_t axes, std::size_t still, std::int64_t longest) {
  const bool depthwise = dice.one_in(4);
  const std::int64_t groups = depthwise ? dice.in(2, dice.one_in(4) ? 270 : 40) : dice.one_in(3) ? dice.in(2, 3) : 1;
  const std::int64_t channels = groups * (depthwise ? 1 : dice.in(1, 9));
  Shape x{1, channels};
  Ints kernel, strides, dilations, pads(2 * axes);
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const bool moves = axis < still;
    kernel.push_back(moves ? dice.in(1, 4) : 1);
    strides.push_back(dice.in(1, 3));
    dilations.push_back(dice.one_in(3) ? 2 : 1);
    const std::int64_t reach = (kernel.back() - 1) * dilations.back() + 1;
    pads[axis] = dice.in(0, std::min<std::int64_t>(3, kernel.back() - 1));
    pads[axes + axis] = dice.in(0, std::min<std::int64_t>(3, kernel.back() - 1));
    const std::int64_t least = std::max<std::int64_t>(1, reach - pads[axis] - pads[axes + axis]);
    x.push_back(least + (moves ? dice.in(0, longest) : 0));
  }
  Attrs a = attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}});
  const std::int64_t kind = dice.in(0, 4);
  const char *op = kind < 2 ? "Conv" : kind == 2 ? "MaxPool" : kind == 3 ? "AveragePool" : "GlobalAveragePool";
  GraphBuilder b;
  b.input("x", x);
  std::int64_t made = channels;
  if (kind < 2) {
    made = groups * (depthwise ? 1 : dice.in(1, 9));
    Shape weight{made, channels / groups};
    for (const std::int64_t k : kernel) weight.push_back(k);
    a.set("group", groups);
    add_conv(b, "conv", "x", "y", weight, a);
  } else if (kind == 4) {
    b.node(op, "pool", {"x"}, {"y"});
  } else {
    a.set("kernel_shape", kernel);
    if (kind == 3) a.set("count_include_pad", dice.in(0, 1));
    b.node(op, "pool", {"x"}, {"y"}, a);
  }
  Shape pointwise{2, made};
  for (std::size_t axis = 0; axis < axes; ++axis) pointwise.push_back(1);
  add_conv(b, "reader", "y", "z", pointwise, {});
  expect_same_bits(b.build({"z"}), cat(op, " x ", to_string(x), " kernel ", to_string(Shape(kernel)), " strides ",
                                       to_string(Shape(strides)), " dilations ", to_string(Shape(dilations)), " pads ",
                                       to_string(Shape(pads)), " groups ", groups));
}

/// Over one axis and over three.
void test_lines_and_volumes(void **) {
  Dice dice(5);
  for (int i = 0; i < 160; ++i) dice.one_in(2) ? expect_windows(dice, 1, 1, 20) : expect_windows(dice, 3, 3, 5);
}

/// Lines that stand upright, and images that do in volumes.
void test_upright_lines(void **) {
  Dice dice(10);
  for (int i = 0; i < 160; ++i) {
    const std::size_t axes = dice.one_in(2) ? 2 : 3, still = static_cast<std::size_t>(dice.in(1, axes == 2 ? 1 : 2));
    expect_windows(dice, axes, still, still == 1 ? 40 : 12);
  }
}

/// Volumes that are read where they lie: rows of outputs as long as tiles, and channels in fours; with others, a copy with
/// borders. Long kernels have many sets of taps inside the volume.
void test_wide_volumes(void **) {
  Dice dice(6);
  for (int i = 0; i < 90; ++i) {
    const std::int64_t groups = dice.one_in(4) ? 2 : 1;
    const std::int64_t channels = groups * (dice.one_in(3) ? dice.in(1, 7) : 4 * dice.in(1, 3));
    const std::int64_t longest = dice.one_in(6) ? 7 : 4;
    const Shape x{1, channels, dice.in(1, longest + 1), dice.in(1, longest + 2), dice.in(9, 24)};
    Ints kernel, strides, dilations, pads(6);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      kernel.push_back(std::min(longest == 7 ? 7 : dice.in(1, 4), x[2 + axis]));
      strides.push_back(dice.one_in(3) ? 2 : 1);
      dilations.push_back(2 * kernel.back() - 1 <= x[2 + axis] && dice.one_in(3) ? 2 : 1);
      for (const std::size_t end : {0, 3}) pads[axis + end] = dice.in(0, kernel.back() - 1);
    }
    const Shape weight{groups * dice.in(1, 20), channels / groups, kernel[0], kernel[1], kernel[2]};
    GraphBuilder b;
    b.input("x", x);
    add_conv(b, "conv", "x", "y", weight,
             attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}}));
    add_conv(b, "reader", "y", "z", {2, weight[0], 1, 1, 1}, {});
    expect_same_bits(
        b.build({"z"}),
        cat("wide volume x ", to_string(x), " w ", to_string(weight), " strides ", to_string(Shape(strides)),
            " dilations ", to_string(Shape(dilations)), " pads ", to_string(Shape(pads)), " groups ", groups),
        i % 2 ? seven_bit_weights() : quant::Config("onnx"));
  }
}

/// So wide that a block is a row of outputs, whose taps lie farther apart than a copy of it would be worth.
void test_far_rows(void **) {
  Dice dice(11);
  for (int i = 0; i < 24; ++i) {
    const std::int64_t channels = 4 * dice.in(1, 8), right = dice.in(1, 9), down = dice.in(2, 9);
    const Shape x{1, channels, 2 * down + dice.in(1, 3), 24 * 1024 / channels / dice.in(1, 2) + dice.in(0, 9)};
    const Shape weight{dice.in(1, 20), channels, 3, 3};
    const Ints pads{dice.in(0, 2 * down), dice.in(0, 2 * right), dice.in(0, 2 * down), dice.in(0, 2 * right)};
    GraphBuilder b;
    b.input("x", x);
    add_conv(b, "conv", "x", "y", weight, attrs({{"dilations", Ints{down, right}}, {"pads", pads}}));
    expect_same_bits(with_reader(b, weight[0]), cat("far rows x ", to_string(x), " w ", to_string(weight),
                                                    " dilations ", down, " ", right, " pads ", to_string(Shape(pads))));
  }
}

void test_pools(void **) {
  Dice dice(3);
  for (int i = 0; i < 60; ++i) {
    const Windowed w = random_window(dice, dice.in(1, 40));
    const char *op = dice.one_in(2) ? "MaxPool" : "AveragePool";
    Attrs a = attrs_of(w);
    a.set("kernel_shape", w.kernel);
    GraphBuilder b;
    b.input("x", w.x).node(op, "pool", {"x"}, {"y"}, a);
    expect_same_bits(with_reader(b, w.x[1]), describe(op, w, {}));
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_convolutions),
      cmocka_unit_test(test_depthwise),
      cmocka_unit_test(test_tiny_images),
      cmocka_unit_test(test_sizes_in_turns),
      cmocka_unit_test(test_any_sizes_in_turns),
      cmocka_unit_test(test_few_outputs),
      cmocka_unit_test(test_transposed_volumes),
      cmocka_unit_test(test_phases_of_one_tap),
      cmocka_unit_test(test_dilated_depthwise),
      cmocka_unit_test(test_far_dilation_of_one_tap),
      cmocka_unit_test(test_far_rows),
      cmocka_unit_test(test_pools),
      cmocka_unit_test(test_transposed_convolutions),
      cmocka_unit_test(test_many_phases),
      cmocka_unit_test(test_lines_and_volumes),
      cmocka_unit_test(test_upright_lines),
      cmocka_unit_test(test_wide_volumes),
  };
  return cmocka_run_group_tests_name("runtime.window_fuzz", tests, nullptr, nullptr);
}
