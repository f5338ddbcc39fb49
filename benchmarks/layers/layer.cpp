// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.hpp"

namespace qtn::layers {
namespace {

constexpr Layer conv(const char *set, std::int64_t kernel, std::int64_t in, std::int64_t out, std::int64_t size,
                     std::int64_t stride = 1) {
  return {set, in, out, size, kernel, stride};
}

constexpr Layer depthwise(const char *set, std::int64_t kernel, std::int64_t channels, std::int64_t size,
                          std::int64_t stride = 1) {
  return {set, channels, channels, size, kernel, stride, channels};
}

constexpr Layer product(const char *set, std::int64_t rows, std::int64_t in, std::int64_t out) {
  return {set, in, out, 0, 1, 1, 1, rows};
}

constexpr Layer kLayers[] = {
    conv("stem", 7, 3, 64, 224, 2),
    conv("stem", 3, 3, 32, 224, 2),

    // Every distinct one but the stem.
    conv("resnet50", 1, 64, 64, 56),
    conv("resnet50", 3, 64, 64, 56),
    conv("resnet50", 1, 64, 256, 56),
    conv("resnet50", 1, 256, 64, 56),
    conv("resnet50", 1, 256, 128, 56),
    conv("resnet50", 3, 128, 128, 56, 2),
    conv("resnet50", 1, 256, 512, 56, 2),
    conv("resnet50", 1, 128, 512, 28),
    conv("resnet50", 1, 512, 128, 28),
    conv("resnet50", 3, 128, 128, 28),
    conv("resnet50", 1, 512, 256, 28),
    conv("resnet50", 3, 256, 256, 28, 2),
    conv("resnet50", 1, 512, 1024, 28, 2),
    conv("resnet50", 1, 256, 1024, 14),
    conv("resnet50", 1, 1024, 256, 14),
    conv("resnet50", 3, 256, 256, 14),
    conv("resnet50", 1, 1024, 512, 14),
    conv("resnet50", 3, 512, 512, 14, 2),
    conv("resnet50", 1, 1024, 2048, 14, 2),
    conv("resnet50", 1, 512, 2048, 7),
    conv("resnet50", 1, 2048, 512, 7),
    conv("resnet50", 3, 512, 512, 7),

    // The twenty largest, by products, of the distinct ones but the stem.
    depthwise("mobilenet_v2", 3, 32, 112),
    conv("mobilenet_v2", 1, 32, 16, 112),
    conv("mobilenet_v2", 1, 16, 96, 112),
    conv("mobilenet_v2", 1, 96, 24, 56),
    conv("mobilenet_v2", 1, 24, 144, 56),
    depthwise("mobilenet_v2", 3, 144, 56),
    conv("mobilenet_v2", 1, 144, 24, 56),
    conv("mobilenet_v2", 1, 144, 32, 28),
    conv("mobilenet_v2", 1, 32, 192, 28),
    conv("mobilenet_v2", 1, 192, 32, 28),
    conv("mobilenet_v2", 1, 64, 384, 14),
    conv("mobilenet_v2", 1, 384, 64, 14),
    conv("mobilenet_v2", 1, 384, 96, 14),
    conv("mobilenet_v2", 1, 96, 576, 14),
    conv("mobilenet_v2", 1, 576, 96, 14),
    conv("mobilenet_v2", 1, 576, 160, 7),
    conv("mobilenet_v2", 1, 160, 960, 7),
    conv("mobilenet_v2", 1, 960, 160, 7),
    conv("mobilenet_v2", 1, 960, 320, 7),
    conv("mobilenet_v2", 1, 320, 1280, 7),

    depthwise("depthwise", 5, 240, 14),
    depthwise("depthwise", 5, 672, 7),
    depthwise("depthwise", 5, 672, 14, 2),
    depthwise("depthwise", 5, 960, 7),

    product("product", 1, 2048, 1000),
    product("product", 1024, 1024, 1024),
};

}  // namespace

std::string Layer::name() const {
  if (is_product()) return cat(rows, "x", in, "x", out);
  const std::string window = stride > 1 ? cat(kernel, "x", kernel, "s", stride) : cat(kernel, "x", kernel);
  return groups > 1 ? cat("dw", window, "_", in, "@", size) : cat(window, "_", in, "-", out, "@", size);
}

std::span<const Layer> all_layers() { return kLayers; }

Problem::Problem(const Layer &layer, int weight_bits)
    : x(static_cast<std::size_t>(layer.inputs())),
      w(static_cast<std::size_t>(layer.out * layer.depth())),
      bias(static_cast<std::size_t>(layer.out)),
      x_scale(0.02f),
      w_scale(static_cast<std::size_t>(layer.out)) {
  std::minstd_rand engine(1);
  const auto fill = [&engine](auto &to, int lo, int hi) {
    std::uniform_int_distribution<int> value(lo, hi);
    for (auto &v : to) v = static_cast<std::remove_reference_t<decltype(v)>>(value(engine));
  };
  fill(x, 0, 255);
  const int bound = weight_bits == 7 ? 63 : 127;
  fill(w, -bound, bound);
  const double deviation = 147 * 0.58 * bound * std::sqrt(static_cast<double>(layer.depth()));  // of a sum of products
  fill(bias, static_cast<int>(-deviation), static_cast<int>(deviation));
  std::uniform_real_distribution<float> scale(0.002f, 0.004f);
  std::generate(w_scale.begin(), w_scale.end(), [&] { return scale(engine); });
  y_scale = static_cast<float>(deviation * 3 / 255) * x_scale * 0.003f;
}

}  // namespace qtn::layers
