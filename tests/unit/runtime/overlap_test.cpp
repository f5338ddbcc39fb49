// SPDX-License-Identifier: Apache-2.0
// Convolutions of floats with few filters, ordinary and transposed, which are one product that is added up.
#include "one_answer.hpp"

namespace qtn::test {
namespace {

using Ints = std::vector<std::int64_t>;

struct Convolution {
  const char *op;
  Shape x, weight;
  Attrs attrs;
};

graph::Graph network(const Convolution &c, bool biased, bool relu) {
  GraphBuilder b;
  b.input("x", c.x).constant("w", random(c.weight, -0.5f, 0.5f, 1));
  std::vector<std::string> inputs{"x", "w"};
  if (biased) {
    b.constant("bias", random({c.weight[c.op == std::string("Conv") ? 0 : 1]}, -0.5f, 0.5f, 2));
    inputs.push_back("bias");
  }
  b.node(c.op, "few", inputs, {relu ? "u" : "y"}, c.attrs);
  if (relu) b.node("Relu", "relu", {"u"}, {"y"});
  return b.build({"y"});
}

bool is_added_up(const graph::Graph &g, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  const auto profile = nlohmann::json::parse(runtime::Session(g, {runtime::Engine::native, 1}).profile(inputs));
  for (const auto &node : profile.at("nodes"))
    if (node.at("kernel") == "overlap_add") return true;
  return false;
}

std::string described(const Convolution &c) {
  std::string all = cat(c.op, " x ", to_string(c.x), " w ", to_string(c.weight));
  for (const char *name : {"strides", "dilations", "pads", "output_padding"})
    if (c.attrs.has(name)) all += cat(" ", name, " ", to_string(Shape(c.attrs.get_ints(name))));
  return all;
}

/// Lines that lie and that stand, images, volumes, with kernels, strides, dilations and borders in any
/// combination.
void test_any_convolution(void **) {
  std::mt19937 engine(5);
  const auto in = [&](std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(engine);
  };
  int added_up = 0, convolutions = 0;
  for (int i = 0; i < 120; ++i) {
    const bool transposed = in(0, 2) > 0;
    const auto axes = static_cast<std::size_t>(in(1, 3));
    const bool upright = in(0, 3) == 0;
    const std::int64_t channels = in(16, 90), filters = in(1, 4);
    Convolution c{transposed ? "ConvTranspose" : "Conv", {in(1, 2), channels}, {}, {}};
    c.weight = transposed ? Shape{channels, filters} : Shape{filters, channels};
    Ints strides, dilations, extra, pads(2 * axes);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const bool still = axes == 3 ? axis == 0 : axes == 2 && axis == 1 && upright;
      const std::int64_t kernel = still ? 1 : in(2, 5), dilation = still ? 1 : std::max<std::int64_t>(1, in(-2, 3));
      const std::int64_t stride = transposed && !still ? in(1, 3) : 1, reach = (kernel - 1) * dilation;
      c.weight.push_back(kernel);
      strides.push_back(stride);
      dilations.push_back(dilation);
      extra.push_back(transposed ? in(0, stride - 1) : 0);
      pads[axis] = in(0, reach);
      pads[axis + axes] = in(0, reach);
      const std::int64_t longest = axis + 1 == axes || (axes == 2 && upright) ? 90 : 12;
      c.x.push_back(still ? in(1, 3) : std::max<std::int64_t>(reach + 1, in(1, longest)));
    }
    c.attrs.set("strides", strides);
    c.attrs.set("dilations", dilations);
    c.attrs.set("pads", pads);
    if (transposed) c.attrs.set("output_padding", extra);
    const graph::Graph g = network(c, in(0, 1) == 1, in(0, 1) == 1);
    const Tensor x = random(c.x, -1, 1, static_cast<unsigned>(i));
    expect_one_answer(g, x, described(c), 2);  // sums over channels, and of these over taps
    added_up += is_added_up(g, x);
    ++convolutions;
  }
  assert_true(added_up > convolutions / 3 && added_up < convolutions);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_any_convolution)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
