// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/layer.hpp"

#include <algorithm>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "ops/common/window.hpp"

namespace qtn::quant {
namespace {

/// One row of a convolution: the taps of output `o` of an image, in the order of the weights, zeros outside.
void copy_patch(const ops::Window &w, std::int64_t channels, const float *image, std::int64_t o, float *row) {
  const std::int64_t at[3] = {o / (w.out[1] * w.out[2]), o / w.out[2] % w.out[1], o % w.out[2]};
  const std::int64_t plane = w.in[0] * w.in[1] * w.in[2];
  const auto place = [&](std::size_t axis, std::int64_t k) {
    return at[axis] * w.stride[axis] - w.pad_begin[axis] + k * w.dilation[axis];
  };
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t k0 = 0; k0 < w.kernel[0]; ++k0)
      for (std::int64_t k1 = 0; k1 < w.kernel[1]; ++k1)
        for (std::int64_t k2 = 0; k2 < w.kernel[2]; ++k2) {
          const std::int64_t i0 = place(0, k0), i1 = place(1, k1), i2 = place(2, k2);
          const bool inside = i0 >= 0 && i0 < w.in[0] && i1 >= 0 && i1 < w.in[1] && i2 >= 0 && i2 < w.in[2];
          *row++ = inside ? image[c * plane + (i0 * w.in[1] + i1) * w.in[2] + i2] : 0.0f;
        }
}

}  // namespace

std::optional<Layer> layer_of(const graph::Node &node, const Shape &weight) {
  if (!graph::is_linear(node) || node.op->product->channel_groups) return std::nullopt;
  Layer layer{};
  layer.groups = 1;
  if (graph::is_convolution(node)) {
    layer.convolution = true;
    layer.groups = node.attrs.get_int("group", 1);
    if (layer.groups < 1 || weight.size() < 3 || weight[0] % layer.groups != 0) return std::nullopt;
    layer.outputs = weight[0] / layer.groups;
    layer.depth = element_count(weight, 1, weight.size());
    return layer;
  }
  if (weight.size() != 2 || node.attrs.get_int("transA", 0) != 0) return std::nullopt;
  layer.transposed = graph::output_channel_axis(node) == 1;
  layer.outputs = weight[layer.transposed ? 1 : 0];
  layer.depth = weight[layer.transposed ? 0 : 1];
  return layer;
}

bool adds_to_channels(const graph::Graph &g, const graph::Node &node, const Layer &layer) {
  if (!graph::product_addition(node).empty()) return false;
  const graph::ValueId bias = input_of(node, 2);
  if (bias == graph::kNoValue) return true;
  const Tensor *t = graph::float_constant(g, bias);
  return t && graph::is_of_channels(*t, layer.channels());
}

std::vector<float> rows_of(const Layer &layer, const graph::Node &node, const Tensor &x, const Shape &weight,
                           std::int64_t group, std::int64_t limit) {
  const Tensor plain = x.to_contiguous();
  const ops::Window window =
      layer.convolution ? ops::conv_window(node.attrs, x.shape(), weight).lifted() : ops::Window();
  const std::int64_t pixels = layer.convolution ? window.outputs_count() : 0;
  const std::int64_t all = layer.convolution ? x.dim(0) * pixels : x.count() / layer.depth;
  const std::int64_t count = std::min(all, limit);
  std::vector<float> rows(static_cast<std::size_t>(count * layer.depth));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = i * all / count;
    float *row = rows.data() + i * layer.depth;
    if (!layer.convolution) {
      std::copy_n(plain.as<const float>() + from * layer.depth, layer.depth, row);
      continue;
    }
    const std::int64_t channels = x.dim(1) / layer.groups;
    const std::int64_t plane = x.count() / (x.dim(0) * x.dim(1));
    copy_patch(window, channels, plain.as<const float>() + (from / pixels * x.dim(1) + group * channels) * plane,
               from % pixels, row);
  }
  return rows;
}

}  // namespace qtn::quant
