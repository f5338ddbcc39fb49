// SPDX-License-Identifier: Apache-2.0
// oneDNN's primitive of a layer: bias, scales of the output channels and Relu fused, every layout its own choice.
#include <cstring>
#include <dnnl.hpp>

#include "base/error.hpp"
#include "layer.hpp"

namespace qtn::layers {
namespace {

using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

/// The operands' shapes, and the layouts in which a Problem holds them.
struct Operands {
  explicit Operands(const Layer &l)
      : x(l.is_product() ? Dims{l.rows, l.in} : Dims{1, l.in, l.size, l.size}),
        w(l.is_product() ? Dims{l.out, l.in} : Dims{l.out, l.in / l.groups, l.kernel, l.kernel}),
        y(l.is_product() ? Dims{l.rows, l.out} : Dims{1, l.out, l.out_size(), l.out_size()}),
        plain(l.is_product() ? Tag::ab : Tag::abcd),
        plain_w(plain) {
    if (l.groups == 1) return;
    w = {l.groups, l.out / l.groups, l.in / l.groups, l.kernel, l.kernel};
    plain_w = Tag::abcde;
  }
  Dims x, w, y;
  Tag plain, plain_w;
};

dnnl::primitive_attr attributes(const Problem &problem) {
  std::vector<float> scales;
  for (const float scale : problem.w_scale) scales.push_back(problem.x_scale * scale / problem.y_scale);
  dnnl::primitive_attr attr;
  attr.set_output_scales(1 << 1, scales);
  dnnl::post_ops relu;
  relu.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  attr.set_post_ops(relu);
  return attr;
}

class OneDnn final : public Engine {
 public:
  OneDnn(const Layer &layer, const Problem &problem) : operands_(layer), stream_(engine_) {
    const auto any = [](const Dims &dims, Type type) { return Desc(dims, type, Tag::any); };
    const Desc x = any(operands_.x, Type::u8), w = any(operands_.w, Type::s8), y = any(operands_.y, Type::u8);
    const Desc bias({layer.out}, Type::s32, Tag::a);
    const dnnl::primitive_attr attr = attributes(problem);
    constexpr auto kInference = dnnl::prop_kind::forward_inference;
    if (layer.is_product()) {
      build<dnnl::inner_product_forward>({{kInference, x, w, bias, y}, attr, engine_}, problem);
    } else {
      const Dims strides(2, layer.stride), pads(2, layer.pad());
      build<dnnl::convolution_forward>(
          {{kInference, dnnl::algorithm::convolution_auto, x, w, bias, y, strides, pads, pads}, attr, engine_},
          problem);
    }
  }

  void run() override {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

  std::vector<std::uint8_t> result() const override {
    dnnl::memory plain(Desc(operands_.y, Type::u8, operands_.plain), engine_);
    dnnl::memory y = arguments_.at(DNNL_ARG_DST);
    reorder(y, plain);
    const auto *data = static_cast<const std::uint8_t *>(plain.get_data_handle());
    return {data, data + plain.get_desc().get_size()};
  }

  std::string kernel() const override { return kernel_; }

 private:
  template <class Primitive>
  void build(const typename Primitive::primitive_desc &desc, const Problem &problem) {
    kernel_ = desc.impl_info_str();
    primitive_ = Primitive(desc);
    const Desc bias = desc.bias_desc();
    arguments_ = {
        {DNNL_ARG_SRC, laid_out(problem.x, Desc(operands_.x, Type::u8, operands_.plain), desc.src_desc())},
        {DNNL_ARG_WEIGHTS, laid_out(problem.w, Desc(operands_.w, Type::s8, operands_.plain_w), desc.weights_desc())},
        {DNNL_ARG_BIAS, laid_out(problem.bias, bias, bias)},
        {DNNL_ARG_DST, dnnl::memory(desc.dst_desc(), engine_)},
    };
  }

  template <class T>
  dnnl::memory laid_out(const std::vector<T> &values, const Desc &plain, const Desc &wanted) const {
    dnnl::memory from(plain, engine_), to(wanted, engine_);
    std::memcpy(from.get_data_handle(), values.data(), values.size() * sizeof(T));
    reorder(from, to);
    return to;
  }

  void reorder(dnnl::memory &from, dnnl::memory &to) const {
    dnnl::stream stream(engine_);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  Operands operands_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::string kernel_;
};

}  // namespace

std::unique_ptr<Engine> make_onednn(const Layer &layer, const Problem &problem) {
  return std::make_unique<OneDnn>(layer, problem);
}

std::string onednn_version() {
  const dnnl_version_t &version = *dnnl::version();
  return cat("oneDNN ", version.major, ".", version.minor, ".", version.patch);
}

}  // namespace qtn::layers
