// SPDX-License-Identifier: Apache-2.0
// Single layers, beside the operators whose bits they have.
#include "fuzzing.hpp"

namespace fuzz {
namespace {

using Shape = std::vector<std::int64_t>;

Quantizer grid(Bytes &bytes, qdtype dtype, std::size_t count) {
  std::vector<double> scales;
  std::vector<std::int64_t> zeros;
  for (std::size_t i = 0; i < count; ++i) {
    scales.push_back(bytes.in(1, 200) / 1024.0);
    zeros.push_back(dtype == QTN_UINT8 ? bytes.in(0, 255) : bytes.in(-3, 3));
  }
  const bool channels = count > 1;
  return make<Quantizer>(qquantizer_create, dtype, channels ? QTN_PER_CHANNEL_AFFINE : QTN_PER_TENSOR_AFFINE, 0,
                         scales.data(), zeros.data(), count, nullptr);
}

Tensor quantized(const Tensor &t, const Quantizer &q) { return make<Tensor>(qtensor_quantize, t.get(), q.get()); }

struct Layout {
  std::string kind;
  Shape x, weight;
  Attrs attrs;
};

Layout layout_of(Bytes &bytes) {
  Layout layout;
  layout.attrs = make<Attrs>(qattrs_create);
  if (bytes.one_in(2)) {
    layout.kind = "linear";
    const std::int64_t k = bytes.in(1, 200), n = bytes.in(1, 70);
    for (int rank = bytes.in(0, 2); rank > 0; --rank) layout.x.push_back(bytes.in(0, 9));
    layout.x.push_back(k);
    layout.weight = {n, k};
    return layout;
  }
  layout.kind = "conv2d";
  const std::int64_t per = bytes.in(1, 9), group = bytes.one_in(2) ? bytes.in(1, 40) : 1, filters = bytes.in(1, 5);
  const std::int64_t kernel[] = {bytes.in(1, 5), bytes.in(1, 5)};
  layout.x = {bytes.in(0, 2), group > 1 && bytes.one_in(2) ? group : per * group, bytes.in(1, 14), bytes.in(1, 14)};
  layout.weight = {group * filters, layout.x[1] / group, kernel[0], kernel[1]};
  must(qattrs_set_int(layout.attrs.get(), "group", group), "group");
  std::int64_t numbers[8];
  for (std::int64_t &n : numbers) n = bytes.one_in(32) ? awkward_int(bytes) : bytes.in(0, 2);
  must(qattrs_set_ints(layout.attrs.get(), "pads", numbers, 4), "pads");
  for (std::int64_t &n : numbers) n += n < INT64_MAX ? 1 : 0;
  if (bytes.one_in(2)) must(qattrs_set_ints(layout.attrs.get(), "strides", numbers + 4, 2), "strides");
  if (bytes.one_in(3)) must(qattrs_set_ints(layout.attrs.get(), "dilations", numbers + 6, 2), "dilations");
  return layout;
}

void test(const std::uint8_t *data, std::size_t size) {
  static const std::string best = qlib_isa();
  Bytes bytes(data, size);
  const Layout layout = layout_of(bytes);
  const bool linear = layout.kind == "linear";
  const auto filters = static_cast<std::size_t>(layout.weight[0]);
  const Tensor real_x = filled(QTN_FLOAT32, layout.x, bytes.byte()),
               real_weight = filled(QTN_FLOAT32, layout.weight, bytes.byte());
  const Tensor bias = bytes.one_in(2) ? filled(QTN_FLOAT32, {layout.weight[0]}, bytes.byte()) : nullptr;
  const Quantizer x_grid = grid(bytes, bytes.one_in(2) ? QTN_INT8 : QTN_UINT8, 1);
  const qdtype weight_dtype = bytes.one_in(3) ? QTN_UINT8 : QTN_INT8;
  const Quantizer weight_grid = grid(bytes, weight_dtype, bytes.one_in(2) ? 1 : filters);
  const Quantizer out_grid = bytes.one_in(2) ? grid(bytes, bytes.one_in(2) ? QTN_INT8 : QTN_UINT8, 1) : nullptr;
  require(real_x && real_weight && x_grid && weight_grid, std::string("operands: ") + qerror_message());
  const Tensor x = quantized(real_x, x_grid), weight = quantized(real_weight, weight_grid);

  if (bytes.one_in(3)) must(qlib_set_isa("scalar"), "scalar");
  const Layer layer = make<Layer>(qlayer_create, layout.kind.c_str(), weight.get(), bias.get(), nullptr, x_grid.get(),
                                  out_grid.get(), linear ? nullptr : layout.attrs.get());
  Tensor got;
  if (layer) got = make<Tensor>(qlayer_run, layer.get(), x.get());
  must(qlib_set_isa(best.c_str()), "the best instruction set");
  const Tensor want =
      linear ? make<Tensor>(qop_linear, x.get(), weight.get(), bias.get(), out_grid.get())
             : make<Tensor>(qop_conv2d, x.get(), weight.get(), bias.get(), out_grid.get(), layout.attrs.get());
  require((got != nullptr) == (want != nullptr), layout.kind + ": " + qerror_message());
  std::string difference;
  if (got && !same_bits(got.get(), want.get(), &difference)) fail(layout.kind + ": " + difference);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{16} << 20, fuzz::test)
