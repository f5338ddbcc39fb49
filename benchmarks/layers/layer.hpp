// SPDX-License-Identifier: Apache-2.0
// The layers that are measured, the numbers they are measured on, and what an engine makes of both.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace qtn::layers {

/// A convolution of one square image, padded by half its kernel, or a product of rows (size 0).
struct Layer {
  const char *set;
  std::int64_t in, out;
  std::int64_t size = 0, kernel = 1, stride = 1, groups = 1;
  std::int64_t rows = 1;

  bool is_product() const { return size == 0; }
  std::int64_t pad() const { return kernel / 2; }
  std::int64_t out_size() const { return (size + 2 * pad() - kernel) / stride + 1; }
  std::int64_t depth() const { return in / groups * kernel * kernel; }  ///< products of one output
  std::int64_t inputs() const { return is_product() ? rows * in : in * size * size; }
  std::int64_t outputs() const { return is_product() ? rows * out : out * out_size() * out_size(); }
  std::int64_t macs() const { return outputs() * depth(); }
  std::string name() const;
};

std::span<const Layer> all_layers();

/// y = clamp(rint((sum x * w + bias) * x_scale * w_scale[o] / y_scale), 0, 255): uint8 with zero point 0 and Relu.
struct Problem {
  /// weight_bits: 7 or 8. Below VNNI oneDNN adds pairs of products in 16 bits, which saturate with 8.
  Problem(const Layer &layer, int weight_bits);

  std::vector<std::uint8_t> x;  ///< [in][size][size] or [rows][in]
  std::vector<std::int8_t> w;   ///< [out][in / groups][kernel][kernel]
  std::vector<std::int32_t> bias;
  float x_scale, y_scale;
  std::vector<float> w_scale;  ///< [out]
};

/// A layer made ready: weights packed, memory in place.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void run() = 0;
  virtual std::vector<std::uint8_t> result() const = 0;  ///< [out][size][size] or [rows][out]
  virtual std::string kernel() const = 0;
};

std::unique_ptr<Engine> make_ours(const Layer &layer, const Problem &problem);
std::unique_ptr<Engine> make_onednn(const Layer &layer, const Problem &problem);
std::string onednn_version();

}  // namespace qtn::layers
